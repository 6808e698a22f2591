//! From the MPI calls of a thread, with their recorded arguments, to what others could notice of them.

use crate::call::{begun, everybody, probed, requests};
use crate::message::{
    CommunicatorId, Conversation, Operation, Part, PartKind, Peer, Shape, Step, Waits, left,
};
use crate::poll::Polls;
use crate::resources::Resource;
use crate::usage::is_always_fine;
use crate::windows::{Routines, Windows};
use lockstep_trace::mpi::Kind;
use lockstep_trace::{
    Argument, Event, HandlesMark, Meaning, RecordKey, Resolved, Resolver, Run, TraceName,
    Unresolved, Value,
};
use rustc_hash::FxHashMap;

/// A request of a thread.
#[derive(Debug, Clone)]
enum Request {
    /// It runs: these parts; of several that have one handle, the oldest first. Open MPI gives small messages that are sent
    /// at once one and the same request.
    Active(Vec<Vec<usize>>),
    /// Persistent: what a start begins, and what it began last.
    Persistent(Vec<PartKind>, Started),
}

/// How a persistent request was started last.
#[derive(Debug, Clone, Default)]
struct Started {
    /// The parts that run.
    parts: Vec<usize>,
    /// Whether it ever was.
    ever: bool,
}

impl Request {
    /// The parts of the one that comes after `before` others that have this handle.
    fn parts(&self, before: usize) -> &[usize] {
        match self {
            Self::Active(each) => each.get(before).map_or(&[], Vec::as_slice),
            Self::Persistent(_, started) => &started.parts,
        }
    }
}

/// A call that is not over.
#[derive(Debug, Clone)]
struct Open {
    /// Its operation, where it is one.
    operation: Option<usize>,
    /// Requests that it waits for or asks for, in the order of its arguments.
    requests: Vec<i64>,
    /// Parts that the request it gives back stands for.
    begun: Vec<usize>,
    /// Of a persistent request, what a start of it begins.
    template: Option<Vec<PartKind>>,
    /// The communicator of a window that it makes, and the bytes of a unit of displacement.
    window_of: Option<CommunicatorId>,
    unit: Option<i64>,
    /// What it asks for without waiting: parts, and messages that a probe would see.
    asked: Option<(Vec<usize>, Vec<PartKind>)>,
    /// What it was given.
    key: Option<RecordKey>,
    /// What it frees.
    frees: Option<(Resource, Vec<i64>)>,
    /// The level of thread support that it asks for.
    required: Option<i64>,
    /// Whether it works on a window.
    on_window: bool,
    /// Whether it changes nothing.
    tells: bool,
}

/// What was said in detail, and what it takes to understand what follows.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    windows: Windows,
    world: Option<CommunicatorId>,
    trace: TraceName,
    pub conversation: Conversation,
    requests: FxHashMap<i64, Request>,
    window_ids: FxHashMap<i64, CommunicatorId>,
    made_windows: FxHashMap<CommunicatorId, usize>,
    /// The call of MPI that is not over, and how many calls are open within it, itself included.
    open: Option<(usize, Open)>,
    /// How things were before it, where turns are looked for.
    before: Option<Before>,
    pub polls: Polls,
}

/// A call that returned.
pub(crate) struct Over {
    pub before: Before,
    pub given: Unresolved,
    /// Whether it neither asked nor made what stays.
    pub is_plain: bool,
    pub tells: bool,
}

/// How things were before a call.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    pub call: Unresolved,
    pub operations: usize,
    pub marks: Marks,
}

/// What a turn leaves as it was, but for how often the whole world met: handles, and what is kept beside what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub handles: HandlesMark,
    pub resources: (usize, usize),
    pub usage: u64,
    pub met: usize,
}

