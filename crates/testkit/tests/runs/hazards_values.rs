//! Values that travel in unusual registers, and callers that count on registers: every one of them is as
//! the program left it, on every kind of event.

use lockstep_testkit::hazard::matrix;
use lockstep_testkit::{Hazard, Recipe, tools};

#[test]
fn variadic_functions() {
    matrix("c/variadic.c", |unharmed, _| {
        unharmed.exactly(&[("mix", 3), ("forward", 3)]).ended();
    });
}

#[test]
fn vectors_large_structures_and_complex_numbers() {
    matrix("c/vectors.c", |unharmed, what| {
        unharmed
            .exactly(&[("sse", 20_000), ("big", 20_000)])
            .ended();
        unharmed.exactly(&[("mixed", 20_000), ("turn", 20_000)]);
        // Built everywhere, and run where the machine has such registers.
        for name in ["avx", "avx512"] {
            let calls = unharmed.calls(name);
            let expected = if has(name) { 20_000 } else { 0 };
            assert_eq!(calls, expected, "{what}: calls of {name}");
        }
    });
    for name in ["avx", "avx512"].into_iter().filter(|name| !has(name)) {
        tools::note(&format!(
            "NOT EXECUTED: arguments in registers of {name}: this machine has none"
        ));
    }
}

/// Whether the processor, and the kernel, have these registers.
fn has(registers: &str) -> bool {
    match registers {
        "avx" => std::arch::is_x86_feature_detected!("avx"),
        _ => std::arch::is_x86_feature_detected!("avx512f"),
    }
}

/// Rounding of both floating-point units, x87 registers in use, the direction flag: on the events' fast ways,
/// and where a batch is encoded.
#[test]
fn what_the_processor_is_set_to() {
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2"] {
            let recipe = Recipe::new("c/processor_state.c")
                .compiler(compiler)
                .flag(level);
            for codec in ["lockstep", "none"] {
                let hazard = Hazard::new(&recipe).options(&["--codec", codec]);
                if let Some(unharmed) = hazard.unharmed() {
                    unharmed.exactly(&[("outer", 60_000), ("inner", 60_000)]);
                    assert!(
                        unharmed
                            .outcome
                            .stdout
                            .contains("rounding 0, x87 stack 0, direction 0")
                    );
                }
            }
        }
    }
}

#[test]
fn vectors_under_every_codec() {
    // Batches are encoded by other code.
    for codec in ["none", "seed"] {
        let hazard = Hazard::new(&Recipe::new("c/vectors.c").flag("-O2"));
        let _ = hazard.options(&["--codec", codec]).unharmed();
    }
}

/// Functions that keep more than the ABI says, as `preserve_most` and `no_caller_saved_registers` make them, and callers in
/// another image that count on it.
#[test]
fn callers_that_count_on_r10_and_r11_across_images() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let source = || Recipe::new("c/keeps_registers.c").flags(&["-O1", "-Wl,-z,now"]);
    let library = source().shared().flag("-DLIBRARY").build();
    let library = library.display().to_string();
    let none: &[&str] = &[];
    // Callers that are left as they are count on it as well.
    let skip: &[&str] = &["--skip", "^by_(own|jump|call)"];
    let ways: [(&[&str], &[&str]); 4] = [
        (none, none),
        (&["-no-pie"], none),
        (none, &["--images", "all"]),
        (none, skip),
    ];
    for (linking, options) in ways {
        let hazard = Hazard::new(&source().flags(linking).flag(&library)).options(options);
        let Some(unharmed) = hazard.unharmed() else {
            return;
        };
        // With all images, what ends the process is recorded, and open.
        if !options.contains(&"all") {
            unharmed.ended();
        }
        unharmed.exactly(&[("by_stub", 100), ("by_slot", 100), ("takes_both", 100)]);
        let lost = unharmed
            .outcome
            .stdout
            .lines()
            .filter(|line| !line.ends_with(": 0 lost"));
        assert_eq!(
            lost.collect::<Vec<_>>(),
            Vec::<&str>::new(),
            "{linking:?} {options:?}"
        );
    }
}

#[test]
fn callers_that_know_what_their_callee_changes() {
    matrix("c/ipa_ra.c", |unharmed, what| {
        // clang inlines nothing here, but may drop arguments; gcc keeps all three.
        unharmed.exactly(&[("quiet", 30_000), ("twice", 30_000)]);
        assert!(unharmed.calls("main") == 1, "{what}");
        unharmed.ended();
    });
}

#[test]
fn nested_functions() {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for linking in [&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"]] {
            let recipe = Recipe::new("c/nested_functions.c").flag(level);
            if let Some(unharmed) = Hazard::new(&recipe.flags(linking)).unharmed() {
                unharmed.ended();
                if level != "-O3" {
                    unharmed.exactly(&[("apply", 3)]);
                }
            }
        }
    }
}
