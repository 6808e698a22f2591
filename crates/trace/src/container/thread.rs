//! One thread: which of its states counts, where its stream lies, what is staged.

use super::{Chunk, Finding, Side, numbers};
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::check;
use lockstep_format::process::{state, thread};
use lockstep_format::symbol::{Staged, from_staging_word};
use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of a thread chunk in front of its data, copied at one moment.
pub(crate) type Control = [u8; thread::DATA];

/// One thread of it, as far as its chunks and its state tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadFile {
    /// Its index in the file.
    pub index: u32,
    /// What stands beside its events.
    pub side: Side,
    pub tid: u32,
    pub started: u64,
    /// Number of calls at the stream's start that were open when a forked child, or this segment, began.
    pub inherited: u32,
    /// Whose segment it is: index of the thread's first.
    pub first: u32,
    /// Its number in the row of the thread's segments.
    pub segment: u32,
    /// Events of the thread in segments before this one.
    pub before: u64,
    /// The segments before this one that are there, oldest first, without a gap.
    pub earlier: Vec<ThreadFile>,
    /// Where the committed bytes of the stream lie, in order.
    pub pieces: Vec<Range<usize>>,
    /// What decodes to the committed events together with the pieces; empty where bytes are missing.
    pub tail: Vec<u8>,
    /// Number of committed symbols, as the state claims.
    pub symbols: u64,
    /// CRC-32C of the pieces, as the state claims; `None` where bytes are missing.
    pub check: Option<u32>,
    /// Events of the live staging area.
    pub staged: Vec<Staged>,
    /// Return addresses of the calls that were open at the last commit, by depth modulo their number; without the zeros
    /// at the end.
    pub mirror: Vec<u64>,
    /// Whether the thread was inside a commit: read as committed, without the staging area.
    pub is_committing: bool,
    /// What is wrong with this thread.
    pub findings: Vec<Finding>,
}

impl ThreadFile {
    /// Bytes that hold the events: the stream, what ends it, and a word for each staged event.
    pub fn bytes(&self) -> u64 {
        let pieces: usize = self.pieces.iter().map(Range::len).sum();
        let own = (pieces + self.tail.len() + 8 * self.staged.len()) as u64;
        own + self.earlier.iter().map(Self::bytes).sum::<u64>()
    }

    /// Its segments, oldest first.
    pub fn segments(&self) -> impl Iterator<Item = &Self> {
        self.earlier.iter().chain(std::iter::once(self))
    }
}

/// What a thread's state says is decodable.
struct State {
    bytes: u64,
    symbols: u64,
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
            symbols: long(state::SYMBOLS),
            check: number(state::STREAM_CHECK),
            tail: tail.to_vec(),
        })
    }
}

/// What a thread's chunks and the copy of its control block tell.
pub(super) fn read_thread(chunk: &Chunk, data: &[&Chunk], control: &Control) -> ThreadFile {
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
    ThreadFile {
        index: chunk.thread,
        side: Side::of_control(chunk, control, &mut findings),
        tid: number(thread::TID),
        started: long(thread::STARTED),
        inherited: number(thread::INHERITED),
        first: number(thread::FIRST),
        segment: number(thread::SEGMENT),
        before: long(thread::BEFORE),
        earlier: Vec::new(),
        pieces,
        tail: if is_whole { state.tail } else { Vec::new() },
        symbols: state.symbols,
        check: is_whole.then_some(state.check),
        // Without the bytes before them, the latest events have no place.
        staged: if is_whole { staged } else { Vec::new() },
        mirror: numbers(&control[..], thread::MIRROR, thread::MIRROR_WORDS),
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
        symbols: 0,
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
) -> Vec<Staged> {
    let mut staged = Vec::new();
    for index in 0..thread::STAGING_WORDS {
        let at = thread::STAGING + 8 * index;
        let word = u64_at(&control[..], at).unwrap_or(0);
        if word as u32 == 0 {
            break;
        }
        match from_staging_word(word) {
            Some(event) => staged.push(event),
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

/// Puts the segments of each thread together (`--keep last`), in the order of the threads' last ones.
/// What lies before a gap is left out: nobody knows what was in it.
pub(super) fn join_segments(segments: Vec<ThreadFile>) -> Vec<ThreadFile> {
    let mut rows: BTreeMap<u32, Vec<ThreadFile>> = BTreeMap::new();
    let mut order = Vec::new();
    for segment in segments {
        let row = rows.entry(segment.first).or_insert_with(|| {
            order.push(segment.first);
            Vec::new()
        });
        row.push(segment);
    }
    let mut threads = Vec::new();
    for first in order {
        let mut row = rows.remove(&first).unwrap_or_default();
        row.sort_by_key(|segment| segment.segment);
        let Some(mut last) = row.pop() else { continue };
        let mut next = last.segment;
        let gap = row.iter().rposition(|segment| {
            let follows = segment.segment.checked_add(1) == Some(next);
            next = segment.segment;
            !follows
        });
        last.earlier = row.split_off(gap.map_or(0, |gap| gap + 1));
        threads.push(last);
    }
    threads
}
