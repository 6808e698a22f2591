//! Process files under a kill, cut off, with flipped bits and with hostile content: the reader never
//! panics and never gives a wrong event without saying so.
#![allow(clippy::unwrap_used)]

use crate::arguments;
use crate::container::{self, ProcessFile};
use crate::map::Mapped;
use crate::model::FunctionId;
use crate::stream::{self, FileStream, Stream};
use crate::symbols::{Meaning, Row, Symbols};
use crate::writer::{Identity, Writer};
use lockstep_format::bytes::{put_u32, u32_at};
use lockstep_format::check;
use lockstep_format::codec::Kind;
use lockstep_format::process::{PAGE, chunk, extent_end, header, state, thread};
use proptest::prelude::*;
use std::sync::Arc;

/// What a file says: facts, threads with their events, and everything that it complains of.
#[derive(Debug, Clone, PartialEq)]
struct Reading {
    identity: (u32, u64, u64, u32),
    facts: container::Facts,
    threads: Vec<(u32, u32, u64, Vec<crate::Event>)>,
    complaints: Vec<String>,
}

fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    symbols.add_image(
        16,
        (0..70_000)
            .map(|index| Row {
                function: FunctionId(index),
                is_leaf: index % 3 == 0,
            })
            .collect(),
    );
    symbols
}

fn read(bytes: &[u8], symbols: &Arc<Symbols>, most: u64) -> Result<Reading, String> {
    let mapped = Arc::new(Mapped::Memory(bytes.to_vec()));
    let file: ProcessFile = container::read(mapped.bytes(), |at| mapped.control(at))
        .map_err(|finding| finding.to_string())?;
    let mut complaints: Vec<String> = file.findings.iter().map(ToString::to_string).collect();
    let mut threads = Vec::new();
    for mut thread in file.threads {
        thread.symbols = thread.symbols.min(most);
        let scan = stream::scan(mapped.bytes(), file.codec, &thread, symbols);
        complaints.extend(thread.findings.iter().map(ToString::to_string));
        complaints.extend(scan.damage);
        complaints.extend(arguments::damage(mapped.bytes(), &thread));
        complaints.extend((!scan.unknown.is_empty()).then(|| "unknown symbols".to_owned()));
        complaints.extend(thread.is_committing.then(|| "inside a commit".to_owned()));
        let is_whole = scan.decoded == thread.symbols;
        let stream = Stream::File(Arc::new(FileStream {
            recent: None,
            keeps_last: false,
            file: Arc::clone(&mapped),
            codec: file.codec,
            segments: vec![crate::stream::Segment {
                pieces: thread.pieces,
                tail: thread.tail,
                decoded: scan.decoded,
                inherited: thread.inherited,
            }],
            staged: if is_whole { thread.staged } else { Vec::new() },
            symbols: Arc::clone(symbols),
        }));
        let events: Vec<_> = stream.events().collect();
        assert_eq!(events.len() as u64, scan.events);
        threads.push((thread.tid, thread.inherited, thread.started, events));
    }
    Ok(Reading {
        identity: (file.pid, file.start_time, file.created, file.exec_count),
        facts: file.facts,
        threads,
        complaints,
    })
}

fn events(stored: &[u32], inherited: u32, symbols: &Symbols) -> Vec<crate::Event> {
    let mut meaning = Meaning::new(inherited);
    let mut events = Vec::new();
    for symbol in stored {
        if let Some((event, returns)) = meaning.of(*symbol, symbols) {
            events.push(event);
            events.extend(returns.then_some(crate::Event::Return));
        }
    }
    events
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Events(usize, Vec<u32>),
    Commit(usize),
}

/// Calls that the second thread inherited.
const INHERITED: u32 = 2;

/// Two threads whose events come interleaved, with commits before the staging area is full.
pub(crate) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let symbol = prop_oneof![Just(0u32), Just(1), 16u32..20, 16u32..60_000];
    let events = prop_oneof![
        prop::collection::vec(symbol, 0..40),
        (prop::collection::vec(16u32..20, 1..4), 0usize..120)
            .prop_map(|(body, times)| body.repeat(times)),
    ];
    let action = prop_oneof![
        3 => (0usize..2, events).prop_map(|(index, events)| Action::Events(index, events)),
        1 => (0usize..2).prop_map(Action::Commit),
    ];
    prop::collection::vec(action, 1..12)
}

