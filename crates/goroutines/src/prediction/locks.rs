//! Locks: circles of orders, locks by their own holders, locks that are never given back.

use super::order::Order;
use super::{Context, Finding, Step, Suspicion};
use crate::execution::{Action, GoroutineId, ObjectId, ObjectKind, SiteId, What};
use crate::replay::{Hold, Replay};
use std::collections::{BTreeMap, BTreeSet};

/// Longer circles than this are not looked for.
const LONGEST: usize = 4;

/// A goroutine that holds a lock asks for another.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    pub held: ObjectId,
    pub held_at: Option<SiteId>,
    pub held_reading: bool,
    pub wanted: ObjectId,
    pub wanted_reading: bool,
    /// All that it holds, each with whether it only reads.
    pub gates: BTreeMap<ObjectId, bool>,
    pub step: Step,
}

#[derive(Default)]
pub(super) struct Steps {
    edges: Vec<Edge>,
    /// One of each kind is enough.
    known: BTreeSet<EdgeKey>,
    again: Vec<(Hold, Step)>,
    writers: Vec<(ObjectId, Step)>,
    left: Vec<Hold>,
    /// The first of each goroutine, lock and line.
    asked: BTreeMap<(GoroutineId, ObjectId, Option<SiteId>), Asked>,
}

/// A goroutine asks for a lock, whatever it holds.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub object: ObjectId,
    /// What it holds.
    pub gates: BTreeSet<ObjectId>,
    pub step: Step,
}

/// More than so many requests are not kept.
const MOST_ASKED: usize = 1 << 14;

type EdgeKey = (
    GoroutineId,
    ObjectId,
    ObjectId,
    Option<SiteId>,
    Option<SiteId>,
    Vec<ObjectId>,
);

impl Steps {
    /// Takes down what the event shows; `replay` is the state before it.
    pub fn see(&mut self, replay: &Replay<'_>, order: &Order, index: usize) {
        let event = &replay.execution.events[index];
        let Some(goroutine) = event.goroutine else {
            return;
        };
        if event.what == What::End {
            self.left.extend(replay.held_by(goroutine));
            return;
        }
        let What::Request {
            action,
            object: Some(object),
            ..
        } = event.what
        else {
            return;
        };
        if !matches!(action, Action::Lock | Action::RLock) {
            return;
        }
        let reading = action == Action::RLock;
        let held = replay.held_by(goroutine);
        let step = Step {
            event: index,
            goroutine,
            action,
            site: event.site,
            clock: order.clock(goroutine),
        };
        let key = (goroutine, object, event.site);
        if self.asked.len() < MOST_ASKED && !self.asked.contains_key(&key) {
            let gates = held.iter().map(|it| it.object).collect();
            let step = step.clone();
            self.asked.insert(
                key,
                Asked {
                    object,
                    gates,
                    step,
                },
            );
        }
        let kind = replay.execution.objects.get(object.0 as usize);
        if !reading && kind.is_some_and(|it| it.kind == ObjectKind::RwMutex) {
            self.writers.push((object, step.clone()));
        }
        // The lock that a `Cond.Wait` takes again is no new one.
        let waits = replay.open(goroutine);
        if waits.is_some_and(|it| it.action == Action::CondWait) {
            return;
        }
        let gates: BTreeMap<ObjectId, bool> =
            held.iter().map(|it| (it.object, it.reading)).collect();
        for hold in held {
            if hold.object == object {
                self.again.push((*hold, step.clone()));
                continue;
            }
            let locks: Vec<ObjectId> = gates.keys().copied().collect();
            let key = (goroutine, hold.object, object, hold.site, event.site, locks);
            if self.known.insert(key) {
                self.edges.push(Edge {
                    held: hold.object,
                    held_at: hold.site,
                    held_reading: hold.reading,
                    wanted: object,
                    wanted_reading: reading,
                    gates: gates.clone(),
                    step: step.clone(),
                });
            }
        }
    }

    /// Requests of locks, whoever makes them with whatever held.
    pub fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.asked.values()
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Requests of write locks.
    pub fn writers(&self) -> &[(ObjectId, Step)] {
        &self.writers
    }
}

pub(super) fn findings(context: &Context<'_, '_>, found: &mut Vec<Finding>) {
    let steps = &context.record.locks;
    for circle in circles(steps.edges(), steps.writers()) {
        found.push(lock_order(context, &circle));
    }
    for (hold, step) in &steps.again {
        again(context, hold, step, found);
    }
    for hold in &steps.left {
        let held = context.record.replay.holds(hold.object).contains(hold);
        if held {
            let sentence = format!(
                "{} locks {} at {} and ends without giving it back",
                context.words.who(hold.goroutine),
                context.words.object(hold.object),
                context.words.at(hold.site)
            );
            let (sites, who) = ([hold.site], [hold.goroutine]);
            found.push(context.finding(Suspicion::MissedUnlock, sentence, &sites, &who, &[]));
        }
    }
}

