//! What a run did, as the gate looks at it: for each process how often who called whom, and what each call of a function made.
//!
//! Threads of a process are taken together: which of them did a piece of work is a matter of timing, that somebody did it is not.

use super::quiet::Classes;
use super::settled::{Follows, Sequence, Settler};
use crate::calls::{Edge, add};
use crate::difftrace::trees::{RunTrees, Trees};
use crate::structure::arguments::{Said, calls, is_first_come, is_poll};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_comm::communicators::Communicators;
use lockstep_trace::{EndKind, ProcessName, ThreadName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// How often something was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub times: u64,
    /// Whether it is a matter of timing how often, and only whether at all is not.
    pub is_timed: bool,
}

/// What the calls of a function made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frames {
    /// The lists of calls, and how many calls of the function made each.
    pub lists: BTreeMap<Sequence, u64>,
    /// Those of these lists that go back to no function behind another, and their calls in the order of the functions.
    pub sorted: BTreeMap<Sequence, Sequence>,
    pub follows: BTreeSet<Follows>,
    /// Whether the calls share work, or who comes first decides what they do.
    pub shares: bool,
    /// Whether an answer may send them one way or another, which depends on who was faster.
    pub answers: bool,
}

/// What a call of MPI was given: each argument with its name.
pub(super) type Given = Vec<(&'static str, Said)>;

/// What a process did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfProcess {
    pub end: Option<(EndKind, Option<i32>)>,
    pub calls: BTreeMap<Edge, Amount>,
    pub frames: BTreeMap<FunctionKey, Frames>,
    /// By function of MPI.
    pub given: Table,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub processes: BTreeMap<ProcessName, OfProcess>,
    /// Whether something is handed to who comes first, so that processes share work.
    pub first_come: bool,
}

/// What each run did, from their trees.
pub(super) fn behaviours(trees: &Trees) -> Vec<Behaviour> {
    let classes = Classes::of(&trees.forest);
    let mut settler = Settler::new(&trees.forest, &classes);
    let each = trees.runs.iter();
    each.map(|run| behaviour(&trees.forest, &classes, &mut settler, run))
        .collect()
}

fn behaviour(
    forest: &Forest,
    classes: &Classes,
    settler: &mut Settler<'_>,
    of_run: &RunTrees,
) -> Behaviour {
    let mut found = Behaviour::default();
    for process in &of_run.run.processes {
        let Some(name) = of_run.partner(process.name) else {
            continue;
        };
        if of_run.traces.iter().any(|it| it.name.process == name) {
            let of_process = found.processes.entry(name).or_default();
            of_process.end = Some((process.end.kind, process.end.code));
        }
    }
    let (given, first_come) = given(of_run);
    found.first_come = first_come;
    for (process, table) in given {
        if let Some(of_process) = found.processes.get_mut(&process) {
            of_process.given = table;
        }
    }
    for (name, of_process) in &mut found.processes {
        let threads = of_run.traces.iter().filter(|it| it.name.process == *name);
        let mut gathered = Gathered::default();
        for trace in threads {
            let is_main = trace.name.thread == ThreadName::Main(0);
            gathered.add(forest, classes, settler, trace.root, is_main);
        }
        found.first_come |= gathered.first_come;
        gathered.finish(classes, first_come, of_process);
    }
    found
}

/// What the threads of a process did.
#[derive(Default)]
struct Gathered {
    calls: FxHashMap<Edge, u64>,
    forgotten: FxHashSet<Edge>,
    frames: FxHashMap<FunctionKey, OfFunction>,
    threads: u32,
    first_come: bool,
}

#[derive(Default)]
struct OfFunction {
    frames: Frames,
    /// The last thread that called it, and whether there are several, or another than the main one.
    thread: u32,
    is_threaded: bool,
    /// Whether some of its calls share, receive, or hand out to who comes first.
    shares: bool,
    receives: bool,
    first_come: bool,
}

