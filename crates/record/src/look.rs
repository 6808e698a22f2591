//! Somebody looks at the run while its command runs, and may want the command ended.

use crate::{launch, tally};
use rustix::process::Signal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Looks at a run while its command runs.
pub trait Watcher: Send {
    /// Called up to ten times a second with the run's directory and the number of its events so far; after what time the
    /// command shall be ended, if at all and if it has not ended by then. May take its time: the command does not wait for it.
    fn look(&mut self, run: &Path, events: u64) -> Option<Duration>;
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a command that was asked to end may take.
const GRACE: Duration = Duration::from_secs(10);

/// Looks until `stop` is set.
pub(crate) fn watch_over(run: &Path, stop: &AtomicBool, watcher: &mut dyn Watcher) {
    while pause(stop, PAUSE) {
        let Some(time) = watcher.look(run, tally::count(run).events) else {
            continue;
        };
        if pause(stop, time) {
            launch::signal(Signal::TERM);
            if pause(stop, GRACE) {
                launch::signal(Signal::KILL);
            }
        }
        return;
    }
}

/// Sleeps, unless and until `stop` is set; whether it is not.
fn pause(stop: &AtomicBool, time: Duration) -> bool {
    let begin = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let Some(left) = time.checked_sub(begin.elapsed()).filter(|it| !it.is_zero()) else {
            return true;
        };
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
    false
}
