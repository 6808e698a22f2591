//! The published hang detector: a task has come to nothing new for too long.
//!
//! A state is new if it is not among the last [`Patience::CACHE`] different ones. Times between new
//! states have a mean and a deviation; a task that takes longer than the mean and three deviations, and
//! longer than the floor, hangs. (With more than ten states an iteration a livelock never fills the
//! cache: every state is new, and the detector is set back for ever. That is the published behaviour.)

use std::collections::VecDeque;
use std::time::Duration;

/// The detector of one task.
#[derive(Debug, Clone)]
pub struct Patience {
    floor: Duration,
    cache: VecDeque<u32>,
    since: Option<Duration>,
    gaps: u64,
    sum: f64,
    squares: f64,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(Duration::from_secs(60))
    }
}

impl Patience {
    /// States that are remembered.
    pub const CACHE: usize = 10;

    /// A task is given at least this long (60 s by default).
    #[must_use]
    pub fn new(floor: Duration) -> Self {
        Self {
            floor,
            cache: VecDeque::new(),
            since: None,
            gaps: 0,
            sum: 0.0,
            squares: 0.0,
        }
    }

    /// The task came to a state, at this time from any fixed moment.
    pub fn step(&mut self, state: u32, now: Duration) {
        if self.cache.contains(&state) {
            return;
        }
        if self.cache.len() == Self::CACHE {
            self.cache.pop_front();
        }
        self.cache.push_back(state);
        if let Some(since) = self.since.replace(now) {
            let gap = now.saturating_sub(since).as_secs_f64();
            self.gaps += 1;
            self.sum += gap;
            self.squares += gap * gap;
        }
    }

    /// How long it may take.
    #[must_use]
    pub fn threshold(&self) -> Duration {
        if self.gaps == 0 {
            return self.floor;
        }
        let count = self.gaps as f64;
        let mean = self.sum / count;
        let deviation = (self.squares / count - mean * mean).max(0.0).sqrt();
        self.floor
            .max(Duration::from_secs_f64(mean + 3.0 * deviation))
    }

    /// Whether it hangs.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        self.since
            .is_some_and(|since| now.saturating_sub(since) > self.threshold())
    }
}
