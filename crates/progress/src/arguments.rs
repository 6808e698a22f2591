//! Arguments that MPI forbids whatever the others do: negative counts, ranks and roots that nobody has, tags below 0, null
//! handles, reductions of datatypes that they are not for, predefined objects that are freed.
//!
//! *Guarantees*: only what is significant at the caller is judged: not the sizes of operations that may be in place, nor
//! anything of a message to nobody. Rules are those of MPI 4.1 (3.2, 6.9.2, 7.4); a tag above `MPI_TAG_UB` is not
//! known to be one. *Costs*: O(arguments) a call.

use lockstep_trace::mpi::Kind;
use lockstep_trace::{Argument, Meaning, Resolved, Value};

/// What is wrong with the arguments of a call, by its name without `MPI_`: `count -1`.
pub(crate) fn wrong(base: &str, event: &Resolved) -> Option<String> {
    let arguments = event.annotated.arguments.as_deref()?;
    let name = |it: &Argument| match &it.value {
        Value::Rank { name, .. } => *name,
        _ => None,
    };
    let is_nobody = |it: &Argument| name(it) == Some("MPI_PROC_NULL");
    // To nobody, or the root's group in an intercommunicator: nothing else counts.
    if arguments.iter().any(is_nobody) {
        return None;
    }
    let meanings = event.meanings.iter();
    let each = arguments.iter().zip(meanings);
    let found = each.filter(|(it, _)| is_significant(base, it));
    let mut found = found.filter_map(|(it, meaning)| argument((base, event), it, meaning));
    found
        .next()
        .or_else(|| reduction(base, event))
        .or_else(|| access(event))
}

