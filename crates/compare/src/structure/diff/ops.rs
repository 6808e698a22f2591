//! Differences as values: what `diff --json` shows.

use super::edit::{Aligner, Continued, Edit, Split, first_change, iteration};
use lockstep_calltree::{Forest, Label, NodeId};
use lockstep_loops::Names;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;

/// One of the traces, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The normal trace.
    Normal,
    /// The faulty trace.
    Faulty,
    /// Both.
    Both,
}

/// A step of the way from the normal trace to the faulty one. Elements are written as function names
/// and loops (`L1^16`); an open call is its plain name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// The same in both.
    Equal {
        /// The elements.
        tokens: Vec<String>,
    },
    /// In the normal trace alone.
    Normal {
        /// The elements.
        tokens: Vec<String>,
    },
    /// In the faulty trace alone.
    Faulty {
        /// The elements.
        tokens: Vec<String>,
        /// Whether the last of them is a call that never returned.
        open: bool,
    },
    /// A loop that runs more or less often.
    Count {
        /// Its name.
        name: String,
        /// Its body.
        body: Vec<String>,
        /// Iterations in the normal trace.
        normal: u64,
        /// Iterations in the faulty trace.
        faulty: u64,
    },
    /// A loop whose iterations make the same calls, in which something differs.
    Iterations {
        /// Its name.
        name: String,
        /// The first iteration that differs, from 1.
        first: u64,
        /// How many differ.
        times: u64,
        /// What differs in the first of them.
        ops: Vec<Op>,
    },
    /// A piece of the trace (`--split-at`) in which something differs.
    Piece {
        /// Its name: `6.4@3`.
        name: String,
        /// What differs in it.
        ops: Vec<Op>,
    },
    /// A loop, or the rest of one, with another body.
    Body {
        /// Its name in the normal trace.
        normal_name: String,
        /// Its name in the faulty trace.
        faulty_name: String,
        /// The iterations that have changed, in the counting of the longer trace: first, from 1.
        first: u64,
        /// And last.
        last: u64,
        /// The body in the normal trace.
        normal: Vec<String>,
        /// The body in the faulty trace.
        faulty: Vec<String>,
        /// How many iterations the normal trace makes of it.
        normal_times: u64,
        /// How many the faulty one makes.
        faulty_times: u64,
        /// Whether one body is a rotation of the other.
        rotation: bool,
        /// From one body to the other.
        ops: Vec<Op>,
    },
    /// A call of the same function in which something differs.
    Call {
        /// The function.
        name: String,
        /// Where the call never returned, if anywhere.
        open: Option<Which>,
        /// What differs in it.
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
