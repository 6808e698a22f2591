//! Executions made by hand, and what is said of them.

use super::*;
use crate::execution::{Action, ObjectKind, What};
use crate::sample::{MAIN, Sample};
use proptest::prelude::*;

fn line(judgement: &Judgement) -> u32 {
    judgement.cause.as_ref().map_or(0, |it| it.line)
}

#[test]
fn what_ends_well_passes() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let child = it.go(MAIN, 3);
    it.meets(
        (MAIN, 4, Action::Receive),
        (child, 10, Action::Send),
        channel,
    );
    it.ends(child, 11);
    it.exits();
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
}

#[test]
fn two_locks_in_two_orders() {
    let mut it = Sample::new();
    let (a, b) = (it.mutex(10), it.mutex(20));
    let one = it.go(MAIN, 2);
    let two = it.go(MAIN, 3);
    it.does(one, 10, Action::Lock, a);
    it.does(two, 20, Action::Lock, b);
    it.waits(two, 21, Action::Lock, a);
    it.waits(one, 11, Action::Lock, b);
    it.ends(MAIN, 5);
    it.exits();
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::PartialDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"2 goroutines wait for ever: goroutine 18 waits at main.go:11 for the mutex first used at main.go:20, held by goroutine 19 since main.go:20, which waits at main.go:21 for the mutex first used at main.go:10, held by goroutine 18 since main.go:10: a circle");
    assert_eq!(line(&judgement), 11);
    let related: Vec<u32> = judgement.related.iter().map(|it| it.line).collect();
    assert_eq!(related, [10, 20, 21]);
    assert_eq!(judgement.goroutines[0].waits_for[0].goroutines, [19]);
}

/// What a timer runs has no maker.
#[test]
fn a_callback_waits_for_the_lock_of_whoever_waits_for_it() {
    let mut it = Sample::new();
    let lock = it.mutex(5);
    let done = it.channel(MAIN, 2, 0);
    let callback = it.go(MAIN, 3);
    it.execution.goroutines[callback.0 as usize].parent = None;
    it.does(MAIN, 5, Action::Lock, lock);
    it.waits(callback, 10, Action::Lock, lock);
    it.waits(MAIN, 6, Action::Receive, done);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    assert!(
        judgement
            .sentence
            .ends_with("by main since main.go:5: a circle"),
        "{}",
        judgement.sentence
    );
}

#[test]
fn a_sender_that_keeps_the_lock_its_receiver_needs() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let channel = it.channel(MAIN, 2, 0);
    let sender = it.go(MAIN, 3);
    it.does(sender, 10, Action::Lock, lock);
    it.waits(sender, 11, Action::Send, channel);
    it.waits(MAIN, 5, Action::Lock, lock);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:5 for the mutex first used at main.go:10, held by goroutine 18 since main.go:10, which waits at main.go:11 to send to the channel made at main.go:2, and nobody is there to receive from it");
    assert_eq!(line(&judgement), 11);
}

#[test]
fn a_sender_whose_receiver_went_away_is_a_leak() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let sender = it.go(MAIN, 3);
    it.waits(sender, 11, Action::Send, channel);
    it.ends(MAIN, 6);
    it.exits();
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Leak);
    insta::assert_snapshot!(judgement.sentence, @"a goroutine is left behind for ever: goroutine 18 waits at main.go:11 to send to the channel made at main.go:2, and nobody is there to receive from it");
    // The collector's proof is told, and holds where records were lost.
    it.execution.lost = 1;
    assert_eq!(judge(&it.execution).verdict, Verdict::Inconclusive);
    it.execution.proven_leaks = Some(vec![sender]);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Leak);
    assert!(judgement.goroutines[0].proven);
    let head = "a goroutine is left behind for ever, proven unreachable: ";
    assert!(judgement.sentence.starts_with(head));
    it.execution.lost = 0;
    // Who may receive yet keeps it from being one.
    it.execution.proven_leaks = None;
    it.go(MAIN, 4);
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
}

#[test]
fn a_test_waits_for_its_subtests() {
    let mut it = Sample::new();
    let test = it.go(MAIN, 2);
    let sub = it.go(test, 3);
    for id in [test, sub] {
        it.execution.goroutines[id.0 as usize].entry = "testing.tRunner".to_owned();
    }
    it.execution.test = Some(test);
    let channel = it.channel(sub, 10, 0);
    it.event(test, 0, What::Park(WaitReason::Receive));
    it.waits(sub, 11, Action::Receive, channel);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    assert_eq!(line(&judgement), 11);
    assert!(judgement.sentence.contains("for its subtests"));
}

