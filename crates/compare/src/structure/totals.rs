//! How often a trace calls each function in all, beside what it does in the normal runs.
//!
//! A function that is never called any more, or was never called before, is what a reader looks for first: it says more than what is
//! called inside it, or right before and after it. Of several such, the one around the others is told.
//!
//! *Costs*: O(nodes of the trees of a trace). *Not for* finding who differs: it puts in words what was found.

use super::source::lines;
use crate::calls::{self, tree_calls};
use crate::difftrace::trees::Trees;
use crate::naming::{is_shown, is_timing, range, times, told, told_around};
use lockstep_calltree::{FunctionKey, NodeId};
use lockstep_trace::{SourceLine, TraceName, is_standard};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function that a trace calls otherwise than in the normal runs.
pub(crate) struct Change {
    name: String,
    /// The fewest calls in a normal run, and the most.
    before: (u64, u64),
    now: u64,
    /// How many normal runs there are.
    runs: usize,
    /// Who calls it, and in which lines.
    caller: Option<String>,
    lines: Vec<SourceLine>,
    weight: Weight,
}

/// How much a change says: of the program's own functions, more than others, not of timing; by how much.
type Weight = (bool, bool, u64);

/// So many times the range of normal runs is far from it.
const FAR: u64 = 4;

/// Fewer calls may come or go by chance.
const FEW: u64 = 3;

impl Change {
    /// The function, and the lines that call it.
    pub(crate) fn called(&self) -> (Option<String>, Vec<SourceLine>) {
        (Some(self.name.clone()), self.lines.clone())
    }

    /// Whether all calls are gone, or there were none.
    pub(crate) fn is_whole(&self) -> bool {
        let (fewest, most) = self.before;
        (self.now == 0 && fewest >= FEW) || (most == 0 && self.now >= FEW)
    }

    /// Whether several normal runs differ by far less than it differs from them.
    fn is_far(&self) -> bool {
        let (fewest, most) = self.before;
        let distance = fewest
            .saturating_sub(self.now)
            .max(self.now.saturating_sub(most));
        self.runs > 1
            && distance >= FEW
            && distance >= FAR * (most - fewest)
            && distance * 20 >= most
    }

    /// Whether it is called less than before.
    pub(crate) fn is_gone(&self) -> bool {
        self.now < self.before.0
    }

    /// Whether it is a function of the program itself, and no matter of timing.
    pub(crate) fn is_own(&self) -> bool {
        self.weight.0 && self.weight.1
    }

    /// `never calls erase, in work() at store.cpp:60 (14 to 17 times in the normal runs)`.
    pub(crate) fn clause(&self) -> String {
        let name = &self.name;
        let (fewest, most) = self.before;
        let runs = match (self.runs, fewest == most) {
            (1, _) => "the normal run",
            (_, true) => "each normal run",
            (_, false) => "the normal runs",
        };
        let place = self.place();
        match (self.now, most) {
            (0, _) => format!(
                "never calls {name}{place} ({} in {runs})",
                range(fewest, most)
            ),
            (now, 0) => format!(
                "calls {name} {}{place}, never in {}",
                times(now),
                if self.runs == 1 {
                    runs
                } else {
                    "the normal runs"
                }
            ),
            (now, _) => format!(
                "calls {name} {}{place} ({} in {runs})",
                times(now),
                range(fewest, most)
            ),
        }
    }

    fn place(&self) -> String {
        let from = self.caller.as_ref().map(|it| format!(", in {it}"));
        let mut place = from.unwrap_or_default();
        if let [line] = self.lines.as_slice() {
            place.push_str(&format!(" at {}", line.brief()));
        }
        place
    }
}

type Counts = FxHashMap<FunctionKey, u64>;

/// The changes of a trace, that which says most first.
pub(crate) fn changes(trees: &Trees, trace: TraceName) -> Vec<Change> {
    let roots = trees.runs.iter().map(|run| Some(vec![run.root(trace)?]));
    match roots.collect::<Option<Vec<Vec<NodeId>>>>() {
        Some(roots) => between(trees, &roots),
        None => Vec::new(),
    }
}

/// The changes of all traces together: where threads share work, who does it is chance, and how much there is is not. Of the
/// program's own functions, and beyond all that normal runs differ in.
pub(crate) fn together(trees: &Trees) -> Vec<Change> {
    let mut found = between(trees, &trees.roots_of_runs());
    found.retain(|it| it.is_own() && (it.is_whole() || it.is_far()));
    found
}

/// A number of calls in normal runs, from the fewest to the most, and in the last one.
type Numbers = ((u64, u64), u64);

