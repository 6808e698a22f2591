//! What a task did, as far as others could notice: its calls of MPI, what they began, and what of that is settled and left out.

use crate::accesses::Accesses;
use crate::message::{Collective, CommunicatorId, Operation, Part, PartKind, Waits};
use crate::recent::{Envelope, Recent, Way, said};
use crate::resources::Resources;
use crate::strand::{Doing, Strand};
use lockstep_api::mpi::Resource;
use lockstep_trace::{SourceLine, TraceName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A persistent request, and the first call that waited for it while it did not run: function, trace and event.
pub type Unstarted = (PartKind, Arc<str>, TraceName, u64);

/// What a task did, as far as others could notice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// Its calls, in order.
    pub operations: Vec<Operation>,
    /// What they began, in order.
    pub parts: Vec<Part>,
    /// Operations that have not returned, by index: one a thread at most.
    pub pending: Vec<usize>,
    /// What it asks for again and again, without an answer: an operation that is pending though its
    /// calls return.
    pub polled: Option<usize>,
    /// Parts of these that it asks for together (`MPI_Testall`): one of them alone is no answer.
    pub together: Vec<Vec<usize>>,
    /// Where it began to, if that was recorded.
    pub polled_at: Option<Arc<SourceLine>>,
    /// Its threads, the first first; none where only that is known.
    pub strands: Vec<Strand>,
    /// Whether `MPI_Finalize` returned.
    pub finalized: bool,
    /// The first call of MPI after that, its trace and the number of its event.
    pub late: Option<(Arc<str>, TraceName, u64)>,
    /// What it made in MPI and did not free.
    pub resources: Resources,
    /// What it did to windows; of most tasks that is nothing.
    pub accesses: Option<Box<Accesses>>,
    /// Of each communicator, how many of its collective operations came before those that are here: they are over, as
    /// is all that came before.
    pub settled: BTreeMap<CommunicatorId, usize>,
    /// The same by the function, in whatever communicator.
    pub settled_by: BTreeMap<Arc<str>, usize>,
    /// Whether anything came before.
    pub is_cut: bool,
    /// To whom, with which tags and in which communicators messages went that came before, some of them.
    pub sent: BTreeSet<Envelope>,
    /// The last messages that came before, of what may be a series.
    pub recent: Option<Box<Recent>>,
    /// Persistent requests that are not running: what a start of each would begin, and whether it was ever started.
    pub idle: Vec<(PartKind, bool)>,
    /// Persistent requests that it waited for while they did not run; sends that ran before.
    pub unstarted: Vec<Unstarted>,
    /// Requests that run, by their handles; and handles of completed requests that other threads must have begun.
    pub running: Vec<(i64, Vec<usize>)>,
    /// See there.
    pub taken: BTreeSet<i64>,
    /// Receives that were cancelled, of which it was not asked whether they had a message by then.
    pub unclear: Vec<PartKind>,
    /// From which operation on they are of which thread.
    pub threads: Vec<(usize, TraceName)>,
    /// How it is now.
    pub state: State,
}

/// How a task is at the end of its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum State {
    /// In its own code, or where nothing is known.
    #[default]
    Running,
    /// In its last operation.
    Waiting,
    /// It ended after `MPI_Finalize`.
    Finished,
    /// It ended, and others may wait for it.
    Ended,
}

/// So many kinds of messages of a task are known after they are settled.
const MOST_SENT: usize = 1 << 12;

/// Parts by number, once the first `count` are left out.
pub fn left(parts: &mut Vec<usize>, count: usize) {
    parts.retain(|it| *it >= count);
    parts.iter_mut().for_each(|it| *it -= count);
}

impl Conversation {
    /// A task that waits in its first operation, for all of what that began.
    #[must_use]
    pub fn waiting_in(name: &str, kind: PartKind) -> Self {
        Self {
            operations: vec![Operation {
                name: name.into(),
                event: 0,
                returned: false,
                waits: Waits::All(vec![0]),
            }],
            parts: vec![Part {
                operation: 0,
                kind,
                complete: false,
                completed_at: None,
            }],
            pending: vec![0],
            state: State::Waiting,
            ..Self::default()
        }
    }

    /// The operation that it is in.
    #[must_use]
    pub fn pending(&self) -> Option<&Operation> {
        match self.state {
            State::Waiting => self.operations.get(*self.pending.first()?),
            _ => None,
        }
    }

    /// The call that an operation is: its trace, and the number of its event.
    #[must_use]
    pub fn call(&self, operation: usize) -> Option<(TraceName, u64)> {
        let after = self.threads.partition_point(|it| it.0 <= operation);
        let (_, trace) = self.threads.get(after.checked_sub(1)?)?;
        Some((*trace, self.operations.get(operation)?.event))
    }

