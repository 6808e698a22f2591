//! `lockstep lattice`: the concept lattice of the traces and their attributes.

use super::attribute::Kind;
use super::one_run::OneRun;
use crate::{Error, Options};
use lockstep_concepts::Context;
use lockstep_trace::Run;
use schemars::JsonSchema;
use serde::Serialize;

/// A concept lattice. Objects are traces, or pieces of traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lattice {
    /// The concepts; the most general one (all objects) comes first.
    pub concepts: Vec<Concept>,
    /// Pairs `(upper, lower)` of neighbours, as indices into `concepts`.
    pub covers: Vec<(usize, usize)>,
    /// Whether only concepts that introduce an object or an attribute are listed (`--poset`).
    #[serde(rename = "poset")]
    pub is_poset: bool,
}

/// A maximal set of objects that share a maximal set of attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Concept {
    /// Objects of the concept.
    pub extent: Vec<String>,
    /// Attributes that all these objects have.
    pub intent: Vec<String>,
    /// Objects that no lower concept has (reduced label).
    pub own_objects: Vec<String>,
    /// Attributes that no upper concept has (reduced label).
    pub own_attributes: Vec<String>,
}

/// The formal context of a run: its traces are the objects, `attribute` or `attribute:frequency` the
/// attributes.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn context(run: &Run, options: &Options) -> Result<Context, Error> {
    let of = OneRun::new(run, options)?;
    let (table, rows) = of.table(Kind::of(options))?;
    Ok(table.context(&of.objects, &rows, &of.folding, &of.trees))
}

/// Concepts are counted up to so many times the limit before a lattice is refused, so that it can be said how large it is.
const COUNTED: usize = 10;

/// The concept lattice of a context, of at most `limit` concepts; they are counted before any is made.
///
/// # Errors
/// A context with more concepts.
pub fn lattice(context: &Context, limit: usize) -> Result<Lattice, Error> {
    let most = limit.saturating_mul(COUNTED);
    let told = match lockstep_concepts::count(context, most) {
        Ok(count) if count <= limit => None,
        Ok(count) => Some(count.to_string()),
        Err(_) => Some(format!("more than {most}")),
    };
    let refused = |size: &str| {
        Error::TooLarge(format!(
            "expected a lattice of at most {limit} concepts (--limit), found {size} of {} objects with {} attributes; a narrower --filter, or --frequency none, gives a smaller one, --poset the concepts of objects and attributes alone",
            context.objects().len(),
            context.attributes().len()
        ))
    };
    if let Some(size) = told {
        return Err(refused(&size));
    }
    let lattice = lockstep_concepts::Lattice::new(context, limit)
        .map_err(|error| refused(&format!("more than {}", error.limit)))?;
    Ok(labelled(context, &lattice, false))
}

/// Of a concept lattice the concepts that bring an object or an attribute, alone, and the order between them: as many as
/// there are different objects and attributes, at most, however large the lattice is.
#[must_use]
pub fn poset(context: &Context) -> Lattice {
    let poset = lockstep_concepts::Lattice::of_objects_and_attributes(context);
    labelled(context, &poset, true)
}

fn labelled(context: &Context, lattice: &lockstep_concepts::Lattice, is_poset: bool) -> Lattice {
    let (objects, attributes) = (context.objects(), context.attributes());
    let mut concepts: Vec<Concept> = (0..lattice.len())
        .map(|concept| Concept {
            extent: lattice
                .extent(concept)
                .map(|it| objects[it].clone())
                .collect(),
            intent: lattice
                .intent(concept)
                .map(|it| attributes[it].clone())
                .collect(),
            ..Concept::default()
        })
        .collect();
    for (object, concept) in objects.iter().zip(lattice.object_concepts(context)) {
        concepts[concept].own_objects.push(object.clone());
    }
    for (attribute, concept) in attributes.iter().zip(lattice.attribute_concepts(context)) {
        concepts[concept].own_attributes.push(attribute.clone());
    }
    Lattice {
        concepts,
        covers: lattice.covers(),
        is_poset,
    }
}
