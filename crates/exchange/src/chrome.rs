//! Chrome's trace event format: JSON, an array of events or an object with `traceEvents`, maybe gzipped.
//!
//! Calls are the events with phase B and E, or X. They need not stand in the order of time, so all of them are kept
//! (32 bytes each, at most [`MOST`]) and sorted. Other phases (instants, counters, asynchronous events) are left out, and so
//! are arguments. Process and thread ids may be numbers or texts.

use crate::error::{Error, Place};
use flate2::bufread::MultiGzDecoder;
use lockstep_writer::{Builder, FunctionNumber, Named, ProcessFacts};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::cmp::Reverse;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// Calls that are kept: half a gigabyte.
pub(crate) const MOST: usize = 1 << 24;
/// Bytes that one event may have.
const MOST_EVENT: u64 = 1 << 20;
/// Bytes that anything else may have.
const MOST_OTHER: u64 = 1 << 28;
/// Bytes that all names, and all ids, may have.
const MOST_TEXT: usize = 1 << 28;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the file `path`.
pub(crate) fn read(path: &Path, run: &mut Builder) -> Result<Vec<String>, Error> {
    let failed = |error| Error::read(path, error);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Error::wrong(
            path,
            Place::Whole,
            "a file of JSON",
            "a directory",
        ));
    }
    let mut file = BufReader::with_capacity(1 << 16, file);
    let is_gzipped = file.fill_buf().map_err(failed)?.starts_with(&GZIP);
    let text: Box<dyn Read> = if is_gzipped {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    };
    let collected = collect(path, text)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or("imported").to_owned();
    collected.write(&stem, run)
}

/// Reads all events.
fn collect(path: &Path, text: impl Read) -> Result<Collected, Error> {
    let budget = Rc::new(Cell::new(MOST_OTHER));
    let mut collected = Collected {
        budget: Rc::clone(&budget),
        ..Collected::default()
    };
    let mut bounded = Bounded {
        inner: text,
        left: budget,
        taken: 0,
    };
    let mut json = serde_json::Deserializer::from_reader(&mut bounded);
    let parsed = json
        .deserialize_any(Top(&mut collected))
        .and_then(|()| json.end());
    match parsed {
        Ok(()) => {}
        // The closing bracket of an array may be missing, so that a program that crashed leaves a trace.
        Err(error) if error.is_eof() && collected.is_between => collected.cut_off = true,
        Err(error) => {
            // The byte that was taken last, of the text as it was before it was packed.
            let last = u64::from(!error.is_eof());
            let place = Place::Byte(bounded.taken.saturating_sub(last));
            if let Some(expected) = collected.refused.take() {
                return Err(Error::wrong(path, place, expected, "more"));
            }
            if error.is_io() && bounded.left.get() == 0 {
                let expected = format!("events of at most {MOST_EVENT} bytes");
                return Err(Error::wrong(path, place, expected, "a longer one"));
            }
            if error.is_io() {
                return Err(Error::read(path, error.into()));
            }
            let found = error.to_string();
            let expected = "trace events as JSON: an array, or an object with traceEvents";
            return Err(Error::wrong(path, place, expected, found));
        }
    }
    if !collected.has_events {
        let expected = "trace events as JSON: an array, or an object with traceEvents";
        return Err(Error::wrong(path, Place::Whole, expected, "neither"));
    }
    Ok(collected)
}

/// Stops where one thing is longer than it may be.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
    /// Bytes, so far.
    taken: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // The parser asks for single bytes.
        let room = buffer
            .len()
            .min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..room])?;
        self.left.set(self.left.get() - read as u64);
        self.taken += read as u64;
        Ok(read)
    }
}

