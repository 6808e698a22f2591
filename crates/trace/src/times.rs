//! When things happened: a thread's time points, in seconds since its host's processes of the run began.
//!
//! A point says how many symbols a thread had stored at a reading of the time stamp counter. What the
//! counter's ticks are worth follows from the kernel's clock, which is read now and then: the two
//! readings of the run's host that are farthest apart count.

use crate::container::SideStream;
use crate::map::Mapped;
use crate::model::Thread;
use crate::stream::Bytes;
use lockstep_format::codec::Source as _;
use lockstep_format::side::{Broken, read_varint};
use std::sync::Arc;
use std::time::Duration;

/// What ticks of a host's processors are worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock {
    ticks: u64,
    nanoseconds_per_tick: f64,
}

impl Clock {
    /// From all readings of a host; `None` where they are too few or too close.
    pub fn new(readings: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut all: Vec<(u64, u64)> = readings.into_iter().collect();
        all.sort_unstable();
        let ((first, begin), (last, end)) = (all.first().copied()?, all.last().copied()?);
        let ticks = last.checked_sub(first).filter(|ticks| *ticks > 1 << 20)?;
        let nanoseconds = end.checked_sub(begin)?;
        Some(Self {
            ticks: first,
            nanoseconds_per_tick: nanoseconds as f64 / ticks as f64,
        })
    }

    fn at(self, ticks: u64) -> Duration {
        let since = ticks.saturating_sub(self.ticks) as f64 * self.nanoseconds_per_tick;
        Duration::from_nanos(since as u64)
    }
}

/// A thread's times, as recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub file: Arc<Mapped>,
    pub stream: SideStream,
    pub clocks: Vec<(u64, u64)>,
    pub last: Option<(u64, u64)>,
    pub host: String,
    /// Where the segments before this one were dropped, symbols are not counted from the beginning.
    pub whole: bool,
}

/// The times of a thread.
#[derive(Debug, Clone)]
pub struct Times {
    pub(crate) recorded: Arc<Recorded>,
    pub(crate) clock: Option<Clock>,
}

impl Times {
    /// When its first event was.
    #[must_use]
    pub fn first(&self) -> Option<Duration> {
        let (ticks, _) = self.recorded.clocks.first()?;
        Some(self.clock?.at(*ticks))
    }

    /// When it was last seen: at a commit of its events, on the recorder's slow path, at an MPI call
    /// or its return. What it did later is at most one batch of events.
    #[must_use]
    pub fn last(&self) -> Option<Duration> {
        let (_, ticks) = self.recorded.last?;
        Some(self.clock?.at(ticks))
    }

    /// Points: symbols stored, and when; in order.
    fn points(&self) -> Vec<(u64, Duration)> {
        let Some(clock) = self.clock.filter(|_| self.recorded.whole) else {
            return Vec::new();
        };
        let recorded = &self.recorded;
        let mut bytes = Bytes::new(recorded.file.bytes(), &recorded.stream.pieces, &[]);
        let mut points: Vec<(u64, u64)> = Vec::new();
        if let Some((first, _)) = recorded.clocks.first() {
            points.push((0, *first));
            let mut number = || read_varint(|| bytes.take().ok_or(Broken::CutOff));
            let mut here = (0u64, *first);
            while let (Ok(symbols), Ok(ticks)) = (number(), number()) {
                here = (here.0.saturating_add(symbols), here.1.saturating_add(ticks));
                points.push(here);
            }
        }
        points.extend(recorded.last);
        // Processors' counters may differ by a little.
        let mut told = (0, Duration::ZERO);
        points
            .into_iter()
            .map(|(symbols, ticks)| {
                told = (told.0.max(symbols), told.1.max(clock.at(ticks)));
                told
            })
            .collect()
    }
}

/// When an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A time was read right after it.
    Known(Duration),
    /// Between two times that were read, in proportion.
    About(Duration),
    /// After the last time that was read.
    After(Duration),
}

/// Places events in time, in order.
#[derive(Debug)]
pub struct Timeline {
    points: Vec<(u64, Duration)>,
    next: usize,
}

impl Timeline {
    /// When the event was by which the thread had stored `symbols` symbols; asked in order.
    pub fn at(&mut self, symbols: u64) -> When {
        while self
            .points
            .get(self.next)
            .is_some_and(|(stored, _)| *stored < symbols)
        {
            self.next += 1;
        }
        let before = self
            .next
            .checked_sub(1)
            .and_then(|at| self.points.get(at))
            .copied()
            .unwrap_or((0, Duration::ZERO));
        match self.points.get(self.next) {
            None => When::After(before.1),
            Some((stored, time)) if *stored == symbols => When::Known(*time),
            Some((stored, time)) => {
                let share = (symbols - before.0) as f64 / (stored - before.0) as f64;
                When::About(before.1 + time.saturating_sub(before.1).mul_f64(share))
            }
        }
    }
}

impl Thread {
    /// For [`crate::Annotated::symbols`]; `None` where no times were recorded.
    #[must_use]
    pub fn timeline(&self) -> Option<Timeline> {
        let points = self.times.as_ref()?.points();
        (!points.is_empty()).then_some(Timeline { points, next: 0 })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn ticks_become_seconds() {
        let clock = Clock::new([(3 << 30, 9), (1 << 30, 5), (2 << 30, 7)]).unwrap();
        assert_eq!(clock.at(1 << 30), Duration::ZERO);
        assert_eq!(clock.at(3 << 30), Duration::from_nanos(4));
        assert!(Clock::new([(1, 1), (2, 2)]).is_none());
        assert!(Clock::new([]).is_none());
    }

    #[test]
    fn events_between_points() {
        let points = vec![
            (0, seconds(0)),
            (4, seconds(4)),
            (4, seconds(10)),
            (8, seconds(12)),
        ];
        let mut line = Timeline { points, next: 0 };
        assert_eq!(line.at(1), When::About(seconds(1)));
        // The first time that was read after the event: it called, and returned six seconds later.
        assert_eq!(line.at(4), When::Known(seconds(4)));
        assert_eq!(line.at(6), When::About(seconds(11)));
        assert_eq!(line.at(8), When::Known(seconds(12)));
        assert_eq!(line.at(9), When::After(seconds(12)));
    }
}
