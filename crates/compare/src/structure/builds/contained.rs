//! Of two builds with other options: the functions of one that the code of the other cannot contain as calls.
//!
//! The debug information of a build names the functions that were inlined somewhere in it. Without debug information a function that
//! has no symbol and is not called may have been inlined; one that has a symbol and is not called is taken to be called no more.
//! What a compiler or a header of the standard library calls for itself differs with the options, too: expanded library functions,
//! the standard library's templates, and the runtime of OpenMP where the compilers use another one.

use super::codes::{Codes, is_expanded};
use crate::calls::tree_calls;
use crate::difftrace::pairing::visible;
use crate::difftrace::trees::{RunTrees, Trees};
use lockstep_calltree::{FunctionKey, NodeId};
use lockstep_trace::threads::{Library, runtime};
use lockstep_trace::{base_name, is_standard, original_name};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// What one of the builds says of itself.
struct Side<'a> {
    called: FxHashSet<FunctionKey>,
    /// Linkage names of what was inlined somewhere; `None` if some program has no debug information.
    inlined: Option<BTreeSet<&'a str>>,
    /// Base names of functions of which a part was inlined: the rest stands by itself.
    split: BTreeSet<&'a str>,
}

impl<'a> Side<'a> {
    fn of(trees: &Trees, runs: &[RunTrees<'a>]) -> Self {
        let roots: Vec<NodeId> = runs.iter().flat_map(RunTrees::roots).collect();
        let calls = tree_calls(&trees.forest, &roots);
        let mut side = Self {
            called: calls.into_iter().map(|(_, callee)| callee).collect(),
            inlined: Some(BTreeSet::new()),
            split: BTreeSet::new(),
        };
        for run in runs.iter().map(|it| it.run) {
            for process in visible(run).filter(|it| !it.is_launcher()) {
                match (&process.compiled.inlined, &mut side.inlined) {
                    (Some(names), Some(all)) => all.extend(names.iter().map(String::as_str)),
                    _ => side.inlined = None,
                }
            }
            let parts = run.functions.iter().filter(|it| !it.imported);
            let parts = parts.filter(|it| original_name(&it.linkage) != base_name(&it.linkage));
            side.split.extend(parts.map(|it| base_name(&it.linkage)));
        }
        side
    }

    /// The runtimes of OpenMP that this build uses.
    fn runtimes(&self, trees: &Trees) -> FxHashSet<Library> {
        let called = self.called.iter();
        called
            .filter_map(|it| runtime(&trees.forest.function(*it).name))
            .collect()
    }
}

/// The functions that are left out of two builds with other options; the last run is of the one, the others of the other.
pub(crate) fn cannot_contain(trees: &Trees) -> FxHashSet<FunctionKey> {
    let codes = Codes::of(trees);
    let (normals, last) = trees.runs.split_at(trees.runs.len() - 1);
    let (before, now) = (Side::of(trees, normals), Side::of(trees, last));
    let (its_before, its_now) = (before.runtimes(trees), now.runtimes(trees));
    let other_runtime = its_before.len() == 1 && its_now.len() == 1 && its_before != its_now;
    let called = before.called.union(&now.called).copied();
    let is_out = |it: &FunctionKey| {
        let function = trees.forest.function(*it);
        if is_standard(&function.name) {
            return true;
        }
        if is_expanded(&function.name) || other_runtime && runtime(&function.name).is_some() {
            return true;
        }
        if function.imported || function.name == "main" {
            return false;
        }
        let sides = [(&before, &codes.normal), (&now, &codes.faulty)];
        sides.into_iter().any(|(side, code)| match &side.inlined {
            Some(names) => names.contains(function.linkage.as_str()),
            None => {
                let is_gone = !side.called.contains(it) && code.lacks(*it, &function.name);
                is_gone || side.split.contains(function.linkage.as_str())
            }
        })
    };
    called.filter(is_out).collect()
}
