//! One sentence: who holds the others up, where, and why.

use crate::call_words::{mismatched, race, stolen};
use crate::cause::{Cause, Deed};
use crate::ends::{crashed, is_last};
use crate::judgement::named;
use crate::loose_words;
use crate::place_words::{iteration, numbered, outermost, place, place_with, who};
use crate::progress::{Facts, Progress};
use crate::stray_words;
use crate::strays::Unreceived;
use crate::task::{Activity, Group, Kind, Task};
use crate::thread_words::{at, died_in, kept_locks, thread, truant};
use crate::watch::Standing;
use crate::which::which;
use crate::why_words::reasons;
use lockstep_check::{Aspect, Loose, Mismatch};
use lockstep_comm::{Conversation, Operation};
use lockstep_diagnosis::{Disagreement, origin};
use lockstep_trace::{EndKind, brief};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// `potential` is a deadlock that buffering prevented, in words.
pub(crate) fn sentence(facts: &Facts<'_>, potential: Option<&str>) -> String {
    let progress = facts.progress;
    let crashed = crashed(&progress.tasks);
    if !crashed.is_empty() {
        let ended = ended(facts, &crashed, facts.given.as_deref());
        let text = with_cause(progress, with_misfit(facts, ended.clone(), &crashed));
        return match facts.chance.filter(|_| text == ended) {
            Some(chance) => format!("{ended}; {}", race(facts, chance)),
            None => text,
        };
    }
    let stops = |it: &&Disagreement| it.mismatch.prevents() && !is_past(progress, &it.mismatch);
    if let Some(stops) = progress.disagreements.iter().find(stops) {
        return with_way(progress, follows(facts, stops));
    }
    let left = crate::ends::ended(&progress.tasks, &progress.waiting);
    if !left.is_empty() {
        return with_misfit(facts, ended(facts, &left, None), &left);
    }
    let least = least(progress);
    let text = match progress.kind {
        Kind::None => {
            let (reason, text) = quiet(facts, potential);
            return match reason {
                Some(reason) => format!("{}; {text}", with_cause(progress, reason)),
                None => with_cause(progress, text),
            };
        }
        Kind::Deadlock => with_misfit(facts, deadlock(facts), &least),
        Kind::Livelock if !progress.waiting.stuck.is_empty() => deadlock(facts),
        Kind::Livelock | Kind::Slow => with_misfit(facts, held_up(progress), &least),
    };
    with_cause(progress, text)
}

/// An operation that cannot complete, behind the one in which the members went apart.
fn follows(facts: &Facts<'_>, stops: &Disagreement) -> String {
    let origin = origin(&facts.progress.disagreements, stops);
    let text = mismatched(facts, origin);
    match std::ptr::eq(origin, stops) {
        true => text,
        false => format!("{text}; then {}", mismatched(facts, stops)),
    }
}

/// Which call a task left out or made besides says more than which operation it made instead.
fn with_way(progress: &Progress, text: String) -> String {
    match progress.causes.first() {
        Some(cause) if cause.is_departure() && cause.by_normal() => caused(progress, cause, &text),
        _ => text,
    }
}

fn with_cause(progress: &Progress, text: String) -> String {
    match progress.causes.first() {
        Some(cause) => caused(progress, cause, &text),
        None => text,
    }
}

/// The least-progressed tasks.
fn least(progress: &Progress) -> Vec<u32> {
    let groups = progress.least.iter().map(|it| &progress.groups[*it]);
    groups.flat_map(|it| &it.tasks).copied().collect()
}

/// What a watch tells of a job whose tasks call on and on.
pub(crate) fn livelocked(progress: &Progress) -> String {
    with_mistake(progress, held_up(progress), &least(progress))
}

/// Whether all came to their end, whatever they had said.
fn is_past(progress: &Progress, mismatch: &Mismatch) -> bool {
    let mut tasks = progress.tasks.values();
    !mismatch.open && tasks.all(|it| it.activity == Activity::Finished)
}

/// What these tasks got that did not fit may be why they came no further.
fn with_misfit(facts: &Facts<'_>, text: String, tasks: &[u32]) -> String {
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
        return format!("{text}; {}", mismatched(facts, first.unwrap_or(found)));
    }
    with_mistake(progress, text, tasks)
}

