//! `lockstep` against a slow oracle, in sizes in which everything happens soon.
#![allow(clippy::unwrap_used)]

use super::DecodeError;
use super::lockstep::{DecoderState, EncoderState};
use super::memory::Memory;
use super::model::{FIRST_SLOTS, FOLLOWERS, LONG, Low, MARGIN, Normal, Size};
use proptest::prelude::*;

type Words = Vec<u32>;

/// Runs are cut at 512 symbols, the window is 4,096, the table is full after 768 look-ups.
struct Tiny;

impl Size for Tiny {
    const WINDOW: u32 = 4096;
    const SLOTS: u32 = 1024;
}

/// More memory than any size takes, and all of it at once, as in the probe.
struct Ample(Words);

impl Default for Ample {
    fn default() -> Self {
        Self(vec![0; 1 << 20])
    }
}

impl Memory for Ample {
    fn words(&mut self, _: usize) -> &mut [u32] {
        &mut self.0
    }

    fn present(&self) -> &[u32] {
        &self.0
    }
}

fn encode<S: Size, M: Memory + Default>(symbols: &[u32], batch: usize) -> Vec<u8> {
    let mut encoder = EncoderState::<M, M>::default();
    let mut bytes = Vec::new();
    for batch in symbols.chunks(batch) {
        encoder.push_batch::<S>(batch, &mut bytes);
    }
    let tail = encoder.tail();
    bytes.extend(&tail.bytes[..tail.length]);
    bytes
}

/// Decodes into pieces of `piece` symbols, at most `limit`.
fn decode<S: Size>(
    mut bytes: &[u8],
    piece: usize,
    limit: usize,
) -> (Vec<u32>, Result<(), DecodeError>) {
    let mut decoder = DecoderState::<Words, Words>::default();
    let mut symbols = Vec::new();
    let mut room = vec![0; piece];
    while symbols.len() < limit {
        let (count, outcome) = decoder.fill::<S>(&mut bytes, &mut room);
        symbols.extend(&room[..count]);
        if count < piece || outcome.is_err() {
            return (symbols, outcome);
        }
    }
    (symbols, Ok(()))
}

/// The codec as its text reads: the whole history kept, symbol by symbol, nothing clever.
fn reference<S: Size>(symbols: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let number = |bytes: &mut Vec<u8>, mut number: u64| {
        while number > 127 {
            bytes.push((number % 128) as u8 + 128);
            number /= 128;
        }
        bytes.push(number as u8);
    };
    // What is remembered; and of the run that is going on, everything.
    let mut history: Vec<u32> = Vec::new();
    let mut run: Vec<u32> = Vec::new();
    let mut best: Option<usize> = None;
    let mut other: Option<usize> = None;
    let mut table = vec![(None, None); FIRST_SLOTS as usize];
    let mut followers = vec![0; FOLLOWERS];
    for symbol in symbols {
        // The prediction: what stands there, and where the history ends, from there again.
        if let Some(from) = best
            && history[from + run.len() % (history.len() - from)] == *symbol
        {
            run.push(*symbol);
            continue;
        }
        let length = run.len();
        let last = |history: &[u32]| history.last().copied().unwrap_or(0);
        let other_symbol = other.filter(|_| length == 0).map(|at| history[at]);
        if length as u64 > S::KEPT {
            history.extend(&run[..S::KEPT as usize]);
            history.extend(&run[length - LONG as usize..]);
        } else {
            history.extend(&run);
        }
        let follower: &mut u32 = &mut followers[last(&history) as usize % FOLLOWERS];
        if best.is_none() {
            number(&mut bytes, u64::from(*symbol));
        } else {
            let kind = match *symbol {
                symbol if other_symbol == Some(symbol) => 1,
                symbol if *follower == symbol => 2,
                0 => 3,
                _ => 0,
            };
            bytes.push(4 * length.min(63) as u8 + kind);
            if length >= 63 {
                number(&mut bytes, length as u64 - 63);
            }
            if kind == 0 {
                number(&mut bytes, u64::from(*symbol));
            }
        }
        *follower = *symbol;
        history.push(*symbol);
        run.clear();
        (best, other) = (None, None);
        if history.len() < 6 {
            continue;
        }
        let hash = |words: usize| -> usize {
            let constants = [
                0x9e37_79b9_7f4a_7c15u64,
                0xc2b2_ae3d_27d4_eb4f,
                0x1656_67b1_9e37_79f9,
            ];
            let newest: Vec<u64> = history
                .iter()
                .rev()
                .map(|w| u64::from(*w))
                .take(words)
                .collect();
            let sum = newest
                .chunks(2)
                .zip(constants)
                .fold(0u64, |sum, (pair, constant)| {
                    sum.wrapping_add((pair[1] + (pair[0] << 32)).wrapping_mul(constant))
                });
            (sum >> 32) as usize
        };
        let size = table.len();
        let half = 1 << size.ilog2();
        let slot = |hash: usize| {
            let slot = hash % (2 * half);
            if slot < size { slot } else { hash % half }
        };
        let window = S::WINDOW as usize;
        let (six, two) = (hash(6), hash(2));
        let places = (table[slot(six)].0, table[slot(two)].1);
        let place = |hash: usize| Some((hash / window, history.len()));
        table[slot(six)].0 = place(six);
        table[slot(two)].1 = place(two);
        if size < S::SLOTS as usize {
            table.push(table[size - half]);
        }
        // Of a place are known its remainder by the window's width, which is not 0, and its tag.
        let fits = |found: Option<(usize, usize)>, words: usize| {
            let (tag, place) = found?;
            let back = (history.len() - place) % window;
            let place = history.len() - back;
            (tag == hash(words) / window
                && !place.is_multiple_of(window)
                && back != 0
                && back <= window - MARGIN as usize
                && history[..place].ends_with(&history[history.len() - words..]))
            .then_some(place)
        };
        best = fits(places.0, 6);
        other = fits(places.1, 2);
        if best.is_none() {
            best = other.take();
        } else if best == other {
            other = None;
        }
    }
    if !run.is_empty() {
        bytes.push(4 * run.len().min(63) as u8);
        if run.len() >= 63 {
            number(&mut bytes, run.len() as u64 - 63);
        }
    }
    bytes
}

