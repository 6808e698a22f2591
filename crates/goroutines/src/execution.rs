//! One execution of a Go program: its goroutines, and what they did, in one order.
//!
//! Capturing makes it from the ring that the overlaid runtime wrote; every analysis takes it. Ids are dense
//! numbers that index the tables here.
//!
//! What analysis relies on:
//!
//! * A usage is a `Request` and, once it is over, a `Complete` of the same action; usages of one goroutine nest.
//!   `Cond.Wait` holds an `Unlock` and a `Lock` of its lock, at the line of the `Wait`.
//! * A lock is taken at its `Complete` and given back at the `Request` of its unlock; a channel is closed at the
//!   `Request` of `Close`, a wait group counts at the `Request`. So whoever was let in comes after who let in.
//! * Usages that standard packages make on behalf of the program (`context`, `io.Pipe`, ...) are there, too, at the
//!   program's line that called, or without a site: whether a wait can end hangs on them.

mod read;

pub use read::ExecutionError;

use crate::tree::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Index into [`Execution::sites`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteId(pub u32);

/// Index into [`Execution::goroutines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GoroutineId(pub u32);

/// Index into [`Execution::objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId(pub u32);

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// Its file, as the debug information says.
    pub file: String,
    /// Its line, from 1; 0 where it is unknown.
    pub line: u32,
    /// The function that it stands in, `package.Function.func1`.
    pub function: String,
}

/// What is waited at, held or passed through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A channel with room for so many elements.
    Channel {
        /// 0 where a sender meets its receiver.
        capacity: u64,
    },
    /// The channel of a `time.Timer` or `time.Ticker`: the runtime itself sends to it.
    Timer,
    /// A `sync.Mutex`.
    Mutex,
    /// A `sync.RWMutex`.
    RwMutex,
    /// A `sync.WaitGroup`.
    WaitGroup,
    /// A `sync.Cond`.
    Cond,
    /// A `sync.Once`.
    Once,
}

/// One object; an address that is used again for another one is another object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Where it was made, or first used where that was not seen.
    pub first: Option<SiteId>,
}

/// What a usage does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Action {
    /// `c <- v`
    Send,
    /// `<-c`, and each round of `range c`
    Receive,
    /// `close(c)`
    Close,
    /// `select`, with or without `default`
    Select,
    /// `Mutex.Lock`, `RWMutex.Lock`
    Lock,
    /// `Mutex.TryLock`, `RWMutex.TryLock`
    TryLock,
    /// `Mutex.Unlock`, `RWMutex.Unlock`
    Unlock,
    /// `RWMutex.RLock`
    RLock,
    /// `RWMutex.TryRLock`
    TryRLock,
    /// `RWMutex.RUnlock`
    RUnlock,
    /// `WaitGroup.Add` (and of `WaitGroup.Go`)
    Add,
    /// `WaitGroup.Done`
    Done,
    /// `WaitGroup.Wait`
    Wait,
    /// `Cond.Wait`
    CondWait,
    /// `Cond.Signal`
    Signal,
    /// `Cond.Broadcast`
    Broadcast,
    /// `Once.Do`
    Once,
    /// `go f()`
    Go,
    /// `time.Sleep`
    Sleep,
}

impl Action {
    /// What a usage is called: in tables, and as a function of a run.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Close => "close",
            Self::Select => "select",
            Self::Lock => "lock",
            Self::TryLock => "try-lock",
            Self::Unlock => "unlock",
            Self::RLock => "r-lock",
            Self::TryRLock => "try-r-lock",
            Self::RUnlock => "r-unlock",
            Self::Add => "add",
            Self::Done => "done",
            Self::Wait => "wait",
            Self::CondWait => "cond-wait",
            Self::Signal => "signal",
            Self::Broadcast => "broadcast",
            Self::Once => "once",
            Self::Go => "go",
            Self::Sleep => "sleep",
        }
    }
}

/// A case of a `select`, as far as it was taken or could have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Case {
    /// [`Action::Send`] or [`Action::Receive`].
    pub action: Action,
    /// Its channel; `None` for a nil channel.
    pub channel: Option<ObjectId>,
}

/// Why a goroutine waits: the runtime's own word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WaitReason {
    /// For a receiver.
    Send,
    /// For a sender.
    Receive,
    /// In a `select` without `default`.
    Select,
    /// In `select {}`, or at a nil channel: for ever.
    Forever,
    /// `Mutex.Lock`
    Mutex,
    /// `RWMutex.RLock`
    RwMutexRead,
    /// `RWMutex.Lock`
    RwMutexWrite,
    /// `WaitGroup.Wait`
    WaitGroup,
    /// `Cond.Wait`
    Cond,
    /// `time.Sleep`
    Sleep,
    /// For the network, a file, another process.
    Io,
    /// In a call of the operating system, or of C code, which may compute.
    Call,
    /// A reason of the runtime's own that ends by itself (garbage collection, tracing, ...).
    Runtime,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum What {
    /// A usage begins.
    Request {
        /// What it does.
        action: Action,
        /// At what; `None` for `go`, `select`, nil channels, and sleep.
        object: Option<ObjectId>,
        /// Of a `select`: what it waits for; sends first, then receives, each in the order of the source.
        cases: Vec<Case>,
        /// Of a `select`: whether it has a `default`. Of `Add`: unused.
        default: bool,
        /// Of [`Action::Add`]: how much. Of [`Action::Sleep`]: nanoseconds.
        amount: i64,
        /// Whether a standard package made it on the program's behalf: such a usage takes no turn of its own.
        #[serde(default)]
        on_behalf: bool,
    },
    /// The usage that the goroutine began last has come to its end.
    Complete {
        /// What it did.
        action: Action,
        /// Of a `select`: the case that was taken; `None` for `default`, and of other usages.
        case: Option<u32>,
        /// Of try-locks: whether it was locked. Of a receive: false where the channel was closed. Else true.
        ok: bool,
    },
    /// The goroutine is taken off its processor until somebody readies it.
    Park(WaitReason),
    /// It makes another goroutine run on.
    Ready(GoroutineId),
    /// It made a channel.
    Make(ObjectId),
    /// It made a goroutine.
    Create(GoroutineId),
    /// It ended, by returning or by `runtime.Goexit`.
    End,
    /// It panics (and may recover).
    Panic,
    /// Behind a `go` statement, an unlock or a close it had its turn to go on, where usages take turns.
    GoesOn,
}