/// Circles of edges by different goroutines, each wanting what the next holds. Readers keep readers out where a
/// writer may wait between them.
pub(super) fn circles<'e>(edges: &'e [Edge], writers: &[(ObjectId, Step)]) -> Vec<Vec<&'e Edge>> {
    let mut by_held: BTreeMap<ObjectId, Vec<&Edge>> = BTreeMap::new();
    for edge in edges {
        by_held.entry(edge.held).or_default().push(edge);
    }
    let mut search = Search {
        by_held,
        writers,
        found: Vec::new(),
    };
    for first in edges {
        search.extend(&mut vec![first]);
    }
    search.found
}

struct Search<'e, 'w> {
    by_held: BTreeMap<ObjectId, Vec<&'e Edge>>,
    writers: &'w [(ObjectId, Step)],
    found: Vec<Vec<&'e Edge>>,
}

impl<'e> Search<'e, '_> {
    fn extend(&mut self, path: &mut Vec<&'e Edge>) {
        if self.found.len() >= super::MOST * 4 {
            return;
        }
        let (first, last) = (path[0], path[path.len() - 1]);
        for next in self.by_held.get(&last.wanted).cloned().unwrap_or_default() {
            // Each circle is found once, from its smallest lock.
            if path.len() == LONGEST || next.held <= first.held || !self.fits(path, next) {
                continue;
            }
            path.push(next);
            if next.wanted == first.held {
                if excludes(next, first, self.writers) {
                    self.found.push(path.clone());
                }
            } else {
                self.extend(path);
            }
            path.pop();
        }
    }

    /// Whether `next` can stand in a circle behind `path`.
    fn fits(&self, path: &[&Edge], next: &Edge) -> bool {
        path.last()
            .is_none_or(|last| excludes(last, next, self.writers))
            && path.iter().all(|it| {
                let gate = it.gates.iter().any(|(lock, reading)| {
                    next.gates
                        .get(lock)
                        .is_some_and(|other| !(*reading && *other))
                });
                it.held != next.held && !gate && it.step.beside(&next.step)
            })
    }
}

/// Whether what `edge` wants cannot be had while `next` holds it.
pub(super) fn excludes(edge: &Edge, next: &Edge, writers: &[(ObjectId, Step)]) -> bool {
    let read = edge.wanted_reading && next.held_reading;
    !read
        || writers.iter().any(|(lock, writer)| {
            *lock == edge.wanted && writer.beside(&edge.step) && writer.beside(&next.step)
        })
}

fn lock_order(context: &Context<'_, '_>, circle: &[&Edge]) -> Finding {
    let told: Vec<String> = circle
        .iter()
        .map(|it| {
            format!(
                "{} holds {} since {} and wants {} at {}",
                context.words.who(it.step.goroutine),
                context.words.object(it.held),
                context.words.at(it.held_at),
                context.words.object(it.wanted),
                context.words.at(it.step.site)
            )
        })
        .collect();
    let wanted = circle.iter().map(|it| it.step.site);
    let sites: Vec<Option<SiteId>> = wanted.chain(circle.iter().map(|it| it.held_at)).collect();
    let who: Vec<GoroutineId> = circle.iter().map(|it| it.step.goroutine).collect();
    let steer: Vec<_> = circle
        .iter()
        .map(|it| (it.step.site, it.step.action))
        .collect();
    let sentence = format!("locks are taken in a circle of orders: {}", told.join("; "));
    context.finding(Suspicion::LockOrder, sentence, &sites, &who, &steer)
}

/// A lock that its own goroutine holds already.
fn again(context: &Context<'_, '_>, hold: &Hold, step: &Step, found: &mut Vec<Finding>) {
    let words = &context.words;
    let (who, lock) = (words.who(hold.goroutine), words.object(hold.object));
    let sites = [step.site, hold.site];
    if !hold.reading || step.action == Action::Lock {
        let sentence = format!(
            "{who} wants {lock} at {}, which it holds since {}",
            words.at(step.site),
            words.at(hold.site)
        );
        found.push(context.finding(
            Suspicion::DoubleLock,
            sentence,
            &sites,
            &[hold.goroutine],
            &[],
        ));
        return;
    }
    let writer = context
        .record
        .locks
        .writers
        .iter()
        .find(|(lock, writer)| *lock == hold.object && writer.beside(step));
    let Some((_, writer)) = writer else {
        return;
    };
    let sentence = format!(
        "{who} read-locks {lock} again at {}, having it since {}: {}, which writes at {}, may come in between",
        words.at(step.site),
        words.at(hold.site),
        words.who(writer.goroutine),
        words.at(writer.site)
    );
    let sites = [step.site, hold.site, writer.site];
    let who = [hold.goroutine, writer.goroutine];
    let steer = [(step.site, step.action)];
    found.push(context.finding(Suspicion::ReadTwice, sentence, &sites, &who, &steer));
}
