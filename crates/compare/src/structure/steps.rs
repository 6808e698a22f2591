//! The steps of frames: which call follows which, loops a few times each.

use super::list::{List, Next, last, own};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use rustc_hash::FxHashMap;

/// From one call of a function to the next, or from its beginning, or to its end.
pub(crate) type Step = (Option<FunctionKey>, Option<FunctionKey>);

/// The steps of a call or of a trace, a few times each; without its end where it is open. Costs: see [`walk`].
pub(crate) fn steps(forest: &Forest, frame: NodeId) -> Vec<Step> {
    let is_open = last(forest, frame) == Next::End;
    steps_and_end(forest, frame, !is_open)
}

/// The calls that a call or a trace makes, in order, a few times each.
pub(crate) fn calls(forest: &Forest, frame: NodeId) -> Vec<(FunctionKey, NodeId)> {
    let mut found = Vec::new();
    walk(forest, frame, &mut |at: At| {
        found.extend(at.next.zip(at.call));
        true
    });
    found
}

/// The steps of a frame without more of the same, which is a trip count.
pub(crate) fn changes(forest: &Forest, frame: NodeId) -> impl Iterator<Item = Step> {
    let found = steps(forest, frame).into_iter();
    found.filter(|(after, next)| after.is_none() || after != next)
}

pub(super) fn steps_and_end(forest: &Forest, frame: NodeId, has_end: bool) -> Vec<Step> {
    let mut found = Vec::new();
    walk(forest, frame, &mut |at: At| {
        if at.call.is_some() || has_end {
            found.push((at.after, at.next));
        }
        true
    });
    found
}

/// A step in a call.
pub(super) struct At<'a> {
    pub(super) after: Option<FunctionKey>,
    pub(super) next: Option<FunctionKey>,
    /// The call that is made; none at the end.
    pub(super) call: Option<NodeId>,
    /// Events of the frame before it, its own call included.
    pub(super) event: u64,
    pub(super) loops: &'a [(BodyId, u64)],
}

/// An iteration, and what was called before it.
type Round = (NodeId, Option<FunctionKey>);

/// What is open of a list or a loop.
enum Open {
    /// Elements of a list that were seen, and events before it; of an iteration, which.
    List(List, usize, u64, Option<Round>),
    /// A loop.
    Loop(NodeId, Rounds),
}

/// A place in a loop, of whose equal iterations in a row two are gone through.
struct Rounds {
    /// Which run of equal iterations, and whether one of them is over.
    run: usize,
    again: bool,
    /// Events and iterations before the run.
    before: u64,
    over: u64,
}

impl Rounds {
    fn behind(before: u64) -> Self {
        Self {
            run: 0,
            again: false,
            before,
            over: 0,
        }
    }

    /// The next iteration, the events before it, and its number from 1.
    fn next(&mut self, forest: &Forest, looped: NodeId) -> Option<(NodeId, u64, u64)> {
        let item = forest.node(looped).items.get(self.run)?;
        let events = forest.node(item.node).events;
        let (before, over) = match self.again {
            true => (self.before + events, self.over + 1),
            false => (self.before, self.over),
        };
        self.again = !self.again && item.times > 1;
        if !self.again {
            self.before += events * item.times;
            self.over += item.times;
            self.run += 1;
        }
        Some((item.node, before, over + 1))
    }
}

/// Goes through the steps of a frame in order, as long as `see` says so; of equal iterations in a row through two, and through one behind
/// the same call twice in all, which is all that there is to see. A return without a call ends it.
///
/// O(elements of the lists and iterations in the frame, times the different calls that each comes behind), however deep its loops are.
pub(super) fn walk(forest: &Forest, frame: NodeId, see: &mut dyn FnMut(At) -> bool) {
    let mut after = None;
    let mut loops: Vec<(BodyId, u64)> = Vec::new();
    // How often iterations were gone through, and what each one calls last.
    let mut known: FxHashMap<Round, (u8, Option<FunctionKey>)> = FxHashMap::default();
    let mut open = vec![Open::List(List::Of(frame), 0, own(forest, frame), None)];
    while let Some(place) = open.last_mut() {
        match place {
            Open::List(list, index, before, round) => {
                let (list, at, before, round) = (*list, *index, *before, *round);
                *index += 1;
                let Some(element) = list.get(forest, at) else {
                    if let Some(round) = round {
                        let (times, last) = known.entry(round).or_default();
                        (*times, *last) = (*times + 1, after);
                    }
                    open.pop();
                    continue;
                };
                let event = before + list.before(forest, at);
                match forest.node(element).label {
                    Label::Loop(body) => {
                        loops.push((body, 1));
                        open.push(Open::Loop(element, Rounds::behind(event)));
                    }
                    Label::Call(call) => {
                        let next = Some(call.function);
                        let call = Some(element);
                        let loops = &loops;
                        if !see(At {
                            after,
                            next,
                            call,
                            event,
                            loops,
                        }) {
                            return;
                        }
                        after = next;
                    }
                    _ => return,
                }
            }
            Open::Loop(node, rounds) => {
                let Some((iteration, start, number)) = rounds.next(forest, *node) else {
                    open.pop();
                    loops.pop();
                    continue;
                };
                if let Some(innermost) = loops.last_mut() {
                    innermost.1 = number;
                }
                let round = (iteration, after);
                match known.get(&round) {
                    Some((2, last)) => after = *last,
                    _ => {
                        let list = List::of_iteration(forest, iteration);
                        open.push(Open::List(list, 0, start, Some(round)));
                    }
                }
            }
        }
    }
    let event = own(forest, frame) + forest.node(frame).ends.last().copied().unwrap_or(0);
    see(At {
        after,
        next: None,
        call: None,
        event,
        loops: &[],
    });
}
