//! The kill campaign: SIGKILL at a random moment, and what the trace must hold then.
//!
//! `programs/c/ordinals.c` tells in a file that it shares with us which calls it has begun and ended.
//! Whenever the kill comes, the trace must hold at least the calls and returns that the program had
//! come past, at most those that it had begun, and nothing else: only the event in flight may be missing.

pub mod suite;

use crate::recording::record_command;
use crate::{Recipe, Scratch, command::Running};
use lockstep_trace::{Event, Run, Thread};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// One process; the others a little later, each at a moment of its own.
    One,
    /// All processes of the program at once.
    All,
    /// All of them and the recorder.
    AllAndRecorder,
}

/// One kill, and all that chance decides about it.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Its number within the campaign, from 0.
    pub number: u64,
    /// Codec of the recording.
    pub codec: &'static str,
    /// Number of processes.
    pub processes: usize,
    /// The launcher's words, if a launcher starts the processes.
    pub launcher: Vec<String>,
    /// Who is killed.
    pub victims: Victims,
    /// How long after the first call.
    pub delay: Duration,
}

/// What came of a trial: one line of the campaign's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which process of the program.
    pub process: usize,
    /// Calls that it had begun and ended when it was killed.
    pub told: (u64, u64),
    /// Calls and returns in its trace.
    pub traced: (u64, u64),
    /// What is wrong, if anything.
    pub fault: Option<String>,
}

const CODECS: [&str; 6] = [
    "lockstep",
    "none",
    "lockstep-low",
    "seed",
    "seed-v0",
    "seed-parlot",
];

impl Trial {
    /// Heads of the columns that [`Trial::csv`] writes.
    pub const HEADS: &'static str =
        "trial,codec,launcher,victims,delay_us,process,begun,ended,calls,returns,fault";

    /// The trial with this number in the campaign with this seed.
    #[must_use]
    pub fn draw(seed: u64, number: u64, launchers: &[Vec<String>]) -> Self {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // A launcher takes a hundred times as long to start as the rest of a trial.
        // Mostly early, where files grow and first chunks fill, but not only.
        let longest = 1 << (4 + random.below(11));
        let launched = !launchers.is_empty() && random.below(25) == 0;
        Self {
            number,
            codec: CODECS[random.below(CODECS.len() as u64) as usize],
            processes: [1, 1, 2, 4][random.below(4) as usize],
            launcher: if launched {
                launchers[random.below(launchers.len() as u64) as usize].clone()
            } else {
                Vec::new()
            },
            victims: [Victims::One, Victims::All, Victims::AllAndRecorder]
                [random.below(3) as usize],
            delay: Duration::from_micros(random.below(longest)),
        }
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the program does not start.
    #[must_use]
    pub fn run(&self, scratch: &Scratch) -> Vec<Row> {
        let program = program();
        let witness = Witness::new(scratch.join(format!("witness-{}", self.number)));
        let directory = scratch.join(format!("run-{}", self.number));
        let mut words: Vec<String> = self.launcher.clone();
        let mut forks = self.processes;
        if !words.is_empty() {
            words.extend(["-n".to_owned(), self.processes.to_string()]);
            forks = 1;
        }
        words.push(program.display().to_string());
        words.push(witness.path.display().to_string());
        words.push(ENDLESS.to_string());
        words.push(forks.to_string());
        let mut command = record_command(&directory, &["--codec", self.codec], &words);
        let running = Running::start(&mut command);
        witness.wait_for(self.processes);
        std::thread::sleep(self.delay);
        self.kill(&witness, &running);
        let _ = running.wait(Duration::from_secs(30));
        // Ranks of a launcher that was killed with its recorder may outlive it for a moment.
        witness.kill_all(self.processes);
        let rows = self.check(&directory, &witness);
        if rows.iter().all(|row| row.fault.is_none()) {
            // A later trial needs the room more than anybody needs a right trace.
            let _ = std::fs::remove_dir_all(&directory);
            let _ = std::fs::remove_file(&witness.path);
        }
        rows
    }

    fn kill(&self, witness: &Witness, running: &Running) {
        if self.victims == Victims::AllAndRecorder {
            let recorder = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
            let _ = recorder.map(|pid| kill_process(pid, Signal::KILL));
        }
        for process in 0..self.processes {
            kill(witness.read()[process].pid);
            if self.victims == Victims::One {
                std::thread::sleep(self.delay / 4);
            }
        }
    }

    fn check(&self, directory: &Path, witness: &Witness) -> Vec<Row> {
        let told = witness.read();
        let run = Run::open(directory);
        (0..self.processes)
            .map(|process| {
                let told = &told[process];
                let mut row = Row {
                    process,
                    told: (told.begun, told.ended),
                    traced: (0, 0),
                    fault: None,
                };
                row.fault = match &run {
                    Err(error) => Some(error.to_string()),
                    Ok(run) => match thread_of(run, told.pid) {
                        None => Some(format!("no trace of process {}", told.pid)),
                        Some(thread) => verify(run, thread, &mut row).err(),
                    },
                };
                row
            })
            .collect()
    }

    /// One line of the campaign's table.
    #[must_use]
    pub fn csv(&self, row: &Row) -> String {
        format!(
            "{},{},{},{:?},{},{},{},{},{},{},{}",
            self.number,
            self.codec,
            self.launcher.first().map_or("none", String::as_str),
            self.victims,
            self.delay.as_micros(),
            row.process,
            row.told.0,
            row.told.1,
            row.traced.0,
            row.traced.1,
            row.fault.as_deref().unwrap_or("")
        )
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "trial {}: {} processes, {:?} killed after {:?}, codec {}, {}",
            self.number,
            self.processes,
            self.victims,
            self.delay,
            self.codec,
            self.launcher.first().map_or("forked", String::as_str)
        )
    }
}

