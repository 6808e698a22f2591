//! Runs a program that was built with the overlay, and sees how it ends.
//!
//! ```text
//!  parent                                          program
//!  memory file ◄─── /proc/PARENT/fd/N, mapped ───► hooks write, the watching thread says "quiet"
//!  each 2 ms: ended? quiet? out of time?
//! ```
//! The file has no name and is gone with the two processes. What was committed to it is there whatever ended the
//! program.
//!
//! A signal that asks us to end ends what runs; a program whose output is shown gets it instead, and ends as it likes.
//!
//! *Guarantees*: no longer than the limit and a second; nothing that was committed is lost. *Costs*: a header read
//! every two milliseconds. *Not for*: programs that replace themselves (`exec`).

use crate::execution::End;
use crate::outside;
use crate::ring::{self, ASKED_AT, HEADER, Policy};
use crate::script::Recorded;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long states are waited for.
const ANSWER: Duration = Duration::from_millis(500);
/// How long output is waited for once the program has ended: something it started may hold the pipe.
const DRAIN: Duration = Duration::from_millis(300);
/// How often it is asked at the end.
const ANSWERS: u64 = 5;
/// Without a switch between goroutines for so long, it is asked where they stand.
const STILL: Duration = Duration::from_millis(60);
/// From this pause on it is asked even while it moves,
const SELDOM: Duration = Duration::from_secs(1);
/// where its ring is no larger than this.
const MOST_ASKED: u64 = 4 << 20;
/// No longer pauses than this.
const MOST_PAUSE: Duration = Duration::from_secs(4);
/// A program that has filled so much of its ring finds the next pages there: making one costs it more than filling it.
const SMALL: u64 = 256 << 10;
/// So much as it has filled, but no more than this.
const AHEAD: u64 = 8 << 20;
/// Output that is kept.
const MOST_OUTPUT: usize = 8 << 20;
/// The variable that names the ring.
const VARIABLE: &str = "LOCKSTEP_GO_RING";

/// Says of a ring whether some wait for ever, as a number that is another one once one of them has moved.
#[derive(Clone, Copy)]
pub struct IsOver<'a>(pub &'a dyn Fn(&[u8]) -> Option<u64>);

impl std::fmt::Debug for IsOver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IsOver")
    }
}

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Where it runs.
    pub directory: &'a Path,
    /// Whose code is where: `Program::classes`.
    pub classes: &'a [u8],
    /// The schedule.
    pub policy: Policy,
    /// The order of turns that is asked for, where there is one: `schedule::Plan::script`.
    pub script: &'a [u64],
    /// Where the clock is to be that of a recorded run: `schedule::Plan::recorded`.
    pub recorded: Option<&'a Recorded>,
    /// `GOMAXPROCS`, where it is not left to the program.
    pub processors: Option<u32>,
    /// How long it may take.
    pub limit: Duration,
    /// Most bytes of the ring.
    pub most: u64,
    /// Whether its output is shown as it comes, besides being kept. Its input is ours then.
    pub shows: bool,
    /// Says of a ring, with states just told, whether there is anything left to wait for.
    pub is_over: Option<IsOver<'a>>,
    /// Whether somebody asked us to end.
    pub interrupted: Interrupted,
}

/// Asks for the last signal that asked us to end, if any did.
pub type Interrupted = fn() -> Option<Interrupt>;

/// A signal that asked us to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub signal: i32,
    /// Whether the program has it, too: the terminal sends to all.
    pub is_shared: bool,
    /// How many there were.
    pub count: u32,
}

/// How it went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What it printed, both streams as they came.
    pub text: String,
    /// The ring, as far as it was used.
    pub ring: Vec<u8>,
    /// How long it took.
    pub took: Duration,
    /// Its process id.
    pub pid: u32,
    /// What it said last of itself.
    pub standing: ring::Standing,
    /// Whether something outside of it could have let it go on, as far as was looked: at the limit.
    pub outside: bool,
}

