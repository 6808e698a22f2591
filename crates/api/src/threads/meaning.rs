//! What a function does to other threads and processes, apart from how it is spelled.

/// Whose function it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// POSIX' threads and semaphores.
    Pthread,
    /// C11's threads.
    C11,
    /// C++'s standard library: what is called there, and what its headers make part of a program.
    Cplusplus,
    /// OpenMP, by the names of the standard: `omp_`.
    OpenMp,
    /// The runtime of OpenMP that GNU's compilers call.
    Gnu,
    /// The runtime of OpenMP that LLVM's and Intel's compilers call.
    Llvm,
    /// The C library and the compilers' own.
    System,
    /// Nobody's that is known.
    Other,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    /// Takes a lock.
    Take(Lock),
    /// Gives a lock back.
    Give(Lock),
    /// Makes, changes or ends something that threads share to wait for each other.
    Object,
    /// Waits until another thread makes something happen.
    Await(Event),
    /// Makes it happen.
    Notify,
    /// Takes one of what a semaphore counts.
    Acquire,
    /// Gives a semaphore one more.
    Release,
    /// Waits until the others have come.
    Barrier(Meeting),
    /// Runs something once, whoever comes first, and waits until that has run.
    Once,
    /// Creates a thread.
    Create,
    /// Waits for the end of a thread.
    Join,
    /// Ends its own thread.
    EndThread,
    /// Comes last in a thread, when what that was for is done.
    AfterThread,
    /// Starts a process.
    Start {
        /// Whether it waits for its end, too.
        waits: bool,
    },
    /// Waits for the end of a process.
    Child,
    /// Ends the process, well or with a status.
    Exit,
    /// Ends the process as crashed.
    Abort,
    /// Says what is wrong, and ends the process as crashed.
    Fail,
    /// Sends a signal, mostly to itself.
    Raise,
    /// Throws an exception, or hands one on.
    Throw,
    /// Takes frames off the stack, up to where an exception is caught or a thread ends.
    Unwind,
    /// Goes on in another frame, or on another stack.
    Jump,
    /// Waits for a point in time.
    Sleep {
        /// As loops do between two questions. Else it lasts seconds, and is a step of the program.
        brief: bool,
    },
    /// Lets others run.
    Yield,
    /// Tells the time.
    Clock,
    /// Asks whether something has come, and may wait for it.
    Poll,
    /// Takes what comes from another process.
    Receive,
    /// Something else of the kernel's that may take long.
    Kernel,
    /// Runs a region by a team, and waits for all of it.
    Region {
        /// Whether it is a loop that is handed out to whoever comes first.
        hands_out: bool,
    },
    /// Hands a thread its next piece of a team's work, if it comes first.
    Work,
    /// Ends a share in a team's work, and waits for the others.
    WorkEnd,
    /// Says whether this thread is the one that does something for its team: who comes first.
    Single,
    /// Combines results of a team: who does it is who comes last.
    Reduce,
    /// Gives up a team's work, or asks whether somebody did.
    Cancel,
    /// Something with tasks.
    Task(Tasks),
    /// Does something under a lock of the library's own.
    Inner(Inner),
    /// Asks how many refer to an object.
    References,
    /// Ends an object, since the last that referred to it is gone.
    LastReference,
    /// Makes room in a queue; ends a task of which a future may be there still.
    MakeRoom,
    /// Asks for something that stays as it is.
    Query,
    /// Something else.
    Other,
}

/// A kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lock {
    /// `pthread_mutex_t`, and what is made of it.
    Mutex,
    /// `pthread_rwlock_t`, for one alone.
    ReadWrite,
    /// The same, among several who read.
    Read,
    /// `pthread_spinlock_t`.
    Spin,
    /// The critical section without a name: there is one.
    Critical,
    /// A critical section with a name.
    NamedCritical,
    /// A critical section, with a name or without.
    SomeCritical,
    /// What OpenMP's atomic operations take where the processor has none.
    Atomic,
    /// A turn in a loop whose iterations do something in order.
    Ordered,
    /// `omp_lock_t`.
    OpenMp,
    /// `omp_nest_lock_t`.
    OpenMpNest,
    /// One that a function which is called in this one takes.
    Guarded,
}

