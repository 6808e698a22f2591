//! Differences as lines to print: what stands where, and on which side.

use super::ops::{Op, Which};
use schemars::JsonSchema;
use serde::Serialize;

/// Which trace a line belongs to: the three colours of the thesis, and one for what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// Both traces.
    Common,
    /// Only the normal trace.
    Normal,
    /// Only the faulty trace.
    Faulty,
    /// Both traces, with a difference that `text` shows.
    Changed,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiffLine {
    /// Which trace the line belongs to.
    pub kind: LineKind,
    /// Indentation level, from 0.
    pub depth: usize,
    /// The text.
    pub text: String,
}

/// Of a longer block of equal elements, this many at either end are shown.
const CONTEXT: usize = 4;

#[derive(Default)]
pub(super) struct Lines {
    pub(super) list: Vec<DiffLine>,
}

impl Lines {
    fn add(&mut self, kind: LineKind, depth: usize, text: impl Into<String>) {
        let text = text.into();
        self.list.push(DiffLine { kind, depth, text });
    }

    pub(super) fn ops(&mut self, ops: &[Op], depth: usize) {
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
            Op::Count { .. } => self.add(LineKind::Changed, depth, op.title()),
            Op::Iterations { ops, .. } | Op::Piece { ops, .. } => {
                self.add(LineKind::Changed, depth, op.title());
                self.ops(ops, depth + 1);
            }
            Op::Body { ops, .. } => {
                self.add(LineKind::Changed, depth, op.title());
                if op.is_nested() {
                    self.ops(ops, depth + 1);
                }
            }
            Op::Call { open, ops, .. } => {
                let kind = if ops.iter().all(|op| matches!(op, Op::Equal { .. })) && open.is_none()
                {
                    LineKind::Common
                } else {
                    LineKind::Changed
                };
                self.add(kind, depth, op.title());
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

impl Op {
    /// What it is in one line, without what it consists of; empty for plain elements.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Equal { .. } | Self::Normal { .. } | Self::Faulty { .. } => String::new(),
            Self::Count {
                name,
                body,
                normal,
                faulty,
            } => format!("{name}: {normal} -> {faulty}  [{}]", body.join(" ")),
            Self::Iterations {
                name, first, times, ..
            } => match times {
                1 => format!("in iteration {first} of {name}"),
                _ => format!("in {times} iterations of {name}, first in iteration {first}"),
            },
            Self::Piece { name, .. } => format!("in {name}"),
            // `iterations 8-16: L1 [MPI_Recv MPI_Send] -> L0 [MPI_Send MPI_Recv] x9 (rotation)`
            Self::Body {
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
            } => {
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
            Self::Call { name, open, .. } => match open {
                None => name.clone(),
                Some(Which::Both) => format!("{name}  (never returned)"),
                Some(Which::Normal) => format!("{name}  (never returned in the normal run)"),
                Some(Which::Faulty) => format!("{name}  (never returned in the faulty run)"),
            },
        }
    }

    /// Whether what it consists of says more than its title: whether anything is nested.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        let within = match self {
            Self::Call { .. } | Self::Iterations { .. } => return true,
            Self::Body { ops, .. } => ops,
            _ => return false,
        };
        let plain = |op: &Self| {
            matches!(
                op,
                Self::Equal { .. } | Self::Normal { .. } | Self::Faulty { .. }
            )
        };
        !within.iter().all(plain)
    }
}
