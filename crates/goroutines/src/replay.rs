//! Steps through an execution and keeps what is open, held, counted and closed at each point.
//!
//! Every analysis is a fold over the events; this is the state that they share. *Costs*: O(1) amortised for an
//! event, but for locks with many holders.

use crate::execution::{
    Action, Case, Event, Execution, GoroutineId, ObjectId, SiteId, WaitReason, What,
};
use std::collections::{BTreeMap, VecDeque};

/// A usage that has begun and is not over.
#[derive(Debug, Clone)]
pub(crate) struct Open<'a> {
    /// Index of its request.
    pub event: usize,
    pub action: Action,
    pub object: Option<ObjectId>,
    pub site: Option<SiteId>,
    pub cases: &'a [Case],
    /// Whether the goroutine was parked since.
    pub parked: bool,
    /// Of `Cond.Wait`: whether it was seen to give its lock back.
    released: bool,
}

/// A lock in somebody's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Hold {
    /// The lock.
    pub object: ObjectId,
    /// Who locked it. Anybody may unlock it.
    pub goroutine: GoroutineId,
    /// Where it was locked.
    pub site: Option<SiteId>,
    /// Index of the event that completed the lock.
    pub event: usize,
    /// Whether it is a read lock.
    pub reading: bool,
}

/// What a goroutine did with an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub first: usize,
    pub site: Option<SiteId>,
    /// How often it was completed.
    pub completed: u64,
}

/// The state between two events.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub execution: &'a Execution,
    open: Vec<Vec<Open<'a>>>,
    /// By object: who holds it; of a mutex at most one, unless events were lost.
    holds: Vec<Vec<Hold>>,
    /// The same by goroutine, in the order of locking: asked at each of millions of usages.
    held: Vec<Vec<Hold>>,
    /// Locks that somebody unlocked who had not locked them.
    handed_over: Vec<bool>,
    counts: Vec<i64>,
    closed: Vec<Option<(GoroutineId, Option<SiteId>)>>,
    made: Vec<Option<(GoroutineId, usize)>>,
    uses: Vec<BTreeMap<(GoroutineId, Action), Use>>,
    /// By goroutine: the event that created it.
    created: Vec<Option<usize>>,
    ended: Vec<Option<usize>>,
}

impl<'a> Replay<'a> {
    pub fn new(execution: &'a Execution) -> Self {
        let (objects, goroutines) = (execution.objects.len(), execution.goroutines.len());
        Self {
            execution,
            open: vec![Vec::new(); goroutines],
            holds: vec![Vec::new(); objects],
            held: vec![Vec::new(); goroutines],
            handed_over: vec![false; objects],
            counts: vec![0; objects],
            closed: vec![None; objects],
            made: vec![None; objects],
            uses: vec![BTreeMap::new(); objects],
            created: vec![None; goroutines],
            ended: vec![None; goroutines],
        }
    }

    /// The state after the last event.
    pub fn whole(execution: &'a Execution) -> Self {
        let mut replay = Self::new(execution);
        for index in 0..execution.events.len() {
            replay.step(index);
        }
        replay
    }

    /// Takes in the event at `index`.
    pub fn step(&mut self, index: usize) {
        let execution = self.execution;
        let Some(event) = execution.events.get(index) else {
            return;
        };
        match &event.what {
            What::Make(object) => {
                if let (Some(made), Some(goroutine)) =
                    (self.made.get_mut(object.0 as usize), event.goroutine)
                {
                    *made = Some((goroutine, index));
                }
            }
            What::Create(child) => {
                if let Some(created) = self.created.get_mut(child.0 as usize) {
                    *created = Some(index);
                }
            }
            _ => {}
        }
        let Some(goroutine) = event.goroutine else {
            return;
        };
        if goroutine.0 as usize >= self.open.len() {
            return;
        }
        match &event.what {
            What::Request { .. } => self.request(index, event, goroutine),
            What::Complete { action, case, ok } => {
                self.complete(index, goroutine, *action, *case, *ok);
            }
            What::Park(reason) => self.park(goroutine, *reason),
            What::End => self.ended[goroutine.0 as usize] = Some(index),
            _ => {}
        }
    }

