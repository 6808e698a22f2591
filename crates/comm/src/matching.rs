//! Which send belongs to which receive, and which shares make one collective operation.
//!
//! Messages between two tasks in a communicator do not overtake each other: the first receive takes
//! the first message whose tag it accepts. A receive from anybody took what its status says; where
//! that was not kept, what others did not ask for by name: where several senders sent more than that, whose message this and
//! later receives took is *uncertain*, and nothing is to be built on it. The k-th collective operation of a communicator is the same
//! for all its members, but where several threads of one of them take part: in which order they did is not recorded (times are
//! too coarse), so that such a communicator is *unordered*: how many operations each member began is known, by function too, and
//! that the one that it is in is the last of these. For the same reason messages that several threads of a task send with one tag to one task,
//! or receive so, are *disordered*: each is somebody's, but which of them is whose is not known. O(parts), if tags are few.

use crate::conversation::Conversation;
use crate::message::{CommunicatorId, Part, PartKind, Peer};
use lockstep_api::mpi::Does;
use lockstep_trace::TraceName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A part of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// The task.
    pub task: u32,
    /// Index of the part.
    pub part: usize,
}

/// Something of some parts: by task, and then by the part's index.
#[derive(Debug, Clone)]
struct OfParts<T>(FxHashMap<u32, Vec<Option<T>>>);

impl<T> Default for OfParts<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T: Copy> OfParts<T> {
    fn get(&self, id: PartId) -> Option<T> {
        self.0.get(&id.task)?.get(id.part).copied().flatten()
    }

    fn insert(&mut self, id: PartId, it: T) {
        let of_task = self.0.entry(id.task).or_default();
        if of_task.len() <= id.part {
            of_task.resize(id.part + 1, None);
        }
        if let Some(place) = of_task.get_mut(id.part) {
            *place = Some(it);
        }
    }
}

/// What belongs together.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// The other side of sends and receives that have one.
    partner: OfParts<PartId>,
    /// Shares of the k-th operation of each communicator.
    collectives: BTreeMap<(CommunicatorId, usize), Vec<PartId>>,
    /// Which operation of its communicator a share is of, from 0.
    order: OfParts<usize>,
    /// How many operations of a communicator a task began.
    begun: FxHashMap<(CommunicatorId, u32), usize>,
    /// Of a receiver in a communicator, from which part on it is not known whose message is whose.
    uncertain: FxHashMap<(CommunicatorId, u32), usize>,
    /// Messages that several threads of a task sent or received alike.
    disordered: FxHashSet<PartId>,
    /// Communicators in whose collective operations several threads of a task took part.
    unordered: FxHashSet<CommunicatorId>,
    /// Of these, how often each function was called by a task.
    called: FxHashMap<(CommunicatorId, u32, Arc<str>), usize>,
}

struct Message {
    id: PartId,
    tag: i64,
    taken: bool,
}

/// Messages that several threads of a task send or receive alike: to or from one task, with one tag, in one communicator.
fn disordered(task: u32, said: &Conversation) -> Vec<PartId> {
    let ends = |kind: &PartKind| match *kind {
        PartKind::Send {
            to,
            tag,
            communicator,
            ..
        } => Some(((true, communicator, to), Some(tag))),
        PartKind::Receive {
            from,
            tag,
            communicator,
            ..
        } => Some(((false, communicator, from), tag)),
        _ => None,
    };
    let parts = || (said.parts.iter().enumerate()).filter_map(|it| Some((it.0, ends(&it.1.kind)?)));
    // Who takes any tag takes those that others ask for.
    let open = parts().filter(|it| it.1.1.is_none());
    let open: FxHashSet<_> = open.map(|it| it.1.0).collect();
    let mut alike: FxHashMap<_, (FxHashSet<TraceName>, Vec<usize>)> = FxHashMap::default();
    for (part, (way, tag)) in parts() {
        let (threads, all) = alike
            .entry((way, tag.filter(|_| !open.contains(&way))))
            .or_default();
        threads.extend(said.called(part).map(|it| it.0));
        all.push(part);
    }
    let alike = alike.into_values().filter(|it| it.0.len() > 1);
    let parts = alike.flat_map(|it| it.1);
    parts.map(|part| PartId { task, part }).collect()
}