#[test]
fn a_context_that_has_a_deadline_is_no_leak() {
    let mut it = Sample::new();
    let done = it.channel(MAIN, 10, 0);
    // Package context makes it, for whoever asks first.
    it.execution.events[0].site = None;
    let child = it.go(MAIN, 3);
    it.waits(child, 10, Action::Receive, done);
    it.ends(MAIN, 5);
    it.exits();
    assert_eq!(judge(&it.execution).verdict, Verdict::Leak);
    it.execution.timers = 1;
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
    // A function of the program that is to run yet may do anything.
    (it.execution.timers, it.execution.functions) = (0, 1);
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
}

#[test]
fn a_timer_that_was_stopped_never_strikes() {
    let mut it = Sample::new();
    let timer = it.object(ObjectKind::Timer, 4);
    let child = it.go(MAIN, 3);
    it.waits(child, 10, Action::Receive, timer);
    it.ends(MAIN, 5);
    it.exits();
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
    it.execution.clock = false;
    assert_eq!(judge(&it.execution).verdict, Verdict::Leak);
}

#[test]
fn who_locks_twice_waits_for_itself() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    it.does(MAIN, 10, Action::Lock, lock);
    it.waits(MAIN, 11, Action::Lock, lock);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:11 for the mutex first used at main.go:10, held by itself since main.go:10");
    assert_eq!(line(&judgement), 11);
}

#[test]
fn a_lock_that_was_never_given_back_points_at_the_lock() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Lock, lock);
    it.ends(child, 12);
    it.waits(MAIN, 5, Action::Lock, lock);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:5 for the mutex first used at main.go:10, held by goroutine 18 since main.go:10, which has ended");
    assert_eq!(line(&judgement), 10);
}

#[test]
fn once_within_itself_waits_for_itself() {
    let mut it = Sample::new();
    let once = it.object(ObjectKind::Once, 10);
    it.request(MAIN, 10, Action::Once, Some(once));
    it.request(MAIN, 11, Action::Once, Some(once));
    it.event(MAIN, 11, What::Park(WaitReason::Mutex));
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:11 for the once first used at main.go:10, run by itself since main.go:10");
    assert_eq!(line(&judgement), 11);
}

#[test]
fn who_runs_the_function_of_a_once_is_waited_for() {
    let mut it = Sample::new();
    let once = it.object(ObjectKind::Once, 10);
    let channel = it.channel(MAIN, 2, 0);
    let runner = it.go(MAIN, 3);
    it.request(runner, 20, Action::Once, Some(once));
    it.request(MAIN, 10, Action::Once, Some(once));
    it.event(MAIN, 10, What::Park(WaitReason::Mutex));
    it.execution.end = End::TimedOut;
    // It may yet come back.
    assert!(!judge(&it.execution).verdict.is_bug());
    it.waits(runner, 21, Action::Receive, channel);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    assert_eq!(line(&judgement), 21);
}

#[test]
fn who_serves_the_process_is_not_left_behind() {
    let mut it = Sample::new();
    let early = it.go(MAIN, 2);
    let test = it.go(MAIN, 3);
    it.execution.goroutines[test.0 as usize].entry = "testing.tRunner".to_owned();
    it.execution.test = Some(test);
    let tasks = it.channel(test, 4, 1);
    let worker = it.go(test, 5);
    it.does(test, 6, Action::Send, tasks);
    it.does(worker, 10, Action::Receive, tasks);
    it.waits(worker, 10, Action::Receive, tasks);
    it.ends(test, 7);
    let wakes = it.channel(MAIN, 8, 0);
    it.waits(early, 20, Action::Receive, wakes);
    it.ends(MAIN, 9);
    it.exits();
    // Who was there before the test is none of its.
    let left = |it: &Sample| -> Vec<u64> {
        let judgement = judge(&it.execution);
        judgement.goroutines.iter().map(|it| it.id).collect()
    };
    let number = |it: &Sample, id: GoroutineId| it.execution.goroutines[id.0 as usize].number;
    assert_eq!(left(&it), [number(&it, worker)]);
    // What a variable leads to, and has served, is kept for good.
    it.execution.proven_leaks = Some(Vec::new());
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
    // Whom the lost records are about is not known.
    it.execution.lost = 1;
    assert_eq!(judge(&it.execution).verdict, Verdict::Inconclusive);
    it.execution.lost = 0;
    // A proof is a proof.
    it.execution.proven_leaks = Some(vec![early]);
    assert_eq!(left(&it), [number(&it, early)]);
    // Nor is known of whom nobody saw the creation.
    it.execution.proven_leaks = Some(Vec::new());
    let made = What::Create(early);
    it.execution.events.retain(|event| event.what != made);
    assert_eq!(left(&it), [number(&it, early)]);
}

