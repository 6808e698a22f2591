//! Calls of library functions that are leaves: one symbol each, and the same events as ever.

use lockstep_testkit::{Hazard, Recipe, Unharmed, tools};
use lockstep_trace::Event;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CLOSED: [&str; 3] = ["closed_sum", "closed_divide", "closed_choice"];
const OPEN: [&str; 5] = ["loops", "calls_back", "enters_kernel", "locks", "recurs"];

/// The program, linked with the library.
fn program(library: &Path, flags: &[&str]) -> Hazard {
    let recipe = Recipe::new("c/calls_leaves.c").flag("-O1").flags(flags);
    Hazard::new(&recipe.flag(&library.display().to_string()))
}

/// How often each function was called in the first thread, and how often by a symbol that was its return too.
fn leaves(run: &Unharmed) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut events = run.run.processes[0].threads[0].events();
    while let Some(event) = events.next() {
        if let Event::Call(id) = event {
            let count = counts.entry(run.run.function(id).name.clone()).or_default();
            count.0 += 1;
            count.1 += usize::from(events.was_leaf());
        }
    }
    counts
}

fn library(flags: &[&str]) -> PathBuf {
    let recipe = Recipe::new("c/leaf_library.c").shared();
    recipe.flags(flags).flag("-O1").build()
}

/// Calls of `closed_sum`: a hundred, as many that a function ends with, and four of the handler.
const SUMS: usize = 204;

fn as_ever(run: &Unharmed) {
    run.exactly(&[
        ("closed_sum", SUMS),
        ("closed_divide", 100),
        ("closed_choice", 100),
        ("loops", 100),
        ("calls_back", 100),
        ("other", 100),
        ("enters_kernel", 100),
        ("locks", 100),
        ("strlen", 100),
        ("log", 200),
        ("sqrt", 100),
        ("exp", 100),
        ("handler", 4),
    ]);
    run.ended();
    assert_eq!(run.lost(), 0);
}

#[test]
fn closed_functions_are_leaves_from_the_call_on_that_binds_them() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let library = library(&[]);
    // Bound when the program starts: all; by the first call: all but that.
    for (flags, first) in [
        (["-Wl,-z,now", "-Wl,-z,relro"], 0),
        (["-Wl,-z,lazy", "-fPIE"], 1),
        (["-no-pie", "-fno-pie"], 1),
        (["-fno-plt", "-O2"], 0),
    ] {
        let Some(run) = program(&library, &flags).unharmed() else {
            return;
        };
        as_ever(&run);
        let leaves = leaves(&run);
        for name in CLOSED {
            let (calls, fused) = leaves[name];
            // What a function ends with has a frame already: 100 calls behind a tail are plain.
            let tails = if name == "closed_sum" { 100 } else { 0 };
            let told = format!("{flags:?}: {name}: {fused} of {calls}");
            assert!(fused + tails + 1 >= calls, "{told}");
            assert!(first == 1 || fused + tails >= calls, "{told}");
        }
        for name in OPEN.iter().chain(&["strlen"]) {
            assert_eq!(leaves[*name].1, 0, "{flags:?}: {name}");
        }
        let own = ["hands_over", "other", "main"].map(|name| run.depths(name));
        assert_eq!(own.map(|depths| depths.len()), [1, 1, 1], "{flags:?}");
    }
}

#[test]
fn images_that_are_recorded_record_their_own() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let library = library(&[]);
    let Some(all) = program(&library, &["-g0"])
        .options(&["--images", "all"])
        .unharmed()
    else {
        return;
    };
    all.exactly(&[("closed_sum", SUMS), ("failed", 10), ("recurs", 300)]);
    let failed = all.depths("failed");
    assert_eq!(failed, [3].into(), "below closed_divide, below main");
}

#[test]
fn what_another_library_puts_in_its_place_is_no_leaf() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let linked = library(&[]);
    let flags = ["-DCALLS_BACK", "-Wl,-z,lazy"];
    let other = library(&flags).display().to_string();
    // The first that has the name, as of libraries that are preloaded.
    let Some(run) = program(&linked, &["-Wl,--no-as-needed", &other]).unharmed() else {
        return;
    };
    as_ever(&run);
    run.exactly(&[("called_back", SUMS)]);
    let leaves = leaves(&run);
    assert_eq!(leaves["closed_sum"].1, 0, "it calls back");
    assert!(leaves["closed_divide"].1 >= 99, "the other is as it was");
    // Below closed_sum: of main, of what hands over (whose frame it has), of the handler.
    let sums = run.depths("closed_sum");
    let expected = sums.iter().map(|depth| depth + 1).collect();
    assert_eq!(run.depths("called_back"), expected);
}
