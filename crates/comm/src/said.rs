//! From the MPI calls of a thread, with their recorded arguments, to what others could notice of them.

mod completion;
mod handles;
mod makings;

use crate::answer::{answered, chosen, is_of};
use crate::call::{
    among_neighbours, begun, everybody, freed, introduction, matched, names_no_request, probed,
    requests,
};
use crate::communicators::{HandlesMark, Resolved, Resolver, Unresolved};
use crate::conversation::{Conversation, left};
use crate::datatypes::{Datatypes, Recipe};
use crate::group::{MpiGroup, MpiGroups};
use crate::layout::{Layout, Layouts};
use crate::message::{CommunicatorId, Operation, Part, PartKind, Peer, Waits};
use crate::observer::{Begun, Call, Changes, Observer};
use crate::poll::Polls;
use crate::requests::{Named, Past, Requests};
use crate::routines::{Routine, Routines};
use crate::windows::Windows;
use lockstep_api::mpi::{
    Does, Epoch, FileUse, Form, Kind, Making, Meaning, Resource, Scope, Shape,
};
use lockstep_trace::{Argument, Event, RecordKey, SourceLine, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// So many handles of requests are known.
const MOST_GIVEN: usize = 1 << 12;

/// A call that is not over.
#[derive(Debug, Clone)]
struct Open {
    /// Of which function.
    routine: Routine,
    /// Its operation, where it is one.
    operation: Option<usize>,
    /// Requests that it waits for or asks for, in the order of its arguments.
    requests: Named,
    /// Parts that the request it gives back stands for, and what they are.
    begun: Vec<usize>,
    kinds: Vec<PartKind>,
    /// Of a persistent request, what a start of it begins.
    template: Option<Vec<PartKind>>,
    /// The communicator of a window that it makes, the bytes of a unit of displacement, and all its bytes.
    window_of: Option<CommunicatorId>,
    unit: Option<i64>,
    size: Option<i64>,
    /// What it asks for without waiting: parts, and messages that a probe would see.
    asked: Option<(Vec<usize>, Vec<PartKind>)>,
    /// Where it was called, if that was recorded.
    line: Option<Arc<SourceLine>>,
    /// What it was given.
    key: Option<RecordKey>,
    /// What it frees.
    frees: Option<(Resource, Vec<i64>)>,
    /// The datatype that it makes.
    recipe: Recipe,
    layout: Option<Layout>,
    /// The group that it makes, if it is known.
    group: Option<Arc<MpiGroup>>,
    /// The window that it works on.
    window: Option<i64>,
    /// Whether a probe that did not wait had found the message that it receives.
    is_found: bool,
    /// What it receives if there is a message: who receives that later waits for nothing.
    takes: Option<PartKind>,
}

/// What was said in detail, and what it takes to understand what follows.
#[derive(Debug, Clone)]
pub struct Said<O> {
    windows: Windows,
    datatypes: Datatypes,
    layouts: Layouts,
    groups: MpiGroups,
    world: Option<CommunicatorId>,
    trace: TraceName,
    pub(crate) conversation: Conversation,
    requests: Requests,
    past: Past,
    /// Handles that calls gave for requests; none where there were more than are kept.
    made_requests: Option<FxHashSet<i64>>,
    window_ids: FxHashMap<i64, CommunicatorId>,
    files: FxHashMap<i64, CommunicatorId>,
    /// Communicators of `MPI_Cart_create`.
    grids: FxHashSet<CommunicatorId>,
    /// How many windows and files it made of each communicator.
    made_windows: FxHashMap<CommunicatorId, [usize; 2]>,
    /// The message that a probe found, until anything is sent or received.
    found: Option<PartKind>,
    /// Receives that were cancelled and not waited for since, as they were begun.
    cancelled: Vec<(usize, PartKind)>,
    /// The call of MPI that is not over, and how many calls are open within it, itself included.
    open: Option<(usize, Open)>,
    /// How things were before it, where turns are looked for.
    before: Option<Before>,
    pub(crate) polls: Polls,
    /// How many calls did what others could notice, or asked for something, or made or freed it.
    noticed: u64,
    observer: O,
}

/// What calls that nobody could notice leave as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Rest<R> {
    noticed: u64,
    operations: usize,
    parts: usize,
    marks: Marks,
    accesses: (usize, usize),
    observed: R,
}

