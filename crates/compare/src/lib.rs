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
//! *Guarantees*: the same input gives the same output, whatever the number of cores; results are plain
//! values (serde) whose keys are a contract. *Costs*: loops are recognised once per distinct sequence;
//! similarity is quadratic in the number of traces, clustering at worst cubic.
//! *Not for*: who waits for whom, or who is behind (`progress`).

mod arguments;
mod attribute;
mod b_score;
mod builds;
mod cluster;
mod comparison;
mod diff;
mod disagreement;
mod divergence;
mod error;
mod filter;
mod findings;
mod flat;
mod gate;
mod internals;
mod lattice;
mod loops;
mod normality;
mod notes;
mod object;
mod options;
mod order;
mod outliers;
mod pairing;
mod part;
mod phases;
mod sequence;
mod series;
mod similarity;
mod steady;
mod suspect;
mod sweep;
mod teams;
mod timing;
mod totals;
mod unended;
mod verdict;

pub use builds::Builds;
pub use cluster::{Dendrogram, Merge};
pub use comparison::{Comparison, View, compare, compare_in_order};
pub use diff::{Diff, DiffLine, LineKind, Op, Style, Which, diff, diff_trees};
pub use divergence::{Divergence, DivergenceKind, Divergences, Side, first_divergence};
pub use error::Error;
pub use filter::{Filter, FilterName};
pub use gate::{Compiled, Detail, Difference, Gate, Kind, Rules, SameFlags, gate};
pub use lattice::{Concept, Lattice, context, lattice, poset};
pub use loops::{LoopBody, Loops, TraceLoops, loops};
pub use normality::{Evidence, Role, roles};
pub use object::ObjectName;
pub use options::{Attributes, BScore, Distance, Frequency, Linkage, Options, Part};
pub use order::{CausalOrder, Culprit};
pub use outliers::{Outlier, Outliers, outliers};
pub use phases::Phases;
pub use similarity::{Similarity, similarity};
pub use suspect::{Reason, Suspect, p_in_words};
pub use sweep::{Row, Top};
