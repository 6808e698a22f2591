//! The events of one thread, decoded from where they lie.

use crate::container::ThreadFile;
use crate::frames::Frames;
use crate::map::Mapped;
use crate::mirror::Owners;
use crate::model::{Event, FunctionId};
use crate::symbols::{Meaning, Symbols};
use lockstep_format::check;
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyDecoder, DecodeError, Decoder, Kind, Source};
use lockstep_format::symbol::{self, Staged};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::Arc;

/// Where a thread's events come from.
#[derive(Debug, Clone)]
pub(crate) enum Stream {
    /// From memory.
    Memory(Arc<[Event]>),
    /// From a process file.
    File(Arc<FileStream>),
}

/// A stream in a process file.
#[derive(Debug)]
pub(crate) struct FileStream {
    pub file: Arc<Mapped>,
    pub codec: Kind,
    pub pieces: Vec<Range<usize>>,
    pub tail: Vec<u8>,
    /// How many symbols the stream gives, as counted when it was opened.
    pub decoded: u64,
    /// How many of them are calls that a forked child inherited.
    pub inherited: u32,
    pub staged: Vec<Staged>,
    pub symbols: Arc<Symbols>,
}

/// Symbols that are decoded at once.
const BATCH: usize = 256;

/// A codec's memory: as much as was needed so far, doubled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growing(Vec<u32>);

impl Memory for Growing {
    #[inline]
    fn words(&mut self, count: usize) -> &mut [u32] {
        if self.0.len() < count {
            self.0.resize(count.next_power_of_two().max(BATCH), 0);
        }
        &mut self.0
    }

    #[inline]
    fn present(&self) -> &[u32] {
        &self.0
    }
}

type AnyGrowing = AnyDecoder<Growing, Growing>;

/// The bytes of a stream: its pieces, then its tail.
#[derive(Debug, Clone)]
pub(crate) struct Bytes<'a> {
    file: &'a [u8],
    pieces: std::slice::Iter<'a, Range<usize>>,
    here: &'a [u8],
    tail: &'a [u8],
    left: u64,
}

impl<'a> Bytes<'a> {
    pub fn new(file: &'a [u8], pieces: &'a [Range<usize>], tail: &'a [u8]) -> Self {
        let length: usize = pieces.iter().map(Range::len).sum();
        Self {
            file,
            pieces: pieces.iter(),
            here: &[],
            tail,
            left: (length + tail.len()) as u64,
        }
    }
}

impl Source for Bytes<'_> {
    #[inline]
    fn take(&mut self) -> Option<u8> {
        loop {
            if let Some((byte, rest)) = self.here.split_first() {
                self.here = rest;
                self.left -= 1;
                return Some(*byte);
            }
            self.here = match self.pieces.next() {
                Some(piece) => self.file.get(piece.clone())?,
                None if self.tail.is_empty() => return None,
                None => std::mem::take(&mut self.tail),
            };
        }
    }

    #[inline]
    fn left(&self) -> u64 {
        self.left
    }
}

/// The events of a thread, in order; decodes as it goes. About 170 kB while it lives, and
/// what the codec `lockstep` remembers: up to 4.3 MB in long streams.
pub struct Events<'a>(Inner<'a>);

enum Inner<'a> {
    Memory(std::iter::Copied<std::slice::Iter<'a, Event>>),
    File(Box<FromFile<'a>>),
}

struct FromFile<'a> {
    stream: &'a FileStream,
    decoder: AnyGrowing,
    bytes: Bytes<'a>,
    /// Symbols of the stream that are not decoded yet.
    left: u64,
    /// Decoded symbols, and which of them were not handed out.
    batch: [u32; BATCH],
    ready: Range<usize>,
    staged: std::iter::Copied<std::slice::Iter<'a, Staged>>,
    meaning: Meaning,
    /// The return of a leaf comes next.
    returns: bool,
}

impl Stream {
    pub fn events(&self) -> Events<'_> {
        Events(match self {
            Self::Memory(events) => Inner::Memory(events.iter().copied()),
            Self::File(stream) => Inner::File(Box::new(FromFile {
                stream,
                decoder: AnyGrowing::new(stream.codec),
                bytes: Bytes::new(stream.file.bytes(), &stream.pieces, &stream.tail),
                left: stream.decoded,
                batch: [0; BATCH],
                ready: 0..0,
                staged: stream.staged.iter().copied(),
                meaning: Meaning::new(stream.inherited),
                returns: false,
            })),
        })
    }
}