#[test]
fn a_pool_that_counts_at_a_group_is_what_is_waited_for() {
    let mut it = Sample::new();
    let queue = it.channel(MAIN, 2, 0);
    let worker = it.go(MAIN, 3);
    let group = it.object(ObjectKind::WaitGroup, 4);
    it.does(MAIN, 4, Action::Add, group);
    it.does(worker, 10, Action::Add, group);
    it.waits(worker, 11, Action::Send, queue);
    it.waits(MAIN, 5, Action::Wait, group);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    assert_eq!(line(&judgement), 11);
}

#[test]
fn a_reader_behind_a_writer_behind_the_reader() {
    let mut it = Sample::new();
    let lock = it.object(ObjectKind::RwMutex, 10);
    let writer = it.go(MAIN, 3);
    it.does(MAIN, 10, Action::RLock, lock);
    it.waits(writer, 20, Action::Lock, lock);
    it.waits(MAIN, 11, Action::RLock, lock);
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:11 to read-lock the rwmutex first used at main.go:10, behind a writer that waits for it, goroutine 18; goroutine 18 waits at main.go:20 for the rwmutex first used at main.go:10, read-locked by main since main.go:10: a circle");
    assert_eq!(line(&judgement), 11);
}

#[test]
fn a_test_that_goes_by_the_clock_may_fail_for_the_delays() {
    let mut it = Sample::new();
    it.request(MAIN, 4, Action::Sleep, None);
    it.event(MAIN, 4, What::Park(WaitReason::Sleep));
    it.complete(MAIN, 4, Action::Sleep);
    it.ends(MAIN, 5);
    it.exits();
    it.execution.end = End::Exited(1);
    it.execution.output.failed_tests = vec!["TestTimes".to_owned()];
    let verdict = |it: &Sample| judge(&it.execution).verdict;
    assert_eq!(verdict(&it), Verdict::Fail);
    it.execution.stretched = 10;
    assert_eq!(verdict(&it), Verdict::Fail);
    it.execution.stretched = 1000;
    assert_eq!(verdict(&it), Verdict::Inconclusive);
    assert!(judge(&it.execution).asks_for_calm);
}

#[test]
fn the_function_of_a_timer_goes_by_the_clock() {
    let mut it = Sample::new();
    let timer = it.go(MAIN, 3);
    it.ends(timer, 4);
    it.ends(MAIN, 5);
    it.exits();
    it.execution.end = End::Exited(1);
    it.execution.output.failed_tests = vec!["TestAck".to_owned()];
    it.execution.stretched = 1_000_000;
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
    for event in &mut it.execution.events {
        if matches!(event.what, What::Create(_)) {
            event.goroutine = None;
        }
    }
    assert!(judge(&it.execution).asks_for_calm);
}

/// Of delays a test by itself can see the time they took, and nothing else.
#[test]
fn a_test_without_others_fails_for_no_schedule() {
    let mut it = Sample::new();
    let lock = it.mutex(3);
    it.does(MAIN, 3, Action::Lock, lock);
    it.does(MAIN, 4, Action::Unlock, lock);
    it.ends(MAIN, 5);
    it.exits();
    it.execution.test = Some(MAIN);
    it.execution.end = End::Exited(1);
    it.execution.output.failed_tests = vec!["TestQuick".to_owned()];
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
    it.execution.stretched = 10;
    assert!(judge(&it.execution).asks_for_calm);
    let friend = it.go(MAIN, 3);
    it.ends(friend, 5);
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
}

#[test]
fn main_may_wait_for_the_runtime() {
    let mut it = Sample::new();
    it.event(MAIN, 0, What::Park(WaitReason::Receive));
    it.execution.end = End::TimedOut;
    assert_eq!(judge(&it.execution).verdict, Verdict::Inconclusive);
    it.execution.end = End::Quiescent;
    assert_eq!(judge(&it.execution).verdict, Verdict::GlobalDeadlock);
}

