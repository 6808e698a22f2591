//! Concept lattices, built incrementally by AddIntent (van der Merwe, Obiedkov, Kourie 2004).
//!
//! Two other algorithms stay beside it as oracles: Godin's, which the papers use, and close-by-one.

use crate::bits::{self, BitMatrix};
use crate::{Context, close_by_one, godin, order, poset};
use std::collections::HashMap;

/// The concepts of a context, and which lies directly below which.
///
/// Concepts are numbered from the most general (all objects) down: larger extents first, equally large
/// ones by their objects. The numbering is the same however the lattice was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lattice {
    pub(crate) extents: BitMatrix,
    pub(crate) intents: BitMatrix,
    /// For each concept its upper neighbours, ascending.
    pub(crate) upper: Vec<Vec<usize>>,
}

/// A lattice would have more concepts than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyConcepts {
    /// What was allowed.
    pub limit: usize,
}

impl std::fmt::Display for TooManyConcepts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the lattice has more than {} concepts", self.limit)
    }
}

impl std::error::Error for TooManyConcepts {}

/// How to build a lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Object by object; the one in use.
    AddIntent,
    /// Object by object, as published: exponential in the attributes of an object.
    Godin,
    /// All concepts at once, then their order.
    CloseByOne,
}

impl Lattice {
    /// The lattice of a context, of at most `limit` concepts.
    ///
    /// # Errors
    /// A context with more concepts.
    pub fn new(context: &Context, limit: usize) -> Result<Self, TooManyConcepts> {
        Self::by(Algorithm::AddIntent, context, limit)
    }

    /// The same, by a given algorithm.
    ///
    /// # Errors
    /// A context with more concepts.
    pub fn by(
        algorithm: Algorithm,
        context: &Context,
        limit: usize,
    ) -> Result<Self, TooManyConcepts> {
        let raw = match algorithm {
            Algorithm::AddIntent => add_intent(context, limit)?,
            Algorithm::Godin => godin::build(context, limit)?,
            Algorithm::CloseByOne => close_by_one::build(context, limit)?,
        };
        Ok(order::canonical(&raw))
    }

    /// The concepts that an object or an attribute brings, alone, with the order between them: what of a lattice that is
    /// too large can still be drawn. At most as many as the context has different objects and attributes; the most general
    /// concept is among them only if it is one.
    ///
    /// O(concepts² · objects): far from the whole lattice, which may be exponential.
    #[must_use]
    pub fn of_objects_and_attributes(context: &Context) -> Self {
        poset::build(context)
    }

    /// Number of concepts; at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // even the empty context has one concept
    pub fn len(&self) -> usize {
        self.upper.len()
    }

    /// The objects of a concept, ascending.
    pub fn extent(&self, concept: usize) -> impl Iterator<Item = usize> + '_ {
        bits::ones(self.extents.row(concept))
    }

    /// The attributes of a concept, ascending.
    pub fn intent(&self, concept: usize) -> impl Iterator<Item = usize> + '_ {
        bits::ones(self.intents.row(concept))
    }

    /// `(upper, lower)` for each pair of neighbours, ascending.
    #[must_use]
    pub fn covers(&self) -> Vec<(usize, usize)> {
        let mut covers: Vec<(usize, usize)> = self
            .upper
            .iter()
            .enumerate()
            .flat_map(|(lower, uppers)| uppers.iter().map(move |upper| (*upper, lower)))
            .collect();
        covers.sort_unstable();
        covers
    }

    /// For each object the lowest concept that has it: where the reduced labelling writes its name.
    #[must_use]
    pub fn object_concepts(&self, context: &Context) -> Vec<usize> {
        locate(&self.intents, context.incidence())
    }

    /// For each attribute the highest concept that has it: where the reduced labelling writes its name.
    #[must_use]
    pub fn attribute_concepts(&self, context: &Context) -> Vec<usize> {
        locate(&self.extents, &context.incidence().transposed())
    }
}

/// The row of `rows` that equals each row of `wanted`. Object intents and attribute extents are closed,
/// so that each is the intent or extent of a concept.
fn locate(rows: &BitMatrix, wanted: &BitMatrix) -> Vec<usize> {
    let index: HashMap<&[u64], usize> = (0..rows.rows()).map(|row| (rows.row(row), row)).collect();
    (0..wanted.rows())
        .map(|row| index.get(wanted.row(row)).copied().unwrap_or(0))
        .collect()
}

/// Concepts in any order, with links upwards in any order.
pub(crate) struct Raw {
    pub(crate) extents: BitMatrix,
    pub(crate) intents: BitMatrix,
    pub(crate) upper: Vec<Vec<usize>>,
}

