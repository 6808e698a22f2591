//! Calls of MPI with whatever arguments: a body for hostile input, which tests call with random and mutated bytes.
//!
//! The bytes are the calls of three tasks: which function, whether it comes back, and a value for each parameter, small
//! mostly. What nobody could have called is taken like everything else: nothing here may panic.

use crate::Waiting;
use lockstep_api::mpi::constants::{ANY_SOURCE, PROC_NULL};
use lockstep_api::mpi::{self, Does, Function, Kind};
use lockstep_check::{RuleChecker, Usage, loose_ends, mismatches};
use lockstep_comm::communicators::{Meaning, Peer, Resolved};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, Routine, Said, State, Windows,
    without_buffers,
};
use lockstep_trace::{Annotated, Argument, Buffer, Event, FunctionId, Handle, TraceName, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

const TASKS: u32 = 3;
/// Calls of a task.
const MOST: usize = 64;
/// Communicators whose members are known; windows come behind.
const COMMUNICATORS: u32 = 2;

/// What is called, without `MPI_`: what others could notice, and what makes or frees something.
fn bases() -> Vec<&'static str> {
    let all = mpi::functions().filter(|it| {
        !matches!(
            it.meaning().does,
            Does::Query | Does::Local | Does::OwnData | Does::Convert | Does::Other
        )
    });
    all.map(|it| it.base).collect()
}

/// The two bytes by which a task calls this function, and comes back from it; with another name it says no more.
#[must_use]
pub fn chosen(base: &str) -> [u8; 2] {
    let all = bases();
    let at = all.iter().position(|it| *it == base);
    [at.unwrap_or(all.len()) as u8, 0]
}

/// The function that these bytes choose, in one of its forms; `None` where the task says no more.
fn choice(all: &[&str], [number, form]: [u8; 2]) -> Option<String> {
    let base = all.get(usize::from(number) % (all.len() + 1))?;
    let (first, rest) = base.split_at(1);
    let other = match form % 4 {
        1 => format!("MPI_I{}{rest}", first.to_ascii_lowercase()),
        2 => format!("MPI_{base}_init"),
        3 => format!("MPI_{base}_c"),
        _ => String::new(),
    };
    let is_one = Function::of(other.as_bytes()).is_some();
    Some(if is_one { other } else { format!("MPI_{base}") })
}

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
        Kind::Peer | Kind::Root | Kind::NewPeer => {
            let rank = bytes.number()?;
            let name = match rank {
                -1 => Some(ANY_SOURCE),
                -2 => Some(PROC_NULL),
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
fn speak(said: &mut Said<RuleChecker>, bytes: &mut Bytes<'_>) -> Option<()> {
    let all = bases();
    for index in 0..MOST {
        let chosen = [bytes.byte()?, bytes.byte()?];
        let name = choice(&all, chosen)?;
        let function = Function::of(name.as_bytes())?;
        let index = 2 * index as u64;
        let call = resolved(&function, index, false, bytes)?;
        let comes_back = chosen[1] < 0xf0;
        let given = match comes_back {
            true => Some(resolved(&function, index + 1, true, bytes)?),
            false => None,
        };
        said.exchange(&Routine::of(&name), &call, given.as_ref());
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
    let mut usages = BTreeMap::new();
    for task in 0..TASKS {
        let world = Some(CommunicatorId(0));
        let made = Windows::new(COMMUNICATORS);
        let mut said = Said::new(TraceName::new(task, 0), made, world);
        let _ = speak(&mut said, &mut bytes);
        let (mut conversation, made, rules) = said.into_told();
        usages.insert(task, Usage::from(rules));
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
    let _ = loose_ends(&tasks, &usages, &membership, &matching);
    let _ = without_buffers(&tasks, &membership, &matching);
}
