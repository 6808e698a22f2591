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

use crate::conversation::Conversation;
use crate::message::{Amount, Collective, PartKind, Peer, Waits};
use crate::reader::Reader;
use crate::routines::Routines;
use lockstep_api::mpi::{Counts, Does, Shape};
use lockstep_trace::{CommunicatorId, Communicators, Run, Thread, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

/// What is kept at most, messages' ends and shares of collective operations: a hundred bytes each.
pub const MOST: usize = 1 << 22;
/// Calls that are read until those that are over are left out.
const AT_ONCE: usize = 1 << 12;

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
        talk.communicators = run.communicators();
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

/// A task: job and rank.
type Task = (u32, u32);

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

/// What a task sends, or receives, in a communicator.
type End = (Task, CommunicatorId, bool);

/// Ends of which more is sent or received than is known, each from an event on.
#[derive(Debug, Default)]
struct Doubts {
    of: FxHashMap<End, u64>,
    /// Tasks of which the begin is not known.
    cut: FxHashSet<Task>,
}

impl Doubts {
    fn are_about(&self, end: End, contact: &Contact) -> bool {
        let since = self.of.get(&end);
        self.cut.contains(&end.0) || since.is_some_and(|since| contact.begun > *since)
    }
}

/// Reads what these traces did; `None` where it is too much.
fn read_all(
    run: &Run,
    threads: &[&Thread],
    communicators: &Communicators,
) -> Option<(Vec<Vec<Contact>>, Doubts)> {
    let members = members(communicators);
    let routines = Routines::new(run);
    let is_wanted = |id| routines.get(id).is_some();
    let windows = communicators.all().len() as u32;
    let mut doubts = Doubts::default();
    let mut left = MOST;
    let mut all = Vec::new();
    for thread in threads {
        let mut listener = Listener::new(thread, threads, &members);
        let mut reader: Reader<()> = Reader::new(thread.name, windows, None, false);
        let mut events = communicators.events_of(thread, is_wanted);
        while reader.read_until(reader.operations() + AT_ONCE, &routines, &mut events) {
            let over = listener.hear(reader.kept(), &mut doubts, false);
            reader.leave_out(over);
            if listener.contacts.len() + reader.operations() > left {
                return None;
            }
        }
        let (said, ..) = reader.into_told(&routines, events.resolver());
        listener.hear(&said, &mut doubts, true);
        for unclear in &said.unclear {
            listener.doubt(unclear, 0, &mut doubts);
        }
        left = left.checked_sub(listener.contacts.len())?;
        all.push(listener.contacts);
    }
    Some((all, doubts))
}

/// Who is in each communicator that is known whole.
type Members = FxHashMap<CommunicatorId, Vec<u32>>;

fn members(communicators: &Communicators) -> Members {
    let all = communicators.all().iter().filter_map(|it| {
        let [side] = it.sides.as_slice() else {
            return None;
        };
        let ranks = side.ranks.iter().copied().collect::<Option<Vec<u32>>>()?;
        Some((it.id, ranks))
    });
    all.collect()
}

/// Takes down what a trace did.
struct Listener<'a> {
    me: TraceName,
    /// The only thread of its task that may call MPI.
    is_alone: bool,
    is_cut: bool,
    members: &'a Members,
    contacts: Vec<Contact>,
}

impl<'a> Listener<'a> {
    fn new(thread: &Thread, threads: &[&Thread], members: &'a Members) -> Self {
        let own = threads
            .iter()
            .filter(|it| it.name.process == thread.name.process);
        Self {
            me: thread.name,
            is_alone: own.filter(|it| it.has_arguments()).count() < 2,
            is_cut: thread.dropped > 0,
            members,
            contacts: Vec::new(),
        }
    }

    /// Takes down what the first operations began, up to one that is not over, or all of them: how many those are.
    fn hear(&mut self, said: &Conversation, doubts: &mut Doubts, all: bool) -> usize {
        let task = (self.me.process.job, self.me.process.rank);
        if self.is_cut {
            doubts.cut.insert(task);
        }
        let is_open = said.operations.last().is_some_and(|it| !it.returned);
        let returned = said.operations.len() - usize::from(is_open);
        let incomplete = said.parts.iter().find(|it| !it.complete);
        let over = incomplete.map_or(returned, |it| it.operation.min(returned));
        let end = if all { said.operations.len() } else { over };
        for (number, part) in said.parts.iter().enumerate() {
            let Some(operation) = said
                .operations
                .get(part.operation)
                .filter(|_| part.operation < end)
            else {
                break;
            };
            let begun = operation.event;
            let Some(what) = self.what(&part.kind) else {
                self.doubt(&part.kind, begun, doubts);
                continue;
            };
            let is_waited_for = match &operation.waits {
                Waits::All(parts) | Waits::Found(parts) => parts.contains(&number),
                _ => false,
            };
            self.contacts.push(Contact {
                begun,
                over: part.completed_at.and_then(NonZeroU64::new),
                is_by_request: !is_waited_for,
                what,
            });
        }
        end
    }

