//! Runs of Go programs that go by the clock are made again. A binary of its own: nothing runs beside it.

use lockstep_goroutines::script;
use lockstep_testkit::tools;
use lockstep_testkit::zoo::{self, Built};

/// A run with turns, one with delays, and one in which every second goroutine is late.
const SCHEDULES: [u64; 3] = [0, 5, 7];
/// Of a hundred runs with turns some 99 are made again at the first try, of those with delays some 95; of the ticker's, beside
/// a load of twice the processors, 18, 8 and 9 of 36 in these schedules: what held them up is not in what was recorded.
const RUNS: u64 = 20;
const TRIES: u32 = 4;

#[test]
fn runs_that_go_by_the_clock_are_made_again_usage_by_usage() {
    if !tools::require(&["go"]) {
        return;
    }
    let built = Built::clocked().expect("a test binary");
    for test in zoo::CLOCKED {
        for number in SCHEDULES {
            // Whether it looks at a context before or behind the deadline, where nothing was recorded between, is the
            // processors' matter in runs with delays.
            if number != 0 && test == "TestDeadlines" {
                continue;
            }
            let again = (0..RUNS).find_map(|seed| {
                let plan = zoo::plan(seed, number);
                let (first, _) = built.run(test, &plan).expect("a run");
                let plan = plan.as_recorded(&first);
                (1..=TRIES).find(|_| {
                    let (other, _) = built.run(test, &plan).expect("a run");
                    script::is_same(&first, &other)
                })
            });
            let again = again.unwrap_or_else(|| panic!("{test}, {number}: never the same"));
            tools::note(&format!(
                "{test}, schedule {number}: the same at try {again}"
            ));
        }
    }
}
