//! Differences as values: what `diff --json` shows.

use super::edit::{Aligner, Continued, Edit, Split, first_change, iteration};
use lockstep_calltree::{Forest, Label, NodeId};
use lockstep_loops::Names;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;

/// The normal trace, the faulty trace, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The normal trace.
    Normal,
    /// The faulty trace.
    Faulty,
    /// Both traces.
    Both,
}

/// One step from the normal trace to the faulty one. An element is a function name, or a loop with its number of
/// iterations (`L1^16`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// Elements that both traces have.
    Equal {
        /// The elements.
        tokens: Vec<String>,
    },
    /// Elements that only the normal trace has.
    Normal {
        /// The elements.
        tokens: Vec<String>,
    },
    /// Elements that only the faulty trace has.
    Faulty {
        /// The elements.
        tokens: Vec<String>,
        /// Whether the last element is a call that never returned.
        open: bool,
    },
    /// A loop with another number of iterations.
    Count {
        /// Name of the loop.
        name: String,
        /// Elements of the loop's body.
        body: Vec<String>,
        /// Number of iterations in the normal trace.
        normal: u64,
        /// Number of iterations in the faulty trace.
        faulty: u64,
    },
    /// A loop whose iterations make the same calls in both traces, but something inside these calls differs.
    Iterations {
        /// Name of the loop.
        name: String,
        /// The first iteration that differs, from 1.
        first: u64,
        /// Number of iterations that differ.
        times: u64,
        /// What differs in the first of these iterations.
        ops: Vec<Op>,
    },
    /// A piece of the trace (`--split-at`) in which something differs.
    Piece {
        /// Name of the piece: `6.4@3`.
        name: String,
        /// What differs in the piece.
        ops: Vec<Op>,
    },
    /// A loop whose body differs, in all iterations or in some.
    Body {
        /// Name of the loop in the normal trace.
        normal_name: String,
        /// Name of the loop in the faulty trace.
        faulty_name: String,
        /// The first iteration that differs, from 1, as counted in the trace with more iterations.
        first: u64,
        /// The last iteration that differs, counted in the same way.
        last: u64,
        /// Elements of the body in the normal trace.
        normal: Vec<String>,
        /// Elements of the body in the faulty trace.
        faulty: Vec<String>,
        /// Number of iterations with that body in the normal trace.
        normal_times: u64,
        /// Number of iterations with that body in the faulty trace.
        faulty_times: u64,
        /// Whether the two bodies are rotations of each other: the same cycle from another starting point.
        rotation: bool,
        /// Steps from the normal body to the faulty one.
        ops: Vec<Op>,
    },
    /// A call that both traces make, in which something differs.
    Call {
        /// The function.
        name: String,
        /// In which trace the call never returned. Null if it returned in both.
        open: Option<Which>,
        /// What differs in the call.
        ops: Vec<Op>,
    },
}

pub(super) fn describe(forest: &Forest, edits: &[Edit], names: &Names) -> Vec<Op> {
    let describer = Describer {
        forest,
        names,
        depth: Cell::new(0),
    };
    describer.list(edits)
}

struct Describer<'a> {
    forest: &'a Forest,
    names: &'a Names,
    depth: Cell<usize>,
}

/// How deep differences within differences are told. A trace that nests deeper is a runaway recursion,
/// and its first divergence says more than its innermost levels.
const DEPTH: usize = 250;

