//! Reads an archive: enter and leave of all locations, with times. Other events are left out.
//!
//! Memory: the definitions (at most [`MOST_DEFINITIONS`] bytes) and one record (at most [`MOST_RECORD`] bytes) at a time. Compressed archives,
//! machines of another byte order, and locations with definitions of their own (ids that stand for others) are refused.

use super::{CPU_THREAD, LITTLE_ENDIAN, LONG, buffer, definition, event};
use crate::error::{Error, Place};
use lockstep_writer::{Builder, FunctionNumber, Named, ProcessFacts};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of all texts and definitions.
const MOST_DEFINITIONS: u64 = 1 << 28;
/// Bytes of one record.
const MOST_RECORD: u64 = 1 << 22;
/// Bytes of a text in the anchor.
const MOST_TEXT: usize = 1 << 16;
/// Chunks may be as large.
const MOST_CHUNK: u64 = 1 << 32;
const NAME: [u8; 5] = *b"OTF2\0";
const MAJOR: u8 = 3;
const NO_COMPRESSION: u8 = 1;
/// Image of functions of which it is not known.
const UNKNOWN: &str = "imported";
/// Image of functions that a program calls in libraries.
const LIBRARY: &str = "library";

/// Reads the archive with the anchor `path`, or the one in the directory `path`.
pub(crate) fn read(path: &Path, run: &mut Builder) -> Result<Vec<String>, Error> {
    let path = if path.is_dir() {
        path.join("traces.otf2")
    } else {
        path.to_owned()
    };
    let sizes = read_anchor(&path)?;
    let mut definitions = Definitions::read(&path.with_extension("def"), sizes.definitions)?;
    definitions.has_images = sizes.is_ours;
    run.set_epoch(definitions.offset);
    let directory = path.with_extension("");
    let mut notes = Notes::default();

    // Threads by process, both in the order of their ids.
    let mut processes: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (location, (_, kind, group)) in &definitions.locations {
        if *kind == CPU_THREAD {
            processes.entry(*group).or_default().push(*location);
        } else {
            notes.locations += 1;
        }
    }
    let mut functions: FxHashMap<u64, FunctionNumber> = FxHashMap::default();
    let mut ranks = Vec::new();
    for (place, (group, locations)) in processes.iter().enumerate() {
        let name = definitions
            .groups
            .get(group)
            .map_or("", |name| definitions.text(*name));
        let rank = rank_of(name).filter(|rank| !ranks.contains(rank));
        ranks.extend(rank);
        let process = run.process(ProcessFacts {
            program: definitions.program(),
            pid: u32::try_from(place).unwrap_or(u32::MAX - 1) + 1,
            rank,
            ..ProcessFacts::default()
        })?;
        for (number, location) in locations.iter().enumerate() {
            let own = directory.join(format!("{location}.def"));
            check_own(&own, sizes.definitions)?;
            let tid = u32::try_from(place + 1 + number).unwrap_or(u32::MAX);
            run.begin(process, tid)?;
            let events = directory.join(format!("{location}.evt"));
            let mut reader = Reader::open(&events, sizes.events)?;
            definitions.read_events(&mut reader, &mut functions, run, &mut notes)?;
            run.end()?;
        }
    }
    Ok(notes.sentences())
}

#[derive(Debug, Default)]
struct Notes {
    locations: u64,
    others: u64,
}

impl Notes {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.others > 0 {
            let others = self.others;
            sentences.push(format!(
                "{others} events that are neither enter nor leave were left out"
            ));
        }
        if self.locations > 0 {
            let locations = self.locations;
            sentences.push(format!(
                "{locations} locations that are no threads were left out"
            ));
        }
        sentences
    }
}

/// `MPI Rank 5` is rank 5.
fn rank_of(name: &str) -> Option<u32> {
    let (words, number) = name.rsplit_once(' ')?;
    words.to_ascii_lowercase().ends_with("rank").then_some(())?;
    number.parse().ok()
}

/// What the anchor tells: sizes of chunks, and whether we wrote the archive (then a region's description is its image).
struct Sizes {
    events: u64,
    definitions: u64,
    is_ours: bool,
}

