//! Signals that land anywhere, also inside the recorder: the trace stays whole, and what it does not
//! show is counted.

use lockstep_testkit::{Hazard, Recipe};

/// Four threads, 400 trees of 63 calls each, and as many handlers of 7.
#[test]
fn threads_that_signal_each_other() {
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2"] {
            let recipe = Recipe::new("c/thread_storm.c")
                .compiler(compiler)
                .flag(level);
            let Some(unharmed) = Hazard::new(&recipe).unharmed() else {
                continue;
            };
            unharmed.ended();
            let trees = unharmed.calls("tree");
            if level == "-O0" {
                assert!(
                    trees as u64 + unharmed.lost() >= 4 * 400 * 63,
                    "{trees} trees"
                );
            }
            assert!(unharmed.calls("handle") as u64 + unharmed.lost() > 0);
        }
    }
}

#[test]
fn the_same_in_every_image() {
    let storm = Hazard::new(&Recipe::new("c/thread_storm.c").flag("-O1"));
    let _ = storm.options(&["--images", "all"]).unharmed();
}

/// The recorder does not expect these signals, and blocks none for their handlers' sake.
#[test]
fn signals_that_threads_seldom_send() {
    for level in ["-O0", "-O2"] {
        let recipe = Recipe::new("c/thread_storm.c").flags(&["-DFIRST=SIGSEGV", "-DSECOND=SIGBUS"]);
        let Some(unharmed) = Hazard::new(&recipe.flag(level)).unharmed() else {
            continue;
        };
        unharmed.ended();
        let (trees, handlers) = (unharmed.calls("tree"), unharmed.calls("handle"));
        if level == "-O0" {
            assert!(
                trees as u64 + unharmed.lost() >= 4 * 400 * 63,
                "{trees} trees"
            );
        }
        assert!(handlers > 0, "no handler that ran outside of an event");
    }
    for kind in ["plain", "alternate", "jump"] {
        let recipe = Recipe::new("c/signal_storm.c").flags(&["-DSIGNAL=SIGSEGV", "-O1"]);
        let Some(unharmed) = Hazard::new(&recipe).arguments(&[kind]).unharmed() else {
            continue;
        };
        let (leaves, handlers) = (unharmed.calls("leaf"), unharmed.calls("handle"));
        if kind == "jump" {
            // A jump out of the slow path is the end of what is recorded of the thread.
            assert!(handlers as u64 + unharmed.lost() >= 200, "{handlers}");
        } else {
            assert!(leaves as u64 + unharmed.lost() >= 8191, "{leaves} leaves");
        }
    }
}

/// A handler that jumps may cut a routine short anywhere: every attempt begins as deep as the first.
#[test]
fn handlers_that_jump() {
    for signal in ["SIGALRM", "SIGSEGV"] {
        for level in ["-O0", "-O1", "-O2"] {
            let define = format!("-DSIGNAL={signal}");
            let recipe = Recipe::new("c/signal_storm.c").flags(&[&define, level]);
            let Some(unharmed) = Hazard::new(&recipe).arguments(&["jump"]).unharmed() else {
                continue;
            };
            let depths = unharmed.depths("__sigsetjmp");
            assert!(depths.len() <= 1, "{signal} {level}: {depths:?}");
        }
    }
}

/// Signals land where the return of a call is found that nobody saw, too.
#[test]
fn calls_whose_returns_nobody_sees() {
    for level in ["-O0", "-O2"] {
        let recipe = Recipe::new("c/signal_storm.c").flags(&["-DUNWINDS", level]);
        for kind in ["plain", "alternate", "jump"] {
            let hazard = Hazard::new(&recipe).arguments(&[kind]);
            let Some(unharmed) = hazard.unharmed() else {
                continue;
            };
            let (leaves, work) = (unharmed.calls("leaf"), unharmed.calls("strlen"));
            assert!(leaves as u64 + unharmed.lost() >= 8191, "{leaves} leaves");
            assert!(work as u64 + unharmed.lost() >= 8191, "{work} calls");
            let inferred = unharmed.run.processes[0].threads[0].inferred;
            assert!(inferred >= work as u64, "{inferred} of {work} calls");
            let depths = unharmed.depths("__sigsetjmp");
            assert!(depths.len() <= 1, "{kind} {level}: {depths:?}");
        }
    }
}

/// The handler finds the program's own addresses, and the program goes on where it says.
#[test]
fn faults_in_moved_instructions() {
    let kinds = [
        "skip", "retry", "fixup", "trap", "plain", "nested", "former", "timer",
    ];
    for flags in [&["-O1"][..], &["-O2", "-no-pie", "-fno-pie"]] {
        let hazard = Hazard::new(&Recipe::new("c/fault_address.c").flags(flags));
        for kind in kinds {
            let _ = hazard.clone().arguments(&[kind]).unharmed();
        }
    }
    let hazard = Hazard::new(&Recipe::new("c/fault_address.c").flag("-O1"));
    for kind in ["skip", "former"] {
        let all = hazard.clone().options(&["--images", "all"]);
        let _ = all.arguments(&[kind]).unharmed();
    }
}

/// With the program's addresses in its frame, an unwinder comes through a handler into what was interrupted.
#[test]
fn exceptions_that_handlers_throw() {
    for level in ["-O0", "-O1", "-O2"] {
        let recipe = Recipe::new("cpp/throws_from_handler.cpp");
        let recipe = recipe.flags(&["-fnon-call-exceptions", level]);
        let _ = Hazard::new(&recipe).unharmed();
    }
}

/// What is wrong with the memory that a program gives to libc is said, or met, as it is without the recorder.
#[test]
fn pointers_to_nothing() {
    let hazard = Hazard::new(&Recipe::new("c/bad_pointers.c").flag("-O1"));
    for options in [&[][..], &["--images", "all"]] {
        let Some(unharmed) = hazard.clone().options(options).unharmed() else {
            continue;
        };
        assert_eq!(unharmed.calls("after"), 10, "{options:?}");
        assert_eq!(unharmed.lost(), 0, "{options:?}");
    }
}