    fn request(&mut self, index: usize, event: &'a Event, goroutine: GoroutineId) {
        let What::Request {
            action,
            object,
            cases,
            amount,
            ..
        } = &event.what
        else {
            return;
        };
        for (object, action) in object
            .iter()
            .map(|it| (*it, *action))
            .chain(channels(cases))
        {
            let Some(uses) = self.uses.get_mut(object.0 as usize) else {
                continue;
            };
            uses.entry((goroutine, action)).or_insert(Use {
                first: index,
                site: event.site,
                completed: 0,
            });
        }
        if let Some(object) = object.filter(|it| (it.0 as usize) < self.holds.len()) {
            let at = object.0 as usize;
            match action {
                Action::Unlock => self.unlock(goroutine, object, false),
                Action::RUnlock => self.unlock(goroutine, object, true),
                Action::Add => self.counts[at] += amount,
                Action::Done => self.counts[at] -= 1,
                Action::Close => self.closed[at] = Some((goroutine, event.site)),
                _ => {}
            }
        }
        self.open[goroutine.0 as usize].push(Open {
            event: index,
            action: *action,
            object: *object,
            site: event.site,
            cases,
            parked: false,
            released: false,
        });
    }

    fn unlock(&mut self, goroutine: GoroutineId, object: ObjectId, reading: bool) {
        let holds = &mut self.holds[object.0 as usize];
        let own = holds
            .iter()
            .rposition(|it| it.goroutine == goroutine && it.reading == reading);
        let any = own.or_else(|| holds.iter().rposition(|it| it.reading == reading));
        if let Some(any) = any {
            let hold = holds.remove(any);
            self.held[hold.goroutine.0 as usize].retain(|it| it.event != hold.event);
            if own.is_none() {
                self.handed_over[object.0 as usize] = true;
            }
        }
        if let Some(open) = self.open[goroutine.0 as usize].last_mut()
            && open.action == Action::CondWait
        {
            open.released = true;
        }
    }

    fn complete(
        &mut self,
        index: usize,
        goroutine: GoroutineId,
        action: Action,
        case: Option<u32>,
        ok: bool,
    ) {
        let stack = &mut self.open[goroutine.0 as usize];
        // A usage that was left by a panic has no end of its own.
        let Some(at) = stack.iter().rposition(|it| it.action == action) else {
            return;
        };
        let Some(open) = stack.drain(at..).next() else {
            return;
        };
        let mut count = |object: ObjectId, action| {
            let uses = self.uses.get_mut(object.0 as usize);
            if let Some(it) = uses.and_then(|it| it.get_mut(&(goroutine, action))) {
                it.completed += 1;
            }
        };
        if let Some(object) = open.object {
            count(object, action);
        }
        if let Some(case) = case.and_then(|it| open.cases.get(it as usize))
            && let Some(channel) = case.channel
        {
            count(channel, case.action);
        }
        let reading = matches!(action, Action::RLock | Action::TryRLock);
        let locks = reading || matches!(action, Action::Lock | Action::TryLock);
        if let Some(object) = open.object.filter(|_| locks && ok)
            && let Some(holds) = self.holds.get_mut(object.0 as usize)
        {
            let hold = Hold {
                object,
                goroutine,
                site: open.site,
                event: index,
                reading,
            };
            holds.push(hold);
            self.held[goroutine.0 as usize].push(hold);
        }
    }

    fn park(&mut self, goroutine: GoroutineId, reason: WaitReason) {
        let Some(open) = self.open[goroutine.0 as usize].last_mut() else {
            return;
        };
        open.parked = true;
        if reason == WaitReason::Cond && open.action == Action::CondWait && !open.released {
            // Which lock it gave back was not seen: better none held than one too many.
            open.released = true;
            for hold in self.held[goroutine.0 as usize].drain(..) {
                self.holds[hold.object.0 as usize].retain(|it| it.event != hold.event);
            }
        }
    }

