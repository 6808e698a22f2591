//! What would happen if no send were buffered: the run again, with every standard send waiting for its
//! receiver. A cycle that exists only then is a deadlock that waits for larger messages, or for
//! another MPI library.
//!
//! Every task steps through its operations; a step is taken when the parts that it waits for can
//! complete, given how far the others are. What is left when nobody can step is stuck. Collective
//! operations make members wait for what they need and no more; then, where that shows nothing, for all others: a program must
//! not rely on either (MPI 4.1, 6.14). Where it is uncertain who took which message, nobody
//! waits for it, so that a circle has certain ones only; but whoever receives it goes no further where the question is
//! what is reached for sure. *Costs*: O(parts + waits).

use crate::conversation::Conversation;
use crate::matching::{Matching, PartId};
use crate::membership::Membership;
use crate::message::{Mode, Part, PartKind, Peer, Shape, Waits};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Task and the number of its operation, of those who would wait for each other in a circle.
pub type Circle = Vec<(u32, usize)>;

struct Replay<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
    members: &'a Membership,
    matching: &'a Matching,
    /// The operation that each task is in.
    at: FxHashMap<u32, usize>,
    /// A task that does not get past this operation.
    held: Option<(u32, usize)>,
    /// Whether who comes to a collective operation waits for all others.
    is_strict: bool,
}

/// Looks for a deadlock that only buffering prevented. `None` where there is none.
#[must_use]
pub fn without_buffers(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) -> Option<Circle> {
    let circle = |is_strict| {
        let mut replay = Replay::new(tasks, members, matching);
        replay.is_strict = is_strict;
        replay.run();
        replay.circle()
    };
    let parts = || tasks.values().flat_map(|it| &it.parts);
    let shape = |part: &Part| match &part.kind {
        PartKind::Collective(share) => Some(share.shape()),
        _ => None,
    };
    // Where all wait for all anyhow, that is the same question.
    let is_other = |shape| !matches!(shape, Shape::All | Shape::Neighbours);
    let may_differ = || parts().filter_map(shape).any(is_other);
    circle(false).or_else(|| may_differ().then(|| circle(true)).flatten())
}

/// Whether the operation that begins a part is reached though another task does not get past an
/// operation of its own: `held` is that task and operation.
pub fn is_reached(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
    part: PartId,
    held: (u32, usize),
) -> bool {
    let mut replay = Replay::new(tasks, members, matching);
    replay.held = Some(held);
    replay.run();
    replay.has_begun(part)
}

/// The operation that each task would come to if no send were buffered, and collective operations waited for all.
pub fn reached(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) -> FxHashMap<u32, usize> {
    let mut replay = Replay::new(tasks, members, matching);
    replay.is_strict = true;
    replay.run();
    replay.at
}

enum Step {
    Moved,
    Over,
    Waits(Vec<u32>),
}

impl<'a> Replay<'a> {
    fn new(
        tasks: &'a BTreeMap<u32, Conversation>,
        members: &'a Membership,
        matching: &'a Matching,
    ) -> Self {
        Self {
            tasks,
            members,
            matching,
            at: tasks.keys().map(|task| (*task, 0)).collect(),
            held: None,
            is_strict: false,
        }
    }

    /// Until nobody can step.
    fn run(&mut self) {
        // Who was last seen waiting for whom; they are looked at again when that one moves.
        let mut sleepers: FxHashMap<u32, BTreeSet<u32>> = FxHashMap::default();
        let mut awake: Vec<u32> = self.tasks.keys().copied().collect();
        while let Some(task) = awake.pop() {
            let Some(conversation) = self.tasks.get(&task) else {
                continue;
            };
            let mut moved = false;
            loop {
                match self.step(task, conversation) {
                    Step::Moved => moved = true,
                    Step::Over => break,
                    Step::Waits(others) => {
                        for other in others {
                            sleepers.entry(other).or_default().insert(task);
                        }
                        break;
                    }
                }
            }
            if moved {
                awake.extend(sleepers.remove(&task).into_iter().flatten());
            }
        }
    }

