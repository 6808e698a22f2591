//! What comes to nothing, or is wrong: each kind with what is known of it.

use crate::epochs::Needs;
use lockstep_api::mpi::Resource;
use lockstep_api::mpi::rules::{Rule, Severity};
use lockstep_trace::TraceName;

mod ids;

/// A loose end; the worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LooseEnd {
    /// `MPI_Init` had not come.
    BeforeInit {
        /// The function that was called.
        name: String,
    },
    /// `MPI_Init` had come.
    Again {
        /// The function that was called.
        name: String,
    },
    /// Only the thread that began MPI may call.
    WrongThread {
        /// The function that was called first.
        name: String,
        /// The threads that did.
        threads: Vec<TraceName>,
        /// The level of thread support.
        level: &'static str,
    },
    /// No call had made the request.
    Unmade {
        /// The function that was called.
        name: String,
    },
    /// It waits for a partitioned send, not all of which is ready.
    NotMarked {
        /// The function that was called.
        name: String,
        /// `partition 2 of 4`.
        what: String,
    },
    /// It waits again and again for any of no requests.
    Idle {
        /// The function that is called.
        name: String,
    },
    /// A call was given what MPI does not allow.
    Argument {
        /// Which rule forbids it.
        rule: &'static Rule,
        /// The function that was called.
        name: String,
        /// What it was given: `count -1`.
        what: String,
    },
    /// Two buffers of one call overlap, and one of them is written.
    Aliased {
        /// The function that was called.
        name: String,
    },
    /// A call was given memory that an operation uses which runs, and one of the two writes it.
    Overlap {
        /// The function that was called.
        name: String,
        /// Whether it writes there.
        writes: bool,
        /// The function that began what runs, and where: `MPI_Isend at halo.c:70`.
        other: String,
    },
    /// A datatype was used that was not committed.
    Uncommitted {
        /// The function that was called.
        name: String,
    },
    /// Written to a file that was opened for reading, or read from one for writing.
    OtherWay {
        /// The function that was called.
        name: String,
        /// How the file was opened.
        mode: &'static str,
    },
    /// What was given to a call was freed before.
    Freed {
        /// What.
        resource: Resource,
        /// The function that was called.
        name: String,
    },
    /// A call was given a request that was over: a copy of its handle.
    Past {
        /// The function that was called.
        name: String,
    },
    /// A persistent request was started while it ran.
    StartedTwice {
        /// The function that was called.
        name: String,
    },
    /// A window was locked that the task had locked.
    LockedTwice {
        /// Whose part of it; `None` is everybody's.
        of: Option<u32>,
    },
    /// A window was used, or an epoch on it ended, where none had begun.
    OutsideEpoch {
        /// The function that was called.
        name: String,
        /// What would have begun one.
        opens: Needs,
    },
    /// A persistent request was waited for and freed, and never started.
    NeverStarted,
    /// Buffered sends need one.
    NoBuffer {
        /// The function that was called.
        name: String,
    },
    /// A buffer was attached while there was one.
    AttachedTwice,
    /// A message is larger than the whole buffer for such.
    SmallBuffer {
        /// The function that was called.
        name: String,
        /// Bytes of the message.
        bytes: i64,
        /// Bytes of the buffer.
        room: i64,
    },
    /// An access to the part of a task for which the epoch is not.
    NotInGroup {
        /// The function that was called.
        name: String,
        /// Whose part of the window it is.
        target: u32,
    },
    /// An access to what a window does not have.
    OutsideWindow {
        /// The function that was called.
        name: String,
        /// Whose part of the window it is, and the bytes that it has.
        target: u32,
        /// Bytes of it.
        size: i64,
        /// The bytes that were accessed: the first, and the one behind the last.
        bytes: (i64, i64),
    },
    /// A ready send that nothing keeps from coming before its receive.
    NotReady {
        /// The function that was called.
        name: String,
        /// The receiver.
        to: u32,
    },
    /// Two accesses to a window that nothing orders.
    Conflict {
        /// The function that was called.
        name: String,
        /// Who made the other access.
        other: u32,
        /// By which function.
        other_name: String,
        /// Whose part of the window it is.
        target: u32,
    },
    /// Two threads were in MPI at once, of which one at a time may be.
    AtOnce {
        /// The function that the first of them was in.
        name: String,
        /// That thread.
        thread: String,
        /// Where the others were: `MPI_Recv in thread 1.1`.
        others: String,
    },
    /// A receive whose request was given up while it ran.
    GivenUp {
        /// The function that began it.
        name: String,
    },
    /// The receiver finished without it.
    NeverReceived {
        /// The sender's function.
        name: String,
        /// The receiver.
        to: u32,
        /// The message's tag.
        tag: i64,
    },
    /// Its task finished without having completed it.
    NeverCompleted {
        /// The function that began it.
        name: String,
    },
    /// The receive is for another datatype.
    OtherDatatype {
        /// Sent.
        sent: String,
        /// Received as.
        received: String,
        /// The receiver.
        to: u32,
    },
    /// The receive has too little room.
    TooLarge {
        /// Sent.
        sent: String,
        /// Room for.
        room: String,
        /// The receiver.
        to: u32,
    },
    /// A call gave back an error.
    Failed {
        /// The function that was called.
        name: String,
        /// The class of the error: `MPI_ERR_NO_SUCH_FILE`; the code of one that is not known.
        error: String,
    },
    /// `MPI_Finalize` was over.
    AfterFinalize {
        /// The function that was called.
        name: String,
    },
    /// A window was locked to the end.
    NeverUnlocked {
        /// Whose part of it; `None` is everybody's.
        of: Option<u32>,
    },
    /// An epoch on a window was begun and not ended.
    NeverEnded {
        /// The function that began it.
        name: String,
    },
    /// It ended by itself, as if all was well, after `MPI_Init`.
    NeverFinalized,
    /// Made, and not freed.
    NeverFreed {
        /// What.
        resource: Resource,
        /// The function that made it.
        name: String,
    },
}

impl LooseEnd {
    /// Whether MPI may end a job, or fail, in that very call.
    #[must_use]
    pub fn may_end_it(&self) -> bool {
        self.rule().severity == Severity::Fatal
    }

    /// Whether MPI may end a job for it in `MPI_Finalize`.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self, Self::NeverFreed { .. })
    }

    /// The threads that made the mistake, where it is one of threads.
    pub(crate) fn threads_mut(&mut self) -> Option<&mut Vec<TraceName>> {
        match self {
            Self::WrongThread { threads, .. } => Some(threads),
            _ => None,
        }
    }

    /// The receiver of a message that does not fit its receive.
    #[must_use]
    pub fn misfit_of(&self) -> Option<u32> {
        match self {
            Self::OtherDatatype { to, .. } | Self::TooLarge { to, .. } => Some(*to),
            _ => None,
        }
    }
}
