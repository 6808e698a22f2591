//! Whoever walks or leaves the stack: exceptions through frames of others, forced unwinding, backtraces,
//! in the program's own hands or the library's.

use lockstep_testkit::{Hazard, Recipe, Scratch, Unharmed, hazard, tools};

/// `source` linked against the library that `library` makes.
fn linked(source: &str, library: &Recipe) -> Recipe {
    let built = library.build();
    let directory = built
        .parent()
        .expect("a file lies in a directory")
        .display();
    let name = library.library_name();
    Recipe::new(source).flags(&[
        &format!("-L{directory}"),
        &format!("-l{name}"),
        &format!("-Wl,-rpath,{directory}"),
    ])
}

/// A library that throws by a libgcc of its own, and the same without symbols.
fn with_an_unwinder() -> [Recipe; 2] {
    let library = Recipe::new("cpp/throwing_library.cpp").shared().flags(&[
        "-DLIBRARY",
        "-O1",
        "-static-libgcc",
        "-static-libstdc++",
        "-Wl,--exclude-libs,ALL",
    ]);
    [library.clone(), library.stripped()]
}

fn ended(unharmed: Option<Unharmed>, calls: &[(&str, usize)]) {
    if let Some(unharmed) = unharmed {
        unharmed.exactly(calls).ended();
    }
}

#[test]
fn through_a_library_with_unwind_tables_and_one_without() {
    if !tools::require(&["gcc", "g++"]) {
        return;
    }
    let library = |flags| Recipe::new("c/passes_on.c").shared().flags(flags);
    let told = library(&["-O1"]);
    let untold = library(&["-O1", "-fno-asynchronous-unwind-tables"]);
    for level in ["-O0", "-O2"] {
        let program =
            |library| Hazard::new(&linked("cpp/throw_through_c.cpp", library).flag(level));
        ended(
            program(&told).unharmed(),
            &[("pass_on", 2), ("thrower(int)", 2)],
        );
        // Nobody catches it: std::terminate.
        if let Some(unharmed) = program(&untold).unharmed() {
            assert_eq!(unharmed.outcome.status, 128 + 6);
            unharmed.exactly(&[("pass_on", 2)]);
        }
    }
}

#[test]
fn a_library_with_an_unwinder_of_its_own() {
    if !tools::require(&["g++"]) {
        return;
    }
    for library in with_an_unwinder() {
        for level in ["-O0", "-O2"] {
            let program = Hazard::new(&linked("cpp/throwing_library.cpp", &library).flag(level));
            ended(program.unharmed(), &[("callback(int)", 2), ("fail", 1)]);
            // There the C library's last function is open at the end.
            if let Some(all) = program.options(&["--images", "all"]).unharmed() {
                all.exactly(&[("callback(int)", 2)]);
            }
        }
    }
}

/// The same loaded while calls are open, and thrown through them.
#[test]
fn a_library_with_an_unwinder_of_its_own_that_comes_later() {
    if !tools::require(&["g++"]) {
        return;
    }
    for library in with_an_unwinder() {
        let library = library.build().display().to_string();
        for level in ["-O0", "-O2"] {
            let program = Hazard::new(&Recipe::new("cpp/late_unwinder.cpp").flag(level));
            let program = program.arguments(&[&library]);
            ended(program.unharmed(), &[("callback(int)", 40)]);
            if let Some(all) = program.options(&["--images", "all"]).unharmed() {
                all.exactly(&[("callback(int)", 40)]);
            }
        }
    }
}

#[test]
fn destructors_of_threads_that_end_early() {
    for compiler in ["g++", "clang++"] {
        for level in ["-O0", "-O2"] {
            let recipe = Recipe::new("cpp/thread_end.cpp")
                .compiler(compiler)
                .flag(level);
            if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
                unharmed.exactly(&[("leave()", 1), ("wait()", 1)]).ended();
            }
        }
    }
}

/// The names that a handler finds are those that it finds without us.
#[test]
fn backtraces() {
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O1")] {
        let recipe = Recipe::new("c/backtraces.c").compiler(compiler).flag(level);
        for way in ["call", "null", "overflow", "abort"] {
            let _ = Hazard::new(&recipe).arguments(&[way]).unharmed();
        }
        for way in ["null", "overflow", "abort"] {
            let alone = Hazard::new(&recipe).arguments(&[way, "none"]);
            if let Some(unharmed) = alone.unharmed() {
                let signal = if way == "abort" { 6 } else { 11 };
                assert_eq!(unharmed.outcome.status, 128 + signal, "{way}");
                assert!(hazard::calls(&unharmed.run, "inner") == 2, "{way}");
            }
        }
    }
    let all = Hazard::new(&Recipe::new("c/backtraces.c").flag("-O1"));
    for way in ["call", "overflow"] {
        let _ = all
            .clone()
            .options(&["--images", "all"])
            .arguments(&[way])
            .unharmed();
    }
}

/// A frame below which the stack was unwound is looked at anew at each of its calls: none of them is lost or doubled.
#[test]
fn calls_after_unwinding() {
    for (compiler, level) in [
        ("gcc", "-O0"),
        ("gcc", "-O2"),
        ("clang", "-O1"),
        ("clang", "-O2"),
    ] {
        for images in [&[][..], &["--images", "all"]] {
            let recipe = Recipe::new("c/calls_after_unwinding.c")
                .compiler(compiler)
                .flag(level);
            let Some(unharmed) = Hazard::new(&recipe).options(images).unharmed() else {
                continue;
            };
            // Of what calls itself compilers may make loops.
            unharmed.exactly(&[("leaf", 400), ("inner", 100), ("wide", 100), ("unwinds", 1)]);
        }
    }
}

/// Who walks frame pointers finds what he finds without us, where returns are patched; else our stub in the
/// place of a return address.
#[test]
fn a_walk_along_frame_pointers() {
    let unpatched = Hazard::new(&Recipe::new("c/walks_frames.c").flag("-O0"));
    let scratch = Scratch::new("walk");
    if tools::require(&["gcc"]) {
        let outcome = unpatched.record(&scratch).outcome;
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let names = outcome.stdout.replace("inner", "?").replace("outer", "?");
        assert_eq!(names, " ? ? main ?\n ? ? main ?\n ? ? main ?\n9\n");
    }
    for (compiler, level) in [("gcc", "-O1"), ("gcc", "-O2"), ("clang", "-O1")] {
        let recipe = Recipe::new("c/walks_frames.c")
            .compiler(compiler)
            .flag(level);
        if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
            assert!(unharmed.outcome.stdout.contains("inner outer main"));
            unharmed.exactly(&[("walk", 3), ("inner", 3), ("outer", 3)]);
            unharmed.ended();
        }
    }
}

/// As the collector of OCaml's native programs does.
#[test]
fn who_looks_up_return_addresses_finds_the_program_s() {
    if !tools::require(&["gcc"]) {
        return;
    }
    for level in ["-O0", "-O2"] {
        let program = Hazard::new(&Recipe::new("c/frame_table.c").flag(level));
        ended(program.unharmed(), &[("work", 2), ("collect", 2)]);
    }
}
