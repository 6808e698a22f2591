//! What the attributes of traces are, beside those of normal runs.

use crate::ObjectName;
use crate::difftrace::attribute::what::Entry;
use crate::structure::arguments::Said;
use crate::structure::steps::Step;
use lockstep_calltree::{FunctionKey, NodeId};

/// What an attribute is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// Entries in a row of a folded sequence, under a filter.
    Entries(Vec<Entry>, Often),
    /// A call, by its caller; none of the outermost.
    Edge(Option<FunctionKey>, FunctionKey, Often),
    /// In a function (none: outside of all), one call after another; none at its beginning and end.
    Step(Option<FunctionKey>, Step),
    /// A call path, as its number.
    Path(usize),
    /// A loop in a function, given by one such loop.
    Loop(Option<FunctionKey>, NodeId, Often),
    /// Calls open at the end.
    Open(Vec<FunctionKey>),
    /// A function, an argument of it, and what it was.
    Argument(String, &'static str, Said),
    /// The number of events.
    Length(Often),
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Often {
    /// At all.
    Any,
    /// So often.
    Times(u64),
    /// At least two to the power of this: what is an order of magnitude off differs in many attributes.
    AtLeast(u32),
}

impl Often {
    pub(super) fn any(_: u64) -> Vec<Self> {
        vec![Self::Any]
    }

    pub(super) fn exactly(times: u64) -> Vec<Self> {
        vec![Self::Times(times)]
    }

    pub(super) fn at_least(times: u64) -> Vec<Self> {
        (0..=times.max(1).ilog2()).map(Self::AtLeast).collect()
    }
}

/// What attributes say of a number.
pub(super) type Says = fn(u64) -> Vec<Often>;

/// What the attributes of a family are.
#[derive(Debug, Clone)]
pub(crate) struct Meaning {
    /// `single`, `callers`, `arguments`.
    pub(crate) name: &'static str,
    /// The filter, of sequences.
    pub(crate) lens: Option<usize>,
    /// Whether it is about how often alone.
    pub(crate) counts: bool,
    pub(crate) keys: Vec<Key>,
}

/// Families of steps: in functions that wait, and in others.
pub(crate) const WAITING_STEPS: &str = "waiting-steps";
pub(crate) const STEPS: &str = "steps";

/// For each run its objects, and the number of what each of them is.
pub(super) type Drafted = Vec<Vec<(ObjectName, usize)>>;
