//! What a task does with MPI that is wrong whatever the others do: calls before `MPI_Init`, calls by a thread
//! that may not, handles that were freed, requests that are started while they run, windows that are locked
//! twice or used without an epoch, buffered sends without a buffer, arguments that MPI forbids, datatypes that are not committed.
//!
//! *Guarantees*: what is told was seen, call by call. Libraries may call MPI without being recorded: that
//! `MPI_Init` is missing where it does not come later, or a handle was freed and not made again, is told only of the call that the
//! thread did not come back from; of a handle also where nobody else can have made it ([`crate::freed`]). *Costs*: O(arguments) a call; memory for the handles that were freed and for the kinds
//! of mistakes.

use crate::epochs::Epochs;
use crate::loose_end::LooseEnd;
use crate::partitions::{self, Partitions};
use lockstep_api::mpi::constants::{MODE_RDONLY, MODE_WRONLY, THREAD_LEVELS, THREAD_SERIALIZED};
use lockstep_api::mpi::predefined::Datatype;
use lockstep_api::mpi::rules;
use lockstep_api::mpi::{
    Constructor, Does, Epoch, FileUse, Grouping, Kind, Making, Mode, Part, Resource, Scope,
    SendBuffer,
};
use lockstep_comm::communicators::Resolved;
use lockstep_comm::{Conversation, Routine, State, names_no_request};
use lockstep_trace::{TraceName, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A call: its function, the trace, and the number of the event.
pub(crate) type Called = (Arc<str>, TraceName, u64);

/// The first call of each mistake, trace and event, and how many.
pub(crate) type Mistakes = BTreeMap<LooseEnd, (TraceName, u64, usize)>;

/// A handle that was freed by one call of a thread, and given to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suspect {
    pub mistake: LooseEnd,
    pub trace: TraceName,
    /// The numbers of the two events.
    pub freed: u64,
    pub used: u64,
}

/// What a thread, or a task, did wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    mistakes: Mistakes,
    /// What was freed and not made again, and by which event.
    freed: FxHashMap<(Resource, i64), u64>,
    /// The first use of each kind of these, and those where nobody else made what was used.
    suspects: Vec<Suspect>,
    certain: Mistakes,
    /// Groups that have one handle with others: those of a communicator, window or file.
    shared: FxHashSet<i64>,
    /// Windows that are locked, and whose part of each; `None` is everybody's.
    locked: Vec<(i64, Option<u32>)>,
    epochs: Epochs,
    /// Bytes of the buffer for buffered sends.
    buffer: Option<i64>,
    /// Datatypes that were made and not committed.
    uncommitted: FxHashSet<i64>,
    /// What of partitioned sends is ready.
    partitions: Partitions,
    /// Operations on files that were begun and not ended, by file.
    split: FxHashMap<i64, Called>,
    /// How files were opened.
    modes: FxHashMap<i64, i64>,
    /// How many dimensions communicators have that are grids.
    grids: FxHashMap<i64, i64>,
    /// The thread that began MPI, and the level that it was given.
    main: Option<(TraceName, i64)>,
    /// The call that ended it.
    end: Option<Called>,
    /// Whether there may be sessions, which need no `MPI_Init`.
    has_sessions: bool,
    /// For each thread its first call that only the thread that began MPI may make at a low level.
    threads: Vec<Called>,
    /// The first of the calls that wait for any of no requests, where nothing else came behind it, and how many there were, up
    /// to [`IDLE`].
    idle: Option<(Called, u8)>,
    /// How often any of this changed, and how often something was freed.
    changes: u64,
    times_freed: u64,
}

/// So many waits for nothing, one after the other, are a loop that does not end by itself.
const IDLE: u8 = 3;

/// What a call says of what it makes: how that may be used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Terms {
    /// The level of thread support that is asked for.
    required: Option<i64>,
    /// How a file is opened.
    amode: Option<i64>,
    /// How many dimensions a grid has.
    dimensions: Option<i64>,
    /// How many partitions a send has.
    partitions: Option<usize>,
}

impl Terms {
    /// Those of a call.
    pub fn of(event: &Resolved) -> Self {
        Self {
            required: event.number("required"),
            amode: event.number("amode"),
            dimensions: event.number("ndims"),
            partitions: partitions::count(event),
        }
    }
}

