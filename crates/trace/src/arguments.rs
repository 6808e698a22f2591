//! Arguments of MPI calls, beside the events that they belong to.
//!
//! A thread's argument stream has one record for each call of an MPI function, in the order of the
//! events, and one for its return where the function gives something back. A record belongs to the
//! next event of its function; where records end, later calls have none.

mod key;
mod laps;

use crate::catalogue::Image;
use crate::container::{SideStream, ThreadFile};
use crate::frames::Frames;
use crate::handles::Library;
use crate::inferred::Inferred;
use crate::map::Mapped;
use crate::model::{Event, FunctionId, SourceLine, Thread};
use crate::stream::{Bookmark, Bytes, Events};
use crate::symbols::Symbols;
pub use key::RecordKey;
pub use laps::Lap;
use lockstep_api::mpi::constants::{ANY_TAG, Class, IN_PLACE};
use lockstep_api::mpi::{self, Kind};
use lockstep_format::capture::{self, MOST_ELEMENTS};
use lockstep_format::codec;
use lockstep_format::side::{Decoder, Found, Standing};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// An argument of an MPI call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the standard.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its value.
    pub value: Value,
}

/// A handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// As it was passed.
    pub raw: i64,
    /// The standard's name, of what it predefines.
    pub name: Option<String>,
}

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Null, or `MPI_BOTTOM`.
    Null,
    /// `MPI_IN_PLACE`.
    InPlace,
    /// Its address.
    At(u64),
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Not recorded: an array.
    Omitted,
    /// A buffer.
    Buffer(Buffer),
    /// A number.
    Number(i64),
    /// A rank in the communicator of the call, or a special value for one.
    Rank {
        /// As it was passed.
        rank: i64,
        /// The standard's name, of a special value.
        name: Option<&'static str>,
    },
    /// A tag; `None` is `MPI_ANY_TAG`.
    Tag(Option<i64>),
    /// A handle.
    Handle(Handle),
    /// Handles: how many there were, and the first of them.
    Handles(i64, Vec<Handle>),
    /// Numbers, likewise.
    Numbers(i64, Vec<i64>),
    /// A status: source, tag, and bytes.
    Status(i64, i64, i64),
    /// Statuses: how many there were; source and tag of the first of them.
    Statuses(i64, Vec<(i64, i64)>),
    /// An error code, and its class, where the library's is known.
    Error(i32, Option<&'static str>),
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None if (0..0x10000).contains(&self.raw) => write!(f, "{}", self.raw),
            // Integers of MPICH use the sign bit.
            None if self.raw < 0 => write!(f, "{:#x}", self.raw as i32 as u32),
            None => write!(f, "{:#x}", self.raw),
        }
    }
}

impl Value {
    /// Whether its text says something of it.
    #[must_use]
    pub const fn is_shown(&self) -> bool {
        !matches!(self, Self::Omitted | Self::Buffer(Buffer::At(_)))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Addresses are others in each run, and say nothing to a reader.
            Self::Omitted | Self::Buffer(Buffer::At(_)) => f.write_str(".."),
            Self::Buffer(Buffer::Null) => f.write_str("NULL"),
            Self::Buffer(Buffer::InPlace) => f.write_str(IN_PLACE),
            Self::Number(number) => write!(f, "{number}"),
            Self::Rank { rank, name } => match name {
                Some(name) => f.write_str(name),
                None => write!(f, "{rank}"),
            },
            Self::Tag(Some(tag)) => write!(f, "{tag}"),
            Self::Tag(None) => f.write_str(ANY_TAG),
            Self::Handle(handle) => handle.fmt(f),
            Self::Handles(count, handles) => list(f, *count, handles),
            Self::Numbers(count, numbers) => list(f, *count, numbers),
            Self::Status(source, tag, bytes) => {
                write!(f, "(source={source}, tag={tag}, bytes={bytes})")
            }
            Self::Statuses(count, statuses) => {
                let shown: Vec<String> = statuses
                    .iter()
                    .map(|(source, tag)| format!("(source={source}, tag={tag})"))
                    .collect();
                list(f, *count, &shown)
            }
            Self::Error(code, None) => write!(f, "{code}"),
            Self::Error(_, Some(class)) => f.write_str(class),
        }
    }
}