impl Describer<'_> {
    fn list(&self, edits: &[Edit]) -> Vec<Op> {
        if self.depth.get() == DEPTH {
            return Vec::new();
        }
        self.depth.set(self.depth.get() + 1);
        let ops = self.list_within(edits);
        self.depth.set(self.depth.get() - 1);
        ops
    }

    fn list_within(&self, edits: &[Edit]) -> Vec<Op> {
        let mut ops = Vec::new();
        for edit in edits {
            match edit {
                Edit::Equal(nodes) => equal(&mut ops, self.tokens(nodes)),
                Edit::Normal(nodes) => ops.push(Op::Normal {
                    tokens: self.tokens(nodes),
                }),
                Edit::Faulty(nodes) => ops.push(Op::Faulty {
                    tokens: self.tokens(nodes),
                    open: nodes.last().is_some_and(|node| self.is_open(*node)),
                }),
                Edit::Counts(a, b) => self.counts(*a, *b, &mut ops),
                Edit::Call(a, b, edits) => ops.push(Op::Call {
                    name: self.token(*a),
                    open: match (self.is_open(*a), self.is_open(*b)) {
                        (false, false) => None,
                        (true, false) => Some(Which::Normal),
                        (false, true) => Some(Which::Faulty),
                        (true, true) => Some(Which::Both),
                    },
                    ops: self.list(edits),
                }),
                Edit::Body(a, b, edits) => {
                    let (normal_times, faulty_times) =
                        (self.forest.trip_count(*a), self.forest.trip_count(*b));
                    let last = normal_times.max(faulty_times);
                    let times = (normal_times, faulty_times);
                    ops.push(self.body(*a, *b, (1, last), times, edits));
                }
                Edit::Split(split) => self.split(split, &mut ops),
                Edit::Continued(continued) => self.continued(continued, &mut ops),
            }
        }
        ops
    }

    fn is_open(&self, node: NodeId) -> bool {
        matches!(self.forest.node(node).label, Label::Call(call) if call.open)
    }

    fn token(&self, node: NodeId) -> String {
        match self.forest.node(node).label {
            Label::Call(call) => self.forest.function(call.function).name.clone(),
            Label::Loop(body) => {
                format!(
                    "{}^{}",
                    self.names.label(body),
                    self.forest.trip_count(node)
                )
            }
            Label::Return => "return".to_owned(),
            Label::Trace | Label::Iteration => String::new(),
        }
    }

    fn tokens(&self, nodes: &[NodeId]) -> Vec<String> {
        nodes.iter().map(|node| self.token(*node)).collect()
    }

    fn name(&self, looped: NodeId) -> String {
        match self.forest.body(looped) {
            Some(body) => self.names.label(body),
            None => String::new(),
        }
    }

    fn body_tokens(&self, looped: NodeId) -> Vec<String> {
        self.forest.body_names(looped, self.names)
    }

    fn counts(&self, a: NodeId, b: NodeId, ops: &mut Vec<Op>) {
        let (normal, faulty) = (self.forest.trip_count(a), self.forest.trip_count(b));
        if normal != faulty {
            ops.push(Op::Count {
                name: self.name(a),
                body: self.body_tokens(a),
                normal,
                faulty,
            });
        }
        if let Some((first, times, x, y)) = first_change(self.forest, a, b) {
            // An iteration is compared like a trace of its own.
            let edits = Aligner::new(self.forest).iterations(x, y);
            ops.push(Op::Iterations {
                name: self.name(a),
                first,
                times,
                ops: self.list(&edits),
            });
        }
    }

    fn body(
        &self,
        a: NodeId,
        b: NodeId,
        (first, last): (u64, u64),
        (normal_times, faulty_times): (u64, u64),
        edits: &[Edit],
    ) -> Op {
        let family = |node| {
            let body = self.forest.body(node);
            body.map(|body| self.forest.bodies().family(body))
        };
        Op::Body {
            normal_name: self.name(a),
            faulty_name: self.name(b),
            first,
            last,
            normal: self.body_tokens(a),
            faulty: self.body_tokens(b),
            normal_times,
            faulty_times,
            rotation: iteration(self.forest, a).len() > 1 && family(a) == family(b),
            ops: self.list(edits),
        }
    }

    fn continued(&self, continued: &Continued, ops: &mut Vec<Op>) {
        let name = self.name(continued.looped);
        let kept = continued
            .kept
            .map_or(0, |kept| self.forest.trip_count(kept));
        if kept > 0 {
            equal(ops, vec![format!("{name}^{kept}")]);
        }
        ops.push(Op::Iterations {
            name: name.clone(),
            first: kept + 1,
            times: continued.iterations,
            ops: self.list(&continued.edits),
        });
        let (longer, shorter) = (
            self.forest.trip_count(continued.looped),
            kept + continued.iterations,
        );
        if longer != shorter {
            let (normal, faulty) = if continued.in_faulty {
                (longer, shorter)
            } else {
                (shorter, longer)
            };
            ops.push(Op::Count {
                name,
                body: self.body_tokens(continued.looped),
                normal,
                faulty,
            });
        }
    }

    fn split(&self, split: &Split, ops: &mut Vec<Op>) {
        let trips = |node| self.forest.trip_count(node);
        let (normal, faulty) = (trips(split.normal), trips(split.faulty));
        let common = normal.min(faulty);
        let (of_normal, of_faulty) = if split.in_faulty {
            (
                (split.normal, normal - common),
                (split.other, trips(split.other)),
            )
        } else {
            (
                (split.other, trips(split.other)),
                (split.faulty, faulty - common),
            )
        };
        let changed = of_normal.1.max(of_faulty.1);
        let range = if split.after {
            (common + 1, common + changed)
        } else {
            (1, changed)
        };
        let same = vec![format!("{}^{common}", self.name(split.normal))];
        let times = (of_normal.1, of_faulty.1);
        let body = self.body(of_normal.0, of_faulty.0, range, times, &split.edits);
        if split.after {
            equal(ops, same);
            ops.push(body);
        } else {
            ops.push(body);
            equal(ops, same);
        }
    }
}

/// Adds equal elements to those before.
fn equal(ops: &mut Vec<Op>, more: Vec<String>) {
    match ops.last_mut() {
        Some(Op::Equal { tokens }) => tokens.extend(more),
        _ => ops.push(Op::Equal { tokens: more }),
    }
}
