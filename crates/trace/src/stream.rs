//! The events of one thread, decoded from where they lie.

use crate::container::ThreadFile;
use crate::frames::Frames;
use crate::map::Mapped;
use crate::mirror::Owners;
use crate::model::{Event, FunctionId};
use crate::recent::{self, Recent};
use crate::sealed::{SealedStream, SealedThread, Walk};
use crate::symbols::{Meaning, Symbols};
use lockstep_format::check;
pub use lockstep_format::codec::Round;
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyDecoder, DecodeError, Decoder, Kind, Source};
use lockstep_format::symbol::{self, Staged};
use rustc_hash::FxHashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Where a thread's events come from.
#[derive(Debug, Clone)]
pub(crate) enum Stream {
    /// From memory.
    Memory(Arc<[Event]>),
    /// From a process file.
    File(Arc<FileStream>),
    /// From the trees of a sealed run.
    Sealed(Arc<SealedStream>),
}

/// A stream in a process file.
#[derive(Debug)]
pub(crate) struct FileStream {
    pub file: Arc<Mapped>,
    pub codec: Kind,
    /// One, or where only the last events were kept the segments that are there; oldest first.
    pub segments: Vec<Segment>,
    pub staged: Vec<Staged>,
    pub symbols: Arc<Symbols>,
    /// Whether the last events alone were kept.
    pub keeps_last: bool,
    /// What was decoded since the run was opened the last time, where it was.
    pub recent: Option<Recent>,
}

/// A stream that goes on from one time that its run is opened to the next: what was read of it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

/// Where somebody stopped reading the events of a thread, to go on there once there are more.
#[derive(Debug, Clone, Default)]
pub struct Bookmark {
    /// Symbols before it.
    symbols: u64,
    meaning: Meaning,
    /// The return of a leaf comes next.
    returns: bool,
}

/// A stream that can be decoded by itself.
#[derive(Debug)]
pub(crate) struct Segment {
    pub pieces: Vec<Range<usize>>,
    pub tail: Vec<u8>,
    /// How many symbols it gives, as counted when it was opened.
    pub decoded: u64,
    /// How many of them are calls that were open before: inherited by a forked child, or repeated.
    pub inherited: u32,
}

/// Symbols that are decoded at once.
pub(crate) const BATCH: usize = 256;

/// With more open calls it is not looked for rounds: to compare them would cost more than it saves.
const DEEPEST: usize = 1 << 12;

/// A codec's memory: as much as was needed so far, doubled.
#[derive(Debug, Clone, Default)]
pub struct Growing(Vec<u32>);

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