/// A random program: loops in loops around calls, branches that go by chance.
#[derive(Debug, Clone)]
enum Part {
    Symbol(u32),
    Loop(Vec<Part>, usize),
    Branch(Vec<Part>, Vec<Part>),
}

impl Part {
    fn run(&self, symbols: &mut Vec<u32>, chance: &mut u64) {
        if symbols.len() > 30_000 {
            return;
        }
        let all = |parts: &[Self], symbols: &mut Vec<u32>, chance: &mut u64| {
            for part in parts {
                part.run(symbols, chance);
            }
        };
        match self {
            Self::Symbol(symbol) => symbols.push(*symbol),
            Self::Loop(body, times) => (0..*times).for_each(|_| all(body, symbols, chance)),
            Self::Branch(one, other) => {
                *chance = chance
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                all(
                    if *chance >> 62 == 0 { one } else { other },
                    symbols,
                    chance,
                );
            }
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    let symbol = prop_oneof![
        4 => Just(0u32),
        8 => 16u32..40,
        1 => 16u32..100_000,
        1 => any::<u32>(),
    ];
    symbol
        .prop_map(Part::Symbol)
        .prop_recursive(5, 60, 8, |inner| {
            let body = || prop::collection::vec(inner.clone(), 1..8);
            let times = prop_oneof![8 => 1usize..30, 1 => 500usize..3000];
            prop_oneof![
                (body(), times).prop_map(|(body, times)| Part::Loop(body, times)),
                (body(), body()).prop_map(|(one, other)| Part::Branch(one, other)),
            ]
        })
}

fn programs() -> impl Strategy<Value = Vec<u32>> {
    (prop::collection::vec(part(), 1..6), any::<u64>()).prop_map(|(parts, mut chance)| {
        let mut symbols = Vec::new();
        for part in &parts {
            part.run(&mut symbols, &mut chance);
        }
        symbols
    })
}

/// Symbols by chance: all that look-ups can do to the table and the ring.
fn noise(length: usize, alphabet: u32) -> Vec<u32> {
    let mut state = u64::from(alphabet);
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            16 + (state >> 33) as u32 % alphabet
        })
        .collect()
}

