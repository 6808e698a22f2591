//! The answer as values: what is said of whom, clause by clause. `lockstep_wording` makes the sentence of it.

use crate::cause::Cause;
use crate::nonempty::{NonEmpty, Subject};
use crate::team::Truant;
use crate::waits::Why;
use crate::whereabouts::{Iteration, Whereabouts};
use lockstep_check::{Aspect, Loose};
use lockstep_comm::CommunicatorId;
use lockstep_diagnosis::Callers;
use lockstep_trace::{End, ProcessName, Site, SourceLine, TraceName};
use std::sync::Arc;
use std::time::Duration;

/// The answer: the most telling first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict(pub(crate) NonEmpty<Clause>);

impl Verdict {
    /// Of these clauses.
    #[must_use]
    pub fn new(clauses: NonEmpty<Clause>) -> Self {
        Self(clauses)
    }

    /// What it says, in order.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.0
    }
}

impl Default for Verdict {
    fn default() -> Self {
        Self(NonEmpty::one(What::NotSeen { moved: false }.into()))
    }
}

/// A part of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// How it follows on the one before.
    pub link: Link,
    /// What it says.
    pub what: What,
}

impl From<What> for Clause {
    fn from(what: What) -> Self {
        let link = Link::And;
        Self { link, what }
    }
}

/// How a clause follows on the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Beside it.
    And,
    /// Later.
    Then,
    /// Though that is well.
    But,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// All came to their end.
    Over(Finish),
    /// No task is seen to hang; or one that was seen to hang moved.
    NotSeen {
        /// Whether it moved.
        moved: bool,
    },
    /// All who did not come to their end were ended from outside.
    Killed {
        /// Who did come to it, by status.
        finished: Vec<(i32, Subject)>,
        /// Where the others were.
        at: Places,
    },
    /// Nobody called anything.
    Silent {
        /// For how long.
        quiet: Duration,
        /// Where those are who are there.
        at: Option<Places>,
    },
    /// Who waits for what; in the order of the words.
    Waits(NonEmpty<(Subject, Wants)>),
    /// Who can never go on.
    Stuck {
        /// Whether they ask again and again.
        is_livelock: bool,
        /// Who are named.
        waiters: NonEmpty<Waiter>,
        /// How many more there are.
        more: usize,
    },
    /// Of several requests that a task waits for, the calls that began those that did not complete.
    Began(u32, NonEmpty<Called>),
    /// Where a lock was taken for which others wait.
    Took {
        /// Who took it.
        thread: TraceName,
        /// Where.
        at: Whereabouts,
        /// Whether nobody gives it back.
        is_over: bool,
    },
    /// Why a message does not come.
    Amiss(Amiss),
    /// A receive from anybody took a message of this task before.
    Stolen(u32, Called),
    /// Others that wait.
    Crowd {
        /// Who.
        who: Subject,
        /// Whether each is named, however many there are.
        by_name: bool,
        /// Where most of them are.
        at: Whereabouts,
        /// For what, if it is the same for all.
        why: Option<Reason>,
    },
    /// Who did not come to a barrier of its process.
    Truant(Truant),
    /// A task ended.
    Ended(Ended),
    /// Members of a communicator did not call the same.
    Mismatch(Mismatched),
    /// What may come otherwise in another run.
    Potential(Potential),
    /// A loose end.
    Loose(Loose),
    /// No process had begun MPI.
    NoInit,
    /// What these tasks did that made others wait.
    Caused(Subject, Cause),
    /// Who holds the others up.
    Holding {
        /// Whether they go round and round.
        is_livelock: bool,
        /// Who, where, and why.
        holders: NonEmpty<(Subject, Whereabouts, Option<Holds>)>,
        /// What it comes to.
        look: Look,
    },
    /// Who waits in a collective operation, it is not known for whom.
    Blind(NonEmpty<(Subject, Whereabouts)>),
}

