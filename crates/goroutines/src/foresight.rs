//! What the same goroutines would come to in another order: bad ends that a healthy execution shows are near, each
//! with the order of turns that leads there, so that a run can be made to take it.
//!
//! ```text
//! Execution ─► a program of steps for each goroutine ─► orders near the recorded one ─► bad ends
//!                                                    (what the runtime makes of steps)     │
//!            run with usages taking turns in that order  ◄── script: who goes when  ◄──────┘
//! ```
//! Found are waits for ever, crashes of channels, locks and wait groups, and waits that are over too early: whatever
//! hangs on the order of usages. What hangs on values is not known: where a `select` or a try comes out otherwise
//! than it did, what follows is guessed (from what followed elsewhere), and such ends stand behind those without a
//! guess. Once no bad end is left, orders are tried in which two lines come one behind the other at an object that
//! never did so before, or one line behind everything else: what is not seen yet may hang on it. *Guarantees*: none, but that nothing here is called a bug: a bad end counts when a run has come to it.
//! *Costs*: at most 80,000 choices, each a copy of a state; executions of more than [`STEPS`] steps are not gone through.

mod machine;
mod program;
mod search;

use crate::execution::{Execution, GoroutineId, SiteId};
use crate::script::{self, names};
use crate::tree::Place;
use machine::Turn;
use program::Programs;
use search::{Bad, End};
use std::collections::BTreeSet;

/// Longer executions are left alone.
const STEPS: usize = 1500;
/// So are those of more goroutines.
const GOROUTINES: usize = 100;
/// And objects.
const OBJECTS: usize = 400;

/// An order of turns that is near what was seen, and is worth a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// How it would end, in one sentence; that it is new, where that is all.
    pub sentence: String,
    /// Whether it would end badly.
    pub is_bad: bool,
    /// How much of it is a guess: 0 where it hangs on the order alone.
    pub guesses: u32,
    /// The order of turns that leads there, for `schedule::Plan::script`.
    pub script: Vec<u64>,
    /// Where it ends badly.
    pub places: Vec<Place>,
    pairs: BTreeSet<Pair>,
}

/// Two lines, one behind the other: `search::Pair`.
type Pair = (Stand, Stand, bool);
/// A line and whose it is: the statement that made the goroutine, for numbers are others in each execution.
type Stand = (Option<Place>, Place);

/// What is near all that was seen so far.
#[derive(Debug, Clone, Default)]
pub struct Foresight {
    near: Vec<Scenario>,
    seen: BTreeSet<Pair>,
    /// Bad ends that were tried, and how often.
    tried: Vec<(Vec<Place>, u32)>,
    again: bool,
}

impl Foresight {
    /// Takes in what a healthy execution shows to be near.
    pub fn learn(&mut self, execution: &Execution) {
        let programs = Programs::of(execution);
        if execution.lost > 0
            || programs.len() > STEPS
            || programs.all.len() > GOROUTINES
            || execution.objects.len() > OBJECTS
        {
            return;
        }
        let Some((machine, trail)) = search::follow(execution, &programs) else {
            return;
        };
        self.seen.extend(told(execution, &search::pairs(&trail)));
        let names = names(execution);
        let (bad, well) = search::ends(&machine);
        self.near.retain(|it| it.is_bad);
        for end in bad.iter().chain(&well) {
            self.near.push(scenario(execution, &names, end));
        }
        self.near.extend(trail.iter().filter_map(|turn| {
            let stand = told_of(execution, (turn.who, turn.site))?;
            Some(Scenario {
                sentence: "behind everything else".to_owned(),
                is_bad: false,
                guesses: 0,
                script: vec![entry(&names, turn) | script::LAST],
                places: Vec::new(),
                // Behind itself, so to speak: no order shows that.
                pairs: BTreeSet::from([(stand.clone(), stand, turn.behind)]),
            })
        }));
        self.near.sort_by_key(|it| (!it.is_bad, it.guesses));
    }