/// What is put into a window, or got from one, that is not what is there: of predefined datatypes alone (MPI 4.1, 12.3.1).
fn access(event: &Resolved) -> Option<String> {
    let is_nothing = |it: &str| it == "MPI_NO_OP";
    if event
        .handle("op")
        .and_then(|it| it.name.as_deref())
        .is_some_and(is_nothing)
    {
        return None;
    }
    let end = |count, datatype| {
        let name = event.handle(datatype)?.name.as_deref()?;
        Some((event.number(count)?, name, sort(name)?))
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
fn is_significant(base: &str, argument: &Argument) -> bool {
    let stem = base.trim_start_matches('I').to_ascii_lowercase();
    let families = ["gather", "scatter", "allgather", "alltoall", "neighbor_"];
    let may_differ = families.iter().any(|it| stem.starts_with(it));
    let is_size = matches!(argument.kind, Kind::Int | Kind::Datatype);
    // Only leaders have to know of each other; what is added with MPI_NO_OP has no origin.
    let of_leader = matches!(argument.name, "peer_comm" | "remote_leader");
    let of_origin = argument.name.starts_with("origin_") && stem.contains("accumulate");
    !(may_differ && is_size || of_leader || of_origin)
}

fn argument((base, event): (&str, &Resolved), it: &Argument, meaning: &Meaning) -> Option<String> {
    let sends = matches!(it.name, "dest" | "target_rank");
    match (&it.value, it.kind) {
        (Value::Number(count), Kind::Int) => {
            let counts = it.name.ends_with("count") || it.name == "blocklength";
            let is_amiss = match it.name {
                // One way of access, no more and no less: both libraries have these numbers. What is only read is not made.
                "amode" => {
                    let (ways, makes) = (count & (2 | 4 | 8), count & (1 | 64) != 0);
                    ways.count_ones() != 1 || ways == 2 && makes || ways == 8 && count & 256 != 0
                }
                // MPI_UNDEFINED has a name.
                "color" => *count < 0,
                _ => counts && *count < 0,
            };
            is_amiss.then(|| format!("{} {count}", it.name))
        }
        (Value::Rank { name: None, rank }, Kind::Peer | Kind::Root)
        | (Value::Number(rank), Kind::Peer | Kind::Root) => match meaning {
            Meaning::Peer(peer) => {
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
            (sends && matches!(*name, "MPI_ANY_SOURCE" | "MPI_UNDEFINED")).then(told)
        }
        (Value::Tag(Some(tag)), _) => (*tag < 0).then(|| format!("{} {tag}", it.name)),
        (Value::Tag(None), _) => {
            let is_send = it.name == "tag" && base.to_ascii_lowercase().contains("send");
            (it.name == "sendtag" || is_send).then(|| format!("{} MPI_ANY_TAG", it.name))
        }
        (Value::Handle(handle), kind) => {
            // MPICH's is no pointer to anything, and has no name.
            let no_file = matches!(kind, Kind::File | Kind::FileAt) && handle.raw == 0;
            let name = handle.name.as_deref();
            let name = name.or(no_file.then_some("MPI_FILE_NULL"))?;
            let is_null = match kind {
                Kind::Comm | Kind::CommAt => name == "MPI_COMM_NULL",
                Kind::Datatype | Kind::DatatypeAt => name == "MPI_DATATYPE_NULL",
                Kind::Op | Kind::OpAt => name == "MPI_OP_NULL",
                Kind::Window | Kind::WindowAt => name == "MPI_WIN_NULL",
                Kind::Group => name == "MPI_GROUP_NULL",
                Kind::File | Kind::FileAt => name == "MPI_FILE_NULL",
                _ => false,
            };
            let frees = matches!(
                base,
                "Comm_free" | "Comm_disconnect" | "Type_free" | "Op_free"
            );
            match (is_null, frees) {
                (true, _) => Some(name.to_owned()),
                (false, true) => Some(format!("{name}, which is predefined")),
                (false, false) => None,
            }
        }
        (Value::Numbers(_, ranks), _) if base == "Group_incl" || base == "Group_excl" => {
            let mut before = (1..).zip(ranks);
            let again = before.find(|(at, rank)| ranks.iter().skip(*at).any(|it| it == *rank));
            again.map(|(_, rank)| format!("rank {rank} twice"))
        }
        (Value::Numbers(_, sizes), _) if base == "Cart_create" && it.name == "dims" => {
            let nodes = sizes.iter().try_fold(1i64, |all, it| all.checked_mul(*it));
            let ranks = event.meanings.iter().find_map(|it| match it {
                Meaning::Communicator { size, .. } => *size,
                _ => None,
            });
            let ranks = i64::from(ranks?);
            let fits = sizes.iter().all(|it| *it >= 0) && nodes.is_some_and(|it| it <= ranks);
            (!fits).then(|| format!("dims {sizes:?}, where there are {ranks} ranks"))
        }
        _ => None,
    }
}

/// Kinds of predefined datatypes (MPI 4.1, 6.9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Integer,
    Floating,
    Complex,
    Logical,
    Byte,
    /// A value and its place.
    Pair,
}

fn sort(datatype: &str) -> Option<Sort> {
    let name = datatype.strip_prefix("MPI_")?;
    Some(match name {
        "BYTE" => Sort::Byte,
        "C_BOOL" | "CXX_BOOL" | "LOGICAL" => Sort::Logical,
        "FLOAT" | "DOUBLE" | "LONG_DOUBLE" | "REAL" | "DOUBLE_PRECISION" | "REAL4" | "REAL8"
        | "REAL16" => Sort::Floating,
        "FLOAT_INT" | "DOUBLE_INT" | "LONG_INT" | "2INT" | "SHORT_INT" | "LONG_DOUBLE_INT"
        | "2REAL" | "2DOUBLE_PRECISION" | "2INTEGER" => Sort::Pair,
        _ if name.contains("COMPLEX") => Sort::Complex,
        "SHORT" | "INT" | "LONG" | "LONG_LONG" | "LONG_LONG_INT" | "UNSIGNED" | "INTEGER"
        | "UNSIGNED_SHORT" | "UNSIGNED_LONG" | "UNSIGNED_LONG_LONG" | "AINT" | "OFFSET"
        | "COUNT" | "INT8_T" | "INT16_T" | "INT32_T" | "INT64_T" | "UINT8_T" | "UINT16_T"
        | "UINT32_T" | "UINT64_T" => Sort::Integer,
        _ => return None,
    })
}

/// A predefined reduction of a datatype that it is not for.
fn reduction(base: &str, event: &Resolved) -> Option<String> {
    let op = event.handle("op")?.name.as_deref()?;
    let datatype = event
        .handle("datatype")
        .or(event.handle("target_datatype"))?;
    let datatype = datatype.name.as_deref()?;
    let of_accumulate = base.contains("ccumulate") || base == "Fetch_and_op";
    let fits = fits(op, datatype, of_accumulate)?;
    (!fits).then(|| format!("{op} of {datatype}"))
}

/// Whether a predefined reduction is for a predefined datatype; `None` of what is not known.
fn fits(op: &str, datatype: &str, of_accumulate: bool) -> Option<bool> {
    let sort = sort(datatype)?;
    Some(match op.strip_prefix("MPI_")? {
        "MAX" | "MIN" => matches!(sort, Sort::Integer | Sort::Floating),
        "SUM" | "PROD" => matches!(sort, Sort::Integer | Sort::Floating | Sort::Complex),
        "LAND" | "LOR" | "LXOR" => matches!(sort, Sort::Integer | Sort::Logical),
        "BAND" | "BOR" | "BXOR" => matches!(sort, Sort::Integer | Sort::Byte),
        "MAXLOC" | "MINLOC" => sort == Sort::Pair,
        "REPLACE" | "NO_OP" => of_accumulate,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn reductions_are_for_some_datatypes() {
        let of = |op, datatype| fits(op, datatype, false);
        assert_eq!(of("MPI_SUM", "MPI_DOUBLE"), Some(true));
        assert_eq!(of("MPI_SUM", "MPI_C_DOUBLE_COMPLEX"), Some(true));
        assert_eq!(of("MPI_MAX", "MPI_C_DOUBLE_COMPLEX"), Some(false));
        assert_eq!(of("MPI_MAXLOC", "MPI_DOUBLE"), Some(false));
        assert_eq!(of("MPI_MAXLOC", "MPI_DOUBLE_INT"), Some(true));
        assert_eq!(of("MPI_BAND", "MPI_FLOAT"), Some(false));
        assert_eq!(of("MPI_BOR", "MPI_BYTE"), Some(true));
        assert_eq!(of("MPI_LOR", "MPI_C_BOOL"), Some(true));
        assert_eq!(of("MPI_REPLACE", "MPI_INT"), Some(false));
        assert_eq!(fits("MPI_REPLACE", "MPI_INT", true), Some(true));
        // Libraries take characters, too.
        assert_eq!(of("MPI_SUM", "MPI_CHAR"), None);
        assert_eq!(of("0x1234", "MPI_INT"), None);
    }
}
