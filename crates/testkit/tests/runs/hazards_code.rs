//! Code that is hard to take apart: hand-written functions, computed jumps, tail calls without end.

use lockstep_testkit::hazard::{self, matrix};
use lockstep_testkit::{Hazard, Recipe, Scratch, Unharmed, tools};
use lockstep_trace::Run;

const KINDS: &[&[&str]] = &[&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"]];

/// Over compilers, levels and both kinds of images, stripped or not.
fn kinds(source: &str, mut also: impl FnMut(&Unharmed, &str)) {
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2"] {
            for kind in KINDS {
                let recipe = Recipe::new(source)
                    .compiler(compiler)
                    .flag(level)
                    .flags(kind);
                for recipe in [recipe.clone(), recipe.stripped()] {
                    if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
                        unharmed.ended();
                        also(&unharmed, &recipe.describe());
                    }
                }
            }
        }
    }
}

/// A second entry in the middle of a function is not seen: no frame description begins there.
#[test]
fn hand_written_assembly() {
    let names = [
        "one_byte",
        "two_bytes",
        "three_bytes",
        "four_bytes",
        "one_byte_more",
        "padded_one",
        "padded_two",
        "padded_three",
        "padded_four",
        "many_entries",
        "with_data",
        "is_odd_in_flags",
        "red_zone",
        "takes_off",
        "jumps_into_red_zone",
        "other_function",
        "keeps_all",
        "conditional_tail",
        "counts",
        "calls_first",
    ];
    kinds("c/assembly.c", |unharmed, what| {
        if what.contains("stripped") {
            return;
        }
        let refused = &unharmed.run.processes[0].coverage.refused;
        let is_refused = |name: &str| refused.iter().any(|refused| refused.name == name);
        let mut seen = 0;
        for name in names {
            // Two functions are also called by others.
            let expected = match name {
                "four_bytes" => 2000,
                "keeps_all" => 1500,
                _ => 1000,
            };
            let calls = unharmed.calls(name);
            assert!(
                calls == expected || calls == 0 && is_refused(name),
                "{what}: {calls} calls of {name}; refused: {}",
                is_refused(name)
            );
            seen += usize::from(calls > 0);
        }
        tools::note(&format!("{what}: {seen} of {} recorded", names.len()));
    });
}

#[test]
fn computed_gotos() {
    kinds("c/interpreter.c", |unharmed, what| {
        if !what.contains("stripped") {
            unharmed.exactly(&[("run", 50), ("operate", 1000)]);
        }
    });
}

#[test]
fn jump_tables() {
    kinds("c/jump_tables.c", |unharmed, what| {
        if !what.contains("stripped") {
            unharmed.exactly(&[("route", 4096), ("last", 4096), ("case6", 512)]);
        }
    });
    matrix("c/jump_tables.c", |unharmed, _| {
        unharmed.exactly(&[("route", 4096), ("case1", 512)]);
    });
}

#[test]
fn a_million_hops_in_one_frame() {
    for kind in KINDS {
        let recipe = Recipe::new("c/musttail.c")
            .compiler("clang")
            .flag("-O2")
            .flags(kind);
        if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
            let hops = ["red", "green", "blue"].map(|name| unharmed.calls(name));
            assert_eq!(hops.iter().sum::<usize>(), 1_000_000);
            unharmed.ended();
        }
    }
}

/// A program that reads its own code sees our jumps in it, and nothing else happens. Its file is as it was.
#[test]
fn a_program_that_checks_its_own_code() {
    for level in ["-O0", "-O2"] {
        let hazard = Hazard::new(&Recipe::new("c/checksums.c").flag(level));
        if !tools::require(&["gcc"]) {
            return;
        }
        let plain = hazard.plainly();
        assert!(plain.stdout.contains("as in the file"), "{plain:#?}");
        for images in ["main", "all"] {
            let scratch = Scratch::new("checksums");
            let hazard = hazard.clone().options(&["--images", images]);
            let recording = hazard.record(&scratch);
            let expected = plain.stdout.replace("as in the file", "changed");
            assert_eq!(recording.outcome.stdout, expected);
            assert_eq!(recording.outcome.status, 0);
            let run = Run::open(&recording.directory).expect("a run");
            assert_eq!(hazard::calls(&run, "guarded"), 1000);
        }
        // What is not chosen is not touched.
        let scratch = Scratch::new("checksums");
        let recording = hazard.options(&["--trace", "^no such$"]).record(&scratch);
        assert_eq!(recording.outcome.stdout, plain.stdout);
    }
}
