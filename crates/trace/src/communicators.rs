//! Communicators across ranks, and the world ranks behind the ranks that MPI calls name.
//!
//! A handle means something in one process, for a while; a rank means something in one communicator.
//! From the recorded calls of all ranks follows what they stand for:
//!
//! ```text
//! each thread's calls ── local: handle ──► the call that made it ─┐
//!                                                                 ├─► matching: k-th call on the same
//! each process's Comm_rank, Comm_size ── what it was told ────────┘   parent = the same communicator
//! ```
//! *Guarantees*: a world rank that is given follows from the calls, and nothing that a process was told
//! contradicts it; else it is unknown: where ranks or arguments are missing (`--keep last`, a library's
//! own communicators), several threads made communicators of one parent, or calls do not show enough
//! (`MPI_Comm_spawn`).
//! *Costs*: one pass over the records of all MPI calls, in parallel over processes; memory for the
//! communicators and their members.
//! *Not for*: matching messages; this is what such a room begins with ([`Communicators::calls`]).

mod group;
mod local;
mod matching;
mod text;

#[cfg(test)]
mod tests;

use crate::arguments::{
    Annotated, Argument, Arguments, ArgumentsMark, Handle, Lap, Records, RecordsMark, Source,
    Tuple, Value,
};
use crate::model::{FunctionId, Process, Run, Thread};
use crate::name::{ProcessName, TraceName};
use crate::stream::StreamId;
pub use group::Group;
use local::{Local, Makers, Meant, Tracker};
use lockstep_api::mpi::{self, Kind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
pub use text::Shown;

/// A communicator, as an index into [`Communicators::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunicatorId(pub u32);

/// Where a communicator comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// `MPI_COMM_WORLD` of a job.
    World,
    /// `MPI_COMM_SELF` of a process.
    Own,
    /// `MPI_Comm_dup` and its kin.
    Copy,
    /// `MPI_Comm_split`.
    Split,
    /// `MPI_Comm_split_type`.
    SplitType,
    /// `MPI_Comm_create`, `MPI_Comm_create_group`.
    Create,
    /// `MPI_Cart_create`, `MPI_Cart_sub`, `MPI_Graph_create`, `MPI_Dist_graph_create` and its kin.
    Topology,
    /// `MPI_Intercomm_create`.
    Intercommunicator,
    /// `MPI_Intercomm_merge`.
    Merge,
}

/// The members of a communicator, or of one side of an intercommunicator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// How many there are, if known.
    pub size: Option<u32>,
    /// World ranks by rank, as far as known.
    pub ranks: Vec<Option<u32>>,
}

/// A communicator of a run: the same one in all its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Its index.
    pub id: CommunicatorId,
    /// Where it comes from.
    pub origin: Origin,
    /// What it was made of.
    pub parent: Option<CommunicatorId>,
    /// Its members; of an intercommunicator both sides.
    pub sides: Vec<Members>,
}

/// What an argument stands for, beyond its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing more.
    Plain,
    /// A communicator.
    Communicator {
        /// `None` where it is not known which.
        id: Option<CommunicatorId>,
        /// How many ranks its members may name, if known.
        size: Option<u32>,
    },
    /// A rank in a communicator.
    Peer(Peer),
    /// The sources of statuses, where they are ranks.
    Peers(Vec<Option<Peer>>),
}

/// Who is behind a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Of which communicator it is a rank, if known.
    pub communicator: Option<CommunicatorId>,
    /// The rank in `MPI_COMM_WORLD`, if known.
    pub world: Option<u32>,
    /// How many ranks there are to choose from, if known.
    pub size: Option<u32>,
}

/// An event with what is known beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The event and its arguments.
    pub annotated: Annotated,
    /// Of a call its function; of a return that of the call that returns.
    pub function: Option<FunctionId>,
    /// What the arguments stand for, one for each; empty where there are none.
    pub meanings: Vec<Meaning>,
}

/// The communicators of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Communicators {
    all: Vec<Communicator>,
    processes: FxHashMap<ProcessName, Known>,
}

/// What is known of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    makers: Makers,
    places: FxHashMap<Local, matching::Place>,
}

