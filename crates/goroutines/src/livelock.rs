//! Goroutines that go round and round, and nothing comes of it.
//!
//! Looked at is a window: the second half of a run that its time limit ended, or what came after the end of
//! `main`. In it nobody made *progress*: no value was passed on, no goroutine was made or ended, no line was
//! reached for the first time. And everybody who was not waiting for ever went through synchronisation again and again.
//! A goroutine that computes in silence, sleeps once, or waits for the outside makes the answer "no": it may yet
//! change something. So does one that comes to its usages with another stack in each round: it counts, or goes along
//! something, and will be done. After the end of `main` whoever sleeps between its rounds is no livelock either, but a service
//! in the background.

use crate::clock::is_struck;
use crate::execution::{
    Action, End, GoroutineId, ObjectId, ObjectKind, SiteId, State, WaitReason, What,
};
use crate::replay::Replay;
use crate::waits::{Waiting, live};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer rounds than this are no sign of anything.
const ROUNDS: usize = 50;

/// Fewer fingerprints than these tell nothing.
const PRINTS: usize = 8;

/// Who spins where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spin {
    pub goroutines: Vec<GoroutineId>,
    /// Lines of the loop: first those where something was tried in vain, then those of the function that was called
    /// first, then those passed most often.
    pub sites: Vec<SiteId>,
    /// How often the line that was passed most often was passed in the window.
    pub rounds: usize,
}

#[derive(Default)]
struct Round {
    sites: BTreeMap<SiteId, usize>,
    vain: BTreeSet<SiteId>,
    synchronises: bool,
    sleeps: bool,
    last: usize,
    /// Fingerprints of its stack where it was at a usage.
    prints: BTreeMap<(Option<SiteId>, u32), usize>,
}

impl Round {
    /// Whether what its stack holds hardly ever came back.
    fn counts(&self) -> bool {
        let all: usize = self.prints.values().sum();
        all >= PRINTS && self.prints.len() > all / 4
    }
}

