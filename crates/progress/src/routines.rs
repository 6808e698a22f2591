//! The functions of MPI that a run has. A program's own `MPI_Recv` that calls the library's `PMPI_Recv` is none: what it calls is.
//! Nor is its `MPI_Checkpoint`, which only has a name like that.

use lockstep_trace::{Function, FunctionId, Run, c_name, mpi};
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
            Arc::from(name)
        };
        let imported = run.functions.iter().filter(|it| it.imported);
        let profiled: FxHashSet<&str> = imported
            .filter_map(|it| it.linkage.strip_prefix(['P', 'p']))
            .collect();
        let wraps = |it: &Function| !it.imported && profiled.contains(it.linkage.as_str());
        let is_one = |it: &&Function| !wraps(it) && is_routine(&it.linkage, it.imported);
        let names = run.functions.iter().map(|it| {
            let it = Some(it).filter(is_one);
            it.map(|it| name(&it.linkage))
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

/// Whether a function of this name is one of MPI. What a program has itself is one where MPI is linked into it, under a name of the
/// standard's.
pub(crate) fn is_routine(linkage: &str, imported: bool) -> bool {
    let name = c_name(linkage);
    let is_named_so = name.starts_with("MPI_") || name.starts_with("PMPI_");
    is_named_so && (imported || mpi::Function::of(linkage.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::is_routine;

    #[test]
    fn what_only_has_a_name_like_that_is_none() {
        for name in ["MPI_Send", "mpi_send_", "PMPI_Send", "MPI_Isend_c"] {
            assert!(is_routine(name, true) && is_routine(name, false), "{name}");
        }
        assert!(is_routine("MPI_Wtime", true));
        for name in ["MPI_Checkpoint_write", "mpi_checkpoint_write_", "main"] {
            assert!(!is_routine(name, false), "{name}");
        }
    }
}
