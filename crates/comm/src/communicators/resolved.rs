//! Events of calls with what their arguments stand for.

use super::communicator::CommunicatorId;
use lockstep_api::mpi::Kind;
use lockstep_trace::{Annotated, FunctionId, Handle, Value};

/// What an argument stands for, beyond its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing more.
    Plain,
    /// A communicator.
    Communicator {
        /// `None` where it is not known which.
        id: Option<CommunicatorId>,
        /// How many ranks its members may name, if known.
        size: Option<u32>,
    },
    /// A rank in a communicator.
    Peer(Peer),
    /// The sources of statuses, where they are ranks.
    Peers(Vec<Option<Peer>>),
}

/// Who is behind a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Of which communicator it is a rank, if known.
    pub communicator: Option<CommunicatorId>,
    /// The rank in `MPI_COMM_WORLD`, if known.
    pub world: Option<u32>,
    /// How many ranks there are to choose from, if known.
    pub size: Option<u32>,
}

/// An event with what is known beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The event and its arguments.
    pub annotated: Annotated,
    /// Of a call its function; of a return that of the call that returns.
    pub function: Option<FunctionId>,
    /// What the arguments stand for, one for each; empty where there are none.
    pub meanings: Vec<Meaning>,
}

/// An event of [`EventsOf`](super::EventsOf) whose arguments nobody has looked into.
#[derive(Debug, Clone)]
pub struct Unresolved {
    /// The event and its arguments.
    pub annotated: Annotated,
    /// Of a call its function; of a return that of the call that returns.
    pub function: Option<FunctionId>,
}

impl Resolved {
    /// The argument or result with this name (that of the standard), and what it stands for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(&Value, &Meaning)> {
        let arguments = self.annotated.arguments.as_deref()?;
        let index = arguments.iter().position(|it| it.name == name)?;
        Some((&arguments[index].value, self.meanings.get(index)?))
    }

    /// The communicator of the call: what it works on. `None` where it has none, or an unknown one.
    #[must_use]
    pub fn communicator(&self) -> Option<CommunicatorId> {
        let arguments = self.annotated.arguments.as_deref()?;
        let index = arguments
            .iter()
            .position(|it| matches!(it.kind, Kind::Comm | Kind::CommAt))?;
        match self.meanings.get(index)? {
            Meaning::Communicator { id, .. } => *id,
            _ => None,
        }
    }

    /// A rank by the argument's name (`dest`, `source`, `root`), and who it is.
    #[must_use]
    pub fn peer(&self, name: &str) -> Option<(i64, Peer)> {
        match self.get(name)? {
            (Value::Rank { rank, .. } | Value::Number(rank), Meaning::Peer(peer)) => {
                Some((*rank, *peer))
            }
            _ => None,
        }
    }

    /// A number or a tag by its name (`count`, `tag`, `sendtag`); `None` is `MPI_ANY_TAG` too.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)?.0 {
            Value::Number(number) => Some(*number),
            Value::Tag(tag) => *tag,
            _ => None,
        }
    }

    /// A handle by its name (`datatype`, `op`, `request`).
    #[must_use]
    pub fn handle(&self, name: &str) -> Option<&Handle> {
        match self.get(name)?.0 {
            Value::Handle(handle) => Some(handle),
            _ => None,
        }
    }
}