/// The step that a call on a window is, by its name without `MPI_`.
fn step(base: &str, event: &Resolved) -> Option<Step> {
    let target = || {
        event
            .peer("rank")
            .and_then(|(_, peer)| peer.world)
            .map(Some)
    };
    Some(match base {
        "Win_start" => Step::Start,
        "Win_complete" => Step::Complete,
        "Win_post" => Step::Post,
        "Win_wait" => Step::Wait,
        "Win_lock" => Step::Lock(target()?),
        "Win_unlock" => Step::Unlock(target()?),
        "Win_lock_all" => Step::Lock(None),
        "Win_unlock_all" => Step::Unlock(None),
        _ => return None,
    })
}

/// The requests that a call says it completed.
fn chosen(run: &Run, handles: &[i64], event: &Resolved) -> Vec<i64> {
    let is_fortran = event.function.is_some_and(|id| {
        let linkage = &run.function(id).linkage;
        !linkage.trim_start_matches('P').starts_with("MPI_")
    });
    let base = i64::from(is_fortran);
    let indices = match (event.number("index"), event.get("array_of_indices")) {
        (Some(index), _) => vec![index],
        (None, Some((Value::Numbers(_, indices), _))) => indices.clone(),
        _ => return Vec::new(),
    };
    indices
        .into_iter()
        .filter_map(|index| handles.get(usize::try_from(index - base).ok()?))
        .copied()
        .collect()
}

/// What a start of a persistent request that is not running would begin, by its handle.
fn idle((handle, request): (&i64, &Request)) -> Option<(i64, Vec<(PartKind, bool)>)> {
    match request {
        Request::Persistent(kinds, started) if started.parts.is_empty() => {
            let kinds = kinds.iter().cloned();
            Some((*handle, kinds.map(|it| (it, started.ever)).collect()))
        }
        _ => None,
    }
}

/// What a call frees that is gone when it returns: of a request that runs, that is not so.
fn freed(base: &str, event: &Resolved) -> Option<(Resource, Vec<i64>)> {
    let resource = Resource::freed_by(base).filter(|it| *it != Resource::PersistentRequest)?;
    let arguments = event.annotated.arguments.as_deref()?.iter();
    let handles = arguments.filter_map(|it| match &it.value {
        Value::Handle(handle) if handle.name.is_none() => Some(handle.raw),
        _ => None,
    });
    Some((resource, handles.collect()))
}

/// What changes nothing, by its name without `MPI_`.
const TELLS: [&str; 5] = ["Wtime", "Wtick", "Comm_rank", "Comm_size", "Get_count"];

/// Whether what was asked for had happened.
fn answered(event: &Resolved) -> bool {
    match (event.number("flag"), event.number("outcount")) {
        (Some(flag), _) => flag != 0,
        (None, Some(count)) => count != 0,
        (None, None) => true,
    }
}

