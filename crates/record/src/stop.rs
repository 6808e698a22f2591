//! Tells the threads beside a command that it has ended; who sleeps wakes at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Set once.
#[derive(Default)]
pub(crate) struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sets it.
    pub(crate) fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        self.sleep(Duration::ZERO)
    }

    /// Sleeps, unless and until it is set; whether it is.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self
            .changed
            .wait_timeout_while(is_set, time, |is_set| !*is_set);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_sleeps_wakes_when_it_is_set() {
        let stop = Stop::default();
        assert!(!stop.is_set() && !stop.sleep(Duration::from_millis(1)));
        let long = Duration::from_secs(100);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| stop.sleep(long));
            stop.set();
            assert!(sleeper.join().expect("a thread"));
        });
        assert!(begin.elapsed() < long && stop.is_set() && stop.sleep(long));
    }
}
