//! Memory that MPI may use while operations of a task run: what is given to it twice, and what it cannot be given.
//!
//! ```text
//! MPI_Irecv(a, 8, MPI_INT, ..)     writes a[0..8] until it is waited for
//! MPI_Send(a + 4, 2, MPI_INT, ..)  reads a[4..6]: told
//! ```
//! A buffer that MPI writes belongs to nobody else until the operation is complete, nor may one that it reads be written
//! (MPI 4.1, 3.7.2, 6.12, 12.7); the buffers of one call do not overlap unless one of them is `MPI_IN_PLACE` (6.2.2).
//!
//! *Guarantees*: only bytes that are known are compared ([`Layouts`]); of a collective operation with as many blocks as ranks at least
//! the first. A request that was completed where nobody looked is told of only until its handle is used again.
//! *Costs*: O(log running requests) a buffer; where two spans meet, O(blocks).

use lockstep_api::mpi::constants::{IN_PLACE, PROC_NULL};
use lockstep_api::mpi::predefined::{DATATYPE_NULL, NO_OP};
use lockstep_api::mpi::{Access, Counts, Does, Epoch, FileUse, Resource, Shape};
use lockstep_comm::communicators::Resolved;
use lockstep_comm::{Footprint, Layouts, Part, left};
use lockstep_trace::{Buffer, SourceLine, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A buffer of a call: what MPI does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    footprint: Footprint,
    writes: bool,
}

/// A buffer of a call by the names of its parameters: itself, how many of which datatype, and whether it is written.
struct Given {
    buffer: &'static str,
    count: &'static str,
    datatype: &'static str,
    writes: bool,
    /// As many blocks as there are ranks, where that is known.
    is_each: bool,
    may_be_in_place: bool,
}

impl Given {
    const fn new(buffer: &'static str, count: &'static str, datatype: &'static str) -> Self {
        Self {
            buffer,
            count,
            datatype,
            writes: false,
            is_each: false,
            may_be_in_place: false,
        }
    }

    const fn written(self) -> Self {
        Self {
            writes: true,
            ..self
        }
    }

    const fn each(self) -> Self {
        Self {
            is_each: true,
            ..self
        }
    }

    const fn or_in_place(self) -> Self {
        Self {
            may_be_in_place: true,
            ..self
        }
    }
}

const SINGLE: Given = Given::new("buf", "count", "datatype");
const SENT: Given = Given::new("sendbuf", "sendcount", "sendtype");
const RECEIVED: Given = Given::new("recvbuf", "recvcount", "recvtype").written();
const REDUCED: Given = Given::new("sendbuf", "count", "datatype");
const RESULT: Given = Given::new("recvbuf", "count", "datatype").written();
const ORIGIN: Given = Given::new("origin_addr", "origin_count", "origin_datatype");
const FETCHED: Given = Given::new("result_addr", "result_count", "result_datatype").written();

/// The buffers of a call that count at the caller.
fn given(does: Does, event: &Resolved, me: u32) -> Vec<Given> {
    let is_nobody = |name| match event.get(name) {
        Some((Value::Rank { name: Some(of), .. }, _)) => *of == PROC_NULL,
        _ => false,
    };
    let all = match does {
        Does::Replace if !is_nobody("source") => return vec![SINGLE.written()],
        Does::Send(_) | Does::Replace => vec![SINGLE],
        Does::Receive | Does::MatchedReceive => vec![SINGLE.written()],
        Does::SendReceive => {
            let sent = (!is_nobody("dest")).then_some(SENT);
            let received = (!is_nobody("source")).then_some(RECEIVED);
            return sent.into_iter().chain(received).collect();
        }
        Does::Collective(shape, counts) => return shared(shape, counts, event, me),
        Does::Access(access) => accessed(access, event),
        Does::File(FileUse::Transfer { writes, .. }) => vec![match writes {
            true => SINGLE,
            false => SINGLE.written(),
        }],
        _ => return Vec::new(),
    };
    match ["dest", "source", "target_rank"].into_iter().any(is_nobody) {
        true => Vec::new(),
        false => all,
    }
}

