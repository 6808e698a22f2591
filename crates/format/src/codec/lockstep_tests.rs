//! `lockstep` against a slow oracle, in sizes in which everything happens soon.
#![allow(clippy::unwrap_used)]

use super::DecodeError;
use super::chances::FIRST_CONTEXTS;
use super::lockstep::{DecoderState, EncoderState};
use super::memory::Memory;
use super::model::{FIRST_SLOTS, LONG, Low, MARGIN, Normal, Size};
use super::most_bytes;
use proptest::prelude::*;

type Words = Vec<u32>;

/// Runs are cut at 512 symbols, the window is 4,096, the table is full after 768 look-ups, there are 2,048 contexts.
struct Tiny;

impl Size for Tiny {
    const WINDOW: u32 = 4096;
    const SLOTS: u32 = 1024;
    const CONTEXTS: u32 = 2048;
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

/// Decodes what a stream is after every `step` symbols, each time only what is new.
fn follow<S: Size>(symbols: &[u32], step: usize) -> Vec<u32> {
    let mut encoder = EncoderState::<Words, Words>::default();
    let mut decoder = DecoderState::<Words, Words>::default();
    let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
    let mut room = vec![0; 256];
    for part in symbols.chunks(step) {
        encoder.push_batch::<S>(part, &mut bytes);
        let tail = encoder.tail();
        let whole = [&bytes, &tail.bytes[..tail.length]].concat();
        let mut rest = &whole[decoder.go_on().unwrap() as usize..];
        loop {
            let (count, outcome) = decoder.fill::<S>(&mut rest, &mut room);
            assert_eq!(outcome, Ok(()));
            decoded.extend(&room[..count]);
            if count < room.len() {
                break;
            }
        }
        assert!(rest.is_empty());
    }
    decoded
}

/// Decisions as the text reads, and their bytes.
struct Decisions {
    low: u64,
    high: u64,
    bytes: Vec<u8>,
}

/// A probability of 2^16 and how often it was asked.
#[derive(Clone, Copy)]
struct Odds {
    p: u64,
    count: u64,
}

const NEW: Odds = Odds {
    p: 1 << 15,
    count: 0,
};

impl Odds {
    fn learn(&mut self, yes: bool) {
        let rate = (2 << 16) / (2 * self.count + 3);
        if yes {
            self.p += (65535 - self.p) * rate / 65536;
        } else {
            self.p -= self.p * rate / 65536;
        }
        self.count = (self.count + 1).min(63);
    }
}

impl Decisions {
    fn bit(&mut self, p: u64, yes: bool) {
        let middle = self.low + ((self.high - self.low) * p) / 65536;
        if yes {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while self.low >> 24 == self.high >> 24 {
            self.bytes.push((self.low >> 24) as u8);
            self.low = self.low % (1 << 24) * 256;
            self.high = self.high % (1 << 24) * 256 + 255;
        }
    }

    fn odds(&mut self, odds: &mut Odds, yes: bool) {
        self.bit(odds.p.clamp(256, 65280), yes);
        odds.learn(yes);
    }

    fn rest(&mut self, odds: &mut [Odds], number: u64) {
        let bits = u64::BITS - number.leading_zeros() - 1;
        for known in 0..bits {
            let bit = number >> (bits - 1 - known) & 1 == 1;
            if known < 3 {
                let above = number >> (bits - known);
                self.odds(&mut odds[above as usize], bit);
            } else {
                self.bit(32768, bit);
            }
        }
    }
}

/// Contexts as the text reads: each has its place in a table that doubles.
struct Contexts {
    table: Vec<Option<(u32, Odds)>>,
    new: usize,
}

impl Contexts {
    fn get(&mut self, context: u32) -> Option<&mut Odds> {
        let place = context as usize % self.table.len();
        let (tag, odds) = self.table[place].as_mut()?;
        (*tag == context >> 22).then_some(odds)
    }

