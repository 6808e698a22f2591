//! Which thread of a team did not come to a barrier at which the others wait: it left the barrier out, and is over.
//!
//! ```text
//!  thread 0   step( meet( barrier ) )  step( meet( barrier ) )  step( meet( barrier(open
//!  thread 1   step( meet( barrier ) )  step( meet( barrier ) )  step( meet( barrier(open
//!  thread 2   step( meet( barrier ) )  step( )                  step( meet( barrier ) )      over
//! ```
//! That a thread is over says nothing of where it went another way: the calls of those that wait do, which are alike.
//!
//! *Guarantees*: nothing where those that wait went different ways, or there is only one of them; nothing of a thread that
//! came to as many barriers as they. *Costs*: the call trees of the threads of such a process, of [`MOST_EVENTS`] at most;
//! nothing while no thread is over. *Not for*: a thread that is elsewhere (it is told as that), and nested teams.

use crate::departure::{Departure, MOST, calls, departure, function, nth};
use crate::habit::Counted;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_comm::{Conversation, Doing, Strand};
use lockstep_trace::threads::{Does, Meaning, meaning};
use lockstep_trace::{Frame, Process, ProcessName, Run, Site, Thread, TraceName};
use std::collections::BTreeMap;

/// Threads with more events are not compared.
const MOST_EVENTS: u64 = 50_000_000;
/// Two that wait, and one that does not come.
const FEWEST: usize = 3;
/// So many processes that have one are told of.
const MOST_TOLD: usize = 8;
/// Those that wait are compared with each other, so many.
const WAITERS: usize = 8;

/// A thread that left a barrier out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truant {
    /// Which.
    pub thread: TraceName,
    /// How it went another way than those that wait.
    pub departure: Departure,
    /// Where these called what it left out.
    pub site: Option<Site>,
}

/// Of each task that is at a barrier, who does not come. Without MPI the first of a process stands for all.
pub(crate) fn truants(run: &Run, tasks: &BTreeMap<u32, Conversation>) -> BTreeMap<u32, Truant> {
    let mut together: BTreeMap<ProcessName, (u32, Vec<&Strand>)> = BTreeMap::new();
    // Of a rank all threads stand together already, and most ranks have one.
    let several = tasks
        .iter()
        .filter(|(_, it)| !run.is_mpi || it.strands.len() >= FEWEST);
    for (task, said) in several {
        for strand in &said.strands {
            let of = together.entry(strand.process());
            of.or_insert((*task, Vec::new())).1.push(strand);
        }
    }
    together.retain(|_, it| it.1.len() >= FEWEST);
    let found = run.processes.iter().filter_map(|process| {
        let (task, strands) = together.get(&process.name)?;
        Some((*task, truant(run, process, strands)?))
    });
    found.take(MOST_TOLD).collect()
}

/// The one of the threads of a process.
fn truant(run: &Run, process: &Process, strands: &[&Strand]) -> Option<Truant> {
    let (mut waiting, mut over): (Vec<&Thread>, Vec<&Thread>) = Default::default();
    for strand in strands {
        let thread = process.threads.iter().find(|it| it.name == strand.trace)?;
        match strand.doing {
            Doing::Barrier | Doing::Team if is_at_barrier(run, thread) => waiting.push(thread),
            Doing::Idle | Doing::Team => over.push(thread),
            _ => {}
        }
    }
    if waiting.len() < 2 || over.is_empty() || over.len() >= waiting.len() {
        return None;
    }
    let threads = [waiting.as_slice(), &over].concat();
    if threads.iter().map(|it| it.events).sum::<u64>() > MOST_EVENTS {
        return None;
    }
    let mut forest = Forest::new();
    let traces = forest.bounded(threads.len(), |forest| {
        let functions = forest.add_functions(run);
        forest.add_traces(&functions, &threads)
    });
    let roots: Vec<NodeId> = traces.iter().map(|it| it.root).collect();
    let (of_waiting, of_over) = roots.split_at(waiting.len());
    let (at, departure) = left_out(&forest, of_waiting, of_over)?;
    let missing = departure.left_out.first();
    let caller = departure.frames.last().map(|it| &it.0);
    let open = &waiting.first()?.open;
    let name = |it: &Frame| &run.function(it.function).name;
    let mut pairs = open.windows(2);
    let of = pairs.find(|it| Some(name(&it[0])) == caller && Some(name(&it[1])) == missing);
    let line = of.and_then(|it| it[1].called_at.as_ref());
    Some(Truant {
        thread: over.get(at)?.name,
        site: line.map(|it| Site {
            caller: caller.cloned().unwrap_or_default(),
            lines: vec![it.clone()],
        }),
        departure,
    })
}

