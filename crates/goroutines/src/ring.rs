//! The ring: the file that the overlaid runtime writes, how it is made, and what stands in it.
//!
//! ```text
//! 0      words that we write: sizes, seed, policy     256  words that the program writes: chunks taken, state, clock
//! 4096   class of each 32 bytes of text               then the script and its times, chunks of 12 KiB, each of one thread
//! record time | text offset << 32, goroutine | value << 16, extra << 8, kind        (time 0: not committed)
//! short  time, top bit set | goroutine << 32, value << 16, extra << 8, kind         (no place, a value of 16 bits)
//! ```
//! *Guarantees*: the reader is total: any bytes give records or none, never a panic, and never more memory than a
//! small multiple of the file. *Costs*: 24 bytes a usage, 16 for how it ended and for each park and each ready.

use crate::overlay::{MAGIC, VERSION};
use crate::script::{Further, Recorded};

/// Bytes of a record, of what belongs to it in each further slot, and of what a chunk says of itself.
pub const SLOT: usize = 24;
/// Bytes of a short record.
const SHORT: usize = 16;
/// The bit of a time that says that the record is short.
const IS_SHORT: u64 = 1 << 63;
/// Bytes of a chunk.
pub const CHUNK: usize = 512 * SLOT;
/// Where the classes begin.
const CLASSES_AT: u64 = 4096;
/// The bit of a kind that says that more slots belong to it.
const WIDE: u8 = 0x80;

/// Words of the header.
mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const SIZE: usize = 2;
    pub const CLASSES: usize = 3;
    pub const CLASSES_COUNT: usize = 4;
    pub const CHUNKS: usize = 5;
    pub const CHUNK_SIZE: usize = 6;
    pub const CHUNK_COUNT: usize = 7;
    pub const SEED: usize = 8;
    pub const MODE: usize = 9;
    pub const CHANCE: usize = 10;
    pub const LONGEST: usize = 11;
    pub const BOUND: usize = 12;
    pub const SETTLE: usize = 13;
    pub const STEADY: usize = 14;
    pub const TURNS: usize = 15;
    pub const SCRIPT: usize = 16;
    pub const SCRIPT_COUNT: usize = 17;
    pub const TIMES: usize = 18;
    pub const FURTHER: usize = 19;
    pub const OWNER: usize = 32;
    pub const CLAIMED: usize = 40;
    pub const LOOKED: usize = 47;
    pub const LOST: usize = 48;
    pub const STATE: usize = 49;
    pub const TICK0: usize = 52;
    pub const NANO0: usize = 53;
    pub const TICK1: usize = 54;
    pub const NANO1: usize = 55;
    pub const TIMERS: usize = 56;
    pub const ASKED: usize = 57;
    pub const ANSWERED: usize = 58;
    pub const FUNCTIONS: usize = 59;
    pub const CLOCK: usize = 60;
    pub const SWITCHES: usize = 61;
    pub const PROVEN: usize = 62;
    pub const STRETCHED: usize = 63;
    pub const USAGES: usize = 64;
    pub const DELAYS: usize = 72;
}

/// Kinds of records; usages have numbers below these.
pub mod kind {
    #![allow(missing_docs)]
    pub const SEND: u8 = 1;
    pub const RECEIVE: u8 = 2;
    pub const CLOSE: u8 = 3;
    pub const SELECT: u8 = 4;
    pub const LOCK: u8 = 5;
    pub const TRY_LOCK: u8 = 6;
    pub const UNLOCK: u8 = 7;
    pub const R_LOCK: u8 = 8;
    pub const TRY_R_LOCK: u8 = 9;
    pub const R_UNLOCK: u8 = 10;
    pub const RW_LOCK: u8 = 11;
    pub const RW_TRY_LOCK: u8 = 12;
    pub const RW_UNLOCK: u8 = 13;
    pub const ADD: u8 = 14;
    pub const DONE: u8 = 15;
    pub const WAIT: u8 = 16;
    pub const ONCE: u8 = 17;
    pub const COND_WAIT: u8 = 18;
    pub const SLEEP: u8 = 19;
    pub const BLOCK: u8 = 20;
    pub const SIGNAL: u8 = 21;
    pub const BROADCAST: u8 = 22;
    pub const COMPLETE: u8 = 32;
    pub const PARK: u8 = 33;
    pub const READY: u8 = 34;
    pub const MAKE: u8 = 35;
    pub const CREATE: u8 = 36;
    pub const END: u8 = 37;
    pub const PANIC: u8 = 38;
    pub const STATE: u8 = 39;
    pub const EXIT: u8 = 40;
    pub const MAIN_ENDED: u8 = 41;
    pub const GOES_ON: u8 = 42;
}

