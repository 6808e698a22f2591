//! Code that is hard to take apart: hand-written functions, computed jumps, tail calls without end.

use lockstep_testkit::hazard::matrix;
use lockstep_testkit::{Hazard, Recipe, Unharmed};

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
