//! The codecs against a slow reference, every prefix, every truncation, and noise.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use super::any::{HISTORY, TABLE};
use super::memory::Memory;
use super::seed::{Key, LastFour, LastOne, Original, Seed, Unseed};
use super::{AnyDecoder, AnyEncoder, DecodeError, Decoder, Encoder, Kind};
use proptest::prelude::*;
use std::path::PathBuf;

/// Everything that `bytes` decode to, and how it ended.
fn decode(kind: Kind, mut bytes: &[u8], limit: usize) -> (Vec<u32>, Result<(), DecodeError>) {
    let mut decoder = Box::new(AnyDecoder::<Vec<u32>, Vec<u32>>::new(kind));
    let mut symbols = Vec::new();
    while symbols.len() < limit {
        match decoder.next(&mut bytes) {
            Ok(Some(symbol)) => symbols.push(symbol),
            Ok(None) => return (symbols, Ok(())),
            Err(error) => return (symbols, Err(error)),
        }
    }
    (symbols, Ok(()))
}

fn encode(kind: Kind, symbols: &[u32]) -> Vec<u8> {
    let mut encoder = Box::<AnyEncoder<Vec<u32>, Vec<u32>>>::default();
    let mut bytes = Vec::new();
    for symbol in symbols {
        assert!(encoder.push(kind, *symbol, &mut bytes));
    }
    let tail = encoder.tail(kind);
    bytes.extend(&tail.bytes[..tail.length]);
    bytes
}

/// LZ+ZE as its published description reads once it is made decodable: word by word, the whole
/// history kept, nothing clever.
fn reference<K: Key>(symbols: &[u32]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut seen: Vec<u16> = Vec::new();
    let mut last = std::collections::HashMap::new();
    let mut repeat: Option<(usize, u16)> = None;
    // Words before the beginning are zeros for the table's sake only.
    let four = |seen: &[u16], end: usize| -> [u16; 4] {
        std::array::from_fn(|i| (end + i).checked_sub(4).map_or(0, |at| seen[at]))
    };
    for symbol in symbols {
        let word = u16::try_from(*symbol).unwrap();
        let repeats = repeat.filter(|(from, length)| seen[*from] == word && *length < u16::MAX);
        if repeats.is_none() {
            output.extend(repeat.map(|(_, length)| length));
            output.push(word);
        }
        seen.push(word);
        let words = four(&seen, seen.len());
        let key = K::slot(
            words
                .iter()
                .fold(0, |all, word| all << 16 | u64::from(*word)),
        ) & 0xfff;
        let place = last.insert(key, seen.len());
        repeat = match repeats {
            Some((from, length)) => Some((from + 1, length + 1)),
            None => place
                .filter(|place| *place >= 4 && seen.len() - place <= 65_532)
                .filter(|place| four(&seen, *place) == words)
                .map(|place| (place, 0)),
        };
    }
    output.extend(repeat.map(|(_, length)| length));
    let mut bytes = Vec::new();
    for group in output.chunks(4) {
        let raw: Vec<u8> = (0..4)
            .flat_map(|i| group.get(i).copied().unwrap_or(0).to_le_bytes())
            .collect();
        bytes.push((0..8).map(|bit| u8::from(raw[bit] != 0) << bit).sum());
        bytes.extend(raw.iter().filter(|byte| **byte != 0));
    }
    if let Some(group) = output.chunks(4).last() {
        bytes.push(group.len() as u8);
    }
    bytes
}

/// Streams that look like calls and returns: loops in loops, some noise.
fn streams() -> impl Strategy<Value = Vec<u32>> {
    let noise = prop::collection::vec(prop_oneof![0u32..20, 0u32..65_536, Just(0)], 0..40);
    let body = prop::collection::vec(prop_oneof![Just(0u32), 16u32..24], 1..12);
    let piece = prop_oneof![
        noise,
        (body.clone(), 1usize..30).prop_map(|(body, times)| body.repeat(times)),
        (body.clone(), body, 1usize..6, 1usize..8)
            .prop_map(|(a, b, inner, outer)| { [a.repeat(inner), b].concat().repeat(outer) }),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equals_the_reference(symbols in streams()) {
        prop_assert_eq!(encode(Kind::Seed, &symbols), reference::<LastFour>(&symbols));
        prop_assert_eq!(encode(Kind::SeedV0, &symbols), reference::<LastOne>(&symbols));
    }

    #[test]
    fn every_prefix_with_its_tail_is_the_prefix(symbols in streams()) {
        for kind in Kind::ALL {
            let mut encoder = Box::<AnyEncoder<Vec<u32>, Vec<u32>>>::default();
            let mut bytes = Vec::new();
            for end in 0..=symbols.len() {
                let tail = encoder.tail(kind);
                let whole = [&bytes[..], &tail.bytes[..tail.length]].concat();
                let (decoded, outcome) = decode(kind, &whole, usize::MAX);
                prop_assert_eq!(outcome, Ok(()));
                prop_assert_eq!(&decoded[..], &symbols[..end]);
                if let Some(symbol) = symbols.get(end) {
                    prop_assert!(encoder.push(kind, *symbol, &mut bytes));
                }
            }
        }
    }

    #[test]
    fn a_stream_cut_off_anywhere_gives_a_prefix(symbols in streams()) {
        for kind in Kind::ALL {
            let bytes = encode(kind, &symbols);
            for end in 0..bytes.len() {
                let (decoded, _) = decode(kind, &bytes[..end], usize::MAX);
                prop_assert!(symbols.starts_with(&decoded), "{:?} cut at {}", kind, end);
            }
        }
    }

    #[test]
    fn noise_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for kind in Kind::ALL {
            survives(kind, &bytes);
        }
    }
}