impl Lock {
    /// How many kinds there are.
    pub const KINDS: usize = Self::Guarded as usize + 1;

    /// Its name in lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite | Self::Read => "rwlock",
            Self::Spin => "spin lock",
            Self::Critical | Self::SomeCritical => "critical",
            Self::NamedCritical => "critical(name)",
            Self::Atomic => "atomic",
            Self::Ordered => "ordered",
            Self::OpenMp => "omp_lock",
            Self::OpenMpNest => "omp_nest_lock",
            Self::Guarded => "lock",
        }
    }

    /// Whether who comes first gets it.
    #[must_use]
    pub const fn is_first_come(self) -> bool {
        !matches!(self, Self::Ordered)
    }

    /// Whether it is a critical section.
    #[must_use]
    pub const fn is_critical(self) -> bool {
        matches!(
            self,
            Self::Critical | Self::NamedCritical | Self::SomeCritical
        )
    }
}

/// A lock inside a library. A signal handler that wants one for which it interrupted its own thread waits for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inner {
    /// That of the memory that `malloc` gives out.
    Heap,
    /// That of the time zone.
    Zone,
    /// That of the system's log.
    Log,
}

/// What a call waits for another thread to make happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A condition variable is signalled. A mutex is given back meanwhile, and taken again.
    Condition,
    /// A value is there: of a future, of a latch, of an iteration.
    Value,
    /// A word of memory changes. Who finds it changed does not wait, and need not ask.
    Word,
    /// A signal comes to the process.
    Signal,
}

/// Who meets at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// So many threads as it was made for. One of them is told so, or does something for all.
    Counted,
    /// The threads of a team of OpenMP.
    Team,
    /// Those, or none any more if the work was given up.
    UntilCancelled,
}

/// What a call does with tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tasks {
    /// Makes one or more, which may be run at once.
    Make,
    /// Runs tasks, and waits for those that were made.
    Wait,
    /// May run one.
    Yield,
    /// Begins a group.
    Group,
    /// Says something else of them.
    Other,
}

/// How long a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Until it has what it wants.
    Endless,
    /// That long, or until some time; or which of these it is is not known.
    Limited,
    /// Not at all.
    None,
}

/// What a call does, and how long it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meaning {
    /// Whose it is.
    pub library: Library,
    /// What it does.
    pub does: Does,
    /// How long it waits, if it is something that can be waited for.
    pub patience: Patience,
}

impl Meaning {
    /// Of a function that is not known.
    pub const UNKNOWN: Self = Self {
        library: Library::Other,
        does: Does::Other,
        patience: Patience::Endless,
    };

    /// Whether it is OpenMP's.
    #[must_use]
    pub const fn is_openmp(self) -> bool {
        matches!(self.library, Library::OpenMp) || self.is_runtime()
    }

    /// Whether it is one of OpenMP's runtimes, that compilers call: regions and tasks run below.
    #[must_use]
    pub const fn is_runtime(self) -> bool {
        matches!(self.library, Library::Gnu | Library::Llvm)
    }

    /// Whether it exists to wait: for another thread or process, a device, a point in time.
    #[must_use]
    pub const fn waits(self) -> bool {
        match self.does {
            Does::Query => false,
            Does::Sleep { .. } | Does::Yield | Does::Kernel | Does::Start { waits: true } => true,
            _ => self.is_runtime() || self.waits_for_others(),
        }
    }

    /// Whether it waits for another thread or process.
    #[must_use]
    pub const fn waits_for_others(self) -> bool {
        match self.does {
            Does::Take(_)
            | Does::Await(_)
            | Does::Acquire
            | Does::Barrier(_)
            | Does::Once
            | Does::Join
            | Does::Child
            | Does::Poll
            | Does::Receive
            | Does::Task(Tasks::Wait) => !matches!(self.patience, Patience::None),
            _ => self.ends_with_barrier(),
        }
    }

