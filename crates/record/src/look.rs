//! Somebody looks at the run while its command runs, and may want the command ended.

use crate::descendants::Descendants;
use crate::stop::Stop;
use crate::tally;
use std::path::Path;
use std::time::Duration;

/// Looks at a run while its command runs.
pub trait Watcher: Send {
    /// Called up to ten times a second with the run's directory and the number of its events so far; after what time the
    /// command shall be ended, if at all and if it has not ended by then; in either case nothing of what it started stays. May take its
    /// time: the command does not wait for it.
    fn look(&mut self, run: &Path, events: u64) -> Option<Duration>;
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until `stop` is set.
pub(crate) fn watch_over(
    run: &Path,
    stop: &Stop,
    descendants: &Descendants<'_>,
    watcher: &mut dyn Watcher,
) {
    while !stop.sleep(PAUSE) {
        let Some(time) = watcher.look(run, tally::count(run).events) else {
            continue;
        };
        descendants.doom();
        if !stop.sleep(time) {
            descendants.press(stop);
        }
        return;
    }
}