/// The levels at which one thread alone may call MPI, from 0.
const ONE_THREAD: &[&str] = THREAD_LEVELS.split_at(2).0;

/// Bytes of a buffer that may be one of several.
const ANY_ROOM: i64 = i64::MAX;

impl Usage {
    /// A call is wrong.
    pub(crate) fn tell(&mut self, mistake: LooseEnd, trace: TraceName, event: u64) {
        let first = (trace, event, 0);
        self.changes += 1;
        self.mistakes.entry(mistake).or_insert(first).2 += 1;
    }

    /// A call is wrong if it is not over: the latest counts.
    pub(crate) fn tell_open(&mut self, mistake: LooseEnd, trace: TraceName, event: u64) {
        self.changes += 1;
        self.mistakes.insert(mistake, (trace, event, 1));
    }

    /// A call has a handle that was freed, or may have been made anew.
    pub(crate) fn suspect(&mut self, it: Suspect) {
        self.changes += 1;
        // The latest counts where it is not over.
        let latest = (it.trace, it.used, 1);
        self.mistakes.insert(it.mistake.clone(), latest);
        if self
            .suspects
            .iter()
            .all(|known| known.mistake != it.mistake)
        {
            self.suspects.push(it);
        }
    }

    /// How often any of it changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// How often something was freed: calls that were right may be wrong from then on.
    pub(crate) fn times_freed(&self) -> u64 {
        self.times_freed
    }

    /// Something comes behind waits for nothing.
    pub(crate) fn goes_on(&mut self) {
        self.changes += u64::from(self.idle.take().is_some());
    }

    /// A call begins.
    pub(crate) fn call(&mut self, routine: &Routine, event: &Resolved, trace: TraceName) {
        let at = event.annotated.index;
        let Routine { name, meaning, .. } = routine;
        let does = meaning.does;
        self.has_sessions |= is_of_sessions(does);
        self.waits_in_vain(routine, event, trace);
        self.begins_or_ends(routine, trace, at);
        let Some(arguments) = event.annotated.arguments.as_deref() else {
            return self.doubt(does);
        };
        for argument in arguments {
            if let (Some(resource), Value::Handle(handle)) =
                (Resource::used(argument.kind), &argument.value)
                && let Some(freed) = self.freed.get(&(resource, handle.raw)).copied()
            {
                let name = name.to_string();
                self.suspect(Suspect {
                    mistake: LooseEnd::Freed { resource, name },
                    trace,
                    freed,
                    used: at,
                });
            }
        }
        let claim = || self.epochs.claim(does, event);
        if let Some(what) = self.partitions.again(does, event).or_else(claim) {
            let (rule, name) = (rules::ARGUMENT, name.to_string());
            self.tell(LooseEnd::Argument { rule, name, what }, trace, at);
        }
        if let Some(what) = self.partitions.call(does, event) {
            let name = name.to_string();
            self.tell_open(LooseEnd::NotMarked { name, what }, trace, at);
        }
        self.datatypes(routine, event, trace);
        if let Some(opens) = self.epochs.call((routine, trace), event) {
            let name = name.to_string();
            self.tell(LooseEnd::OutsideEpoch { name, opens }, trace, at);
        }
        match does {
            Does::Epoch(epoch) => self.lock(epoch, event, trace),
            Does::SendBuffer(what) => self.attach(what, event, trace),
            Does::Send(Mode::Buffered) if self.main.is_some() => self.buffered(name, event, trace),
            Does::Free(Resource::Window) => {
                let window = event.handle("win").map(|it| it.raw);
                let open = window.map_or(Vec::new(), |it| self.epochs.freed(it));
                for (name, trace, at) in open {
                    let name = name.to_string();
                    self.tell(LooseEnd::NeverEnded { name }, trace, at);
                }
            }
            Does::Shift => self.shift(name, event, trace),
            Does::File(what) => self.file((name, what), event, trace),
            _ => {}
        }
    }

