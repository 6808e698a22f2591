//! The gate's answer as values.

use lockstep_trace::ProcessName;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether the runs are of one build of the program, or of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compiled {
    /// There is one build.
    Once,
    /// There are two builds with the same compiler options. Everything is compared.
    Alike,
    /// There are two builds, and their compiler options differ or are unknown.
    Otherwise,
}

/// What differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A process that all normal runs have is missing.
    Missing,
    /// The run has a process that no normal run has.
    Extra,
    /// A process ended in another way than in the normal runs.
    End,
    /// A function is no longer called.
    Gone,
    /// A function is called that this process never calls in the normal runs.
    New,
    /// A call is made more or less often than in the normal runs.
    Count,
    /// An MPI call has other arguments than in the normal runs.
    Argument,
    /// A function makes its calls in another order than in the normal runs.
    #[default]
    Order,
}

/// One difference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// What differs.
    pub kind: Kind,
    /// The function that is called; if `kind` is `order`, the function that makes the calls. Null if the difference is
    /// about a process.
    pub function: Option<String>,
    /// The function that makes the call. Null if it is the start of a thread or OpenMP's runtime, and for kinds other
    /// than `gone`, `new` and `count`.
    pub caller: Option<String>,
    /// The processes with this difference.
    pub processes: Vec<ProcessName>,
    /// Whether it is the only process of its run.
    #[serde(skip)]
    pub(super) is_alone: bool,
    /// Fewest and most calls by such a process in the normal runs. Null for kinds other than `gone`, `new` and `count`.
    pub normal: Option<[u64; 2]>,
    /// Number of calls in this run by the first of `processes`. Null for kinds other than `gone`, `new` and `count`.
    pub now: Option<u64>,
    /// Details of an argument, an order or an end. Null for other kinds, and if no single argument or pair of calls is new.
    pub detail: Option<Detail>,
    /// File and line of the call. Null if it is unknown.
    pub source: Option<(String, u32)>,
    /// Whether another difference explains this one: the calling function is itself called more or less often.
    pub follows: bool,
    /// Whether the compiler may have inlined the function. Then the two builds have different options, and the one
    /// without the calls has no debug information.
    pub may_be_inlined: bool,
}

/// What is new in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// Two calls in a row that the function never makes in the normal runs. If the first is null, the second is the
    /// function's first call. If the second is null, the function returns after the first.
    Pair(Option<String>, Option<String>),
    /// An argument of an MPI call.
    Argument {
        /// The argument's name in the MPI standard.
        name: &'static str,
        /// The argument's value in this run.
        now: String,
        /// The argument's values in the normal runs.
        normal: Vec<String>,
    },
    /// How a process ended.
    End {
        /// In this run, in words.
        now: String,
        /// In the first normal run that has the process, in words.
        normal: String,
    },
}

/// The answer of `baseline check`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// Whether the run differs from the baseline (exit status 1).
    pub differs: bool,
    /// The answer in one sentence.
    pub verdict: String,
    /// Whether the runs are of one build, or of two.
    pub builds: Compiled,
    /// Functions that are not compared, because the code of one build cannot contain calls of them.
    pub left_out: Vec<String>,
    /// All differences. Causes come first, then their consequences (`follows`).
    pub differences: Vec<Difference>,
}
