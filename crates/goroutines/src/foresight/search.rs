//! Looks through the orders of turns that are near the recorded one, the nearest first.
//!
//! Whoever went first when it was recorded goes first, but for *deviations*: somebody else goes, and goes on as long
//! as it can or until the others go on as recorded. The fewer deviations, the likelier it is that what hangs on
//! values is as it was.

use super::machine::{Choice, Crash, Machine, Phase, State, Turn};
use super::program::{Came, Op, Programs};
use crate::execution::{Execution, GoroutineId, ObjectId, SiteId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// More choices than this are not made with each number of deviations.
const MOST: usize = 20_000;
/// Longer orders than this, twice what may have been recorded, only come of guesses that go round.
const LONGEST: usize = 3_000;
/// No more deviations than this.
const DEVIATIONS: u32 = 3;
/// Different bad ends that are kept,
const ENDS: usize = 64;
/// ways to each of them,
const WAYS: usize = 3;
/// and orders that end well.
const ORDERS: usize = 400;

/// How it would end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Bad {
    /// These wait for ever, each where it stands.
    Stuck(Vec<(GoroutineId, Option<SiteId>)>),
    /// Somebody crashes there.
    Crash(GoroutineId, Option<SiteId>, &'static str),
    /// A wait there is over before all that it was to wait for has been counted.
    Early(GoroutineId, Option<SiteId>),
}

/// Two lines that came one behind the other at an object, by different goroutines; or, without one, somebody's line
/// and another's behind whose `go` statement, unlock or close it came.
pub(super) type Pair = (Stand, Stand, bool);
/// Whose line it is.
pub(super) type Stand = (GoroutineId, Option<SiteId>);

/// An order of turns that is near, and how it ends; well, if nothing is said.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub bad: Option<Bad>,
    pub guesses: u32,
    pub deviations: u32,
    pub trail: Vec<Turn>,
    pub pairs: BTreeSet<Pair>,
}

/// The pairs of an order of turns.
pub(super) fn pairs(trail: &[Turn]) -> BTreeSet<Pair> {
    let mut last: BTreeMap<ObjectId, &Turn> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (at, turn) in trail.iter().enumerate() {
        let before = match turn.object {
            Some(object) => last.insert(object, turn),
            None if turn.behind => at.checked_sub(1).map(|it| &trail[it]),
            None => None,
        };
        if let Some(before) = before.filter(|it| it.who != turn.who) {
            found.insert((
                (before.who, before.site),
                (turn.who, turn.site),
                turn.behind,
            ));
        }
    }
    found
}

/// Goes through the recorded order; what does not fit was done with something of which not all was seen.
pub(super) fn follow<'a>(
    execution: &'a Execution,
    programs: &'a Programs,
) -> Option<(Machine<'a>, Vec<Turn>)> {
    const TRIES: usize = 24;
    let mut machine = Machine {
        execution,
        programs,
        unseen: vec![false; execution.objects.len()],
        local: vec![false; execution.objects.len()],
    };
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (who, program) in programs.all.iter().enumerate() {
        for (at, step) in program.steps.iter().enumerate() {
            if step.takes_turn {
                order.push((step.event, who, at));
            }
        }
    }
    order.sort_unstable();
    for _ in 0..TRIES {
        let wrong = match walk(&machine, &order) {
            Ok(trail) => {
                machine.local = locals(execution, programs);
                return Some((machine, trail));
            }
            Err(wrong) => wrong?,
        };
        let unseen = machine.unseen.get_mut(wrong.0 as usize)?;
        if std::mem::replace(unseen, true) {
            return None;
        }
    }
    None
}

/// What does not fit: an object, or nothing that could be told.
fn walk(
    machine: &Machine<'_>,
    order: &[(usize, usize, usize)],
) -> Result<Vec<Turn>, Option<ObjectId>> {
    let mut state = machine.start();
    let mut trail = Vec::new();
    let settled = machine.settle(&mut state, &mut trail);
    settled.map_err(|it| object_at(machine, &state, it.0))?;
    for (_, who, at) in order {
        // The clock goes on meanwhile.
        if !stands(&state, *who, *at) {
            fire(machine, &mut state, *who, &mut trail);
        }
        if !stands(&state, *who, *at) {
            return Err(object_at(machine, &state, *who));
        }
        let case = match machine.step(&state, *who).and_then(|it| it.came) {
            Some(Came::Took(case)) => case,
            _ => None,
        };
        let choice = Choice {
            who: *who,
            case,
            fires: false,
        };
        let before = state.guesses;
        let object = object_at(machine, &state, *who);
        if machine.go(&mut state, choice, &mut trail).is_err() || state.guesses > before {
            return Err(object);
        }
    }
    // What was over is over here, too.
    for who in 0..state.core.who.len() {
        let step = machine.step(&state, who);
        if state.core.who[who].phase == Phase::Parked && step.is_some_and(|it| it.came.is_some()) {
            fire(machine, &mut state, who, &mut trail);
            if state.core.who[who].phase == Phase::Parked {
                return Err(object_at(machine, &state, who));
            }
        }
    }
    Ok(trail)
}

