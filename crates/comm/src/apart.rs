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
use lockstep_trace::threads::{self, Does};
use lockstep_trace::{FunctionId, ProcessName, Run, ThreadName, mpi};
use std::collections::{BTreeMap, BTreeSet};

/// What a call tells about the thread that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearing {
    /// It is in the program's own code.
    Own,
    /// Others may wait for it.
    Acts,
    /// It creates a thread.
    Creates,
    /// Nothing.
    None,
}

/// What the calls of a thread told so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Whether it was in the program's own code.
    pub is_own: bool,
    /// Whether others may wait for it.
    pub acts: bool,
    /// How many threads it created.
    pub created: u32,
}

impl Deeds {
    pub fn take_in(&mut self, bearing: Bearing) {
        match bearing {
            Bearing::Own => self.is_own = true,
            Bearing::Acts => self.acts = true,
            Bearing::Creates => self.created += 1,
            Bearing::None => {}
        }
    }
}

/// What each function of a run bears on, by its number; of all of them [`Bearing::Own`] where functions were left out.
pub fn bearings(run: &Run) -> Vec<Bearing> {
    let left_out = run.processes.iter().any(|it| it.coverage.left_out > 0);
    let programs: BTreeSet<String> = run.processes.iter().map(|it| it.image()).collect();
    let functions = run.functions.iter();
    let bearing = functions.map(|it| match it.imported {
        false if left_out || programs.contains(&it.image) => Bearing::Own,
        true if left_out => Bearing::Own,
        _ => of_name(&it.linkage),
    });
    bearing.collect()
}

fn of_name(name: &str) -> Bearing {
    let meaning = threads::meaning(name);
    match meaning.does {
        Does::Create => Bearing::Creates,
        _ if meaning.is_between_threads() || mpi::is_mpi(name.as_bytes()) => Bearing::Acts,
        _ => Bearing::None,
    }
}

/// The bearing of a function.
pub fn bearing(all: &[Bearing], function: FunctionId) -> Bearing {
    all.get(function.0 as usize)
        .copied()
        .unwrap_or(Bearing::Own)
}

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

    #[test]
    fn names_that_bear_on_others() {
        let all = ["pthread_create", "MPI_Send", "sem_post", "malloc", "poll"];
        let told = all.map(of_name);
        let (none, acts) = (Bearing::None, Bearing::Acts);
        assert_eq!(told, [Bearing::Creates, acts, acts, none, none]);
    }
}
