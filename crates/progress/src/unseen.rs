//! Tasks inside a library of which nothing is recorded.
//!
//! A program may hand all its work to one call of a library (`lmp` of LAMMPS does). While that runs, no event comes:
//! where the processors are busy this is work that is not seen, and no sign of a hang.

use crate::ends::is_mpi;
use crate::nonempty::Subject;
use crate::progress::Progress;
use crate::task::Task;
use lockstep_trace::EndKind;

impl Progress {
    /// Of a run that still goes on, where every task that is there is inside a library call other than one of
    /// MPI: who, and the call of the first.
    #[must_use]
    pub fn unseen(&self) -> Option<(Subject, &str)> {
        let tasks = self.tasks.values();
        let there: Vec<&Task> = tasks.filter(|it| it.end.kind == EndKind::Running).collect();
        let calls = there.iter().map(|task| {
            let call = task.stack.last()?;
            (call.imported && !is_mpi(call)).then_some(call.function.as_str())
        });
        let calls: Vec<&str> = calls.collect::<Option<_>>()?;
        let numbers: Vec<u32> = there.iter().map(|task| task.number).collect();
        Some((Subject::new(numbers)?, calls.first()?))
    }
}