/// Events that nobody wants until it is looked whether they go round.
const LOOK: u32 = 1 << 12;

fn list(f: &mut fmt::Formatter<'_>, count: i64, shown: &[impl fmt::Display]) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in shown.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    if count > shown.len() as i64 {
        write!(f, ", .. {count} in all")?;
    }
    f.write_str("]")
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// An event with what is known beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotated {
    /// Number of the event, from 0.
    pub index: u64,
    /// Of a return: nobody saw it; its frame was found gone later.
    pub inferred: bool,
    /// The event.
    pub event: Event,
    /// How many symbols the thread had stored with it: for [`crate::Timeline::at`].
    pub symbols: u64,
    /// Of a call of an MPI function: its arguments; of its return: what it gave back.
    pub arguments: Option<Arc<[Argument]>>,
    /// Of a call that has them: the line that it stands in, where it is known.
    pub line: Option<Arc<SourceLine>>,
}

/// Where a thread's arguments are.
#[derive(Debug)]
pub(crate) struct Source {
    pub file: Arc<Mapped>,
    /// One, or one for each segment; each begins anew.
    pub streams: Vec<SideStream>,
    /// Calls that were open before the first event: what was recorded of them is gone.
    pub inherited: u64,
    pub symbols: Arc<Symbols>,
    pub library: Arc<Library>,
    pub functions: Arc<FxHashMap<FunctionId, mpi::Function>>,
    /// With the difference between addresses in the process and in the file.
    pub images: Arc<[(u64, Arc<Image>)]>,
    /// How many ranks the process's world has, where the launcher says so.
    pub world_size: Option<u32>,
}

/// What was recorded of a call of MPI, or of its return.
#[derive(Debug, Clone)]
pub struct Record {
    /// Which function, where that is known.
    pub function: Option<FunctionId>,
    /// Whether it is a return.
    pub is_result: bool,
    /// What it was given, or what it gave back.
    pub arguments: Arc<[Argument]>,
    /// Of a call the line that it stands in, where it is known.
    pub line: Option<Arc<SourceLine>>,
}

/// The records of a thread's calls of MPI, in order, without the events that they belong to.
pub struct Records<'a> {
    source: &'a Source,
    /// Of this stream, and those behind it.
    streams: &'a [SideStream],
    bytes: Bytes<'a>,
    decoder: Box<Decoder>,
    tuples: Tuples,
    /// How many came so far.
    count: u64,
    is_broken: bool,
}

/// What the tuples of a stream are. A writer that has room for few of them announces the same one again and again.
#[derive(Debug, Default)]
struct Tuples {
    /// By number, which of the distinct ones.
    numbers: Vec<u32>,
    distinct: Vec<Record>,
    known: FxHashMap<(u32, Box<[i64]>), u32>,
}

impl Tuples {
    fn get(&self, number: u32) -> Option<&Record> {
        let index = *self.numbers.get(number as usize)?;
        self.distinct.get(index as usize)
    }

    /// The next number stands for this one.
    fn announce(&mut self, source: &Source, key: u32, values: &[i64]) -> Option<&Record> {
        let next = self.distinct.len() as u32;
        let index = *self.known.entry((key, values.into())).or_insert(next);
        if index == next {
            self.distinct.push(source.tuple(key, values));
        }
        self.numbers.push(index);
        self.distinct.get(index as usize)
    }
}

/// Where reading records stopped, to go on there when there are more.
#[derive(Debug)]
pub struct RecordsMark {
    decoder: Box<Decoder>,
    /// Bytes that it took.
    taken: u64,
    tuples: Tuples,
}

impl<'a> Records<'a> {
    fn new(source: &'a Source) -> Self {
        let mut records = Self {
            source,
            streams: &source.streams,
            bytes: Bytes::new(&[], &[], &[]),
            decoder: Box::new(Decoder::NEW),
            tuples: Tuples::default(),
            count: 0,
            is_broken: false,
        };
        records.begin();
        records
    }

    /// Those behind a mark that was made in the same stream.
    fn after(source: &'a Source, mark: RecordsMark) -> Self {
        let mut records = Self::new(source);
        records.bytes.pass(mark.taken);
        (records.decoder, records.tuples) = (mark.decoder, mark.tuples);
        records.decoder.go_on();
        records
    }

