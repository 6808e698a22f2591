//! The answer: who holds the others up, where, and why.

use crate::amiss;
use crate::cause::{Cause, Deed};
use crate::clause::{
    Amiss, At, Clause, Ended, Finish, Holds, Link, Look, Places, Potential, Unreceived, Verdict,
    Waiter, Wants, What,
};
use crate::ends::{crashed, is_last};
use crate::judgement::named;
use crate::misfit::{mismatched, raced, stolen};
use crate::nonempty::{NonEmpty, Subject};
use crate::progress::{Facts, Progress};
use crate::reason::{self, at, died_in, reason};
use crate::task::{Activity, Group, Kind, Place, Task};
use crate::watch::Standing;
use crate::whereabouts::{Iteration, Whereabouts, outermost};
use crate::which::which;
use lockstep_check::{Aspect, Loose, Mismatch};
use lockstep_comm::{Conversation, Operation};
use lockstep_diagnosis::{Disagreement, origin};
use lockstep_trace::EndKind;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// `potential` is a deadlock that buffering prevented, or what comes of it.
pub(crate) fn verdict(facts: &Facts<'_>, potential: Vec<What>) -> Verdict {
    let clauses = NonEmpty::new(clauses(facts, potential));
    clauses.map_or_else(Verdict::default, Verdict)
}

fn clauses(facts: &Facts<'_>, potential: Vec<What>) -> Vec<Clause> {
    let progress = facts.progress;
    let crashed = crashed(&progress.tasks);
    if !crashed.is_empty() {
        let ended = ended(facts, &crashed, facts.given.as_deref());
        let bare = ended.len();
        let mut told = with_cause(progress, with_misfit(facts, ended, &crashed));
        if let Some(chance) = facts.chance.filter(|_| told.len() == bare) {
            let race = raced(facts, chance).map(Potential::Race);
            told.extend(race.map(|it| What::Potential(it).into()));
        }
        return told;
    }
    let stops = |it: &&Disagreement| it.mismatch.prevents() && !is_past(progress, &it.mismatch);
    if let Some(stops) = progress.disagreements.iter().find(stops) {
        return with_way(progress, follows(facts, stops));
    }
    let left = crate::ends::ended(&progress.tasks, &progress.waiting);
    if !left.is_empty() {
        return with_misfit(facts, ended(facts, &left, None), &left);
    }
    let least = progress.holding();
    let told = match progress.kind {
        Kind::None => {
            let (reason, told) = quiet(facts, potential);
            return match reason.is_empty() {
                true => with_cause(progress, told),
                false => [with_cause(progress, reason), told].concat(),
            };
        }
        Kind::Deadlock => with_misfit(facts, deadlock(facts), &least),
        Kind::Livelock if !progress.waiting.stuck.is_empty() => deadlock(facts),
        Kind::Livelock | Kind::Slow => with_misfit(facts, held_up(progress), &least),
    };
    with_cause(progress, told)
}

/// An operation that cannot complete, behind the one in which the members went apart.
fn follows(facts: &Facts<'_>, stops: &Disagreement) -> Vec<Clause> {
    let origin = origin(&facts.progress.disagreements, stops);
    let of = |it| mismatched(facts, it).map(What::Mismatch);
    let mut told: Vec<Clause> = of(origin).map(Clause::from).into_iter().collect();
    if !std::ptr::eq(origin, stops) {
        let link = Link::Then;
        told.extend(of(stops).map(|what| Clause { link, what }));
    }
    told
}

/// Which call a task left out or made besides says more than which operation it made instead.
fn with_way(progress: &Progress, told: Vec<Clause>) -> Vec<Clause> {
    match progress.causes.first() {
        Some(cause) if cause.is_departure() && cause.by_normal() => caused(progress, cause, told),
        _ => told,
    }
}

fn with_cause(progress: &Progress, told: Vec<Clause>) -> Vec<Clause> {
    match progress.causes.first() {
        Some(cause) => caused(progress, cause, told),
        None => told,
    }
}

/// Whether all came to their end, whatever they had said.
fn is_past(progress: &Progress, mismatch: &Mismatch) -> bool {
    let mut tasks = progress.tasks.values();
    !mismatch.open && tasks.all(|it| it.activity == Activity::Finished)
}