/// A call that returned.
pub struct Over {
    pub before: Before,
    pub given: Unresolved,
    /// Whether it neither asked nor made what stays.
    pub is_plain: bool,
    pub tells: bool,
}

/// How things were before a call.
#[derive(Debug, Clone)]
pub struct Before {
    pub call: Unresolved,
    pub operations: usize,
    pub marks: Marks,
}

/// What a turn leaves as it was, but for how often the whole world met and others were heard of: handles, and what is kept
/// beside what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    pub handles: HandlesMark,
    pub resources: (usize, usize),
    pub observed: u64,
    pub met: (usize, u64),
}

impl<O: Observer> Said<O> {
    /// At the beginning of a thread.
    pub fn new(trace: TraceName, windows: Windows, world: Option<CommunicatorId>) -> Self {
        let conversation = Conversation {
            threads: vec![(0, trace)],
            ..Conversation::default()
        };
        Self {
            windows,
            datatypes: Datatypes::default(),
            layouts: Layouts::default(),
            groups: MpiGroups::default(),
            world,
            trace,
            conversation,
            requests: Requests::default(),
            past: Past::default(),
            made_requests: Some(FxHashSet::default()),
            window_ids: FxHashMap::default(),
            files: FxHashMap::default(),
            grids: FxHashSet::default(),
            made_windows: FxHashMap::default(),
            found: None,
            cancelled: Vec::new(),
            open: None,
            before: None,
            polls: Polls::default(),
            noticed: 0,
            observer: O::default(),
        }
    }

    /// How it stands, but for how often others were heard of: where two are equal, nothing that came between them changed
    /// what follows, and may come again and again.
    pub fn rest(&self, resolver: &Resolver<'_>) -> Rest<O::Rest> {
        let said = &self.conversation;
        let accesses = said.accesses.as_ref();
        let marks = self.marks(resolver);
        Rest {
            noticed: self.noticed,
            operations: said.operations.len(),
            parts: said.parts.len(),
            marks: Marks {
                met: (marks.met.0, 0),
                ..marks
            },
            accesses: accesses.map_or((0, 0), |it| it.kept()),
            observed: self.observer.rest(),
        }
    }

    /// Whether a call is not over.
    pub fn is_in_a_call(&self) -> bool {
        self.open.is_some()
    }

    /// Whether there are requests that run, or could.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether a probe found a message, and nothing was sent or received since.
    pub fn has_found(&self) -> bool {
        self.found.is_some()
    }

    pub(crate) fn marks(&self, resolver: &Resolver<'_>) -> Marks {
        let accesses = self.conversation.accesses.as_ref();
        Marks {
            handles: resolver.mark(),
            resources: self.conversation.resources.mark(),
            observed: self.observer.changes().0,
            met: accesses.map_or((0, 0), |it| it.mark()),
        }
    }

    /// Takes in an event.
    pub fn event(
        &mut self,
        routines: &Routines,
        resolver: &mut Resolver<'_>,
        (event, depth): (Unresolved, usize),
    ) -> Option<Over> {
        if let Event::Call(_) = event.annotated.event {
            if self.open.is_some() {
                let event = resolver.resolve(event);
                // What a program hung on a communicator may be freed when that is, or by MPI_Finalize.
                if let Some(routine) = event.function.and_then(|id| routines.get(id)) {
                    let resources = &mut self.conversation.resources;
                    resources.called_back(routine.meaning, &event);
                }
                return None;
            }
            let before = Before {
                call: event.clone(),
                operations: self.conversation.operations.len(),
                marks: self.marks(resolver),
            };
            let event = resolver.resolve(event);
            if let Some(routine) = event.function.and_then(|id| routines.get(id)) {
                self.call(routine, &event, depth);
            }
            self.before = self.open.is_some().then_some(before);
            return None;
        }
        let given = event.clone();
        let event = resolver.resolve(event);
        let (_, open) = self.open.take_if(|open| depth < open.0)?;
        let stays = open.template.is_some() || open.window_of.is_some() || open.frees.is_some();
        let is_plain = open.asked.is_none() && !stays && open.window.is_none();
        let has_requests = !open.requests.handles.is_empty();
        let tells = open.routine.meaning.is_query();
        let is_quiet = open.asked.is_none() && !stays && !has_requests;
        let operations = self.conversation.operations.len();
        self.returned(&event, open);
        let is_noticed = self.conversation.operations.len() == operations;
        self.noticed += u64::from(is_noticed || !is_quiet);
        Some(Over {
            before: self.before.take()?,
            given,
            is_plain: is_plain && (is_noticed || !has_requests),
            tells,
        })
    }

