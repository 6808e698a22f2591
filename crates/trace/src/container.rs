//! A process file as bytes, taken apart: header, facts, threads and what their states claim.
//!
//! Pure: bytes in, values out. Nothing here trusts a byte; whatever does not hold becomes a
//! [`Finding`] and the rest is read. Sizes follow from the file's size, never from what it claims.

use lockstep_format::bytes::{array, u32_at, u64_at};
use lockstep_format::check;
use lockstep_format::codec::Kind;
use lockstep_format::process::{
    BYTE_ORDER, MAGIC, PAGE, VERSION, chunk, extent_end, header, kind, state, thread,
};
use lockstep_format::symbol;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

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

/// The bytes of a thread chunk in front of its data, copied at one moment.
pub(crate) type Control = [u8; thread::DATA];

/// A process file.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    pub codec: Kind,
    pub pid: u32,
    pub exec_count: u32,
    pub start_time: u64,
    pub created: u64,
    pub flags: u32,
    pub end_kind: u32,
    pub end_code: u32,
    /// Counters in the order of the file.
    pub losses: Vec<u64>,
    pub facts: Facts,
    /// In the order of their first chunks.
    pub threads: Vec<ThreadFile>,
    pub findings: Vec<Finding>,
}

/// One thread of it, as far as its chunks and its state tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadFile {
    pub tid: u32,
    pub started: u64,
    /// Number of calls at the stream's start that were open when a forked child began.
    pub inherited: u32,
    /// Where the committed bytes of the stream lie, in order.
    pub pieces: Vec<Range<usize>>,
    /// What decodes to the committed events together with the pieces; empty where bytes are missing.
    pub tail: Vec<u8>,
    /// Number of committed events, as the state claims.
    pub events: u64,
    /// CRC-32C of the pieces, as the state claims; `None` where bytes are missing.
    pub check: Option<u32>,
    /// Symbols of the live staging area.
    pub staged: Vec<u32>,
    /// Return addresses of open calls, by depth modulo their number.
    pub mirror: Vec<u64>,
    /// Whether the thread was inside a commit: read as committed, without the staging area.
    pub is_committing: bool,
    /// What is wrong with this thread.
    pub findings: Vec<Finding>,
}

impl ThreadFile {
    /// Bytes of the stream, with what ends it.
    pub fn bytes(&self) -> u64 {
        let pieces: usize = self.pieces.iter().map(Range::len).sum();
        (pieces + self.tail.len()) as u64
    }
}

/// Lines of the facts chunks, by what they tell. Text that is not UTF-8 is shown with replacements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub host: Option<String>,
    pub program: Option<String>,
    pub environment: Vec<(String, String)>,
    pub images: Vec<ImageFact>,
    pub untraced: Vec<(String, String)>,
}

/// An image that has a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageFact {
    pub path: String,
    pub plan: String,
    pub role: String,
    pub first: u32,
    pub count: u32,
    pub bias: u64,
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
        exec_count: number(header::EXEC_COUNT),
        start_time: long(header::START_TIME),
        created: long(header::CREATED),
        flags: number(header::FLAGS),
        end_kind: number(header::END_KIND),
        end_code: number(header::END_CODE),
        losses: (0..header::LOSS_COUNT)
            .map(|index| long(header::LOSSES + 8 * index))
            .collect(),
        facts: Facts::default(),
        threads: Vec::new(),
        findings: Vec::new(),
    };
    let chunks = walk(bytes, &mut file.findings);
    read_facts(bytes, &chunks, &mut file);

    let mut data: BTreeMap<u32, Vec<&Chunk>> = BTreeMap::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == kind::DATA) {
        data.entry(chunk.thread).or_default().push(chunk);
    }
    let mut indices = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.kind == kind::THREAD) {
        if indices.contains(&chunk.thread) {
            file.findings.push(chunk.finding(format!(
                "a second thread chunk of thread {}, ignored",
                chunk.thread
            )));
            continue;
        }
        indices.push(chunk.thread);
        match control(chunk.at) {
            Some(control) => {
                let data = data.remove(&chunk.thread).unwrap_or_default();
                file.threads
                    .push(read_thread(bytes, chunk, &data, &control));
            }
            None => file.findings.push(chunk.finding(format!(
                "expected a control block of {} bytes, found the end of the file",
                thread::DATA
            ))),
        }
    }
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

