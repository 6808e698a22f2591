//! Two builds of one program: what a compiler made of it is no difference of behaviour.
//!
//! ```text
//!  -O0   main( sort( swap swap )  print( printf ) )
//!  -O2   main( sort.part.0        puts )               sort by its base name; swap and print are left out; puts is printf
//! ```
//!
//! Clones go by their base names ([`Names`]). Functions that one build only calls may have been inlined in the other: they are left
//! out, so that what they called is their callers', and has to be as before. Where the code of the other's callers still calls them in as
//! many places they were not inlined ([`reached`]): the run did not come there, which is a difference. What both builds call may still be inlined in
//! some places, or moved out of a loop: that is looked for where traces part. A compiler does so once and for all: a way that normal runs
//! go is not gone any more *at all*, in most of the threads that come there. Where it is gone elsewhere, or by another thread, a
//! call was left out or added, which is what is looked for.

use crate::Options;
use crate::normality::tree_calls;
use crate::sequence::{Lens, Trees};
use lockstep_calltree::{FunctionKey, NodeId};
use lockstep_trace::Run;
use lockstep_trace::threads::{self, Does};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::LazyLock;

mod contained;
mod elsewhere;
mod names;
mod reached;

pub(crate) use contained::cannot_contain;
pub(crate) use names::Names;
use reached::{Beside, Code};

/// Library functions that compilers expand, move and call by themselves.
static EXPANDED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?x)
    ^(mem(cpy|move|set|cmp|chr|pcpy) | str(n?len|n?cpy|n?cat|n?cmp|r?chr|p?brk|c?spn|str|dup) | l*abs | malloc | free | realloc
    | (is|to)(alnum|alpha|digit|lower|upper|print|punct|space|xdigit) | __ctype_\w+ | __errno_location | __tls_get_addr
    | (a?(sin|cos|tan)h?|atan2|sincos|sqrt|cbrt|hypot|pow|powi|exp|exp2|expm1|log|log2|log10|log1p|floor|ceil|trunc|fabs|fmax|fmin|fmod|fma|l*round|l*rint
      |nearbyint|copysign|remainder|erfc?|[lt]gamma|frexp|ldexp|scalbl?n|modf)[fl]?
    | _gfortran_(internal_(un)?pack|string_\w+|compare_string|concat_string|size\w*|reshape\w*|matmul\w*|spread\w*)
    | __(mul|div)[sdx]c3 | __powi[sd]f2 | __cxa_atexit | __stack_chk_fail | __fentry__ )$
  | ^(std|__gnu_cxx|__cxxabiv1):: | ^(void\ |[\w:]+\ )?operator\ (new|delete) | ^_ZN?K?S").ok()
});

/// Whether a function is one of them, or asks for what stays as it is (`omp_get_thread_num`).
fn is_expanded(name: &str) -> bool {
    let is_known = |known: &Regex| known.is_match(name);
    threads::meaning(name).does == Does::Query || EXPANDED.as_ref().is_some_and(is_known)
}

/// What is not compared of two builds of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Builds {
    /// Clones that are compared under their base names.
    pub by_base_name: Vec<String>,
    /// Functions that only the normal build calls.
    pub normal_only: Vec<String>,
    /// Functions that only the faulty build calls.
    pub faulty_only: Vec<String>,
    /// Those of them that the other build does not have: new, gone, or inlined wherever they were called.
    pub absent: Vec<String>,
    /// Functions that one build only calls, though the code of the other calls them, too: they are compared.
    pub reachable: Vec<String>,
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
    let codes = Codes::of(trees, runs);
    let Once { alone, reachable } = once(trees, &codes, options);
    told.normal_only = named(trees, alone[0].iter());
    told.faulty_only = named(trees, alone[1].iter());
    told.reachable = named(trees, reachable.iter());
    let absent = codes.absent(trees, &alone);
    told.absent = named(trees, absent.iter());
    trees.leave_out(alone.into_iter().flatten());
    // That the program did not come to them explains the differences around them.
    trees.leave_out(reachable.iter().copied());
    elsewhere::elsewhere(trees, &codes, options, &mut told);
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
    let functions = trees.forest.functions().iter();
    functions
        .map(|it| !it.imported && it.name != "main" || is_expanded(&it.name))
        .collect()
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

