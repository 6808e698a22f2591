//! Scripts: who has which turn, as the overlaid runtime looks for it (`overlay/turns.go.txt`); and the script of a run that
//! was recorded, with its clock, by which that run can be had once more.
//!
//! A turn is an entry of eight bytes: who it is whose turn comes, and the how many-th of its own it is, as a hash; and a
//! case for its `select` to prefer. Numbers of goroutines are others in each run: who somebody is follows from who made
//! it, and as its how many-th child.
//!
//! ```text
//!  recorded   lock 1.2 ms    select 1.3 ms    (a timer) lock 5.4 ms     its turns, in order
//!  replayed   lock           select           lock                      the same turns in the same order
//!  its clock  stands at 1.2  at 1.3           goes on to 5.4            where everybody waits, by the next timer
//! ```
//! A replay's clock stands at the time of the turn that came last, and goes on where nobody can move but by the clock: a
//! machine that is faster or slower, or busy, then changes neither which timers come first, nor whether work is done
//! before a deadline. *Not in it*: memory that is used without usages between, what is outside the program, and
//! turns behind the first [`MOST`].

use crate::execution::{Action, Case, End, Execution, GoroutineId, Site, WaitReason, What};
use serde::{Deserialize, Serialize};

/// In the place of a case: behind everything else that can go (`lockstepLast`).
pub(crate) const LAST: u64 = 255;
/// The bit of a time that says of a `select` that it did not wait.
const AT_ONCE: u64 = 1 << 63;
/// Turns of a recorded run that are asked for.
const MOST: usize = 50_000;

/// When a recorded run had the turns of its script, and which it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Of each: nanoseconds since the program began; the top bit says of a `select` that it did not wait.
    pub times: Vec<u64>,
    /// Where it had turns but those of usages.
    pub turns: Further,
    /// Nanoseconds that its schedule held goroutines up: a replay holds nobody up by its own clock.
    pub stretched: u64,
}

/// Turns but those of usages, and of usages that waited and go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Further {
    /// Behind `go` statements, unlocks, closes, and what let somebody go on: the order was that of a script.
    Behind,
    /// Before `go` statements, too, and not behind each: the order followed from the seed.
    Around,
    /// So it was, with delays in the place of turns.
    Delays,
    /// None: nothing was disturbed. `go` statements are put into the order as they happened.
    None,
}

/// An entry of a script: whose turn, and the number of it among the goroutine's own.
pub(crate) fn entry(name: u64, number: u64, case: Option<u8>) -> u64 {
    let key = mix(name.wrapping_add(number.wrapping_mul(GOLDEN))) >> 8;
    key << 8 | asked(case)
}

/// A case as an entry asks for it; 0 where it asks for none.
fn asked(case: Option<u8>) -> u64 {
    let case = case.map_or(0, |it| u64::from(it) + 1);
    if case < LAST { case } else { 0 }
}

