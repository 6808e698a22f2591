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
            // Of large counts; what it does is the same.
            let name = name.strip_suffix("_c").unwrap_or(name);
            name.starts_with("MPI_").then(|| Arc::from(name))
        };
        let imported = run.functions.iter().filter(|it| it.imported);
        let profiled: FxHashSet<&str> = imported
            .filter_map(|it| it.linkage.strip_prefix(['P', 'p']))
            .collect();
        let wraps = |it: &Function| !it.imported && profiled.contains(it.linkage.as_str());
        let names = run.functions.iter().map(|it| match wraps(it) {
            true => None,
            false => name(&it.linkage),
        });
        Self(names.collect())
    }

    /// Whether there are any.
    pub fn are_some(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    pub fn name(&self, id: FunctionId) -> Option<&Arc<str>> {
        self.0.get(id.0 as usize)?.as_ref()
    }
}
