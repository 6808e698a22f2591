//! The campaign of starts: small jobs on a busy machine, each of whose ranks must have begun to record.
//!
//! *Costs*: some ten milliseconds a job without MPI, up to a second with it, and as much as the machine lets others have.
//! *Not for* what is recorded later: [`crate::kill`] and the hazards ask that.

use crate::command::Running;
use crate::generate::Random;
use crate::mpi::Mpi;
use crate::recipe::Recipe;
use crate::recording::record_command;
use crate::scratch::Scratch;
use lockstep_trace::Run;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who starts the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// A shell, which tells each its rank as Open MPI does.
    Shell,
    /// An MPI library's own.
    Mpi(Mpi),
}

/// One start, and all that chance decides about it.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its number within the campaign, from 0.
    pub number: u64,
    /// Who starts the ranks.
    pub launcher: Launcher,
    /// How many: 2 to 4.
    pub ranks: usize,
    /// Whether nothing was planned before: all ranks ask for plans at once.
    pub is_first: bool,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = if self.is_first {
            ", nothing planned"
        } else {
            ""
        };
        write!(
            f,
            "start {}: {} ranks by {:?}{first}",
            self.number, self.ranks, self.launcher
        )
    }
}

/// A start that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(100);

impl Start {
    /// The start with this number in the campaign with this seed.
    #[must_use]
    pub fn draw(seed: u64, number: u64, all: &[Mpi]) -> Self {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ranks = 2 + random.below(3) as usize;
        // MPI takes a hundred times as long to start.
        let by_mpi = !all.is_empty() && random.below(8) == 0;
        let launcher = match by_mpi {
            true => Launcher::Mpi(all[random.below(all.len() as u64) as usize]),
            false => Launcher::Shell,
        };
        Self {
            number,
            launcher,
            ranks,
            is_first: random.below(16) == 0,
        }
    }

    fn words(&self) -> Vec<String> {
        let path = |path: PathBuf| path.display().to_string();
        match self.launcher {
            Launcher::Mpi(mpi) => {
                let mut words = mpi.launch(self.ranks);
                words.push(path(mpi.recipe("at_exit.c").flags(&["-g", "-O1"]).build()));
                words
            }
            Launcher::Shell => {
                let program = path(Recipe::new("c/leaf_calls.c").flag("-O1").build());
                let each = (0..self.ranks).map(|rank| {
                    let size = self.ranks;
                    format!("OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE={size} {program} & ")
                });
                let script = format!("{}wait", each.collect::<String>());
                vec!["sh".to_owned(), "-c".to_owned(), script]
            }
        }
    }

    /// Starts it; what is wrong, if anything.
    #[must_use]
    pub fn run(&self, scratch: &Scratch) -> Option<String> {
        let directory = scratch.join(format!("run-{}", self.number));
        let mut command = record_command(&directory, &[], &self.words());
        let cache = scratch.join(format!("cache-{}", self.number));
        if self.is_first {
            command.env("XDG_CACHE_HOME", &cache);
        }
        let outcome = Running::start(&mut command).wait(LIMIT);
        let fault = match outcome.status {
            0 => self.fault(&directory),
            status => Some(format!("status {status}: {}", outcome.stderr)),
        };
        // What went wrong stays, for whoever looks into it.
        if fault.is_none() {
            let _ = std::fs::remove_dir_all(&directory);
        }
        let _ = std::fs::remove_dir_all(&cache);
        fault
    }

    fn fault(&self, directory: &Path) -> Option<String> {
        let run = match Run::open(directory) {
            Ok(run) => run,
            Err(error) => return Some(error.to_string()),
        };
        let has_begun = |rank: u32| {
            let mut processes = run.processes.iter();
            processes.any(|it| {
                let events = it.threads.iter().map(|thread| thread.events);
                it.rank == Some(rank) && events.sum::<u64>() > 0
            })
        };
        let ranks = u32::try_from(self.ranks).unwrap_or(0);
        let missing: Vec<u32> = (0..ranks).filter(|rank| !has_begun(*rank)).collect();
        (!missing.is_empty()).then(|| format!("ranks {missing:?} did not record: {:?}", run.notes))
    }
}