/// Why it was not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No memory file.
    #[error("no memory for a ring of {bytes} bytes: {reason}")]
    Ring {
        /// How much was asked for.
        bytes: u64,
        /// Why not.
        reason: String,
    },
    /// A signal asked us to end, and what ran was ended. Where its output is shown it is passed on instead.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// The program was not started.
    #[error("{} was not started: {source}", program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Launch<'_> {
    /// Runs it to its end, or ends it.
    ///
    /// # Errors
    /// Where it was not started.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        let (first, size) = ring::prepare(
            &self.policy,
            self.classes,
            (self.script, self.recorded),
            self.most,
        );
        let file = memory_file(&first, size).map_err(|error| LaunchError::Ring {
            bytes: size,
            reason: error.to_string(),
        })?;
        let mut command = Command::new(self.program);
        command
            .args(self.arguments)
            .current_dir(self.directory)
            .env(
                VARIABLE,
                format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()),
            )
            .stdin(if self.shows {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // The race detector waits a second at each exit, for reports that nobody has yet; ours has settled by then.
        if std::env::var_os("GORACE").is_none() {
            command.env("GORACE", "atexit_sleep_ms=0");
        }
        if let Some(processors) = self.processors {
            command.env("GOMAXPROCS", processors.to_string());
        }
        let started = Instant::now();
        let mut child = command.spawn().map_err(|source| LaunchError::Start {
            program: self.program.to_owned(),
            source,
        })?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        let readers = [
            child.stdout.take().map(|it| {
                keep(
                    it,
                    &kept,
                    self.shows
                        .then(|| Box::new(io::stdout()) as Box<dyn Write + Send>),
                )
            }),
            child.stderr.take().map(|it| {
                keep(
                    it,
                    &kept,
                    self.shows
                        .then(|| Box::new(io::stderr()) as Box<dyn Write + Send>),
                )
            }),
        ];
        let mut outside = true;
        let end = self.watch(&mut child, &file, started, &mut outside);
        let took = started.elapsed();
        if let (Some(interrupt), false) = ((self.interrupted)(), self.shows) {
            return Err(LaunchError::Interrupted(interrupt.signal));
        }
        let drained = Instant::now();
        for reader in readers.into_iter().flatten() {
            while !reader.is_finished() && drained.elapsed() < DRAIN {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let text = kept
            .lock()
            .map(|it| String::from_utf8_lossy(&it).into_owned());
        let header = header(&file);
        Ok(Outcome {
            end: end.map_err(|source| LaunchError::Start {
                program: self.program.to_owned(),
                source,
            })?,
            text: text.unwrap_or_default(),
            ring: used(&file, &header),
            took,
            pid: child.id(),
            standing: ring::standing(&header),
            outside,
        })
    }

    fn watch(
        &self,
        child: &mut Child,
        file: &File,
        started: Instant,
        outside: &mut bool,
    ) -> io::Result<End> {
        let (mut asked, mut stuck_before) = (0, None);
        let mut calm = Calm::new(started);
        let (mut ready, mut passed_on) = (0, 0);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(end_of(status));
            }
            if let Some(interrupt) = (self.interrupted)() {
                if !self.shows {
                    return stop(child, End::TimedOut);
                }
                if interrupt.count > passed_on && !interrupt.is_shared {
                    pass_on(child, interrupt.signal);
                }
                passed_on = interrupt.count;
            }
            let header = header(file);
            make_ready(file, &header, &mut ready);
            let standing = ring::standing(&header);
            if standing.quiet {
                return stop(child, End::Quiescent);
            }
            if started.elapsed() >= self.limit {
                if standing.began {
                    self.ask_at_last(child, file, asked)?;
                    *outside = outside::reaches_in(child.id());
                }
                return stop(child, End::TimedOut);
            }
            // A timer that is far away keeps a program from being quiet whose main waits for ever.
            if let Some(IsOver(is_over)) = self.is_over
                && calm.is_due(&standing)
            {
                asked += 1;
                let told = ask(child, file, asked)?;
                let look = || is_over(&used(file, &self::header(file)));
                let stuck = told.then(look).flatten();
                // States are told one after the other, and who moves meanwhile stands where it is not any more: it
                // must be so twice, and nobody of them have moved between. How long nothing has moved does not
                // tell: whoever counts that may be kept from it as long by a busy machine.
                if stuck.is_some() {
                    if stuck == stuck_before {
                        return stop(child, End::TimedOut);
                    }
                    calm.soon();
                }
                stuck_before = stuck;
            }
            thread::sleep(LOOK);
        }
    }

    /// Asks where goroutines stand until two answers agree on who waits for ever, or nobody does.
    fn ask_at_last(&self, child: &mut Child, file: &File, asked: u64) -> io::Result<()> {
        let mut before = None;
        for number in 1..=ANSWERS {
            let told = ask(child, file, asked + number)?;
            let look = |it: IsOver<'_>| it.0(&used(file, &header(file)));
            let stuck = self.is_over.filter(|_| told).and_then(look);
            if stuck.is_none() || stuck == before {
                break;
            }
            before = stuck;
            thread::sleep(STILL);
        }
        Ok(())
    }
}

