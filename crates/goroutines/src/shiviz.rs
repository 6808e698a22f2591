//! An execution as a log for ShiViz: each event of the program's goroutines with its vector clock.
//!
//! ```text
//! g1.main {"g1.main":2,"g8":5}
//! receive server.go:41
//! ```
//! Behind what a goroutine did before comes what it does; behind a `go` statement, what the goroutine does that it made;
//! behind what lets somebody go on, what that one does then; and operations on one object come one behind the other, as
//! they did. ShiViz asks of a clock that each event adds one to its own goroutine's entry, and to no other.
//! *Costs*: a clock has as many entries as goroutines that the event comes behind: a log of G goroutines and N events has
//! up to G N of them; behind [`MOST`] entries it ends, with a line that says so.

use crate::execution::{Action, Execution, GoroutineId, ObjectId, What};
use crate::tree::Place;
use crate::words::short;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Entries of clocks that are written.
const MOST: usize = 4_000_000;
/// The expression by which ShiViz reads these logs.
pub const EXPRESSION: &str = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)";

/// How much of each goroutine an event comes behind.
type Clock = BTreeMap<GoroutineId, u32>;

fn join(into: &mut Clock, from: &Clock) {
    for (who, count) in from {
        let known = into.entry(*who).or_default();
        *known = (*known).max(*count);
    }
}

/// The log of all usages, ends and panics of the program's own goroutines.
#[must_use]
pub fn log(execution: &Execution) -> String {
    let mut clocks: Vec<Clock> = vec![Clock::new(); execution.goroutines.len()];
    let mut objects: HashMap<ObjectId, Clock> = HashMap::new();
    // What open usages are about, innermost last.
    let mut open: Vec<Vec<(Action, Vec<Option<ObjectId>>)>> = vec![Vec::new(); clocks.len()];
    let mut text = String::new();
    let mut written = 0;
    for event in &execution.events {
        let Some(id) = event.goroutine else {
            continue;
        };
        let at = id.0 as usize;
        match &event.what {
            What::Create(child) => {
                let clock = clocks[at].clone();
                join(&mut clocks[child.0 as usize], &clock);
                continue;
            }
            What::Ready(other) => {
                let clock = clocks[at].clone();
                join(&mut clocks[other.0 as usize], &clock);
                continue;
            }
            _ => {}
        }
        if execution.goroutines[at].is_system {
            continue;
        }
        let (said, object) = match &event.what {
            What::Request {
                action,
                object,
                cases,
                ..
            } => {
                let about = match action {
                    Action::Select => cases.iter().map(|it| it.channel).collect(),
                    _ => vec![*object],
                };
                open[at].push((*action, about));
                // A select is about the channel that it takes in the end.
                (action.name().to_owned(), *object)
            }
            What::Complete { action, case, .. } => {
                let began = open[at].iter().rposition(|it| it.0 == *action);
                let about = began.map(|it| open[at].split_off(it).swap_remove(0).1);
                let taken = about.and_then(|it| *it.get(case.unwrap_or(0) as usize)?);
                (format!("{} over", action.name()), taken)
            }
            What::End => ("end".to_owned(), None),
            What::Panic => ("panic".to_owned(), None),
            _ => continue,
        };
        let clock = &mut clocks[at];
        if let Some(of) = object.and_then(|it| objects.get(&it)) {
            join(clock, of);
        }
        *clock.entry(id).or_default() += 1;
        if let Some(object) = object {
            objects.insert(object, clock.clone());
        }
        written += clock.len();
        if written > MOST {
            // A string takes whatever is written to it.
            let _ = writeln!(
                text,
                "{} {{{:?}:{}}}",
                host(execution, id),
                host(execution, id),
                clock[&id]
            );
            text.push_str("what comes behind this is left out\n");
            break;
        }
        let entries: Vec<String> = clock
            .iter()
            .map(|(who, count)| format!("{:?}:{count}", host(execution, *who)))
            .collect();
        let place = event.site.and_then(|it| execution.site(it)).map(Place::of);
        let place = place.map_or_else(String::new, |it| format!(" {}", short(&it)));
        let place = place.replace(|c: char| c.is_control(), "?");
        let _ = writeln!(text, "{} {{{}}}", host(execution, id), entries.join(","));
        let _ = writeln!(text, "{said}{place}");
    }
    text
}

/// A goroutine's name without spaces: `g8`, `main`.
fn host(execution: &Execution, id: GoroutineId) -> String {
    match id.0 {
        0 => "main".to_owned(),
        at => {
            let number = execution.goroutines.get(at as usize).map(|it| it.number);
            format!("g{}", number.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{MAIN, Sample};

    fn sample() -> Sample {
        let mut sample = Sample::new();
        let (lock, channel) = (sample.mutex(1), sample.channel(MAIN, 2, 1));
        let worker = sample.go(MAIN, 3);
        sample.does(worker, 11, Action::Lock, lock);
        sample.does(worker, 12, Action::Send, channel);
        sample.does(worker, 13, Action::Unlock, lock);
        sample.ends(worker, 14);
        sample.does(MAIN, 5, Action::Receive, channel);
        sample.exits();
        sample
    }

    #[test]
    fn a_receive_comes_behind_its_send() {
        let log = log(&sample().execution);
        let lines: Vec<&str> = log.lines().collect();
        let at = lines
            .iter()
            .position(|it| *it == "receive over main.go:5")
            .expect("a receive");
        assert_eq!(lines[at - 1], r#"main {"main":4,"g18":4}"#);
        assert_eq!(lines[0], r#"main {"main":1}"#);
        assert_eq!(lines[1], "go main.go:3");
    }

    /// What ShiViz checks when it reads a log.
    #[test]
    fn each_event_adds_one_to_its_own_entry() {
        let log = log(&sample().execution);
        let lines: Vec<&str> = log.lines().collect();
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for pair in lines.chunks(2) {
            let (host, clock) = pair[0].split_once(' ').expect("host and clock");
            let clock: BTreeMap<String, u64> = serde_json::from_str(clock).expect("JSON");
            let own = counts.entry(host).or_default();
            *own += 1;
            assert_eq!(clock[host], *own);
            for (other, count) in &clock {
                let known = counts.get(other.as_str()).copied().unwrap_or(0);
                assert!(*count <= known, "{other} has not come so far");
            }
        }
    }
}