fn write(codec: Kind, actions: &[Action], stores: u64) -> Writer {
    write_as(100, codec, actions, stores)
}

/// The same of process `pid`.
pub(crate) fn write_as(pid: u32, codec: Kind, actions: &[Action], stores: u64) -> Writer {
    let identity = Identity {
        pid,
        start_time: 7,
        created: 8,
        ..Identity::default()
    };
    let mut writer = Writer::new(codec, identity, "host\th\nprogram\t/bin/p\n", stores);
    let threads = [writer.thread(100, 0), writer.thread(101, INHERITED)];
    for action in actions {
        match action {
            Action::Events(index, events) => {
                for symbol in events {
                    writer.event(threads[*index], *symbol);
                }
            }
            Action::Commit(index) => writer.commit(threads[*index]),
        }
    }
    writer
}

pub(crate) fn codecs() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

#[test]
fn chunks_of_kinds_that_are_not_known_are_passed_over() {
    let symbols = Arc::new(symbols());
    let actions = [Action::Events(0, vec![16, 17, 0]), Action::Commit(0)];
    let mut writer = write(Kind::Lockstep, &actions, u64::MAX);
    let before = read(writer.bytes(), &symbols, u64::MAX).unwrap();
    writer.unknown();
    assert_eq!(read(writer.bytes(), &symbols, u64::MAX).unwrap(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A kill behind any store loses nothing that was stored.
    #[test]
    fn killed_anywhere(actions in actions(), codec in codecs(), stores in prop::collection::vec(4u64..3000, 8)) {
        let symbols = Arc::new(symbols());
        for stores in stores.into_iter().chain([u64::MAX]) {
            let writer = write(codec, &actions, stores);
            let reading = read(writer.bytes(), &symbols, u64::MAX).unwrap();
            let expected: Vec<_> = writer.stored().iter().zip([0, INHERITED]).map(|(stored, inherited)| events(stored, inherited, &symbols)).collect();
            let found: Vec<_> = reading.threads.iter().map(|thread| thread.3.clone()).collect();
            prop_assert_eq!(&found, &expected);
            let others: Vec<_> = reading.complaints.iter().filter(|text| *text != "inside a commit").collect();
            prop_assert!(others.is_empty(), "{:?}", others);
        }
    }

    /// Hostile: any bytes in any place, with checks that hold.
    #[test]
    fn hostile_content_is_survived(
        actions in actions(),
        codec in codecs(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut bytes = write(codec, &actions, u64::MAX).short().to_vec();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        seal_all(&mut bytes);
        survives(&bytes);
    }

    #[test]
    fn noise_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        survives(&bytes);
    }
}

/// The body of a fuzz target: any bytes open as a process file or are refused.
fn survives(bytes: &[u8]) {
    let _ = read(bytes, &Arc::new(Symbols::default()), 100_000);
}

/// Makes every check hold, so that what they protect is read.
fn seal_all(bytes: &mut [u8]) {
    fn seal(bytes: &mut [u8], from: usize, check: usize) {
        if let Some(checked) = bytes.get(from..check) {
            let sum = check::crc32c(checked);
            put_u32(bytes, check, sum);
        }
    }
    seal(bytes, 0, header::CHECK);
    for at in (PAGE as usize..bytes.len()).step_by(PAGE as usize) {
        if u32_at(bytes, at) == Some(chunk::MAGIC_VALUE) {
            seal(bytes, at, at + chunk::CHECK);
            for area in [thread::COMMITTED, thread::INTENT] {
                seal(bytes, at + area, at + area + state::CHECK);
            }
        }
    }
}

/// A small file with everything in it: two threads, one with a data chunk, staged events.
fn sample(codec: Kind) -> (Writer, Vec<u8>) {
    let noise = |seed: u32, count: u32| -> Vec<u32> {
        (0..count)
            .map(|i| 16 + (i * i * seed + i / 3) % 977)
            .collect()
    };
    let actions = [
        Action::Events(0, noise(3, 300)),
        Action::Events(1, [16, 17, 0, 0].repeat(90)),
        Action::Commit(0),
        Action::Commit(1),
        Action::Events(0, noise(5, 20)),
        Action::Events(1, vec![16, 1, 18]),
    ];
    let writer = write(codec, &actions, u64::MAX);
    let bytes = writer.short().to_vec();
    (writer, bytes)
}

/// Offsets worth trying: all but the inside of areas of zeros.
fn places(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len())
        .filter(|at| {
            let around = at.saturating_sub(16)..bytes.len().min(at + 16);
            bytes[around].iter().any(|byte| *byte != 0) || at % 509 == 0
        })
        .collect()
}

#[test]
fn cut_off_at_every_byte() {
    let symbols = Arc::new(symbols());
    for codec in [Kind::None, Kind::Seed] {
        let (_, bytes) = sample(codec);
        let whole = read(&bytes, &symbols, u64::MAX).unwrap();
        assert_eq!(whole.complaints, Vec::<String>::new());
        for end in places(&bytes) {
            let Ok(reading) = read(&bytes[..end], &symbols, u64::MAX) else {
                continue;
            };
            for thread in &reading.threads {
                let original = whole
                    .threads
                    .iter()
                    .find(|other| other.0 == thread.0)
                    .unwrap();
                assert!(original.3.starts_with(&thread.3), "cut at {end}");
                assert!(
                    original.3.len() == thread.3.len() || !reading.complaints.is_empty(),
                    "cut at {end}: {} of {} events without a word",
                    thread.3.len(),
                    original.3.len(),
                );
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed_or_harmless() {
    let symbols = Arc::new(symbols());
    for codec in [Kind::None, Kind::Seed] {
        let (_, bytes) = sample(codec);
        let whole = read(&bytes, &symbols, u64::MAX).unwrap();
        assert_eq!(whole.complaints, Vec::<String>::new());
        for at in places(&bytes) {
            // Every bit of what is not zero, one of what is.
            let bits = if bytes[at] == 0 {
                at % 8..at % 8 + 1
            } else {
                0..8
            };
            for bit in bits {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                if let Ok(reading) = read(&flipped, &symbols, u64::MAX) {
                    assert!(
                        reading == whole || !reading.complaints.is_empty(),
                        "bit {bit} of byte {at}: wrong without a word"
                    );
                }
            }
        }
    }
}

#[test]
fn chunks_fill_extents_and_never_cross_them() {
    let symbols = Arc::new(symbols());
    // 4 bytes an event: well beyond the first extent and into the third.
    let events: Vec<u32> = (0..600_000).map(|i| 16 + i % 60_000).collect();
    let writer = write(Kind::None, &[Action::Events(1, events)], u64::MAX);
    assert!(writer.bytes().len() as u64 > 2 * extent_end(extent_end(0)));
    let reading = read(writer.bytes(), &symbols, u64::MAX).unwrap();
    assert_eq!(reading.complaints, Vec::<String>::new());
    // Every third is a leaf, but for those among the inherited.
    assert_eq!(reading.threads[1].3.len(), 600_000 + 200_000 - 1);
}

#[test]
fn a_chunk_that_was_taken_and_never_written_hides_nothing() {
    let symbols = Arc::new(symbols());
    let (_, bytes) = sample(Kind::Seed);
    let page = PAGE as usize;
    let mut gap = bytes.clone();
    // The process was killed before the first thread wrote its chunk's header; the second stands.
    gap[2 * page..2 * page + chunk::SIZE].fill(0);
    let reading = read(&gap, &symbols, u64::MAX).unwrap();
    assert_eq!(reading.threads.len(), 1);
    assert_eq!(reading.threads[0].0, 101);
}

#[test]
fn other_files_are_refused_with_expected_and_found() {
    let (_, bytes) = sample(Kind::Seed);
    let refused = |bytes: &[u8]| {
        container::read(bytes, |_| None)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(b"LOCK"),
        "byte 0: expected the header of a process file, found 4 bytes"
    );
    assert!(refused(b"").contains("no room to begin"));
    assert!(refused(&[0; 4096]).contains("found zeros"));
    assert!(refused(b"\x7fELF\x02\x01\x01\0").contains("found \"\\u{7f}ELF"));
    let with = |at: usize, value: u32| {
        let mut bytes = bytes.clone();
        put_u32(&mut bytes, at, value);
        let sum = check::crc32c(&bytes[..header::CHECK]);
        put_u32(&mut bytes, header::CHECK, sum);
        refused(&bytes)
    };
    assert_eq!(
        with(header::VERSION, 9),
        "byte 8: expected a process file of version 7 to 7, found version 9"
    );
    assert!(with(header::BYTE_ORDER, 0x0403_0201).contains("other byte order"));
    assert_eq!(
        with(header::CODEC, 77),
        "byte 16: expected a codec, found 77"
    );
}
