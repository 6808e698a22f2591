//! Where a task stands, and which of two tasks is behind.
//!
//! A place is read off the open spine of the task's call tree: in each open call, which of its
//! children is open (or was the last), and in which iteration of the loops of that call. The loops
//! are those of the function's control flow as all tasks together showed it: a node for each place
//! from which it calls a function, an edge where one call followed another. Two calls of one function
//! are taken for two places if what was called before differs, and never the same was called after
//! them. Only the program's own functions and calls of MPI and OpenMP count: `strcmp` is called
//! anywhere. What was never left (a task hangs there for the first time) is taken to be part of what
//! usually follows what came before.
//!
//! ```text
//!  main ── solve ── step (iteration 812) ── exchange (iteration 3) ── MPI_Recv
//!  main ── solve ── step (iteration 812) ── MPI_Allreduce             ahead, if exchange leads to it
//! ```
//!
//! *Guarantees*: a task is said to be behind another only if, in the innermost open call that both
//! are in, it is in an earlier iteration of a loop, outer loops first, or in the same and can go on to
//! where the other is while the other cannot come back within that iteration. Where nobody came back from
//! where a task is, that may be in a loop, or after it: then it has to be behind, or ahead, either way.
//! Anything else is incomparable. Counters begin again with each entry of a loop, irreducible ones included.
//!
//! ```text
//!  g a b  g a b  g a z!           z is after the loop, or in an arm of it: ahead of who is in iteration 2 or in a of the
//!  g a b  g a b  g a b  g a!      third; not to be compared with who is in iteration 4
//! ```
//! *Costs*: O(nodes of the forest) once, O(depth x list) a task, O(edges) a comparison.
//! *Not for*: two places that look alike so: they are one place, and may seem a loop.

use crate::counted::counts;
use crate::iteration::{Fold, Witness};
use crate::nesting::{ENTRY, Place as At};
use crate::shown::{Path, Shown};
use crate::walk::{Level, Turn, Walk};
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// Where a task stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Coordinates {
    /// The open calls, outermost first, and before them the thread itself.
    pub(crate) levels: Vec<Level>,
}

/// Where a task stands, and what can be said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where.
    pub at: Coordinates,
    /// Loops around it, outermost first, whose iteration is certain: by the function they are in and the
    /// first that they call, and the iteration, from 1.
    pub iterations: Vec<(String, u64)>,
}

/// A moment of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    /// Its call tree.
    pub root: NodeId,
    /// That of an event, a call that is open then; without one, the end.
    pub event: Option<u64>,
}

impl From<NodeId> for Moment {
    fn from(root: NodeId) -> Self {
        Self { root, event: None }
    }
}

/// Where an open call came to.
struct Descent {
    path: Path,
    /// Whether a call is open there; else it was the last.
    inside: bool,
    fold: Option<Fold>,
}

/// What all tasks together showed of the functions that are open somewhere.
#[derive(Debug)]
pub(crate) struct Program<'f> {
    forest: &'f Forest,
    shown: FxHashMap<Option<FunctionKey>, Shown>,
}

impl<'f> Program<'f> {
    /// From the call trees of the tasks, for these moments.
    pub fn new(forest: &'f Forest, moments: &[Moment]) -> Self {
        let mut program = Self {
            forest,
            shown: FxHashMap::default(),
        };
        // Of many tasks most stand where others do.
        let mut known = FxHashSet::default();
        let distinct = moments.iter().copied();
        let distinct: Vec<Moment> = distinct.filter(|it| known.insert(*it)).collect();
        // Functions that are open: only their flow is asked for.
        for moment in &distinct {
            program.shown.entry(None).or_default();
            for frame in open(forest, *moment) {
                program.shown.entry(Some(frame.function)).or_default();
            }
        }
        program.see();
        program.arrive(&distinct);
        program
    }

    /// The same, for every function: also of calls that are over the place can be asked.
    pub fn of_all(forest: &'f Forest) -> Self {
        let mut program = Self {
            forest,
            shown: FxHashMap::default(),
        };
        program.shown.entry(None).or_default();
        for index in 0..forest.len() as u32 {
            if let Label::Call(call) = forest.node(NodeId(index)).label
                && counts(forest, call.function)
            {
                program.shown.entry(Some(call.function)).or_default();
            }
        }
        program.see();
        program
    }