impl Members {
    fn of(ranks: impl IntoIterator<Item = Option<u32>>) -> Self {
        let ranks: Vec<Option<u32>> = ranks.into_iter().collect();
        Self {
            size: Some(ranks.len() as u32),
            ranks,
        }
    }

    /// The rank here of this rank of the world.
    #[must_use]
    pub fn position(&self, world: u32) -> Option<usize> {
        // Mostly it is the world itself.
        if self.ranks.get(world as usize) == Some(&Some(world)) {
            return Some(world as usize);
        }
        self.ranks.iter().position(|rank| *rank == Some(world))
    }

    fn followed_by(&self, other: &Self) -> Self {
        match (self.size, other.size) {
            (Some(_), Some(_)) => Self::of(self.ranks.iter().chain(&other.ranks).copied()),
            _ => Self::default(),
        }
    }
}

impl Communicator {
    /// Who a caller on `side` can name.
    fn named_from(&self, side: usize) -> Option<&Members> {
        let side = match self.sides.len() {
            2 => 1 - side,
            _ => side,
        };
        self.sides.get(side)
    }

    /// Who rank `rank` is for a caller on `side`.
    fn world_rank(&self, side: usize, rank: i64) -> Option<u32> {
        if self.origin == Origin::World {
            let rank = u32::try_from(rank).ok()?;
            let size = self.sides.first()?.size;
            return size.is_none_or(|size| rank < size).then_some(rank);
        }
        let rank = usize::try_from(rank).ok()?;
        self.named_from(side)?.ranks.get(rank).copied().flatten()
    }
}

