//! From the name and the recorded arguments of one MPI call to the parts that it begins, and what else it is.

use crate::datatypes::{Datatypes, Unit, are_unlike, whole};
use crate::message::{
    Amount, Amounts, Collective, CommunicatorId, Mode, PartKind, Peer, Role, Shape, Size, Step,
    Wildcard,
};
use crate::requests::Named;
use crate::resources::Resource;
use lockstep_trace::{Argument, Buffer, Handle, Meaning, Resolved, Value};
use std::sync::Arc;

/// Arguments that say how much.
const SINGLE: (&str, &str) = ("count", "datatype");

/// The name of what a call does, in lower case, and whether it only begins that; from its name without `MPI_`.
pub(crate) fn stem(base: &str) -> (String, bool) {
    let nonblocking = base
        .strip_prefix('I')
        .filter(|rest| rest.starts_with(|it: char| it.is_ascii_lowercase()))
        .filter(|rest| {
            !matches!(
                *rest,
                "nit" | "nit_thread" | "nitialized" | "ntercomm_create"
            )
        });
    let stem = nonblocking.unwrap_or(base).trim_end_matches("_init");
    (stem.to_ascii_lowercase(), nonblocking.is_some())
}

/// Whether a call changes nothing, by its name without `MPI_`.
pub(crate) fn tells(base: &str) -> bool {
    matches!(
        base,
        "Wtime" | "Wtick" | "Comm_rank" | "Comm_size" | "Get_count"
    )
}