/// Those of a collective operation.
fn shared(shape: Shape, counts: Counts, event: &Resolved, me: u32) -> Vec<Given> {
    let root = event.peer("root").and_then(|(_, peer)| peer.world);
    let at_root = root.map(|it| it == me);
    // One buffer, which the root's task fills.
    if (shape, counts) == (Shape::FromRoot, Counts::Same) {
        let buffer = Given::new("buffer", "count", "datatype");
        let of = at_root.map(|is_root| if is_root { buffer } else { buffer.written() });
        return of.into_iter().collect();
    }
    let received = match shape {
        Shape::FromRoot => RECEIVED,
        _ => RECEIVED.each(),
    };
    let (sent, received) = match counts {
        Counts::Same => (Some(REDUCED), Some(RESULT)),
        Counts::ResultBlock => (
            Some(Given::new("sendbuf", "recvcount", "datatype").each()),
            Some(Given::new("recvbuf", "recvcount", "datatype").written()),
        ),
        Counts::OneBlock => (Some(SENT), Some(received)),
        Counts::BlockEach => (Some(SENT.each()), Some(received)),
        Counts::EachReceived => (Some(SENT), None),
        Counts::EachSent => (None, Some(received)),
        Counts::None | Counts::Each | Counts::EachTyped | Counts::EachResult => (None, None),
    };
    let (sent, received) = match (shape, at_root) {
        (Shape::All | Shape::Prefix, _) | (Shape::ToRoot, Some(true)) => {
            (sent.map(Given::or_in_place), received)
        }
        (Shape::ToRoot, Some(false)) => (sent, None),
        (Shape::FromRoot, Some(true)) => (sent, received.map(Given::or_in_place)),
        (Shape::FromRoot, Some(false)) => (None, received),
        (Shape::ToRoot | Shape::FromRoot, None) | (Shape::Neighbours, _) => (None, None),
    };
    sent.into_iter().chain(received).collect()
}

/// Those of an access to a window.
fn accessed(access: Access, event: &Resolved) -> Vec<Given> {
    let adds = event.handle("op").and_then(|it| it.name.as_deref()) != Some(NO_OP);
    let value = Given::new("origin_addr", "", "datatype");
    let result = Given::new("result_addr", "", "datatype").written();
    let (origin, result) = match access {
        Access::Put | Access::Accumulate => (adds.then_some(ORIGIN), None),
        Access::Get => (Some(ORIGIN.written()), None),
        Access::GetAccumulate => (adds.then_some(ORIGIN), Some(FETCHED)),
        Access::FetchAndOp => (adds.then_some(value), Some(result)),
        Access::CompareAndSwap => (Some(value), Some(result)),
    };
    origin.into_iter().chain(result).collect()
}

/// Whether a call is given buffers that were recorded: most are not.
pub(crate) fn has_buffers(event: &Resolved) -> bool {
    let mut arguments = event.annotated.arguments.iter().flat_map(|it| it.iter());
    arguments.any(|it| matches!(it.value, Value::Buffer(_)))
}

/// What is wrong with a buffer whatever else runs: `buf NULL for 4 MPI_INT`.
pub(crate) fn wrong(does: Does, event: &Resolved, me: u32) -> Option<String> {
    given(does, event, me).into_iter().find_map(|it| {
        let Value::Buffer(buffer) = event.get(it.buffer)?.0 else {
            return None;
        };
        match buffer {
            Buffer::InPlace if !it.may_be_in_place => Some(format!("{} {IN_PLACE}", it.buffer)),
            Buffer::Null => {
                // Datatypes of a program may hold addresses themselves.
                let name = event.handle(it.datatype)?.name.as_deref()?;
                let count = event.number(it.count).unwrap_or(1);
                let is_some = count > 0 && name != DATATYPE_NULL;
                is_some.then(|| format!("{} NULL for {count} {name}", it.buffer))
            }
            _ => None,
        }
    })
}

/// What MPI does with memory for a call, as far as it is known.
pub(crate) fn touches(does: Does, event: &Resolved, layouts: &Layouts, me: u32) -> Vec<Touch> {
    let size = event.peer("root").and_then(|(_, peer)| peer.size);
    let touch = |it: Given| {
        let Value::Buffer(Buffer::At(address)) = event.get(it.buffer)?.0 else {
            return None;
        };
        let count = match it.count {
            "" => 1,
            name => event.number(name)?,
        };
        let count = match it.is_each {
            true => count.checked_mul(i64::from(size.unwrap_or(1)))?,
            false => count,
        };
        let layout = layouts.of(event.handle(it.datatype)?)?.times(count)?;
        Some(Touch {
            footprint: layout.footprint(*address)?,
            writes: it.writes,
        })
    };
    let given = given(does, event, me).into_iter();
    given.filter_map(touch).collect()
}

/// Whether two of the buffers of one call overlap, one of them written.
pub(crate) fn overlap(touches: &[Touch]) -> bool {
    let each = touches.iter().enumerate();
    let mut pairs = each.flat_map(|(at, one)| touches.iter().skip(at + 1).map(move |it| (one, it)));
    pairs.any(|(one, two)| one.clashes(two))
}

impl Touch {
    fn clashes(&self, other: &Self) -> bool {
        (self.writes || other.writes) && self.footprint.meets(&other.footprint)
    }
}

/// The call that began an operation: its function, and where it was called.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub name: Arc<str>,
    pub line: Option<Arc<SourceLine>>,
}

