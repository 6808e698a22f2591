//! A sample of the zoo: bugs of every class are found, called by their name and line, and nothing is said of the
//! repaired twins. The whole zoo is `cargo xtask campaign go`.

use lockstep_goroutines::judge;
use lockstep_testkit::tools;
use lockstep_testkit::zoo::{self, Built, Kernel};

/// One of each class whose bug many schedules show; pools: one that the package keeps and one that a test forgets; and
/// one that only delays at functions of `sync/atomic` show, and one that hangs on who goes on behind a message.
const SAMPLE: [&str; 16] = [
    "abba_three",
    "anon_shared_error",
    "chan_first_of_many",
    "chan_forgotten_pool",
    "chan_kept_pool",
    "cond_signal_for_many",
    "ctx_shadowed",
    "double_lock_defer_in_loop",
    "livelock_default",
    "lock_group_wait",
    "misuse_reopened",
    "order_listener_late",
    "order_log_after_test",
    "order_ticket_by_functions",
    "rwr_visitor",
    "wg_early_return",
];

/// More runs than any of these ever needed.
const MOST: u64 = 200;

fn check(kernel: &Kernel) {
    let built = Built::of(kernel).expect("a test binary");
    let found = (0..MOST).find_map(|number| {
        let (execution, _) = built.run("TestBug", &zoo::plan(1, number)).expect("a run");
        let judgement = judge(&execution);
        judgement.verdict.is_bug().then_some(judgement)
    });
    let name = &kernel.name;
    let judgement = found.unwrap_or_else(|| panic!("{name}: nothing found in {MOST} runs"));
    let said = format!("{name}: {}: {}", judgement.verdict, judgement.sentence);
    tools::note(&said);
    assert!(kernel.is_right(&judgement), "{said}");
    assert!(kernel.is_cause(judgement.cause.as_ref()), "{said}");
    for number in 0..4 {
        let plan = zoo::plan(2, number);
        let (execution, _) = built.run("TestRepaired", &plan).expect("a run");
        let judgement = judge(&execution);
        assert!(
            !judgement.verdict.is_bug(),
            "{name} repaired: {}: {}",
            judgement.verdict,
            judgement.sentence
        );
    }
}

#[test]
#[ignore = "long: a sample of a campaign"]
fn a_sample_of_every_class() {
    if !tools::require(&["go"]) {
        return;
    }
    let kernels = zoo::kernels().expect("the zoo");
    for name in SAMPLE {
        let kernel = kernels.iter().find(|it| it.name == name);
        check(kernel.expect("a kernel of the sample"));
    }
}

/// What a healthy run shows to be near happens in an execution whose usages take turns in that order.
#[test]
fn what_is_foreseen_is_come_to() {
    if !tools::require(&["go"]) {
        return;
    }
    let kernels = zoo::kernels().expect("the zoo");
    for name in [
        "rwr_visitor",
        "misuse_close_twice",
        "cond_flag_without_lock",
    ] {
        let kernel = kernels.iter().find(|it| it.name == name).expect("a kernel");
        let built = Built::of(kernel).expect("a test binary");
        let mut foreseen = false;
        for seed in 1..=20 {
            built
                .campaign("TestBug", seed, 1, |run| {
                    foreseen |= run.judgement.verdict.is_bug() && !run.plan.script.is_empty();
                })
                .expect("a run");
            if foreseen {
                break;
            }
        }
        assert!(foreseen, "{name}: found by no script");
    }
}

/// The tables and the sources say the same.
#[test]
fn every_kernel_has_a_bug_a_twin_and_a_cause() {
    let kernels = zoo::kernels().expect("the zoo");
    assert!(kernels.len() >= 60);
    let mut classes: Vec<&str> = kernels.iter().map(|it| it.class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes.len(), 13, "{classes:?}");
    for kernel in &kernels {
        let source = kernel.source().expect("a source");
        assert!(!kernel.causes.is_empty(), "{}", kernel.name);
        for test in ["func TestBug(", "func TestRepaired("] {
            assert!(source.contains(test), "{}: no {test}", kernel.name);
        }
        let known = |it: &String| {
            lockstep_goroutines::Verdict::ALL
                .iter()
                .any(|v| v.name() == it)
        };
        assert!(kernel.verdicts.iter().all(known), "{}", kernel.name);
    }
}