/// What the code of both builds could call.
struct Codes {
    normal: Code,
    faulty: Code,
}

impl Codes {
    fn of(trees: &Trees, runs: &[&Run]) -> Self {
        let mut codes = Self {
            normal: Code::default(),
            faulty: Code::default(),
        };
        let last = runs.len().saturating_sub(1);
        for (at, (run, keys)) in runs.iter().zip(&trees.functions).enumerate() {
            let code = match at == last {
                true => &mut codes.faulty,
                false => &mut codes.normal,
            };
            code.add(run, keys);
        }
        codes
    }

    /// Functions whose callers' code is as before.
    fn alike(&self) -> FxHashSet<FunctionKey> {
        let changed = self.normal.changed(&self.faulty);
        let mut called = self.normal.called();
        called.retain(|it| !changed.contains(it));
        called
    }

    /// Those of the functions of each build alone that the other does not have.
    fn absent(&self, trees: &Trees, alone: &[FxHashSet<FunctionKey>; 2]) -> FxHashSet<FunctionKey> {
        let others = alone.iter().zip([&self.faulty, &self.normal]);
        let is_own = |key: &&FunctionKey| !trees.forest.function(**key).imported;
        let absent = others.flat_map(|(alone, other)| {
            let each = alone.iter().filter(is_own);
            each.filter(|it| other.lacks(**it, &trees.forest.function(**it).name))
        });
        absent.copied().collect()
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
    let (faulty_roots, normals) = match roots.split_last() {
        Some((faulty, normals)) => (faulty.as_slice(), normals.concat()),
        None => (&[][..], Vec::new()),
    };
    let normal = Calls::of(trees, &normals);
    let faulty = Calls::of(trees, faulty_roots);
    let only = |own: &Calls, other: &Calls| -> FxHashSet<FunctionKey> {
        let each = own.callers.keys().copied();
        each.filter(|it| inlinable[it.0 as usize] && !other.callers.contains_key(it))
            .collect()
    };
    let mut normal_only = only(&normal, &faulty);
    let mut faulty_only = only(&faulty, &normal);
    let mut reachable = FxHashSet::default();
    if !(normal_only.is_empty() && faulty_only.is_empty()) {
        // Who called whom a filter does not tell.
        let whole = |runs: &[Vec<lockstep_calltree::Trace>]| -> Calls {
            let roots: Vec<NodeId> = runs.iter().flatten().map(|it| it.root).collect();
            Calls::of(trees, &roots)
        };
        let (before, last) = trees.runs.split_at(trees.runs.len().saturating_sub(1));
        let (normal, faulty) = (whole(before), whole(last));
        let sides = [
            (
                &mut normal_only,
                (&normal, &codes.normal),
                (&faulty, &codes.faulty),
            ),
            (
                &mut faulty_only,
                (&faulty, &codes.faulty),
                (&normal, &codes.normal),
            ),
        ];
        for (alone, (calls, own), (other_calls, other)) in sides {
            let beside = Beside {
                own,
                other,
                calls: &|it| other_calls.callers.contains_key(&it),
                is_imported: &|it| trees.forest.function(it).imported,
            };
            let is_own = |it: &&FunctionKey| !trees.forest.function(**it).imported;
            let callers = |it: &FunctionKey| {
                let callers = calls.callers.get(it).cloned().unwrap_or_default();
                (*it, callers)
            };
            let found = beside.reachable(&alone.iter().filter(is_own).map(callers).collect());
            alone.retain(|it| !found.contains(it));
            reachable.extend(found);
        }
    }
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
    Once {
        alone: [normal_only, faulty_only],
        reachable,
    }
}

/// How many names a note lists before it counts the rest, and how long one may be.
const LISTED: usize = 6;

fn list(names: &[String]) -> String {
    let short = |name: &String| lockstep_trace::brief(name);
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
