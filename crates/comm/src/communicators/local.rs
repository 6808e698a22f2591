//! What the handles of one process stand for: a handle is a number that comes back, so what it means
//! depends on when it was used. Followed in the order of a thread's calls.

use lockstep_api::mpi::constants::{COMM_NULL, COMM_SELF, COMM_WORLD, Class, GROUP_EMPTY};
use lockstep_api::mpi::{self, Does, Form, Grouping, Kind, Language, Scope};
use lockstep_trace::{Argument, FunctionId, Handle, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A call that makes a communicator: the thread of the process, and the number among such calls of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Birth {
    pub thread: u32,
    pub number: u32,
}

/// A communicator as a process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Local {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    Own,
    /// `MPI_COMM_NULL`.
    Null,
    /// What this call gave back.
    Born(Birth),
    /// Made by nobody whom we saw.
    Unknown,
}

/// A group as a process knows it.
pub(crate) type Group = super::group::Group<Local>;

/// How a communicator is made of its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Making {
    /// Like the parent.
    Copy,
    /// By colour (`None` is `MPI_UNDEFINED`), then key, then rank.
    Split { color: Option<i64>, key: i64 },
    /// By what the processes share.
    SplitType { by: i64, key: i64 },
    /// Of a group.
    Create(Arc<Group>),
    /// The same, by the members of the group alone.
    CreateGroup(Arc<Group>, i64),
    /// Of the first members; all, where no number is given.
    First {
        count: Option<i64>,
        reorder: bool,
        /// Of a grid, how many in each dimension.
        dims: Option<Arc<[i64]>>,
    },
    /// Of those of a grid that differ in these dimensions alone (`MPI_Cart_sub`).
    Slice(Arc<[bool]>),
    /// Of two communicators, by their leaders.
    Bridge {
        leader: i64,
        peer: Local,
        remote: i64,
        tag: i64,
    },
    /// Both sides of an intercommunicator.
    Merge { high: bool },
    /// In a way that the recorded calls do not show, but from this parent.
    Hidden,
    /// Not of a parent.
    Apart,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// It did not return, or what it gave back was not seen.
    Unseen,
    /// `MPI_COMM_NULL`.
    Nothing,
    /// A communicator.
    Handle,
}

/// One call that makes a communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub parent: Local,
    pub making: Making,
    pub given: Given,
}

/// What a process was told about its communicators.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// `MPI_Comm_rank`.
    pub ranks: FxHashMap<Local, i64>,
    /// `MPI_Comm_size`.
    pub sizes: FxHashMap<Local, i64>,
    /// Of which two different things were told.
    pub doubtful: FxHashSet<Local>,
}

impl Told {
    /// What another thread of the process was told.
    pub fn add(&mut self, other: &Self) {
        for (comm, rank) in &other.ranks {
            self.put(false, *comm, *rank);
        }
        for (comm, size) in &other.sizes {
            self.put(true, *comm, *size);
        }
        self.doubtful.extend(&other.doubtful);
    }

    fn put(&mut self, is_size: bool, comm: Local, value: i64) {
        // Different ones under one name.
        if matches!(comm, Local::Unknown | Local::Null) {
            return;
        }
        let map = if is_size {
            &mut self.sizes
        } else {
            &mut self.ranks
        };
        if map.insert(comm, value).is_some_and(|old| old != value) {
            self.doubtful.insert(comm);
        }
    }
}

/// What an argument stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meant {
    Nothing,
    /// The communicator.
    Comm(Local),
    /// A rank in it; of an intercommunicator, on the other side.
    Peer(Local),
    /// The sources of statuses are such ranks.
    Peers(Vec<Option<Local>>),
}

/// What a handle stands for.
#[derive(Debug, Clone)]
enum Held {
    Comm(Local),
    /// Open MPI gives one group several times, each of which is freed: how often it was given.
    Group(Arc<Group>, u32),
    Window(Local),
    /// Of the communicator that a receive was posted on.
    Request {
        source: Option<Local>,
        persistent: bool,
    },
    Message(Local),
}

type Key = (Class, i64);

/// Who made communicators under a handle, of all threads of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maker {
    /// `None` if several did.
    pub thread: Option<u32>,
    /// `None` if there were several, or of several threads.
    pub birth: Option<Birth>,
}

/// By handle; of a process where several threads call MPI.
pub(crate) type Makers = FxHashMap<i64, Maker>;

