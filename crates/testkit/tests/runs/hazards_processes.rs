//! How processes begin, what they are allowed to do, and how they end.

use lockstep_testkit::hazard::lost;
use lockstep_testkit::mpi::{self, Mpi};
use lockstep_testkit::{Hazard, Recipe, tools};

/// Children with our variables are recorded; those with an environment of the program's own are not, and
/// run as ever.
#[test]
fn children_of_every_kind() {
    for level in ["-O0", "-O2"] {
        let Some(unharmed) = Hazard::new(&Recipe::new("c/spawn.c").flag(level)).unharmed() else {
            return;
        };
        unharmed.exactly(&[("greet", 2), ("spawn", 2), ("run", 4)]);
        let greeted = |name| unharmed.calls(name) > 0;
        assert!(greeted("posix_spawn") && greeted("fails"));
    }
}

#[test]
fn an_empty_environment() {
    if !tools::require(&["env"]) {
        return;
    }
    let program = Hazard::new(&Recipe::new("c/allocates.c").flag("-O0"));
    let launcher = ["env", "-i"].map(str::to_owned);
    if let Some(unharmed) = program.through(&launcher).unharmed() {
        // The run shows `env` alone, which became something that is not seen.
        unharmed.exactly(&[("allocate", 0)]);
        assert_eq!(unharmed.run.processes.len(), 1);
    }
}

#[test]
fn before_and_after_main() {
    for compiler in ["gcc", "clang"] {
        let recipe = Recipe::new("c/lifetimes.c").compiler(compiler).flag("-O1");
        for (way, at_end, at_quick_end) in [("return", 1, 0), ("exit", 1, 0), ("quick", 0, 1)] {
            if let Some(unharmed) = Hazard::new(&recipe).arguments(&[way]).unharmed() {
                unharmed.exactly(&[("early", 1), ("late", 1), ("last", at_end)]);
                unharmed.exactly(&[("at_end", at_end), ("at_quick_end", at_quick_end)]);
                unharmed.exactly(&[("first_down", at_end), ("registered_late", at_end)]);
            }
        }
    }
}

#[test]
fn a_policy_that_forbids_what_a_recorder_needs() {
    let program = Hazard::new(&Recipe::new("c/seccomp.c").flag("-O1"));
    let Some(unharmed) = program.options(&["--codec", "none"]).compared() else {
        return;
    };
    if unharmed.outcome.status == 77 {
        return tools::skip("this kernel has no seccomp filters");
    }
    lockstep_testkit::hazard::whole(&unharmed.run, "seccomp");
    let calls = unharmed.calls("mix") as u64;
    let lost = lost(&unharmed.run);
    assert!(lost > 0, "the file cannot have grown");
    // Two million turns of two calls; what is lost are calls.
    assert!(2 * calls + lost >= 4_000_000, "{calls} calls, {lost} lost");
}

#[test]
fn little_memory() {
    for images in ["main", "all"] {
        let program = Hazard::new(&Recipe::new("c/small_memory.c").flag("-O0"));
        if let Some(unharmed) = program.options(&["--images", images]).compared() {
            assert!(unharmed.calls("work") as u64 + unharmed.lost() >= 1325);
        }
    }
}

#[test]
fn memory_that_is_never_what_it_was() {
    let program = Hazard::new(&Recipe::new("c/allocates.c").flag("-O1"));
    if let Some(unharmed) = program.variable("MALLOC_PERTURB_", "165").unharmed() {
        unharmed.exactly(&[("allocate", 100)]).ended();
    }
}

/// One rank aborts, the launcher kills the others, and each trace shows where it was.
#[test]
fn a_launcher_that_kills() {
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let _turn = mpi::a_turn();
        let abort = Hazard::new(&mpi.recipe("abort.c").flag("-O1"));
        let abort = abort.through(&mpi.launch(3)).with_varying_stderr();
        let Some(unharmed) = abort.unharmed() else {
            continue;
        };
        unharmed.exactly(&[("MPI_Abort", 1), ("MPI_Recv", 1), ("MPI_Barrier", 3)]);
        let run = &unharmed.run;
        for (rank, name) in [(0, "main"), (1, "MPI_Abort"), (2, "MPI_Recv")] {
            let process = run
                .processes
                .iter()
                .find(|p| p.rank == Some(rank) && p.is_mpi);
            let open = &process.expect("every rank is there").threads[0].open;
            let names: Vec<&str> = open
                .iter()
                .map(|f| run.function(f.function).name.as_str())
                .collect();
            assert!(names.contains(&name), "rank {rank}: {names:?}");
        }
    }
}
