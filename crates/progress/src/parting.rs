//! Where the members of a communicator went apart: the first collective operation, by its position and by the calls that
//! led to it, that not all of them made alike.
//!
//! ```text
//!  rank 0   … max (newton)   sum (couple)   max (newton)  …  max (newton) [hangs]
//!  rank 1   … max (newton)   max (newton)   max (newton)  …  MPI_Finalize
//!                            ^ here                          ^ here it shows
//! ```
//! Whoever left an operation out, or made one too many, makes the right calls from then on, a place early or late. Where that
//! shows says nothing of where it began. The calls that led to each operation do, however the operations look alike.
//!
//! Members may come to one operation by different calls and be right: a root sends where the others receive. So two ways
//! into an operation are apart only if one of the two members goes the other's way nearby, too. If an operation has them the
//! other way round, the members take turns, as where the root changes.
//!
//! *Guarantees*: nothing is said of a communicator whose operations all complete. *Costs*: the operations of the
//! communicator, of [`MOST_WALKED`] members that have different call trees, O(depth) each; nothing where nobody waits in one.
//! *Not for*: operations of several threads of a task, whose order is not known.

use crate::observe::{Normal, Observed};
use crate::sites::lines_between;
use crate::waits::{Waiting, Why};
use lockstep_calltree::{Forest, FunctionKey, NodeId, StackFrame};
use lockstep_check::{Aspect, Mismatch};
use lockstep_comm::{CommunicatorId, Conversation, Matching, PartId, is_named_so};
use lockstep_diagnosis::{Callers, Disagreement};
use lockstep_trace::{Run, SourceLine, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many members whose call trees differ are walked.
const MOST_WALKED: usize = 64;
/// So many operations of all of them together are walked.
const MOST_STEPS: usize = 1 << 22;
/// So many calls that handed over to the next are open at once.
const MOST_TAILS: u64 = 4;
/// So many operations before and behind one are looked at for the way of another member.
const NEAR: usize = 64;

/// The calls that led to an operation, outermost first, and the line of the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Way {
    calls: Vec<FunctionKey>,
    line: Option<Arc<SourceLine>>,
}

/// A [`Way`], by number.
pub(crate) type WayId = usize;

/// The ways into operations that were met, each once.
#[derive(Default)]
pub(crate) struct Ways {
    numbers: FxHashMap<Way, WayId>,
    all: Vec<Way>,
}

impl Ways {
    fn number(&mut self, way: Way) -> WayId {
        let all = &mut self.all;
        let new = || {
            all.push(way.clone());
            all.len() - 1
        };
        *self.numbers.entry(way.clone()).or_insert_with(new)
    }

    /// Whether the same calls led there, from whichever lines.
    pub fn are_of_the_same_calls(&self, one: WayId, other: WayId) -> bool {
        let calls = |it: WayId| self.all.get(it).map(|it| &it.calls);
        calls(one) == calls(other)
    }
}

/// A run's tasks, as far as the ways into their operations are asked for.
pub(crate) struct Tasks<'a> {
    run: &'a Run,
    forest: &'a Forest,
    roots: BTreeMap<u32, NodeId>,
    pub conversations: &'a BTreeMap<u32, Conversation>,
    /// The first thread of each: only of this one there is a tree.
    traces: BTreeMap<u32, TraceName>,
}

/// The operations of a communicator that a task took part in, by their order.
pub(crate) type Shares = BTreeMap<usize, PartId>;

/// By which ways a task came to operations, by their order.
pub(crate) type Walk = BTreeMap<usize, WayId>;

impl<'a> Tasks<'a> {
    pub fn of(run: &'a Run, observed: &'a Observed) -> Self {
        let roots = observed.tasks.keys().zip(&observed.roots);
        let traces = observed.tasks.values().map(|it| (it.number, it.trace));
        Self {
            run,
            forest: &observed.forest,
            roots: roots.map(|(task, root)| (*task, *root)).collect(),
            conversations: &observed.conversations,
            traces: traces.collect(),
        }
    }

