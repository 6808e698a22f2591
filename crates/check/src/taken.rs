//! Receives from anybody that took, or may have taken, the message that a task waits for by name.

use crate::races::{Harm, Race};
use crate::strays::Awaited;
use lockstep_comm::{Conversation, Matching, Part, PartId, PartKind, Peer, Waits};
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// Tasks that wait for a message from one whose message a receive from anybody took before.
pub fn steals(
    tasks: &BTreeMap<u32, Conversation>,
    matching: &Matching,
    awaited: impl Iterator<Item = Awaited>,
) -> Vec<Race> {
    let steal = |awaited: Awaited| {
        let conversation = tasks.get(&awaited.by)?;
        let parts = conversation.parts.iter();
        let pending = conversation.pending.first();
        let is_starved = |it: &Part| match it.kind {
            PartKind::Receive {
                from: Peer::Task(from),
                wildcard: None,
                ..
            } => from == awaited.from && Some(&it.operation) == pending && !it.complete,
            _ => false,
        };
        let is_thief = |(part, it): &(usize, &Part)| match it.kind {
            PartKind::Receive {
                wildcard: Some(_),
                tag,
                communicator,
                ..
            } => {
                let (task, part) = (awaited.by, *part);
                let taken = matching.partner(PartId { task, part });
                taken.is_some_and(|it| it.task == awaited.from)
                    && communicator == awaited.communicator
                    && (awaited.tag.is_none() || tag == awaited.tag)
            }
            _ => false,
        };
        Some(Race {
            task: awaited.by,
            wildcard: parts.clone().enumerate().rev().find(is_thief)?.0,
            took: Some(awaited.from),
            instead: awaited.from,
            harm: Harm::Starves(parts.clone().rposition(is_starved)?),
        })
    };
    let awaited = awaited.filter(|it| !it.or_another);
    awaited.filter_map(steal).collect()
}

/// A task that waits for a message by name, of a sender whose message came: a receive from anybody before may have taken it, as
/// nothing tells whose it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Who waits.
    pub task: u32,
    /// For whose message.
    pub from: u32,
    /// With which tag; `None`: any.
    pub tag: Option<i64>,
    /// The receive from anybody: a part of that task.
    pub wildcard: usize,
}

/// All such tasks.
pub fn doubts(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> Vec<Doubt> {
    let each = tasks.iter().filter_map(|(&task, conversation)| {
        let Waits::All(parts) = &conversation.pending()?.waits else {
            return None;
        };
        parts.iter().find_map(|&part| {
            let it = conversation.parts.get(part)?;
            let PartKind::Receive {
                from: Peer::Task(from),
                tag,
                communicator,
                wildcard: None,
                ..
            } = it.kind
            else {
                return None;
            };
            let id = PartId { task, part };
            let is_open = !it.complete && matching.partner(id).is_some();
            if !is_open || !matching.is_uncertain(communicator, id) {
                return None;
            }
            let may_take = |it: &Part| match it.kind {
                PartKind::Receive {
                    from: Peer::Any,
                    tag: of,
                    communicator: other,
                    ..
                } => {
                    let fits = of.is_none() || tag.is_none() || of == tag;
                    it.complete && other == communicator && fits
                }
                _ => false,
            };
            let wildcard = conversation.parts[..part].iter().rposition(may_take)?;
            Some(Doubt {
                task,
                from,
                tag,
                wildcard,
            })
        })
    });
    each.collect()
}

impl Doubt {
    /// The call of the receive from anybody: trace and event.
    pub fn call(&self, tasks: &BTreeMap<u32, Conversation>) -> Option<(TraceName, u64)> {
        tasks.get(&self.task)?.called(self.wildcard)
    }
}
