//! When things happened: a thread's time points, in seconds since its host's processes of the run began.
//!
//! A point says how many symbols a thread had stored at a reading of the time stamp counter, and whether an event was
//! stored just then. Of other events no more is known than the points before and behind them: nothing is made up between.
//! What the counter's ticks are worth follows from the readings of the kernel's clock on the same host.

use crate::container::{Side, SideStream, Stamp};
use crate::map::Mapped;
use crate::model::Thread;
use crate::stream::{Bytes, Segment};
use lockstep_format::codec::Source as _;
use lockstep_format::side::{Broken, point, read_varint};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What ticks of a host's processors are worth: readings of both clocks, in order, and between them in proportion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clock {
    readings: Arc<[(u64, u64)]>,
}

impl Clock {
    /// From all readings of a host; `None` where they are too few or too close.
    pub fn new(readings: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        /// Closer ones would say more about the reading than about the clock.
        const APART: u64 = 1 << 20;
        let mut all: Vec<(u64, u64)> = readings.into_iter().collect();
        all.sort_unstable();
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for (ticks, nanoseconds) in all {
            let follows = kept
                .last()
                .is_none_or(|last| ticks - last.0 > APART && nanoseconds >= last.1);
            if follows {
                kept.push((ticks, nanoseconds));
            }
        }
        (kept.len() > 1).then(|| Self {
            readings: kept.into(),
        })
    }

    /// Nanoseconds of the monotonic clock at the beginning.
    fn beginning(&self) -> u64 {
        self.readings.first().map_or(0, |first| first.1)
    }

    fn at(&self, ticks: u64) -> Duration {
        let (Some(first), Some(last)) = (self.readings.first(), self.readings.last()) else {
            return Duration::ZERO;
        };
        let next = self.readings.partition_point(|it| it.0 <= ticks);
        let around = next.checked_sub(1).zip(self.readings.get(next));
        let (from, (begin, end)) = match around {
            Some((before, behind)) => {
                let before = self.readings.get(before).unwrap_or(first);
                (before, (before, behind))
            }
            // Behind the last one it goes on as it did all in all.
            None if next > 0 => (last, (first, last)),
            None => return Duration::ZERO,
        };
        let since = u128::from(ticks - from.0) * u128::from(end.1 - begin.1);
        let since = since / u128::from(end.0 - begin.0);
        let nanoseconds = u128::from(from.1 - first.1) + since;
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// A thread's times, as recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub file: Arc<Mapped>,
    /// One, or one for each segment that is there, oldest first.
    pub parts: Vec<Part>,
    pub host: String,
    /// Nanoseconds since 1970 and of the monotonic clock when the file was made; of the latter 0 where it is not told.
    pub created: (u64, u64),
}

/// The times beside a row of events.
#[derive(Debug)]
pub(crate) struct Part {
    pub stream: SideStream,
    /// The points that were not in the stream yet.
    pub stamps: Vec<Stamp>,
    /// The first reading of the clocks.
    pub first: u64,
    /// Symbols and ticks when the thread was seen last.
    pub last: (u64, u64),
    /// Symbols of the parts before, and how many of this one repeat some of them.
    pub before: u64,
    pub repeated: u64,
}

/// The times beside the segments of a thread, of those that have any.
pub(crate) fn parts(segments: &[Segment], sides: &[Side]) -> Vec<Part> {
    let mut before = 0u64;
    let mut parts = Vec::new();
    for (index, (segment, side)) in segments.iter().zip(sides).enumerate() {
        // Those of the first are calls of the trace.
        let repeated = if index == 0 { 0 } else { segment.inherited };
        let repeated = u64::from(repeated);
        if let (Some(last), Some((first, _))) = (side.last, side.clocks.first()) {
            parts.push(Part {
                stream: side.times.clone(),
                stamps: side.stamps.clone(),
                first: *first,
                last,
                before,
                repeated,
            });
        }
        before = before.saturating_add(segment.decoded.saturating_sub(repeated));
    }
    parts
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
        let first = self.recorded.parts.first()?;
        Some(self.clock.as_ref()?.at(first.first))
    }

    /// When it was last seen: at a commit of its events, on the recorder's slow path, at a call that was measured or its
    /// return. What it did later is at most one batch of events.
    #[must_use]
    pub fn last(&self) -> Option<Duration> {
        let last = self.recorded.parts.last()?;
        let stamp = last.stamps.last().map_or(0, |stamp| stamp.ticks);
        Some(self.clock.as_ref()?.at(last.last.1.max(stamp)))
    }

    /// What the monotonic clock of its host said at the time 0, in nanoseconds.
    #[must_use]
    pub fn zero(&self) -> Option<u64> {
        Some(self.clock.as_ref()?.beginning())
    }