    /// Those of a normal run, whose trees are in the same forest.
    pub fn of_normal(normal: &'a Normal<'a>, forest: &'a Forest) -> Self {
        Self {
            run: normal.run,
            forest,
            roots: normal.roots.clone(),
            conversations: &normal.conversations,
            traces: normal.traces.clone(),
        }
    }

    /// The ways of a task into operations; `None` where another thread of it made one of them.
    pub fn walk(&self, shares: &Shares, task: u32, ways: &mut Ways) -> Option<Walk> {
        let (said, root) = (self.conversations.get(&task)?, *self.roots.get(&task)?);
        let trace = *self.traces.get(&task)?;
        let call = |id: &PartId| {
            let (of, event) = said.called(id.part)?;
            (of == trace).then_some(event)
        };
        let events: Option<Vec<u64>> = shares.values().map(call).collect();
        let events = events?;
        let lines = self.lines(trace, &events)?;
        let each = shares.keys().zip(events);
        each.map(|(order, event)| {
            let way = Way {
                calls: self.calls(root, event)?,
                line: lines.get(&event).cloned(),
            };
            Some((*order, ways.number(way)))
        })
        .collect()
    }

    /// The calls that are open in a call of MPI, itself the last. Whoever handed over to another call by a jump led to it as well;
    /// the events have that jump, and the tree has it only once the call returned.
    fn calls(&self, root: NodeId, event: u64) -> Option<Vec<FunctionKey>> {
        let events = (0..=MOST_TAILS).filter_map(|it| event.checked_sub(it));
        let mut stacks = events.filter_map(|it| Some(self.forest.position(root, it)?.stack));
        let is_it = |stack: &Vec<StackFrame>| {
            let last = stack.last().map(|it| self.forest.function(it.function));
            last.is_some_and(|it| is_named_so(&it.name))
        };
        let stack = stacks.find(is_it)?;
        Some(stack.iter().map(|it| it.function).collect())
    }

    /// The lines of these calls of a thread, of those that have one.
    fn lines(&self, trace: TraceName, events: &[u64]) -> Option<FxHashMap<u64, Arc<SourceLine>>> {
        let thread = self.run.trace(trace)?;
        let wanted: FxHashSet<u64> = events.iter().copied().collect();
        let last = events.iter().max().copied().unwrap_or(0);
        let calls = thread.arguments().take_while(|it| it.index <= last);
        let told = calls.filter(|it| wanted.contains(&it.index));
        Some(told.filter_map(|it| Some((it.index, it.line?))).collect())
    }
}

/// Each member's operations of a communicator up to one of them.
pub(crate) fn shares(
    matching: &Matching,
    communicator: CommunicatorId,
    last: usize,
) -> BTreeMap<u32, Shares> {
    let mut found: BTreeMap<u32, Shares> = BTreeMap::new();
    let all = matching.collectives();
    let of_it = all.filter(|it| it.0 == communicator && it.1 <= last);
    for (_, order, shares) in of_it {
        for id in shares {
            found.entry(id.task).or_default().insert(order, *id);
        }
    }
    found
}

/// The communicators in which something cannot complete, and up to which operation of each members may have gone apart.
fn troubled(found: &[Disagreement], waiting: &Waiting) -> BTreeMap<CommunicatorId, usize> {
    let mut troubled = BTreeMap::new();
    let mismatches = found.iter().map(|it| &it.mismatch);
    for it in mismatches.filter(|it| it.prevents()) {
        troubled.entry(it.communicator).or_insert(it.order);
    }
    let stuck = waiting.waits.iter();
    for wait in stuck.filter(|it| waiting.stuck.contains(&it.from)) {
        if let Why::Collective(_, communicator) = wait.why {
            troubled.entry(communicator).or_insert(usize::MAX);
        }
    }
    troubled
}

