//! Programs that are hard on a tracer: each must print, and end, as it does without us, and its trace
//! must be whole and balanced.

use lockstep_testkit::hazard::{Hazard, calls};
use lockstep_testkit::{Recipe, Scratch, command, hazard, mpi::Mpi, record, tools};
use lockstep_trace::Run;

fn check(recipe: &Recipe, arguments: &[&str]) -> Option<Run> {
    check_words(recipe, &[], arguments)
}

fn check_words(recipe: &Recipe, launcher: &[String], arguments: &[&str]) -> Option<Run> {
    let hazard = Hazard::new(recipe).arguments(arguments).through(launcher);
    Some(hazard.unharmed()?.run)
}

fn matrix(source: &str, also: impl Fn(&Run, &str)) {
    hazard::matrix(source, |unharmed, what| also(&unharmed.run, what));
}

#[test]
fn plain_calls_in_every_kind_of_linking() {
    matrix("c/leaf_calls.c", |run, what| {
        // Optimisers unroll recursion.
        if what.contains("-O0") {
            assert_eq!(calls(run, "fibonacci"), 177, "{what}");
        }
        assert!(calls(run, "printf") >= 4, "{what}");
    });
}

#[test]
fn calls_hoisted_out_of_a_loop() {
    matrix("c/hoisted.c", |run, what| {
        // Newer C libraries call it __isoc23_strtol.
        let strtol = calls(run, "strtol") + calls(run, "__isoc23_strtol");
        assert_eq!(strtol, 5, "{what}");
        assert_eq!(calls(run, "rand"), 5, "{what}");
    });
}

#[test]
fn the_address_of_a_library_function() {
    matrix("c/pointer_identity.c", |run, what| {
        // Where one register serves both, call and address, its load cannot be changed; and is told.
        let coverage = &run.processes[0].coverage;
        let mut told = coverage.refused.iter().chain(&coverage.pointers);
        let told = told.any(|told| told.name == "puts");
        assert!(calls(run, "puts") >= 2 || told, "{what}");
    });
}

#[test]
fn jumps_over_frames() {
    matrix("c/longjmp.c", |run, what| {
        if what.contains("-O0") {
            assert_eq!(calls(run, "dive"), 12, "{what}");
        }
    });
}

#[test]
fn tail_calls() {
    matrix("c/tail_calls.c", |run, what| {
        assert_eq!(calls(run, "third"), 1, "{what}");
        assert_eq!(calls(run, "is_odd") + calls(run, "is_even"), 1000, "{what}");
    });
}

#[test]
fn a_loop_to_the_first_byte_is_no_call() {
    matrix("c/loop_at_entry.c", |run, what| {
        assert_eq!(calls(run, "count_down"), 2, "{what}")
    });
}

#[test]
fn values_that_need_unusual_registers() {
    matrix("c/large_values.c", |run, what| {
        assert_eq!(calls(run, "turn"), 1, "{what}")
    });
}

#[test]
fn exceptions() {
    for compiler in ["g++", "clang++"] {
        for level in ["-O0", "-O2"] {
            let cpp = |source: &str| Recipe::new(source).compiler(compiler).flag(level);
            let _ = check(&cpp("cpp/throw.cpp"), &[]);
            let _ = check(&cpp("cpp/throw_through_qsort.cpp"), &[]);
            let _ = check(&cpp("cpp/uncaught.cpp"), &[]);
            let _ = check(&cpp("cpp/static_objects.cpp"), &[]);
            let _ = check(
                &cpp("cpp/throw.cpp").flags(&["-static-libgcc", "-static-libstdc++"]),
                &[],
            );
            let _ = check(
                &cpp("cpp/throw.cpp").flags(&["-static-libgcc"]).stripped(),
                &[],
            );
        }
    }
}

