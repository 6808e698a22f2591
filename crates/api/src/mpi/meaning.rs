//! What a function of MPI does, apart from how it is spelled.

use super::parameter::Kind;

/// What a call does, in its blocking form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    /// Sends to `dest`.
    Send(Mode),
    /// Receives from `source`.
    Receive,
    /// Sends to `dest` and receives from `source`, each with a buffer of its own.
    SendReceive,
    /// The same in one buffer.
    Replace,
    /// Waits for a message from `source`, and leaves it there.
    Probe,
    /// Waits for a message from `source`, and takes it: who receives it later waits for nobody.
    MatchedProbe,
    /// Receives what a matched probe took.
    MatchedReceive,
    /// Sends to `dest` in partitions.
    PartitionedSend,
    /// Receives from `source` in partitions.
    PartitionedReceive,
    /// Says of partitions that they may be sent.
    Ready(Partitions),
    /// Asks whether a partition has come.
    Arrived,
    /// Waits for requests.
    Wait(Scope),
    /// Asks whether requests are over, and completes those that are.
    Test(Scope),
    /// Asks whether requests are over, and leaves them.
    Status(Scope),
    /// Starts persistent requests.
    Start(Scope),
    /// Gives up a request's operation.
    Cancel,
    /// A share in an operation of all members of a communicator.
    Collective(Shape, Counts),
    /// Makes a communicator.
    Communicator(Making),
    /// Makes a group.
    Group(Grouping),
    /// Makes a datatype.
    Datatype(Constructor),
    /// Makes a datatype fit for messages.
    Commit,
    /// Makes a reduction.
    Reduction,
    /// Makes a window, together with all members of the communicator.
    Window(Memory),
    /// A step of an epoch on a window.
    Epoch(Epoch),
    /// Reads or writes memory of another task through a window.
    Access(Access),
    /// Uses a file.
    File(FileUse),
    /// Gives something back to MPI that a call made.
    Free(Resource),
    /// Begins MPI in this process: the world model.
    Begin {
        /// Whether the call says how many threads will call MPI.
        threads: bool,
    },
    /// Begins a session, which needs no world.
    BeginSession,
    /// Ends MPI in this process.
    End,
    /// Ends the job.
    Abort,
    /// Gives MPI memory for buffered sends, or takes it back.
    SendBuffer(SendBuffer),
    /// Measures the program's place in a grid; the answer is a rank.
    Shift,
    /// Packs, unpacks or reduces data of this task alone.
    OwnData,
    /// Gives the handle that another language has for an object.
    Convert,
    /// Changes nothing: asks for a fact that stays as it is, or the time.
    Query,
    /// Changes something in this task alone, and learns nothing of others.
    Local,
    /// Something else, which may hear of other tasks.
    Other,
}

/// How a call begins what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// It returns when that is over.
    Blocking,
    /// It returns at once, mostly with a request.
    Nonblocking,
    /// It makes a request that begins it, when it is started.
    Persistent,
}

/// What a send waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// For its receiver or for nobody, as the library likes.
    Standard,
    /// For nobody: the program gave a buffer.
    Buffered,
    /// For its receiver.
    Synchronous,
    /// For nobody: its receiver waits already.
    Ready,
}

/// Which of several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// There is one only.
    One,
    /// All of them.
    All,
    /// One of them, whichever is first.
    Any,
    /// Those that are over, at least one.
    Some,
}

/// Which partitions a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partitions {
    /// One.
    One,
    /// Those from one to another.
    Range,
    /// Those of a list.
    List,
}

/// Who waits for whom in an operation of all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Everybody for everybody.
    All,
    /// Everybody for the root.
    FromRoot,
    /// The root for everybody.
    ToRoot,
    /// Each for those of lower rank.
    Prefix,
    /// Each for its neighbours.
    Neighbours,
}

/// What members of an operation say of how much they send and expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Nothing.
    None,
    /// `count` and `datatype`, which all members say alike.
    Same,
    /// `sendcount` and `recvcount`, which all members say alike: one block is sent, whoever gets it.
    OneBlock,
    /// The same, and each gets a block of its own.
    BlockEach,
    /// `recvcount` and `datatype` of a result's share, which all members say alike.
    ResultBlock,
    /// `sendcount`, and an array of what is received of each member.
    EachReceived,
    /// An array of what is sent to each member, and `recvcount`.
    EachSent,
    /// Arrays of both.
    Each,
    /// Arrays of both, and of datatypes.
    EachTyped,
    /// An array of how much of the result each member gets.
    EachResult,
}

