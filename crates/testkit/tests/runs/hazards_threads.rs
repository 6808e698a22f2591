//! Thousands of threads.

use lockstep_testkit::{Hazard, Recipe, Scratch, command, record, tools};

fn recipe() -> Recipe {
    Recipe::new("c/crowd.c").flags(&["-O1", "-fno-optimize-sibling-calls"])
}

fn crowd(arguments: &[&str]) -> Hazard {
    // Where threads poll instead of sleeping, this takes minutes: the recording is stopped.
    Hazard::new(&recipe()).arguments(arguments)
}

#[test]
fn a_crowd_that_is_let_go() {
    if let Some(unharmed) = crowd(&["4000", "4000"]).unharmed() {
        assert_eq!(unharmed.run.processes[0].threads.len(), 4001);
        unharmed.exactly(&[("run", 4000)]).ended();
    }
}

#[test]
fn threads_that_come_and_go() {
    if let Some(unharmed) = crowd(&["3000", "10"]).unharmed() {
        assert_eq!(unharmed.run.processes[0].threads.len(), 3001);
        unharmed.exactly(&[("run", 3000)]).ended();
    }
}

/// What a short thread costs is mostly the memory that it touches: eleven pages beside the program's own.
#[test]
fn what_a_short_thread_touches() {
    const TIME: &str = "/usr/bin/time";
    const THREADS: u64 = 2000;
    if !tools::require(&[TIME]) {
        return;
    }
    let scratch = Scratch::new("short-threads");
    let (program, count) = (recipe().build(), THREADS.to_string());
    let most = scratch.join("most");
    let words = [TIME, "-f", "%M", "-o"].map(str::to_owned).into_iter();
    let words = words.chain([most.display().to_string(), program.display().to_string()]);
    let words: Vec<String> = words.chain([count.clone(), count]).collect();
    let kilobytes = || {
        let text = std::fs::read_to_string(&most).expect("what time wrote");
        text.trim().parse::<u64>().expect("a number")
    };
    let _ = command::run(&mut command::command(&words)).success();
    let untraced = kilobytes();
    assert_eq!(record(&scratch, &[], &words).outcome.status, 0);
    let more = kilobytes() - untraced;
    assert!(more <= 48 * THREADS, "{more} kB");
}
