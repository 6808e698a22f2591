//! Walks all paths through functions, with the locks that are held on each.

use super::{Function, Hazard, Lock, Nesting, Paths, Step, Taken, Wanted};
use crate::tree::Place;
use std::collections::{BTreeMap, BTreeSet};

/// More states than this at one step of a function: it is left out.
pub const MOST: usize = 256;
/// Calls within calls that are followed.
pub const DEEPEST: usize = 16;
/// Locks of one function that its callers hear of.
const TOLD: usize = 64;
/// Rounds of a loop: the second begins with what the first leaves.
const ROUNDS: usize = 2;
/// Times that all functions are walked: those that call one another hear of what the other does the next time.
const PASSES: usize = 3;

/// A lock that the function has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    path: String,
    taken: Taken,
    /// Whether it was taken here, and not by somebody who was called.
    own: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State<'f> {
    held: Vec<Held>,
    /// Where locks were taken that were given back.
    returned: BTreeSet<Place>,
    /// Paths that were given back without being held: the caller's locks.
    freed: BTreeSet<String>,
    /// What was asked, and how it was answered.
    answers: BTreeMap<&'f str, bool>,
    /// To be done on the way out, the last first.
    deferred: Vec<&'f [Step]>,
    /// Whether the way hangs on what a caller passes (`if !locked`): what is locked on it is not every caller's.
    is_given: bool,
}

type States<'f> = BTreeSet<State<'f>>;

/// Ways out of a function, each with its line; 0 at its end.
type Outs<'f> = BTreeSet<(u32, State<'f>)>;

/// Where a walk has come to.
#[derive(Default)]
struct Ways<'f> {
    on: States<'f>,
    out: Outs<'f>,
    breaks: BTreeSet<(&'f str, State<'f>)>,
    continues: BTreeSet<(&'f str, State<'f>)>,
}

/// What callers of a function should know.
#[derive(Debug, Clone, Default, PartialEq)]
struct Summary {
    /// What it locks that it did not give back before; paths begin with its parameters, or are empty.
    wants: Vec<(String, Wanted)>,
    /// What every way out leaves held.
    leaves: Vec<Held>,
    /// What some way out has given back that it did not take.
    frees: BTreeSet<String>,
}

/// There are too many states.
struct GivenUp;

struct Walker<'f> {
    functions: BTreeMap<&'f str, &'f Function>,
    summaries: BTreeMap<&'f str, Summary>,
    /// Of the pass before.
    earlier: BTreeMap<&'f str, Summary>,
    under_way: Vec<&'f str>,
    hazards: BTreeSet<Hazard>,
    nestings: BTreeSet<Nesting>,
    handed: BTreeSet<&'f str>,
}

/// All but what is said of locks that are handed on.
pub(super) fn walk(functions: &[Function]) -> Paths {
    let (mut paths, handed) = all(functions);
    paths.hazards.retain(|it| {
        let (Hazard::Kept { held, .. } | Hazard::Again { held, .. }) = it;
        !handed.contains(&*held.class)
    });
    paths
}

/// Everything, and the classes that somebody gives back who did not take them: who has them is not what one way
/// through a function says.
pub(super) fn all(functions: &[Function]) -> (Paths, BTreeSet<&str>) {
    let mut classes = BTreeMap::new();
    for function in functions {
        list(&function.file, &function.steps, &mut classes);
    }
    let mut walker = Walker {
        functions: functions.iter().map(|it| (&*it.function, it)).collect(),
        summaries: BTreeMap::new(),
        earlier: BTreeMap::new(),
        under_way: Vec::new(),
        hazards: BTreeSet::new(),
        nestings: BTreeSet::new(),
        handed: BTreeSet::new(),
    };
    for _ in 0..PASSES {
        for function in functions {
            walker.summary(&function.function);
        }
        if walker.summaries == walker.earlier {
            break;
        }
        walker.earlier = std::mem::take(&mut walker.summaries);
    }
    let paths = Paths {
        hazards: walker.hazards.into_iter().collect(),
        nestings: walker.nestings.into_iter().collect(),
        classes,
    };
    (paths, walker.handed)
}

/// Which lock is taken at which line.
fn list(file: &str, steps: &[Step], classes: &mut BTreeMap<Place, Option<String>>) {
    for step in steps {
        match step {
            Step::Lock { line, lock } | Step::RLock { line, lock } => {
                let class = || Some(lock.class.clone());
                let known = classes.entry(place(file, *line)).or_insert_with(class);
                if known.as_ref() != Some(&lock.class) {
                    *known = None;
                }
            }
            Step::Branch { arms, .. } => arms.iter().for_each(|it| list(file, it, classes)),
            Step::Loop { body, .. } | Step::Literal { body } | Step::Defer { body } => {
                list(file, body, classes);
            }
            _ => {}
        }
    }
}