/// How a communicator is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the functions.
pub enum Making {
    Copy,
    Split,
    SplitType,
    Create,
    CreateGroup,
    Grid,
    SubGrid,
    Graph,
    DistributedGraph,
    AdjacentGraph,
    Between,
    BetweenGroups,
    Merge,
    FromGroup,
    Spawn,
    SpawnMultiple,
    Parent,
    Accept,
    Connect,
    Join,
}

/// How a group is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the functions.
pub enum Grouping {
    Include,
    Exclude,
    IncludeRanges,
    ExcludeRanges,
    Union,
    Intersection,
    Difference,
    OfCommunicator,
    OfRemote,
    OfWindow,
    OfFile,
    OfSession,
}

/// How a datatype is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the functions.
pub enum Constructor {
    Contiguous,
    Vector,
    HVector,
    Indexed,
    HIndexed,
    IndexedBlock,
    HIndexedBlock,
    Struct,
    Subarray,
    Darray,
    Resized,
    Copy,
    /// Some other way, of which nothing is worked out.
    Other,
}

/// Whose memory a window shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    /// The program's.
    Given,
    /// MPI's.
    Allocated,
    /// MPI's, and members may load and store in each other's.
    Shared,
    /// What is attached later.
    Dynamic,
}

/// A step of an epoch on a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // Named after the functions.
pub enum Epoch {
    Fence,
    Start,
    Complete,
    Post,
    Wait,
    Test,
    Lock,
    LockAll,
    Unlock,
    UnlockAll,
    Flush { all: bool, local: bool },
    Sync,
    SharedQuery,
}

/// What a call does with memory of another task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the functions.
pub enum Access {
    Put,
    Get,
    Accumulate,
    GetAccumulate,
    FetchAndOp,
    CompareAndSwap,
}

/// What a call does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileUse {
    /// Opens it, together with all members of the communicator.
    Open,
    /// Closes it, together with all that opened it.
    Close,
    /// Changes it or how it is seen, together with all that opened it.
    Together,
    /// Asks or changes something by itself.
    Alone,
    /// Moves data.
    Transfer {
        /// To the file.
        writes: bool,
        /// Whether all that opened it do so together.
        together: bool,
        /// How much of that the call is.
        part: Part,
    },
}

/// How much of an operation a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its begin, of a split collective operation.
    Begin,
    /// Its end.
    End,
}

/// What a call does with the memory for buffered sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendBuffer {
    /// Gives it, for all communicators.
    Attach,
    /// Gives it, for one communicator or session.
    AttachTo,
    /// Takes that of all communicators back, when all that was sent through it has left.
    Detach,
    /// Takes that of one communicator or session back, likewise.
    DetachFrom,
    /// Waits until all that was sent through it has left.
    Flush,
}

/// A kind of what MPI makes, and a program has to free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A communicator.
    Communicator,
    /// A window.
    Window,
    /// A request that can be started again.
    PersistentRequest,
    /// A datatype.
    Datatype,
    /// A reduction.
    Reduction,
    /// A group.
    Group,
    /// A file.
    File,
    /// An info object.
    Info,
    /// An error handler.
    Errhandler,
    /// An attribute key.
    Keyval,
    /// A message that a matched probe took.
    Message,
    /// A session.
    Session,
}

impl Resource {
    /// What a parameter gives back.
    #[must_use]
    pub const fn made(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::NewComm => Self::Communicator,
            Kind::NewDatatype => Self::Datatype,
            Kind::NewGroup => Self::Group,
            Kind::NewOp => Self::Reduction,
            Kind::NewWindow => Self::Window,
            Kind::NewFile => Self::File,
            Kind::NewInfo => Self::Info,
            Kind::NewErrhandler => Self::Errhandler,
            Kind::NewKeyval => Self::Keyval,
            Kind::NewMessage => Self::Message,
            _ => return None,
        })
    }

    /// What a parameter names that has to be there.
    #[must_use]
    pub const fn used(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Comm | Kind::CommAt => Self::Communicator,
            Kind::Window | Kind::WindowAt => Self::Window,
            Kind::Datatype | Kind::DatatypeAt => Self::Datatype,
            Kind::Op | Kind::OpAt => Self::Reduction,
            Kind::Group | Kind::GroupAt => Self::Group,
            Kind::File | Kind::FileAt => Self::File,
            _ => return None,
        })
    }
}

