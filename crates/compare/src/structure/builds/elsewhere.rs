//! What both builds call, each in its own places: inlined in some of them, or moved by a compiler.
//!
//! Where all code that calls a function calls the same in both builds, and is as long, the same compiler did the same with it in both.

use super::codes::{Codes, inlinable, projected};
use crate::Options;
use crate::calls::{counts, frames, tree_calls};
use crate::difftrace::trees::Trees;
use crate::structure::explained::Explained;
use crate::structure::steps::{Step, changes};
use lockstep_calltree::{FunctionKey, NodeId};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Those of them whose calls with the same arguments are worth one.
const PURE: &str = r"(?x)
    ^( str(n?len|n?cmp|r?chr|pbrk|c?spn|str) | mem(cmp|chr) | l*abs | (is|to)(alnum|alpha|digit|lower|upper|print|punct|space|xdigit)
    | __ctype_\w+ | __errno_location | __tls_get_addr | pthread_self | omp_get_(thread_num|num_threads|max_threads)
    | (a?(sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|floor|ceil|trunc|fabs|fmax|fmin|fmod|fma|l*round|l*rint
      |nearbyint|copysign|remainder|erfc?|[lt]gamma|ldexp|scalbl?n)[fl]? )$";

/// How many times more functions are looked for.
const ROUNDS: usize = 24;

type Steps = FxHashMap<Option<FunctionKey>, FxHashSet<Step>>;

fn steps(trees: &Trees, roots: &[NodeId]) -> Steps {
    let mut all = Steps::default();
    let forest = &trees.forest;
    for (id, function, _) in frames(forest, forest.occurrences(roots)) {
        all.entry(function).or_default().extend(changes(forest, id));
    }
    all
}

/// Functions around which the other build goes another way in one and the same function, and not as normal runs go any more.
fn moved(trees: &mut Trees, options: &Options) -> FxHashSet<FunctionKey> {
    let roots = projected(trees, options);
    let Some((faulty, normals)) = roots.split_last() else {
        return FxHashSet::default();
    };
    let (normal, faulty) = (steps(trees, &normals.concat()), steps(trees, faulty));
    let mut found = FxHashSet::default();
    for (function, before) in &normal {
        let Some(now) = faulty.get(function) else {
            continue;
        };
        if before.is_subset(now) {
            continue;
        }
        for (after, next) in before.symmetric_difference(now) {
            found.extend(after.iter().chain(next));
        }
    }
    found
}

/// Functions that the last run calls more often than the first one, or less.
fn counted_otherwise(trees: &Trees) -> FxHashSet<FunctionKey> {
    let normal = counts(&trees.forest, &trees.runs[0].roots());
    let faulty = counts(&trees.forest, &trees.last().roots());
    let same = |key: &FunctionKey| normal.get(key) == faulty.get(key);
    let both = normal.keys().filter(|key| faulty.contains_key(key));
    both.filter(|key| !same(key)).copied().collect()
}

/// Functions that call themselves: how often, a compiler says that makes loops of calls, or inlines some of them.
fn recursive(trees: &Trees) -> FxHashSet<FunctionKey> {
    let roots = trees.roots();
    let calls = tree_calls(&trees.forest, &roots).into_iter();
    calls
        .filter(|(caller, callee)| *caller == Some(*callee))
        .map(|(_, callee)| callee)
        .collect()
}

/// Leaves out what both builds call, as long as more is explained without it.
pub(super) fn elsewhere(trees: &mut Trees, codes: &Codes, options: &Options) -> Vec<String> {
    let mut told = Vec::new();
    let mut inlinable = inlinable(trees);
    for key in codes.alike() {
        if let Some(it) = inlinable.get_mut(key.0 as usize) {
            *it = false;
        }
    }
    let pure = Regex::new(PURE).ok();
    let is_pure = |name: &str| pure.as_ref().is_some_and(|it| it.is_match(name));
    let free: Vec<bool> = (trees.forest.functions().iter())
        .map(|it| it.imported && is_pure(&it.name))
        .collect();
    let counted = counted_otherwise(trees);
    let worth_one: Vec<FunctionKey> = (0..)
        .map(FunctionKey)
        .zip(&free)
        .filter(|(key, free)| **free && counted.contains(key))
        .map(|(key, _)| key)
        .collect();
    for key in &worth_one {
        told.push(trees.forest.function(*key).name.clone());
    }
    trees.leave_out(worth_one);
    let recursive = recursive(trees);
    let mut refused: FxHashSet<FunctionKey> = FxHashSet::default();
    let mut now = Explained::new(trees, options, &[]);
    for _ in 0..ROUNDS {
        if now.is_all() {
            break;
        }
        let moved = moved(trees, options);
        let Some(next) = suspect(trees, &now, &|it| {
            let may_move = free[it.0 as usize] || recursive.contains(&it) || moved.contains(&it);
            inlinable[it.0 as usize] && may_move && !refused.contains(&it)
        }) else {
            break;
        };
        trees.leave_out([next]);
        let after = Explained::new(trees, options, &[]);
        if after.events > now.events {
            now = after;
            told.push(trees.forest.function(next).name.clone());
        } else {
            trees.take_in(next);
            refused.insert(next);
        }
    }
    told
}

/// The function at which most traces part, and at least half of those that come there.
fn suspect(
    trees: &Trees,
    now: &Explained,
    may_be: &dyn Fn(FunctionKey) -> bool,
) -> Option<FunctionKey> {
    let mut votes: FxHashMap<FunctionKey, usize> = FxHashMap::default();
    let mut names: FxHashMap<&str, Vec<FunctionKey>> = FxHashMap::default();
    for (function, key) in trees.forest.functions().iter().zip(0..) {
        if may_be(FunctionKey(key)) {
            names
                .entry(&function.name)
                .or_default()
                .push(FunctionKey(key));
        }
    }
    for divergence in now.structures() {
        let told = [&divergence.faulty, &divergence.normal];
        let told: BTreeSet<&str> = told.into_iter().flatten().map(String::as_str).collect();
        for key in told.iter().filter_map(|name| names.get(name)).flatten() {
            *votes.entry(*key).or_default() += 1;
        }
    }
    let has = |key: FunctionKey, root: NodeId| {
        let mut calls = tree_calls(&trees.forest, &[root]).into_iter();
        calls.any(|(_, callee)| callee == key)
    };
    let enough = |key: FunctionKey, votes: usize| {
        let come = trees.last().traces.iter().filter(|trace| {
            let mut same = trees.runs.iter().filter_map(|it| it.root(trace.name));
            same.any(|root| has(key, root))
        });
        2 * votes >= come.count()
    };
    let mut votes: Vec<(FunctionKey, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(key, votes)| (std::cmp::Reverse(*votes), *key));
    votes
        .into_iter()
        .find(|(key, votes)| enough(*key, *votes))
        .map(|(key, _)| key)
}
