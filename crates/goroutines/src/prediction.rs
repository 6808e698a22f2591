//! What could have gone wrong in another schedule, seen in one execution, healthy or not.
//!
//! | finding | in the execution |
//! |---|---|
//! | lock order | goroutines locked the same locks in a circle of orders, with no lock over all of it, and nothing that orders them |
//! | double lock | a goroutine asked for a lock that it held |
//! | read twice | it read-locked again what it read-locked, and somebody else writes to it |
//! | missed unlock | it ended with a lock that nobody ever gave back |
//! | lock and wait | it waits for somebody with a lock held that this one needs first |
//! | no receiver | all receives from a channel stand in `select`s that may go another way, and a plain send relies on one |
//! | no sender | a plain receive relies on sends that have a `default` |
//! | close and send | nothing orders a send before the close |
//! | late add | nothing orders an `Add` before the `Wait` |
//! | lock order, double lock, missed unlock | it took a lock, and the source has a path from there, not gone in this execution, that does it ([`crate::paths`]) |
//!
//! What is ordered is decided by `go` statements, channels, wait groups, conditions and `Once`, as they went in this
//! execution, and not by locks (module `order`). A finding says what would have to be delayed to make it happen:
//! until that has happened it is a suspicion. *Guarantees*: none of completeness. *Costs*: O(events x goroutines);
//! circles of at most four locks; above [`MOST`] findings of a kind the rest is left out.

mod channels;
mod locks;
mod order;
mod source;
mod waits;

use crate::execution::{Action, Execution, GoroutineId, SiteId};
use crate::paths::Paths;
use crate::replay::Replay;
use crate::tree::Place;
use crate::words::Words;
use order::{Clock, Order};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More findings of one kind than this are left out.
pub const MOST: usize = 50;

/// What could go wrong in another schedule.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// Goroutines take the same locks in different orders.
    LockOrder,
    /// A goroutine takes a lock that it already holds.
    DoubleLock,
    /// A goroutine read-locks again what it already read-locked, and a writer may come in between.
    ReadTwice,
    /// A goroutine ends with a lock that is never unlocked.
    MissedUnlock,
    /// A goroutine waits with a lock held, and the goroutine that it waits for needs that lock.
    LockAndWait,
    /// A send may find no receiver.
    NoReceiver,
    /// A receive may find no sender.
    NoSender,
    /// A send may come after the channel is closed.
    CloseAndSend,
    /// An `Add` may come after the `Wait`.
    LateAdd,
}

impl Suspicion {
    /// `lock-order`, `close-and-send`, ...
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LockOrder => "lock-order",
            Self::DoubleLock => "double-lock",
            Self::ReadTwice => "read-twice",
            Self::MissedUnlock => "missed-unlock",
            Self::LockAndWait => "lock-and-wait",
            Self::NoReceiver => "no-receiver",
            Self::NoSender => "no-sender",
            Self::CloseAndSend => "close-and-send",
            Self::LateAdd => "late-add",
        }
    }
}

/// A place to delay at, before what is done there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Delay {
    /// Where.
    pub place: Place,
    /// What is done there.
    pub action: Action,
}

/// A suspicion, with what it takes to confirm it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What could go wrong.
    pub suspicion: Suspicion,
    /// In one sentence.
    pub sentence: String,
    /// The lines that take part; the first is the one to look at first.
    pub places: Vec<Place>,
    /// The goroutines that take part, by the runtime's number.
    pub goroutines: Vec<u64>,
    /// What to delay, each on its own goroutine, to make it happen.
    pub steer: Vec<Delay>,
}

/// All that is suspicious in an execution by itself.
pub fn predict(execution: &Execution) -> Vec<Finding> {
    predict_with(execution, &Paths::default())
}