    /// Which thread begins MPI, which ends it, and what each calls first.
    fn begins_or_ends(&mut self, routine: &Routine, trace: TraceName, at: u64) {
        let Routine { name, meaning, .. } = routine;
        let does = meaning.does;
        if matches!(does, Does::Begin { .. }) {
            if self.main.is_some() {
                let name = name.to_string();
                self.tell(LooseEnd::Again { name }, trace, at);
            } else if let Some((name, trace, at)) = self.threads.first().cloned()
                && !self.has_sessions
            {
                // What begins MPI now was not called before.
                let name = name.to_string();
                self.tell(LooseEnd::BeforeInit { name }, trace, at);
            }
        } else if does == Does::End {
            self.changes += 1;
            self.end = Some((name.clone(), trace, at));
        }
        if self.threads.is_empty() && !meaning.anytime && !matches!(does, Does::Begin { .. }) {
            self.changes += 1;
            self.threads.push((name.clone(), trace, at));
        }
    }

    /// Counts calls that wait for nothing, one behind the other.
    fn waits_in_vain(&mut self, routine: &Routine, event: &Resolved, trace: TraceName) {
        let Routine { name, meaning, .. } = routine;
        let idle = self.idle.as_ref().map(|it| &it.0.0);
        // What the last call of a task that was killed is given may be lost.
        let is_lost = event.annotated.arguments.is_none() && idle == Some(name);
        match (waits_for_nothing(meaning.does, event), &mut self.idle) {
            (true, Some((_, times))) if *times < IDLE => {
                *times += 1;
                self.changes += 1;
            }
            (true, None) => {
                self.idle = Some(((name.clone(), trace, event.annotated.index), 1));
                self.changes += 1;
            }
            (false, Some(_)) if !is_lost && !meaning.is_query() => self.goes_on(),
            _ => {}
        }
    }

    /// Memory for buffered sends is given or taken back.
    fn attach(&mut self, what: SendBuffer, event: &Resolved, trace: TraceName) {
        match what {
            SendBuffer::Attach | SendBuffer::AttachTo => {
                let has_one = self.buffer.is_some_and(|it| it != ANY_ROOM);
                if what == SendBuffer::Attach && has_one {
                    self.tell(LooseEnd::AttachedTwice, trace, event.annotated.index);
                }
                self.changes += 1;
                self.buffer = Some(event.number("size").unwrap_or(ANY_ROOM));
            }
            SendBuffer::Detach => {
                self.changes += 1;
                self.buffer = self.buffer.filter(|it| *it == ANY_ROOM);
            }
            SendBuffer::DetachFrom | SendBuffer::Flush => {}
        }
    }

    /// A shift along a dimension that a grid has not.
    fn shift(&mut self, name: &Arc<str>, event: &Resolved, trace: TraceName) {
        let grid = event.handle("comm").and_then(|it| self.grids.get(&it.raw));
        let (Some(dimensions), Some(direction)) = (grid, event.number("direction")) else {
            return;
        };
        if !(0..*dimensions).contains(&direction) {
            let what = format!(
                "direction {direction} of a grid whose last is {}",
                dimensions - 1
            );
            let (rule, name) = (rules::ARGUMENT, name.to_string());
            let mistake = LooseEnd::Argument { rule, name, what };
            self.tell(mistake, trace, event.annotated.index);
        }
    }

    fn buffered(&mut self, name: &Arc<str>, event: &Resolved, trace: TraceName) {
        let name = name.to_string();
        let each = event.handle("datatype").and_then(|it| it.name.as_deref());
        let each = each.and_then(Datatype::named);
        let bytes = each.and_then(Datatype::bytes).zip(event.number("count"));
        let bytes = bytes.map_or(0, |(each, count)| each.saturating_mul(count));
        let mistake = match self.buffer {
            None => LooseEnd::NoBuffer { name },
            Some(room) if bytes > room => LooseEnd::SmallBuffer { name, bytes, room },
            Some(_) => return,
        };
        self.tell(mistake, trace, event.annotated.index);
    }

