//! Several recorders that make one run: each launcher's environment, faked, two ranks each.

use lockstep_testkit::command::Running;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recipe, Recording, Scratch, command, record};
use lockstep_trace::Run;
use std::path::PathBuf;

/// A launcher's variables for one rank of two in one job.
type Variables = fn(rank: usize, job: &str) -> Vec<(&'static str, String)>;

const LAUNCHERS: &[(&str, Variables)] = &[
    ("Slurm", |rank, job| {
        vec![
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_NTASKS", "2".to_owned()),
            ("SLURM_JOB_ID", job.to_owned()),
            ("SLURM_STEP_ID", "0".to_owned()),
        ]
    }),
    ("PALS", |rank, job| {
        vec![
            ("PALS_RANKID", rank.to_string()),
            ("PALS_SIZE", "2".to_owned()),
            ("PALS_APID", format!("apid-{job}")),
        ]
    }),
    ("Flux", |rank, job| {
        vec![
            ("FLUX_TASK_RANK", rank.to_string()),
            ("FLUX_JOB_SIZE", "2".to_owned()),
            ("FLUX_JOB_ID", format!("f{job}")),
        ]
    }),
    ("Intel MPI", |rank, job| {
        vec![
            ("PMI_RANK", rank.to_string()),
            ("PMI_SIZE", "2".to_owned()),
            ("PMI_FD", "9".to_owned()),
            ("PMI_KVSNAME", format!("kvs_{job}_0")),
            ("I_MPI_HYDRA_TOPOLIB", "hwloc".to_owned()),
        ]
    }),
    ("Cray MPICH", |rank, job| {
        vec![
            ("PMI_RANK", rank.to_string()),
            ("PMI_SIZE", "2".to_owned()),
            ("PMI_JOBID", job.to_owned()),
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_JOB_ID", job.to_owned()),
            ("SLURM_STEP_ID", "1".to_owned()),
        ]
    }),
    ("MVAPICH", |rank, job| {
        vec![
            ("MV2_COMM_WORLD_RANK", rank.to_string()),
            ("MV2_COMM_WORLD_SIZE", "2".to_owned()),
            ("MPIRUN_ID", job.to_owned()),
        ]
    }),
    ("Open MPI", |rank, job| {
        vec![
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "2".to_owned()),
            ("PMIX_NAMESPACE", format!("{job}@1")),
        ]
    }),
];

/// Starts both recorders of a job at the same time, ranks in the order given.
fn run_job(scratch: &Scratch, variables: Variables, job: &str, ranks: [usize; 2]) -> Recording {
    let directory = scratch.join(format!("run-{job}"));
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let running: Vec<Running> = ranks
        .iter()
        .map(|rank| {
            let mut command = record_command(&directory, &[], &[&program]);
            Running::start(command.envs(variables(*rank, job)))
        })
        .collect();
    let mut outcomes: Vec<command::Outcome> = running
        .into_iter()
        .map(|running| running.wait(command::LIMIT).success())
        .collect();
    let told = |outcome: &&command::Outcome| outcome.stderr.contains("events");
    assert_eq!(
        outcomes.iter().filter(told).count(),
        1,
        "one recorder tells: {outcomes:#?}"
    );
    let outcome = outcomes.remove(0);
    Recording { directory, outcome }
}

#[test]
fn two_recorders_make_one_run() {
    for (name, variables) in LAUNCHERS {
        let scratch = Scratch::new("launcher");
        for ranks in [[0, 1], [1, 0]] {
            let job = format!("4711{}", ranks[0]);
            let run = run_job(&scratch, *variables, &job, ranks);
            assert_eq!(run.traces(), ["0.0", "1.0"], "{name}");
            let info = run.json(&["info"]);
            for (index, process) in info["processes"]
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
            {
                assert_eq!(process["rank"], index, "{name}: {process}");
            }
        }
    }
}

#[test]
fn another_job_may_not_join() {
    for (name, variables) in LAUNCHERS {
        let scratch = Scratch::new("stranger");
        let run = run_job(&scratch, *variables, "first", [0, 1]);
        let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
        let mut stranger = record_command(&run.directory, &[], &[&program]);
        let outcome = command::run(stranger.envs(variables(0, "second")));
        assert_eq!(outcome.status, 125, "{name}: {outcome:#?}");
        assert_eq!(run.traces(), ["0.0", "1.0"], "{name}");
    }
}

/// A library to preload that says so in the standard error of whoever it is loaded into.
fn another_library() -> PathBuf {
    let recipe = Recipe::new("c/preloaded.c");
    recipe.flags(&["-shared", "-fPIC"]).build()
}

