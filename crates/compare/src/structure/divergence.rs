//! First divergence: where a faulty trace leaves what the normal one did.
//!
//! Both traces are call trees of one [`Forest`], so equal parts are equal nodes and are passed in one
//! step. Trip counts are free at first: the normal tree is read as a pattern in which every loop may run
//! once or more, and the divergence is the furthest event of the faulty trace up to which it can still
//! be explained by that pattern. Only where structure agrees to the end do counts decide.
//!
//! ```text
//!  normal   Init  L1^16 ............................  Finalize        L1 = Recv Send
//!  faulty   Init  L1^7 ......... Send Recv Send ...   Finalize
//!                               ▲ iteration 8 of L1: Send instead of Recv
//! ```

use super::source::call_lines;
use crate::calls::called;
use crate::naming::{plain, spelled};
use lockstep_calltree::{Forest, FunctionKey, FunctionMap, NodeId, Projection};
use lockstep_loops::{BodyId, Names};
use lockstep_trace::{Run, SourceLine, Thread, TraceName, is_standard};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

mod exact;
mod novel;
mod pattern;
mod structure;
pub(crate) mod usual;

use crate::structure::list::Next;
use exact::Mismatch;
use usual::Accepted;

/// How a trace leaves the normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DivergenceKind {
    /// The trace makes another call; or one of the two traces returns and the other makes a call.
    OtherCall,
    /// The trace ends where the normal one continues: it is stuck in an open call, or was stopped.
    EndsEarly,
    /// The trace continues where the normal one ends.
    GoesOn,
    /// Only numbers of loop iterations differ.
    Counts,
    /// Only timing differs: for example, which thread takes which work, or finds a lock taken. Numbers of loop
    /// iterations may differ, too.
    Timing,
}

/// Where a faulty trace leaves the normal one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Divergence {
    /// The trace.
    pub trace: TraceName,
    /// How it leaves the normal trace.
    pub kind: DivergenceKind,
    /// Number of the first event of the faulty trace that differs, from 0. If the trace ends early, the number of its
    /// events.
    pub event: u64,
    /// Number of the normal trace's event at that place, from 0.
    pub normal_event: u64,
    /// Functions whose calls are open at that place in the faulty trace, outermost first.
    pub stack: Vec<String>,
    /// What the normal trace does there: the name of a function, or `return`. Null if it ends there.
    pub normal: Option<String>,
    /// What the faulty trace does there instead: the name of a function, or `return`. Null if it ends there.
    pub faulty: Option<String>,
    /// Whether the call in `faulty` never returned.
    pub faulty_is_open: bool,
    /// Loops around that place, outermost first, each with its iteration, from 1: `[["L1", 8]]`.
    #[serde(rename = "loop")]
    pub loops: Vec<(String, u64)>,
    /// Source lines of that place in the faulty run: one line, or all candidates. Empty if no line is known.
    pub source: Vec<SourceLine>,
    #[serde(skip)]
    trees: InTrees,
}

/// A divergence in the call trees that were compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InTrees {
    /// Where the normal run makes the call that is not made any more, where the source of the divergence tells nothing.
    missed: Option<SourceLine>,
    /// The loops around it by what they call, as a sentence has them: `[MPI_Recv MPI_Send]`. Empty where nobody looked.
    around: Vec<String>,
    bodies: Vec<BodyId>,
    caller: Option<FunctionKey>,
    callee: Option<FunctionKey>,
}

/// What a comparison of two traces finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Divergences {
    /// The first difference of structure.
    pub structure: Option<Divergence>,
    /// Where structure does not differ: the first difference of trip counts, or of timing.
    pub counts: Option<Divergence>,
}

impl Divergences {
    /// What counts as a difference: structure, and with `counts` (`--counts`) trip counts too.
    #[must_use]
    pub fn difference(&self, counts: bool) -> Option<&Divergence> {
        self.structure
            .as_ref()
            .or(self.counts.as_ref().filter(|_| counts))
    }
}

/// A trace of a run, as a tree and under the filter that is compared.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// The tree of the whole trace.
    pub whole: NodeId,
    /// Its projection; the same where nothing is ignored.
    pub root: NodeId,
}

impl Side {
    /// A trace of which nothing is ignored.
    #[must_use]
    pub const fn whole(root: NodeId) -> Self {
        Self { whole: root, root }
    }
}

/// Where `faulty` first leaves `normal`. `projection` is the filter with which the sides were made,
/// `names` must know the loops of both roots ([`Forest::name_loops`]).
///
/// Events are those of the whole traces; stack and loops are those under the filter. Costs what
/// differs up to that point, the depth of calls there, and little for each changed trip count before.
#[must_use]
pub fn first_divergence(
    forest: &Forest,
    trace: TraceName,
    normal: Side,
    faulty: Side,
    projection: Option<&mut Projection>,
    names: &Names,
) -> Divergences {
    beside(forest, trace, (normal, faulty), projection, names, None)
}

