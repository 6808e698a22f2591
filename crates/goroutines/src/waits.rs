//! Who waits for whom at the end of an execution, and whose wait can never end.
//!
//! A wait has *ways* out, of which one is enough (the cases of a `select`). A way needs that *all* holders of a
//! lock give it back, or that *any* of those does something who may know the object. Whoever runs, sleeps or
//! waits for the outside is free; whoever can be let go on by the free is free; the rest is stuck for ever: the
//! least fixpoint of freedom, so that every doubt counts for freedom.
//!
//! ```text
//!    goroutine 7 ── Lock mu ──► held by 9 ── send c ──► any of {7}        7 and 9: stuck
//!    goroutine 8 ── select ─┬─► receive c: any of {9}
//!                           └─► receive timer: outside                    8: free
//! ```
//!
//! *Partners* are apart from that: who did the matching thing before, which is what a sentence names.
//! *Costs*: O(waits x goroutines).

use crate::execution::{
    Action, End, Execution, Goroutine, GoroutineId, ObjectId, ObjectKind, SiteId, State, WaitReason,
};
use crate::known::Known;
use crate::replay::{Hold, Open, Replay};
use lockstep_waitfor::{self as waitfor, Graph};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a way out of a wait needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Nothing can do it: a nil channel, a `select` without cases.
    Nothing,
    /// The clock, the network, a signal.
    Outside,
    /// All of these locks given back.
    Release(Vec<Hold>),
    /// All of these let in first: writers that wait for the same lock.
    Behind(Vec<GoroutineId>),
    /// Something that any of these may do: live goroutines that may know the object.
    Any(Vec<GoroutineId>),
    /// All of these tests at their ends: those that it runs.
    Subtests(Vec<GoroutineId>),
    /// The function of this test to return: in `t.Parallel`, its parent's.
    Parent(GoroutineId),
}

/// One way out of a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Way {
    /// What the goroutine wants to do.
    pub action: Action,
    /// With what; `None` for a nil channel and where it was not seen.
    pub object: Option<ObjectId>,
    /// Of a `select`: which case.
    pub case: Option<u32>,
    /// What it needs for that.
    pub need: Need,
    /// Live goroutines that did before what is needed now, or are about to; not complete.
    pub partners: Vec<GoroutineId>,
}

/// A goroutine that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Which.
    pub goroutine: GoroutineId,
    /// For what, in the runtime's word.
    pub reason: WaitReason,
    /// Where.
    pub site: Option<SiteId>,
    /// The event with which the usage began that it waits in, if that was seen.
    pub since: Option<usize>,
    /// What would let it go on; any of these does.
    pub ways: Vec<Way>,
    /// Whether none of them can ever come.
    pub stuck: bool,
}

impl Way {
    /// Those whose doing it waits for, as far as they can be named.
    pub fn on(&self) -> BTreeSet<GoroutineId> {
        match &self.need {
            Need::Release(holds) => holds.iter().map(|it| it.goroutine).collect(),
            Need::Behind(others) | Need::Subtests(others) => others.iter().copied().collect(),
            Need::Parent(test) => BTreeSet::from([*test]),
            _ => self.partners.iter().copied().collect(),
        }
    }
}

impl Wait {
    /// Those whose doing it waits for, on any of its ways.
    pub fn on(&self) -> BTreeSet<GoroutineId> {
        self.ways.iter().flat_map(Way::on).collect()
    }
}

/// All waits at the end of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// In order of goroutines.
    pub waits: Vec<Wait>,
}

impl Waiting {
    /// The wait of `goroutine`.
    pub fn of(&self, goroutine: GoroutineId) -> Option<&Wait> {
        self.waits.iter().find(|it| it.goroutine == goroutine)
    }

    /// Whose wait never ends.
    pub fn stuck(&self) -> impl Iterator<Item = &Wait> + '_ {
        self.waits.iter().filter(|it| it.stuck)
    }

    /// Whether `goroutine` waits for ever.
    pub fn is_stuck(&self, goroutine: GoroutineId) -> bool {
        self.of(goroutine).is_some_and(|it| it.stuck)
    }
}

