//! Two builds of one program: what a compiler made of it is no difference of behaviour.
//!
//! ```text
//!  -O0   main( sort( swap swap )  print( printf ) )
//!  -O2   main( sort.part.0        puts )               sort by its base name; swap and print are left out; puts is printf
//! ```
//!
//! Clones go by their base names ([`crate::difftrace::names`]). Functions that one build only calls may have been inlined in the other: they are left
//! out, so that what they called is their callers', and has to be as before. Where the code of the other's callers still calls them in as
//! many places they were not inlined ([`reached`]): the run did not come there, which is a difference. What both builds call may still be inlined in
//! some places, or moved out of a loop: that is looked for where traces part. A compiler does so once and for all: a way that normal runs
//! go is not gone any more *at all*, in most of the threads that come there. Where it is gone elsewhere, or by another thread, a
//! call was left out or added, which is what is looked for.

use crate::Options;
use crate::calls::tree_calls;
use crate::difftrace::names::are_two;
use crate::difftrace::trees::{RunTrees, Trees};
use crate::naming::listed;
use lockstep_calltree::{FunctionKey, NodeId};
use lockstep_trace::{Run, brief};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

mod codes;
pub(crate) mod contained;
mod elsewhere;
mod reached;

use codes::{Codes, inlinable, projected};
use reached::Beside;

/// How two builds of a program were compared. What a compiler renames, inlines or moves is no difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Builds {
    /// Functions with a compiler suffix (`sort.part.0`) that are compared under their base name (`sort`).
    pub by_base_name: Vec<String>,
    /// Functions that only the normal build calls. They are not compared: the other build may have inlined them.
    pub normal_only: Vec<String>,
    /// Functions that only the faulty build calls. They are not compared: the other build may have inlined them.
    pub faulty_only: Vec<String>,
    /// Functions of `normal_only` and `faulty_only` that the other build does not contain: new, removed, or inlined
    /// everywhere.
    pub absent: Vec<String>,
    /// Functions that only one run calls, although the code of both builds calls them. They are compared.
    pub reachable: Vec<String>,
    /// Functions that the two builds call from different places. They are not compared.
    pub elsewhere: Vec<String>,
    /// Set if the two seem to be different programs, because they have few functions in common. Null otherwise.
    pub strangers: Option<Strangers>,
}

/// How many of their own functions two programs call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Strangers {
    /// Number of functions that the normal program calls.
    pub normal: usize,
    /// Number of functions that the faulty program calls.
    pub faulty: usize,
    /// Number of functions that both programs call.
    pub both: usize,
}

impl Strangers {
    /// Builds of one program have most of their functions in common: compilers inline some, people rename some.
    fn found(trees: &Trees) -> Option<Self> {
        let is_own = |key: &FunctionKey| {
            let function = trees.forest.function(*key);
            !function.imported && !STARTS.contains(&function.name.as_str())
        };
        let called = |roots: &[NodeId]| -> FxHashSet<FunctionKey> {
            let calls = tree_calls(&trees.forest, roots).into_iter();
            calls.map(|(_, it)| it).filter(is_own).collect()
        };
        let normal: Vec<NodeId> = trees.normals().iter().flat_map(RunTrees::roots).collect();
        let (normal, faulty) = (called(&normal), called(&trees.last().roots()));
        let both = normal.intersection(&faulty).count();
        let fewer = normal.len().min(faulty.len());
        (fewer >= FEWEST && COMMON * both < fewer).then_some(Self {
            normal: normal.len(),
            faulty: faulty.len(),
            both,
        })
    }
}

/// What any program calls.
const STARTS: [&str; 4] = ["main", "MAIN__", "_init", "_fini"];
/// Of fewer functions nothing follows.
const FEWEST: usize = 2;
/// Of so many, two builds have one in common.
const COMMON: usize = 5;

/// Leaves out of `trees` what two builds call differently; `None` where there is but one build.
pub(crate) fn leave_out(trees: &mut Trees, options: &Options) -> Option<Builds> {
    let runs: Vec<&Run> = trees.runs.iter().map(|it| it.run).collect();
    if !are_two(&runs) {
        return None;
    }
    let mut told = Builds {
        by_base_name: trees.names.clones.clone(),
        strangers: Strangers::found(trees),
        ..Builds::default()
    };
    let codes = Codes::of(trees);
    let Once { alone, reachable } = once(trees, &codes, options);
    told.normal_only = named(trees, alone[0].iter());
    told.faulty_only = named(trees, alone[1].iter());
    told.reachable = named(trees, reachable.iter());
    let absent = codes.absent(trees, &alone);
    told.absent = named(trees, absent.iter());
    trees.leave_out(alone.into_iter().flatten());
    // That the program did not come to them explains the differences around them.
    trees.leave_out(reachable.iter().copied());
    told.elsewhere = elsewhere::elsewhere(trees, &codes, options);
    for function in reachable {
        trees.take_in(function);
    }
    Some(told)
}

