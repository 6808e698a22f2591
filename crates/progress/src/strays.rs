//! Messages that were sent and not received, beside those that are waited for in vain: to another task,
//! from another, or in another communicator; and persistent sends that nobody started.

use crate::analysis::Facts;
use crate::matching::{Matching, PartId};
use crate::message::{CommunicatorId, Conversation, PartKind, Peer};
use crate::verdict::who;
use crate::waits::Why;
use std::collections::{BTreeMap, BTreeSet};

/// A message that nobody received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stray {
    pub from: u32,
    pub to: u32,
    pub tag: i64,
    pub communicator: CommunicatorId,
    /// Whether the sender waits for that.
    pub is_open: bool,
}

/// All such messages, some of each sender.
pub(crate) fn strays(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> Vec<Stray> {
    let mut found = Vec::new();
    for (&task, conversation) in tasks {
        let parts = conversation.parts.iter().enumerate();
        let of_task = parts.filter_map(|(index, part)| match part.kind {
            PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } if matching.partner(PartId { task, part: index }).is_none() => Some(Stray {
                from: task,
                to,
                tag,
                communicator,
                is_open: !conversation.operations[part.operation].returned,
            }),
            _ => None,
        });
        found.extend(of_task.take(MOST));
    }
    found
}

/// Kept of each sender.
const MOST: usize = 64;

/// A persistent send that those wait for, and that is not running: `rank 1 did not start its persistent send to rank 0 with
/// tag 3`.
pub(crate) fn unstarted(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<String> {
    let progress = facts.progress;
    let waits = progress.waiting.waits.iter();
    waits
        .filter(|it| waiting.contains(&it.from))
        .find_map(|wait| {
            let Why::Message(tag) = wait.why else {
                return None;
            };
            let idle = &facts.conversations.get(&wait.to)?.idle;
            idle.iter().find_map(|(kind, was_started)| match kind {
                PartKind::Send {
                    to: Peer::Task(to),
                    tag: sent,
                    ..
                } if *to == wait.from && tag.is_none_or(|it| it == *sent) => Some(format!(
                    "{} did not start its persistent send to {} with tag {sent}{}",
                    who(progress, &[wait.to]),
                    who(progress, &[*to]),
                    if *was_started { " again" } else { "" },
                )),
                _ => None,
            })
        })
}

/// A message that nobody received, and that may have been meant for those who hang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreceived {
    /// Who sent it.
    pub from: u32,
    /// What it did: `sent rank 1 a message with tag 3 of #2 {0-3} that nobody received`.
    pub sentence: String,
}

/// What may have been meant for those who wait for a message.
pub(crate) fn hint(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Unreceived> {
    let progress = facts.progress;
    let waits = progress.waiting.waits.iter();
    let wanted = waits.filter(|it| waiting.contains(&it.from));
    for wait in wanted {
        let Why::Message(Some(tag)) = wait.why else {
            continue;
        };
        let alike = |it: &&Stray| {
            let for_it = it.to == wait.from;
            let by_it = it.from == wait.to && it.to != wait.from && it.to != it.from;
            it.tag == tag && (for_it || by_it && !wait.or_another)
        };
        let other_tag = |it: &&Stray| wait.or_another && it.to == wait.from && it.from == wait.to;
        let mut strays = facts.strays.iter();
        if let Some(stray) = strays
            .clone()
            .find(alike)
            .or_else(|| strays.find(other_tag))
        {
            let of = match facts.communicators.name(stray.communicator).as_str() {
                "MPI_COMM_WORLD" => String::new(),
                name => format!(" of {name}"),
            };
            let (sent, received) = match stray.is_open {
                true => ("sends", "receives"),
                false => ("sent", "received"),
            };
            let sentence = format!(
                "{sent} {} a message with tag {}{of} that nobody {received}",
                who(progress, &[stray.to]),
                stray.tag
            );
            return Some(Unreceived {
                from: stray.from,
                sentence,
            });
        }
    }
    None
}
