//! Two builds of one program: what a compiler made of it is no difference of behaviour.
//!
//! ```text
//!  -O0   main( sort( swap swap )  print( printf ) )
//!  -O2   main( sort.part.0        puts )               sort by its base name; swap and print are left out; puts is printf
//! ```
//!
//! Clones go by their base names ([`Names`]). Functions that one build only calls may have been inlined in the other: they are left
//! out, so that what they called is their callers', and has to be as before. What both builds call may still be inlined in
//! some places, or moved out of a loop: that is looked for where traces part. A compiler does so once and for all: a way that normal runs
//! go is not gone any more *at all*, in most of the threads that come there. Where it is gone elsewhere, or by another thread, a
//! call was left out or added, which is what is looked for.

use crate::Options;
use crate::divergence::usual::{self, Step};
use crate::findings::Explained;
use crate::normality::tree_calls;
use crate::sequence::{Lens, Trees};
use lockstep_calltree::{FunctionKey, Label, NodeId};
use lockstep_trace::Run;
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeSet;

mod names;

pub(crate) use names::Names;

/// Library functions that compilers expand, move and call by themselves.
const EXPANDED: &str = r"(?x)
    ^(mem(cpy|move|set|cmp|chr|pcpy) | str(n?len|n?cpy|n?cat|n?cmp|r?chr|p?brk|c?spn|str|dup) | l*abs | malloc | free | realloc
    | (is|to)(alnum|alpha|digit|lower|upper|print|punct|space|xdigit) | __ctype_\w+ | __errno_location | __tls_get_addr | pthread_self
    | (a?(sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|floor|ceil|trunc|fabs|fmax|fmin|fmod|fma|l*round|l*rint
      |nearbyint|copysign|remainder|erfc?|[lt]gamma|frexp|ldexp|scalbl?n|modf)[fl]?
    | omp_get_(thread_num|num_threads|max_threads)
    | _gfortran_(internal_(un)?pack|string_\w+|compare_string|concat_string|size\w*|reshape\w*|matmul\w*|spread\w*)
    | __(mul|div)[sdx]c3 | __powi[sd]f2 | __cxa_atexit | __stack_chk_fail | __fentry__ )$
  | ^(std|__gnu_cxx|__cxxabiv1):: | ^(void\ |[\w:]+\ )?operator\ (new|delete) | ^_ZN?K?S";

/// Those of them whose calls with the same arguments are worth one.
const PURE: &str = r"(?x)
    ^( str(n?len|n?cmp|r?chr|pbrk|c?spn|str) | mem(cmp|chr) | l*abs | (is|to)(alnum|alpha|digit|lower|upper|print|punct|space|xdigit)
    | __ctype_\w+ | __errno_location | __tls_get_addr | pthread_self | omp_get_(thread_num|num_threads|max_threads)
    | (a?(sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|floor|ceil|trunc|fabs|fmax|fmin|fmod|fma|l*round|l*rint
      |nearbyint|copysign|remainder|erfc?|[lt]gamma|ldexp|scalbl?n)[fl]? )$";

/// How many times more functions are looked for.
const ROUNDS: usize = 24;

/// What is not compared of two builds of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Builds {
    /// Clones that are compared under their base names.
    pub by_base_name: Vec<String>,
    /// Functions that only the normal build calls.
    pub normal_only: Vec<String>,
    /// Functions that only the faulty build calls.
    pub faulty_only: Vec<String>,
    /// Functions that both builds call, each in its own places.
    pub elsewhere: Vec<String>,
    /// Where the two seem to be no builds of one program: how many functions of its own each calls, and both.
    pub strangers: Option<Strangers>,
}

/// How many of their own functions two programs call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Strangers {
    /// The normal one.
    pub normal: usize,
    /// The faulty one.
    pub faulty: usize,
    /// Both of them.
    pub both: usize,
}

