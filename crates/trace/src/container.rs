//! A process file as bytes, taken apart: header, facts, threads and what their states claim.
//!
//! Pure: bytes in, values out. Nothing here trusts a byte; whatever does not hold becomes a
//! [`Finding`] and the rest is read. Sizes follow from the file's size, never from what it claims.

use lockstep_format::bytes::{array, u32_at, u64_at};
use lockstep_format::check;
use lockstep_format::codec::Kind;
use lockstep_format::process::{
    BYTE_ORDER, DATA_CHUNK, MAGIC, OLDEST, PAGE, VERSION, chunk, extent_end, header, kind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

mod facts;
mod gather;
mod residue;
mod side;
mod steps;
mod thread;

pub(crate) use facts::{Facts, ImageFact};
pub(crate) use residue::{Kept, Residue, residue};
pub(crate) use side::{HoldRow, Side, SideStream, Stamp};
pub(crate) use steps::{with_steps, without_steps};
pub(crate) use thread::{Control, ThreadFile};

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Offset in the file.
    pub at: u64,
    /// What was expected there and what was found.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.text)
    }
}

/// A process file.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    pub codec: Kind,
    pub pid: u32,
    /// Of its parent when the file was made.
    pub parent: u32,
    pub exec_count: u32,
    pub start_time: u64,
    pub created: u64,
    /// The monotonic clock then, where it is told.
    pub created_clock: u64,
    pub flags: u32,
    pub end_kind: u32,
    pub end_code: u32,
    /// Counters in the order of the file, without the zeros at the end.
    pub losses: Vec<u64>,
    /// Calls of functions that are not recorded, likewise.
    pub counters: Vec<u64>,
    pub facts: Facts,
    /// In the order of their first chunks.
    pub threads: Vec<ThreadFile>,
    pub findings: Vec<Finding>,
}

/// Takes a process file apart. `control` copies the control block of the thread chunk at an offset
/// (a live one may change while it is read).
///
/// # Errors
/// Where the header does not hold: then nothing in the file can be placed.
pub(crate) fn read(
    bytes: &[u8],
    control: impl Fn(usize) -> Option<Box<Control>>,
) -> Result<ProcessFile, Finding> {
    let number = |at| u32_at(bytes, at).unwrap_or(0);
    let long = |at| u64_at(bytes, at).unwrap_or(0);
    let codec = read_header(bytes)?;
    let mut file = ProcessFile {
        codec,
        pid: number(header::PID),
        parent: number(header::PARENT),
        exec_count: number(header::EXEC_COUNT),
        start_time: long(header::START_TIME),
        created: long(header::CREATED),
        created_clock: long(header::CREATED_CLOCK),
        flags: number(header::FLAGS),
        end_kind: number(header::END_KIND),
        end_code: number(header::END_CODE),
        losses: numbers(bytes, header::LOSSES, header::LOSS_COUNT),
        counters: numbers(bytes, header::COUNTERS, header::COUNTER_COUNT),
        facts: Facts::default(),
        threads: Vec::new(),
        findings: Vec::new(),
    };
    let chunks = walk(bytes, long(header::CLEARING), &mut file.findings);
    facts::read_facts(bytes, &chunks, &mut file);

    let mut data: BTreeMap<u32, Vec<&Chunk>> = BTreeMap::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == kind::DATA) {
        data.entry(chunk.thread).or_default().push(chunk);
    }
    let mut indices = BTreeSet::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == kind::THREAD) {
        if !indices.insert(chunk.thread) {
            file.findings.push(chunk.finding(format!(
                "a second thread chunk of thread {}, ignored",
                chunk.thread
            )));
            continue;
        }
        match control(chunk.at) {
            Some(control) => {
                let data = data.remove(&chunk.thread).unwrap_or_default();
                file.threads
                    .push(thread::read_thread(chunk, &data, &control));
            }
            None => file.findings.push(chunk.finding(format!(
                "expected a control block of {} bytes, found the end of the file",
                size_of::<Control>()
            ))),
        }
    }
    let mut sides: BTreeMap<(u32, u32), Vec<&Chunk>> = BTreeMap::new();
    for chunk in &chunks {
        if matches!(chunk.kind, kind::ARGUMENTS | kind::TIMES | kind::INFERRED) {
            let place = (chunk.thread, chunk.kind);
            sides.entry(place).or_default().push(chunk);
        }
    }
    for thread in &mut file.threads {
        let of = |kind| {
            sides
                .get(&(thread.index, kind))
                .map_or(&[][..], Vec::as_slice)
        };
        let findings = &mut thread.findings;
        // Of a segment they were read already.
        if thread.side.times.pieces.is_empty() {
            thread.side.times = side::read(bytes, of(kind::TIMES), findings);
        }
        if !thread.side.is_in_segment {
            thread.side.arguments = side::read(bytes, of(kind::ARGUMENTS), findings);
            thread.side.inferred = side::read(bytes, of(kind::INFERRED), findings);
        }
    }
    file.threads = thread::join_segments(std::mem::take(&mut file.threads));
    for (index, chunks) in data {
        if let Some(first) = chunks.first() {
            file.findings.push(first.finding(format!(
                "{} data chunks of thread {index}, which has no thread chunk: its events are lost",
                chunks.len()
            )));
        }
    }
    Ok(file)
}

/// `count` numbers of 8 bytes from `start` on, without the zeros at their end.
fn numbers(bytes: &[u8], start: usize, count: usize) -> Vec<u64> {
    let number = |index: usize| u64_at(bytes, start + 8 * index).unwrap_or(0);
    let length = (0..count).rposition(|index| number(index) != 0);
    (0..length.map_or(0, |last| last + 1)).map(number).collect()
}

