//! What MPI calls were given, in a form that ranks and runs share: peers by their distance from the
//! caller, reductions and datatypes by name, communicators by where they come from.
//!
//! *Costs*: one pass over a trace, some hundred nanoseconds a recorded call. *Not for* matching
//! messages.

use lockstep_trace::mpi::Kind;
use lockstep_trace::{
    Communicators, Event, FunctionId, Meaning, Origin, ProcessName, Resolved, Run, Thread, Value,
    c_name,
};
use std::borrow::Cow;
use std::fmt;

/// What an argument says, the same in every rank that says the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Said {
    /// A count, a displacement, a root, a tag.
    Number(i64),
    /// A peer: how far behind the caller's rank, around the ring of all ranks.
    Offset(i64),
    /// A name of the standard's, or what is known of what has none.
    Name(Cow<'static, str>),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Offset(0) => f.write_str("own rank"),
            Self::Offset(offset) => write!(f, "own rank{offset:+}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Given {
    /// Its name in the standard.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) said: Said,
}

/// A call of an MPI function with recorded arguments.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: FunctionId,
    /// Its name in C.
    pub(crate) name: String,
    /// Number of its event in the trace.
    pub(crate) event: u64,
    pub(crate) given: Vec<Given>,
    pub(crate) resolved: Resolved,
}

/// The recorded calls of a thread.
pub(crate) fn calls<'a>(
    run: &'a Run,
    communicators: &'a Communicators,
    thread: &'a Thread,
) -> impl Iterator<Item = Call> + 'a {
    let process = thread.name.process;
    let ranks = ranks(run, process);
    communicators.calls(thread).filter_map(move |resolved| {
        let Event::Call(_) = resolved.annotated.event else {
            return None;
        };
        let function = resolved.function?;
        let own = i64::from(process.rank);
        Some(Call {
            function,
            name: c_name(&run.function(function).name).into_owned(),
            event: resolved.annotated.index,
            given: given(&resolved, communicators, own, ranks),
            resolved,
        })
    })
}

/// How many ranks the job of a process has.
pub(crate) fn ranks(run: &Run, process: ProcessName) -> i64 {
    let ranks = run.processes.iter().filter(|other| {
        let name = other.name;
        (name.job, name.sibling) == (process.job, 0) && run.is_visible(other)
    });
    ranks.count() as i64
}

fn given(call: &Resolved, communicators: &Communicators, own: i64, ranks: i64) -> Vec<Given> {
    let Some(arguments) = call.annotated.arguments.as_deref() else {
        return Vec::new();
    };
    let meant = arguments.iter().zip(&call.meanings);
    let said = meant.filter_map(|(argument, meaning)| {
        let said = match (argument.kind, &argument.value) {
            (Kind::Int | Kind::Long, Value::Number(number)) => Said::Number(*number),
            (Kind::Root, Value::Rank { rank, name: None } | Value::Number(rank)) => {
                Said::Number(*rank)
            }
            (Kind::Peer, Value::Rank { rank, name: None } | Value::Number(rank)) => match meaning {
                Meaning::Peer(peer) if peer.world.is_some() => {
                    let world = i64::from(peer.world.unwrap_or_default());
                    Said::Offset(around(world - own, ranks))
                }
                _ => Said::Number(*rank),
            },
            (
                Kind::Peer | Kind::Root,
                Value::Rank {
                    name: Some(name), ..
                },
            ) => Said::Name(Cow::Borrowed(name)),
            (Kind::Tag, Value::Tag(Some(tag))) => Said::Number(*tag),
            (Kind::Tag, Value::Tag(None)) => Said::Name(Cow::Borrowed("MPI_ANY_TAG")),
            (Kind::Comm, _) => match meaning {
                Meaning::Communicator { id: Some(id), .. } => {
                    let origin = communicators.get(*id).map(|it| it.origin);
                    Said::Name(Cow::Borrowed(origin.map_or("unknown", words)))
                }
                _ => return None,
            },
            (Kind::Op | Kind::Datatype, Value::Handle(handle)) => Said::Name(match &handle.name {
                Some(name) => Cow::Owned(name.clone()),
                None => Cow::Borrowed("one of its own"),
            }),
            _ => return None,
        };
        Some(Given {
            name: argument.name,
            kind: argument.kind,
            said,
        })
    });
    said.collect()
}

/// The distance on a ring, the shorter way; forwards where both are as long.
fn around(distance: i64, ranks: i64) -> i64 {
    if ranks < 2 {
        return distance;
    }
    let forwards = distance.rem_euclid(ranks);
    if forwards * 2 > ranks {
        forwards - ranks
    } else {
        forwards
    }
}

const fn words(origin: Origin) -> &'static str {
    match origin {
        Origin::World => "MPI_COMM_WORLD",
        Origin::Own => "MPI_COMM_SELF",
        Origin::Copy => "a copy",
        Origin::Split => "a split",
        Origin::SplitType => "a split by type",
        Origin::Create => "a created one",
        Origin::Topology => "a topology",
        Origin::Intercommunicator => "an intercommunicator",
        Origin::Merge => "a merged one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_told_from_the_caller_around_the_ring() {
        assert_eq!(around(1, 8), 1);
        assert_eq!(around(-7, 8), 1);
        assert_eq!(around(7, 8), -1);
        assert_eq!(around(4, 8), 4);
        assert_eq!(around(-4, 8), 4);
        assert_eq!(around(3, 1), 3);
        assert_eq!(Said::Offset(-1).to_string(), "own rank-1");
        assert_eq!(Said::Offset(0).to_string(), "own rank");
    }
}