#[test]
fn somebody_else_may_unlock() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    it.does(MAIN, 10, Action::Lock, lock);
    let friend = it.go(MAIN, 3);
    it.waits(MAIN, 11, Action::Lock, lock);
    it.execution.end = End::TimedOut;
    assert_eq!(judge(&it.execution).verdict, Verdict::Inconclusive);
    it.ends(friend, 20);
    assert_eq!(judge(&it.execution).verdict, Verdict::GlobalDeadlock);
}

#[test]
fn a_wait_group_that_counts_too_much() {
    let mut it = Sample::new();
    let group = it.object(ObjectKind::WaitGroup, 2);
    it.does(MAIN, 2, Action::Add, group);
    it.does(MAIN, 2, Action::Add, group);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Done, group);
    it.ends(child, 11);
    it.waits(MAIN, 5, Action::Wait, group);
    insta::assert_snapshot!(judge(&it.execution).sentence, @"every goroutine waits for ever: main waits at main.go:5 for the wait group first used at main.go:2 to come to 0, which counts 1, and nobody is left to call Done");
}

#[test]
fn main_for_ever_while_a_clock_runs_is_a_partial_deadlock() {
    let mut it = Sample::new();
    let clock = it.go(MAIN, 3);
    let channel = it.channel(MAIN, 4, 0);
    it.waits(MAIN, 5, Action::Receive, channel);
    it.event(clock, 20, What::Park(WaitReason::Sleep));
    it.execution.end = End::TimedOut;
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::PartialDeadlock);
    assert_eq!(line(&judgement), 5);
}

#[test]
fn a_time_limit_alone_is_no_verdict() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let worker = it.go(MAIN, 3);
    it.waits(MAIN, 5, Action::Receive, channel);
    it.execution.end = End::TimedOut;
    assert_eq!(judge(&it.execution).verdict, Verdict::Inconclusive);
    let steps = it.object(ObjectKind::Channel { capacity: 1 }, 20);
    for _ in 0..100 {
        it.does(worker, 20, Action::Send, steps);
        it.does(worker, 21, Action::Receive, steps);
    }
    assert_eq!(judge(&it.execution).verdict, Verdict::Slow);
}

#[test]
fn rounds_without_progress_are_a_livelock() {
    let mut it = Sample::new();
    let (a, b) = (it.mutex(10), it.mutex(20));
    let other = it.go(MAIN, 3);
    let spin = |it: &mut Sample, rounds| {
        for _ in 0..rounds {
            it.does(MAIN, 10, Action::Lock, a);
            it.request(MAIN, 11, Action::TryLock, Some(b));
            let (action, case, ok) = (Action::TryLock, None, false);
            it.event(MAIN, 11, What::Complete { action, case, ok });
            it.does(MAIN, 12, Action::Unlock, a);
            it.does(other, 20, Action::Lock, b);
            it.does(other, 22, Action::Unlock, b);
        }
    };
    spin(&mut it, 300);
    it.execution.end = End::TimedOut;
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Livelock);
    insta::assert_snapshot!(judgement.sentence, @"main and goroutine 18 go round main.go:11, main.go:10, main.go:20, 150 times, and nothing comes of it");
    // So are they where every round looks like the one before, but not where one of them counts.
    let prints = |it: &Sample, print: fn(usize) -> u32| {
        let ends = it.execution.events.iter().enumerate();
        let over = ends.filter(|(_, it)| matches!(it.what, What::Complete { .. }));
        over.map(|(at, _)| (at, print(at))).collect()
    };
    it.execution.prints = prints(&it, |_| 7);
    assert_eq!(judge(&it.execution).verdict, Verdict::Livelock);
    it.execution.prints = prints(&it, |at| at as u32);
    assert_eq!(judge(&it.execution).verdict, Verdict::Slow);
    it.execution.prints.clear();
    // One value passed on, and it is only slow.
    let channel = it.channel(MAIN, 4, 1);
    it.does(other, 5, Action::Send, channel);
    assert_eq!(judge(&it.execution).verdict, Verdict::Slow);
}

#[test]
fn a_second_close_names_the_first() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Close, channel);
    it.request(MAIN, 5, Action::Close, Some(channel));
    it.event(MAIN, 5, What::Panic);
    it.execution.end = End::Exited(2);
    it.execution.output.fatal = Some("panic: close of closed channel".to_owned());
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Crash);
    insta::assert_snapshot!(judgement.sentence, @"main crashed: panic: close of closed channel, at main.go:5; goroutine 18 had closed it at main.go:10");
    assert_eq!(line(&judgement), 5);
}

