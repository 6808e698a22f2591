//! What ended a program from within: a crash, a data race that was reported, a failure.

use super::{Judge, Judgement, Verdict};
use crate::clock::{is_out_of_place, is_out_of_step};
use crate::execution::{Action, End, GoroutineId, ObjectId, Site, SiteId, What};
use crate::race::{self, Access};
use crate::replay::Open;
use crate::symbols::package;
use crate::tree::Place;
use crate::words::short;
use std::collections::{BTreeMap, BTreeSet};

impl<'a> Judge<'_, 'a> {
    pub(super) fn crash(&self) -> Option<Judgement> {
        let output = &self.execution.output;
        // What the runtime or the testing package says of waiting is not a crash.
        let said = output.fatal.as_deref().filter(|it| {
            !it.contains("all goroutines are asleep") && !it.contains("test timed out after")
        });
        let message = match (said, &self.execution.end) {
            (Some(said), _) => said.to_owned(),
            // Hangup, interrupt, kill and termination come from outside.
            (None, End::Signalled(signal)) if ![1, 2, 9, 15].contains(signal) => {
                format!("signal {signal}")
            }
            _ => return None,
        };
        let events = &self.execution.events;
        let panic = events.iter().rposition(|it| it.what == What::Panic);
        // A fatal error of `sync` stands within the usage that is wrong.
        let wrong = |index: usize| {
            let id = events[index].goroutine?;
            let open = self.replay.open(id)?;
            (open.event == index).then_some(id)
        };
        let unlocks = message.contains("unlock");
        let who = panic.and_then(|it| events[it].goroutine).or_else(|| {
            (0..events.len()).rev().take(64).find_map(|index| {
                let What::Request { action, .. } = events[index].what else {
                    return None;
                };
                let fits = matches!(action, Action::Unlock | Action::RUnlock);
                (fits && unlocks).then(|| wrong(index)).flatten()
            })
        });
        // Else the runtime's own words name it.
        let named = output.fatal_in.as_ref().filter(|_| who.is_none());
        let who = who.or_else(|| {
            let number = named?.goroutine;
            let mut ids = self.execution.with_ids();
            ids.find(|it| it.1.number == number).map(|it| it.0)
        });
        let usage = who.and_then(|it| self.replay.open(it)).filter(|open| {
            matches!(
                open.action,
                Action::Send
                    | Action::Close
                    | Action::Unlock
                    | Action::RUnlock
                    | Action::Add
                    | Action::Done
                    | Action::Select
            )
        });
        let site = usage
            .and_then(|it| it.site)
            .or_else(|| panic.and_then(|it| events[it].site))
            .or_else(|| {
                let goroutine = self.execution.goroutines.get(who?.0 as usize)?;
                goroutine.stands_at().filter(|_| named.is_none())
            });
        let cause = self
            .place(site)
            .or_else(|| named.and_then(|it| it.place.clone()));
        let mut sentence = match who {
            Some(who) => format!("{} crashed: {message}", self.words.who(who)),
            None => format!("it crashed: {message}"),
        };
        if let Some(place) = &cause {
            sentence.push_str(&format!(", at {}", short(place)));
        }
        let mut related = Vec::new();
        let closed = |it: &ObjectId| self.replay.closed(*it).is_some();
        let sends = |open: &Open<'_>| {
            let mut cases = open.cases.iter().filter(|it| it.action == Action::Send);
            cases.find_map(|it| it.channel.filter(closed))
        };
        if let Some(object) = usage.and_then(|it| it.object.or_else(|| sends(it)))
            && let Some((by, at)) = self.replay.closed(object)
            && message.contains("closed channel")
        {
            let closed = self.closed_first(object).unwrap_or((by, at));
            let (by, at) = (self.words.who(closed.0), closed.1);
            sentence.push_str(&format!("; {by} had closed it at {}", self.words.at(at)));
            related.extend(self.place(at));
        }
        if let Some(open) = usage
            && matches!(open.action, Action::Unlock | Action::RUnlock)
            && let Some((by, at)) = self.given_back(open.object, open.action, open.event)
        {
            let (by, place) = (self.words.who(by), self.words.at(Some(at)));
            sentence.push_str(&format!("; {by} had given it back at {place}"));
            related.extend(self.place(Some(at)));
        }
        if let Some(open) = usage
            && matches!(open.action, Action::Unlock | Action::RUnlock)
            && let Some(hold) = open.object.and_then(|it| {
                let reading = open.action == Action::RUnlock;
                let holds = self.replay.holds(it).iter();
                holds.rev().find(|it| it.reading != reading)
            })
        {
            let how = if hold.reading { "RLock" } else { "Lock" };
            let (by, place) = (self.words.who(hold.goroutine), self.words.at(hold.site));
            sentence.push_str(&format!("; {by} had taken it by {how} at {place}"));
            related.extend(self.place(hold.site));
        }
        if let Some(group) = usage.and_then(|it| it.object)
            && message.contains("negative WaitGroup counter")
            && let Some((by, sites)) = self.counted_down_twice(group)
        {
            let at: Vec<String> = sites.iter().map(|it| self.words.at(Some(*it))).collect();
            sentence.push_str(&format!(
                "; {} had counted it down at {}",
                self.words.who(by),
                at.join(" and at ")
            ));
            let sites = sites.into_iter().filter_map(|it| self.place(Some(it)));
            related.extend(sites.filter(|it| Some(it) != cause.as_ref()));
        }
        let mut judgement = Judgement {
            verdict: Verdict::Crash,
            sentence,
            cause,
            related,
            goroutines: who.map(|it| self.concerned(it)).into_iter().collect(),
            asks_for_calm: false,
            lacks_network: false,
        };
        if is_assertion(&message) {
            self.is_of_the_schedule(&mut judgement);
        }
        Some(judgement)
    }

    /// The first to count a wait group down at more than one line, and these.
    fn counted_down_twice(&self, group: ObjectId) -> Option<(GoroutineId, Vec<SiteId>)> {
        let mut at: BTreeMap<GoroutineId, Vec<SiteId>> = BTreeMap::new();
        for event in &self.execution.events {
            let What::Request {
                action,
                object,
                amount,
                ..
            } = event.what
            else {
                continue;
            };
            let is_down = action == Action::Done || action == Action::Add && amount < 0;
            if object == Some(group)
                && is_down
                && let (Some(by), Some(site)) = (event.goroutine, event.site)
            {
                let known = at.entry(by).or_default();
                if !known.contains(&site) {
                    known.push(site);
                }
            }
        }
        at.into_iter().find(|it| it.1.len() > 1)
    }

    /// Who gave a lock back last, before the usage at `before` did once too often.
    fn given_back(
        &self,
        lock: Option<ObjectId>,
        how: Action,
        before: usize,
    ) -> Option<(GoroutineId, SiteId)> {
        let events = self.execution.events.get(..before)?;
        events.iter().rev().find_map(|it| match it.what {
            What::Request { action, object, .. } if action == how && object == lock => {
                Some((it.goroutine?, it.site?))
            }
            _ => None,
        })
    }

    /// The first close of a channel: a second one is the crash.
    fn closed_first(&self, channel: ObjectId) -> Option<(GoroutineId, Option<SiteId>)> {
        let first = self.execution.events.iter().find(|it| {
            matches!(it.what, What::Request { action: Action::Close, object, .. } if object == Some(channel))
        })?;
        Some((first.goroutine?, first.site))
    }

    pub(super) fn race(&self, report: &str) -> Judgement {
        let accesses = race::accesses(report, &self.execution.output.own);
        if let Some(misuse) = self.late_add(&accesses) {
            return misuse;
        }
        let places: Vec<Place> = accesses.iter().filter_map(|it| it.place.clone()).collect();
        let who: Vec<Vec<GoroutineId>> = accesses.iter().map(|it| self.candidates(it)).collect();
        let mut others: Vec<String> = Vec::new();
        let told: Vec<String> = accesses
            .iter()
            .zip(&who)
            .filter_map(|(it, who)| {
                let by = self.racer(it, who, &mut others);
                Some(format!("{}{by} at {}", it.kind, short(it.place.as_ref()?)))
            })
            .collect();
        let sentence = if told.is_empty() {
            "data race, in a report without lines".to_owned()
        } else {
            format!("data race: {}", told.join(" and "))
        };
        // Two that may be either of the two are those two.
        let all: BTreeSet<GoroutineId> = who.iter().flatten().copied().collect();
        let sure = who.iter().filter(|it| it.len() == 1).flatten().copied();
        let concerned = match all.len() <= accesses.len() {
            true => all,
            false => sure.collect(),
        };
        self.race_of(concerned, sentence, places)
    }

    /// ` by goroutine 7`, or by what is known of it; `others` are words of those that have been told.
    fn racer(
        &self,
        access: &Access,
        candidates: &[GoroutineId],
        others: &mut Vec<String>,
    ) -> String {
        // Where several tests run, they are told apart by their names.
        if let (Some(test), [_, _, ..]) = (&access.test, candidates) {
            return format!(" by {test}");
        }
        let made = match (candidates, access.created.first()) {
            ([one], _) => return format!(" by {}", self.words.who(*one)),
            ([], None) => return String::new(),
            ([], Some(made)) => match access.maker.as_deref() {
                Some("time.goFunc") => return " by the function of a timer".to_owned(),
                Some(maker) => match package(maker) {
                    Some(package) => format!("goroutine of {package} (made at {})", short(made)),
                    None => format!("goroutine made at {}", short(made)),
                },
                None => format!("goroutine made at {}", short(made)),
            },
            (several, _) => match self.made_together(several) {
                Some(made) => format!("goroutine made at {}", self.words.at(made)),
                None => return " by a goroutine".to_owned(),
            },
        };
        if others.contains(&made) {
            return " by another goroutine made there".to_owned();
        }
        let by = format!(" by a {made}");
        others.push(made);
        by
    }

    /// Who may have made an access. The detector numbers goroutines in a way of its own, and gives numbers again; where
    /// and as what they were made, it says as the records do.
    fn candidates(&self, access: &Access) -> Vec<GoroutineId> {
        if access.goroutine == Some(1) {
            return vec![GoroutineId(0)];
        }
        let is_at = |site: Option<SiteId>, place: &Place| {
            self.place(site).is_some_and(|it| {
                it.line == place.line
                    && it.file.trim_start_matches("./") == place.file.trim_start_matches("./")
            })
        };
        let made_at = |place: &Place| -> Vec<GoroutineId> {
            let all = self.execution.with_ids();
            all.filter(|(_, it)| is_at(it.created_at, place))
                .map(|(id, _)| id)
                .collect()
        };
        let mut found = access.created.iter().map(made_at);
        if let Some(found) = found.find(|it| !it.is_empty()) {
            return found;
        }
        // `WaitGroup.Go` stands in a report without who called it.
        let is_of_group = |it: &Place| it.file.ends_with("sync/waitgroup.go");
        if !access.created.first().is_some_and(is_of_group) {
            return Vec::new();
        }
        let all = self.execution.with_ids();
        all.filter(|(_, it)| it.entry.starts_with("sync.(*WaitGroup)."))
            .map(|(id, _)| id)
            .collect()
    }

    /// The one place where all of them were made.
    fn made_together(&self, goroutines: &[GoroutineId]) -> Option<Option<SiteId>> {
        let made = |it: &GoroutineId| self.execution.goroutines[it.0 as usize].created_at;
        let first = made(goroutines.first()?);
        goroutines
            .iter()
            .all(|it| made(it) == first)
            .then_some(first)
    }

    fn race_of(
        &self,
        concerned: BTreeSet<GoroutineId>,
        sentence: String,
        places: Vec<Place>,
    ) -> Judgement {
        let goroutines = concerned.into_iter().map(|it| self.concerned(it)).collect();
        Judgement {
            verdict: Verdict::Race,
            sentence,
            cause: places.first().cloned(),
            related: places.into_iter().skip(1).collect(),
            goroutines,
            asks_for_calm: false,
            lacks_network: false,
        }
    }

    /// A report about a wait group says neither that nor, as a rule, the lines: `Wait` writes, and an `Add` that it
    /// does not know whether to wait for reads. The records have both, of the one group that somebody else than who
    /// waits adds to; where there are several, the report is all that there is.
    fn late_add(&self, accesses: &[Access]) -> Option<Judgement> {
        if !accesses.iter().any(|it| it.of_wait_group) {
            return None;
        }
        // Of each group whom it was waited for by last, and by somebody else before.
        let mut waiters: BTreeMap<ObjectId, Vec<(GoroutineId, SiteId)>> = BTreeMap::new();
        for (group, id, site) in self.usages(Action::Wait) {
            let known = waiters.entry(group).or_default();
            if known.len() < 2 && known.iter().all(|it| it.0 != id) {
                known.push((id, site));
            }
        }
        let mut found = BTreeMap::new();
        for (group, adds, add) in self.usages(Action::Add) {
            let other = waiters
                .get(&group)
                .and_then(|it| it.iter().find(|it| it.0 != adds));
            if let Some((waits, wait)) = other {
                found.entry(group).or_insert((adds, add, *waits, *wait));
            }
        }
        if found.len() > 1 {
            return None;
        }
        let (group, (adds, add, waits, wait)) = found.pop_first()?;
        let sentence = format!(
            "data race: {} adds to {} at {} while {} may already wait for it at {}",
            self.words.who(adds),
            self.words.object(group),
            self.words.at(Some(add)),
            self.words.who(waits),
            self.words.at(Some(wait)),
        );
        let places = [add, wait]
            .into_iter()
            .filter_map(|it| self.place(Some(it)));
        let concerned = BTreeSet::from([adds, waits]);
        Some(self.race_of(concerned, sentence, places.collect()))
    }

    /// Usages of one kind, the last one first; an `Add` that takes off is none.
    fn usages(&self, of: Action) -> impl Iterator<Item = (ObjectId, GoroutineId, SiteId)> + '_ {
        let events = self.execution.events.iter().rev();
        events.filter_map(move |it| match it.what {
            What::Request {
                action,
                object: Some(object),
                amount,
                ..
            } if action == of && (of != Action::Add || amount > 0) => {
                Some((object, it.goroutine?, it.site?))
            }
            _ => None,
        })
    }

    /// `stuck`: who waits for ever.
    pub(super) fn fail(&self, stuck: &BTreeSet<GoroutineId>) -> Option<Judgement> {
        let failed = &self.execution.output.failed_tests;
        let sentence = match (&failed[..], &self.execution.end) {
            ([], End::Exited(0)) => return None,
            ([], End::Exited(status)) => format!("it ended with status {status}"),
            ([], _) => return None,
            (tests, _) => format!("{} failed", tests.join(", ")),
        };
        let mut judgement = self.plain(Verdict::Fail, sentence);
        if let Some((place, message)) = self.failure() {
            let said = format!(", at {}: {message}", short(&place));
            judgement.sentence.push_str(&said);
            judgement.cause = Some(place);
        }
        // What a test says first is why; what it says behind follows from it, and what it logs later says nothing.
        let first = self.execution.output.failures.first();
        if first.is_some_and(|it| crate::network::is_missing(it)) {
            judgement.verdict = Verdict::Inconclusive;
            judgement
                .sentence
                .push_str("; it needs a network, and found none");
            judgement.lacks_network = true;
            return Some(judgement);
        }
        if self.is_of_the_schedule(&mut judgement) {
            return Some(judgement);
        }
        // What is waited for in vain may be why; who waits for the test itself has that from it.
        let proven = self.proven(stuck);
        if !proven.is_empty() {
            let left = self.deadlock(Verdict::Leak, &proven);
            let said = format!("; {}", left.sentence);
            judgement.sentence.push_str(&said);
            judgement.related.extend(left.cause);
            judgement.goroutines = left.goroutines;
        }
        // Why it failed may be what was suspicious anyway.
        if let Some(finding) = crate::prediction::predict(self.execution)
            .into_iter()
            .next()
        {
            let said = format!("; suspicious: {}", finding.sentence);
            judgement.sentence.push_str(&said);
            let cause = judgement.cause.take();
            let mut places = finding.places.into_iter();
            judgement.cause = places.next();
            let more = cause.into_iter().chain(places);
            judgement.related = more.chain(judgement.related).collect();
        }
        Some(judgement)
    }

    /// Whether an assertion that does not hold may be the schedule's doing alone. Then it is said so, and asked how
    /// it is without.
    fn is_of_the_schedule(&self, judgement: &mut Judgement) -> bool {
        let goes_by = match (
            is_out_of_step(self.execution) || self.is_held_up_alone(),
            is_out_of_place(self.execution),
        ) {
            (true, _) => "the clock",
            (_, true) => "where its goroutines stand",
            _ => return false,
        };
        let held = self.execution.stretched as f64 / 1e6;
        let said = format!("; it goes by {goes_by}, and delays held it up for {held:.1} ms");
        judgement.sentence.push_str(&said);
        judgement.verdict = Verdict::Inconclusive;
        judgement.asks_for_calm = true;
        true
    }

    /// Whether delays met a test that has nothing to do with other goroutines: of a schedule it can see the clock only.
    fn is_held_up_alone(&self) -> bool {
        let Some(test) = self.execution.test.filter(|_| self.execution.stretched > 0) else {
            return false;
        };
        let is_shared = |object: u32| {
            let uses = self.replay.uses(ObjectId(object));
            let by_test = uses.keys().filter(|it| it.0 == test).count();
            by_test > 0 && by_test < uses.len()
        };
        let goroutines = &self.execution.goroutines;
        !goroutines.iter().any(|it| it.parent == Some(test))
            && !(0..self.execution.objects.len() as u32).any(is_shared)
    }

    /// Where a test says that it fails, and what it says: `x_test.go:31: no result`.
    fn failure(&self) -> Option<(Place, &'a str)> {
        let line = self.execution.output.failures.first()?;
        let (place, message) = line.split_once(": ")?;
        let (file, line) = place.rsplit_once(':')?;
        let line = line.parse().ok()?;
        let full = |it: &&Site| it.file == file || it.file.ends_with(&format!("/{file}"));
        let known = self.execution.sites.iter().find(full);
        let file = known.map_or(file, |it| &it.file).to_owned();
        Some((Place { file, line }, message))
    }
}

