//! The tree of a trace that still grows.

use crate::build::{Builder, State};
use crate::forest::{Forest, FunctionMap};
use crate::node::NodeId;
use lockstep_trace::{Bookmark, StreamId, Thread};

/// A tree, and how far in its trace it was built. Memory: what is distinct in it.
///
/// *Guarantees*: what [`Forest::add_grown`] adds is what [`Forest::add_trace`] would. *Costs*: what is new in
/// the trace, where the run is opened by [`lockstep_trace::Live`]; to add it, what is distinct in all of it.
#[derive(Debug, Default)]
pub struct Grown {
    forest: Forest,
    state: State,
    read: Option<(StreamId, Bookmark)>,
}

impl Grown {
    /// Reads what is new in a trace; all of it where that does not go on from what was there before. `of` has the
    /// functions.
    pub fn read(&mut self, of: &Forest, functions: &FunctionMap, thread: &Thread) {
        let goes_on = self.forest.functions() == of.functions();
        let mark = self.read.take().filter(|_| goes_on);
        let mark = mark.filter(|(id, _)| thread.stream_id() == Some(*id));
        let mut events = match mark {
            Some((_, mark)) => thread.events_after(&mark),
            None => {
                self.state = State::default();
                self.forest = Forest {
                    functions: of.functions.clone(),
                    ..Forest::default()
                };
                thread.events()
            }
        };
        let mut builder = Builder::of(&mut self.forest, std::mem::take(&mut self.state));
        builder.events(&mut events, functions, false);
        self.state = builder.pause();
        self.read = thread.stream_id().zip(events.bookmark());
    }

    /// The tree as it is, with what has not returned open.
    fn tree(&self) -> (Forest, NodeId) {
        let mut forest = self.forest.clone();
        let root = Builder::of(&mut forest, self.state.clone()).finish();
        (forest, root)
    }
}

impl Forest {
    /// Adds the tree of a trace that may still grow, of the same functions.
    pub fn add_grown(&mut self, grown: &Grown) -> NodeId {
        let (forest, root) = grown.tree();
        self.absorb(&forest, root)
    }
}
