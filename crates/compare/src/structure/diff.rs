//! diffNLR: what two traces have in common, loops aligned as loops.
//!
//! [`diff`] compares one trace of two runs. Structure is aligned first (equal subtrees are passed in one
//! step), then trip counts: a loop that runs 7 times instead of 16 is one changed loop, not one removed
//! and one added. With [`Style::Flat`] the traces are compared as the papers do it: Myers' algorithm on
//! the entries of their nested loop representations.

use super::builds::{self, Builds};
use super::divergence::{Divergence, Side, first_divergence};
use crate::calls::below;
use crate::difftrace::loops::LoopBody;
use crate::difftrace::sequence::Lens;
use crate::difftrace::trees::Trees;
use crate::{Error, Options};
use lockstep_calltree::{Forest, NodeId};
use lockstep_loops::Names;
use lockstep_trace::{Run, TraceName};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

mod edit;
mod flat;
pub(crate) mod lines;
pub(crate) mod ops;

use edit::Aligner;
use lines::{DiffLine, Lines};
use ops::Op;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Call trees.
    #[default]
    Tree,
    /// Entries of the nested loop representations, each as it is written (`--flat`).
    Flat,
}

/// How two traces differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diff {
    /// Whether the traces make the same calls. Numbers of loop iterations, and differences of timing, count only with
    /// `--counts`.
    pub equal: bool,
    /// Where the faulty trace first leaves the normal one. Null if the traces are equal, and with `--split-at`.
    pub first_divergence: Option<Divergence>,
    /// All steps from the normal trace to the faulty one, in order. Empty if nothing at all differs.
    pub ops: Vec<Op>,
    /// The loops that `ops` names.
    pub loops: Vec<LoopBody>,
    /// Functions whose calls in the normal trace pass the filter and never return, outermost first.
    pub normal_open: Vec<String>,
    /// The same for the faulty trace.
    pub faulty_open: Vec<String>,
    /// How two builds of the program were compared. Absent if there is only one build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<Builds>,
    /// What was not compared because the traces are too large. Absent if everything was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl Diff {
    /// The diff as lines. Long equal parts are cut short.
    #[must_use]
    pub fn lines(&self) -> Vec<DiffLine> {
        let mut lines = Lines::default();
        lines.ops(&self.ops, 0);
        lines.list
    }
}

/// Compares a trace of two runs under the filter, `--ignore` and `--counts` of `options`.
///
/// # Errors
/// The trace is missing in a run; a pattern that does not parse; a filter that keeps nothing of it.
pub fn diff(
    normal: &Run,
    faulty: &Run,
    trace: TraceName,
    options: &Options,
    style: Style,
) -> Result<Diff, Error> {
    // Pieces of a trace are sequences, not trees.
    let whole = options.part.split_at.is_none();
    let style = if whole { style } else { Style::Flat };
    // All traces are looked at, so that loops have the names that `loops` and `compare` give them; but a
    // process that commands look at when it is named alone stands alone.
    let shown = |run: &Run| run.traces().any(|thread| thread.name == trace);
    let everything = Options {
        traces: (!shown(faulty)).then(|| vec![trace]),
        ..options.clone()
    };
    let lens = Lens::of(options);
    let mut trees = Trees::new(&[normal, faulty], &everything)?;
    let builds = builds::leave_out(&mut trees, &everything);
    let mut projection = trees.projection(Some(&lens), &[]);
    let find = |run: usize, of: &str| {
        trees.runs[run].place(trace).ok_or_else(|| {
            Error::Nothing(format!(
                "expected trace {trace} in both runs, found none in the {of} one"
            ))
        })
    };
    let places = [find(0, "normal")?, find(1, "faulty")?];
    let roots = trees.projected(&mut projection);
    let mut names = Names::new();
    for root in roots.iter().flatten() {
        trees.forest.name_loops(*root, &mut names);
    }
    let [normal_side, faulty_side] = [0, 1].map(|run| Side {
        whole: trees.runs[run].traces[places[run]].root,
        root: roots[run][places[run]],
    });
    let empty = |side: Side| trees.forest.node(side.root).events == 0;
    if empty(normal_side) && empty(faulty_side) {
        return Err(Error::Nothing(format!(
            "the filter {} keeps nothing of trace {trace}",
            lens.paper()
        )));
    }
    let found = first_divergence(
        &trees.forest,
        trace,
        normal_side,
        faulty_side,
        Some(&mut projection),
        &names,
    );
    let mut first = found.difference(options.counts).cloned();
    if let (Some(first), Some(thread)) = (&mut first, faulty.trace(trace)) {
        first.locate(faulty, &trees.runs[1].functions, thread);
        first.normal_event = trees.runs[0].of_trace(trace, first.normal_event);
        first.event = trees.runs[1].of_trace(trace, first.event);
        first.tell_apart(faulty);
    }
    let (a, b) = (normal_side.root, faulty_side.root);
    let (ops, loops, alike) = match style {
        Style::Tree => (
            diff_trees(&trees.forest, a, b, &names),
            tree_loops(&trees.forest, &[a, b], &names),
            true,
        ),
        Style::Flat => flat::diff(&trees, &lens, trace)?,
    };
    let first = first.filter(|_| whole);
    Ok(Diff {
        equal: if whole {
            first.is_none()
        } else {
            ops.is_empty() || (alike && !options.counts)
        },
        first_divergence: first,
        ops,
        loops,
        normal_open: open(&trees.forest, a),
        faulty_open: open(&trees.forest, b),
        left_out: trees.left_out(),
        builds,
    })
}

fn open(forest: &Forest, root: NodeId) -> Vec<String> {
    let stack = forest.open(root);
    let names = forest.stack_names(&stack);
    names.into_iter().map(str::to_owned).collect()
}

/// The way from one tree of a forest to another. `names` must know the loops of both.
#[must_use]
pub fn diff_trees(forest: &Forest, normal: NodeId, faulty: NodeId, names: &Names) -> Vec<Op> {
    let edits = Aligner::new(forest).traces(normal, faulty);
    ops::describe(forest, &edits, names)
}

/// The loops of some trees, in the order of their names.
fn tree_loops(forest: &Forest, roots: &[NodeId], names: &Names) -> Vec<LoopBody> {
    let mut found = BTreeMap::new();
    let mut families = FxHashMap::default();
    below(forest, roots.to_vec(), &mut |id| {
        if let Some((body, number)) = forest.body(id).and_then(|it| Some((it, names.number(it)?))) {
            found.entry(number).or_insert((body, id));
        }
    });
    found
        .into_values()
        .map(|(body, id)| {
            let first = *families.entry(forest.bodies().family(body)).or_insert(body);
            LoopBody {
                id: format!("{:032x}", forest.body_hash(body)),
                name: names.label(body),
                body: forest.body_names(id, names),
                family: names.label(first),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