/// Who did not say what most said.
fn dissenters(of: &Disagreement) -> impl Iterator<Item = u32> {
    let few = of.mismatch.sides.iter().skip(1);
    few.flat_map(|(_, parts)| parts).map(|part| part.task)
}

/// What these tasks did wrong by themselves, or got that did not fit, may be why.
fn with_mistake(progress: &Progress, text: String, tasks: &[u32]) -> String {
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
        Some(loose) => format!("{text}; {}", loose_words::sentence(loose)),
        None if !progress.is_mpi && tasks.iter().any(calls_mpi) => {
            format!("{text}; no process had called MPI_Init")
        }
        None => text,
    }
}

/// `rank 2 went ahead: it left out MPI_Isend at halo.c:77 in exchange() (call 21), unlike in a normal run; ...`.
fn caused(progress: &Progress, cause: &Cause, text: &str) -> String {
    let what = cause.sentence();
    let is_alike = |it: &&Cause| it.by_normal() && it.sentence() == what;
    let alike = progress.causes.iter().filter(is_alike).map(|it| it.task);
    let mut tasks: Vec<u32> = alike.chain([cause.task]).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let who = who(progress, &tasks);
    match &cause.deed {
        Deed::Departed { by_normal, .. } if *by_normal => {
            let it = if tasks.len() == 1 { "it" } else { "they" };
            format!("{who} went ahead: {it} {what}, unlike in a normal run; {text}")
        }
        Deed::Departed { .. } => format!("{text}; {who} {what}, unlike in all its calls before"),
        _ => format!("{text}; {who} {what}"),
    }
}

/// The others that wait, where most of them are.
fn crowd(progress: &Progress, without: &BTreeSet<u32>) -> Option<String> {
    let waiting = |group: &&Group| {
        group.activity == Activity::Communication
            && !group.tasks.iter().any(|task| without.contains(task))
    };
    let largest = progress
        .groups
        .iter()
        .filter(waiting)
        .max_by_key(|group| group.tasks.len())?;
    let verb = if largest.tasks.len() == 1 {
        "waits"
    } else {
        "wait"
    };
    let many = largest.tasks.len() > 3;
    let subject = match many {
        true => format!(
            "{} of {} {}s",
            largest.tasks.len(),
            progress.tasks.len(),
            if progress.is_mpi { "rank" } else { "thread" }
        ),
        false => who(progress, &largest.tasks),
    };
    // Of those that are in the deadlock it is said for whom.
    let core = progress.waiting.cores.iter().flatten();
    let in_core = core.filter(|it| largest.tasks.contains(it)).count();
    let why = match largest.tasks.as_slice() {
        [first, ..] if in_core == largest.tasks.len() => {
            let mut each = largest.tasks.iter().map(|it| reasons(progress, *it));
            let reason = reasons(progress, *first);
            reason.filter(|first| each.all(|it| it.as_ref() == Some(first)))
        }
        _ => None,
    };
    let why = why.map_or(String::new(), |it| format!(", {it}"));
    Some(format!("{subject} {verb} {}{why}", place(largest)))
}

/// Of a deadlock, the message that may have been meant for those who are named in it.
pub(crate) fn unreceived(facts: &Facts<'_>) -> Option<Unreceived> {
    let progress = facts.progress;
    let subjects = || named(progress).into_iter().collect();
    (progress.kind == Kind::Deadlock)
        .then(|| stray_words::hint(facts, &subjects()))
        .flatten()
}

