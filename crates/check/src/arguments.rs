//! Arguments that MPI forbids whatever the others do: negative counts, ranks and roots that nobody has, tags below 0, null
//! handles, reductions of datatypes that they are not for, predefined objects that are freed.
//!
//! *Guarantees*: only what is significant at the caller is judged: not the sizes of operations that may be in place, nor
//! anything of a message to nobody. Rules are those of MPI 4.1 (3.2, 6.9.2, 7.4); a tag above `MPI_TAG_UB` is not
//! known to be one. *Costs*: O(arguments) a call.

use lockstep_api::mpi::constants::{
    ANY_SOURCE, ANY_TAG, FILE_NULL, MODE_CREATE, MODE_EXCL, MODE_RDONLY, MODE_RDWR,
    MODE_SEQUENTIAL, MODE_WRONLY, PROC_NULL, UNDEFINED, is_null,
};
use lockstep_api::mpi::predefined::{Datatype, NO_OP, Sort};
use lockstep_api::mpi::{Access, Counts, Does, Grouping, Kind, Making, Meaning, Resource};
use lockstep_comm::communicators::{Meaning as Meant, Resolved};
use lockstep_trace::{Argument, Handle, Value};

/// What is wrong with the arguments of a call: `count -1`.
pub(crate) fn wrong(meaning: Meaning, event: &Resolved) -> Option<String> {
    let arguments = event.annotated.arguments.as_deref()?;
    let name = |it: &Argument| match &it.value {
        Value::Rank { name, .. } => *name,
        _ => None,
    };
    let is_nobody = |it: &Argument| name(it) == Some(PROC_NULL);
    // To nobody, or the root's group in an intercommunicator: nothing else counts.
    if arguments.iter().any(is_nobody) {
        return None;
    }
    let each = arguments.iter().zip(&event.meanings);
    let found = each.filter(|(it, _)| is_significant(meaning.does, it));
    let mut found = found.filter_map(|(it, meant)| argument((meaning, event), it, meant));
    found
        .next()
        .or_else(|| reduction(meaning.does, event))
        .or_else(|| access(event))
}

/// What is put into a window, or got from one, that is not what is there: of predefined datatypes alone (MPI 4.1, 12.3.1).
fn access(event: &Resolved) -> Option<String> {
    let reduction = event.handle("op").and_then(|it| it.name.as_deref());
    if reduction == Some(NO_OP) {
        return None;
    }
    let end = |count, datatype| {
        let name = event.handle(datatype)?.name.as_deref()?;
        let sort = Datatype::named(name)?.sort;
        (sort.is_certain()).then_some((event.number(count)?, name, sort))
    };
    let (count, origin, of_origin) = end("origin_count", "origin_datatype")?;
    let (at_target, target, of_target) = end("target_count", "target_datatype")?;
    // Bytes are bytes of anything, to many a program.
    let differ = match origin == target {
        true => count != at_target,
        false => of_origin != of_target && ![of_origin, of_target].contains(&Sort::Byte),
    };
    differ.then(|| format!("{count} {origin} for {at_target} {target} of the target"))
}

/// Whether an argument counts wherever the call is made.
fn is_significant(does: Does, argument: &Argument) -> bool {
    use Counts::{BlockEach, Each, EachReceived, EachSent, EachTyped, OneBlock};
    let may_differ = matches!(
        does,
        Does::Collective(
            _,
            OneBlock | BlockEach | Each | EachReceived | EachSent | EachTyped
        )
    );
    let is_size = matches!(argument.kind, Kind::Int | Kind::Datatype);
    // Only leaders have to know of each other; what is added with MPI_NO_OP has no origin.
    let of_leader = matches!(argument.name, "peer_comm" | "remote_leader");
    let of_origin = argument.name.starts_with("origin_")
        && matches!(
            does,
            Does::Access(Access::Accumulate | Access::GetAccumulate)
        );
    !(may_differ && is_size || of_leader || of_origin)
}

