//! A run's progress: the whole of it, in plain values.

use crate::cause::Cause;
use crate::clause::{Doubted, Mismatched, Potential, Unreceived, Verdict};
use crate::holding::Kept;
use crate::sites::Sites;
use crate::task::{Group, Kind, Place, Task};
use crate::team::Truant;
use crate::waits::Waiting;
use lockstep_check::Loose;
use lockstep_check::races::Race;
use lockstep_check::strays::Stray;
use lockstep_comm::communicators::Communicators;
use lockstep_comm::{CommunicatorId, Conversation, Membership};
use lockstep_diagnosis::Disagreement;
use lockstep_trace::{Fact, ProcessName, TraceName};
use std::collections::BTreeMap;

/// A run's progress.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// The answer.
    pub verdict: Verdict,
    /// Whether a task hangs.
    pub hang: bool,
    /// How.
    pub kind: Kind,
    /// Whether tasks are ranks; else they are threads.
    pub is_mpi: bool,
    /// The tasks, by number.
    pub tasks: BTreeMap<u32, Task>,
    /// The groups, by their first task.
    pub groups: Vec<Group>,
    /// Pairs of groups (more progressed, less progressed), transitively reduced.
    pub edges: Vec<(usize, usize)>,
    /// The groups that hold the others up: the least progressed of those whom the others wait for, or
    /// of all where nobody is known to wait.
    pub least: Vec<usize>,
    /// Who waits for whom.
    pub waiting: Waiting,
    /// Collective operations that do not fit.
    pub disagreements: Vec<Disagreement>,
    /// The first of them, with their calls.
    pub mismatched: Vec<Mismatched>,
    /// What a task does alone for which an operation cannot complete.
    pub stops: Option<Mismatched>,
    /// Collective operations that do not fit, and what fits by luck, as values.
    pub(crate) unfit: Vec<Fact>,
    /// Messages and requests that came to nothing, and pairs that do not fit.
    pub loose: Vec<Loose>,
    /// A deadlock that only buffering or the order of messages prevented.
    pub potential: Option<Potential>,
    /// Tasks that did something else than is normal, and made the others wait.
    pub causes: Vec<Cause>,
    /// In a deadlock: a message that nobody received, and that may have been meant for those who wait.
    pub unreceived: Option<Unreceived>,
    /// For what tasks wait, though nothing tells that they do.
    pub(crate) doubts: BTreeMap<u32, Doubted>,
    /// Threads that did not come to a barrier at which a task is.
    pub(crate) truants: BTreeMap<u32, Truant>,
    /// Locks that others wait for, and where they were taken.
    pub(crate) kept: Vec<Kept>,
    /// Processes that were forked, and from which.
    pub forked: BTreeMap<ProcessName, ProcessName>,
    /// Names of communicators in which somebody is waited for, the world's left out.
    pub communicators: BTreeMap<CommunicatorId, String>,
    /// Open calls of threads, of processes that have several.
    pub threads: BTreeMap<TraceName, Vec<Place>>,
    /// Which answers are lost, and why.
    pub notes: Vec<String>,
}

/// Everything that the verdict is made of.
pub(crate) struct Facts<'a> {
    pub progress: &'a Progress,
    pub conversations: &'a BTreeMap<u32, Conversation>,
    pub communicators: &'a Communicators,
    pub membership: &'a Membership,
    pub strays: &'a [Stray],
    pub sites: &'a Sites,
    pub steals: &'a [Race],
    /// Where whoever crashed could have taken another message.
    pub chance: Option<&'a Race>,
    /// What the first task that crashed gave the call of MPI that it is in: `(count=-1, dest=7)`.
    pub given: Option<String>,
}

impl Progress {
    /// Tasks of which nothing is known yet.
    pub(crate) fn of(is_mpi: bool, tasks: BTreeMap<u32, Task>, notes: Vec<String>) -> Self {
        Self {
            is_mpi,
            tasks,
            notes,
            ..Self::default()
        }
    }

    /// The tasks that hold the others up.
    #[must_use]
    pub fn holding(&self) -> Vec<u32> {
        let groups = self.least.iter().filter_map(|it| self.groups.get(*it));
        groups.flat_map(|it| &it.tasks).copied().collect()
    }

    /// The group that a task is in.
    #[must_use]
    pub fn group_of(&self, task: u32) -> Option<&Group> {
        let has = |it: &&Group| it.tasks.binary_search(&task).is_ok();
        self.groups.iter().find(has)
    }
}