/// The body of a fuzz target: any bytes decode to something or an error, in bounded work.
fn survives(kind: Kind, bytes: &[u8]) {
    let (symbols, _) = decode(kind, bytes, 100_000);
    assert!(symbols.iter().all(|symbol| *symbol <= kind.largest()));
}

#[test]
fn the_worked_vector() {
    let symbols = [1, 0, 2, 0].repeat(4);
    let mut encoder = Seed::<LastFour>::default();
    let mut bytes = Vec::new();
    for symbol in &symbols {
        assert!(encoder.push(*symbol, &mut bytes));
    }
    assert_eq!(bytes, [0x11, 1, 2, 0x11, 1, 2]);
    let tail = encoder.tail();
    assert_eq!(tail.bytes[..tail.length], [1, 8, 1]);
}

#[test]
fn long_repeats_and_old_places() {
    // Longer than one length can tell; then noise that pushes the loop out of the ring; then the loop.
    let mut symbols = [16, 0, 17, 0].repeat(50_000);
    let mut state = 1u64;
    symbols.extend((0..70_000).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32 % 3000
    }));
    symbols.extend([16, 0, 17, 0].repeat(3));
    for kind in Kind::ALL {
        assert_eq!(decode(kind, &encode(kind, &symbols), usize::MAX).0, symbols);
    }
    assert_eq!(
        encode(Kind::Seed, &symbols),
        reference::<LastFour>(&symbols)
    );
    assert_eq!(
        encode(Kind::SeedV0, &symbols),
        reference::<LastOne>(&symbols)
    );
}

#[test]
fn symbols_above_sixteen_bits_are_refused_and_change_nothing() {
    for kind in [Kind::Seed, Kind::SeedV0, Kind::SeedParlot] {
        let mut encoder = Box::<AnyEncoder<Vec<u32>, Vec<u32>>>::default();
        let mut bytes = Vec::new();
        for symbol in [16, 0, 65_536, 65_535, u32::MAX, 0] {
            assert_eq!(encoder.push(kind, symbol, &mut bytes), symbol <= 65_535);
        }
        let tail = encoder.tail(kind);
        bytes.extend(&tail.bytes[..tail.length]);
        assert_eq!(decode(kind, &bytes, 100).0, [16, 0, 65_535, 0]);
    }
}

/// The directory with real files of the original tool; they are not ours to keep, so this may be
/// absent.
fn original_files() -> Option<PathBuf> {
    let found = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("shared/data/parlot-run-16690"))
        .find(|directory| directory.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no shared/data/parlot-run-16690 beside this checkout");
    }
    found
}

#[test]
fn files_of_the_original_tool() {
    let Some(directory) = original_files() else {
        return;
    };
    let read = |suffix: &str| {
        std::fs::read(directory.join(format!("parlotm.attenborough.16690.{suffix}"))).unwrap()
    };
    let text = |suffix: &str| String::from_utf8(read(suffix)).unwrap();
    // A line "+", the image, then one name a line; identifier 1 is the first of them.
    let info = text("info");
    let names: Vec<&str> = info.lines().skip(1).collect();
    // From 1153 on the authors' names are of other lines: there the same identifier must at least
    // always have the same name.
    let mut others = std::collections::HashMap::new();
    for thread in 0..5 {
        let bytes = read(&thread.to_string());
        let mut source = &bytes[..];
        let mut decoder = Unseed::<Original>::default();
        let mut symbols = Vec::new();
        while let Some(symbol) = decoder.next(&mut source).unwrap() {
            symbols.push(symbol);
        }
        let expected = text(&format!("{thread}.txt"));
        assert_eq!(symbols.len(), expected.lines().count());
        for (symbol, line) in symbols.iter().zip(expected.lines()) {
            match *symbol {
                0 => assert_eq!(line, "[ret]"),
                1..1153 => assert_eq!(line, names[*symbol as usize]),
                _ => assert_eq!(line, others.entry(*symbol).or_insert(line.to_owned())),
            }
        }
        assert_eq!(encode(Kind::SeedParlot, &symbols), bytes, "thread {thread}");
    }
    assert!(!others.is_empty());
}

