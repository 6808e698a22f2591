//! The last committed symbols of a stream, where it was opened before: what goes round is kept once.

use lockstep_format::codec::Round;

/// Symbols in order, and those of them that come again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    /// How many are before them.
    pub first: u64,
    symbols: Vec<u32>,
    repeats: Vec<Repeat>,
}

/// The last `round` symbols before `at` come so many times more.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    at: usize,
    round: usize,
    times: u64,
}

impl Recent {
    /// Those behind the first `first` of the stream.
    pub fn new(first: u64) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    pub fn extend(&mut self, symbols: &[u32]) {
        self.symbols.extend_from_slice(symbols);
    }

    /// The last symbols of a round come so many times more; they are among those that were added since the last repeat.
    pub fn repeat(&mut self, round: Round) {
        if round.times > 0 {
            self.repeats.push(Repeat {
                at: self.symbols.len(),
                round: round.symbols as usize,
                times: round.times,
            });
        }
    }

    /// All but the first `skipped`; and how many of these are behind the last one.
    pub fn after(&self, skipped: u64) -> (Walk<'_>, u64) {
        let mut walk = Walk {
            symbols: &self.symbols,
            place: 0,
            repeats: self.repeats.iter(),
            here: None,
        };
        walk.arrive();
        let behind = walk.go_past(skipped);
        (walk, behind)
    }
}

/// Iterator over the symbols.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walk<'a> {
    symbols: &'a [u32],
    place: usize,
    repeats: std::slice::Iter<'a, Repeat>,
    /// The repeat that it is in, and how many of its symbols are left: at least one.
    here: Option<(Repeat, u64)>,
}

impl Walk<'_> {
    /// Begins the repeat that stands at this place, if there is one.
    fn arrive(&mut self) {
        let next = self.repeats.as_slice().first();
        self.here = next.filter(|it| it.at == self.place).map(|it| {
            self.repeats.next();
            (*it, it.round as u64 * it.times)
        });
    }

    /// Passes over so many; how many more these are than there are.
    fn go_past(&mut self, mut count: u64) -> u64 {
        while count > 0 {
            if let Some((_, left)) = &mut self.here {
                let some = count.min(*left);
                (count, *left) = (count - some, *left - some);
                if *left == 0 {
                    self.arrive();
                }
                continue;
            }
            let until = self.repeats.as_slice().first();
            let until = until.map_or(self.symbols.len(), |it| it.at);
            let plain = until - self.place;
            if plain == 0 {
                break;
            }
            let some = usize::try_from(count).map_or(plain, |it| it.min(plain));
            (count, self.place) = (count - some as u64, self.place + some);
            self.arrive();
        }
        count
    }

    /// How many symbols are left.
    pub fn left(&self) -> u64 {
        let later = self.repeats.as_slice().iter();
        let later: u64 = later.map(|it| it.round as u64 * it.times).sum();
        let here = self.here.map_or(0, |it| it.1);
        (self.symbols.len() - self.place) as u64 + here + later
    }

    /// Where the symbols that come go round, as the last ones did.
    pub fn round(&self) -> Option<Round> {
        let (repeat, left) = self.here?;
        let symbols = repeat.round as u64;
        let times = left.checked_div(symbols)?;
        (times > 0).then_some(Round { symbols, times })
    }

    /// Passes over rounds, no more of them than [`Walk::round`] tells.
    pub fn pass(&mut self, round: Round) {
        self.go_past(round.symbols * round.times);
    }
}

impl Iterator for Walk<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if let Some((repeat, left)) = &mut self.here {
            let of_round = (*left - 1) % repeat.round as u64;
            let symbol = self.symbols.get(repeat.at - 1 - of_round as usize).copied();
            *left -= 1;
            if *left == 0 {
                self.arrive();
            }
            return symbol;
        }
        let symbol = self.symbols.get(self.place).copied()?;
        self.place += 1;
        self.arrive();
        Some(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A walk gives what a plain list has, from any symbol on, whatever rounds are passed over on the way.
        #[test]
        fn walks_are_as_plain_lists(
            parts in prop::collection::vec((prop::collection::vec(0..9u32, 1..5), 0..4u64), 0..6),
            skipped in 0..60u64,
            passes in prop::collection::vec(prop::option::of(1..3u64), 0..40),
        ) {
            let (mut recent, mut plain) = (Recent::new(7), Vec::new());
            for (symbols, times) in &parts {
                recent.extend(symbols);
                plain.extend(symbols);
                recent.repeat(Round { symbols: symbols.len() as u64, times: *times });
                (0..*times).for_each(|_| plain.extend(symbols));
            }
            let (mut walk, behind) = recent.after(skipped);
            prop_assert_eq!(behind, skipped.saturating_sub(plain.len() as u64));
            let mut at = (skipped as usize).min(plain.len());
            prop_assert_eq!(walk.left(), (plain.len() - at) as u64);
            for pass in passes {
                if let (Some(times), Some(round)) = (pass, walk.round()) {
                    let times = times.min(round.times);
                    walk.pass(Round { times, ..round });
                    at += (round.symbols * times) as usize;
                }
                prop_assert_eq!(walk.next(), plain.get(at).copied());
                at += 1;
            }
            prop_assert!(walk.eq(plain.iter().skip(at).copied()));
        }
    }
}
