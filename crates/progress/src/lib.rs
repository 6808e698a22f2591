//! Who is behind, and who waits for whom: where every task of a run stands, in what order of progress,
//! what it waits for, and whether that can ever end (Prodometer, and beyond it).
//!
//! The principal function is [`analyse`]. Three answers are found apart and then brought together:
//!
//! * **Who is behind** (`place`, `shown`, `nesting`, `walk`, `group`): places in the call trees of the tasks, ordered by
//!   loop iterations from the outside in, and by what can still follow within the innermost common
//!   iteration. Tasks at one place are a group; groups without a group behind them are the least
//!   progressed.
//! * **Who waits for whom** ([`Waiting`]): the messages and collective operations of all tasks, matched
//!   from their recorded arguments; what the pending calls need, of other tasks and of other threads of
//!   the same (`inside`: locks, signals, ends, teams); and by a fixpoint of releases who is stuck for ever.
//!   Who asks again and again without an answer (`poll`) waits, too.
//! * **Who did otherwise** (`blame`): than in a normal run or in all its calls before (`departure`), than all other calls
//!   (`habit`) and rounds (`lapse`) of the job; whose message went elsewhere (`astray`, by `series`), or was left out of a row
//!   (`gap`), of an exchange (`exchange`), or between others (`omission`); which thread did not come to a barrier of its process
//!   (`team`); which operation the members of a communicator came to by other calls first (`parting`), and who of them is right
//!   (`standard`, `vote`); which lock a thread kept that is over (`holding`); and where nothing else is known, who is past the place where
//!   others wait for it (`past`), and who stands elsewhere than most of those that wait for each other (`outnumbered`).
//!   Each of these says what it sees; which of them is told `suspicion` asks `lockstep_diagnosis`.
//!
//! The files stand in four layers, and none imports upwards: values (`task`, `cause`, `clause`, `progress`), what finds them, the
//! answer ([`Verdict`], by `verdict`), and the order of the steps (`analysis`). The words are those of `lockstep_wording`.
//!
//! [`published`] holds the methods that this began with, as baselines. [`Watch`] tells a hang from what moves, by looks at a run that still goes on;
//! [`Follower`] keeps what was read, so that a look costs what is new, knows again what was said before (`turn`), and forgets what nothing can
//! change any more, as it is read (`rounds`) or later (`settled`).
//!
//! *Guarantees*: nothing is said that the trace does not show: incomparable places stay incomparable,
//! and what an unknown argument may allow is taken as allowed. *Costs*: about the load of the run;
//! O(groups^2) comparisons; O(tasks + messages). *Not for*: finding what differs from a healthy run
//! (`compare`).

mod amiss;
mod analysis;
mod astray;
mod beside;
mod blame;
mod builds;
mod cause;
pub mod clause;
mod counted;
mod departure;
mod displaced;
mod ends;
mod exchange;
mod facts;
#[doc(hidden)]
pub mod fuzz;
mod gap;
mod glance;
mod group;
mod habit;
mod holding;
mod inside;
mod iteration;
mod judgement;
mod lapse;
mod misfit;
mod nesting;
mod nonempty;
mod observe;
mod omission;
mod outnumbered;
mod parting;
mod past;
mod place;
mod precedent;
mod progress;
pub mod published;
mod reason;
mod recount;
mod series;
mod shown;
mod sites;
mod source;
mod standard;
mod strays;
mod suspicion;
mod task;
mod team;
mod unseen;
mod verdict;
mod vote;
mod waits;
mod walk;
mod watch;
mod whereabouts;
mod which;

pub use analysis::{analyse, analyse_against};
pub use astray::Misdirection;
pub use beside::analyse_beside;
pub use cause::{Cause, Deed, Part};
pub use clause::{Expected, Mismatched, Potential, Unreceived, Verdict, Wants};
pub use departure::{Departure, MOST};
pub use gap::{Gap, Instead};
pub use glance::at_a_glance;
pub use inside::{Inside, InsideWait};
pub use lapse::Lapse;
pub use lockstep_check::{Aspect, Chosen, Loose, LooseEnd, Mismatch};
pub use lockstep_comm::{Circle, CommunicatorId, Doing, Lock, PartId};
pub use nonempty::{NonEmpty, Subject};
pub use omission::{Evidence, Omission};
pub use progress::Progress;
pub use source::Follower;
pub use suspicion::Charge;
pub use task::{Activity, Group, Kind, Place, Polling, Task};
pub use team::Truant;
pub use waits::{MOST_SHOWN, Wait, Waiting, Why};
pub use watch::{Standing, Watch};
pub use whereabouts::{Iteration, Line, OpenCall, Whereabouts};

#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod place_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod strand_tests;
#[cfg(test)]
mod tree_tests;
