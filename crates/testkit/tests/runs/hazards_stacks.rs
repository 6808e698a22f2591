//! Stacks of a program's own: it switches between them without a word, and unmaps them when it likes.

use lockstep_testkit::{Hazard, Recipe, hazard, tools};

/// The seed of the random sequences, and how many of them a test runs: `campaign properties` sets both.
fn drawn(name: &str, ordinary: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| ordinary.to_owned())
}

fn random_stacks(recipe: &Recipe, sequences: &str) -> Hazard {
    let seed = drawn("PROPTEST_RNG_SEED", "1");
    Hazard::new(recipe).arguments(&[&seed, sequences])
}

#[test]
fn a_thousand_random_sequences() {
    let recipe = Recipe::new("cpp/stacks.cpp").flag("-O1");
    let sequences = drawn("PROPTEST_CASES", "1000");
    let _ = random_stacks(&recipe, &sequences).unharmed();
}

#[test]
fn random_sequences_in_other_builds() {
    for (compiler, flags) in [
        ("g++", &["-O0"][..]),
        ("clang++", &["-O2"]),
        ("g++", &["-O2", "-no-pie", "-static-libgcc"]),
    ] {
        let recipe = Recipe::new("cpp/stacks.cpp")
            .compiler(compiler)
            .flags(flags);
        let _ = random_stacks(&recipe, "100").unharmed();
    }
    let recipe = Recipe::new("cpp/stacks.cpp").flag("-O1");
    let all = random_stacks(&recipe, "100").options(&["--images", "all"]);
    let _ = all.unharmed();
}

/// Where a policy forbids the ways in which memory can be read that may be gone.
#[test]
fn random_sequences_where_little_is_allowed() {
    let recipe = Recipe::new("cpp/stacks.cpp").flag("-O1");
    for allowed in ["1", "0"] {
        let program = random_stacks(&recipe, "100").arguments(&[allowed]);
        let Some(unharmed) = program.compared() else {
            return;
        };
        if unharmed.outcome.status == 77 {
            return tools::skip("this kernel has no seccomp filters");
        }
        hazard::whole(&unharmed.run, allowed);
    }
}

#[test]
fn coroutines_that_are_left_behind() {
    if !tools::require(&["/usr/include/boost/coroutine2/all.hpp"]) {
        return;
    }
    for level in ["-O0", "-O2"] {
        let recipe = Recipe::new("cpp/boost_stacks.cpp").flag(level);
        if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
            assert!(unharmed.calls("produce(Producer&)") >= 3 * 120);
        }
    }
}