/// Of the last of some traces, or sets of them, beside all others.
fn between(trees: &Trees, roots: &[Vec<NodeId>]) -> Vec<Change> {
    let Some((last, normals)) = roots.split_last() else {
        return Vec::new();
    };
    let now = counts(trees, last);
    let before: Vec<Counts> = normals.iter().map(|it| counts(trees, it)).collect();
    let all: FxHashSet<FunctionKey> = before
        .iter()
        .flat_map(FxHashMap::keys)
        .chain(now.keys())
        .copied()
        .collect();
    let mut changed: FxHashMap<FunctionKey, Numbers> = FxHashMap::default();
    for key in all {
        let of = |counts: &Counts| counts.get(&key).copied().unwrap_or(0);
        let each = || before.iter().map(of);
        let range = (each().min().unwrap_or(0), each().max().unwrap_or(0));
        let now = of(&now);
        if !(range.0..=range.1).contains(&now) {
            changed.insert(key, (range, now));
        }
    }
    let mut callers: FxHashMap<FunctionKey, Vec<FunctionKey>> = FxHashMap::default();
    for (caller, callee) in tree_calls(&trees.forest, &roots.concat()) {
        if let Some(caller) = caller.filter(|it| *it != callee && changed.contains_key(&callee)) {
            callers.entry(callee).or_default().push(caller);
        }
    }
    let mut found: Vec<Change> = Vec::new();
    for (key, (before, now)) in &changed {
        let callers = callers.get(key).map_or(&[][..], Vec::as_slice);
        // What is called in something that changed in the same way is no news.
        let kind = |before: (u64, u64), now| (before.1 == 0, now == 0);
        let is_outer = |it: &FunctionKey| {
            changed.get(it).is_some_and(|it| {
                kind(it.0, it.1) == kind(*before, *now) && share(it.0, it.1) >= share(*before, *now)
            })
        };
        if callers.iter().any(is_outer) {
            continue;
        }
        let function = trees.forest.function(*key);
        let own = !function.imported && !is_standard(&function.name) && is_shown(&function.name);
        let caller = match callers {
            [one] => Some(*one),
            _ => None,
        };
        found.push(Change {
            name: told(&function.name).into_owned(),
            before: *before,
            now: *now,
            runs: normals.len(),
            caller: caller.map(|it| told_around(&trees.forest.function(it).name)),
            lines: caller.map_or_else(Vec::new, |it| lines(trees, it, *key)),
            weight: (own, !is_timing(&function.name), share(*before, *now)),
        });
    }
    found.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    found
}

/// By how much a number changed, in thousandths.
fn share((fewest, most): (u64, u64), now: u64) -> u64 {
    let distance = fewest.saturating_sub(now).max(now.saturating_sub(most));
    distance.saturating_mul(1000) / now.max(most).max(1)
}

fn counts(trees: &Trees, roots: &[NodeId]) -> Counts {
    let mut counts = calls::counts(&trees.forest, roots);
    counts.retain(|function, _| !trees.is_out(*function));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: (u64, u64), now: u64, runs: usize) -> Change {
        Change {
            name: "erase".to_owned(),
            before,
            now,
            runs,
            caller: Some("work()".to_owned()),
            lines: vec![SourceLine {
                file: "/src/store.cpp".into(),
                line: 60,
            }],
            weight: (true, true, share(before, now)),
        }
    }

    #[test]
    fn a_change_in_words() {
        let cases = [
            (
                (14, 17),
                0,
                3,
                "never calls erase, in work() at store.cpp:60 (14 to 17 times in the normal runs)",
            ),
            (
                (0, 0),
                48,
                1,
                "calls erase 48 times, in work() at store.cpp:60, never in the normal run",
            ),
            (
                (0, 0),
                1,
                2,
                "calls erase once, in work() at store.cpp:60, never in the normal runs",
            ),
            (
                (1080, 1080),
                1125,
                1,
                "calls erase 1,125 times, in work() at store.cpp:60 (1,080 times in the normal run)",
            ),
            (
                (2, 2),
                1,
                2,
                "calls erase once, in work() at store.cpp:60 (twice in each normal run)",
            ),
        ];
        for (before, now, runs, words) in cases {
            assert_eq!(change(before, now, runs).clause(), words);
        }
    }

    #[test]
    fn few_calls_come_and_go_by_chance() {
        assert!(change((14, 17), 0, 3).is_whole() && !change((2, 17), 0, 3).is_whole());
        assert!(change((0, 0), 3, 1).is_whole() && !change((0, 0), 2, 1).is_whole());
        assert!(!change((1, 1), 9, 1).is_whole());
        // Of one normal run nobody knows how far is far.
        assert!(change((905, 907), 1000, 3).is_far() && !change((905, 907), 1000, 1).is_far());
        assert!(!change((905, 957), 1000, 3).is_far() && !change((905, 907), 912, 3).is_far());
    }
}
