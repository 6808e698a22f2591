//! Work on many things that do not depend on each other, on as many processors as there are.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;

/// Things at a time: a thread costs some twenty microseconds, and images with fewer need none.
pub(crate) const PIECE: usize = 1024;

/// How many threads work at a time.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What `work` makes of each job, in order. Where no thread can be had (`ulimit -u`) the one that calls does them all.
pub(crate) fn all<J: Send, T: Send>(jobs: Vec<J>, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    let count = jobs.len();
    let processors = if count < 2 { 1 } else { processors() };
    if processors < 2 {
        return jobs.into_iter().map(work).collect();
    }
    let next = Mutex::new(jobs.into_iter().enumerate());
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let take = || held(&next).next();
    let go = || {
        while let Some((index, job)) = take() {
            let made = work(job);
            held(&done).push((index, made));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..processors.min(count) {
            let _ = std::thread::Builder::new().spawn_scoped(scope, go);
        }
        go();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, made)| made).collect()
}

/// What two works make, at the same time.
pub(crate) fn both<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    if processors() < 2 {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, &one);
        let made = other();
        match started.map(ScopedJoinHandle::join) {
            Ok(Ok(found)) => (found, made),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => (one(), made),
        }
    })
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pieces of `0..count`.
pub(crate) fn pieces(count: usize) -> Vec<Range<usize>> {
    let starts = (0..count).step_by(PIECE);
    starts.map(|at| at..(at + PIECE).min(count)).collect()
}

/// What `work` makes of `0..count`, a piece of it at a time, in order.
pub(crate) fn by_pieces<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    all(pieces(count), work)
}

/// What `work` makes of each of `0..count`, in order.
pub(crate) fn each<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let pieces = by_pieces(count, |range| range.map(&work).collect::<Vec<T>>());
    pieces.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_made_once_and_in_order() {
        for count in [0, 1, PIECE, PIECE + 1, 10 * PIECE + 7] {
            let made = each(count, |index| index * 3);
            assert_eq!(made, (0..count).map(|index| index * 3).collect::<Vec<_>>());
        }
    }
}
