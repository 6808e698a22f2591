//! Small jobs, written down for tests: which task called what, and whether it came back.

use crate::communicators::{Meaning, Resolved};
use crate::conversation::{Conversation, State};
use crate::membership::Membership;
use crate::message::*;
use lockstep_trace::{Annotated, Argument, Event, FunctionId};
use std::collections::BTreeMap;
use std::sync::Arc;

const WORLD: CommunicatorId = CommunicatorId(0);

#[derive(Default)]
pub struct Job(pub BTreeMap<u32, Conversation>);

pub fn send(to: u32, tag: i64, mode: Mode) -> PartKind {
    PartKind::Send {
        to: Peer::Task(to),
        tag,
        communicator: WORLD,
        mode,
        size: Size::default(),
    }
}

pub fn receive(from: Peer, tag: Option<i64>) -> PartKind {
    PartKind::Receive {
        from,
        tag,
        communicator: WORLD,
        size: Size::default(),
        wildcard: (from == Peer::Any).then_some(Wildcard { tag }),
    }
}

pub fn collective(name: &str, root: Option<i64>) -> PartKind {
    PartKind::Collective(Collective {
        communicator: Some(WORLD),
        name: name.into(),
        meaning: lockstep_api::mpi::meaning(name),
        root,
        role: Role::Member,
        reduction: None,
        terms: None,
        size: Size::default(),
        amounts: None,
        in_place: false,
    })
}

/// A recorded call, none of whose arguments stands for a task or a communicator.
pub fn resolved(arguments: Vec<Argument>) -> Resolved {
    Resolved {
        function: None,
        meanings: arguments.iter().map(|_| Meaning::Plain).collect(),
        annotated: Annotated {
            index: 0,
            inferred: false,
            event: Event::Call(FunctionId(0)),
            symbols: 0,
            arguments: Some(arguments.into()),
            line: None,
        },
    }
}

impl Job {
    /// A call that begins parts and waits for all of them; `done` if it returned.
    pub fn call(&mut self, task: u32, name: &str, kinds: Vec<PartKind>, done: bool) -> &mut Self {
        let conversation = self.0.entry(task).or_default();
        let operation = conversation.operations.len();
        let first = conversation.parts.len();
        let parts = kinds.into_iter().map(|kind| Part {
            operation,
            kind,
            complete: done,
            completed_at: None,
        });
        conversation.parts.extend(parts);
        let waits = Waits::All((first..conversation.parts.len()).collect());
        conversation.operations.push(Operation {
            name: name.into(),
            event: operation as u64,
            returned: done,
            waits,
        });
        if !done {
            conversation.pending.push(operation);
        }
        conversation.state = if done { State::Running } else { State::Waiting };
        self
    }

    pub fn end(&mut self, task: u32, state: State) -> &mut Self {
        self.0.entry(task).or_default().state = state;
        self
    }

    pub fn members(&self) -> Membership {
        let everybody: Arc<[u32]> = self.0.keys().copied().collect();
        Membership {
            members: vec![Some(everybody)],
            ..Membership::default()
        }
    }
}