/// What these tasks got that did not fit may be why they came no further.
fn with_misfit(facts: &Facts<'_>, mut told: Vec<Clause>, tasks: &[u32]) -> Vec<Clause> {
    let progress = facts.progress;
    let takes_part = |it: &&Disagreement| {
        let it = &it.mismatch;
        let mut parts = it.sides.iter().flat_map(|(_, parts)| parts);
        // With another grid, those who come together in it later are others.
        let bears = it.open || it.aspect == Aspect::Terms;
        bears && parts.any(|part| tasks.contains(&part.task))
    };
    if let Some(found) = progress.disagreements.iter().find(takes_part) {
        // Who differed before went on with something else than the others.
        let apart: BTreeSet<u32> = dissenters(found).collect();
        let is_alike = |it: &&Disagreement| dissenters(it).any(|task| apart.contains(&task));
        let first = progress.disagreements.iter().find(is_alike);
        let first = mismatched(facts, first.unwrap_or(found));
        told.extend(first.map(|it| What::Mismatch(it).into()));
        return told;
    }
    with_mistake(progress, told, tasks)
}

/// Who did not say what most said.
fn dissenters(of: &Disagreement) -> impl Iterator<Item = u32> {
    let few = of.mismatch.sides.iter().skip(1);
    few.flat_map(|(_, parts)| parts).map(|part| part.task)
}

/// What these tasks did wrong by themselves, or got that did not fit, may be why.
fn with_mistake(progress: &Progress, mut told: Vec<Clause>, tasks: &[u32]) -> Vec<Clause> {
    let is_killed = are_killed(progress);
    let has_ended = |task: &u32| {
        let task = progress.tasks.get(task);
        task.is_some_and(|it| it.activity == Activity::Ended)
    };
    let ended = tasks.iter().any(has_ended);
    let receives = |it: &&Loose| match it.end.misfit_of() {
        Some(to) => is_killed || tasks.contains(&to),
        // Where all were ended from outside, MPI may have done so for any of them.
        None => {
            let is_there = |task: &u32| is_killed || tasks.contains(task);
            let may_end_it = it.end.may_end_it() || ended && it.end.is_left();
            may_end_it && it.tasks.iter().any(is_there)
        }
    };
    // A library begins MPI before anything else is called, else nobody did.
    let calls_mpi = |task: &u32| {
        let stack = progress.group_of(*task).map_or(&[][..], |it| &it.stack);
        stack.iter().any(crate::ends::is_mpi)
    };
    match progress.loose.iter().find(receives) {
        Some(loose) => told.push(What::Loose(loose.clone()).into()),
        None if !progress.is_mpi && tasks.iter().any(calls_mpi) => told.push(What::NoInit.into()),
        None => {}
    }
    told
}

/// What a task did, and all that did the same: first if a normal run shows it, else behind what came of it.
fn caused(progress: &Progress, cause: &Cause, mut told: Vec<Clause>) -> Vec<Clause> {
    let is_alike = |it: &&Cause| it.by_normal() && it.is_told_as(cause);
    let alike = progress.causes.iter().filter(is_alike).map(|it| it.task);
    let who: BTreeSet<u32> = alike.chain([cause.task]).collect();
    let at = match cause.deed {
        Deed::Departed {
            by_normal: true, ..
        } => 0,
        _ => told.len(),
    };
    if let Some(who) = Subject::new(who.into_iter().collect()) {
        told.insert(at, What::Caused(who, cause.clone()).into());
    }
    told
}

/// The others that wait, where most of them are.
fn crowd(progress: &Progress, without: &BTreeSet<u32>) -> Option<What> {
    let largest = waiting_groups(progress, without).max_by_key(|it| it.tasks.len())?;
    // Of those that are in the deadlock it is said for whom.
    let core = progress.waiting.cores.iter().flatten();
    let in_core = core.filter(|it| largest.tasks.contains(it)).count();
    let why = match largest.tasks.as_slice() {
        [first, ..] if in_core == largest.tasks.len() => {
            let mut each = largest.tasks.iter().map(|it| reason(progress, *it));
            let reason = reason(progress, *first);
            reason.filter(|first| each.all(|it| it.as_ref() == Some(first)))
        }
        _ => None,
    };
    Some(What::Crowd {
        who: Subject::new(largest.tasks.clone())?,
        by_name: false,
        at: Whereabouts::of(largest),
        why,
    })
}

