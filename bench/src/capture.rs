//! `cargo xtask bench capture`: what the capture codec makes of the events of the suite, and what that costs.
//!
//! Each source is recorded once; its symbols then go through each codec in batches as the probe has them. Times
//! are processor time of one thread, the least of several rounds, in which the codecs take turns.

use crate::measure;
use crate::rows::Rows;
use crate::statistics::geometric_mean;
use crate::suite;
use crate::words::Words;
use anyhow::{Result, ensure};
use lockstep_format::codec::{AnyDecoder, AnyEncoder, Decoder, Kind, Sink};
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN, TAIL};
use lockstep_trace::Event;
use lockstep_trace::sealed::Growing;
use rustix::time::{ClockId, clock_gettime};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench capture [OPTION]...

Bytes, and nanoseconds of processor time a symbol, of the capture codecs over the programs of programs/suite. Takes a minute.

  --rounds N   of which the least counts (5)
  --fresh      forget the rows that are there
";

const HEADS: [&str; 6] = [
    "source",
    "events",
    "codec",
    "bytes",
    "encode_ns",
    "decode_ns",
];

const CODECS: [Kind; 3] = [Kind::Lockstep, Kind::LockstepLow, Kind::Seed];

/// Symbols that a full staging area holds.
const BATCH: usize = 1024;

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--rounds"], &["--fresh"])?;
    let rounds: u32 = given.number("--rounds", 5)?;
    let path = measure::results_directory()?.join("capture.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    for program in suite::sources("main", "".as_ref())? {
        if rows.has(&[&program.name]) {
            continue;
        }
        let source = program.record()?;
        let symbols = symbols(&source.events);
        let mut least = [(f64::INFINITY, f64::INFINITY); CODECS.len()];
        let mut sizes = [0; CODECS.len()];
        for _ in 0..rounds {
            for ((kind, least), size) in CODECS.into_iter().zip(&mut least).zip(&mut sizes) {
                let (bytes, encoding) = timed(|| encoded(kind, &symbols));
                let (count, decoding) = timed(|| decoded(kind, &bytes));
                ensure!(
                    count == symbols.len(),
                    "{}: expected {} symbols, found {count}",
                    source.name,
                    symbols.len()
                );
                *least = (least.0.min(encoding), least.1.min(decoding));
                *size = bytes.len();
            }
        }
        for ((kind, least), size) in CODECS.into_iter().zip(least).zip(sizes) {
            let each = |nanoseconds: f64| format!("{:.2}", nanoseconds / symbols.len() as f64);
            let row = [
                source.name.clone(),
                symbols.len().to_string(),
                kind.name().to_owned(),
                size.to_string(),
                each(least.0),
                each(least.1),
            ];
            println!("{}", row.join("\t"));
            rows.add(&row)?;
        }
    }
    for kind in CODECS.into_iter().filter(|kind| *kind != Kind::Seed) {
        let mean = |head| geometric_mean(&beside_seed(&rows, kind, head));
        println!(
            "{}: bytes 1/{:.1} of seed's, encoding takes {:.2} times as long, decoding {:.2} (geometric means)",
            kind.name(),
            1.0 / mean("bytes"),
            mean("encode_ns"),
            mean("decode_ns"),
        );
    }
    Ok(())
}

/// A column of a codec beside that of `seed`, source by source.
fn beside_seed(rows: &Rows, kind: Kind, head: &str) -> Vec<f64> {
    let of = |kind: Kind| {
        let rows = rows
            .all()
            .filter(move |row| row.text("codec") == kind.name());
        rows.map(|row| row.number(head))
    };
    of(kind).zip(of(Kind::Seed)).map(|(a, b)| a / b).collect()
}

/// What `work` gives, and the nanoseconds for which this thread had a processor.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = on_processor();
    let result = work();
    (result, on_processor() - before)
}

fn on_processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// The symbols by which the probe tells events.
pub fn symbols(events: &[Event]) -> Vec<u32> {
    let symbol = |event: &Event| match event {
        Event::Call(function) => FIRST_FUNCTION + function.0,
        Event::Return => RETURN,
        Event::Tail => TAIL,
    };
    events.iter().map(symbol).collect()
}

/// What a codec makes of symbols.
pub fn encoded(kind: Kind, symbols: &[u32]) -> Vec<u8> {
    let mut encoder: Box<AnyEncoder<Growing, Growing>> = Box::default();
    let mut bytes = Bytes(Vec::new());
    for batch in symbols.chunks(BATCH) {
        encoder.push_batch(kind, batch, &mut bytes);
    }
    let tail = encoder.tail(kind);
    bytes.0.extend_from_slice(&tail.bytes[..tail.length]);
    bytes.0
}

/// How many symbols are decoded.
pub fn decoded(kind: Kind, bytes: &[u8]) -> usize {
    let mut decoder: Box<AnyDecoder<Growing, Growing>> = Box::new(AnyDecoder::new(kind));
    let (mut rest, mut batch, mut decoded) = (bytes, [0; 1024], 0);
    loop {
        let (count, _) = decoder.fill(&mut rest, &mut batch);
        decoded += count;
        if count < batch.len() {
            return decoded;
        }
    }
}
