//! `lockstep lattice`: the concept lattice of the traces and their attributes.

use crate::{Error, Options};
use lockstep_concepts::Context;
use lockstep_trace::Run;
use serde::Serialize;

/// A concept lattice, the most general concept (all objects) first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lattice {
    /// Its concepts.
    pub concepts: Vec<Concept>,
    /// `(upper, lower)` for each pair of neighbours, as indices into `concepts`.
    pub covers: Vec<(usize, usize)>,
}

/// A maximal set of objects that share a maximal set of attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Concept {
    /// Its objects.
    pub extent: Vec<String>,
    /// Its attributes.
    pub intent: Vec<String>,
    /// Objects in no lower concept: its part of the reduced labels.
    pub own_objects: Vec<String>,
    /// Attributes in no upper concept: its part of the reduced labels.
    pub own_attributes: Vec<String>,
}

/// The formal context of a run: its traces are the objects, `attribute` or `attribute:frequency` the
/// attributes.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn context(run: &Run, options: &Options) -> Result<Context, Error> {
    let _ = (run, options);
    Err(Error::Nothing("lattice: not built yet".into()))
}

/// The concept lattice of a context, of at most `limit` concepts.
///
/// # Errors
/// A context with more concepts.
pub fn lattice(context: &Context, limit: usize) -> Result<Lattice, Error> {
    let _ = (context, limit);
    Err(Error::Nothing("lattice: not built yet".into()))
}