/// Sends a signal to the child, which was not waited for yet.
fn pass_on(child: &Child, signal: i32) {
    let pid = Pid::from_raw(child.id().cast_signed());
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Asks for states; whether they came.
fn ask(child: &mut Child, file: &File, number: u64) -> io::Result<bool> {
    file.write_all_at(&number.to_le_bytes(), ASKED_AT)?;
    let asked = Instant::now();
    while asked.elapsed() < ANSWER {
        if ring::standing(&header(file)).answered == number {
            return Ok(true);
        }
        if child.try_wait()?.is_some() {
            break;
        }
        thread::sleep(LOOK);
    }
    Ok(false)
}

/// When it is worth asking: where nothing has moved for a while, and now and then anyway, ever more seldom.
struct Calm {
    switches: u64,
    since: Instant,
    next: Instant,
    pause: Duration,
}

impl Calm {
    fn new(now: Instant) -> Self {
        Self {
            switches: 0,
            since: now,
            next: now + STILL,
            pause: STILL,
        }
    }

    fn is_still(&self) -> bool {
        self.since.elapsed() >= STILL
    }

    /// The next look comes as soon as any.
    fn soon(&mut self) {
        self.next = Instant::now() + STILL;
    }

    fn is_due(&mut self, standing: &ring::Standing) -> bool {
        let now = Instant::now();
        if standing.switches != self.switches {
            (self.switches, self.since) = (standing.switches, now);
        }
        let small = standing.chunks * ring::CHUNK as u64 <= MOST_ASKED;
        let due = standing.began
            && standing.switches > 0
            && !standing.ended
            && now >= self.next
            && (self.is_still() || small && self.pause >= SELDOM);
        if due || now >= self.next && self.pause < SELDOM {
            self.pause = (self.pause * 2).min(MOST_PAUSE);
            self.next = now + self.pause;
        }
        due
    }
}

/// Ends the child, which may have been faster.
fn stop(child: &mut Child, end: End) -> io::Result<End> {
    if let Some(status) = child.try_wait()? {
        return Ok(end_of(status));
    }
    child.kill()?;
    child.wait()?;
    Ok(end)
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Signalled(signal.unwrap_or(0)),
    }
}

fn memory_file(first: &[u8], size: u64) -> io::Result<File> {
    let file = File::from(memfd_create("lockstep-go", MemfdFlags::CLOEXEC)?);
    file.set_len(size)?;
    file.write_all_at(first, 0)?;
    Ok(file)
}

/// Makes the pages behind what is filled; `ready` is up to where they are there.
fn make_ready(file: &File, header: &[u8], ready: &mut u64) {
    let (_, from, filled) = ring::used(header);
    if filled < SMALL {
        return;
    }
    let size = file.metadata().map_or(0, |it| it.len());
    let to = (from + filled + filled.min(AHEAD)).min(size);
    if to > *ready {
        let begin = (*ready).max(from + filled).min(to);
        // Where there is no room now, the program makes them itself.
        let _ = fallocate(file, FallocateFlags::empty(), begin, to - begin);
        *ready = to;
    }
}

fn header(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    // The file is ours and larger; what cannot be read counts as nothing said.
    let _ = file.read_exact_at(&mut bytes, 0);
    bytes
}

/// The header and the chunks that were begun.
fn used(file: &File, header: &[u8]) -> Vec<u8> {
    let (mut bytes, from, length) = ring::used(header);
    let kept = bytes.len();
    bytes.resize(kept + usize::try_from(length).unwrap_or(0), 0);
    let _ = file.read_exact_at(&mut bytes[kept..], from);
    bytes
}

/// Keeps what comes, and shows it where that is wanted.
fn keep(
    mut from: impl Read + Send + 'static,
    kept: &Arc<Mutex<Vec<u8>>>,
    mut shown: Option<Box<dyn Write + Send>>,
) -> thread::JoinHandle<()> {
    let kept = Arc::clone(kept);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 14];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if let Some(out) = &mut shown {
                let _ = out.write_all(&buffer[..count]).and_then(|()| out.flush());
            }
            if let Ok(mut kept) = kept.lock() {
                let room = MOST_OUTPUT.saturating_sub(kept.len());
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
        }
    })
}
