//! One pass over the streams of all threads of a run, equal ones once: most ranks of a job do what others do.
//!
//! Streams are equal where every byte is that a scan looks at, and means the same. Arguments have no part in that: they hold
//! addresses, which the system draws anew for each process; whether they can be read is asked of every thread by itself.

use crate::arguments;
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
    let Alike { firsts, like } = alike(&all);
    let scans: Vec<Scan> = firsts.par_iter().map(|it| all[*it].scan()).collect();
    let checked = all.par_iter().map(Of::damaged_arguments);
    let damage: Vec<Vec<String>> = checked.collect();
    let mut each = like.into_iter().zip(damage);
    for process in processes.iter_mut().filter(|it| it.follower.is_none()) {
        let threads = process.loaded().file.threads.len();
        let of_process = each.by_ref().take(threads).map(|(kind, damage)| {
            let mut scan = scans[kind].clone();
            scan.damage.extend(damage);
            scan
        });
        process.scans = of_process.collect();
    }
}

/// Which threads are alike.
struct Alike {
    /// The first of each kind.
    firsts: Vec<usize>,
    /// For every thread, its kind.
    like: Vec<usize>,
}

/// O(bytes of the streams): the keys of threads that are not alike differ, but for accidents.
fn alike(all: &[Of<'_>]) -> Alike {
    let keys: Vec<u64> = all.par_iter().map(Of::key).collect();
    let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    let mut firsts: Vec<usize> = Vec::new();
    let mut like = Vec::with_capacity(all.len());
    for (index, (thread, key)) in all.iter().zip(keys).enumerate() {
        let kinds = known.entry(key).or_default();
        let found = kinds.iter().find(|it| all[firsts[**it]].is_like(thread));
        like.push(found.copied().unwrap_or_else(|| {
            kinds.push(firsts.len());
            firsts.push(index);
            firsts.len() - 1
        }));
    }
    Alike { firsts, like }
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
            told: loaded.told.get(&thread.index),
        })
    }

    fn scan(&self) -> Scan {
        let file = self.loaded.mapped.bytes();
        match self.told {
            Some(told) => Scan::of_sealed(told),
            None => stream::scan(file, self.loaded.file.codec, self.thread, self.symbols),
        }
    }

    /// What of its arguments cannot be read.
    fn damaged_arguments(&self) -> Vec<String> {
        match self.told {
            Some(_) => Vec::new(),
            None => arguments::damage(self.loaded.mapped.bytes(), self.thread),
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
            (segment.symbols, segment.check, segment.inherited).hash(&mut hasher);
            (&segment.tail, &segment.staged).hash(&mut hasher);
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
                (a.symbols, a.check, a.inherited) == (b.symbols, b.check, b.inherited)
                    && (&a.tail, &a.staged) == (&b.tail, &b.staged)
                    && self.bytes(&a.pieces).eq(other.bytes(&b.pieces))
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load;
    use crate::map::Folder;
    use crate::open_tests::Directory;
    use lockstep_writer::{Builder, Named, ProcessFacts};

    #[test]
    fn ranks_whose_arguments_differ_alone_are_alike() {
        let directory = Directory::empty();
        let mut builder = Builder::new(directory.path()).unwrap();
        let mut function = |name: &str| {
            let named = Named {
                image: "/app",
                name,
                imported: true,
                source: None,
            };
            builder.function(&named).unwrap()
        };
        let (send, receive) = (function("MPI_Send"), function("MPI_Recv"));
        for rank in 0..6 {
            let facts = ProcessFacts {
                pid: 100 + rank,
                rank: Some(rank),
                ..ProcessFacts::default()
            };
            let process = builder.process(facts).unwrap();
            builder.begin(process, rank).unwrap();
            for called in [send, if rank < 4 { send } else { receive }] {
                builder.call(called, None).unwrap();
                let behind = 0x5500_0000 + 0x1000 * i64::from(rank);
                let values = [behind, 1, 2, 3, 4, 5];
                builder.arguments(called, false, &values).unwrap();
                builder.ret(None).unwrap();
            }
            builder.end().unwrap();
        }
        builder.finish(&serde_json::json!({})).unwrap();
        let root = Folder::open(directory.path()).unwrap();
        let loaded = load::processes(&root, &mut Vec::new());
        let symbols = Arc::new(Symbols::default());
        let threads = loaded.iter().flat_map(|loaded| {
            let of = |thread| Of {
                loaded,
                symbols: &symbols,
                thread,
                told: None,
            };
            loaded.file.threads.iter().map(of)
        });
        let threads: Vec<Of<'_>> = threads.collect();
        let streams: Vec<_> = threads.iter().map(|it| &it.thread.side.arguments).collect();
        assert!(streams.iter().all(|it| !it.pieces.is_empty()));
        let Alike { firsts, like } = alike(&threads);
        let mut sizes = [0, 0];
        like.iter().for_each(|kind| sizes[*kind] += 1);
        sizes.sort_unstable();
        assert_eq!((firsts.len(), sizes), (2, [2, 4]));
    }
}
