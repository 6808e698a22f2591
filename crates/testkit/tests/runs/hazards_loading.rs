//! Other libraries that are preloaded beside us. (Images that come and go: `images.rs`.)

use lockstep_testkit::{Hazard, Recipe, tools};

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
    // A library that takes our place is loaded, and we beside it.
    let instead = start(&other.to_string());
    if let Some(unharmed) = instead.unharmed() {
        unharmed.exactly(&[("allocate", 100)]);
    }
}