/// The ranks of a launcher that is told to preload something have that, and us.
#[test]
fn ranks_with_a_preload_of_the_users() {
    let _turn = a_turn();
    let scratch = Scratch::new("preload-mpi");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let library = another_library().display().to_string();
        let program = mpi.recipe("at_exit.c").flags(&["-g", "-O1"]).build();
        let given: &[&[&str]] = match mpi {
            Mpi::OpenMpi => &[&["-x", "LD_PRELOAD=@"]],
            Mpi::Mpich => &[&["-genv", "LD_PRELOAD", "@"], &["-env", "LD_PRELOAD", "@"]],
        };
        for option in given {
            let mut words = vec![mpi.launcher()];
            words.extend(option.iter().map(|word| word.replace('@', &library)));
            words.extend([
                "-n".to_owned(),
                "3".to_owned(),
                program.display().to_string(),
            ]);
            let recording = record(&scratch, &[], &words);
            let outcome = &recording.outcome;
            assert_eq!(outcome.status, 0, "{words:?}: {outcome:#?}");
            assert_eq!(recording.traces(), ["0.0", "1.0", "2.0"], "{words:?}");
            let loaded = outcome.stderr.matches("preloaded").count();
            assert!(loaded >= 3, "{words:?}: {outcome:#?}");
        }
    }
}

/// What a launcher starts and cannot be recorded is told when all is over.
#[test]
fn ranks_that_leave_no_record() {
    let scratch = Scratch::new("missing-ranks");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let fixed = Recipe::new("c/leaf_calls.c")
        .flags(&["-O1", "-static"])
        .build();
    let (program, fixed) = (program.display(), fixed.display());
    let script = |programs: [&dyn std::fmt::Display; 4]| {
        let rank = |(rank, program)| {
            format!("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK={rank} {program} > /dev/null")
        };
        let ranks: Vec<String> = programs.iter().enumerate().map(rank).collect();
        ranks.join("; ")
    };
    let said = |script: &str| {
        let recording = record(&scratch, &[], &["sh", "-c", script]);
        assert_eq!(recording.outcome.status, 0, "{script}");
        let lines = recording.outcome.stderr.lines();
        let lines = lines.filter(|line| line.contains("expected records of"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said(&script([&program; 4])), Vec::<String>::new());
    let some = said(&script([&program, &fixed, &program, &fixed]));
    assert!(
        some.len() == 1 && some[0].contains("found 2, and none of ranks 1,3:"),
        "{some:?}"
    );
}

/// Programs that recorded ones start with other environments than their own.
#[test]
fn programs_with_another_environment() {
    let scratch = Scratch::new("preload");
    let library = another_library().display().to_string();
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let program = program.display().to_string();
    let starts = Recipe::new("c/starts_with.c").build().display().to_string();
    let is_recorded = |script: &str, preloads: usize| {
        let script = script
            .replace("LIBRARY", &library)
            .replace("STARTS", &starts)
            .replace("PROGRAM", &program);
        let recording = record(&scratch, &[], &["sh", "-c", &script]);
        let outcome = &recording.outcome;
        assert_eq!(outcome.status, 0, "{script}: {outcome:#?}");
        let loaded = outcome.stderr.matches("preloaded").count();
        assert_eq!(loaded, preloads, "{script}: {outcome:#?}");
        let run = Run::open(&recording.directory).expect("a run");
        let mut processes = run.processes.iter();
        let named = |it: &str| it.ends_with("leaf_calls") || it.contains("leaf_calls-");
        let is_it = processes.any(|it| {
            let events: u64 = it.threads.iter().map(|thread| thread.events).sum();
            named(&it.program) && events > 100
        });
        let images = run
            .processes
            .iter()
            .flat_map(|it| &it.coverage.untraced_images);
        let is_told = images
            .into_iter()
            .any(|(image, _)| image.contains("leaf_calls"));
        (is_it, is_told)
    };
    let recorded = (true, false);
    // The shell, `env` and the program it becomes are one process that loads it twice.
    assert_eq!(is_recorded("env LD_PRELOAD=LIBRARY PROGRAM", 1), recorded);
    assert_eq!(is_recorded("export LD_PRELOAD=; PROGRAM", 0), recorded);
    assert_eq!(is_recorded("unset LD_PRELOAD; PROGRAM", 0), recorded);
    for way in ["execve", "posix_spawn", "vfork", "execle", "fexecve"] {
        let own = format!("STARTS {way} LD_PRELOAD=LIBRARY PROGRAM");
        assert_eq!(is_recorded(&own, 1), recorded, "{way}");
        let none = format!("STARTS {way} A=1 PROGRAM");
        let told = (false, way == "execve" || way == "execle");
        assert_eq!(is_recorded(&none, 0), told, "{way}");
    }
    assert_eq!(is_recorded("env -i PROGRAM", 0), (false, true));
}
