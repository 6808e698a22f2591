//! From events to a tree, one event at a time.

use crate::children::{Children, Known, Scratch, Small, Spare};
use crate::forest::{Forest, FunctionMap};
use crate::function::FunctionKey;
use crate::node::{Call, Item, Label, NodeId};
use crate::pieces::{Pieces, finish};
use lockstep_trace::{Event, Events};

/// Calls between two looks at how large the tree is.
const LOOK: u32 = 1 << 12;
/// Rounds of events until a tree has become steady, if it does.
const MOST_LAPS: u32 = 16;

/// Some events that were added.
struct Lap {
    /// The fewest frames in them.
    fewest: usize,
    calls: u64,
}

/// Builds the tree of one trace. Memory: the open calls and their folded child lists.
///
/// A tree that has become as large as it may ([`Forest::bounded`]) is full: of the calls that begin from then on, those that
/// return are left out, and counted. The calls that were open then, and those that never return, are in it as ever.
#[derive(Debug)]
pub struct Builder<'f> {
    forest: &'f mut Forest,
    state: State,
}

/// How far a tree has got.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// How many nodes and items the tree may have, those of the forest before it among them.
    most: usize,
    /// Calls until the next look at that.
    until_look: u32,
    is_full: bool,
    /// Events that are no part of the tree.
    left_out: u64,
    /// Outermost first; the first is the trace itself.
    frames: Vec<Frame>,
    spare: Spare,
    items: Vec<Item>,
    known: Known,
}

impl Default for State {
    /// An empty trace, and all the room that there is.
    fn default() -> Self {
        let root = Frame {
            call: None,
            handed_over: false,
            is_late: false,
            children: Children::EMPTY,
        };
        Self {
            most: usize::MAX,
            until_look: LOOK,
            is_full: false,
            left_out: 0,
            frames: vec![root],
            spare: Vec::new(),
            items: Vec::new(),
            known: Known::default(),
        }
    }
}

#[derive(Debug, Clone)]
struct Frame {
    call: Option<Call>,
    /// Whether it will end with the call that comes next.
    handed_over: bool,
    /// Whether the tree was full before.
    is_late: bool,
    children: Children,
}

impl<'f> Builder<'f> {
    /// An empty trace.
    pub fn new(forest: &'f mut Forest) -> Self {
        let state = State {
            most: forest.nodes.size().saturating_add(forest.room()),
            ..State::default()
        };
        Self { forest, state }
    }

    /// A trace that has got so far in this forest.
    pub(crate) fn of(forest: &'f mut Forest, state: State) -> Self {
        Self { forest, state }
    }

    /// How far it has got.
    pub(crate) fn pause(self) -> State {
        self.state
    }

