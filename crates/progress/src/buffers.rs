//! Memory that MPI may use while operations of a task run: what is given to it twice, and what it cannot be given.
//!
//! ```text
//! MPI_Irecv(a, 8, MPI_INT, ..)     writes a[0..8] until it is waited for
//! MPI_Send(a + 4, 2, MPI_INT, ..)  reads a[4..6]: told
//! ```
//! A buffer that MPI writes belongs to nobody else until the operation is complete, nor may one that it reads be written
//! (MPI 4.1, 3.7.2, 6.12, 12.7); the buffers of one call do not overlap unless one of them is `MPI_IN_PLACE` (6.2.2).
//!
//! *Guarantees*: only bytes that are known are compared ([`crate::layout`]); of a collective operation with as many blocks as ranks at least
//! the first. A request that was completed where nobody looked is told of only until its handle is used again.
//! *Costs*: O(log running requests) a buffer; where two spans meet, O(blocks).

use crate::call::stem;
use crate::layout::{Footprint, Layouts};
use crate::message::{Part, left};
use crate::verdict::file;
use lockstep_trace::{Buffer, Resolved, SourceLine, Value};
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
const REDUCED: Given = Given::new("sendbuf", "count", "datatype").or_in_place();
const RESULT: Given = Given::new("recvbuf", "count", "datatype").written();
const ORIGIN: Given = Given::new("origin_addr", "origin_count", "origin_datatype");
const FETCHED: Given = Given::new("result_addr", "result_count", "result_datatype").written();

/// The buffers of a call that count at the caller.
fn given(base: &str, event: &Resolved, me: u32) -> Vec<Given> {
    let root = event.peer("root").and_then(|(_, peer)| peer.world);
    let at_root = root.map(|it| it == me);
    let is_nobody = |name| match event.get(name) {
        Some((Value::Rank { name: Some(of), .. }, _)) => *of == "MPI_PROC_NULL",
        _ => false,
    };
    let adds = event.handle("op").and_then(|it| it.name.as_deref()) != Some("MPI_NO_OP");
    let origin = || adds.then_some(ORIGIN);
    let (stem, _) = stem(base);
    let mut all = match stem.as_str() {
        "send" | "bsend" | "ssend" | "rsend" => vec![SINGLE],
        "recv" | "mrecv" => vec![SINGLE.written()],
        "sendrecv" => {
            let sent = (!is_nobody("dest")).then_some(SENT);
            let received = (!is_nobody("source")).then_some(RECEIVED);
            return sent.into_iter().chain(received).collect();
        }
        "sendrecv_replace" if is_nobody("source") => vec![SINGLE],
        "sendrecv_replace" => return vec![SINGLE.written()],
        "bcast" => match at_root {
            Some(true) => vec![Given::new("buffer", "count", "datatype")],
            Some(false) => vec![Given::new("buffer", "count", "datatype").written()],
            None => Vec::new(),
        },
        "allreduce" | "scan" | "exscan" => vec![REDUCED, RESULT],
        "reduce" => match at_root {
            Some(true) => vec![REDUCED, RESULT],
            Some(false) => vec![Given::new("sendbuf", "count", "datatype")],
            None => Vec::new(),
        },
        "reduce_scatter_block" => vec![
            Given::new("sendbuf", "recvcount", "datatype")
                .each()
                .or_in_place(),
            Given::new("recvbuf", "recvcount", "datatype").written(),
        ],
        "gather" => match at_root {
            Some(true) => vec![SENT.or_in_place(), RECEIVED.each()],
            Some(false) => vec![SENT],
            None => Vec::new(),
        },
        "gatherv" => match at_root {
            Some(true) => vec![SENT.or_in_place()],
            Some(false) => vec![SENT],
            None => Vec::new(),
        },
        "scatter" => match at_root {
            Some(true) => vec![SENT.each(), RECEIVED.or_in_place()],
            Some(false) => vec![RECEIVED],
            None => Vec::new(),
        },
        "scatterv" => match at_root {
            Some(true) => vec![RECEIVED.or_in_place()],
            Some(false) => vec![RECEIVED],
            None => Vec::new(),
        },
        "allgather" => vec![SENT.or_in_place(), RECEIVED.each()],
        "allgatherv" => vec![SENT.or_in_place()],
        "alltoall" => vec![SENT.each().or_in_place(), RECEIVED.each()],
        "put" | "rput" | "accumulate" | "raccumulate" => origin().into_iter().collect(),
        "get" | "rget" => vec![ORIGIN.written()],
        "get_accumulate" | "rget_accumulate" => origin().into_iter().chain([FETCHED]).collect(),
        "fetch_and_op" => {
            let value = adds.then_some(Given::new("origin_addr", "", "datatype"));
            let result = Given::new("result_addr", "", "datatype").written();
            value.into_iter().chain([result]).collect()
        }
        "compare_and_swap" => vec![
            Given::new("origin_addr", "", "datatype"),
            Given::new("result_addr", "", "datatype").written(),
        ],
        _ if base.starts_with("File_") && base.contains("read") => vec![SINGLE.written()],
        _ if base.starts_with("File_") && base.contains("write") => vec![SINGLE],
        _ => Vec::new(),
    };
    if ["dest", "source", "target_rank"].into_iter().any(is_nobody) {
        all.clear();
    }
    all
}

