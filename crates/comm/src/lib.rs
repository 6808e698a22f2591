//! What the tasks of an MPI program told each other, as typed values: calls, what they began (messages, shares of collective
//! operations, steps of epochs), requests, communicators, groups, datatypes, windows and files; and which of it belongs together.
//!
//! ```text
//!  events of a thread ──► Reader ──► Conversation ──► Matching          whose message is whose
//!                          │  ▲       one a task       replay, rounds    how far all come, and what is settled
//!                          │  └ Turns: what comes again costs one look-up a call
//!                          └──► Observer: whoever wants more of each call (MPI's rules are not known here)
//! ```
//!
//! *Guarantees*: what an argument does not show is `Unknown`, and never guessed; what is left out because it is settled changes
//! nothing of what is found later. *Costs*: one pass over the calls of MPI; a turn that came before costs one look-up a call. *Not
//! for*: what is right or wrong (`check`), who waits for whom (`progress`).

pub mod accesses;
mod answer;
mod apart;
mod call;
pub mod communicators;
mod contact;
mod conversation;
mod datatypes;
mod deeds;
mod fit;
mod group;
mod happens_before;
#[doc(hidden)]
pub mod job;
mod layout;
mod listen;
mod matching;
mod membership;
mod message;
mod observer;
mod poll;
mod reader;
pub mod recent;
mod replay;
mod requests;
mod resources;
pub mod rounds;
mod routines;
mod said;
mod settled;
mod strand;
pub mod talk;
mod turn;
mod windows;

pub use accesses::{Accesses, InStarted};
pub use apart::set_apart;
pub use call::{
    among_neighbours, is_of_blocks, names_no_request, opens_between, own_share, requests,
};
pub use conversation::{Conversation, State, Unstarted, left};
pub use datatypes::{Datatypes, Unit, are_unlike, whole};
pub use fit::{Misfit, misfit};
pub use group::{MpiGroup, tasks_of};
pub use happens_before::{Messages, Order};
pub use layout::{Footprint, Layout, Layouts};
pub use matching::{Matching, PartId};
pub use membership::Membership;
pub use message::{
    Amount, Amounts, Collective, CommunicatorId, Mode, Operation, Part, PartKind, Peer, Role,
    Shape, Size, Step, Waits, Wildcard,
};
pub use observer::{Begun, Call, Changes, Observer, Started};
pub use reader::{Reader, Told};
pub use recent::Envelope;
pub use replay::{Circle, is_reached, reached, without_buffers};
pub use requests::{Named, Requests};
pub use resources::{Held, Resources};
pub use routines::{Routine, Routines, is_named_so, is_routine};
pub use said::Said;
pub use settled::{settled, speaker};
pub use strand::{Doing, Functions, Lock, Reading, Strand, gathers};
pub use talk::Talk;
pub use windows::Windows;
