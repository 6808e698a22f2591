//! Whether what counts as the iterations of a loop may be several calls of one: by what calls of MPI were given, and where
//! they stand in the source.
//!
//! A call tree has functions, not places in the source, so two calls of one function in the body of a loop look as two
//! iterations do:
//!
//! ```text
//!  for { sum(row) sum(col) }       sum sum sum sum sum(open)      5 by the calls, of communicators in turn: it is the third
//!  B!   for { work B }             B   work B   work B(open)      3 by the calls, the first of another line: it is the second
//! ```
//! Where each iteration begins with the same function, the first call of MPI of each has to be of one line and one
//! communicator. If not, no number is said.
//!
//! *Costs*: one pass over the trace of a task, of [`LONGEST`] events at most ([`LONGEST_LIVE`] while the job goes on). *Not for*: several calls in one line, or below functions, that differ in nothing
//! that is looked at.

use crate::task::Task;
use lockstep_comm::Routines;
use lockstep_comm::communicators::{CommunicatorId, Communicators};
use lockstep_trace::{Event, FunctionId, Run, SourceLine};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// What a call of MPI shows of where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    line: Option<Arc<SourceLine>>,
    communicator: Option<CommunicatorId>,
}

/// A loop that is checked.
#[derive(Debug)]
struct Checked {
    /// Whose it is, and the first that it calls: there may be several of a name, one of which is in a trace.
    function: Vec<FunctionId>,
    first: Vec<FunctionId>,
    iteration: u64,
    /// How many calls are open in the last call of the function.
    depth: Option<usize>,
    /// Calls of the first function, and the marks of the first call of MPI of each; whether they differ.
    calls: u64,
    is_marked: bool,
    mark: Option<Mark>,
    differs: bool,
}

impl Checked {
    fn call(&mut self, function: FunctionId, depth: usize, mark: Option<&Mark>) {
        if self.function.contains(&function) {
            (self.depth, self.calls) = (Some(depth), 0);
            (self.is_marked, self.mark, self.differs) = (true, None, false);
            return;
        }
        let Some(own) = self.depth.filter(|own| depth > *own) else {
            return;
        };
        if depth == own + 1 {
            // What is not within the first function tells nothing.
            let is_first = self.first.contains(&function);
            self.is_marked = !is_first;
            self.calls += u64::from(is_first);
        }
        if let Some(mark) = mark.filter(|_| !self.is_marked) {
            self.is_marked = true;
            self.differs |= self.mark.as_ref().is_some_and(|it| it != mark);
            self.mark.get_or_insert_with(|| mark.clone());
        }
    }

    fn is_denied(&self) -> bool {
        self.differs && self.calls == self.iteration
    }
}

/// Events of a trace that is gone over: longer ones take seconds.
const LONGEST: u64 = 20_000_000;
/// The same while a job goes on and somebody waits for the sentence: longer ones take tenths of a second.
const LONGEST_LIVE: u64 = 2_000_000;

/// Leaves out of a task's loops, by function and first call, those whose iteration may be another one; `goes_on`: the job does.
pub(crate) fn recount(
    run: &Run,
    communicators: &Communicators,
    task: &Task,
    loops: &mut Vec<(String, u64)>,
    goes_on: bool,
) {
    let longest = if goes_on { LONGEST_LIVE } else { LONGEST };
    let thread = run.trace(task.trace);
    let Some(thread) = thread.filter(|it| it.events <= longest) else {
        return;
    };
    let ids = |name: &str| -> Vec<FunctionId> {
        let ids = (0..).zip(&run.functions).filter(|it| it.1.name == name);
        ids.map(|(id, _)| FunctionId(id)).collect()
    };
    let is_once = |name: &str| task.stack.iter().filter(|it| it.function == name).count() == 1;
    let checked = loops.iter().map(|(name, iteration)| {
        let (function, first) = name.split_once('/')?;
        let is_clear = is_once(function) && function != first;
        is_clear.then(|| Checked {
            function: ids(function),
            first: ids(first),
            iteration: *iteration,
            depth: None,
            calls: 0,
            is_marked: true,
            mark: None,
            differs: false,
        })
    });
    let mut checked: Vec<Option<Checked>> = checked.collect();
    if checked.iter().all(Option::is_none) {
        return;
    }
    let routines = Routines::new(run);
    let named = checked.iter().flatten();
    let named: FxHashSet<FunctionId> = named
        .flat_map(|it| it.function.iter().chain(&it.first))
        .copied()
        .collect();
    let is_wanted = |id: FunctionId| named.contains(&id) || routines.get(id).is_some();
    let mut events = communicators.events_of(thread, is_wanted);
    let last = task.polls.as_ref().and_then(|it| it.since);
    while let Some((event, depth)) = events.next_event() {
        if last.is_some_and(|last| event.annotated.index > last) {
            break;
        }
        let Event::Call(function) = event.annotated.event else {
            continue;
        };
        let mark = routines.get(function).map(|_| Mark {
            line: event.annotated.line.clone(),
            communicator: event.communicator(),
        });
        for it in checked.iter_mut().flatten() {
            it.call(function, depth, mark.as_ref());
        }
    }
    let mut checked = checked.iter();
    loops.retain(|_| {
        let it = checked.next().and_then(Option::as_ref);
        !it.is_some_and(Checked::is_denied)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the number of iterations is denied that is the number of calls of function 1 by 0; these are calls of
    /// functions, with how many calls are open then, and of MPI with a communicator.
    fn is_denied(iteration: u64, calls: &[(u32, usize, Option<u32>)]) -> bool {
        let mut checked = Checked {
            function: vec![FunctionId(0)],
            first: vec![FunctionId(1)],
            iteration,
            depth: None,
            calls: 0,
            is_marked: true,
            mark: None,
            differs: false,
        };
        for (function, depth, communicator) in calls {
            let mark = communicator.map(|it| Mark {
                line: None,
                communicator: Some(CommunicatorId(it)),
            });
            checked.call(FunctionId(*function), *depth, mark.as_ref());
        }
        checked.is_denied()
    }

    #[test]
    fn two_calls_of_a_body_are_no_iterations() {
        let [row, col] = [7, 8].map(|it| [(1, 3, None), (2, 4, Some(it))]);
        let alike = [vec![(0, 2, None)], [row; 3].concat()].concat();
        assert!(!is_denied(3, &alike));
        let other = [vec![(0, 2, None)], [row, col, row].concat()].concat();
        assert!(is_denied(3, &other));
        // It is not by these calls that it was counted.
        assert!(!is_denied(2, &other));
        // In an earlier call of the function, and in other functions.
        let earlier = [
            vec![(0, 2, None)],
            row.to_vec(),
            vec![(0, 2, None)],
            [col; 3].concat(),
        ];
        assert!(!is_denied(3, &earlier.concat()));
        let between = [
            (0, 2, None),
            (1, 3, Some(7)),
            (3, 3, Some(8)),
            (1, 3, Some(7)),
        ];
        assert!(!is_denied(2, &between));
    }
}