    /// Where it stands; `None` where that is not one stream, or it is damaged.
    #[must_use]
    pub fn mark(self) -> Option<RecordsMark> {
        let [stream] = self.source.streams.as_slice() else {
            return None;
        };
        let length: u64 = stream.pieces.iter().map(|it| it.len() as u64).sum();
        (!self.is_broken).then(|| RecordsMark {
            decoder: self.decoder,
            taken: length.saturating_sub(codec::Source::left(&self.bytes)),
            tuples: self.tuples,
        })
    }

    fn begin(&mut self) {
        if let Some(stream) = self.streams.first() {
            self.bytes = Bytes::new(self.source.file.bytes(), &stream.pieces, &[]);
            *self.decoder = Decoder::NEW;
            self.tuples = Tuples::default();
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.advance().cloned()
    }
}

impl Records<'_> {
    /// Where it stands, and how many came so far.
    fn standing(&self) -> (Standing, u64) {
        (self.decoder.standing(), self.count)
    }

    /// Passes over those that come again and again, if all of them are such.
    pub fn pass(&mut self, are: impl Fn(&Record) -> bool) {
        if let Some(round) = self.decoder.round() {
            let mut tuples = round.numbers().iter().map(|it| self.tuples.get(*it));
            if tuples.all(|it| it.is_some_and(&are)) {
                self.count += u64::from(self.decoder.pass_rounds(&round));
            }
        }
    }

    /// The next one, where it lies.
    pub fn advance(&mut self) -> Option<&Record> {
        loop {
            let run = self.streams.first()?.run;
            match self.decoder.next(&mut self.bytes, run) {
                Ok(Some(Found::Known(number))) => {
                    self.count += 1;
                    return self.tuples.get(number);
                }
                Ok(Some(Found::New(key))) => {
                    self.count += 1;
                    let values = self.decoder.values();
                    return self.tuples.announce(self.source, key, values);
                }
                Ok(None) => {
                    self.streams = self.streams.get(1..)?;
                    self.begin();
                }
                // What is damaged ends the arguments; opening the run said so.
                Err(_) => {
                    (self.streams, self.is_broken) = (&[], true);
                    return None;
                }
            }
        }
    }
}

impl Source {
    fn tuple(&self, key: u32, values: &[i64]) -> Record {
        let function = self.symbols.function(key >> 1);
        let is_result = key & 1 == 1;
        let (line, values) = match values {
            [behind, values @ ..] if !is_result => (self.line(function, *behind as u64), values),
            _ => (None, values),
        };
        let arguments = function
            .and_then(|function| self.functions.get(&function))
            .map(|function| self.arguments(function, is_result, values))
            .unwrap_or_default();
        Record {
            function,
            is_result,
            arguments: arguments.into(),
            line: line.cloned().map(Arc::new),
        }
    }

    /// The line of the call of `function` that returns to this address.
    fn line(&self, function: Option<FunctionId>, behind: u64) -> Option<&SourceLine> {
        let images = self.images.iter();
        let mut lines =
            images.map(|(bias, image)| image.line_behind(behind.wrapping_sub(*bias), function?));
        lines.find_map(|line| line)
    }

    fn arguments(
        &self,
        function: &mpi::Function,
        is_result: bool,
        values: &[i64],
    ) -> Vec<Argument> {
        let code = values.last().filter(|_| is_result);
        let code = code.and_then(|it| capture::returned(*it));
        let values = &values[..values.len() - usize::from(code.is_some())];
        let mut left = values.iter().copied();
        let parameters = function.parameters();
        let mut arguments: Vec<Argument> = parameters
            .filter(|parameter| parameter.kind.is_result() == is_result)
            .filter_map(|parameter| {
                let value = self.value(function, parameter.kind, parameter.name, &mut left)?;
                Some(Argument {
                    name: parameter.name,
                    kind: parameter.kind,
                    value,
                })
            })
            .collect();
        // These come last; older recordings have none.
        for it in arguments.iter_mut().filter(|it| it.kind.is_behind()) {
            it.value = behind(it.kind, &mut left).unwrap_or(Value::Omitted);
        }
        arguments.extend(code.map(|code| Argument {
            name: "error",
            kind: Kind::Result,
            value: Value::Error(code, self.library.error_class(code)),
        }));
        arguments
    }