    fn learn(&mut self, context: u32, yes: bool, most: u32) {
        if let Some(odds) = self.get(context) {
            odds.learn(yes);
            return;
        }
        let mut odds = NEW;
        odds.learn(yes);
        let size = self.table.len();
        self.table[context as usize % size] = Some((context >> 22, odds));
        self.new += 1;
        if 4 * self.new >= size && size < most as usize {
            self.table.extend_from_within(..);
        }
    }
}

/// The codec as its text reads: the whole history kept, symbol by symbol, nothing clever.
fn reference<S: Size>(symbols: &[u32]) -> Vec<u8> {
    let mut coder = Decisions {
        low: 0,
        high: (1 << 32) - 1,
        bytes: Vec::new(),
    };
    if symbols.is_empty() {
        return coder.bytes;
    }
    // What is remembered; and of the run that is going on, everything.
    let mut history: Vec<u32> = Vec::new();
    let mut run: Vec<u32> = Vec::new();
    let mut best: Option<usize> = None;
    let mut table = vec![(None, None); FIRST_SLOTS as usize];
    let mut contexts = Contexts {
        table: vec![None; FIRST_CONTEXTS as usize],
        new: 0,
    };
    let mut instead = vec![0; 4096];
    let mut marked = [false; 1024];
    let mut told = NEW;
    let mut lengths = [NEW; 64];
    let mut run_bits = [[NEW; 8]; 16];
    let mut widths = [NEW; 64];
    let mut symbol_bits = [[NEW; 8]; 33];
    let context = |history: &[u32], predicted: u32| {
        let back = |n: usize| u64::from(history[history.len() - n]);
        let sum = (u64::from(predicted) + (back(1) << 32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add((back(2) + (back(3) << 32)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
        let mixed = (sum >> 32) as u32;
        mixed ^ mixed >> 15
    };
    let mut literal = |coder: &mut Decisions, symbol: u32| {
        let width = u32::BITS - symbol.leading_zeros();
        let mut node = 1;
        for level in (0..6).rev() {
            let bit = width >> level & 1;
            coder.odds(&mut widths[node], bit == 1);
            node = 2 * node + bit as usize;
        }
        if width > 0 {
            coder.rest(&mut symbol_bits[width as usize], symbol.into());
        }
    };
    for symbol in symbols {
        // The prediction: what stands there, and where the history ends, from there again.
        let predicted = best.map(|from| history[from + run.len() % (history.len() - from)]);
        if predicted == Some(*symbol) {
            run.push(*symbol);
            continue;
        }
        let length = run.len() as u64;
        let before = history.len();
        if length > S::KEPT {
            history.extend(&run[..S::KEPT as usize]);
            history.extend(&run[run.len() - LONG as usize..]);
        } else {
            history.extend(&run);
        }
        if let Some(predicted) = predicted {
            let here = context(&history, predicted);
            let mark = predicted as usize % 1024;
            if length < S::KEPT.min(1024) && marked[mark] && contexts.get(here).is_some() {
                coder.odds(&mut told, false);
                for at in before..history.len() {
                    if marked[history[at] as usize % 1024]
                        && let Some(odds) = contexts.get(context(&history[..at], history[at]))
                    {
                        coder.odds(odds, false);
                    }
                }
                if let Some(odds) = contexts.get(here) {
                    coder.odds(odds, true);
                }
            } else {
                coder.odds(&mut told, true);
                coder.bit(256, false);
                let number = length + 1;
                for bit in 0..=number.ilog2() {
                    coder.odds(&mut lengths[bit as usize], bit < number.ilog2());
                }
                coder.rest(&mut run_bits[number.ilog2().min(15) as usize], number);
                contexts.learn(here, true, S::CONTEXTS);
                marked[mark] = true;
            }
            let place = here.wrapping_mul(0x85eb_ca6b) as usize >> 20;
            let again = here.wrapping_mul(0x9e37_79b9);
            let again = again ^ again >> 15;
            let p = contexts.get(again).map_or(32768, |odds| odds.p);
            coder.bit(p.clamp(256, 65280), instead[place] == *symbol);
            contexts.learn(again, instead[place] == *symbol, S::CONTEXTS);
            if instead[place] != *symbol {
                literal(&mut coder, *symbol);
            }
            instead[place] = *symbol;
        } else {
            coder.bit(256, false);
            literal(&mut coder, *symbol);
        }
        history.push(*symbol);
        run.clear();
        best = None;
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
        best = fits(places.0, 6).or_else(|| fits(places.1, 2));
    }
    if best.is_some() {
        coder.bit(told.p.clamp(256, 65280), true);
    }
    coder.bit(256, true);
    let mut bytes = coder.bytes;
    bytes.extend((coder.low as u32).to_be_bytes());
    if best.is_some() {
        let mut number = run.len();
        while number > 127 {
            bytes.push((number % 128) as u8 + 128);
            number /= 128;
        }
        bytes.push(number as u8);
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
    for step in [1, 13, 600, 10_000] {
        assert!(follow::<S>(symbols, step) == symbols, "steps of {step}");
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
    symbols.extend([16, 17, 19]);
    let hexadecimal = |bytes: &[u8]| {
        let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
        bytes.collect::<Vec<_>>().join(" ")
    };
    let whole = hexadecimal(&encode::<Normal, Words>(&symbols, 5));
    assert_eq!(hexadecimal(&reference::<Normal>(&symbols)), whole);
    let document = include_str!("../../../../docs/trace-format.md");
    assert!(document.contains(&whole), "{whole}");
}

#[test]
fn what_no_encoder_writes_is_refused() {
    let refused = |bytes: &[u8]| decode::<Normal>(bytes, 100, 10_000).1;
    assert_eq!(refused(&[]), Ok(()));
    // Six times yes: a symbol of 63 bits.
    assert_eq!(refused(&[0x01, 0, 0, 0, 0, 0]), Err(DecodeError::TooLarge));
    let mut aimed = encode::<Normal, Words>(&[16, 17, 0, 18, 0, 0].repeat(3), 100);
    *aimed.last_mut().unwrap() = 0xff;
    assert_eq!(refused(&aimed), Err(DecodeError::CutOff));
    aimed.extend([0xff; 9]);
    assert_eq!(refused(&aimed), Err(DecodeError::TooLarge));
}

#[test]
fn cut_off_anywhere_a_stream_gives_a_prefix_and_says_so() {
    let symbols: Vec<u32> = noise(3000, 3)
        .into_iter()
        .flat_map(|symbol| [symbol, 16, 0, 0])
        .collect();
    let bytes = encode::<Tiny, Words>(&symbols, 100);
    for length in 1..bytes.len() {
        let (decoded, outcome) = decode::<Tiny>(&bytes[..length], 64, usize::MAX);
        assert!(symbols.starts_with(&decoded), "{length}");
        assert_eq!(outcome, Err(DecodeError::CutOff), "{length}");
    }
}

#[test]
fn no_batch_takes_more_than_is_said() {
    let mut symbols: Vec<u32> = noise(20_000, 7);
    // What was certain fails, by symbols as large as there are.
    symbols.extend([16, 17, 0, 0].repeat(3000));
    symbols.extend(noise(20_000, u32::MAX));
    symbols.extend((0..9000u32).map(|index| index.reverse_bits()));
    symbols.extend(
        [16, 17, 0]
            .repeat(9000)
            .iter()
            .zip(noise(27_000, 5))
            .map(|(a, b)| a + (b & 1)),
    );
    // Long runs through contexts in which predictions mostly failed.
    let again = noise(10_000, 5);
    symbols.extend(&again);
    for length in [300, 350, 400, 450] {
        symbols.extend(&again[again.len() - length..]);
        symbols.push(7);
    }
    for batch in [1, 256, 1024] {
        let mut encoder = EncoderState::<Words, Words>::default();
        for part in symbols.chunks(batch) {
            let mut bytes = Vec::new();
            encoder.push_batch::<Tiny>(part, &mut bytes);
            assert!(bytes.len() <= most_bytes(part.len()), "{}", bytes.len());
            assert!(encoder.tail().length <= 24);
        }
    }
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

/// Decodes into pieces, and passes over rounds where some are told: how many symbols, and which the others were.
fn decode_rounds<S: Size>(bytes: &[u8], symbols: &[u32], piece: usize) -> u64 {
    let mut bytes = bytes;
    let mut decoder = DecoderState::<Words, Words>::default();
    let mut room = vec![0; piece];
    let (mut at, mut passed) = (0, 0);
    loop {
        let (count, outcome) = decoder.fill::<S>(&mut bytes, &mut room);
        assert_eq!(outcome, Ok(()));
        assert_eq!(room[..count], symbols[at..at + count]);
        at += count;
        if count < piece {
            assert_eq!(at, symbols.len());
            return passed;
        }
        if let Some(round) = decoder.round::<S>() {
            let of_one = round.symbols as usize;
            let all = round.symbols * round.times;
            let rounds = symbols[at..at + all as usize].chunks(of_one);
            assert!(rounds.clone().all(|it| *it == symbols[at - of_one..at]));
            decoder.pass(all);
            (at, passed) = (at + all as usize, passed + all);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rounds_that_are_told_come(
        parts in prop::collection::vec((prop::collection::vec(0..9u32, 1..40), 1..400usize), 1..6),
        piece in 1..600usize,
    ) {
        let parts = parts.iter().map(|(body, times)| body.repeat(*times));
        let symbols = parts.collect::<Vec<_>>().concat();
        let bytes = encode::<Tiny, Words>(&symbols, 256);
        decode_rounds::<Tiny>(&bytes, &symbols, piece);
    }
}

#[test]
fn most_of_a_long_loop_is_told_as_rounds() {
    for body in [vec![7], vec![1, 2, 3], (0..300).collect()] {
        let symbols = body.repeat(200_000 / body.len());
        let bytes = encode::<Tiny, Words>(&symbols, 256);
        assert!(decode_rounds::<Tiny>(&bytes, &symbols, 256) > 190_000);
    }
    // A round that long is not.
    let body: Words = (0..600).collect();
    let bytes = encode::<Tiny, Words>(&body.repeat(300), 256);
    assert_eq!(decode_rounds::<Tiny>(&bytes, &body.repeat(300), 256), 0);
}
