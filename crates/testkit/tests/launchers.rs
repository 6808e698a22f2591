//! Several recorders that make one run: each launcher's environment, faked, two ranks each.

use lockstep_testkit::command::Running;
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recipe, Recording, Scratch, command};

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