/// Whether nothing could move any more, by our own watch or the runtime's.
pub(crate) fn is_quiescent(execution: &Execution) -> bool {
    execution.end == End::Quiescent
        || execution
            .output
            .fatal
            .as_deref()
            .is_some_and(|it| it.contains("all goroutines are asleep"))
}

/// The program's own goroutines that had not ended.
pub(crate) fn live(execution: &Execution) -> BTreeSet<GoroutineId> {
    execution
        .with_ids()
        .filter(|(id, it)| {
            let runs_main = id.0 == 0 || execution.test == Some(*id);
            let only_waits_for_the_test = id.0 == 0 && execution.main() != *id;
            let is_over = it.state == State::Ended || runs_main && execution.main_ended;
            !(it.is_system || is_over || only_waits_for_the_test)
        })
        .map(|(id, _)| id)
        .collect()
}

/// Whether a wait of this kind can go on for ever.
pub(crate) fn is_permanent(reason: WaitReason) -> bool {
    !matches!(
        reason,
        WaitReason::Sleep | WaitReason::Io | WaitReason::Call | WaitReason::Runtime
    )
}

/// Whether a usage can be what the runtime says a goroutine waits for.
pub(crate) fn is_wait_of(action: Action, reason: WaitReason) -> bool {
    match reason {
        WaitReason::Send => action == Action::Send,
        WaitReason::Receive => action == Action::Receive,
        WaitReason::Select => action == Action::Select,
        WaitReason::Forever => {
            matches!(action, Action::Send | Action::Receive | Action::Select)
        }
        // Readers and writers wait in the same queue of the runtime under several names.
        WaitReason::Mutex | WaitReason::RwMutexRead | WaitReason::RwMutexWrite => {
            // `Once` has a lock within it, while its function runs.
            matches!(action, Action::Lock | Action::RLock | Action::Once)
        }
        WaitReason::WaitGroup => action == Action::Wait,
        WaitReason::Cond => action == Action::CondWait,
        _ => false,
    }
}

/// Finds all waits of a whole replay, and which of them never end.
pub(crate) fn waiting(replay: &Replay<'_>) -> Waiting {
    search(replay, false)
}

/// The same where nothing has moved for long, and nothing outside of the program can let anybody go on: who waits for
/// the network waits for the program itself, and for ever unless a clock ends it.
pub(crate) fn waiting_in_silence(replay: &Replay<'_>) -> Waiting {
    search(replay, true)
}

fn search(replay: &Replay<'_>, silent: bool) -> Waiting {
    let execution = replay.execution;
    let search = Search {
        replay,
        known: Known::new(replay),
        live: live(execution),
        silent,
    };
    let is_permanent = |reason: WaitReason| {
        // A deadline of a connection is a timer.
        is_permanent(reason) || silent && reason == WaitReason::Io && !execution.clock
    };
    let mut waits: Vec<Wait> = search
        .live
        .iter()
        .filter_map(|id| match search.state(*id) {
            State::Waiting(reason) if is_permanent(reason) => Some(search.wait(*id, reason)),
            _ => None,
        })
        .collect();
    let candidates: BTreeSet<GoroutineId> = waits.iter().map(|it| it.goroutine).collect();
    if candidates.len() == search.live.len() && is_quiescent(execution) {
        for wait in &mut waits {
            wait.stuck = true;
        }
        return Waiting { waits };
    }
    let graph = search.graph(&waits);
    let released = graph.release();
    for wait in &mut waits {
        wait.stuck = !released.goes_on(wait.goroutine.0 as usize);
    }
    for proven in execution.proven_leaks.iter().flatten() {
        if let Some(wait) = waits.iter_mut().find(|it| it.goroutine == *proven) {
            wait.stuck = true;
        }
    }
    Waiting { waits }
}

struct Search<'r, 'a> {
    replay: &'r Replay<'a>,
    known: Known<'r, 'a>,
    live: BTreeSet<GoroutineId>,
    /// Whether nothing moved for long, and nothing can from outside.
    silent: bool,
}

impl Search<'_, '_> {
    fn state(&self, id: GoroutineId) -> State {
        let goroutine = self.replay.execution.goroutines.get(id.0 as usize);
        goroutine.map_or(State::Ended, |it| it.state)
    }

    fn is_test(&self, id: GoroutineId) -> bool {
        let goroutine = self.replay.execution.goroutines.get(id.0 as usize);
        goroutine.is_some_and(|it| it.entry == "testing.tRunner")
    }