impl Made {
    /// `MPI_Isend at halo.c:70`
    fn told(&self) -> String {
        match &self.line {
            Some(line) => format!("{} at {}", self.name, line.brief()),
            None => self.name.to_string(),
        }
    }
}

/// A buffer of an operation that runs.
#[derive(Debug, Clone)]
struct Running {
    touch: Touch,
    made: Made,
    /// It is over when these are, or the epoch on this window.
    parts: Vec<usize>,
    window: Option<i64>,
}

/// An operation that runs, and uses memory that another one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clash {
    /// Whether that other one writes it.
    pub writes: bool,
    /// What began the one that runs: `MPI_Isend at halo.c:70`.
    pub other: String,
}

/// The buffers of a thread that are in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    /// By first byte and a number of its own.
    running: BTreeMap<(i64, u64), Running>,
    number: u64,
    /// Bytes of the longest span of these.
    longest: i64,
    /// How many there may be before those that are over are left out.
    room: usize,
    /// What starts of persistent requests use, and what made them.
    templates: FxHashMap<i64, (Made, Vec<Touch>)>,
}

/// Buffers that are kept at least before any is left out.
const LEAST: usize = 64;

impl Buffers {
    /// An operation that runs and uses the same, one of them writing. `is_unsure` says of a part that it may be over.
    pub fn clash(
        &self,
        touches: &[Touch],
        parts: &[Part],
        is_unsure: impl Fn(usize) -> bool,
    ) -> Option<Clash> {
        touches.iter().find_map(|touch| {
            let span = &touch.footprint.span;
            let first = span.start.saturating_sub(self.longest);
            let near = self.running.range((first, 0)..(span.end, 0));
            let mut near = near.map(|(_, it)| it);
            let found = near.find(|it| {
                touch.clashes(&it.touch)
                    && it.is_running(parts)
                    && !it.parts.iter().any(|part| is_unsure(*part))
            })?;
            Some(Clash {
                writes: touch.writes,
                other: found.made.told(),
            })
        })
    }

    /// An operation runs, until these parts are complete or an epoch on the window ends.
    pub fn begin(
        &mut self,
        made: &Made,
        touches: Vec<Touch>,
        (own, window): (&[usize], Option<i64>),
        parts: &[Part],
    ) {
        for touch in touches {
            let span = touch.footprint.span.clone();
            self.longest = self.longest.max(span.end - span.start);
            let running = Running {
                touch,
                made: made.clone(),
                parts: own.to_vec(),
                window,
            };
            self.running.insert((span.start, self.number), running);
            self.number += 1;
        }
        if self.running.len() > self.room.max(LEAST) {
            self.running.retain(|_, it| it.is_running(parts));
            let spans = self.running.values().map(|it| &it.touch.footprint.span);
            self.longest = spans.map(|it| it.end - it.start).max().unwrap_or(0);
            self.room = 2 * self.running.len();
        }
    }

    /// A persistent request was made, or another request under its handle.
    pub fn make(&mut self, handle: i64, template: Option<(Made, Vec<Touch>)>) {
        self.templates.remove(&handle);
        self.templates.extend(template.map(|it| (handle, it)));
    }

    /// What a start of a persistent request uses.
    pub fn template(&self, handle: i64) -> Option<(Made, Vec<Touch>)> {
        self.templates.get(&handle).cloned()
    }

    /// Operations with these parts use their buffers no more.
    pub fn let_go(&mut self, parts: &[usize]) {
        let is_one = |it: &Running| it.parts.iter().any(|part| parts.contains(part));
        self.running.retain(|_, it| !is_one(it));
    }

    /// Accesses to a window are over at the caller.
    pub fn synchronise(&mut self, window: i64) {
        self.running.retain(|_, it| it.window != Some(window));
    }

    /// How many buffers are in use.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Numbers of parts, once the first of them, which are complete, are left out.
    pub fn leave_out(&mut self, first: usize) {
        let is_kept = |it: &Running| it.parts.is_empty() || it.parts.iter().any(|it| *it >= first);
        self.running.retain(|_, it| is_kept(it));
        self.running
            .values_mut()
            .for_each(|it| left(&mut it.parts, first));
    }
}

impl Running {
    fn is_running(&self, parts: &[Part]) -> bool {
        let is_complete = |it: &usize| parts.get(*it).is_none_or(|it| it.complete);
        self.parts.is_empty() || !self.parts.iter().all(is_complete)
    }
}

/// Whether a call ends the accesses to its window at the caller.
pub(crate) fn synchronises(does: Does) -> bool {
    use Epoch::{Complete, Fence, Flush, Unlock, UnlockAll};
    matches!(
        does,
        Does::Epoch(Fence | Flush { .. } | Complete | Unlock | UnlockAll)
            | Does::Free(Resource::Window)
    )
}
