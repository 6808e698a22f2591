//! Compares runs: who behaves unlike before, and in what (DiffTrace).
//!
//! The principal function is [`compare`]; its result, [`Comparison`], says in one sentence which trace
//! fell out of step, ranks the suspects with reasons, and holds the ranking table of the sweep.
//! [`loops`], [`lattice`] and [`similarity`] show the steps on the way for one run.
//!
//! ```text
//! events ─filter─► sequence ─NLR─► tokens ─attributes─► context ─┬► lattice
//!                                                                └► JSM ─linkage─► clusters ─► B-score
//! ```
//!
//! Four folders, each of which uses only those before it: `difftrace` (the papers), `structure` (call trees: where they part, two
//! builds), `statistics` (several normal runs, the gate) and `findings` (who differs, and why).
//!
//! *Guarantees*: the same input gives the same output, whatever the number of cores; results are plain
//! values (serde) whose keys are a contract. *Costs*: loops are recognised once per distinct sequence;
//! similarity is quadratic in the number of traces, clustering at worst cubic.
//! *Not for*: who waits for whom, or who is behind (`progress`).

mod calls;
mod difftrace;
mod error;
mod findings;
mod naming;
mod numbered;
mod object;
mod statistics;
mod structure;

pub use difftrace::cluster::{Dendrogram, Merge};
pub use difftrace::filter::{Filter, FilterName};
pub use difftrace::lattice::{Concept, Lattice, context, lattice, poset};
pub use difftrace::loops::{LoopBody, Loops, TraceLoops, loops};
pub use difftrace::options::{Attributes, BScore, Distance, Frequency, Linkage, Options, Part};
pub use difftrace::similarity::{Similarity, similarity};
pub use difftrace::sweep::{Row, Top};
pub use error::Error;
pub use findings::causal_order::{CausalOrder, Culprit};
pub use findings::comparison::{Comparison, View, compare, compare_in_order};
pub use findings::finding::Reason;
pub use findings::suspect::{Suspect, p_in_words};
pub use object::ObjectName;
pub use statistics::gate::answer::{Compiled, Detail, Difference, Gate, Kind};
pub use statistics::gate::{Rules, SameFlags, gate};
pub use statistics::normality::evidence::Evidence;
pub use statistics::normality::roles;
pub use statistics::normality::roles::Role;
pub use statistics::outliers::{Outlier, Outliers, outliers};
pub use structure::builds::Builds;
pub use structure::diff::lines::{DiffLine, LineKind};
pub use structure::diff::ops::{Op, Which};
pub use structure::diff::{Diff, Style, diff, diff_trees};
pub use structure::divergence::{Divergence, DivergenceKind, Divergences, Side, first_divergence};
pub use structure::phases::Phases;