/// [`first_divergence`], with what is accepted besides.
pub(crate) fn beside(
    forest: &Forest,
    trace: TraceName,
    (normal, faulty): (Side, Side),
    projection: Option<&mut Projection>,
    names: &Names,
    usual: Option<Accepted>,
) -> Divergences {
    let (a, b) = (normal.root, faulty.root);
    let Some(exact) = exact::first_mismatch(forest, a, b) else {
        return Divergences::default();
    };
    // A call beside other normal ones than that in its place is not novel as soon as this one fails.
    let in_waiting = usual.is_some_and(|Accepted { usual: it, .. }| {
        it.waits_at(forest, a) || exact.mismatch.stack.iter().any(|frame| it.waits(*frame))
    });
    let mut alike = None;
    let mismatch = if forest.same_shape(a, b) {
        alike = Some(DivergenceKind::Counts);
        exact.mismatch
    } else if !in_waiting && novel::is_novel(forest, a, &exact) {
        exact.mismatch
    } else {
        let (structural, by_timing) = structure::first_mismatch(forest, a, b, usual);
        if structural.is_none() {
            alike = Some(match by_timing {
                true => DivergenceKind::Timing,
                false => DivergenceKind::Counts,
            });
        }
        // Up to the first difference of any kind it is known where the normal trace was: with free trip counts several
        // places may explain the faulty one.
        let before = exact.mismatch.faulty_event;
        let later = structural.filter(|found| found.faulty_event != before);
        later.unwrap_or(exact.mismatch)
    };
    let mut found = describe(forest, trace, &mismatch, names);
    if let Some(projection) = projection {
        found.event = forest.origin(faulty.whole, projection, found.event);
        found.normal_event = forest.origin(normal.whole, projection, found.normal_event);
    }
    if let Some(kind) = alike {
        found.kind = kind;
        return Divergences {
            structure: None,
            counts: Some(found),
        };
    }
    Divergences {
        structure: Some(found),
        counts: None,
    }
}

/// How many calls of a loop are told.
const CALLS: usize = 3;

/// What a loop calls first, in short: `[exchange update measure ...]`. What a library does only where there is nothing else.
pub(crate) fn told_loop(forest: &Forest, looped: NodeId) -> String {
    let called = called(forest, looped);
    let name = |function: &FunctionKey| forest.function(*function).name.as_str();
    let own = called.iter().map(name).filter(|it| !is_standard(it));
    let mut names: Vec<&str> = own.collect();
    if names.is_empty() {
        names = called.iter().map(name).collect();
    }
    let more = if names.len() > CALLS { " ..." } else { "" };
    let told: Vec<String> = (names.into_iter().take(CALLS))
        .map(|name| plain(&spelled(name)))
        .collect();
    format!("[{}{more}]", told.join(" "))
}

fn describe(forest: &Forest, trace: TraceName, mismatch: &Mismatch, names: &Names) -> Divergence {
    let name = |next: Next| match next {
        Next::Call { function, .. } => Some(forest.function(function).name.clone()),
        Next::Return => Some("return".to_owned()),
        Next::End => None,
    };
    let kind = match (mismatch.normal, mismatch.faulty) {
        (_, Next::End) => DivergenceKind::EndsEarly,
        (Next::End, _) => DivergenceKind::GoesOn,
        _ => DivergenceKind::OtherCall,
    };
    Divergence {
        trace,
        kind,
        event: mismatch.faulty_event,
        normal_event: mismatch.normal_event,
        stack: mismatch
            .stack
            .iter()
            .map(|function| forest.function(*function).name.clone())
            .collect(),
        normal: name(mismatch.normal),
        faulty: name(mismatch.faulty),
        faulty_is_open: matches!(mismatch.faulty, Next::Call { open: true, .. }),
        loops: mismatch
            .loops
            .iter()
            .map(|(body, iteration)| (names.label(*body), *iteration))
            .collect(),
        source: Vec::new(),
        trees: InTrees {
            missed: None,
            around: Vec::new(),
            bodies: mismatch.loops.iter().map(|(body, _)| *body).collect(),
            caller: mismatch.stack.last().copied(),
            callee: match mismatch.faulty {
                Next::Call { function, .. } => Some(function),
                Next::Return | Next::End => None,
            },
        },
    }
}

impl Divergence {
    /// Says what the loops around it call; `examples` has a loop of each body.
    pub(crate) fn tell_loops(&mut self, forest: &Forest, examples: &FxHashMap<BodyId, NodeId>) {
        let told = |body: &BodyId| Some(told_loop(forest, *examples.get(body)?));
        let around: Option<Vec<String>> = self.trees.bodies.iter().map(told).collect();
        self.trees.around = around.unwrap_or_default();
    }

