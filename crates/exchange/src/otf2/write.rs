//! Writes an archive.

use super::{
    CHUNK_HEADER, CPU_THREAD, DEFINITION_CHUNK, EVENT_CHUNK, LITTLE_ENDIAN, LONG, UNDEFINED,
    buffer, definition, event,
};
use crate::spans::{Clock, Span, each_span};
use crate::view::View;
use lockstep_trace::{FunctionId, Run, Thread};
use rustc_hash::FxHashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Parts of a second in a time.
const RESOLUTION: u64 = 1_000_000_000;
/// What a location group is: a process.
const PROCESS: u8 = 1;
/// What a region is: a function, of no parallel paradigm that we tell.
const FUNCTION: u8 = 1;
const NO_PARADIGM: u8 = 22;
/// Version 3.0.2 of the format, with what stands before it.
const VERSION: [u8; 5] = [3, 2, 3, 0, 2];
const POSIX: u8 = 1;
const NO_COMPRESSION: u8 = 1;

/// Writes the archive into `directory`, which must be empty.
pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    directory: &Path,
) -> io::Result<()> {
    let events = directory.join("traces");
    fs::create_dir(&events)?;
    let mut regions = Regions::default();
    let mut counts = Vec::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for (location, thread) in threads.iter().enumerate() {
        let mut file = Chunks::new(&events.join(format!("{location}.evt")), EVENT_CHUNK, true)?;
        let mut now = None;
        each_span(thread, clock, view, |moment, span, _| {
            let time = moment.shown;
            let (kind, function) = match span {
                Span::Open(function, _) => (event::ENTER, function),
                Span::Close(function, _) => (event::LEAVE, function),
            };
            first = first.min(time);
            last = last.max(time);
            let mut record = Record(vec![kind]);
            record.number(u64::from(regions.number(function)));
            let is_new = now.replace(time) != Some(time);
            file.event(time, is_new, &record.0)
        })?;
        counts.push(file.finish()?);
        Chunks::new(
            &events.join(format!("{location}.def")),
            DEFINITION_CHUNK,
            false,
        )?
        .finish()?;
    }
    let first = first.min(last);
    let definitions = define(
        run,
        threads,
        &regions.list,
        &counts,
        (first, last, date(threads, clock, first)),
        directory,
    )?;
    anchor(threads.len(), definitions, clock, directory)
}

/// When the time `first` was, in nanoseconds since 1970.
fn date(threads: &[&Thread], clock: &Clock, first: u64) -> Option<u64> {
    if let Clock::Logical(_) = clock {
        return None;
    }
    let times = threads.first()?.times.as_ref()?;
    times.date()?.checked_add(first)
}

/// Numbers of regions, in the order in which they come up.
#[derive(Default)]
struct Regions {
    list: Vec<FunctionId>,
    numbers: FxHashMap<FunctionId, u32>,
}

impl Regions {
    fn number(&mut self, function: FunctionId) -> u32 {
        let next = self.list.len() as u32;
        *self.numbers.entry(function).or_insert_with(|| {
            self.list.push(function);
            next
        })
    }
}

/// A record's fields, or a record without a length.
struct Record(Vec<u8>);

impl Record {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn number(&mut self, value: u64) -> &mut Self {
        let bytes = value.to_le_bytes();
        let length = 8 - value.leading_zeros() as usize / 8;
        self.0.push(length as u8);
        self.0.extend_from_slice(&bytes[..length]);
        self
    }

    fn optional(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.byte(UNDEFINED),
        }
    }

    fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0
            .extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
        self.byte(0)
    }

    /// With its type and length.
    fn framed(&self, kind: u8) -> Vec<u8> {
        let mut framed = vec![kind];
        match u8::try_from(self.0.len()) {
            Ok(length) if length < LONG => framed.push(length),
            _ => {
                framed.push(LONG);
                framed.extend((self.0.len() as u64).to_le_bytes());
            }
        }
        framed.extend_from_slice(&self.0);
        framed
    }
}

