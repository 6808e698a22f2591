//! What calls tell about who runs a thread: the program, or a library for itself.

use lockstep_trace::threads::{self, Does};
use lockstep_trace::{FunctionId, Run, mpi};
use std::collections::BTreeSet;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_bear_on_others() {
        let all = ["pthread_create", "MPI_Send", "sem_post", "malloc", "poll"];
        let told = all.map(of_name);
        let (none, acts) = (Bearing::None, Bearing::Acts);
        assert_eq!(told, [Bearing::Creates, acts, acts, none, none]);
    }
}