/// The number that the runtime gives a `select`'s case: it has cases that send first, then those that receive, backwards.
pub(crate) fn index(cases: &[Case], case: u32) -> Option<u8> {
    let sends = cases.iter().filter(|it| it.action == Action::Send).count() as u32;
    let index = if case < sends {
        case
    } else {
        (cases.len() as u32 - 1).checked_sub(case)? + sends
    };
    u8::try_from(index).ok().filter(|it| *it < u8::MAX)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// What the runtime's timers are called, which make goroutines, too (`lockstepTimers`).
const TIMERS: u64 = 1;

/// `lockstepMix` of the overlaid runtime.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(GOLDEN);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// What the overlaid runtime calls each goroutine: by its parent, and the how many-th child it is.
pub(crate) fn names(execution: &Execution) -> Vec<u64> {
    let mut names = vec![0_u64; execution.goroutines.len()];
    let mut children = vec![0_u64; execution.goroutines.len()];
    let mut of_timers = 0_u64;
    for event in &execution.events {
        let What::Create(child) = &event.what else {
            continue;
        };
        let Some(made) = execution.goroutines.get(child.0 as usize) else {
            continue;
        };
        if made.entry.starts_with("runtime.") || child.0 == 0 {
            continue;
        }
        let (up, count) = match event.goroutine {
            Some(parent) => (names[parent.0 as usize], &mut children[parent.0 as usize]),
            None => (TIMERS, &mut of_timers),
        };
        *count += 1;
        names[child.0 as usize] = mix(up.wrapping_add(count.wrapping_mul(GOLDEN)));
    }
    names
}

/// Usages of the program's own goroutines, in order: who, what and where.
pub fn usages(execution: &Execution) -> impl Iterator<Item = (GoroutineId, Action, Option<&Site>)> {
    let own = |id: &GoroutineId| {
        let goroutine = execution.goroutines.get(id.0 as usize);
        goroutine.is_some_and(|it| !it.is_system)
    };
    execution
        .events
        .iter()
        .filter_map(move |it| match &it.what {
            What::Request { action, .. } => {
                let site = it.site.and_then(|it| execution.site(it));
                Some((it.goroutine.filter(own)?, *action, site))
            }
            _ => None,
        })
}

/// Whether two executions have the same usages in the same order; as far as both came, where a limit ended one.
#[must_use]
pub fn is_same(one: &Execution, other: &Execution) -> bool {
    let (one_has, other_has) = (usages(one).count(), usages(other).count());
    let is_cut = [one, other].iter().any(|it| it.end == End::TimedOut);
    let is_alike = usages(one)
        .zip(usages(other))
        .all(|(one, other)| one == other);
    is_alike && (is_cut || one_has == other_has)
}

/// What has been of a goroutine.
#[derive(Debug, Clone, Default)]
struct Past<'a> {
    usages: u64,
    /// Turns behind usages and around `go` statements.
    further: u64,
    /// Channels; those of timers are made when the clock begins to count for them.
    made: u64,
    /// Whether it waited since its last usage began.
    has_waited: bool,
    /// Its open `select`s: where the entry stands, and the cases.
    selects: Vec<(usize, &'a [Case])>,
}

/// The script of an execution that had these turns, and when each was: usages, waits that were over, and those.
#[must_use]
pub fn of(execution: &Execution, turns: Further) -> (Vec<u64>, Vec<u64>) {
    let names = names(execution);
    let mut pasts = vec![Past::default(); names.len()];
    let (mut script, mut times): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for event in &execution.events {
        let Some(id) = event.goroutine.map(|it| it.0 as usize) else {
            continue;
        };
        let is_own = execution.goroutines.get(id).is_some_and(|it| !it.is_system);
        if !is_own || script.len() == MOST {
            continue;
        }
        let past = &mut pasts[id];
        // `lockstepFollow`: which of four sorts stands in the last two bits.
        let number = match &event.what {
            What::Request {
                action: Action::Go, ..
            } if turns == Further::None => {
                past.further += 1;
                past.further << 2 | 1
            }
            What::GoesOn if turns != Further::None => {
                past.further += 1;
                past.further << 2 | 1
            }
            What::Request { action, cases, .. } if *action != Action::Go => {
                past.usages += 1;
                past.has_waited = false;
                if *action == Action::Select {
                    past.selects.push((script.len(), cases));
                }
                past.usages << 2
            }
            What::Make(_) => {
                past.made += 1;
                past.made << 2 | 3
            }
            What::Park(reason) => {
                past.has_waited |= !matches!(reason, WaitReason::Io | WaitReason::Runtime);
                continue;
            }
            What::Complete { action, case, .. } if *action != Action::Go => {
                let began = past.selects.pop_if(|_| *action == Action::Select);
                let has_waited = std::mem::take(&mut past.has_waited);
                if let Some((at, cases)) = began {
                    let taken = case.and_then(|it| index(cases, it));
                    script[at] |= asked(taken);
                    times[at] |= u64::from(!has_waited) * AT_ONCE;
                }
                if !has_waited {
                    continue;
                }
                past.usages << 2 | 2
            }
            _ => continue,
        };
        script.push(entry(names[id], number, None));
        times.push(event.time);
    }
    (script, times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Event;
    use crate::sample::{MAIN, Sample};
    use std::collections::BTreeSet;

    /// Main makes two, who lock, and takes the second case of a select, at once or after a while.
    fn sample(waits: bool) -> Sample {
        let mut sample = Sample::new();
        let (lock, a, b) = (
            sample.mutex(1),
            sample.channel(MAIN, 2, 1),
            sample.channel(MAIN, 3, 1),
        );
        for line in [10, 20] {
            let who = sample.go(MAIN, line);
            sample.does(who, line + 1, Action::Lock, lock);
            sample.does(who, line + 2, Action::Unlock, lock);
            sample.ends(who, line + 3);
        }
        let receives = [(Action::Receive, Some(a)), (Action::Receive, Some(b))];
        sample.selects(MAIN, 30, &receives);
        if waits {
            sample.event(MAIN, 30, What::Park(WaitReason::Select));
            sample.event(MAIN, 30, What::Park(WaitReason::Runtime));
        }
        let took = What::Complete {
            action: Action::Select,
            case: Some(1),
            ok: true,
        };
        sample.event(MAIN, 30, took);
        sample.exits();
        sample
    }

    #[test]
    fn every_turn_has_an_entry_of_its_own() {
        let (script, times) = of(&sample(false).execution, Further::None);
        // Two channels, two go statements, four of locks, a select.
        assert_eq!(script.len(), 9);
        let keys: BTreeSet<u64> = script.iter().map(|it| it >> 8).collect();
        assert_eq!(keys.len(), 9);
        assert!(times.iter().map(|it| it & !AT_ONCE).is_sorted());
        let at_once: Vec<bool> = times.iter().map(|it| it & AT_ONCE != 0).collect();
        assert_eq!(at_once.iter().filter(|it| **it).count(), 1);
        assert!(at_once[8], "the select");
        // Cases that receive are numbered backwards: the second is 0, and stands there plus one.
        assert_eq!(script[8] & 0xff, 1);
    }

    #[test]
    fn who_waited_has_a_turn_to_go_on() {
        let (script, times) = of(&sample(true).execution, Further::None);
        assert_eq!(script.len(), 10);
        assert!(times.iter().all(|it| it & AT_ONCE == 0));
        assert_eq!((script[8] & 0xff, script[9] & 0xff), (1, 0));
    }

    #[test]
    fn executions_are_the_same_by_their_usages() {
        let (one, mut other) = (sample(false).execution, sample(true).execution);
        assert!(is_same(&one, &other), "waits are no usages");
        let request = |it: &Event| matches!(it.what, What::Request { .. });
        let last = other.events.iter().rposition(request).expect("a select");
        other.events.truncate(last);
        assert!(!is_same(&one, &other));
        other.end = End::TimedOut;
        assert!(is_same(&one, &other), "as far as it came");
    }

    #[test]
    fn functions_of_timers_have_names_of_their_own() {
        let mut sample = Sample::new();
        sample.go(MAIN, 10);
        let by_timer = sample.go(MAIN, 20);
        for event in &mut sample.execution.events {
            if event.what == What::Create(by_timer) {
                event.goroutine = None;
            }
        }
        let names = names(&sample.execution);
        let all: BTreeSet<u64> = names.iter().copied().collect();
        assert_eq!(all.len(), names.len(), "{names:?}");
    }
}
