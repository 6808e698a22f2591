//! The progress campaign: faults at random calls of unmodified MPI programs, and who is named for each.
//!
//! A trial draws a kind of fault, a rank and a call of a healthy recording; runs the program with the fault
//! until nothing moves (or it ends); and asks our own analysis, the same with the healthy run beside it, and
//! both published methods. Whoever a method names is a set of ranks: the case is *accurate* if the faulty
//! rank is among them, its *precision* is 1 over their number then, and 0 else.

use crate::Scratch;
use crate::command::{self, Outcome as Ended, Running};
use crate::mpi::Mpi;
use crate::recording::{lockstep, record_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Programs of the campaign, in `programs/mpi`.
pub const PROGRAMS: [&str; 6] = ["hydro", "sweep", "multigrid", "workers", "adi", "molecules"];

/// The methods that are compared.
pub const METHODS: [&str; 4] = ["lockstep", "lockstep+normal", "prodometer", "automaded"];

/// A faulty program that does not hang is not waited for longer.
const LONGEST: Duration = Duration::from_secs(40);

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An own function never ends.
    Loop,
    /// A message is not sent.
    Dropped,
    /// A message has another tag.
    Tag,
    /// A message goes to its sender.
    Peer,
    /// A collective operation is left out.
    Collective,
    /// A collective operation is made after the next call.
    Swap,
    /// The process ends by itself.
    Exit,
    /// The process sleeps in an own function, for longer than anybody looks.
    Sleep,
    /// An own function takes long, and then all goes well: nobody hangs.
    Slow,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Loop,
        Self::Dropped,
        Self::Tag,
        Self::Peer,
        Self::Collective,
        Self::Swap,
        Self::Exit,
        Self::Sleep,
        Self::Slow,
    ];

    /// Its name in tables, and what `inject` is told.
    #[must_use]
    pub fn words(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Loop => ("loop", &["--fault", "hang", "--spin"]),
            Self::Dropped => ("dropped", &["--fault", "skip"]),
            Self::Tag => ("tag", &["--fault", "argument", "--set", "tag=77"]),
            // To whom is added with the rank.
            Self::Peer => ("peer", &["--fault", "argument"]),
            Self::Collective => ("collective", &["--fault", "skip"]),
            Self::Swap => ("swap", &["--fault", "swap"]),
            Self::Exit => ("exit", &["--fault", "exit", "--set", "status=0"]),
            Self::Sleep => ("sleep", &["--fault", "delay", "--seconds", "1000"]),
            Self::Slow => ("slow", &["--fault", "delay", "--seconds", "3"]),
        }
    }

    /// Whether calls of a function may be hit.
    fn fits(self, function: &str, is_own: bool) -> bool {
        match self {
            Self::Loop | Self::Slow | Self::Exit | Self::Sleep => is_own && function != "main",
            Self::Dropped | Self::Tag | Self::Peer => matches!(
                function,
                "MPI_Send" | "MPI_Isend" | "mpi_send_" | "mpi_isend_"
            ),
            Self::Collective | Self::Swap => matches!(
                function,
                "MPI_Allreduce" | "MPI_Reduce" | "mpi_allreduce_" | "mpi_reduce_"
            ),
        }
    }
}

/// One fault.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What.
    pub fault: Fault,
    /// In which rank.
    pub rank: u32,
    /// The function.
    pub function: String,
    /// Which of its calls, from 1.
    pub call: u64,
}

/// Whom a method names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    /// Ranks, the most suspicious first.
    pub ranks: Vec<u32>,
    /// Whether it says that the run hangs.
    pub hang: bool,
    /// Functions open where those stand, and those that they called wrongly or left out.
    pub functions: Vec<String>,
}

impl Named {
    /// 1 over their number if the rank is among them, else 0.
    #[must_use]
    pub fn precision(&self, rank: u32) -> f64 {
        match self.ranks.contains(&rank) {
            true => 1.0 / self.ranks.len() as f64,
            false => 0.0,
        }
    }

    /// Whether the function is one of those named: of MPI in C's spelling or in Fortran's.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        let plain = |name: &str| name.trim_end_matches('_').to_ascii_lowercase();
        let is_it = |name: &String| {
            name == function || name.starts_with("MPI_") && plain(name) == plain(function)
        };
        self.functions.iter().any(is_it)
    }
}