impl Strangers {
    /// Builds of one program have most of their functions in common: compilers inline some, people rename some.
    fn found(trees: &Trees) -> Option<Self> {
        let (last, normals) = trees.runs.split_last()?;
        let is_own = |key: &FunctionKey| {
            let function = trees.forest.function(*key);
            !function.imported && !STARTS.contains(&function.name.as_str())
        };
        let called = |roots: &[NodeId]| -> FxHashSet<FunctionKey> {
            let calls = tree_calls(&trees.forest, roots).into_iter();
            calls.map(|(_, it)| it).filter(is_own).collect()
        };
        let roots = |run: &Vec<lockstep_calltree::Trace>| run.iter().map(|it| it.root).collect();
        let normal: Vec<Vec<NodeId>> = normals.iter().map(roots).collect();
        let (normal, faulty) = (called(&normal.concat()), called(&roots(last)));
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

/// Whether the program of the last run is another build than that of the others.
pub(crate) fn are_two(runs: &[&Run]) -> bool {
    let of = |run: &Run| -> BTreeSet<String> {
        let mut builds = BTreeSet::new();
        for process in &run.processes {
            if run.is_visible(process) && !process.is_launcher() && !process.build.is_empty() {
                builds.insert(process.build.clone());
            }
        }
        builds
    };
    let Some((last, normals)) = runs.split_last() else {
        return false;
    };
    let faulty = of(last);
    let normal: BTreeSet<String> = normals.iter().flat_map(|run| of(run)).collect();
    !faulty.is_subset(&normal) && !normal.is_subset(&faulty)
}

/// Leaves out of `trees` what two builds call differently; `None` where there is but one build.
pub(crate) fn leave_out(trees: &mut Trees, runs: &[&Run], options: &Options) -> Option<Builds> {
    if !are_two(runs) {
        return None;
    }
    let mut told = Builds {
        by_base_name: trees.names.clones.clone(),
        strangers: Strangers::found(trees),
        ..Builds::default()
    };
    let once = once(trees, options);
    for (names, functions) in [&mut told.normal_only, &mut told.faulty_only]
        .into_iter()
        .zip(&once)
    {
        *names = named(trees, functions);
    }
    trees.leave_out(once.iter().flatten().copied());
    elsewhere(trees, options, &mut told);
    Some(told)
}

fn named(trees: &Trees, functions: &FxHashSet<FunctionKey>) -> Vec<String> {
    let names: BTreeSet<&str> = functions
        .iter()
        .map(|it| trees.forest.function(*it).name.as_str())
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The trees of each run without what is left out.
fn projected(trees: &mut Trees, options: &Options) -> Vec<Vec<NodeId>> {
    let lens = (!options.sweep).then(|| Lens::of(options));
    let mut projection = trees.projection_without(lens.as_ref(), &[]);
    let forest = &mut trees.forest;
    let of_run = |run: &Vec<lockstep_calltree::Trace>| -> Vec<NodeId> {
        let each = run.iter();
        each.map(|it| forest.project(it.root, &mut projection))
            .collect()
    };
    trees.runs.iter().map(of_run).collect()
}

/// Functions that compilers may inline or expand.
fn inlinable(trees: &Trees) -> Vec<bool> {
    let expanded = Regex::new(EXPANDED).ok();
    let functions = trees.forest.functions().iter();
    let is = |it: &lockstep_calltree::Function| {
        !it.imported && it.name != "main"
            || expanded
                .as_ref()
                .is_some_and(|known| known.is_match(&it.name))
    };
    functions.map(is).collect()
}

/// Who calls whom in some trees.
struct Calls {
    callers: FxHashMap<FunctionKey, FxHashSet<Option<FunctionKey>>>,
    callees: FxHashMap<Option<FunctionKey>, FxHashSet<FunctionKey>>,
}

impl Calls {
    fn of(trees: &Trees, roots: &[NodeId]) -> Self {
        let (mut callers, mut callees) = (FxHashMap::default(), FxHashMap::default());
        for (caller, callee) in tree_calls(&trees.forest, roots) {
            FxHashMap::entry(&mut callers, callee)
                .or_insert_with(FxHashSet::default)
                .insert(caller);
            FxHashMap::entry(&mut callees, caller)
                .or_insert_with(FxHashSet::default)
                .insert(callee);
        }
        Self { callers, callees }
    }
}

/// Functions that the normal build alone calls, and the other one alone, as inlining makes it.
fn once(trees: &mut Trees, options: &Options) -> [FxHashSet<FunctionKey>; 2] {
    let roots = projected(trees, options);
    let inlinable = inlinable(trees);
    let Some((faulty_roots, normals)) = roots.split_last() else {
        return Default::default();
    };
    let normal = Calls::of(trees, &normals.concat());
    let faulty = Calls::of(trees, faulty_roots);
    let only = |own: &Calls, other: &Calls| -> FxHashSet<FunctionKey> {
        let each = own.callers.keys().copied();
        each.filter(|it| inlinable[it.0 as usize] && !other.callers.contains_key(it))
            .collect()
    };
    let normal_only = only(&normal, &faulty);
    let mut faulty_only = only(&faulty, &normal);
    // The normal build inlines more than the other, or what is called by few is new.
    if faulty_only.len() < 2 || faulty_only.len() <= normal_only.len() {
        let each: Vec<Calls> = faulty_roots
            .iter()
            .map(|root| Calls::of(trees, &[*root]))
            .collect();
        faulty_only.retain(|function| {
            let calls = !faulty
                .callees
                .get(&Some(*function))
                .is_none_or(FxHashSet::is_empty);
            let have = each
                .iter()
                .filter(|it| it.callers.contains_key(function))
                .count();
            let comes_there = |it: &&Calls| {
                let mut callers = faulty.callers[function].iter();
                callers.any(|caller| it.callees.contains_key(caller))
            };
            calls || 2 * have >= each.iter().filter(comes_there).count()
        });
    }
    [normal_only, faulty_only]
}

type Steps = FxHashMap<Option<FunctionKey>, FxHashSet<Step>>;

fn steps(trees: &Trees, roots: &[NodeId]) -> Steps {
    let mut all = Steps::default();
    for (id, _) in trees.forest.occurrences(roots) {
        let function = match trees.forest.node(id).label {
            Label::Call(call) => Some(call.function),
            Label::Trace => None,
            Label::Loop(_) | Label::Iteration | Label::Return => continue,
        };
        let found = usual::steps(&trees.forest, id).into_iter();
        let of = all.entry(function).or_default();
        of.extend(found.filter(|(after, next)| after != next || after.is_none()));
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
    let calls = |run: Option<&Vec<lockstep_calltree::Trace>>| {
        let roots: Vec<NodeId> = run.into_iter().flatten().map(|it| it.root).collect();
        let mut calls: FxHashMap<FunctionKey, u64> = FxHashMap::default();
        for (id, times) in trees.forest.occurrences(&roots) {
            if let Label::Call(call) = trees.forest.node(id).label {
                *calls.entry(call.function).or_default() += times;
            }
        }
        calls
    };
    let (normal, faulty) = (calls(trees.runs.first()), calls(trees.runs.last()));
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
fn elsewhere(trees: &mut Trees, options: &Options, told: &mut Builds) {
    let inlinable = inlinable(trees);
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
        told.elsewhere
            .push(trees.forest.function(*key).name.clone());
    }
    trees.leave_out(worth_one);
    let recursive = recursive(trees);
    let mut refused: FxHashSet<FunctionKey> = FxHashSet::default();
    let mut now = Explained::new(trees, options, &[]);
    for _ in 0..ROUNDS {
        if now.is_all() {
            return;
        }
        let moved = moved(trees, options);
        let Some(next) = suspect(trees, &now, &|it| {
            let may_move = free[it.0 as usize] || recursive.contains(&it) || moved.contains(&it);
            inlinable[it.0 as usize] && may_move && !refused.contains(&it)
        }) else {
            return;
        };
        trees.leave_out([next]);
        let after = Explained::new(trees, options, &[]);
        if after.events > now.events {
            now = after;
            told.elsewhere
                .push(trees.forest.function(next).name.clone());
        } else {
            trees.take_in(next);
            refused.insert(next);
        }
    }
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
        let last = trees.runs.last().map_or(&[][..], Vec::as_slice);
        let come = last.iter().filter(|trace| {
            let same = trees
                .runs
                .iter()
                .flatten()
                .filter(|it| it.name == trace.name);
            same.into_iter().any(|it| has(key, it.root))
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

/// How many names a note lists before it counts the rest, and how long one may be.
const LISTED: usize = 6;

fn list(names: &[String]) -> String {
    let short = |name: &String| lockstep_trace::brief(name).to_string();
    let listed: Vec<String> = names.iter().take(LISTED).map(short).collect();
    match names.len().saturating_sub(LISTED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
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
        if !self.elsewhere.is_empty() {
            note.push_str(&format!("; left out, since the two call them in other places (inlined or moved by a compiler?): {}", list(&self.elsewhere)));
        }
        note
    }
}
