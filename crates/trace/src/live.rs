//! A run that is opened again and again while it grows.
//!
//! ```text
//!  stream of a thread   ├───────────────────┼───────────┼────────┤
//!                        decoded before      recent      staged     grows to the right only
//!  opened before                             ▲ decoder, open calls and counts are kept as they were here
//! ```
//! What is kept is as of the last committed symbol, without what ends the stream: a stream that goes on has
//! other bytes there. The recent symbols stay with the run, for those who read on from a
//! [`crate::Bookmark`].
//!
//! *Guarantees*: the run is the same as [`Run::open`] would give of the same files. What does not go on from what was
//! there before (another meaning of symbols, damage, `--keep last`, codecs other than `lockstep`) is read
//! whole. *Costs*: the chunks' headers, and what is new; a decoder's memory for each thread. *Not for*: sealed runs.

use crate::arguments;
use crate::container::{ProcessFile, ThreadFile};
use crate::error::Error;
use crate::model::Run;
use crate::recent::Recent;
use crate::stream::{self, AnyGrowing, BATCH, Bytes, Scan, StreamId};
use crate::symbols::{Meaning, Symbols};
use lockstep_format::check;
use lockstep_format::codec::{Decoder, Kind};
use lockstep_format::side;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is kept of a run between two times that it is opened.
#[derive(Debug, Default)]
pub struct Live {
    /// By the name of the process file.
    processes: FxHashMap<String, Follower>,
}

impl Live {
    /// Opens the run, and remembers how far it was decoded.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub fn open(&mut self, directory: &Path) -> Result<Run, Error> {
        Run::open_live(directory, self)
    }

    pub(crate) fn take(&mut self, name: &str) -> Follower {
        self.processes.remove(name).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, name: &str, follower: Follower) {
        self.processes.insert(name.to_owned(), follower);
    }
}

/// What is kept of a process.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// What its symbols meant.
    symbols: Symbols,
    /// By the index of the thread.
    threads: FxHashMap<u32, Followed>,
}

impl Follower {
    /// Scans all threads of a process file, in their order.
    pub fn scan(&mut self, bytes: &[u8], file: &ProcessFile, symbols: &Symbols) -> Vec<Scan> {
        if self.symbols != *symbols {
            self.threads.clear();
            self.symbols = symbols.clone();
        }
        let kept = file.threads.iter();
        let kept: Vec<Option<Followed>> = kept.map(|it| self.threads.remove(&it.index)).collect();
        let scanned: Vec<(Scan, Option<Followed>)> = file
            .threads
            .par_iter()
            .zip(kept)
            .map(|(thread, kept)| {
                let is_one = thread.earlier.is_empty() && thread.segment == 0;
                let mut followed = match kept {
                    Some(kept) => kept,
                    None => Followed::new(file.codec, thread.inherited),
                };
                match followed.go_on(bytes, thread, symbols).filter(|_| is_one) {
                    Some(scan) => (scan, Some(followed)),
                    None => {
                        let mut scan = stream::scan(bytes, file.codec, thread, symbols);
                        scan.damage.extend(arguments::damage(bytes, thread));
                        (scan, None)
                    }
                }
            })
            .collect();
        let mut scans = Vec::with_capacity(scanned.len());
        for (thread, (scan, followed)) in file.threads.iter().zip(scanned) {
            scans.push(scan);
            self.threads.extend(followed.map(|it| (thread.index, it)));
        }
        scans
    }
}

/// What is kept of a thread.
#[derive(Debug)]
struct Followed {
    decoder: Box<AnyGrowing>,
    /// Bytes of the stream that the decoder does not want again.
    taken: u64,
    /// How many bytes of the stream were there, and their check.
    length: u64,
    check: u32,
    meaning: Meaning,
    /// What the committed symbols so far left.
    scan: Scan,
    /// The same of the arguments: the decoder, and the bytes that it took.
    arguments: Option<(Box<side::Decoder>, u64)>,
    id: StreamId,
}

/// How many streams were ever followed.
static STREAMS: AtomicU64 = AtomicU64::new(0);

impl Followed {
    fn new(codec: Kind, inherited: u32) -> Self {
        Self {
            decoder: Box::new(AnyGrowing::new(codec)),
            taken: 0,
            length: 0,
            check: 0,
            meaning: Meaning::new(inherited),
            scan: Scan::default(),
            arguments: None,
            id: StreamId(STREAMS.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Decodes what is new. `None` where something does not hold, or is not as it was: nothing of this counts then.
    fn go_on(&mut self, file: &[u8], thread: &ThreadFile, symbols: &Symbols) -> Option<Scan> {
        self.check(file, thread)?;
        let is_first = self.scan.decoded == 0;
        let mut recent = Recent::new(self.scan.decoded);
        let mut bytes = Bytes::new(file, &thread.pieces, &thread.tail);
        bytes.pass(self.taken);
        let mut batch = vec![0; BATCH];
        while self.scan.decoded < thread.symbols {
            let source = (&mut *self.decoder, &mut bytes);
            let meaning = &mut self.meaning;
            let step = (self.scan).step(source, &mut batch, (0, thread.symbols), meaning, symbols);
            (!step.is_short && step.reserved == 0).then_some(())?;
            if !is_first {
                recent.extend(step.symbols);
                step.again.iter().for_each(|round| recent.repeat(*round));
            }
        }
        let is_end = matches!(self.decoder.next(&mut bytes), Ok(None));
        (is_end && lockstep_format::codec::Source::left(&bytes) == 0).then_some(())?;
        self.taken = self.decoder.go_on()?;
        self.check_arguments(file, thread)?;
        let mut scan = self.scan.clone();
        let mut meaning = self.meaning.clone();
        scan.owners.commit();
        for event in &thread.staged {
            let address = Some(event.return_address);
            let is_known = scan.apply(event.symbol, address, &mut meaning, symbols);
            is_known.then_some(())?;
        }
        scan.recent = (!is_first).then_some(recent);
        scan.followed = Some(self.id);
        scan.unknown.is_empty().then_some(scan)
    }

    /// Whether the stream goes on from what was there, and has the check that it claims.
    fn check(&mut self, file: &[u8], thread: &ThreadFile) -> Option<()> {
        let expected = thread.check?;
        if thread.symbols < self.scan.decoded {
            return None;
        }
        let mut known = usize::try_from(self.length).ok()?;
        for piece in &thread.pieces {
            let old = known.min(piece.len());
            known -= old;
            let new = file.get(piece.start + old..piece.end)?;
            self.check = check::extend(self.check, new);
            self.length += new.len() as u64;
        }
        (known == 0 && self.check == expected).then_some(())
    }

    /// Whether the arguments that are new can be decoded.
    fn check_arguments(&mut self, file: &[u8], thread: &ThreadFile) -> Option<()> {
        let stream = &thread.side.arguments;
        if stream.pieces.is_empty() {
            return Some(());
        }
        let new = || (Box::new(side::Decoder::NEW), 0);
        let (decoder, taken) = self.arguments.get_or_insert_with(new);
        let mut bytes = Bytes::new(file, &stream.pieces, &[]);
        bytes.pass(*taken);
        decoder.go_on();
        let mut records = 0u32;
        while decoder.next(&mut bytes, stream.run).ok()?.is_some() {
            records += 1;
            if records.is_multiple_of(1 << 12)
                && let Some(round) = decoder.round()
            {
                decoder.pass_rounds(&round);
            }
        }
        *taken = stream.pieces.iter().map(|it| it.len() as u64).sum();
        Some(())
    }
}