/// What a call's return will tell.
#[derive(Debug, Clone)]
enum Awaits {
    Birth(u32),
    Group(Arc<Group>),
    Window(Local),
    Request {
        source: Option<Local>,
        persistent: bool,
    },
    Message(Local),
    /// The caller's rank in it, or its size.
    Told(Local),
    /// Ranks in it.
    Peers(Local),
    Completion(Scope, Vec<i64>),
}

#[derive(Debug, Clone)]
struct Pending {
    function: FunctionId,
    language: Language,
    awaits: Awaits,
    /// Of the status that the call itself gives back.
    status: Option<Local>,
}

/// Follows the calls of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Tracker<'a> {
    thread: u32,
    makers: Option<&'a Makers>,
    held: FxHashMap<Key, Held>,
    pending: Vec<Pending>,
    /// How often anything but a request changed.
    changes: u64,
    /// Whether a function's return tells anything.
    gives_back: FxHashMap<FunctionId, bool>,
    /// The communicators that it made, by handle.
    pub births: Vec<(i64, Birth)>,
    pub made: Vec<Made>,
    pub told: Told,
}

/// Whether a call says what communicators there are, who is in them, or what that depends on: most do not.
pub(crate) fn tells_of_communicators(function: &mpi::Function) -> bool {
    let asks = function.meaning().is_query();
    function.parameters().any(|it| match it.kind {
        Kind::NewComm | Kind::NewGroup | Kind::CommAt | Kind::GroupAt => true,
        Kind::Comm => asks,
        _ => false,
    })
}

/// Calls within calls; more were left by jumps.
const MOST_PENDING: usize = 64;

impl<'a> Tracker<'a> {
    /// A thread's beginning; `makers` once they are known.
    pub fn new(thread: u32, makers: Option<&'a Makers>) -> Self {
        Self {
            thread,
            makers,
            held: FxHashMap::default(),
            pending: Vec::new(),
            changes: 0,
            gives_back: FxHashMap::default(),
            births: Vec::new(),
            made: Vec::new(),
            told: Told::default(),
        }
    }

    /// Whether it follows this thread of its process.
    pub fn is_of(&self, thread: u32) -> bool {
        self.thread == thread
    }

    /// How it stands: as before if what handles stand for is as before, but for requests that took others' places.
    pub fn standing(&self) -> (u64, usize, usize) {
        (self.changes, self.held.len(), self.pending.len())
    }

