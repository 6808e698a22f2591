//! Listens to the calls of MPI of traces: what each did together with others, and what is in doubt.

#[cfg(test)]
mod tests;

use crate::communicators::{CommunicatorId, Communicators};
use crate::contact::{Contact, Message, Share, What};
use crate::conversation::Conversation;
use crate::message::{Amount, Collective, PartKind, Peer, Waits};
use crate::reader::Reader;
use crate::routines::Routines;
use lockstep_api::mpi::{Counts, Does, Shape};
use lockstep_trace::{Run, Thread, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::num::NonZeroU64;

/// What is kept at most, messages' ends and shares of collective operations: a hundred bytes each.
pub const MOST: usize = 1 << 22;
/// Calls that are read until those that are over are left out.
const AT_ONCE: usize = 1 << 12;

/// A task: job and rank.
type Task = (u32, u32);

/// What a task sends, or receives, in a communicator.
pub(crate) type End = (Task, CommunicatorId, bool);

/// Ends of which more is sent or received than is known, each from an event on.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    of: FxHashMap<End, u64>,
    /// Tasks of which the begin is not known.
    cut: FxHashSet<Task>,
}

impl Doubts {
    pub fn are_about(&self, end: End, contact: &Contact) -> bool {
        let since = self.of.get(&end);
        self.cut.contains(&end.0) || since.is_some_and(|since| contact.begun > *since)
    }
}

/// Reads what these traces did; `None` where it is too much.
pub(crate) fn read_all(
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