impl FromFile<'_> {
    fn symbol(&mut self) -> Option<u32> {
        if self.ready.is_empty() && self.left > 0 {
            let most = self.left.min(BATCH as u64) as usize;
            let (count, _) = self.decoder.fill(&mut self.bytes, &mut self.batch[..most]);
            self.ready = 0..count;
            // Fewer where the file changed since it was opened.
            self.left = if count == most {
                self.left - most as u64
            } else {
                0
            };
        }
        if let Some(index) = self.ready.next() {
            return Some(self.batch[index]);
        }
        self.staged.next().map(|event| event.symbol)
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Inner::Memory(events) => events.next(),
            Inner::File(from) => loop {
                if std::mem::take(&mut from.returns) {
                    return Some(Event::Return);
                }
                let symbol = from.symbol()?;
                if let Some((event, returns)) = from.meaning.of(symbol, &from.stream.symbols) {
                    from.returns = returns;
                    return Some(event);
                }
            },
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Inner::Memory(events) => events.size_hint(),
            Inner::File(from) => {
                let decoded = from.ready.len() + from.staged.len();
                let most = usize::try_from(from.left)
                    .ok()
                    .and_then(|left| left.checked_add(decoded))
                    .and_then(|symbols| symbols.checked_mul(2)?.checked_add(1));
                (0, most)
            }
        }
    }
}

impl std::fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// What one pass over a thread's stream finds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// How many symbols the committed stream gives.
    pub decoded: u64,
    /// How many events those and the staged ones are.
    pub events: u64,
    /// Open calls at the end.
    pub frames: Frames,
    /// Whose return addresses the mirror holds, and those of calls made since.
    pub owners: Owners,
    /// The last event is this leaf's symbol: it may not have returned.
    pub last_leaf: Option<FunctionId>,
    /// Function symbols that no image has.
    pub unknown: FxHashSet<u32>,
    /// What does not hold.
    pub damage: Vec<String>,
}

/// Decodes everything once and checks it.
pub(crate) fn scan(file: &[u8], codec: Kind, thread: &ThreadFile, symbols: &Symbols) -> Scan {
    let mut scan = Scan::default();
    if let Some(expected) = thread.check {
        let found = thread.pieces.iter().fold(0, |sum, piece| {
            check::extend(sum, file.get(piece.clone()).unwrap_or(&[]))
        });
        if found != expected {
            scan.damage.push(format!(
                "expected a stream with check {expected:08x}, found {found:08x}: some events are wrong"
            ));
        }
    }
    let mut decoder = Box::new(AnyGrowing::new(codec));
    let mut bytes = Bytes::new(file, &thread.pieces, &thread.tail);
    let mut reserved = 0u64;
    let mut error = None;
    let mut meaning = Meaning::new(thread.inherited);
    let mut batch = [0; BATCH];
    while scan.decoded < thread.symbols {
        let most = (thread.symbols - scan.decoded).min(BATCH as u64) as usize;
        let (count, outcome) = decoder.fill(&mut bytes, &mut batch[..most]);
        for symbol in &batch[..count] {
            scan.decoded += 1;
            reserved += u64::from(!scan.apply(*symbol, None, &mut meaning, symbols));
        }
        error = outcome.err();
        if count < most {
            break;
        }
    }
    scan.compare(thread, error, &bytes, &mut decoder);
    // Events behind a gap would be calls in the wrong place.
    if scan.decoded == thread.symbols {
        scan.owners.commit();
        for event in &thread.staged {
            let address = Some(event.return_address);
            reserved += u64::from(!scan.apply(event.symbol, address, &mut meaning, symbols));
        }
    }
    if reserved > 0 {
        scan.damage.push(format!(
            "{reserved} events of kinds that this version does not know, left out"
        ));
    }
    scan
}

impl Scan {
    /// False where the symbol is none that we know.
    fn apply(
        &mut self,
        symbol: u32,
        address: Option<u32>,
        meaning: &mut Meaning,
        symbols: &Symbols,
    ) -> bool {
        match meaning.of(symbol, symbols) {
            // Over before anything else happens: the stack is as before.
            Some((Event::Call(leaf), true)) => {
                self.events += 2;
                self.last_leaf = Some(leaf);
            }
            Some((event, _)) => {
                self.frames.apply(event);
                self.owners.apply(event, address);
                self.events += 1;
                self.last_leaf = None;
            }
            None if symbol >= symbol::FIRST_FUNCTION => {
                self.unknown.insert(symbol);
            }
            None => return false,
        }
        true
    }

    fn compare(
        &mut self,
        thread: &ThreadFile,
        error: Option<DecodeError>,
        bytes: &Bytes<'_>,
        decoder: &mut AnyGrowing,
    ) {
        let expected = thread.symbols;
        if let Some(error) = error {
            self.damage.push(format!(
                "expected {expected} events, found {} and then: {error}",
                self.decoded
            ));
        } else if self.decoded < expected {
            self.damage.push(format!(
                "expected {expected} events, found {}",
                self.decoded
            ));
        } else {
            // An open match of length 0 is still to be read; it is no event.
            let mut rest = bytes.clone();
            if !matches!(decoder.next(&mut rest), Ok(None)) || rest.left > 0 {
                self.damage
                    .push(format!("expected {expected} events, found more"));
            }
        }
    }
}