    /// Datatypes have to be committed before they are used for data: not to make others of them, nor to ask what they are.
    fn datatypes(&mut self, routine: &Routine, event: &Resolved, trace: TraceName) {
        if self.uncommitted.is_empty() {
            return;
        }
        let uses = !matches!(
            routine.meaning.does,
            Does::Datatype(_) | Does::Local | Does::Query | Does::Convert
        );
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        for argument in arguments {
            let Value::Handle(handle) = &argument.value else {
                continue;
            };
            match argument.kind {
                Kind::DatatypeAt => drop(self.uncommitted.remove(&handle.raw)),
                Kind::Datatype if uses && self.uncommitted.contains(&handle.raw) => {
                    let name = routine.name.to_string();
                    let at = event.annotated.index;
                    return self.tell(LooseEnd::Uncommitted { name }, trace, at);
                }
                _ => {}
            }
        }
    }

    fn file(&mut self, (name, what): (&Arc<str>, FileUse), event: &Resolved, trace: TraceName) {
        let Some(file) = event.handle("fh").map(|it| it.raw) else {
            return;
        };
        let at = event.annotated.index;
        let call = (name.clone(), trace, at);
        if let Some((name, trace, at)) = self.split(file, what, call) {
            let name = name.to_string();
            self.tell(LooseEnd::NeverCompleted { name }, trace, at);
        }
        let (Some(mode), FileUse::Transfer { writes, .. }) = (self.modes.get(&file), what) else {
            return;
        };
        // Libraries say so in what they return, and few look at that.
        let mode = match mode & (MODE_RDONLY | MODE_WRONLY) {
            MODE_RDONLY if writes => "MPI_MODE_RDONLY",
            MODE_WRONLY if !writes => "MPI_MODE_WRONLY",
            _ => return,
        };
        let name = name.to_string();
        self.tell(LooseEnd::OtherWay { name, mode }, trace, at);
    }

    /// Operations that one call begins and another ends: of a file one at a time. Gives one that this call leaves without its end.
    fn split(&mut self, file: i64, what: FileUse, call: Called) -> Option<Called> {
        let part = match what {
            FileUse::Transfer { part, .. } => part,
            _ => Part::Whole,
        };
        if part == Part::Whole && what != FileUse::Close {
            return None;
        }
        self.changes += 1;
        let before = self.split.remove(&file);
        if part == Part::Begin {
            self.split.insert(file, call);
        }
        before.filter(|_| part != Part::End)
    }

    /// A call that may have made what it does not say: handles may be in use again.
    fn doubt(&mut self, does: Does) {
        if matches!(
            does,
            Does::Communicator(_)
                | Does::Datatype(_)
                | Does::Window(_)
                | Does::Group(_)
                | Does::Reduction
                | Does::File(FileUse::Open)
                | Does::Convert
        ) {
            self.changes += 1;
            self.freed.clear();
        }
    }

    fn lock(&mut self, epoch: Epoch, event: &Resolved, trace: TraceName) {
        let Some(window) = event.handle("win").map(|it| it.raw) else {
            return;
        };
        let (locks, is_of_all) = match epoch {
            Epoch::Lock => (true, false),
            Epoch::LockAll => (true, true),
            Epoch::Unlock => (false, false),
            Epoch::UnlockAll => (false, true),
            _ => return,
        };
        let whose = event.peer("rank").and_then(|(_, peer)| peer.world);
        if whose.is_none() && !is_of_all {
            return;
        }
        self.changes += 1;
        if !locks {
            self.locked.retain(|it| *it != (window, whose));
        } else if self.locked.contains(&(window, whose)) {
            let mistake = LooseEnd::LockedTwice { of: whose };
            self.tell(mistake, trace, event.annotated.index);
        } else {
            self.locked.push((window, whose));
        }
    }

    /// A test of a window that is exposed says that this is over.
    pub(crate) fn exposed(&mut self, window: Option<i64>) {
        window.into_iter().for_each(|it| self.epochs.over(it));
    }

    /// The epochs on windows.
    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// Epochs on windows that were begun and not ended.
    pub(crate) fn unended(&self) -> Vec<Called> {
        self.epochs.unended()
    }