/// Where a message goes: communicator, sender, receiver.
type Way = (CommunicatorId, u32, u32);

impl Matching {
    /// Matches what the tasks, by rank in the world, did.
    #[must_use]
    pub fn new(tasks: &BTreeMap<u32, Conversation>) -> Self {
        let mut matching = Self::default();
        let mut messages: FxHashMap<Way, VecDeque<Message>> = FxHashMap::default();
        let mut ways: FxHashMap<(CommunicatorId, u32), Vec<Way>> = FxHashMap::default();
        let mut threaded = FxHashSet::default();
        for (task, conversation) in tasks {
            let before = conversation.settled.iter();
            let before = before.map(|(communicator, count)| ((*communicator, *task), *count));
            matching.begun.extend(before);
            if conversation.is_threaded() {
                matching.unordered.extend(shared(conversation));
                matching.disordered.extend(disordered(*task, conversation));
                threaded.insert(*task);
            }
        }
        let mut last = Vec::new();
        for (task, id, part) in parts(tasks) {
            match &part.kind {
                PartKind::Send {
                    to: Peer::Task(to),
                    tag,
                    communicator,
                    ..
                } => {
                    let way = (*communicator, task, *to);
                    let queue = messages.entry(way).or_insert_with(|| {
                        ways.entry((*communicator, *to)).or_default().push(way);
                        VecDeque::new()
                    });
                    queue.push_back(Message {
                        id,
                        tag: *tag,
                        taken: false,
                    });
                }
                PartKind::Collective(share) => {
                    // Whichever thread calls it, it is the last of all.
                    match share.communicator {
                        Some(communicator)
                            if share.meaning.does == Does::End && threaded.contains(&task) =>
                        {
                            last.push((communicator, id));
                        }
                        Some(communicator) => matching.share(communicator, id),
                        None => {}
                    }
                }
                _ => {}
            }
        }
        for (communicator, id) in last {
            matching.share(communicator, id);
        }
        matching.keep_last(tasks);
        let only = matching.tell_anybodys(tasks, &messages, &ways);
        // Those whose sender is known first; then those that took something; then those that may, and those of
        // the calls that their tasks are in: they were begun last.
        for round in 0..3 {
            for (task, id, part) in parts(tasks) {
                let PartKind::Receive {
                    from,
                    tag,
                    communicator,
                    ..
                } = &part.kind
                else {
                    continue;
                };
                let is_last = || is_pending(tasks, task, part);
                let from = match only.get(&(*communicator, task)) {
                    Some(only) if *from == Peer::Any && part.complete => only,
                    _ => from,
                };
                let mine = match (from, part.complete) {
                    (Peer::Task(_), false) if is_last() => 2,
                    (Peer::Task(_), _) => 0,
                    (Peer::Any, true) => 1,
                    (Peer::Any, false) => 2,
                    _ => continue,
                };
                if mine != round {
                    continue;
                }
                let found = match from {
                    Peer::Task(from) => take(&mut messages, (*communicator, *from, task), *tag),
                    _ => ways
                        .get(&(*communicator, task))
                        .into_iter()
                        .flatten()
                        .find_map(|way| take(&mut messages, *way, *tag)),
                };
                if let Some(message) = found {
                    matching.partner.insert(id, message);
                    matching.partner.insert(message, id);
                }
            }
        }
        matching
    }