/// How delays are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// None are.
    None,
    /// The thread sleeps, and its processor with it.
    Spin,
    /// The goroutine sleeps, its processor goes on.
    Sleep,
    /// The goroutine lets others run first, one to four times.
    Yield,
    /// Any of these, by chance.
    Mixed,
    /// Every second goroutine, as the seed says, sleeps again and again; the others never do.
    Slow,
    /// Usages happen one at a time, in an order that the seed says.
    Turns,
}

/// What ranks hang on where usages take turns: chances of 256, one throw for each usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Turns {
    /// Whoever holds a lock lets others go first.
    pub hold: u8,
    /// So does who gave one back just now, or tried or looked in vain.
    pub behind: u8,
    /// Whoever made a goroutine or let somebody in goes on before others.
    pub after: u8,
    /// Whoever made goroutines locks before others.
    pub maker: u8,
    /// Whoever wants to read locks before others.
    pub reader: u8,
    /// The goroutine's own level counts, of four.
    pub level: u8,
    /// Every draw is the opposite of that of a run with the same seed.
    pub opposite: bool,
}

impl Turns {
    fn word(self) -> u64 {
        u64::from_le_bytes([
            self.hold,
            self.behind,
            self.after,
            self.maker,
            self.reader,
            self.level,
            u8::from(self.opposite),
            0,
        ])
    }
}

/// What the program is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// What all chances follow from.
    pub seed: u64,
    /// How delays are made.
    pub mode: Mode,
    /// In how many of 256 places there is one.
    pub chance: u8,
    /// Nanoseconds that one takes at most.
    pub longest: u64,
    /// How many there may be; 0: any number.
    pub bound: u64,
    /// Nanoseconds that goroutines have at the end to come to theirs.
    pub settle: u64,
    /// The runtime's own random numbers (`select`, maps) come from the seed, so that a run can be had once more.
    pub steady: bool,
    /// Of [`Mode::Turns`]: who goes first.
    #[serde(default)]
    pub turns: Turns,
}

impl Policy {
    /// Nothing is disturbed, and nobody waited for at the end.
    #[must_use]
    pub fn undisturbed(seed: u64) -> Self {
        Self {
            seed,
            mode: Mode::None,
            chance: 0,
            longest: 0,
            bound: 0,
            settle: 0,
            steady: false,
            turns: Turns::default(),
        }
    }
}

/// The first bytes of a new ring, and how large the whole file is. `script`: the order of turns that is asked for, and
/// when a recorded run had them, where the clock is to be that run's.
#[must_use]
pub fn prepare(
    policy: &Policy,
    classes: &[u8],
    (script, recorded): (&[u64], Option<&Recorded>),
    most: u64,
) -> (Vec<u8>, u64) {
    let times = recorded.map_or(&[][..], |it| &it.times);
    let times = if times.len() == script.len() {
        times
    } else {
        &[]
    };
    let script_at = (CLASSES_AT + classes.len() as u64).next_multiple_of(8);
    let times_at = script_at + script.len() as u64 * 8;
    let chunks_at = (times_at + times.len() as u64 * 8).next_multiple_of(4096);
    let count = (most / CHUNK as u64).clamp(16, 1 << 20);
    let size = chunks_at + count * CHUNK as u64;
    let mut words = [0_u64; 32];
    words[at::MAGIC] = MAGIC;
    words[at::VERSION] = VERSION;
    words[at::SIZE] = size;
    words[at::CLASSES] = CLASSES_AT;
    words[at::CLASSES_COUNT] = classes.len() as u64;
    words[at::CHUNKS] = chunks_at;
    words[at::CHUNK_SIZE] = CHUNK as u64;
    words[at::CHUNK_COUNT] = count;
    words[at::SEED] = policy.seed;
    words[at::MODE] = match policy.mode {
        Mode::None => 0,
        Mode::Spin => 1,
        Mode::Sleep => 2,
        Mode::Yield => 3,
        Mode::Mixed => 4,
        Mode::Slow => 5,
        Mode::Turns => 6,
    };
    words[at::CHANCE] = u64::from(policy.chance);
    words[at::LONGEST] = policy.longest;
    words[at::BOUND] = policy.bound;
    words[at::SETTLE] = policy.settle;
    words[at::STEADY] = u64::from(policy.steady);
    words[at::TURNS] = policy.turns.word();
    words[at::SCRIPT] = script_at;
    words[at::SCRIPT_COUNT] = script.len() as u64;
    if !times.is_empty() {
        words[at::TIMES] = times_at;
        words[at::FURTHER] = recorded.map_or(0, |it| match it.turns {
            Further::Behind => 0,
            Further::Around => 1,
            Further::None => 2,
            Further::Delays => 3,
        });
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    bytes.resize(CLASSES_AT as usize, 0);
    bytes.extend_from_slice(classes);
    bytes.resize(script_at as usize, 0);
    bytes.extend(script.iter().chain(times).flat_map(|it| it.to_le_bytes()));
    (bytes, size)
}

/// The bytes of a ring whose chunks hold these records, as many as there are chunks for.
pub(crate) fn holding(policy: &Policy, records: &[u8]) -> Vec<u8> {
    let (mut bytes, _) = prepare(policy, &[], (&[], None), 0);
    let chunks_at = word(&bytes, at::CHUNKS) as usize;
    let count = word(&bytes, at::CHUNK_COUNT) as usize;
    let claimed = records.chunks(CHUNK - SLOT).take(count);
    bytes[at::CLAIMED * 8..][..8].copy_from_slice(&(claimed.len() as u64).to_le_bytes());
    bytes.resize(chunks_at, 0);
    for part in claimed {
        // The first slot of each chunk is the chunk's own.
        bytes.extend([0; SLOT]);
        bytes.extend(part);
    }
    bytes
}

/// Where in the file the parent writes a number to ask for states, and reads it back when they are there.
pub const ASKED_AT: u64 = at::ASKED as u64 * 8;

/// What the program says of itself while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// It mapped the ring.
    pub began: bool,
    /// Nothing can move any more, and the states are there.
    pub quiet: bool,
    /// It is about to exit, and the states are there.
    pub ended: bool,
    /// The number that was asked last and is answered.
    pub answered: u64,
    /// Chunks that were begun.
    pub chunks: u64,
    /// Places at which a delay was weighed.
    pub usages: u64,
    /// Delays.
    pub delays: u64,
    /// Counts how often a processor went on to another goroutine.
    pub switches: u64,
}