    fn is_child(&self, id: GoroutineId, of: GoroutineId) -> bool {
        let goroutine = self.replay.execution.goroutines.get(id.0 as usize);
        goroutine.is_some_and(|it| it.parent == Some(of))
    }

    /// Live goroutines but `of` that may know `object`.
    fn able(&self, of: GoroutineId, object: ObjectId) -> Vec<GoroutineId> {
        let mut known = self.known.by(object);
        known.remove(&of);
        known.intersection(&self.live).copied().collect()
    }

    fn wait(&self, id: GoroutineId, reason: WaitReason) -> Wait {
        let execution = self.replay.execution;
        let open = self.usage(id, reason);
        let stack = execution
            .goroutines
            .get(id.0 as usize)
            .and_then(Goroutine::stands_at);
        // No line of package testing is the program's.
        let in_testing = |it: &SiteId| {
            let site = execution.site(*it);
            site.is_some_and(|it| it.function.starts_with("testing."))
        };
        let site = open
            .and_then(|it| it.site)
            .or(stack)
            .filter(|it| !in_testing(it));
        let mut ways = Vec::new();
        if reason == WaitReason::Forever {
            ways.push(Way {
                action: open.map_or(Action::Select, |it| it.action),
                object: None,
                case: None,
                need: Need::Nothing,
                partners: Vec::new(),
            });
        } else if let Some(open) = open {
            if open.action == Action::Select {
                for (case, it) in (0..).zip(open.cases) {
                    ways.push(self.way(id, it.action, it.channel, Some(case), open));
                }
            } else {
                ways.push(self.way(id, open.action, open.object, None, open));
            }
        } else if reason == WaitReason::Receive && self.is_test(id) {
            // `t.Run` and the end of a test wait in package testing, whose usages are not recorded.
            ways.extend(self.of_testing(id).map(|need| Way {
                action: Action::Receive,
                object: None,
                case: None,
                need,
                partners: Vec::new(),
            }));
        }
        let since = open.map(|it| it.event);
        Wait {
            goroutine: id,
            reason,
            site,
            since,
            ways,
            stuck: false,
        }
    }

    /// What a test waits for in package testing.
    fn of_testing(&self, id: GoroutineId) -> Option<Need> {
        let execution = self.replay.execution;
        let goroutine = execution.goroutines.get(id.0 as usize)?;
        let is_in = |name: &str| {
            let mut stack = goroutine.stack.iter().filter_map(|it| execution.site(*it));
            stack.any(|it| it.function.starts_with("testing.") && it.function.ends_with(name))
        };
        if is_in(").waitParallel") {
            return None;
        }
        if is_in("(*T).Parallel") {
            let parent = goroutine.parent.filter(|it| self.is_test(*it));
            return parent.map(Need::Parent);
        }
        let all = self.live.iter().copied();
        let subtests: Vec<GoroutineId> = all
            .filter(|it| self.is_test(*it) && self.is_child(*it, id))
            .collect();
        (!subtests.is_empty()).then_some(Need::Subtests(subtests))
    }

