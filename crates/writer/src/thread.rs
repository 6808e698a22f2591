//! A thread that is being written: its stream of events, its times, and the arguments of its calls.

use crate::file::{Bytes, Chunks, Pages, chunk_header};
use crate::{CODEC, Error, Growing};
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::AnyEncoder;
use lockstep_format::process::{THREAD_CHUNK, clock, kind, state, thread};
use lockstep_format::side::{self, FIRST_CHUNK, control, point};

pub(crate) type Encoder = AnyEncoder<Growing, Growing>;

/// Symbols that are encoded at once.
pub(crate) const BATCH: usize = 256;
/// Parts of a nanosecond in a tick: what a clock is worth follows from readings that are far apart in ticks.
const TICKS: u64 = 1 << 10;
/// Points that a thread may have for each event; later ones stand at least [`GAP`] apart.
const DENSE_POINTS: u64 = 1 << 22;
/// Ticks between later points.
const GAP: u64 = 1 << 21;

/// A thread that is being written.
#[derive(Debug)]
pub(crate) struct Trace {
    pub process: usize,
    index: u32,
    tid: u32,
    /// Where its chunk lies.
    at: u64,
    /// Symbols that are not encoded yet.
    batch: Vec<u32>,
    stream: Chunks,
    symbols: u64,
    check: u32,
    times: Option<Points>,
    arguments: Option<Arguments>,
}

impl Trace {
    pub fn new(process: usize, index: u32, tid: u32, pages: &mut Pages) -> Result<Self, Error> {
        let at = pages.take(THREAD_CHUNK)?;
        let data = at + thread::DATA as u64;
        Ok(Self {
            process,
            index,
            tid,
            at,
            batch: Vec::with_capacity(BATCH),
            stream: Chunks::new(kind::DATA, index, data, at + THREAD_CHUNK),
            symbols: 0,
            check: 0,
            times: None,
            arguments: None,
        })
    }

    pub fn push(
        &mut self,
        symbol: u32,
        encoder: &mut Encoder,
        pages: &mut Pages,
    ) -> Result<(), Error> {
        self.symbols += 1;
        self.batch.push(symbol);
        if self.batch.len() == BATCH {
            self.encode(encoder, pages)?;
        }
        Ok(())
    }

    fn encode(&mut self, encoder: &mut Encoder, pages: &mut Pages) -> Result<(), Error> {
        let mut bytes = Bytes(Vec::new());
        encoder.push_batch(CODEC, &self.batch, &mut bytes);
        self.batch.clear();
        self.check = check::extend(self.check, &bytes.0);
        self.stream.put(&bytes.0, pages)
    }

    /// The event that comes next happened so many nanoseconds after the epoch.
    pub fn time(&mut self, nanoseconds: u64, pages: &mut Pages) -> Result<(), Error> {
        let (ticks, symbols) = (ticks(nanoseconds), self.symbols + 1);
        if self.times.is_none() {
            let at = pages.take(FIRST_CHUNK)?;
            let data = at + control::DATA as u64;
            self.times = Some(Points {
                at,
                stream: Chunks::new(kind::TIMES, self.index, data, at + FIRST_CHUNK),
                first: ticks,
                count: 0,
                told: (0, ticks),
                last: ticks,
                last_symbols: symbols,
            });
        }
        match &mut self.times {
            Some(times) => times.point(symbols, ticks, pages),
            None => Ok(()),
        }
    }

    /// What a call was given, or gave back.
    pub fn tuple(&mut self, key: u32, values: &[i64], pages: &mut Pages) -> Result<(), Error> {
        if self.arguments.is_none() {
            let at = pages.take(FIRST_CHUNK)?;
            let data = at + control::DATA as u64;
            self.arguments = Some(Arguments {
                at,
                stream: Chunks::new(kind::ARGUMENTS, self.index, data, at + FIRST_CHUNK),
                encoder: Box::new(side::Encoder::NEW),
                run: 0,
            });
        }
        let Some(arguments) = &mut self.arguments else {
            return Ok(());
        };
        let mut bytes = Bytes(Vec::new());
        arguments.run = arguments.encoder.push(key, values, &mut bytes);
        arguments.stream.put(&bytes.0, pages)
    }

