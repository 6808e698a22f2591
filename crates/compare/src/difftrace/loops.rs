//! `lockstep loops`: each trace as a nested loop representation, and the loop table.

use super::one_run::OneRun;
use super::trees::Trees;
use crate::numbered::Numbered;
use crate::{Error, ObjectName, Options};
use lockstep_calltree::Token;
use lockstep_loops::{Bodies, BodyId, Hasher128, Key, Names};
use lockstep_trace::Run;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

/// The traces of a run with their loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Loops {
    /// All loop bodies, in the order of their names.
    pub loops: Vec<LoopBody>,
    /// All traces, in order.
    pub traces: Vec<TraceLoops>,
}

/// A loop body. In the output of one command, equal bodies have equal ids in all traces and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoopBody {
    /// Hash of the body's content, 32 hexadecimal digits. `diff` without `--flat` also hashes what the calls in the body
    /// call: its ids are not those of `loops`.
    pub id: String,
    /// Name of the loop: L0, L1 and so on, in the order of first occurrence.
    pub name: String,
    /// Elements of the body: names of functions and loops.
    pub body: Vec<String>,
    /// Name of the first loop whose body is a rotation of this one. It may be this loop.
    pub family: String,
}

/// One trace with its loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceLoops {
    /// The trace, or a piece of it.
    pub trace: ObjectName,
    /// Elements of the trace: `MPI_Init`, or `L0^4` for a loop with 4 iterations.
    pub tokens: Vec<String>,
    /// Functions whose calls pass the filter and never return, outermost first.
    pub open: Vec<String>,
}

impl Loops {
    /// The traces as rows of a table, those alike in one: their names, and what they do in one line.
    #[must_use]
    pub fn rows(&self) -> Vec<(Vec<String>, String)> {
        let mut traces: Vec<Vec<String>> = Vec::new();
        let mut lines = Numbered::default();
        for trace in &self.traces {
            let mut line = trace.tokens.join(" ");
            if !trace.open.is_empty() {
                line.push_str(&format!(" (open: {})", trace.open.join(" > ")));
            }
            let row = lines.number(line);
            traces.resize(lines.items.len(), Vec::new());
            traces[row].push(trace.trace.to_string());
        }
        traces.into_iter().zip(lines.items).collect()
    }
}

/// Folds the loops of every trace of a run.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn loops(run: &Run, options: &Options) -> Result<Loops, Error> {
    let OneRun {
        trees,
        folding,
        objects,
        ..
    } = OneRun::new(run, options)?;
    let mut names = Names::new();
    let traces = objects
        .names
        .iter()
        .zip(objects.items.iter().map(|item| &item.sequence))
        .map(|(trace, index)| {
            let sequence = &folding.sequences[*index];
            names.scan(sequence, &folding.bodies);
            let open = folding.open(*index);
            TraceLoops {
                trace: *trace,
                tokens: names.tokens(sequence, |symbol| trees.name(symbol)),
                open: open
                    .into_iter()
                    .map(|symbol| trees.name(symbol).to_owned())
                    .collect(),
            }
        })
        .collect();
    Ok(Loops {
        loops: table(&names, &folding.bodies, &trees),
        traces,
    })
}

/// The named bodies, in the order of their names.
pub(crate) fn table(names: &Names, bodies: &Bodies, trees: &Trees) -> Vec<LoopBody> {
    let mut contents = FxHashMap::default();
    let mut families = FxHashMap::default();
    names
        .order()
        .iter()
        .map(|body| {
            // Inner loops have their names, and so their contents, before the loop around them.
            let content = content(bodies.keys(*body), &contents, trees);
            contents.insert(*body, content);
            let first = families.entry(bodies.family(*body)).or_insert(*body);
            LoopBody {
                id: format!("{content:032x}"),
                name: names.label(*body),
                body: names.body(*body, bodies, |symbol| trees.name(symbol)),
                family: names.label(*first),
            }
        })
        .collect()
}

/// The content address of a body by names: token numbers depend on what else a run contains.
fn content(keys: &[Key], inner: &FxHashMap<BodyId, u128>, trees: &Trees) -> u128 {
    let mut hasher = Hasher128::new();
    let known = |body: &BodyId| inner.get(body).copied().unwrap_or_default();
    for key in keys {
        match key {
            Key::Symbol(symbol) => {
                hasher.number(match Token::from_symbol(*symbol) {
                    Token::Call(_) => 0,
                    Token::Open(_) => 1,
                    Token::Return => 2,
                });
                hasher.bytes(trees.name(*symbol).as_bytes());
            }
            Key::Loop(body) => {
                hasher.number(3);
                hasher.hash(known(body));
            }
            Key::Times(body, count) => {
                hasher.number(4);
                hasher.hash(known(body));
                hasher.number(*count);
            }
        }
    }
    hasher.finish()
}
