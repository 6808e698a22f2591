//! The functions of MPI that a run has. A program's own `MPI_Recv` that calls the library's `PMPI_Recv` is none: what it calls is.

use lockstep_trace::{Function, FunctionId, Run, c_name};
use rustc_hash::FxHashSet;
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
        let imported = run.functions.iter().filter(|it| it.imported);
        let imported: FxHashSet<&str> = imported.map(|it| it.linkage.as_str()).collect();
        let stands_for = |linkage: &str| {
            [format!("P{linkage}"), format!("p{linkage}")]
                .iter()
                .any(|it| imported.contains(it.as_str()))
        };
        let is_own = |it: &Function| !it.imported && stands_for(&it.linkage);
        let functions = run.functions.iter();
        Self(
            functions
                .map(|it| name(&it.linkage).filter(|_| !is_own(it)))
                .collect(),
        )
    }

    pub fn name(&self, id: FunctionId) -> Option<&Arc<str>> {
        self.0.get(id.0 as usize)?.as_ref()
    }
}
