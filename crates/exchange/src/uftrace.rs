//! A data directory of uftrace.
//!
//! ```text
//! info         "Ftrace!\0", version, header size, byte order, word size, features; then lines of text
//! task.txt     which threads there were, of which processes, running which programs (sessions)
//! sid-*.map    where a session's images were loaded, as in /proc/PID/maps
//! *.sym        symbols of an image, by address in it; kind P is a library function that it calls
//! TID.dat      records of 16 bytes: time, then kind (2 bits), more (1), magic 5 (3), depth (10), address (48)
//! ```
//! Depths close calls whose exits are missing (exceptions, `longjmp`, lost records). Kernel and perf events are left
//! out. Arguments (`-A`, `-R`, `-a`) are of sizes that stand elsewhere: such records are refused.

mod symbols;

use crate::error::{Error, Place};
use crate::lines::Lines;
use lockstep_writer::{Builder, FunctionNumber, Named, ProcessFacts};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use symbols::{Session, Symbols};

const MAGIC: [u8; 8] = *b"Ftrace!\0";
const VERSION: u32 = 4;
const LITTLE_ENDIAN: u8 = 1;
const WORDS_OF_64_BITS: u8 = 2;
/// Symbols are told by their address in the image.
const RELATIVE: u64 = 1 << 5;
/// Symbols have a size.
const SIZES: u64 = 1 << 12;
const RECORD: u64 = 16;

/// Bits of a record's second word.
mod record {
    pub const KINDS: u64 = 3;
    pub const ENTRY: u64 = 0;
    pub const EXIT: u64 = 1;
    pub const LOST: u64 = 2;
    pub const MORE: u64 = 1 << 2;
    pub const MAGIC_AT: u32 = 3;
    pub const MAGIC: u64 = 5;
    pub const DEPTH_AT: u32 = 6;
    pub const ADDRESS_AT: u32 = 16;
}

/// Reads the directory `path`.
pub(crate) fn read(path: &Path, run: &mut Builder) -> Result<Vec<String>, Error> {
    let info = read_info(&path.join("info"))?;
    let tasks = Tasks::read(path)?;
    let mut symbols = Symbols::read(path, info.features & SIZES != 0)?;
    let sessions = tasks.load_sessions(path, &symbols)?;
    let mut first = u64::MAX;
    for tid in tasks.threads.values().flatten() {
        if let Some(mut records) = Records::open(path, *tid)? {
            first = first.min(records.next()?.map_or(u64::MAX, |record| record.time));
        }
    }
    run.set_epoch(if first == u64::MAX { 0 } else { first });

    let mut notes = Notes::default();
    for (number, pid) in tasks.order.iter().enumerate() {
        let own = tasks.sessions_of(*pid);
        let program = own.first().and_then(|(_, sid)| tasks.programs.get(*sid));
        let program = program.map_or(info.program.as_str(), String::as_str);
        let process = run.process(ProcessFacts {
            host: info.host.clone(),
            program: program.to_owned(),
            pid: *pid,
            status: info.status.filter(|_| number == 0),
            ..ProcessFacts::default()
        })?;
        let own: Vec<(u64, Option<&Session>)> = own
            .iter()
            .map(|(time, sid)| (*time, sessions.get(*sid)))
            .collect();
        for tid in tasks.threads.get(pid).into_iter().flatten() {
            let Some(records) = Records::open(path, *tid)? else {
                continue;
            };
            run.begin(process, *tid)?;
            let mut thread = Thread {
                sessions: &own,
                program,
                known: FxHashMap::default(),
                depths: Vec::new(),
            };
            thread.read(records, &mut symbols, run, &mut notes)?;
            run.end()?;
        }
    }
    Ok(notes.sentences())
}

#[derive(Debug, Default)]
struct Notes {
    lost: u64,
    unknown: u64,
    events: u64,
}

impl Notes {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                sentences.push(format!("{count} {what}"));
            }
        };
        say(self.lost, "records were lost when uftrace recorded");
        say(self.unknown, "calls are of addresses without a name");
        say(
            self.events,
            "records are of the kernel or of events, and left out",
        );
        sentences
    }
}

