//! Channels and wait groups: partners that may not come, and orders that nothing keeps.

use super::order::Order;
use super::{Context, Finding, Step, Suspicion};
use crate::execution::{Action, ObjectId, ObjectKind, What};
use crate::replay::{Replay, channels};

/// A step at a channel or a wait group.
#[derive(Debug, Clone)]
pub(super) struct Touch {
    step: Step,
    /// Whether it stands in a `select`, and how many other cases that has, its default among them.
    select: Option<usize>,
    has_default: bool,
    amount: i64,
    /// Locks that its goroutine held.
    locks: Vec<ObjectId>,
}

/// More steps at one object than this do not tell more.
const ENOUGH: usize = 256;

/// Takes down what the event shows; `replay` is the state before it.
pub(super) fn see(steps: &mut [Vec<Touch>], replay: &Replay<'_>, order: &Order, index: usize) {
    let event = &replay.execution.events[index];
    let (
        Some(goroutine),
        What::Request {
            action,
            object,
            cases,
            default,
            amount,
            ..
        },
    ) = (event.goroutine, &event.what)
    else {
        return;
    };
    let mut note = |object: ObjectId, action, select| {
        let Some(steps) = steps.get_mut(object.0 as usize) else {
            return;
        };
        if steps.len() < ENOUGH {
            steps.push(Touch {
                step: Step {
                    event: index,
                    goroutine,
                    action,
                    site: event.site,
                    clock: order.clock(goroutine),
                },
                select,
                has_default: *default,
                amount: *amount,
                locks: replay
                    .held_by(goroutine)
                    .iter()
                    .map(|it| it.object)
                    .collect(),
            });
        }
    };
    match (action, object) {
        (
            Action::Send
            | Action::Receive
            | Action::Close
            | Action::Add
            | Action::Done
            | Action::Wait,
            Some(object),
        ) => note(*object, *action, None),
        (Action::Select, _) => {
            let others = cases.len() + usize::from(*default) - usize::from(!cases.is_empty());
            for (channel, action) in channels(cases) {
                note(channel, action, Some(others));
            }
        }
        _ => {}
    }
}

pub(super) fn findings(context: &Context<'_, '_>, found: &mut Vec<Finding>) {
    for (at, touches) in context.record.steps.iter().enumerate() {
        let object = ObjectId(at as u32);
        // Where not all steps were kept, nothing is said of "all" or "none".
        if touches.len() >= ENOUGH {
            continue;
        }
        match context.execution.objects[at].kind {
            ObjectKind::Channel { capacity } => {
                close_and_send(context, object, touches, found);
                no_receiver(context, object, touches, capacity, found);
                no_sender(context, object, touches, capacity, found);
            }
            ObjectKind::WaitGroup => late_add(context, object, touches, found),
            _ => {}
        }
    }
}

fn of<'t>(touches: &'t [Touch], action: Action) -> impl Iterator<Item = &'t Touch> + 't {
    touches.iter().filter(move |it| it.step.action == action)
}

fn close_and_send(
    context: &Context<'_, '_>,
    channel: ObjectId,
    touches: &[Touch],
    found: &mut Vec<Finding>,
) {
    for close in of(touches, Action::Close) {
        for send in of(touches, Action::Send) {
            // Who looks whether it is closed does so under the lock that the close is made under.
            let is_kept = send.locks.iter().any(|it| close.locks.contains(it));
            if is_kept || !send.step.beside(&close.step) {
                continue;
            }
            let words = &context.words;
            let sentence = format!(
                "{} sends at {} to {}, and nothing keeps {} from closing it first at {}",
                words.who(send.step.goroutine),
                words.at(send.step.site),
                words.object(channel),
                words.who(close.step.goroutine),
                words.at(close.step.site)
            );
            found.push(context.finding(
                Suspicion::CloseAndSend,
                sentence,
                &[send.step.site, close.step.site],
                &[send.step.goroutine, close.step.goroutine],
                &[(send.step.site, Action::Send)],
            ));
        }
    }
}