/// Groups that wait, without those of these tasks.
fn waiting_groups<'a>(
    progress: &'a Progress,
    without: &BTreeSet<u32>,
) -> impl Iterator<Item = &'a Group> {
    progress.groups.iter().filter(|group| {
        let is_one = |task| without.contains(task);
        group.activity == Activity::Communication && !group.tasks.iter().any(is_one)
    })
}

/// Of a deadlock, the message that may have been meant for those who are named in it.
pub(crate) fn unreceived(facts: &Facts<'_>) -> Option<Unreceived> {
    let progress = facts.progress;
    let subjects = || named(progress).into_iter().collect();
    (progress.kind == Kind::Deadlock)
        .then(|| amiss::unreceived(facts, &subjects()))
        .flatten()
}

/// Tasks that are named in a deadlock; those who wait alike together.
fn waiters(progress: &Progress, named: &[u32]) -> Vec<Waiter> {
    let mut waiters: Vec<Waiter> = Vec::new();
    for task in named {
        let Some(group) = progress.group_of(*task) else {
            continue;
        };
        let polls = progress.tasks.get(task).and_then(|it| it.polls.as_ref());
        let at = Some(match polls {
            Some(polls) => asks(group, &polls.name),
            None => At::In(Whereabouts::of(group)),
        });
        let why = reason(progress, *task);
        let alike = waiters.iter_mut().find(|it| it.at == at && it.why == why);
        match alike {
            Some(it) => it.who.push(*task),
            None => waiters.push(Waiter {
                who: Subject::one(*task),
                at,
                why,
            }),
        }
    }
    // Who came to its end while others wait for it is not left out.
    let is_at_an_end = |it: &Waiter| {
        let group = progress.group_of(*it.who.first());
        group.is_some_and(|it| it.stack.iter().any(is_last))
    };
    if let Some(at) = waiters.iter().position(is_at_an_end)
        && at >= MOST_CLAUSES
    {
        waiters.swap(at, MOST_CLAUSES - 1);
    }
    // A deadlock has a subject, wherever that is.
    if waiters.is_empty() {
        let who = Subject::new(progress.waiting.stuck.iter().copied().collect());
        let (at, why) = (None, None);
        waiters.extend(who.map(|who| Waiter { who, at, why }));
    }
    waiters
}

fn deadlock(facts: &Facts<'_>) -> Vec<Clause> {
    let progress = facts.progress;
    let named = named(progress);
    let subjects: BTreeSet<u32> = named.iter().copied().collect();
    let mut waiters = waiters(progress, &named);
    let left = waiters.split_off(waiters.len().min(MOST_CLAUSES));
    let stuck = NonEmpty::new(waiters).map(|waiters| What::Stuck {
        is_livelock: progress.kind == Kind::Livelock,
        waiters,
        more: left.iter().map(|it| it.who.len()).sum(),
    });
    let which = which(facts, &subjects.iter().copied().collect::<Vec<u32>>());
    let which = which.map(|(task, calls)| What::Began(task, calls));
    let stolen = stolen(facts, &subjects).map(|(task, call)| What::Stolen(task, call));
    let all = (stuck.into_iter().chain(which))
        .chain(kept_locks(progress))
        .chain(amiss(facts, &subjects).map(What::Amiss))
        .chain(stolen)
        .chain(crowd(progress, &subjects))
        .chain(truants(progress));
    all.map(Clause::from).collect()
}

/// Why a message does not come that those wait for.
fn amiss(facts: &Facts<'_>, subjects: &BTreeSet<u32>) -> Option<Amiss> {
    let unreceived = || {
        let stray = amiss::unreceived(facts, subjects)?;
        // That it is another than the one that is waited for says more.
        let first = facts.progress.causes.first();
        let is_of_it = |it: &Cause| {
            it.is_of_a_message_of(stray.from) || it.task == stray.from && it.left_a_message_out()
        };
        (!first.is_some_and(is_of_it)).then_some(Amiss::Unreceived(stray))
    };
    amiss::unstarted(facts, subjects)
        .or_else(|| amiss::not_received(facts, subjects))
        .or_else(|| amiss::other_tag_wanted(facts, subjects))
        .or_else(unreceived)
        .or_else(|| amiss::sent_elsewhere(facts, subjects))
}