#[test]
fn a_condition_gives_its_lock_back() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let condition = it.object(ObjectKind::Cond, 11);
    let sleeper = it.go(MAIN, 3);
    it.does(sleeper, 10, Action::Lock, lock);
    it.request(sleeper, 11, Action::CondWait, Some(condition));
    it.does(sleeper, 11, Action::Unlock, lock);
    it.event(sleeper, 11, What::Park(WaitReason::Cond));
    it.does(MAIN, 5, Action::Lock, lock);
    it.does(MAIN, 6, Action::Unlock, lock);
    it.ends(MAIN, 7);
    it.exits();
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Leak);
    insta::assert_snapshot!(judgement.sentence, @"a goroutine is left behind for ever: goroutine 18 waits at main.go:11 for a signal of the condition first used at main.go:11, and nobody is there to signal it");
}

#[test]
fn who_waits_for_the_clock_is_not_left_behind() {
    let mut it = Sample::new();
    let timer = it.object(ObjectKind::Timer, 10);
    let channel = it.channel(MAIN, 2, 0);
    let child = it.go(MAIN, 3);
    it.selects(
        child,
        10,
        &[
            (Action::Receive, Some(channel)),
            (Action::Receive, Some(timer)),
        ],
    );
    it.event(child, 10, What::Park(WaitReason::Select));
    it.ends(MAIN, 4);
    it.exits();
    assert_eq!(judge(&it.execution).verdict, Verdict::Pass);
}

proptest! {
    /// Whatever stands in an execution, judging it ends, and says what it said.
    #[test]
    fn any_execution_is_judged(
        steps in prop::collection::vec((0u32..4, 0u8..12, 0u32..4, 1u32..9), 0..80),
        main_ended: bool,
        end in 0u8..4,
    ) {
        let mut it = Sample::new();
        let objects = [
            it.mutex(1),
            it.object(ObjectKind::RwMutex, 2),
            it.channel(MAIN, 3, 0),
            it.object(ObjectKind::WaitGroup, 4),
        ];
        let actions = [
            Action::Lock, Action::Unlock, Action::RLock, Action::RUnlock, Action::Send,
            Action::Receive, Action::Close, Action::Add, Action::Done, Action::Wait,
        ];
        for _ in 0..3 {
            it.go(MAIN, 5);
        }
        for (who, what, object, line) in steps {
            let (who, object) = (GoroutineId(who), objects[object as usize]);
            match what {
                10 => it.event(who, line, What::Park(WaitReason::Mutex)),
                11 => it.ends(who, line),
                action => it.does(who, line, actions[action as usize], object),
            }
        }
        it.execution.main_ended = main_ended;
        it.execution.end = [End::Exited(0), End::Quiescent, End::TimedOut, End::Signalled(9)][end as usize].clone();
        prop_assert_eq!(judge(&it.execution), judge(&it.execution));
    }
}

#[test]
fn a_second_unlock_names_the_first() {
    let mut it = Sample::new();
    let lock = it.mutex(1);
    it.does(MAIN, 10, Action::Lock, lock);
    it.does(MAIN, 14, Action::Unlock, lock);
    it.request(MAIN, 12, Action::Unlock, Some(lock));
    it.execution.end = End::Exited(2);
    it.execution.output.fatal = Some("fatal error: sync: unlock of unlocked mutex".to_owned());
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Crash);
    insta::assert_snapshot!(judgement.sentence, @"main crashed: fatal error: sync: unlock of unlocked mutex, at main.go:12; main had given it back at main.go:14");
    assert_eq!(judgement.related.len(), 1);
}