fn read_anchor(path: &Path) -> Result<Sizes, Error> {
    let mut reader = Reader::open(path, MOST_CHUNK)?;
    let head: [u8; 7] = reader.take()?;
    if head[0] != buffer::CHUNK || head[2..] != NAME {
        return Err(reader.wrong(0, "the anchor of an OTF2 archive", format!("{head:02x?}")));
    }
    if head[1] != LITTLE_ENDIAN {
        return Err(reader.wrong(
            1,
            "a little-endian archive",
            format!("byte order {:#04x}", head[1]),
        ));
    }
    let version: [u8; 5] = reader.take()?;
    if version[2] > MAJOR {
        return Err(reader.wrong(9, "version 3 at most", format!("version {}", version[2])));
    }
    let events = u64::from_le_bytes(reader.take()?);
    let definitions = u64::from_le_bytes(reader.take()?);
    for (at, size) in [(12, events), (20, definitions)] {
        if !(64..=MOST_CHUNK).contains(&size) {
            return Err(reader.wrong(
                at,
                &format!("chunks of 64 to {MOST_CHUNK} bytes"),
                format!("{size}"),
            ));
        }
    }
    let [_, compression] = reader.take()?;
    if compression != NO_COMPRESSION {
        return Err(reader.wrong(
            29,
            "an archive without compression (1)",
            format!("{compression}"),
        ));
    }
    // Numbers of locations and definitions; the machine's name; who wrote it.
    reader.skip(16)?;
    reader.text()?;
    let creator = reader.text()?;
    Ok(Sizes {
        events,
        definitions,
        is_ours: creator.starts_with(b"lockstep "),
    })
}

/// Ids of a location's own would have to be translated.
fn check_own(path: &Path, chunk: u64) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let mut reader = Reader::open(path, chunk)?;
    match reader.kind()? {
        None => Ok(()),
        Some(kind) => Err(reader.wrong(
            reader.at - 1,
            "ids that mean the same in all locations",
            format!("definitions of this location's own (type {kind}), which this version does not translate"),
        )),
    }
}

/// A file of chunks.
pub(super) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the next byte lies; where the file ends.
    pub at: u64,
    length: u64,
    chunk: u64,
}

impl Reader {
    pub fn open(path: &Path, chunk: u64) -> Result<Self, Error> {
        let failed = |error| Error::read(path, error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 16, file),
            at: 0,
            length,
            chunk,
        })
    }

    fn wrong(&self, at: u64, expected: &str, found: impl Into<String>) -> Error {
        Error::wrong(&self.path, Place::Byte(at), expected, found)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let left = self.length.saturating_sub(self.at);
        if left < bytes.len() as u64 {
            return Err(self.wrong(
                self.at,
                &format!("{} bytes", bytes.len()),
                format!("{left}"),
            ));
        }
        let read = self.file.read_exact(bytes);
        read.map_err(|error| Error::read(&self.path, error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        let left = self.length.saturating_sub(self.at);
        if left < bytes {
            return Err(self.wrong(self.at, &format!("{bytes} bytes"), format!("{left}")));
        }
        let offset = i64::try_from(bytes).unwrap_or(i64::MAX);
        let moved = self.file.seek_relative(offset);
        moved.map_err(|error| Error::read(&self.path, error))?;
        self.at += bytes;
        Ok(())
    }

    /// The type of the next record; `None` at the end.
    pub fn kind(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let at = self.at;
            if at >= self.length {
                return Err(self.wrong(at, "the end of the archive's file (1)", "no more bytes"));
            }
            let is_beginning = at.is_multiple_of(self.chunk);
            let kind = self.byte()?;
            match kind {
                buffer::CHUNK if is_beginning => {
                    let order = self.byte()?;
                    if order != LITTLE_ENDIAN {
                        return Err(self.wrong(
                            at + 1,
                            "a little-endian chunk",
                            format!("{order:#04x}"),
                        ));
                    }
                    self.skip(16)?;
                }
                _ if is_beginning => {
                    return Err(self.wrong(at, "a chunk (3)", kind.to_string()));
                }
                buffer::PADDING => {
                    let rest = self.at.next_multiple_of(self.chunk) - self.at;
                    self.skip(rest)?;
                }
                buffer::END_OF_CHUNK => {}
                buffer::END_OF_FILE => return Ok(None),
                kind => return Ok(Some(kind)),
            }
        }
    }

    /// A text of the anchor.
    fn text(&mut self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(text),
                _ if text.len() == MOST_TEXT => {
                    return Err(self.wrong(
                        self.at - 1,
                        &format!("a text of at most {MOST_TEXT} bytes"),
                        "a longer one",
                    ));
                }
                byte => text.push(byte),
            }
        }
    }

    /// The length of a record.
    pub fn record_length(&mut self) -> Result<u64, Error> {
        let length = self.byte()?;
        if length == LONG {
            self.take().map(u64::from_le_bytes)
        } else {
            Ok(length.into())
        }
    }

    pub fn number(&mut self) -> Result<Option<u64>, Error> {
        let length = self.byte()?;
        if length == super::UNDEFINED {
            return Ok(None);
        }
        if length > 8 {
            return Err(self.wrong(
                self.at - 1,
                "a number of at most 8 bytes",
                format!("{length}"),
            ));
        }
        let mut bytes = [0; 8];
        self.fill(&mut bytes[..length as usize])?;
        Ok(Some(u64::from_le_bytes(bytes)))
    }
}

