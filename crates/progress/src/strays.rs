//! Why a message that is waited for does not come: those that were sent and not received, and persistent sends that nobody
//! started.

use crate::waits::{Wait, Waiting, Why};
use lockstep_check::strays::{Awaited, Stray};
use lockstep_comm::{Conversation, Membership, PartKind, Peer};
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// The message that is waited for, where none with another tag is there.
pub(crate) fn awaited(wait: &Wait) -> Option<Awaited> {
    let Why::Message(tag) = wait.why else {
        return None;
    };
    Some(Awaited {
        by: wait.from,
        from: wait.to,
        tag,
        communicator: wait.communicator?,
        or_another: wait.or_another,
    })
}

/// The calls of messages that may have been meant for those who wait, trace and event.
pub(crate) fn calls<'a>(
    strays: &'a [Stray],
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
    members: &'a Membership,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let is_meant = move |it: &&Stray| {
        let mut waits = waiting.waits.iter();
        waits.any(|wait| {
            let is_of_it = wait.to == it.from && wait.is_for_message();
            is_of_it || awaited(wait).is_some_and(|awaited| it.is_elsewhere(&awaited, members))
        })
    };
    let strays = strays.iter().filter(is_meant).take(MOST_LOCATED);
    strays.filter_map(|it| tasks.get(&it.from)?.call(it.operation))
}

/// So many of them get their line.
const MOST_LOCATED: usize = 8;

/// Of a message that is sent and that the other's probe took, the probe: its task and part.
pub(crate) fn held_back(tasks: &BTreeMap<u32, Conversation>, wait: &Wait) -> Option<(u32, usize)> {
    let Why::Receiver(sent) = wait.why else {
        return None;
    };
    let receiver = tasks.get(&wait.to)?;
    let is_it = |part: &usize| match &receiver.parts[*part].kind {
        PartKind::Receive {
            from: Peer::Task(from),
            tag,
            communicator,
            ..
        } => {
            let is_there = (*from, Some(*communicator)) == (wait.from, wait.communicator);
            is_there && tag.is_none_or(|it| it == sent) && receiver.holds_back(*part)
        }
        _ => false,
    };
    let mut parts = 0..receiver.parts.len();
    Some((wait.to, parts.find(is_it)?))
}

/// The calls of what was not received or not started again, for who waits.
pub(crate) fn owed<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let stuck = waiting.waits.iter();
    let stuck = stuck.filter(|it| waiting.stuck.contains(&it.from));
    stuck.take(MOST_OWED).filter_map(|wait| {
        let held_back =
            held_back(tasks, wait).and_then(|(task, part)| tasks.get(&task)?.called(part));
        held_back.or_else(|| awaited(wait)?.unstarted(tasks).map(|it| (it.2, it.3)))
    })
}

/// So many waits are looked at.
const MOST_OWED: usize = 64;