/// The race detector reports the misuse of a wait group without the lines of `Add` and `Wait`.
#[test]
fn a_late_add_is_told_by_its_lines() {
    let mut it = Sample::new();
    let group = it.object(ObjectKind::WaitGroup, 1);
    let server = it.go(MAIN, 3);
    it.does(server, 22, Action::Add, group);
    it.does(MAIN, 41, Action::Wait, group);
    let others = it.object(ObjectKind::WaitGroup, 5);
    it.does(MAIN, 50, Action::Wait, others);
    it.exits();
    let access = |kind: &str, by: &str| {
        format!(
            "{kind} at 0x00c00001aa08 by {by}:\n  runtime.race{}()\n      <autogenerated>:1 +0x1e\n  main.f()\n      /src/main.go:3 +0x1e\n\n",
            kind.to_lowercase()
        )
    };
    let report = access("Write", "main goroutine") + &access("Read", "goroutine 18");
    it.execution.output.races = vec![report];
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Race);
    insta::assert_snapshot!(judgement.sentence, @"data race: goroutine 18 adds to the wait group first used at main.go:1 at main.go:22 while main may already wait for it at main.go:41");
    assert_eq!(line(&judgement), 22);
    // Who adds and waits may wait again; that somebody else waited before is told.
    it.does(server, 23, Action::Wait, group);
    it.does(server, 24, Action::Wait, group);
    let judgement = judge(&it.execution);
    assert!(
        judgement
            .sentence
            .ends_with("main may already wait for it at main.go:41")
    );
    // Another race is told as the detector has it.
    let other = it.execution.output.races[0].replace("runtime.race", "main.race");
    it.execution.output.races = vec![other];
    assert_eq!(line(&judge(&it.execution)), 3);
}

/// The detector's numbers are its own: goroutines are told apart by where they were made.
#[test]
fn who_races_is_told_by_where_it_was_made() {
    let mut it = Sample::new();
    let writer = it.go(MAIN, 3);
    it.go(MAIN, 9);
    it.ends(writer, 5);
    it.exits();
    let report = |made: u32| {
        format!(
            "WARNING: DATA RACE\nWrite at 0x00c00001aa08 by goroutine 19:\n  main.f()\n      /src/main.go:5 +0x1e\n\n\
             Previous read at 0x00c00001aa08 by main goroutine:\n  main.main()\n      /src/main.go:7 +0x1e\n\n\
             Goroutine 19 (running) created at:\n  sync.(*WaitGroup).Go()\n      /go/src/sync/waitgroup.go:238 +0x1e\n  main.main()\n      /src/main.go:{made} +0x1e\n"
        )
    };
    it.execution.output.races = vec![report(3)];
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"data race: write by goroutine 18 at main.go:5 and read by main at main.go:7");
    assert_eq!(judgement.goroutines.len(), 2);
    // Made where several were made: which of them is not known.
    it.go(MAIN, 9);
    it.go(MAIN, 9);
    it.execution.output.races = vec![report(9)];
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"data race: write by a goroutine made at main.go:9 at main.go:5 and read by main at main.go:7");
    assert_eq!(judgement.goroutines.len(), 1);
    // What a wait group makes is reported without who called it.
    it.execution.goroutines[3].entry = "sync.(*WaitGroup).Go.func1".to_owned();
    let report = report(3).replace("/src/main.go:3 ", "/go/src/testing/testing.go:2036 ");
    it.execution.output.races = vec![report];
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"data race: write by goroutine 20 at main.go:5 and read by main at main.go:7");
}

/// What only the standard library made is told by which of its packages.
#[test]
fn who_races_may_be_the_standard_library_s() {
    let mut it = Sample::new();
    it.exits();
    let access = "at 0x00c00001aa08 by goroutine";
    let made = |by: &str, at: &str| {
        format!(
            "WARNING: DATA RACE\nWrite {access} 8:\n  main.f()\n      /src/main.go:5 +0x1e\n\n\
             Previous read {access} 9:\n  main.f()\n      /src/main.go:7 +0x1e\n\n\
             Goroutine 8 (running) created at:\n  {by}()\n      /go/src/{at} +0x1e\n\n\
             Goroutine 9 (running) created at:\n  {by}()\n      /go/src/{at} +0x1e\n"
        )
    };
    let mut said = |report: String| {
        it.execution.output.races = vec![report];
        judge(&it.execution).sentence
    };
    insta::assert_snapshot!(said(made("net/http.(*Server).Serve", "net/http/server.go:3464")), @"data race: write by a goroutine of net/http (made at server.go:3464) at main.go:5 and read by another goroutine made there at main.go:7");
    insta::assert_snapshot!(said(made("time.goFunc", "time/sleep.go:215")), @"data race: write by the function of a timer at main.go:5 and read by the function of a timer at main.go:7");
}

/// Who waits to be signalled has signalled before, and has not ended.
#[test]
fn who_waits_itself_is_not_said_to_have_ended() {
    let mut it = Sample::new();
    let condition = it.object(ObjectKind::Cond, 8);
    let early = it.go(MAIN, 3);
    it.does(early, 9, Action::Signal, condition);
    it.ends(early, 10);
    it.does(MAIN, 5, Action::Signal, condition);
    it.waits(MAIN, 6, Action::CondWait, condition);
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:6 for a signal of the condition first used at main.go:8, and nobody else is left to signal it (goroutine 18 at main.go:9 did, and has ended)");
}