    /// The innermost open usage that can be what the runtime says it waits for.
    fn usage(&self, id: GoroutineId, reason: WaitReason) -> Option<&Open<'_>> {
        let open = self.replay.opened(id);
        open.iter().rev().find(|it| is_wait_of(it.action, reason))
    }

    fn way(
        &self,
        id: GoroutineId,
        action: Action,
        object: Option<ObjectId>,
        case: Option<u32>,
        open: &Open<'_>,
    ) -> Way {
        let (need, partners) = match object {
            None => (Need::Nothing, Vec::new()),
            Some(object) => match action {
                Action::Lock | Action::RLock => (self.lock(id, action, object), Vec::new()),
                Action::Once => (self.once(object), Vec::new()),
                _ if self.is_outside(action, object) => (Need::Outside, Vec::new()),
                _ => (
                    Need::Any(self.able(id, object)),
                    self.partners(id, action, object, open),
                ),
            },
        };
        Way {
            action,
            object,
            case,
            need,
            partners,
        }
    }

    fn lock(&self, id: GoroutineId, action: Action, object: ObjectId) -> Need {
        let mut holds = self.replay.holds(object).to_vec();
        if action == Action::RLock {
            holds.retain(|it| !it.reading);
        }
        if !holds.is_empty() {
            return Need::Release(holds);
        }
        let mut writers = Vec::new();
        for it in self.live.iter().filter(|it| **it != id) {
            let waits = matches!(self.state(*it), State::Waiting(reason) if is_permanent(reason));
            let open = self.replay.open(*it);
            if waits
                && open.is_some_and(|it| it.action == Action::Lock && it.object == Some(object))
            {
                writers.push(*it);
            }
        }
        if action == Action::RLock && !writers.is_empty() {
            return Need::Behind(writers);
        }
        // Nobody holds it: it is about to be let in.
        Need::Outside
    }

    /// Who runs the function of a `Once` keeps all others that come to it waiting, and itself where it comes again.
    fn once(&self, once: ObjectId) -> Need {
        let runs = self.live.iter().find_map(|it| {
            let opened = self.replay.opened(*it);
            let at = opened
                .iter()
                .position(|it| it.action == Action::Once && it.object == Some(once))?;
            // In the innermost usage of all, and waiting, it has not come to run it.
            let waits = matches!(
                self.state(*it),
                State::Waiting(WaitReason::Mutex) if at + 1 == opened.len()
            );
            (!waits).then_some((*it, &opened[at]))
        });
        match runs {
            Some((goroutine, open)) => Need::Release(vec![Hold {
                object: once,
                goroutine,
                site: open.site,
                event: open.event,
                reading: false,
            }]),
            None => Need::Outside,
        }
    }

    /// Whether the clock, a signal or a deadline may end it.
    fn is_outside(&self, action: Action, object: ObjectId) -> bool {
        let execution = self.replay.execution;
        if action != Action::Receive {
            return false;
        }
        let Some(it) = execution.objects.get(object.0 as usize) else {
            return true;
        };
        let ObjectKind::Channel { capacity } = it.kind else {
            // Whether timers run is a look at one moment, in which one may just have fired; a program that was found
            // quiet was looked at several times.
            let may_run = execution.clock || execution.end == End::TimedOut && !self.silent;
            return it.kind == ObjectKind::Timer && may_run;
        };
        let fed = self
            .replay
            .uses(object)
            .keys()
            .any(|(_, action)| matches!(action, Action::Send | Action::Close));
        let signals = || {
            execution
                .goroutines
                .iter()
                .any(|it| it.entry.starts_with("os/signal.loop"))
        };
        // A context makes its channel itself, on behalf of whoever asks for it first.
        let by_context = || {
            let site = match self.replay.made(object) {
                Some((_, event)) => execution.events[event].site,
                None => it.first,
            };
            let site = site.and_then(|it| execution.site(it));
            site.is_none_or(|it| it.function.starts_with("context."))
        };
        !fed && (capacity > 0 && !self.silent && signals() || execution.timers > 0 && by_context())
    }

    /// Live goroutines that did before what `action` at `object` now needs, or, if none did, that the waiting
    /// one made for it.
    fn partners(
        &self,
        id: GoroutineId,
        action: Action,
        object: ObjectId,
        open: &Open<'_>,
    ) -> Vec<GoroutineId> {
        let matching: &[Action] = match action {
            Action::Send => &[Action::Receive],
            Action::Receive => &[Action::Send, Action::Close],
            Action::CondWait => &[Action::Signal, Action::Broadcast],
            _ => &[],
        };
        let uses = self.replay.uses(object);
        let mut found: BTreeSet<GoroutineId> = uses
            .keys()
            .filter(|(who, did)| *who != id && matching.contains(did) && self.live.contains(who))
            .map(|(who, _)| *who)
            .collect();
        if found.is_empty() {
            let since = match self.replay.made(object) {
                Some((_, made)) => made,
                None => uses.values().map(|it| it.first).min().unwrap_or(0),
            };
            let execution = self.replay.execution;
            let done = |who: &GoroutineId| uses.contains_key(&(*who, Action::Done));
            // Who wants the same does not give it.
            let wants_too = |who: &GoroutineId| {
                let open = self.replay.open(*who);
                open.is_some_and(|it| it.action == action && it.object == Some(object))
            };
            // Who waits for what nobody will bring is not whom others hang on.
            let in_vain = |who: &GoroutineId| {
                self.silent && self.state(*who) == State::Waiting(WaitReason::Io)
            };
            found = self
                .able(id, object)
                .into_iter()
                .filter(|who| {
                    let made = self.replay.created(*who);
                    // What a timer runs was made by nobody, and may be of anybody who came to be able to do it.
                    let parent = execution.goroutines[who.0 as usize].parent;
                    made.is_some_and(|it| since <= it && it < open.event)
                        && parent.is_none_or(|it| it == id)
                        && !done(who)
                        && !in_vain(who)
                        && !wants_too(who)
                })
                .collect();
        }
        if found.is_empty() && action == Action::Wait {
            // Those of a pool that counted at it before may have more to count.
            let counted = |(who, did): &(GoroutineId, Action)| {
                let counts = matches!(did, Action::Add | Action::Done);
                (counts && *who != id && self.live.contains(who)).then_some(*who)
            };
            found = uses.keys().filter_map(counted).collect();
        }
        found.into_iter().collect()
    }

    /// What each goroutine needs, by its number; those that do not wait go on, and those that are gone never do.
    fn graph(&self, waits: &[Wait]) -> Graph {
        let execution = self.replay.execution;
        let mut graph = Graph::now(execution.goroutines.len());
        for (id, _) in execution.with_ids() {
            if !self.live.contains(&id) {
                graph.set(id.0 as usize, waitfor::Need::NEVER);
            }
        }
        let anybody = self.live.iter().map(|it| it.0 as usize).collect();
        let anybody = graph.add(waitfor::Need::Any(anybody));
        // What a goroutine waits for was not seen: whoever is free may do it; so may the runtime itself, for whom main
        // waits before its first line.
        let by_runtime =
            execution.timers + execution.functions > 0 || !execution.main_ended && !self.silent;
        for wait in waits {
            let ways = wait.ways.iter().map(|way| self.need(way, &mut graph));
            let mut ways: Vec<waitfor::Need> = ways.collect();
            if ways.is_empty() && wait.reason != WaitReason::Io {
                ways.push(match by_runtime {
                    true => waitfor::Need::NOW,
                    false => waitfor::Need::All(vec![anybody]),
                });
            }
            let on = ways.into_iter().map(|it| graph.add(it)).collect();
            graph.set(wait.goroutine.0 as usize, waitfor::Need::Any(on));
        }
        graph
    }

    /// What a way out needs.
    fn need(&self, way: &Way, graph: &mut Graph) -> waitfor::Need {
        let nodes = |all: &[GoroutineId]| all.iter().map(|it| it.0 as usize).collect();
        match &way.need {
            Need::Nothing => waitfor::Need::NEVER,
            Need::Outside => waitfor::Need::NOW,
            Need::Release(holds) => {
                let each = holds.iter().map(|it| graph.add(self.givers(it)));
                waitfor::Need::All(each.collect())
            }
            Need::Behind(others) | Need::Subtests(others) => waitfor::Need::All(nodes(others)),
            Need::Parent(test) => waitfor::Need::All(nodes(&[*test])),
            // A pending function of the program's may do anything but give back a lock.
            Need::Any(_) if self.replay.execution.functions > 0 => waitfor::Need::NOW,
            Need::Any(who) => waitfor::Need::Any(nodes(who)),
        }
    }

    /// Who may give back a lock: who holds it; who was made meanwhile, by the holder; or anybody that knows it, if that was ever done,
    /// or the holder is gone.
    fn givers(&self, hold: &Hold) -> waitfor::Need {
        let execution = self.replay.execution;
        let meanwhile = |it: &GoroutineId| {
            execution.goroutines[it.0 as usize].parent == Some(hold.goroutine)
                && self.replay.created(*it).is_some_and(|at| at > hold.event)
        };
        let anybody =
            self.replay.is_handed_over(hold.object) || !self.live.contains(&hold.goroutine);
        let made = self.live.iter().copied().filter(meanwhile);
        let mut all: BTreeSet<GoroutineId> = made.chain([hold.goroutine]).collect();
        if anybody {
            all.extend(self.known.by(hold.object));
        }
        waitfor::Need::Any(all.iter().map(|it| it.0 as usize).collect())
    }
}