fn read_header(bytes: &[u8]) -> Result<Kind, Finding> {
    let finding = |at: usize, text: String| Finding {
        at: at as u64,
        text,
    };
    let magic = array::<8>(bytes, header::MAGIC);
    if magic != Some(MAGIC) {
        let found = match magic {
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
    if version != VERSION {
        return Err(finding(
            header::VERSION,
            format!("expected a process file of version {VERSION}, found version {version}"),
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
/// an extent, or were taken by a thread that was killed before it wrote the chunk's header.
fn walk(bytes: &[u8], findings: &mut Vec<Finding>) -> Vec<Chunk> {
    /// More than this many pages that are nothing are one more note, not thousands.
    const REPORTED: usize = 16;
    let page = PAGE as usize;
    let mut chunks = Vec::new();
    let mut wrong = 0;
    let mut at = page;
    while at + chunk::SIZE <= bytes.len() {
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
    if !matches!(chunk.kind, kind::FACTS | kind::THREAD | kind::DATA) {
        return Err(format!(
            "expected a chunk of kind {} to {}, found kind {}",
            kind::FACTS,
            kind::DATA,
            chunk.kind
        ));
    }
    Ok(Some((chunk, length)))
}

fn read_facts(bytes: &[u8], chunks: &[Chunk], file: &mut ProcessFile) {
    let mut sorted: Vec<&Chunk> = chunks
        .iter()
        .filter(|chunk| chunk.kind == kind::FACTS)
        .collect();
    sorted.sort_by_key(|chunk| chunk.sequence);
    for (expected, chunk) in sorted.iter().enumerate() {
        if chunk.sequence as usize != expected {
            file.findings.push(chunk.finding(format!(
                "expected facts chunk {expected}, found {}",
                chunk.sequence
            )));
        }
        let text = bytes
            .get(chunk.payload.clone())
            .and_then(|payload| payload.get(..chunk.used as usize));
        match text {
            Some(text) if check::crc32c(text) == chunk.payload_check => {
                file.facts.read(text, chunk.at, &mut file.findings);
            }
            Some(text) => file.findings.push(chunk.finding(format!(
                "expected facts with check {:08x}, found {:08x}",
                chunk.payload_check,
                check::crc32c(text)
            ))),
            None => file.findings.push(chunk.finding(format!(
                "expected {} bytes of facts, found {}",
                chunk.used,
                chunk.payload.len()
            ))),
        }
    }
    if sorted.is_empty() {
        file.findings.push(Finding {
            at: PAGE,
            text: "expected facts about the process, found none".to_owned(),
        });
    }
}

impl Facts {
    fn read(&mut self, text: &[u8], at: usize, findings: &mut Vec<Finding>) {
        use lockstep_format::process::fact;
        for line in text.split(|byte| *byte == b'\n') {
            let fields: Vec<String> = line.split(|byte| *byte == b'\t').map(unescape).collect();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            match fields[..] {
                [fact::HOST, host] => self.host = Some(host.to_owned()),
                [fact::PROGRAM, path] => self.program = Some(path.to_owned()),
                [fact::ENVIRONMENT, name, value] => {
                    self.environment.push((name.to_owned(), value.to_owned()));
                }
                [fact::UNTRACED, path, reason] => {
                    self.untraced.push((path.to_owned(), reason.to_owned()));
                }
                [fact::IMAGE, path, plan, role, first, count, bias] => {
                    let bias = bias.strip_prefix("0x").unwrap_or(bias);
                    let numbers = (first.parse(), count.parse(), u64::from_str_radix(bias, 16));
                    if let (Ok(first), Ok(count), Ok(bias)) = numbers {
                        self.images.push(ImageFact {
                            path: path.to_owned(),
                            plan: plan.to_owned(),
                            role: role.to_owned(),
                            first,
                            count,
                            bias,
                        });
                    } else {
                        findings.push(Finding {
                            at: at as u64,
                            text: format!(
                                "expected first, count and bias of image {path}, found {fields:?}"
                            ),
                        });
                    }
                }
                // What a later version adds is no damage.
                _ => {}
            }
        }
    }
}

fn unescape(field: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(other) => *other,
                None => b'\\',
            },
            byte => *byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a thread's state says is decodable.
struct State {
    bytes: u64,
    events: u64,
    check: u32,
    tail: Vec<u8>,
}

impl State {
    /// Memory that was never written is the state before the first commit.
    fn read(control: &Control, at: usize) -> Result<Self, String> {
        let area = control.get(at..at + state::SIZE).unwrap_or(&[]);
        let number = |offset| u32_at(area, offset).unwrap_or(0);
        let long = |offset| u64_at(area, offset).unwrap_or(0);
        let untouched = area.iter().all(|byte| *byte == 0);
        let found = check::crc32c(area.get(..state::CHECK).unwrap_or(&[]));
        if !untouched && number(state::CHECK) != found {
            return Err(format!(
                "expected a state with check {:08x}, found one with {found:08x}",
                number(state::CHECK)
            ));
        }
        let length = number(state::TAIL_LENGTH) as usize;
        let tail = Some(length)
            .filter(|length| *length <= state::TAIL_ROOM)
            .and_then(|length| area.get(state::TAIL..state::TAIL + length))
            .ok_or_else(|| {
                format!(
                    "expected at most {} tail bytes, found {length}",
                    state::TAIL_ROOM
                )
            })?;
        Ok(Self {
            bytes: long(state::BYTES),
            events: long(state::EVENTS),
            check: number(state::STREAM_CHECK),
            tail: tail.to_vec(),
        })
    }
}

fn read_thread(bytes: &[u8], chunk: &Chunk, data: &[&Chunk], control: &Control) -> ThreadFile {
    let mut findings = Vec::new();
    let finding = |at: usize, text: String| Finding {
        at: (chunk.at + at) as u64,
        text,
    };
    let number = |at| u32_at(&control[..], at).unwrap_or(0);
    let long = |at| u64_at(&control[..], at).unwrap_or(0);

    let found = check::crc32c(control.get(thread::TID..thread::CHECK).unwrap_or(&[]));
    if number(thread::CHECK) != found {
        findings.push(finding(
            thread::TID,
            format!(
                "expected a thread with check {:08x}, found one with {found:08x}: its id may be wrong",
                number(thread::CHECK)
            ),
        ));
    }

    let (state, is_staging) = settle(control, &finding, &mut findings);
    let staged = if is_staging {
        read_staging(control, &finding, &mut findings)
    } else {
        Vec::new()
    };

    let start = (chunk.at + thread::DATA).min(chunk.payload.end);
    let pieces = pieces(start..chunk.payload.end, data, state.bytes, &mut findings);
    let present: usize = pieces.iter().map(Range::len).sum();
    let is_whole = present as u64 == state.bytes;
    if !is_whole {
        findings.push(finding(
            0,
            format!(
                "expected a stream of {} bytes, found {present}: later events are lost",
                state.bytes
            ),
        ));
    }
    debug_assert!(pieces.iter().all(|piece| piece.end <= bytes.len()));
    ThreadFile {
        tid: number(thread::TID),
        started: long(thread::STARTED),
        inherited: number(thread::INHERITED),
        pieces,
        tail: if is_whole { state.tail } else { Vec::new() },
        events: state.events,
        check: is_whole.then_some(state.check),
        // Without the bytes before them, the latest events have no place.
        staged: if is_whole { staged } else { Vec::new() },
        mirror: (0..thread::MIRROR_WORDS)
            .map(|index| long(thread::MIRROR + 8 * index))
            .collect(),
        is_committing: number(thread::PHASE) == 1,
        findings,
    }
}

/// The state that counts, by the redo log, and whether the staging area follows it.
fn settle(
    control: &Control,
    finding: &impl Fn(usize, String) -> Finding,
    findings: &mut Vec<Finding>,
) -> (State, bool) {
    let phase = u32_at(&control[..], thread::PHASE).unwrap_or(0);
    let committed = State::read(control, thread::COMMITTED);
    let intent = State::read(control, thread::INTENT);
    match phase {
        0 | 1 => {}
        other => findings.push(finding(
            thread::PHASE,
            format!("expected phase 0 or 1, found {other}: taken as 0"),
        )),
    }
    let (first, other) = if phase == 1 {
        ((intent, thread::INTENT), (committed, thread::COMMITTED))
    } else {
        ((committed, thread::COMMITTED), (intent, thread::INTENT))
    };
    let nothing = State {
        bytes: 0,
        events: 0,
        check: 0,
        tail: Vec::new(),
    };
    match (first, other) {
        ((Ok(state), _), _) => (state, phase != 1),
        ((Err(text), at), (Ok(state), _)) => {
            findings.push(finding(at, format!("{text}: the other state is taken")));
            (state, false)
        }
        ((Err(text), at), (Err(_), _)) => {
            findings.push(finding(at, format!("{text}: all events are lost")));
            (nothing, false)
        }
    }
}

fn read_staging(
    control: &Control,
    finding: &impl Fn(usize, String) -> Finding,
    findings: &mut Vec<Finding>,
) -> Vec<u32> {
    let mut staged = Vec::new();
    for index in 0..thread::STAGING_WORDS {
        let at = thread::STAGING + 8 * index;
        let word = u64_at(&control[..], at).unwrap_or(0);
        if word == 0 {
            break;
        }
        match symbol::from_staging_word(word) {
            Some(symbol) => staged.push(symbol),
            None => {
                findings.push(finding(
                    at,
                    format!("expected an event or zero, found {word:016x}: later events are lost"),
                ));
                break;
            }
        }
    }
    staged
}

/// Where the first `bytes` bytes of a stream lie: behind the control block, then in data chunks from
/// sequence number 1 on. Fewer where chunks are missing.
fn pieces(
    first: Range<usize>,
    data: &[&Chunk],
    bytes: u64,
    findings: &mut Vec<Finding>,
) -> Vec<Range<usize>> {
    let mut sorted = data.to_vec();
    sorted.sort_by_key(|chunk| chunk.sequence);
    let mut pieces = Vec::new();
    let mut left = bytes;
    let mut take = |piece: Range<usize>| {
        let length = left.min(piece.len() as u64) as usize;
        left -= length as u64;
        if length > 0 {
            pieces.push(piece.start..piece.start + length);
        }
        left > 0
    };
    let mut wanted = take(first);
    for (index, chunk) in sorted.iter().enumerate() {
        if !wanted {
            break;
        }
        if chunk.sequence as usize != index + 1 {
            findings.push(chunk.finding(format!(
                "expected data chunk {} of thread {}, found {}",
                index + 1,
                chunk.thread,
                chunk.sequence
            )));
            break;
        }
        wanted = take(chunk.payload.clone());
    }
    pieces
}
