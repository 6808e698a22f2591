//! Which calls are places: those of the program, of MPI and of OpenMP.

use lockstep_calltree::{Forest, FunctionKey};
use lockstep_comm::is_named_so;
use lockstep_trace::threads::Does;

/// Whether calls of a function are places.
pub(crate) fn counts(forest: &Forest, function: FunctionKey) -> bool {
    let meaning = forest.meaning(function);
    let function = forest.function(function);
    let starts = |prefix: &&str| function.name.starts_with(prefix);
    !function.imported
        || meaning.is_openmp()
        || matches!(meaning.does, Does::Barrier(_))
        || ["MPI_", "PMPI_", "mpi_", "pmpi_"].iter().any(starts)
}

/// Whether it is a function of MPI.
pub(crate) fn is_mpi(forest: &Forest, function: FunctionKey) -> bool {
    let function = forest.function(function);
    function.imported && is_named_so(&function.name)
}
