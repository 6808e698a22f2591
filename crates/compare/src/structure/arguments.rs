//! What MPI calls were given, in a form that ranks and runs share: peers by their distance from the
//! caller, reductions and datatypes by name, communicators by how they were made.
//!
//! *Costs*: one pass over a trace, some hundred nanoseconds a recorded call. *Not for* matching
//! messages.

use lockstep_comm::communicators::{CommunicatorId, Communicators, Meaning, Origin, Resolved};
use lockstep_trace::mpi::constants::{ANY_SOURCE, ANY_TAG, COMM_SELF, COMM_WORLD};
use lockstep_trace::mpi::{self, Kind};
use lockstep_trace::{Event, FunctionId, ProcessName, Run, Thread, Value, c_name};
use rustc_hash::{FxHashMap, FxHashSet};
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

impl Said {
    /// The peer of `rank`, of so many.
    pub(crate) fn peer(&self, rank: u32, ranks: i64) -> Option<i64> {
        let Self::Offset(offset) = self else {
            return None;
        };
        let peer = i64::from(rank) + offset;
        Some(if ranks > 0 {
            peer.rem_euclid(ranks)
        } else {
            peer
        })
    }

    /// As `rank`, of so many, says it: peers by their number, too.
    pub(crate) fn by(&self, rank: u32, ranks: i64) -> String {
        match self.peer(rank, ranks) {
            Some(peer) => format!("{peer} ({})", Self::Offset(peer - i64::from(rank))),
            None => self.to_string(),
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
    pub(crate) meaning: mpi::Meaning,
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
    let mut names = Names::default();
    communicators.calls(thread).filter_map(move |resolved| {
        let Event::Call(_) = resolved.annotated.event else {
            return None;
        };
        let function = resolved.function?;
        let own = i64::from(process.rank);
        Some(Call {
            function,
            name: c_name(&run.function(function).name).into_owned(),
            meaning: (thread.mpi(function)).map_or(mpi::Meaning::UNKNOWN, mpi::Function::meaning),
            event: resolved.annotated.index,
            given: given(&resolved, communicators, &mut names, own, ranks),
            resolved,
        })
    })
}

/// Whether a call asks whether something has come, or reads the clock between two times that it asks.
pub(crate) fn is_poll(meaning: mpi::Meaning) -> bool {
    meaning.asks() || meaning.reads_clock()
}

/// Whether what comes after a call may depend on who came first.
pub(crate) fn is_first_come(call: &Call) -> bool {
    let is_any = |said: &Said| matches!(said, Said::Name(name) if name == ANY_SOURCE);
    let mut peers = call.given.iter().filter(|it| it.kind == Kind::Peer);
    call.meaning.is_first_come() || peers.any(|it| is_any(&it.said))
}

/// How many ranks the job of a process has: as its launcher said, for some may be missing; else as many as there are.
pub(crate) fn ranks(run: &Run, process: ProcessName) -> i64 {
    let ranks = run.processes.iter().filter(|other| {
        let name = other.name;
        (name.job, name.sibling) == (process.job, 0) && run.is_visible(other)
    });
    let told = ranks.clone().find_map(|it| it.world_size());
    told.map_or_else(|| ranks.count() as i64, i64::from)
}

/// What communicators are called.
type Names = FxHashMap<CommunicatorId, Cow<'static, str>>;

fn given(
    call: &Resolved,
    communicators: &Communicators,
    names: &mut Names,
    own: i64,
    ranks: i64,
) -> Vec<Given> {
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
            (Kind::Tag, Value::Tag(None)) => Said::Name(Cow::Borrowed(ANY_TAG)),
            (Kind::Comm, _) => match meaning {
                Meaning::Communicator { id: Some(id), .. } => Said::Name(
                    names
                        .entry(*id)
                        .or_insert_with(|| name(communicators, *id))
                        .clone(),
                ),
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

/// A communicator by how it was made, alike in all runs: `2nd split of MPI_COMM_WORLD (2 ranks)`. O(communicators).
fn name(communicators: &Communicators, id: CommunicatorId) -> Cow<'static, str> {
    let Some(it) = communicators.get(id) else {
        return "unknown".into();
    };
    let what = match it.origin {
        Origin::World => return COMM_WORLD.into(),
        Origin::Own => return COMM_SELF.into(),
        Origin::Copy => "copy",
        Origin::Split => "split",
        Origin::SplitType => "split by type",
        Origin::Create => "created one",
        Origin::Topology => "topology",
        Origin::Intercommunicator => "intercommunicator",
        Origin::Merge => "merged one",
    };
    // One call makes several communicators, none of which has a member of another: what has is of the next call.
    let kin = communicators
        .all()
        .iter()
        .filter(|other| (other.parent, other.origin) == (it.parent, it.origin) && other.id <= id);
    let mut members: FxHashSet<u32> = FxHashSet::default();
    let mut number = 0;
    for one in kin {
        let ranks = || {
            one.sides
                .iter()
                .flat_map(|side| side.ranks.iter().flatten())
        };
        if number == 0 || ranks().next().is_none() || ranks().any(|rank| members.contains(rank)) {
            number += 1;
            members.clear();
        }
        members.extend(ranks());
    }
    let of = match it.parent {
        Some(parent) if parent < id => format!(" of {}", name(communicators, parent)),
        _ => String::new(),
    };
    let sizes: Option<Vec<String>> = (it.sides.iter())
        .map(|side| side.size.map(|size| size.to_string()))
        .collect();
    let size = match sizes.as_deref() {
        // As many as there were.
        _ if it.origin == Origin::Copy => String::new(),
        Some([one]) if one == "1" => " (1 rank)".to_owned(),
        Some([one]) => format!(" ({one} ranks)"),
        Some([one, other]) => format!(" ({one} and {other} ranks)"),
        _ => String::new(),
    };
    format!("{} {what}{of}{size}", ordinal(number)).into()
}

/// `1st`, `2nd`, `11th`.
fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_order_are_words() {
        let told = [1, 2, 3, 4, 11, 12, 21, 102].map(ordinal);
        let expected = ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "102nd"];
        assert_eq!(told, expected);
    }

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
        assert_eq!(Said::Offset(2).by(3, 4), "1 (own rank-2)");
        assert_eq!(Said::Offset(1).by(0, 4), "1 (own rank+1)");
        assert_eq!(Said::Number(7).by(3, 4), "7");
    }
}