struct Info {
    features: u64,
    program: String,
    host: String,
    status: Option<u32>,
}

fn read_info(path: &Path) -> Result<Info, Error> {
    let mut file = File::open(path).map_err(|error| Error::read(path, error))?;
    let mut head = [0; 40];
    let wrong = |at, expected: &str, found: String| {
        Err(Error::wrong(path, Place::Byte(at), expected, found))
    };
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::read(path, error)),
        }
    }
    if head[..8] != MAGIC {
        let found = String::from_utf8_lossy(&head[..length.min(8)]);
        return wrong(
            0,
            "a data directory of uftrace (Ftrace!)",
            format!("{found:?}"),
        );
    }
    if length < head.len() {
        return wrong(
            length as u64,
            "a header of 40 bytes",
            "the end of the file".to_owned(),
        );
    }
    let word = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&head[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    if word(8) != VERSION {
        return wrong(8, "version 4", format!("version {}", word(8)));
    }
    if head[14] != LITTLE_ENDIAN || head[15] != WORDS_OF_64_BITS {
        let found = format!("kinds {} and {}", head[14], head[15]);
        return wrong(14, "a little-endian machine of 64 bits (1 and 2)", found);
    }
    let features = u64::from(word(16)) | u64::from(word(20)) << 32;
    if features & RELATIVE == 0 {
        return wrong(
            16,
            "symbols by their address in the image (uftrace 0.9.1 or later)",
            format!("features {features:#x}"),
        );
    }
    let size = u64::from(head[12]) | u64::from(head[13]) << 8;
    let mut info = Info {
        features,
        program: "imported".to_owned(),
        host: String::new(),
        status: None,
    };
    let mut lines = Lines::open(path)?;
    lines.skip(size)?;
    while let Some(line) = lines.next()? {
        if let Some(program) = line.strip_prefix("exename:") {
            info.program = program.to_owned();
        } else if let Some(host) = line.strip_prefix("osinfo:hostname=") {
            info.host = host.to_owned();
        } else if let Some(status) = line.strip_prefix("exit_status:") {
            // As wait() tells it: the status, and in the low bits the signal.
            let status: Option<u32> = status.trim().parse().ok();
            info.status = status.filter(|it| it & 0x7f == 0).map(|it| it >> 8 & 0xff);
        }
    }
    Ok(info)
}

/// `task.txt`.
#[derive(Debug, Default)]
struct Tasks {
    /// Processes in the order in which they come up.
    order: Vec<u32>,
    /// By process.
    threads: BTreeMap<u32, Vec<u32>>,
    parents: BTreeMap<u32, u32>,
    /// By process: when it began which session.
    sessions: BTreeMap<u32, Vec<(u64, String)>>,
    /// By session.
    programs: BTreeMap<String, String>,
    /// Libraries that were loaded later: session, base, path.
    loaded: Vec<(String, u64, String)>,
}