/// Whether a panic is the program's own word for what it did not expect. What the runtime and the standard library
/// do not allow is never right, whenever it happens.
pub(crate) fn is_assertion(message: &str) -> bool {
    const NEVER: [&str; 8] = [
        "runtime error:",
        "interface conversion: ",
        "assignment to entry in nil map",
        "sync: ",
        "on closed channel",
        "close of closed channel",
        "close of nil channel",
        "in goroutine after ",
    ];
    message.starts_with("panic: ") && !NEVER.iter().any(|it| message.contains(it))
}

#[cfg(test)]
mod tests {
    use crate::execution::{Action, End, GoroutineId, ObjectKind, What};
    use crate::sample::{MAIN, Sample};
    use crate::verdict::{Verdict, judge};

    fn crashes(it: &mut Sample, who: GoroutineId, line: u32, message: &str) {
        it.event(who, line, What::Panic);
        it.execution.end = End::Exited(2);
        it.execution.output.fatal = Some(message.to_owned());
    }

    #[test]
    fn who_counted_down_twice_is_named() {
        let mut it = Sample::new();
        let group = it.object(ObjectKind::WaitGroup, 2);
        it.request(MAIN, 2, Action::Add, Some(group));
        it.complete(MAIN, 2, Action::Add);
        let (first, second) = (it.go(MAIN, 3), it.go(MAIN, 3));
        it.does(first, 12, Action::Done, group);
        it.does(first, 10, Action::Done, group);
        it.request(second, 10, Action::Done, Some(group));
        crashes(
            &mut it,
            second,
            10,
            "panic: sync: negative WaitGroup counter",
        );
        let judgement = judge(&it.execution);
        assert_eq!(judgement.verdict, Verdict::Crash);
        insta::assert_snapshot!(judgement.sentence, @"goroutine 19 crashed: panic: sync: negative WaitGroup counter, at main.go:10; goroutine 18 had counted it down at main.go:12 and at main.go:10");
        assert_eq!(judgement.related[0].line, 12);
    }