/// A file of chunks.
struct Chunks {
    out: BufWriter<File>,
    size: usize,
    /// The chunk that is being filled.
    chunk: Vec<u8>,
    /// Events before it, and so far; of definitions nothing is counted.
    before: u64,
    events: u64,
    counts: bool,
}

impl Chunks {
    fn new(path: &Path, size: u64, counts: bool) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create_new(path)?),
            size: size as usize,
            chunk: vec![0; CHUNK_HEADER],
            before: 0,
            events: 0,
            counts,
        })
    }

    fn event(&mut self, time: u64, is_new: bool, record: &[u8]) -> io::Result<()> {
        let room = self.has_room(9 + record.len());
        if !room {
            self.flush(true)?;
        }
        // Each chunk tells the time by itself.
        if is_new || !room {
            self.chunk.push(buffer::TIME);
            self.chunk.extend(time.to_le_bytes());
        }
        self.chunk.extend_from_slice(record);
        self.events += 1;
        Ok(())
    }

    fn define(&mut self, record: &[u8]) -> io::Result<()> {
        if !self.has_room(record.len()) {
            self.flush(true)?;
        }
        if !self.has_room(record.len()) {
            let text = "expected a name that has room in a chunk, found a longer one";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.chunk.extend_from_slice(record);
        self.events += 1;
        Ok(())
    }

    /// Whether so many bytes fit, and the end of the file behind them.
    fn has_room(&self, bytes: usize) -> bool {
        self.chunk.len() + bytes + 2 <= self.size
    }

    fn flush(&mut self, is_full: bool) -> io::Result<()> {
        let (first, last) = if self.counts {
            (self.before + 1, self.events)
        } else {
            (1, 0)
        };
        self.chunk[0] = buffer::CHUNK;
        self.chunk[1] = LITTLE_ENDIAN;
        self.chunk[2..10].copy_from_slice(&first.to_le_bytes());
        self.chunk[10..18].copy_from_slice(&last.to_le_bytes());
        if is_full {
            self.chunk.resize(self.size, buffer::PADDING);
        }
        self.out.write_all(&self.chunk)?;
        self.chunk.clear();
        self.chunk.resize(CHUNK_HEADER, 0);
        self.before = self.events;
        Ok(())
    }

    /// Ends the file; how many events or definitions it has.
    fn finish(mut self) -> io::Result<u64> {
        self.chunk
            .extend([buffer::END_OF_CHUNK, buffer::END_OF_FILE]);
        self.flush(false)?;
        self.out.flush()?;
        Ok(self.events)
    }
}

/// Strings get numbers as they come up; each is defined before it is used.
struct Definitions {
    file: Chunks,
    strings: FxHashMap<String, u64>,
}

impl Definitions {
    fn string(&mut self, text: &str) -> io::Result<u64> {
        let next = self.strings.len() as u64;
        if let Some(known) = self.strings.get(text) {
            return Ok(*known);
        }
        self.strings.insert(text.to_owned(), next);
        let mut record = Record::new();
        record.number(next).text(text);
        self.file.define(&record.framed(definition::STRING))?;
        Ok(next)
    }

    fn add(&mut self, kind: u8, record: &Record) -> io::Result<()> {
        self.file.define(&record.framed(kind))
    }
}