impl Said {
    /// At the beginning of a thread.
    pub fn new(trace: TraceName, windows: Windows, world: Option<CommunicatorId>) -> Self {
        let conversation = Conversation {
            threads: vec![(0, trace)],
            ..Conversation::default()
        };
        Self {
            windows,
            world,
            trace,
            conversation,
            requests: FxHashMap::default(),
            window_ids: FxHashMap::default(),
            made_windows: FxHashMap::default(),
            open: None,
            before: None,
            polls: Polls::default(),
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

    pub fn marks(&self, resolver: &Resolver<'_>) -> Marks {
        Marks {
            handles: resolver.mark(),
            resources: self.conversation.resources.mark(),
            usage: self.conversation.usage.changes(),
            met: self.conversation.accesses.times_met(),
        }
    }

    /// Takes in an event.
    pub fn event(
        &mut self,
        run: &Run,
        routines: &Routines,
        resolver: &mut Resolver<'_>,
        (event, depth): (Unresolved, usize),
    ) -> Option<Over> {
        if let Event::Call(_) = event.annotated.event {
            if self.open.is_some() {
                resolver.resolve(event);
                return None;
            }
            let before = Before {
                call: event.clone(),
                operations: self.conversation.operations.len(),
                marks: self.marks(resolver),
            };
            let event = resolver.resolve(event);
            self.call(routines, &event, depth);
            self.before = self.open.is_some().then_some(before);
            return None;
        }
        let given = event.clone();
        let event = resolver.resolve(event);
        let (_, open) = self.open.take_if(|open| depth < open.0)?;
        let stays = open.template.is_some() || open.window_of.is_some() || open.frees.is_some();
        let is_plain = open.asked.is_none() && !stays && !open.on_window;
        let (has_requests, tells) = (!open.requests.is_empty(), open.tells);
        let operations = self.conversation.operations.len();
        self.returned(run, &event, open);
        let is_noticed = self.conversation.operations.len() == operations;
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
        for request in self.requests.values_mut() {
            match request {
                Request::Active(each) => each.iter_mut().for_each(|list| left(list, parts)),
                Request::Persistent(_, started) => left(&mut started.parts, parts),
            }
        }
        if let Some((_, open)) = &mut self.open {
            open.operation = open.operation.and_then(|it| it.checked_sub(operations));
            left(&mut open.begun, parts);
            if let Some((asked, _)) = &mut open.asked {
                left(asked, parts);
            }
        }
        self.polls.leave_out(parts);
    }

    /// What the thread did, and the windows that it made. Operations that nobody else could notice are
    /// left out, but for the one that is pending.
    pub fn into_told(mut self) -> (Conversation, Windows) {
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
        let mut idle: Vec<_> = self.requests.iter().filter_map(idle).collect();
        idle.sort_by_key(|it| it.0);
        let idle = idle.into_iter().flat_map(|it| it.1);
        self.conversation.idle.extend(idle);
        (self.conversation, self.windows)
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
    }

    /// A call, with so many calls open.
    fn call(&mut self, routines: &Routines, event: &Resolved, depth: usize) {
        let Some(name) = event.function.and_then(|id| routines.name(id)) else {
            return;
        };
        let name = name.clone();
        let base = name.strip_prefix("MPI_").unwrap_or(&name);
        let mut open = Open {
            operation: None,
            requests: requests(event),
            begun: Vec::new(),
            template: None,
            window_of: None,
            unit: event.number("disp_unit"),
            asked: None,
            key: event.annotated.key(),
            frees: freed(base, event),
            required: event.number("required"),
            on_window: event.handle("win").is_some(),
            tells: TELLS.contains(&base),
        };
        self.conversation.resources.call(base, event);
        self.conversation.usage.call(&name, event, self.trace);
        let window = event.handle("win").map(|it| it.raw);
        if let Some(window) = window.and_then(|it| self.window_ids.get(&it)) {
            let accesses = &mut self.conversation.accesses;
            accesses.call((&name, self.trace), event, *window);
        }
        if self.conversation.finalized && !is_always_fine(base) {
            let late = (name.clone(), self.trace, event.annotated.index);
            self.conversation.late.get_or_insert(late);
        }
        let waits = self.begin(base, event, &mut open);
        if open.asked.is_none() && !open.tells {
            self.polls.doubt();
        }
        let operation = self.conversation.operations.len();
        self.conversation.operations.push(Operation {
            name,
            event: event.annotated.index,
            returned: false,
            waits,
        });
        open.operation = Some(operation);
        self.open = Some((depth, open));
    }

    /// Begins what a call begins; what it waits for.
    fn begin(&mut self, base: &str, event: &Resolved, open: &mut Open) -> Waits {
        let nonblocking = base
            .strip_prefix('I')
            .filter(|rest| rest.starts_with(|it: char| it.is_ascii_lowercase()))
            .filter(|rest| !matches!(*rest, "nit" | "nit_thread" | "nitialized"));
        let stem = nonblocking
            .unwrap_or(base)
            .trim_end_matches("_init")
            .to_ascii_lowercase();
        let kinds = match stem.as_str() {
            "wait" | "waitall" => return Waits::All(self.parts(&open.requests)),
            "waitany" | "waitsome" => return Waits::Any(self.parts(&open.requests)),
            "start" | "startall" => {
                self.start(base, event.annotated.index, &open.requests);
                return Waits::No;
            }
            "test" | "testall" | "testany" | "testsome" | "request_get_status" => {
                open.asked = Some((self.parts(&open.requests), Vec::new()));
                return Waits::No;
            }
            "probe" | "mprobe" if nonblocking.is_some() => {
                open.asked = probed(event).map(|it| (Vec::new(), vec![it]));
                return Waits::No;
            }
            "init" | "init_thread" | "abort" => return Waits::Unknown,
            "finalize" => vec![everybody(self.world, base)],
            _ if base.starts_with("Win_") => return self.window(base, event, open),
            _ => match begun(&stem, base, nonblocking.is_some(), event) {
                Some(kinds) => kinds,
                None => return Waits::No,
            },
        };
        if base.ends_with("_init") {
            open.template = Some(kinds);
            return Waits::No;
        }
        if nonblocking.is_some() {
            open.begun = self.add(kinds);
            return Waits::No;
        }
        let is_meeting = |it: &PartKind| match it {
            PartKind::Collective(it) => {
                it.shape == Shape::All && it.communicator.is_some() && it.communicator == self.world
            }
            _ => false,
        };
        if kinds.iter().any(is_meeting) {
            self.conversation.accesses.meet(1);
        }
        Waits::All(self.add(kinds))
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
            }
        });
        self.conversation.parts.extend(parts);
        (first..self.conversation.parts.len()).collect()
    }

    fn start(&mut self, base: &str, event: u64, handles: &[i64]) {
        for handle in handles {
            let Some(Request::Persistent(kinds, last)) = self.requests.get(handle) else {
                continue;
            };
            if !last.parts.is_empty() {
                let usage = &mut self.conversation.usage;
                usage.started_twice(base, self.trace, event);
            }
            let kinds = kinds.clone();
            let started = Started {
                parts: self.add(kinds.clone()),
                ever: true,
            };
            self.requests
                .insert(*handle, Request::Persistent(kinds, started));
        }
    }

    /// The parts of requests.
    fn parts(&self, handles: &[i64]) -> Vec<usize> {
        let each = handles.iter().enumerate();
        let parts = each.flat_map(|(place, handle)| {
            let Some(request) = self.requests.get(handle) else {
                return &[][..];
            };
            let before = match request {
                Request::Active(each) if each.len() > 1 => {
                    handles[..place].iter().filter(|it| *it == handle).count()
                }
                _ => 0,
            };
            request.parts(before)
        });
        parts.copied().collect()
    }

    /// Calls on windows: making one and fences are collective, others are steps of epochs.
    fn window(&mut self, base: &str, event: &Resolved, open: &mut Open) -> Waits {
        let known = event
            .handle("win")
            .and_then(|handle| self.window_ids.get(&handle.raw))
            .copied();
        if let (Some(window), Some(step)) = (known, step(base, event)) {
            let parts = self.add(vec![PartKind::Epoch { window, step }]);
            return Waits::All(parts);
        }
        let communicator = match base {
            "Win_fence" | "Win_free" => known,
            "Win_create" | "Win_allocate" | "Win_allocate_shared" | "Win_create_dynamic" => {
                open.window_of = event.communicator();
                open.window_of
            }
            _ => return Waits::Unknown,
        };
        let parts = self.add(vec![everybody(communicator, base)]);
        Waits::All(parts)
    }

    /// A call is over: what it gave back.
    fn returned(&mut self, run: &Run, event: &Resolved, mut open: Open) {
        let Some(operation) = open.operation else {
            return;
        };
        self.conversation.operations[operation].returned = true;
        if let Some((parts, probes)) = open.asked.take() {
            let asking = &self.conversation.operations[operation];
            match answered(event) {
                true => self.polls.forget(),
                false => {
                    self.polls.ask(&asking.name, asking.event, parts, probes);
                    self.polls.remember(open.key, event.annotated.key());
                }
            }
        }
        let name = self.conversation.operations[operation].name.clone();
        let base = name.trim_start_matches("MPI_");
        let usage = &mut self.conversation.usage;
        usage.returned(base, event, open.required, self.trace);
        if let Some((resource, handles)) = &open.frees {
            usage.freed(*resource, handles);
        }
        let event_of_call = self.conversation.operations[operation].event;
        self.conversation.resources.returned(
            (&name, event_of_call),
            self.trace,
            open.template.is_some(),
            event,
        );
        let given = |request: &Argument| request.kind == Kind::NewRequest;
        let gives = event.annotated.arguments.as_deref().unwrap_or_default();
        if gives.iter().any(given)
            && let Some(handle) = event.handle("request")
        {
            match (open.template, self.requests.get_mut(&handle.raw)) {
                (Some(template), _) => {
                    let request = Request::Persistent(template, Started::default());
                    self.requests.insert(handle.raw, request);
                }
                (None, Some(Request::Active(each))) => each.push(open.begun),
                (None, _) => {
                    let request = Request::Active(vec![open.begun]);
                    self.requests.insert(handle.raw, request);
                }
            }
            return;
        }
        match base {
            "Wait" | "Waitall" => self.complete(&open.requests, event),
            // True is 1 in C, and often -1 in Fortran.
            "Test" | "Testall" if event.number("flag").is_some_and(|flag| flag != 0) => {
                self.complete(&open.requests, event);
            }
            "Waitany" | "Testany" | "Waitsome" | "Testsome" => {
                let chosen = chosen(run, &open.requests, event);
                self.complete(&chosen, event);
            }
            "Request_free" => {
                for handle in &open.requests {
                    self.requests.remove(handle);
                }
            }
            _ => {
                self.conversation.finalized |= base == "Finalize";
                if let (Some(communicator), Some(window)) = (open.window_of, event.handle("win")) {
                    let order = self.made_windows.entry(communicator).or_default();
                    let id = self.windows.id(communicator, *order);
                    *order += 1;
                    self.window_ids.insert(window.raw, id);
                    self.conversation.accesses.made(id, open.unit);
                }
                if let Waits::All(parts) = self.conversation.operations[operation].waits.clone() {
                    for part in parts {
                        self.finish(part, event, None);
                    }
                }
            }
        }
        self.forget(operation);
    }

    /// Leaves out what nobody could notice: a program may ask its rank a billion times.
    fn forget(&mut self, operation: usize) {
        let is_last = operation + 1 == self.conversation.operations.len();
        let is_noticed = self
            .conversation
            .parts
            .last()
            .is_some_and(|part| part.operation == operation);
        if is_last && !is_noticed && self.conversation.operations[operation].waits == Waits::No {
            self.conversation.operations.pop();
        } else {
            self.polls.forget();
        }
    }

    fn complete(&mut self, handles: &[i64], event: &Resolved) {
        for (index, handle) in handles.iter().enumerate() {
            let Some(request) = self.requests.get(handle) else {
                continue;
            };
            for part in request.parts(0).to_vec() {
                self.finish(part, event, Some(index));
            }
            match self.requests.get_mut(handle) {
                Some(Request::Persistent(_, started)) => started.parts.clear(),
                Some(Request::Active(each)) if each.len() > 1 => drop(each.remove(0)),
                _ => {
                    self.requests.remove(handle);
                }
            }
        }
    }

    /// A part is complete; a status may say whose message it was: the only one, or number `index`.
    fn finish(&mut self, part: usize, event: &Resolved, index: Option<usize>) {
        let Some(part) = self.conversation.parts.get_mut(part) else {
            return;
        };
        part.complete = true;
        let PartKind::Receive { from, tag, .. } = &mut part.kind else {
            return;
        };
        let told = match (event.get("status"), event.get("array_of_statuses")) {
            (Some((Value::Status(_, tag, _), Meaning::Peer(peer))), _) => Some((*tag, Some(*peer))),
            (_, Some((Value::Statuses(_, statuses), Meaning::Peers(peers)))) => {
                index.and_then(|index| Some((statuses.get(index)?.1, *peers.get(index)?)))
            }
            _ => None,
        };
        if let Some((said, peer)) = told {
            if let (Peer::Any, Some(world)) = (*from, peer.and_then(|peer| peer.world)) {
                *from = Peer::Task(world);
            }
            if tag.is_none() && said >= 0 {
                *tag = Some(said);
            }
        }
    }
}
