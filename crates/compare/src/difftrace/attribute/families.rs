//! Attributes of a trace's tree: who calls whom, on which paths, and while which locks are held.
//!
//! A filter chooses which calls are looked at; callers, paths and locks are what they are in the whole trace. *Costs*:
//! callers and paths what is distinct in the tree, locks every event of it once for each distinct trace.

use super::what::{Held, What};
use crate::calls::{Calls, Paths, add};
use crate::{Attributes, Error};
use lockstep_calltree::{Forest, Function, FunctionKey, NodeId, Projection, Token};
use lockstep_trace::c_name;
use lockstep_trace::mpi::{self, Epoch};
use lockstep_trace::threads::{Does, Library, Meaning, Patience};
use rustc_hash::FxHashMap;

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

/// The attributes of a tree, and how often each.
pub(super) fn of_tree(
    forest: &Forest,
    root: NodeId,
    kept: &Projection,
    attributes: Attributes,
) -> Result<Vec<(What, u64)>, Error> {
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
    let mut edges = Calls::new(forest, root, &|_| false).edges;
    edges.retain(|(_, callee), _| kept.keeps(*callee));
    sorted(edges, |(caller, callee)| What::Call(caller, callee))
}

fn paths(forest: &Forest, root: NodeId, kept: &Projection) -> Result<Vec<(What, u64)>, Error> {
    let mut paths = Paths::default();
    let Some(mut counts) = paths.of(forest, root, &|_| false, PATHS) else {
        return Err(Error::TooLarge(format!(
            "--attributes paths: expected at most {PATHS} places on call paths in a trace, found more"
        )));
    };
    counts.retain(|path, _| kept.keeps(paths.items[*path].1));
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
                None if kept.keeps(function) => add(&mut counts, (held.clone(), function), 1),
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
    sorted(counts, |(held, function)| What::Holding(held, function))
}