/// Tells of each communicator in which something cannot complete where its members went apart, as the first of its disagreements.
pub(crate) fn tell_apart(
    disagreements: &mut Vec<Disagreement>,
    tasks: &Tasks<'_>,
    matching: &Matching,
    waiting: &Waiting,
) {
    let mut ways = Ways::default();
    for (communicator, last) in troubled(disagreements, waiting) {
        if matching.is_unordered(communicator) {
            continue;
        }
        let found = parting(tasks, matching, (communicator, last), &mut ways);
        let Some((order, sides)) = found else {
            continue;
        };
        let way_of = |id: &PartId| Some(sides.iter().find(|it| it.1.contains(id))?.0);
        // Nobody went apart where all came one way.
        if sides.len() < 2 {
            continue;
        }
        let told: Vec<&Way> = sides.iter().filter_map(|it| ways.all.get(it.0)).collect();
        let names = |way: WayId| callers(tasks, ways.all.get(way)?, &told);
        let is_it = |it: &&mut Disagreement| {
            (it.mismatch.communicator, it.mismatch.order) == (communicator, order)
        };
        if let Some(known) = disagreements.iter_mut().find(is_it) {
            let firsts = known.mismatch.sides.iter().map(|it| it.1.first());
            let callers = firsts.map(|it| names(way_of(it?)?));
            known.callers = callers.map(Option::unwrap_or_default).collect();
            known.is_first = true;
            continue;
        }
        let callers = sides.iter().map(|it| names(it.0).unwrap_or_default());
        let said = sides
            .iter()
            .map(|(way, who)| (way.to_string(), who.clone()));
        let mismatch = Mismatch {
            communicator,
            order,
            aspect: Aspect::Way,
            sides: said.collect(),
            open: false,
        };
        disagreements.push(Disagreement {
            callers: callers.collect(),
            is_first: true,
            ..mismatch.into()
        });
    }
    disagreements.sort_by_key(|it| (it.mismatch.communicator, it.mismatch.order));
}

/// An operation by its order, and who came to it by which way: most first.
type Parting = (usize, Vec<(WayId, Vec<PartId>)>);

/// The first operation of a communicator to which its members came by ways that are apart, or the last one; and who came by which:
/// most first.
fn parting(
    tasks: &Tasks<'_>,
    matching: &Matching,
    (communicator, last): (CommunicatorId, usize),
    ways: &mut Ways,
) -> Option<Parting> {
    let shares = shares(matching, communicator, last);
    let mut walked: BTreeMap<u32, Walk> = BTreeMap::new();
    let mut trees: FxHashSet<NodeId> = FxHashSet::default();
    let mut left = MOST_STEPS;
    for (task, own) in &shares {
        // Members with one tree went one way.
        let is_new = tasks.roots.get(task).is_some_and(|it| trees.insert(*it));
        if is_new && walked.len() < MOST_WALKED {
            left = left.checked_sub(own.len())?;
            walked.insert(*task, tasks.walk(own, *task, ways)?);
        }
    }
    // What does not fit by itself is told with the calls that led to it.
    let order = first_apart(&walked).or_else(|| {
        shares
            .values()
            .any(|it| it.contains_key(&last))
            .then_some(last)
    })?;
    let mut sides: BTreeMap<WayId, Vec<PartId>> = BTreeMap::new();
    for (task, own) in &shares {
        let Some(id) = own.get(&order) else { continue };
        let way = match walked.get(task) {
            Some(walk) => *walk.get(&order)?,
            None => {
                let only = Shares::from([(order, *id)]);
                *tasks.walk(&only, *task, ways)?.get(&order)?
            }
        };
        sides.entry(way).or_default().push(*id);
    }
    let mut sides: Vec<(WayId, Vec<PartId>)> = sides.into_iter().collect();
    sides.sort_by_key(|it| Reverse(it.1.len()));
    Some((order, sides))
}

