//! The functions of MPI that a run has.

use lockstep_trace::{FunctionId, Run, c_name};
use std::sync::Arc;

/// The functions of a run that are MPI's, by the names of the standard.
#[derive(Debug)]
pub(crate) struct Routines(Vec<Option<Arc<str>>>);

impl Routines {
    /// O(functions).
    pub fn new(run: &Run) -> Self {
        let name = |linkage: &str| {
            let name = c_name(linkage);
            let profiled = name.strip_prefix('P').filter(|it| it.starts_with("MPI_"));
            let name = profiled.unwrap_or(&name);
            name.starts_with("MPI_").then(|| Arc::from(name))
        };
        let functions = run.functions.iter();
        Self(functions.map(|it| name(&it.linkage)).collect())
    }

    pub fn name(&self, id: FunctionId) -> Option<&Arc<str>> {
        self.0.get(id.0 as usize)?.as_ref()
    }
}
