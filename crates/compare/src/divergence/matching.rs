//! How far a faulty tree can be explained by a normal one.

use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use std::collections::VecDeque;

/// Whether loops must run as often as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Once or more will do.
    Free,
    /// They must.
    Exact,
}

/// What comes next in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Call {
        function: FunctionKey,
        open: bool,
    },
    Return,
    /// Nothing: the trace ends here.
    End,
}

/// The first event that is not explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub normal: Next,
    pub faulty: Next,
    pub normal_event: u64,
    pub faulty_event: u64,
    /// The calls around it.
    pub stack: Vec<FunctionKey>,
    /// The loops of the normal tree around it, and the iteration from 1.
    pub loops: Vec<(BodyId, u64)>,
}

/// Steps that all later explanations together may take after the first one has failed. Explanations
/// differ only in when loops are left, and nearly all of them fail at once.
const BUDGET: usize = 2_000_000;
/// Open alternatives that are kept; of more, the latest.
const ALTERNATIVES: usize = 4096;

/// The furthest event of `faulty` up to which it is explained by `normal`; `None` if it all is.
pub(super) fn first_mismatch(
    forest: &Forest,
    normal: NodeId,
    faulty: NodeId,
    counts: Counts,
) -> Option<Mismatch> {
    if normal == faulty || (counts == Counts::Free && forest.same_shape(normal, faulty)) {
        return None;
    }
    let start = State {
        normal: Cursor::new(forest, normal),
        faulty: Cursor::new(forest, faulty),
    };
    let mut matcher = Matcher {
        forest,
        counts,
        alternatives: VecDeque::from([start]),
    };
    let mut furthest: Option<Mismatch> = None;
    let mut steps = 0;
    while let Some(state) = matcher.alternatives.pop_back() {
        let (mismatch, taken) = matcher.explain(state);
        let mismatch = mismatch?;
        if furthest
            .as_ref()
            .is_none_or(|found| found.faulty_event < mismatch.faulty_event)
        {
            furthest = Some(mismatch);
        } else {
            steps += taken;
        }
        if steps > BUDGET {
            break;
        }
    }
    furthest
}

/// A list of elements that a cursor goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The children of a call or of a trace.
    Frame,
    /// A loop, between two iterations.
    Loop(BodyId),
    /// An iteration of several elements.
    Iteration,
    /// An iteration that is one element.
    Single,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    node: NodeId,
    /// Next item; of a loop, the run of equal iterations.
    item: usize,
    /// Of a loop, iterations of that run that are over.
    time: u64,
    /// Of a loop, iterations that are over; of the normal tree those that the faulty trace made of it.
    over: u64,
    /// Of a loop of the faulty tree: where the normal one stood after an earlier iteration of this run.
    seen: Option<Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    item: usize,
    time: u64,
    /// Depth and node of the normal tree's loop.
    depth: usize,
    node: NodeId,
    over: u64,
}

/// A position in a tree: places from the trace inwards.
#[derive(Debug, Clone)]
struct Cursor {
    places: Vec<Place>,
}

#[derive(Debug, Clone)]
struct State {
    normal: Cursor,
    faulty: Cursor,
}

/// What a cursor stands before.
#[derive(Debug, Clone, Copy)]
enum At {
    Element(NodeId),
    /// Between two iterations, before the first, or after the last.
    Boundary(BodyId),
    /// At the end of a frame.
    End(Next),
}

impl Place {
    fn new(kind: Kind, node: NodeId) -> Self {
        Self {
            kind,
            node,
            item: 0,
            time: 0,
            over: 0,
            seen: None,
        }
    }

    /// Iterations of a loop that are still to come.
    fn left(&self, forest: &Forest) -> u64 {
        let runs = &forest.node(self.node).items[self.item..];
        runs.iter().map(|run| run.times).sum::<u64>() - self.time
    }

    /// Passes iterations of a loop, as far as there are any.
    fn pass(&mut self, forest: &Forest, mut iterations: u64) {
        self.over += iterations;
        while let Some(run) = forest.node(self.node).items.get(self.item) {
            let left = run.times - self.time;
            if iterations < left {
                self.time += iterations;
                return;
            }
            iterations -= left;
            self.item += 1;
            self.time = 0;
        }
    }
}

impl Cursor {
    fn new(forest: &Forest, root: NodeId) -> Self {
        let mut cursor = Self { places: Vec::new() };
        cursor.enter(forest, root);
        cursor
    }