/// A panic that a deadline led to, when the schedule held the test up: the program's own is an assertion, what the
/// runtime forbids is not.
#[test]
fn an_own_panic_after_a_deadline_may_be_the_schedule_s() {
    let mut it = Sample::new();
    let done = it.channel(MAIN, 2, 0);
    let timer = it.go(MAIN, 3);
    it.execution.goroutines[timer.0 as usize].entry = "context.WithDeadlineCause.func2".to_owned();
    it.does(timer, 3, Action::Close, done);
    it.event(MAIN, 5, What::Panic);
    it.execution.end = End::Exited(2);
    let mut verdict = |stretched, fatal: &str| {
        it.execution.stretched = stretched;
        it.execution.output.fatal = Some(fatal.to_owned());
        judge(&it.execution).verdict
    };
    let own = "panic: released more than held";
    assert_eq!(verdict(0, own), Verdict::Crash);
    assert_eq!(verdict(10_000, own), Verdict::Inconclusive);
    let never = [
        "panic: close of closed channel",
        "panic: assignment to entry in nil map",
        "panic: interface conversion: interface {} is nil, not string",
        "panic: runtime error: index out of range [3] with length 3",
    ];
    for said in never {
        assert_eq!(verdict(10_000, said), Verdict::Crash, "{said}");
    }
    // What is never right needs no second run that does the same.
    let mut is_own = |fatal: &str| {
        it.execution.stretched = 0;
        it.execution.output.fatal = Some(fatal.to_owned());
        is_own_word(&judge(&it.execution), &it.execution)
    };
    assert!(is_own(own));
    assert!(!never.into_iter().any(is_own));
}

#[test]
fn a_test_that_looks_at_goroutines_may_fail_for_the_delays() {
    let mut it = Sample::new();
    it.ends(MAIN, 5);
    it.exits();
    it.execution.end = End::Exited(1);
    it.execution.output.failed_tests = vec!["TestStacks".to_owned()];
    it.execution.stretched = 1000;
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
    it.execution.looked = true;
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert!(judgement.asks_for_calm);
    it.execution.stretched = 0;
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
}

#[test]
fn a_test_that_needs_a_network_is_no_bug() {
    let mut it = Sample::new();
    it.ends(MAIN, 5);
    it.exits();
    it.execution.end = End::Exited(1);
    it.execution.output.failed_tests = vec!["TestFetch".to_owned()];
    it.execution.output.failures = vec!["a_test.go:3: lookup example.com: no such host".to_owned()];
    let judgement = judge(&it.execution);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert!(judgement.lacks_network);
    assert_eq!(
        judgement.sentence,
        "TestFetch failed, at a_test.go:3: lookup example.com: no such host; it needs a network, and found none"
    );
    let failures = &mut it.execution.output.failures;
    failures.insert(0, "a_test.go:2: 3 is not 4".to_owned());
    assert_eq!(judge(&it.execution).verdict, Verdict::Fail);
}

/// The line of the loop, not of what a round of it calls.
#[test]
fn a_livelock_is_said_where_the_loop_is() {
    let mut it = Sample::new();
    let a = it.mutex(1);
    for _ in 0..300 {
        it.does(MAIN, 10, Action::Lock, a);
        it.does(MAIN, 11, Action::Unlock, a);
        it.does(MAIN, 20, Action::Lock, a);
        it.does(MAIN, 21, Action::Unlock, a);
    }
    it.execution.end = End::TimedOut;
    assert_eq!(line(&judge(&it.execution)), 10);
    let inner = it.site(10);
    it.execution.sites[inner.0 as usize].function = "main.helper".to_owned();
    let outer = it.site(20);
    it.execution.goroutines[0].stack = vec![inner, outer];
    assert_eq!(line(&judge(&it.execution)), 20);
}