    /// Takes in the whole forest.
    fn see(&mut self) {
        let forest = self.forest;
        for (function, id) in frames(forest) {
            if let Some(shown) = self.shown.get_mut(&function) {
                shown.see(forest, id);
            }
        }
        for shown in self.shown.values_mut() {
            shown.settle();
        }
        // Who came round the loops is asked once these are known.
        for (function, id) in frames(forest) {
            if let Some(shown) = self.shown.get_mut(&function)
                && !shown.nesting.loops.is_empty()
            {
                shown.come_round(forest, forest.node(id).items, &mut Witness::default());
            }
        }
    }

    /// Takes in where tasks are, and which loops they left on the way.
    fn arrive(&mut self, moments: &[Moment]) {
        let mut arrivals = Vec::new();
        for moment in moments {
            self.descend(*moment, |function, _, it| {
                let Walk { at, left, .. } = it.path.walk;
                arrivals.push((function, at, left));
            });
        }
        for (function, at, left) in arrivals {
            if let Some(shown) = self.shown.get_mut(&function) {
                shown.arrive(at, &left);
            }
        }
    }

    /// At which place of a function a call is that follows a place.
    pub fn after(&self, function: Option<FunctionKey>, at: At, callee: FunctionKey) -> At {
        let shown = self.shown.get(&function);
        shown
            .and_then(|shown| shown.after(at, callee))
            .unwrap_or(ENTRY)
    }

    /// Where a task stands.
    #[cfg(test)]
    pub fn coordinates(&self, moment: Moment) -> Coordinates {
        self.stand(moment).at
    }

    /// Where a task stands, and in which iterations.
    pub fn stand(&self, moment: Moment) -> Standing {
        let (mut levels, mut iterations) = (Vec::new(), Vec::new());
        self.descend(moment, |function, shown, it| {
            for (turn, iteration) in shown.said(&it.path, it.inside, it.fold) {
                iterations.push((self.name(function, shown, &turn), iteration));
            }
            levels.push(Level {
                function,
                at: it.path.walk.at,
                inside: it.inside,
                loops: it.path.walk.loops,
                otherwise: it.path.otherwise.loops,
            });
        });
        let at = Coordinates { levels };
        Standing { at, iterations }
    }

    /// Goes down the open calls of a moment, outermost first.
    fn descend<'p>(
        &'p self,
        moment: Moment,
        mut each: impl FnMut(Option<FunctionKey>, &'p Shown, Descent),
    ) {
        let (mut function, mut id) = (None, moment.root);
        // Events of this call up to the moment, that one counted; `None` is all of them.
        let mut made = moment.event.map(|it| it + 1);
        while let Some(shown) = self.shown.get(&function) {
            let mut path = Path::new();
            let open = match &mut made {
                Some(made) => self.walk_until(shown, id, made, &mut path),
                None => {
                    let items = self.forest.node(id).items;
                    shown.walk(self.forest, items, &mut path);
                    let last = items.last();
                    last.and_then(|item| self.open_call(item.node))
                }
            };
            let items = self.forest.node(id).items;
            // At the end of the trace.
            let fold = made
                .is_none()
                .then(|| Fold::of(self.forest, items))
                .flatten();
            let inside = open.is_some();
            each(function, shown, Descent { path, inside, fold });
            let Some((callee, node)) = open else { break };
            (function, id) = (Some(callee), node);
        }
    }

    /// A loop by its function, and the first that it calls.
    fn name(&self, function: Option<FunctionKey>, shown: &Shown, turn: &Turn) -> String {
        let name = |function: Option<FunctionKey>| match function {
            Some(function) => self.forest.function(function).name.as_str(),
            None => "-",
        };
        format!("{}/{}", name(function), name(shown.function(turn.entered)))
    }