    /// Leaves out the first operations, which are settled.
    pub fn leave_out(&mut self, operations: usize) {
        self.before = None;
        let parts = self.conversation.leave_out(operations);
        self.requests.leave_out(parts);
        self.observer.leave_out(parts);
        if let Some((_, open)) = &mut self.open {
            open.operation = open.operation.and_then(|it| it.checked_sub(operations));
            left(&mut open.begun, parts);
            if let Some((asked, _)) = &mut open.asked {
                left(asked, parts);
            }
        }
        self.polls.leave_out(parts);
        self.cancelled.retain(|it| it.0 >= parts);
        self.cancelled.iter_mut().for_each(|it| it.0 -= parts);
    }

    /// What the thread did, and the windows that it made. Operations that nobody else could notice are
    /// left out, but for the one that is pending.
    pub fn into_told(mut self) -> (Conversation, Windows, O) {
        if let Some((
            _,
            Open {
                operation: Some(operation),
                ..
            },
        )) = self.open
        {
            self.conversation.pending.push(operation);
        }
        self.poll();
        self.conversation.idle.extend(self.requests.idle());
        self.conversation.running = self.requests.running();
        self.settle_unsure();
        (self.conversation, self.windows, self.observer)
    }

    /// Requests that may be over are so, but for those that it waits for.
    fn settle_unsure(&mut self) {
        let said = &mut self.conversation;
        let pending = said
            .pending
            .iter()
            .filter_map(|it| said.operations.get(*it));
        let waited = pending.filter_map(|it| match &it.waits {
            Waits::All(parts) | Waits::Any(parts) => Some(parts.as_slice()),
            Waits::No | Waits::Found(_) | Waits::Unknown => None,
        });
        let waited: Vec<usize> = waited.flatten().copied().collect();
        for part in self.requests.unsure().filter(|it| !waited.contains(it)) {
            if let Some(part) = said.parts.get_mut(part) {
                part.complete = true;
            }
        }
    }

    /// A call comes that is known, and not for nothing.
    pub fn goes_on(&mut self) {
        self.observer.goes_on();
    }

    /// How often anything changed that is kept beside.
    pub fn changes(&self) -> Changes {
        self.observer.changes()
    }

    /// Who asks for the same again and again waits for it.
    fn poll(&mut self) {
        let in_other_call = self.conversation.pending.first().is_some_and(|it| {
            let operation = &self.conversation.operations[*it];
            operation.waits != Waits::No
        });
        if in_other_call {
            return;
        }
        let Some(found) = self.polls.lasting() else {
            return;
        };
        let probes = found.probes.clone();
        let name = found.name.clone();
        let (mut parts, event) = (found.parts.clone(), found.event);
        let line = found.line.clone();
        self.conversation.together = found.together;
        parts.extend(self.add(probes));
        let operation = self.conversation.operations.len();
        self.conversation.operations.push(Operation {
            name,
            event,
            returned: false,
            waits: Waits::Any(parts),
        });
        self.conversation.pending = vec![operation];
        self.conversation.polled = Some(operation);
        self.conversation.polled_at = line;
    }

    /// Takes in a call and what it gave back, of no run.
    pub fn exchange(&mut self, routine: &Routine, call: &Resolved, given: Option<&Resolved>) {
        self.call(routine, call, 1);
        if let Some(given) = given
            && let Some((_, open)) = self.open.take()
        {
            self.returned(given, open);
        }
    }