    /// Writes what is left, and the thread's head: it is over.
    pub fn finish(
        mut self,
        encoder: &mut Encoder,
        epoch: u64,
        pages: &mut Pages,
    ) -> Result<(), Error> {
        self.encode(encoder, pages)?;
        let tail = encoder.tail(CODEC);
        let committed = self.stream.finish(pages)?;
        let mut area = [0; state::SIZE];
        put_u64(&mut area, state::BYTES, committed);
        put_u64(&mut area, state::SYMBOLS, self.symbols);
        put_u32(&mut area, state::STREAM_CHECK, self.check);
        put_u32(&mut area, state::TAIL_LENGTH, tail.length as u32);
        put(&mut area, state::TAIL, &tail.bytes);
        let sum = check::crc32c(&area[..state::CHECK]);
        put_u32(&mut area, state::CHECK, sum);

        let mut head = [0; thread::STAGING];
        chunk_header(&mut head, kind::THREAD, THREAD_CHUNK, self.index, 0, &[]);
        put_u32(&mut head, thread::TID, self.tid);
        put_u64(&mut head, thread::STARTED, u64::from(self.index));
        put_u32(&mut head, thread::FIRST, self.index);
        let sum = check::crc32c(&head[thread::TID..thread::CHECK]);
        put_u32(&mut head, thread::CHECK, sum);
        put(&mut head, thread::COMMITTED, &area);
        if let Some(times) = self.times {
            // A second reading, far enough from the first to tell what a tick is worth.
            let readings = [
                (times.first, 0),
                (times.first + (GAP << 1), (GAP << 1) / TICKS),
            ];
            for (index, (ticks, more)) in readings.into_iter().enumerate() {
                let nanoseconds = epoch + times.first / TICKS + more;
                let at = thread::CLOCKS + clock::SIZE * index;
                put_u64(&mut head, at + clock::TICKS, ticks);
                put_u64(&mut head, at + clock::NANOSECONDS, nanoseconds);
                put_u64(&mut head, at + clock::CHECK, !(ticks ^ nanoseconds));
            }
            put_u64(&mut head, thread::LAST_SYMBOLS, times.last_symbols);
            put_u64(&mut head, thread::LAST_TICKS, times.last);
            finish_side(times.stream, times.at, 0, pages)?;
        }
        if let Some(arguments) = self.arguments {
            finish_side(arguments.stream, arguments.at, arguments.run, pages)?;
        }
        pages.write(self.at, &head)?;
        pages.close();
        Ok(())
    }
}

/// The times of a thread.
#[derive(Debug)]
struct Points {
    /// Where its first chunk lies.
    at: u64,
    stream: Chunks,
    first: u64,
    count: u64,
    /// The point written last: symbols and ticks.
    told: (u64, u64),
    last: u64,
    last_symbols: u64,
}

impl Points {
    fn point(&mut self, symbols: u64, ticks: u64, pages: &mut Pages) -> Result<(), Error> {
        // Times do not run backwards.
        let ticks = ticks.max(self.last);
        (self.last, self.last_symbols) = (ticks, symbols);
        if self.count >= DENSE_POINTS && ticks - self.told.1 < GAP {
            return Ok(());
        }
        let mut bytes = Bytes(Vec::new());
        let more = symbols - self.told.0;
        side::put_varint(&mut bytes, more << point::BITS | point::AFTER);
        side::put_varint(&mut bytes, ticks - self.told.1);
        self.told = (symbols, ticks);
        self.count += 1;
        self.stream.put(&bytes.0, pages)
    }
}

/// The arguments of a thread's calls.
#[derive(Debug)]
struct Arguments {
    /// Where their first chunk lies.
    at: u64,
    stream: Chunks,
    encoder: Box<side::Encoder>,
    /// The run that is going on.
    run: u32,
}

/// Writes what is left of a side stream, and the head of its first chunk.
fn finish_side(mut stream: Chunks, at: u64, run: u32, pages: &mut Pages) -> Result<(), Error> {
    let bytes = stream.finish(pages)?;
    let mut head = [0; control::DATA];
    chunk_header(&mut head, stream.kind, FIRST_CHUNK, stream.thread, 0, &[]);
    put_u64(&mut head, control::WORD, side::word(bytes, run));
    pages.write(at, &head)
}

fn ticks(nanoseconds: u64) -> u64 {
    // 0 means that there is none.
    nanoseconds
        .saturating_mul(TICKS)
        .saturating_add(TICKS)
        .min(u64::MAX / 4)
}
