//! Waits with a lock held that the one who would end the wait needs first.
//!
//! ```text
//!    goroutine 7: Lock mu ... send c        holds mu until somebody receives
//!    goroutine 9: Lock mu ... receive c     receives once it has had mu
//! ```

use super::order::Order;
use super::{Context, Finding, Step, Suspicion};
use crate::execution::{Action, GoroutineId, ObjectId, ObjectKind, SiteId, What};
use crate::replay::{Hold, Replay};
use std::collections::{BTreeMap, BTreeSet};

/// A wait, with what was held meanwhile.
pub(super) struct Kept {
    held: Vec<Hold>,
    object: ObjectId,
    step: Step,
}

/// Takes down what the event shows; `replay` is the state before it.
pub(super) fn see(kept: &mut Vec<Kept>, replay: &Replay<'_>, order: &Order, index: usize) {
    let event = &replay.execution.events[index];
    let (
        Some(goroutine),
        What::Request {
            action,
            object: Some(object),
            ..
        },
    ) = (event.goroutine, &event.what)
    else {
        return;
    };
    if !matches!(action, Action::Send | Action::Receive | Action::Wait) {
        return;
    }
    let held = replay.held_by(goroutine);
    let known = |it: &Kept| {
        it.object == *object && it.step.goroutine == goroutine && it.step.site == event.site
    };
    if held.is_empty() || kept.iter().rev().take(64).any(known) {
        return;
    }
    kept.push(Kept {
        held: held.to_vec(),
        object: *object,
        step: Step {
            event: index,
            goroutine,
            action: *action,
            site: event.site,
            clock: order.clock(goroutine),
        },
    });
}

pub(super) fn findings(context: &Context<'_, '_>, found: &mut Vec<Finding>) {
    if context.record.waits.is_empty() {
        return;
    }
    let needs = Needs::of(context);
    for kept in &context.record.waits {
        if !can_wait(context, kept) {
            continue;
        }
        let matching: &[Action] = match kept.step.action {
            Action::Send => &[Action::Receive],
            Action::Receive => &[Action::Send, Action::Close],
            _ => &[Action::Done],
        };
        for hold in &kept.held {
            // All who could end the wait need the lock before; one who does not is enough to end it.
            let partners: Vec<_> = needs
                .partners
                .iter()
                .filter(|((object, action, who), _)| {
                    *object == kept.object
                        && matching.contains(action)
                        && *who != kept.step.goroutine
                })
                .collect();
            let needing: Option<Vec<(GoroutineId, Option<SiteId>)>> = partners
                .iter()
                .map(|((_, _, who), locks)| locks.get(&hold.object).map(|site| (*who, *site)))
                .collect();
            let Some(&(who, site)) = needing.as_ref().and_then(|it| it.first()) else {
                continue;
            };
            // What came before the lock was taken cannot be kept out by it.
            let asked = needs.asked.get(&(who, hold.object, site));
            let over = asked.is_some_and(|it| kept.step.clock.has(who, *it));
            if !over && !is_left_as_found(context, kept.object, hold.object) {
                found.push(finding(context, kept, hold, who, site));
            }
        }
    }
}

/// Whether it may wait at all: a send with room for all that is ever sent does not.
fn can_wait(context: &Context<'_, '_>, kept: &Kept) -> bool {
    let objects = &context.execution.objects;
    let Some(ObjectKind::Channel { capacity }) =
        objects.get(kept.object.0 as usize).map(|it| it.kind)
    else {
        return true;
    };
    let sends: u64 = context
        .record
        .replay
        .uses(kept.object)
        .iter()
        .filter(|((_, action), _)| *action == Action::Send)
        .map(|(_, it)| it.completed)
        .sum();
    kept.step.action != Action::Send || sends > capacity
}