    /// The loops around a place, outermost first, and how often it came to where they begin, which may be
    /// more or less than the iteration ([`Standing::iterations`]): whoever goes on counts further.
    pub fn loops(&self, standing: &Coordinates) -> Vec<(String, u64)> {
        let mut loops = Vec::new();
        for level in &standing.levels {
            let Some(shown) = self.shown.get(&level.function) else {
                break;
            };
            for turn in &level.loops {
                let around = &shown.nesting.loops[turn.index];
                // Of loops that share a header, the outer is one as soon as it began anew.
                if turn.iteration == 1 && !around.inner.is_empty() {
                    continue;
                }
                loops.push((self.name(level.function, shown, turn), turn.iteration));
            }
        }
        loops
    }

    /// Walks over the first events of a call, `made`: gives the call that is open then, and in `made` how many of its
    /// events are, its own not counted.
    fn walk_until(
        &self,
        shown: &Shown,
        mut id: NodeId,
        made: &mut u64,
        path: &mut Path,
    ) -> Option<(FunctionKey, NodeId)> {
        loop {
            let node = self.forest.node(id);
            let index = node.ends.partition_point(|end| end < made);
            let (before, from) = node.items.split_at_checked(index)?;
            shown.walk(self.forest, before, path);
            let item = from.first().filter(|_| *made > 0)?;
            *made -= index.checked_sub(1).map_or(0, |it| node.ends[it]);
            let over = (*made - 1) / self.forest.node(item.node).events;
            *made -= over * self.forest.node(item.node).events;
            let again = Item {
                times: over,
                ..*item
            };
            shown.walk(self.forest, &[again], path);
            match self.forest.node(item.node).label {
                Label::Call(call) if counts(self.forest, call.function) => {
                    shown.walk_one(self.forest, item.node, path);
                    *made -= 1;
                    return Some((call.function, item.node));
                }
                Label::Loop(_) | Label::Iteration => id = item.node,
                Label::Call(_) | Label::Trace | Label::Return => return None,
            }
        }
    }

    fn open_call(&self, id: NodeId) -> Option<(FunctionKey, NodeId)> {
        match self.forest.node(id).label {
            Label::Call(call) if call.open && counts(self.forest, call.function) => {
                Some((call.function, id))
            }
            _ => None,
        }
    }

    /// Which of two tasks is behind (`Less`): `None` where that cannot be said, `Equal` where they
    /// are at the same place.
    pub fn compare(&self, a: &Coordinates, b: &Coordinates) -> Option<Ordering> {
        // In calls that nobody left, by the loops that these may be in.
        let mut by_loops: Option<Ordering> = None;
        for (a, b) in a.levels.iter().zip(&b.levels) {
            if a.function != b.function {
                return None;
            }
            let shown = self.shown.get(&a.function)?;
            let is_unleft = a.inside && b.inside && a.at == b.at && shown.is_unleft(a.at);
            // Where all tasks are there, nothing says that it is in a loop.
            if is_unleft && shown.are_all_at_one() {
                continue;
            }
            let order = shown.compare(a, b)?;
            if order == Ordering::Equal {
                continue;
            }
            if by_loops.is_some_and(|it| it != order) {
                return None;
            }
            if !is_unleft {
                return Some(order);
            }
            by_loops = Some(order);
        }
        // One is in the other's last call, which is over for neither.
        by_loops.is_none().then_some(Ordering::Equal)
    }
}

/// The distinct calls, and traces, by whose frame they are.
fn frames(forest: &Forest) -> impl Iterator<Item = (Option<FunctionKey>, NodeId)> {
    let all = (0..forest.len() as u32).map(NodeId);
    all.filter_map(|id| match forest.node(id).label {
        Label::Call(call) => Some((Some(call.function), id)),
        Label::Trace => Some((None, id)),
        _ => None,
    })
}

/// The open calls of a moment, outermost first.
pub(crate) fn open(forest: &Forest, moment: Moment) -> Vec<StackFrame> {
    let at = |event| forest.position(moment.root, event).map(|it| it.stack);
    match moment.event {
        Some(event) => at(event).unwrap_or_default(),
        None => forest.open(moment.root),
    }
}
