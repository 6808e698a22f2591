//! Where runs of a campaign are made: normal ones, and those with a fault.

use super::kinds::{Fault, Kind, Program};
use anyhow::{Context, Result, bail, ensure};
use lockstep_testkit::command::{self, Outcome, Running};
use lockstep_testkit::hang;
use lockstep_testkit::mpi::Mpi;
use lockstep_testkit::recording::{lockstep, record_command};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A sequence of numbers from a seed.
pub struct Random(u64);

impl Random {
    /// The same for the same words.
    pub fn new(parts: &[&str]) -> Self {
        let text = parts.join("/");
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// Where runs are kept, and how they are recorded.
pub struct Workshop {
    pub runs: PathBuf,
    /// A run that takes so long hangs; else `progress` is asked.
    pub hangs: Option<Duration>,
    /// In the place of each program's own number.
    pub ranks: Option<u64>,
    /// What is recorded.
    pub images: String,
}

/// A fault as it was put in.
pub struct Placed {
    pub truth: String,
    /// What `inject` chose, where it did.
    pub place: String,
}

impl Workshop {
    fn ranks_of(&self, program: &Program) -> u64 {
        self.ranks.unwrap_or(program.ranks)
    }

    fn options(&self) -> [&str; 2] {
        ["--images", &self.images]
    }

    fn words(&self, program: &Program, more: &[String]) -> Vec<String> {
        if !program.command.is_empty() {
            return program.command.to_vec();
        }
        let recipe = Mpi::OpenMpi.recipe(program.source).flags(program.flags);
        let mut words = Mpi::OpenMpi.launch(self.ranks_of(program) as usize);
        words.push(recipe.build().display().to_string());
        words.extend(program.arguments.iter().map(|&word| word.to_owned()));
        words.extend_from_slice(more);
        words
    }

    /// A normal run of a program, recorded if it is not there yet.
    pub fn normal(&self, program: &Program, number: usize) -> Result<PathBuf> {
        let directory = self.runs.join(format!("{}-{number}", program.source));
        if !directory.exists() {
            let part = self.runs.join("part");
            let _ = std::fs::remove_dir_all(&part);
            let words = self.words(program, &[]);
            let outcome = command::run(&mut record_command(&part, &self.options(), &words));
            ensure!(outcome.status == 0, "a healthy run failed: {outcome:#?}");
            std::fs::rename(&part, &directory)?;
        }
        Ok(directory)
    }

    /// Records a run with the fault into `faulty`.
    pub fn put(
        &self,
        kind: &Kind,
        random: &mut Random,
        normal: &Path,
        faulty: &Path,
    ) -> Result<Placed> {
        let program = kind.program;
        let process = program.first + random.below(self.ranks_of(program) - program.first);
        let thread = match kind.fault {
            Fault::Thread(_) => 1 + random.below(program.workers),
            _ => 0,
        };
        let mut placed = Placed {
            truth: format!("{process}.{thread}"),
            place: String::new(),
        };
        match kind.fault {
            Fault::Healthy => {
                let words = self.words(program, &[]);
                let _ = command::run(&mut record_command(faulty, &self.options(), &words));
            }
            Fault::Process(bug) | Fault::Thread(bug) => {
                let more = (program.switch)(bug, process, thread, random.below(program.steps));
                let words = self.words(program, &more);
                self.start(&mut record_command(faulty, &self.options(), &words), faulty);
            }
            Fault::Inject(options, function, calls) => {
                let at = format!("{function}#{}", 1 + random.below(calls));
                let more = ["--at", &at, "--process", &process.to_string()];
                self.inject(program, options, &more, faulty);
                placed.place = at;
            }
            Fault::Anywhere(options) => {
                let number = random.below(1 << 30).to_string();
                let from = normal.display().to_string();
                let more = ["--at", "random", "--seed", &number, "--from", &from];
                let said = self.inject(program, options, &more, faulty).stderr;
                // `lockstep: chosen: MPI_Send#3, process 2, thread 0`
                let chosen = said.split_once("chosen: ").context(said.clone())?.1;
                let chosen = chosen.lines().next().unwrap_or_default();
                // Functions of C++ have commas in their names.
                let [thread, process, place] = chosen.rsplitn(3, ", ").collect::<Vec<_>>()[..]
                else {
                    bail!("expected a function, a process and a thread, found {chosen}");
                };
                let number = |text: &str| text.rsplit(' ').next().unwrap_or_default().to_owned();
                placed.truth = format!("{}.{}", number(process), number(thread));
                placed.place = place.to_owned();
            }
        }
        Ok(placed)
    }

    fn inject(&self, program: &Program, options: &[&str], more: &[&str], faulty: &Path) -> Outcome {
        let mut inject = lockstep(&["inject"]);
        inject
            .args(options)
            .args(self.options())
            .args(more)
            .arg("-o")
            .arg(faulty);
        self.start(inject.arg("--").args(self.words(program, &[])), faulty)
    }

    /// Runs a program, faulty or not, to its end, whatever that is; what hangs is ended.
    fn start(&self, command: &mut std::process::Command, run: &Path) -> Outcome {
        let running = Running::start(command);
        match self.hangs {
            Some(limit) => running.wait(limit),
            None => hang::stand_still(running, run, Duration::ZERO).ended,
        }
    }
}