    #[test]
    fn a_lock_that_was_taken_in_the_other_way_is_named() {
        let mut it = Sample::new();
        let lock = it.object(ObjectKind::RwMutex, 5);
        it.does(MAIN, 5, Action::Lock, lock);
        it.request(MAIN, 6, Action::RUnlock, Some(lock));
        it.execution.end = End::Exited(2);
        it.execution.output.fatal =
            Some("fatal error: sync: RUnlock of unlocked RWMutex".to_owned());
        let sentence = judge(&it.execution).sentence;
        assert!(
            sentence.ends_with("; main had taken it by Lock at main.go:5"),
            "{sentence}"
        );
    }

    #[test]
    fn what_a_failed_test_left_behind_is_told_where_that_is_proven() {
        for proven in [true, false] {
            let mut it = Sample::new();
            let child = it.go(MAIN, 3);
            let channel = it.channel(child, 10, 0);
            it.waits(child, 11, Action::Receive, channel);
            it.exits();
            it.execution.end = End::Exited(1);
            it.execution.output.failed_tests = vec!["TestEvent".to_owned()];
            it.execution.proven_leaks = Some(proven.then_some(child).into_iter().collect());
            let judgement = judge(&it.execution);
            assert_eq!(judgement.verdict, Verdict::Fail);
            let told = judgement
                .sentence
                .contains("goroutine 18 waits at main.go:11");
            assert_eq!(told, proven, "{}", judgement.sentence);
        }
    }
}
