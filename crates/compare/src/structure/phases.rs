//! Phases: the iterations of a trace's outermost loop, and the first one that does what none did before.
//!
//! First divergence tells the loops around it where the normal trace's loops could be folded. A main loop whose
//! iterations differ among themselves (regions that are refined, output now and then) is no folded loop, and yet everybody
//! would say "in time step 812". Its iterations are found here by what recurs: on the way to where most of the trace
//! happens, the first frame with a function that is called again and again.
//!
//! ```text
//!  main: Init  read  [advance limits reduce] [advance limits reduce] [advance limits output reduce] ...  Finalize
//!                     └ from one advance() to the next: a phase       └ the first with a new body
//! ```
//!
//! A body is what a phase calls, each call with its whole shape, loops counted once: trip counts make no new body.
//! *Costs*: the direct calls of one frame, at most [`MOST`] of them. *Not for* threads without such a loop.

use crate::calls::function;
use crate::difftrace::trees::Trees;
use crate::naming::{is_shown, told};
use crate::numbered::Numbered;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId, Shape};
use lockstep_loops::{Bodies, Element, Key, Mode, fold};
use lockstep_trace::is_standard;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

/// Calls of a frame that are looked at, at most; with more of them nothing is said.
const MOST: u64 = 1 << 20;
/// So many phases make a loop.
const LEAST: usize = 4;

/// What recurs more often than that, beside what recurs least often, is called in a loop within the loop.
const OFTEN: usize = 4;

/// Whether a function is no matter of a language's library, or of memory.
fn is_own(name: &str) -> bool {
    !is_standard(name) && is_shown(name)
}

/// The phases of a trace beside those of the normal runs. A phase is one iteration of the outermost loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Phases {
    /// The function that contains the loop.
    pub function: String,
    /// A phase goes from one call of this function to the next.
    pub marker: String,
    /// Number of phases in the first normal run.
    pub normal: usize,
    /// Number of phases in this trace.
    pub faulty: usize,
    /// The first phase, from 1, whose body this trace has in no normal run. Null if there is none.
    pub first_new: Option<usize>,
    /// Number of phases with such a body.
    pub new: usize,
    /// The phase in which the trace first differs, from 1; 0 before all of them.
    #[serde(skip)]
    pub(crate) at: Option<usize>,
}

impl Phases {
    /// `its 812th iteration of main() is the first with a new body`.
    pub(crate) fn sentence(&self) -> Option<String> {
        let first = self.first_new?;
        let more = match self.new {
            1 => "no other has one".to_owned(),
            new => format!("{new} have one"),
        };
        Some(format!(
            "iteration {first} of {} in {} (from one {} to the next) is the first with a new body; {more}",
            self.faulty,
            told(&self.function),
            told(&self.marker)
        ))
    }
}

/// A step of a phase: a call's shape, the same number for the same shape.
type Step = u32;

/// Numbers for shapes, and the bodies of loops over them.
#[derive(Default)]
struct Known {
    shapes: Numbered<Shape>,
    bodies: Bodies,
}

/// A frame with its direct calls in order, loops rolled out.
struct Frame {
    name: Option<FunctionKey>,
    /// Each with the number of events of the frame before it.
    calls: Vec<(FunctionKey, NodeId, u64)>,
    /// Number of the trace's event with which it begins.
    start: u64,
    events: u64,
}

