//! `lockstep loops`: each trace as a nested loop representation, and the loop table.

use crate::sequence::{Alphabet, Folding, Lens, Objects, Traces};
use crate::{Error, ObjectName, Options};
use lockstep_loops::{Bodies, BodyId, Hasher128, Key, Names};
use lockstep_trace::Run;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The traces of a run with their loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loops {
    /// Every loop body, in the order of its name.
    pub loops: Vec<LoopBody>,
    /// Every trace, in order.
    pub traces: Vec<TraceLoops>,
}

/// A loop body: equal bodies have equal ids in every trace and run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopBody {
    /// Content address, 32 hexadecimal digits.
    pub id: String,
    /// Name for people: L0, L1... in order of first occurrence.
    pub name: String,
    /// Its elements: names of functions and loops.
    pub body: Vec<String>,
    /// Name of the first loop of which it is a rotation, perhaps its own.
    pub family: String,
}

/// One trace with its loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceLoops {
    /// The trace, or its piece.
    pub trace: ObjectName,
    /// Its elements: `MPI_Init`, or `L0^4` for a loop of four iterations.
    pub tokens: Vec<String>,
    /// Calls that pass the filter and never returned, outermost first.
    pub open: Vec<String>,
    /// Number of entries before folding.
    pub entries: u64,
}

/// Folds the loops of every trace of a run.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn loops(run: &Run, options: &Options) -> Result<Loops, Error> {
    let mut alphabet = Alphabet::new(options)?;
    let traces = Traces::new(run, &mut alphabet, options);
    let lens = Lens::of(options);
    let mut folding = Folding::default();
    let mut names = Names::new();
    let mut rows = Vec::new();
    let mut objects = Objects {
        names: Vec::new(),
        sequences: Vec::new(),
    };
    for filtered in traces.filtered(&alphabet, &lens) {
        let open = filtered
            .open()
            .map(|token| alphabet.name(token).to_owned())
            .collect();
        let entries = filtered.tokens.len() as u64;
        let index = folding.add(filtered.tokens, lens.k);
        let sequence = &folding.sequences[index];
        names.scan(sequence, &folding.bodies);
        rows.push(TraceLoops {
            trace: filtered.object,
            tokens: names.tokens(sequence, |token| alphabet.name(token)),
            open,
            entries,
        });
        objects.names.push(filtered.object);
        objects.sequences.push(index);
    }
    objects.refuse_nothing(&folding, &lens)?;
    Ok(Loops {
        loops: table(&names, &folding.bodies, &alphabet),
        traces: rows,
    })
}

fn table(names: &Names, bodies: &Bodies, alphabet: &Alphabet) -> Vec<LoopBody> {
    let mut contents = FxHashMap::default();
    let mut families = FxHashMap::default();
    names
        .order()
        .iter()
        .map(|body| {
            // Inner loops have their names, and so their contents, before the loop around them.
            let content = content(bodies.keys(*body), &contents, alphabet);
            contents.insert(*body, content);
            let first = families.entry(bodies.family(*body)).or_insert(*body);
            LoopBody {
                id: format!("{content:032x}"),
                name: names.label(*body),
                body: names.body(*body, bodies, |token| alphabet.name(token)),
                family: names.label(*first),
            }
        })
        .collect()
}

/// The content address of a body by names: token numbers depend on what else a run contains.
fn content(keys: &[Key], inner: &FxHashMap<BodyId, u128>, alphabet: &Alphabet) -> u128 {
    let mut hasher = Hasher128::new();
    let known = |body: &BodyId| inner.get(body).copied().unwrap_or_default();
    for key in keys {
        match key {
            Key::Symbol(token) => {
                hasher.number(u64::from(token & 1));
                hasher.bytes(alphabet.name(*token).as_bytes());
            }
            Key::Loop(body) => {
                hasher.number(2);
                hasher.hash(known(body));
            }
            Key::Times(body, count) => {
                hasher.number(3);
                hasher.hash(known(body));
                hasher.number(*count);
            }
        }
    }
    hasher.finish()
}
