//! The runs that both builds are asked about: hangs and slow jobs of `campaign progress`, faults and healthy runs of `campaign
//! compare`, and mistakes that small programs make.

use crate::campaign::kinds::{KINDS, Kind};
use crate::campaign::workshop::{Random, Workshop};
use anyhow::{Context, Result, ensure};
use lockstep_testkit::command::Running;
use lockstep_testkit::hang::{Fault, Healthy, PROGRAMS, stand_still};
use lockstep_testkit::mpi::Mpi;
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{artifacts, command};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Ranks of the programs of `campaign progress`.
const RANKS: u32 = 4;
/// So many trials of each fault of each program, and of each kind of `campaign compare`.
const TRIALS: u64 = 3;
/// Of three trials of a kind the last one is compared with so many normal runs, and the others with one.
const NORMALS: usize = 3;

/// Programs that make mistakes, by name: ranks, and the word without a mistake.
const SMALL: [(&str, usize, Option<&str>); 6] = [
    ("bugs", 4, None),
    ("lapses", 4, Some("fine")),
    ("standstill", 4, Some("none")),
    ("windows", 4, Some("fine")),
    ("series", 4, Some("fine")),
    ("scenarios", 8, None),
];

/// A run that can be made.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: String,
    make: Make,
}

#[derive(Debug, Clone)]
enum Make {
    Trial(&'static str, Fault, u64),
    Kind(&'static Kind, u64),
    Small(&'static str, String),
}

/// A run that was made, and normal ones beside it.
#[derive(Debug)]
pub struct Made {
    pub id: String,
    pub run: PathBuf,
    pub normals: Vec<PathBuf>,
}

/// All runs, in an order that the seed draws.
pub fn all(seed: u64) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    let mut add = |id: String, make| all.push(Run { id, make });
    for number in 0..TRIALS {
        for program in PROGRAMS {
            for fault in Fault::ALL {
                let id = format!("{program}.{}.{number}", fault.words().0);
                add(id, Make::Trial(program, fault, number));
            }
        }
        for kind in KINDS {
            add(format!("{}.{number}", kind.name), Make::Kind(kind, number));
        }
    }
    for (program, _, _) in SMALL {
        for word in words(program) {
            add(format!("{program}.{word}"), Make::Small(program, word));
        }
    }
    let mut random = Random::new(&["answers", &seed.to_string()]);
    for last in (1..all.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        all.swap(last, other);
    }
    all
}

/// What a small program can be told, from the list in its first comment: `//   bugs cycle3     what it does`.
fn words(program: &str) -> Vec<String> {
    let source = artifacts::repository().join(format!("programs/mpi/{program}.c"));
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let start = format!("//   {program} ");
    let rows = text.lines().filter_map(|line| line.strip_prefix(&start));
    let words = rows.map(|row| row.split("  ").next().unwrap_or_default());
    let words = words.filter(|it| !it.is_empty() && !it.contains(' '));
    words.map(str::to_owned).collect()
}

/// Makes runs, each once: what is there is not made again. Several may be made at a time.
pub struct Recorder {
    place: PathBuf,
    seed: u64,
    workshop: Workshop,
    /// Normal runs are made one at a time, as several faults need the same.
    healthy: Mutex<BTreeMap<&'static str, Arc<Healthy>>>,
}

impl Recorder {
    /// Below this directory.
    pub fn new(place: PathBuf, seed: u64) -> Self {
        let workshop = Workshop {
            runs: place.clone(),
            hangs: None,
            ranks: None,
            images: "main".to_owned(),
        };
        Self {
            place,
            seed,
            workshop,
            healthy: Mutex::default(),
        }
    }

    /// Makes a run; none where the program has nothing that the fault could hit.
    pub fn make(&self, run: &Run) -> Result<Option<Made>> {
        let directory = self.place.join(&run.id);
        // What is left of an attempt before.
        let part = self.place.join(format!("{}.part", run.id));
        let _ = std::fs::remove_dir_all(&part);
        let part = Some(part.as_path()).filter(|_| !directory.exists());
        let normals = match &run.make {
            Make::Trial(program, fault, number) => {
                let healthy = self.healthy(program);
                let seed = self.seed.wrapping_mul(1000) + number;
                let Some(trial) = healthy.draw(*fault, seed) else {
                    return Ok(None);
                };
                if let Some(part) = part {
                    let _ = healthy.put(&trial, part);
                }
                vec![healthy.directory().to_owned()]
            }
            Make::Kind(kind, number) => self.kind(kind, *number, part)?,
            Make::Small(program, word) => self.small(program, word, part)?,
        };
        if let Some(part) = part {
            std::fs::rename(part, &directory).context("nothing was recorded")?;
        }
        Ok(Some(Made {
            id: run.id.clone(),
            run: directory,
            normals,
        }))
    }

    fn healthy(&self, program: &'static str) -> Arc<Healthy> {
        let mut all = self.alone();
        let made = || Arc::new(Healthy::record(Mpi::OpenMpi, program, RANKS, &self.place));
        all.entry(program).or_insert_with(made).clone()
    }

    /// As long as it is held, nobody else makes a normal run.
    fn alone(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<Healthy>>> {
        self.healthy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault of `campaign compare`; its normal runs.
    fn kind(&self, kind: &Kind, number: u64, part: Option<&Path>) -> Result<Vec<PathBuf>> {
        let count = if number + 1 == TRIALS { NORMALS } else { 1 };
        let held = self.alone();
        let normals = (0..count).map(|it| self.workshop.normal(kind.program, it));
        let normals = normals.collect::<Result<Vec<_>>>()?;
        drop(held);
        if let Some(part) = part {
            let (seed, number) = (self.seed.to_string(), number.to_string());
            let mut random = Random::new(&[&seed, kind.name, &number]);
            let normal = normals.first().context("a normal run")?;
            let _ = self.workshop.put(kind, &mut random, normal, part)?;
        }
        Ok(normals)
    }

    /// A mistake of a small program, with either library in turn; the run without, if there is one.
    fn small(&self, program: &str, word: &str, part: Option<&Path>) -> Result<Vec<PathBuf>> {
        let (_, ranks, fine) = SMALL
            .into_iter()
            .find(|it| it.0 == program)
            .context("one")?;
        let here: Vec<Mpi> = Mpi::ALL.into_iter().filter(|it| it.is_here()).collect();
        ensure!(!here.is_empty(), "expected an MPI library, found none");
        let mpi = here[word.len() % here.len()];
        let recipe = mpi.recipe(&format!("{program}.c"));
        let built = recipe.flags(&["-g", "-O1", "-fopenmp"]).build();
        let start = |word: &str, to: &Path| {
            let mut words = mpi.launch(ranks);
            words.extend([built.display().to_string(), word.to_owned()]);
            Running::start(&mut record_command(to, &[], &words))
        };
        let mut normals = Vec::new();
        if let Some(fine) = fine {
            let directory = self.place.join(format!("{program}-{mpi:?}-{fine}"));
            let held = self.alone();
            if !directory.exists() {
                let new = self.place.join("part");
                let _ = std::fs::remove_dir_all(&new);
                let outcome = start(fine, &new).wait(command::LIMIT);
                ensure!(outcome.status == 0, "{program} {fine}: {outcome:#?}");
                std::fs::rename(new, &directory)?;
            }
            drop(held);
            normals.push(directory);
        }
        if let Some(part) = part {
            let _ = stand_still(start(word, part), part, Duration::ZERO);
        }
        Ok(normals)
    }
}

/// What is asked about a run: a name, and the words behind `lockstep`.
pub fn questions(made: &Made) -> Vec<(&'static str, Vec<String>)> {
    let text = |path: &Path| path.display().to_string();
    let words = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let run = text(&made.run);
    let mut all = vec![("progress", words(&["progress", "--json", &run]))];
    if let Some((first, others)) = made.normals.split_first() {
        let first = text(first);
        let beside = words(&["progress", "--json", &run, "--normal", &first]);
        all.push(("progress --normal", beside));
        let mut compare = words(&["compare", "--json", "--fresh", &first, &run]);
        for other in others {
            compare.extend(["--normal".to_owned(), text(other)]);
        }
        all.push(("compare", compare));
    }
    all
}