/// Where locks were taken that others wait for; first of those who are over.
fn kept_locks(progress: &Progress) -> impl Iterator<Item = What> {
    let over = progress.kept.iter().filter(|it| it.is_over);
    let others = progress.kept.iter().filter(|it| !it.is_over);
    over.chain(others).take(reason::MOST).map(|kept| {
        // What the program's own line calls, whatever a header of the system does there.
        let is_own = |it: &Place| {
            let line = it.called_at.as_ref();
            line.is_some_and(|it| !it.is_of_the_system())
        };
        let depth = kept.stack.iter().rposition(is_own);
        let depth = depth.map_or(kept.stack.len(), |at| at + 1);
        let mut stack = kept.stack[..depth].to_vec();
        if let Some(last) = stack.last_mut() {
            last.imported = true;
        }
        What::Took {
            thread: kept.thread,
            at: Whereabouts::of_stack(&stack),
            is_over: kept.is_over,
        }
    })
}

/// Who did not come to a barrier of its process.
fn truants(progress: &Progress) -> impl Iterator<Item = What> {
    progress.truants.values().cloned().map(What::Truant)
}

/// So many that wait for different things are told of.
const MOST_CLAUSES: usize = 2;

/// Of who asks again and again: the loop around that.
fn asks(group: &Group, name: &std::sync::Arc<str>) -> At {
    let own = group.stack.iter().rev().find(|it| !it.imported);
    let call = group.stack.iter().find(|it| it.function == **name);
    let asking = format!("/{name}");
    let outer = match group.loops.split_last() {
        Some(((innermost, _), outer)) if innermost.ends_with(&asking) => outer,
        _ => &group.loops,
    };
    At::Asking {
        name: name.clone(),
        line: call.and_then(|it| it.called_at.clone()),
        caller: own.map(|it| it.function.clone()),
        iteration: Iteration::of(outermost(group), outer),
    }
}

/// Nobody called anything for that long.
fn silent(progress: &Progress, quiet: Duration) -> Vec<Clause> {
    let is_there = |it: &&Group| !matches!(it.activity, Activity::Finished | Activity::Ended);
    let at = places(progress.groups.iter().filter(is_there));
    let mut waits: Vec<(Subject, Wants)> = Vec::new();
    for (task, wants) in progress.wants() {
        match waits.iter_mut().find(|it| it.1 == wants) {
            Some((who, _)) => who.push(task),
            None => waits.push((Subject::one(task), wants)),
        }
    }
    let waits = NonEmpty::new(waits).filter(|it| it.len() <= MOST_CLAUSES);
    let wrong = progress.loose.iter().find(|it| it.end.may_end_it());
    let wrong = wrong.cloned().map(What::Loose).into_iter();
    let all = wrong
        .chain([What::Silent { quiet, at }])
        .chain(waits.map(What::Waits))
        .chain(truants(progress));
    all.map(Clause::from).collect()
}

/// The first few groups.
fn places<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Places> {
    let place = |it: &Group| Some((Subject::new(it.tasks.clone())?, Whereabouts::of(it)));
    let mut all: Vec<_> = groups.filter_map(place).collect();
    let more = all.len() > MOST_PLACES;
    all.truncate(MOST_PLACES);
    let groups = NonEmpty::new(all)?;
    Some(Places { groups, more })
}

/// Whether all of these wait in collective operations, it is not known for whom: they may be victims as others are.
fn is_blind(progress: &Progress, tasks: &[u32]) -> bool {
    let waits = |task: &u32| {
        let blind = &progress.waiting.blind;
        blind.contains(task) && !progress.waiting.partly.contains(task)
    };
    !tasks.is_empty() && tasks.iter().all(waits)
}

/// The others that wait where most of them are, in whichever iteration.
fn all_others(progress: &Progress, without: &BTreeSet<u32>) -> Option<What> {
    let apart = |group: &Group| Whereabouts::of(group).in_any_iteration();
    let at = apart(waiting_groups(progress, without).max_by_key(|it| it.tasks.len())?);
    let there = waiting_groups(progress, without).filter(|it| apart(it) == at);
    let there: Vec<&Group> = there.collect();
    if there.len() == 1 {
        return crowd(progress, without);
    }
    let mut tasks: Vec<u32> = there.iter().flat_map(|it| it.tasks.clone()).collect();
    tasks.sort_unstable();
    Some(What::Crowd {
        who: Subject::new(tasks)?,
        by_name: true,
        at,
        why: None,
    })
}

