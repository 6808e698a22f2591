//! What went well, and need not have: ready sends that nothing kept from coming before their receives, and accesses to
//! windows that are not allowed, or that nothing orders.
//!
//! *Costs*: a replay for each of the first ready sends; O(steps of epochs + accesses), and what `onesided` takes.

use super::{Found, LooseEnd};
use crate::conflicts::{conflicts, outside};
use lockstep_comm::{
    CommunicatorId, Conversation, InStarted, Matching, Membership, Mode, PartId, PartKind, Step,
    is_reached, tasks_of,
};
use std::collections::BTreeMap;

/// Adds all of it to what was found.
pub(super) fn add(
    found: &mut Found,
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) {
    for (id, to) in unready(tasks, members, matching) {
        let conversation = &tasks[&id.task];
        let operation = conversation.parts[id.part].operation;
        let name = conversation.operations[operation].name.to_string();
        let ready = found.entry((LooseEnd::NotReady { name, to }, id.task));
        ready.or_insert((conversation.call(operation), 0)).1 += 1;
    }
    for (task, it) in astray(tasks, members) {
        let (name, target) = (it.name.to_string(), it.target);
        let first = found.entry((LooseEnd::NotInGroup { name, target }, task));
        first.or_insert((Some(it.call), 0)).1 += 1;
    }
    let accesses = tasks
        .iter()
        .filter_map(|(task, it)| Some((*task, it.accesses.as_deref()?)));
    for it in outside(accesses.clone()) {
        let end = LooseEnd::OutsideWindow {
            name: it.name.to_string(),
            target: it.target,
            size: it.size,
            bytes: (it.bytes.start, it.bytes.end),
        };
        found.insert((end, it.task), (Some(it.call), 1));
    }
    for it in conflicts(accesses) {
        let conflict = LooseEnd::Conflict {
            name: it.name.to_string(),
            other: it.other,
            other_name: it.other_name.to_string(),
            target: it.target,
        };
        found.insert((conflict, it.task), (Some(it.call), 1));
    }
}

/// Accesses to tasks that are not in the group of the `MPI_Win_start` before them. O(steps of epochs + accesses).
fn astray<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    members: &'a Membership,
) -> impl Iterator<Item = (u32, InStarted<'a>)> {
    tasks.iter().flat_map(move |(&task, conversation)| {
        // The groups of the epochs of each window, in order.
        let mut starts: BTreeMap<CommunicatorId, Vec<Option<Vec<u32>>>> = BTreeMap::new();
        let mut accesses = conversation
            .accesses
            .iter()
            .flat_map(|it| it.in_started())
            .peekable();
        if accesses.peek().is_some() && !conversation.is_cut {
            for part in &conversation.parts {
                if let PartKind::Epoch {
                    window,
                    step: Step::Start,
                    group,
                } = &part.kind
                {
                    let group = group.as_ref().and_then(|it| tasks_of(it, members));
                    starts.entry(*window).or_default().push(group);
                }
            }
        }
        let is_astray = move |it: &InStarted<'_>| {
            let group = starts.get(&it.window).and_then(|all| all.get(it.start));
            group.is_some_and(|it_is| it_is.as_ref().is_some_and(|all| !all.contains(&it.target)))
        };
        accesses.filter(is_astray).map(move |it| (task, it))
    })
}

/// Ready sends that are reached though their receivers have not come to their receives, and to whom they are.
fn unready(
    tasks: &BTreeMap<u32, Conversation>,
    members: &Membership,
    matching: &Matching,
) -> Vec<(PartId, u32)> {
    if tasks.values().any(|it| it.is_threaded() || it.is_cut) {
        return Vec::new();
    }
    let sends = tasks.iter().flat_map(|(&task, conversation)| {
        let parts = conversation.parts.iter().enumerate();
        let ready = parts.filter(|(_, part)| {
            matches!(
                part.kind,
                PartKind::Send {
                    mode: Mode::Ready,
                    ..
                }
            )
        });
        ready.map(move |(part, _)| PartId { task, part })
    });
    let receives = sends.filter_map(|send| Some((send, matching.partner(send)?)));
    let is_early = |&(send, receive): &(PartId, PartId)| {
        let receiver = &tasks[&receive.task];
        let before = receiver.parts[receive.part].operation.checked_sub(1);
        before.is_some_and(|at| is_reached(tasks, members, matching, send, (receive.task, at)))
    };
    let found = receives.take(MOST_READY).filter(is_early);
    found.map(|(send, receive)| (send, receive.task)).collect()
}

/// Ready sends that are looked at.
const MOST_READY: usize = 16;