/// Bytes of the header that [`standing`] looks at.
pub const HEADER: usize = 4096;

fn word(bytes: &[u8], index: usize) -> u64 {
    let found = bytes.get(index * 8..index * 8 + 8);
    found
        .and_then(|it| it.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// Reads the header of a ring that may be written to meanwhile.
#[must_use]
pub fn standing(header: &[u8]) -> Standing {
    let state = word(header, at::STATE);
    Standing {
        began: word(header, at::OWNER) != 0,
        quiet: state == 1,
        ended: state == 2,
        answered: word(header, at::ANSWERED),
        chunks: word(header, at::CLAIMED),
        usages: word(header, at::USAGES),
        delays: word(header, at::DELAYS),
        switches: word(header, at::SWITCHES),
    }
}

/// The header of a ring whose chunks alone are kept, and where they were: (offset, bytes).
#[must_use]
pub fn used(header: &[u8]) -> (Vec<u8>, u64, u64) {
    let count = word(header, at::CLAIMED)
        .min(word(header, at::CHUNK_COUNT))
        .min(1 << 20);
    let mut kept = header.to_vec();
    kept.resize(HEADER, 0);
    for (index, value) in [
        (at::SIZE, HEADER as u64 + count * CHUNK as u64),
        (at::CLASSES, 0),
        (at::CLASSES_COUNT, 0),
        (at::CHUNKS, HEADER as u64),
        (at::CHUNK_COUNT, count),
    ] {
        kept[index * 8..index * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    (kept, word(header, at::CHUNKS), count * CHUNK as u64)
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Ticks of the processor's counter.
    pub time: u64,
    /// What it is.
    pub kind: u8,
    /// What its kind says.
    pub extra: u8,
    /// The goroutine, 0 for none.
    pub goroutine: u32,
    /// Where in the text, as a return address; 0 for nowhere.
    pub place: u32,
    /// What its kind says.
    pub value: u64,
    /// Words that belong to it.
    pub more: &'a [u8],
}

impl Record<'_> {
    /// A word of those that belong to it.
    #[must_use]
    pub fn word(&self, index: usize) -> u64 {
        word(self.more, index)
    }

    /// Half a word of those that belong to it.
    #[must_use]
    pub fn half(&self, index: usize) -> u32 {
        (self.word(index / 2) >> (index % 2 * 32)) as u32
    }
}

/// A ring that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ring<'a> {
    /// All committed records, in order.
    pub records: Vec<Record<'a>>,
    /// The counter when the program began.
    pub tick: u64,
    /// Nanoseconds of a tick.
    pub tick_worth: f64,
    /// Pending deadlines of contexts, when states were told last.
    pub timers: u64,
    /// Pending timers that run other functions.
    pub functions: u64,
    /// Whether any timer was pending.
    pub clock: bool,
    /// Whether the garbage collector looked for goroutines that nobody can reach.
    pub proven: bool,
    /// Nanoseconds that goroutines were held up, in sum.
    pub stretched: u64,
    /// Whether the program asked where its goroutines stand, or how many there are.
    pub looked: bool,
    /// Records that found no room.
    pub lost: u64,
}

/// Why bytes are no ring.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// Another file.
    #[error("expected a ring of version {VERSION}, found another file")]
    Other,
    /// Another version.
    #[error("expected a ring of version {VERSION}, found version {0}")]
    Version(u64),
}

impl<'a> Ring<'a> {
    /// Reads the records of a whole ring, or of what is there of one.
    ///
    /// # Errors
    /// Where it is none.
    pub fn read(bytes: &'a [u8]) -> Result<Self, RingError> {
        if word(bytes, at::MAGIC) != MAGIC {
            return Err(RingError::Other);
        }
        if word(bytes, at::VERSION) != VERSION {
            return Err(RingError::Version(word(bytes, at::VERSION)));
        }
        let chunk_size = word(bytes, at::CHUNK_SIZE);
        let count = word(bytes, at::CLAIMED).min(word(bytes, at::CHUNK_COUNT));
        let start = usize::try_from(word(bytes, at::CHUNKS)).unwrap_or(usize::MAX);
        let chunks = bytes.get(start..).unwrap_or_default();
        let mut records = Vec::new();
        if chunk_size == CHUNK as u64 {
            for chunk in chunks
                .chunks(CHUNK)
                .take(usize::try_from(count).unwrap_or(usize::MAX))
            {
                read_chunk(chunk, &mut records);
            }
        }
        records.sort_by_key(|it| it.time);
        let ticks = word(bytes, at::TICK1).wrapping_sub(word(bytes, at::TICK0));
        let nanos = word(bytes, at::NANO1).wrapping_sub(word(bytes, at::NANO0));
        let sane = |it: u64| it > 0 && it < 1 << 60;
        Ok(Self {
            records,
            tick: word(bytes, at::TICK0),
            // Where the program ended before a second reading: as on most machines.
            tick_worth: if sane(ticks) && sane(nanos) {
                nanos as f64 / ticks as f64
            } else {
                0.4
            },
            timers: word(bytes, at::TIMERS),
            functions: word(bytes, at::FUNCTIONS),
            clock: word(bytes, at::CLOCK) != 0,
            proven: word(bytes, at::PROVEN) != 0,
            stretched: word(bytes, at::STRETCHED),
            looked: word(bytes, at::LOOKED) != 0,
            lost: word(bytes, at::LOST),
        })
    }

    /// Nanoseconds since the program began.
    #[must_use]
    pub fn nanoseconds(&self, time: u64) -> u64 {
        (time.saturating_sub(self.tick) as f64 * self.tick_worth) as u64
    }
}

fn read_chunk<'a>(chunk: &'a [u8], records: &mut Vec<Record<'a>>) {
    let mut from = SLOT;
    while let Some(slot) = chunk.get(from..from + SHORT) {
        let time = word(slot, 0);
        // Not committed: nothing behind it in this chunk is.
        if time == 0 {
            return;
        }
        if time & IS_SHORT != 0 {
            let what = word(slot, 1);
            from += SHORT;
            records.push(Record {
                time: time & !IS_SHORT,
                kind: what as u8 & !WIDE,
                extra: (what >> 8) as u8,
                goroutine: (what >> 32) as u32,
                place: 0,
                value: what >> 16 & 0xffff,
                more: &[],
            });
            continue;
        }
        let Some(slot) = chunk.get(from..from + SLOT) else {
            return;
        };
        let (who, what) = (word(slot, 1), word(slot, 2));
        let (number, value) = (what as u8, what >> 16);
        let more = if number & WIDE == 0 {
            0
        } else {
            match number & !WIDE {
                kind::SELECT => (value as usize & 0xffff).div_ceil(3),
                kind::STATE => (value as usize >> 8 & 0xff).div_ceil(6),
                _ => 1,
            }
        };
        from += SLOT;
        let Some(payload) = chunk.get(from..from + more * SLOT) else {
            return;
        };
        from += more * SLOT;
        records.push(Record {
            time,
            kind: number & !WIDE,
            extra: (what >> 8) as u8,
            goroutine: who as u32,
            place: (who >> 32) as u32,
            value,
            more: payload,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let (mut bytes, size) = prepare(&Policy::undisturbed(1), &[0; 100], (&[], None), 0);
        bytes.resize(size as usize, 0);
        let mut put = |index: usize, value: u64| {
            bytes[index * 8..index * 8 + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(at::CLAIMED, 2);
        let chunks = 8192 / 8;
        for chunk in 0..2 {
            let base = chunks + chunk * CHUNK / 8;
            put(base, 1);
            for slot in 1..512 {
                let at = base + slot * 3;
                put(at, (1000 * slot + chunk) as u64);
                put(at + 1, 5 << 32 | 7);
                put(at + 2, 0xabc << 16 | u64::from(kind::LOCK));
            }
        }
        bytes
    }

    #[test]
    fn every_cut_gives_a_prefix_of_each_thread() {
        let bytes = sample();
        let whole = Ring::read(&bytes).unwrap_or_default();
        assert_eq!(whole.records.len(), 2 * 511);
        for cut in 0..bytes.len() {
            // What lies between two slots is the same as the end of the slot before.
            let (slot, rest) = (
                cut.saturating_sub(8192) / SLOT,
                cut.saturating_sub(8192) % SLOT,
            );
            if slot % 97 > 1 && rest > 0 {
                continue;
            }
            match Ring::read(&bytes[..cut]) {
                Ok(ring) => {
                    // The first slot of each chunk is the chunk's own.
                    let first = slot.min(512).saturating_sub(1);
                    let second = slot.min(1024).saturating_sub(512).saturating_sub(1);
                    assert_eq!(ring.records.len(), first + second, "at {cut}");
                }
                Err(_) => assert!(cut < 16),
            }
        }
        assert_eq!(
            whole.records.first().map(|it| (it.goroutine, it.value)),
            Some((7, 0xabc))
        );
    }

    #[test]
    fn short_records_and_others_are_told_apart_wherever_they_are_cut() {
        let (mut bytes, size) = prepare(&Policy::undisturbed(1), &[0; 100], (&[], None), 0);
        bytes.resize(size as usize, 0);
        bytes[at::CLAIMED * 8] = 1;
        let mut from = 8192 + SLOT;
        let mut ends = Vec::new();
        // A usage, how it ended, and a wide record, until no more fit.
        let rounds = (CHUNK - SLOT) / (3 * SLOT + SHORT);
        for round in 1..=rounds as u64 {
            let usage = 7 | 5 << 32;
            let records: [&[u64]; 3] = [
                &[round * 10, usage, 0xabc << 16 | u64::from(kind::LOCK)],
                &[
                    (round * 10 + 1) | IS_SHORT,
                    7 << 32 | 0xffff << 16 | 3 << 8 | u64::from(kind::COMPLETE),
                ],
                &[
                    round * 10 + 2,
                    usage,
                    0xabc << 16 | u64::from(kind::ADD | WIDE),
                    40,
                    41,
                    42,
                ],
            ];
            for record in records {
                for value in record {
                    bytes[from..from + 8].copy_from_slice(&value.to_le_bytes());
                    from += 8;
                }
                ends.push(from);
            }
        }
        for cut in 8192..8192 + CHUNK {
            let ring = Ring::read(&bytes[..cut]).unwrap_or_default();
            let whole = ends.iter().filter(|it| **it <= cut).count();
            assert_eq!(ring.records.len(), whole, "at {cut}");
        }
        let ring = Ring::read(&bytes).unwrap_or_default();
        let Some([usage, end, add]) = ring.records.last_chunk() else {
            panic!("{} records", ring.records.len())
        };
        assert_eq!(
            (usage.kind, usage.place, usage.value),
            (kind::LOCK, 5, 0xabc)
        );
        assert_eq!(
            (end.kind, end.extra, end.goroutine, end.place, end.value),
            (kind::COMPLETE, 3, 7, 0, 0xffff)
        );
        assert_eq!(end.time, usage.time + 1);
        assert_eq!((add.kind, add.word(0), add.word(2)), (kind::ADD, 40, 42));
    }

    #[test]
    fn an_uncommitted_record_ends_its_thread() {
        let mut bytes = sample();
        let at = 8192 + 100 * SLOT;
        bytes[at..at + 8].fill(0);
        let ring = Ring::read(&bytes).unwrap_or_default();
        assert_eq!(ring.records.len(), 511 + 99);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(mut noise in proptest::collection::vec(0_u8.., 0..4096), at in 0_usize..40_000) {
            let mut bytes = sample();
            noise.truncate(bytes.len() - at);
            bytes[at..at + noise.len()].copy_from_slice(&noise);
            let _ = Ring::read(&bytes);
        }
    }
}
