//! What the tasks of an MPI program told each other: operations, and the parts that they consist of.
//!
//! A *part* is one thing that can complete: a send, a receive, a probe, one task's share of a
//! collective operation. An *operation* is a call; it begins parts and waits for parts: `MPI_Send`
//! begins a send and waits for it, `MPI_Irecv` begins a receive, `MPI_Waitall` waits for all of many,
//! `MPI_Sendrecv` begins two and waits for both.

pub use crate::communicators::CommunicatorId;
use crate::datatypes::Unit;
use crate::group::MpiGroup;
use lockstep_api::mpi::{self, Meaning};
pub use lockstep_api::mpi::{Mode, Shape};
use std::sync::Arc;

/// The other side of a message, by its rank in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// This task.
    Task(u32),
    /// Any member of the communicator (`MPI_ANY_SOURCE`) whose message was not told in a status.
    Any,
    /// Nobody (`MPI_PROC_NULL`): complete at once.
    Nobody,
    /// The run does not show it.
    Unknown,
}

/// One thing that can complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The operation of its task that began it.
    pub operation: usize,
    /// What it is.
    pub kind: PartKind,
    /// Whether the trace shows that it completed.
    pub complete: bool,
    /// The event by which its task knew that, by number; `None` where that is not known.
    pub completed_at: Option<u64>,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// A message to another.
    Send {
        /// To whom.
        to: Peer,
        /// Its tag.
        tag: i64,
        /// In which communicator.
        communicator: CommunicatorId,
        /// What it waits for.
        mode: Mode,
        /// How much.
        size: Size,
    },
    /// A message from another; what a status told counts as if it had been asked for.
    Receive {
        /// From whom.
        from: Peer,
        /// Its tag; `None` is any.
        tag: Option<i64>,
        /// In which communicator.
        communicator: CommunicatorId,
        /// Room for how much.
        size: Size,
        /// What it asked for, if it would take a message from anybody.
        wildcard: Option<Wildcard>,
    },
    /// Waits for a message and leaves it there.
    Probe {
        /// From whom.
        from: Peer,
        /// Its tag; `None` is any.
        tag: Option<i64>,
        /// In which communicator.
        communicator: CommunicatorId,
    },
    /// A share of a collective operation.
    Collective(Collective),
    /// A step of an epoch on a window.
    Epoch {
        /// The window, as the communicator that stands for it.
        window: CommunicatorId,
        /// Which step.
        step: Step,
        /// Of a post or a start, for whom, where that is known.
        group: Option<Arc<MpiGroup>>,
    },
    /// What no other task has a share in: a file's, or an access to a window that has a request.
    Own,
}

/// A receive from anybody (`MPI_ANY_SOURCE`), whoever it got a message from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wildcard {
    /// The tag that it asked for; `None` is any.
    pub tag: Option<i64>,
}

/// A step of one-sided communication that others could notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// `MPI_Win_start`.
    Start,
    /// `MPI_Win_complete`.
    Complete,
    /// `MPI_Win_post`.
    Post,
    /// `MPI_Win_wait`.
    Wait,
    /// `MPI_Win_lock` of a task, or `MPI_Win_lock_all`.
    Lock(Option<u32>),
    /// `MPI_Win_unlock` of a task, or `MPI_Win_unlock_all`.
    Unlock(Option<u32>),
}

/// A count of elements of a datatype.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Size {
    /// How many, where there is one count.
    pub count: Option<i64>,
    /// Of what, where that is known.
    pub datatype: Option<Unit>,
}

impl Size {
    /// In bytes, where that is known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.datatype.as_ref()?.bytes_of(self.count?)
    }
}

/// Elements for each rank of a communicator, or from each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amount {
    /// As many for all.
    Same(i64, Unit),
    /// By rank.
    Each(Arc<[i64]>, Unit),
    /// An edge of a graph for each rank of a list, as often as it is there.
    Edges(Arc<[i64]>),
}

impl Amount {
    /// That of a rank, and of what; edges are no elements.
    #[must_use]
    pub fn of(&self, rank: u32) -> Option<(i64, &Unit)> {
        match self {
            Self::Same(count, unit) => Some((*count, unit)),
            Self::Each(counts, unit) => Some((*counts.get(rank as usize)?, unit)),
            Self::Edges(_) => None,
        }
    }
}

/// What a task sends to each rank of the world in a collective operation, and what it expects of each, where that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts {
    /// To each.
    pub sent: Option<Amount>,
    /// From each.
    pub expected: Option<Amount>,
}

/// What a task is in an operation with a root between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// Of the group that is served by the root, or serves it; and in all other operations.
    #[default]
    Member,
    /// It says that it is the root (`MPI_ROOT`).
    Root,
    /// Of the root's group, and not the root (`MPI_PROC_NULL`).
    Bystander,
}

/// A task's share of a collective operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collective {
    /// In which communicator; `None` where that is not known.
    pub communicator: Option<CommunicatorId>,
    /// The standard's name: `MPI_Allreduce`, `MPI_Iallreduce`.
    pub name: Arc<str>,
    /// What that does.
    pub meaning: Meaning,
    /// The root's rank in the communicator; of an intercommunicator, in the other group.
    pub root: Option<i64>,
    /// What it is in an operation with a root between two groups.
    pub role: Role,
    /// The reduction: the standard's name, where it has one.
    pub reduction: Option<Arc<str>>,
    /// What else all members have to say alike: `dims [2, 2]; periods [1, 1]`.
    pub terms: Option<Arc<str>>,
    /// How much, where all members have to say the same.
    pub size: Size,
    /// How much for whom, where they need not.
    pub amounts: Option<Arc<Amounts>>,
    /// Whether what it gives lies where the result goes (`MPI_IN_PLACE`).
    pub in_place: bool,
}

impl Collective {
    /// How it makes its members wait; what has no shape of its own, all for all.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.meaning.shape().unwrap_or(Shape::All)
    }
}

/// A call of an MPI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which function.
    pub name: Arc<str>,
    /// Number of its event in the trace, from 0.
    pub event: u64,
    /// Whether it returned.
    pub returned: bool,
    /// What it waits for.
    pub waits: Waits,
}

impl Operation {
    /// What its function does. The name is looked up: to be asked of few.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        mpi::meaning(&self.name)
    }
}

/// What an operation waits for: parts of its task, by index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Waits {
    /// Nothing.
    #[default]
    No,
    /// All of these.
    All(Vec<usize>),
    /// One of these.
    Any(Vec<usize>),
    /// All of these, whose message a probe had found: without it, the task would have done something else.
    Found(Vec<usize>),
    /// Something that the trace does not show.
    Unknown,
}
