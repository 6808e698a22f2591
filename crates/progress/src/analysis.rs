//! The order of the steps by which a run's progress is found.

use crate::cause::Cause;
use crate::clause::{Mismatched, Potential, What};
use crate::ends::{are_ended_amiss, crashed, unfinalized};
use crate::facts;
use crate::group::{Order, apart, group};
use crate::holding;
use crate::judgement::{held_up_by, judge, least};
use crate::misfit;
use crate::observe::{Normal, Observed};
use crate::parting::{Tasks, tell_apart};
use crate::place::{self, Coordinates, Moment, Program};
use crate::progress::{Facts, Progress};
use crate::recount::recount;
use crate::sites::Sites;
use crate::source::{Follower, Whole};
use crate::standard;
use crate::strays::{self, awaited, calls};
use crate::suspicion::Scene;
use crate::task::{Activity, Group, Task};
use crate::team::truants;
use crate::verdict;
use crate::vote::vote;
use crate::waits::{Waiting, Why};
use crate::which::begun_before;
use lockstep_api::mpi::rules;
use lockstep_check::races::{chance, race};
use lockstep_check::strays::{strays, unstarted_receive};
use lockstep_check::taken::{doubts, steals};
use lockstep_check::{
    Chosen, Loose, at_once, loose_ends, loose_ends_so_far, mismatches, never_finalized,
};
use lockstep_comm::communicators::{Communicators, Origin};
use lockstep_comm::{Circle, CommunicatorId, Conversation, Matching, Membership, without_buffers};
use lockstep_diagnosis::{Disagreement, origin};
use lockstep_trace::{EndKind, Run, TraceName};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where the tasks of a run stand, and what it waits for.
#[must_use]
pub fn analyse(run: &Run) -> Progress {
    analyse_against(run, None, &Chosen::default())
}

/// The same, and which tasks departed from what they did in a normal run. Of MPI's rules only those that are chosen are told of.
#[must_use]
pub fn analyse_against(run: &Run, normal: Option<&Run>, chosen: &Chosen) -> Progress {
    let (mut observed, normal) = Observed::beside(run, normal, &mut Whole);
    observed.chosen = chosen.clone();
    conclude(run, observed, normal.as_ref(), false)
}

impl Follower {
    /// [`analyse`], of a run that is opened again and again by [`lockstep_trace::Live`]: reads what is new. What might have
    /// come otherwise (a potential deadlock, ready sends, accesses to windows that nothing orders) is asked once no
    /// process runs any more.
    #[must_use]
    pub fn analyse(&mut self, run: &Run) -> Progress {
        let mut observed = Observed::new(run, self);
        self.settle(
            &mut observed.conversations,
            &observed.membership,
            &observed.communicators,
        );
        let mut processes = run.processes.iter();
        let goes_on = processes.any(|it| it.end.kind == EndKind::Running);
        conclude(run, observed, None, goes_on)
    }
}