    /// A call returned.
    pub(crate) fn returned(
        &mut self,
        does: Does,
        event: &Resolved,
        terms: Terms,
        trace: TraceName,
    ) {
        if let Does::Begin { threads } = does {
            let level = event.number("provided").or(terms.required);
            let level = if threads {
                level.unwrap_or(i64::MAX)
            } else {
                0
            };
            self.main = Some((trace, level));
            self.changes += 1;
        }
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        for argument in arguments {
            match (argument.kind, &argument.value) {
                (Kind::NewDatatype, Value::Handle(handle)) if handle.name.is_none() => {
                    // A copy is as what it is one of.
                    match does {
                        Does::Datatype(Constructor::Copy) => self.uncommitted.remove(&handle.raw),
                        _ => self.uncommitted.insert(handle.raw),
                    };
                }
                (Kind::NewRequest, Value::Handle(handle)) => {
                    self.partitions.made(handle.raw, terms.partitions);
                }
                (Kind::NewWindow, Value::Handle(handle)) => self.epochs.made(handle.raw),
                (Kind::NewGroup, Value::Handle(handle)) => {
                    match does {
                        Does::Group(
                            Grouping::OfCommunicator
                            | Grouping::OfRemote
                            | Grouping::OfWindow
                            | Grouping::OfFile,
                        ) => self.shared.insert(handle.raw),
                        _ => self.shared.remove(&handle.raw),
                    };
                }
                (Kind::NewComm, Value::Handle(handle)) => {
                    let is_grid = does == Does::Communicator(Making::Grid);
                    match terms.dimensions.filter(|_| is_grid) {
                        Some(dimensions) => self.grids.insert(handle.raw, dimensions),
                        None => self.grids.remove(&handle.raw),
                    };
                }
                (Kind::NewFile, Value::Handle(handle)) => {
                    self.modes
                        .extend(terms.amode.map(|mode| (handle.raw, mode)));
                }
                _ => {}
            }
            if let (Some(resource), Value::Handle(handle)) =
                (Resource::made(argument.kind), &argument.value)
            {
                let again = self.freed.remove(&(resource, handle.raw));
                self.changes += u64::from(again.is_some());
            }
        }
    }

    /// A call that frees handles returned: those that it was given, and the event.
    pub(crate) fn freed(&mut self, resource: Resource, handles: &[i64], event: u64) {
        self.changes += 1;
        self.times_freed += 1;
        if resource == Resource::Communicator {
            self.grids.retain(|it, _| !handles.contains(it));
        }
        let is_shared = |it: &&i64| resource == Resource::Group && self.shared.contains(*it);
        let gone = handles.iter().filter(|it| !is_shared(it));
        let gone = gone.map(|it| ((resource, *it), event));
        self.freed.extend(gone);
    }

    /// Handles that were used after they were freed: they may have been made anew.
    pub(crate) fn suspects(&self) -> &[Suspect] {
        &self.suspects
    }

    /// One was not.
    pub(crate) fn confirm(&mut self, suspect: Suspect) {
        let first = (suspect.trace, suspect.used, 1);
        self.certain.insert(suspect.mistake, first);
    }

    /// Whether nobody may ask for it once all threads of the task were read.
    #[must_use]
    pub fn is_blameless(&self) -> bool {
        // Of a serialized one it is asked who was in MPI at the end.
        let is_told = !self.suspects.is_empty() || !self.epochs.unended().is_empty();
        !is_told && !self.is_serialized() && self.mistakes(|_| true).is_empty()
    }

    /// Whether its threads may call MPI one at a time only, whichever they are.
    pub(crate) fn is_serialized(&self) -> bool {
        self.main.is_some_and(|it| it.1 == THREAD_SERIALIZED)
    }

    /// Whether there was no call.
    fn is_silent(&self) -> bool {
        self.threads.is_empty() && self.main.is_none()
    }

    /// It is another thread's.
    pub fn is_of(&mut self, other: TraceName) {
        let mistakes = self.mistakes.values_mut().chain(self.certain.values_mut());
        let mistakes = mistakes.map(|it| &mut it.0);
        let suspects = self.suspects.iter_mut().map(|it| &mut it.trace);
        let called = self.threads.iter_mut().map(|it| &mut it.1);
        let main = self.main.iter_mut().map(|it| &mut it.0);
        let idle = self.idle.iter_mut().map(|it| &mut it.0.1);
        let end = self.end.iter_mut().map(|it| &mut it.1);
        let all = mistakes
            .chain(suspects)
            .chain(called)
            .chain(main)
            .chain(idle)
            .chain(end);
        all.for_each(|it| *it = other);
    }