/// The phases of the trace `faulty` beside those of `normals`, all of one name; `event` is where it first differs.
/// `None` where the normal traces have no such loop. Where they are not alike in it, no body is new.
pub(crate) fn phases(
    trees: &Trees,
    normals: &[NodeId],
    faulty: NodeId,
    event: Option<u64>,
) -> Option<Phases> {
    let forest = &trees.forest;
    let mut known = Known::default();
    let mut path = Vec::new();
    let mut frame = Frame::of(forest, *normals.first()?, 0)?;
    let marker = loop {
        if let Some(marker) = frame.marker(forest) {
            break marker;
        }
        // Down to where most happens.
        let (function, inner) = frame.down(forest, None)?;
        path.push(function);
        frame = inner;
    };
    let others: Vec<Vec<Vec<Step>>> = normals
        .iter()
        .filter_map(|root| Frame::at(forest, *root, &path))
        .map(|frame| frame.phases(forest, marker, &mut known).0)
        .collect();
    let usual: FxHashSet<&Vec<Step>> = others.iter().flatten().collect();
    // Where one normal run has bodies that the others have not, a new body says nothing.
    let alike = others.iter().all(|one| {
        let mine: FxHashSet<&Vec<Step>> = one.iter().collect();
        usual.iter().all(|body| mine.contains(*body))
    });
    let first = others.first().map_or(0, Vec::len);
    // More bodies than that, or others in each run, say nothing by being new; the phases are counted all the same.
    let says = alike && 2 * usual.len() <= first;
    if first < LEAST {
        return None;
    }
    let frame = Frame::at(forest, faulty, &path)?;
    let (now, starts) = frame.phases(forest, marker, &mut known);
    let is_new = |body: &&Vec<Step>| says && !usual.contains(*body);
    let name = |function: FunctionKey| lockstep_trace::brief(&forest.function(function).name);
    let within = event.filter(|event| (frame.start..=frame.start + frame.events).contains(event));
    Some(Phases {
        function: frame.name.map_or_else(|| "the thread".to_owned(), name),
        marker: name(marker),
        normal: first,
        faulty: now.len(),
        first_new: now.iter().position(|body| is_new(&body)).map(|at| at + 1),
        new: now.iter().filter(is_new).count(),
        at: within.map(|event| starts.partition_point(|start| *start <= event)),
    })
}

impl Frame {
    /// The direct calls of a call or trace that begins with event `start`; `None` if they are too many.
    fn of(forest: &Forest, id: NodeId, start: u64) -> Option<Self> {
        let name = function(forest, id);
        let mut frame = Self {
            name,
            calls: Vec::new(),
            start,
            events: forest.node(id).events,
        };
        let mut before = u64::from(name.is_some());
        let items = |id| {
            forest
                .node(id)
                .items
                .iter()
                .rev()
                .map(|it| (it.node, it.times))
        };
        let mut work: Vec<(NodeId, u64)> = items(id).collect();
        while let Some((id, times)) = work.pop() {
            if times > 1 {
                work.push((id, times - 1));
            }
            let node = forest.node(id);
            match node.label {
                Label::Call(call) => {
                    if frame.calls.len() as u64 == MOST {
                        return None;
                    }
                    frame.calls.push((call.function, id, before));
                    before += node.events;
                }
                Label::Loop(_) | Label::Iteration => work.extend(items(id)),
                Label::Return | Label::Trace => before += node.events,
            }
        }
        Some(frame)
    }

    /// The frame below a root that these calls lead to, each the one in which most happens.
    fn at(forest: &Forest, root: NodeId, path: &[FunctionKey]) -> Option<Self> {
        let mut frame = Self::of(forest, root, 0)?;
        for function in path {
            frame = frame.down(forest, Some(*function))?.1;
        }
        Some(frame)
    }

    /// The call in which most happens, of a function if one is given.
    fn down(&self, forest: &Forest, of: Option<FunctionKey>) -> Option<(FunctionKey, Self)> {
        let calls = (self.calls.iter()).filter(|call| of.is_none_or(|it| it == call.0));
        let (function, node, before) =
            calls.max_by_key(|it| (forest.node(it.1).events, std::cmp::Reverse(it.2)))?;
        Some((*function, Self::of(forest, *node, self.start + before)?))
    }