/// All that is suspicious in an execution of a program whose source has these paths.
pub fn predict_with(execution: &Execution, paths: &Paths) -> Vec<Finding> {
    let record = Record::of(execution);
    let words = Words {
        replay: &record.replay,
    };
    let context = Context {
        execution,
        record: &record,
        words,
    };
    let mut findings = Vec::new();
    locks::findings(&context, &mut findings);
    waits::findings(&context, &mut findings);
    channels::findings(&context, &mut findings);
    source::findings(&context, paths, &mut findings);
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let same = |it: &&Finding| it.suspicion == finding.suspicion;
        let known = kept
            .iter()
            .filter(same)
            .any(|it| it.places == finding.places);
        // What has no line of the program's is a library's own affair.
        let is_own = !finding.places.is_empty();
        if is_own && !known && kept.iter().filter(same).count() < MOST {
            kept.push(finding);
        }
    }
    kept
}

/// A usage with its place in the order of things.
#[derive(Debug, Clone)]
struct Step {
    event: usize,
    goroutine: GoroutineId,
    action: Action,
    site: Option<SiteId>,
    clock: Clock,
}

impl Step {
    /// Whether it surely came before `other`.
    fn before(&self, other: &Self) -> bool {
        self.goroutine == other.goroutine && self.event < other.event
            || other.clock.has(self.goroutine, self.event)
    }

    /// Whether nothing orders the two.
    fn beside(&self, other: &Self) -> bool {
        self.goroutine != other.goroutine && !self.before(other) && !other.before(self)
    }
}

/// The steps that the checks look at, taken down in one pass.
struct Record<'a> {
    replay: Replay<'a>,
    locks: locks::Steps,
    /// By object: steps at channels, wait groups.
    steps: Vec<Vec<channels::Touch>>,
    /// Waits with locks held.
    waits: Vec<waits::Kept>,
    guards: waits::Guards,
}

impl<'a> Record<'a> {
    fn of(execution: &'a Execution) -> Self {
        let mut order = Order::new(execution);
        let mut record = Self {
            replay: Replay::new(execution),
            locks: locks::Steps::default(),
            steps: vec![Vec::new(); execution.objects.len()],
            waits: Vec::new(),
            guards: waits::Guards::default(),
        };
        for index in 0..execution.events.len() {
            order.step(&record.replay, index);
            record.locks.see(&record.replay, &order, index);
            waits::see(&mut record.waits, &record.replay, &order, index);
            record.guards.see(&record.replay, index);
            channels::see(&mut record.steps, &record.replay, &order, index);
            record.replay.step(index);
        }
        record
    }
}

struct Context<'r, 'a> {
    execution: &'a Execution,
    record: &'r Record<'a>,
    words: Words<'r, 'a>,
}

impl Context<'_, '_> {
    fn place(&self, site: Option<SiteId>) -> Option<Place> {
        site.and_then(|it| self.execution.site(it)).map(Place::of)
    }

    fn finding(
        &self,
        suspicion: Suspicion,
        sentence: String,
        sites: &[Option<SiteId>],
        goroutines: &[GoroutineId],
        steer: &[(Option<SiteId>, Action)],
    ) -> Finding {
        let places = sites.iter().filter_map(|it| self.place(*it)).collect();
        let steer = steer.iter().filter_map(|(site, action)| {
            Some(Delay {
                place: self.place(*site)?,
                action: *action,
            })
        });
        self.finding_at(suspicion, sentence, places, goroutines, steer.collect())
    }

    fn finding_at(
        &self,
        suspicion: Suspicion,
        sentence: String,
        all: Vec<Place>,
        goroutines: &[GoroutineId],
        steer: Vec<Delay>,
    ) -> Finding {
        let mut places: Vec<Place> = Vec::new();
        for place in all {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut numbers: Vec<u64> = Vec::new();
        for it in goroutines {
            let number = self.execution.goroutines[it.0 as usize].number;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        Finding {
            suspicion,
            sentence,
            places,
            goroutines: numbers,
            steer,
        }
    }
}

#[cfg(test)]
mod tests;