/// What is kept of the calls of a run that is opened again and again ([`crate::Live`]).
#[derive(Debug, Default)]
pub struct Following(FxHashMap<StreamId, (RecordsMark, Tracker<'static>)>);

impl Run {
    /// Finds the run's communicators. O(records of MPI calls).
    #[must_use]
    pub fn communicators(&self) -> Communicators {
        self.communicators_of(follow)
    }

    /// The same; reads what is new since it was asked for the last time.
    #[must_use]
    pub fn communicators_live(&self, following: &mut Following) -> Communicators {
        let kept = Mutex::new(std::mem::take(&mut following.0));
        let found = self.communicators_of(|process| {
            let mut threads = process.threads.iter().filter(|it| it.side.is_some());
            match (threads.next(), threads.next()) {
                (Some(thread), None) => follow_on(process, thread, &kept),
                _ => follow(process),
            }
        });
        following.0 = kept.into_inner().unwrap_or_default();
        found
    }

    fn communicators_of(
        &self,
        follow: impl Fn(&Process) -> (matching::Process, Makers) + Sync,
    ) -> Communicators {
        let mut jobs: BTreeMap<u32, Vec<&Process>> = BTreeMap::new();
        let ranks = self
            .processes
            .iter()
            .filter(|it| it.is_mpi && it.rank.is_some());
        for process in ranks.filter(|it| it.name.sibling == 0) {
            jobs.entry(process.name.job).or_default().push(process);
        }
        let mut found = Communicators::default();
        for processes in jobs.values() {
            let (followed, makers): (Vec<_>, Vec<_>) =
                processes.par_iter().map(|process| follow(process)).unzip();
            // A launcher that counts otherwise than MPI does.
            let is_other = |it: &matching::Process| {
                let told = it.told.ranks.get(&Local::World);
                told.is_some_and(|told| *told != i64::from(it.rank))
            };
            if followed.iter().any(is_other) {
                continue;
            }
            let places = matching::solve(&followed, &mut found.all);
            let known = makers.into_iter().zip(places);
            let known = known.map(|(makers, places)| Known { makers, places });
            let names = processes.iter().map(|process| process.name);
            found.processes.extend(names.zip(known));
        }
        found
    }
}

/// After so many records that tell nothing of communicators, it is asked whether more such are sure to come.
const OFTEN: u32 = 256;

/// What is kept of streams, for all processes.
type Kept = Mutex<FxHashMap<StreamId, (RecordsMark, Tracker<'static>)>>;

/// What a process did with communicators, of which one thread calls MPI.
fn follow_on(process: &Process, thread: &Thread, kept: &Kept) -> (matching::Process, Makers) {
    let (Some(source), Some(id)) = (thread.side.as_deref(), thread.followed) else {
        return follow(process);
    };
    let taken = kept.lock().ok().and_then(|mut it| it.remove(&id));
    let (mut records, tracker) = match taken {
        Some((mark, tracker)) if tracker.is_of(thread.index) => {
            (Records::after(source, mark), tracker)
        }
        _ => (Records::new(source), Tracker::new(thread.index, None)),
    };
    let tracker = track(&mut records, source, tracker);
    let mut told = local::Told::default();
    told.add(&tracker.told);
    let made = process.threads.iter().map(|it| match it.followed {
        followed if followed == Some(id) => tracker.made.clone(),
        _ => Vec::new(),
    });
    let followed = told_of(process, made.collect(), told);
    if let (Some(mark), Ok(mut kept)) = (records.mark(), kept.lock()) {
        kept.insert(id, (mark, tracker));
    }
    (followed, Makers::default())
}

/// What a process did with communicators.
fn follow(process: &Process) -> (matching::Process, Makers) {
    let mut makers = Makers::default();
    let mut trackers = track_all(process, None);
    if process
        .threads
        .iter()
        .filter(|it| it.side.is_some())
        .count()
        > 1
    {
        for (handle, birth) in trackers.iter().flat_map(|it| &it.births) {
            let first = local::Maker {
                thread: Some(birth.thread),
                birth: Some(*birth),
            };
            let and = |maker: &mut local::Maker| {
                maker.birth = None;
                maker.thread = maker.thread.filter(|it| *it == birth.thread);
            };
            makers.entry(*handle).and_modify(and).or_insert(first);
        }
        trackers = track_all(process, Some(&makers));
    }
    let mut told = local::Told::default();
    for tracker in &trackers {
        told.add(&tracker.told);
    }
    let made = trackers.into_iter().map(|it| it.made).collect();
    (told_of(process, made, told), makers)
}

fn told_of(process: &Process, made: Vec<Vec<local::Made>>, told: local::Told) -> matching::Process {
    matching::Process {
        rank: process.rank.unwrap_or(0),
        world_size: process.world_size(),
        host: process.host.clone(),
        made,
        told,
        is_cut: process.threads.iter().any(|thread| thread.dropped > 0),
    }
}

fn track_all<'a>(process: &Process, makers: Option<&'a Makers>) -> Vec<Tracker<'a>> {
    let threads = process.threads.iter();
    threads
        .map(|it| {
            let tracker = Tracker::new(it.index, makers);
            match it.side.as_deref() {
                Some(source) => track(&mut Records::new(source), source, tracker),
                None => tracker,
            }
        })
        .collect()
}

fn track<'a>(records: &mut Records<'_>, source: &Source, mut tracker: Tracker<'a>) -> Tracker<'a> {
    let functions = source.functions.iter();
    let telling = functions.filter(|(_, function)| local::tells_of_communicators(function));
    let telling: FxHashMap<FunctionId, &mpi::Function> =
        telling.map(|(id, it)| (*id, it)).collect();
    let function = |tuple: &Tuple| Some((tuple.function?, *telling.get(&tuple.function?)?));
    let mut in_vain = 0u32;
    while let Some(tuple) = records.advance() {
        let Some((id, function)) = function(tuple) else {
            in_vain += 1;
            if in_vain.is_multiple_of(OFTEN) {
                records.pass(|it| function(it).is_none());
            }
            continue;
        };
        if tuple.is_result {
            tracker.result(id, &tuple.arguments);
        } else {
            tracker.call(id, function, &tuple.arguments);
        }
    }
    tracker
}

impl Communicators {
    /// All of them: first those that MPI predefines, of each job, then their children in the order of
    /// the calls that made them.
    #[must_use]
    pub fn all(&self) -> &[Communicator] {
        &self.all
    }

    /// The communicator with this id.
    #[must_use]
    pub fn get(&self, id: CommunicatorId) -> Option<&Communicator> {
        self.all.get(id.0 as usize)
    }

    /// Its number for people, from 1; `None` of those that MPI predefines. O(communicators).
    #[must_use]
    pub fn number(&self, id: CommunicatorId) -> Option<usize> {
        let is_made = |it: &&Communicator| !matches!(it.origin, Origin::World | Origin::Own);
        is_made(&self.get(id)?).then(|| self.all[..=id.0 as usize].iter().filter(is_made).count())
    }

    /// The events of a thread, in order, with what their arguments stand for. Costs as
    /// [`Thread::arguments`].
    #[must_use]
    pub fn events<'a>(&'a self, thread: &'a Thread) -> ResolvedEvents<'a> {
        let TraceName { process, .. } = thread.name;
        let known = self.processes.get(&process);
        ResolvedEvents {
            events: thread.arguments(),
            resolver: Resolver {
                communicators: self,
                source: thread.side.as_deref(),
                tracker: Tracker::new(thread.index, known.map(|it| &it.makers)),
                known,
            },
        }
    }

    /// Calls of some functions, and the returns that end them, with what their arguments stand for: `wanted`
    /// says of a function whether. Those of MPI have to be. Costs little more than [`Thread::events`] where
    /// these are rare.
    pub fn events_of<'a, F: Fn(FunctionId) -> bool>(
        &'a self,
        thread: &'a Thread,
        wanted: F,
    ) -> EventsOf<'a, F> {
        EventsOf {
            all: self.events(thread),
            wanted,
        }
    }

    /// The same of a thread that goes on, behind a mark that was made in it, where the communicators are as they were
    /// then. Stops before an event whose arguments are not there yet.
    pub fn events_live<'a, F: Fn(FunctionId) -> bool>(
        &'a self,
        thread: &'a Thread,
        mark: Option<EventsMark>,
        wanted: F,
    ) -> EventsOf<'a, F> {
        let mark = mark.filter(|it| it.tracker.is_of(thread.index));
        let (arguments, tracker) = mark.map(|it| (it.arguments, it.tracker)).unzip();
        let mut all = self.events(thread);
        all.events = Arguments::live(thread, arguments);
        all.resolver.tracker = tracker.unwrap_or(all.resolver.tracker);
        EventsOf { all, wanted }
    }

    /// The recorded MPI calls of a thread, and their returns where they gave something back. Costs as
    /// [`Self::events_of`].
    pub fn calls<'a>(&'a self, thread: &'a Thread) -> impl Iterator<Item = Resolved> + 'a {
        let mut all = self.events_of(thread, |id| thread.mpi(id).is_some());
        let all = std::iter::from_fn(move || Some(all.next_event()?.0));
        all.filter(|it| it.annotated.arguments.is_some())
    }

    /// What is known of the open calls, in the order of [`Thread::open`]. O(events).
    #[must_use]
    pub fn open(&self, thread: &Thread) -> Vec<Option<Resolved>> {
        let mut all = self.events(thread);
        let mut open: Vec<Option<Resolved>> = Vec::new();
        while let Some(next) = all.next() {
            let depth = all.events.depth();
            open.resize(depth, None);
            if let (crate::Event::Call(_), Some(place)) = (next.annotated.event, open.last_mut()) {
                *place = next.annotated.arguments.is_some().then_some(next);
            }
        }
        open.resize(thread.open.len(), None);
        open
    }
}