    /// The call that began a part, likewise.
    #[must_use]
    pub fn called(&self, part: usize) -> Option<(TraceName, u64)> {
        self.call(self.parts.get(part)?.operation)
    }

    /// Whether a part is a probe that took a message (`MPI_Mprobe`) which nothing received since.
    #[must_use]
    pub fn holds_back(&self, part: usize) -> bool {
        let called = self.called(part);
        let mut held = self.resources.held().iter();
        held.any(|it| it.resource == Resource::Message && called == Some((it.trace, it.event)))
    }

    /// Whether it does something else than MPI while a part of it is not complete: libraries move messages while they are called.
    #[must_use]
    pub fn is_away_from(&self, part: usize) -> bool {
        let is_complete = self.parts.get(part).is_none_or(|it| it.complete);
        let is_away = self.state == State::Running && self.pending.is_empty();
        !is_complete && is_away && self.polled.is_none()
    }

    /// Whether its first thread waits for another thread of it.
    #[must_use]
    pub fn waits_inside(&self) -> bool {
        self.strands.first().is_some_and(Strand::waits_inside)
    }

    /// The function that it calls again and again instead of waiting, and the first of these calls.
    #[must_use]
    pub fn polls(&self) -> Option<(Arc<str>, (TraceName, u64))> {
        let operation = self.polled?;
        let name = self.operations.get(operation)?.name.clone();
        Some((name, self.call(operation)?))
    }

    /// How many shares it had in collective operations by this function.
    pub fn shares_of(&self, function: &str) -> usize {
        let is_one =
            |it: &&Part| matches!(&it.kind, PartKind::Collective(it) if &*it.name == function);
        let here = self.parts.iter().filter(is_one).count();
        here + self.settled_by.get(function).copied().unwrap_or(0)
    }

    /// Counts a part that is left out, if it is a share of a collective operation.
    pub fn count(&mut self, part: &PartKind) {
        if let PartKind::Collective(Collective {
            communicator: Some(communicator),
            name,
            ..
        }) = part
        {
            *self.settled.entry(*communicator).or_default() += 1;
            *self.settled_by.entry(name.clone()).or_default() += 1;
        }
    }

    /// Keeps of a part that is left out to whom and with which tag it sent; once is as good as often.
    pub fn remember(&mut self, part: &PartKind) {
        if self.sent.len() < MOST_SENT {
            self.sent.extend(part.envelope());
        }
    }

    /// What it sent, each once or more.
    pub fn all_sent(&self) -> impl Iterator<Item = Envelope> {
        let here = self.parts.iter().filter_map(|it| it.kind.envelope());
        here.chain(self.sent.iter().copied())
    }

    /// Keeps a part that is left out as long as it is one of the last, for the series that goes on.
    pub fn follow(&mut self, part: &PartKind) {
        for way in [Way::Sent, Way::Asked] {
            if let Some(it) = said(part, true, way) {
                self.recent.get_or_insert_default().add(way, it);
            }
        }
    }

    /// Leaves out the first operations, and what they began; gives how many parts that were. They have to be
    /// settled: those of all tasks together.
    pub fn leave_out(&mut self, operations: usize) -> usize {
        let parts = self.parts.partition_point(|it| it.operation < operations);
        let rest = self.parts.split_off(parts);
        for part in std::mem::replace(&mut self.parts, rest) {
            self.count(&part.kind);
            self.remember(&part.kind);
            self.follow(&part.kind);
        }
        self.operations.drain(..operations);
        self.is_cut |= operations > 0;
        for part in &mut self.parts {
            part.operation -= operations;
        }
        let first = self.threads.iter_mut().map(|it| &mut it.0);
        let doing = self
            .strands
            .iter_mut()
            .filter_map(|it| match &mut it.doing {
                Doing::Operation(operation) => Some(operation),
                _ => None,
            });
        let numbers = self.pending.iter_mut().chain(&mut self.polled);
        let numbers = numbers.chain(first).chain(doing);
        numbers.for_each(|it| *it -= operations.min(*it));
        for operation in &mut self.operations {
            match &mut operation.waits {
                Waits::All(list) | Waits::Found(list) => left(list, parts),
                // One of them is complete.
                Waits::Any(list) if list.iter().any(|it| *it < parts) => {
                    operation.waits = Waits::No;
                }
                Waits::Any(list) => left(list, parts),
                Waits::No | Waits::Unknown => {}
            }
        }
        parts
    }