/// Whether a call is given buffers that were recorded: most are not.
pub(crate) fn has_buffers(event: &Resolved) -> bool {
    let mut arguments = event.annotated.arguments.iter().flat_map(|it| it.iter());
    arguments.any(|it| matches!(it.value, Value::Buffer(_)))
}

/// What is wrong with a buffer whatever else runs: `buf NULL for 4 MPI_INT`.
pub(crate) fn wrong(base: &str, event: &Resolved, me: u32) -> Option<String> {
    given(base, event, me).into_iter().find_map(|it| {
        let Value::Buffer(buffer) = event.get(it.buffer)?.0 else {
            return None;
        };
        match buffer {
            Buffer::InPlace if !it.may_be_in_place => Some(format!("{} MPI_IN_PLACE", it.buffer)),
            Buffer::Null => {
                // Datatypes of a program may hold addresses themselves.
                let name = event.handle(it.datatype)?.name.as_deref()?;
                let count = event.number(it.count).unwrap_or(1);
                let is_some = count > 0 && name != "MPI_DATATYPE_NULL";
                is_some.then(|| format!("{} NULL for {count} {name}", it.buffer))
            }
            _ => None,
        }
    })
}

/// What MPI does with memory for a call, as far as it is known.
pub(crate) fn touches(base: &str, event: &Resolved, layouts: &Layouts, me: u32) -> Vec<Touch> {
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
    given(base, event, me)
        .into_iter()
        .filter_map(touch)
        .collect()
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
pub(crate) struct Begun {
    pub name: Arc<str>,
    pub line: Option<Arc<SourceLine>>,
}

impl Begun {
    /// `MPI_Isend at halo.c:70`
    fn told(&self) -> String {
        match &self.line {
            Some(line) => format!("{} at {}", self.name, file(line)),
            None => self.name.to_string(),
        }
    }
}

/// A buffer of an operation that runs.
#[derive(Debug, Clone)]
struct Running {
    touch: Touch,
    begun: Begun,
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
    templates: FxHashMap<i64, (Begun, Vec<Touch>)>,
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
                other: found.begun.told(),
            })
        })
    }

    /// An operation runs, until these parts are complete or an epoch on the window ends.
    pub fn begin(
        &mut self,
        begun: &Begun,
        touches: Vec<Touch>,
        (own, window): (&[usize], Option<i64>),
        parts: &[Part],
    ) {
        for touch in touches {
            let span = touch.footprint.span.clone();
            self.longest = self.longest.max(span.end - span.start);
            let running = Running {
                touch,
                begun: begun.clone(),
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
    pub fn make(&mut self, handle: i64, template: Option<(Begun, Vec<Touch>)>) {
        self.templates.remove(&handle);
        self.templates.extend(template.map(|it| (handle, it)));
    }

    /// What a start of a persistent request uses.
    pub fn template(&self, handle: i64) -> Option<(Begun, Vec<Touch>)> {
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

/// Whether a call ends the accesses to its window at the caller, by its name without `MPI_`.
pub(crate) fn synchronises(base: &str) -> bool {
    base.starts_with("Win_flush")
        || matches!(
            base,
            "Win_fence" | "Win_complete" | "Win_unlock" | "Win_unlock_all" | "Win_free"
        )
}