/// Iterator of [`Communicators::events`].
pub struct ResolvedEvents<'a> {
    events: Arguments<'a>,
    resolver: Resolver<'a>,
}

/// Knows what the arguments of a thread's calls stand for, as long as it is given them in order.
#[derive(Clone)]
pub struct Resolver<'a> {
    communicators: &'a Communicators,
    source: Option<&'a Source>,
    tracker: Tracker<'a>,
    known: Option<&'a Known>,
}

impl std::fmt::Debug for Resolver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// What the handles of a thread stand for, in numbers: the same ones at two times where nothing changed between them but
/// requests that came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandlesMark {
    /// Changes to communicators, groups, windows and messages so far: as many, and these are as they were.
    pub changes: u64,
    /// Handles that stand for something.
    held: usize,
    /// Calls whose results are to come.
    pending: usize,
}

impl std::fmt::Debug for ResolvedEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResolvedEvents").finish_non_exhaustive()
    }
}

impl Iterator for ResolvedEvents<'_> {
    type Item = Resolved;

    fn next(&mut self) -> Option<Resolved> {
        let annotated = self.events.next()?;
        let function = self.events.function();
        Some(self.resolver.resolve(Unresolved {
            annotated,
            function,
        }))
    }
}

/// Events of [`Communicators::events_of`].
pub struct EventsOf<'a, F> {
    all: ResolvedEvents<'a>,
    wanted: F,
}