    /// What it knows, of a thread whose process makes communicators in no other one.
    pub fn alone(self) -> Option<Tracker<'static>> {
        let is_alone = self.makers.is_none_or(FxHashMap::is_empty);
        is_alone.then(|| Tracker {
            thread: self.thread,
            makers: None,
            held: self.held,
            pending: self.pending,
            changes: self.changes,
            gives_back: self.gives_back,
            births: self.births,
            made: self.made,
            told: self.told,
        })
    }

    /// A call: what each of its arguments stands for.
    pub fn call(
        &mut self,
        id: FunctionId,
        function: &mpi::Function,
        arguments: &[Argument],
    ) -> Vec<Meant> {
        let given = Named(arguments);
        let comms: Vec<Option<Local>> = arguments
            .iter()
            .map(|it| match (it.kind, &it.value) {
                (Kind::Comm | Kind::CommAt, Value::Handle(handle)) => Some(self.comm(handle)),
                (Kind::Window | Kind::WindowAt, Value::Handle(handle)) => Some(self.window(handle)),
                _ => None,
            })
            .collect();
        let comm = comms.iter().flatten().next().copied();
        // A rank belongs to the communicator before it, else to the first one behind it.
        let mut last = None;
        let mut meant = Vec::with_capacity(arguments.len());
        for (argument, own) in arguments.iter().zip(&comms) {
            last = own.or(last);
            meant.push(match (argument.kind, own) {
                (Kind::Comm | Kind::CommAt, Some(comm)) => Meant::Comm(*comm),
                (Kind::Peer | Kind::Root, _) => last.or(comm).map_or(Meant::Nothing, Meant::Peer),
                _ => Meant::Nothing,
            });
        }
        let parent = comm.unwrap_or(Local::Unknown);
        let awaits = self.awaits(function, arguments, &given, parent, &comms);
        self.release(arguments);
        let receives = given.find("source").is_some();
        let status = match given.handle("message") {
            Some(handle) => self.message(handle),
            None => comm.filter(|_| receives),
        };
        let gives_back = self.gives_back.entry(id).or_insert_with(|| {
            function
                .parameters()
                .any(|parameter| parameter.kind.is_result())
        });
        if !*gives_back {
            return meant;
        }
        if self.pending.len() == MOST_PENDING {
            self.pending.remove(0);
        }
        self.pending.push(Pending {
            function: id,
            language: function.language,
            awaits,
            status,
        });
        meant
    }

    fn awaits(
        &mut self,
        function: &mpi::Function,
        arguments: &[Argument],
        given: &Named<'_>,
        parent: Local,
        comms: &[Option<Local>],
    ) -> Awaits {
        let group = |name| match given.handle(name) {
            Some(handle) => self.group(handle),
            None => Arc::new(Group::Unknown),
        };
        let making = match function.meaning().does {
            Does::Communicator(how) => making(how, given, comms, group),
            Does::Group(how) => {
                let made = match how {
                    Grouping::OfCommunicator => Group::Of(parent),
                    Grouping::OfRemote => Group::Remote(parent),
                    Grouping::OfWindow => (given.handle("win"))
                        .map_or(Group::Unknown, |it| Group::Of(self.window(it))),
                    _ => Group::made(how, group, |name| given.find(name)).unwrap_or(Group::Unknown),
                };
                return Awaits::Group(Arc::new(made));
            }
            Does::Query => return Awaits::Told(parent),
            Does::Shift | Does::Local => return Awaits::Peers(parent),
            Does::Window(_) => return Awaits::Window(parent),
            Does::MatchedProbe => return Awaits::Message(parent),
            Does::Wait(scope) | Does::Test(scope) => {
                return Awaits::Completion(scope, requests(arguments));
            }
            _ => {
                let source = match given.handle("message") {
                    Some(handle) => Some(self.message(handle).unwrap_or(Local::Unknown)),
                    None => given.find("source").map(|_| parent),
                };
                return Awaits::Request {
                    source,
                    persistent: function.meaning().form == Form::Persistent,
                };
            }
        };
        let number = self.made.len() as u32;
        self.changes += 1;
        self.made.push(Made {
            parent,
            making,
            given: Given::Unseen,
        });
        Awaits::Birth(number)
    }

    /// Forgets what a call gives free.
    fn release(&mut self, arguments: &[Argument]) {
        for argument in arguments {
            let class = match argument.kind {
                Kind::CommAt => Class::Comm,
                Kind::GroupAt => Class::Group,
                Kind::WindowAt => Class::Window,
                _ => continue,
            };
            let Value::Handle(handle) = &argument.value else {
                continue;
            };
            let key = key(class, handle.raw);
            self.changes += 1;
            match self.held.get_mut(&key) {
                Some(Held::Group(_, given)) if *given > 1 => *given -= 1,
                _ => drop(self.held.remove(&key)),
            }
        }
    }

    /// A return of the innermost open call of this function: what each of its results stands for.
    pub fn result(&mut self, id: FunctionId, results: &[Argument]) -> Vec<Meant> {
        let Some(index) = self.pending.iter().rposition(|it| it.function == id) else {
            return vec![Meant::Nothing; results.len()];
        };
        let pending = self.pending.swap_remove(index);
        self.pending.truncate(index);
        let given = Named(results);
        let sources = match &pending.awaits {
            Awaits::Completion(scope, requests) => {
                self.complete(*scope, requests, &given, pending.language)
            }
            _ => vec![pending.status],
        };
        results
            .iter()
            .map(|result| self.meant(&pending, result, &sources))
            .collect()
    }

    fn meant(&mut self, pending: &Pending, result: &Argument, sources: &[Option<Local>]) -> Meant {
        let hold = |this: &mut Self, class, handle: &Handle, held| {
            this.changes += u64::from(class != Class::Request);
            this.held.insert(key(class, handle.raw), held);
            Meant::Nothing
        };
        match (result.kind, &result.value, &pending.awaits) {
            (Kind::NewComm, Value::Handle(handle), Awaits::Birth(number)) => {
                let birth = Birth {
                    thread: self.thread,
                    number: *number,
                };
                let is_null = handle.name.is_some() || handle.raw == 0;
                if let Some(made) = self.made.get_mut(*number as usize) {
                    made.given = if is_null {
                        Given::Nothing
                    } else {
                        Given::Handle
                    };
                }
                if is_null {
                    return Meant::Comm(Local::Null);
                }
                let local = Local::Born(birth);
                self.births.push((key(Class::Comm, handle.raw).1, birth));
                hold(self, Class::Comm, handle, Held::Comm(local));
                Meant::Comm(local)
            }
            (Kind::NewGroup, Value::Handle(handle), Awaits::Group(group)) => {
                let given = match self.held.get(&key(Class::Group, handle.raw)) {
                    Some(Held::Group(_, given)) => given + 1,
                    _ => 1,
                };
                let held = Held::Group(Arc::clone(group), given);
                hold(self, Class::Group, handle, held)
            }
            (Kind::NewWindow, Value::Handle(handle), Awaits::Window(comm)) => {
                hold(self, Class::Window, handle, Held::Window(*comm))
            }
            (Kind::NewMessage, Value::Handle(handle), Awaits::Message(comm)) => {
                hold(self, Class::Message, handle, Held::Message(*comm))
            }
            (Kind::NewRequest, Value::Handle(handle), Awaits::Request { source, persistent }) => {
                let (source, persistent) = (*source, *persistent);
                hold(
                    self,
                    Class::Request,
                    handle,
                    Held::Request { source, persistent },
                )
            }
            (Kind::Result, Value::Number(value), Awaits::Told(comm)) => {
                self.told.put(result.name == "size", *comm, *value);
                Meant::Nothing
            }
            (Kind::NewPeer, _, Awaits::Peers(comm)) => Meant::Peer(*comm),
            (Kind::Status, ..) => match sources {
                [Some(comm)] => Meant::Peer(*comm),
                _ => Meant::Nothing,
            },
            (Kind::Statuses, ..) => Meant::Peers(sources.to_vec()),
            _ => Meant::Nothing,
        }
    }

    /// Of the requests that are complete now, on what they received, in the order of their statuses.
    fn complete(
        &mut self,
        scope: Scope,
        requests: &[i64],
        given: &Named<'_>,
        language: Language,
    ) -> Vec<Option<Local>> {
        if given.number("flag") == Some(0) {
            return Vec::new();
        }
        let first = i64::from(language == Language::Fortran);
        let place = |index: i64| usize::try_from(index - first).ok();
        let done: Vec<Option<usize>> = match scope {
            Scope::One | Scope::All => (0..requests.len()).map(Some).collect(),
            Scope::Any => vec![given.number("index").and_then(place)],
            Scope::Some => match given.find("array_of_indices") {
                Some(Value::Numbers(_, indices)) => indices.iter().copied().map(place).collect(),
                _ => Vec::new(),
            },
        };
        done.into_iter()
            .map(|index| {
                let key = key(Class::Request, *requests.get(index?)?);
                match self.held.get(&key) {
                    Some(Held::Request { source, persistent }) => {
                        let source = *source;
                        if !persistent {
                            self.held.remove(&key);
                        }
                        source
                    }
                    _ => None,
                }
            })
            .collect()
    }

    /// What a communicator's handle stands for now.
    fn comm(&self, handle: &Handle) -> Local {
        match handle.name.as_deref() {
            Some(COMM_WORLD) => return Local::World,
            Some(COMM_SELF) => return Local::Own,
            Some(COMM_NULL) => return Local::Null,
            _ => {}
        }
        let key = key(Class::Comm, handle.raw);
        let maker = self.makers.and_then(|makers| makers.get(&key.1));
        let is_own = maker.is_none_or(|maker| maker.thread == Some(self.thread));
        match (self.held.get(&key), maker) {
            (Some(Held::Comm(local)), _) if is_own => *local,
            (None, Some(maker)) if !is_own => maker.birth.map_or(Local::Unknown, Local::Born),
            _ => Local::Unknown,
        }
    }

    /// Of which communicator a window is.
    fn window(&self, handle: &Handle) -> Local {
        match self.held.get(&key(Class::Window, handle.raw)) {
            Some(Held::Window(comm)) => *comm,
            _ => Local::Unknown,
        }
    }

    /// In which communicator a matched message came.
    fn message(&self, handle: &Handle) -> Option<Local> {
        match self.held.get(&key(Class::Message, handle.raw)) {
            Some(Held::Message(comm)) => Some(*comm),
            _ => None,
        }
    }

    fn group(&self, handle: &Handle) -> Arc<Group> {
        if handle.name.as_deref() == Some(GROUP_EMPTY) {
            return Arc::new(Group::Ranks(Vec::new()));
        }
        match self.held.get(&key(Class::Group, handle.raw)) {
            Some(Held::Group(group, _)) => Arc::clone(group),
            _ => Arc::new(Group::Unknown),
        }
    }
}