fn place(file: &str, line: u32) -> Place {
    Place {
        file: file.to_owned(),
        line,
    }
}

impl<'f> Walker<'f> {
    /// Walks a function, once, and says what its callers should know.
    fn summary(&mut self, name: &str) -> Summary {
        if let Some(known) = self.summaries.get(name) {
            return known.clone();
        }
        let found = self.functions.get_key_value(name);
        let Some((name, function)) = found.map(|it| (*it.0, *it.1)) else {
            return Summary::default();
        };
        if self.under_way.contains(&name) || self.under_way.len() >= DEEPEST {
            return self.earlier.get(name).cloned().unwrap_or_default();
        }
        self.under_way.push(name);
        let mut body = Body {
            walker: self,
            file: &function.file,
            wants: BTreeSet::new(),
            hazards: BTreeSet::new(),
            nestings: BTreeSet::new(),
        };
        let outs = body.whole(&function.steps, [State::default()].into());
        let (wants, hazards, nestings) = (body.wants, body.hazards, body.nestings);
        self.under_way.pop();
        let mut summary = Summary::default();
        if let Ok(outs) = outs {
            self.hazards.extend(hazards);
            self.hazards.extend(kept(&function.file, &outs));
            self.nestings.extend(nestings);
            summary = Summary::of(wants, &outs);
        }
        self.summaries.insert(name, summary.clone());
        summary
    }
}

/// Locks that one way out gives back and another does not.
fn kept(file: &str, outs: &Outs<'_>) -> Vec<Hazard> {
    let mut found = Vec::new();
    for (line, state) in outs.iter().filter(|it| it.0 > 0) {
        for held in &state.held {
            let at = &held.taken.place;
            let gives = |it: &State<'_>| {
                it.returned.contains(at) && !it.held.iter().any(|it| it.taken.place == *at)
            };
            if held.own && !held.path.is_empty() && outs.iter().any(|it| gives(&it.1)) {
                found.push(Hazard::Kept {
                    held: held.taken.clone(),
                    out: place(file, *line),
                });
            }
        }
    }
    found
}

impl Summary {
    fn of(wants: BTreeSet<(String, Wanted)>, outs: &Outs<'_>) -> Self {
        // A variable of its own means nothing to others.
        let is_callers = |path: &str| path.starts_with('p') || path.starts_with("g:");
        let mut told = Self::default();
        let mut known = BTreeSet::new();
        for (path, wanted) in wants {
            let path = if is_callers(&path) {
                path
            } else {
                String::new()
            };
            let key = (path.clone(), wanted.class.clone(), wanted.reading);
            if known.len() < TOLD && known.insert(key) {
                told.wants.push((path, wanted));
            }
        }
        let states: Vec<&State<'_>> = outs.iter().map(|it| &it.1).collect();
        told.frees = states.iter().flat_map(|it| it.freed.clone()).collect();
        let everywhere = |held: &&Held| {
            let has = |it: &&State<'_>| it.held.iter().any(|it| it.path == held.path);
            is_callers(&held.path) && states.iter().all(has)
        };
        let first = states.first().map_or(&[][..], |it| &it.held);
        told.leaves = first.iter().filter(everywhere).cloned().collect();
        told
    }
}

/// The walk through one function.
struct Body<'w, 'f> {
    walker: &'w mut Walker<'f>,
    file: &'f str,
    wants: BTreeSet<(String, Wanted)>,
    hazards: BTreeSet<Hazard>,
    nestings: BTreeSet<Nesting>,
}