impl Gathered {
    fn add(
        &mut self,
        forest: &Forest,
        classes: &Classes,
        settler: &mut Settler<'_>,
        root: NodeId,
        is_main: bool,
    ) {
        self.threads += 1;
        let mut times: BTreeMap<NodeId, u64> = BTreeMap::from([(root, 1)]);
        // Parents have greater numbers: when a node is the greatest left, all its parents are done.
        while let Some((id, count)) = times.pop_last() {
            let frame = settler.frame(id);
            let (caller, open) = match forest.node(id).label {
                Label::Call(call) => (Some(call.function), call.open),
                _ => (None, false),
            };
            // Which thread runs a region or a task is no matter, and no library's own order is.
            let named = caller.map(|it| classes.named[it.0 as usize]);
            let shown = caller.filter(|_| named.is_none_or(|it| !it.is_runtime));
            for (node, callee, each) in &frame.calls {
                let more = count.saturating_mul(*each);
                add(&mut self.calls, (shown, *callee), more);
                let sum = times.entry(*node).or_default();
                *sum = sum.saturating_add(more);
            }
            let forgotten = frame.forgotten.iter().map(|it| (shown, *it));
            self.forgotten.extend(forgotten);
            self.first_come |= frame.first_come;
            let Some(function) = shown else {
                continue;
            };
            let of = self.frames.entry(function).or_insert_with(|| OfFunction {
                thread: self.threads,
                is_threaded: !is_main,
                ..OfFunction::default()
            });
            of.is_threaded |= of.thread != self.threads || !is_main;
            of.shares |= frame.shares;
            of.frames.answers |= frame.answers;
            of.receives |= frame.receives;
            of.first_come |= frame.first_come;
            // The end of the process cuts off what other threads do.
            if named.is_some_and(|it| !it.is_library) && (is_main || !open) {
                of.frames.follows.extend(&frame.follows);
                let sorted = frame.sorted.map(|it| (frame.sequence, it));
                of.frames.sorted.extend(sorted);
                let lists = of.frames.lists.entry(frame.sequence).or_default();
                *lists = lists.saturating_add(count);
            }
        }
    }

    /// Functions that are called below what was forgotten somewhere.
    fn timed(&self) -> FxHashSet<FunctionKey> {
        let mut open: Vec<FunctionKey> = self.forgotten.iter().map(|it| it.1).collect();
        let mut timed: FxHashSet<FunctionKey> = open.iter().copied().collect();
        while let Some(caller) = open.pop() {
            let called = self.calls.keys().filter(|it| it.0 == Some(caller));
            open.extend(called.map(|it| it.1).filter(|it| timed.insert(*it)));
        }
        timed
    }

    fn finish(self, classes: &Classes, first_come: bool, process: &mut OfProcess) {
        let timed = self.timed();
        for (function, mut of) in self.frames {
            let is_chosen =
                of.first_come || (first_come && of.receives) || timed.contains(&function);
            of.frames.shares = (of.shares && of.is_threaded) || is_chosen;
            of.frames.answers |= is_chosen;
            process.frames.insert(function, of.frames);
        }
        for (edge, times) in self.calls {
            let shares = edge.0.and_then(|it| process.frames.get(&it));
            let is_library = classes.named[edge.1.0 as usize].is_library;
            let is_timed = self.forgotten.contains(&edge)
                || edge.0.is_some_and(|it| timed.contains(&it))
                || (is_library && shares.is_some_and(|it| it.shares));
            process.calls.insert(edge, Amount { times, is_timed });
        }
        // Nothing else may be left of what was forgotten.
        for edge in self.forgotten {
            process.calls.entry(edge).or_default().is_timed = true;
        }
    }
}

/// What the calls of MPI were given, by function.
type Table = BTreeMap<String, BTreeMap<Given, u64>>;

/// What the calls of MPI were given, by process; and whether something is received from who comes first.
fn given(of_run: &RunTrees) -> (BTreeMap<ProcessName, Table>, bool) {
    let run = of_run.run;
    let mut found: BTreeMap<ProcessName, Table> = BTreeMap::new();
    let mut first_come = false;
    let threads = || run.traces().filter(|it| it.has_arguments());
    if threads().next().is_none() {
        return (found, first_come);
    }
    let communicators = Communicators::of(run);
    for thread in threads() {
        let Some(process) = of_run.partner(thread.name.process) else {
            continue;
        };
        let table = found.entry(process).or_default();
        for call in calls(run, &communicators, thread) {
            first_come |= is_first_come(&call);
            if is_poll(call.meaning) {
                continue;
            }
            let given = call.given.into_iter();
            let given: Given = given.map(|it| (it.name, it.said)).collect();
            let of_function = table.entry(call.name).or_default();
            *of_function.entry(given).or_default() += 1;
        }
    }
    (found, first_come)
}
