//! How a process learns its rank: the environment variables of the launchers that we know.
//!
//! Used by the probe (which stores what it finds), `record` (which needs a token that all ranks of
//! one job share) and `trace` (which names the processes).

/// One launcher family and the variables by which its processes know themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launcher {
    /// What we call it in messages.
    pub name: &'static str,
    /// Rank in the job's world; its presence (as a number) is what identifies the family.
    pub rank: &'static str,
    /// Number of ranks.
    pub size: &'static str,
    /// Variables that together tell this job from every other and are the same in all its ranks; all
    /// that are set are joined. None may be: MPICH's own launcher gives its ranks descriptor numbers
    /// only, which differ between the ranks of one job and not between jobs.
    pub token: &'static [&'static str],
}

/// Programs that start the ranks of a job and are none of them.
pub const STARTERS: &[&str] = &[
    "mpirun",
    "mpiexec",
    "mpirun.openmpi",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpiexec.mpich",
    "orterun",
    "orted",
    "prterun",
    "prte",
    "prted",
    "mpiexec.hydra",
    "hydra_pmi_proxy",
    "srun",
    "slurmstepd",
    "aprun",
    "jsrun",
    "flux",
];

/// In the order in which they are tried: the most specific first, since one may run inside another
/// (Open MPI under Slurm, say).
pub const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        token: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        name: "MVAPICH",
        rank: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        token: &["MPIRUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
    Launcher {
        name: "PALS",
        rank: "PALS_RANKID",
        size: "PALS_SIZE",
        token: &["PALS_APID"],
    },
    Launcher {
        name: "Flux",
        rank: "FLUX_TASK_RANK",
        size: "FLUX_JOB_SIZE",
        token: &["FLUX_JOB_ID"],
    },
    Launcher {
        name: "PMI (MPICH, Intel MPI, Cray MPICH)",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        token: &[
            "PMI_JOBID",
            "PMI_KVSNAME",
            "PMI_PORT",
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
        ],
    },
    Launcher {
        name: "PMIx",
        rank: "PMIX_RANK",
        size: "PMIX_SIZE",
        token: &["PMIX_NAMESPACE"],
    },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        token: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];
