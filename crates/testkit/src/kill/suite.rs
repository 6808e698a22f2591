//! Kills of the programs of the compression suite: each at a random moment of its running time.
//!
//! The programs do the same in every run. So whatever the trace of a killed one holds must be the beginning of what it
//! holds of a run that went to its end; and whatever could be read of it when the kill came must be in it. Of every
//! other kill the program is stopped first, so that what can be read and what is committed are the same.

use super::Random;
use crate::Scratch;
use crate::command::{LIMIT, Running};
use crate::recording::record_command;
use crate::suite::{Member, SUITE};
use lockstep_trace::{Event, FunctionId, Run, Thread};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The codecs that are killed, the default one half of the time.
const CODECS: [&str; 4] = ["lockstep", "lockstep", "lockstep-low", "seed"];

/// A program of the suite, recorded whole.
#[derive(Debug)]
pub struct Whole {
    member: Member,
    words: Vec<String>,
    run: Run,
    /// How long that took on the clock.
    took: Duration,
}

/// One kill, and all that chance decides about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Its number within the campaign, from 0.
    pub number: u64,
    /// Which program of [`SUITE`].
    pub member: usize,
    /// Codec of the recording.
    pub codec: &'static str,
    /// When, in millionths of the time that the program takes, recorded.
    pub moment: u64,
    /// Whether the program is stopped before, so that what is committed can be told.
    pub stops: bool,
}

/// How far a program had come when the kill came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It had recorded nothing yet.
    NotBegun,
    /// It was killed.
    Killed,
    /// It had ended by itself.
    Ended,
}

/// What came of a trial: one line of the campaign's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// How far it had come.
    pub came: Came,
    /// Events that could be read before the kill.
    pub before: u64,
    /// Events of its trace.
    pub traced: u64,
    /// What is wrong, if anything.
    pub fault: Option<String>,
}

impl Whole {
    /// Builds a program and records it, twice: the second run finds plans made, as those do that are killed.
    ///
    /// # Errors
    /// Where there is no whole trace of it.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn record(member: Member, scratch: &Scratch) -> Result<Self, String> {
        let words = member.words();
        let mut whole = None;
        for round in 0..2 {
            let directory = scratch.join(format!("whole-{}-{round}", member.name));
            let start = Instant::now();
            let outcome = Running::start(&mut record_command(&directory, &[], &words)).wait(LIMIT);
            let took = start.elapsed();
            let run = Run::open(&directory).map_err(|error| error.to_string())?;
            if outcome.status != 0 || run.traces().count() != 1 {
                return Err(format!("{}: {outcome:?}", member.name));
            }
            let words = words.clone();
            whole = Some(Self {
                member,
                words,
                run,
                took,
            });
        }
        whole.ok_or_else(|| member.name.to_owned())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.member.name
    }

    /// Whether the events of a trace are the beginning of this one's; how many they are.
    fn begins_like(&self, run: &Run, thread: &Thread) -> (u64, Result<(), String>) {
        let mut pairs: HashMap<FunctionId, FunctionId> = HashMap::new();
        let is_same = |ours: FunctionId, theirs: FunctionId| {
            let (ours, theirs) = (self.run.function(ours), run.function(theirs));
            (&ours.linkage, &ours.image) == (&theirs.linkage, &theirs.image)
        };
        let mut whole = self.run.traces().flat_map(|it| it.events());
        let mut count = 0;
        for event in thread.events() {
            let is_right = match (whole.next(), event) {
                (Some(Event::Call(ours)), Event::Call(theirs)) => match pairs.get(&theirs) {
                    Some(known) => *known == ours,
                    None => {
                        pairs.insert(theirs, ours);
                        is_same(ours, theirs)
                    }
                },
                (Some(expected), found) => expected == found,
                (None, _) => false,
            };
            if !is_right {
                return (
                    count,
                    Err(format!(
                        "event {count} is {event:?}, and none in the whole run"
                    )),
                );
            }
            count += 1;
        }
        (count, Ok(()))
    }

    fn length(&self) -> u64 {
        self.run.traces().map(|it| it.events().count() as u64).sum()
    }
}

