//! Receives from anybody that took one message and could have taken another: where a later receive needs
//! that one from its sender, the program hangs in runs in which it comes first; where there is no room for it, it dies. Of a task that
//! died, any such receive is told: what it died of may be which message came first.
//!
//! ```text
//! rank 0: receive from anybody ◄─── rank 2      could have been ◄─── rank 1
//! rank 0: receive from rank 1  ◄─── rank 1      and this waits for ever
//! ```
//! What a program does next may depend on whose message it got: it answers that one. So a race counts only
//! where the later receive asks for somebody of whom no receive from anybody had told before, where no
//! probe told either, and where all messages of that sender are asked for by name.
//!
//! *Guarantees*: the other message is sent whatever the receive does, also where sends wait for their
//! receivers; what is told could happen unless the program's way depends on more than that. *Costs*:
//! O(parts); a replay for each of the first [`MOST`] that may be races. *Not for*: races that do no such
//! harm: taking what comes first is why `MPI_ANY_SOURCE` is there.

use crate::{LooseEnd, unfit};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, Part, PartId, PartKind, Peer, Size, Waits,
    is_reached,
};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};

/// What comes of it if a receive takes another message than it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// This receive, a part of the same task, waits for ever.
    Starves(usize),
    /// It does not fit.
    Unfit(LooseEnd),
    /// The task goes on with another message, and it died of what it went on with.
    Chance,
}

/// A receive from anybody that took, or could have taken, what another receive needs, or what does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Race {
    /// Who receives.
    pub task: u32,
    /// The receive from anybody: a part of that task.
    pub wildcard: usize,
    /// Whose message it took; `None` where that is another that is not known.
    pub took: Option<u32>,
    /// Whose message it could have taken.
    pub instead: u32,
    /// What then.
    pub harm: Harm,
}

/// Looked at so closely.
const MOST: usize = 16;

impl Race {
    /// The calls of both receives: trace and event.
    pub fn calls<'a>(
        &self,
        tasks: &'a BTreeMap<u32, Conversation>,
    ) -> impl Iterator<Item = (TraceName, u64)> + use<'a> {
        let conversation = tasks.get(&self.task);
        let starved = match self.harm {
            Harm::Starves(part) => Some(part),
            Harm::Unfit(_) | Harm::Chance => None,
        };
        let parts = [self.wildcard].into_iter().chain(starved);
        parts.filter_map(move |part| conversation?.called(part))
    }
}

/// A receive of a task, by a part of it.
struct Receive<'a> {
    part: usize,
    communicator: CommunicatorId,
    /// The tag asked for.
    tag: Option<i64>,
    is_wildcard: bool,
    /// Whose message it took.
    from: Option<u32>,
    room: &'a Size,
}

impl Receive<'_> {
    /// A race: that it takes this message instead.
    fn race(&self, task: u32, instead: &Message<'_>, harm: Harm) -> (Race, PartId) {
        let race = Race {
            task,
            wildcard: self.part,
            took: self.from,
            instead: instead.id.task,
            harm,
        };
        (race, instead.id)
    }
}

/// The receives of a task that took something, in order, up to the first probe for anybody's messages.
fn receives<'a>(
    task: u32,
    conversation: &'a Conversation,
    matching: &Matching,
) -> Vec<Receive<'a>> {
    let mut found = Vec::new();
    for (index, part) in conversation.parts.iter().enumerate() {
        match &part.kind {
            PartKind::Probe {
                from: Peer::Any, ..
            } => break,
            PartKind::Receive {
                from,
                tag,
                communicator,
                size,
                wildcard,
            } if part.complete => {
                let partner = matching.partner(PartId { task, part: index });
                found.push(Receive {
                    part: index,
                    communicator: *communicator,
                    tag: wildcard.map_or(*tag, |it| it.tag),
                    is_wildcard: wildcard.is_some(),
                    from: match from {
                        Peer::Task(from) => Some(*from),
                        _ => partner.map(|it| it.task),
                    },
                    room: size,
                });
            }
            _ => {}
        }
    }
    found
}

/// A message to a task.
struct Message<'a> {
    id: PartId,
    tag: i64,
    communicator: CommunicatorId,
    size: &'a Size,
    taken_by: Option<usize>,
}

impl Message<'_> {
    /// Whether a receive asked for such as this one, and none before it took it.
    fn was_there_for(&self, receive: &Receive<'_>) -> bool {
        self.communicator == receive.communicator
            && receive.tag.is_none_or(|tag| tag == self.tag)
            && self.taken_by.is_none_or(|by| by > receive.part)
    }
}

/// The messages to each task that receives from anybody, by sender, in order.
fn messages<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    matching: &Matching,
    to_whom: &BTreeSet<u32>,
) -> BTreeMap<(u32, u32), Vec<Message<'a>>> {
    let mut found: BTreeMap<(u32, u32), Vec<Message<'a>>> = BTreeMap::new();
    for (&task, conversation) in tasks {
        for (index, part) in conversation.parts.iter().enumerate() {
            if let PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ref size,
                ..
            } = part.kind
                && to_whom.contains(&to)
            {
                let id = PartId { task, part: index };
                found.entry((to, task)).or_default().push(Message {
                    id,
                    tag,
                    communicator,
                    size,
                    taken_by: matching.partner(id).map(|it| it.part),
                });
            }
        }
    }
    found
}