pub(crate) type AnyGrowing = AnyDecoder<Growing, Growing>;

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

    /// Passes over so many bytes of the pieces.
    pub fn pass(&mut self, count: u64) {
        let mut count = usize::try_from(count).unwrap_or(usize::MAX);
        while count > 0
            && let Some(piece) = self.pieces.next()
        {
            let some = count.min(piece.len());
            self.here = self.file.get(piece.start + some..piece.end).unwrap_or(&[]);
            self.left = self.left.saturating_sub(some as u64);
            count -= some;
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

/// The events of a thread, in order; decodes as it goes. About 190 kB while it lives, and
/// what the codec `lockstep` remembers: up to 4.4 MB in long streams.
pub struct Events<'a>(Inner<'a>);

enum Inner<'a> {
    Memory(std::iter::Copied<std::slice::Iter<'a, Event>>),
    File(Box<FromFile<'a>>),
    Sealed(Option<Walk<'a>>),
}

struct FromFile<'a> {
    stream: &'a FileStream,
    /// Segments behind this one.
    segments: std::slice::Iter<'a, Segment>,
    /// Symbols that repeat what the segment before told.
    repeated: u32,
    decoder: AnyGrowing,
    bytes: Bytes<'a>,
    /// Symbols of the stream that are not decoded yet.
    left: u64,
    /// Decoded symbols, and which of them were not handed out.
    batch: [u32; BATCH],
    ready: Range<usize>,
    recent: recent::Walk<'a>,
    staged: std::iter::Copied<std::slice::Iter<'a, Staged>>,
    meaning: Meaning,
    /// The return of a leaf comes next.
    returns: bool,
    /// Symbols that were handed out.
    taken: u64,
}

impl Stream {
    /// Equal only where the events are: a hash of what they are decoded from. `None` of sealed runs, whose
    /// trees tell more; events in memory are equal where they are shared. O(bytes of the stream).
    pub fn content(&self) -> Option<u128> {
        let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
        for (salt, hasher) in (0_u8..).zip(&mut hashers) {
            salt.hash(hasher);
            match self {
                Self::Memory(events) => (events.as_ptr().addr(), events.len()).hash(hasher),
                Self::File(stream) => stream.hash(hasher)?,
                Self::Sealed(_) => return None,
            }
        }
        let [high, low] = hashers.map(|it| u128::from(it.finish()));
        Some(high << 64 | low)
    }

    pub fn events(&self) -> Events<'_> {
        Events(match self {
            Self::Memory(events) => Inner::Memory(events.iter().copied()),
            Self::File(stream) => Inner::File(FromFile::new(stream)),
            Self::Sealed(stream) => Inner::Sealed(stream.walk()),
        })
    }

    /// The events behind a bookmark in this stream as it was.
    pub fn events_after(&self, mark: &Bookmark) -> Events<'_> {
        let Self::File(stream) = self else {
            return self.events();
        };
        let mut from = FromFile::new(stream);
        match &stream.recent {
            Some(recent) if recent.first <= mark.symbols => from.skip_to(recent, mark.symbols),
            _ => {
                for _ in 0..mark.symbols {
                    from.symbol();
                }
            }
        }
        from.meaning = mark.meaning.clone();
        (from.returns, from.taken) = (mark.returns, mark.symbols);
        Events(Inner::File(from))
    }
}

impl FileStream {
    /// `None` where a piece is not there.
    fn hash(&self, hasher: &mut DefaultHasher) -> Option<()> {
        self.codec.name().hash(hasher);
        self.symbols.hash(hasher);
        self.staged.hash(hasher);
        for segment in &self.segments {
            (segment.decoded, segment.inherited).hash(hasher);
            let pieces = segment.pieces.iter().map(Range::len).sum::<usize>();
            (pieces + segment.tail.len()).hash(hasher);
            for piece in &segment.pieces {
                hasher.write(self.file.bytes().get(piece.clone())?);
            }
            hasher.write(&segment.tail);
        }
        Some(())
    }
}

impl<'a> FromFile<'a> {
    /// From the beginning.
    fn new(stream: &'a FileStream) -> Box<Self> {
        let mut from = Box::new(FromFile {
            stream,
            segments: stream.segments.iter(),
            repeated: 0,
            decoder: AnyGrowing::new(stream.codec),
            bytes: Bytes::new(&[], &[], &[]),
            left: 0,
            batch: [0; BATCH],
            ready: 0..0,
            recent: recent::Walk::default(),
            staged: stream.staged.iter().copied(),
            meaning: Meaning::default(),
            returns: false,
            taken: 0,
        });
        if let Some(first) = from.segments.next() {
            from.begin(first);
            from.meaning = Meaning::new(first.inherited);
        }
        from
    }

    /// On to symbol `count`, which is not before the recent ones.
    fn skip_to(&mut self, recent: &'a Recent, count: u64) {
        let (rest, behind) = recent.after(count - recent.first);
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        let staged = self.stream.staged.get(behind..);
        self.left = 0;
        self.segments = [].iter();
        self.recent = rest;
        self.staged = staged.unwrap_or(&[]).iter().copied();
    }

    /// Whether the symbols that come were decoded before.
    fn is_recent(&self) -> bool {
        self.left == 0 && self.ready.is_empty()
    }

