//! One pass over the streams of all threads of a run, equal ones once: most ranks of a job do what others do.
//!
//! Streams are equal where every byte is that a scan looks at, and means the same.

use crate::container::ThreadFile;
use crate::load::Loaded;
use crate::open::Opened;
use crate::sealed::SealedThread;
use crate::stream::{self, Scan};
use crate::symbols::Symbols;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Fills in [`Opened::scans`].
pub(crate) fn scan_all(processes: &mut [Opened]) {
    processes.par_iter_mut().for_each(|process| {
        if let Some(mut follower) = process.follower.take() {
            let Loaded { mapped, file, .. } = process.loaded();
            process.scans = follower.scan(mapped.bytes(), file, &process.symbols);
            process.follower = Some(follower);
        }
    });
    let others = processes.iter().filter(|it| it.follower.is_none());
    let all: Vec<Of<'_>> = others.flat_map(Of::threads).collect();
    let keys: Vec<u64> = all.par_iter().map(Of::key).collect();
    let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    let mut firsts: Vec<&Of<'_>> = Vec::new();
    // Which of the firsts each thread is like.
    let mut like: Vec<usize> = Vec::with_capacity(all.len());
    for (thread, key) in all.iter().zip(keys) {
        let candidates = known.entry(key).or_default();
        let found = candidates.iter().find(|it| firsts[**it].is_like(thread));
        like.push(found.copied().unwrap_or_else(|| {
            candidates.push(firsts.len());
            firsts.push(thread);
            firsts.len() - 1
        }));
    }
    let scans: Vec<Scan> = firsts.par_iter().map(|it| it.scan()).collect();
    let mut like = like.into_iter();
    for process in processes.iter_mut().filter(|it| it.follower.is_none()) {
        let threads = process.loaded().file.threads.len();
        let of_process = like.by_ref().take(threads);
        process.scans = of_process.map(|first| scans[first].clone()).collect();
    }
}

/// A thread, and what its symbols mean.
struct Of<'a> {
    loaded: &'a Loaded,
    symbols: &'a Arc<Symbols>,
    thread: &'a ThreadFile,
    /// What a sealed run tells of it.
    told: Option<&'a SealedThread>,
}

impl<'a> Of<'a> {
    fn threads(process: &'a Opened) -> impl Iterator<Item = Self> {
        let loaded = process.loaded();
        loaded.file.threads.iter().map(|thread| Self {
            loaded,
            symbols: &process.symbols,
            thread,
            told: loaded.told.iter().find(|it| it.index == thread.index),
        })
    }

    fn scan(&self) -> Scan {
        let file = self.loaded.mapped.bytes();
        match self.told {
            Some(told) => Scan::of_sealed(told),
            None => stream::scan(file, self.loaded.file.codec, self.thread, self.symbols),
        }
    }

    fn bytes(&self, pieces: &'a [Range<usize>]) -> impl Iterator<Item = Option<&'a [u8]>> {
        let file = self.loaded.mapped.bytes();
        pieces.iter().map(|piece| file.get(piece.clone()))
    }

    fn key(&self) -> u64 {
        let mut hasher = FxHasher::default();
        if self.told.is_some() {
            std::ptr::from_ref(self.thread).addr().hash(&mut hasher);
            return hasher.finish();
        }
        Arc::as_ptr(self.symbols).addr().hash(&mut hasher);
        for segment in self.thread.segments() {
            (segment.symbols, segment.check, &segment.tail).hash(&mut hasher);
            segment.staged.hash(&mut hasher);
            for bytes in self.bytes(&segment.pieces).flatten() {
                hasher.write(bytes);
            }
        }
        hasher.finish()
    }

    fn is_like(&self, other: &Self) -> bool {
        let mut pairs = self.thread.segments().zip(other.thread.segments());
        self.told.is_none()
            && other.told.is_none()
            && self.loaded.file.codec == other.loaded.file.codec
            && Arc::ptr_eq(self.symbols, other.symbols)
            && self.thread.segments().count() == other.thread.segments().count()
            && pairs.all(|(a, b)| {
                let (aside, beside) = (&a.side.arguments, &b.side.arguments);
                (a.symbols, a.check, a.inherited) == (b.symbols, b.check, b.inherited)
                    && (&a.tail, &a.staged, aside.run) == (&b.tail, &b.staged, beside.run)
                    && self.bytes(&a.pieces).eq(other.bytes(&b.pieces))
                    && self.bytes(&aside.pieces).eq(other.bytes(&beside.pieces))
            })
    }
}