#[test]
fn panics() {
    for level in ["-Copt-level=0", "-Copt-level=3"] {
        let _ = check(&Recipe::new("rust/catch_unwind.rs").flag(level), &[]);
        let _ = check(&Recipe::new("rust/panic.rs").flag(level), &[]);
        let _ = check(
            &Recipe::new("rust/panic.rs").flags(&[level, "-Cpanic=abort"]),
            &[],
        );
        let _ = check(
            &Recipe::new("rust/collections.rs").flag(level).stripped(),
            &[],
        );
    }
}

#[test]
fn thread_ends() {
    for flags in [&["-O2"][..], &["-O0", "-fexceptions"]] {
        if let Some(run) = check(&Recipe::new("c/pthread_exit.c").flags(flags), &[]) {
            assert_eq!(calls(&run, "tidy"), 4);
        }
        if let Some(run) = check(&Recipe::new("c/cancel.c").flags(flags), &[]) {
            assert_eq!(calls(&run, "inner_tidy") + calls(&run, "outer_tidy"), 2);
        }
    }
}

#[test]
fn thousands_of_short_threads() {
    if let Some(run) = check(&Recipe::new("c/short_threads.c").flag("-O2"), &[]) {
        assert_eq!(run.processes[0].threads.len(), 2001);
        assert_eq!(calls(&run, "step"), 6000);
        assert_eq!(calls(&run, "run"), 2000);
    }
}

/// The memory of threads that are gone is used again: nothing of what they did may be left in it.
#[test]
fn threads_in_turn() {
    let recipe = Recipe::new("c/threads_in_turn.c").flags(&["-O1", "-fno-optimize-sibling-calls"]);
    if let Some(run) = check(&recipe, &[]) {
        assert_eq!(run.processes[0].threads.len(), 81);
        assert_eq!(calls(&run, "dive"), 79_000);
        assert_eq!(calls(&run, "odd") + calls(&run, "even"), 240_000);
    }
}

#[test]
fn openmp() {
    for compiler in ["gcc", "clang"] {
        let recipe = Recipe::new("openmp/sections.c")
            .compiler(compiler)
            .flag("-O1");
        if compiler == "clang" && !has_openmp_of_llvm() {
            tools::note("SKIPPED openmp with clang: no libomp, which we do not ask for");
            continue;
        }
        if let Some(run) = check(&recipe, &[]) {
            assert_eq!((calls(&run, "add"), calls(&run, "leaf")), (20, 8));
        }
    }
}

/// clang has OpenMP only where libomp-dev is installed.
fn has_openmp_of_llvm() -> bool {
    let mut clang = command::command(&["clang", "-print-file-name=libomp.so"]);
    tools::find("clang").is_some() && command::run(&mut clang).stdout.starts_with('/')
}

#[test]
fn forks_and_execs() {
    for level in ["-O0", "-O2"] {
        if let Some(run) = check(&Recipe::new("c/fork.c").flag(level), &[]) {
            assert_eq!(run.processes.len(), 3);
            assert_eq!(calls(&run, "work"), 3);
        }
        let _ = check(&Recipe::new("c/vfork.c").flag(level), &[]);
        if let Some(run) = check(&Recipe::new("c/exec_chain.c").flag(level), &[]) {
            assert_eq!((calls(&run, "turn"), calls(&run, "finish")), (4, 1));
        }
    }
}

#[test]
fn a_program_that_asks_who_calls() {
    for level in ["-O0", "-O2"] {
        let _ = check(&Recipe::new("c/rtld_next.c").flag(level), &[]);
    }
}

