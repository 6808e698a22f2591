//! From the name and the recorded arguments of one MPI call to the parts that it begins, and what else it is.

use crate::communicators::{Meaning as Meant, Resolved};
use crate::datatypes::{Datatypes, Unit, are_unlike, whole};
use crate::message::{
    Amount, Amounts, Collective, CommunicatorId, PartKind, Peer, Role, Size, Step, Wildcard,
};
use crate::requests::Named;
use crate::routines::Routine;
use lockstep_api::mpi::constants::{ANY_SOURCE, PROC_NULL, REQUEST_NULL, ROOT};
use lockstep_api::mpi::predefined::DATATYPE_NULL;
use lockstep_api::mpi::{
    Counts, Does, Epoch, FileUse, Form, Making, Meaning, Mode, Resource, Shape,
};
use lockstep_trace::{Argument, Buffer, Handle, Value};
use std::sync::Arc;

/// Arguments that say how much.
type Counted = (&'static str, &'static str);

const SINGLE: Counted = ("count", "datatype");
const SENT: Counted = ("sendcount", "sendtype");
const RECEIVED: Counted = ("recvcount", "recvtype");

/// What a call begins by itself; `None` where that is nothing that others could notice.
pub fn begun(
    routine: &Routine,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> Option<Vec<PartKind>> {
    let Meaning { does, form, .. } = routine.meaning;
    let send = |tag, mode, counted| send(event, tag, mode, size(event, counted, types));
    let receive = |tag, counted| receive(event, tag, size(event, counted, types));
    let both = |sent, received| {
        let sent = send("sendtag", Mode::Standard, sent);
        sent.into_iter().chain(receive("recvtag", received))
    };
    let part = match (does, form) {
        (Does::Send(mode), _) => send("tag", mode, SINGLE),
        (Does::Receive, _) => receive("tag", SINGLE),
        (Does::SendReceive, _) => return Some(both(SENT, RECEIVED).collect()),
        (Does::Replace, _) => return Some(both(SINGLE, SINGLE).collect()),
        (Does::PartitionedSend, _) => {
            self::send(event, "tag", Mode::Standard, partitioned(event, types))
        }
        (Does::PartitionedReceive, _) => self::receive(event, "tag", partitioned(event, types)),
        // A matched probe takes the message: what receives it later waits for nothing.
        (Does::MatchedProbe, Form::Blocking) => receive("tag", SINGLE),
        (Does::Probe, Form::Blocking) => receive("tag", SINGLE).map(probe),
        // Complete when it is waited for, whatever the others do.
        (
            Does::MatchedReceive
            | Does::Access(_)
            | Does::File(_)
            | Does::Communicator(Making::Copy),
            Form::Nonblocking,
        ) => Some(PartKind::Own),
        _ => Some(collective(routine, event, (types, me))?),
    };
    Some(part.into_iter().collect())
}

/// A share of an operation of all members that has no arguments to compare.
pub fn everybody(communicator: Option<CommunicatorId>, routine: &Routine) -> PartKind {
    PartKind::Collective(Collective {
        communicator,
        name: routine.name.clone(),
        meaning: routine.meaning,
        root: None,
        role: Role::Member,
        reduction: None,
        terms: None,
        size: Size::default(),
        amounts: None,
        in_place: false,
    })
}

/// What a probe that does not wait asks for.
pub fn probed(event: &Resolved) -> Option<PartKind> {
    receive(event, "tag", Size::default()).map(probe)
}

/// What a matched probe that does not wait receives, if there is a message.
pub fn matched(event: &Resolved) -> Option<PartKind> {
    receive(event, "tag", Size::default())
}

/// What `MPI_Intercomm_create` is: a meeting of the local group, whose leader exchanges messages with the other one.
pub fn introduction(routine: &Routine, event: &Resolved, me: u32) -> Vec<PartKind> {
    let mut all = everybody(event.communicator(), routine);
    if let PartKind::Collective(share) = &mut all {
        share.root = event.peer("local_leader").map(|(rank, _)| rank);
    }
    let mut parts = vec![all];
    let leads = event.peer("local_leader").and_then(|(_, it)| it.world) == Some(me);
    let peers = match event.get("peer_comm") {
        Some((_, Meant::Communicator { id: Some(id), .. })) => Some(*id),
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

/// The step that others could notice of an epoch.
pub fn step(epoch: Epoch, event: &Resolved) -> Option<Step> {
    let target = || Some(Some(event.peer("rank")?.1.world?));
    Some(match epoch {
        Epoch::Start => Step::Start,
        Epoch::Complete => Step::Complete,
        Epoch::Post => Step::Post,
        Epoch::Wait => Step::Wait,
        Epoch::Lock => Step::Lock(target()?),
        Epoch::Unlock => Step::Unlock(target()?),
        Epoch::LockAll => Step::Lock(None),
        Epoch::UnlockAll => Step::Unlock(None),
        _ => return None,
    })
}

/// What a call frees that is gone when it returns: of a request that runs, that is not so.
pub fn freed(meaning: Meaning, event: &Resolved) -> Option<(Resource, Vec<i64>)> {
    let resource = meaning
        .frees()
        .filter(|it| *it != Resource::PersistentRequest)?;
    let arguments = event.annotated.arguments.as_deref()?.iter();
    let handles = arguments.filter_map(|it| match &it.value {
        Value::Handle(handle) if handle.name.is_none() => Some(handle.raw),
        _ => None,
    });
    Some((resource, handles.collect()))
}

/// Requests that a call names, in order.
pub fn requests(event: &Resolved) -> Named {
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
pub fn names_no_request(event: &Resolved) -> bool {
    let is_null = |it: &Handle| it.name.as_deref() == Some(REQUEST_NULL);
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
pub fn more(count: i64, recorded: usize) -> usize {
    usize::try_from(count).unwrap_or(0).saturating_sub(recorded)
}

fn peer(event: &Resolved, name: &str) -> Peer {
    match event.get(name) {
        Some((
            Value::Rank {
                name: Some(ANY_SOURCE),
                ..
            },
            _,
        )) => Peer::Any,
        Some((
            Value::Rank {
                name: Some(PROC_NULL),
                ..
            },
            _,
        )) => Peer::Nobody,
        Some((_, Meant::Peer(peer))) => peer.world.map_or(Peer::Unknown, Peer::Task),
        _ => Peer::Unknown,
    }
}

fn size(event: &Resolved, (count, datatype): Counted, types: &Datatypes) -> Size {
    let each = event.handle(datatype).and_then(|it| types.elements(it));
    let count = event.number(count);
    let times = each.as_ref().map_or(1, |it| it.count);
    Size {
        count: count.and_then(|it| it.checked_mul(times)),
        datatype: each.map(|it| it.unit),
    }
}

/// How much each neighbour is sent, if that is what each has to send, too: all members of a grid are neighbours of neighbours.
pub fn among_neighbours(does: Does, event: &Resolved, types: &Datatypes) -> Size {
    let sent = size(event, SENT, types);
    let are_alike = is_of_blocks(does) && sent == size(event, RECEIVED, types);
    if are_alike { sent } else { Size::default() }
}

/// Whether members say how much a block is that one of them sends another.
pub fn is_of_blocks(does: Does) -> bool {
    matches!(
        does,
        Does::Collective(_, Counts::OneBlock | Counts::BlockEach)
    )
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

/// A share of a collective operation; `None` if it is none.
fn collective(
    routine: &Routine,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> Option<PartKind> {
    let (does, shape) = (routine.meaning.does, routine.meaning.shape()?);
    let at_root = event.peer("root").and_then(|(_, peer)| peer.world);
    // Where every member has to say the same, and what it says counts though its buffer may be in place.
    let counted = match does {
        Does::Collective(_, Counts::Same) => Some(SINGLE),
        Does::Collective(_, Counts::ResultBlock) => Some(("recvcount", "datatype")),
        _ if !is_of_blocks(does) => None,
        _ => match (shape, at_root == Some(me)) {
            (Shape::All, _) | (Shape::ToRoot, true) | (Shape::FromRoot, false) => Some(RECEIVED),
            (Shape::ToRoot, false) | (Shape::FromRoot, true) => Some(SENT),
            (Shape::Prefix | Shape::Neighbours, _) => None,
        },
    };
    // Of intercommunicators, it may be the root's side that has nothing to say.
    let may_be_nothing = at_root.is_none() && shape != Shape::All && is_of_blocks(does);
    let size = match counted.map(|counted| size(event, counted, types)) {
        Some(size) if !may_be_nothing || !is_nothing(&size) => size,
        _ => Size::default(),
    };
    let root = event
        .peer("root")
        .map(|(rank, _)| rank)
        .or_else(|| root(event));
    Some(PartKind::Collective(Collective {
        communicator: event.communicator(),
        name: routine.name.clone(),
        meaning: routine.meaning,
        root,
        role: role(event),
        reduction: event
            .handle("op")
            .and_then(|it| it.name.as_deref())
            .map(Arc::from),
        terms: terms(does, event),
        size,
        amounts: amounts(does, event, types, me).map(Arc::new),
        in_place: is_in_place(event),
    }))
}

fn is_in_place(event: &Resolved) -> bool {
    let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
    let is_one = |it: &Argument| matches!(it.value, Value::Buffer(Buffer::InPlace));
    arguments.iter().any(is_one)
}

/// What all members have to say alike, beside the root, the reduction and how much.
fn terms(does: Does, event: &Resolved) -> Option<Arc<str>> {
    let names: &[&str] = match does {
        Does::Communicator(Making::Grid) => &["dims", "periods"],
        Does::Communicator(Making::Graph) => &["nnodes"],
        Does::File(FileUse::Open) => &["amode"],
        _ => return None,
    };
    let said = names
        .iter()
        .map(|name| Some(format!("{name} {}", event.get(name)?.0)));
    let said: Option<Vec<String>> = said.collect();
    Some(said?.join("; ").into())
}

/// How much for whom, of operations in which that is in arrays: of the world only.
fn amounts(does: Does, event: &Resolved, types: &Datatypes, me: u32) -> Option<Amounts> {
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
    let same = |counted| {
        let size = size(event, counted, types);
        Some(Amount::Same(size.count?, size.datatype?))
    };
    let edges = |ranks| Some(Amount::Edges(whole(event, ranks)?.into()));
    let (sends, receives) = (is_there("sendbuf"), is_there("recvbuf"));
    let (sent, expected) = match does {
        Does::Collective(Shape::Neighbours, _) => return None,
        Does::Collective(_, Counts::Each) => (
            each("sendcounts", "sendtype").filter(|_| sends),
            each("recvcounts", "recvtype"),
        ),
        Does::Collective(_, Counts::EachReceived) => {
            (same(SENT).filter(|_| sends), each("recvcounts", "recvtype"))
        }
        Does::Collective(_, Counts::EachSent) => (
            each("sendcounts", "sendtype"),
            same(RECEIVED).filter(|_| receives),
        ),
        Does::Collective(_, Counts::EachResult) => {
            let sent = each("recvcounts", "datatype");
            let own = sent.as_ref().and_then(|it| it.of(me));
            let expected = own.map(|(count, unit)| Amount::Same(count, unit.clone()));
            (sent, expected)
        }
        Does::Communicator(Making::AdjacentGraph) => (edges("destinations"), edges("sources")),
        _ => return None,
    };
    let found = Amounts { sent, expected };
    (found != Amounts::default()).then_some(found)
}

/// What is wrong with a task's share of an operation between itself and itself, not in place: as many elements of one kind are sent
/// as are expected.
pub fn own_share(
    meaning: Meaning,
    event: &Resolved,
    (types, me): (&Datatypes, u32),
) -> Option<String> {
    let at_root = || event.peer("root").and_then(|(_, peer)| peer.world) == Some(me);
    let counts = is_of_blocks(meaning.does)
        && match meaning.shape()? {
            Shape::All => true,
            Shape::ToRoot | Shape::FromRoot => at_root(),
            Shape::Prefix | Shape::Neighbours => false,
        };
    let is_there = |buffer| matches!(event.get(buffer), Some((Value::Buffer(Buffer::At(_)), _)));
    if !counts || !is_there("sendbuf") || !is_there("recvbuf") {
        return None;
    }
    let (sent, expected) = (size(event, SENT, types), size(event, RECEIVED, types));
    let (unit, other) = (sent.datatype?, expected.datatype?);
    let (sent, expected) = (sent.count?, expected.count?);
    let differ = match unit == other {
        true => sent != expected,
        false => sent != 0 && are_unlike((&unit, sent), (&other, expected)),
    };
    differ.then(|| format!("{sent} {unit} to send and {expected} {other} to receive"))
}

/// Whether a call may give an intercommunicator, whose sides need not send each other as much.
pub fn opens_between(does: Does) -> bool {
    use Making::{Accept, Between, BetweenGroups, Connect, Join, Parent, Spawn, SpawnMultiple};
    matches!(
        does,
        Does::Communicator(
            Accept | Between | BetweenGroups | Connect | Join | Parent | Spawn | SpawnMultiple
        )
    )
}

/// No elements, or of no type.
fn is_nothing(size: &Size) -> bool {
    size.count == Some(0) || size.datatype.as_ref().and_then(Unit::name) == Some(DATATYPE_NULL)
}

fn role(event: &Resolved) -> Role {
    match event.get("root") {
        Some((Value::Rank { name, .. }, _)) => match name {
            Some(ROOT) => Role::Root,
            Some(PROC_NULL) => Role::Bystander,
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
