//! Tells a hang from what is slow but moving, by looks at a run one after another.
//!
//! One look cannot: the ranks were not read at one moment, and whoever computes may be about to come.
//! So what a look says has to hold at the next one:
//!
//! * A *deadlock* is definite: the same tasks are stuck in two looks, and none of them made an event
//!   between these. It takes no patience.
//! * Whoever holds the others up is *slow* if it stays where it is through the patience, and they wait for it as long: at one
//!   place, in one iteration of its loops but for the innermost. It is a *livelock* if it went on making
//!   events all that time: round and round in that innermost loop.
//!   Of who makes events, so much is known only where it was looked at [`OFTEN`]: between two looks far apart it may have been
//!   elsewhere.
//! * It is one, too, if it goes through outer loops as well, and for [`LONG`] times the patience nobody else makes an event:
//!   they wait in MPI, and whoever they wait for computes whenever it is looked at.
//! * Where nobody is seen to wait and nobody makes an event through the patience, the run is *silent*.
//!
//! *Guarantees*: nothing but a deadlock is said of a task that came to a new place, or a new iteration
//! of an outer loop, within the patience; or within [`LONG`] times that, if others wait for it. *Costs*: O(tasks) a look. *Not for*: an innermost loop that is
//! meant to be long: it looks like a livelock to a watcher that has less patience than it takes.

use crate::progress::Progress;
use crate::task::{Activity, Group, Kind, Place, Task};
use lockstep_trace::EndKind;
use lockstep_trace::threads::{self, Does};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the looks so far say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Tasks move, or it is too early to say.
    No,
    /// It hangs, in this way.
    Hangs(Kind),
    /// Nobody is seen to wait, and nobody has done anything for that long.
    Silent(Duration),
}

/// Watches a run.
#[derive(Debug)]
pub struct Watch {
    patience: Duration,
    last: Option<Last>,
    /// By task.
    still: BTreeMap<u32, Still>,
    /// Since when no task has made an event.
    silent: Duration,
    waiting: Calm,
}

/// Others wait for tasks that compute.
#[derive(Debug, Default)]
struct Calm {
    /// Events of those that wait; nobody, where others do not compute.
    events: BTreeMap<u32, u64>,
    since: Duration,
    looks: u32,
}

/// So many times the patience others wait for a task that comes on before that is called a hang.
const LONG: u32 = 10;

/// What the last look saw: events by task.
#[derive(Debug)]
struct Last {
    events: BTreeMap<u32, u64>,
    stuck: BTreeMap<u32, u64>,
}

/// A task that stands still.
#[derive(Debug)]
struct Still {
    place: String,
    since: Duration,
    /// Since when it holds others up. One that waited with them all the while is not who held them up, when the one that
    /// they waited for has come and others are the first to go on.
    holds: Option<Duration>,
    events: u64,
    /// The look at which it was last seen to have made events, while still.
    moved: Option<Duration>,
    /// Looks that saw it there.
    looks: u32,
}

/// So many looks at one place, and a task that makes events stands still.
const OFTEN: u32 = 4;

