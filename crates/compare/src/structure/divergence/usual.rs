//! What functions that wait do in normal runs, step by step.
//!
//! Where a call depends on timing ([`Timing`]), the normal trace shows but one of the ways that it can go. Such a call is
//! explained, too, if it goes step by step as some call of its function goes in any trace of the normal runs, and what it calls is
//! explained by some call of the same:
//!
//! ```text
//!  normal   take( lock unlock )   take( lock wait wait unlock )
//!  usual    ^ lock   lock unlock   lock wait   wait wait   wait unlock   unlock $
//!  faulty   take( lock wait unlock )   explained;   take( unlock )   not: nowhere is it the first step
//! ```
//!
//! Calls that are there or not by timing alone (`pthread_cond_wait`, a task in a barrier: [`Timing::passes`]) may come anywhere in such a
//! call, though no normal one has them; behind them comes what may come without, or once more what comes behind the lock around (the condition
//! that is asked again). Behind a call that gives a piece of work comes what comes behind any other such call of its function: a thread that
//! came late gets no piece of a dynamic loop, and one that came early all of them, though no normal trace shows it.
//!
//! A function that waits only through others (`send(); receive();`) may go as it goes in traces of the same name: whether one sends first
//! is a matter of who it is; or of other threads that share its work ([`Teams`]). So may the root of a trace where tasks stand, between the
//! regions of its team, or where such a thread's way is not recorded as a call.

use crate::calls::{below, function};
use crate::structure::list::{Next, first, last};
use crate::structure::steps::{At, Step, steps_and_end, walk};
use crate::structure::teams::Teams;
use crate::structure::timing::Timing;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Different calls of one function that are tried as an explanation.
const FRAMES: usize = 16;

/// Of a function that takes one piece of work after another, without a call that shows where one ends: adds that any may come behind any.
fn in_any_order(steps: &mut FxHashSet<Step>) {
    // A piece begins with what comes first of all, and with what comes behind the end of one; it ends before the beginning of another.
    let mut begins: FxHashSet<Option<FunctionKey>> = FxHashSet::default();
    let mut ends: FxHashSet<Option<FunctionKey>> = std::iter::once(None).collect();
    loop {
        let before = (begins.len(), ends.len());
        for (after, next) in steps.iter() {
            if ends.contains(after) {
                begins.insert(*next);
            }
            if begins.contains(next) || next.is_none() {
                ends.insert(*after);
            }
        }
        if before == (begins.len(), ends.len()) {
            break;
        }
    }
    let each = ends
        .iter()
        .flat_map(|after| begins.iter().map(|next| (*after, *next)));
    steps.extend(each);
}

/// By function; without one, at the root of a trace.
type Steps = FxHashMap<Option<FunctionKey>, FxHashSet<Step>>;

/// What functions that wait do in normal runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usual {
    timing: Timing,
    /// Threads that share work, as far as they do the same in all.
    pub(crate) teams: Teams,
    steps: Steps,
    /// Those of functions that wait through others, and of roots of threads that run tasks, by the root of the trace.
    own: FxHashMap<NodeId, Steps>,
    /// Different calls that they make, by function.
    frames: FxHashMap<FunctionKey, Vec<NodeId>>,
}

/// What is no difference, though the normal trace does not show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted<'a> {
    /// What functions that wait do in other calls, traces and normal runs.
    pub(crate) usual: &'a Usual,
    /// The normal traces that may stand for one another: those of one name, or of one team.
    pub(crate) own: &'a [NodeId],
    /// Whether it is timing where the trace ends.
    pub(crate) is_broken_off: bool,
}

/// Where a call does what no call of its function does.
#[derive(Debug, Clone)]
pub(super) struct Unusual {
    /// Its events before that, its own call included.
    pub(super) event: u64,
    /// What it called before.
    pub(super) after: Option<FunctionKey>,
    pub(super) faulty: Next,
    /// If it is within a call of it: a normal one, and that.
    pub(super) within: Option<(NodeId, NodeId)>,
    /// The loops around it, and the iteration from 1.
    pub(super) loops: Vec<(BodyId, u64)>,
}

