//! Messages that were sent and not received, beside those that are waited for in vain, in words.

use crate::ends::is_last;
use crate::place_words::who;
use crate::progress::Facts;
use crate::strays::{Unreceived, awaited, held_back};
use crate::task::Activity;
use crate::waits::{Wait, Why};
use lockstep_api::mpi::constants::COMM_WORLD;
use lockstep_check::Loose;
use lockstep_check::strays::{Stray, unstarted_receive};
use lockstep_comm::{CommunicatorId, PartKind};
use std::collections::BTreeSet;

/// A persistent send that those wait for, and that is not running: `rank 1 did not start its persistent send to rank 0 with
/// tag 3`.
pub(crate) fn unstarted(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<String> {
    let progress = facts.progress;
    let waits = || {
        let all = progress.waiting.waits.iter();
        all.filter(|it| waiting.contains(&it.from))
    };
    let ever = || {
        waits().find_map(|wait| {
            let (kind, name, trace, event) = awaited(wait)?.unstarted(facts.conversations)?;
            let PartKind::Send { tag, .. } = kind else {
                return None;
            };
            Some(format!(
                "{} waited in {name}{} for its persistent send to {} with tag {tag}, which it had not started again",
                who(progress, &[wait.to]),
                facts.sites.at((*trace, *event)),
                who(progress, &[wait.from]),
            ))
        })
    };
    waits()
        .find_map(|wait| {
            let awaited = awaited(wait)?;
            let mut idle = facts.conversations.get(&wait.to)?.idle.iter();
            let (kind, was_started) = idle.find(|it| awaited.is_met_by(&it.0))?;
            let PartKind::Send { tag, .. } = kind else {
                return None;
            };
            Some(format!(
                "{} did not start its persistent send to {} with tag {tag}{}",
                who(progress, &[wait.to]),
                who(progress, &[wait.from]),
                if *was_started { " again" } else { "" },
            ))
        })
        .or_else(ever)
}

/// `rank 0 did not receive the message that it took in MPI_Mprobe at a.c:9`.
pub(crate) fn not_received(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<String> {
    let waits = facts.progress.waiting.waits.iter();
    let mut waits = waits.filter(|it| waiting.contains(&it.from));
    let (task, part) = waits.find_map(|it| held_back(facts.conversations, it))?;
    let conversation = facts.conversations.get(&task)?;
    let operation = conversation.parts.get(part)?.operation;
    Some(format!(
        "{} did not receive the message that it took in {}{}",
        who(facts.progress, &[task]),
        conversation.operations.get(operation)?.name,
        facts.sites.of(conversation, operation)
    ))
}

/// Of a message that is sent, where its receiver waits for such with other tags only, if that is not what is told of it: `rank 2
/// waits for one with tag 44`.
pub(crate) fn other_tag_wanted(facts: &Facts<'_>, told: &BTreeSet<u32>) -> Option<String> {
    let waits = &facts.progress.waiting.waits;
    let mut ours = waits.iter().filter(|it| told.contains(&it.from));
    ours.find_map(|wait| {
        let Why::Receiver(sent) = wait.why else {
            return None;
        };
        let back = |it: &&Wait| {
            (it.from, it.to, it.communicator) == (wait.to, wait.from, wait.communicator)
        };
        let wanted = waits.iter().filter(back).filter_map(|it| match it.why {
            Why::Message(tag) => Some(tag),
            Why::OtherTag(tag, _) => Some(Some(tag)),
            _ => None,
        });
        let tags: Vec<i64> = wanted.collect::<Option<_>>()?;
        // The first of its waits is told.
        let first = waits.iter().find(|it| it.from == wait.to);
        let is_told = told.contains(&wait.to) && first.is_some_and(Wait::is_for_message);
        let is_other = !tags.is_empty() && !tags.contains(&sent) && !is_told;
        let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
        let to = who(facts.progress, &[wait.to]);
        is_other.then(|| format!("{to} waits for one with tag {}", tags.join(" or ")))
    })
}

/// Of one that is waited for and is about to end, a message of its to another that is, too, which nobody received: `rank 0 sent
/// rank 3 a message with tag 2 that nobody received (MPI_Send at a.c:9)`.
pub(crate) fn sent_elsewhere(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<String> {
    let progress = facts.progress;
    let is_over = |task: u32| {
        progress.tasks.get(&task).is_some_and(|it| {
            matches!(it.activity, Activity::Finished | Activity::Ended)
                || it.stack.iter().any(is_last)
        })
    };
    let waits = progress.waiting.waits.iter();
    let waits = waits.filter(|it| waiting.contains(&it.from) && is_over(it.to));
    let found = waits.filter(|it| it.is_for_message()).find_map(|wait| {
        let is_it = |it: &&Stray| {
            it.from == wait.to && it.to != wait.from && is_within(it, wait) && is_over(it.to)
        };
        facts.strays.iter().find(is_it)
    });
    found.map(|it| {
        format!(
            "{} sent {} a message with tag {} that nobody received{}",
            who(progress, &[it.from]),
            who(progress, &[it.to]),
            it.tag,
            called(facts, it.from, it.operation)
        )
    })
}

/// Whether a message is in the communicator in which one is waited for.
fn is_within(stray: &Stray, wait: &Wait) -> bool {
    Some(stray.communicator) == wait.communicator
}

/// ` (MPI_Send at halo.c:77)`.
fn called(facts: &Facts<'_>, task: u32, operation: usize) -> String {
    let Some(conversation) = facts.conversations.get(&task) else {
        return String::new();
    };
    let name = conversation.operations.get(operation).map(|it| &it.name);
    let at = facts.sites.of(conversation, operation);
    name.map_or(String::new(), |name| format!(" ({name}{at})"))
}

/// Of a message that was never received: `rank 2 waited in MPI_Wait at a.c:12 for a receive that it had not started`.
pub(crate) fn not_started(facts: &Facts<'_>, loose: &Loose) -> Option<String> {
    let (task, (_, name, trace, event)) = unstarted_receive(facts.conversations, loose)?;
    let at = facts.sites.at((*trace, *event));
    let who = who(facts.progress, &[task]);
    Some(format!(
        "{who} waited in {name}{at} for a persistent receive that it had not started"
    ))
}

/// What may have been meant for those who wait for a message.
pub(crate) fn hint(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Unreceived> {
    let progress = facts.progress;
    let waits = progress.waiting.waits.iter();
    let wanted = waits.filter(|it| waiting.contains(&it.from));
    for wait in wanted {
        // Where nothing tells who is wrong: the only one that came instead, and where it was sent.
        if let Why::OtherTag(_, tags) = &wait.why
            && let [tag] = tags.as_slice()
            && let Some(stray) = facts.strays.iter().find(|it| {
                (it.from, it.to, it.tag) == (wait.to, wait.from, *tag) && is_within(it, wait)
            })
        {
            let sentence = format!(
                "sent {} a message with tag {tag} that nobody received{}",
                who(progress, &[stray.to]),
                called(facts, stray.from, stray.operation)
            );
            return Some(Unreceived {
                from: stray.from,
                sentence,
                operation: stray.operation,
            });
        }
        let Some(awaited) = awaited(wait).filter(|it| it.tag.is_some()) else {
            continue;
        };
        let is_elsewhere = |it: &Stray| it.is_elsewhere(&awaited, facts.membership);
        let alike = |it: &&Stray| it.may_be(&awaited) || is_elsewhere(it);
        let other_tag = |it: &&Stray| {
            let is_from = wait.or_another && (it.from, it.to) == (wait.to, wait.from);
            is_from && is_within(it, wait)
        };
        let mut strays = facts.strays.iter();
        if let Some(stray) = strays
            .clone()
            .find(alike)
            .or_else(|| strays.find(other_tag))
        {
            let is_elsewhere = is_elsewhere(stray);
            let name = |of: CommunicatorId| facts.communicators.name(of);
            let of = match name(stray.communicator).as_str() {
                COMM_WORLD if !is_elsewhere => String::new(),
                name => format!(" of {name}"),
            };
            let (sent, received) = match stray.is_open {
                true => ("sends", "receives"),
                false => ("sent", "received"),
            };
            let mut sentence = format!(
                "{sent} {} a message with tag {}{of} that nobody {received}",
                who(progress, &[stray.to]),
                stray.tag
            );
            if is_elsewhere {
                sentence.push_str(&format!(
                    "{}: {} waits for one of {}",
                    called(facts, stray.from, stray.operation),
                    who(progress, &[stray.to]),
                    name(awaited.communicator)
                ));
            }
            return Some(Unreceived {
                from: stray.from,
                sentence,
                operation: stray.operation,
            });
        }
    }
    None
}