    /// When the time 0 was, in nanoseconds since 1970, where that was recorded.
    #[must_use]
    pub fn date(&self) -> Option<u64> {
        let (date, clock) = self.recorded.created;
        let zero = self.zero().filter(|_| clock > 0)?;
        let date = i128::from(date) + i128::from(zero) - i128::from(clock);
        u64::try_from(date).ok()
    }
}

/// A point: symbols stored, when, and of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    symbols: u64,
    time: Duration,
    kind: u64,
}

/// The points of a thread, in order, as they are decoded.
#[derive(Debug)]
struct Points<'a> {
    recorded: &'a Recorded,
    clock: &'a Clock,
    /// The part at work, and the next one.
    part: Option<&'a Part>,
    next: usize,
    bytes: Bytes<'a>,
    /// The stamp that comes next; behind them comes the last time that the thread was seen.
    stamp: usize,
    /// Symbols and ticks of the point before, in this part.
    here: (u64, u64),
    /// What was handed out last: processors' counters may differ by a little.
    told: (u64, Duration),
}

impl<'a> Points<'a> {
    fn new(recorded: &'a Recorded, clock: &'a Clock) -> Self {
        Self {
            recorded,
            clock,
            part: None,
            next: 0,
            bytes: Bytes::new(&[], &[], &[]),
            stamp: 0,
            here: (0, 0),
            told: (0, Duration::ZERO),
        }
    }

    fn begin(&mut self, part: &'a Part) -> (u64, u64) {
        self.next += 1;
        self.stamp = 0;
        self.bytes = Bytes::new(self.recorded.file.bytes(), &part.stream.pieces, &[]);
        self.here = (0, part.first);
        self.part = Some(part);
        (0, point::SEEN)
    }

    /// The next one in the stream, then among the stamps; symbols and kind. Its ticks are those of `here` then.
    fn step(&mut self, part: &Part) -> Option<(u64, u64)> {
        let bytes = &mut self.bytes;
        let mut number = || read_varint(|| bytes.take().ok_or(Broken::CutOff));
        if let (Ok(symbols), Ok(ticks)) = (number(), number()) {
            let kind = symbols & ((1 << point::BITS) - 1);
            let symbols = self.here.0.saturating_add(symbols >> point::BITS);
            self.here = (symbols, self.here.1.saturating_add(ticks));
            return Some((symbols, kind));
        }
        while let Some(stamp) = part.stamps.get(self.stamp) {
            self.stamp += 1;
            // Killed between the two, it had put them into the stream already.
            if stamp.ticks > self.here.1 {
                self.here = (stamp.symbols.max(self.here.0), stamp.ticks);
                return Some((self.here.0, stamp.kind));
            }
        }
        if self.stamp == part.stamps.len() {
            self.stamp += 1;
            if part.last.1 > self.here.1 {
                self.here = (part.last.0.max(self.here.0), part.last.1);
                return Some((self.here.0, point::SEEN));
            }
        }
        None
    }
}

impl Iterator for Points<'_> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        let (symbols, kind) = match self.part.and_then(|part| self.step(part)) {
            Some(found) => found,
            None => self.begin(self.recorded.parts.get(self.next)?),
        };
        let (before, repeated) = self.part.map_or((0, 0), |it| (it.before, it.repeated));
        let symbols = before.saturating_add(symbols.saturating_sub(repeated));
        let time = self.clock.at(self.here.1);
        self.told = (self.told.0.max(symbols), self.told.1.max(time));
        let (symbols, time) = self.told;
        Some(Point {
            symbols,
            time,
            kind,
        })
    }
}

/// When an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It was measured.
    Known(Duration),
    /// Not before the first, and not after the second: times that were read.
    Between(Duration, Duration),
    /// Not before the last time that was read.
    After(Duration),
}

impl When {
    /// The time before which it was not.
    #[must_use]
    pub const fn earliest(self) -> Duration {
        match self {
            Self::Known(time) | Self::Between(time, _) | Self::After(time) => time,
        }
    }

    /// The time after which it was not, where there is one.
    #[must_use]
    pub const fn latest(self) -> Option<Duration> {
        match self {
            Self::Known(time) | Self::Between(_, time) => Some(time),
            Self::After(_) => None,
        }
    }
}

/// Places events in time, in order.
#[derive(Debug)]
pub struct Timeline<'a> {
    points: Points<'a>,
    /// The last point with fewer symbols than were asked for.
    before: Option<Point>,
    /// When the next symbol behind such a point was about to be stored.
    announced: Option<(u64, Duration)>,
    /// The points behind that, as far as they were looked at.
    behind: VecDeque<Point>,
}

