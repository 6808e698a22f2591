//! Goroutines that wait for ever: which of them everything hangs on, and what is said of them.

use super::{Judge, Judgement, Verdict, seconds};
use crate::execution::{Action, GoroutineId, SiteId, WaitReason, What};
use crate::tree::Place;
use crate::waits::{Need, Wait, Way, is_quiescent, live};
use lockstep_waitfor::knots;
use std::collections::BTreeSet;

impl Judge<'_, '_> {
    /// Of goroutines that are stuck while `main` has not ended.
    pub(super) fn before_the_end_of_main(
        &self,
        stuck: &BTreeSet<GoroutineId>,
        certain: bool,
    ) -> Option<Judgement> {
        let main = self.execution.main();
        let all = live(self.execution).is_subset(stuck);
        let main_is_stuck = stuck.contains(&main);
        if all && (certain || is_quiescent(self.execution)) {
            return Some(self.deadlock(Verdict::GlobalDeadlock, stuck));
        }
        let each = self.hold_each_other(stuck);
        (certain && (main_is_stuck || each)).then(|| self.deadlock(Verdict::PartialDeadlock, stuck))
    }

    /// Groups of stuck goroutines that wait for nobody outside: where waits end.
    fn roots(&self, stuck: &BTreeSet<GoroutineId>) -> Vec<Vec<GoroutineId>> {
        let nodes: Vec<usize> = stuck.iter().map(|it| it.0 as usize).collect();
        let on = |node: usize| {
            self.on(GoroutineId(node as u32))
                .map(|it| it.0 as usize)
                .collect()
        };
        let knots = knots(&nodes, on).into_iter();
        let mut roots: Vec<Vec<GoroutineId>> = knots
            .map(|knot| knot.into_iter().map(|it| GoroutineId(it as u32)).collect())
            .collect();
        // What main or the test hangs on stands first; then circles; then who came first.
        let main = self.execution.main();
        let reached = self.reached(stuck, main);
        roots.sort_by_key(|root| {
            let below_main = stuck.contains(&main) && root.iter().any(|it| reached.contains(it));
            // Who waits for the network waits for what somebody else does not do.
            let of_network = self.silent.is_some()
                && root.iter().all(|it| {
                    let wait = self.waiting.of(*it);
                    wait.is_none_or(|it| it.reason == WaitReason::Io || self.words.is_on_behalf(it))
                });
            (of_network, !below_main, !self.is_mutual(root), root[0])
        });
        roots
    }

    /// Whom somebody waits for, and whom those do.
    fn reached(&self, stuck: &BTreeSet<GoroutineId>, from: GoroutineId) -> BTreeSet<GoroutineId> {
        let mut reached = BTreeSet::from([from]);
        let mut todo = vec![from];
        while let Some(it) = todo.pop() {
            for next in self.on(it).filter(|it| stuck.contains(it)) {
                if reached.insert(next) {
                    todo.push(next);
                }
            }
        }
        reached
    }

    /// Whom a goroutine waits for.
    fn on(&self, id: GoroutineId) -> impl Iterator<Item = GoroutineId> + use<> {
        let wait = self.waiting.of(id);
        wait.map(Wait::on).unwrap_or_default().into_iter()
    }

    /// Whether a root is a circle, or waits for a lock.
    fn is_mutual(&self, root: &[GoroutineId]) -> bool {
        root.len() > 1
            || root.iter().any(|it| {
                let ways = self.waiting.of(*it).map_or(&[][..], |it| &it.ways);
                ways.iter()
                    .any(|it| matches!(it.need, Need::Release(_) | Need::Behind(_)))
            })
    }

    /// Whether they wait for one another, or for a lock that never comes back.
    pub(super) fn hold_each_other(&self, stuck: &BTreeSet<GoroutineId>) -> bool {
        stuck.iter().any(|it| self.is_mutual(&[*it]))
            || self.roots(stuck).iter().any(|it| self.is_mutual(it))
    }

