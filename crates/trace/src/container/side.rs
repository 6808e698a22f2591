//! Side chunks: where a thread's argument stream and its time points lie.

use super::{Chunk, Finding};
use crate::container::Control;
use lockstep_format::bytes::u64_at;
use lockstep_format::hold;
use lockstep_format::process::{clock, stamp, thread};
use lockstep_format::side::{control, from_word, point, segment};
use std::ops::Range;

/// A side stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SideStream {
    /// Where its committed bytes lie, in order.
    pub pieces: Vec<Range<usize>>,
    /// The run that is going on, of arguments.
    pub run: u32,
}

/// A time that was not in the stream yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub ticks: u64,
    pub symbols: u64,
    pub kind: u64,
}

/// What stands beside the events of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Side {
    pub arguments: SideStream,
    pub times: SideStream,
    /// What comes behind the stream of times.
    pub stamps: Vec<Stamp>,
    /// Returns that nobody saw.
    pub inferred: SideStream,
    /// How many of the last events are such, too.
    pub closed: u64,
    /// Arguments and inferred returns lie in the thread chunk itself.
    pub is_in_segment: bool,
    /// Ticks and nanoseconds of one moment, as often as they were read, earliest first.
    pub clocks: Vec<(u64, u64)>,
    /// When the thread was last seen: symbols that it had stored, and ticks.
    pub last: Option<(u64, u64)>,
    /// MPI calls whose arguments were not stored.
    pub lost: u64,
    /// What the thread holds, and how much more.
    pub holds: Vec<HoldRow>,
    pub more_holds: u64,
}

/// A row of the table of what a thread holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HoldRow {
    pub address: u64,
    pub behind: u64,
    pub what: u64,
}

impl Side {
    /// What the thread's own chunk tells.
    pub(super) fn of_control(chunk: &Chunk, bytes: &Control, findings: &mut Vec<Finding>) -> Self {
        let long = |at| u64_at(&bytes[..], at).unwrap_or(0);
        let mut clocks: Vec<(u64, u64)> = (0..thread::CLOCK_COUNT)
            .map(|index| thread::CLOCKS + clock::SIZE * index)
            .map(|at| {
                let (ticks, nanoseconds) = (long(at + clock::TICKS), long(at + clock::NANOSECONDS));
                (ticks, nanoseconds, long(at + clock::CHECK))
            })
            .filter(|(ticks, nanoseconds, check)| *check == !(ticks ^ nanoseconds))
            .map(|(ticks, nanoseconds, _)| (ticks, nanoseconds))
            .collect();
        clocks.sort_unstable();
        let last = (long(thread::LAST_SYMBOLS), long(thread::LAST_TICKS));
        let mut within = |word, start, end| within(chunk, long(word), start..end, findings);
        let arguments = within(
            thread::SEGMENT_ARGUMENTS,
            segment::ARGUMENTS,
            segment::INFERRED,
        );
        let inferred = within(thread::SEGMENT_INFERRED, segment::INFERRED, segment::END);
        let times = within(thread::SEGMENT_TIMES, segment::TIMES, segment::INFERRED);
        Self {
            is_in_segment: arguments.is_some() || inferred.is_some(),
            arguments: arguments.unwrap_or_default(),
            inferred: inferred.unwrap_or_default(),
            times: times.unwrap_or_default(),
            stamps: stamps(&long),
            closed: long(thread::CLOSED),
            clocks,
            last: (last.1 != 0).then_some(last),
            lost: long(thread::ARGUMENTS_LOST),
            holds: holds(&long),
            more_holds: long(thread::MORE_HOLDS),
        }
    }
}

/// What the thread holds.
fn holds(long: &impl Fn(usize) -> u64) -> Vec<HoldRow> {
    let row = |index| {
        let at = hold::place(index);
        HoldRow {
            address: long(at + hold::row::ADDRESS),
            behind: long(at + hold::row::BEHIND),
            what: long(at + hold::row::WHAT),
        }
    };
    let rows = (0..hold::ROWS).map(row);
    rows.filter(|row| row.address != 0).collect()
}

/// The times that are not in the stream yet, in order.
fn stamps(long: &impl Fn(usize) -> u64) -> Vec<Stamp> {
    let all = (0..thread::STAMP_COUNT).map(|index| thread::STAMPS + stamp::SIZE * index);
    let point = |at| long(at + stamp::POINT);
    all.take_while(|at| point(*at) != 0)
        .map(|at| Stamp {
            ticks: long(at + stamp::TICKS),
            symbols: point(at) >> point::STAMP_BITS,
            kind: point(at) & ((1 << point::STAMP_BITS) - 1),
        })
        .collect()
}

/// A stream at a place in a segment's chunk; `None` where its word says nothing.
fn within(
    chunk: &Chunk,
    word: u64,
    place: Range<usize>,
    findings: &mut Vec<Finding>,
) -> Option<SideStream> {
    let (length, run) = from_word(word);
    let (start, end) = (chunk.at + place.start, chunk.payload.end);
    if word == 0 {
        return None;
    }
    let end = end.min(chunk.at + place.end);
    let there = end.saturating_sub(start);
    if length > there as u64 {
        findings.push(chunk.finding(format!(
            "expected a side stream of {length} bytes, found room for {there}: it is passed over"
        )));
        return None;
    }
    let piece = start..start + length as usize;
    Some(SideStream {
        pieces: vec![piece],
        run,
    })
}

/// The stream in a thread's side chunks of one kind.
pub(super) fn read(bytes: &[u8], chunks: &[&Chunk], findings: &mut Vec<Finding>) -> SideStream {
    let mut sorted = chunks.to_vec();
    sorted.sort_by_key(|chunk| chunk.sequence);
    let Some(first) = sorted.first().filter(|chunk| chunk.sequence == 0) else {
        return SideStream::default();
    };
    let (mut left, run) = from_word(u64_at(bytes, first.at + control::WORD).unwrap_or(0));
    let claimed = left;
    let mut pieces = Vec::new();
    for (index, chunk) in sorted.iter().enumerate() {
        if left == 0 || chunk.sequence as usize != index {
            break;
        }
        let start = match index {
            0 => chunk.at + control::DATA,
            _ => chunk.payload.start,
        };
        let there = chunk.payload.end.saturating_sub(start);
        let length = left.min(there as u64) as usize;
        left -= length as u64;
        pieces.push(start..start + length);
    }
    if left > 0 {
        findings.push(first.finding(format!(
            "expected a side stream of {claimed} bytes, found {}: what comes later is lost",
            claimed - left
        )));
    }
    // A run belongs to the end.
    let run = if left == 0 { run } else { 0 };
    SideStream { pieces, run }
}