fn deadlock(facts: &Facts<'_>) -> String {
    let progress = facts.progress;
    let named = named(progress);
    let subjects: BTreeSet<u32> = named.iter().copied().collect();
    // Those who wait alike are told together.
    let mut clauses: Vec<(String, Vec<u32>)> = Vec::new();
    for task in named {
        let Some(group) = progress.group_of(task) else {
            continue;
        };
        let reason = reasons(progress, task).map_or(String::new(), |it| format!(", {it}"));
        let polls = progress.tasks.get(&task).and_then(|it| it.polls.as_ref());
        let place = match polls {
            Some(polls) => asks(group, &polls.name),
            None => place(group),
        };
        let text = format!("{place}{reason}");
        match clauses.iter_mut().find(|it| it.0 == text) {
            Some((_, tasks)) => tasks.push(task),
            None => clauses.push((text, vec![task])),
        }
    }
    // Who came to its end while others wait for it is not left out.
    let is_at_an_end = |it: &(String, Vec<u32>)| {
        let group = it.1.first().and_then(|task| progress.group_of(*task));
        group.is_some_and(|it| it.stack.iter().any(is_last))
    };
    if let Some(at) = clauses.iter().position(is_at_an_end)
        && at >= MOST_CLAUSES
    {
        clauses.swap(at, MOST_CLAUSES - 1);
    }
    let left: usize = clauses.iter().skip(MOST_CLAUSES).map(|it| it.1.len()).sum();
    let mut said: Vec<String> = clauses
        .iter()
        .take(MOST_CLAUSES)
        .map(|(text, tasks)| {
            let verb = if tasks.len() == 1 { "waits" } else { "wait" };
            format!("{} {verb} {text}", who(progress, tasks))
        })
        .collect();
    if left > 0 {
        said.push(format!("and {left} more of them"));
    }
    let kind = match progress.kind {
        Kind::Livelock => "livelock",
        _ => "deadlock",
    };
    let mut text = format!("{kind}: {}", said.join("; "));
    let which = which(facts, &subjects.iter().copied().collect::<Vec<u32>>());
    for clause in which.into_iter().chain(kept_locks(progress)) {
        text.push_str(&format!("; {clause}"));
    }
    let hint = stray_words::unstarted(facts, &subjects)
        .or_else(|| stray_words::not_received(facts, &subjects));
    let hint = hint.or_else(|| stray_words::other_tag_wanted(facts, &subjects));
    let hint = hint.or_else(|| {
        let stray = stray_words::hint(facts, &subjects)?;
        // That it is another than the one that is waited for says more.
        let first = progress.causes.first();
        let is_of_it = |it: &Cause| {
            it.is_of_a_message_of(stray.from) || it.task == stray.from && it.left_a_message_out()
        };
        if first.is_some_and(is_of_it) {
            return None;
        }
        Some(format!(
            "{} {}",
            who(progress, &[stray.from]),
            stray.sentence
        ))
    });
    let hint = hint.or_else(|| stray_words::sent_elsewhere(facts, &subjects));
    for hint in hint.into_iter().chain(stolen(facts, &subjects)) {
        text.push_str(&format!("; {hint}"));
    }
    if let Some(crowd) = crowd(progress, &subjects) {
        text.push_str(&format!("; {crowd}"));
    }
    with_truants(progress, text)
}

/// Who did not come to a barrier of its process.
fn with_truants(progress: &Progress, mut text: String) -> String {
    let truants = progress.truants.keys();
    for truant in truants.filter_map(|it| truant(progress, *it)) {
        text.push_str(&format!("; {truant}"));
    }
    text
}

/// So many that wait for different things are told of.
const MOST_CLAUSES: usize = 2;

/// `calling MPI_Test on and on at halo.c:77 in poll(), iteration 812`: of a loop around the one that asks.
fn asks(group: &Group, name: &str) -> String {
    let own = group.stack.iter().rev().find(|it| !it.imported);
    let calls = group.stack.iter().position(|it| it.function == name);
    let line = calls.and_then(|at| group.stack[at].called_at.as_ref());
    let mut text = format!("calling {name} on and on");
    if let Some(line) = line {
        text.push_str(&format!(" at {}", line.brief()));
    }
    if let Some(own) = own {
        text.push_str(&format!(" in {}", brief(&own.function)));
    }
    let asking = format!("/{name}");
    let outer = match group.loops.split_last() {
        Some(((innermost, _), outer)) if innermost.ends_with(&asking) => outer,
        _ => &group.loops,
    };
    text.push_str(&iteration(outermost(group), outer).unwrap_or_default());
    text
}

/// Who was seen to wait went on.
pub(crate) fn moving() -> String {
    "no task is seen to hang: between two looks, tasks moved".to_owned()
}

