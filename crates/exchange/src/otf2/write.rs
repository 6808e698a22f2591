//! Writes an archive.

use super::record::{Chunks, Definitions, Record};
use super::spoken::Spoken;
use super::{
    CPU_THREAD, DEFINITION_CHUNK, EVENT_CHUNK, LITTLE_ENDIAN, NO_PARADIGM, PARADIGM_MPI, UNDEFINED,
    buffer, definition, event,
};
use crate::along::Along;
use crate::spans::{Clock, Span, each_span};
use crate::view::View;
use lockstep_comm::{Talk, is_named_so};
use lockstep_trace::{FunctionId, Run, Thread};
use rustc_hash::FxHashMap;
use std::fs;
use std::io;
use std::path::Path;

/// Parts of a second in a time.
const RESOLUTION: u64 = 1_000_000_000;
/// What a location group is: a process.
const PROCESS: u8 = 1;
/// What a region is: a function.
const FUNCTION: u8 = 1;
/// Version 3.0.2 of the format, with what stands before it.
const VERSION: [u8; 5] = [3, 2, 3, 0, 2];
const POSIX: u8 = 1;
const NO_COMPRESSION: u8 = 1;

/// Writes the archive into `directory`, which must be empty; how many records of communication are left out.
pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    talk: &Talk,
    directory: &Path,
) -> io::Result<u64> {
    let events = directory.join("traces");
    fs::create_dir(&events)?;
    let mut regions = Regions::default();
    let mut spoken = Spoken::new(threads, talk);
    let mut counts = Vec::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for (location, thread) in threads.iter().enumerate() {
        let mut file = Chunks::new(&events.join(format!("{location}.evt")), EVENT_CHUNK, true)?;
        let mut now = None;
        let mut along = Along::new(talk, thread.name);
        each_span(thread, clock, view, |moment, span, event| {
            let time = moment.shown;
            first = first.min(time);
            last = last.max(time);
            let mut write = |record: &[u8]| {
                let is_new = now.replace(time) != Some(time);
                file.event(time, is_new, record)
            };
            let mut region = |kind, function| {
                let mut record = Record::new();
                record.number(u64::from(regions.number(function)));
                record.short(kind)
            };
            match span {
                Span::Open(function, _) => {
                    write(&region(event::ENTER, function))?;
                    let mut begun = along.begun(event.index);
                    begun.try_for_each(|it| spoken.record(it, true).map_or(Ok(()), |it| write(&it)))
                }
                Span::Close(function, _) => {
                    let mut over = along.over(event.index).into_iter();
                    over.try_for_each(|it| {
                        spoken.record(it, false).map_or(Ok(()), |it| write(&it))
                    })?;
                    write(&region(event::LEAVE, function))
                }
            }
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
        (&regions.list, &spoken),
        &counts,
        (first, last, date(threads, clock, first)),
        directory,
    )?;
    anchor(threads.len(), definitions, clock, directory)?;
    Ok(spoken.left_out)
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

/// Writes the global definitions; how many there are.
fn define(
    run: &Run,
    threads: &[&Thread],
    (regions, spoken): (&[FunctionId], &Spoken<'_>),
    counts: &[u64],
    (first, last, date): (u64, u64, Option<u64>),
    directory: &Path,
) -> io::Result<u64> {
    let mut all = Definitions::new(&directory.join("traces.def"))?;
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
        let paradigm = match is_named_so(&function.linkage) {
            true => PARADIGM_MPI,
            false => NO_PARADIGM,
        };
        record.byte(FUNCTION).byte(paradigm).number(0);
        all.add(definition::REGION, &record)?;
    }
    spoken.define(&mut all)?;
    all.finish()
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
