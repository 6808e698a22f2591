//! The published methods, as baselines: Prodometer (PLDI 2014) and its predecessor AutomaDeD.
//!
//! ```text
//!  states     before and after each MPI call, named by call stacks: a sequence for each task
//!  model      how often each task went from which state to which: a Markov model a task, united over
//!             a binomial tree, tasks with equal counts as ranges of ranks; small loops and chains compressed
//!  circuits   all elementary circuits, those of one entry one loop; a loop's iterations of a task are its
//!             counts on the edges back to the entry
//!  order      of groups (state, counts): by iterations from the outermost common loop in; then by hops
//!             from its entry; without a common loop by the probabilities of the paths
//! ```
//!
//! What the text leaves open or gets wrong is settled so: hops, not iterations, are compared in the
//! routine that finds hops; counters begin at 0; equal hops are no order; counts are compared by groups of
//! equal counts, not summed over all tasks of a state; of two loops the one with more states is the outer.
//! What is a weakness of the method stays: counts of inner loops are totals over all outer iterations,
//! hops order the arms of a conditional, circuits may be exponentially many, a `goto` makes entries
//! ambiguous, compression may remove a loop that would have decided.
//!
//! One thing we cannot do as published: a trace has no call sites, so a call stack's offsets are the
//! places that the control flow of each function shows ([`crate::place`]).
//!
//! *Guarantees*: a bound on circuits that bites is said. *Costs*: O(MPI calls) to read, then as the model is.
//! *Not for* finding bugs: [`crate::analyse`] is better at it, and the campaign shows by how much.

mod answer;
mod circuits;
mod model;
mod order;
mod patience;
mod probability;
mod ranks;
mod states;

pub use answer::{ModelDocument, analyse_by, model_of};
pub use circuits::{Circuits, MOST_STEPS, circuits};
pub use model::{Model, StateId, Walked};
pub use order::{Baseline, BaselineGroup, automaded, prodometer};
pub use patience::Patience;
pub use ranks::Ranks;
pub use states::{Moment, State, States};

/// How tasks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Our own: positions in the call tree, and messages.
    #[default]
    Lockstep,
    /// Mitra et al., PLDI 2014.
    Prodometer,
    /// Laguna et al.: path probabilities only.
    Automaded,
}

#[cfg(test)]
mod tests;