    /// `None` where the tuple has no value for it: a status that was ignored, or not there.
    fn value(
        &self,
        function: &mpi::Function,
        kind: Kind,
        name: &str,
        values: &mut impl ExactSizeIterator<Item = i64>,
    ) -> Option<Value> {
        let handle = |class, raw| Handle {
            raw,
            name: self
                .library
                .name(class, raw, function.language)
                .map(str::to_owned),
        };
        Some(match kind {
            Kind::Ignored => Value::Omitted,
            kind if kind.is_behind() => Value::Omitted,
            Kind::Peer | Kind::Root | Kind::NewPeer => rank(&self.library, values.next()?),
            Kind::Tag => Value::Tag(values.next().map(|tag| (tag != -1).then_some(tag))?),
            Kind::Int if name == "color" => match values.next()? {
                undefined @ -32766 => rank(&self.library, undefined),
                color => Value::Number(color),
            },
            Kind::Int
            | Kind::Long
            | Kind::NewKeyval
            | Kind::KeyvalAt
            | Kind::Result
            | Kind::ResultCount
            | Kind::Flag => Value::Number(values.next()?),
            Kind::Requests | Kind::Datatypes => {
                let class = Class::of(kind)?;
                let count = values.next()?;
                let shown = elements(count, values, 1)
                    .map(|raw| handle(class, raw))
                    .collect();
                Value::Handles(count, shown)
            }
            Kind::Ints | Kind::Results => {
                let count = values.next()?;
                Value::Numbers(count, elements(count, values, 1).collect())
            }
            Kind::Status => Value::Status(values.next()?, values.next()?, values.next()?),
            Kind::Statuses => {
                let count = values.next()?;
                let all: Vec<i64> = elements(count, values, 2).collect();
                let pairs = all.chunks_exact(2).map(|pair| (pair[0], pair[1]));
                Value::Statuses(count, pairs.collect())
            }
            other => Value::Handle(handle(Class::of(other)?, values.next()?)),
        })
    }
}

/// What comes behind all else.
fn behind(kind: Kind, values: &mut impl ExactSizeIterator<Item = i64>) -> Option<Value> {
    let first = values.next()?;
    Some(match kind {
        Kind::Buffer => Value::Buffer(match first {
            0 => Buffer::Null,
            1 => Buffer::InPlace,
            at => Buffer::At(at as u64),
        }),
        Kind::Distance => Value::Number(first),
        // Not those of every communicator are recorded.
        Kind::Shares | Kind::Dimensions if first == 0 => Value::Omitted,
        _ => Value::Numbers(first, elements(first, values, 1).collect()),
    })
}

fn rank(library: &Library, rank: i64) -> Value {
    Value::Rank {
        rank,
        name: library.rank_name(rank),
    }
}

/// The elements of an array of `count`, of `size` values each, as many as are there.
fn elements(
    count: i64,
    values: &mut impl Iterator<Item = i64>,
    size: usize,
) -> impl Iterator<Item = i64> {
    let kept = usize::try_from(count).unwrap_or(0).min(MOST_ELEMENTS);
    values.take(kept * size)
}

/// The events of a thread, with the arguments of its MPI calls.
pub struct Arguments<'a> {
    events: Events<'a>,
    index: u64,
    frames: Frames,
    records: Option<Records<'a>>,
    next: Option<Record>,
    /// Of the latest event.
    function: Option<FunctionId>,
    /// How many events yet have no record: calls that were open before.
    inherited: u64,
    inferred: Inferred<'a>,
    source: Option<&'a Source>,
    /// Whether to stop before an event whose record is not there yet.
    is_live: bool,
    /// Where it did.
    stopped: Option<Bookmark>,
}

/// Where reading events with their arguments stopped.
#[derive(Debug)]
pub struct ArgumentsMark {
    events: Bookmark,
    index: u64,
    frames: Frames,
    records: Option<RecordsMark>,
    next: Option<Record>,
    inherited: u64,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(
        events: Events<'a>,
        source: Option<&'a Source>,
        inferred: Inferred<'a>,
    ) -> Self {
        let mut records = source.map(Records::new);
        let next = records.as_mut().and_then(Iterator::next);
        Self {
            events,
            index: 0,
            frames: Frames::default(),
            records,
            next,
            function: None,
            inherited: source.map_or(0, |source| source.inherited),
            inferred,
            source,
            is_live: false,
            stopped: None,
        }
    }

