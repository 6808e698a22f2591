//! The messages of a task, by with whom and with which tag: all that it sent, once, and the last of both ways in order.

use crate::message::{CommunicatorId, PartKind, Peer};
use std::collections::VecDeque;

/// To whom, with which tag and in which communicator messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope {
    /// To whom.
    pub to: u32,
    /// Its tag.
    pub tag: i64,
    /// Its communicator: a message of another one has nothing to do with a wait in this one.
    pub communicator: CommunicatorId,
}

impl PartKind {
    /// Of a message to somebody.
    pub fn envelope(&self) -> Option<Envelope> {
        match *self {
            Self::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } => Some(Envelope {
                to,
                tag,
                communicator,
            }),
            _ => None,
        }
    }
}

/// Which messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To others.
    Sent,
    /// Asked for by name; what a probe waits for is the last.
    Asked,
}

/// With whom a part is a message of one way, with which tag, and in which communicator.
pub fn said(kind: &PartKind, is_complete: bool, way: Way) -> Option<Message> {
    let (peer, tag, communicator) = match (way, kind) {
        (
            Way::Sent,
            PartKind::Send {
                to,
                tag,
                communicator,
                ..
            },
        ) => (to, *tag, communicator),
        (
            Way::Asked,
            PartKind::Receive {
                from,
                tag: Some(tag),
                communicator,
                wildcard: None,
                ..
            },
        ) => (from, *tag, communicator),
        (
            Way::Asked,
            PartKind::Probe {
                from,
                tag: Some(tag),
                communicator,
            },
        ) if !is_complete => (from, *tag, communicator),
        _ => return None,
    };
    match *peer {
        Peer::Task(peer) => Some((peer, tag, *communicator)),
        _ => None,
    }
}

/// With whom, with which tag, and in which communicator.
pub type Message = (u32, i64, CommunicatorId);

/// The last messages of a task that are settled and left out, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recent(VecDeque<(Way, Message)>);

/// So many of both ways, of which it needs [`MOST_RECENT`] of one way for a series.
pub const MOST_KEPT: usize = 128;
/// So many of each way.
pub const MOST_RECENT: usize = 12;

impl Recent {
    /// One more: the first is forgotten where there are [`MOST_KEPT`].
    pub fn add(&mut self, way: Way, it: Message) {
        if self.0.len() == MOST_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((way, it));
    }

    /// All that are known, of both ways.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &(Way, Message)> {
        self.0.iter()
    }

    /// The last of one way.
    pub fn of(&self, way: Way) -> impl Iterator<Item = &Message> {
        let all = self.0.iter().filter(move |it| it.0 == way);
        let left = all.clone().count().saturating_sub(MOST_RECENT);
        all.skip(left).map(|it| &it.1)
    }
}