/// A record in memory.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// Undefined is all ones.
    fn number(&mut self) -> Option<u64> {
        let length = self.byte()?;
        if length == super::UNDEFINED {
            return Some(u64::MAX);
        }
        let mut bytes = [0; 8];
        let (number, rest) = self.0.split_at_checked(length.into())?;
        bytes.get_mut(..number.len())?.copy_from_slice(number);
        self.0 = rest;
        Some(u64::from_le_bytes(bytes))
    }
}

struct Region {
    name: u64,
    /// Its canonical name.
    linkage: u64,
    description: u64,
    file: u64,
    line: u64,
}

#[derive(Default)]
struct Definitions {
    /// Ticks a second, and the earliest time.
    resolution: u64,
    offset: u64,
    strings: FxHashMap<u64, String>,
    /// Names.
    groups: BTreeMap<u64, u64>,
    /// Name, kind, group.
    locations: BTreeMap<u64, (u64, u8, u64)>,
    regions: BTreeMap<u64, Region>,
    /// A region's description is its image.
    has_images: bool,
}

impl Definitions {
    fn read(path: &Path, chunk: u64) -> Result<Self, Error> {
        let mut reader = Reader::open(path, chunk)?;
        let mut all = Self {
            resolution: 1_000_000_000,
            ..Self::default()
        };
        let mut bytes = 0;
        while let Some(kind) = reader.kind()? {
            let at = reader.at;
            let length = reader.record_length()?;
            bytes = length.saturating_add(bytes);
            if length > MOST_RECORD || bytes > MOST_DEFINITIONS {
                let expected = format!(
                    "records of at most {MOST_RECORD} bytes, and {MOST_DEFINITIONS} in all"
                );
                return Err(reader.wrong(at, &expected, "more"));
            }
            let at = reader.at;
            if reader.length.saturating_sub(at) < length {
                return Err(reader.wrong(at, &format!("{length} bytes"), "the end of the file"));
            }
            let mut record = vec![0; length as usize];
            reader.fill(&mut record)?;
            if all.add(kind, &mut Fields(&record)).is_none() {
                let expected = format!("a definition of type {kind}");
                return Err(reader.wrong(at, &expected, "other fields"));
            }
        }
        Ok(all)
    }