/// The first race that would end in a deadlock, or else in a message for which there is no room. `None` where there is none.
#[must_use]
pub fn race(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) -> Option<Race> {
    let is_wildcard = |it: &Part| match it.kind {
        PartKind::Receive { wildcard, .. } => wildcard.is_some(),
        _ => false,
    };
    let to_whom = tasks.iter();
    let to_whom = to_whom.filter(|(_, it)| it.parts.iter().any(is_wildcard));
    let to_whom: BTreeSet<u32> = to_whom.map(|(task, _)| *task).collect();
    if to_whom.is_empty() {
        return None;
    }
    let messages = messages(tasks, matching, &to_whom);
    type Look = fn(u32, u32, &[Receive<'_>], &[Message<'_>]) -> Option<(Race, PartId)>;
    let looks: [Look; 2] = [starving, overflowing];
    let candidates = |look: Look| {
        let messages = &messages;
        let of_task = move |&task: &u32| {
            let receives = receives(task, &tasks[&task], matching);
            let from = messages.range((task, 0)..=(task, u32::MAX));
            from.filter_map(move |((_, sender), sent)| look(task, *sender, &receives, sent))
        };
        to_whom.iter().flat_map(of_task).take(MOST)
    };
    let mut all = looks.into_iter().flat_map(candidates);
    let found = all.find(|it| is_sent(tasks, members, matching, it));
    found.map(|(race, _)| race)
}

/// Of tasks that died, the last receive from anybody that could have taken another message than it took: what they died of may be
/// which one came first. `None` where there is none.
#[must_use]
pub fn chance(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
    died: &[u32],
) -> Option<Race> {
    let messages = messages(tasks, matching, &died.iter().copied().collect());
    let of_task = |task: &u32| {
        let from: Vec<_> = messages.range((*task, 0)..=(*task, u32::MAX)).collect();
        let receives = receives(*task, tasks.get(task)?, matching);
        let wildcards = receives.iter().rev().filter(|it| it.is_wildcard);
        let choices = wildcards.flat_map(|wildcard| {
            let others = from
                .iter()
                .filter(|it| wildcard.from.is_some_and(|of| of != it.0.1));
            others.filter_map(|(_, sent)| {
                let message = sent.iter().find(|it| it.was_there_for(wildcard))?;
                Some(wildcard.race(*task, message, Harm::Chance))
            })
        });
        let mut choices = choices.take(MOST);
        choices.find(|it| is_sent(tasks, members, matching, it))
    };
    died.iter().find_map(of_task).map(|(race, _)| race)
}

/// Whether the message of a race is sent whatever its receive does.
fn is_sent(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
    (race, message): &(Race, PartId),
) -> bool {
    let completes = tasks
        .get(&race.task)
        .and_then(|it| completes(it, race.wildcard));
    completes.is_some_and(|operation| {
        is_reached(tasks, members, matching, *message, (race.task, operation))
    })
}

/// The operation at whose return a part is complete: the first that waits for it.
fn completes(conversation: &Conversation, part: usize) -> Option<usize> {
    let begun = conversation.parts.get(part)?.operation;
    let waits = |waits: &Waits| match waits {
        Waits::All(parts) | Waits::Any(parts) | Waits::Found(parts) => parts.contains(&part),
        Waits::No | Waits::Unknown => false,
    };
    let mut later = conversation.operations.iter().enumerate().skip(begun);
    later
        .find(|(_, it)| waits(&it.waits))
        .map(|(index, _)| index)
}

/// A receive from anybody that could have taken the message that a later one needs from this sender, and
/// that message.
fn starving(
    task: u32,
    sender: u32,
    receives: &[Receive<'_>],
    sent: &[Message<'_>],
) -> Option<(Race, PartId)> {
    let named = |it: &&Receive<'_>| !it.is_wildcard && it.from == Some(sender);
    let mut told_of: BTreeSet<u32> = BTreeSet::new();
    for (at, wildcard) in receives.iter().enumerate() {
        if !wildcard.is_wildcard {
            continue;
        }
        told_of.extend(wildcard.from);
        if told_of.contains(&sender) {
            return None;
        }
        let Some(message) = sent.iter().find(|it| it.was_there_for(wildcard)) else {
            continue;
        };
        let needs = |it: &&Receive<'_>| named(it) && Some(it.part) == message.taken_by;
        let later = &receives[at + 1..];
        let Some(starved) = later.iter().find(needs) else {
            continue;
        };
        // Whoever is told of in between is asked by name because of that.
        let between = later.iter().take_while(|it| it.part != starved.part);
        if between
            .filter(|it| it.is_wildcard)
            .any(|it| it.from.is_none_or(|from| from == sender))
        {
            continue;
        }
        let alike = |it: &&Message<'_>| {
            it.communicator == message.communicator
                && it.tag == message.tag
                && it.taken_by.is_none_or(|by| by > wildcard.part)
        };
        let asked = later
            .iter()
            .filter(named)
            .filter(|it| it.communicator == message.communicator)
            .filter(|it| it.tag.is_none_or(|tag| tag == message.tag));
        if sent.iter().filter(alike).count() > asked.count() {
            continue;
        }
        return Some(wildcard.race(task, message, Harm::Starves(starved.part)));
    }
    None
}

/// A receive from anybody that could have taken a message from this sender for which it has no room, and that message.
fn overflowing(
    task: u32,
    sender: u32,
    receives: &[Receive<'_>],
    sent: &[Message<'_>],
) -> Option<(Race, PartId)> {
    for wildcard in receives.iter().filter(|it| it.is_wildcard) {
        if wildcard.from.is_none_or(|from| from == sender) {
            return None;
        }
        // That of another type may be an answer to what it got.
        let unfit = |it: &Message<'_>| {
            let end = unfit(it.size, wildcard.room, task)?;
            matches!(end, LooseEnd::TooLarge { .. }).then_some(end)
        };
        if let Some(message) = sent.iter().find(|it| it.was_there_for(wildcard))
            && let Some(end) = unfit(message)
        {
            return Some(wildcard.race(task, message, Harm::Unfit(end)));
        }
    }
    None
}