    /// A call, with so many calls open.
    fn call(&mut self, routine: &Routine, event: &Resolved, depth: usize) {
        let Meaning { does, form, .. } = routine.meaning;
        let at = event.annotated.index;
        let window = event.handle("win").map(|it| it.raw);
        let known = window.and_then(|it| self.window_ids.get(&it)).copied();
        let window_of = known.and_then(|it| self.windows.parent(it));
        let constructor = match does {
            Does::Datatype(constructor) => Some(constructor),
            _ => None,
        };
        let mut open = Open {
            routine: routine.clone(),
            operation: None,
            requests: requests(event),
            begun: Vec::new(),
            kinds: Vec::new(),
            template: None,
            window_of: None,
            unit: event.number("disp_unit"),
            size: event.number("size"),
            asked: None,
            line: event.annotated.line.clone(),
            key: event.annotated.key(),
            frees: freed(routine.meaning, event),
            recipe: constructor.and_then(|it| self.datatypes.recipe(it, event)),
            layout: constructor.and_then(|it| self.layouts.recipe(it, event)),
            group: self.groups.recipe(routine, event, window_of),
            window,
            is_found: false,
            takes: None,
        };
        self.conversation.resources.call(routine.meaning, event);
        self.observer.call(&Call {
            routine,
            event,
            trace: self.trace,
            datatypes: &self.datatypes,
            layouts: &self.layouts,
        });
        self.asks_for_past(&routine.name, event, &open.requests.handles);
        self.asks_for_unmade(&routine.name, event);
        if self.conversation.finalized && !routine.meaning.anytime {
            let late = (routine.name.clone(), self.trace, at);
            self.conversation.late.get_or_insert(late);
        }
        let parts = self.conversation.parts.len();
        let waits = self.begin(event, &mut open);
        let begun = self.conversation.parts.get(parts..).unwrap_or(&[]);
        if let [first, ..] = begun {
            let found = self.found.take();
            let receives = (does, form) == (Does::Receive, Form::Blocking);
            open.is_found = receives && found.is_some_and(|it| is_of(&first.kind, &it));
        }
        let is_blocking = matches!(waits, Waits::All(_));
        self.hears(routine, event, known, is_blocking.then_some(parts));
        let is_kept = open.template.is_some() || !open.begun.is_empty();
        let seen = Begun {
            parts: &self.conversation.parts,
            requests: &self.requests,
        };
        self.observer.uses(is_kept, &seen);
        if open.asked.is_none() && !routine.meaning.is_query() {
            self.polls.doubt();
        }
        let operation = self.conversation.operations.len();
        self.conversation.operations.push(Operation {
            name: routine.name.clone(),
            event: at,
            returned: false,
            waits,
        });
        open.operation = Some(operation);
        self.open = Some((depth, open));
    }

    /// What a call may bring of what others did, and does to the window that it names. It waits for its parts from this one on.
    fn hears(
        &mut self,
        routine: &Routine,
        event: &Resolved,
        window: Option<CommunicatorId>,
        waits_from: Option<usize>,
    ) {
        let waits = waits_from.and_then(|first| self.conversation.parts.get(first..));
        let meets = waits.is_some_and(|it| it.iter().any(|it| self.is_of_all(&it.kind)));
        let accesses = self.conversation.accesses.get_or_insert_default();
        match (window, routine.meaning.does) {
            _ if meets => accesses.meet(1),
            (Some(_), Does::Epoch(Epoch::Fence) | Does::Free(Resource::Window)) => accesses.hear(),
            (None, _) if !routine.meaning.is_local() => accesses.hear(),
            _ => {}
        }
        if let Some(window) = window {
            accesses.call((routine, self.trace), event, (window, &self.layouts));
        }
    }

    /// A call names requests: those that are over have no handle any more.
    fn asks_for_past(&mut self, name: &Arc<str>, event: &Resolved, handles: &[i64]) {
        if event.annotated.arguments.is_none() {
            return self.past.clear();
        }
        for handle in handles {
            if let Some(over) = self.past.remove(*handle) {
                let used = event.annotated.index;
                self.observer.past_request(name, self.trace, over, used);
            }
        }
    }

    /// A call names a request, which some call must have made.
    fn asks_for_unmade(&mut self, name: &Arc<str>, event: &Resolved) {
        let Some(request) = event.handle("request").filter(|it| it.name.is_none()) else {
            return;
        };
        let made = self.made_requests.as_ref();
        if made.is_some_and(|it| !it.contains(&request.raw)) {
            let at = event.annotated.index;
            self.observer.unmade_request(name, self.trace, at);
        }
    }

