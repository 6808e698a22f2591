//! Calls of MPI with whatever arguments: a body for hostile input, which tests call with random and mutated bytes.
//!
//! The bytes are the calls of three tasks: which function, whether it comes back, and a value for each parameter, small
//! mostly. What nobody could have called is taken like everything else: nothing here may panic.

use crate::conversation::Said;
use crate::message::{CommunicatorId, Conversation, Membership, State};
use crate::routines::Routine;
use crate::windows::Windows;
use crate::{Matching, Waiting, loose_ends, mismatches, without_buffers};
use lockstep_api::mpi::{Function, Kind};
use lockstep_trace::{
    Annotated, Argument, Buffer, Event, FunctionId, Handle, Meaning, Peer, Resolved, TraceName,
    Value,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const TASKS: u32 = 3;
/// Calls of a task.
const MOST: usize = 64;
/// Communicators whose members are known; windows come behind.
const COMMUNICATORS: u32 = 2;

/// What is called.
const NAMES: [&str; 57] = [
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Bsend",
    "MPI_Rsend",
    "MPI_Recv",
    "MPI_Sendrecv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Send_init",
    "MPI_Recv_init",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Request_free",
    "MPI_Probe",
    "MPI_Iprobe",
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Gather",
    "MPI_Scan",
    "MPI_Comm_dup",
    "MPI_Intercomm_create",
    "MPI_Comm_free",
    "MPI_Type_contiguous",
    "MPI_Type_vector",
    "MPI_Type_indexed",
    "MPI_Type_create_struct",
    "MPI_Type_create_subarray",
    "MPI_Type_free",
    "MPI_Win_create",
    "MPI_Win_free",
    "MPI_Win_fence",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_lock",
    "MPI_Win_lock_all",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
    "MPI_Win_flush",
    "MPI_Put",
    "MPI_Get",
    "MPI_Accumulate",
    "MPI_Rput",
    "MPI_File_open",
    "MPI_File_close",
];

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Something small, or eight bytes as they are.
    fn number(&mut self) -> Option<i64> {
        let first = self.byte()?;
        if first < 0xf0 {
            return Some(i64::from(first % 12) - 2);
        }
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*word))
    }

    /// An array: how many there are said to be, and those that are there.
    fn numbers(&mut self) -> Option<(i64, Vec<i64>)> {
        let count = self.number()?;
        let here = usize::try_from(count).unwrap_or(0).min(8);
        let numbers = (0..here).map(|_| self.number());
        Some((count, numbers.collect::<Option<_>>()?))
    }
}

fn peer(rank: i64) -> Peer {
    Peer {
        communicator: Some(CommunicatorId(0)),
        world: u32::try_from(rank).ok(),
        size: None,
    }
}

/// A value for a parameter, and what it stands for.
fn value(kind: Kind, bytes: &mut Bytes<'_>) -> Option<(Value, Meaning)> {
    let handle = |raw: i64| Handle {
        raw,
        name: match (kind, raw.rem_euclid(3)) {
            (Kind::Datatype | Kind::Datatypes, 0) => Some("MPI_INT".to_owned()),
            (Kind::Datatype | Kind::Datatypes, 1) => Some("MPI_DOUBLE".to_owned()),
            _ => None,
        },
    };
    let plain = |value| (value, Meaning::Plain);
    Some(match kind {
        Kind::Ignored => plain(Value::Omitted),
        Kind::Buffer => plain(match bytes.number()? {
            0 => Value::Buffer(Buffer::Null),
            1 => Value::Buffer(Buffer::InPlace),
            at => Value::Buffer(Buffer::At(at as u64)),
        }),
        Kind::Peer | Kind::Root => {
            let rank = bytes.number()?;
            let name = match rank {
                -1 => Some("MPI_ANY_SOURCE"),
                -2 => Some("MPI_PROC_NULL"),
                _ => None,
            };
            (Value::Rank { rank, name }, Meaning::Peer(peer(rank)))
        }
        Kind::Tag => plain(Value::Tag(
            bytes.number().map(|it| (it != -1).then_some(it))?,
        )),
        Kind::Comm | Kind::CommAt => {
            let raw = bytes.number()?;
            let id = u32::try_from(raw).ok().filter(|it| *it < COMMUNICATORS);
            let meaning = Meaning::Communicator {
                id: id.map(CommunicatorId),
                size: None,
            };
            (Value::Handle(handle(raw)), meaning)
        }
        Kind::Requests | Kind::Datatypes => {
            let (count, handles) = bytes.numbers()?;
            plain(Value::Handles(
                count,
                handles.into_iter().map(handle).collect(),
            ))
        }
        Kind::Ints
        | Kind::Results
        | Kind::Places
        | Kind::Displacements
        | Kind::Ranges
        | Kind::Shares
        | Kind::Dimensions => {
            let (count, numbers) = bytes.numbers()?;
            plain(Value::Numbers(count, numbers))
        }
        Kind::Status => {
            let [source, tag, bytes] = [bytes.number()?, bytes.number()?, bytes.number()?];
            (
                Value::Status(source, tag, bytes),
                Meaning::Peer(peer(source)),
            )
        }
        Kind::Statuses => {
            let (count, sources) = bytes.numbers()?;
            let peers = sources.iter().map(|it| Some(peer(*it))).collect();
            let statuses = sources.into_iter().map(|it| (it, it)).collect();
            (Value::Statuses(count, statuses), Meaning::Peers(peers))
        }
        Kind::Int
        | Kind::Long
        | Kind::Distance
        | Kind::NewKeyval
        | Kind::KeyvalAt
        | Kind::Result
        | Kind::ResultCount
        | Kind::Flag => plain(Value::Number(bytes.number()?)),
        _ => plain(Value::Handle(handle(bytes.number()?))),
    })
}

