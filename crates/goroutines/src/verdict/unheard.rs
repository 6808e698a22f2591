//! Signals that came to nothing, of what goroutines wait for in vain: what a lost wake-up is told by.

use super::Judge;
use crate::execution::{Action, GoroutineId, ObjectId, ObjectKind, SiteId, What};
use crate::words::count;
use std::collections::{BTreeMap, BTreeSet};

/// Who gave a signal last, where, and whether that let anybody go on.
struct Given {
    by: GoroutineId,
    at: Option<SiteId>,
    heard: bool,
    /// Who waited then, of a signal that is for one of them.
    waited: BTreeSet<GoroutineId>,
}

impl Judge<'_, '_> {
    /// Of conditions and unbuffered channels that these wait for, in this order: the first whose last signal nobody
    /// waited for (of a channel, the send of a `select` that took its `default`), or went to another one of those that
    /// waited. In words, and where that was.
    ///
    /// Takes time linear in the events.
    pub(super) fn unheard<'i>(
        &self,
        who: impl Iterator<Item = &'i GoroutineId>,
    ) -> Option<(String, SiteId)> {
        let kind = |it: ObjectId| self.execution.objects.get(it.0 as usize).map(|it| it.kind);
        let is_signalled = |it: &ObjectId| {
            matches!(
                kind(*it),
                Some(ObjectKind::Cond | ObjectKind::Channel { capacity: 0 })
            )
        };
        let mut wanted: Vec<(GoroutineId, ObjectId)> = Vec::new();
        for id in who {
            let ways = self.waiting.of(*id).map_or(&[][..], |it| &it.ways);
            let ways = ways
                .iter()
                .filter(|it| matches!(it.action, Action::Receive | Action::CondWait));
            let objects = ways.filter_map(|it| it.object).filter(is_signalled);
            wanted.extend(objects.map(|it| (*id, it)));
        }
        if wanted.is_empty() {
            return None;
        }
        let objects: Vec<ObjectId> = wanted.iter().map(|it| it.1).collect();
        let last = self.last_given(&objects);
        // What somebody gives is not for themselves.
        let lost = wanted.iter().find_map(|(waiter, object)| {
            let given = last.get(object)?;
            let went_by = !given.heard || given.waited.len() > 1 && given.waited.contains(waiter);
            (went_by && given.by != *waiter).then_some((*object, given))
        });
        let (object, given) = lost?;
        let at = given.at?;
        let (it, by) = (self.words.object(object), self.words.who(given.by));
        let place = self.words.at(given.at);
        if given.heard {
            let text = format!(
                "; {by} signalled it last at {place}, when {} waited, and one went on",
                count(given.waited.len(), "goroutine")
            );
            return Some((text, at));
        }
        let text = match kind(object) == Some(ObjectKind::Cond) {
            true => format!("; nobody waited for {it} when {by} signalled it at {place}"),
            false => {
                format!(
                    "; nobody waited at {it} when {by} would have sent to it at {place}, and went on"
                )
            }
        };
        Some((text, at))
    }

    /// The last signal of each.
    fn last_given(&self, wanted: &[ObjectId]) -> BTreeMap<ObjectId, Given> {
        let mut last: BTreeMap<ObjectId, Given> = BTreeMap::new();
        // What a goroutine is about to give: of a select, any of these.
        let mut open: BTreeMap<GoroutineId, (Vec<ObjectId>, Option<SiteId>)> = BTreeMap::new();
        let mut waiters: BTreeMap<ObjectId, BTreeSet<GoroutineId>> = BTreeMap::new();
        for event in &self.execution.events {
            let Some(by) = event.goroutine else { continue };
            match &event.what {
                What::Request {
                    action,
                    object,
                    cases,
                    default,
                    ..
                } => {
                    open.remove(&by);
                    if let (Action::CondWait, Some(object)) = (action, object) {
                        waiters.entry(*object).or_default().insert(by);
                    }
                    let gives: Vec<ObjectId> = match action {
                        Action::Signal | Action::Broadcast | Action::Send | Action::Close => {
                            object.iter().copied().collect()
                        }
                        Action::Select if *default => {
                            let sends = cases.iter().filter(|it| it.action == Action::Send);
                            sends.filter_map(|it| it.channel).collect()
                        }
                        _ => continue,
                    };
                    let gives: Vec<_> =
                        gives.into_iter().filter(|it| wanted.contains(it)).collect();
                    for it in &gives {
                        let heard = matches!(action, Action::Send | Action::Close);
                        let at = event.site;
                        let waited = match action {
                            Action::Signal => waiters.get(it).cloned().unwrap_or_default(),
                            _ => BTreeSet::new(),
                        };
                        let given = Given {
                            by,
                            at,
                            heard,
                            waited,
                        };
                        last.insert(*it, given);
                    }
                    if !gives.is_empty() {
                        open.insert(by, (gives, event.site));
                    }
                }
                // Whom a signal lets go on, or a send.
                What::Ready(_) => {
                    for it in open.get(&by).iter().flat_map(|it| &it.0) {
                        if let Some(given) = last.get_mut(it) {
                            given.heard = true;
                        }
                    }
                }
                What::Complete {
                    action: Action::Select,
                    case: Some(_),
                    ..
                } => {
                    for it in open.remove(&by).iter().flat_map(|it| &it.0) {
                        if let Some(given) = last.get_mut(it) {
                            given.heard = true;
                        }
                    }
                }
                What::Complete { action, .. } => {
                    open.remove(&by);
                    if *action == Action::CondWait {
                        for it in waiters.values_mut() {
                            it.remove(&by);
                        }
                    }
                }
                _ => {}
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use crate::execution::{Action, Case, ObjectKind, What};
    use crate::sample::{MAIN, Sample};
    use crate::verdict::judge;

    #[test]
    fn a_signal_that_nobody_waited_for_is_named() {
        let mut it = Sample::new();
        let condition = it.object(ObjectKind::Cond, 11);
        let worker = it.go(MAIN, 3);
        it.does(worker, 21, Action::Signal, condition);
        it.ends(worker, 22);
        it.waits(MAIN, 5, Action::CondWait, condition);
        let judgement = judge(&it.execution);
        insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: main waits at main.go:5 for a signal of the condition first used at main.go:11, and nobody is left to signal it (goroutine 18 at main.go:21 did, and has ended); nobody waited for the condition first used at main.go:11 when goroutine 18 signalled it at main.go:21");
        assert_eq!(judgement.related[0].line, 21);
    }

    #[test]
    fn a_signal_that_somebody_heard_is_not() {
        let mut it = Sample::new();
        let condition = it.object(ObjectKind::Cond, 11);
        let worker = it.go(MAIN, 3);
        it.meets(
            (MAIN, 5, Action::CondWait),
            (worker, 21, Action::Signal),
            condition,
        );
        it.ends(worker, 22);
        it.waits(MAIN, 5, Action::CondWait, condition);
        let judgement = judge(&it.execution);
        assert!(
            !judgement.sentence.contains("nobody waited"),
            "{}",
            judgement.sentence
        );
    }

    #[test]
    fn a_signal_for_one_of_several_is_named() {
        let mut it = Sample::new();
        let condition = it.object(ObjectKind::Cond, 11);
        let group = it.object(ObjectKind::WaitGroup, 2);
        it.does(MAIN, 2, Action::Add, group);
        let (first, second) = (it.go(MAIN, 3), it.go(MAIN, 3));
        it.waits(second, 31, Action::CondWait, condition);
        it.meets(
            (first, 31, Action::CondWait),
            (MAIN, 21, Action::Signal),
            condition,
        );
        it.ends(first, 32);
        it.waits(MAIN, 5, Action::Wait, group);
        let sentence = judge(&it.execution).sentence;
        let lost =
            "; main signalled it last at main.go:21, when 2 goroutines waited, and one went on";
        assert!(sentence.ends_with(lost), "{sentence}");
    }

    #[test]
    fn a_send_that_took_its_default_is_named_where_the_channel_has_no_room() {
        for (capacity, told) in [(0, true), (1, false)] {
            let mut it = Sample::new();
            let wake = it.channel(MAIN, 2, capacity);
            let worker = it.go(MAIN, 3);
            let cases = vec![Case {
                action: Action::Send,
                channel: Some(wake),
            }];
            let select = What::Request {
                action: Action::Select,
                object: None,
                cases,
                default: true,
                amount: 0,
                on_behalf: false,
            };
            it.event(worker, 21, select);
            it.complete(worker, 21, Action::Select);
            it.ends(worker, 22);
            it.waits(MAIN, 5, Action::Receive, wake);
            let sentence = judge(&it.execution).sentence;
            let lost = "; nobody waited at the channel made at main.go:2 when goroutine 18 would have sent to it at main.go:21, and went on";
            assert_eq!(sentence.contains(lost), told, "{sentence}");
        }
    }
}