impl Usual {
    /// From the normal traces with these roots. O(nodes); where functions wait through others, O(nodes below each different root).
    pub(crate) fn of(forest: &Forest, roots: &[NodeId], teams: Teams) -> Self {
        let mut usual = Self {
            timing: Timing::of(forest, roots),
            teams,
            ..Self::default()
        };
        if usual.timing.waits.is_empty() && usual.teams.is_empty() {
            return usual;
        }
        for root in roots {
            usual.own.entry(*root).or_default();
        }
        let each: Vec<NodeId> = usual.own.keys().copied().collect();
        below(forest, roots.to_vec(), &mut |id| usual.learn(forest, id));
        for (function, steps) in &mut usual.steps {
            let takes = function.is_some_and(|it| usual.teams.takes_work(it));
            if takes
                && !steps
                    .iter()
                    .any(|(_, next)| usual.timing.is_question(*next))
            {
                in_any_order(steps);
            }
        }
        for root in each {
            let mut own = Steps::default();
            if usual.waits_at(forest, root) {
                own.insert(None, usual.known(forest, root));
            }
            if !usual.timing.through.is_empty() {
                below(forest, vec![root], &mut |id| {
                    let through =
                        function(forest, id).filter(|it| usual.timing.through.contains(it));
                    if through.is_some() {
                        let known = usual.known(forest, id);
                        own.entry(through).or_default().extend(known);
                    }
                });
            }
            usual.own.insert(root, own);
        }
        usual
    }

    /// Whether a function's way is a matter of timing.
    pub(super) fn waits(&self, function: FunctionKey) -> bool {
        self.timing.waits.contains(&function) || self.teams.takes_work(function)
    }

    /// Whether it is so whatever it does.
    pub(super) fn is_free(&self, function: FunctionKey) -> bool {
        self.timing.is_free(function)
    }

    /// Whether that of a call, or of the root of a trace, is.
    pub(super) fn waits_at(&self, forest: &Forest, frame: NodeId) -> bool {
        match function(forest, frame) {
            Some(it) => self.waits(it),
            None => self.timing.is_team(forest, frame) || self.teams.has(frame),
        }
    }

    /// Different calls of a function that functions that wait make.
    pub(super) fn frames(&self, function: FunctionKey) -> &[NodeId] {
        self.frames.get(&function).map_or(&[], Vec::as_slice)
    }

    /// What calls of a frame's function do behind a call: the step that is first in the order of functions; `None` where that says
    /// nothing.
    pub(super) fn next(
        &self,
        forest: &Forest,
        frame: NodeId,
        after: Option<FunctionKey>,
    ) -> Option<Next> {
        let steps = self.steps.get(&function(forest, frame))?;
        let behind = steps.iter().filter(|(before, _)| *before == after);
        let next = behind.map(|(_, next)| *next).min()?;
        Some(match next {
            Some(function) => Next::Call {
                function,
                open: false,
            },
            None => Next::Return,
        })
    }

    /// The steps of a frame, and those that it has without calls that are there by timing alone.
    fn known(&self, forest: &Forest, frame: NodeId) -> FxHashSet<Step> {
        let mut without = Without::new(&self.timing, function(forest, frame));
        let is_open = matches!(forest.node(frame).label, Label::Call(call) if call.open);
        let found = steps_and_end(forest, frame, !is_open);
        let passed_over: Vec<Step> = (found.iter())
            .flat_map(|(after, next)| without.before(*after).map(|it| (it, *next)))
            .collect();
        let mut known: FxHashSet<Step> = found.into_iter().chain(passed_over).collect();
        // Behind a piece of work comes the same as behind any other, and behind the answer that there is none.
        let takes: FxHashSet<_> = (known.iter().flat_map(|(after, next)| [*after, *next]))
            .filter(|it| self.timing.takes_work(*it))
            .collect();
        let behind: Vec<_> = (known.iter())
            .filter(|(after, _)| takes.contains(after))
            .map(|(_, next)| *next)
            .collect();
        for next in behind {
            known.extend(takes.iter().map(|it| (*it, next)));
        }
        known
    }