/// Who holds the others up, and where these wait.
pub(crate) fn held_up(progress: &Progress) -> Vec<Clause> {
    let tasks = progress.holding();
    let subjects: BTreeSet<u32> = tasks.iter().copied().collect();
    let is_blind = is_blind(progress, &tasks);
    let others = match is_blind {
        true => all_others(progress, &subjects),
        false => crowd(progress, &subjects),
    };
    let groups = progress.least.iter().map(|it| &progress.groups[*it]);
    let place = |it: &Group| Some((Subject::new(it.tasks.clone())?, Whereabouts::of(it)));
    let holders: Vec<_> = groups.filter_map(place).collect();
    let holding = match is_blind {
        true => NonEmpty::new(holders).map(What::Blind),
        false => {
            let with_reason = |(who, at): (Subject, Whereabouts)| {
                let why = holds(progress, *who.first());
                (who, at, why)
            };
            let holders = holders.into_iter().map(with_reason).collect();
            NonEmpty::new(holders).map(|holders| What::Holding {
                is_livelock: progress.kind == Kind::Livelock,
                holders,
                look: Look::There,
            })
        }
    };
    others
        .into_iter()
        .chain(holding)
        .map(Clause::from)
        .collect()
}

/// Why a task that holds others up does not come.
fn holds(progress: &Progress, task: u32) -> Option<Holds> {
    let partly = progress.waiting.partly.contains(&task);
    let reason = partly.then(|| reason(progress, task)).flatten();
    let doubt = || progress.doubts.get(&task).cloned().map(Holds::Doubts);
    let truant = || progress.truants.get(&task).cloned().map(Holds::Truant);
    reason.map(Holds::Waits).or_else(doubt).or_else(truant)
}

impl Progress {
    /// Says what a watch found of a run that still goes on: whether a task hangs, how, and the answer.
    pub fn settle(&mut self, standing: Standing) {
        let told = match standing {
            Standing::No if self.hang => {
                (self.hang, self.kind) = (false, Kind::None);
                self.causes.clear();
                vec![What::NotSeen { moved: true }.into()]
            }
            Standing::No | Standing::Hangs(Kind::Deadlock) => return,
            Standing::Hangs(kind) => {
                (self.hang, self.kind) = (true, kind);
                if kind != Kind::Livelock || !self.waiting.stuck.is_empty() {
                    return;
                }
                with_mistake(self, held_up(self), &self.holding())
            }
            Standing::Silent(quiet) => {
                (self.hang, self.kind) = (true, Kind::Slow);
                silent(self, quiet)
            }
        };
        self.verdict = NonEmpty::new(told).map_or_else(Verdict::default, Verdict);
    }

    /// Says it as of a job that may go on yet: who holds the others up is slow so far.
    pub fn so_far(&mut self) {
        for it in self.verdict.0.iter_mut() {
            if let What::Holding { look, .. } = &mut it.what {
                *look = match self.kind {
                    Kind::Slow => Look::SlowSoFar,
                    _ => Look::SoFar,
                };
            }
        }
    }
}

/// The last call of MPI of a task's only thread that made some, if it returned.
pub(crate) fn last_call(conversation: &Conversation) -> Option<(usize, &Operation)> {
    let last = conversation.operations.len().checked_sub(1)?;
    let operation = conversation.operations.get(last)?;
    (operation.returned && !conversation.is_threaded()).then_some((last, operation))
}

/// `given` are the arguments of the call that the first of them is in.
fn ended(facts: &Facts<'_>, tasks: &[u32], given: Option<&str>) -> Vec<Clause> {
    let progress = facts.progress;
    let first = tasks.first().and_then(|it| progress.tasks.get(it));
    let Some((task, more)) = first.zip(tasks.get(1..)) else {
        return Vec::new();
    };
    let group = progress.group_of(task.number);
    let thread = died_in(progress, task.number);
    let place = |group: &Group| {
        let mut at = Whereabouts::of(group);
        if let Some(call) = &mut at.call {
            call.given = given.map(str::to_owned);
        }
        at
    };
    let at = match thread {
        Some(of) => Some(self::at(progress, of)),
        None => group.filter(|it| !it.stack.is_empty()).map(place),
    };
    // Of a task that ended in its own code, the last call of MPI that is known.
    let after = || {
        let conversation = facts.conversations.get(&task.number)?;
        let call = facts.sites.call(conversation, last_call(conversation)?.0)?;
        let is_told = call.site.is_some() && !group?.stack.iter().any(crate::ends::is_mpi);
        is_told.then_some(call)
    };
    // A launcher ends in its own way, and threads with their process.
    let is_alike = |it: &&Task| {
        !it.is_launcher && it.end == task.end && it.trace.process != task.trace.process
    };
    let others = more.iter().filter_map(|it| progress.tasks.get(it));
    let ended = What::Ended(Ended {
        task: task.number,
        end: task.end,
        early: !task.crashed,
        thread,
        at,
        after: after(),
        more: others.filter(is_alike).count(),
    });
    let subjects: BTreeSet<u32> = tasks.iter().copied().collect();
    let all = [ended].into_iter().chain(crowd(progress, &subjects));
    all.map(Clause::from).collect()
}

