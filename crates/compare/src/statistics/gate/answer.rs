//! The gate's answer as values.

use lockstep_trace::ProcessName;
use schemars::JsonSchema;
use serde::Serialize;

/// The builds of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compiled {
    /// There is one.
    Once,
    /// Two, with the same options: all is compared.
    Alike,
    /// Two, with other options, or without a record of them.
    Otherwise,
}

/// What is otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A process is not there.
    Missing,
    /// A process that the baseline does not have.
    Extra,
    /// How a process ended.
    End,
    /// A function is called no more.
    Gone,
    /// A function is called that never was.
    New,
    /// How often a function is called.
    Count,
    /// What an MPI call was given.
    Argument,
    /// In which order calls are made.
    #[default]
    Order,
}

/// One difference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// What is otherwise.
    pub kind: Kind,
    /// The function that is called. If the kind is `order`: the one that makes the calls.
    pub function: Option<String>,
    /// Who calls it; `None` of what begins a thread or runs below OpenMP's runtime.
    pub caller: Option<String>,
    /// The processes that differ so.
    pub processes: Vec<ProcessName>,
    /// Whether it is the only process of its run.
    #[serde(skip)]
    pub(super) is_alone: bool,
    /// The fewest and the most calls in the normal runs, of one of these processes.
    pub normal: Option<[u64; 2]>,
    /// The calls in this run.
    pub now: Option<u64>,
    /// If the kind is `argument` or `order`: what normal runs never say or do. If it is `end`: how the process ends.
    pub detail: Option<Detail>,
    /// The line of the call, if there is one and it is known.
    pub source: Option<(String, u32)>,
    /// Whether it follows from another difference: who makes the call is itself called more or less often.
    pub follows: bool,
    /// Whether the function may have been inlined: two builds with other options, of which one has no debug information.
    pub may_be_inlined: bool,
}

/// What is said or done otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// The second is called behind the first; `None` is the begin, or the end, of the function.
    Pair(Option<String>, Option<String>),
    /// An argument with what it says, and what normal runs say.
    Argument {
        /// Its name in the standard.
        name: &'static str,
        /// What it says.
        now: String,
        /// What it says in normal runs.
        normal: Vec<String>,
    },
    /// How a process ended.
    End {
        /// In this run.
        now: String,
        /// In the first normal one.
        normal: String,
    },
}

/// The answer of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// Whether the run is stopped.
    pub differs: bool,
    /// In a sentence.
    pub verdict: String,
    /// The builds.
    pub builds: Compiled,
    /// Functions that are left out, as the code of one of the builds cannot contain calls of them.
    pub left_out: Vec<String>,
    /// All that is otherwise: causes first, then what follows from them.
    pub differences: Vec<Difference>,
}