impl Tasks {
    fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("task.txt");
        let mut lines = Lines::open(&path)?;
        let mut tasks = Self::default();
        while let Some(line) = lines.next()? {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let value = |key: &str| {
                rest.split(' ')
                    .find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
            };
            let number = |key: &str| value(key).and_then(|text| text.parse::<u32>().ok());
            let quoted = |key: &str| {
                let (_, text) = rest.split_once(&format!("{key}=\""))?;
                text.rsplit_once('"').map(|(text, _)| text.to_owned())
            };
            let understood = match word {
                "SESS" => (|| {
                    let (pid, sid) = (number("pid")?, value("sid")?.to_owned());
                    let time = nanoseconds(value("timestamp")?)?;
                    tasks.add_process(pid);
                    tasks.programs.insert(sid.clone(), quoted("exename")?);
                    tasks.sessions.entry(pid).or_default().push((time, sid));
                    Some(())
                })(),
                "TASK" => (|| {
                    let (pid, tid) = (number("pid")?, number("tid")?);
                    tasks.add_process(pid);
                    tasks.add_thread(pid, tid);
                    Some(())
                })(),
                "FORK" => (|| {
                    let (pid, parent) = (number("pid")?, number("ppid")?);
                    tasks.add_process(pid);
                    tasks.add_thread(pid, pid);
                    tasks.parents.insert(pid, parent);
                    Some(())
                })(),
                "DLOP" => (|| {
                    let base = u64::from_str_radix(value("base")?.trim_start_matches("0x"), 16);
                    let sid = value("sid")?.to_owned();
                    tasks.loaded.push((sid, base.ok()?, quoted("libname")?));
                    Some(())
                })(),
                _ => None,
            };
            if understood.is_none() {
                return Err(Error::wrong(
                    &path,
                    lines.place(),
                    "SESS, TASK, FORK or DLOP with their fields",
                    format!("{line:.80?}"),
                ));
            }
        }
        Ok(tasks)
    }

    fn add_process(&mut self, pid: u32) {
        if !self.threads.contains_key(&pid) {
            self.order.push(pid);
            self.threads.insert(pid, Vec::new());
        }
    }

    fn add_thread(&mut self, pid: u32, tid: u32) {
        let threads = self.threads.entry(pid).or_default();
        if !threads.contains(&tid) {
            threads.push(tid);
        }
    }

    /// The sessions of a process, those of its parents first.
    fn sessions_of(&self, pid: u32) -> Vec<(u64, &String)> {
        let mut line = vec![pid];
        while let Some(parent) = line.last().and_then(|pid| self.parents.get(pid)) {
            if line.contains(parent) {
                break;
            }
            line.push(*parent);
        }
        line.iter()
            .rev()
            .filter_map(|pid| self.sessions.get(pid))
            .flatten()
            .map(|(time, sid)| (*time, sid))
            .collect()
    }

    fn load_sessions(
        &self,
        path: &Path,
        symbols: &Symbols,
    ) -> Result<BTreeMap<String, Session>, Error> {
        let mut sessions = BTreeMap::new();
        for sid in self.programs.keys() {
            // A session's name becomes part of a path.
            if !sid.chars().all(|c| c.is_ascii_alphanumeric()) {
                let file = path.join("task.txt");
                return Err(Error::wrong(
                    &file,
                    Place::Whole,
                    "sid=HEXADECIMAL",
                    format!("{sid:.40?}"),
                ));
            }
            let mut session = Session::read(&path.join(format!("sid-{sid}.map")))?;
            for (_, base, library) in self.loaded.iter().filter(|(of, ..)| of == sid) {
                session.load(*base, library, symbols);
            }
            sessions.insert(sid.clone(), session);
        }
        Ok(sessions)
    }
}

/// `12.345678901` in nanoseconds.
fn nanoseconds(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = part.parse().ok().filter(|_| part.len() == 9)?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

struct Record {
    time: u64,
    kind: u64,
    depth: u64,
    address: u64,
}

/// The records of a thread.
struct Records {
    path: std::path::PathBuf,
    reader: BufReader<File>,
    /// Where the next record begins, and the file ends.
    at: u64,
    length: u64,
}

impl Records {
    /// `None` where nothing was recorded of the thread.
    fn open(directory: &Path, tid: u32) -> Result<Option<Self>, Error> {
        let path = directory.join(format!("{tid}.dat"));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(&path, error)),
        };
        let length = file
            .metadata()
            .map_err(|error| Error::read(&path, error))?
            .len();
        Ok(Some(Self {
            path,
            reader: BufReader::new(file),
            at: 0,
            length,
        }))
    }

    fn wrong(&self, at: u64, expected: &str, found: impl Into<String>) -> Error {
        Error::wrong(&self.path, Place::Byte(at), expected, found)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let left = self.length.saturating_sub(self.at);
        if left < N as u64 {
            return Err(self.wrong(self.at, &format!("{N} bytes"), format!("{left}")));
        }
        let mut bytes = [0; N];
        let read = self.reader.read_exact(&mut bytes);
        read.map_err(|error| Error::read(&self.path, error))?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// The next one; what follows an event is passed over.
    fn next(&mut self) -> Result<Option<Record>, Error> {
        if self.at >= self.length {
            return Ok(None);
        }
        let at = self.at;
        let left = self.length - at;
        if left < RECORD {
            return Err(self.wrong(at, "a record of 16 bytes", format!("{left} bytes")));
        }
        let time = u64::from_le_bytes(self.take()?);
        let word = u64::from_le_bytes(self.take()?);
        let magic = word >> record::MAGIC_AT & 7;
        if magic != record::MAGIC {
            return Err(self.wrong(at + 8, "a record with magic 5", format!("magic {magic}")));
        }
        let kind = word & record::KINDS;
        if word & record::MORE != 0 {
            if matches!(kind, record::ENTRY | record::EXIT) {
                let expected = "a record without arguments (uftrace record without -A, -R, -a)";
                return Err(self.wrong(at + 8, expected, "one with arguments"));
            }
            let length = u64::from(u16::from_le_bytes(self.take()?));
            let skipped = (2 + length).next_multiple_of(8) - 2;
            if self.length - self.at < skipped {
                let found = format!("{}", self.length - self.at);
                return Err(self.wrong(self.at, &format!("{skipped} bytes of an event"), found));
            }
            let offset = i64::try_from(skipped).unwrap_or(0);
            let moved = self.reader.seek_relative(offset);
            moved.map_err(|error| Error::read(&self.path, error))?;
            self.at += skipped;
        }
        Ok(Some(Record {
            time,
            kind,
            depth: word >> record::DEPTH_AT & 0x3ff,
            address: word >> record::ADDRESS_AT,
        }))
    }
}