/// How tasks came to their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// All.
    All,
    /// This many.
    Counted(usize),
    /// By status.
    ByStatus(Vec<(i32, Subject)>),
}

/// Where the first few groups are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Who is where.
    pub groups: NonEmpty<(Subject, Whereabouts)>,
    /// Whether there are more.
    pub more: bool,
}

/// Tasks that can never go on, at one place and for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Who.
    pub who: Subject,
    /// Where; `None` if that is not known.
    pub at: Option<At>,
    /// For what.
    pub why: Option<Reason>,
}

/// Where who waits is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// In a call.
    In(Whereabouts),
    /// It calls this function of MPI again and again.
    Asking {
        /// Which.
        name: Arc<str>,
        /// Where.
        line: Option<SourceLine>,
        /// In which function of the program.
        caller: Option<String>,
        /// Of the loops around the one that asks.
        iteration: Option<Iteration>,
    },
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Of which function.
    pub name: Arc<str>,
    /// The operation that it started, if it did: the standard's name.
    pub starts: Option<Arc<str>>,
    /// Where.
    pub site: Option<Site>,
}

/// Why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For whom its first thread waits.
    pub why: Because,
    /// Threads of its process that are behind it.
    pub threads: Vec<(TraceName, Stands)>,
}

/// For whom a thread waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// For other tasks.
    Outside(Wants),
    /// For other threads of its process.
    Inside(Within),
}

/// How a thread stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// It ended.
    Over,
    /// It is there.
    At(Whereabouts),
    /// It waits there, for this.
    Waits(Whereabouts, Because),
}

/// What a task wants of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wants {
    /// All of these.
    Each(NonEmpty<Expected>),
    /// This, and so many more.
    First(Expected, usize),
    /// This, or a message.
    OrMessage(Expected),
    /// A message from anybody, with this tag or any.
    Anybody(Option<i64>),
    /// The same of several, or of any of them.
    Together {
        /// Of whom.
        of: Subject,
        /// What.
        why: Why,
        /// Whether one of them is enough.
        any: bool,
    },
}

/// What a task wants of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Of whom.
    pub of: u32,
    /// What.
    pub why: Why,
    /// In which communicator, if that has a name of its own.
    pub within: Option<CommunicatorId>,
}

/// Why a thread waits for others of its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Within {
    /// For a lock that these hold.
    Lock(NonEmpty<TraceName>),
    /// For a lock that it holds itself.
    OwnLock,
    /// For a lock that was copied by fork while it was held.
    CopiedLock,
    /// For a lock behind these, which wait to write.
    Behind(Vec<TraceName>),
    /// For a semaphore.
    Semaphore,
    /// For a library's lock, in a signal handler that interrupted this function.
    Again(Option<String>),
    /// For a signal, of this thread if it can only be that one.
    Signal(Option<TraceName>),
    /// For another to come to a barrier; these are over.
    Barrier(Vec<TraceName>),
    /// For the end of a thread, of this one if it can only be that one.
    End(Option<TraceName>),
    /// For the end of a thread that fork did not copy.
    GoneThread,
    /// For these to come to the end of what a team does.
    Team(NonEmpty<TraceName>),
    /// For a team that fork did not copy, of this process.
    GoneTeam(Option<ProcessName>),
}

/// Why a message that is waited for does not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amiss {
    /// A persistent send was not started.
    NotStarted {
        /// By whom.
        by: u32,
        /// To whom it sends.
        to: u32,
        /// With which tag.
        tag: i64,
        /// Whether it had been before.
        again: bool,
    },
    /// A persistent send was waited for while it did not run.
    WaitedFor {
        /// By whom.
        by: u32,
        /// In which call.
        call: Called,
        /// To whom it sends.
        to: u32,
        /// With which tag.
        tag: i64,
    },
    /// A persistent receive was waited for, by this task in this call, that it had never started.
    NeverStarted(u32, Called),
    /// This task took a message by this probe and did not receive it.
    NotReceived(u32, Called),
    /// The receiver waits for messages with these tags only.
    OtherTag(u32, NonEmpty<i64>),
    /// A message that nobody received may have been meant.
    Unreceived(Unreceived),
}