    /// Whether it is the same one as that of another trace.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.stack == other.stack && self.normal == other.normal && self.faulty == other.faulty
    }

    /// The bodies of the loops around it.
    pub(crate) fn bodies(&self) -> &[BodyId] {
        &self.trees.bodies
    }

    /// Looks up where the normal run makes the call that is not made any more, if its caller has it in one line alone.
    pub(crate) fn locate_missed(&mut self, run: &Run, functions: &FunctionMap) {
        let (Some(caller), Some(name)) = (self.trees.caller, &self.normal) else {
            return;
        };
        let callee = |it| run.function(it).name == *name;
        let lines = call_lines(run, functions, caller, &callee);
        if let [line] = lines.as_slice() {
            self.trees.missed = Some(line.clone());
        }
    }

    /// Looks up where in the source of the faulty run the diverging call is made: where the open call
    /// was called, if it is one; else every line from which its caller calls that function.
    pub fn locate(&mut self, run: &Run, functions: &FunctionMap, thread: &Thread) {
        let open = if self.faulty.is_none() {
            thread
                .open
                .iter()
                .rev()
                .find_map(|frame| frame.called_at.clone())
        } else if self.faulty_is_open {
            thread
                .open
                .iter()
                .filter(|frame| Some(functions.key(frame.function)) == self.trees.callee)
                .find_map(|frame| frame.called_at.clone())
        } else {
            None
        };
        self.source = match open {
            Some(line) => vec![line],
            None => self.candidates(run, functions),
        };
    }

    /// Of several lines the one that was recorded beside the arguments, if it is a call that has some; its event is that of
    /// the whole trace. O(events before it).
    pub(crate) fn tell_apart(&mut self, run: &Run) {
        let thread = run.trace(self.trace).filter(|_| self.source.len() > 1);
        let site = thread.and_then(|it| run.sites(it, &[self.event]).pop()?);
        if let Some([line]) = site.as_ref().map(|it| it.lines.as_slice())
            && self.source.contains(line)
        {
            self.source = vec![line.clone()];
        }
    }

    fn candidates(&self, run: &Run, functions: &FunctionMap) -> Vec<SourceLine> {
        let Some(caller) = self.trees.caller else {
            return Vec::new();
        };
        let callee = |it| Some(functions.key(it)) == self.trees.callee;
        call_lines(run, functions, caller, &callee)
    }

    /// The innermost call around it; none at the root of the trace.
    pub(crate) fn caller(&self) -> Option<FunctionKey> {
        self.trees.caller
    }

    /// The function that the faulty trace calls there, if it calls one.
    pub(crate) fn callee(&self) -> Option<FunctionKey> {
        self.trees.callee
    }

    /// Where the normal run makes the call that is missed.
    pub(crate) fn missed(&self) -> Option<&SourceLine> {
        self.trees.missed.as_ref()
    }

    /// What the loops around it call.
    pub(crate) fn around(&self) -> &[String] {
        &self.trees.around
    }
}

impl fmt::Display for Divergence {
    /// `calls MPI_Send (and never returns from it) where it called MPI_Recv, in iteration 8 of L1, in
    /// main, at sort.c:41`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = |what: &str| match what {
            "return" => "returns".to_owned(),
            name => format!("calls {name}"),
        };
        match (&self.faulty, self.stack.last()) {
            (Some(what), _) => write!(f, "{}", does(what))?,
            (None, Some(function)) => write!(f, "stops in {function}")?,
            (None, None) => write!(f, "stops")?,
        }
        if self.faulty_is_open {
            write!(f, " (and never returns from it)")?;
        }
        match self.normal.as_deref() {
            Some("return") => write!(f, " where it returned")?,
            Some(name) => write!(f, " where it called {name}")?,
            None => write!(f, " where it had ended")?,
        }
        for (number, (name, iteration)) in self.loops.iter().rev().enumerate() {
            let word = if number == 0 { ", in" } else { " of" };
            write!(f, "{word} iteration {iteration} of {name}")?;
        }
        if let (Some(function), true) = (self.stack.last(), self.faulty.is_some()) {
            write!(f, ", in {function}")?;
        }
        match self.source.as_slice() {
            [] => Ok(()),
            [line] => write!(f, ", at {}:{}", line.file, line.line),
            [line, others @ ..] => {
                let places = if others.len() == 1 { "place" } else { "places" };
                let others = others.len();
                write!(
                    f,
                    ", at {}:{} or {others} other {places}",
                    line.file, line.line
                )
            }
        }
    }
}