fn stands(state: &State, who: usize, at: usize) -> bool {
    let it = &state.core.who[who];
    it.phase == Phase::Ready && it.program as usize == who && it.step as usize == at
}

fn fire(machine: &Machine<'_>, state: &mut State, who: usize, trail: &mut Vec<Turn>) {
    let came = machine.step(state, who).and_then(|it| it.came);
    let choice = machine.choices(state).into_iter().find(|it| {
        let as_recorded = match came {
            Some(Came::Took(case)) => it.case == case,
            _ => true,
        };
        it.who == who && it.fires && as_recorded
    });
    if let Some(choice) = choice {
        // What went wrong is seen by where it stands then.
        let _ = machine.go(state, choice, trail);
    }
}

fn object_at(machine: &Machine<'_>, state: &State, who: usize) -> Option<ObjectId> {
    let step = machine.step(state, who)?;
    match &step.op {
        Op::Send(it) | Op::Receive(it) => *it,
        Op::Select { cases, .. } => match step.came {
            Some(Came::Took(Some(case))) => cases.get(case as usize)?.channel,
            // Another case was ready here than when it was recorded.
            _ => cases
                .iter()
                .filter_map(|it| it.channel)
                .find(|it| !machine.is_outside(*it)),
        },
        Op::Close(it) => Some(*it),
        _ => None,
    }
}

fn locals(execution: &Execution, programs: &Programs) -> Vec<bool> {
    let mut users: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); execution.objects.len()];
    for (who, program) in programs.all.iter().enumerate() {
        for step in &program.steps {
            let cases = match &step.op {
                Op::Select { cases, .. } => &cases[..],
                _ => &[],
            };
            let channels = cases.iter().filter_map(|it| it.channel);
            for it in step.op.object().into_iter().chain(channels) {
                if let Some(users) = users.get_mut(it.0 as usize) {
                    users.insert(who);
                }
            }
        }
    }
    users.iter().map(|it| it.len() == 1).collect()
}

pub(super) struct Search<'m, 'a> {
    machine: &'m Machine<'a>,
    /// By state and who deviates: the most deviations that were left there, plus one.
    seen: HashMap<u64, u32>,
    made: usize,
    trail: Vec<Turn>,
    bad: Vec<End>,
    well: Vec<End>,
    /// Who waits at the end anyway, and where.
    usual: BTreeSet<(GoroutineId, Option<SiteId>)>,
}

/// A state on the way, and what has not been tried there.
struct Fork {
    state: State,
    free: Option<usize>,
    left: u32,
    /// Of the trail to it.
    length: usize,
    choices: std::iter::Enumerate<std::vec::IntoIter<Choice>>,
}

/// Orders that end badly, from the surest to what is most of a guess, and orders that end well.
pub(super) fn ends(machine: &Machine<'_>) -> (Vec<End>, Vec<End>) {
    let mut search = Search {
        machine,
        seen: HashMap::new(),
        made: 0,
        trail: Vec::new(),
        bad: Vec::new(),
        well: Vec::new(),
        usual: usual(machine),
    };
    for deviations in 0..=DEVIATIONS {
        search.made = 0;
        search.seen.clear();
        search.trail.clear();
        let mut state = machine.start();
        if machine.settle(&mut state, &mut search.trail).is_err() {
            break;
        }
        search.look(state, deviations);
    }
    let (mut bad, well) = (search.bad, search.well);
    bad.sort_by_key(|it| (it.guesses, it.deviations));
    (bad, well)
}

/// Whoever had not come to its end when it was recorded.
fn usual(machine: &Machine<'_>) -> BTreeSet<(GoroutineId, Option<SiteId>)> {
    let mut usual = BTreeSet::new();
    for (who, program) in machine.programs.all.iter().enumerate() {
        if let Some(step) = program.steps.last().filter(|it| it.came.is_none()) {
            usual.insert((GoroutineId(who as u32), step.site));
        }
    }
    usual
}