/// What a call is given, or gives back.
fn resolved(
    function: &Function,
    index: u64,
    gives: bool,
    bytes: &mut Bytes<'_>,
) -> Option<Resolved> {
    let mut arguments = Vec::new();
    let mut meanings = Vec::new();
    let parameters = function.parameters();
    for it in parameters.filter(|it| it.kind.is_result() == gives) {
        let (value, meaning) = value(it.kind, bytes)?;
        arguments.push(Argument {
            name: it.name,
            kind: it.kind,
            value,
        });
        meanings.push(meaning);
    }
    Some(Resolved {
        annotated: Annotated {
            index,
            inferred: false,
            event: match gives {
                true => Event::Return,
                false => Event::Call(FunctionId(0)),
            },
            symbols: 0,
            arguments: Some(arguments.into()),
            line: None,
        },
        function: None,
        meanings,
    })
}

/// Some calls; `None` where the bytes end.
fn speak(said: &mut Said, bytes: &mut Bytes<'_>) -> Option<()> {
    for index in 0..MOST {
        let chosen = bytes.byte()?;
        // The number behind the last: this task says no more.
        let name = NAMES.get(usize::from(chosen) % (NAMES.len() + 1))?;
        let function = Function::of(name.as_bytes())?;
        let index = 2 * index as u64;
        let call = resolved(&function, index, false, bytes)?;
        let comes_back = chosen < 0xf0;
        let given = match comes_back {
            true => Some(resolved(&function, index + 1, true, bytes)?),
            false => None,
        };
        said.exchange(&Routine::of(name), &call, given.as_ref());
        if given.is_none() {
            break;
        }
    }
    Some(())
}

/// What three tasks say, and all that is found in it.
pub fn calls(input: &[u8]) {
    let mut bytes = Bytes(input);
    let mut windows = Windows::new(COMMUNICATORS);
    let mut tasks: BTreeMap<u32, Conversation> = BTreeMap::new();
    for task in 0..TASKS {
        let world = Some(CommunicatorId(0));
        let made = Windows::new(COMMUNICATORS);
        let mut said = Said::new(TraceName::new(task, 0), made, world);
        let _ = speak(&mut said, &mut bytes);
        let (mut conversation, made) = said.into_told();
        windows.adopt(&made, &mut conversation);
        conversation.state = match (conversation.pending.is_empty(), conversation.finalized) {
            (false, _) => State::Waiting,
            (true, true) => State::Finished,
            (true, false) => State::Ended,
        };
        tasks.insert(task, conversation);
    }
    let everybody: Arc<[u32]> = (0..TASKS).collect();
    let known = (0..COMMUNICATORS).map(|_| Some(everybody.clone()));
    let members = windows.parents().map(|_| Some(everybody.clone()));
    let membership = Membership {
        members: known.chain(members).collect(),
        ..Membership::default()
    };
    let matching = Matching::new(&tasks);
    let wrong = mismatches(&tasks, &membership, &matching);
    let _ = Waiting::new(&tasks, &membership, &matching, &wrong);
    let _ = loose_ends(&tasks, &membership, &matching);
    let _ = without_buffers(&tasks, &membership, &matching);
}