    fn what(&self, kind: &PartKind) -> Option<What> {
        Some(match kind {
            PartKind::Send {
                to: Peer::Task(peer),
                tag,
                communicator,
                size,
                ..
            } => What::Send(Message {
                peer: *peer,
                tag: *tag,
                communicator: *communicator,
                bytes: size.bytes(),
                number: None,
            }),
            PartKind::Receive {
                from: Peer::Task(peer),
                tag: Some(tag),
                communicator,
                ..
            } => What::Receive(Message {
                peer: *peer,
                tag: *tag,
                communicator: *communicator,
                bytes: None,
                number: None,
            }),
            PartKind::Collective(share) => What::Share(self.share(share)?),
            _ => return None,
        })
    }

    /// Of a message of which the run does not show enough: those that come later may be others than they seem.
    fn doubt(&self, kind: &PartKind, begun: u64, doubts: &mut Doubts) {
        let (peer, communicator, sends) = match kind {
            PartKind::Send {
                to, communicator, ..
            } => (to, communicator, true),
            PartKind::Receive {
                from, communicator, ..
            } => (from, communicator, false),
            _ => return,
        };
        if *peer != Peer::Nobody {
            let end = (
                (self.me.process.job, self.me.process.rank),
                *communicator,
                sends,
            );
            // Events of several threads have no order.
            let since = if self.is_alone { begun } else { 0 };
            let known = doubts.of.entry(end).or_insert(since);
            *known = since.min(*known);
        }
    }

    fn share(&self, share: &Collective) -> Option<Share> {
        let communicator = share.communicator?;
        let me = self.me.process.rank;
        let members = self.members.get(&communicator).map(Vec::as_slice);
        let root = share.root.and_then(|it| u32::try_from(it).ok());
        let at_root = || Some(*members?.get(root? as usize)? == me);
        let ways = match share.meaning.does {
            Does::Collective(shape, _) => match shape {
                Shape::All => Some((true, true)),
                Shape::FromRoot => Some(at_root().map_or((false, true), |it| (it, !it))),
                Shape::ToRoot => Some(at_root().map_or((true, false), |it| (!it, it))),
                Shape::Prefix | Shape::Neighbours => None,
            },
            _ => None,
        };
        Some(Share {
            communicator,
            name: share.name.clone(),
            makes: matches!(share.meaning.does, Does::Communicator(_)),
            root,
            bytes: members.and_then(|it| exchanged(share, it, me, at_root())),
            ways,
        })
    }
}

/// Bytes that a task sends and receives in a collective operation of these members, as Score-P counts them: one block for each
/// that gets one, itself included unless its share is in place.
fn exchanged(
    share: &Collective,
    members: &[u32],
    me: u32,
    at_root: Option<bool>,
) -> Option<(u64, u64)> {
    let Does::Collective(shape, counts) = share.meaning.does else {
        return matches!(share.meaning.does, Does::Communicator(_)).then_some((0, 0));
    };
    if counts == Counts::None {
        return Some((0, 0));
    }
    let all = members.len() as u64;
    let rank = members.iter().position(|it| *it == me)?;
    let amounts = share.amounts.as_deref();
    let (sent, expected) =
        amounts.map_or((None, None), |it| (it.sent.as_ref(), it.expected.as_ref()));
    // To, or from, all members together; and one block.
    let sum = |amount: Option<&Amount>| match amount? {
        Amount::Same(count, unit) => all.checked_mul(unit.bytes_of(*count)?),
        Amount::Each(counts, unit) => unit.bytes_of(
            counts
                .iter()
                .try_fold(0i64, |sum, it| sum.checked_add(*it))?,
        ),
        Amount::Edges(_) => None,
    };
    let one = |amount: Option<&Amount>| match amount? {
        Amount::Same(count, unit) => unit.bytes_of(*count),
        Amount::Each(counts, unit) => unit.bytes_of(*counts.get(rank)?),
        Amount::Edges(_) => None,
    };
    let block = share.size.bytes();
    let is_apart = share.in_place || share.name.ends_with("xscan");
    let blocks = |count: usize| block?.checked_mul(count as u64);
    let others = members.len() - usize::from(is_apart);
    Some(match (shape, counts) {
        (Shape::All, Counts::EachResult) => (sum(sent)?, all.checked_mul(one(sent)?)?),
        (Shape::All, _) if amounts.is_some() => (sum(sent)?, sum(expected)?),
        (Shape::All, _) => (blocks(others)?, blocks(others)?),
        (Shape::ToRoot, _) => match (at_root?, amounts) {
            (true, Some(_)) => (one(sent)?, sum(expected)?),
            (true, None) => (blocks(usize::from(!is_apart))?, blocks(others)?),
            (false, _) => (block.or_else(|| one(sent))?, 0),
        },
        (Shape::FromRoot, _) => match (at_root?, amounts) {
            (true, Some(_)) => (sum(sent)?, one(expected)?),
            (true, None) => (blocks(others)?, blocks(usize::from(!is_apart))?),
            (false, _) => (0, block.or_else(|| one(expected))?),
        },
        (Shape::Prefix, _) => {
            let own = usize::from(is_apart);
            (blocks(members.len() - rank - own)?, blocks(rank + 1 - own)?)
        }
        (Shape::Neighbours, _) => return None,
    })
}