impl<'f> Body<'_, 'f> {
    /// All ways out of a function or literal, what is deferred done.
    fn whole(&mut self, steps: &'f [Step], from: States<'f>) -> Result<Outs<'f>, GivenUp> {
        let ways = self.steps(steps, from)?;
        let mut outs = ways.out;
        outs.extend(ways.on.into_iter().map(|it| (0, it)));
        let mut done = BTreeSet::new();
        for (line, mut state) in outs {
            let deferred = std::mem::take(&mut state.deferred);
            let mut states: States<'f> = [state].into();
            for body in deferred.into_iter().rev() {
                let ways = self.steps(body, states)?;
                states = ways.on;
                states.extend(ways.out.into_iter().map(|it| it.1));
            }
            done.extend(states.into_iter().map(|it| (line, it)));
        }
        Ok(done)
    }

    fn steps(&mut self, steps: &'f [Step], from: States<'f>) -> Result<Ways<'f>, GivenUp> {
        let mut ways = Ways {
            on: from,
            ..Ways::default()
        };
        for step in steps {
            let on = std::mem::take(&mut ways.on);
            if on.len() > MOST {
                return Err(GivenUp);
            }
            if on.is_empty() {
                break;
            }
            self.step(step, on, &mut ways)?;
        }
        Ok(ways)
    }

    fn step(&mut self, step: &'f Step, on: States<'f>, ways: &mut Ways<'f>) -> Result<(), GivenUp> {
        match step {
            Step::Lock { line, lock } => {
                ways.on = self.locks(on, *line, lock, false);
            }
            Step::RLock { line, lock } => {
                ways.on = self.locks(on, *line, lock, true);
            }
            Step::Unlock { lock, .. } => ways.on = each(on, |it| self.unlock(it, lock, false)),
            Step::RUnlock { lock, .. } => ways.on = each(on, |it| self.unlock(it, lock, true)),
            // Whether it was got is not followed: nothing is said of how it is given back.
            Step::TryLock { lock } | Step::TryRLock { lock } | Step::Give { lock } => {
                self.walker.handed.insert(&lock.class);
                ways.on = on;
            }
            Step::Call { line, to, passed } => {
                let summary = self.walker.summary(to);
                ways.on = each(on, |it| self.call(it, *line, &summary, passed));
            }
            Step::Branch {
                arms,
                asks,
                label,
                breaks,
                given,
            } => {
                let here = |it: &str| *breaks && (it.is_empty() || it == label);
                let on = each(on, |it| it.is_given |= given);
                for (index, arm) in arms.iter().enumerate() {
                    let there = on.iter().filter_map(|it| answered(it, asks, index == 0));
                    let there = self.steps(arm, there.collect())?;
                    ways.join(there, here, |_| false);
                }
            }
            Step::Loop {
                body,
                label,
                endless,
            } => {
                let here = |it: &str| it.is_empty() || it == label;
                let mut on = on;
                for _ in 0..ROUNDS {
                    if !endless {
                        ways.on.extend(on.iter().cloned());
                    }
                    // What was asked in one round may be answered otherwise in the next.
                    let begin = each(on, |it| it.answers.clear());
                    let mut there = self.steps(body, begin)?;
                    on = std::mem::take(&mut there.on);
                    let again = there.continues.iter().filter(|it| here(it.0));
                    on.extend(again.map(|it| it.1.clone()));
                    ways.join(there, here, here);
                }
                if !endless {
                    ways.on.extend(on);
                }
            }
            Step::Literal { body } => {
                for mut state in on {
                    let outer = std::mem::take(&mut state.deferred);
                    let outs = self.whole(body, [state].into())?;
                    let outs = outs.into_iter().map(|it| it.1).collect();
                    ways.on
                        .extend(each(outs, |it| it.deferred.clone_from(&outer)));
                }
            }
            Step::Defer { body } => ways.on = each(on, |it| it.deferred.push(body)),
            Step::Return { line } => ways.out.extend(on.into_iter().map(|it| (*line, it))),
            Step::Break { label } => ways.breaks.extend(on.into_iter().map(|it| (&**label, it))),
            Step::Continue { label } => {
                let states = on.into_iter().map(|it| (&**label, it));
                ways.continues.extend(states);
            }
            Step::Stop {} => {}
            Step::Assign { is } => ways.on = each(on, |it| it.assign(is)),
        }
        Ok(())
    }

    /// Whoever meets a lock that it has goes no further.
    fn locks(&mut self, on: States<'f>, line: u32, lock: &'f Lock, reading: bool) -> States<'f> {
        let ends = |it: &Held| {
            it.path == lock.path && !lock.path.is_empty() && !(it.taken.reading && reading)
        };
        let goes_on = |mut state: State<'f>| {
            let is_end = state.held.iter().any(ends);
            self.lock(&mut state, line, lock, reading);
            (!is_end).then_some(state)
        };
        on.into_iter().filter_map(goes_on).collect()
    }

    fn lock(&mut self, state: &mut State<'f>, line: u32, lock: &'f Lock, reading: bool) {
        // The caller's lock, given back above, is the caller's again.
        if state.freed.remove(&lock.path) {
            return;
        }
        let wanted = Wanted {
            place: place(self.file, line),
            class: lock.class.clone(),
            reading,
            via: Vec::new(),
        };
        let taken = Taken {
            place: wanted.place.clone(),
            class: lock.class.clone(),
            said: lock.said.clone(),
            reading,
        };
        self.want(state, &lock.path, wanted);
        state.held.push(Held {
            path: lock.path.clone(),
            taken,
            own: true,
        });
    }

    /// What asking for a lock means with what is held.
    fn want(&mut self, state: &State<'f>, path: &str, wanted: Wanted) {
        for held in &state.held {
            let held_of = held.taken.clone();
            let wanted = wanted.clone();
            if held.path == path && !path.is_empty() {
                if !(held_of.reading && wanted.reading) {
                    self.hazards.insert(Hazard::Again {
                        held: held_of,
                        wanted,
                    });
                }
            } else if held_of.class != wanted.class {
                self.nestings.insert(Nesting {
                    held: held_of,
                    wanted,
                });
            }
        }
        if !state.is_given && self.wants.len() < 16 * TOLD {
            self.wants.insert((path.to_owned(), wanted));
        }
    }

    fn unlock(&mut self, state: &mut State<'f>, lock: &'f Lock, reading: bool) {
        let same = |it: &Held| it.taken.reading == reading && it.path == lock.path;
        // Of which it is not said that they are the same, nor that they are not.
        let alike = |it: &Held| {
            let is_unsaid = it.path.is_empty() || lock.path.is_empty();
            is_unsaid && it.taken.reading == reading && it.taken.class == lock.class
        };
        let at = state.held.iter().rposition(same);
        if let Some(at) = at.or_else(|| state.held.iter().rposition(alike)) {
            let held = state.held.remove(at);
            state.returned.insert(held.taken.place);
            return;
        }
        self.walker.handed.insert(&lock.class);
        if !lock.path.is_empty() {
            state.freed.insert(lock.path.clone());
        }
    }

    fn call(&mut self, state: &mut State<'f>, line: u32, summary: &Summary, passed: &[String]) {
        let here = place(self.file, line);
        for (path, wanted) in &summary.wants {
            let path = passed_on(path, passed);
            if !state.freed.contains(&path) {
                let mut wanted = wanted.clone();
                wanted.via.insert(0, here.clone());
                self.want(state, &path, wanted);
            }
        }
        let frees = summary.frees.iter().map(|it| passed_on(it, passed));
        for path in frees.filter(|it| !it.is_empty()) {
            match state.held.iter().rposition(|it| it.path == path) {
                Some(at) => {
                    let held = state.held.remove(at);
                    state.returned.insert(held.taken.place);
                }
                None => {
                    state.freed.insert(path);
                }
            }
        }
        for held in &summary.leaves {
            let path = passed_on(&held.path, passed);
            if !path.is_empty() && !state.freed.remove(&path) {
                state.held.push(Held {
                    path,
                    taken: held.taken.clone(),
                    own: false,
                });
            }
        }
    }
}