/// What is said of a run that does not hang; and where it was ended from outside, why MPI may have done that.
fn quiet(facts: &Facts<'_>, potential: Vec<What>) -> (Vec<Clause>, Vec<Clause>) {
    let progress = facts.progress;
    let is_over = |it: Activity| matches!(it, Activity::Finished | Activity::Ended);
    let are_over = progress.tasks.values().all(|it| is_over(it.activity));
    let killed = killed(progress).filter(|_| !are_over);
    let is_killed = killed.is_some();
    let first = match are_over {
        true => What::Over(over(progress)),
        false => killed.unwrap_or(What::NotSeen { moved: false }),
    };
    let (why, may_end_it) = match (progress.disagreements.first(), progress.loose.first()) {
        (Some(first), _) => {
            let first = mismatched(facts, first).map(What::Mismatch);
            (Vec::from_iter(first), true)
        }
        (None, _) if !potential.is_empty() => (potential, false),
        (None, Some(loose)) => {
            let never_started = amiss::never_started(facts, loose).map(What::Amiss);
            let may_end_it = loose.end.may_end_it() || loose.end.misfit_of().is_some();
            let loose = [What::Loose(loose.clone())].into_iter();
            (loose.chain(never_started).collect(), may_end_it)
        }
        (None, None) => {
            let told = [first].into_iter().chain(truants(progress));
            return (Vec::new(), told.map(Clause::from).collect());
        }
    };
    let mut why: Vec<Clause> = why.into_iter().map(Clause::from).collect();
    if is_killed && may_end_it {
        return (why, vec![first.into()]);
    }
    if let Some(first) = why.first_mut() {
        first.link = Link::But;
    }
    let told = [first.into()].into_iter().chain(why);
    (Vec::new(), told.collect())
}

/// Who was ended from outside: some launchers end all others where MPI ends one, before it has.
fn killed(progress: &Progress) -> Option<What> {
    let is_over = |it: &Group| it.activity == Activity::Finished;
    if !progress.is_mpi || !are_killed(progress) {
        return None;
    }
    let at = places(progress.groups.iter().filter(|it| !is_over(it)))?;
    let tasks = progress.tasks.values();
    let finished = tasks.filter(|it| it.activity == Activity::Finished);
    Some(What::Killed {
        finished: by_status(finished),
        at,
    })
}

/// How all tasks came to their end; of ranks with other statuses, each status: that is no crash, but worth a word.
pub(crate) fn over(progress: &Progress) -> Finish {
    let mut tasks = progress.tasks.values();
    let is_well =
        |it: &Task| it.end.kind != EndKind::Exited || it.end.code.is_none_or(|it| it == 0);
    match progress.is_mpi && !tasks.all(is_well) {
        true => Finish::ByStatus(by_status(progress.tasks.values())),
        false => Finish::Counted(progress.tasks.len()),
    }
}

/// Who ended with which status: for some of them launchers end the others.
fn by_status<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<(i32, Subject)> {
    let mut by_status: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
    for task in tasks {
        let code = task.end.code.filter(|_| task.end.kind == EndKind::Exited);
        let status = by_status.entry(code.unwrap_or(0)).or_default();
        status.push(task.number);
    }
    let each = by_status.into_iter();
    each.filter_map(|(status, who)| Some((status, Subject::new(who)?)))
        .collect()
}

/// Whether all tasks that did not come to their end were ended from outside.
fn are_killed(progress: &Progress) -> bool {
    let is_killed = |it: &Task| matches!(it.end.kind, EndKind::Killed | EndKind::Signalled);
    let tasks = progress.tasks.values();
    let mut going = tasks.filter(|it| it.activity != Activity::Finished);
    going.all(is_killed)
}

/// So many groups are told of.
const MOST_PLACES: usize = 4;