    /// Whether it ends when all threads of a team have come.
    #[must_use]
    pub const fn ends_with_barrier(self) -> bool {
        matches!(self.does, Does::Region { .. } | Does::WorkEnd)
    }

    /// Whether others may wait for who calls it.
    #[must_use]
    pub const fn is_between_threads(self) -> bool {
        match self.does {
            Does::Take(_)
            | Does::Give(_)
            | Does::Object
            | Does::Await(_)
            | Does::Notify
            | Does::Acquire
            | Does::Release
            | Does::Barrier(_) => true,
            _ => self.is_openmp(),
        }
    }

    /// Whether it is a matter of timing what its caller does afterwards.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        match self.does {
            Does::Take(lock) | Does::Give(lock) => lock.is_first_come(),
            Does::Region { hands_out } => hands_out,
            Does::Barrier(meeting) => !matches!(meeting, Meeting::Team),
            Does::Await(Event::Condition | Event::Word)
            | Does::Acquire
            | Does::Once
            | Does::Sleep { .. }
            | Does::Yield
            | Does::Poll
            | Does::Work
            | Does::Single
            | Does::Reduce
            | Does::Cancel
            | Does::Task(_)
            | Does::References
            | Does::LastReference => true,
            _ => false,
        }
    }

    /// Whether it is called or not by timing alone: only while something is not ready yet, or by who comes last (who drops the
    /// last of several references ends what they refer to; who ends a task while its future is still there offers to break
    /// its promise).
    #[must_use]
    pub const fn is_pause(self) -> bool {
        matches!(
            self.does,
            Does::Await(Event::Condition | Event::Word)
                | Does::Sleep { brief: true }
                | Does::Yield
                | Does::LastReference
        )
    }

    /// Whether it hands out work, or an answer, to whoever comes first.
    #[must_use]
    pub const fn is_first_come(self) -> bool {
        self.takes_work() || matches!(self.does, Does::Single)
    }

    /// Whether it gives a thread its next piece of a work that a team shares, by who comes first.
    #[must_use]
    pub const fn takes_work(self) -> bool {
        matches!(self.does, Does::Work | Does::Region { hands_out: true })
    }

    /// Whether tasks that somebody made may run in it.
    #[must_use]
    pub const fn runs_tasks(self) -> bool {
        matches!(
            self.does,
            Does::Task(Tasks::Make | Tasks::Wait | Tasks::Yield)
                | Does::Barrier(Meeting::Team | Meeting::UntilCancelled)
        )
    }

    /// Whether it asks for something that may not be there yet, or any more.
    #[must_use]
    pub const fn asks(self) -> bool {
        match self.does {
            Does::Poll | Does::References => true,
            Does::Take(_) | Does::Acquire | Does::Join => matches!(self.patience, Patience::None),
            _ => false,
        }
    }

    /// Whether it waits for another thread, and goes on without it when it has waited long enough.
    #[must_use]
    pub const fn may_give_up(self) -> bool {
        matches!(self.patience, Patience::Limited) && self.waits_for_others()
    }

    /// Whether it takes, or gives back, what other threads may want: a lock, or one of what a semaphore counts.
    #[must_use]
    pub const fn is_lock(self) -> bool {
        match self.does {
            Does::Take(lock) => lock.is_first_come(),
            Does::Acquire => true,
            _ => self.gives_back(),
        }
    }

    /// Whether it gives that back.
    #[must_use]
    pub const fn gives_back(self) -> bool {
        match self.does {
            Does::Give(lock) => lock.is_first_come(),
            Does::Release => true,
            _ => false,
        }
    }

    /// Whether the process ends in it as crashed.
    #[must_use]
    pub const fn crashes(self) -> bool {
        matches!(self.does, Does::Abort | Does::Fail | Does::Throw)
    }

    /// Whether it never returns to its caller by the way it came.
    #[must_use]
    pub const fn never_returns(self) -> bool {
        matches!(
            self.does,
            Does::Exit | Does::Abort | Does::EndThread | Does::Throw | Does::Unwind | Does::Jump
        )
    }
}