    /// Whether several of its threads called MPI: how their operations are in order is not known.
    #[must_use]
    pub fn is_threaded(&self) -> bool {
        let ends = self.threads.iter().skip(1).map(|it| it.0);
        let ends = ends.chain([self.operations.len()]);
        let each = self.threads.iter().zip(ends);
        each.filter(|(begin, end)| begin.0 < *end).count() > 1
    }

    /// Whether it took, or would take, a message from anybody.
    #[must_use]
    pub fn takes_from_anybody(&self) -> bool {
        let is_wildcard = |it: &PartKind| match it {
            PartKind::Receive { wildcard, .. } => wildcard.is_some(),
            _ => false,
        };
        self.parts.iter().any(|it| is_wildcard(&it.kind))
    }

    /// Another thread completed these requests.
    fn taken_by(&mut self, taken: &BTreeSet<i64>) {
        let (over, running) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(|it| taken.contains(&it.0));
        self.running = running;
        let over: Vec<(i64, Vec<usize>)> = over;
        for part in over.into_iter().flat_map(|it| it.1) {
            if let Some(part) = self.parts.get_mut(part) {
                part.complete = true;
            }
        }
    }

    /// What another thread said that made the same calls; `None` where something in it tells more than their names of who made them.
    pub fn said_by(&self, other: TraceName) -> Option<Self> {
        let has_handles = !self.resources.held().is_empty()
            || self.accesses.as_ref().is_some_and(|it| !it.are_none());
        if has_handles || !self.strands.is_empty() {
            return None;
        }
        let mut said = self.clone();
        let late = said.late.iter_mut().map(|it| &mut it.1);
        let threads = said.threads.iter_mut().map(|it| &mut it.1);
        let unstarted = said.unstarted.iter_mut().map(|it| &mut it.2);
        let threads = threads.chain(late).chain(unstarted);
        threads.for_each(|it| *it = other);
        Some(said)
    }

    /// Keeps what somebody may ask for once all of its threads were read, and gives back memory that lists of few elements
    /// have for more: there may be a million tasks.
    pub fn shrink(&mut self) {
        self.accesses.take_if(|it| it.are_none());
        self.operations.shrink_to_fit();
        self.parts.shrink_to_fit();
        self.strands.shrink_to_fit();
        self.threads.shrink_to_fit();
    }

    /// Adds what another thread of the task did.
    pub fn append(&mut self, mut other: Self) {
        let (operations, parts) = (self.operations.len(), self.parts.len());
        self.taken_by(&other.taken);
        other.taken_by(&self.taken);
        self.taken.append(&mut other.taken);
        let running = other.running.into_iter();
        self.running.extend(
            running.map(|(it, own)| (it, own.into_iter().map(|part| part + parts).collect())),
        );
        let threads = other.threads.into_iter();
        self.threads
            .extend(threads.map(|(first, trace)| (first + operations, trace)));
        self.resources.append(other.resources);
        if let Some(accesses) = other.accesses {
            self.accesses.get_or_insert_default().append(*accesses);
        }
        self.idle.extend(other.idle);
        self.unstarted.extend(other.unstarted);
        self.unclear.extend(other.unclear);
        self.is_cut |= other.is_cut;
        self.sent.extend(other.sent);
        // How those of two threads are in order is not known.
        self.recent = match (self.recent.take(), other.recent) {
            (Some(_), Some(_)) => None,
            (own, others) => own.or(others),
        };
        for (communicator, count) in other.settled {
            *self.settled.entry(communicator).or_default() += count;
        }
        for (function, count) in other.settled_by {
            *self.settled_by.entry(function).or_default() += count;
        }
        self.late = self.late.take().or(other.late);
        self.strands.extend(other.strands.into_iter().map(|mut it| {
            if let Doing::Operation(operation) = &mut it.doing {
                *operation += operations;
            }
            it
        }));
        let shift = |waits: Waits| {
            let shift = |list: Vec<usize>| list.into_iter().map(|part| part + parts).collect();
            match waits {
                Waits::All(list) => Waits::All(shift(list)),
                Waits::Any(list) => Waits::Any(shift(list)),
                other => other,
            }
        };
        self.operations
            .extend(other.operations.into_iter().map(|it| Operation {
                waits: shift(it.waits),
                ..it
            }));
        self.parts.extend(other.parts.into_iter().map(|it| Part {
            operation: it.operation + operations,
            ..it
        }));
        self.pending
            .extend(other.pending.into_iter().map(|it| it + operations));
        self.finalized |= other.finalized;
        let polled = other.polled.map(|it| it + operations);
        if self.polled.is_none() {
            (self.polled, self.polled_at) = (polled, other.polled_at);
            let together = other.together.into_iter();
            let shifted = together.map(|it| it.into_iter().map(|part| part + parts).collect());
            self.together = shifted.collect();
        }
    }
}