    /// What to try next, if anything is left: a way to each bad end, the surest first; then what is only new, and
    /// further ways to the same ends, by turns.
    pub fn propose(&mut self) -> Option<Scenario> {
        let tried = |it: &Scenario| {
            let known = self.tried.iter().find(|known| known.0 == it.places);
            known.map_or(0, |known| known.1)
        };
        let worth = |it: &Scenario| {
            let new = it.pairs.difference(&self.seen);
            // What memory holds matters less often than who was first at a lock or channel.
            new.map(|it| if it.2 { 1 } else { 2 }).sum::<u32>()
        };
        let bad = || self.near.iter().filter(|it| it.is_bad);
        let first = bad()
            .filter(|it| tried(it) == 0)
            .min_by_key(|it| it.guesses);
        let orders = self.near.iter().filter(|it| !it.is_bad && worth(it) > 0);
        let order = orders.max_by_key(|it| (it.guesses < 2, worth(it)));
        let again = bad()
            .filter(|it| tried(it) < WAYS)
            .min_by_key(|it| (tried(it), it.guesses));
        self.again = !self.again;
        let found = first.or(if self.again {
            again.or(order)
        } else {
            order.or(again)
        });
        let found = found?.clone();
        self.near.retain(|it| it.script != found.script);
        self.seen.extend(found.pairs.iter().cloned());
        if found.is_bad {
            match self.tried.iter_mut().find(|it| it.0 == found.places) {
                Some(known) => known.1 += 1,
                None => self.tried.push((found.places.clone(), 1)),
            }
        }
        Some(found)
    }
}

/// Ways to one bad end that are tried.
const WAYS: u32 = 3;

fn told(execution: &Execution, pairs: &BTreeSet<search::Pair>) -> BTreeSet<Pair> {
    let pair =
        |it: &search::Pair| Some((told_of(execution, it.0)?, told_of(execution, it.1)?, it.2));
    pairs.iter().filter_map(pair).collect()
}

/// Of lines of the program's own: who is first in what starts the tests matters to none of them.
fn told_of(execution: &Execution, (who, site): search::Stand) -> Option<Stand> {
    let place = site.and_then(|it| execution.site(it)).map(Place::of)?;
    let goroutine = execution.goroutines.get(who.0 as usize)?;
    let made = goroutine.created_at.and_then(|it| execution.site(it));
    (!place.file.ends_with("_testmain.go")).then(|| (made.map(Place::of), place))
}

fn scenario(execution: &Execution, names: &[u64], end: &End) -> Scenario {
    let who = |id: &GoroutineId| match id.0 {
        0 => "main".to_owned(),
        at => format!("goroutine {}", execution.goroutines[at as usize].number),
    };
    let place = |site: &Option<SiteId>| site.and_then(|it| execution.site(it)).map(Place::of);
    let at = |site: &Option<SiteId>| {
        place(site).map_or_else(String::new, |it| {
            format!(" at {}", crate::words::short(&it))
        })
    };
    let mut places: Vec<Place> = Vec::new();
    let sentence = match &end.bad {
        Some(Bad::Stuck(stuck)) => {
            places.extend(stuck.iter().filter_map(|it| place(&it.1)));
            let told: Vec<String> = stuck
                .iter()
                .map(|(id, site)| format!("{} waits{}", who(id), at(site)))
                .collect();
            format!("in another order, for ever: {}", told.join("; "))
        }
        Some(Bad::Crash(id, site, said)) => {
            places.extend(place(site));
            format!("in another order, {} {said}{}", who(id), at(site))
        }
        Some(Bad::Early(id, site)) => {
            places.extend(place(site));
            let at = at(site);
            format!("in another order, {}'s wait{at} is over too early", who(id))
        }
        None => "an order that was not seen".to_owned(),
    };
    places.sort();
    places.dedup();
    Scenario {
        sentence,
        is_bad: end.bad.is_some(),
        guesses: end.guesses,
        script: end.trail.iter().map(|it| entry(names, it)).collect(),
        places,
        pairs: told(execution, &end.pairs),
    }
}

fn entry(names: &[u64], turn: &Turn) -> u64 {
    let name = names.get(turn.who.0 as usize).copied().unwrap_or(0);
    let number = u64::from(turn.request) * 2 + u64::from(turn.behind);
    script::entry(name, number, turn.case)
}

#[cfg(test)]
mod tests;
