//! Who is to blame: hypotheses of all analyses as values of one shape, and one order of them.
//!
//! A detector ([`check`](lockstep_check), `progress`, `compare`) sees one thing and says so as a [`Hypothesis`]: a suspect, what it
//! did, and how many tasks that wait it explains. It does not ask what others found.
//! [`ranked`] puts all of them in order, and nobody else filters or sorts them.
//!
//! ```text
//!  progress ─┐                 ┌─ who: Certainty, one total order
//!  check    ─┼─► Hypothesis ───┤                                      ──► ranked ──► words, JSON
//!  compare  ─┘                 └─ what of a suspect: Kind, the most telling first
//! ```
//!
//! Two questions have two orders:
//!
//! * **Who** is suspected is a matter of [`Certainty`]. A better hypothesis comes first, and may leave nothing to be said of a worse
//!   one about somebody else ([`Certainty::silences`]): who left a message out made the others do more or less.
//! * **What** is said of a suspect is a matter of how much it tells ([`Kind`]). It is suspected as surely as its most certain
//!   hypothesis says, and the most telling one is told: "left out `MPI_Send`" says more than "its next message has another tag".
//!
//! [`Disagreement`] is a collective operation whose members do not say the same, with what the detectors found out about it: by which
//! calls each side came to it, and which side is right.
//!
//! The crate stands below the analyses, since they return its values; what they found flows up through it.
//!
//! *Guarantees*: the order is total, and depends on the hypotheses alone. The same hypotheses give the same answer, whichever
//! command asks. *Costs*: O(n log n). *Not for*: finding anything, and not for words.

mod certainty;
mod disagreement;
mod hypothesis;
mod ranking;

pub use certainty::Certainty;
pub use disagreement::{Callers, Disagreement, Right, origin};
pub use hypothesis::{Hypothesis, Kind};
pub use ranking::ranked;
