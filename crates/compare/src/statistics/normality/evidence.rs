//! Why a trace is unusual, in words, with the place.

use super::features::Features;
use super::keys::{Key, Meaning, Often};
use super::places::{lines, place};
use super::surprisal::Oddity;
use crate::difftrace::attribute::what::Entry;
use crate::difftrace::parting;
use crate::difftrace::trees::Trees;
use crate::naming::{told, told_around};
use crate::structure::divergence::told_loop;
use lockstep_calltree::FunctionKey;
use lockstep_trace::{Event, Thread, TraceName};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Something that a trace does and comparable traces do not, or the other way round.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The kind of attribute, for sequences also the filter: `callers`, `double under mpi`.
    pub family: String,
    /// The attribute in words: `a call of memcpy from worker`.
    pub what: String,
    /// Other calls that are equally unusual; at most 2.
    pub others: Vec<String>,
    /// Whether the trace has `what` (true) or lacks it (false).
    pub present: bool,
    /// Number of comparable traces that have it.
    pub seen: u32,
    /// Number of comparable traces: those of the same role in the normal runs, or for `outliers` in this run.
    pub of: u32,
    /// How unusual the trace is in this family: (surprisal - mean) / (standard deviation + 1), at least 0. Mean and
    /// deviation are those of the comparable traces.
    pub z: f64,
    /// Source lines of the call that `what` is about. Empty if no line is known.
    pub source: Vec<String>,
    /// Number of the trace's first event that shows it, from 0. Null if it is unknown, or if the trace lacks `what`.
    pub event: Option<u64>,
}

impl Evidence {
    /// `lacks what each of the 40 comparable traces of the normal runs has: a call of ...`
    pub(crate) fn clause(&self) -> String {
        self.clause_among(" of the normal runs")
    }

    /// The same beside comparable traces of another kind.
    pub(crate) fn clause_among(&self, whose: &str) -> String {
        let Self { what, seen, of, .. } = self;
        let others = self.others.iter().map(|it| format!(", {it}"));
        let place = format!("{}{}", place(&self.source), others.collect::<String>());
        let compared = |count: u32| match count {
            1 => format!("the one comparable trace{whose}"),
            _ => format!("the {count} comparable traces{whose}"),
        };
        match (self.present, *seen) {
            (true, 0) => format!("does what none of {} does: {what}{place}", compared(*of)),
            (false, all) if all == *of => {
                format!("lacks what each of {} has: {what}{place}", compared(*of))
            }
            (true, _) => format!("does what {seen} of {} do: {what}{place}", compared(*of)),
            (false, _) => format!("lacks what {seen} of {} have: {what}{place}", compared(*of)),
        }
    }
}

/// How many pieces of evidence are told of a trace.
const TOLD: usize = 3;