/// Handles that are integers are the same whether their sign was extended or not.
fn key(class: Class, raw: i64) -> Key {
    let is_int = i32::try_from(raw).is_ok();
    (class, if is_int { raw & 0xffff_ffff } else { raw })
}

/// The requests that a call waits for.
fn requests(arguments: &[Argument]) -> Vec<i64> {
    let mut found = arguments
        .iter()
        .filter_map(|argument| match &argument.value {
            Value::Handle(handle) if argument.kind == Kind::RequestAt => Some(vec![handle.raw]),
            Value::Handles(_, handles) => Some(handles.iter().map(|it| it.raw).collect()),
            _ => None,
        });
    found.next().unwrap_or_default()
}

/// How a communicator is made, by what the call is given: `comms` are its communicators.
fn making(
    how: mpi::Making,
    given: &Named<'_>,
    comms: &[Option<Local>],
    group: impl Fn(&'static str) -> Arc<Group>,
) -> Making {
    let number = |name| given.number(name).unwrap_or(0);
    let reorder = number("reorder") != 0;
    match how {
        mpi::Making::Copy => Making::Copy,
        mpi::Making::Split => Making::Split {
            color: given.number("color"),
            key: number("key"),
        },
        mpi::Making::SplitType => Making::SplitType {
            by: number("split_type"),
            key: number("key"),
        },
        mpi::Making::Create => Making::Create(group("group")),
        mpi::Making::CreateGroup => Making::CreateGroup(group("group"), number("tag")),
        mpi::Making::Grid => {
            let dims = given.find("dims").and_then(numbers);
            let mut sizes = dims.iter().flat_map(|it| it.iter());
            let count = sizes.try_fold(1i64, |all, size| all.checked_mul(*size));
            Making::First {
                count: Some(count.filter(|_| dims.is_some()).unwrap_or(-1)),
                reorder,
                dims,
            }
        }
        mpi::Making::Graph => Making::First {
            count: Some(number("nnodes")),
            reorder,
            dims: None,
        },
        mpi::Making::DistributedGraph | mpi::Making::AdjacentGraph => Making::First {
            count: None,
            reorder,
            dims: None,
        },
        mpi::Making::Between => Making::Bridge {
            leader: number("local_leader"),
            peer: comms
                .iter()
                .flatten()
                .nth(1)
                .copied()
                .unwrap_or(Local::Unknown),
            remote: number("remote_leader"),
            tag: number("tag"),
        },
        mpi::Making::Merge => Making::Merge {
            high: number("high") != 0,
        },
        mpi::Making::SubGrid => match given.find("remain_dims").and_then(numbers) {
            // False is 0, in Fortran, too.
            Some(remain) => Making::Slice(remain.iter().map(|it| *it != 0).collect()),
            None => Making::Hidden,
        },
        mpi::Making::FromGroup
        | mpi::Making::BetweenGroups
        | mpi::Making::Spawn
        | mpi::Making::SpawnMultiple
        | mpi::Making::Parent
        | mpi::Making::Accept
        | mpi::Making::Connect
        | mpi::Making::Join => Making::Apart,
    }
}

/// An array that was recorded as a whole.
fn numbers(value: &Value) -> Option<Arc<[i64]>> {
    match value {
        Value::Numbers(count, all) if usize::try_from(*count) == Ok(all.len()) => {
            Some(all.as_slice().into())
        }
        _ => None,
    }
}

/// Arguments by name.
struct Named<'a>(&'a [Argument]);

impl<'a> Named<'a> {
    fn find(&self, name: &str) -> Option<&'a Value> {
        let found = self.0.iter().find(|argument| argument.name == name)?;
        Some(&found.value)
    }

    /// `None` for what is no number, and for the standard's special values.
    fn number(&self, name: &str) -> Option<i64> {
        match self.find(name)? {
            Value::Number(number) => Some(*number),
            Value::Rank { rank, name: None } => Some(*rank),
            Value::Tag(tag) => *tag,
            _ => None,
        }
    }

    fn handle(&self, name: &str) -> Option<&'a Handle> {
        match self.find(name)? {
            Value::Handle(handle) => Some(handle),
            _ => None,
        }
    }
}