/// Arrays of known length, as in the probe.
struct Fixed<const N: usize>(Box<[u32; N]>);

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        Self(vec![0; N].try_into().unwrap())
    }
}

impl<const N: usize> Memory for Fixed<N> {
    #[inline]
    fn words(&mut self, _: usize) -> &mut [u32] {
        &mut *self.0
    }

    #[inline]
    fn present(&self) -> &[u32] {
        &*self.0
    }
}

/// A stream of symbols with its name.
type Named = (String, Vec<u32>);

/// Loops, branches, random alphabets; and what stands in the directory `$STREAMS`, files of symbols
/// of 4 bytes each, as the codec `none` writes them.
fn measured_streams() -> Vec<Named> {
    let mut state = 1u64;
    let mut random = move |below: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32 % below
    };
    let mut alphabet = |size: u32| {
        (0..1 << 22)
            .map(|_| 16 + random(size))
            .collect::<Vec<u32>>()
    };
    let (two, sixteen, thousand) = (alphabet(2), alphabet(16), alphabet(1024));
    let nest = |outer: u32, inner: u32| {
        let inside = [18, 0, 19, 20, 0, 0].repeat(inner as usize);
        [&[16, 17, 0][..], &inside, &[0]]
            .concat()
            .repeat(outer as usize)
    };
    let mut streams = vec![
        (
            "loop of 8".to_owned(),
            [16, 17, 0, 18, 19, 0, 0, 0].repeat(1 << 20),
        ),
        ("loops 20,000 x 60".to_owned(), nest(20_000, 60)),
        ("loops 20 x 60,000".to_owned(), nest(20, 60_000)),
        (
            "branches".to_owned(),
            two.iter().flat_map(|symbol| [*symbol, 0]).collect(),
        ),
        ("random of 2".to_owned(), two),
        ("random of 16".to_owned(), sixteen),
        ("random of 1024".to_owned(), thousand),
    ];
    if let Some(directory) = std::env::var_os("STREAMS") {
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let words = bytes.as_chunks::<4>().0.iter();
            let symbols = words.map(|word| u32::from_le_bytes(*word)).collect();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            streams.push((name, symbols));
        }
    }
    streams
}

/// `STREAMS=directory cargo test --profile probe -p lockstep-format -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement"]
fn speed() {
    eprintln!(
        "{:20} {:12} {:>10} {:>10} {:>9} {:>7} {:>7} {:>7}",
        "stream", "codec", "symbols", "bytes", "B/symbol", "enc ns", "next ns", "fill ns"
    );
    for (name, symbols) in measured_streams() {
        for kind in [
            Kind::Lockstep,
            Kind::LockstepLow,
            Kind::Seed,
            Kind::SeedV0,
            Kind::None,
        ] {
            let mut fastest = [f64::MAX; 3];
            let mut size = 0;
            for _ in 0..3 {
                let mut encoder = Box::<AnyEncoder<Fixed<TABLE>, Fixed<HISTORY>>>::default();
                let mut bytes = Vec::with_capacity(5 * symbols.len() + 64);
                let start = std::time::Instant::now();
                for batch in symbols.chunks(256) {
                    assert_eq!(encoder.push_batch(kind, batch, &mut bytes), batch.len());
                }
                let encoding = start.elapsed();
                let tail = encoder.tail(kind);
                bytes.extend(&tail.bytes[..tail.length]);
                size = bytes.len();

                let mut decoder = Box::new(AnyDecoder::<Vec<u32>, Vec<u32>>::new(kind));
                let mut source = &bytes[..];
                let start = std::time::Instant::now();
                let mut sum = 0u32;
                while let Ok(Some(symbol)) = decoder.next(&mut source) {
                    sum = sum.wrapping_add(symbol);
                }
                let one_by_one = start.elapsed();
                assert_eq!(
                    sum,
                    symbols
                        .iter()
                        .fold(0u32, |sum, symbol| sum.wrapping_add(*symbol))
                );

                let mut decoder = Box::new(AnyDecoder::<Vec<u32>, Vec<u32>>::new(kind));
                let mut source = &bytes[..];
                let mut buffer = vec![0; 4096];
                let start = std::time::Instant::now();
                let mut whole = true;
                for batch in symbols.chunks(4096) {
                    let room = &mut buffer[..batch.len()];
                    assert_eq!(decoder.fill(&mut source, room), (batch.len(), Ok(())));
                    whole &= room == batch;
                }
                let filling = start.elapsed();
                assert!(whole);
                for (fastest, time) in fastest.iter_mut().zip([encoding, one_by_one, filling]) {
                    *fastest = fastest.min(time.as_secs_f64() * 1e9 / symbols.len() as f64);
                }
            }
            eprintln!(
                "{name:20} {:12} {:10} {size:10} {:9.5} {:7.2} {:7.2} {:7.2}",
                kind.name(),
                symbols.len(),
                size as f64 / symbols.len() as f64,
                fastest[0],
                fastest[1],
                fastest[2],
            );
        }
    }
}