pub(crate) fn spin(replay: &Replay<'_>, waiting: &Waiting) -> Option<Spin> {
    let execution = replay.execution;
    let events = &execution.events;
    let main = execution.main();
    let last = events.last()?.time;
    let start = match replay.ended(main).filter(|_| execution.main_ended) {
        Some(end) => end + 1,
        None if execution.end == End::TimedOut => events.partition_point(|it| it.time < last / 2),
        None => return None,
    };
    let reached: BTreeSet<(GoroutineId, SiteId)> = events[..start]
        .iter()
        .filter_map(|it| Some((it.goroutine?, it.site?)))
        .collect();
    let mut rounds: BTreeMap<GoroutineId, Round> = BTreeMap::new();
    let mut at = Replay::new(execution);
    let mut prints = execution.prints.iter().peekable();
    for (index, event) in events.iter().enumerate() {
        if index < start {
            at.step(index);
            continue;
        }
        let Some(id) = event.goroutine else {
            at.step(index);
            continue;
        };
        let own = execution
            .goroutines
            .get(id.0 as usize)
            .is_some_and(|it| !it.is_system);
        let by_the_clock = own && is_struck(&at, id, &event.what);
        if own && is_progress(&at, id, &event.what) {
            return None;
        }
        at.step(index);
        if !own {
            continue;
        }
        let round = rounds.entry(id).or_default();
        round.last = index;
        round.sleeps |= by_the_clock;
        if let What::Request { action, .. } = event.what {
            round.synchronises |= action != Action::Sleep;
            round.sleeps |= action == Action::Sleep;
            // What gives back says less than what takes.
            let gives = matches!(action, Action::Unlock | Action::RUnlock);
            if let Some(site) = event.site.filter(|_| !gives) {
                // A line that nobody had come to is progress, but for the first round of those that begin to spin.
                if execution.end == End::TimedOut && !reached.contains(&(id, site)) {
                    return None;
                }
                *round.sites.entry(site).or_default() += 1;
            }
        }
        while prints.next_if(|it| it.0 < index).is_some() {}
        if let Some((_, print)) = prints.next_if(|it| it.0 == index) {
            *round.prints.entry((event.site, *print)).or_default() += 1;
        }
        if let What::Complete { action, case, ok } = event.what
            && (!ok || action == Action::Select && case.is_none())
        {
            round.vain.extend(event.site);
        }
        if let What::Park(WaitReason::Sleep | WaitReason::Io) = event.what {
            round.sleeps = true;
        }
    }
    let spinning: BTreeSet<GoroutineId> = rounds
        .iter()
        .filter(|(_, it)| {
            let passed = it.sites.values().max().copied().unwrap_or(0);
            let to_the_end = it.last + events.len() / 10 >= events.len();
            passed >= ROUNDS
                && it.synchronises
                && to_the_end
                && !it.counts()
                && !(execution.main_ended && it.sleeps)
        })
        .map(|(id, _)| *id)
        .collect();
    // Everybody else waits for one of these, or for ever.
    let others_wait = live(execution).iter().all(|it| {
        spinning.contains(it)
            || execution.main_ended
            || waiting.of(*it).is_some()
                && !matches!(
                    execution.goroutines[it.0 as usize].state,
                    State::Waiting(
                        WaitReason::Io | WaitReason::Call | WaitReason::Sleep | WaitReason::Runtime
                    )
                )
    });
    if spinning.is_empty() || !others_wait || execution.timers > 0 && !execution.main_ended {
        return None;
    }
    let mut sites: BTreeMap<SiteId, usize> = BTreeMap::new();
    for id in &spinning {
        for (site, count) in &rounds[id].sites {
            *sites.entry(*site).or_default() += count;
        }
    }
    let vain: BTreeSet<SiteId> = spinning
        .iter()
        .flat_map(|it| &rounds[it].vain)
        .copied()
        .collect();
    let most = sites.values().max().copied().unwrap_or(0);
    let mut sites: Vec<(SiteId, usize)> = sites.into_iter().collect();
    // The loop is in the function of those that was called first; what it calls are parts of a round.
    let depth = |site: SiteId| {
        let name = |it: SiteId| execution.site(it).map(|it| &it.function);
        let stacks = spinning
            .iter()
            .filter_map(|it| execution.goroutines.get(it.0 as usize));
        let depths = stacks.filter_map(|it| {
            let mut frames = it.stack.iter().rev();
            frames.position(|it| name(*it) == name(site))
        });
        depths.min().unwrap_or(usize::MAX)
    };
    sites.sort_by_cached_key(|(site, count)| {
        let went_well = !vain.contains(site);
        (went_well, depth(*site), std::cmp::Reverse(*count), *site)
    });
    Some(Spin {
        rounds: most,
        sites: sites.into_iter().map(|it| it.0).collect(),
        goroutines: spinning.into_iter().collect(),
    })
}

/// Whether something came of it; `at` is the state before.
fn is_progress(at: &Replay<'_>, id: GoroutineId, what: &What) -> bool {
    let passes_on = |object: Option<ObjectId>| {
        let kind = object
            .and_then(|it| at.execution.objects.get(it.0 as usize))
            .map(|it| it.kind);
        kind != Some(ObjectKind::Timer) && object.is_none_or(|it| at.closed(it).is_none())
    };
    let object = at.open(id).and_then(|it| it.object);
    match what {
        What::Create(_) | What::End | What::Panic => true,
        What::Request { action, .. } => matches!(action, Action::Done | Action::Close),
        What::Complete { action, case, ok } => match action {
            Action::Send => true,
            Action::Receive => *ok && passes_on(object),
            Action::Select => {
                let open = at.open(id);
                let taken = case.and_then(|it| open?.cases.get(it as usize));
                taken.is_some_and(|it| it.action == Action::Send || passes_on(it.channel))
            }
            Action::Wait | Action::CondWait => true,
            _ => false,
        },
        _ => false,
    }
}
