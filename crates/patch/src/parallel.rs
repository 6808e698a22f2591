//! Work on many things that do not depend on each other, on as many processors as there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Things at a time: a thread costs some twenty microseconds, and images with fewer need none.
const PIECE: usize = 1024;

/// What `work` makes of `0..count`, a range of it at a time, in order. Where no thread can be had (`ulimit -u`) the one that
/// calls does it all.
pub(crate) fn by_pieces<T: Send>(
    count: usize,
    work: impl Fn(std::ops::Range<usize>) -> T + Sync,
) -> Vec<T> {
    let pieces = count.div_ceil(PIECE);
    let range = |piece: usize| piece * PIECE..((piece + 1) * PIECE).min(count);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if pieces < 2 || processors < 2 {
        return (0..pieces).map(|piece| work(range(piece))).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(pieces));
    let go = || {
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return;
            }
            let made = work(range(piece));
            match done.lock() {
                Ok(mut done) => done.push((piece, made)),
                Err(poisoned) => poisoned.into_inner().push((piece, made)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..processors.min(pieces) {
            let _ = std::thread::Builder::new().spawn_scoped(scope, go);
        }
        go();
    });
    let mut done = match done.into_inner() {
        Ok(done) => done,
        Err(poisoned) => poisoned.into_inner(),
    };
    done.sort_unstable_by_key(|(piece, _)| *piece);
    done.into_iter().map(|(_, made)| made).collect()
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
