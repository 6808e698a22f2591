//! Messages that were sent and not received, beside those that are waited for in vain.

use crate::clause::{Amiss, Called, Unreceived};
use crate::ends::is_last;
use crate::misfit::part_call;
use crate::nonempty::NonEmpty;
use crate::progress::Facts;
use crate::strays::{awaited, held_back};
use crate::task::Activity;
use crate::waits::{Wait, Why};
use lockstep_api::mpi::constants::COMM_WORLD;
use lockstep_check::Loose;
use lockstep_check::strays::{Awaited, Stray, unstarted_receive};
use lockstep_comm::PartKind;
use std::collections::BTreeSet;

/// A persistent send that those wait for, and that is not running.
pub(crate) fn unstarted(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Amiss> {
    let waits = || {
        let all = facts.progress.waiting.waits.iter();
        all.filter(|it| waiting.contains(&it.from))
    };
    let idle = |wait: &Wait| {
        let awaited = awaited(wait)?;
        let mut idle = facts.conversations.get(&wait.to)?.idle.iter();
        let (kind, was_started) = idle.find(|it| awaited.is_met_by(&it.0))?;
        Some(Amiss::NotStarted {
            by: wait.to,
            to: wait.from,
            tag: tag_of(kind)?,
            again: *was_started,
        })
    };
    let waited_for = |wait: &Wait| {
        let (kind, name, trace, event) = awaited(wait)?.unstarted(facts.conversations)?;
        Some(Amiss::WaitedFor {
            by: wait.to,
            call: facts.sites.named(name, (*trace, *event)),
            to: wait.from,
            tag: tag_of(kind)?,
        })
    };
    waits()
        .find_map(idle)
        .or_else(|| waits().find_map(waited_for))
}

/// Of a send.
fn tag_of(kind: &PartKind) -> Option<i64> {
    match kind {
        PartKind::Send { tag, .. } => Some(*tag),
        _ => None,
    }
}

/// A message that a matched probe took, and that its task did not receive.
pub(crate) fn not_received(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Amiss> {
    let waits = facts.progress.waiting.waits.iter();
    let mut waits = waits.filter(|it| waiting.contains(&it.from));
    let (task, part) = waits.find_map(|it| held_back(facts.conversations, it))?;
    Some(Amiss::NotReceived(task, part_call(facts, task, part)?))
}

/// Of a message that is sent, where its receiver waits for such with other tags only, if that is not what is told of it.
pub(crate) fn other_tag_wanted(facts: &Facts<'_>, told: &BTreeSet<u32>) -> Option<Amiss> {
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
        let tags = NonEmpty::new(tags).filter(|it| !it.contains(&sent) && !is_told)?;
        Some(Amiss::OtherTag(wait.to, tags))
    })
}

/// Of one that is waited for and is about to end, a message of its to another that is, too, which nobody received.
pub(crate) fn sent_elsewhere(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Amiss> {
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
    let told = Unreceived::of(found?);
    Some(Amiss::Unreceived(Unreceived {
        call: called(facts, found?),
        is_open: false,
        ..told
    }))
}

/// Whether a message is in the communicator in which one is waited for.
fn is_within(stray: &Stray, wait: &Wait) -> bool {
    Some(stray.communicator) == wait.communicator
}

/// The call that sent it.
fn called(facts: &Facts<'_>, stray: &Stray) -> Option<Called> {
    let conversation = facts.conversations.get(&stray.from)?;
    facts.sites.call(conversation, stray.operation)
}

/// Of a message that was never received: a receive that was waited for and never started.
pub(crate) fn never_started(facts: &Facts<'_>, loose: &Loose) -> Option<Amiss> {
    let (task, (_, name, trace, event)) = unstarted_receive(facts.conversations, loose)?;
    let call = facts.sites.named(name, (*trace, *event));
    Some(Amiss::NeverStarted(task, call))
}

impl Unreceived {
    fn of(stray: &Stray) -> Self {
        Self {
            from: stray.from,
            to: stray.to,
            tag: stray.tag,
            of: None,
            is_open: stray.is_open,
            call: None,
            wanted_in: None,
            operation: stray.operation,
        }
    }

    /// One that may be what is awaited; in another communicator, if it is `elsewhere`.
    fn for_awaited(facts: &Facts<'_>, stray: &Stray, awaited: &Awaited, elsewhere: bool) -> Self {
        let name = |it| facts.communicators.name(it);
        let of = name(stray.communicator);
        Self {
            of: Some(of).filter(|it| elsewhere || it != COMM_WORLD),
            call: called(facts, stray).filter(|_| elsewhere),
            wanted_in: elsewhere.then(|| name(awaited.communicator)),
            ..Self::of(stray)
        }
    }
}

/// What may have been meant for those who wait for a message.
pub(crate) fn unreceived(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<Unreceived> {
    let waits = facts.progress.waiting.waits.iter();
    let mut wanted = waits.filter(|it| waiting.contains(&it.from));
    wanted.find_map(|wait| {
        // Where nothing tells who is wrong: the only one that came instead, and where it was sent.
        if let Why::OtherTag(_, tags) = &wait.why
            && let [tag] = tags.as_slice()
            && let Some(stray) = facts.strays.iter().find(|it| {
                (it.from, it.to, it.tag) == (wait.to, wait.from, *tag) && is_within(it, wait)
            })
        {
            return Some(Unreceived {
                call: called(facts, stray),
                is_open: false,
                ..Unreceived::of(stray)
            });
        }
        let awaited = awaited(wait).filter(|it| it.tag.is_some())?;
        let is_elsewhere = |it: &Stray| it.is_elsewhere(&awaited, facts.membership);
        let alike = |it: &&Stray| it.may_be(&awaited) || is_elsewhere(it);
        let other_tag = |it: &&Stray| {
            let is_from = wait.or_another && (it.from, it.to) == (wait.to, wait.from);
            is_from && is_within(it, wait)
        };
        let mut strays = facts.strays.iter();
        let likely = strays.clone().find(alike);
        let stray = likely.or_else(|| strays.find(other_tag))?;
        let elsewhere = is_elsewhere(stray);
        Some(Unreceived::for_awaited(facts, stray, &awaited, elsewhere))
    })
}