#[test]
fn a_symbol_that_is_never_bound() {
    let program = Recipe::new("c/missing_symbol.c").flag("-Wl,-z,lazy");
    // One place for all times: the program's flags name it.
    let place = lockstep_testkit::artifacts::target().join("testkit/missing-symbol");
    std::fs::create_dir_all(&place).expect("the target directory can be written");
    let library = place.join("libpart.so");
    let source = lockstep_testkit::artifacts::repository().join("programs/c/missing_symbol.c");
    let make_library = |flags: &[&str]| {
        let mut gcc = command::command(&["gcc", "-shared", "-fPIC", "-DLIBRARY"]);
        let _ = command::run(gcc.args(flags).arg(&source).arg("-o").arg(&library)).success();
    };
    if !tools::require(&["gcc"]) {
        return;
    }
    make_library(&["-DWHOLE"]);
    let directory = place.display();
    let search = format!("-Wl,-rpath,{directory}");
    let program = program.flags(&[&format!("-L{directory}"), "-lpart", &search]);
    let _ = program.build();
    make_library(&[]);
    let run = check(&program, &[]).expect("gcc is here");
    assert_eq!(calls(&run, "puts"), 1);
}

#[test]
fn signals() {
    for level in ["-O0", "-O2"] {
        let _ = check(&Recipe::new("c/signals.c").flag(level), &[]);
        let _ = check(&Recipe::new("c/sigaltstack.c").flag(level), &[]);
        let _ = check(&Recipe::new("c/contexts.c").flag(level), &[]);
    }
}

#[test]
fn deep_recursion() {
    for level in ["-O0", "-O2"] {
        let recipe = Recipe::new("c/recursion.c").flag(level);
        if !tools::require(&[recipe.compiler_name()]) {
            return;
        }
        let scratch = Scratch::new("recursion");
        let recording = record(&scratch, &[], &[recipe.build()]);
        assert_eq!(
            recording.outcome.stdout, "50000\n",
            "{:#?}",
            recording.outcome
        );
        let run = Run::open(&recording.directory).expect("a run");
        let lost: u64 = run.processes[0].losses.iter().map(|loss| loss.1).sum();
        // Whatever is too deep is counted: nothing vanishes silently.
        assert!(calls(&run, "down") as u64 + lost >= 100_001, "{lost} lost");
    }
}

#[test]
fn every_kind_of_end() {
    let recipe = Recipe::new("c/ends.c").flag("-O1");
    for arguments in [
        &["return", "3"][..],
        &["exit", "4"],
        &["_exit", "5"],
        &["abort"],
        &["segv"],
        &["kill"],
    ] {
        let Some(run) = check(&recipe, arguments) else {
            return;
        };
        let end = run.processes[0].end;
        let expected = match arguments[0] {
            "abort" => (lockstep_trace::EndKind::Signalled, Some(6)),
            "segv" => (lockstep_trace::EndKind::Signalled, Some(11)),
            "kill" => (lockstep_trace::EndKind::Killed, Some(9)),
            _ => (lockstep_trace::EndKind::Exited, arguments[1].parse().ok()),
        };
        assert_eq!(end.kind, expected.0, "{arguments:?}: {end:?}");
        // Of a kill the kind says it all.
        assert!(
            end.code == expected.1 || end.kind == lockstep_trace::EndKind::Killed,
            "{end:?}"
        );
    }
}

#[test]
fn a_program_with_a_daemons_habits() {
    let _ = check(&Recipe::new("c/closes_descriptors.c").flag("-O1"), &[]);
}

#[test]
fn mpi_programs() {
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let _turn = lockstep_testkit::mpi::a_turn();
        let launch = mpi.launch(4);
        let gather = mpi.recipe("gather.c").flag("-O2");
        if let Some(run) = check_words(&gather, &launch, &[]) {
            assert!(run.is_mpi);
            assert_eq!((calls(&run, "MPI_Recv"), calls(&run, "MPI_Send")), (3, 3));
        }
        let hybrid = mpi.recipe("hybrid.c").flag("-O1");
        if let Some(run) = check_words(&hybrid, &mpi.launch(2), &[]) {
            assert_eq!(calls(&run, "MPI_Allreduce"), 10);
        }
        if tools::require(&[&mpi.fortran()]) {
            let ring = mpi.recipe("ring.f90").flag("-O1");
            let _ = check_words(&ring, &launch, &[]);
        }
    }
}
