//! What one execution shows of each usage.

use super::{Aspect, CaseOf, Entry, Key, NodePath, Usage};
use crate::execution::{Action, Execution, GoroutineId, ObjectId, ObjectKind, SiteId, What};
use crate::replay::Replay;
use crate::tree::Place;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn entries(execution: &Execution, paths: &[Option<NodePath>]) -> BTreeMap<Key, Entry> {
    let mut observer = Observer {
        execution,
        paths,
        unblocked: vec![BTreeSet::new(); execution.goroutines.len()],
        inner: BTreeSet::new(),
        entries: BTreeMap::new(),
    };
    let mut replay = Replay::new(execution);
    for index in 0..execution.events.len() {
        observer.see(&replay, index);
        replay.step(index);
    }
    for (id, _) in execution.with_ids() {
        for open in replay.opened(id) {
            // It waits still; which case of a select it would have been stays open.
            if open.parked && open.action != Action::Select && !is_inner(&replay, id, open.event) {
                observer.note(id, open.site, open.action, None, Aspect::Blocked);
            }
        }
    }
    let mut entries = observer.entries;
    for entry in entries.values_mut() {
        entry.seen.values_mut().for_each(|it| *it = 1);
    }
    entries
}

struct Observer<'a> {
    execution: &'a Execution,
    paths: &'a [Option<NodePath>],
    /// By goroutine: the requests of usages that made another goroutine run.
    unblocked: Vec<BTreeSet<usize>>,
    /// Completions of usages that are no line of their own.
    inner: BTreeSet<usize>,
    entries: BTreeMap<Key, Entry>,
}

/// Whether a usage is part of a `Cond.Wait`, or a library's on somebody's behalf, and no line of its own.
fn is_inner(replay: &Replay<'_>, id: GoroutineId, event: usize) -> bool {
    let what = replay.execution.events.get(event).map(|it| &it.what);
    if matches!(what, Some(What::Request { on_behalf, .. }) if *on_behalf) {
        return true;
    }
    replay
        .opened(id)
        .iter()
        .any(|it| it.action == Action::CondWait && it.event < event)
}

impl Observer<'_> {
    /// `replay` is the state before the event.
    fn see(&mut self, replay: &Replay<'_>, index: usize) {
        let event = &self.execution.events[index];
        let Some(id) = event.goroutine else {
            return;
        };
        if id.0 as usize >= self.unblocked.len() {
            return;
        }
        match &event.what {
            What::Request {
                action,
                object,
                cases,
                default,
                ..
            } => {
                if is_inner(replay, id, index) {
                    return;
                }
                let buffered = object.is_some_and(|it| self.is_buffered(it))
                    || cases
                        .iter()
                        .any(|it| it.channel.is_some_and(|it| self.is_buffered(it)));
                if let Some(entry) = self.entry(id, event.site, *action) {
                    entry.is_buffered |= buffered;
                    entry.has_default |= default;
                    entry
                        .cases
                        .extend((0..).zip(cases).map(|(index, it)| CaseOf {
                            index,
                            action: it.action,
                        }));
                }
            }
            What::Ready(_) => {
                if let Some(open) = replay.open(id) {
                    self.unblocked[id.0 as usize].insert(open.event);
                }
            }
            What::Park(_) => self.parks(replay, id),
            What::Complete { action, case, .. } => {
                let open = replay.opened(id);
                let Some(open) = open.iter().rev().find(|it| it.action == *action) else {
                    return;
                };
                let readied = self.unblocked[id.0 as usize].remove(&open.event);
                if is_inner(replay, id, open.event) {
                    self.inner.insert(index);
                    return;
                }
                self.completes(id, open, *case, readied);
            }
            _ => {}
        }
    }

    fn completes(
        &mut self,
        id: GoroutineId,
        open: &crate::replay::Open<'_>,
        case: Option<u32>,
        readied: bool,
    ) {
        let has_default = self
            .entry(id, open.site, open.action)
            .is_some_and(|it| it.has_default);
        let case = match (open.action, case) {
            (Action::Select, Some(index)) if !has_default => {
                open.cases.get(index as usize).map(|it| CaseOf {
                    index,
                    action: it.action,
                })
            }
            _ => None,
        };
        if open.parked {
            self.note(id, open.site, open.action, case, Aspect::Blocked);
        }
        if readied {
            self.note(id, open.site, open.action, case, Aspect::Unblocking);
        }
        if !open.parked && !readied {
            self.note(id, open.site, open.action, case, Aspect::Nop);
        }
    }

    /// Whoever holds what it waits for blocks it.
    fn parks(&mut self, replay: &Replay<'_>, id: GoroutineId) {
        let Some(open) = replay.open(id) else {
            return;
        };
        if !matches!(open.action, Action::Lock | Action::RLock) {
            return;
        }
        let Some(object) = open.object else {
            return;
        };
        for hold in replay.holds(object).to_vec() {
            let What::Complete { action, .. } = self.execution.events[hold.event].what else {
                continue;
            };
            let is_own = !self.inner.contains(&hold.event);
            if is_own && hold.goroutine != id && matches!(action, Action::Lock | Action::RLock) {
                self.note(hold.goroutine, hold.site, action, None, Aspect::Blocking);
            }
        }
    }

    fn is_buffered(&self, object: ObjectId) -> bool {
        let kind = self
            .execution
            .objects
            .get(object.0 as usize)
            .map(|it| it.kind);
        !matches!(kind, Some(ObjectKind::Channel { capacity: 0 }))
    }

    fn entry(
        &mut self,
        id: GoroutineId,
        site: Option<SiteId>,
        action: Action,
    ) -> Option<&mut Entry> {
        let path = self.paths.get(id.0 as usize)?.clone()?;
        let site = self.execution.site(site?)?;
        let place = Place::of(site);
        // The main package that go test writes, and package testing, are nobody's to cover.
        let generated =
            place.file.ends_with("_testmain.go") || site.function.starts_with("testing.");
        if action == Action::Sleep || place.line == 0 || generated {
            return None;
        }
        Some(
            self.entries
                .entry((path, Usage { place, action }))
                .or_default(),
        )
    }

    fn note(
        &mut self,
        id: GoroutineId,
        site: Option<SiteId>,
        action: Action,
        case: Option<CaseOf>,
        aspect: Aspect,
    ) {
        if let Some(entry) = self.entry(id, site, action) {
            entry.seen.insert((case, aspect), 1);
        }
    }
}