    /// Those of a thread that goes on, behind a mark that was made in it: stops before an event whose record is not
    /// there yet.
    pub fn live(thread: &'a Thread, mark: Option<ArgumentsMark>) -> Self {
        let whole = thread.arguments();
        let is_live = thread.arguments_lost == 0;
        let is_same = |it: &ArgumentsMark| it.records.is_some() == whole.source.is_some();
        let Some(mark) = mark.filter(is_same) else {
            return Self { is_live, ..whole };
        };
        let records = whole.source.zip(mark.records);
        let mut records = records.map(|(source, mark)| Records::after(source, mark));
        let more = || records.as_mut().and_then(Iterator::next);
        Self {
            events: thread.events_after(&mark.events),
            index: mark.index,
            frames: mark.frames,
            next: mark.next.or_else(more),
            records,
            inherited: mark.inherited,
            is_live,
            ..whole
        }
    }

    /// Where it stands; `None` where it cannot go on from there.
    #[must_use]
    pub fn mark(self) -> Option<ArgumentsMark> {
        let here = self.events.bookmark();
        Some(ArgumentsMark {
            events: self.stopped.or(here).filter(|_| self.is_live)?,
            index: self.index,
            frames: self.frames,
            records: self
                .records
                .map(|it| it.mark().ok_or(()))
                .transpose()
                .ok()?,
            next: self.next,
            inherited: self.inherited,
        })
    }

    /// Whether an event has a record, which is not there.
    fn is_owed(&self, event: Event) -> bool {
        let (function, is_result) = match event {
            Event::Call(function) => (Some(function), false),
            Event::Return => (self.frames.open().last().map(|top| top.function), true),
            Event::Tail => (None, false),
        };
        let functions = self.source.map(|it| &it.functions);
        let known = functions.zip(function).and_then(|(all, it)| all.get(&it));
        self.inherited == 0
            && known.is_some_and(|it| !is_result || it.parameters().any(|of| of.kind.is_result()))
    }

    /// Of the latest event, if it is a call, its function; if it is a return, that of the call.
    #[must_use]
    pub fn function(&self) -> Option<FunctionId> {
        self.function
    }

    /// How many calls are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.open().len()
    }
}

impl Arguments<'_> {
    /// The next event that is a call of a wanted function, or ends one; those between are gone by. Functions
    /// of which calls have records have to be wanted.
    pub fn next_of(&mut self, is_wanted: impl Fn(FunctionId) -> bool) -> Option<Annotated> {
        let mut until_look = LOOK;
        let mut lap: Option<Lap> = None;
        loop {
            // A round without any is passed over with all that are as it is.
            if let Some(it) = &lap {
                if self.is_at_end_of(it) && self.pass(it).is_some() {
                    lap = None;
                }
            } else if until_look == 0 {
                lap = self.lap();
                until_look = LOOK;
            }
            if self.stopped.is_some() {
                return None;
            }
            let is_last = self.is_live && self.records.is_some() && self.next.is_none();
            let before = is_last.then(|| self.events.bookmark()).flatten();
            let event = self.events.next()?;
            let open = self.frames.open();
            let found = match event {
                Event::Call(function) => is_wanted(function),
                Event::Return => {
                    let last = open.last().is_some_and(|it| is_wanted(it.function));
                    let before = open.iter().rev().skip(1);
                    last || before
                        .take_while(|it| it.handed_over)
                        .any(|it| is_wanted(it.function))
                }
                Event::Tail => false,
            };
            if found && before.is_some() && self.is_owed(event) {
                self.stopped = before;
                return None;
            }
            if found {
                return Some(self.annotate(event));
            }
            self.frames.apply(event);
            self.inherited = self.inherited.saturating_sub(1);
            self.index += 1;
            until_look = until_look.saturating_sub(1);
        }
    }

    fn annotate(&mut self, event: Event) -> Annotated {
        let (function, is_result) = match event {
            Event::Call(function) => (Some(function), false),
            Event::Return => (self.frames.open().last().map(|top| top.function), true),
            Event::Tail => (None, false),
        };
        self.frames.apply(event);
        self.function = function;
        let has_record = function.is_some() && self.inherited == 0;
        self.inherited = self.inherited.saturating_sub(1);
        let (arguments, line) = self
            .next
            .take_if(|next| has_record && (next.function, next.is_result) == (function, is_result))
            .map(|tuple| (tuple.arguments, tuple.line))
            .unzip();
        if arguments.is_some() {
            self.next = self.records.as_mut().and_then(Iterator::next);
        }
        self.index += 1;
        Annotated {
            index: self.index - 1,
            inferred: event == Event::Return && self.inferred.is_next(&self.events, self.index),
            event,
            symbols: self.events.symbols(),
            arguments,
            line: line.flatten(),
        }
    }
}