/// A message that nobody received, and that may have been meant for those who hang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreceived {
    /// Who sent it.
    pub from: u32,
    /// To whom.
    pub to: u32,
    /// With which tag.
    pub tag: i64,
    /// In which communicator, if that is told.
    pub of: Option<String>,
    /// Whether the sender waits for that.
    pub is_open: bool,
    /// The call that sent it, if that is told.
    pub call: Option<Called>,
    /// The communicator in which its receiver waits for one, if it is another.
    pub wanted_in: Option<String>,
    /// The operation of the sender.
    pub operation: usize,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub task: u32,
    /// How.
    pub end: End,
    /// Whether that is all that is amiss: it had not called `MPI_Finalize`.
    pub early: bool,
    /// The thread in which it died, if it is not the first.
    pub thread: Option<TraceName>,
    /// Where it was.
    pub at: Option<Whereabouts>,
    /// The last call of MPI before.
    pub after: Option<Called>,
    /// How many more ended so.
    pub more: usize,
}

/// A collective operation whose members do not call the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatched {
    /// Who does otherwise than most, or than is right.
    pub few: Side,
    /// Most, or those who are right.
    pub most: Side,
    /// A task that is on both sides, by two threads.
    pub both: Option<u32>,
    /// In what they differ.
    pub aspect: Aspect,
    /// Whether its root is the leader of another group.
    pub is_led: bool,
    /// Whether a normal run says who is right.
    pub by_normal: bool,
    /// Which operation, from 1.
    pub number: usize,
    /// Of what.
    pub of: Of,
}

impl Mismatched {
    /// Whether only one task does otherwise.
    pub(crate) fn is_of_one(&self) -> bool {
        self.both.is_some() || self.few.who.len() == 1
    }
}

/// What a collective operation is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// The communicator of this name.
    Communicator(String),
    /// A file.
    File,
    /// A window.
    Window,
}

/// Those who said the same of a collective operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Who.
    pub who: Subject,
    /// What they called.
    pub call: Option<Called>,
    /// What they said: a root, a size, a reduction, terms.
    pub said: String,
    /// How they came to it, if they went apart here.
    pub callers: Option<Callers>,
}

/// What fits by luck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Potential {
    /// Tasks would wait for each other if messages were not buffered.
    Circle {
        /// Which.
        who: Subject,
        /// The calls of some of them.
        calls: Vec<(u32, Called)>,
        /// Whether collective operations are among the calls that do not wait for all.
        waits_for_all: bool,
    },
    /// A receive from anybody could have taken another message.
    Race(Raced),
}

/// A receive from anybody that could have taken another message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raced {
    /// Who receives.
    pub task: u32,
    /// The receive.
    pub call: Called,
    /// Whose message it took, if that is known.
    pub took: Option<u32>,
    /// Whose it could have taken.
    pub instead: u32,
    /// What then.
    pub then: Then,
}

/// What comes of another message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// This receive waits for ever.
    Starves(Called),
    /// So much was sent, where there is room for so much.
    TooLarge(String, String),
    /// It does not fit.
    Unfit,
    /// Which comes first is chance.
    Chance,
}

/// A message that a task may wait for, which a receive from anybody may have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubted {
    /// From whom.
    pub from: u32,
    /// With which tag.
    pub tag: Option<i64>,
    /// The receive.
    pub call: Called,
}

/// Why somebody holds others up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// It waits itself.
    Waits(Reason),
    /// It may wait for a message.
    Doubts(Doubted),
    /// A thread of its process does not come.
    Truant(Truant),
}

/// What it comes to that somebody holds others up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// That is where to look.
    There,
    /// It is slow so far.
    SlowSoFar,
    /// It is so so far.
    SoFar,
}
