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
            if !over && !context.record.guards.guards(hold.object, kept.object) {
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

/// Channels that are used under a lock alone, where everybody takes out as much as he put in before he gives the lock back:
/// whoever has the lock finds such a channel as it was at first.
#[derive(Default)]
pub(super) struct Guards {
    /// By channel.
    locks: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
    /// What a goroutine put into channels more than it took out, where that is not 0.
    inside: BTreeMap<(GoroutineId, ObjectId), i64>,
}

impl Guards {
    /// Takes down what the event shows; `replay` is the state before it.
    pub(super) fn see(&mut self, replay: &Replay<'_>, index: usize) {
        let event = &replay.execution.events[index];
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
            return;
        };
        match (action, object) {
            (Action::Send | Action::Receive, Some(channel)) => {
                let held = replay.held_by(id).iter().filter(|it| !it.reading);
                let held: BTreeSet<ObjectId> = held.map(|it| it.object).collect();
                let locks = self.locks.entry(*channel).or_insert_with(|| held.clone());
                locks.retain(|it| held.contains(it));
                let inside = self.inside.entry((id, *channel)).or_default();
                *inside += if *action == Action::Send { 1 } else { -1 };
                if *inside == 0 {
                    self.inside.remove(&(id, *channel));
                }
            }
            (Action::Close, Some(channel)) => drop(self.locks.insert(*channel, BTreeSet::new())),
            (Action::Unlock, Some(lock)) => {
                let own = (id, ObjectId(0))..=(id, ObjectId(u32::MAX));
                for ((_, channel), _) in self.inside.range(own) {
                    self.locks.entry(*channel).or_default().remove(lock);
                }
            }
            _ => {}
        }
        for (channel, _) in crate::replay::channels(cases) {
            self.locks.insert(channel, BTreeSet::new());
        }
    }

    /// Whether whoever has the lock finds the channel as it was at first.
    fn guards(&self, lock: ObjectId, channel: ObjectId) -> bool {
        self.locks
            .get(&channel)
            .is_some_and(|it| it.contains(&lock))
            && !self.inside.keys().any(|it| it.1 == channel)
    }
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
