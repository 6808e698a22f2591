//! The communicators of a run, and what each process calls them.

use super::communicator::{Communicator, CommunicatorId, Origin};
use super::local::{Local, Makers};
use super::matching::Place;
use lockstep_trace::ProcessName;
use rustc_hash::FxHashMap;

/// The communicators of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Communicators {
    pub(super) all: Vec<Communicator>,
    pub(super) processes: FxHashMap<ProcessName, Known>,
}

/// What is known of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub makers: Makers,
    pub places: FxHashMap<Local, Place>,
}

impl Communicators {
    /// All of them: first those that MPI predefines, of each job, then their children in the order of
    /// the calls that made them.
    #[must_use]
    pub fn all(&self) -> &[Communicator] {
        &self.all
    }

    /// The communicator with this id.
    #[must_use]
    pub fn get(&self, id: CommunicatorId) -> Option<&Communicator> {
        self.all.get(id.0 as usize)
    }

    /// Its number for people, from 1; `None` of those that MPI predefines. O(communicators).
    #[must_use]
    pub fn number(&self, id: CommunicatorId) -> Option<usize> {
        let is_made = |it: &&Communicator| !matches!(it.origin, Origin::World | Origin::Own);
        is_made(&self.get(id)?).then(|| self.all[..=id.0 as usize].iter().filter(is_made).count())
    }
}