    /// Begins what a call begins; what it waits for.
    fn begin(&mut self, event: &Resolved, open: &mut Open) -> Waits {
        let routine = open.routine.clone();
        let Meaning { does, form, .. } = routine.meaning;
        let is_nonblocking = form == Form::Nonblocking;
        let kinds = match does {
            Does::Wait(_) | Does::Test(_) | Does::Status(_) if names_no_request(event) => {
                open.requests = Named::default();
                return Waits::No;
            }
            Does::Wait(scope) => {
                let parts = self.requests.parts(&open.requests.handles);
                return match scope {
                    Scope::One | Scope::All => Waits::All(parts),
                    Scope::Any | Scope::Some => Waits::Any(parts),
                };
            }
            Does::Start(_) => {
                self.start(&routine, event, &open.requests.handles);
                return Waits::No;
            }
            Does::Test(_) | Does::Status(_) => {
                let asked = self.requests.parts(&open.requests.handles);
                open.asked = Some((asked, Vec::new()));
                return Waits::No;
            }
            Does::Probe | Does::MatchedProbe if is_nonblocking => {
                open.asked = probed(event).map(|it| (Vec::new(), vec![it]));
                let takes = does == Does::MatchedProbe;
                open.takes = takes.then(|| matched(event)).flatten();
                return Waits::No;
            }
            Does::Begin { .. } | Does::Abort => return Waits::Unknown,
            Does::End => vec![everybody(self.world, &routine)],
            Does::Communicator(Making::Between) => {
                introduction(&routine, event, self.trace.process.rank)
            }
            Does::Epoch(_) | Does::Window(_) | Does::Free(Resource::Window) => {
                return self.window(event, open);
            }
            // What else is done with a window may wait for others.
            Does::Other if open.window.is_some() => return Waits::Unknown,
            Does::File(
                FileUse::Close | FileUse::Together | FileUse::Transfer { together: true, .. },
            ) => {
                let file = event.handle("fh").and_then(|it| self.files.get(&it.raw));
                vec![everybody(file.copied(), &routine)]
            }
            _ => {
                let of = (&self.datatypes, self.trace.process.rank);
                let Some(mut kinds) = begun(&routine, event, of) else {
                    return Waits::No;
                };
                if let Some(PartKind::Collective(share)) = kinds.first_mut()
                    && share.shape() == Shape::Neighbours
                    && share
                        .communicator
                        .is_some_and(|it| self.grids.contains(&it))
                {
                    share.size = among_neighbours(does, event, &self.datatypes);
                }
                kinds
            }
        };
        if form == Form::Persistent {
            open.template = Some(kinds);
            return Waits::No;
        }
        if does == Does::File(FileUse::Open) {
            open.window_of = event.communicator();
        }
        if is_nonblocking || matches!(kinds.as_slice(), [PartKind::Own]) {
            open.kinds = kinds.clone();
            open.begun = self.add(kinds);
            return Waits::No;
        }
        Waits::All(self.add(kinds))
    }

    /// Whether it is a share of an operation of the whole world.
    fn is_of_all(&self, kind: &PartKind) -> bool {
        let PartKind::Collective(share) = kind else {
            return false;
        };
        let of = share.communicator;
        let of = of.map(|it| self.windows.parent(it).unwrap_or(it));
        of.is_some() && of == self.world
    }

    /// Begins parts of the operation that comes next.
    fn add(&mut self, kinds: Vec<PartKind>) -> Vec<usize> {
        let operation = self.conversation.operations.len();
        let first = self.conversation.parts.len();
        let parts = kinds.into_iter().map(|kind| {
            let nobody = matches!(
                kind,
                PartKind::Send {
                    to: Peer::Nobody,
                    ..
                } | PartKind::Receive {
                    from: Peer::Nobody,
                    ..
                } | PartKind::Probe {
                    from: Peer::Nobody,
                    ..
                }
            );
            Part {
                operation,
                kind,
                complete: nobody,
                completed_at: None,
            }
        });
        self.conversation.parts.extend(parts);
        (first..self.conversation.parts.len()).collect()
    }