/// What a call does, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meaning {
    /// What it does.
    pub does: Does,
    /// How it begins that.
    pub form: Form,
    /// Whether any thread may call it at any time: before MPI begins and after it ends, too (MPI 4.1, 11.4.1).
    pub anytime: bool,
}

impl Meaning {
    /// Of a function that is not known.
    pub const UNKNOWN: Self = Self {
        does: Does::Other,
        form: Form::Blocking,
        anytime: false,
    };

    /// Whether it asks whether something has come, and does not wait for it.
    #[must_use]
    pub const fn asks(self) -> bool {
        match self.does {
            Does::Test(_) | Does::Status(_) => true,
            Does::Probe | Does::MatchedProbe => matches!(self.form, Form::Nonblocking),
            _ => false,
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_query(self) -> bool {
        matches!(self.does, Does::Query)
    }

    /// Whether it reads a clock. Every other question is allowed only while MPI is in use.
    #[must_use]
    pub const fn reads_clock(self) -> bool {
        self.is_query() && self.anytime
    }

    /// Whether it waits until something has come, whichever that is.
    #[must_use]
    pub const fn waits_for_any(self) -> bool {
        matches!(
            (self.does, self.form),
            (Does::Probe | Does::MatchedProbe, Form::Blocking)
                | (Does::Wait(Scope::Any | Scope::Some), _)
        )
    }

    /// Whether it brings nothing of what others did.
    #[must_use]
    pub const fn is_local(self) -> bool {
        self.anytime
            || matches!(
                self.does,
                Does::Query
                    | Does::Local
                    | Does::Shift
                    | Does::OwnData
                    | Does::Convert
                    | Does::Communicator(Making::Parent)
                    | Does::Datatype(_)
                    | Does::Commit
                    | Does::Reduction
                    | Does::Group(_)
                    | Does::Begin { .. }
                    | Does::SendBuffer(SendBuffer::Attach)
                    | Does::Free(
                        Resource::Datatype
                            | Resource::Reduction
                            | Resource::Group
                            | Resource::Errhandler
                            | Resource::Keyval
                    )
            )
    }

    /// Whether what it gives back depends on who comes first.
    #[must_use]
    pub const fn is_first_come(self) -> bool {
        matches!(
            self.does,
            Does::Wait(Scope::Any | Scope::Some)
                | Does::Test(Scope::Any | Scope::Some)
                | Does::Access(Access::FetchAndOp | Access::CompareAndSwap | Access::GetAccumulate)
        )
    }

    /// What it frees.
    #[must_use]
    pub const fn frees(self) -> Option<Resource> {
        match self.does {
            Does::Free(resource) => Some(resource),
            Does::File(FileUse::Close) => Some(Resource::File),
            Does::MatchedReceive => Some(Resource::Message),
            _ => None,
        }
    }

    /// Whether it sends a message, whatever else it does.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(
            self.does,
            Does::Send(_) | Does::SendReceive | Does::Replace | Does::PartitionedSend
        )
    }

    /// Whether it receives a message or waits for one, whatever else it does.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(
            self.does,
            Does::Receive
                | Does::SendReceive
                | Does::Replace
                | Does::Probe
                | Does::MatchedProbe
                | Does::MatchedReceive
                | Does::PartitionedReceive
        )
    }

    /// How all members of a communicator, a window or a file meet in it; `None` if they do not.
    #[must_use]
    pub const fn shape(self) -> Option<Shape> {
        match self.does {
            Does::Collective(shape, _) => Some(shape),
            Does::Communicator(
                Making::Copy
                | Making::Split
                | Making::SplitType
                | Making::Create
                | Making::Grid
                | Making::SubGrid
                | Making::Graph
                | Making::DistributedGraph
                | Making::AdjacentGraph
                | Making::Spawn
                | Making::SpawnMultiple
                | Making::Accept
                | Making::Connect,
            )
            | Does::File(FileUse::Open) => Some(Shape::All),
            _ => None,
        }
    }
}
