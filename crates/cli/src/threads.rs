//! The threads that libraries share for what they do in parallel: as many as can be had.

use anyhow::{Context, Result};
use lockstep_record::{STACK, thread};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::io;
use std::sync::mpsc::{Sender, channel};

/// Starts one for each processor (or as many as `RAYON_NUM_THREADS` says), or fewer where a limit forbids more. Without
/// this, whoever first has work for them would panic where they are too many.
///
/// # Errors
/// Where not even one can be had.
pub fn start() -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = std::env::var("RAYON_NUM_THREADS");
    let wanted = wanted.ok().and_then(|number| number.parse().ok());
    let wanted = wanted.filter(|number| *number > 0).unwrap_or(processors);
    let mut threads = waiting(wanted)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads.len());
    let pool = pool.spawn_handler(|work| hand_over(&mut threads, work));
    Ok(pool.build_global()?)
}

/// Threads that yield to whoever else is busy, by so much (`nice`): one for `of` processors. None where there can be none.
#[must_use]
pub fn yielding(of: usize, nice: i32) -> Option<ThreadPool> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = waiting(processors.div_ceil(of)).ok()?;
    let pool = ThreadPoolBuilder::new().num_threads(threads.len());
    let pool = pool.spawn_handler(|work| hand_over(&mut threads, work));
    let pool = pool.start_handler(move |_| {
        let _ = rustix::process::nice(nice);
    });
    pool.build().ok()
}

/// So many threads that wait for what they are to do, or fewer. How many there are is known before the first gets to
/// know that.
fn waiting(wanted: usize) -> Result<Vec<Sender<ThreadBuilder>>> {
    let mut threads = Vec::new();
    while threads.len() < wanted {
        match one() {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => {
                return Err(error).context(
                    "expected to have a thread for the work, found none (ulimit -u, ulimit -v)",
                );
            }
            Err(_) => break,
        }
    }
    Ok(threads)
}

fn hand_over(threads: &mut Vec<Sender<ThreadBuilder>>, work: ThreadBuilder) -> io::Result<()> {
    let sent = threads
        .pop()
        .is_some_and(|thread| thread.send(work).is_ok());
    let gone = || io::Error::other("a thread that was started is gone");
    sent.then_some(()).ok_or_else(gone)
}

/// A thread that waits for what it is to do.
fn one() -> io::Result<Sender<ThreadBuilder>> {
    let (sender, receiver) = channel::<ThreadBuilder>();
    let work = move || receiver.recv().into_iter().for_each(ThreadBuilder::run);
    thread(STACK)?.spawn(work).map(|_| sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_yields_is_behind_by_so_much_and_we_are_not() {
        let own = rustix::process::nice(0).expect("a number");
        let threads = yielding(4, 3).expect("threads");
        let theirs = threads.install(|| rustix::process::nice(0));
        assert_eq!(theirs.expect("a number"), (own + 3).min(19));
        assert_eq!(rustix::process::nice(0).expect("a number"), own);
    }
}
