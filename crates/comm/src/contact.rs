//! What a trace did together with others: one end of a message, or a share in a collective operation.

use crate::communicators::CommunicatorId;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

/// One thing that a trace did together with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// The call that began it: the number of its event in the trace.
    pub begun: u64,
    /// The return after which it was over, if that is known.
    pub over: Option<NonZeroU64>,
    /// Whether the call that began it did not wait for it.
    pub is_by_request: bool,
    /// What it was.
    pub what: What,
}

/// What a trace did together with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It sent a message.
    Send(Message),
    /// It received one, or would have.
    Receive(Message),
    /// It had a share in a collective operation.
    Share(Share),
}

/// One end of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The task at the other end, by its rank in the world.
    pub peer: u32,
    /// Its tag.
    pub tag: i64,
    /// In which communicator.
    pub communicator: CommunicatorId,
    /// How long it is: what was sent, if that is known.
    pub bytes: Option<u64>,
    /// A number that both ends have and nothing else; `None` where the other end is not known.
    pub number: Option<NonZeroU32>,
}

/// A share in a collective operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// In which communicator.
    pub communicator: CommunicatorId,
    /// The standard's name: `MPI_Allreduce`, `MPI_Iallreduce`.
    pub name: Arc<str>,
    /// Whether it makes a communicator.
    pub makes: bool,
    /// The root's rank in the communicator.
    pub root: Option<u32>,
    /// Bytes that it sent and received, with what it sent itself; `None` where that is not known.
    pub bytes: Option<(u64, u64)>,
    /// Whether others wait for it, and whether it waits for others; `None` where that is not known.
    pub ways: Option<(bool, bool)>,
}