struct Thread<'a> {
    /// When which session began.
    sessions: &'a [(u64, Option<&'a Session>)],
    program: &'a str,
    /// By session and address.
    known: FxHashMap<(usize, u64), FunctionNumber>,
    /// Depths of the open calls.
    depths: Vec<u64>,
}

impl Thread<'_> {
    fn read(
        &mut self,
        mut records: Records,
        symbols: &mut Symbols,
        run: &mut Builder,
        notes: &mut Notes,
    ) -> Result<(), Error> {
        while let Some(record) = records.next()? {
            let time = Some(record.time);
            match record.kind {
                record::ENTRY => {
                    while self.depths.pop_if(|open| *open >= record.depth).is_some() {
                        run.ret(time)?;
                    }
                    let function = self.function(&record, symbols, run, notes)?;
                    run.call(function, time)?;
                    self.depths.push(record.depth);
                }
                record::EXIT => {
                    while self.depths.pop_if(|open| *open > record.depth).is_some() {
                        run.ret(time)?;
                    }
                    // Without a call: one that the parent process made before it forked.
                    self.depths.pop_if(|open| *open == record.depth);
                    run.ret(time)?;
                }
                record::LOST => notes.lost = notes.lost.saturating_add(record.address.max(1)),
                _ => notes.events += 1,
            }
        }
        Ok(())
    }

    fn function(
        &mut self,
        record: &Record,
        symbols: &mut Symbols,
        run: &mut Builder,
        notes: &mut Notes,
    ) -> Result<FunctionNumber, Error> {
        let begun = self
            .sessions
            .partition_point(|(time, _)| *time <= record.time);
        let number = begun.saturating_sub(1);
        let key = (number, record.address);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let session = self.sessions.get(number).and_then(|(_, session)| *session);
        let place = session.and_then(|session| session.find(record.address));
        let function = match place {
            Some((image, offset)) => match symbols.find(image, offset) {
                Some(symbol) => run.function(&Named {
                    image,
                    name: &symbol.name,
                    imported: symbol.imported,
                    source: None,
                })?,
                None => {
                    notes.unknown += 1;
                    unnamed(run, image, offset)?
                }
            },
            None => {
                notes.unknown += 1;
                unnamed(run, self.program, record.address)?
            }
        };
        self.known.insert(key, function);
        Ok(function)
    }
}

fn unnamed(run: &mut Builder, image: &str, offset: u64) -> Result<FunctionNumber, Error> {
    Ok(run.function(&Named {
        image,
        name: &format!("+{offset:#x}"),
        imported: false,
        source: None,
    })?)
}
