//! Talks that are made up, of ranks in the world.

use super::*;
use std::num::NonZeroU64;

const WORLD: CommunicatorId = CommunicatorId(0);

fn contact(begun: u64, over: u64, what: What) -> Contact {
    Contact {
        begun,
        over: NonZeroU64::new(over),
        is_by_request: false,
        what,
    }
}

fn message(peer: u32, bytes: Option<u64>) -> Message {
    Message {
        peer,
        tag: 7,
        communicator: WORLD,
        bytes,
        number: None,
    }
}

pub(crate) fn send(begun: u64, to: u32) -> Contact {
    contact(begun, begun + 1, What::Send(message(to, Some(begun))))
}

pub(crate) fn receive(begun: u64, over: u64, from: u32) -> Contact {
    contact(begun, over, What::Receive(message(from, None)))
}

pub(crate) fn share(begun: u64, over: u64) -> Contact {
    let share = Share {
        communicator: WORLD,
        name: "MPI_Barrier".into(),
        makes: false,
        root: None,
        bytes: Some((0, 0)),
        ways: Some((true, true)),
    };
    contact(begun, over, What::Share(share))
}

/// Of one thread a rank.
pub(crate) fn talk(contacts: Vec<Vec<Contact>>) -> Talk {
    let names = (0..contacts.len() as u32).map(|rank| TraceName::new(rank, 0));
    let mut talk = Talk {
        names: names.collect(),
        contacts,
        ..Talk::default()
    };
    talk.number(&Doubts::default());
    talk
}