/// `nobody called anything for 60 s: rank 0 in poll at a.c:9 in main(), rank 1 in MPI_Recv at a.c:12 in main(); rank 1 waits for a
/// message from rank 0`.
pub(crate) fn silent(progress: &Progress, quiet: Duration) -> String {
    let seconds = quiet.as_secs();
    let mut text = format!("nobody called anything for {seconds} s");
    let is_there = |it: &&Group| !matches!(it.activity, Activity::Finished | Activity::Ended);
    let there = places(progress, progress.groups.iter().filter(is_there));
    if !there.is_empty() {
        text.push_str(&format!(": {there}"));
    }
    let waits = progress.waits_told();
    if waits.len() <= MOST_CLAUSES {
        for wait in waits {
            text.push_str(&format!("; {wait}"));
        }
    }
    text = with_truants(progress, text);
    let wrong = progress.loose.iter().find(|it| it.end.may_end_it());
    match wrong {
        Some(wrong) => format!("{}; {text}", loose_words::sentence(wrong)),
        None => text,
    }
}

/// `rank 0 in MPI_Send at a.c:9 in main(), ranks 1-3 in MPI_Recv at a.c:11 in main()`, of the first few groups.
fn places<'a>(progress: &Progress, mut groups: impl Iterator<Item = &'a Group>) -> String {
    let clauses = groups.by_ref().take(MOST_PLACES);
    let clauses = clauses.map(|it| format!("{} {}", who(progress, &it.tasks), place(it)));
    let mut text = clauses.collect::<Vec<_>>().join(", ");
    if groups.next().is_some() {
        text.push_str(", and others elsewhere");
    }
    text
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
fn all_others(progress: &Progress, without: &BTreeSet<u32>) -> Option<String> {
    let waits = |it: &&Group| {
        it.activity == Activity::Communication
            && !it.tasks.iter().any(|task| without.contains(task))
    };
    let groups = || progress.groups.iter().filter(waits);
    let largest = groups().max_by_key(|it| it.tasks.len())?;
    let apart = |group: &Group| {
        place(&Group {
            loops: Vec::new(),
            ..group.clone()
        })
    };
    let at = apart(largest);
    let mut there = groups().filter(|it| apart(it) == at);
    if there.clone().count() == 1 {
        return crowd(progress, without);
    }
    let mut tasks: Vec<u32> = there.by_ref().flat_map(|it| it.tasks.clone()).collect();
    tasks.sort_unstable();
    Some(format!("{} wait {at}", who(progress, &tasks)))
}

pub(crate) fn held_up(progress: &Progress) -> String {
    let tasks: Vec<u32> = progress
        .least
        .iter()
        .flat_map(|group| &progress.groups[*group].tasks)
        .copied()
        .collect();
    let subjects: BTreeSet<u32> = tasks.iter().copied().collect();
    let others = match is_blind(progress, &tasks) {
        true => all_others(progress, &subjects),
        false => crowd(progress, &subjects),
    };
    let mut text = others.map_or(String::new(), |it| format!("{it}; "));
    if is_blind(progress, &tasks) {
        let waits = |group: &usize| {
            let group = &progress.groups[*group];
            let verb = if group.tasks.len() == 1 {
                "waits"
            } else {
                "wait"
            };
            let who = who(progress, &group.tasks);
            format!("{who} {verb} {}", place(group))
        };
        let clauses: Vec<String> = progress.least.iter().map(waits).collect();
        return format!("{text}{}, for whom is not known", clauses.join(", "));
    }
    let clauses: Vec<String> = progress
        .least
        .iter()
        .map(|group| {
            let group = &progress.groups[*group];
            let verb = if group.tasks.len() == 1 { "is" } else { "are" };
            let how = match progress.kind {
                Kind::Livelock => "calling on and on",
                _ => "still",
            };
            let task = group.tasks.first().copied();
            let partly = task.filter(|it| progress.waiting.partly.contains(it));
            let reason = partly.and_then(|it| reasons(progress, it));
            let doubt = || task.and_then(|it| progress.doubts.get(&it)).cloned();
            let truant = || task.and_then(|it| truant(progress, it));
            let reason = reason.or_else(doubt).or_else(truant);
            format!(
                "{} {verb} {how} {}{}",
                who(progress, &group.tasks),
                place(group),
                reason.map_or(String::new(), |it| format!(", {it}"))
            )
        })
        .collect();
    text.push_str(&clauses.join(", "));
    text.push_str(LOOK);
    text
}

impl Progress {
    /// Says what a watch found of a run that still goes on: whether a task hangs, how, and the sentence.
    pub fn settle(&mut self, standing: Standing) {
        match standing {
            Standing::No if self.hang => {
                (self.hang, self.kind) = (false, Kind::None);
                self.causes.clear();
                self.verdict = moving();
            }
            Standing::No | Standing::Hangs(Kind::Deadlock) => {}
            Standing::Hangs(kind) => {
                (self.hang, self.kind) = (true, kind);
                if kind == Kind::Livelock && self.waiting.stuck.is_empty() {
                    self.verdict = livelocked(self);
                }
            }
            Standing::Silent(quiet) => {
                (self.hang, self.kind) = (true, Kind::Slow);
                self.verdict = silent(self, quiet);
            }
        }
    }

    /// Says it as of a job that may go on yet: who holds the others up is slow so far.
    pub fn so_far(&mut self) {
        self.verdict = so_far(&self.verdict, self.kind);
    }
}

/// Behind where they are who hold the others up.
const LOOK: &str = ": look there";

/// The same of a job that may go on yet.
pub(crate) fn so_far(verdict: &str, kind: Kind) -> String {
    let word = if kind == Kind::Slow {
        "slow so far"
    } else {
        "so far"
    };
    verdict.replacen(LOOK, &format!(": {word}"), 1)
}

/// ` after MPI_Send at a.c:9`: of a task that ended in its own code, the last call of MPI that is known.
fn before(facts: &Facts<'_>, task: u32) -> Option<String> {
    let conversation = facts.conversations.get(&task)?;
    let (last, operation) = last_call(conversation)?;
    let group = facts.progress.group_of(task)?;
    let at = facts.sites.of(conversation, last);
    let is_told = !at.is_empty() && !group.stack.iter().any(crate::ends::is_mpi);
    is_told.then(|| format!(" after {}{at}", operation.name))
}

/// The last call of MPI of a task's only thread that made some, if it returned.
pub(crate) fn last_call(conversation: &Conversation) -> Option<(usize, &Operation)> {
    let last = conversation.operations.len().checked_sub(1)?;
    let operation = conversation.operations.get(last)?;
    (operation.returned && !conversation.is_threaded()).then_some((last, operation))
}

/// `given` are the arguments of the call that the first of them is in.
fn ended(facts: &Facts<'_>, tasks: &[u32], given: Option<&str>) -> String {
    let (progress, task) = (facts.progress, tasks[0]);
    let ended = progress
        .tasks
        .get(&task)
        .map_or(String::new(), |it| it.end.to_string());
    let place = |group: &Group| match group.stack.is_empty() {
        true => String::new(),
        false => format!(" {}", place_with(group, given.unwrap_or_default())),
    };
    let whereabouts = match died_in(progress, task) {
        Some(of) => format!(" in {}, {}", thread(progress, of), at(progress, of)),
        None => progress.group_of(task).map_or(String::new(), place),
    };
    // A launcher ends in its own way, and threads with their process.
    let is_alike = |other: &&u32| {
        let (one, other) = (progress.tasks.get(&task), progress.tasks.get(other));
        let is_other = |one: &Task, it: &Task| it.trace.process != one.trace.process;
        one.zip(other)
            .is_some_and(|(one, it)| !it.is_launcher && it.end == one.end && is_other(one, it))
    };
    let more = match tasks[1..].iter().filter(is_alike).count() {
        0 => String::new(),
        more => format!(" ({more} more ended so)"),
    };
    let early = match progress.tasks.get(&task).is_some_and(|it| it.crashed) {
        true => "",
        false => " without MPI_Finalize",
    };
    let mut text = format!(
        "{} ended ({ended}){early}{whereabouts}{}{more}",
        who(progress, &[task]),
        before(facts, task).unwrap_or_default()
    );
    let subjects: BTreeSet<u32> = tasks.iter().copied().collect();
    if let Some(crowd) = crowd(progress, &subjects) {
        text.push_str(&format!("; {crowd}"));
    }
    text
}

/// What is said of a run that does not hang; and where it was ended from outside, why MPI may have done that.
fn quiet(facts: &Facts<'_>, potential: Option<&str>) -> (Option<String>, String) {
    let progress = facts.progress;
    let is_over = |it: Activity| matches!(it, Activity::Finished | Activity::Ended);
    let are_over = progress.tasks.values().all(|it| is_over(it.activity));
    let killed = killed(progress).filter(|_| !are_over);
    let is_killed = killed.is_some();
    let text = match are_over {
        true => over(progress),
        false => killed.unwrap_or_else(|| "no task is seen to hang".to_owned()),
    };
    let with = |what: String, may_end_it: bool| match is_killed && may_end_it {
        true => (Some(what), text.clone()),
        false => (None, format!("{text}; but {what}")),
    };
    match progress.disagreements.first() {
        Some(first) => with(mismatched(facts, first), true),
        None => match (potential, progress.loose.first()) {
            (Some(potential), _) => with(potential.to_owned(), false),
            (None, Some(loose)) => {
                let not_started = stray_words::not_started(facts, loose);
                let why = not_started.map_or(String::new(), |it| format!("; {it}"));
                let may_end_it = loose.end.may_end_it() || loose.end.misfit_of().is_some();
                with(format!("{}{why}", loose_words::sentence(loose)), may_end_it)
            }
            (None, None) => (None, with_truants(progress, text)),
        },
    }
}

/// `all ranks were ended from outside: rank 0 in MPI_Send at a.c:9 in main(), rank 1 in MPI_Recv at a.c:11 in main()`: some
/// launchers end all others where MPI ends one, before it has.
fn killed(progress: &Progress) -> Option<String> {
    let is_over = |it: &Group| it.activity == Activity::Finished;
    if !progress.is_mpi || !are_killed(progress) {
        return None;
    }
    let text = places(progress, progress.groups.iter().filter(|it| !is_over(it)));
    let tasks = progress.tasks.values();
    let finished = tasks.filter(|it| it.activity == Activity::Finished);
    let finished: Vec<&Task> = finished.collect();
    Some(match finished.as_slice() {
        [] => format!("all ranks were ended from outside: {text}"),
        some => format!(
            "{}; the others were ended from outside: {text}",
            finish(some)
        ),
    })
}

/// What is said of tasks all of which came to their end.
pub(crate) fn over(progress: &Progress) -> String {
    format!("no task hangs: {}", all_finish(progress))
}

/// `all 4 ranks came to their end`; of ranks with other statuses, each status: that is no crash, but worth a word.
fn all_finish(progress: &Progress) -> String {
    let tasks: Vec<&Task> = progress.tasks.values().collect();
    let is_well =
        |it: &&Task| it.end.kind != EndKind::Exited || it.end.code.is_none_or(|it| it == 0);
    let kind = if progress.is_mpi { "rank" } else { "thread" };
    match tasks.len() {
        _ if progress.is_mpi && !tasks.iter().all(is_well) => finish(&tasks),
        1 => format!("the only {kind} came to its end"),
        all => format!("all {all} {kind}s came to their end"),
    }
}

/// `ranks 0,2-3 came to their end (exit 3)`: for such a status launchers end the others.
fn finish(tasks: &[&Task]) -> String {
    let mut by_status: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
    for task in tasks {
        let code = task.end.code.filter(|_| task.end.kind == EndKind::Exited);
        by_status
            .entry(code.unwrap_or(0))
            .or_default()
            .push(task.number);
    }
    let clauses = by_status.iter().map(|(status, tasks)| {
        let end = if tasks.len() == 1 { "its" } else { "their" };
        let text = format!("{} came to {end} end", numbered(true, tasks));
        match status {
            0 => text,
            status => format!("{text} (exit {status})"),
        }
    });
    clauses.collect::<Vec<_>>().join(", ")
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

#[cfg(test)]
mod tests {
    use super::finish;
    use crate::ends::tests::ended;

    #[test]
    fn a_status_that_launchers_end_the_others_for() {
        let [well, amiss] = [ended(0, 0, &[]), ended(2, 3, &[])];
        let both = "rank 0 came to its end, rank 2 came to its end (exit 3)";
        assert_eq!(finish(&[&well]), "rank 0 came to its end");
        assert_eq!(finish(&[&amiss]), "rank 2 came to its end (exit 3)");
        assert_eq!(finish(&[&well, &amiss]), both);
        let alike = "ranks 2,4 came to their end (exit 3)";
        assert_eq!(finish(&[&amiss, &ended(4, 3, &[])]), alike);
    }
}
