//! Attributes of a trace's tree: who calls whom, on which paths, and while which locks are held.
//!
//! A filter chooses which calls are looked at; callers, paths and locks are what they are in the whole trace. *Costs*:
//! callers and paths what is distinct in the tree, locks every event of it once for each distinct trace.

use super::What;
use crate::sequence::Trees;
use crate::{Attributes, Error};
use lockstep_calltree::{Forest, Function, FunctionKey, Label, NodeId, Projection, Token};
use lockstep_trace::c_name;
use lockstep_trace::mpi::{self, Epoch};
use lockstep_trace::threads::{Does, Library, Meaning, Patience};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;

/// Places on call paths that a trace may have.
const PATHS: usize = 1 << 18;

/// What a function does with a lock, by the lock's name.
#[derive(Clone, Copy)]
enum Use {
    Takes(&'static str),
    Gives(&'static str),
}

impl Use {
    fn of(function: &Function, meaning: Meaning) -> Option<Self> {
        // Headers of C++ call the functions that count.
        let is_header = meaning.library == Library::Cplusplus && !function.imported;
        Some(match (meaning.does, meaning.patience) {
            (Does::Take(lock), Patience::Endless) if !is_header => Self::Takes(lock.word()),
            (Does::Give(lock), _) if !is_header => Self::Gives(lock.word()),
            _ => match mpi::meaning(&c_name(&function.name)).does {
                mpi::Does::Epoch(Epoch::Lock) => Self::Takes("window"),
                mpi::Does::Epoch(Epoch::Unlock) => Self::Gives("window"),
                mpi::Does::Epoch(Epoch::LockAll) => Self::Takes("window(all)"),
                mpi::Does::Epoch(Epoch::UnlockAll) => Self::Gives("window(all)"),
                _ => return None,
            },
        })
    }
}

/// Locks that are held, and how often each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Held(BTreeMap<&'static str, u32>);

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, lock: &'static str) {
        *self.0.entry(lock).or_default() += 1;
    }

    fn give(&mut self, lock: &'static str) {
        if let Some(held) = self.0.get_mut(lock) {
            *held -= 1;
            if *held == 0 {
                self.0.remove(lock);
            }
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(lock, times)| match times {
            1 => (*lock).to_owned(),
            _ => format!("{times} {lock}"),
        });
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}

/// The attributes of a tree, and how often each.
pub(super) fn of_tree(
    trees: &Trees,
    root: NodeId,
    kept: &Projection,
    attributes: Attributes,
) -> Result<Vec<(What, u64)>, Error> {
    let forest = &trees.forest;
    match attributes {
        Attributes::Callers => Ok(callers(forest, root, kept)),
        Attributes::Paths => paths(forest, root, kept),
        _ => Ok(locks(forest, root, kept)),
    }
}

/// In an order that does not depend on how they were found.
fn sorted<K: Ord>(counts: FxHashMap<K, u64>, what: impl Fn(K) -> What) -> Vec<(What, u64)> {
    let mut counts: Vec<(K, u64)> = counts.into_iter().collect();
    counts.sort_unstable();
    counts
        .into_iter()
        .map(|(key, count)| (what(key), count))
        .collect()
}

fn callers(forest: &Forest, root: NodeId, kept: &Projection) -> Vec<(What, u64)> {
    let mut counts: FxHashMap<(Option<FunctionKey>, FunctionKey), u64> = FxHashMap::default();
    for (id, times) in forest.occurrences(&[root]) {
        let caller = match forest.node(id).label {
            Label::Call(caller) => Some(caller.function),
            Label::Trace => None,
            Label::Loop(_) | Label::Iteration | Label::Return => continue,
        };
        forest.within(id, times, |node, times| {
            if let Label::Call(callee) = forest.node(node).label
                && kept.keeps(callee.function)
            {
                let sum = counts.entry((caller, callee.function)).or_default();
                *sum = sum.saturating_add(times);
            }
        });
    }
    sorted(counts, |(caller, callee)| What::Call(caller, callee))
}

/// Call paths as a tree: the path above, and the function.
#[derive(Default)]
struct Paths {
    known: Vec<(Option<u32>, FunctionKey)>,
    numbers: FxHashMap<(Option<u32>, FunctionKey), u32>,
}

impl Paths {
    /// The path of a call from another one. A call of a function that is open already goes on from there, so that
    /// recursion has no depth.
    fn below(&mut self, above: Option<u32>, function: FunctionKey) -> u32 {
        let mut before = above;
        while let Some(number) = before {
            let (next, other) = self.known[number as usize];
            if other == function {
                return number;
            }
            before = next;
        }
        let known = &mut self.known;
        *self.numbers.entry((above, function)).or_insert_with(|| {
            known.push((above, function));
            known.len() as u32 - 1
        })
    }

