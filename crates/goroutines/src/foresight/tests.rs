use super::*;
use crate::execution::What;
use crate::execution::{Action, ObjectKind};
use crate::sample::{MAIN, Sample};

/// What is foreseen, as lines where it ends badly.
fn bad(sample: &Sample) -> Vec<(Vec<u32>, u32)> {
    let mut foresight = Foresight::default();
    foresight.learn(&sample.execution);
    let bad = foresight.near.iter().filter(|it| it.is_bad);
    let mut ends: Vec<(Vec<u32>, u32)> = bad
        .map(|it| (it.places.iter().map(|it| it.line).collect(), it.guesses))
        .collect();
    ends.dedup();
    ends
}

#[test]
fn locks_in_opposite_orders() {
    let mut sample = Sample::new();
    let (a, b) = (sample.mutex(1), sample.mutex(2));
    for (line, first, second) in [(10, a, b), (20, b, a)] {
        let who = sample.go(MAIN, line);
        sample.does(who, line + 1, Action::Lock, first);
        sample.does(who, line + 2, Action::Lock, second);
        sample.does(who, line + 3, Action::Unlock, second);
        sample.does(who, line + 4, Action::Unlock, first);
        sample.ends(who, line + 5);
    }
    sample.exits();
    assert_eq!(bad(&sample), [(vec![12, 22], 0)]);
}

#[test]
fn locks_in_one_order_and_under_a_gate_are_well() {
    for gated in [false, true] {
        let mut sample = Sample::new();
        let (gate, a, b) = (sample.mutex(1), sample.mutex(2), sample.mutex(3));
        for line in [10, 20] {
            let who = sample.go(MAIN, line);
            let (first, second) = if gated && line == 20 { (b, a) } else { (a, b) };
            if gated {
                sample.does(who, line + 1, Action::Lock, gate);
            }
            sample.does(who, line + 2, Action::Lock, first);
            sample.does(who, line + 3, Action::Lock, second);
            sample.does(who, line + 4, Action::Unlock, second);
            sample.does(who, line + 5, Action::Unlock, first);
            if gated {
                sample.does(who, line + 6, Action::Unlock, gate);
            }
            sample.ends(who, line + 7);
        }
        sample.exits();
        assert_eq!(bad(&sample), []);
    }
}

/// A writer that comes between two read locks of one goroutine.
#[test]
fn a_writer_in_between() {
    let mut sample = Sample::new();
    let lock = sample.object(ObjectKind::RwMutex, 1);
    let reader = sample.go(MAIN, 10);
    let writer = sample.go(MAIN, 20);
    sample.does(reader, 11, Action::RLock, lock);
    sample.does(reader, 12, Action::RLock, lock);
    sample.does(reader, 13, Action::RUnlock, lock);
    sample.does(reader, 14, Action::RUnlock, lock);
    sample.ends(reader, 15);
    sample.does(writer, 21, Action::Lock, lock);
    sample.does(writer, 22, Action::Unlock, lock);
    sample.ends(writer, 23);
    sample.exits();
    assert_eq!(bad(&sample), [(vec![12, 21], 0)]);
}

#[test]
fn a_signal_that_is_lost_and_a_send_behind_a_close() {
    let mut sample = Sample::new();
    let (lock, cond) = (sample.mutex(1), sample.object(ObjectKind::Cond, 2));
    let waiter = sample.go(MAIN, 10);
    sample.does(waiter, 11, Action::Lock, lock);
    sample.request(waiter, 12, Action::CondWait, Some(cond));
    sample.does(waiter, 12, Action::Unlock, lock);
    sample.event(waiter, 12, What::Park(crate::execution::WaitReason::Cond));
    sample.request(MAIN, 20, Action::Signal, Some(cond));
    sample.event(MAIN, 20, What::Ready(waiter));
    sample.complete(MAIN, 20, Action::Signal);
    sample.does(waiter, 12, Action::Lock, lock);
    sample.complete(waiter, 12, Action::CondWait);
    sample.does(waiter, 13, Action::Unlock, lock);
    sample.ends(waiter, 14);
    sample.exits();
    assert_eq!(bad(&sample), [(vec![12], 0)]);

    let mut sample = Sample::new();
    let channel = sample.channel(MAIN, 1, 2);
    let sender = sample.go(MAIN, 10);
    sample.does(sender, 11, Action::Send, channel);
    sample.ends(sender, 12);
    sample.does(MAIN, 20, Action::Close, channel);
    sample.exits();
    assert_eq!(bad(&sample), [(vec![11], 0)]);
}