/// What came of a trial.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// By method, in the order of [`METHODS`].
    pub named: Vec<Named>,
    /// Whether it hung, and went on hanging.
    pub hung: bool,
    /// From the start to the first look that says it hangs, or to the end.
    pub seconds: f64,
}

/// How a program came to stand still, or to its end.
#[derive(Debug)]
pub struct Stood {
    /// How it ended, or was ended.
    pub ended: Ended,
    /// Whether it hung, and went on hanging.
    pub hung: bool,
    /// From the start to the first look that says it hangs, or to the end.
    pub after: Duration,
}

/// Looks at a run until `progress` says that it hangs, and `least` is over, or until it ends by itself; then ends it.
#[must_use]
pub fn stand_still(mut running: Running, run: &Path, least: Duration) -> Stood {
    let begin = Instant::now();
    let mut hung = None;
    while begin.elapsed() < LONGEST && !running.is_over() {
        std::thread::sleep(Duration::from_millis(500));
        // A run that cannot be read yet is read later.
        let hangs = try_ask(&["progress"], run).is_some_and(|it| it["hang"] == true);
        hung = hung.or_else(|| hangs.then(|| begin.elapsed()));
        if hung.is_some() && begin.elapsed() >= least {
            break;
        }
    }
    let hung = hung.filter(|_| !running.is_over());
    Stood {
        hung: hung.is_some(),
        after: hung.unwrap_or_else(|| begin.elapsed()),
        ended: running.stop(),
    }
}

/// A program, recorded without a fault.
#[derive(Debug)]
pub struct Healthy {
    program: String,
    words: Vec<String>,
    /// Options that choose libraries, where its code is in some.
    images: Vec<String>,
    directory: PathBuf,
    /// Rank, function, whether it is the program's own, calls.
    calls: Vec<(u32, String, bool, u64)>,
}

impl Healthy {
    /// Records one of [`PROGRAMS`] with so many ranks, below `place`, unless it is there already.
    ///
    /// # Panics
    /// If it cannot be recorded.
    #[must_use]
    pub fn record(mpi: Mpi, program: &str, ranks: u32, place: &Path) -> Self {
        let recipe = mpi.recipe(&format!("{program}.c"));
        let built = recipe.flags(&["-g", "-O1"]).build();
        let mut words = mpi.launch(ranks as usize);
        words.push(built.display().to_string());
        Self::record_words(program, words, &[], place)
    }

    /// The same of a command, a launcher and its program, and of libraries those that `images` names.
    ///
    /// # Panics
    /// If it cannot be recorded.
    #[must_use]
    pub fn of_command(command: &str, images: &[&str], place: &Path) -> Self {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let is_program = |it: &&String| it.contains('/') || it.ends_with(".x");
        let program = words.iter().find(is_program).or(words.last());
        let program = program.map_or("", |it| file_name(it)).to_owned();
        Self::record_words(&program, words, images, place)
    }