/// The strongest evidence against a trace: of the families, by their scores (those that decide first), the oddities in each.
pub(crate) fn evidence(
    features: &Features,
    trees: &Trees,
    trace: TraceName,
    mut families: Vec<(usize, f64, bool)>,
    oddities: &dyn Fn(usize) -> Vec<Oddity>,
) -> Vec<Evidence> {
    families.retain(|(_, z, _)| *z > 0.0);
    families.sort_by(|a, b| {
        (b.2.cmp(&a.2))
            .then(b.1.total_cmp(&a.1))
            .then(a.0.cmp(&b.0))
    });
    let mut told: Vec<Evidence> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (family, z, _) in families {
        let meaning = &features.meanings[family];
        if told.len() == TOLD {
            break;
        }
        if names.contains(&meaning.name) {
            continue;
        }
        let found = oddities(family);
        let Some(first) = found.first() else { continue };
        let equal = found
            .iter()
            .take_while(|other| other.surprisal > first.surprisal - 1e-9);
        // What is there can be looked at; calls say more than loops and sequences of many.
        let Some(shown) = equal.clone().max_by_key(|other| rank(other, meaning)) else {
            continue;
        };
        let words = Words { features, trees };
        let mut told_now = words.evidence(trace, meaning, shown, z);
        if let Key::Edge(..) = meaning.keys[shown.attribute as usize] {
            // Of one call how often it is made at the most, or is not made at the least: the other numbers follow.
            let mut calls: BTreeMap<(Option<FunctionKey>, FunctionKey), Often> = BTreeMap::new();
            for it in equal.filter(|it| it.present == shown.present) {
                if let Key::Edge(caller, callee, often) = meaning.keys[it.attribute as usize] {
                    let told = calls.entry((caller, callee)).or_insert(often);
                    *told = match shown.present {
                        true => (*told).max(often),
                        false => (*told).min(often),
                    };
                }
            }
            let key = |(call, often): ((_, _), Often)| Key::Edge(call.0, call.1, often);
            let of = words.call(&meaning.keys[shown.attribute as usize]);
            let first = calls.keys().copied().find(|it| it.0.zip(Some(it.1)) == of);
            let first = first.and_then(|it| Some((it, calls.remove(&it)?)));
            if let Some(first) = first {
                told_now.what = words.what(&key(first), meaning.lens);
            }
            let mut others: Vec<String> = (calls.into_iter())
                .map(|it| words.what(&key(it), meaning.lens))
                .collect();
            others.sort_unstable();
            others.truncate(TOLD - 1);
            told_now.others = others;
        }
        if told.iter().all(|other| other.what != told_now.what) {
            names.push(meaning.name);
            told.push(told_now);
        }
    }
    told
}

/// Of equally surprising attributes, which to show: calls before loops and sequences of many.
fn rank(oddity: &Oddity, meaning: &Meaning) -> (bool, bool, std::cmp::Reverse<u32>) {
    let plain = match &meaning.keys[oddity.attribute as usize] {
        Key::Entries(entries, _) => {
            (entries.iter()).all(|entry| matches!(entry, Entry::Function(_)))
        }
        _ => true,
    };
    (plain, oddity.present, std::cmp::Reverse(oddity.attribute))
}

struct Words<'a> {
    features: &'a Features,
    trees: &'a Trees<'a>,
}