/// Whether a channel is used under this lock alone, and everybody takes out as much as he put in before he gives the lock
/// back: whoever has the lock finds it as it was at first.
fn is_left_as_found(context: &Context<'_, '_>, channel: ObjectId, lock: ObjectId) -> bool {
    let execution = context.execution;
    let mut replay = Replay::new(execution);
    let mut inside: BTreeMap<GoroutineId, i64> = BTreeMap::new();
    for (index, event) in execution.events.iter().enumerate() {
        if let (
            Some(id),
            What::Request {
                action,
                object,
                cases,
                ..
            },
        ) = (event.goroutine, &event.what)
        {
            let step = match action {
                Action::Send => 1,
                Action::Receive => -1,
                _ => 0,
            };
            if *object == Some(channel) {
                let held = replay.held_by(id);
                let is_kept_out = held.iter().any(|it| it.object == lock && !it.reading);
                if step == 0 || !is_kept_out {
                    return false;
                }
                *inside.entry(id).or_default() += step;
            }
            let is_left = *action == Action::Unlock && *object == Some(lock);
            if is_left && inside.get(&id).is_some_and(|it| *it != 0)
                || crate::replay::channels(cases).any(|it| it.0 == channel)
            {
                return false;
            }
        }
        replay.step(index);
    }
    inside.values().all(|it| *it == 0)
}

/// Who needs which lock before what.
#[derive(Default)]
struct Needs {
    /// By object, action and goroutine: the locks that it asked for since it last did that, and where.
    partners: BTreeMap<(ObjectId, Action, GoroutineId), BTreeMap<ObjectId, Option<SiteId>>>,
    asked: BTreeMap<(GoroutineId, ObjectId, Option<SiteId>), usize>,
}

impl Needs {
    fn of(context: &Context<'_, '_>) -> Self {
        let mut needs = Self::default();
        // Locks that each goroutine asked for, in order.
        let mut asked: BTreeMap<GoroutineId, Vec<(usize, ObjectId, Option<SiteId>)>> =
            BTreeMap::new();
        let mut last: BTreeMap<(ObjectId, Action, GoroutineId), usize> = BTreeMap::new();
        let interesting: BTreeSet<ObjectId> =
            context.record.waits.iter().map(|it| it.object).collect();
        for (index, event) in context.execution.events.iter().enumerate() {
            let (
                Some(id),
                What::Request {
                    action,
                    object,
                    cases,
                    ..
                },
            ) = (event.goroutine, &event.what)
            else {
                continue;
            };
            if let (Action::Lock | Action::RLock, Some(lock)) = (action, object) {
                asked
                    .entry(id)
                    .or_default()
                    .push((index, *lock, event.site));
                needs.asked.insert((id, *lock, event.site), index);
            }
            let single = object.iter().map(|it| (*it, *action));
            for (object, action) in single.chain(crate::replay::channels(cases)) {
                if !interesting.contains(&object) {
                    continue;
                }
                let key = (object, action, id);
                let since = last.insert(key, index).unwrap_or(0);
                let locks = asked.get(&id).into_iter().flatten().rev();
                let now: BTreeMap<ObjectId, Option<SiteId>> = locks
                    .take_while(|it| it.0 > since)
                    .map(|(_, lock, site)| (*lock, *site))
                    .collect();
                // The greatest need of all times.
                needs.partners.entry(key).or_default().extend(now);
            }
        }
        needs
    }
}

fn finding(
    context: &Context<'_, '_>,
    kept: &Kept,
    hold: &Hold,
    who: GoroutineId,
    site: Option<SiteId>,
) -> Finding {
    let words = &context.words;
    let sentence = format!(
        "{} waits at {} {} with {} held since {}, which {} wants at {} before it can end that wait",
        words.who(kept.step.goroutine),
        words.at(kept.step.site),
        words.want(kept.step.action, Some(kept.object)),
        words.object(hold.object),
        words.at(hold.site),
        words.who(who),
        words.at(site)
    );
    context.finding(
        Suspicion::LockAndWait,
        sentence,
        &[kept.step.site, hold.site, site],
        &[kept.step.goroutine, who],
        &[(site, Action::Lock)],
    )
}