    fn step(&mut self, task: u32, conversation: &Conversation) -> Step {
        let at = self.at.get(&task).copied().unwrap_or(0);
        let Some(operation) = conversation.operations.get(at) else {
            return Step::Over;
        };
        // What the real run shows to stand still is not news.
        if !operation.returned || self.held == Some((task, at)) {
            return Step::Over;
        }
        let others = match &operation.waits {
            Waits::No | Waits::Unknown => Vec::new(),
            Waits::All(parts) | Waits::Found(parts) => parts
                .iter()
                .flat_map(|part| self.needs(task, *part))
                .collect(),
            Waits::Any(parts) => {
                let needs: Vec<Vec<u32>> =
                    parts.iter().map(|part| self.needs(task, *part)).collect();
                match needs.iter().any(Vec::is_empty) {
                    true => Vec::new(),
                    false => needs.concat(),
                }
            }
        };
        if !others.is_empty() {
            return Step::Waits(others);
        }
        self.at.insert(task, at + 1);
        Step::Moved
    }

    /// Whether a task has come to the operation that begins a part.
    fn has_begun(&self, id: PartId) -> bool {
        let operation = self
            .tasks
            .get(&id.task)
            .and_then(|it| it.parts.get(id.part))
            .map(|part| part.operation);
        let at = self.at.get(&id.task).copied();
        operation
            .zip(at)
            .is_none_or(|(operation, at)| at >= operation)
    }

    /// Who has to come before a part can complete.
    fn needs(&self, task: u32, part: usize) -> Vec<u32> {
        let id = PartId { task, part };
        let Some(part) = self.tasks.get(&task).and_then(|it| it.parts.get(part)) else {
            return Vec::new();
        };
        let partner = || self.matching.partner(id);
        let until = |partner: PartId| match self.has_begun(partner) {
            true => Vec::new(),
            false => vec![partner.task],
        };
        match &part.kind {
            PartKind::Send {
                mode: Mode::Buffered,
                ..
            } => Vec::new(),
            // A message that nobody received: who could have is not known.
            PartKind::Send {
                to: Peer::Task(_),
                communicator,
                ..
            } => match partner() {
                Some(it)
                    if self.held.is_some() || !self.matching.is_uncertain(*communicator, it) =>
                {
                    until(it)
                }
                _ => Vec::new(),
            },
            PartKind::Receive { communicator, .. } => {
                match self.matching.is_uncertain(*communicator, id) {
                    // Nobody wakes it.
                    true if self.held.is_some() => vec![task],
                    true => Vec::new(),
                    false => partner().map_or(Vec::new(), until),
                }
            }
            PartKind::Send { .. }
            | PartKind::Probe { .. }
            | PartKind::Epoch { .. }
            | PartKind::Own => Vec::new(),
            PartKind::Collective(share) => {
                let Some(communicator) = share.communicator else {
                    return Vec::new();
                };
                let Some((_, shares)) = self.matching.operation(communicator, id) else {
                    return Vec::new();
                };
                let members = self.members.members(communicator);
                let root = share
                    .root
                    .and_then(|root| members?.get(usize::try_from(root).ok()?))
                    .copied();
                let is_needed = |other: u32| match share.shape() {
                    Shape::Neighbours => false,
                    _ if self.is_strict => true,
                    Shape::All => true,
                    Shape::FromRoot => root == Some(other),
                    Shape::ToRoot => root == Some(task),
                    Shape::Prefix => other < task,
                };
                shares
                    .iter()
                    .filter(|share| share.task != task && is_needed(share.task))
                    .filter(|share| !self.has_begun(**share))
                    .map(|share| share.task)
                    .collect()
            }
        }
    }

    /// A circle among those who stand in an operation that returned in the real run.
    fn circle(&self) -> Option<Circle> {
        let stands = |task: u32| {
            let at = self.at.get(&task).copied()?;
            let operation = self.tasks.get(&task)?.operations.get(at)?;
            operation.returned.then_some(at)
        };
        for &first in self.tasks.keys() {
            let mut path = Circle::new();
            let mut task = first;
            while let Some(at) = stands(task) {
                if let Some(begin) = path.iter().position(|(other, _)| *other == task) {
                    return Some(path[begin..].to_vec());
                }
                path.push((task, at));
                // Who found a message before it received that would have gone on without.
                let (Waits::All(parts) | Waits::Any(parts)) =
                    &self.tasks[&task].operations[at].waits
                else {
                    break;
                };
                let Some(next) = parts
                    .iter()
                    .find_map(|part| self.needs(task, *part).first().copied())
                else {
                    break;
                };
                task = next;
            }
        }
        None
    }
}
