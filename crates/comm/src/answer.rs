//! What a call of MPI that returned says: which requests are over, whether there was anything, and whose message it was.

use crate::call::more;
use crate::communicators::{Meaning, Resolved};
use crate::message::{PartKind, Peer};
use crate::requests::Named;
use crate::routines::Routine;
use lockstep_api::mpi::Language;
use lockstep_trace::Value;

/// The requests that a call says it completed, each with the place of its status, and how many more there are that were not
/// recorded.
pub fn chosen(routine: &Routine, named: &Named, event: &Resolved) -> (Vec<(usize, i64)>, usize) {
    let base = i64::from(routine.language == Language::Fortran);
    let (indices, unseen) = match (event.number("index"), event.get("array_of_indices")) {
        (Some(index), _) => (vec![index], 0),
        (None, Some((Value::Numbers(count, indices), _))) => {
            (indices.clone(), more(*count, indices.len()))
        }
        _ => return (Vec::new(), 0),
    };
    let handle = |index: usize| named.handles.get(index).copied();
    // Without a request, it is negative (MPI_UNDEFINED).
    let indices = indices
        .iter()
        .map(|it| usize::try_from(it.saturating_sub(base)));
    let indices: Vec<usize> = indices.filter_map(Result::ok).collect();
    let seen = indices.iter().enumerate();
    let seen: Vec<_> = seen
        .filter_map(|(place, it)| Some((place, handle(*it)?)))
        .collect();
    let more = (unseen + indices.len() - seen.len()).min(named.more);
    (seen, more)
}

/// Whether what was asked for had happened.
pub fn answered(event: &Resolved) -> bool {
    match (event.number("flag"), event.number("outcount")) {
        (Some(flag), _) => flag != 0,
        (None, Some(count)) => count != 0,
        (None, None) => true,
    }
}

/// Tag and sender of what was received, as the only status says, or number `index`; the sender where it is known.
pub fn status(event: &Resolved, index: Option<usize>) -> Option<(i64, Option<u32>)> {
    let (tag, peer) = match (event.get("status"), event.get("array_of_statuses")) {
        (Some((Value::Status(_, tag, _), Meaning::Peer(peer))), _) => (*tag, Some(*peer)),
        (_, Some((Value::Statuses(_, statuses), Meaning::Peers(peers)))) => {
            (statuses.get(index?)?.1, *peers.get(index?)?)
        }
        _ => return None,
    };
    Some((tag, peer.and_then(|it| it.world)))
}

/// The message that a probe found of those that it asked for.
pub fn found(probe: PartKind, event: &Resolved) -> PartKind {
    let (
        PartKind::Probe {
            from,
            tag,
            communicator,
        },
        Some((said, sender)),
    ) = (&probe, status(event, None))
    else {
        return probe;
    };
    PartKind::Probe {
        from: match (from, sender) {
            (Peer::Any, Some(sender)) => Peer::Task(sender),
            _ => *from,
        },
        tag: tag.or((said >= 0).then_some(said)),
        communicator: *communicator,
    }
}

/// Whether a receive takes the message that a probe found.
pub fn is_of(receive: &PartKind, found: &PartKind) -> bool {
    let PartKind::Receive {
        from,
        tag,
        communicator,
        ..
    } = receive
    else {
        return false;
    };
    let PartKind::Probe {
        from: sender,
        tag: said,
        communicator: in_this,
    } = found
    else {
        return false;
    };
    communicator == in_this
        && (from == sender || *from == Peer::Any)
        && (tag == said || tag.is_none())
}

/// Whether the only status, or number `index`, says of a receive that was cancelled that it had no message, as Open MPI does.
/// MPICH leaves in it what was there before, and nothing follows from that.
pub fn had_none(event: &Resolved, index: Option<usize>) -> bool {
    let tag = match (event.get("status"), event.get("array_of_statuses")) {
        (Some((Value::Status(_, tag, _), _)), _) => Some(*tag),
        (_, Some((Value::Statuses(_, statuses), _))) => {
            index.and_then(|it| statuses.get(it)).map(|it| it.1)
        }
        _ => None,
    };
    tag.is_some_and(|it| it < 0)
}