#[test]
fn who_would_signal_may_be_kept_off_by_who_waits_for_it() {
    let mut it = Sample::new();
    let (outer, inner) = (it.mutex(10), it.mutex(11));
    let condition = it.object(ObjectKind::Cond, 12);
    // One that came to nothing, before.
    it.does(MAIN, 2, Action::Signal, condition);
    let waiter = it.go(MAIN, 3);
    let signaller = it.go(MAIN, 4);
    it.does(waiter, 20, Action::Lock, outer);
    it.does(waiter, 21, Action::Lock, inner);
    it.request(waiter, 22, Action::CondWait, Some(condition));
    it.does(waiter, 22, Action::Unlock, inner);
    it.event(waiter, 22, What::Park(WaitReason::Cond));
    it.waits(signaller, 30, Action::Lock, outer);
    it.waits(MAIN, 5, Action::Lock, outer);
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:5 for the mutex first used at main.go:10, held by goroutine 18 since main.go:20, which waits at main.go:22 for a signal of the condition first used at main.go:12, and main could signal it; goroutine 19, which may know it, waits at main.go:30 for the mutex first used at main.go:10, held by goroutine 18 since main.go:20: a circle");
}

#[test]
fn what_fills_a_channel_and_who_else_waits_for_room_is_told() {
    let mut it = Sample::new();
    let slots = it.channel(MAIN, 2, 2);
    let group = it.object(ObjectKind::WaitGroup, 3);
    it.request(MAIN, 3, Action::Add, Some(group));
    it.complete(MAIN, 3, Action::Add);
    let workers = [it.go(MAIN, 4), it.go(MAIN, 4)];
    for it_is in workers {
        it.does(it_is, 20, Action::Send, slots);
    }
    for it_is in workers {
        it.waits(it_is, 21, Action::Send, slots);
    }
    it.waits(MAIN, 5, Action::Wait, group);
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:5 for the wait group first used at main.go:3 to come to 0, which counts 1; goroutine 18 waits at main.go:21 to send to the channel made at main.go:2, full of what goroutine 18 sent at main.go:20 and goroutine 19 sent at main.go:20, for which goroutine 19 waits, too, and nobody else is there to receive from it");
}

#[test]
fn who_waits_for_something_else_of_which_the_other_may_know_is_told() {
    let mut it = Sample::new();
    let (one, other) = (it.channel(MAIN, 2, 0), it.channel(MAIN, 3, 0));
    let got = it.channel(MAIN, 4, 0);
    let (left, right) = (it.go(MAIN, 5), it.go(MAIN, 6));
    it.waits(left, 20, Action::Send, one);
    it.waits(right, 20, Action::Send, other);
    it.waits(MAIN, 7, Action::Receive, got);
    let judgement = judge(&it.execution);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:7 to receive from the channel made at main.go:4, and goroutine 18 or goroutine 19 could send to it or close it; goroutine 18 waits at main.go:20 to send to the channel made at main.go:2, and nobody receives from it; goroutine 19, which may know it, waits at main.go:20 to send to the channel made at main.go:3, and nobody is there to receive from it");
}

/// Of a program that had done nothing for long: both ends of its connections are its own, or not.
#[test]
fn silence_at_the_limit_tells_where_nothing_can_come_from_outside() {
    let hung = |outside: bool, clock: bool, told: u64| {
        let mut it = Sample::new();
        let lock = it.mutex(10);
        let server = it.go(MAIN, 3);
        let handler = it.go(server, 4);
        it.does(handler, 20, Action::Lock, lock);
        it.ends(handler, 21);
        let second = it.go(server, 4);
        it.waits(second, 20, Action::Lock, lock);
        it.event(server, 30, What::Park(WaitReason::Io));
        it.event(MAIN, 5, What::Park(WaitReason::Io));
        let stands = it.site(5);
        let execution = &mut it.execution;
        execution.goroutines[0].stack = vec![stands];
        (execution.end, execution.outside) = (End::TimedOut, outside);
        (execution.clock, execution.told) = (clock, told);
        judge(execution)
    };
    let judgement = hung(false, false, 8_000_000_000);
    assert_eq!(judgement.verdict, Verdict::GlobalDeadlock);
    insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: goroutine 20 waits at main.go:20 for the mutex first used at main.go:10, held by goroutine 19 since main.go:20, which has ended; main waits at main.go:5 for the outside; nothing moved for 8.0 s, and the network leads nowhere but into the program itself");
    // Another process, a deadline, or not for long.
    let judgement = hung(true, false, 8_000_000_000);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    insta::assert_snapshot!(judgement.sentence, @"the time limit came while main waited for the outside at main.go:5, and nothing had moved for 8.0 s");
    for (outside, clock, told) in [(false, true, 8_000_000_000), (false, false, 900_000_000)] {
        assert_eq!(hung(outside, clock, told).verdict, Verdict::Inconclusive);
    }
}