/// The first operation to which two of these came by ways that are apart.
fn first_apart(walked: &BTreeMap<u32, Walk>) -> Option<usize> {
    let orders: BTreeSet<usize> = walked.values().flat_map(|it| it.keys().copied()).collect();
    // What was looked at: roles come to each operation in two ways, again and again.
    let mut known: FxHashSet<(u32, u32, WayId, WayId)> = FxHashSet::default();
    orders.into_iter().find(|order| {
        let mut firsts: Vec<(u32, WayId)> = Vec::new();
        for (task, walk) in walked {
            let Some(way) = walk.get(order) else { continue };
            if firsts.iter().all(|it| it.1 != *way) {
                firsts.push((*task, *way));
            }
        }
        let pairs = firsts.iter().enumerate().flat_map(|(at, one)| {
            let others = firsts[at + 1..].iter();
            others.map(move |other| (*one, *other))
        });
        pairs.into_iter().any(|((a, one), (b, other))| {
            let is_near = || are_apart((&walked[&a], &walked[&b]), (one, other), *order);
            known.insert((a, b, one, other)) && is_near()
        })
    })
}

/// Whether two members that came to an operation by these ways went apart there.
fn are_apart((a, b): (&Walk, &Walk), (one, other): (WayId, WayId), order: usize) -> bool {
    let near = order.saturating_sub(NEAR)..=order.saturating_add(NEAR);
    let goes = |walk: &Walk, way: WayId| walk.range(near.clone()).any(|it| *it.1 == way);
    let meet = |of_a: WayId, of_b: WayId, before: usize| {
        let mut here = a.range(..before);
        here.any(|(at, way)| *way == of_a && b.get(at) == Some(&of_b))
    };
    let take_turns = || meet(other, one, usize::MAX);
    let met_in_both = || meet(one, one, order) && meet(other, other, order);
    (goes(a, other) || goes(b, one)) && (!take_turns() || met_in_both())
}

/// What tells a way from others that led to the same operation.
fn callers(tasks: &Tasks<'_>, way: &Way, all: &[&Way]) -> Option<Callers> {
    let (_, own) = way.calls.split_last()?;
    let is_alike = |at: usize| all.iter().all(|it| it.calls.get(at) == way.calls.get(at));
    let apart = (0..own.len()).find(|at| !is_alike(*at));
    let name = |at: usize| Some(tasks.forest.function(*own.get(at)?).name.clone());
    let within = own.len().checked_sub(1)?;
    let caller = within.checked_sub(1);
    // The function that made the call tells them apart by itself; or the line does.
    let Some((apart, caller)) = apart.filter(|it| *it < within).zip(caller) else {
        return Some(Callers {
            within: name(within)?,
            ..Callers::default()
        });
    };
    Some(Callers {
        within: name(within)?,
        lines: lines_between(tasks.run, &name(caller)?, &name(within)?),
        called_in: name(caller),
        under: name(apart).filter(|_| apart < caller),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where members with these ways, a letter each, went apart.
    fn apart(all: &[&str]) -> Option<usize> {
        let walk = |text: &&str| text.bytes().map(WayId::from).enumerate().collect();
        let walks = all.iter().map(walk);
        first_apart(&(0..).zip(walks).collect())
    }

    #[test]
    fn who_left_one_out_or_made_one_too_many_went_apart_there() {
        assert_eq!(apart(&["mssttmsstt", "mssttmsstt"]), None);
        assert_eq!(apart(&["mssttmsstt", "mssttsstt"]), Some(5));
        assert_eq!(apart(&["mssttmsstt", "mssttsstt", "mssttmsstt"]), Some(5));
        // One too many, and by a way that the others never go.
        assert_eq!(apart(&["nnnpnnnpnn", "nnnnnnnnnn"]), Some(3));
        // A loop was left early.
        assert_eq!(apart(&["llllx", "lllll"]), Some(4));
        // Two that alternate.
        assert_eq!(apart(&["ababab", "abbaba"]), Some(2));
    }

    #[test]
    fn members_may_come_to_an_operation_by_ways_of_their_own() {
        assert_eq!(apart(&["acdacd", "bcdbcd"]), None);
        // The root sends and the others receive; the next one is root.
        assert_eq!(apart(&["srrsrr", "rsrrsr", "rrsrrs"]), None);
        assert_eq!(apart(&["a", "b"]), None);
        assert_eq!(apart(&[]), None);
    }
}