/// More calls than any trial lives to see.
const ENDLESS: u64 = 1_000_000_000_000;

fn program() -> PathBuf {
    Recipe::new("c/ordinals.c").flag("-O2").build()
}

/// Which function `programs/c/ordinals.c` calls in round `n`.
fn name_in_round(n: u64) -> &'static str {
    if (n / 5 + n / 64).is_multiple_of(3) {
        "mark_other"
    } else {
        "mark"
    }
}

fn thread_of(run: &Run, pid: u64) -> Option<&Thread> {
    let with_pid = |process: &&lockstep_trace::Process| u64::from(process.pid) == pid;
    let process = run.processes.iter().find(with_pid)?;
    process.threads.first()
}

/// Goes through the events under `loop` and fills `row`.
fn verify(run: &Run, thread: &Thread, row: &mut Row) -> Result<(), String> {
    if let Some(damage) = &thread.damage {
        return Err(damage.clone());
    }
    let (mut calls, mut returns) = (0, 0);
    let mut events = thread.events();
    let is_call_of = |event: Event, wanted: &str| match event {
        Event::Call(id) => run.function(id).linkage == wanted,
        _ => false,
    };
    if !events.any(|event| is_call_of(event, "loop")) {
        // Before the first round the program has told nothing yet.
        return if row.told.0 <= 1 {
            Ok(())
        } else {
            Err("no call of loop".to_owned())
        };
    }
    for wanted in ["getpid", "return"] {
        match events.next() {
            Some(Event::Return) if wanted == "return" => {}
            Some(event) if is_call_of(event, wanted) => {}
            None if row.told.0 == 0 => return Ok(()),
            other => return Err(format!("{wanted} expected, {other:?} found")),
        }
    }
    for event in events {
        let right = match event {
            Event::Return => {
                returns += 1;
                returns == calls
            }
            event => {
                calls += 1;
                calls == returns + 1 && is_call_of(event, name_in_round(calls - 1))
            }
        };
        if !right {
            return Err(format!(
                "after {calls} calls and {returns} returns: {event:?}"
            ));
        }
    }
    row.traced = (calls, returns);
    let (begun, ended) = row.told;
    if calls < ended || returns < ended || calls > begun {
        return Err("not what the program told".to_owned());
    }
    Ok(())
}

/// What one process told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    pid: u64,
    begun: u64,
    ended: u64,
}

/// The file in which the processes tell.
struct Witness {
    path: PathBuf,
}

impl Witness {
    fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// What all processes that the file has room for have told; zeros from those that are not there.
    fn read(&self) -> Vec<Told> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let word = |at: usize| {
            let eight = bytes
                .get(at..at + 8)
                .and_then(|eight| eight.try_into().ok());
            eight.map_or(0, u64::from_le_bytes)
        };
        (0..64)
            .map(|process| Told {
                pid: word(24 * process),
                begun: word(24 * process + 8),
                ended: word(24 * process + 16),
            })
            .collect()
    }

    fn wait_for(&self, processes: usize) {
        let deadline = Instant::now() + crate::command::LIMIT;
        while self.read()[..processes].iter().any(|told| told.begun == 0) {
            assert!(Instant::now() < deadline, "the program has not started");
            std::thread::yield_now();
        }
    }

    fn kill_all(&self, processes: usize) {
        for told in &self.read()[..processes] {
            kill(told.pid);
        }
    }
}

/// Kills a process of the program, and no other that has come to its number since.
fn kill(pid: u64) {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.trim_end() != "ordinals" {
        return;
    }
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Numbers that look random (splitmix64): seeded, so that a trial can be had again.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 up to and without `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