    fn functions(&self, path: u32) -> Vec<FunctionKey> {
        let mut functions = Vec::new();
        let mut next = Some(path);
        while let Some(path) = next {
            let (above, function) = self.known[path as usize];
            functions.push(function);
            next = above;
        }
        functions.reverse();
        functions
    }
}

fn paths(forest: &Forest, root: NodeId, kept: &Projection) -> Result<Vec<(What, u64)>, Error> {
    let mut paths = Paths::default();
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    // Parents have greater ids: when a node is the greatest left, all that is above it is done.
    let mut open: BTreeMap<(NodeId, Option<u32>), u64> = BTreeMap::from([((root, None), 1)]);
    let mut places = 0;
    while let Some(((id, above), times)) = open.pop_last() {
        places += 1;
        if places > PATHS {
            return Err(Error::TooLarge(format!(
                "--attributes paths: expected at most {PATHS} places on call paths in a trace, found more"
            )));
        }
        let node = forest.node(id);
        let path = match node.label {
            Label::Call(call) => {
                let path = paths.below(above, call.function);
                if kept.keeps(call.function) {
                    let sum = counts.entry(path).or_default();
                    *sum = sum.saturating_add(times);
                }
                Some(path)
            }
            _ => above,
        };
        for item in node.items {
            let sum = open.entry((item.node, path)).or_default();
            *sum = sum.saturating_add(times.saturating_mul(item.times));
        }
    }
    Ok(sorted(counts, |path| What::Path(paths.functions(path))))
}

fn locks(forest: &Forest, root: NodeId, kept: &Projection) -> Vec<(What, u64)> {
    let uses: Vec<Option<Use>> = (forest.functions().iter().zip(forest.meanings()))
        .map(|(function, meaning)| Use::of(function, *meaning))
        .collect();
    let mut counts: FxHashMap<(Held, FunctionKey), u64> = FxHashMap::default();
    let mut held = Held::default();
    let mut open: Vec<FunctionKey> = Vec::new();
    let all = forest.projection(|_| true);
    forest.tokens(root, &all, true, &mut |token| match token {
        Token::Call(function) | Token::Open(function) => {
            match uses[function.0 as usize] {
                Some(Use::Gives(lock)) => held.give(lock),
                None if kept.keeps(function) => {
                    let count = counts.entry((held.clone(), function)).or_default();
                    *count = count.saturating_add(1);
                }
                _ => {}
            }
            if matches!(token, Token::Call(_)) {
                open.push(function);
            }
        }
        // A lock is held when the call that takes it has returned.
        Token::Return => {
            let over = open.pop().and_then(|function| uses[function.0 as usize]);
            if let Some(Use::Takes(lock)) = over {
                held.take(lock);
            }
        }
    });
    let mut counts: Vec<((Held, FunctionKey), u64)> = counts.into_iter().collect();
    counts.sort_by(|((a, of_a), _), ((b, of_b), _)| (&a.0, of_a).cmp(&(&b.0, of_b)));
    let what = |((held, function), count)| (What::Holding(held, function), count);
    counts.into_iter().map(what).collect()
}