    /// Of whom receives from anybody took messages of which nobody told whose: where only one sender has more than others asked for by name,
    /// it is his; else it is uncertain.
    fn tell_anybodys(
        &mut self,
        tasks: &BTreeMap<u32, Conversation>,
        messages: &FxHashMap<Way, VecDeque<Message>>,
        ways: &FxHashMap<(CommunicatorId, u32), Vec<Way>>,
    ) -> FxHashMap<(CommunicatorId, u32), Peer> {
        let mut named: FxHashMap<Way, usize> = FxHashMap::default();
        let mut anybodys: BTreeMap<(CommunicatorId, u32), usize> = BTreeMap::new();
        for (task, id, part) in parts(tasks) {
            let PartKind::Receive {
                from, communicator, ..
            } = part.kind
            else {
                continue;
            };
            match from {
                Peer::Any if part.complete => {
                    anybodys.entry((communicator, task)).or_insert(id.part);
                }
                Peer::Task(from) if part.complete || !is_pending(tasks, task, part) => {
                    *named.entry((communicator, from, task)).or_default() += 1;
                }
                _ => {}
            }
        }
        let mut only = FxHashMap::default();
        for (receiver, first) in anybodys {
            let ways = ways.get(&receiver).map_or(&[][..], Vec::as_slice);
            let sent = |way: &Way| messages.get(way).map_or(0, VecDeque::len);
            let asked = |way: &Way| named.get(way).copied().unwrap_or(0);
            let mut more = ways.iter().filter(|way| sent(way) > asked(way));
            match (more.next(), more.next()) {
                (Some(way), None) => drop(only.insert(receiver, Peer::Task(way.1))),
                _ => drop(self.uncertain.insert(receiver, first)),
            }
        }
        only
    }

    /// Of unordered communicators, leaves the operations that tasks are in: each is the last that its task began.
    fn keep_last(&mut self, tasks: &BTreeMap<u32, Conversation>) {
        if self.unordered.is_empty() {
            return;
        }
        self.collectives
            .retain(|(communicator, _), _| !self.unordered.contains(communicator));
        for (task, id, part) in parts(tasks) {
            let PartKind::Collective(share) = &part.kind else {
                continue;
            };
            let Some(communicator) = share.communicator.filter(|it| self.is_unordered(*it)) else {
                continue;
            };
            let key = (communicator, task, share.name.clone());
            *self.called.entry(key).or_default() += 1;
            if is_pending(tasks, task, part)
                && let Some(last) = self.begun(communicator, task).checked_sub(1)
            {
                self.order.insert(id, last);
                let of_it = self.collectives.entry((communicator, last)).or_default();
                of_it.push(id);
            }
        }
    }

    /// Whether a receive's message, by the receive, may be another one: a receive from anybody took one before it, or is it,
    /// and nothing told whose.
    #[must_use]
    pub fn is_uncertain(&self, communicator: CommunicatorId, receive: PartId) -> bool {
        let first = self.uncertain.get(&(communicator, receive.task));
        first.is_some_and(|first| *first <= receive.part)
    }

    /// Whether several threads of a task sent or received as this part does: in which order they did is not recorded, so that
    /// its partner may be another one.
    #[must_use]
    pub fn is_disordered(&self, id: PartId) -> bool {
        self.disordered.contains(&id)
    }

    fn share(&mut self, communicator: CommunicatorId, id: PartId) {
        let begun = self.begun.entry((communicator, id.task)).or_default();
        self.order.insert(id, *begun);
        self.collectives
            .entry((communicator, *begun))
            .or_default()
            .push(id);
        *begun += 1;
    }

    /// The other side of a send or receive.
    #[must_use]
    pub fn partner(&self, id: PartId) -> Option<PartId> {
        self.partner.get(id)
    }

    /// The collective operations, by communicator and number, and those who took part.
    pub fn collectives(&self) -> impl Iterator<Item = (CommunicatorId, usize, &[PartId])> {
        self.collectives
            .iter()
            .map(|((communicator, order), shares)| (*communicator, *order, shares.as_slice()))
    }

    /// Whether it is not known which operation of a communicator a share is of.
    #[must_use]
    pub fn is_unordered(&self, communicator: CommunicatorId) -> bool {
        self.unordered.contains(&communicator)
    }

