//! Loose ends of a conversation: messages that nobody received, requests that nobody completed, and
//! pairs of a send and a receive that do not fit. None of these need stop a program, and all of them
//! are mistakes.

use crate::matching::{Matching, PartId};
use crate::message::{Conversation, PartKind, Peer, Size, State};
use std::collections::BTreeMap;

/// A loose end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LooseEnd {
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
}

/// A loose end of a task, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loose {
    /// Whose.
    pub task: u32,
    /// What.
    pub end: LooseEnd,
    /// The event of the first such call.
    pub event: u64,
    /// How many such calls.
    pub times: usize,
}

/// Every loose end, in the order of tasks. O(parts).
#[must_use]
pub fn loose_ends(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> Vec<Loose> {
    let mut found: BTreeMap<(u32, LooseEnd), (u64, usize)> = BTreeMap::new();
    for (&task, conversation) in tasks {
        for (index, part) in conversation.parts.iter().enumerate() {
            let id = PartId { task, part: index };
            let operation = &conversation.operations[part.operation];
            let name = || operation.name.to_string();
            let is_over = conversation.state == State::Finished;
            let partner = matching.partner(id);
            let mut ends = Vec::new();
            if is_over && !part.complete && !matches!(part.kind, PartKind::Probe { .. }) {
                ends.push(LooseEnd::NeverCompleted { name: name() });
            }
            if let PartKind::Send {
                to: Peer::Task(to),
                tag,
                size,
                ..
            } = &part.kind
            {
                let is_gone = tasks.get(to).is_some_and(|it| it.state == State::Finished);
                match partner.and_then(|id| tasks.get(&id.task)?.parts.get(id.part)) {
                    None if is_gone && partner.is_none() => ends.push(LooseEnd::NeverReceived {
                        name: name(),
                        to: *to,
                        tag: *tag,
                    }),
                    Some(other) => {
                        if let PartKind::Receive { size: room, .. } = &other.kind {
                            ends.extend(unfit(size, room, *to));
                        }
                    }
                    None => {}
                }
            }
            for end in ends {
                found.entry((task, end)).or_insert((operation.event, 0)).1 += 1;
            }
        }
    }
    found
        .into_iter()
        .map(|((task, end), (event, times))| Loose {
            task,
            end,
            event,
            times,
        })
        .collect()
}

/// What of a send does not fit a receive.
fn unfit(sent: &Size, room: &Size, to: u32) -> Option<LooseEnd> {
    let (Some(sent_type), Some(room_type)) = (&sent.datatype, &room.datatype) else {
        return None;
    };
    // Bytes and packed data stand for anything.
    let is_anything = |it: &str| matches!(it, "MPI_BYTE" | "MPI_PACKED");
    if is_anything(sent_type) || is_anything(room_type) {
        return None;
    }
    if sent_type != room_type {
        return (sent.count != Some(0)).then(|| LooseEnd::OtherDatatype {
            sent: sent_type.to_string(),
            received: room_type.to_string(),
            to,
        });
    }
    let (sent_count, room_count) = (sent.count?, room.count?);
    (sent_count > room_count).then(|| LooseEnd::TooLarge {
        sent: format!("{sent_count} {sent_type}"),
        room: format!("{room_count} {room_type}"),
        to,
    })
}

impl LooseEnd {
    /// The receiver of a message that does not fit its receive.
    #[must_use]
    pub fn misfit_of(&self) -> Option<u32> {
        match self {
            Self::OtherDatatype { to, .. } | Self::TooLarge { to, .. } => Some(*to),
            Self::NeverReceived { .. } | Self::NeverCompleted { .. } => None,
        }
    }
}

impl std::fmt::Display for LooseEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NeverReceived { name, to, tag } => {
                write!(
                    f,
                    "sent rank {to} a message with tag {tag} ({name}) that was never received"
                )
            }
            Self::NeverCompleted { name } => write!(f, "never completed its {name}"),
            Self::OtherDatatype { sent, received, to } => {
                write!(f, "sent rank {to} {sent}, received as {received}")
            }
            Self::TooLarge { sent, room, to } => {
                write!(
                    f,
                    "sent rank {to} {sent}, for which the receive had room for {room}"
                )
            }
        }
    }
}

impl Loose {
    /// In a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let more = match self.times {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        format!("rank {} {}{more}", self.task, self.end)
    }
}
