//! Threads that a library runs for itself: nobody can be waiting for them.
//!
//! ```text
//!  program ── malloc's entry ◄── progress thread of the MPI library    the entry is the program's, where it takes the
//!                                                                      function's address: so the call is recorded
//! ```
//! Such a thread looks like one of the program that computes and may send a message yet. What tells them apart:
//!
//! * No function of the program itself was ever called in it, and nothing that others may wait for: MPI, a lock, a signal.
//! * As many threads as the program created have come into its code: so a library created this one.
//!
//! *Guarantees*: a thread that the program created counts before it calls MPI for the first time, and so does every
//! thread where functions were left out of the recording. *Costs*: nothing beside the pass over events that [`strand`]
//! makes. *Not for*: a library's thread that calls MPI: from then on it counts.
//!
//! [`strand`]: crate::strand

use crate::strand::{Doing, Strand};
use lockstep_trace::{ProcessName, ThreadName};
use std::collections::BTreeMap;

/// Sets apart the threads that libraries run for themselves, of processes all of whose threads are here.
pub fn set_apart<'a>(strands: impl Iterator<Item = &'a mut Strand>) {
    let mut together: BTreeMap<ProcessName, Vec<&mut Strand>> = BTreeMap::new();
    for strand in strands {
        together.entry(strand.process()).or_default().push(strand);
    }
    for threads in together.into_values() {
        let is_first = |it: &Strand| it.trace.thread == ThreadName::Main(0);
        let created: u32 = threads.iter().map(|it| it.deeds.created).sum();
        let come = threads.iter().filter(|it| it.deeds.is_own && !is_first(it));
        if (come.count() as u64) < u64::from(created) {
            continue;
        }
        for strand in threads {
            let is_apart = !strand.deeds.is_own && !strand.deeds.acts && !is_first(strand);
            if is_apart && matches!(strand.doing, Doing::Runs | Doing::Idle) {
                strand.doing = Doing::Apart;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deeds::Deeds;

    fn strand(number: u32, deeds: Deeds) -> Strand {
        let trace = lockstep_trace::TraceName {
            process: ProcessName::rank(0),
            thread: ThreadName::Main(number),
        };
        let mut strand = Strand::new(trace, Doing::Runs);
        strand.deeds = deeds;
        strand
    }

    /// What the threads do, whose first created so many.
    fn doing(created: u32, others: &[Deeds]) -> Vec<Doing> {
        let first = Deeds {
            is_own: true,
            created,
            ..Deeds::default()
        };
        let mut strands: Vec<Strand> = (0..)
            .zip([first].iter().chain(others))
            .map(|(number, deeds)| strand(number, *deeds))
            .collect();
        set_apart(strands.iter_mut());
        strands[1..].iter().map(|it| it.doing).collect()
    }

    #[test]
    fn who_was_created_by_a_library_and_did_nothing_is_set_apart() {
        let library = Deeds::default();
        let worker = Deeds {
            is_own: true,
            ..library
        };
        let sender = Deeds {
            acts: true,
            ..library
        };
        assert_eq!(doing(0, &[library]), [Doing::Apart]);
        assert_eq!(doing(1, &[library, worker]), [Doing::Apart, Doing::Runs]);
        assert_eq!(doing(0, &[sender]), [Doing::Runs]);
        // A thread that was created has not come yet: it may be this one.
        assert_eq!(doing(1, &[library]), [Doing::Runs]);
        assert_eq!(doing(2, &[library, worker]), [Doing::Runs, Doing::Runs]);
    }
}