fn each<'f>(on: States<'f>, mut change: impl FnMut(&mut State<'f>)) -> States<'f> {
    let changed = on.into_iter().map(|mut it| {
        change(&mut it);
        it
    });
    changed.collect()
}

/// The state behind a question, where its answer is not known to be the other.
fn answered<'f>(state: &State<'f>, asks: &'f str, holds: bool) -> Option<State<'f>> {
    let mut state = state.clone();
    if !asks.is_empty() && *state.answers.entry(asks).or_insert(holds) != holds {
        return None;
    }
    Some(state)
}

/// What a path of a function called is to its caller.
fn passed_on(path: &str, passed: &[String]) -> String {
    let Some(rest) = path.strip_prefix('p') else {
        return path.to_owned();
    };
    let (root, fields) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let root = root.parse().ok().and_then(|it: usize| passed.get(it));
    match root {
        Some(root) if !root.is_empty() => format!("{root}{fields}"),
        _ => String::new(),
    }
}

impl State<'_> {
    /// Forgets what was known of what is given another value.
    fn assign(&mut self, is: &[String]) {
        for changed in is {
            self.answers.retain(|it, _| !mentions(it, changed));
            for held in &mut self.held {
                let rest = held.taken.said.strip_prefix(&**changed);
                if rest.is_some_and(|it| it.starts_with('.')) {
                    held.path.clear();
                }
            }
        }
    }
}

/// Whether an expression has another one in it, as words and not as a part of one.
fn mentions(expression: &str, changed: &str) -> bool {
    let is_word = |it: char| it == '_' || it.is_alphanumeric();
    expression.match_indices(changed).any(|(at, _)| {
        let before = expression[..at].chars().next_back();
        let after = expression[at + changed.len()..].chars().next();
        !before.is_some_and(|it| is_word(it) || it == '.') && !after.is_some_and(is_word)
    })
}

impl<'f> Ways<'f> {
    /// Takes in where an arm or a loop's body has come to; what is left for here goes on behind it, and what goes
    /// on with the next round is the loop's.
    fn join(
        &mut self,
        there: Ways<'f>,
        is_left: impl Fn(&str) -> bool,
        is_next: impl Fn(&str) -> bool,
    ) {
        self.on.extend(there.on);
        self.out.extend(there.out);
        for (label, state) in there.breaks {
            if is_left(label) {
                self.on.insert(state);
            } else {
                self.breaks.insert((label, state));
            }
        }
        let others = there.continues.into_iter().filter(|it| !is_next(it.0));
        self.continues.extend(others);
    }
}