impl Watch {
    /// Calls it a hang after `patience` without progress.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            last: None,
            still: BTreeMap::new(),
            silent: Duration::ZERO,
            waiting: Calm::default(),
        }
    }

    /// Takes a look in: what was found `now`, counted from any fixed moment.
    pub fn look(&mut self, found: &Progress, now: Duration) -> Standing {
        let events: BTreeMap<u32, u64> = found
            .tasks
            .iter()
            .map(|(task, it)| (*task, it.events))
            .collect();
        let stuck: BTreeMap<u32, u64> = events
            .iter()
            .filter(|(task, _)| found.waiting.stuck.contains(task))
            .filter(|(task, _)| found.tasks.get(task).is_some_and(|it| it.polls.is_none()))
            .map(|(task, events)| (*task, *events))
            .collect();
        let is_news = self.last.as_ref().is_none_or(|last| last.events != events);
        if is_news {
            self.silent = now;
        }
        self.stand(found, now);
        self.wait(found, now);
        let last = self.last.replace(Last { events, stuck });
        let stuck = self.last.as_ref().map(|it| &it.stuck);
        let is_definite = found.hang && found.kind == Kind::Deadlock;
        if is_definite && last.as_ref().map(|it| &it.stuck) == stuck {
            return Standing::Hangs(Kind::Deadlock);
        }
        match found.hang {
            // Seen once, a deadlock may be a message that was not read with its sender.
            true if is_definite => Standing::No,
            true => self.held_up(found, now),
            false => self.silence(found, now),
        }
    }

    /// Since when these tasks all stand where they do; of none in particular, since when nobody makes an event.
    #[must_use]
    pub fn since(&self, tasks: &[u32]) -> Option<Duration> {
        let since = |task: &u32| {
            let still = self.still.get(task)?;
            Some(still.holds.unwrap_or(still.since).max(still.since))
        };
        match tasks {
            [] => Some(self.silent),
            _ => tasks.iter().filter_map(since).max(),
        }
    }

    /// Whether one of these tasks has come to another place after a moment; of none in particular, whether anybody has
    /// made an event.
    #[must_use]
    pub fn went_on(&self, tasks: &[u32], moment: Duration) -> bool {
        let has_moved = |task: &u32| self.still.get(task).is_none_or(|it| it.since > moment);
        match tasks {
            [] => self.silent > moment,
            _ => tasks.iter().any(has_moved),
        }
    }

    /// Takes in where every task stands.
    fn stand(&mut self, found: &Progress, now: Duration) {
        let mut still = BTreeMap::new();
        for (number, group) in found.groups.iter().enumerate() {
            let place = outer_place(group);
            let holds = (found.hang && found.least.contains(&number)).then_some(now);
            for task in &group.tasks {
                // Who asks anew, and not again, came on.
                let polls = found.tasks.get(task).and_then(|it| it.polls.as_ref());
                let place = match polls {
                    Some(polls) => format!("{place} {:?}", polls.since),
                    None => place.clone(),
                };
                let events = found.tasks.get(task).map_or(0, |it| it.events);
                let next = match self.still.remove(task) {
                    Some(before) if before.place == place => Still {
                        holds: holds.and(before.holds).or(holds),
                        moved: match before.events == events {
                            true => before.moved,
                            false => Some(now),
                        },
                        events,
                        looks: before.looks.saturating_add(1),
                        ..before
                    },
                    _ => Still {
                        place,
                        since: now,
                        holds,
                        events,
                        moved: None,
                        looks: 1,
                    },
                };
                still.insert(*task, next);
            }
        }
        self.still = still;
    }

    /// Takes in who waits while those that hold them up compute.
    fn wait(&mut self, found: &Progress, now: Duration) {
        let holding = found.least.iter().filter_map(|it| found.groups.get(*it));
        let holding: Vec<&Group> = holding.collect();
        let polls = |task: &u32| found.tasks.get(task).is_none_or(|it| it.polls.is_some());
        let computes =
            |it: &&Group| it.activity == Activity::Computation && !it.tasks.iter().any(polls);
        let mut events = BTreeMap::new();
        if !holding.is_empty() && holding.iter().all(computes) {
            let is_other = |it: &&Group| it.activity == Activity::Communication;
            let others = found.groups.iter().filter(is_other);
            let others = others.flat_map(|it| &it.tasks);
            events.extend(others.filter_map(|it| Some((*it, found.tasks.get(it)?.events))));
        }
        match events == self.waiting.events {
            true => self.waiting.looks = self.waiting.looks.saturating_add(1),
            false => {
                self.waiting = Calm {
                    events,
                    since: now,
                    looks: 1,
                }
            }
        }
    }

    /// Whether others have waited for too long, whatever those do that they wait for.
    fn is_long(&self, now: Duration) -> bool {
        let Calm {
            events,
            since,
            looks,
        } = &self.waiting;
        !events.is_empty()
            && *looks >= OFTEN
            && now.saturating_sub(*since) >= self.patience.saturating_mul(LONG)
    }

    /// Whether all who hold the others up have stood still for too long.
    fn held_up(&self, found: &Progress, now: Duration) -> Standing {
        let holding = found
            .least
            .iter()
            .filter_map(|group| found.groups.get(*group))
            .flat_map(|group| &group.tasks)
            .filter_map(|task| self.still.get(task));
        let mut kind = found.kind;
        let is_long = self.is_long(now);
        for still in holding {
            let since = still.holds.unwrap_or(now).max(still.since);
            if now.saturating_sub(since) < self.patience {
                if !is_long {
                    return Standing::No;
                }
                kind = Kind::Livelock;
                continue;
            }
            // What it did on its way into the place is not going round.
            let is_going = |moved: Duration| now.saturating_sub(moved) <= self.patience / 2;
            if still.moved.is_some_and(is_going) {
                if still.looks < OFTEN {
                    return Standing::No;
                }
                kind = Kind::Livelock;
            }
        }
        Standing::Hangs(kind)
    }

    /// Whether nothing has happened for too long, though a task is there that should do something.
    fn silence(&self, found: &Progress, now: Duration) -> Standing {
        let quiet = now.saturating_sub(self.silent);
        let is_there = |task: &Task| task.end.kind == EndKind::Running && !waits_for_others(task);
        match quiet >= self.patience && found.tasks.values().any(is_there) {
            true => Standing::Silent(quiet),
            false => Standing::No,
        }
    }
}

/// Whether a task without MPI waits for its children: it is there for nothing else (before there are any,
/// `mpirun` on a busy machine is silent for seconds), or has called what does so.
fn waits_for_others(task: &Task) -> bool {
    // Launchers have a library of their own that waits for all at once.
    let waits = |name: &str| {
        let does = threads::meaning(name).does;
        matches!(does, Does::Child | Does::Poll) || name == "event_base_loop"
    };
    task.is_launcher || task.stack.iter().any(|it| waits(it.function.as_str()))
}

/// Where a group stands, but for the iteration of its innermost loop and what it calls in that: of who computes, which function of
/// a library (a loop over `sin` is in it at one look, and out of it at the next).
fn outer_place(group: &Group) -> String {
    let Some(((innermost, _), outer)) = group.turns.split_last() else {
        let computes = group.activity == Activity::Computation;
        let stays = |it: &Place| !(computes && it.imported);
        let depth = group.stack.iter().rposition(stays).map_or(0, |at| at + 1);
        let stack = group.stack[..depth].iter();
        let stack: Vec<&str> = stack.map(|it| it.function.as_str()).collect();
        return stack.join(" ");
    };
    format!("{innermost} {outer:?}")
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