/// What happened, by whom and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the program began.
    pub time: u64,
    /// Who did it; `None` where the runtime did it on nobody's behalf (timers, network).
    pub goroutine: Option<GoroutineId>,
    /// Where in the user's source; `None` where that is not known.
    pub site: Option<SiteId>,
    /// What it was.
    pub what: What,
}

/// How a goroutine stood when the program ended or was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It had ended.
    Ended,
    /// It ran, or could have.
    Runnable,
    /// It waited.
    Waiting(WaitReason),
}

/// A goroutine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goroutine {
    /// The runtime's number for it.
    pub number: u64,
    /// Who made it; `None` for the first, and where that was not seen.
    pub parent: Option<GoroutineId>,
    /// The `go` statement that made it.
    pub created_at: Option<SiteId>,
    /// The function that it runs.
    pub entry: String,
    /// Whether it is the runtime's or the testing package's own, and not the program's.
    pub is_system: bool,
    /// Its state at the end.
    pub state: State,
    /// Its call stack at the end, innermost first, where it is known.
    pub stack: Vec<SiteId>,
    /// Of these, the innermost that is the program's own, where a library's lie above it.
    #[serde(default)]
    pub own: Option<SiteId>,
}

impl Goroutine {
    /// Where it stands, in the program's own source if it can be.
    #[must_use]
    pub fn stands_at(&self) -> Option<SiteId> {
        self.own.or_else(|| self.stack.first().copied())
    }
}

/// How the program came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// A signal ended it that we did not send.
    Signalled(i32),
    /// Nothing moved any more, and nothing could: no goroutine ran, no timer, network or signal was waited for. We ended it.
    Quiescent,
    /// The time limit was over while something still moved, or may have. We ended it.
    TimedOut,
}

impl Execution {
    /// The goroutine whose end is the end of what was run: the test's; once that has ended, where a test binary's main
    /// does not come to its own (`TestMain` waits behind `m.Run`), that one.
    #[must_use]
    pub fn main(&self) -> GoroutineId {
        let is_behind = |it: &GoroutineId| {
            let state = self.goroutines.get(it.0 as usize).map(|it| it.state);
            state == Some(State::Ended) && !self.main_ended
        };
        self.test
            .filter(|it| !is_behind(it))
            .unwrap_or(GoroutineId(0))
    }
}

/// The goroutine that the runtime names with a fatal message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatalIn {
    /// Its number.
    pub goroutine: u64,
    /// Where it stood outside the runtime.
    pub place: Option<Place>,
}

/// What the program's own output says of its end, apart from its status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Reports of the race detector, each whole.
    pub races: Vec<String>,
    /// The message of an uncaught panic or a fatal error, one line.
    pub fatal: Option<String>,
    /// Whose that was, and where.
    #[serde(default)]
    pub fatal_in: Option<FatalIn>,
    /// Names of the tests that failed.
    pub failed_tests: Vec<String>,
    /// What these tests said of it, each with its place: `x_test.go:31: no result`.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Packages in the reports that are the program's.
    #[serde(default)]
    pub own: Vec<String>,
}

/// One execution of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Places.
    pub sites: Vec<Site>,
    /// Channels, locks and the like.
    pub objects: Vec<Object>,
    /// All goroutines, in order of creation; the first is the one that runs `main`.
    pub goroutines: Vec<Goroutine>,
    /// The goroutine that runs the test, where there is one test.
    pub test: Option<GoroutineId>,
    /// What happened, in an order that agrees with every object's own.
    pub events: Vec<Event>,
    /// Of some usages that were over, by the index of that event: a fingerprint of the goroutine's stack.
    #[serde(default)]
    pub prints: Vec<(usize, u32)>,
    /// Whether the main goroutine, or the test's, came to its end.
    pub main_ended: bool,
    /// How the program ended.
    pub end: End,
    /// What it said about that.
    pub output: Output,
    /// Goroutines that the garbage collector proved unreachable, where the toolchain can tell.
    pub proven_leaks: Option<Vec<GoroutineId>>,
    /// Deadlines of contexts that were pending at the end.
    pub timers: u32,
    /// Functions of the program that a pending `time.AfterFunc` would have run: they may do anything.
    #[serde(default)]
    pub functions: u32,
    /// Whether any timer was pending: else no timer's channel ever has anything more.
    #[serde(default)]
    pub clock: bool,
    /// Nanoseconds that the schedule held goroutines up, in sum.
    #[serde(default)]
    pub stretched: u64,
    /// Whether the program asked the runtime where its goroutines stand, or how many there are.
    #[serde(default)]
    pub looked: bool,
    /// Records that found no room.
    pub lost: u64,
    /// When goroutines were last asked where they stand, in nanoseconds since the program began; 0 where they were not.
    #[serde(default)]
    pub told: u64,
    /// Whether something outside of the program could let go on who waits for that: another process, a connection to one.
    #[serde(default = "in_doubt")]
    pub outside: bool,
}

/// What was kept before anybody looked.
fn in_doubt() -> bool {
    true
}