fn agrees<S: Size>(symbols: &[u32]) {
    let expected = reference::<S>(symbols);
    for batch in [1, 7, 256, 1024, 100_000] {
        assert!(
            encode::<S, Words>(symbols, batch) == expected,
            "batches of {batch}"
        );
    }
    assert!(encode::<S, Ample>(symbols, 300) == expected);
    for piece in [1, 5, 256, 100_000] {
        let (decoded, outcome) = decode::<S>(&expected, piece, usize::MAX);
        assert_eq!(outcome, Ok(()));
        assert!(decoded == symbols, "pieces of {piece}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn programs_agree_with_the_reference(symbols in programs()) {
        agrees::<Tiny>(&symbols);
        agrees::<Low>(&symbols);
        agrees::<Normal>(&symbols);
    }

    #[test]
    fn any_bytes_decode_to_something(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        survives(&bytes);
    }
}

/// The body of a fuzz target: any bytes, into pieces of any size, give the same symbols and outcome.
fn survives(bytes: &[u8]) {
    let (one, _) = decode::<Tiny>(bytes, 1, 50_000);
    let (many, _) = decode::<Tiny>(bytes, 1000, 50_000);
    assert!(one[..one.len().min(50_000)] == many[..many.len().min(50_000)]);
}

#[test]
fn noise_agrees_with_the_reference() {
    for alphabet in [1, 2, 3, 16, 1024, 1 << 24] {
        agrees::<Tiny>(&noise(20_000, alphabet));
        agrees::<Low>(&noise(150_000, alphabet));
        let branches = noise(20_000, alphabet)
            .into_iter()
            .flat_map(|symbol| [symbol, 0]);
        agrees::<Tiny>(&branches.collect::<Vec<_>>());
    }
}

/// As it stands in docs/trace-format.md.
#[test]
fn the_worked_example() {
    let mut symbols = [16, 17, 0, 18, 0, 0].repeat(3);
    symbols.extend([16, 17]);
    let literals = [16, 17, 0, 18, 0, 0, 16, 17, 0, 18, 0, 0];
    let run = [&literals[..], &[0x20]].concat();
    assert_eq!(encode::<Normal, Words>(&symbols, 5), run);
    symbols.push(19);
    let whole = [&run[..], &[19]].concat();
    assert_eq!(encode::<Normal, Words>(&symbols, 5), whole);
    assert_eq!(reference::<Normal>(&symbols), whole);
}

#[test]
fn what_no_encoder_writes_is_refused() {
    let aimed = [16, 17, 0, 18, 0, 0, 16, 17, 0, 18, 0, 0];
    let decoded = |more: &[u8]| {
        let (symbols, outcome) = decode::<Normal>(&[&aimed[..], more].concat(), 100, 10_000);
        (symbols.len(), outcome)
    };
    assert_eq!(decoded(&[]), (12, Ok(())));
    assert_eq!(decoded(&[0x08]), (14, Ok(())));
    assert_eq!(decoded(&[0x01]), (12, Err(DecodeError::NoOther)));
    assert_eq!(decoded(&[0x05]), (13, Err(DecodeError::NoOther)));
    assert_eq!(decoded(&[0xfc]), (12, Err(DecodeError::CutOff)));
    assert_eq!(decoded(&[0x00, 0x80]), (12, Err(DecodeError::CutOff)));
    let too_large = [0x00, 0x80, 0x80, 0x80, 0x80, 0x10];
    assert_eq!(decoded(&too_large), (12, Err(DecodeError::TooLarge)));
    let endless = [&[0xfc][..], &[0xff; 12]].concat();
    assert_eq!(decoded(&endless), (12, Err(DecodeError::TooLarge)));
}

/// No run is too long, and one that is never ends what follows.
#[test]
fn runs_of_all_lengths() {
    for period in [1u32, 2, 3, 7, 255, 256, 300, 600, 1000, 1500] {
        let body: Vec<u32> = (16..16 + period).collect();
        for length in [
            0, 1, 6, 62, 63, 64, 505, 511, 512, 513, 517, 519, 1024, 5000,
        ] {
            let mut symbols = body.repeat(2);
            symbols.extend(body.iter().cycle().take(length));
            symbols.push(0);
            let once = symbols.clone();
            for _ in 0..3 {
                symbols.extend(&once);
            }
            agrees::<Tiny>(&symbols);
        }
    }
}

/// Memory of which only the beginning may be touched.
#[derive(Default)]
struct Little(Words);

impl Memory for Little {
    fn words(&mut self, count: usize) -> &mut [u32] {
        assert!(count <= 1024);
        self.0.words(count)
    }

    fn present(&self) -> &[u32] {
        &self.0
    }
}

#[test]
fn short_streams_touch_little_memory() {
    for alphabet in [2, 1024] {
        encode::<Normal, Little>(&noise(200, alphabet), 256);
    }
}
