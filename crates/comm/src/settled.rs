//! What was said that nothing can change any more: it need not be kept.
//!
//! A consistent cut through the conversations: for each task a number of operations, so that whatever was begun before
//! the cut is complete, and what belongs to it (the other side of a message, all shares of a collective operation)
//! is before the cut of its task. It is the latest such cut but for what may still be told of: pairs that do not
//! fit, receives from anybody, epochs, and what follows a deadlock that only buffering prevented.
//!
//! *Guarantees*: what is found is the same without what is before the cut, if collective operations go on being
//! counted from there. *Costs*: O(parts).

use crate::conversation::Conversation;
use crate::fit::misfit;
use crate::matching::{Matching, PartId};
use crate::membership::Membership;
use crate::message::{CommunicatorId, Part, PartKind, Peer};
use crate::replay::reached;
use lockstep_trace::TraceName;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Finds the cut.
struct Cut<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
    members: &'a Membership,
    matching: &'a Matching,
    /// Collective operations that do not fit.
    told: BTreeSet<(CommunicatorId, usize)>,
    /// Ids from here on are windows.
    windows: u32,
}

/// For each task how many of its operations are settled. Of collective operations that are `told`, by communicator and order, none is. Ids of communicators from `windows` on stand for windows.
pub fn settled(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
    told: BTreeSet<(CommunicatorId, usize)>,
    windows: u32,
) -> BTreeMap<u32, usize> {
    let cut = Cut {
        tasks,
        members,
        matching,
        told,
        windows,
    };
    let reached = reached(tasks, members, matching);
    let most = |task: &u32| reached.get(task).copied().unwrap_or(0);
    let limits = tasks
        .iter()
        .map(|(task, it)| (*task, cut.limit(*task, it, most(task))));
    cut.consistent(limits.collect())
}

/// The one thread of a task that calls MPI; `None` where several do.
pub fn speaker(conversation: &Conversation) -> Option<TraceName> {
    let threads = &conversation.threads;
    let ends = threads.iter().skip(1).map(|it| it.0);
    let ends = ends.chain([conversation.operations.len()]);
    let mut speak = threads
        .iter()
        .zip(ends)
        .filter(|(begin, end)| begin.0 < *end);
    match (speak.next(), speak.next()) {
        (Some(((_, trace), _)), None) => Some(*trace),
        _ => None,
    }
}

/// The parts that operations of this range began.
fn parts_of(conversation: &Conversation, operations: Range<usize>) -> Range<usize> {
    let first = |operation: usize| {
        let before = |part: &Part| part.operation < operation;
        conversation.parts.partition_point(before)
    };
    first(operations.start)..first(operations.end)
}

impl Cut<'_> {
    /// The first operation of a task that is not settled, as far as its own parts tell; at most `most`.
    fn limit(&self, task: u32, conversation: &Conversation, most: usize) -> usize {
        // Several threads are read apart.
        if !conversation.threads.is_empty() && speaker(conversation).is_none() {
            return 0;
        }
        let operations = conversation.operations.iter();
        let returned = operations.take(most).take_while(|it| it.returned).count();
        let parts = parts_of(conversation, 0..returned);
        let kept = parts.into_iter().find(|index| {
            let id = PartId { task, part: *index };
            !conversation
                .parts
                .get(*index)
                .is_some_and(|it| self.is_settled(id, it))
        });
        let kept = kept.and_then(|index| conversation.parts.get(index));
        kept.map_or(returned, |part| part.operation)
    }

    fn part(&self, id: PartId) -> Option<&Part> {
        self.tasks.get(&id.task)?.parts.get(id.part)
    }

    fn is_settled(&self, id: PartId, part: &Part) -> bool {
        let partner = || self.part(self.matching.partner(id)?);
        part.complete
            && match &part.kind {
                PartKind::Send {
                    to: Peer::Task(_),
                    size,
                    ..
                } => match partner().map(|it| &it.kind) {
                    Some(PartKind::Receive { size: room, .. }) => misfit(size, room).is_none(),
                    _ => false,
                },
                PartKind::Send { .. } => true,
                PartKind::Receive {
                    wildcard: Some(_), ..
                } => false,
                PartKind::Receive { from, .. } => match from {
                    Peer::Task(_) => partner().is_some(),
                    Peer::Any => false,
                    Peer::Nobody | Peer::Unknown => true,
                },
                PartKind::Probe { from, .. } => *from != Peer::Any,
                PartKind::Collective(share) => match share.communicator {
                    Some(communicator) => self.is_whole(communicator, id),
                    None => true,
                },
                PartKind::Own => true,
                PartKind::Epoch { .. } => false,
            }
    }

    /// Whether all members came to a collective operation, and it fits.
    fn is_whole(&self, communicator: CommunicatorId, id: PartId) -> bool {
        let members = self.members.members(communicator).map(|it| it.len());
        let found = self.matching.operation(communicator, id);
        found.is_some_and(|(order, shares)| {
            communicator.0 < self.windows
                && Some(shares.len()) == members
                && !self.told.contains(&(communicator, order))
        })
    }

    /// Moves the cut back until what belongs together is on one side of it.
    fn consistent(&self, mut cut: BTreeMap<u32, usize>) -> BTreeMap<u32, usize> {
        let kept = cut.iter().filter_map(|(task, at)| {
            let conversation = self.tasks.get(task)?;
            let operations = *at..conversation.operations.len();
            Some((*task, parts_of(conversation, operations)))
        });
        let mut kept: Vec<(u32, Range<usize>)> = kept.collect();
        let mut seen: FxHashSet<(CommunicatorId, usize)> = FxHashSet::default();
        while let Some((task, parts)) = kept.pop() {
            for id in parts.map(|part| PartId { task, part }) {
                for other in self.belong_to(id, &mut seen) {
                    let Some(operation) = self.part(other).map(|it| it.operation) else {
                        continue;
                    };
                    if let Some(at) = cut.get_mut(&other.task).filter(|at| operation < **at) {
                        let moved = operation..std::mem::replace(at, operation);
                        let parts = self.tasks.get(&other.task).map(|it| parts_of(it, moved));
                        kept.extend(parts.map(|parts| (other.task, parts)));
                    }
                }
            }
        }
        cut
    }

    /// The parts that a part belongs to; of a collective operation only once.
    fn belong_to(&self, id: PartId, seen: &mut FxHashSet<(CommunicatorId, usize)>) -> Vec<PartId> {
        let communicator = match self.part(id).map(|it| &it.kind) {
            Some(PartKind::Collective(share)) => share.communicator,
            _ => return self.matching.partner(id).into_iter().collect(),
        };
        let found = communicator.and_then(|it| Some((it, self.matching.operation(it, id)?)));
        match found {
            Some((communicator, (order, shares))) if seen.insert((communicator, order)) => {
                shares.to_vec()
            }
            _ => Vec::new(),
        }
    }
}
