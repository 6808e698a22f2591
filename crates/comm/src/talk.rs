//! What the traces of a run told each other, and at which of their events: messages with both ends, and shares of collective
//! operations. Exporters show it, and logical time follows from it.
//!
//! ```text
//!  sender     Send 0 ───────► Send 1               messages do not overtake each other (MPI 4.1, 3.5):
//!                   ╲               ╲              the first that is sent is that of the first receive
//!  receiver   Irecv 0 ─ Irecv 1 ─ Wait 1 ─ Wait 0  that was begun, whichever is waited for first
//! ```
//! *Guarantees*: no message is guessed. Where it is not known which receive took which, the two ends have no number: behind a receive
//! of which the run does not show what it took, where several threads send or receive alike, and in traces whose begin is lost.
//! *Costs*: one pass over the calls of MPI; memory of what is told, and of the calls behind one that is not over. *Not for*: what a
//! task waits for at the end, where guesses are allowed ([`Matching`](crate::Matching)).

#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod tests;

use crate::communicators::{CommunicatorId, Communicators};
pub use crate::contact::{Contact, Message, Share, What};
pub use crate::listen::MOST;
use crate::listen::{Doubts, End, read_all};
use lockstep_trace::{Run, Thread, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// What the traces of a run told each other.
#[derive(Debug, Default)]
pub struct Talk {
    communicators: Communicators,
    names: Vec<TraceName>,
    contacts: Vec<Vec<Contact>>,
    messages: u32,
    is_too_much: bool,
}

impl Talk {
    /// Of the processes of these traces. Nothing where that is too much, see [`Self::is_too_much`].
    #[must_use]
    pub fn new(run: &Run, threads: &[&Thread]) -> Self {
        let mut talk = Self::default();
        let processes: FxHashSet<_> = threads.iter().map(|it| it.name.process).collect();
        let all = run.traces();
        let all: Vec<&Thread> = all
            .filter(|it| processes.contains(&it.name.process))
            .collect();
        // Looking for messages costs a pass over all events.
        if !all.iter().any(|it| it.has_arguments()) {
            return talk;
        }
        talk.communicators = Communicators::of(run);
        let Some((contacts, doubts)) = read_all(run, &all, &talk.communicators) else {
            talk.is_too_much = true;
            return talk;
        };
        talk.names = all.iter().map(|it| it.name).collect();
        talk.contacts = contacts;
        talk.number(&doubts);
        talk
    }

    /// The traces that it is of; none where it is too much, or no calls of MPI were recorded with their arguments.
    #[must_use]
    pub fn names(&self) -> &[TraceName] {
        &self.names
    }

    /// What a trace did, in the order in which it was begun.
    #[must_use]
    pub fn of(&self, name: TraceName) -> &[Contact] {
        let place = self.names.iter().position(|it| *it == name);
        place.map_or(&[], |place| self.at(place))
    }

    /// The same by the trace's place among the [names](Self::names).
    pub(crate) fn at(&self, place: usize) -> &[Contact] {
        self.contacts.get(place).map_or(&[], Vec::as_slice)
    }

    /// Messages of which both ends are known: their numbers are from 1 to this.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Whether there is more than [`MOST`]: then nothing is told.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.is_too_much
    }

    /// The communicators in which it was.
    #[must_use]
    pub fn communicators(&self) -> &Communicators {
        &self.communicators
    }

    /// Gives both ends of each message its number, and the receiver how long it is.
    fn number(&mut self, doubts: &Doubts) {
        let mut channels: FxHashMap<Channel, Ends> = FxHashMap::default();
        for (trace, contacts) in (0..).zip(&self.contacts) {
            let me = self.names.get(trace as usize).copied();
            for (contact, it) in (0..).zip(contacts) {
                let Some((channel, sends)) = me.and_then(|me| channel(me, it)) else {
                    continue;
                };
                let ends = channels.entry(channel).or_default();
                let end = if sends {
                    &mut ends.sender
                } else {
                    &mut ends.receiver
                };
                ends.are_several |= *end.get_or_insert(trace) != trace;
                if sends && !doubts.are_about(channel.sender(), it) {
                    ends.sent.push_back(contact);
                }
            }
        }
        for trace in 0..self.contacts.len() {
            for contact in 0..self.contacts[trace].len() {
                let it = &self.contacts[trace][contact];
                let Some((channel, false)) = channel(self.names[trace], it) else {
                    continue;
                };
                let ends = channels.get_mut(&channel).filter(|it| !it.are_several);
                let is_sure = !doubts.are_about(channel.receiver(), it);
                let sent = ends
                    .filter(|_| is_sure)
                    .and_then(|it| Some((it.sender?, it.sent.pop_front()?)));
                let Some((sender, sent)) = sent else { continue };
                let number = NonZeroU32::new(self.messages + 1);
                self.messages += 1;
                let What::Send(message) = &mut self.contacts[sender as usize][sent as usize].what
                else {
                    continue;
                };
                message.number = number;
                let bytes = message.bytes;
                if let What::Receive(message) = &mut self.contacts[trace][contact].what {
                    (message.number, message.bytes) = (number, bytes);
                }
            }
        }
    }
}

/// Where messages do not overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Channel {
    job: u32,
    from: u32,
    to: u32,
    communicator: CommunicatorId,
    tag: i64,
}

impl Channel {
    fn sender(&self) -> End {
        ((self.job, self.from), self.communicator, true)
    }

    fn receiver(&self) -> End {
        ((self.job, self.to), self.communicator, false)
    }
}

/// That of a contact, and whether it sends.
fn channel(me: TraceName, contact: &Contact) -> Option<(Channel, bool)> {
    let (message, sends) = match &contact.what {
        What::Send(message) => (message, true),
        What::Receive(message) => (message, false),
        What::Share(_) => return None,
    };
    let own = me.process.rank;
    let (from, to) = if sends {
        (own, message.peer)
    } else {
        (message.peer, own)
    };
    let channel = Channel {
        job: me.process.job,
        from,
        to,
        communicator: message.communicator,
        tag: message.tag,
    };
    Some((channel, sends))
}

/// Who sends and receives on a channel, by trace, and what was sent and not received yet, by contact.
#[derive(Debug, Default)]
struct Ends {
    sender: Option<u32>,
    receiver: Option<u32>,
    /// Several threads of a task do: how their messages are in order is not known.
    are_several: bool,
    sent: VecDeque<u32>,
}
