//! The order of all hypotheses.

use crate::{Certainty, Hypothesis};
use std::collections::{BTreeMap, BTreeSet};

/// Which hypotheses are told, by their place, and how certain their suspects are: one a suspect, the most certain suspect first.
///
/// A suspect is as certain as its most certain hypothesis, and its most telling one stands for it. Of suspects that are as certain,
/// those come first for whom a task waits that holds all others up; then by number. One that is silenced silences nobody.
#[must_use]
pub fn ranked(all: &[Hypothesis]) -> Vec<(Certainty, usize)> {
    let mut suspects: BTreeMap<u32, (Certainty, bool, usize)> = BTreeMap::new();
    for (place, it) in all.iter().enumerate() {
        let (certainty, holds_up, told) = (suspects.entry(it.suspect))
            .or_insert_with(|| (it.certainty(), it.holds_up, place))
            .to_owned();
        let is_more_telling = it.kind < all[told].kind;
        let best = (
            certainty.min(it.certainty()),
            holds_up || it.holds_up,
            if is_more_telling { place } else { told },
        );
        suspects.insert(it.suspect, best);
    }
    let mut order: Vec<(Certainty, bool, u32, usize)> = (suspects.into_iter())
        .map(|(suspect, (certainty, holds_up, told))| (certainty, !holds_up, suspect, told))
        .collect();
    order.sort_unstable();
    let mut certain: BTreeSet<Certainty> = BTreeSet::new();
    // That one suspect is as certain as another silences neither.
    order.retain(|(certainty, ..)| {
        let is_silenced = certain
            .iter()
            .any(|it| *it < *certainty && it.silences(*certainty));
        if !is_silenced {
            certain.insert(*certainty);
        }
        !is_silenced
    });
    order.into_iter().map(|it| (it.0, it.3)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn told(all: &[Hypothesis]) -> Vec<(u32, Kind)> {
        let told = ranked(all).into_iter().map(|it| &all[it.1]);
        told.map(|it| (it.suspect, it.kind)).collect()
    }

    fn shown(suspect: u32) -> Hypothesis {
        Hypothesis {
            explains: 1,
            ..Hypothesis::new(suspect, Kind::Departed)
        }
    }

    #[test]
    fn a_suspect_is_as_certain_as_its_best_and_told_by_what_tells_most() {
        let sent = Hypothesis::new(3, Kind::Sent);
        let left_out = |suspect| Hypothesis::new(suspect, Kind::LeftOut);
        // What it sent next is no message with another tag, and others only did more or less.
        assert_eq!(
            told(&[left_out(1), left_out(3), sent]),
            [(3, Kind::LeftOut)]
        );
        assert_eq!(told(&[left_out(1), sent]), [(3, Kind::Sent)]);
        assert_eq!(told(&[sent, shown(3), shown(1)]), [(3, Kind::Departed)]);
    }

    #[test]
    fn what_a_normal_run_shows_comes_before_what_most_do() {
        let [stops, outvoted] = [Kind::Stops, Kind::Outvoted].map(|it| Hypothesis::new(0, it));
        let way = (1, Kind::Departed);
        let both = [way, (0, Kind::Outvoted)];
        assert_eq!(told(&[outvoted, shown(1)]), both);
        assert_eq!(told(&[shown(1), stops]), [(0, Kind::Stops), way]);
        let passed = Hypothesis::new(2, Kind::Passed);
        assert_eq!(told(&[passed, outvoted]), both[1..]);
        assert_eq!(told(&[passed, stops]), [(0, Kind::Stops)]);
    }

    #[test]
    fn who_is_gone_explains_what_others_did_more_or_less() {
        let left = Hypothesis::new(5, Kind::Left);
        assert_eq!(told(&[shown(1), left]), [(5, Kind::Left)]);
        let passed = Hypothesis::new(2, Kind::Passed);
        assert_eq!(told(&[passed, left]), [(5, Kind::Left), (2, Kind::Passed)]);
        let displaced = Hypothesis::new(4, Kind::Displaced);
        let both = [passed, left, displaced, shown(4)];
        assert_eq!(told(&both), [(4, Kind::Departed)]);
    }

    #[test]
    fn of_those_as_certain_who_is_waited_for_by_all_comes_first() {
        let first = Hypothesis {
            holds_up: true,
            ..shown(7)
        };
        let both = [shown(1), first].map(|it| (it.suspect, it.kind));
        assert_eq!(told(&[shown(1), first]), [both[1], both[0]]);
    }

    #[test]
    fn places_are_asked_for_last() {
        let went_on = Hypothesis::new(1, Kind::WentOn);
        let misled = Hypothesis::new(2, Kind::Misled);
        assert_eq!(told(&[went_on, misled]), [(2, Kind::Misled)]);
        // Who is gone is told by itself.
        let died = Hypothesis::new(3, Kind::Died);
        assert_eq!(told(&[went_on, died]).len(), 2);
    }
}