impl Iterator for Arguments<'_> {
    type Item = Annotated;

    fn next(&mut self) -> Option<Annotated> {
        let event = self.events.next()?;
        Some(self.annotate(event))
    }
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arguments").finish_non_exhaustive()
    }
}

impl Thread {
    /// Whether anything was recorded beside the events: without it no call has arguments.
    #[must_use]
    pub fn has_arguments(&self) -> bool {
        self.side.is_some()
    }

    /// The function of MPI that this is, if calls of it may have arguments here. O(1).
    #[must_use]
    pub fn mpi(&self, function: FunctionId) -> Option<&mpi::Function> {
        self.side.as_deref()?.functions.get(&function)
    }

    /// All of them.
    pub fn mpi_functions(&self) -> impl Iterator<Item = (FunctionId, &mpi::Function)> {
        let functions = self.side.iter().flat_map(|it| it.functions.iter());
        functions.map(|(id, function)| (*id, function))
    }

    /// The records of its calls of MPI, behind a mark that was made in them; `None` where there can be none. Costs a decode.
    #[must_use]
    pub fn records(&self, mark: Option<RecordsMark>) -> Option<Records<'_>> {
        let source = self.side.as_deref()?;
        Some(match mark {
            Some(mark) => Records::after(source, mark),
            None => Records::new(source),
        })
    }

    /// The events, in order, with the arguments and results of MPI calls. Costs as [`Thread::events`],
    /// and a decode of the arguments; memory for each distinct tuple of them.
    #[must_use]
    pub fn arguments(&self) -> Arguments<'_> {
        Arguments::new(self.events(), self.side.as_deref(), self.inferences())
    }
}

/// Reads the argument streams of a thread once: what of them does not hold.
pub(crate) fn damage(file: &[u8], thread: &ThreadFile) -> Vec<String> {
    let streams = thread.segments().map(|it| &it.side.arguments);
    let streams = streams.filter(|it| !it.pieces.is_empty());
    streams.filter_map(|it| check(file, it)).collect()
}

fn check(file: &[u8], stream: &SideStream) -> Option<String> {
    let mut bytes = Bytes::new(file, &stream.pieces, &[]);
    let mut decoder = Box::new(Decoder::NEW);
    let mut records = 0u64;
    loop {
        // The rounds that are left of a run are as sure as one.
        if let Some(round) = decoder.round() {
            records += u64::from(decoder.pass_rounds(&round));
        }
        match decoder.next(&mut bytes, stream.run) {
            Ok(Some(_)) => records += 1,
            Ok(None) => return None,
            Err(error) => {
                return Some(format!(
                    "arguments: after {records} records, {error}: later calls have none"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handles::NameLists;

    #[test]
    fn a_tuple_that_is_announced_again_is_kept_once() {
        let source = Source {
            file: Arc::new(Mapped::Memory(Vec::new())),
            streams: Vec::new(),
            inherited: 0,
            symbols: Arc::default(),
            library: Arc::new(Library::new(&[], &NameLists::default())),
            functions: Arc::default(),
            images: Vec::new().into(),
            world_size: None,
        };
        let mut tuples = Tuples::default();
        for round in 0..1000 {
            tuples.announce(&source, 32, &[1, round % 2]);
            tuples.announce(&source, 33, &[1]);
        }
        assert_eq!((tuples.numbers.len(), tuples.distinct.len()), (2000, 3));
        let at = |number| tuples.get(number).map(|it| it.is_result);
        assert_eq!(
            [at(1996), at(1999), at(2000)],
            [Some(false), Some(true), None]
        );
    }
}