impl Raw {
    /// The lattice of a context without objects: one concept that has every attribute.
    pub(crate) fn new(context: &Context) -> Self {
        let attributes = context.attributes().len();
        let mut intents = BitMatrix::new(0, attributes);
        intents.push(&BitMatrix::full_row(attributes));
        Self {
            extents: BitMatrix::new(1, context.objects().len()),
            intents,
            upper: vec![Vec::new()],
        }
    }

    /// Adds a concept with the extent of another one.
    pub(crate) fn push(
        &mut self,
        intent: &[u64],
        extent_of: usize,
        limit: usize,
    ) -> Result<usize, TooManyConcepts> {
        if self.upper.len() >= limit {
            return Err(TooManyConcepts { limit });
        }
        let extent = self.extents.row(extent_of).to_vec();
        self.extents.push(&extent);
        self.intents.push(intent);
        self.upper.push(Vec::new());
        Ok(self.upper.len() - 1)
    }
}

fn add_intent(context: &Context, limit: usize) -> Result<Raw, TooManyConcepts> {
    const BOTTOM: usize = 0;
    let mut lattice = Raw::new(context);
    let mut seen = Vec::new();
    for object in 0..context.objects().len() {
        let intent = context.incidence().row(object).to_vec();
        let concept = insert(&mut lattice, intent, BOTTOM, limit)?;
        // The new object belongs to its concept and to all above.
        seen.clear();
        seen.resize(lattice.upper.len(), false);
        seen[concept] = true;
        let mut todo = vec![concept];
        while let Some(concept) = todo.pop() {
            lattice.extents.set(concept, object);
            for upper in &lattice.upper[concept] {
                if !std::mem::replace(&mut seen[*upper], true) {
                    todo.push(*upper);
                }
            }
        }
    }
    Ok(lattice)
}

/// One activation of AddIntent. The recursion is as deep as the lattice is high, which may be
/// thousands, so it stands on a stack of its own.
struct Frame {
    intent: Vec<u64>,
    generator: usize,
    /// Upper neighbours of the generator that are still to be looked at.
    candidates: Vec<usize>,
    /// Upper neighbours of the new concept: maximal intents within `intent`.
    parents: Vec<usize>,
}

/// Finds the concept with this intent, or makes it together with all that must exist above it. `below`
/// is a concept whose intent contains the new one.
fn insert(
    lattice: &mut Raw,
    intent: Vec<u64>,
    below: usize,
    limit: usize,
) -> Result<usize, TooManyConcepts> {
    let mut stack: Vec<Frame> = Vec::new();
    let mut call = Some((intent, below));
    loop {
        // Enter: climb to the most general concept whose intent contains the new one.
        let mut found = None;
        if let Some((intent, below)) = call.take() {
            let generator = most_general(lattice, &intent, below);
            if lattice.intents.row(generator) == intent {
                found = Some(generator);
            } else {
                stack.push(Frame {
                    candidates: lattice.upper[generator].clone(),
                    intent,
                    generator,
                    parents: Vec::new(),
                });
            }
        }
        // Leave, perhaps through several activations.
        loop {
            let Some(frame) = stack.last_mut() else {
                // Only an answer empties the stack.
                return Ok(found.unwrap_or(below));
            };
            if let Some(parent) = found.take() {
                keep_maximal(lattice, &mut frame.parents, parent);
            }
            let Some(candidate) = frame.candidates.pop() else {
                found = Some(link(lattice, frame, limit)?);
                stack.pop();
                continue;
            };
            let row = lattice.intents.row(candidate);
            if bits::is_subset(row, &frame.intent) {
                found = Some(candidate);
            } else {
                call = Some((bits::and(row, &frame.intent), candidate));
                break;
            }
        }
    }
}

fn most_general(lattice: &Raw, intent: &[u64], mut concept: usize) -> usize {
    while let Some(upper) = lattice.upper[concept]
        .iter()
        .find(|upper| bits::is_subset(intent, lattice.intents.row(**upper)))
    {
        concept = *upper;
    }
    concept
}

fn keep_maximal(lattice: &Raw, parents: &mut Vec<usize>, candidate: usize) {
    let row = lattice.intents.row(candidate);
    if parents
        .iter()
        .any(|parent| bits::is_subset(row, lattice.intents.row(*parent)))
    {
        return;
    }
    parents.retain(|parent| !bits::is_subset(lattice.intents.row(*parent), row));
    parents.push(candidate);
}

/// Makes the concept of a finished activation, between its parents and its generator.
fn link(lattice: &mut Raw, frame: &Frame, limit: usize) -> Result<usize, TooManyConcepts> {
    let concept = lattice.push(&frame.intent, frame.generator, limit)?;
    let below = &mut lattice.upper[frame.generator];
    below.retain(|upper| !frame.parents.contains(upper));
    below.push(concept);
    lattice.upper[concept].clone_from(&frame.parents);
    Ok(concept)
}

#[cfg(test)]
mod tests;