    /// How many operations of an unordered communicator a task began, and how many of them by this function.
    #[must_use]
    pub fn called(&self, communicator: CommunicatorId, task: u32, name: &Arc<str>) -> [usize; 2] {
        let by_it = self.called.get(&(communicator, task, name.clone()));
        let by_it = by_it.copied().unwrap_or(0);
        [self.begun(communicator, task), by_it]
    }

    /// The shares of the operation of a communicator with this number, from 0; none of one that is settled.
    #[must_use]
    pub fn shares(&self, communicator: CommunicatorId, order: usize) -> &[PartId] {
        let shares = self.collectives.get(&(communicator, order));
        shares.map_or(&[], Vec::as_slice)
    }

    /// How many operations of a communicator a task began.
    #[must_use]
    pub fn begun(&self, communicator: CommunicatorId, task: u32) -> usize {
        let begun = self.begun.get(&(communicator, task));
        begun.copied().unwrap_or(0)
    }

    /// Which operation of its communicator a share is of, from 0, and who took part.
    #[must_use]
    pub fn operation(
        &self,
        communicator: CommunicatorId,
        id: PartId,
    ) -> Option<(usize, &[PartId])> {
        let order = self.order.get(id)?;
        let shares = self.collectives.get(&(communicator, order))?;
        Some((order, shares))
    }

    /// Whether a message that a probe would see is on its way: one that no receive took.
    #[must_use]
    pub fn is_on_its_way(
        &self,
        tasks: &BTreeMap<u32, Conversation>,
        to: u32,
        from: Peer,
        tag: Option<i64>,
        communicator: CommunicatorId,
    ) -> bool {
        parts(tasks).any(|(sender, id, part)| {
            let PartKind::Send {
                to: Peer::Task(receiver),
                tag: sent,
                communicator: of,
                ..
            } = &part.kind
            else {
                return false;
            };
            *receiver == to
                && *of == communicator
                && tag.is_none_or(|tag| tag == *sent)
                && match from {
                    Peer::Task(from) => from == sender,
                    Peer::Any => true,
                    Peer::Nobody | Peer::Unknown => false,
                }
                && self.partner.get(id).is_none()
        })
    }
}

/// The communicators in whose collective operations several threads of a task took part.
fn shared(conversation: &Conversation) -> Vec<CommunicatorId> {
    let mut first: FxHashMap<CommunicatorId, usize> = FxHashMap::default();
    let mut found = Vec::new();
    for part in &conversation.parts {
        let PartKind::Collective(share) = &part.kind else {
            continue;
        };
        let Some(communicator) = share
            .communicator
            .filter(|_| share.meaning.does != Does::End)
        else {
            continue;
        };
        let threads = &conversation.threads;
        let thread = threads.partition_point(|it| it.0 <= part.operation);
        if *first.entry(communicator).or_insert(thread) != thread && !found.contains(&communicator)
        {
            found.push(communicator);
        }
    }
    found
}

/// The first message of a way that was not taken, and has this tag.
fn take(
    messages: &mut FxHashMap<Way, VecDeque<Message>>,
    way: Way,
    tag: Option<i64>,
) -> Option<PartId> {
    let queue = messages.get_mut(&way)?;
    // What is taken is looked at once: the queue gets shorter from its front.
    while queue.front()?.taken {
        queue.pop_front();
    }
    let message = queue
        .iter_mut()
        .find(|message| !message.taken && tag.is_none_or(|tag| tag == message.tag))?;
    message.taken = true;
    Some(message.id)
}

/// Whether its task is in the call that began it.
fn is_pending(tasks: &BTreeMap<u32, Conversation>, task: u32, part: &Part) -> bool {
    let conversation = tasks.get(&task);
    conversation.is_some_and(|it| it.pending.contains(&part.operation))
}

fn parts(tasks: &BTreeMap<u32, Conversation>) -> impl Iterator<Item = (u32, PartId, &Part)> {
    tasks.iter().flat_map(|(&task, conversation)| {
        let parts = conversation.parts.iter().enumerate();
        parts.map(move |(index, part)| (task, PartId { task, part: index }, part))
    })
}
