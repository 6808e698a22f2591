//! What a run is, once opened.

use crate::arguments::Source;
use crate::code::Code;
use crate::error::Error;
use crate::frames::Frames;
use crate::holds::Holds;
use crate::inferred::Told;
use crate::name::{ProcessName, TraceName};
use crate::sealed::SealedTree;
use crate::stream::{Bookmark, Events, Stream, StreamId};
use crate::times::Times;
use lockstep_format::codec::Kind;
use lockstep_format::launcher::STARTERS;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A function, as an index into [`Run::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// One event of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A function was called.
    Call(FunctionId),
    /// The innermost open call returned.
    Return,
    /// The innermost open call hands over to the next call and ends with it.
    Tail,
}

/// A line of the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// File, as the debug information names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl SourceLine {
    /// Whether it is in a file of the compiler's or the system's, as headers of the C++ library are.
    #[must_use]
    pub fn is_of_the_system(&self) -> bool {
        lockstep_binary::is_of_the_system(&self.file)
    }

    /// `halo.c:77`.
    #[must_use]
    pub fn brief(&self) -> String {
        let name = Path::new(&self.file).file_name().and_then(|it| it.to_str());
        format!("{}:{}", name.unwrap_or(&self.file), self.line)
    }
}

/// A function of the program, or a library function that it calls.
///
/// Its identity across processes and runs is (`image`, `linkage`): the other run is usually another
/// build of the same program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name for people: demangled, without version; `image+0x1234` where there is none.
    pub name: String,
    /// Name in the symbol table; as `name` where there is none.
    pub linkage: String,
    /// File name of the image without path and version: the program's own name for its own
    /// functions; `library` for functions that it calls in libraries.
    pub image: String,
    /// Whether it is a library function that the program calls.
    pub imported: bool,
    /// Where it is defined, if known.
    pub source: Option<SourceLine>,
    /// Direct calls that this function makes: callee and line, as far as known.
    pub calls: Vec<(FunctionId, SourceLine)>,
    /// What its code could call, known or not from which line.
    pub code: Code,
}

/// An opened run.
#[derive(Debug)]
pub struct Run {
    /// Where it lies.
    pub directory: PathBuf,
    /// The codec that it was recorded with.
    pub codec: Kind,
    /// Every function that a process could have called, each identity once.
    pub functions: Vec<Function>,
    /// Its processes in the order of their names.
    pub processes: Vec<Process>,
    /// Whether some process called `MPI_Init`; then commands look at those only.
    pub is_mpi: bool,
    /// What could not be read, in sentences.
    pub notes: Vec<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndKind {
    /// The process exited; `code` is its exit status.
    Exited,
    /// A signal ended the process; `code` is the signal's number.
    Signalled,
    /// SIGKILL ended the process, or it is gone and nobody saw it end.
    Killed,
    /// The process still runs, or it may still run on another host.
    Running,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct End {
    /// How the process ended.
    pub kind: EndKind,
    /// The exit status or the signal's number. Null if it is unknown, or if `exec` replaced the program.
    pub code: Option<i32>,
    /// False if nobody saw the end: then `kind` is a guess.
    pub certain: bool,
}

impl End {
    /// Whether a process of an MPI job ended since its launcher was gone, by its status: Open MPI's say so.
    #[must_use]
    pub fn tells_of_a_lost_launcher(&self) -> bool {
        const LOST: i32 = 195;
        self.kind == EndKind::Exited && self.code == Some(LOST)
    }
}

impl fmt::Display for End {
    /// `exit 0`, `signal 11`, `killed`, `running`; with a question mark where nobody saw it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.code) {
            (EndKind::Exited, Some(code)) => write!(f, "exit {code}")?,
            (EndKind::Exited, None) => f.write_str("exited")?,
            (EndKind::Signalled, Some(signal)) => write!(f, "signal {signal}")?,
            (EndKind::Signalled, None) => f.write_str("signalled")?,
            (EndKind::Killed, _) => f.write_str("killed")?,
            (EndKind::Running, _) => f.write_str("running")?,
        }
        f.write_str(if self.certain { "" } else { "?" })
    }
}

/// A function whose calls are not recorded, or not all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refused {
    /// The function's name, demangled; `image+0x1234` if it has none.
    pub name: String,
    /// File name of the program or library that contains the function, without path and version.
    pub image: String,
    /// Why the function is not recorded.
    pub reason: String,
    /// Number of its calls. Null if nobody counted them.
    pub calls: Option<u64>,
    /// Whether the function may have more calls than `calls`. True if `calls` is null.
    pub more: bool,
}

/// What of a process was recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coverage {
    /// Functions that record.
    pub traced: u64,
    /// Functions that do not.
    pub refused: Vec<Refused>,
    /// Functions that record, and whose address the program takes: calls through that pointer do not.
    pub pointers: Vec<Refused>,
    /// Record only what one of these regular expressions finds by name; all, if empty.
    pub trace: Vec<String>,
    /// Do not record what one of these finds.
    pub skip: Vec<String>,
    /// How many functions and library calls were not chosen so.
    pub left_out: u64,
    /// Images that do not at all, with the reason.
    pub untraced_images: Vec<(String, String)>,
    /// Calls in all traces.
    pub recorded_calls: u64,
    /// Calls that were counted and are in no trace: of functions that do not record, and losses.
    pub unrecorded_calls: u64,
    /// Share of the dynamic calls that was recorded, 0..1: of those that were counted, whatever
    /// [`Refused::more`] says. `None` where there are none.
    pub dynamic: Option<f64>,
}

impl Coverage {
    /// Functions of which nobody knows how often they were called, or not exactly.
    #[must_use]
    pub fn uncounted(&self) -> usize {
        self.refused.iter().filter(|refused| refused.more).count()
    }

    /// Fills in the sums.
    pub(crate) fn count(&mut self, recorded: u64, lost: u64) {
        let counted: u64 = self
            .refused
            .iter()
            .filter_map(|refused| refused.calls)
            .sum();
        self.recorded_calls = recorded;
        self.unrecorded_calls = counted.saturating_add(lost);
        let all = recorded.saturating_add(self.unrecorded_calls);
        self.dynamic = (all > 0).then(|| recorded as f64 / all as f64);
    }
}

/// How a program was compiled, as its debug information says, or a section that keeps the options.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Compiled {
    /// One entry for each set of options, with the compiler's name and version. Empty if the program has no record of them.
    pub options: BTreeSet<String>,
    /// Linkage names of the functions that were inlined somewhere. `None` if the program has no debug information.
    pub inlined: Option<BTreeSet<String>>,
}

/// One process of a run.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub name: ProcessName,
    /// MPI rank in its world, where it has one.
    pub rank: Option<u32>,
    /// Whether it called `MPI_Init`.
    pub is_mpi: bool,
    /// Process id on its host.
    pub pid: u32,
    /// The process that it was forked from and whose program it still runs, where both were recorded.
    pub forked_from: Option<ProcessName>,
    /// Its host.
    pub host: String,
    /// Path of its program.
    pub program: String,
    /// Build id of its program in hexadecimal digits; empty where it has none, or nobody knows it.
    pub build: String,
    /// How its program was compiled, as that says itself.
    pub compiled: Compiled,
    /// How it ended.
    pub end: End,
    /// When its recorder saw that it was gone, in microseconds since 1970, where it was there for that.
    pub gone_at: Option<u64>,
    /// What was recorded of it.
    pub coverage: Coverage,
    /// Events lost, by reason in words.
    pub losses: Vec<(String, u64)>,
    /// Its threads in the order of their names.
    pub threads: Vec<Thread>,
}

impl Process {
    /// What [`Function::image`] is of its program's own functions.
    #[must_use]
    pub fn image(&self) -> String {
        crate::catalogue::short_name(&self.program)
    }

    /// How many ranks its world has, where its launcher said so and calls of MPI were recorded with their arguments.
    #[must_use]
    pub fn world_size(&self) -> Option<u32> {
        let mut sources = self.threads.iter().filter_map(|it| it.side.as_deref());
        sources.find_map(|it| it.world_size)
    }

    /// Whether its program starts the ranks of a job and is none of them.
    #[must_use]
    pub fn is_launcher(&self) -> bool {
        let name = self.program.rsplit('/').next();
        self.rank.is_none() && name.is_some_and(|it| STARTERS.contains(&it))
    }
}

/// An open call at the end of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The function that was called.
    pub function: FunctionId,
    /// Where it was called, if known.
    pub called_at: Option<SourceLine>,
    /// Whether it handed over to the next frame (a tail call) and ends with it. It is no frame of the
    /// machine's stack any more; of a long chain the first and the latest are kept.
    pub handed_over: bool,
}

/// The trace of one thread.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Its name.
    pub name: TraceName,
    /// Kernel thread id.
    pub tid: u32,
    /// Number of events; where only the last were kept, with the calls that were open before them.
    pub events: u64,
    /// How many of the events are calls.
    pub calls: u64,
    /// How many events were dropped before them (`--keep last`).
    pub dropped: u64,
    /// Bytes that hold the events: committed bytes and tail of the compressed stream, and 8 for each
    /// event that is still in the staging area.
    pub bytes: u64,
    /// How many of the last events come from the live staging area, which no checksum covers yet.
    pub unverified: u64,
    /// What is damaged or missing, if anything.
    pub damage: Option<String>,
    /// Open calls at the end, outermost first.
    pub open: Vec<Frame>,
    /// The last event is the return of this leaf, which was recorded together with its call: it may
    /// still be running.
    pub open_leaf: Option<FunctionId>,
    /// MPI calls whose arguments could not be stored.
    pub arguments_lost: u64,
    /// What it holds and waits for; `None` where that was not recorded.
    pub holds: Option<Holds>,
    /// How many of the returns nobody saw: their frames were found gone later, after a jump, an
    /// exception or a switch of stacks.
    pub inferred: u64,
    /// Its times, where they were recorded.
    pub times: Option<Times>,
    /// Its index among the process's threads.
    pub index: u32,
    pub(crate) stream: Stream,
    pub(crate) told: Option<Arc<Told>>,
    pub(crate) side: Option<Arc<Source>>,
    pub(crate) followed: Option<StreamId>,
}

impl Run {
    /// Whether the launcher of its ranks was killed: what becomes of them then is its doing (Open MPI ends those that wait with a status
    /// of its own).
    #[must_use]
    pub fn lost_its_launcher(&self) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|it| {
            it.is_launcher() && it.end.kind == EndKind::Killed && !self.is_outlived_by(it)
        })
    }

    /// Whether the ranks were seen to be gone before a launcher was: it was killed since it did not end, not before them.
    fn is_outlived_by(&self, launcher: &Process) -> bool {
        let mut ranks = self.processes.iter().filter(|it| it.is_mpi);
        let is_before = |at: u64| launcher.gone_at.is_none_or(|end| at < end);
        ranks.all(|it| it.gone_at.is_some_and(is_before))
    }

    /// The function with this id.
    ///
    /// # Panics
    /// If the id is of another run.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Reads the trees of a sealed run, which give its events. Whoever asks for events does so too, and
    /// finds none where this fails.
    ///
    /// # Errors
    /// Where they cannot be read, or one has another number of events than its trace.
    pub fn load(&self) -> Result<(), Error> {
        let threads = self.processes.iter().flat_map(|process| &process.threads);
        for thread in threads {
            let Stream::Sealed(stream) = &thread.stream else {
                continue;
            };
            let refused = |text: String| Error::Sealed {
                path: stream.sealed.path.clone(),
                text,
            };
            let tree = stream.sealed.tree().map_err(|it| refused(it.to_owned()))?;
            let events = stream.events(tree);
            if events != thread.events {
                let (name, expected) = (thread.name, thread.events);
                return Err(refused(format!(
                    "trace {name}: expected {expected} events, found a tree of {events}"
                )));
            }
        }
        Ok(())
    }

    /// The traces that commands look at: of MPI processes only where there are any, else of all.
    pub fn traces(&self) -> impl Iterator<Item = &Thread> {
        self.processes
            .iter()
            .filter(|process| self.is_visible(process))
            .flat_map(|process| &process.threads)
    }

    /// Whether commands look at `process` unless told otherwise: every process of a run without MPI,
    /// else those that initialised MPI.
    #[must_use]
    pub fn is_visible(&self, process: &Process) -> bool {
        !self.is_mpi || process.is_mpi
    }

    /// The trace with this name, hidden processes included.
    #[must_use]
    pub fn trace(&self, name: TraceName) -> Option<&Thread> {
        self.processes
            .iter()
            .flat_map(|process| &process.threads)
            .find(|thread| thread.name == name)
    }
}

impl Thread {
    /// A trace made of events in memory: for tests, generators and importers. Open calls follow from
    /// the events; their lines are unknown.
    #[must_use]
    pub fn from_events(name: TraceName, events: Vec<Event>) -> Self {
        let mut frames = Frames::default();
        for event in &events {
            frames.apply(*event);
        }
        Self {
            name,
            tid: 0,
            events: events.len() as u64,
            calls: events
                .iter()
                .filter(|event| matches!(event, Event::Call(_)))
                .count() as u64,
            dropped: 0,
            bytes: 0,
            unverified: 0,
            damage: None,
            open: frames.into_frames(),
            open_leaf: None,
            arguments_lost: 0,
            holds: None,
            times: None,
            index: 0,
            inferred: 0,
            told: None,
            stream: Stream::Memory(events.into()),
            side: None,
            followed: None,
        }
    }

    /// The events, in order, decoded as they are asked for: O(1) an event, 150 kB in all.
    pub fn events(&self) -> Events<'_> {
        self.stream.events()
    }

    /// Of a run that was opened by [`crate::Live`]: the same as long as the stream only grew.
    #[must_use]
    pub fn stream_id(&self) -> Option<StreamId> {
        self.followed
    }

    /// The events behind a bookmark, which was made in this thread when the run was opened before: with
    /// [`crate::Live`], at the cost of what is new; else of all.
    pub fn events_after(&self, mark: &Bookmark) -> Events<'_> {
        self.stream.events_after(mark)
    }

    /// Equal only for threads of one run that have the same events, as far as 128 bits tell; they are not
    /// decoded for it. `None` in sealed runs, where trees tell more. O(bytes).
    #[must_use]
    pub fn content(&self) -> Option<u128> {
        self.stream.content()
    }

    /// The events from number `index` on. O(depth x log list) to the first of them in a sealed run, else
    /// O(index).
    pub fn events_from(&self, index: u64) -> Events<'_> {
        let mut events = self.events();
        events.skip_to(index);
        events
    }

    /// Whether a sealed run can tell its events by a tree: where the last ones were kept (`--keep last`), what stands beside
    /// them lies among them.
    #[must_use]
    pub fn can_be_told(&self) -> bool {
        match &self.stream {
            Stream::Memory(_) => true,
            Stream::File(stream) => !stream.keeps_last,
            Stream::Sealed(_) => false,
        }
    }

    /// Its tree, in a sealed run.
    #[must_use]
    pub fn sealed_tree(&self) -> Option<SealedTree<'_>> {
        match &self.stream {
            Stream::Sealed(stream) => Some(SealedTree {
                tree: stream.sealed.tree().ok()?,
                root: stream.root,
                names: &stream.names,
                file: &stream.sealed,
            }),
            _ => None,
        }
    }
}