impl<F> std::fmt::Debug for EventsOf<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventsOf").finish_non_exhaustive()
    }
}

/// Where reading events with what their arguments stand for stopped.
#[derive(Debug)]
pub struct EventsMark {
    arguments: ArgumentsMark,
    tracker: Tracker<'static>,
}

impl<'a, F: Fn(FunctionId) -> bool> EventsOf<'a, F> {
    /// Where it stands; `None` where it cannot go on from there.
    #[must_use]
    pub fn mark(self) -> Option<EventsMark> {
        Some(EventsMark {
            arguments: self.all.events.mark()?,
            tracker: self.all.resolver.tracker.alone()?,
        })
    }

    /// The next one, and how many calls are open after it; of a call, it is the innermost of them.
    pub fn next_event(&mut self) -> Option<(Resolved, usize)> {
        let (event, depth) = self.next_unresolved()?;
        Some((self.resolver().resolve(event), depth))
    }

    /// The same, not looked into yet: what it stands for is known once all before it were resolved. One that changes
    /// nothing of what handles stand for need not be.
    pub fn next_unresolved(&mut self) -> Option<(Unresolved, usize)> {
        let annotated = self.all.events.next_of(&self.wanted)?;
        let function = self.all.events.function();
        let event = Unresolved {
            annotated,
            function,
        };
        Some((event, self.all.events.depth()))
    }

    /// How it stands, where the events that come are sure to go round, as in a program that asks again and again.
    #[must_use]
    pub fn lap(&self) -> Option<Lap> {
        self.all.events.lap()
    }

    /// Whether a round is over since `lap`.
    pub fn is_over(&self, lap: &Lap) -> bool {
        self.all.events.is_over(lap)
    }

    /// Passes over rounds in which events and arguments are sure to be as in that since `lap`: how many. `None` where that
    /// is not over. What they stand for is not looked into: where the events of one round change nothing of that, those of
    /// the others do not.
    pub fn pass(&mut self, lap: &Lap) -> Option<u64> {
        self.all.events.pass(lap)
    }

    /// Says what these events stand for.
    pub fn resolver(&mut self) -> &mut Resolver<'a> {
        &mut self.all.resolver
    }
}

/// An event of [`EventsOf`] whose arguments nobody has looked into.
#[derive(Debug, Clone)]
pub struct Unresolved {
    /// The event and its arguments.
    pub annotated: Annotated,
    /// Of a call its function; of a return that of the call that returns.
    pub function: Option<FunctionId>,
}

/// What a call was given, or what it gave back: equal only for equal ones, of one reading of a thread. It is kept as
/// long as this is, so that no other one comes to its place.
#[derive(Debug, Clone)]
pub struct RecordKey(Arc<[Argument]>);

impl PartialEq for RecordKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RecordKey {}

impl RecordKey {
    /// A number for it, that of no other one that is kept.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

impl Annotated {
    /// The number of its key; 0 where there are no arguments.
    #[must_use]
    pub fn key_number(&self) -> usize {
        let arguments = self.arguments.as_ref();
        arguments.map_or(0, |it| it.as_ptr().addr())
    }

    /// `None` where there are no arguments.
    #[must_use]
    pub fn key(&self) -> Option<RecordKey> {
        self.arguments.clone().map(RecordKey)
    }
}

impl Resolver<'_> {
    /// How it stands.
    #[must_use]
    pub fn mark(&self) -> HandlesMark {
        let (changes, held, pending) = self.tracker.standing();
        HandlesMark {
            changes,
            held,
            pending,
        }
    }

    /// What an event stands for; in the order of the events.
    pub fn resolve(&mut self, event: Unresolved) -> Resolved {
        let Unresolved {
            annotated,
            function,
        } = event;
        let meanings = match (&annotated.arguments, function) {
            (Some(arguments), Some(id)) => self.meanings(annotated.event, id, arguments),
            _ => Vec::new(),
        };
        Resolved {
            annotated,
            function,
            meanings,
        }
    }