/// Which of the threads that are over left out a barrier that all that wait are at, and how; none where it is not only one.
fn left_out(forest: &Forest, waiting: &[NodeId], over: &[NodeId]) -> Option<(usize, Departure)> {
    let mut found = over.iter().enumerate().filter_map(|(at, root)| {
        let (region, own, nth) = last_call(forest, *root)?;
        let others: Option<Vec<NodeId>> = waiting
            .iter()
            .take(WAITERS)
            .map(|it| open_call(forest, *it, region))
            .collect();
        let others = others?;
        let (first, rest) = others.split_first()?;
        let are_alike = rest
            .iter()
            .all(|it| departure(forest, *first, *it).is_none());
        let came = |id: NodeId| {
            let counted = Counted::new(forest, &[id]);
            let is_it = |id| function(forest, id).is_some_and(|it| is_barrier(forest.meaning(it)));
            counted.sums(forest, is_it)[&id]
        };
        let is_less = came(own) < came(*first);
        let mut departed = departure(forest, *first, own).filter(|_| are_alike && is_less)?;
        // In the region itself, and in which call of that.
        departed
            .frames
            .insert(0, (forest.function(region).name.clone(), nth));
        Some((at, departed))
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The last call that a thread made in the frame in which it is, which is over; and which of its function's there it is, from 1.
fn last_call(forest: &Forest, root: NodeId) -> Option<(FunctionKey, NodeId, usize)> {
    let mut left = MOST;
    let mut id = root;
    loop {
        let list = calls(forest, id, &mut left)?;
        let last = *list.last()?;
        match forest.node(last).label {
            Label::Call(call) if call.open => id = last,
            Label::Call(call) => {
                return Some((call.function, last, nth(forest, &list, list.len() - 1)));
            }
            _ => return None,
        }
    }
}

/// The call of a function in which a thread is.
fn open_call(forest: &Forest, root: NodeId, of: FunctionKey) -> Option<NodeId> {
    let mut left = MOST;
    let mut id = root;
    loop {
        id = calls(forest, id, &mut left)?.pop()?;
        match forest.node(id).label {
            Label::Call(call) if !call.open => return None,
            Label::Call(call) if call.function == of => return Some(id),
            _ => {}
        }
    }
}

/// Whether it waits for all threads of a team, and does nothing else.
fn is_barrier(call: Meaning) -> bool {
    matches!(call.does, Does::Barrier(_))
}

fn is_at_barrier(run: &Run, thread: &Thread) -> bool {
    let last = thread.open.iter().rfind(|it| !it.handed_over);
    last.is_some_and(|it| is_barrier(meaning(&run.function(it.function).linkage)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree_tests::tree;

    fn told(waiting: &[&str], over: &[&str]) -> Option<(usize, String)> {
        let mut forest = Forest::new();
        let mut roots = |texts: &[&str]| -> Vec<NodeId> {
            texts.iter().map(|it| tree(&mut forest, it)).collect()
        };
        let (waiting, over) = (roots(waiting), roots(over));
        let (at, departure) = left_out(&forest, &waiting, &over)?;
        assert!(departure.instead.is_empty());
        let (function, nth) = departure.frames.last()?;
        Some((
            at,
            format!("{} {function} {nth}", departure.left_out.join(" ")),
        ))
    }

    const STEP: &str = "step( part meet( GOMP_barrier ) ) ";

    #[test]
    fn one_left_a_barrier_out() {
        let many = STEP.repeat(3);
        let waits = format!("region( {many} step( part meet( GOMP_barrier(");
        let first = format!("main( GOMP_parallel( {waits}");
        let short = format!("region( {STEP} step( part ) {STEP} {STEP} ) ");
        let expected = "meet step 2".to_owned();
        let found = told(&[&first, &waits, &waits], &[&short]);
        assert_eq!(found, Some((0, expected.clone())));
        // The first one did.
        let first = format!("main( GOMP_parallel( {short}");
        assert_eq!(told(&[&waits, &waits], &[&first]), Some((0, expected)));
        // It came as often, by the end of the region; or is of another team; or two did.
        let all = format!("region( {many} {STEP} ) ");
        assert_eq!(told(&[&waits, &waits], &[&all]), None);
        let other = format!("other( {STEP} ) ");
        assert_eq!(told(&[&waits, &waits], &[&other]), None);
        assert_eq!(told(&[&waits, &waits, &waits], &[&short, &short]), None);
    }

    #[test]
    fn who_waits_differs() {
        let many = STEP.repeat(3);
        let waits = format!("region( {many} step( part meet( GOMP_barrier(");
        let unlike =
            format!("region( {STEP} dump( fwrite ) {STEP} {STEP} step( part meet( GOMP_barrier(");
        let short = format!("region( {STEP} step( part ) {STEP} {STEP} ) ");
        assert_eq!(told(&[&waits, &unlike], &[&short]), None);
    }
}