/// An id, a number of microseconds, or a name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Whole(i64),
    Large(u64),
    Real(f64),
    Text(String),
    Other(IgnoredAny),
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Large(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Other(_) => String::new(),
        }
    }

    /// Microseconds as nanoseconds.
    fn nanoseconds(&self) -> Option<i64> {
        let of_real = |microseconds: f64| (microseconds * 1000.0).round() as i64;
        match self {
            Self::Whole(number) => Some(number.saturating_mul(1000)),
            Self::Large(_) => Some(i64::MAX),
            Self::Real(number) => Some(of_real(*number)),
            Self::Text(text) => match text.parse::<i64>() {
                Ok(number) => Some(number.saturating_mul(1000)),
                Err(_) => text.parse().ok().map(of_real),
            },
            Self::Other(_) => None,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Event {
    ph: Option<Scalar>,
    name: Option<Scalar>,
    pid: Option<Scalar>,
    tid: Option<Scalar>,
    ts: Option<Scalar>,
    dur: Option<Scalar>,
    args: Option<Arguments>,
}

/// Of arguments, the one that names processes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Arguments {
    Named { name: Scalar },
    Other(IgnoredAny),
}

/// A begin, an end, or both.
#[derive(Debug, Clone, Copy)]
struct Call {
    thread: u32,
    /// Its place in the file.
    number: u32,
    time: i64,
    length: u64,
    name: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Begin,
    End,
    /// With a length.
    Whole,
}

#[derive(Debug, Default)]
struct Collected {
    budget: Rc<Cell<u64>>,
    calls: Vec<Call>,
    names: Interned<String>,
    processes: Interned<String>,
    /// Process and id.
    threads: Interned<(u32, String)>,
    programs: FxHashMap<u32, String>,
    text: usize,
    /// A list of events was found.
    has_events: bool,
    /// The parser stands between two events of a list.
    is_between: bool,
    cut_off: bool,
    others: u64,
    /// What was expected where more was found.
    refused: Option<String>,
}

#[derive(Debug)]
struct Interned<T> {
    list: Vec<T>,
    known: FxHashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            known: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn number(&mut self, value: T) -> u32 {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let number = self.list.len() as u32;
        self.list.push(value.clone());
        self.known.insert(value, number);
        number
    }
}

impl Collected {
    /// False where there is no room for more.
    fn add(&mut self, event: Event) -> bool {
        let phase = event.ph.as_ref().map(Scalar::text).unwrap_or_default();
        let text = |scalar: Option<&Scalar>| scalar.map(Scalar::text).unwrap_or_default();
        let kind = match &*phase {
            "B" => Kind::Begin,
            "E" => Kind::End,
            "X" => Kind::Whole,
            "M" => {
                if text(event.name.as_ref()) == "process_name"
                    && let Some(Arguments::Named { name }) = &event.args
                {
                    let process = self.process(event.pid.as_ref());
                    self.programs.insert(process, name.text());
                }
                return self.has_room();
            }
            _ => {
                self.others += 1;
                return true;
            }
        };
        let Some(time) = event.ts.as_ref().and_then(Scalar::nanoseconds) else {
            self.others += 1;
            return true;
        };
        let length = event.dur.as_ref().and_then(Scalar::nanoseconds);
        let process = self.process(event.pid.as_ref());
        // Without an id it is the process's first.
        let id = text(event.tid.as_ref().or(event.pid.as_ref()));
        let (length_of_id, known) = (id.len(), self.threads.list.len());
        let thread = self.threads.number((process, id));
        if self.threads.list.len() > known {
            self.text += length_of_id;
        }
        let name = match kind {
            // The name of an end need not be there, and changes nothing.
            Kind::End => 0,
            _ => {
                let name = text(event.name.as_ref());
                if !self.names.known.contains_key(&name) {
                    self.text += name.len();
                }
                self.names.number(name)
            }
        };
        self.calls.push(Call {
            thread,
            number: self.calls.len() as u32,
            time,
            length: length.and_then(|it| u64::try_from(it).ok()).unwrap_or(0),
            name,
            kind,
        });
        self.has_room()
    }

    fn process(&mut self, id: Option<&Scalar>) -> u32 {
        let id = id.map(Scalar::text).unwrap_or_default();
        if !self.processes.known.contains_key(&id) {
            self.text += id.len();
        }
        self.processes.number(id)
    }

    fn has_room(&mut self) -> bool {
        if self.calls.len() > MOST {
            self.refused = Some(format!("at most {MOST} events of phases B, E and X"));
        } else if self.text > MOST_TEXT {
            self.refused = Some(format!("at most {MOST_TEXT} bytes of names and ids"));
        }
        self.refused.is_none()
    }

    fn write(mut self, stem: &str, run: &mut Builder) -> Result<Vec<String>, Error> {
        self.calls.sort_unstable_by_key(|call| {
            let is_whole = call.kind == Kind::Whole;
            (
                call.thread,
                call.time,
                is_whole,
                Reverse(call.length),
                call.number,
            )
        });
        let first = self.calls.iter().map(|call| call.time).min().unwrap_or(0);
        let mut strays = 0;
        let mut processes: Vec<u32> = (0..self.processes.list.len() as u32).collect();
        processes.sort_by_key(|process| Id::of(&self.processes.list[*process as usize]));
        let mut threads_of: Vec<Vec<u32>> = vec![Vec::new(); processes.len()];
        for ((process, _), thread) in self.threads.list.iter().zip(0..) {
            threads_of[*process as usize].push(thread);
        }
        for (process, place) in processes.iter().zip(1..) {
            let pid = match Id::of(&self.processes.list[*process as usize]) {
                Id::Number(number) if number > 0 => u32::try_from(number).unwrap_or(place),
                _ => place,
            };
            let program = match self.programs.get(process) {
                Some(name) if !name.is_empty() => name.as_str(),
                _ => stem,
            };
            let mut threads: Vec<(bool, Id<'_>, u32)> = threads_of[*process as usize]
                .iter()
                .map(|thread| {
                    let id = Id::of(&self.threads.list[*thread as usize].1);
                    // The first thread has its process's id.
                    (id != Id::Number(i128::from(pid)), id, *thread)
                })
                .collect();
            if threads.is_empty() {
                continue;
            }
            threads.sort();
            let number = run.process(ProcessFacts {
                program: program.to_owned(),
                pid,
                ..ProcessFacts::default()
            })?;
            let mut functions: FxHashMap<u32, FunctionNumber> = FxHashMap::default();
            for ((.., thread), place) in threads.iter().zip(0..) {
                run.begin(number, pid.wrapping_add(place))?;
                let start = self.calls.partition_point(|call| call.thread < *thread);
                let end = self.calls.partition_point(|call| call.thread <= *thread);
                let mut writing = Writing {
                    names: &self.names.list,
                    program,
                    functions: &mut functions,
                    open: Vec::new(),
                    first,
                    strays: &mut strays,
                };
                for call in &self.calls[start..end] {
                    writing.call(call, run)?;
                }
                writing.finish(run)?;
                run.end()?;
            }
        }
        let mut notes = Vec::new();
        if self.others > 0 {
            let others = self.others;
            notes.push(format!(
                "{others} events that are no calls (phases other than B, E, X) were left out"
            ));
        }
        if strays > 0 {
            notes.push(format!("{strays} ends without a begin were left out"));
        }
        if self.cut_off {
            notes.push("the list of events has no end: expected a closing bracket".to_owned());
        }
        Ok(notes)
    }
}

/// Ids in order: numbers, then texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Id<'a> {
    Number(i128),
    Text(&'a str),
}

impl<'a> Id<'a> {
    fn of(text: &'a str) -> Self {
        text.parse().map_or(Self::Text(text), Self::Number)
    }
}

struct Writing<'a> {
    names: &'a [String],
    program: &'a str,
    functions: &'a mut FxHashMap<u32, FunctionNumber>,
    /// When the open calls end, where that is known.
    open: Vec<Option<i64>>,
    first: i64,
    strays: &'a mut u64,
}

impl Writing<'_> {
    fn time(&self, time: i64) -> Option<u64> {
        Some(time.saturating_sub(self.first).unsigned_abs())
    }

    /// Ends what is over at `time`.
    fn over(&mut self, time: i64, run: &mut Builder) -> Result<(), Error> {
        while let Some(Some(end)) = self.open.last().copied()
            && end <= time
        {
            self.open.pop();
            run.ret(self.time(end))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call, run: &mut Builder) -> Result<(), Error> {
        self.over(call.time, run)?;
        if call.kind == Kind::End {
            if !self.open.contains(&None) {
                *self.strays += 1;
                return Ok(());
            }
            // What began within it ends with it.
            while let Some(end) = self.open.pop() {
                run.ret(self.time(call.time))?;
                if end.is_none() {
                    break;
                }
            }
            return Ok(());
        }
        let function = match self.functions.get(&call.name) {
            Some(known) => *known,
            None => {
                let name = self
                    .names
                    .get(call.name as usize)
                    .map_or("", String::as_str);
                let function = run.function(&Named {
                    image: self.program,
                    name: if name.is_empty() { "?" } else { name },
                    imported: false,
                    source: None,
                })?;
                self.functions.insert(call.name, function);
                function
            }
        };
        run.call(function, self.time(call.time))?;
        let length = i64::try_from(call.length).unwrap_or(i64::MAX);
        let end = call.time.saturating_add(length);
        self.open.push((call.kind == Kind::Whole).then_some(end));
        Ok(())
    }

    /// What began and did not end stays open.
    fn finish(mut self, run: &mut Builder) -> Result<(), Error> {
        self.over(i64::MAX, run)
    }
}

/// The whole document.
struct Top<'a>(&'a mut Collected);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events, or an object with traceEvents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.has_events = true;
        loop {
            self.0.is_between = true;
            self.0.budget.set(MOST_EVENT);
            if list.next_element_seed(One(self.0))?.is_none() {
                break;
            }
        }
        self.0.is_between = false;
        self.0.budget.set(MOST_OTHER);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(List(self.0))?;
                self.0.is_between = false;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The list in an object.
struct List<'a>(&'a mut Collected);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(Top(self.0))
    }
}

/// One event.
struct One<'a>(&'a mut Collected);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, event: D) -> Result<(), D::Error> {
        use serde::de::Error as _;
        self.0.is_between = false;
        let event = Event::deserialize(event)?;
        if self.0.add(event) {
            Ok(())
        } else {
            Err(D::Error::custom("too much"))
        }
    }
}