    fn meanings(
        &mut self,
        event: crate::Event,
        id: FunctionId,
        arguments: &[Argument],
    ) -> Vec<Meaning> {
        let Some(function) = self.source.and_then(|source| source.functions.get(&id)) else {
            return vec![Meaning::Plain; arguments.len()];
        };
        let meant = match event {
            crate::Event::Return => self.tracker.result(id, arguments),
            _ => self.tracker.call(id, function, arguments),
        };
        let meant = meant.iter().zip(arguments);
        meant.map(|(meant, it)| self.meaning(meant, it)).collect()
    }

    fn meaning(&self, meant: &Meant, argument: &Argument) -> Meaning {
        let place = |local: &Local| {
            self.known
                .and_then(|known| known.places.get(local))
                .copied()
        };
        let found = |local: &Local| {
            let (id, side) = place(local)?;
            Some((self.communicators.get(id)?, side))
        };
        let size = |local: &Local| {
            let (it, side) = found(local)?;
            it.named_from(side)?.size
        };
        let peer = |local: &Local, rank: i64| Peer {
            communicator: place(local).map(|(id, _)| id),
            world: found(local).and_then(|(it, side)| it.world_rank(side, rank)),
            size: size(local),
        };
        let rank = match argument.value {
            Value::Rank { rank, name: None } | Value::Number(rank) => Some(rank),
            Value::Status(source, ..) => Some(source),
            _ => None,
        };
        let rank = rank.filter(|rank| *rank >= 0);
        match (meant, rank) {
            (Meant::Comm(Local::Null), _) => Meaning::Plain,
            (Meant::Comm(local), _) => Meaning::Communicator {
                id: place(local).map(|(id, _)| id),
                size: size(local),
            },
            (Meant::Peer(local), Some(rank)) => Meaning::Peer(peer(local, rank)),
            (Meant::Peers(locals), _) => match &argument.value {
                Value::Statuses(_, statuses) => {
                    let sources = statuses.iter().map(|(source, _)| *source);
                    let locals = locals.iter().chain(std::iter::repeat(&None));
                    let peers = sources.zip(locals).map(|(source, local)| {
                        let local = local.as_ref().filter(|_| source >= 0)?;
                        Some(peer(local, source))
                    });
                    Meaning::Peers(peers.collect())
                }
                _ => Meaning::Plain,
            },
            _ => Meaning::Plain,
        }
    }
}

impl Resolved {
    /// The argument or result with this name (that of the standard), and what it stands for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(&Value, &Meaning)> {
        let arguments = self.annotated.arguments.as_deref()?;
        let index = arguments.iter().position(|it| it.name == name)?;
        Some((&arguments[index].value, self.meanings.get(index)?))
    }

    /// The communicator of the call: what it works on. `None` where it has none, or an unknown one.
    #[must_use]
    pub fn communicator(&self) -> Option<CommunicatorId> {
        let arguments = self.annotated.arguments.as_deref()?;
        let index = arguments
            .iter()
            .position(|it| matches!(it.kind, Kind::Comm | Kind::CommAt))?;
        match self.meanings.get(index)? {
            Meaning::Communicator { id, .. } => *id,
            _ => None,
        }
    }

    /// A rank by the argument's name (`dest`, `source`, `root`), and who it is.
    #[must_use]
    pub fn peer(&self, name: &str) -> Option<(i64, Peer)> {
        match self.get(name)? {
            (Value::Rank { rank, .. } | Value::Number(rank), Meaning::Peer(peer)) => {
                Some((*rank, *peer))
            }
            _ => None,
        }
    }

    /// A number or a tag by its name (`count`, `tag`, `sendtag`); `None` is `MPI_ANY_TAG` too.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)?.0 {
            Value::Number(number) => Some(*number),
            Value::Tag(tag) => *tag,
            _ => None,
        }
    }

    /// A handle by its name (`datatype`, `op`, `request`).
    #[must_use]
    pub fn handle(&self, name: &str) -> Option<&Handle> {
        match self.get(name)?.0 {
            Value::Handle(handle) => Some(handle),
            _ => None,
        }
    }
}
