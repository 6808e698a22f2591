//! The functions of MPI that a run has. A program's own `MPI_Recv` that calls the library's `PMPI_Recv` is none: what it calls is.
//! Nor is its `MPI_Checkpoint`, which only has a name like that.

use lockstep_api::mpi::{self, Language, Meaning};
use lockstep_trace::{Function, FunctionId, Run, c_name};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A function of MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine {
    /// Its name in the standard, without the ending of those with large counts: what they do is the same.
    pub name: Arc<str>,
    /// What it does.
    pub meaning: Meaning,
    /// The language that it is called from.
    pub language: Language,
}

impl Routine {
    /// The one that a library has under this name.
    pub fn of(linkage: &str) -> Self {
        let name = c_name(linkage);
        let profiled = name.strip_prefix('P').filter(|it| it.starts_with(PREFIX));
        let name = profiled.unwrap_or(&name);
        let function = mpi::Function::of(linkage.as_bytes());
        Self {
            name: name.strip_suffix("_c").unwrap_or(name).into(),
            meaning: function.map_or(Meaning::UNKNOWN, |it| it.meaning()),
            language: function.map_or(Language::C, |it| it.language),
        }
    }
}

/// The functions of a run that are MPI's.
#[derive(Debug)]
pub struct Routines(Vec<Option<Routine>>);

impl Routines {
    /// O(functions).
    pub fn new(run: &Run) -> Self {
        let imported = run.functions.iter().filter(|it| it.imported);
        let profiled: FxHashSet<&str> = imported
            .filter_map(|it| it.linkage.strip_prefix(['P', 'p']))
            .collect();
        let wraps = |it: &Function| !it.imported && profiled.contains(it.linkage.as_str());
        let is_one = |it: &&Function| !wraps(it) && is_routine(&it.linkage, it.imported);
        let all = run.functions.iter().map(|it| Some(it).filter(is_one));
        Self(all.map(|it| Some(Routine::of(&it?.linkage))).collect())
    }

    /// Whether there are any.
    pub fn are_some(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// What a function of the run is, if it is one of these.
    #[must_use]
    pub fn get(&self, id: FunctionId) -> Option<&Routine> {
        self.0.get(id.0 as usize)?.as_ref()
    }
}

/// What names of MPI begin with.
const PREFIX: &str = "MPI_";

/// Whether a function is named as those of MPI are, in C or in Fortran.
pub fn is_named_so(linkage: &str) -> bool {
    let name = c_name(linkage);
    name.strip_prefix('P').unwrap_or(&name).starts_with(PREFIX)
}

/// Whether a function of this name is one of MPI. What a program has itself is one where MPI is linked into it, under a name of the
/// standard's.
pub fn is_routine(linkage: &str, imported: bool) -> bool {
    is_named_so(linkage) && (imported || mpi::Function::of(linkage.as_bytes()).is_some())
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