    /// Adds that of another thread of the task. What one frees the other may make: such mistakes are not told then.
    pub fn append(&mut self, other: Self) {
        if other.is_silent() {
            return;
        }
        if self.is_silent() {
            *self = other;
            return;
        }
        let is_told = |it: &LooseEnd| {
            !matches!(
                it,
                LooseEnd::Freed { .. }
                    | LooseEnd::Past { .. }
                    | LooseEnd::Unmade { .. }
                    | LooseEnd::NotMarked { .. }
                    | LooseEnd::NoBuffer { .. }
                    | LooseEnd::AttachedTwice
                    | LooseEnd::SmallBuffer { .. }
                    | LooseEnd::Uncommitted { .. }
                    | LooseEnd::OtherWay { .. }
                    | LooseEnd::NeverCompleted { .. }
                    | LooseEnd::OutsideEpoch { .. }
                    | LooseEnd::Overlap { .. }
            )
        };
        self.suspects.clear();
        self.mistakes.retain(|it, _| is_told(it));
        self.epochs = Epochs::default();
        for (mistake, (trace, event, times)) in other.mistakes {
            if is_told(&mistake) {
                let first = (trace, event, 0);
                self.mistakes.entry(mistake).or_insert(first).2 += times;
            }
        }
        self.main = self.main.or(other.main);
        self.end = self.end.take().or(other.end);
        self.idle = self.idle.take().or(other.idle);
        self.threads.extend(other.threads);
    }

    /// The mistakes: the first call of each, and how many. `is_open` says of a call that it is not over.
    pub(crate) fn mistakes(&self, is_open: impl Fn((TraceName, u64)) -> bool) -> Mistakes {
        let mut all = self.mistakes.clone();
        all.retain(|mistake, (trace, event, _)| {
            let is_suspect = matches!(
                mistake,
                LooseEnd::Freed { .. }
                    | LooseEnd::Past { .. }
                    | LooseEnd::Unmade { .. }
                    | LooseEnd::NotMarked { .. }
            );
            !is_suspect || is_open((*trace, *event))
        });
        if let Some(((name, trace, event), IDLE)) = &self.idle {
            let name = name.to_string();
            all.insert(LooseEnd::Idle { name }, (*trace, *event, 1));
        }
        for (mistake, first) in &self.certain {
            all.entry(mistake.clone()).or_insert(*first);
        }
        let Some((main, level)) = self.main else {
            let mut first = self.threads.iter();
            if let Some((name, trace, event)) = first.find(|it| is_open((it.1, it.2))) {
                let name = name.to_string();
                all.insert(LooseEnd::BeforeInit { name }, (*trace, *event, 1));
            }
            return all;
        };
        let level = usize::try_from(level).unwrap_or(0);
        // At every level the thread that began MPI has to end it.
        let ended = self.end.iter().filter(|it| it.1 != main);
        if let Some((name, trace, event)) = ended.into_iter().next() {
            let mistake = LooseEnd::WrongThread {
                name: name.to_string(),
                threads: vec![*trace],
                level: THREAD_LEVELS
                    .get(level)
                    .or(THREAD_LEVELS.last())
                    .copied()
                    .unwrap_or_default(),
            };
            all.insert(mistake, (*trace, *event, 1));
        }
        let Some(level) = ONE_THREAD.get(level) else {
            return all;
        };
        for (name, trace, event) in &self.threads {
            if *trace == main {
                continue;
            }
            let (name, threads) = (name.to_string(), vec![*trace]);
            let mistake = LooseEnd::WrongThread {
                name,
                threads,
                level,
            };
            all.insert(mistake, (*trace, *event, 1));
        }
        all
    }
}

impl Usage {
    /// The mistakes of a task that nobody may have made unseen.
    pub(crate) fn mistakes_of(&self, task: &Conversation) -> Mistakes {
        let mut mistakes = self.mistakes_however_it_ends(task);
        // A library may have made a request unseen: told is who died of it.
        let has_ended = task.state == State::Ended;
        mistakes.retain(|it, _| has_ended || !matches!(it, LooseEnd::Unmade { .. }));
        mistakes
    }

    fn mistakes_however_it_ends(&self, task: &Conversation) -> Mistakes {
        let is_open = |call| task.pending.iter().any(|it| task.call(*it) == Some(call));
        self.mistakes(is_open)
    }