    /// A call is over: what it gave back.
    fn returned(&mut self, event: &Resolved, mut open: Open) {
        let Some(operation) = open.operation else {
            return;
        };
        self.conversation.operations[operation].returned = true;
        self.answered(operation, event, &mut open);
        let does = open.routine.meaning.does;
        let event_of_call = self.conversation.operations[operation].event;
        self.observer.returned(&open.routine, event, self.trace);
        if matches!(does, Does::Datatype(_)) {
            self.datatypes.made(open.recipe.take(), event);
            self.layouts.made(open.layout.take(), event);
        }
        self.groups.made(open.group.take(), event);
        if let Some((resource, handles)) = &open.frees {
            let resources = &self.conversation.resources;
            let gone = handles
                .iter()
                .filter(|it| !resources.holds((*resource, **it)));
            let gone: Vec<i64> = gone.copied().collect();
            self.observer.freed(*resource, &gone, event_of_call);
        }
        self.conversation.resources.returned(
            (&open.routine, event_of_call),
            self.trace,
            open.template.is_some(),
            event,
        );
        let given = |request: &Argument| request.kind == Kind::NewRequest;
        let gives = event.annotated.arguments.as_deref().unwrap_or_default();
        if gives.iter().any(given)
            && let Some(handle) = event.handle("request")
        {
            return self.gives(handle.raw, event_of_call, open);
        }
        match does {
            Does::Wait(Scope::One | Scope::All) => {
                self.rests(&open.requests, &open.routine.name, event_of_call);
                self.complete_all(&open.requests, event);
            }
            // True is 1 in C, and often -1 in Fortran.
            Does::Test(Scope::One | Scope::All)
                if event.number("flag").is_some_and(|flag| flag != 0) =>
            {
                self.complete_all(&open.requests, event);
            }
            Does::Wait(_) | Does::Test(Scope::Any | Scope::Some) => {
                let (seen, more) = chosen(&open.routine, &open.requests, event);
                self.complete(seen, event);
                let unseen = self.requests.complete_unseen(more, &open.requests.handles);
                self.are_over(&unseen);
            }
            Does::Cancel => {
                self.let_go(&open.requests.handles);
                self.cancel(&open.requests.handles);
            }
            Does::Status(Scope::One | Scope::All) if answered(event) => {
                self.let_go(&open.requests.handles);
            }
            Does::Status(Scope::Any | Scope::Some) if answered(event) => {
                let (seen, _) = chosen(&open.routine, &open.requests, event);
                let handles: Vec<i64> = seen.into_iter().map(|it| it.1).collect();
                self.let_go(&handles);
            }
            Does::Epoch(Epoch::Test) if answered(event) => {
                self.observer.exposed(open.window);
            }
            Does::Free(Resource::PersistentRequest) => {
                let at = (event_of_call, event.annotated.index);
                self.given_up(&open.requests.handles, at);
            }
            _ => {
                self.conversation.finalized |= does == Does::End;
                self.made(does, event, open.window_of, (open.unit, open.size));
                if let Waits::All(parts) = self.conversation.operations[operation].waits.clone() {
                    for part in &parts {
                        self.finish(*part, event, None);
                    }
                    if open.is_found {
                        self.conversation.operations[operation].waits = Waits::Found(parts);
                    }
                }
            }
        }
        self.forget(operation, does);
    }

    /// Leaves out what nobody could notice: a program may ask its rank a billion times.
    fn forget(&mut self, operation: usize, does: Does) {
        let is_last = operation + 1 == self.conversation.operations.len();
        let is_noticed = self
            .conversation
            .parts
            .last()
            .is_some_and(|part| part.operation == operation);
        let waits_for_nobody = match self.conversation.operations[operation].waits {
            Waits::No => true,
            // What a flush waited for is over.
            Waits::Unknown => !matches!(does, Does::Begin { .. } | Does::Abort),
            Waits::All(_) | Waits::Any(_) | Waits::Found(_) => false,
        };
        if is_last && !is_noticed && waits_for_nobody {
            self.conversation.operations.pop();
        } else {
            self.polls.forget();
        }
    }
}
