//! The events of a thread, with what the arguments of its calls stand for.

use super::known::{Communicators, Known};
use super::local::{Local, Meant, Tracker};
use super::resolved::{Meaning, Peer, Resolved, Unresolved};
use lockstep_trace::{
    Argument, Arguments, ArgumentsMark, Event, FunctionId, Lap, Thread, TraceName, Value,
};

impl Communicators {
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
                thread,
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
            if let (Event::Call(_), Some(place)) = (next.annotated.event, open.last_mut()) {
                *place = next.annotated.arguments.is_some().then_some(next);
            }
        }
        open.resize(thread.open.len(), None);
        open
    }
}

/// Iterator of [`Communicators::events`].
#[derive(Debug)]
pub struct ResolvedEvents<'a> {
    events: Arguments<'a>,
    resolver: Resolver<'a>,
}

/// Knows what the arguments of a thread's calls stand for, as long as it is given them in order.
#[derive(Debug, Clone)]
pub struct Resolver<'a> {
    communicators: &'a Communicators,
    thread: &'a Thread,
    tracker: Tracker<'a>,
    known: Option<&'a Known>,
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
        let annotated = event.annotated;
        let meanings = match (&annotated.arguments, event.function) {
            (Some(arguments), Some(id)) => self.meanings(annotated.event, id, arguments),
            _ => Vec::new(),
        };
        Resolved {
            annotated,
            function: event.function,
            meanings,
        }
    }

    fn meanings(&mut self, event: Event, id: FunctionId, arguments: &[Argument]) -> Vec<Meaning> {
        let Some(function) = self.thread.mpi(id) else {
            return vec![Meaning::Plain; arguments.len()];
        };
        let meant = match event {
            Event::Return => self.tracker.result(id, arguments),
            _ => self.tracker.call(id, function, arguments),
        };
        let meant = meant.iter().zip(arguments);
        meant.map(|(meant, it)| self.meaning(meant, it)).collect()
    }

    fn meaning(&self, meant: &Meant, argument: &Argument) -> Meaning {
        let place = |local: &Local| self.known?.places.get(local).copied();
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