    /// Whether a goroutine that waits for ever is part of the process and not of what was run: it could be given work
    /// again. It waits idly, nobody proved it unreachable, and either it was there before the test began, or the
    /// collector looked and found that a variable still leads to what it waits for, and that has served before.
    /// All of that is only known where no record was lost.
    pub(super) fn is_background(&self, id: GoroutineId) -> bool {
        let Some(wait) = self.waiting.of(id).filter(|_| self.execution.lost == 0) else {
            return false;
        };
        let idle =
            |it: &&Way| matches!(it.action, Action::Receive | Action::CondWait | Action::Send);
        let ways = || wait.ways.iter().filter(idle);
        let began = self.execution.test.and_then(|it| self.replay.created(it));
        let created = self.replay.created(id);
        let is_older = began.zip(created).is_some_and(|(began, it)| it < began);
        // Who did nothing since but begin to wait for what is no younger, or for nothing at all, does not wait because
        // of the test, whoever could reach it.
        let is_aside = |it: &Way| {
            let made = it.object.and_then(|it| self.replay.made(it));
            let is_own = made.is_some_and(|(by, at)| by == id || Some(at) < began);
            it.need == Need::Nothing || idle(&it) && is_own
        };
        let idles = !wait.ways.is_empty() && wait.ways.iter().all(is_aside);
        if is_older && idles && !self.has_moved(id, began) {
            return true;
        }
        let looked = self.execution.proven_leaks.as_ref();
        if looked.is_some_and(|it| it.contains(&id)) {
            return false;
        }
        if is_older {
            return ways().next().is_some();
        }
        // A variable leads to one of several at least: to one from before the test, if there is any.
        let is_old = |way: &Way| {
            let made = way.object.and_then(|it| self.replay.made(it));
            began.is_some() && made.is_none_or(|(_, event)| Some(event) < began)
        };
        let served = |way: &&Way| self.has_served(id, way);
        let aside = ways().any(|it| is_old(it) && !served(&it));
        looked.is_some() && ways().filter(served).any(|it| is_old(it) || !aside)
    }

    /// Whether it did anything behind an event but begin the wait in which it is.
    fn has_moved(&self, id: GoroutineId, since: Option<usize>) -> bool {
        let waits = self.waiting.of(id).and_then(|it| it.since);
        let events = self.execution.events.iter().enumerate();
        let mut usages = events
            .skip(since.unwrap_or(0))
            .filter(|(_, it)| it.goroutine == Some(id) && matches!(it.what, What::Request { .. }));
        usages.any(|(index, _)| Some(index) != waits)
    }

    /// Whether what `id` waits for came before: of a sender, to itself.
    fn has_served(&self, id: GoroutineId, way: &Way) -> bool {
        let Some(object) = way.object else {
            return false;
        };
        self.replay
            .uses(object)
            .iter()
            .any(|((who, did), it)| match way.action {
                Action::Send => *who == id && *did == Action::Send && it.completed > 0,
                Action::CondWait => matches!(did, Action::Signal | Action::Broadcast),
                _ => *did == way.action && it.completed > 0,
            })
    }

    /// Those of them of which the garbage collector proved that nothing that runs can reach what they wait for.
    pub(super) fn proven(&self, stuck: &BTreeSet<GoroutineId>) -> BTreeSet<GoroutineId> {
        let proven = self.execution.proven_leaks.iter().flatten().copied();
        proven.filter(|it| stuck.contains(it)).collect()
    }