impl Trial {
    /// Heads of the columns that [`Trial::csv`] writes.
    pub const HEADS: &'static str =
        "trial,program,codec,moment_us,stopped,came,before,traced,fault";

    /// The trial with this number in the campaign with this seed.
    #[must_use]
    pub fn draw(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            number,
            member: random.below(SUITE.len() as u64) as usize,
            codec: CODECS[random.below(CODECS.len() as u64) as usize],
            moment: random.below(1_000_000),
            stops: random.below(2) == 1,
        }
    }

    /// When the kill comes, from the start of the recorder on.
    #[must_use]
    pub fn delay(&self, whole: &Whole) -> Duration {
        whole.took.mul_f64(self.moment as f64 / 1e6)
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the program cannot be started.
    #[must_use]
    pub fn run(&self, whole: &Whole, scratch: &Scratch) -> Row {
        let directory = scratch.join(format!("run-{}", self.number));
        let mut command = record_command(&directory, &["--codec", self.codec], &whole.words);
        let recorder = Running::start(&mut command);
        std::thread::sleep(self.delay(whole));
        let victim = child(recorder.id());
        if let Some(pid) = victim.filter(|_| self.stops) {
            send(pid, Signal::STOP);
        }
        let before = victim.map_or(0, |_| readable(&directory));
        if let Some(pid) = victim {
            send(pid, Signal::KILL);
        }
        let outcome = recorder.wait(LIMIT);
        let mut row = Row {
            came: Came::NotBegun,
            before,
            traced: 0,
            fault: None,
        };
        // 137: it was killed; 0: it had ended.
        row.fault = match outcome.status {
            0 | 137 => self
                .check(whole, &directory, outcome.status == 0, &mut row)
                .err(),
            other => Some(format!("status {other}: {}", outcome.stderr.trim())),
        };
        if row.fault.is_none() {
            // A later trial needs the room more than anybody needs a right trace.
            let _ = std::fs::remove_dir_all(&directory);
        }
        row
    }

    fn check(
        &self,
        whole: &Whole,
        directory: &Path,
        ended: bool,
        row: &mut Row,
    ) -> Result<(), String> {
        let run = match Run::open(directory) {
            Ok(run) => run,
            // Killed before it had a file.
            Err(_) if !ended && row.before == 0 => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let Some(thread) = run.traces().next() else {
            return match ended || row.before > 0 {
                true => Err("no trace".to_owned()),
                false => Ok(()),
            };
        };
        if let Some(damage) = &thread.damage {
            return Err(damage.clone());
        }
        let (traced, is_right) = whole.begins_like(&run, thread);
        row.traced = traced;
        row.came = match ended {
            true => Came::Ended,
            false => Came::Killed,
        };
        is_right?;
        if traced < row.before {
            return Err("what could be read before is not there".to_owned());
        }
        if ended && traced != whole.length() {
            return Err("it ended, and its trace is not whole".to_owned());
        }
        Ok(())
    }

    /// One line of the campaign's table.
    #[must_use]
    pub fn csv(&self, whole: &Whole, row: &Row) -> String {
        format!(
            "{},{},{},{},{},{:?},{},{},{}",
            self.number,
            whole.name(),
            self.codec,
            self.delay(whole).as_micros(),
            self.stops,
            row.came,
            row.before,
            row.traced,
            row.fault.as_deref().unwrap_or("").replace([',', '\n'], ";")
        )
    }
}

/// The program that a recorder has started, once it is no copy of the recorder any more.
fn child(recorder: u32) -> Option<u32> {
    let is_recorder = |pid: u32| comm(pid).is_some_and(|name| name.starts_with("lockstep"));
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let mut children = processes.filter(|pid| parent(*pid) == Some(recorder));
    children.find(|pid| !is_recorder(*pid))
}

fn comm(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

fn parent(pid: u32) -> Option<u32> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: state, parent.
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process(pid, signal);
    }
}

/// Events that can be read of a run that goes on.
fn readable(directory: &Path) -> u64 {
    let run = Run::open(directory);
    run.map_or(0, |run| {
        run.traces().map(|it| it.events().count() as u64).sum()
    })
}