fn read_header(bytes: &[u8]) -> Result<Kind, Finding> {
    let finding = |at: usize, text: String| Finding {
        at: at as u64,
        text,
    };
    let magic = array::<8>(bytes, header::MAGIC);
    if magic != Some(MAGIC) {
        let found = match magic {
            None if bytes.is_empty() => {
                "0 bytes: there was no room to begin (disk full, quota, file size limit, --max-size)".to_owned()
            }
            None => format!("{} bytes", bytes.len()),
            Some([0, 0, 0, 0, 0, 0, 0, 0]) => "zeros: the process never began to record".to_owned(),
            Some(other) => format!("{:?}", String::from_utf8_lossy(&other)),
        };
        return Err(finding(
            header::MAGIC,
            format!("expected the header of a process file, found {found}"),
        ));
    }
    let number = |at, expected: &str| {
        u32_at(bytes, at).ok_or_else(|| {
            finding(
                at,
                format!("expected {expected}, found the end of the file"),
            )
        })
    };
    let order = number(header::BYTE_ORDER, "a byte order")?;
    if order == BYTE_ORDER.swap_bytes() {
        return Err(finding(
            header::BYTE_ORDER,
            "expected little endian, found a file of the other byte order".to_owned(),
        ));
    }
    let version = number(header::VERSION, "a version")?;
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(finding(
            header::VERSION,
            format!(
                "expected a process file of version {OLDEST} to {VERSION}, found version {version}"
            ),
        ));
    }
    let claimed = number(header::CHECK, "a check")?;
    let found = check::crc32c(bytes.get(..header::CHECK).unwrap_or(&[]));
    if claimed != found {
        return Err(finding(
            header::CHECK,
            format!("expected a header with check {claimed:08x}, found one with {found:08x}"),
        ));
    }
    let codec = number(header::CODEC, "a codec")?;
    Kind::from_number(codec)
        .ok_or_else(|| finding(header::CODEC, format!("expected a codec, found {codec}")))
}

/// A chunk whose header holds.
#[derive(Debug)]
struct Chunk {
    at: usize,
    kind: u32,
    thread: u32,
    sequence: u32,
    used: u32,
    payload_check: u32,
    /// Its payload, as much as the file has.
    payload: Range<usize>,
}

impl Chunk {
    fn finding(&self, text: String) -> Finding {
        Finding {
            at: self.at as u64,
            text,
        }
    }
}

/// Every chunk, by looking at every page that no chunk covers. Pages of zeros are the unused end of
/// an extent, or were taken by a thread that was killed before it wrote the chunk's header. The slot at
/// `clearing` was becoming zeros.
fn walk(bytes: &[u8], clearing: u64, findings: &mut Vec<Finding>) -> Vec<Chunk> {
    /// More than this many pages that are nothing are one more note, not thousands.
    const REPORTED: usize = 16;
    let page = PAGE as usize;
    let mut chunks = Vec::new();
    let mut wrong = 0;
    let mut at = page;
    while at + chunk::SIZE <= bytes.len() {
        if clearing == at as u64 {
            at += DATA_CHUNK as usize;
            continue;
        }
        match read_chunk(bytes, at) {
            Ok(Some((chunk, length))) => {
                if at + length > bytes.len() {
                    findings.push(chunk.finding(format!(
                        "expected a chunk of {length} bytes, found {} to the end of the file",
                        bytes.len() - at
                    )));
                }
                chunks.push(chunk);
                at += length;
            }
            Ok(None) => at += page,
            Err(text) => {
                wrong += 1;
                if wrong <= REPORTED {
                    findings.push(Finding {
                        at: at as u64,
                        text,
                    });
                }
                at += page;
            }
        }
    }
    if wrong > REPORTED {
        findings.push(Finding {
            at: page as u64,
            text: format!("{} more pages that are no chunks", wrong - REPORTED),
        });
    }
    chunks
}

/// The chunk at `at` and its length; `None` where there are only zeros.
fn read_chunk(bytes: &[u8], at: usize) -> Result<Option<(Chunk, usize)>, String> {
    let bytes_here = bytes.get(at..at + chunk::SIZE).unwrap_or(&[]);
    if bytes_here.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let number = |offset| u32_at(bytes_here, offset).unwrap_or(0);
    let found = number(chunk::MAGIC);
    if found != chunk::MAGIC_VALUE {
        return Err(format!(
            "expected a chunk or zeros, found magic {found:08x}"
        ));
    }
    let claimed = number(chunk::CHECK);
    let found = check::crc32c(bytes_here.get(..chunk::CHECK).unwrap_or(&[]));
    if claimed != found {
        return Err(format!(
            "expected a chunk header with check {claimed:08x}, found one with {found:08x}"
        ));
    }
    let length = number(chunk::LENGTH);
    let room = extent_end(at as u64) - at as u64;
    if length == 0 || !u64::from(length).is_multiple_of(PAGE) || u64::from(length) > room {
        return Err(format!(
            "expected a chunk of whole pages within its extent of {room} bytes, found {length} bytes"
        ));
    }
    let length = length as usize;
    let chunk = Chunk {
        at,
        kind: number(chunk::KIND),
        thread: number(chunk::THREAD),
        sequence: number(chunk::SEQUENCE),
        used: number(chunk::USED),
        payload_check: number(chunk::PAYLOAD_CHECK),
        payload: at + chunk::SIZE..bytes.len().min(at + length),
    };
    // A kind that is not known is a later version's, which can be left out.
    Ok(Some((chunk, length)))
}