fn named<'a>(trees: &Trees, functions: impl Iterator<Item = &'a FunctionKey>) -> Vec<String> {
    let names: BTreeSet<&str> = functions
        .map(|it| trees.forest.function(*it).name.as_str())
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Who calls whom in some trees.
#[derive(Default)]
struct Calls {
    callers: FxHashMap<FunctionKey, FxHashSet<Option<FunctionKey>>>,
    callees: FxHashMap<Option<FunctionKey>, FxHashSet<FunctionKey>>,
}

impl Calls {
    fn of(trees: &Trees, roots: &[NodeId]) -> Self {
        let mut calls = Self::default();
        for (caller, callee) in tree_calls(&trees.forest, roots) {
            calls.callers.entry(callee).or_default().insert(caller);
            calls.callees.entry(caller).or_default().insert(callee);
        }
        calls
    }
}

/// Functions that one build alone calls.
struct Once {
    /// The normal one, and the other one, as inlining makes it.
    alone: [FxHashSet<FunctionKey>; 2],
    /// Those that the other could have called.
    reachable: FxHashSet<FunctionKey>,
}

fn once(trees: &mut Trees, codes: &Codes, options: &Options) -> Once {
    let roots = projected(trees, options);
    let inlinable = inlinable(trees);
    let (normals, last) = roots.split_at(roots.len() - 1);
    let calls = [normals.concat(), last.concat()].map(|it| Calls::of(trees, &it));
    let only = |own: usize| -> FxHashSet<FunctionKey> {
        let other = &calls[1 - own].callers;
        let each = calls[own].callers.keys().copied();
        each.filter(|it| inlinable[it.0 as usize] && !other.contains_key(it))
            .collect()
    };
    let mut alone = [only(0), only(1)];
    let mut reachable = FxHashSet::default();
    if alone.iter().any(|it| !it.is_empty()) {
        // Who called whom a filter does not tell.
        let before: Vec<NodeId> = trees.normals().iter().flat_map(RunTrees::roots).collect();
        let whole = [before, trees.last().roots()].map(|it| Calls::of(trees, &it));
        let codes = [&codes.normal, &codes.faulty];
        for (own, alone) in alone.iter_mut().enumerate() {
            let beside = Beside {
                own: codes[own],
                other: codes[1 - own],
                calls: &|it| whole[1 - own].callers.contains_key(&it),
                is_imported: &|it| trees.forest.function(it).imported,
            };
            let is_own = |it: &&FunctionKey| !trees.forest.function(**it).imported;
            let callers = |it: &FunctionKey| {
                let callers = whole[own].callers.get(it).cloned().unwrap_or_default();
                (*it, callers)
            };
            let found = beside.reachable(&alone.iter().filter(is_own).map(callers).collect());
            alone.retain(|it| !found.contains(it));
            reachable.extend(found);
        }
    }
    let [normal_only, faulty_only] = &mut alone;
    // The normal build inlines more than the other, or what is called by few is new.
    if faulty_only.len() < 2 || faulty_only.len() <= normal_only.len() {
        let each: Vec<Calls> = last
            .concat()
            .iter()
            .map(|root| Calls::of(trees, &[*root]))
            .collect();
        faulty_only.retain(|function| is_common(*function, &calls[1], &each));
    }
    Once { alone, reachable }
}

/// Whether a function calls others, or at least half of the traces that come to its callers call it.
fn is_common(function: FunctionKey, all: &Calls, each: &[Calls]) -> bool {
    let callees = all.callees.get(&Some(function));
    let calls = callees.is_some_and(|it| !it.is_empty());
    let have = each.iter().filter(|it| it.callers.contains_key(&function));
    let comes_there = |it: &&Calls| {
        let mut callers = all.callers[&function].iter();
        callers.any(|caller| it.callees.contains_key(caller))
    };
    calls || 2 * have.count() >= each.iter().filter(comes_there).count()
}

/// How many names a note lists before it counts the rest, and how long one may be.
const LISTED: usize = 6;

fn list(names: &[String]) -> String {
    listed(names.iter().map(|it| brief(it)), LISTED)
}

impl Builds {
    /// What was matched and what was left out, in a sentence.
    #[must_use]
    pub fn note(&self) -> String {
        let mut note = match self.strangers {
            None => "the runs are of two builds of the program".to_owned(),
            Some(it) => format!(
                "expected two runs of one program, found two programs, it seems: of {} functions of its own that the \
                 normal one calls and {} of the faulty one, they have {} in common; the rest is compared",
                it.normal, it.faulty, it.both
            ),
        };
        if !self.by_base_name.is_empty() {
            note.push_str(&format!(
                "; compared by their base names: {}",
                list(&self.by_base_name)
            ));
        }
        for (which, names) in [("normal", &self.normal_only), ("faulty", &self.faulty_only)] {
            if !names.is_empty() {
                note.push_str(&format!(
                    "; left out, since only the {which} one calls them (inlined in the other?): {}",
                    list(names)
                ));
            }
        }
        for (names, why) in [
            (&self.absent, "of these the other build does not have"),
            (
                &self.reachable,
                "compared, as the code of both calls them, though only one of the runs does",
            ),
        ] {
            if !names.is_empty() {
                note.push_str(&format!("; {why}: {}", list(names)));
            }
        }
        if !self.elsewhere.is_empty() {
            note.push_str(&format!("; left out, since the two call them in other places (inlined or moved by a compiler?): {}", list(&self.elsewhere)));
        }
        note
    }
}