/// Writes the global definitions; how many there are.
fn define(
    run: &Run,
    threads: &[&Thread],
    regions: &[FunctionId],
    counts: &[u64],
    (first, last, date): (u64, u64, Option<u64>),
    directory: &Path,
) -> io::Result<u64> {
    let mut all = Definitions {
        file: Chunks::new(&directory.join("traces.def"), DEFINITION_CHUNK, false)?,
        strings: FxHashMap::default(),
    };
    let mut clock = Record::new();
    clock.number(RESOLUTION).number(first).number(last - first);
    clock.optional(date);
    all.add(definition::CLOCK, &clock)?;
    // Where a text is left out, that is the first one.
    all.string("")?;

    // The machine, its nodes, processes, threads.
    let node = |all: &mut Definitions, number, name: &str, class: &str, parent| {
        let (name, class) = (all.string(name)?, all.string(class)?);
        let mut record = Record::new();
        record
            .number(number)
            .number(name)
            .number(class)
            .optional(parent);
        all.add(definition::TREE_NODE, &record)
    };
    node(&mut all, 0, "machine", "machine", None)?;
    let mut hosts: FxHashMap<&str, u64> = FxHashMap::default();
    let mut groups = FxHashMap::default();
    for process in &run.processes {
        if !threads
            .iter()
            .any(|thread| thread.name.process == process.name)
        {
            continue;
        }
        let next = hosts.len() as u64 + 1;
        let host = match hosts.get(process.host.as_str()) {
            Some(known) => *known,
            None => {
                hosts.insert(&process.host, next);
                node(&mut all, next, &process.host, "node", Some(0))?;
                next
            }
        };
        let name = match process.rank {
            Some(_) => format!("MPI Rank {}", process.name),
            None => format!("Process {}", process.name),
        };
        let name = all.string(&name)?;
        let number = groups.len() as u64;
        groups.insert(process.name, number);
        let mut record = Record::new();
        record
            .number(number)
            .number(name)
            .byte(PROCESS)
            .number(host)
            .byte(UNDEFINED);
        all.add(definition::GROUP, &record)?;
    }
    for ((thread, events), number) in threads.iter().zip(counts).zip(0..) {
        let name = all.string(&thread.name.to_string())?;
        let group = groups.get(&thread.name.process).copied().unwrap_or(0);
        let mut record = Record::new();
        record
            .number(number)
            .number(name)
            .byte(CPU_THREAD)
            .number(*events)
            .number(group);
        all.add(definition::LOCATION, &record)?;
    }
    for (function, number) in regions.iter().zip(0..) {
        let function = run.function(*function);
        let name = all.string(&function.name)?;
        let linkage = all.string(&function.linkage)?;
        let image = all.string(&function.image)?;
        let (file, line) = match &function.source {
            Some(source) => (Some(all.string(&source.file)?), source.line),
            None => (None, 0),
        };
        // Number, name, description (the image), an older kind, file, first and last line, canonical name, role, paradigm, flags.
        let mut record = Record::new();
        record
            .number(number)
            .number(name)
            .number(image)
            .byte(0)
            .optional(file);
        record.number(line.into()).number(0).number(linkage);
        record.byte(FUNCTION).byte(NO_PARADIGM).number(0);
        all.add(definition::REGION, &record)?;
    }
    all.file.finish()
}

fn anchor(locations: usize, definitions: u64, clock: &Clock, directory: &Path) -> io::Result<()> {
    let mut bytes = vec![buffer::CHUNK, LITTLE_ENDIAN];
    bytes.extend(b"OTF2\0");
    bytes.extend(VERSION);
    bytes.extend(EVENT_CHUNK.to_le_bytes());
    bytes.extend(DEFINITION_CHUNK.to_le_bytes());
    bytes.extend([POSIX, NO_COMPRESSION]);
    bytes.extend((locations as u64).to_le_bytes());
    bytes.extend(definitions.to_le_bytes());
    let creator = format!("lockstep {}", env!("CARGO_PKG_VERSION"));
    let mut texts = Record::new();
    texts
        .text("")
        .text(&creator)
        .text(&format!("{} times", clock.name()));
    bytes.extend(texts.0);
    // No properties; a number that tells archives apart, which nobody needs to; no snapshots, no thumbnails.
    bytes.extend([0; 4 + 8 + 4 + 4]);
    bytes.extend([buffer::END_OF_CHUNK, buffer::END_OF_FILE, 0]);
    fs::write(directory.join("traces.otf2"), bytes)
}