/// Nobody keeps the wait from being over before the worker has counted itself.
#[test]
fn a_wait_that_is_over_too_early() {
    let mut sample = Sample::new();
    let group = sample.object(ObjectKind::WaitGroup, 1);
    let worker = sample.go(MAIN, 10);
    sample.does(worker, 11, Action::Add, group);
    sample.does(worker, 12, Action::Done, group);
    sample.ends(worker, 13);
    sample.does(MAIN, 20, Action::Wait, group);
    sample.exits();
    assert_eq!(bad(&sample), [(vec![20], 0)]);
}

/// The worker's answer waits for a receiver that may have taken the other case: what it does then is a guess.
#[test]
fn another_case() {
    let mut sample = Sample::new();
    let (answer, stop) = (sample.channel(MAIN, 1, 0), sample.channel(MAIN, 2, 1));
    let worker = sample.go(MAIN, 10);
    let stopper = sample.go(MAIN, 11);
    sample.selects(
        MAIN,
        30,
        &[
            (Action::Receive, Some(answer)),
            (Action::Receive, Some(stop)),
        ],
    );
    sample.event(MAIN, 30, What::Park(crate::execution::WaitReason::Select));
    sample.request(worker, 21, Action::Send, Some(answer));
    sample.event(worker, 21, What::Ready(MAIN));
    sample.complete(worker, 21, Action::Send);
    let (action, case, ok) = (Action::Select, Some(0), true);
    sample.event(MAIN, 30, What::Complete { action, case, ok });
    sample.ends(worker, 22);
    sample.does(stopper, 25, Action::Send, stop);
    sample.ends(stopper, 26);
    sample.exits();
    assert_eq!(bad(&sample), [(vec![21], 2)]);
}

/// What an execution shows has been seen; what differs from it in two lines at one object is tried once.
#[test]
fn orders_that_were_not_seen_are_tried_once() {
    let mut sample = Sample::new();
    let lock = sample.mutex(1);
    for line in [10, 20] {
        let who = sample.go(MAIN, line);
        sample.does(who, line + 1, Action::Lock, lock);
        sample.does(who, line + 2, Action::Unlock, lock);
        sample.ends(who, line + 3);
    }
    sample.exits();
    let mut foresight = Foresight::default();
    foresight.learn(&sample.execution);
    let proposed: Vec<Scenario> = std::iter::from_fn(|| foresight.propose()).collect();
    assert!(proposed.iter().all(|it| !it.is_bad));
    // The other one first; and each behind everything else.
    let mut lengths: Vec<usize> = proposed.iter().map(|it| it.script.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 1, 2]);
    foresight.learn(&sample.execution);
    assert_eq!(foresight.propose(), None);
}

/// Bytes of a ring may say anything.
#[test]
fn what_does_not_fit_together_is_left_alone() {
    let mut sample = Sample::new();
    let (lock, cond) = (sample.mutex(1), sample.object(ObjectKind::Cond, 2));
    let group = sample.object(ObjectKind::WaitGroup, 3);
    sample.does(MAIN, 10, Action::Unlock, lock);
    sample.does(MAIN, 11, Action::Wait, cond);
    sample.does(MAIN, 12, Action::Lock, group);
    sample.complete(MAIN, 13, Action::Select);
    sample.request(MAIN, 14, Action::CondWait, Some(lock));
    sample.exits();
    assert_eq!(bad(&sample), []);
}

/// Orders may become much longer than what was recorded: how deep they are is no matter of the thread's stack.
#[test]
fn a_long_execution_needs_no_deep_stack() {
    let mut sample = Sample::new();
    let mutex = sample.mutex(1);
    let other = sample.go(MAIN, 2);
    for _ in 0..340 {
        sample.does(MAIN, 3, Action::Lock, mutex);
        sample.does(MAIN, 4, Action::Unlock, mutex);
        sample.does(other, 5, Action::Lock, mutex);
        sample.does(other, 6, Action::Unlock, mutex);
    }
    sample.ends(other, 7);
    sample.exits();
    let thread = std::thread::Builder::new().stack_size(192 << 10);
    let found = thread.spawn(move || bad(&sample)).map(|it| it.join());
    assert!(matches!(found, Ok(Ok(ends)) if ends.is_empty()));
}