impl Timeline<'_> {
    /// When the event was by which the thread had stored `symbols` symbols; asked in order.
    pub fn at(&mut self, symbols: u64) -> When {
        while let Some(next) = self.peek().filter(|it| it.symbols < symbols) {
            if next.kind == point::BEFORE {
                self.announced = Some((next.symbols, next.time));
            }
            self.before = Some(next);
            self.behind.pop_front();
        }
        let announced = self
            .announced
            .filter(|it| it.0.checked_add(1) == Some(symbols));
        if let Some((_, time)) = announced {
            return When::Known(time);
        }
        let earliest = self.before.map_or(Duration::ZERO, |it| it.time);
        let Some(first) = self.peek() else {
            return When::After(earliest);
        };
        if first.symbols == symbols
            && let Some(time) = self.stored(symbols)
        {
            return When::Known(time);
        }
        When::Between(earliest, first.time)
    }

    /// When this symbol was stored, if that was measured.
    fn stored(&mut self, symbols: u64) -> Option<Duration> {
        let mut index = 0;
        loop {
            while self.behind.len() <= index {
                let next = self.points.next()?;
                self.behind.push_back(next);
            }
            let found = self.behind.get(index).filter(|it| it.symbols == symbols)?;
            if found.kind == point::AFTER {
                return Some(found.time);
            }
            index += 1;
        }
    }

    fn peek(&mut self) -> Option<Point> {
        if self.behind.is_empty() {
            self.behind.extend(self.points.next());
        }
        self.behind.front().copied()
    }
}

impl Thread {
    /// For [`crate::Annotated::symbols`]; `None` where no times were recorded.
    #[must_use]
    pub fn timeline(&self) -> Option<Timeline<'_>> {
        let times = self.times.as_ref()?;
        let clock = times.clock.as_ref()?;
        (!times.recorded.parts.is_empty()).then(|| Timeline {
            points: Points::new(&times.recorded, clock),
            before: None,
            announced: None,
            behind: VecDeque::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn nanoseconds(time: u64) -> Duration {
        Duration::from_nanos(time)
    }

    #[test]
    fn ticks_become_seconds() {
        let clock = Clock::new([(3 << 30, 11), (1 << 30, 5), (2 << 30, 7)]).unwrap();
        assert_eq!(clock.at(0), Duration::ZERO);
        assert_eq!(clock.at(1 << 30), Duration::ZERO);
        assert_eq!(clock.at(3 << 29), nanoseconds(1));
        assert_eq!(clock.at(5 << 29), nanoseconds(4));
        assert_eq!(clock.at(3 << 30), nanoseconds(6));
        assert_eq!(clock.at(5 << 30), nanoseconds(12));
        assert_eq!(clock.beginning(), 5);
        assert!(Clock::new([(1, 1), (2, 2)]).is_none());
        assert!(Clock::new([]).is_none());
    }

    fn stamp(symbols: u64, kind: u64, ticks: u64) -> Stamp {
        Stamp {
            ticks: ticks << 20,
            symbols,
            kind,
        }
    }

    /// A tick of these is a nanosecond.
    fn asked(parts: Vec<Part>, symbols: &[u64]) -> Vec<When> {
        let recorded = Recorded {
            file: Arc::new(Mapped::Memory(Vec::new())),
            parts,
            host: String::new(),
            created: (0, 0),
        };
        let clock = Clock::new([(0, 0), (100 << 20, 100)]).unwrap();
        let mut line = Timeline {
            points: Points::new(&recorded, &clock),
            before: None,
            announced: None,
            behind: VecDeque::new(),
        };
        symbols.iter().map(|it| line.at(*it)).collect()
    }

    fn part(stamps: Vec<Stamp>, last: (u64, u64)) -> Part {
        Part {
            stream: SideStream::default(),
            stamps,
            first: 1 << 20,
            last: (last.0, last.1 << 20),
            before: 0,
            repeated: 0,
        }
    }

    #[test]
    fn an_event_is_known_or_between_two_times() {
        let between = |from, to| When::Between(nanoseconds(from), nanoseconds(to));
        let known = |time| When::Known(nanoseconds(time));
        let stamps = vec![
            stamp(4, point::AFTER, 4),
            stamp(4, point::BEFORE, 10),
            stamp(8, point::SEEN, 12),
            stamp(8, point::AFTER, 13),
        ];
        let found = asked(vec![part(stamps, (9, 20))], &[1, 3, 4, 4, 5, 6, 8, 9, 10]);
        let expected = [
            between(1, 4),
            between(1, 4),
            known(4),
            known(4),
            // It called at 4 and returned at 10.
            known(10),
            between(10, 12),
            known(13),
            between(13, 20),
            When::After(nanoseconds(20)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn symbols_of_segments_go_on() {
        let first = part(vec![stamp(3, point::AFTER, 3)], (5, 4));
        let second = Part {
            before: 5,
            repeated: 2,
            first: 6 << 20,
            ..part(vec![stamp(4, point::AFTER, 9)], (4, 9))
        };
        let known = |time| When::Known(nanoseconds(time));
        let between = When::Between(nanoseconds(6), nanoseconds(9));
        let found = asked(vec![first, second], &[3, 6, 7]);
        assert_eq!(found, [known(3), between, known(9)]);
    }
}
