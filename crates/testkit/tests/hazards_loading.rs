//! Images that come and go, and other libraries that are preloaded beside us.

use lockstep_testkit::{Hazard, Recipe, tools};

#[test]
fn a_library_that_is_loaded_a_thousand_times() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let library = Recipe::new("c/comes_and_goes.c")
        .shared()
        .flag("-O0")
        .build();
    let library = library.to_string_lossy();
    for (how, times) in [("same", 1000), ("alternating", 1000), ("namespace", 12)] {
        for images in ["main", "all"] {
            let program = Hazard::new(&Recipe::new("c/loads_often.c").flag("-O0"));
            let program = program
                .arguments(&[&library, how])
                .options(&["--images", images]);
            let Some(unharmed) = program.unharmed() else {
                return;
            };
            unharmed.exactly(&[("answer", times)]);
            if images == "all" {
                // Symbols of a library that comes back stay its own.
                unharmed.exactly(&[("plugin_value", times), ("helper", 2 * times)]);
            }
        }
    }
}

#[test]
fn another_library_preloaded_beside_us() {
    if !tools::require(&["gcc", "sh"]) {
        return;
    }
    let other = Recipe::new("c/interposer.c").shared().flag("-O1").build();
    let other = other.display();
    let start = |preload: &str| {
        let script = format!("LD_PRELOAD=\"{preload}\" exec \"$@\"");
        let launcher = ["sh", "-c", &script, "sh"].map(str::to_owned);
        Hazard::new(&Recipe::new("c/allocates.c").flag("-O0")).through(&launcher)
    };
    for images in ["main", "all"] {
        for preload in [
            format!("{other}:$LD_PRELOAD"),
            format!("$LD_PRELOAD:{other}"),
        ] {
            let beside = start(&preload).options(&["--images", images]);
            if let Some(unharmed) = beside.unharmed() {
                assert!(unharmed.outcome.stdout.contains("100 allocations"));
                unharmed.exactly(&[("allocate", 100)]);
            }
        }
    }
    // Who takes our place is not recorded, and runs as ever.
    let instead = start(&other.to_string());
    if let Some(unharmed) = instead.unharmed() {
        unharmed.exactly(&[("allocate", 0)]);
    }
}
