//! Differences as lines to print: what stands where, and on which side.

use super::Diff;
use super::ops::{Op, Which};
use serde::Serialize;

/// Which side a line belongs to: the thesis' three colours, and one for what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// Both traces.
    Common,
    /// The normal trace alone.
    Normal,
    /// The faulty trace alone.
    Faulty,
    /// Both, with a difference that the text tells.
    Changed,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// Whose it is.
    pub kind: LineKind,
    /// How far to indent, from 0.
    pub depth: usize,
    /// What it says.
    pub text: String,
}

/// Of a longer block of equal elements, this many at either end are shown.
const CONTEXT: usize = 4;

impl Diff {
    /// The diff as lines. Long equal parts are cut short.
    #[must_use]
    pub fn lines(&self) -> Vec<DiffLine> {
        let mut lines = Lines::default();
        lines.ops(&self.ops, 0);
        lines.list
    }
}

#[derive(Default)]
struct Lines {
    list: Vec<DiffLine>,
}

impl Lines {
    fn add(&mut self, kind: LineKind, depth: usize, text: impl Into<String>) {
        let text = text.into();
        self.list.push(DiffLine { kind, depth, text });
    }

    fn ops(&mut self, ops: &[Op], depth: usize) {
        for op in ops {
            self.op(op, depth);
        }
    }

    fn op(&mut self, op: &Op, depth: usize) {
        match op {
            Op::Equal { tokens } => self.equal(tokens, depth),
            Op::Normal { tokens } => {
                for token in tokens {
                    self.add(LineKind::Normal, depth, token);
                }
            }
            Op::Faulty { tokens, open } => {
                for (index, token) in tokens.iter().enumerate() {
                    let never = *open && index + 1 == tokens.len();
                    let text = if never {
                        format!("{token}  (never returned)")
                    } else {
                        token.clone()
                    };
                    self.add(LineKind::Faulty, depth, text);
                }
            }
            Op::Count {
                name,
                body,
                normal,
                faulty,
            } => {
                let body = body.join(" ");
                let text = format!("{name}: {normal} -> {faulty}  [{body}]");
                self.add(LineKind::Changed, depth, text);
            }
            Op::Iterations {
                name,
                first,
                times,
                ops,
            } => {
                let text = match times {
                    1 => format!("in iteration {first} of {name}"),
                    _ => format!("in {times} iterations of {name}, first in iteration {first}"),
                };
                self.add(LineKind::Changed, depth, text);
                self.ops(ops, depth + 1);
            }
            Op::Body { ops, .. } => {
                self.add(LineKind::Changed, depth, body(op));
                if !is_plain(ops) {
                    self.ops(ops, depth + 1);
                }
            }
            Op::Call { name, open, ops } => {
                let kind = if ops.iter().all(|op| matches!(op, Op::Equal { .. })) && open.is_none()
                {
                    LineKind::Common
                } else {
                    LineKind::Changed
                };
                let text = match open {
                    None => name.clone(),
                    Some(Which::Both) => format!("{name}  (never returned)"),
                    Some(Which::Normal) => format!("{name}  (never returned in the normal run)"),
                    Some(Which::Faulty) => format!("{name}  (never returned in the faulty run)"),
                };
                self.add(kind, depth, text);
                self.ops(ops, depth + 1);
            }
        }
    }

    fn equal(&mut self, tokens: &[String], depth: usize) {
        let hidden = tokens.len().saturating_sub(2 * CONTEXT);
        for (index, token) in tokens.iter().enumerate() {
            if hidden > 1 && (CONTEXT..CONTEXT + hidden).contains(&index) {
                if index == CONTEXT {
                    self.add(LineKind::Common, depth, format!("... {hidden} more"));
                }
                continue;
            }
            self.add(LineKind::Common, depth, token);
        }
    }
}

/// Whether the way from one body to the other says no more than the bodies themselves: nothing nested.
fn is_plain(ops: &[Op]) -> bool {
    ops.iter()
        .all(|op| matches!(op, Op::Equal { .. } | Op::Normal { .. } | Op::Faulty { .. }))
}

/// `iterations 8-16: L1 [MPI_Recv MPI_Send] -> L0 [MPI_Send MPI_Recv] x9 (rotation)`
fn body(op: &Op) -> String {
    let Op::Body {
        normal_name,
        faulty_name,
        first,
        last,
        normal,
        faulty,
        normal_times,
        faulty_times,
        rotation,
        ..
    } = op
    else {
        return String::new();
    };
    let times = if normal_times == faulty_times {
        format!("x{faulty_times}")
    } else {
        format!("x{normal_times} -> x{faulty_times}")
    };
    format!(
        "iterations {first}-{last}: {normal_name} [{}] -> {faulty_name} [{}] {times}{}",
        normal.join(" "),
        faulty.join(" "),
        if *rotation { " (rotation)" } else { "" }
    )
}
