//! Thousands of threads.

use lockstep_testkit::{Hazard, Recipe};

fn crowd(arguments: &[&str]) -> Hazard {
    let recipe = Recipe::new("c/crowd.c").flags(&["-O1", "-fno-optimize-sibling-calls"]);
    // Where threads poll instead of sleeping, this takes minutes: the recording is stopped.
    Hazard::new(&recipe).arguments(arguments)
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