fn argument(
    (meaning, event): (Meaning, &Resolved),
    it: &Argument,
    meant: &Meant,
) -> Option<String> {
    let does = meaning.does;
    let sends = matches!(it.name, "dest" | "target_rank");
    match (&it.value, it.kind) {
        (Value::Number(count), Kind::Int) => {
            let counts = it.name.ends_with("count") || it.name == "blocklength";
            let is_amiss = match it.name {
                // One way of access, no more and no less. What is only read is not made.
                "amode" => {
                    let ways = count & (MODE_RDONLY | MODE_WRONLY | MODE_RDWR);
                    let has = |modes: i64| count & modes != 0;
                    ways.count_ones() != 1
                        || ways == MODE_RDONLY && has(MODE_CREATE | MODE_EXCL)
                        || ways == MODE_RDWR && has(MODE_SEQUENTIAL)
                }
                // MPI_UNDEFINED has a name.
                "color" => *count < 0,
                _ => counts && *count < 0,
            };
            is_amiss.then(|| format!("{} {count}", it.name))
        }
        (Value::Rank { name: None, rank }, Kind::Peer | Kind::Root)
        | (Value::Number(rank), Kind::Peer | Kind::Root) => match meant {
            Meant::Peer(peer) => {
                let size = i64::from(peer.size?);
                let told = || format!("{} {rank}, where there are {size} ranks", it.name);
                (*rank >= size).then(told)
            }
            _ => (*rank < 0).then(|| format!("{} {rank}", it.name)),
        },
        (
            Value::Rank {
                name: Some(name), ..
            },
            Kind::Peer,
        ) => {
            let told = || format!("{} {name}", it.name);
            (sends && [ANY_SOURCE, UNDEFINED].contains(name)).then(told)
        }
        (Value::Tag(Some(tag)), _) => (*tag < 0).then(|| format!("{} {tag}", it.name)),
        (Value::Tag(None), _) => {
            let is_sent = it.name == "sendtag" || it.name == "tag" && meaning.sends();
            is_sent.then(|| format!("{} {ANY_TAG}", it.name))
        }
        (Value::Handle(handle), kind) => of_handle(does, handle, kind),
        (Value::Numbers(_, ranks), _)
            if matches!(does, Does::Group(Grouping::Include | Grouping::Exclude)) =>
        {
            let mut before = (1..).zip(ranks);
            let again = before.find(|(at, rank)| ranks.iter().skip(*at).any(|it| it == *rank));
            again.map(|(_, rank)| format!("rank {rank} twice"))
        }
        (Value::Numbers(_, sizes), _)
            if does == Does::Communicator(Making::Grid) && it.name == "dims" =>
        {
            let nodes = sizes.iter().try_fold(1i64, |all, it| all.checked_mul(*it));
            let ranks = event.meanings.iter().find_map(|it| match it {
                Meant::Communicator { size, .. } => *size,
                _ => None,
            });
            let ranks = i64::from(ranks?);
            let fits = sizes.iter().all(|it| *it >= 0) && nodes.is_some_and(|it| it <= ranks);
            (!fits).then(|| format!("dims {sizes:?}, where there are {ranks} ranks"))
        }
        _ => None,
    }
}

/// Whether a handle of a file is null; that of MPICH is no pointer to anything, and has no name.
pub(crate) fn is_no_file(handle: &Handle) -> bool {
    handle.raw == 0 || handle.name.as_deref() == Some(FILE_NULL)
}

/// A null handle, or one of what is predefined and freed.
fn of_handle(does: Does, handle: &Handle, kind: Kind) -> Option<String> {
    let no_file = matches!(kind, Kind::File | Kind::FileAt) && is_no_file(handle);
    let name = handle.name.as_deref();
    let name = name.or(no_file.then_some(FILE_NULL))?;
    let is_null = kind != Kind::GroupAt && Resource::used(kind).is_some() && is_null(name);
    let frees = matches!(
        does,
        Does::Free(Resource::Communicator | Resource::Datatype | Resource::Reduction)
    );
    match (is_null, frees) {
        (true, _) => Some(name.to_owned()),
        (false, true) => Some(format!("{name}, which is predefined")),
        (false, false) => None,
    }
}

/// A predefined reduction of a datatype that it is not for.
fn reduction(does: Does, event: &Resolved) -> Option<String> {
    let op = event.handle("op")?.name.as_deref()?;
    let datatype = event
        .handle("datatype")
        .or(event.handle("target_datatype"))?;
    let name = datatype.name.as_deref()?;
    let accumulates = matches!(
        does,
        Does::Access(Access::Accumulate | Access::GetAccumulate | Access::FetchAndOp)
    );
    let fits = Datatype::named(name)?.is_for(op, accumulates)?;
    (!fits).then(|| format!("{op} of {name}"))
}