    /// Goes into a call, a loop or a trace.
    fn enter(&mut self, forest: &Forest, node: NodeId) {
        let kind = match forest.node(node).label {
            Label::Loop(body) => Kind::Loop(body),
            Label::Iteration => Kind::Iteration,
            Label::Trace | Label::Call(_) | Label::Return => Kind::Frame,
        };
        self.places.push(Place::new(kind, node));
    }

    /// Goes into an iteration.
    fn iterate(&mut self, forest: &Forest, node: NodeId) {
        let kind = match forest.node(node).label {
            Label::Iteration => Kind::Iteration,
            _ => Kind::Single,
        };
        self.places.push(Place::new(kind, node));
    }

    /// The next iteration of the loop on top; after the last, one like the last.
    fn iteration(&self, forest: &Forest) -> Option<NodeId> {
        let place = self.places.last()?;
        let items = forest.node(place.node).items;
        let item = items.get(place.item).or(items.last())?;
        Some(item.node)
    }

    /// Passes the element before which the cursor stands.
    fn pass(&mut self) {
        if let Some(place) = self.places.last_mut() {
            place.item += 1;
        }
    }

    /// Leaves the list on top and passes it in the one around it.
    fn leave(&mut self) {
        self.places.pop();
        self.pass();
    }

    /// What comes, once finished iterations are left.
    fn at(&mut self, forest: &Forest) -> At {
        loop {
            let Some(place) = self.places.last() else {
                return At::End(Next::End);
            };
            let node = forest.node(place.node);
            match place.kind {
                Kind::Loop(body) => return At::Boundary(body),
                Kind::Single if place.item == 0 => return At::Element(place.node),
                Kind::Frame | Kind::Iteration if place.item < node.items.len() => {
                    return At::Element(node.items[place.item].node);
                }
                Kind::Frame => {
                    return At::End(match node.label {
                        Label::Call(call) if !call.open => Next::Return,
                        _ => Next::End,
                    });
                }
                Kind::Single | Kind::Iteration => {
                    self.places.pop();
                    if let Some(looped) = self.places.last_mut() {
                        looped.pass(forest, 1);
                    }
                }
            }
        }
    }

    /// The event before which the cursor stands.
    fn event(&self, forest: &Forest) -> u64 {
        self.places.iter().fold(0, |sum, place| {
            let node = forest.node(place.node);
            let before = match place.item {
                0 => 0,
                _ if place.kind == Kind::Single => node.events,
                item => node.ends[item - 1],
            };
            let own = match (place.kind, node.label) {
                (Kind::Frame, Label::Call(_)) => 1,
                _ => 0,
            };
            let run = match node.items.get(place.item) {
                Some(run) if place.time > 0 => forest.node(run.node).events * place.time,
                _ => 0,
            };
            sum + before + own + run
        })
    }

    fn stack(&self, forest: &Forest) -> Vec<FunctionKey> {
        let frames = self.places.iter().filter(|place| place.kind == Kind::Frame);
        frames
            .filter_map(|place| match forest.node(place.node).label {
                Label::Call(call) => Some(call.function),
                _ => None,
            })
            .collect()
    }

    fn loops(&self) -> Vec<(BodyId, u64)> {
        let loops = self.places.iter();
        loops
            .filter_map(|place| match place.kind {
                Kind::Loop(body) => Some((body, place.over + 1)),
                _ => None,
            })
            .collect()
    }
}

/// The first event of an element.
fn first(forest: &Forest, mut node: NodeId) -> Next {
    loop {
        let found = forest.node(node);
        match found.label {
            Label::Call(call) => {
                return Next::Call {
                    function: call.function,
                    open: call.open,
                };
            }
            Label::Return => return Next::Return,
            Label::Trace | Label::Loop(_) | Label::Iteration => match found.items.first() {
                Some(item) => node = item.node,
                None => return Next::End,
            },
        }
    }
}

/// Whether two events are the same as far as they go.
fn alike(a: Next, b: Next) -> bool {
    match (a, b) {
        (Next::Call { function: a, .. }, Next::Call { function: b, .. }) => a == b,
        _ => a == b,
    }
}

struct Matcher<'f> {
    forest: &'f Forest,
    counts: Counts,
    /// Other explanations, the most promising last.
    alternatives: VecDeque<State>,
}