fn no_receiver(
    context: &Context<'_, '_>,
    channel: ObjectId,
    touches: &[Touch],
    capacity: u64,
    found: &mut Vec<Finding>,
) {
    let plain: Vec<&Touch> = of(touches, Action::Send)
        .filter(|it| it.select.is_none())
        .collect();
    let receives: Vec<&Touch> = of(touches, Action::Receive).collect();
    let sends = of(touches, Action::Send).count() as u64;
    // A receiver that comes back would take it the next time.
    let once = receives.len() <= plain.len();
    let may_leave = receives
        .iter()
        .all(|it| it.select.is_some_and(|others| others > 0));
    if receives.is_empty() || !once || !may_leave || sends <= capacity {
        return;
    }
    let Some(send) = plain.iter().find(|send| {
        receives
            .iter()
            .all(|it| it.step.goroutine != send.step.goroutine)
    }) else {
        return;
    };
    let words = &context.words;
    let receive = receives[0];
    let sentence = format!(
        "{} sends at {} to {}; the only receive, at {}, is a case of a select: if another case comes, nobody receives",
        words.who(send.step.goroutine),
        words.at(send.step.site),
        words.object(channel),
        words.at(receive.step.site)
    );
    found.push(context.finding(
        Suspicion::NoReceiver,
        sentence,
        &[send.step.site, receive.step.site],
        &[send.step.goroutine, receive.step.goroutine],
        &[(send.step.site, Action::Send)],
    ));
}

fn no_sender(
    context: &Context<'_, '_>,
    channel: ObjectId,
    touches: &[Touch],
    capacity: u64,
    found: &mut Vec<Finding>,
) {
    let sends: Vec<&Touch> = of(touches, Action::Send).collect();
    let receive = of(touches, Action::Receive).find(|it| it.select.is_none());
    let closes = of(touches, Action::Close).next().is_some();
    let dropped = |it: &&Touch| it.select.is_some() && it.has_default;
    let (Some(receive), Some(send)) = (receive, sends.first()) else {
        return;
    };
    if capacity > 0 || closes || !sends.iter().all(dropped) || !send.step.beside(&receive.step) {
        return;
    }
    let words = &context.words;
    let sentence = format!(
        "{} receives at {} from {}; all sends, as at {}, have a default: one that comes before the receive is dropped",
        words.who(receive.step.goroutine),
        words.at(receive.step.site),
        words.object(channel),
        words.at(send.step.site)
    );
    found.push(context.finding(
        Suspicion::NoSender,
        sentence,
        &[receive.step.site, send.step.site],
        &[receive.step.goroutine, send.step.goroutine],
        &[(receive.step.site, Action::Receive)],
    ));
}

/// An `Add` that nothing keeps from coming when the count is 0 and the `Wait` over.
fn late_add(
    context: &Context<'_, '_>,
    group: ObjectId,
    touches: &[Touch],
    found: &mut Vec<Finding>,
) {
    for add in of(touches, Action::Add).filter(|it| it.amount > 0) {
        let Some(wait) = of(touches, Action::Wait).find(|it| it.step.beside(&add.step)) else {
            continue;
        };
        // Whoever is counted itself may add: the count cannot be 0.
        let before: i64 = of(touches, Action::Add)
            .filter(|it| it.step.before(&add.step))
            .map(|it| it.amount)
            .sum();
        let done = of(touches, Action::Done)
            .filter(|it| !add.step.before(&it.step))
            .count() as i64;
        if before > done {
            continue;
        }
        let words = &context.words;
        let sentence = format!(
            "{} adds to {} at {}, and nothing keeps the wait at {} from being over by then",
            words.who(add.step.goroutine),
            words.object(group),
            words.at(add.step.site),
            words.at(wait.step.site)
        );
        found.push(context.finding(
            Suspicion::LateAdd,
            sentence,
            &[add.step.site, wait.step.site],
            &[add.step.goroutine, wait.step.goroutine],
            &[(add.step.site, Action::Add)],
        ));
    }
}