/// What follows from what was observed, and from what was of a normal run. Of a job that goes on,
/// it is not asked what might have come otherwise.
fn conclude(
    run: &Run,
    mut observed: Observed,
    normal: Option<&Normal<'_>>,
    goes_on: bool,
) -> Progress {
    let since = |task: &Task| task.polls.as_ref().and_then(|it| it.since);
    let moments = observed.roots.iter().zip(observed.tasks.values());
    let moments = moments.map(|(root, task)| Moment {
        root: *root,
        event: since(task),
    });
    let moments: Vec<Moment> = moments.collect();
    let program = Program::new(&observed.forest, &moments);
    // Tasks of one tree stand at one place.
    let mut standing: HashMap<Moment, place::Standing> = HashMap::new();
    for moment in &moments {
        let at = || program.stand(*moment);
        standing.entry(*moment).or_insert_with(at);
    }
    let standing = moments.iter().map(|moment| &standing[moment]);
    let (groups, places) = group(&observed.tasks, standing, &program);
    if !goes_on {
        lockstep_check::settle(run, observed.usages.values_mut());
    }
    let conversations = &observed.conversations;
    let matching = Matching::new(conversations);
    let mismatches = match observed.is_whole {
        true => mismatches(conversations, &observed.membership, &matching),
        false => {
            observed.notes.push(
                "calls or arguments are missing: collective operations are not compared".to_owned(),
            );
            Vec::new()
        }
    };
    let waiting = Waiting::new(conversations, &observed.membership, &matching, &mismatches);
    let mut disagreements: Vec<Disagreement> = mismatches.into_iter().map(Into::into).collect();
    // Of a job that goes on well, nothing is looked at.
    if observed.is_whole {
        let tasks = Tasks::of(run, &observed);
        tell_apart(&mut disagreements, &tasks, &matching, &waiting);
        vote(
            &mut disagreements,
            conversations,
            &observed.membership,
            &matching,
        );
        if let Some(normal) = normal.filter(|_| !disagreements.is_empty()) {
            let matched = Matching::new(&normal.conversations);
            let beside = Tasks::of_normal(normal, &observed.forest);
            standard::judge(&mut disagreements, (&tasks, &matching), (&beside, &matched));
        }
    }
    let groups = groups.into_iter().zip(places).collect();
    let (mut groups, places): (Vec<Group>, Vec<&Coordinates>) =
        apart(groups, &waiting).into_iter().unzip();
    let order = Order::new(&program, &places);
    let doubts = doubts(conversations, &matching);
    // While a job goes on, a look at it costs what is new.
    if !goes_on || !waiting.stuck.is_empty() || !doubts.is_empty() {
        let in_loops = groups.iter_mut().filter(|it| !it.loops.is_empty());
        for group in in_loops.take(MOST_RECOUNTED) {
            if let Some(task) = group.tasks.first().and_then(|it| observed.tasks.get(it)) {
                recount(
                    run,
                    &observed.communicators,
                    task,
                    &mut group.loops,
                    goes_on,
                );
            }
        }
    }
    let least = held_up_by(&groups, &observed.tasks, &order, &waiting, &disagreements)
        .unwrap_or_else(|| least(&groups, &order, &waiting));
    // A replay goes through a task's operations in one order.
    let is_threaded = conversations.values().any(Conversation::is_threaded);
    let is_free = observed.is_whole && !goes_on && !is_threaded && waiting.stuck.is_empty();
    // Each goes through all that was said.
    let (mut loose, circle) = rayon::join(
        || match (observed.is_whole, goes_on) {
            (false, _) => Vec::new(),
            (true, true) => loose_ends_so_far(conversations, &observed.usages, &matching),
            (true, false) => loose_ends(
                conversations,
                &observed.usages,
                &observed.membership,
                &matching,
            ),
        },
        || match is_free {
            true => without_buffers(conversations, &observed.membership, &matching),
            false => None,
        },
    );
    // Of a process that runs, one thread was read after the other.
    if run
        .processes
        .iter()
        .all(|it| it.end.kind != EndKind::Running)
    {
        loose.extend(at_once(conversations, &observed.usages));
    }
    if observed.is_whole && waiting.stuck.is_empty() {
        let unfinalized = unfinalized(&observed.tasks, conversations);
        loose.extend(never_finalized(unfinalized));
    }
    let race = match is_free && circle.is_none() {
        true => race(conversations, &observed.membership, &matching),
        false => None,
    };
    let chosen = &observed.chosen;
    loose.retain(|it| chosen.has(it.end.rule()));
    disagreements.retain(|it| {
        let rule = it.mismatch.aspect.rule();
        it.mismatch.prevents() || rule.is_none_or(|rule| chosen.has(rule))
    });
    let circle = circle.filter(|_| chosen.has(rules::POTENTIAL_DEADLOCK));
    let race = race.filter(|_| chosen.has(rules::MESSAGE_RACE));
    let awaited = waiting.waits.iter().filter_map(awaited);
    let steals = steals(conversations, &matching, awaited);
    let died = crashed(&observed.tasks);
    let has_order = observed.is_whole && !is_threaded && chosen.has(rules::MESSAGE_RACE);
    let chance = match has_order {
        true => chance(conversations, &observed.membership, &matching, &died),
        false => None,
    };
    let races = race.iter().chain(&chance).chain(&steals);
    let told = told(conversations, &disagreements, &loose, circle.as_ref())
        .chain(races.flat_map(|it| it.calls(conversations)));
    let are_ended_amiss = are_ended_amiss(run, &observed.tasks);
    let scene = Scene {
        observed: &observed,
        normal,
        matching: &matching,
        waiting: &waiting,
        disagreements: &disagreements,
        groups: &groups,
        order: &order,
        least: &least,
        are_ended_amiss,
    };
    let mut suspicion = scene.suspicion();
    let alike = suspicion.causes.iter().map(|it| &it.alike);
    let told = told.chain(alike.flat_map(|it| it.along.iter().chain(&it.sent).copied()));
    let strays = strays(conversations, &matching);
    let unstarted = loose
        .first()
        .and_then(|it| unstarted_receive(conversations, it));
    let told = told.chain(unstarted.map(|(_, it)| (it.2, it.3)));
    let told = told.chain(doubts.iter().filter_map(|it| it.call(conversations)));
    let told = told.chain(calls(
        &strays,
        conversations,
        &waiting,
        &observed.membership,
    ));
    let told = told.chain(strays::owed(conversations, &waiting));
    // Where who crashed was last in MPI.
    let died = crashed(&observed.tasks).into_iter();
    let died = died.filter_map(|it| conversations.get(&it));
    let told = told.chain(died.filter_map(|it| it.call(verdict::last_call(it)?.0)));
    let told = told.chain(begun_before(conversations, &waiting));
    let sites = Sites::new(run, told);
    sites.tell(&mut loose);
    sites.direct(run, &mut suspicion.causes);
    let held_up: BTreeSet<u32> = least
        .iter()
        .flat_map(|it| &groups[*it].tasks)
        .copied()
        .collect();
    let kept = holding::kept(run, &waiting);
    let visible = run.processes.iter().filter(|it| run.is_visible(it));
    let mut progress = Progress {
        kept,
        forked: visible
            .filter_map(|it| Some((it.name, it.forked_from?)))
            .collect(),
        edges: order.edges(),
        least,
        groups,
        waiting,
        disagreements,
        loose,
        threads: observed.stacks,
        truants: truants(run, conversations),
        ..Progress::of(observed.is_mpi, observed.tasks, observed.notes)
    };
    let mut all = observed.usages.iter();
    let is_fatal = suspicion.is_displaced
        || all.any(|(task, it)| {
            let task = conversations.get(task);
            task.is_some_and(|task| it.is_in_a_fatal_mistake(task))
        });
    let is_amiss = are_ended_amiss && is_fatal;
    (progress.hang, progress.kind) = judge(&progress, is_amiss);
    // A task that has yet to come may still do what it left out, and who computes holds the others up
    // whatever any other did.
    let computes = |it: &usize| progress.groups[*it].activity == Activity::Computation;
    let is_late = progress.least.iter().any(computes);
    // Who asks for what can never come is stuck as who waits for it.
    let is_stuck = !progress.waiting.stuck.is_empty();
    let is_past = |it: &Cause| it.is_departure() && (it.by_normal() || held_up.contains(&it.task));
    // Who died of a message did so before anything else could be waited for.
    let is_cause = |it: &Cause| match suspicion.is_by_displaced {
        false => progress.hang && (is_stuck || is_past(it) && !is_late),
        true => progress.hang || !suspicion.is_late,
    };
    progress.causes = suspicion.causes.into_iter().filter(is_cause).collect();
    progress.communicators = names(
        &progress.waiting,
        &observed.communicators,
        &observed.membership,
    );
    let doubts = doubts.iter();
    progress.doubts = doubts
        .filter_map(|it| Some((it.task, misfit::doubted(it, conversations, &sites)?)))
        .collect();
    let facts = Facts {
        progress: &progress,
        conversations,
        communicators: &observed.communicators,
        membership: &observed.membership,
        strays: &strays,
        sites: &sites,
        steals: &steals,
        chance: chance.as_ref(),
        given: given(run, &observed.communicators, &progress.tasks),
    };
    let disagreements = &progress.disagreements;
    let of = |it| misfit::mismatched(&facts, it);
    let shown = || disagreements.iter().take(MOST_MISMATCHES);
    let mismatched = shown().filter_map(of).collect();
    let stops = disagreements.iter().find(|it| it.mismatch.prevents());
    let stops = stops.and_then(|it| of(origin(disagreements, it)));
    let stops = stops.filter(Mismatched::is_of_one);
    let unfit = facts::unfit(
        &facts,
        shown(),
        circle.as_ref(),
        race.as_ref().or(chance.as_ref()),
    );
    let found = circle.as_ref().and_then(|it| misfit::potential(&facts, it));
    let race = || misfit::raced(&facts, race.as_ref()?).map(Potential::Race);
    let potential = found.or_else(race);
    // A message that nobody received keeps its sender waiting for certain: what would come of it is told behind it.
    let lost = circle.as_ref().and_then(|circle| {
        let mut all = progress.loose.iter();
        all.find(|it| it.is_lost_between(circle.iter().map(|it| it.0)))
    });
    let lost = lost.cloned().filter(|_| potential.is_some());
    let may_come = lost.map(What::Loose).into_iter();
    let may_come = may_come.chain(potential.clone().map(What::Potential));
    let verdict = verdict::verdict(&facts, may_come.collect());
    let unreceived = verdict::unreceived(&facts);
    (progress.verdict, progress.mismatched, progress.potential) = (verdict, mismatched, potential);
    (progress.unreceived, progress.unfit, progress.stops) = (unreceived, unfit, stops);
    progress
}

