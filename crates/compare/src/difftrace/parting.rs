//! Where two folded sequences part, in words: the short form of a diffNLR (thesis 3.2.7.1).

use super::sequence::Folding;
use super::trees::Trees;
use crate::naming::told;
use lockstep_loops::{BodyId, Element, Key, Mode};

/// A loop that both sequences were in when they parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Iterations {
    /// How often the faulty trace finished it.
    pub(crate) done: u64,
    /// How often the normal one did.
    pub(crate) of: u64,
    /// Its body: `[MPI_Recv MPI_Send]`.
    pub(crate) body: String,
}

/// Where two sequences part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parting {
    /// The loop just before or at it, if its trip counts differ.
    pub(crate) iterations: Option<Iterations>,
    /// Both sequences around it.
    pub(crate) normal: String,
    /// The same of the faulty one.
    pub(crate) faulty: String,
}

/// How many elements are shown before the sequences part, and after.
const BEFORE: usize = 2;
const AFTER: usize = 4;
/// The longest loop body that is written out, in elements.
const BODY: usize = 8;
/// Loops in loops that are written out.
const DEEP: usize = 2;
/// So many characters of a body are a long one.
const LONG: usize = 100;

/// Where the structure of two sequences of a folding parts, or if it does not, their trip counts; `None`
/// if they are equal.
pub(crate) fn parting(
    normal: usize,
    faulty: usize,
    folding: &Folding,
    trees: &Trees,
) -> Option<Parting> {
    let (normal, faulty) = (&folding.sequences[normal], &folding.sequences[faulty]);
    let key = |element: &Element| element.key(Mode::Shape);
    let both = || normal.iter().zip(faulty);
    let shaped = both().take_while(|(a, b)| key(a) == key(b)).count();
    // Trip counts matter where structure parts just behind the loop, or nowhere.
    let same_shape = shaped == normal.len() && shaped == faulty.len();
    let at = if same_shape {
        both().position(|(a, b)| a != b)?
    } else {
        shaped.saturating_sub(1)
    };
    let words = Words { folding, trees };
    let iterations = match (normal.get(at), faulty.get(at)) {
        (Some(Element::Loop(a)), Some(Element::Loop(b)))
            if a.body() == b.body() && a.count() != b.count() =>
        {
            Some(Iterations {
                done: b.count(),
                of: a.count(),
                body: words.brief_body(a.body()),
            })
        }
        _ => None,
    };
    Some(Parting {
        iterations,
        normal: words.around(normal, at),
        faulty: words.around(faulty, at),
    })
}

/// A loop body in words.
pub(crate) fn body(body: BodyId, folding: &Folding, trees: &Trees) -> String {
    Words { folding, trees }.body(body, 0)
}

struct Words<'a> {
    folding: &'a Folding,
    trees: &'a Trees<'a>,
}

impl Words<'_> {
    fn around(&self, sequence: &[Element], at: usize) -> String {
        let from = at.saturating_sub(BEFORE);
        let to = (at + AFTER).min(sequence.len());
        let mut words: Vec<String> = Vec::new();
        if from > 0 {
            words.push("...".into());
        }
        words.extend(
            sequence[from..to]
                .iter()
                .map(|element| self.element(element)),
        );
        if to < sequence.len() {
            words.push("...".into());
        }
        words.join(" ")
    }

    fn element(&self, element: &Element) -> String {
        match element {
            Element::Symbol(symbol) => told(self.trees.name(*symbol)).into_owned(),
            Element::Loop(looped) => format!("{}^{}", self.body(looped.body(), 0), looped.count()),
        }
    }

    /// A body within a sentence: if it is long, without what is in its inner loops.
    fn brief_body(&self, body: BodyId) -> String {
        let mut words = self.body(body, 0);
        for depth in 1..=DEEP {
            if words.chars().count() > LONG {
                words = self.body(body, depth);
            }
        }
        words
    }

    fn body(&self, body: BodyId, depth: usize) -> String {
        let keys = self.folding.bodies.keys(body);
        let mut words: Vec<String> = keys
            .iter()
            .take(BODY)
            .map(|key| match key {
                Key::Symbol(symbol) => told(self.trees.name(*symbol)).into_owned(),
                Key::Loop(inner) | Key::Times(inner, _) if depth < DEEP => {
                    format!("{}*", self.body(*inner, depth + 1))
                }
                Key::Loop(_) | Key::Times(..) => "[...]*".into(),
            })
            .collect();
        if keys.len() > BODY {
            words.push("...".into());
        }
        format!("[{}]", words.join(" "))
    }
}