    fn record_words(program: &str, words: Vec<String>, images: &[&str], place: &Path) -> Self {
        let directory = place.join(format!("healthy-{program}"));
        let options: Vec<&str> = images.iter().flat_map(|it| ["--images", it]).collect();
        if !directory.exists() {
            let part = place.join("part");
            let _ = std::fs::remove_dir_all(&part);
            let outcome = command::run(&mut record_command(&part, &options, &words));
            assert_eq!(outcome.status, 0, "{outcome:#?}");
            std::fs::rename(part, &directory).expect("a run can be renamed in its directory");
        }
        let mut calls = Vec::new();
        for rank in 0.. {
            let trace = format!("{rank}.0");
            let Some(found) = try_ask(&["calls", "-t", &trace], &directory) else {
                break;
            };
            for it in found["functions"].as_array().into_iter().flatten() {
                let name = it["name"].as_str().unwrap_or_default().to_owned();
                let image = file_name(it["image"].as_str().unwrap_or_default());
                let is_own = [program].iter().chain(images).any(|it| image.contains(it));
                calls.push((rank, name, is_own, it["calls"].as_u64().unwrap_or(0)));
            }
        }
        Self {
            program: program.to_owned(),
            words,
            images: options.iter().map(|&it| it.to_owned()).collect(),
            directory,
            calls,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The words that start it.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Its name.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The trial of this kind and number; none where the program has nothing to hit.
    #[must_use]
    pub fn draw(&self, fault: Fault, seed: u64) -> Option<Trial> {
        let mut state = seed;
        for byte in self.program.bytes().chain(fault.words().0.bytes()) {
            state = mix(state ^ u64::from(byte));
        }
        let mut below = |limit: usize| {
            state = mix(state);
            (state % limit.max(1) as u64) as usize
        };
        let fitting = self.calls.iter();
        let fitting: Vec<_> = fitting
            .filter(|(_, name, is_own, calls)| *calls > 2 && fault.fits(name, *is_own))
            .collect();
        let rank = fitting.get(below(fitting.len()))?.0;
        let own: Vec<_> = fitting.iter().filter(|it| it.0 == rank).collect();
        let (_, function, _, calls) = own.get(below(own.len()))?;
        Some(Trial {
            fault,
            rank,
            function: function.clone(),
            // Not the first, as in a solver that has begun, and not the last.
            call: 2 + below(*calls as usize - 2) as u64,
        })
    }

    /// Runs the program with a fault, and asks everybody about it.
    #[must_use]
    pub fn run(&self, trial: &Trial, scratch: &Scratch) -> Outcome {
        let directory = scratch.join("faulty");
        // What is left of the trial before.
        let _ = std::fs::remove_dir_all(&directory);
        let stood = self.put(trial, &directory);
        let normal = self.directory.display().to_string();
        let named = METHODS.iter().map(|method| {
            let words = match *method {
                "lockstep" => vec!["progress"],
                "lockstep+normal" => vec!["progress", "--normal", &normal],
                method => vec!["progress", "--method", method],
            };
            named(&ask(&words, &directory))
        });
        Outcome {
            named: named.collect(),
            hung: stood.hung,
            seconds: stood.after.as_secs_f64(),
        }
    }

    /// Runs the program with a fault, recorded into `directory`, until it stands still.
    #[must_use]
    pub fn put(&self, trial: &Trial, directory: &Path) -> Stood {
        let (at, rank) = (
            format!("{}#{}", trial.function, trial.call),
            trial.rank.to_string(),
        );
        let mut inject = lockstep(&["inject", "-o"]);
        inject.arg(directory).args(trial.fault.words().1);
        inject.args(&self.images);
        if trial.fault == Fault::Peer {
            inject.args(["--set", &format!("dest={rank}")]);
        }
        inject.args(["--at", &at, "--process", &rank, "--"]);
        // A slow run has to hang to the end of its delay.
        let least = match trial.fault {
            Fault::Slow => LONGEST / 2,
            _ => Duration::ZERO,
        };
        stand_still(Running::start(inject.args(&self.words)), directory, least)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn named(found: &Value) -> Named {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let rank = |value: &Value| value.as_u64().map(|it| it as u32);
    let mut named = Named {
        hang: found["hang"] == true,
        ..Named::default()
    };
    for id in list(&found["least_progressed"]) {
        let group = &found["groups"][id.as_u64().unwrap_or(0) as usize];
        named
            .ranks
            .extend(list(&group["processes"]).iter().filter_map(rank));
        let stack = list(&group["stack"]);
        let names = stack.iter().filter_map(|it| it.as_str().map(str::to_owned));
        named.functions.extend(names);
    }
    let causes = list(&found["causes"]);
    for cause in &causes {
        let functions = list(&cause["functions"]);
        let names = functions
            .iter()
            .filter_map(|it| it.as_str().map(str::to_owned));
        named.functions.extend(names);
    }
    let causes: Vec<u32> = causes.iter().filter_map(|it| rank(&it["task"])).collect();
    if !causes.is_empty() {
        named.ranks = causes;
    }
    named
}

fn try_ask(words: &[&str], run: &Path) -> Option<Value> {
    let mut command = lockstep(&words[..1]);
    let outcome = command::run(command.arg(run).args(&words[1..]).arg("--json"));
    serde_json::from_str(&outcome.stdout).ok()
}

fn ask(words: &[&str], run: &Path) -> Value {
    try_ask(words, run).unwrap_or_default()
}

fn mix(it: u64) -> u64 {
    let mut z = it.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