    /// The usage that `goroutine` is in, the innermost.
    pub fn open(&self, goroutine: GoroutineId) -> Option<&Open<'a>> {
        self.open.get(goroutine.0 as usize)?.last()
    }

    /// All usages that `goroutine` is in, outermost first.
    pub fn opened(&self, goroutine: GoroutineId) -> &[Open<'a>] {
        self.open
            .get(goroutine.0 as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Who holds `object`.
    pub fn holds(&self, object: ObjectId) -> &[Hold] {
        self.holds.get(object.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// What `goroutine` holds, in the order of locking.
    pub fn held_by(&self, goroutine: GoroutineId) -> &[Hold] {
        self.held
            .get(goroutine.0 as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Whether anybody but its owner ever unlocked `object`.
    pub fn is_handed_over(&self, object: ObjectId) -> bool {
        self.handed_over
            .get(object.0 as usize)
            .copied()
            .unwrap_or(false)
    }

    /// What a wait group counts.
    pub fn count(&self, object: ObjectId) -> i64 {
        self.counts.get(object.0 as usize).copied().unwrap_or(0)
    }

    /// What lies in a channel with room, the oldest first: who sent it, and where.
    ///
    /// Takes time linear in the events.
    pub fn content(&self, channel: ObjectId) -> Vec<(GoroutineId, Option<SiteId>)> {
        let mut inside = VecDeque::new();
        // A receiver that waited may say so before its sender does.
        let mut ahead = 0;
        let mut began: BTreeMap<GoroutineId, (Option<ObjectId>, &[Case])> = BTreeMap::new();
        for event in &self.execution.events {
            let Some(who) = event.goroutine else { continue };
            let did = match &event.what {
                What::Request { object, cases, .. } => {
                    began.insert(who, (*object, cases));
                    continue;
                }
                What::Complete {
                    action: Action::Select,
                    case: Some(case),
                    ok,
                } => {
                    let cases = began.get(&who).map_or(&[][..], |it| it.1);
                    let case = cases.get(*case as usize);
                    case.filter(|it| it.channel == Some(channel))
                        .map(|it| (it.action, *ok))
                }
                What::Complete { action, ok, .. } => began
                    .get(&who)
                    .filter(|it| it.0 == Some(channel))
                    .map(|_| (*action, *ok)),
                _ => None,
            };
            match did {
                Some((Action::Send, _)) if ahead > 0 => ahead -= 1,
                Some((Action::Send, _)) => inside.push_back((who, event.site)),
                Some((Action::Receive, true)) if inside.pop_front().is_none() => ahead += 1,
                _ => {}
            }
        }
        inside.into()
    }

    /// Who closed a channel, and where.
    pub fn closed(&self, object: ObjectId) -> Option<(GoroutineId, Option<SiteId>)> {
        self.closed.get(object.0 as usize).copied().flatten()
    }

    /// Who made a channel, and with which event.
    pub fn made(&self, object: ObjectId) -> Option<(GoroutineId, usize)> {
        self.made.get(object.0 as usize).copied().flatten()
    }

    /// Who used `object`, and how.
    pub fn uses(&self, object: ObjectId) -> &BTreeMap<(GoroutineId, Action), Use> {
        &self.uses[object.0 as usize]
    }

    /// The event that created `goroutine`.
    pub fn created(&self, goroutine: GoroutineId) -> Option<usize> {
        self.created.get(goroutine.0 as usize).copied().flatten()
    }

    /// The event with which `goroutine` ended.
    pub fn ended(&self, goroutine: GoroutineId) -> Option<usize> {
        self.ended.get(goroutine.0 as usize).copied().flatten()
    }
}

/// The channels of a `select`, each with what is done to it.
pub(crate) fn channels(cases: &[Case]) -> impl Iterator<Item = (ObjectId, Action)> + '_ {
    cases
        .iter()
        .filter_map(|case| Some((case.channel?, case.action)))
}