impl Words<'_> {
    fn evidence(&self, trace: TraceName, meaning: &Meaning, oddity: &Oddity, z: f64) -> Evidence {
        let key = &meaning.keys[oddity.attribute as usize];
        let family = match meaning.lens {
            Some(lens) => {
                let (lens, _) = &self.features.lenses[lens];
                format!("{} under {}", meaning.name, lens.filter)
            }
            None => meaning.name.to_owned(),
        };
        let call = self.call(key);
        let thread = self
            .trees
            .last()
            .run
            .trace(trace)
            .filter(|_| oddity.present);
        Evidence {
            family,
            what: self.what(key, meaning.lens),
            others: Vec::new(),
            present: oddity.present,
            seen: oddity.seen,
            of: oddity.of,
            z,
            source: call.map_or_else(Vec::new, |(caller, callee)| {
                lines(self.trees, caller, callee)
            }),
            event: thread
                .zip(call)
                .and_then(|(thread, (caller, callee))| self.first(thread, caller, callee)),
        }
    }

    fn name(&self, function: FunctionKey) -> &str {
        &self.trees.forest.function(function).name
    }

    fn told(&self, function: FunctionKey) -> Cow<'_, str> {
        told(self.name(function))
    }

    /// The call that an attribute is about.
    fn call(&self, key: &Key) -> Option<(FunctionKey, FunctionKey)> {
        match key {
            Key::Edge(Some(caller), callee, _) => Some((*caller, *callee)),
            Key::Step(Some(caller), (_, Some(callee))) => Some((*caller, *callee)),
            Key::Path(path) => {
                let paths = &self.features.paths.items;
                let (above, callee) = paths[*path];
                Some((paths[above?].1, callee))
            }
            _ => None,
        }
    }

    /// The first event of a trace in which a function calls another.
    fn first(&self, thread: &Thread, caller: FunctionKey, callee: FunctionKey) -> Option<u64> {
        let functions = &self.trees.last().functions;
        let mut open: Vec<FunctionKey> = Vec::new();
        for (event, at) in thread.events().zip(0..) {
            match event {
                Event::Call(function) => {
                    let function = functions.key(function);
                    // Callers that are not compared stand between.
                    if function == callee && open.contains(&caller) {
                        return Some(at);
                    }
                    open.push(function);
                }
                Event::Return => drop(open.pop()),
                Event::Tail => {}
            }
        }
        None
    }

    fn what(&self, key: &Key, lens: Option<usize>) -> String {
        match key {
            Key::Entries(entries, often) => {
                let words: Vec<String> = entries.iter().map(|it| self.entry(*it, lens)).collect();
                match words.as_slice() {
                    [one] if matches!(entries[0], Entry::Loop(_)) => {
                        format!("the loop {one}{}", with(*often, "iterations"))
                    }
                    // Calls in loops are the loops'.
                    [one] => format!("a call of {one} outside of loops{}", times(*often)),
                    several => several.join(", then "),
                }
            }
            Key::Edge(caller, callee, often) => {
                let from = caller.map_or_else(String::new, |it| format!(" from {}", self.told(it)));
                format!("a call of {}{from}{}", self.told(*callee), times(*often))
            }
            Key::Step(function, (after, next)) => {
                let within = function.map_or_else(String::new, |it| {
                    format!(" in {}", told_around(self.name(it)))
                });
                let after = after.map(|it| self.told(it));
                match (after, next.map(|it| self.told(it))) {
                    (Some(after), Some(next)) => format!("{next} right after {after}{within}"),
                    (None, Some(next)) => format!("{next} first of all{within}"),
                    (Some(after), None) => format!("a return right after {after}{within}"),
                    (None, None) => format!("a return without any call{within}"),
                }
            }
            Key::Path(path) => {
                let functions = self.features.paths.functions(*path).into_iter();
                let names: Vec<_> = functions.map(|it| self.told(it)).collect();
                format!("the calls {}", names.join(" > "))
            }
            Key::Loop(caller, example, often) => {
                let body = told_loop(&self.trees.forest, *example);
                let within = caller.map_or_else(String::new, |it| format!(" in {}", self.told(it)));
                format!("a loop {body}{within}{}", with(*often, "iterations"))
            }
            Key::Open(stack) => {
                let names: Vec<_> = stack.iter().map(|it| self.told(*it)).collect();
                format!("an end within {}", names.join(" > "))
            }
            Key::Argument(function, name, said) => format!("{function} with {name}={said}"),
            Key::Length(often) => with(*often, "events")
                .trim_start_matches(" with ")
                .to_owned(),
        }
    }

    fn entry(&self, entry: Entry, lens: Option<usize>) -> String {
        let Some(lens) = lens else {
            return String::new();
        };
        let (_, folding) = &self.features.lenses[lens];
        match entry {
            Entry::Function(symbol) => told(self.trees.name(symbol)).into_owned(),
            Entry::Loop(body) => parting::body(body, folding, self.trees),
        }
    }
}

fn times(often: Often) -> String {
    match often {
        Often::Any => String::new(),
        Often::Times(1) => ", once".to_owned(),
        Often::Times(times) => format!(", {times} times"),
        Often::AtLeast(0) => ", at least once".to_owned(),
        Often::AtLeast(_) => format!(", {} times", range(often)),
    }
}

fn with(often: Often, what: &str) -> String {
    match often {
        Often::Any => String::new(),
        Often::Times(1) | Often::AtLeast(0) => {
            format!(" with {} {}", range(often), what.trim_end_matches('s'))
        }
        _ => format!(" with {} {what}", range(often)),
    }
}

fn range(often: Often) -> String {
    match often {
        Often::Any => String::new(),
        Often::Times(times) => times.to_string(),
        Often::AtLeast(power) => format!("at least {}", 1u64 << power.min(63)),
    }
}