/// What a call begins by itself, by its name in lower case, blocking, without `MPI_`; `None` where that
/// is nothing that others could notice.
pub(crate) fn begun(
    stem: &str,
    base: &str,
    is_nonblocking: bool,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> Option<Vec<PartKind>> {
    let send = |event, tag, mode, counted| send(event, tag, mode, size(event, counted, types));
    let receive = |event, tag, counted| receive(event, tag, size(event, counted, types));
    let part = match stem {
        "send" | "rsend" => send(event, "tag", Mode::Standard, SINGLE),
        "bsend" => send(event, "tag", Mode::Buffered, SINGLE),
        "ssend" => send(event, "tag", Mode::Synchronous, SINGLE),
        "recv" => receive(event, "tag", SINGLE),
        "sendrecv" => {
            let sent = ("sendcount", "sendtype");
            let sent = send(event, "sendtag", Mode::Standard, sent);
            let received = receive(event, "recvtag", ("recvcount", "recvtype"));
            return Some(sent.into_iter().chain(received).collect());
        }
        "sendrecv_replace" => {
            let sent = send(event, "sendtag", Mode::Standard, SINGLE);
            let received = receive(event, "recvtag", SINGLE);
            return Some(sent.into_iter().chain(received).collect());
        }
        "psend" => self::send(event, "tag", Mode::Standard, partitioned(event, types)),
        "precv" => self::receive(event, "tag", partitioned(event, types)),
        // A matched probe takes the message: what receives it later waits for nothing.
        "mprobe" if !is_nonblocking => receive(event, "tag", SINGLE),
        "mrecv" if is_nonblocking => Some(PartKind::Own),
        "probe" if !is_nonblocking => receive(event, "tag", SINGLE).map(probe),
        // Complete when it is waited for, whatever the others do.
        "rput"
        | "rget"
        | "raccumulate"
        | "rget_accumulate"
        | "comm_idup"
        | "comm_idup_with_info" => Some(PartKind::Own),
        _ if base.starts_with("File_i") => Some(PartKind::Own),
        _ => Some(collective(base, stem, shape(stem)?, event, (types, me))),
    };
    Some(part.into_iter().collect())
}

/// A share of an operation of all members that has no arguments to compare.
pub(crate) fn everybody(communicator: Option<CommunicatorId>, base: &str) -> PartKind {
    PartKind::Collective(Collective {
        communicator,
        name: format!("MPI_{base}").into(),
        shape: Shape::All,
        root: None,
        role: Role::Member,
        reduction: None,
        terms: None,
        size: Size::default(),
        amounts: None,
    })
}

/// What a probe that does not wait asks for.
pub(crate) fn probed(event: &Resolved) -> Option<PartKind> {
    receive(event, "tag", Size::default()).map(probe)
}

/// What a matched probe that does not wait receives, if there is a message.
pub(crate) fn matched(event: &Resolved) -> Option<PartKind> {
    receive(event, "tag", Size::default())
}

/// What `MPI_Intercomm_create` is: a meeting of the local group, whose leader exchanges messages with the other one.
pub(crate) fn introduction(base: &str, event: &Resolved, me: u32) -> Vec<PartKind> {
    let mut all = everybody(event.communicator(), base);
    if let PartKind::Collective(share) = &mut all {
        share.root = event.peer("local_leader").map(|(rank, _)| rank);
    }
    let mut parts = vec![all];
    let leads = event.peer("local_leader").and_then(|(_, it)| it.world) == Some(me);
    let peers = match event.get("peer_comm") {
        Some((_, Meaning::Communicator { id: Some(id), .. })) => Some(*id),
        _ => None,
    };
    if let (true, Some(communicator), Some(tag)) = (leads, peers, event.number("tag")) {
        let other = peer(event, "remote_leader");
        parts.push(PartKind::Send {
            to: other,
            tag,
            communicator,
            mode: Mode::Standard,
            size: Size::default(),
        });
        parts.push(PartKind::Receive {
            from: other,
            tag: Some(tag),
            communicator,
            size: Size::default(),
            wildcard: None,
        });
    }
    parts
}

/// The step that a call on a window is, by its name without `MPI_`.
pub(crate) fn step(base: &str, event: &Resolved) -> Option<Step> {
    let target = || {
        event
            .peer("rank")
            .and_then(|(_, peer)| peer.world)
            .map(Some)
    };
    Some(match base {
        "Win_start" => Step::Start,
        "Win_complete" => Step::Complete,
        "Win_post" => Step::Post,
        "Win_wait" => Step::Wait,
        "Win_lock" => Step::Lock(target()?),
        "Win_unlock" => Step::Unlock(target()?),
        "Win_lock_all" => Step::Lock(None),
        "Win_unlock_all" => Step::Unlock(None),
        _ => return None,
    })
}

/// Whether all that opened a file together call it together, by its name without `MPI_`.
pub(crate) fn meets_in_a_file(base: &str) -> bool {
    let Some(rest) = base.strip_prefix("File_") else {
        return false;
    };
    const MEETINGS: [&str; 7] = [
        "close",
        "sync",
        "set_view",
        "set_size",
        "set_atomicity",
        "preallocate",
        "seek_shared",
    ];
    let is_all = rest.contains("_all") || rest.contains("_ordered");
    MEETINGS.contains(&rest) || is_all && !rest.starts_with('i')
}

/// What a call frees that is gone when it returns: of a request that runs, that is not so.
pub(crate) fn freed(base: &str, event: &Resolved) -> Option<(Resource, Vec<i64>)> {
    let resource = Resource::freed_by(base).filter(|it| *it != Resource::PersistentRequest)?;
    let arguments = event.annotated.arguments.as_deref()?.iter();
    let handles = arguments.filter_map(|it| match &it.value {
        Value::Handle(handle) if handle.name.is_none() => Some(handle.raw),
        _ => None,
    });
    Some((resource, handles.collect()))
}

/// Requests that a call names, in order.
pub(crate) fn requests(event: &Resolved) -> Named {
    if let Some(request) = event.handle("request") {
        return Named {
            handles: vec![request.raw],
            more: 0,
        };
    }
    match event.get("array_of_requests") {
        Some((Value::Handles(count, handles), _)) => Named {
            handles: handles.iter().map(|it| it.raw).collect(),
            more: more(*count, handles.len()),
        },
        _ => Named::default(),
    }
}

/// Whether all requests that a call names are `MPI_REQUEST_NULL`: it waits for nothing, and asks for nothing.
pub(crate) fn names_no_request(event: &Resolved) -> bool {
    let is_null = |it: &Handle| it.name.as_deref() == Some("MPI_REQUEST_NULL");
    if let Some(request) = event.handle("request") {
        return is_null(request);
    }
    match event.get("array_of_requests") {
        Some((Value::Handles(count, handles), _)) => {
            more(*count, handles.len()) == 0 && handles.iter().all(is_null)
        }
        _ => false,
    }
}

/// How many of an array were not recorded.
pub(crate) fn more(count: i64, recorded: usize) -> usize {
    usize::try_from(count).unwrap_or(0).saturating_sub(recorded)
}

fn peer(event: &Resolved, name: &str) -> Peer {
    match event.get(name) {
        Some((
            Value::Rank {
                name: Some("MPI_ANY_SOURCE"),
                ..
            },
            _,
        )) => Peer::Any,
        Some((
            Value::Rank {
                name: Some("MPI_PROC_NULL"),
                ..
            },
            _,
        )) => Peer::Nobody,
        Some((_, Meaning::Peer(peer))) => peer.world.map_or(Peer::Unknown, Peer::Task),
        _ => Peer::Unknown,
    }
}

fn size(event: &Resolved, (count, datatype): (&str, &str), types: &Datatypes) -> Size {
    let each = event.handle(datatype).and_then(|it| types.elements(it));
    let count = event.number(count);
    let times = each.as_ref().map_or(1, |it| it.count);
    Size {
        count: count.and_then(|it| it.checked_mul(times)),
        datatype: each.map(|it| it.unit),
    }
}

/// How much each neighbour is sent, if that is what each has to send, too: all members of a grid are neighbours of neighbours.
pub(crate) fn among_neighbours(stem: &str, event: &Resolved, types: &Datatypes) -> Size {
    if !matches!(stem, "neighbor_alltoall" | "neighbor_allgather") {
        return Size::default();
    }
    let sent = size(event, ("sendcount", "sendtype"), types);
    let received = size(event, ("recvcount", "recvtype"), types);
    match sent == received {
        true => received,
        false => Size::default(),
    }
}

/// How much all partitions are together: their number may differ on the two sides.
fn partitioned(event: &Resolved, types: &Datatypes) -> Size {
    let size = size(event, SINGLE, types);
    let partitions = event.number("partitions").unwrap_or(1);
    Size {
        count: size.count.and_then(|it| it.checked_mul(partitions)),
        ..size
    }
}

/// A send to `dest`.
fn send(event: &Resolved, tag: &str, mode: Mode, size: Size) -> Option<PartKind> {
    Some(PartKind::Send {
        to: peer(event, "dest"),
        tag: event.number(tag)?,
        communicator: event.communicator()?,
        mode,
        size,
    })
}

/// A receive from `source`.
fn receive(event: &Resolved, tag: &str, size: Size) -> Option<PartKind> {
    let tag = match event.get(tag)?.0 {
        Value::Tag(tag) => *tag,
        Value::Number(tag) => Some(*tag),
        _ => return None,
    };
    let from = peer(event, "source");
    Some(PartKind::Receive {
        from,
        tag,
        communicator: event.communicator()?,
        size,
        wildcard: (from == Peer::Any).then_some(Wildcard { tag }),
    })
}

/// Waits for what this would receive.
fn probe(receive: PartKind) -> PartKind {
    match receive {
        PartKind::Receive {
            from,
            tag,
            communicator,
            ..
        } => PartKind::Probe {
            from,
            tag,
            communicator,
        },
        other => other,
    }
}

/// How the collective operation of this name (lower case, blocking) waits; `None` if it is none.
fn shape(stem: &str) -> Option<Shape> {
    Some(match stem {
        "bcast" | "scatter" | "scatterv" => Shape::FromRoot,
        "reduce" | "gather" | "gatherv" => Shape::ToRoot,
        "scan" | "exscan" => Shape::Prefix,
        "neighbor_allgather"
        | "neighbor_allgatherv"
        | "neighbor_alltoall"
        | "neighbor_alltoallv"
        | "neighbor_alltoallw" => Shape::Neighbours,
        "barrier"
        | "allreduce"
        | "allgather"
        | "allgatherv"
        | "alltoall"
        | "alltoallv"
        | "alltoallw"
        | "reduce_scatter"
        | "reduce_scatter_block"
        | "comm_dup"
        | "comm_dup_with_info"
        | "comm_split"
        | "comm_split_type"
        | "comm_create"
        | "cart_create"
        | "cart_sub"
        | "graph_create"
        | "dist_graph_create"
        | "dist_graph_create_adjacent"
        | "file_open" => Shape::All,
        _ => return None,
    })
}

/// A share of a collective operation.
fn collective(
    base: &str,
    stem: &str,
    shape: Shape,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> PartKind {
    let (sent, received) = (("sendcount", "sendtype"), ("recvcount", "recvtype"));
    let at_root = event.peer("root").and_then(|(_, peer)| peer.world);
    // Where every member has to say the same, and what it says counts though its buffer may be in place.
    let counted = match stem {
        "bcast" | "allreduce" | "reduce" | "scan" | "exscan" => Some(SINGLE),
        "allgather" | "alltoall" => Some(received),
        "gather" if at_root == Some(me) => Some(received),
        "gather" => Some(sent),
        "scatter" if at_root == Some(me) => Some(sent),
        "scatter" => Some(received),
        "reduce_scatter_block" => Some(("recvcount", "datatype")),
        _ => None,
    };
    // Of intercommunicators, it may be the root's side that has nothing to say.
    let may_be_nothing = at_root.is_none() && matches!(stem, "gather" | "scatter");
    let size = match counted.map(|counted| size(event, counted, types)) {
        Some(size) if !may_be_nothing || !is_nothing(&size) => size,
        _ => Size::default(),
    };
    let root = event
        .peer("root")
        .map(|(rank, _)| rank)
        .or_else(|| root(event));
    PartKind::Collective(Collective {
        communicator: event.communicator(),
        name: format!("MPI_{base}").into(),
        shape,
        root,
        role: role(event),
        reduction: event
            .handle("op")
            .and_then(|it| it.name.as_deref())
            .map(Arc::from),
        terms: terms(stem, event),
        size,
        amounts: amounts(stem, event, types, me).map(Arc::new),
    })
}

/// What all members have to say alike, beside the root, the reduction and how much.
fn terms(stem: &str, event: &Resolved) -> Option<Arc<str>> {
    let names: &[&str] = match stem {
        "cart_create" => &["dims", "periods"],
        "graph_create" => &["nnodes"],
        "file_open" => &["amode"],
        _ => return None,
    };
    let said = names
        .iter()
        .map(|name| Some(format!("{name} {}", event.get(name)?.0)));
    let said: Option<Vec<String>> = said.collect();
    Some(said?.join("; ").into())
}

/// How much for whom, of operations in which that is in arrays: of the world only.
fn amounts(stem: &str, event: &Resolved, types: &Datatypes, me: u32) -> Option<Amounts> {
    let is_there = |buffer| {
        matches!(
            event.get(buffer),
            Some((Value::Buffer(Buffer::At(_) | Buffer::Null), _))
        )
    };
    let elements = |datatype| types.elements(event.handle(datatype)?);
    let each = |counts, datatype| {
        let elements = elements(datatype)?;
        let counts = whole(event, counts)?.iter();
        let counts: Option<Arc<[i64]>> = counts.map(|it| it.checked_mul(elements.count)).collect();
        Some(Amount::Each(counts?, elements.unit))
    };
    let same = |count, datatype| {
        let size = size(event, (count, datatype), types);
        Some(Amount::Same(size.count?, size.datatype?))
    };
    let found = match stem {
        "alltoallv" => Amounts {
            sent: is_there("sendbuf")
                .then(|| each("sendcounts", "sendtype"))
                .flatten(),
            expected: each("recvcounts", "recvtype"),
        },
        "allgatherv" | "gatherv" => Amounts {
            sent: is_there("sendbuf")
                .then(|| same("sendcount", "sendtype"))
                .flatten(),
            expected: each("recvcounts", "recvtype"),
        },
        "scatterv" => Amounts {
            sent: each("sendcounts", "sendtype"),
            expected: is_there("recvbuf")
                .then(|| same("recvcount", "recvtype"))
                .flatten(),
        },
        "reduce_scatter" => {
            let sent = each("recvcounts", "datatype");
            let own = sent.as_ref().and_then(|it| it.of(me));
            let expected = own.map(|(count, unit)| Amount::Same(count, unit.clone()));
            Amounts { sent, expected }
        }
        "dist_graph_create_adjacent" => {
            let edges = |ranks| Some(Amount::Edges(whole(event, ranks)?.into()));
            Amounts {
                sent: edges("destinations"),
                expected: edges("sources"),
            }
        }
        _ => return None,
    };
    (found != Amounts::default()).then_some(found)
}

/// What is wrong with a task's share of an operation between itself and itself, not in place: as many elements of one kind are sent
/// as are expected.
pub(crate) fn own_share(
    base: &str,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> Option<String> {
    let at_root = || event.peer("root").and_then(|(_, peer)| peer.world) == Some(me);
    let counts = match stem(base).0.as_str() {
        "allgather" | "alltoall" => true,
        "gather" | "scatter" => at_root(),
        _ => false,
    };
    let is_there = |buffer| matches!(event.get(buffer), Some((Value::Buffer(Buffer::At(_)), _)));
    if !counts || !is_there("sendbuf") || !is_there("recvbuf") {
        return None;
    }
    let sent = size(event, ("sendcount", "sendtype"), types);
    let expected = size(event, ("recvcount", "recvtype"), types);
    let (unit, other) = (sent.datatype?, expected.datatype?);
    let (sent, expected) = (sent.count?, expected.count?);
    let differ = match unit == other {
        true => sent != expected,
        false => sent != 0 && are_unlike((&unit, sent), (&other, expected)),
    };
    differ.then(|| format!("{sent} {unit} to send and {expected} {other} to receive"))
}

/// Whether a call may give an intercommunicator, whose sides need not send each other as much.
pub(crate) fn opens_between(base: &str) -> bool {
    matches!(
        base,
        "Intercomm_create"
            | "Intercomm_create_from_groups"
            | "Comm_spawn"
            | "Comm_spawn_multiple"
            | "Comm_get_parent"
            | "Comm_accept"
            | "Comm_connect"
            | "Comm_join"
    )
}

/// No elements, or of no type.
fn is_nothing(size: &Size) -> bool {
    size.count == Some(0)
        || size.datatype.as_ref().and_then(Unit::name) == Some("MPI_DATATYPE_NULL")
}

fn role(event: &Resolved) -> Role {
    match event.get("root") {
        Some((Value::Rank { name, .. }, _)) => match name {
            Some("MPI_ROOT") => Role::Root,
            Some("MPI_PROC_NULL") => Role::Bystander,
            _ => Role::Member,
        },
        _ => Role::Member,
    }
}

fn root(event: &Resolved) -> Option<i64> {
    let arguments: &[Argument] = event.annotated.arguments.as_deref()?;
    let root = arguments.iter().find(|it| it.name == "root")?;
    match root.value {
        Value::Rank { rank, name: None } | Value::Number(rank) => Some(rank),
        _ => None,
    }
}