impl Search<'_, '_> {
    /// All orders with at most `most` deviations. Guesses make them longer than what was recorded, up to endless.
    fn look(&mut self, start: State, most: u32) {
        let mut open: Vec<Fork> = self.fork(start, None, most, most).into_iter().collect();
        while let Some(fork) = open.last_mut() {
            self.trail.truncate(fork.length);
            let Some((at, choice)) = fork.choices.next() else {
                open.pop();
                continue;
            };
            if self.made >= MOST {
                return;
            }
            let deviates = Some(choice.who) == fork.free;
            let cost = u32::from(at > 0 && !deviates);
            if cost > fork.left {
                continue;
            }
            let free = (at > 0 || deviates).then_some(choice.who);
            let left = fork.left - cost;
            self.made += 1;
            let mut next = fork.state.clone();
            let step = self.machine.step(&fork.state, choice.who);
            match self.machine.go(&mut next, choice, &mut self.trail) {
                Ok(()) => {
                    if let Some(Op::Wait(group)) = step.map(|it| &it.op) {
                        self.waited(&fork.state, &next, choice.who, *group, most - left);
                    }
                    open.extend(self.fork(next, free, left, most));
                }
                Err((who, crash)) => {
                    let site = self.machine.step(&next, who).and_then(|it| it.site);
                    let said = match crash {
                        Crash::SendToClosed => "sends to a closed channel",
                        Crash::CloseOfClosed => "closes a closed channel",
                        Crash::NegativeCount => "takes a wait group below 0",
                        Crash::UnlockOfUnlocked => "unlocks what is not locked",
                    };
                    let bad = Bad::Crash(GoroutineId(who as u32), site, said);
                    self.found(Some(bad), &next, most - left);
                }
            }
        }
    }

    /// What can be done next with `left` of `most` deviations, unless that was looked at; `free` deviates already.
    fn fork(&mut self, state: State, free: Option<usize>, left: u32, most: u32) -> Option<Fork> {
        let mut choices = self.machine.choices(&state);
        if choices.is_empty() {
            self.ended(&state, most - left);
            return None;
        }
        if self.trail.len() >= LONGEST {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (&state.core, free).hash(&mut hasher);
        if most < 2 {
            // Orders that differ only in how they come to the same state count here.
            pairs(&self.trail).hash(&mut hasher);
        }
        let seen = self.seen.entry(hasher.finish()).or_default();
        if *seen > left {
            return None;
        }
        *seen = left + 1;
        choices.sort_by_key(|it| self.recorded(&state, it));
        Some(Fork {
            state,
            free,
            left,
            length: self.trail.len(),
            choices: choices.into_iter().enumerate(),
        })
    }

    /// When it was recorded: what was first is to go first.
    fn recorded(&self, state: &State, choice: &Choice) -> (bool, usize, bool) {
        let step = self.machine.step(state, choice.who);
        let came = step.and_then(|it| it.came);
        let otherwise = match came {
            Some(Came::Took(case)) => choice.case.is_some() && choice.case != case,
            _ => false,
        };
        let at = &state.core.who[choice.who];
        let steps = &self.machine.programs.all[at.program as usize].steps;
        // A wait for the clock was over some time before what came next.
        let step = at.step as usize + usize::from(choice.fires);
        let event = steps.get(step).map_or(usize::MAX, |it| it.event);
        (otherwise, event, choice.fires)
    }

    fn ended(&mut self, state: &State, deviations: u32) {
        let mut stuck = Vec::new();
        for (who, it) in state.core.who.iter().enumerate() {
            if it.phase != Phase::Parked {
                continue;
            }
            let id = GoroutineId(who as u32);
            let site = self.machine.step(state, who).and_then(|it| it.site);
            if !self.usual.contains(&(id, site)) {
                stuck.push((id, site));
            }
        }
        let bad = (!stuck.is_empty()).then_some(Bad::Stuck(stuck));
        self.found(bad, state, deviations);
    }

    /// Whether a wait was over though somebody that it waited for when it was recorded has not been counted.
    fn waited(
        &mut self,
        before: &State,
        after: &State,
        who: usize,
        group: ObjectId,
        deviations: u32,
    ) {
        let Some(step) = self.machine.step(before, who) else {
            return;
        };
        let (event, site) = (step.event, step.site);
        if after.core.who[who].phase == Phase::Parked {
            return;
        }
        let late = before.core.who.iter().any(|it| {
            let steps = &self.machine.programs.all[it.program as usize].steps;
            it.phase != Phase::Over
                && steps[(it.step as usize).min(steps.len())..]
                    .iter()
                    .any(|it| {
                        matches!(it.op, Op::Add(of, amount) if of == group && amount > 0)
                            && it.event < event
                    })
        });
        if late {
            let bad = Bad::Early(GoroutineId(who as u32), site);
            self.found(Some(bad), after, deviations);
        }
    }

    fn found(&mut self, bad: Option<Bad>, state: &State, deviations: u32) {
        let end = End {
            pairs: pairs(&self.trail),
            bad,
            guesses: state.guesses,
            deviations,
            trail: self.trail.clone(),
        };
        let (kept, most) = match end.bad {
            Some(_) => (&mut self.bad, ENDS),
            None => (&mut self.well, ORDERS),
        };
        let ways = kept.iter().filter(|it| it.bad == end.bad);
        let (count, same) = ways.fold((0, false), |(count, same), it| {
            (count + 1, same || it.pairs == end.pairs)
        });
        let full = end.bad.is_some() && count >= WAYS || kept.len() >= most;
        if !same && !full {
            kept.push(end);
        }
    }
}
