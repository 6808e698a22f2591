use super::*;
use crate::execution::{ObjectKind, WaitReason, What};
use crate::sample::{MAIN, Sample};
use proptest::prelude::*;

fn covered(coverage: &Coverage, line: u32) -> Vec<(Aspect, u64)> {
    coverage
        .requirements()
        .into_iter()
        .filter(|(it, _)| it.usage.place.line == line)
        .map(|(it, count)| (it.aspect, count))
        .collect()
}

/// A receiver that waits (line 5) is met by a sender (line 10) that main made at line 3.
fn meeting() -> Sample {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let child = it.go(MAIN, 3);
    it.meets(
        (MAIN, 5, Action::Receive),
        (child, 10, Action::Send),
        channel,
    );
    it.ends(child, 11);
    it.exits();
    it
}

/// The same, and the sender comes first.
fn meeting_late() -> Sample {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 0);
    let child = it.go(MAIN, 3);
    it.meets(
        (child, 10, Action::Send),
        (MAIN, 5, Action::Receive),
        channel,
    );
    it.ends(child, 11);
    it.exits();
    it
}

#[test]
fn who_waits_is_blocked_and_who_comes_unblocks() {
    let mut coverage = Coverage::of(&meeting().execution);
    assert_eq!(
        covered(&coverage, 5),
        [
            (Aspect::Blocked, 1),
            (Aspect::Unblocking, 0),
            (Aspect::Nop, 0)
        ]
    );
    // Without a buffer, a send cannot be a nop.
    assert_eq!(
        covered(&coverage, 10),
        [(Aspect::Blocked, 0), (Aspect::Unblocking, 1)]
    );
    assert_eq!(coverage.add(&meeting_late().execution), 2);
    assert_eq!(coverage.add(&meeting_late().execution), 0);
    assert_eq!(
        covered(&coverage, 10),
        [(Aspect::Blocked, 2), (Aspect::Unblocking, 1)]
    );
}

#[test]
fn a_lock_blocks_and_is_blocked() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Lock, lock);
    it.waits(MAIN, 5, Action::Lock, lock);
    it.request(child, 12, Action::Unlock, Some(lock));
    it.event(child, 12, What::Ready(MAIN));
    it.complete(child, 12, Action::Unlock);
    it.complete(MAIN, 5, Action::Lock);
    let coverage = Coverage::of(&it.execution);
    assert_eq!(
        covered(&coverage, 10),
        [(Aspect::Blocked, 0), (Aspect::Blocking, 1)]
    );
    assert_eq!(
        covered(&coverage, 5),
        [(Aspect::Blocked, 1), (Aspect::Blocking, 0)]
    );
    assert_eq!(
        covered(&coverage, 12),
        [(Aspect::Unblocking, 1), (Aspect::Nop, 0)]
    );
}

#[test]
fn a_usage_that_never_ended_was_blocked() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 1);
    it.waits(MAIN, 5, Action::Receive, channel);
    let coverage = Coverage::of(&it.execution);
    assert_eq!(covered(&coverage, 5)[0], (Aspect::Blocked, 1));
}

#[test]
fn cases_are_learnt_and_each_has_requirements() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 1);
    let cases = [(Action::Receive, Some(channel)), (Action::Send, None)];
    it.selects(MAIN, 5, &cases);
    it.event(MAIN, 5, What::Park(WaitReason::Select));
    let (action, case, ok) = (Action::Select, Some(0), true);
    it.event(MAIN, 5, What::Complete { action, case, ok });
    let coverage = Coverage::of(&it.execution);
    let all = coverage.requirements();
    let select: Vec<_> = all
        .iter()
        .filter(|it| it.0.usage.action == Action::Select)
        .map(|(it, count)| (it.case.map(|it| it.index), it.aspect, *count))
        .collect();
    assert_eq!(select.len(), 6);
    assert_eq!(select[0], (Some(0), Aspect::Blocked, 1));
    assert!(select[1..].iter().all(|it| it.2 == 0));
}

#[test]
fn the_locks_within_a_cond_wait_are_no_usages() {
    let mut it = Sample::new();
    let (lock, condition) = (it.mutex(10), it.object(ObjectKind::Cond, 11));
    it.does(MAIN, 10, Action::Lock, lock);
    it.request(MAIN, 11, Action::CondWait, Some(condition));
    it.does(MAIN, 11, Action::Unlock, lock);
    it.event(MAIN, 11, What::Park(WaitReason::Cond));
    it.does(MAIN, 11, Action::Lock, lock);
    it.complete(MAIN, 11, Action::CondWait);
    assert_eq!(
        covered(&Coverage::of(&it.execution), 11),
        [(Aspect::Blocked, 1)]
    );
}

#[test]
fn what_the_source_has_and_nobody_reached_is_missing() {
    let mut coverage = Coverage::of(&meeting().execution);
    let total = coverage.totals().total;
    let usage = |line, action| Usage {
        place: Place {
            file: "/src/main.go".to_owned(),
            line,
        },
        action,
    };
    coverage.expect([usage(10, Action::Send), usage(40, Action::Close)]);
    assert_eq!(coverage.totals().total, total + 2);
    assert_eq!(
        covered(&coverage, 40),
        [(Aspect::Unblocking, 0), (Aspect::Nop, 0)]
    );
}

#[test]
fn text_for_people() {
    let mut coverage = Coverage::of(&meeting().execution);
    coverage.expect([Usage {
        place: Place {
            file: "/src/main.go".to_owned(),
            line: 40,
        },
        action: Action::Close,
    }]);
    insta::assert_snapshot!(coverage.report().text(), @r"
    3 of 8 requirements covered (37.5 %) in 1 execution

    main.go:3  go  1 of 1  in main.main
      + done, in 1 execution

    main.go:5  receive  1 of 3  in main.main
      + blocked, in 1 execution
      - unblocking: the receive never found a sender waiting: it always came first, or took from the buffer
      - nop: the receive never just found a value in the buffer, or the channel closed

    main.go:10  send  1 of 2  in main.main.func1, made at main.go:3
      - blocked: the send never had to wait: a receiver or room was always there first
      + unblocking, in 1 execution

    main.go:40  close  0 of 2  never reached
      - unblocking: no goroutine ever came here
      - nop: no goroutine ever came here
    ");
}

proptest! {
    /// The order in which executions are added makes no difference.
    #[test]
    fn merging_knows_no_order(order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut samples = vec![meeting(), meeting_late(), meeting(), meeting_late()];
        for line in [20, 21] {
            let mut it = meeting();
            let other = it.go(MAIN, line);
            let lock = it.mutex(30);
            it.does(other, 30, Action::Lock, lock);
            samples.push(it);
        }
        let (mut straight, mut shuffled) = (Coverage::new(), Coverage::new());
        for (at, sample) in samples.iter().enumerate() {
            straight.add(&sample.execution);
            shuffled.add(&samples[order[at]].execution);
        }
        prop_assert_eq!(straight, shuffled);
    }
}