    pub(super) fn deadlock(&self, verdict: Verdict, stuck: &BTreeSet<GoroutineId>) -> Judgement {
        let roots = self.roots(stuck);
        let root = roots.first().map_or(&[][..], Vec::as_slice);
        let (who, cause) = self.culprit(root);
        let main = self.execution.main();
        let reached = self.reached(stuck, main);
        let is_below_main = root.iter().any(|it| reached.contains(it));
        let from = if stuck.contains(&main) && (is_below_main || self.silent.is_none()) {
            Some(main)
        } else {
            // Who waits for the root tells the story from its beginning.
            let above = stuck
                .iter()
                .find(|it| !root.contains(it) && self.on(**it).any(|to| root.contains(&to)));
            above.copied().or(who)
        };
        let story = from.map_or_else(String::new, |it| self.words.chain(self.waiting, it));
        let head = match (verdict, stuck.len()) {
            (Verdict::GlobalDeadlock, _) => "every goroutine waits for ever".to_owned(),
            (Verdict::Leak, 1) => "a goroutine is left behind for ever".to_owned(),
            (Verdict::Leak, many) => format!("{many} goroutines are left behind for ever"),
            (_, 1) => "a goroutine waits for ever".to_owned(),
            (_, many) => format!("{many} goroutines wait for ever"),
        };
        let proof = match self.proven(stuck).len() {
            0 => String::new(),
            all if all == stuck.len() => ", proven unreachable".to_owned(),
            some => format!(", {some} of them proven unreachable"),
        };
        // A signal that came too early is no reason where who would give the next one is kept off.
        let heard: Vec<GoroutineId> = root
            .iter()
            .copied()
            .filter(|it| {
                self.words
                    .kept_off(self.waiting, *it, &BTreeSet::new())
                    .is_none()
            })
            .collect();
        let (lost, lost_at) = self
            .unheard(heard.iter())
            .map_or_else(Default::default, |(text, at)| (text, self.place(Some(at))));
        let silence = self.silent.map_or_else(String::new, |it| {
            self.in_silence(it, stuck, from.filter(|it| *it != main && !is_below_main))
        });
        let mut related: Vec<Place> = lost_at.into_iter().collect();
        for id in root.iter().chain(stuck) {
            let wait = self.waiting.of(*id);
            let held = self.replay.held_by(*id);
            let sites = held.iter().map(|it| it.site).chain(wait.map(|it| it.site));
            for place in sites.filter_map(|it| self.place(it)) {
                if Some(&place) != self.place(cause).as_ref() && !related.contains(&place) {
                    related.push(place);
                }
            }
        }
        Judgement {
            verdict,
            sentence: format!("{head}{proof}: {story}{lost}{silence}"),
            cause: self.place(cause),
            related,
            goroutines: stuck.iter().map(|it| self.concerned(*it)).collect(),
            asks_for_calm: false,
            lacks_network: false,
        }
    }

    /// What main or the test waits for, where the story was not about it, and since when nothing moved.
    fn in_silence(
        &self,
        silence: u64,
        stuck: &BTreeSet<GoroutineId>,
        aside: Option<GoroutineId>,
    ) -> String {
        let main = self.execution.main();
        let mut text = String::new();
        if aside.is_some() && stuck.contains(&main) {
            let wait = self.waiting.of(main);
            let waits = wait.map(|it| self.words.wait(self.waiting, it, false));
            let waits = waits.unwrap_or_default();
            text = format!("; {} {waits}", self.words.who(main));
        }
        let by_network = |it: &GoroutineId| {
            let wait = self.waiting.of(*it);
            wait.is_some_and(|it| it.reason == WaitReason::Io)
        };
        let network = match stuck.iter().any(by_network) {
            true => ", and the network leads nowhere but into the program itself",
            false => "",
        };
        format!("{text}; nothing moved for {}{network}", seconds(silence))
    }

    /// Of a root: who to look at, and where.
    fn culprit(&self, root: &[GoroutineId]) -> (Option<GoroutineId>, Option<SiteId>) {
        let wait = |it: &GoroutineId| self.waiting.of(*it);
        let waits_for_a_lock = |it: &Wait| {
            matches!(
                it.reason,
                WaitReason::Mutex | WaitReason::RwMutexRead | WaitReason::RwMutexWrite
            )
        };
        // Who keeps a lock while it waits for something else keeps the others from coming to it.
        let keeper = root.iter().find(|it| {
            !self.replay.held_by(**it).is_empty()
                && wait(it).is_some_and(|it| !waits_for_a_lock(it))
        });
        // Else who closed the circle: the last to begin its wait. Whoever only waits for others to end did not.
        let last = root.iter().max_by_key(|it| {
            let wait = wait(it);
            let joins = wait.is_none_or(|it| it.reason == WaitReason::WaitGroup);
            (!joins, wait.and_then(|it| it.since))
        });
        let Some(who) = keeper.or(last) else {
            return (None, None);
        };
        let wait = wait(who);
        let gone = wait.and_then(|it| match &it.ways[..] {
            [way] => match &way.need {
                Need::Release(holds) => holds.iter().find(|it| {
                    !self.waiting.is_stuck(it.goroutine)
                        && self.replay.ended(it.goroutine).is_some()
                }),
                _ => None,
            },
            _ => None,
        });
        let site = match gone {
            Some(hold) => hold.site,
            None => wait.and_then(|it| it.site),
        };
        (Some(*who), site)
    }
}