    /// `None` where the fields are not what they should be.
    fn add(&mut self, kind: u8, fields: &mut Fields<'_>) -> Option<()> {
        match kind {
            definition::CLOCK => {
                self.resolution = fields.number().filter(|ticks| *ticks > 0)?;
                self.offset = fields.number()?;
                // In nanoseconds, as all times here.
                self.offset = nanoseconds(self.offset, self.resolution);
            }
            definition::STRING => {
                let number = fields.number()?;
                let text = fields.0.split(|byte| *byte == 0).next()?;
                let text = String::from_utf8_lossy(text).into_owned();
                self.strings.insert(number, text);
            }
            definition::GROUP => {
                let (number, name) = (fields.number()?, fields.number()?);
                self.groups.insert(number, name);
            }
            definition::LOCATION => {
                let (number, name) = (fields.number()?, fields.number()?);
                let kind = fields.byte()?;
                let (_, group) = (fields.number()?, fields.number()?);
                self.locations.insert(number, (name, kind, group));
            }
            definition::REGION => {
                let (number, name) = (fields.number()?, fields.number()?);
                let (description, _) = (fields.number()?, fields.byte()?);
                let (file, line) = (fields.number()?, fields.number()?);
                let (_, linkage) = (fields.number()?, fields.number()?);
                let region = Region {
                    name,
                    linkage,
                    description,
                    file,
                    line,
                };
                self.regions.insert(number, region);
            }
            _ => {}
        }
        Some(())
    }

    fn text(&self, number: u64) -> &str {
        self.strings.get(&number).map_or("", String::as_str)
    }

    /// The image of a region.
    fn image(&self, region: &Region) -> &str {
        match self.text(region.description) {
            image if self.has_images && !image.is_empty() => image,
            _ => UNKNOWN,
        }
    }

    /// The image of the first region that is no library's.
    fn program(&self) -> String {
        let mut images = self.regions.values().map(|region| self.image(region));
        images
            .find(|image| *image != LIBRARY)
            .unwrap_or(UNKNOWN)
            .to_owned()
    }

    fn read_events(
        &self,
        reader: &mut Reader,
        functions: &mut FxHashMap<u64, FunctionNumber>,
        run: &mut Builder,
        notes: &mut Notes,
    ) -> Result<(), Error> {
        let mut time = None;
        while let Some(kind) = reader.kind()? {
            match kind {
                buffer::TIME => {
                    let ticks = u64::from_le_bytes(reader.take()?);
                    time = Some(nanoseconds(ticks, self.resolution));
                }
                event::ENTER => {
                    let at = reader.at;
                    let region = reader.number()?.unwrap_or(u64::MAX);
                    let function = match functions.get(&region) {
                        Some(known) => *known,
                        None => {
                            let Some(defined) = self.regions.get(&region) else {
                                let expected = "a region that is defined";
                                return Err(reader.wrong(at, expected, format!("{region}")));
                            };
                            let function = self.function(defined, run)?;
                            functions.insert(region, function);
                            function
                        }
                    };
                    run.call(function, time)?;
                }
                event::LEAVE => {
                    reader.number()?;
                    run.ret(time)?;
                }
                _ => {
                    let length = reader.record_length()?;
                    reader.skip(length)?;
                    // A list of attributes belongs to the event behind it.
                    notes.others += u64::from(kind != ATTRIBUTES);
                }
            }
        }
        Ok(())
    }

    /// The name of a region in a symbol table: its canonical name where we wrote it, or where it is a mangled one, as
    /// other measurement systems write them; a demangled name says less, and cannot be told from one that was cut.
    fn linkage(&self, region: &Region) -> &str {
        let linkage = self.text(region.linkage);
        let is_one = self.has_images || linkage.starts_with("_Z") || linkage.starts_with("_R");
        if is_one && !linkage.is_empty() {
            linkage
        } else {
            self.text(region.name)
        }
    }

    fn function(&self, region: &Region, run: &mut Builder) -> Result<FunctionNumber, Error> {
        let name = self.linkage(region);
        let file = self.text(region.file);
        let line = u32::try_from(region.line).unwrap_or(0);
        let number = run.function(&Named {
            image: self.image(region),
            name: if name.is_empty() { "?" } else { name },
            imported: self.image(region) == LIBRARY,
            source: (!file.is_empty() && line > 0).then_some((file, line)),
        })?;
        Ok(number)
    }
}

/// Stands before the event that it belongs to.
const ATTRIBUTES: u8 = 6;

fn nanoseconds(ticks: u64, resolution: u64) -> u64 {
    let whole = u128::from(ticks) * 1_000_000_000 / u128::from(resolution.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}
