//! Where events and the arguments beside them go round, as in a program that asks again and again: one round is read, and those
//! that are sure to be as that are passed over.
//!
//! *Guarantees*: what was passed over is what would have been read: codecs predict both, and stood at the end of the round as
//! at its beginning. *Costs*: of many rounds, that of one.

use super::{Arguments, Record, Records};
use crate::frames::Frames;
use crate::stream::Round;
use lockstep_format::side::Standing;
use std::sync::Arc;

/// How reading stood at the beginning of a round of events.
#[derive(Debug)]
pub struct Lap {
    symbols: u64,
    /// Symbols of the round.
    of_round: u64,
    was_leaf: bool,
    index: u64,
    frames: Frames,
    /// With how many there were.
    records: Option<(Standing, u64)>,
    next: Option<Record>,
}

impl Arguments<'_> {
    /// How it stands, where the events that come go round.
    #[must_use]
    pub fn lap(&self) -> Option<Lap> {
        let round = self.events.round().filter(|_| self.inherited == 0)?;
        Some(Lap {
            symbols: self.events.symbols(),
            of_round: round.symbols,
            was_leaf: self.events.was_leaf(),
            index: self.index,
            frames: self.frames.clone(),
            records: self.records.as_ref().map(Records::standing),
            next: self.next.clone(),
        })
    }

    /// Whether a round is over since `lap`.
    pub(super) fn is_at_end_of(&self, lap: &Lap) -> bool {
        let symbols = self.events.symbols() - lap.symbols;
        let is_like = self.events.was_leaf() == lap.was_leaf;
        symbols > lap.of_round || symbols == lap.of_round && is_like
    }

    /// Whether so much was read since `lap` as a round is.
    #[must_use]
    pub fn is_over(&self, lap: &Lap) -> bool {
        self.events.symbols() - lap.symbols >= lap.of_round
    }

    /// Passes over rounds that are sure to be as the one since `lap`, events and records: how many. `None` where that
    /// is not over.
    pub fn pass(&mut self, lap: &Lap) -> Option<u64> {
        let symbols = self.events.symbols() - lap.symbols;
        if symbols < lap.of_round {
            return None;
        }
        let round = self.events.round();
        let round = round.filter(|it| it.symbols == lap.of_round && it.symbols == symbols);
        Some(round.map_or(0, |round| self.pass_rounds(lap, round)))
    }

    fn pass_rounds(&mut self, lap: &Lap, round: Round) -> u64 {
        let is_next = match (&self.next, &lap.next) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.arguments, &other.arguments),
            (one, other) => one.is_none() && other.is_none(),
        };
        let is_like = self.events.was_leaf() == lap.was_leaf && self.frames == lap.frames;
        let records = self
            .records
            .as_ref()
            .map(Records::standing)
            .zip(lap.records);
        let of_records = match records {
            // All of them were of the run that is going on.
            Some(((now, count), (then, before))) if now.is_like(&then) => {
                let records = u32::try_from(count - before).ok();
                records.filter(|it| now.left.checked_add(*it) == Some(then.left))
            }
            Some(_) => None,
            None => Some(0),
        };
        let Some(of_records) = of_records.filter(|_| is_next && is_like) else {
            return 0;
        };
        let of_events = self.index - lap.index;
        let here = (self.events.symbols(), self.index);
        let mut times = self
            .inferred
            .rounds_before(here, (round.symbols, of_events), round.times);
        if let (Some(((now, _), _)), 1..) = (records, of_records) {
            times = times.min(u64::from(now.left / of_records));
        }
        self.events.pass(Round { times, ..round });
        self.index += of_events * times;
        if let Some(records) = &mut self.records {
            // No more than are left.
            records.decoder.pass((u64::from(of_records) * times) as u32);
        }
        times
    }
}