    fn begin(&mut self, segment: &'a Segment) {
        self.decoder = AnyGrowing::new(self.stream.codec);
        self.bytes = Bytes::new(self.stream.file.bytes(), &segment.pieces, &segment.tail);
        self.left = segment.decoded;
    }

    fn symbol(&mut self) -> Option<u32> {
        while self.ready.is_empty()
            && self.left == 0
            && let Some(next) = self.segments.next()
        {
            self.begin(next);
            self.repeated = next.inherited;
        }
        let symbol = self.next_symbol()?;
        if self.repeated == 0 {
            return Some(symbol);
        }
        self.repeated -= 1;
        self.symbol()
    }

    fn next_symbol(&mut self) -> Option<u32> {
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
        let recent = self.recent.next();
        recent.or_else(|| self.staged.next().map(|event| event.symbol))
    }
}

impl Events<'_> {
    /// How many symbols the events so far were, where they come from a file.
    #[must_use]
    pub fn symbols(&self) -> u64 {
        match &self.0 {
            Inner::Memory(_) => 0,
            Inner::File(from) => from.taken,
            Inner::Sealed(walk) => walk.as_ref().map_or(0, |walk| walk.symbols),
        }
    }
}

impl Events<'_> {
    /// Where this stands; `None` where the events do not come from one stream that may go on.
    #[must_use]
    pub fn bookmark(&self) -> Option<Bookmark> {
        match &self.0 {
            Inner::File(from) if from.stream.segments.len() == 1 => Some(Bookmark {
                symbols: from.taken,
                meaning: from.meaning.clone(),
                returns: from.returns,
            }),
            _ => None,
        }
    }

    /// Passes over the first `count` events: at once in a sealed run, else by decoding them.
    pub(crate) fn skip_to(&mut self, count: u64) {
        match &mut self.0 {
            Inner::Memory(events) => {
                if let Some(last) = count.checked_sub(1) {
                    events.nth(usize::try_from(last).unwrap_or(usize::MAX));
                }
            }
            Inner::File(_) => {
                if let Some(last) = count.checked_sub(1) {
                    self.nth(usize::try_from(last).unwrap_or(usize::MAX));
                }
            }
            Inner::Sealed(walk) => walk.iter_mut().for_each(|walk| walk.skip_to(count)),
        }
    }

    /// Where the symbols that come are sure to go round, as the last ones did.
    #[must_use]
    pub fn round(&self) -> Option<Round> {
        let Inner::File(from) = &self.0 else {
            return None;
        };
        let is_steady = from.repeated == 0 && from.meaning.is_settled();
        if from.is_recent() {
            return from.recent.round().filter(|_| is_steady);
        }
        let round = from.decoder.round().filter(|_| is_steady)?;
        let times = round.times.min(from.left / round.symbols);
        (times > 0).then_some(Round { times, ..round })
    }

    /// Passes over the next rounds, no more of them than [`Events::round`] tells.
    pub fn pass(&mut self, round: Round) {
        if let Inner::File(from) = &mut self.0 {
            if from.is_recent() {
                from.recent.pass(round);
            } else {
                from.decoder.pass(round);
                from.left -= round.symbols * round.times;
            }
            from.taken += round.symbols * round.times;
        }
    }

    /// Whether the event before was the call of a leaf, whose symbol is its return too; asked where
    /// events come from a file.
    #[must_use]
    pub fn was_leaf(&self) -> bool {
        match &self.0 {
            Inner::Memory(_) | Inner::Sealed(_) => false,
            Inner::File(from) => from.returns,
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Inner::Memory(events) => events.next(),
            Inner::Sealed(walk) => walk.as_mut()?.next(),
            Inner::File(from) => loop {
                if std::mem::take(&mut from.returns) {
                    return Some(Event::Return);
                }
                let symbol = from.symbol()?;
                from.taken += 1;
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
            Inner::Sealed(_) => (0, None),
            Inner::File(from) => {
                let decoded = from.ready.len() + from.staged.len();
                let later: u64 = from.segments.as_slice().iter().map(|it| it.decoded).sum();
                let most = usize::try_from(from.left + from.recent.left() + later)
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
#[derive(Debug, Clone, Default)]
pub(crate) struct Scan {
    /// The first segment that counts: what is before it is damaged, and so are those before that.
    pub start: usize,
    /// How many symbols the committed stream (of the last segment) gives.
    pub decoded: u64,
    /// How many events those and the staged ones are.
    pub events: u64,
    /// How many of them are calls.
    pub calls: u64,
    /// Open calls at the end.
    pub frames: Frames,
    /// Whose return addresses the mirror holds, and those of calls made since.
    pub owners: Owners,
    /// The last event is this leaf's symbol: it may not have returned.
    pub last_leaf: Option<FunctionId>,
    /// Whether a function of the main program was called, or one that it calls.
    pub ran_main: bool,
    /// Function symbols that no image has.
    pub unknown: FxHashSet<u32>,
    /// What does not hold.
    pub damage: Vec<String>,
    /// The committed symbols since the stream was scanned the last time, where it was.
    pub recent: Option<Recent>,
    /// As which it is followed.
    pub followed: Option<StreamId>,
}

/// What a scan counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    events: u64,
    calls: u64,
}

/// What [`Scan::step`] decoded.
pub(crate) struct Step<'b> {
    /// The symbols.
    pub symbols: &'b [u32],
    /// How often those come again, which is passed over.
    pub again: Option<Round>,
    /// How many of all these are none that we know.
    pub reserved: u64,
    /// Whether there were fewer than the stream is said to have.
    pub is_short: bool,
    /// Why.
    pub error: Option<DecodeError>,
}

/// Decodes all events once and checks them.
pub(crate) fn scan(file: &[u8], codec: Kind, thread: &ThreadFile, symbols: &Symbols) -> Scan {
    let mut scan = Scan::default();
    let mut meaning = Meaning::default();
    for (index, segment) in thread.segments().enumerate() {
        let repeated = if index == scan.start {
            meaning = Meaning::new(segment.inherited);
            0
        } else {
            segment.inherited
        };
        let damage = scan.damage.len();
        scan.segment(file, codec, segment, repeated, &mut meaning, symbols);
        if index < thread.earlier.len() && scan.damage.len() > damage {
            // Behind it the next segment begins anew.
            scan = Scan {
                start: index + 1,
                damage: scan.damage,
                unknown: scan.unknown,
                ..Scan::default()
            };
        }
    }
    scan
}

impl Scan {
    /// What a sealed run tells of a thread.
    pub fn of_sealed(told: &SealedThread) -> Self {
        Self {
            events: told.events,
            calls: told.calls,
            ran_main: told.ran_main,
            ..Self::default()
        }
    }

    /// One segment, of which the first `repeated` symbols are known already.
    fn segment(
        &mut self,
        file: &[u8],
        codec: Kind,
        thread: &ThreadFile,
        repeated: u32,
        meaning: &mut Meaning,
        symbols: &Symbols,
    ) {
        if let Some(expected) = thread.check {
            let found = thread.pieces.iter().fold(0, |sum, piece| {
                check::extend(sum, file.get(piece.clone()).unwrap_or(&[]))
            });
            if found != expected {
                self.damage.push(format!(
                    "expected a stream with check {expected:08x}, found {found:08x}: some events are wrong"
                ));
            }
        }
        let mut decoder = Box::new(AnyGrowing::new(codec));
        let mut bytes = Bytes::new(file, &thread.pieces, &thread.tail);
        let (mut reserved, mut error) = (0, None);
        let mut batch = vec![0; BATCH];
        let known = u64::from(repeated);
        self.decoded = 0;
        while self.decoded < thread.symbols {
            let source = (&mut *decoder, &mut bytes);
            let until = (known, thread.symbols);
            let step = self.step(source, &mut batch, until, meaning, symbols);
            reserved += step.reserved;
            if step.is_short {
                error = step.error;
                break;
            }
        }
        self.compare(thread, error, &bytes, &mut decoder);
        // Events behind a gap would be calls in the wrong place.
        if self.decoded == thread.symbols {
            self.owners.commit();
            let known = known.saturating_sub(self.decoded) as usize;
            for event in thread.staged.iter().skip(known) {
                let address = Some(event.return_address);
                reserved += u64::from(!self.apply(event.symbol, address, meaning, symbols));
            }
        }
        if reserved > 0 {
            self.damage.push(format!(
                "{reserved} events of kinds that this version does not know, left out"
            ));
        }
    }

    /// Decodes what comes next of a stream of so many symbols, of which the first are `known` already: some symbols; or,
    /// where they go round, one round, and the others are as that, if it leaves all as it was before.
    pub fn step<'b>(
        &mut self,
        (decoder, bytes): (&mut AnyGrowing, &mut Bytes<'_>),
        batch: &'b mut Vec<u32>,
        (known, symbols_in_all): (u64, u64),
        meaning: &mut Meaning,
        symbols: &Symbols,
    ) -> Step<'b> {
        let left = symbols_in_all - self.decoded;
        // Whether calls that nobody returns from go round, as where a recursion does not end, is asked of few of them.
        let is_shallow = self.frames.open().len() <= DEEPEST;
        let is_one = |it: &Round| is_shallow && self.decoded >= known && it.symbols <= left;
        let round = decoder.round().filter(is_one);
        let most = round.map_or(left.min(BATCH as u64), |it| it.symbols) as usize;
        let before = round.map(|_| (self.standing(meaning), self.counts()));
        if batch.len() < most {
            batch.resize(most, 0);
        }
        let (count, outcome) = decoder.fill(bytes, &mut batch[..most]);
        let mut step = Step {
            symbols: &batch[..count],
            again: None,
            reserved: 0,
            is_short: count < most,
            error: outcome.err(),
        };
        for symbol in step.symbols {
            let is_new = self.decoded >= known;
            self.decoded += 1;
            if is_new && !self.apply(*symbol, None, meaning, symbols) {
                step.reserved += 1;
            }
        }
        if let (Some((standing, counts)), Some(round)) = (before, decoder.round())
            && round.symbols == count as u64
            && standing == self.standing(meaning)
        {
            let left = (symbols_in_all - self.decoded) / round.symbols;
            let times = round.times.min(left);
            let round = Round { times, ..round };
            decoder.pass(round);
            self.again(counts, round);
            step.reserved *= 1 + times;
            step.again = Some(round);
        }
        step
    }

    /// What decides how the next symbols count.
    fn standing(&self, meaning: &Meaning) -> (Frames, Owners, Meaning, Option<FunctionId>) {
        let (frames, owners) = (self.frames.clone(), self.owners.clone());
        (frames, owners, meaning.clone(), self.last_leaf)
    }

    fn counts(&self) -> Counts {
        Counts {
            events: self.events,
            calls: self.calls,
        }
    }

    /// What came since `counts`, one round, comes so many times more.
    fn again(&mut self, counts: Counts, round: Round) {
        self.decoded += round.symbols * round.times;
        self.events += (self.events - counts.events) * round.times;
        self.calls += (self.calls - counts.calls) * round.times;
    }

    /// False where the symbol is none that we know.
    pub fn apply(
        &mut self,
        symbol: u32,
        address: Option<u32>,
        meaning: &mut Meaning,
        symbols: &Symbols,
    ) -> bool {
        self.ran_main |= symbols.is_main(symbol);
        match meaning.of(symbol, symbols) {
            // Over before anything else happens: the stack is as before.
            Some((Event::Call(leaf), true)) => {
                self.events += 2;
                self.calls += 1;
                self.last_leaf = Some(leaf);
            }
            Some((event, _)) => {
                self.frames.apply(event);
                self.owners.apply(event, address);
                self.events += 1;
                self.calls += u64::from(matches!(event, Event::Call(_)));
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