/// The arguments of the call of MPI in which the first task that crashed is.
fn given(run: &Run, communicators: &Communicators, tasks: &BTreeMap<u32, Task>) -> Option<String> {
    let task = tasks.get(crashed(tasks).first()?)?;
    let open = communicators.open(run.trace(task.trace)?);
    let outermost = open.into_iter().flatten().next()?;
    let text = communicators.show(&outermost).in_short();
    Some(text).filter(|it| it.len() <= LONGEST)
}

/// Arguments longer than this many bytes are not in a sentence.
const LONGEST: usize = 160;

/// The calls that are told of, trace and event: of what does not fit, of loose ends, and of a circle.
fn told<'a>(
    conversations: &'a BTreeMap<u32, Conversation>,
    disagreements: &'a [Disagreement],
    loose: &'a [Loose],
    circle: Option<&'a Circle>,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let operation = |task: u32, operation: usize| conversations.get(&task)?.call(operation);
    let mismatched = disagreements.iter().take(MOST_MISMATCHES).flat_map(|it| {
        let firsts = it
            .mismatch
            .sides
            .iter()
            .take(2)
            .filter_map(|(_, parts)| parts.first());
        firsts.filter_map(|id| conversations.get(&id.task)?.called(id.part))
    });
    let loose = loose.iter().take(MOST_LOCATED).filter_map(|it| it.first);
    let circle = circle.into_iter().flatten();
    mismatched
        .chain(loose)
        .chain(circle.filter_map(move |it| operation(it.0, it.1)))
}

/// So many loose ends get their line: looking one up costs a pass over its trace.
const MOST_LOCATED: usize = 20;

/// Names of the communicators, windows and files of collective operations that are waited for.
fn names(
    waiting: &Waiting,
    known: &Communicators,
    membership: &Membership,
) -> BTreeMap<CommunicatorId, String> {
    let ids = waiting.waits.iter().filter_map(|it| match it.why {
        Why::Collective(_, id) => Some(id),
        _ => it.communicator,
    });
    let name = |id: CommunicatorId| match known.get(id) {
        Some(it) => (it.origin != Origin::World).then(|| known.name(id)),
        None => membership.named.get(&id).cloned(),
    };
    ids.filter_map(|id| Some((id, name(id)?))).collect()
}

/// So many groups' iterations are looked at closely: that costs a pass over a trace.
const MOST_RECOUNTED: usize = 16;

/// Mismatches that are put in words: after the first, others follow from it.
const MOST_MISMATCHES: usize = 10;