    /// Events that are no part of the tree, since it was full.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.state.left_out
    }

    /// Whether it is.
    #[cfg(test)]
    pub(crate) fn is_full(&self) -> bool {
        self.state.is_full
    }

    #[cold]
    fn look(&mut self) {
        self.state.until_look = LOOK;
        self.state.is_full = self.size() > self.state.most;
    }

    /// How many nodes and items the forest has, and the lists that are under way.
    pub(crate) fn size(&self) -> usize {
        let open: usize = self.state.frames.iter().map(|it| it.children.len()).sum();
        self.forest.nodes.size() + open
    }

    /// Adds an event of a run.
    pub fn event(&mut self, event: Event, functions: &FunctionMap) {
        match event {
            Event::Call(function) => self.call(functions.key(function)),
            Event::Return => self.ret(),
            Event::Tail => self.tail(),
        }
    }

    /// Adds events, as far as they go, or until something is left out, if `gives_up` says so.
    pub(crate) fn events(
        &mut self,
        events: &mut Events<'_>,
        functions: &FunctionMap,
        gives_up: bool,
    ) {
        let mut until_look = LOOK;
        while let Some(event) = events.next() {
            self.event(event, functions);
            if gives_up && self.left_out() > 0 {
                return;
            }
            until_look -= 1;
            if until_look == 0 {
                self.rounds(events, functions);
                until_look = LOOK;
            }
        }
    }

    /// Where events go round, takes in as many rounds as it needs to see what becomes of all others.
    fn rounds(&mut self, events: &mut Events<'_>, functions: &FunctionMap) {
        let Some(round) = events.round() else { return };
        if self.state.is_full || self.size() > self.state.most {
            return;
        }
        let before = self.state.frames.len();
        let lap = self.lap(events, functions, round.symbols);
        if self.state.frames.len() != before {
            return;
        }
        // Where fewest calls are open, a round is some calls that return.
        while self.state.frames.len() > lap.fewest {
            let Some(event) = events.next() else { return };
            self.event(event, functions);
        }
        let Some((frame, mut scratch)) = self.innermost() else {
            return;
        };
        let mut repeat = frame.children.fold(&mut scratch).start();
        for tries in (0..MOST_LAPS).rev() {
            let lap = self.lap(events, functions, round.symbols);
            let next = events.round().filter(|it| it.symbols == round.symbols);
            let is_over = tries == 0 || self.state.is_full || self.state.frames.len() != lap.fewest;
            let left = next.filter(|_| !is_over).map_or(0, |it| it.times);
            let (frames, mut scratch) = self.frames();
            let Some(frame) = frames.get_mut(lap.fewest - 1) else {
                return;
            };
            let list = frame.children.fold(&mut scratch);
            let mut pieces = Pieces {
                nodes: &mut scratch.forest.nodes,
                items: scratch.items,
            };
            if list.repeat(&mut repeat, left, &mut pieces) > 0 {
                continue;
            }
            if let Some(round) = next.filter(|_| left > 0) {
                events.pass(round);
                let looks = u64::from(LOOK);
                let passed = (lap.calls % looks * (left % looks) % looks) as u32;
                let until = self.state.until_look + LOOK - passed;
                self.state.until_look = (until - 1) % LOOK + 1;
            }
            return;
        }
    }

    /// Adds the events of so many symbols.
    fn lap(&mut self, events: &mut Events<'_>, functions: &FunctionMap, symbols: u64) -> Lap {
        let end = events.symbols() + symbols;
        let was_leaf = events.was_leaf();
        let mut lap = Lap {
            fewest: self.state.frames.len(),
            calls: 0,
        };
        while (events.symbols() < end || events.was_leaf() != was_leaf)
            && let Some(event) = events.next()
        {
            lap.calls += u64::from(matches!(event, Event::Call(_)));
            self.event(event, functions);
            lap.fewest = lap.fewest.min(self.state.frames.len());
        }
        lap
    }

    /// Adds a call.
    pub fn call(&mut self, function: FunctionKey) {
        if !self.state.is_full {
            self.state.until_look -= 1;
            if self.state.until_look == 0 {
                self.look();
            }
        }
        let tail = self
            .state
            .frames
            .last()
            .is_some_and(|frame| frame.handed_over);
        self.state.frames.push(Frame {
            call: Some(Call {
                function,
                open: false,
                tail,
            }),
            handed_over: false,
            is_late: self.state.is_full,
            children: Children::EMPTY,
        });
    }

    /// Adds a return: of the innermost open call, and of those that had handed over to it.
    pub fn ret(&mut self) {
        if self.state.frames.len() == 1 {
            if self.state.is_full {
                self.state.left_out += 1;
                return;
            }
            let node = self.forest.close(Label::Return, &[], &[]);
            self.push(node);
            return;
        }
        loop {
            self.pop(false);
            match self.state.frames.last() {
                Some(frame) if frame.handed_over => {}
                _ => return,
            }
        }
    }

    /// The innermost open call hands over to the next.
    pub fn tail(&mut self) {
        if let [_, .., top] = self.state.frames.as_mut_slice() {
            top.handed_over = true;
        }
    }

    /// The tree; calls that have not returned are open.
    #[must_use]
    pub fn finish(mut self) -> NodeId {
        while self.state.frames.len() > 1 {
            self.pop(true);
        }
        match self.state.frames.pop() {
            Some(frame) => self.close(Label::Trace, frame.children),
            None => self.forest.close(Label::Trace, &[], &[]),
        }
    }

    /// Closes the innermost call, and adds it to the one around it.
    fn pop(&mut self, open: bool) {
        let Some(frame) = self.state.frames.pop() else {
            return;
        };
        let Some(call) = frame.call else { return };
        if frame.is_late && !open {
            self.state.left_out += 2;
            frame.children.give_back(&mut self.state.spare);
            return;
        }
        let small = Small::new(call, &frame.children).filter(|_| !open);
        let known = small.as_ref().and_then(|it| self.state.known.get(it));
        let node = known.unwrap_or_else(|| {
            let node = self.close(Label::Call(Call { open, ..call }), frame.children);
            if let Some(small) = small {
                self.state.known.put(small, node);
            }
            node
        });
        self.push(node);
    }

    /// The node of what has these children.
    fn close(&mut self, label: Label, mut children: Children) -> NodeId {
        let (_, mut scratch) = self.frames();
        let list = children.fold(&mut scratch);
        let Scratch {
            forest,
            items,
            spare,
        } = scratch;
        finish(list.items(), &mut forest.nodes, items);
        let node = forest.close(label, items, list.keys());
        children.give_back(spare);
        node
    }

    fn push(&mut self, node: NodeId) {
        if let Some((frame, mut scratch)) = self.innermost() {
            frame.children.push(node, &mut scratch);
        }
    }

    fn innermost(&mut self) -> Option<(&mut Frame, Scratch<'_>)> {
        let (frames, scratch) = self.frames();
        Some((frames.last_mut()?, scratch))
    }

    /// The frames, and what it takes to fold the children of one.
    fn frames(&mut self) -> (&mut [Frame], Scratch<'_>) {
        let State {
            frames,
            items,
            spare,
            ..
        } = &mut self.state;
        let scratch = Scratch {
            forest: self.forest,
            items,
            spare,
        };
        (frames, scratch)
    }
}