impl Matcher<'_> {
    /// Follows one explanation: its first mismatch, if any, and how many steps it took.
    fn explain(&mut self, mut state: State) -> (Option<Mismatch>, usize) {
        let mut steps = 0;
        loop {
            steps += 1;
            let a = state.normal.at(self.forest);
            let b = state.faulty.at(self.forest);
            let mismatch = match (a, b) {
                (a, At::Boundary(body)) => {
                    self.faulty_boundary(&mut state, a, body);
                    continue;
                }
                (At::Boundary(body), b) => {
                    self.normal_boundary(&mut state, body, b);
                    continue;
                }
                (At::Element(a), At::Element(b)) => {
                    if self.elements(&mut state, a, b) {
                        continue;
                    }
                    (first(self.forest, a), first(self.forest, b))
                }
                (At::End(Next::Return), At::End(Next::Return)) => {
                    state.normal.leave();
                    state.faulty.leave();
                    continue;
                }
                (At::End(Next::End), At::End(Next::End)) => return (None, steps),
                (At::End(a), At::End(b)) => (a, b),
                (At::Element(a), At::End(b)) => (first(self.forest, a), b),
                (At::End(a), At::Element(b)) => (a, first(self.forest, b)),
            };
            let mismatch = Mismatch {
                normal: mismatch.0,
                faulty: mismatch.1,
                normal_event: state.normal.event(self.forest),
                faulty_event: state.faulty.event(self.forest),
                stack: state.faulty.stack(self.forest),
                loops: state.normal.loops(),
            };
            return (Some(mismatch), steps);
        }
    }

    /// Matches two elements, or goes into them; false if they are different calls.
    fn elements(&self, state: &mut State, a: NodeId, b: NodeId) -> bool {
        let forest = self.forest;
        let (normal, faulty) = (&mut state.normal, &mut state.faulty);
        if a == b {
            normal.pass();
            faulty.pass();
            return true;
        }
        if self.counts == Counts::Free && forest.same_shape(a, b) {
            let (of, trips) = (forest.trip_count(a), forest.trip_count(b));
            if matches!(forest.node(a).label, Label::Loop(_)) && of != trips {
                // The rest of the faulty trace may go on as another iteration begins.
                normal.enter(forest, a);
                if let Some(looped) = normal.places.last_mut() {
                    looped.pass(forest, trips);
                }
            } else {
                normal.pass();
            }
            faulty.pass();
            return true;
        }
        match (forest.node(a).label, forest.node(b).label) {
            (Label::Call(x), Label::Call(y)) if x.function == y.function => {
                normal.enter(forest, a);
                faulty.enter(forest, b);
            }
            (Label::Return, Label::Return) => {
                normal.pass();
                faulty.pass();
            }
            (Label::Loop(_), Label::Loop(_)) => {
                normal.enter(forest, a);
                faulty.enter(forest, b);
            }
            (Label::Loop(_), _) => normal.enter(forest, a),
            (_, Label::Loop(_)) => faulty.enter(forest, b),
            _ => return false,
        }
        true
    }

    /// The faulty trace is between two iterations of a loop.
    fn faulty_boundary(&mut self, state: &mut State, a: At, body: BodyId) {
        let forest = self.forest;
        let depth = state.normal.places.len();
        let (Some(faulty), Some(normal)) = (
            state.faulty.places.last_mut(),
            state.normal.places.last_mut(),
        ) else {
            return;
        };
        let left = faulty.left(forest);
        if left == 0 {
            state.faulty.leave();
            return;
        }
        if let At::Boundary(other) = a {
            match self.counts {
                Counts::Free if other == body => {
                    normal.pass(forest, left);
                    faulty.pass(forest, left);
                    return;
                }
                Counts::Exact => {
                    let (x, y) = (
                        forest.node(normal.node).items.get(normal.item),
                        forest.node(faulty.node).items[faulty.item],
                    );
                    if let Some(x) = x.filter(|x| x.node == y.node) {
                        let both = (x.times - normal.time).min(y.times - faulty.time);
                        normal.pass(forest, both);
                        faulty.pass(forest, both);
                        return;
                    }
                }
                Counts::Free => {
                    let here = Seen {
                        item: faulty.item,
                        time: faulty.time,
                        depth,
                        node: normal.node,
                        over: normal.over,
                    };
                    // Some iterations ago in this run of equal ones the normal tree stood between two
                    // iterations of the same loop: so it will after the rest of the run.
                    if let Some(seen) = faulty.seen
                        && (seen.item, seen.depth, seen.node) == (here.item, here.depth, here.node)
                        && here.over > seen.over
                    {
                        let run = forest.node(faulty.node).items[faulty.item];
                        let period = here.time - seen.time;
                        let more = (run.times - here.time) / period;
                        faulty.seen = None;
                        if more > 0 {
                            faulty.pass(forest, more * period);
                            normal.pass(forest, more * (here.over - seen.over));
                            return;
                        }
                    } else {
                        faulty.seen = Some(here);
                    }
                }
            }
        }
        if self.counts == Counts::Free && self.went_through_once(state, a) {
            return;
        }
        if let Some(iteration) = state.faulty.iteration(forest) {
            state.faulty.iterate(forest, iteration);
        }
    }

    /// What the normal trace did once is no loop there, and may be one of the faulty trace: leaves it
    /// after its first iteration, if that is how the normal trace goes on.
    fn went_through_once(&mut self, state: &mut State, a: At) -> bool {
        let forest = self.forest;
        let next = match a {
            At::Element(element) => first(forest, element),
            At::End(next) => next,
            At::Boundary(_) => return false,
        };
        let begun = state
            .faulty
            .places
            .last()
            .is_some_and(|looped| looped.over > 0);
        if !begun || !self.may_follow(&state.faulty, next) {
            return false;
        }
        let iteration = state.faulty.iteration(forest);
        if iteration.is_some_and(|node| alike(first(forest, node), next)) {
            // Both may be meant: try what is literally there first.
            let mut other = state.clone();
            other.faulty.leave();
            self.keep(other);
            return false;
        }
        state.faulty.leave();
        true
    }

    /// Keeps another explanation for later.
    fn keep(&mut self, other: State) {
        self.alternatives.push_back(other);
        if self.alternatives.len() > ALTERNATIVES {
            self.alternatives.pop_front();
        }
    }

    /// The normal tree is between two iterations of a loop, and the faulty trace is not.
    fn normal_boundary(&mut self, state: &mut State, body: BodyId, b: At) {
        let forest = self.forest;
        let Some(place) = state.normal.places.last().copied() else {
            return;
        };
        if let (At::Element(element), Counts::Free) = (b, self.counts)
            && forest.node(element).label == Label::Loop(body)
        {
            if let Some(looped) = state.normal.places.last_mut() {
                looped.pass(forest, forest.trip_count(element));
            }
            state.faulty.pass();
            return;
        }
        if let (At::Element(element), Counts::Exact) = (b, self.counts)
            && let Label::Loop(_) = forest.node(element).label
        {
            state.faulty.enter(forest, element);
            return;
        }
        let left = place.left(forest);
        let go_on = match self.counts {
            Counts::Exact => left > 0,
            Counts::Free if place.over == 0 => true,
            Counts::Free => {
                let next = match b {
                    At::Element(element) => first(forest, element),
                    At::End(next) => next,
                    At::Boundary(_) => Next::End,
                };
                let iteration = state.normal.iteration(forest);
                let again = iteration.is_some_and(|node| alike(first(forest, node), next));
                let leave = self.may_follow(&state.normal, next);
                if again && leave {
                    // Both may be meant: try what the normal run did first.
                    let mut other = state.clone();
                    self.go(&mut other, left == 0);
                    self.keep(other);
                    left > 0
                } else if again || leave {
                    again
                } else {
                    left > 0
                }
            }
        };
        self.go(state, go_on);
    }

    /// Begins another iteration of the normal tree's loop, or leaves it.
    fn go(&self, state: &mut State, again: bool) {
        match state.normal.iteration(self.forest) {
            Some(iteration) if again => state.normal.iterate(self.forest, iteration),
            _ => state.normal.leave(),
        }
    }

    /// Whether `next` may be what comes after the loop on top.
    fn may_follow(&self, cursor: &Cursor, next: Next) -> bool {
        let mut around = cursor.places.iter().rev().skip(1);
        let Some(place) = around.next() else {
            return false;
        };
        let node = self.forest.node(place.node);
        match (place.kind, node.items.get(place.item + 1)) {
            (Kind::Frame | Kind::Iteration, Some(item)) => {
                alike(first(self.forest, item.node), next)
            }
            (Kind::Frame, None) => matches!(next, Next::Return | Next::End),
            // At the end of an iteration: the loop around decides.
            _ => true,
        }
    }
}