    fn learn(&mut self, forest: &Forest, frame: NodeId) {
        if !self.waits_at(forest, frame) {
            return;
        }
        if let Some(own) = function(forest, frame) {
            let known = self.known(forest, frame);
            self.steps.entry(Some(own)).or_default().extend(known);
        }
        let mut calls: Vec<NodeId> = Vec::new();
        walk(forest, frame, &mut |at: At| {
            calls.extend(at.call);
            true
        });
        for call in calls {
            let Some(callee) = function(forest, call) else {
                continue;
            };
            let frames = self.frames.entry(callee).or_default();
            let is_known = |other: &NodeId| forest.same_shape(*other, call);
            if frames.len() < FRAMES && !frames.iter().any(is_known) {
                frames.push(call);
            }
        }
    }

    /// Whether a call of a function that waits goes as others do. `explain` is asked for each call that it makes: a normal one,
    /// and where that one fails to explain it. `own` are the roots of the normal traces of its name.
    pub(super) fn explains(
        &self,
        forest: &Forest,
        frame: NodeId,
        own: &[NodeId],
        explain: &mut dyn FnMut(NodeId) -> Option<(NodeId, u64, Next)>,
    ) -> Result<(), Unusual> {
        let usual: Vec<&FxHashSet<Step>> = match function(forest, frame) {
            Some(it) if !self.timing.through.contains(&it) => {
                self.steps.get(&Some(it)).into_iter().collect()
            }
            it => {
                let of_name = own.iter().filter_map(|root| self.own.get(root));
                of_name.filter_map(|steps| steps.get(&it)).collect()
            }
        };
        let is_root = function(forest, frame).is_none();
        let mut without = Without::new(&self.timing, function(forest, frame));
        let mut result = Ok(());
        walk(forest, frame, &mut |at: At| {
            let unusual = |event, faulty, within| Unusual {
                event,
                after: at.after,
                faulty,
                within,
                loops: at.loops.to_vec(),
            };
            let is_known = |after| usual.iter().any(|it| it.contains(&(after, at.next)));
            let before = without.before(at.after);
            let passes = without.passes(at.next) || before.into_iter().any(is_known);
            let is_usual = passes || is_known(at.after);
            // Where a call that is open ends is no step.
            let ends = at.call.is_none() && !is_root && last(forest, frame) == Next::End;
            if ends || !is_usual {
                let faulty = at
                    .call
                    .map_or_else(|| last(forest, frame), |it| first(forest, it));
                result = Err(unusual(at.event, faulty, None));
                return false;
            }
            if let Some(call) = at.call
                && let Some((normal, event, faulty)) = explain(call)
            {
                result = Err(unusual(at.event + event, faulty, Some((normal, call))));
                return false;
            }
            true
        });
        result
    }
}

/// The steps of a function as they are without calls that are there by timing alone.
struct Without<'a> {
    timing: &'a Timing,
    function: Option<FunctionKey>,
    /// The last call that is no such one, and the first of all.
    last: Option<FunctionKey>,
    first: Option<FunctionKey>,
}

impl<'a> Without<'a> {
    fn new(timing: &'a Timing, function: Option<FunctionKey>) -> Self {
        Self {
            timing,
            function,
            last: None,
            first: None,
        }
    }

    fn passes(&self, call: Option<FunctionKey>) -> bool {
        call.is_some_and(|it| self.timing.passes(self.function, it))
    }

    /// Behind which calls a step may be taken to be, in place of the one before it. To be asked for each step in order.
    fn before(&mut self, after: Option<FunctionKey>) -> [Option<FunctionKey>; 2] {
        if self.passes(after) {
            return [self.last, self.first];
        }
        self.last = after;
        self.first = self.first.or(after);
        [after; 2]
    }
}

#[cfg(test)]
#[path = "usual_tests.rs"]
mod tests;