    /// Whether a task did not come back from a call that it should not have made.
    #[must_use]
    pub fn is_in_a_mistake(&self, task: &Conversation) -> bool {
        is_in_one_of(task, &self.mistakes_of(task), |_| true)
    }

    /// The same, where it is known that somebody died: of a request, too, that a library may have made unseen.
    #[must_use]
    pub fn may_have_died_of_a_mistake(&self, task: &Conversation) -> bool {
        is_in_one_of(task, &self.mistakes_however_it_ends(task), |_| true)
    }

    /// The same, of mistakes for which MPI may end a job.
    #[must_use]
    pub fn is_in_a_fatal_mistake(&self, task: &Conversation) -> bool {
        is_in_one_of(task, &self.mistakes_of(task), LooseEnd::may_end_it)
    }
}

fn is_in_one_of(
    task: &Conversation,
    mistakes: &Mistakes,
    which: impl Fn(&LooseEnd) -> bool,
) -> bool {
    let mut open = task.pending.iter().filter_map(|it| task.call(*it));
    open.any(|call| {
        let mut mistakes = mistakes.iter();
        mistakes.any(|(it, first)| which(it) && (first.0, first.1) == call)
    })
}

/// Whether a call waits for any of several requests, or asks for one of them, of which there is none.
fn waits_for_nothing(does: Does, event: &Resolved) -> bool {
    matches!(
        does,
        Does::Wait(Scope::Any | Scope::Some) | Does::Test(Scope::Any | Scope::Some)
    ) && names_no_request(event)
}

/// Whether a call shows that there are sessions.
fn is_of_sessions(does: Does) -> bool {
    matches!(
        does,
        Does::BeginSession
            | Does::Free(Resource::Session)
            | Does::Group(Grouping::OfSession)
            | Does::Communicator(Making::FromGroup | Making::BetweenGroups)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_comm::job::resolved;

    /// The mistakes of a thread that calls these, none of which is open.
    fn mistakes(calls: &[&str]) -> Vec<LooseEnd> {
        let mut it = Usage::default();
        let trace = TraceName::new(0, 0);
        for name in calls {
            let routine = Routine::of(name);
            it.call(&routine, &resolved(Vec::new()), trace);
            let does = routine.meaning.does;
            it.returned(does, &resolved(Vec::new()), Terms::default(), trace);
        }
        it.mistakes(|_| false).into_keys().collect()
    }

    #[test]
    fn calls_that_come_before_the_one_that_begins_mpi() {
        let name = "MPI_Type_size".to_owned();
        let early = ["MPI_Initialized", "MPI_Type_size", "MPI_Init"];
        assert_eq!(mistakes(&early), [LooseEnd::BeforeInit { name }]);
        // It may have been a library that began MPI, or a session.
        assert_eq!(mistakes(&["MPI_Type_size"]), []);
        assert_eq!(mistakes(&["MPI_Init", "MPI_Type_size"]), []);
        let session = ["MPI_Session_init", "MPI_Type_size", "MPI_Init"];
        assert_eq!(mistakes(&session), []);
    }

    #[test]
    fn the_thread_that_began_mpi_ends_it() {
        let calls = |it: &mut Usage, thread: u32, name: &str| {
            let (routine, trace) = (Routine::of(name), TraceName::new(0, thread));
            it.call(&routine, &resolved(Vec::new()), trace);
            let does = routine.meaning.does;
            it.returned(does, &resolved(Vec::new()), Terms::default(), trace);
        };
        let ended_by = |thread: u32| {
            let (mut first, mut other) = (Usage::default(), Usage::default());
            calls(&mut first, 0, "MPI_Init_thread");
            let by = if thread == 0 { &mut first } else { &mut other };
            calls(by, thread, "MPI_Finalize");
            first.append(other);
            first.mistakes(|_| false).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(ended_by(0), []);
        let wrong = LooseEnd::WrongThread {
            name: "MPI_Finalize".to_owned(),
            threads: vec![TraceName::new(0, 1)],
            level: "MPI_THREAD_MULTIPLE",
        };
        assert_eq!(ended_by(1), [wrong]);
    }
}