    /// The function whose calls are the beginnings of the phases: of those that recur all the time, and not much more often
    /// than any other does, the first.
    fn marker(&self, forest: &Forest) -> Option<FunctionKey> {
        struct Recurs {
            first: u64,
            last: u64,
            widest: u64,
            times: usize,
        }
        let mut all: FxHashMap<FunctionKey, Recurs> = FxHashMap::default();
        for (function, _, before) in &self.calls {
            let seen = all.entry(*function).or_insert(Recurs {
                first: *before,
                last: *before,
                widest: 0,
                times: 0,
            });
            seen.widest = seen.widest.max(before - seen.last);
            seen.last = *before;
            seen.times += 1;
        }
        // From the first to the last it must be most of the frame, in pieces of which none is most of it.
        all.retain(|_, it| {
            let span = it.last - it.first;
            it.times >= LEAST && 2 * span >= self.events && 2 * it.widest <= span
        });
        // Nobody counts the steps of a program by its containers' calls, or by who asks for memory.
        all.retain(|function, _| is_own(&forest.function(*function).name));
        let least = all.values().map(|it| it.times).min()?;
        let seldom = all.iter().filter(|(_, it)| it.times <= OFTEN * least);
        let first = seldom
            .min_by_key(|(function, it)| (it.first, forest.function(**function).name.as_str()));
        first.map(|(function, _)| *function)
    }

    /// The bodies, and the events with which the phases begin.
    fn phases(
        &self,
        forest: &Forest,
        marker: FunctionKey,
        known: &mut Known,
    ) -> (Vec<Vec<Step>>, Vec<u64>) {
        let mut keys: Vec<Vec<Step>> = Vec::new();
        let mut starts = Vec::new();
        let mut distinct: FxHashMap<Vec<Step>, Vec<Step>> = FxHashMap::default();
        let mut body = Vec::new();
        let mut close = |body: &mut Vec<Step>, keys: &mut Vec<Vec<Step>>, bodies: &mut Bodies| {
            let steps = std::mem::take(body);
            let key = distinct
                .entry(steps)
                .or_insert_with_key(|steps| once(steps, bodies));
            keys.push(key.clone());
        };
        for (function, node, before) in &self.calls {
            if *function == marker {
                if !starts.is_empty() {
                    close(&mut body, &mut keys, &mut known.bodies);
                }
                starts.push(self.start + before);
            }
            if !starts.is_empty() {
                body.push(known.shapes.number(forest.shape(*node)) as Step);
            }
        }
        if !starts.is_empty() {
            close(&mut body, &mut keys, &mut known.bodies);
        }
        (keys, starts)
    }
}

/// The steps with each repetition once.
fn once(steps: &[Step], bodies: &mut Bodies) -> Vec<Step> {
    const K: usize = 32;
    fn body(keys: &[Key], bodies: &Bodies, to: &mut Vec<Step>) {
        for key in keys {
            match key {
                Key::Symbol(step) => to.push(*step),
                Key::Loop(inner) | Key::Times(inner, _) => body(bodies.keys(*inner), bodies, to),
            }
        }
    }
    let mut all = Vec::new();
    for element in fold(steps.iter().copied(), K, Mode::Shape, bodies) {
        match element {
            Element::Symbol(step) => all.push(step),
            Element::Loop(looped) => body(bodies.keys(looped.body()), bodies, &mut all),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn steps_are_counted_by_calls_of_the_program() {
        assert!(is_own("flux_correction(double)") && is_own("MPI_Allreduce"));
        let others = [
            "std::vector<int>::begin()",
            "operator new(unsigned long)",
            "free",
        ];
        assert!(!others.into_iter().any(is_own));
    }

    #[test]
    fn repetitions_count_once() {
        let mut bodies = Bodies::new();
        let mut once = |steps: &[Step]| once(steps, &mut bodies);
        assert_eq!(once(&[1, 2, 2, 2, 3]), once(&[1, 2, 2, 3]));
        assert_eq!(once(&[1, 2, 3]), once(&[1, 2, 2, 3]));
        assert_ne!(once(&[1, 2, 3]), once(&[1, 3]));
        assert_eq!(once(&[]), [0; 0]);
    }
}
