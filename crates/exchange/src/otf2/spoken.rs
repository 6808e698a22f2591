//! Score-P's records of communication: who is in which communicator, messages, and shares of collective operations.
//!
//! ```text
//! definitions  paradigm MPI; a group of the locations that speak for the ranks; for each communicator a group of places in that one
//! events       ENTER MPI_Isend     MPI_ISEND               LEAVE    ENTER MPI_Wait    MPI_ISEND_COMPLETE    LEAVE
//!              ENTER MPI_Irecv     MPI_IRECV_REQUEST       LEAVE    ENTER MPI_Wait    MPI_IRECV             LEAVE
//!              ENTER MPI_Bcast     MPI_COLLECTIVE_BEGIN                               MPI_COLLECTIVE_END    LEAVE
//! ```
//! A record is left out, and counted, where one of its fields is not known. A request is the number of its contact.

#[cfg(test)]
mod tests;

use super::record::{Definitions, Record};
use super::{PARADIGM_MPI, definition, event};
use lockstep_comm::Talk;
use lockstep_comm::communicators::{Communicator, CommunicatorId, Origin};
use lockstep_comm::talk::{Contact, Share, What};
use lockstep_trace::Thread;
use rustc_hash::FxHashMap;
use std::io;

/// What groups are, for older versions and for newer ones: the locations of a paradigm, and some of these.
const LOCATIONS: (u8, u8) = (6, 4);
const SOME_OF_THEM: (u8, u8) = (4, 5);
/// A paradigm of processes.
const OF_PROCESSES: u8 = 0;
const NO_FLAGS: u64 = 0;

/// Collective operations by what follows `MPI_` or `MPI_I`; each has its number.
const OPERATIONS: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "reduce_scatter_block",
];
/// The one that makes a communicator.
const CREATE_HANDLE: u8 = 17;

fn operation(share: &Share) -> Option<u8> {
    if share.makes {
        return Some(CREATE_HANDLE);
    }
    let name = share.name.strip_prefix("MPI_")?.to_ascii_lowercase();
    let name = name.strip_suffix("_init").unwrap_or(&name);
    let is_one = |it: &&str| *it == name || name.strip_prefix('i') == Some(it);
    let found = OPERATIONS.iter().position(is_one);
    found.and_then(|it| u8::try_from(it).ok())
}

/// What communication refers to.
pub(super) struct Spoken<'a> {
    /// The locations that speak for ranks, and the places of ranks among them, by job and rank.
    locations: Vec<u64>,
    /// Communicators all of whose members are among them: their numbers, and those of ranks in them by their ranks in the world.
    numbers: FxHashMap<CommunicatorId, u64>,
    ranks: FxHashMap<(CommunicatorId, u32), u32>,
    defined: Vec<(&'a Communicator, Vec<u64>)>,
    /// Records that were left out.
    pub left_out: u64,
}

impl<'a> Spoken<'a> {
    pub fn new(threads: &[&Thread], talk: &'a Talk) -> Self {
        let mut locations = Vec::new();
        let mut places: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        let mut job_of: FxHashMap<CommunicatorId, u32> = FxHashMap::default();
        for (location, thread) in (0..).zip(threads) {
            let process = thread.name.process;
            let contacts = talk.of(thread.name);
            for contact in contacts {
                job_of.insert(communicator(contact), process.job);
            }
            if !contacts.is_empty() {
                places
                    .entry((process.job, process.rank))
                    .or_insert_with(|| {
                        locations.push(location);
                        locations.len() as u64 - 1
                    });
            }
        }
        let mut spoken = Self {
            locations,
            numbers: FxHashMap::default(),
            ranks: FxHashMap::default(),
            defined: Vec::new(),
            left_out: 0,
        };
        for it in talk.communicators().all() {
            let (Some(job), [side]) = (job_of.get(&it.id), it.sides.as_slice()) else {
                continue;
            };
            let place = |rank: &Option<u32>| places.get(&(*job, (*rank)?)).copied();
            let members: Option<Vec<u64>> = side.ranks.iter().map(place).collect();
            let Some(members) = members.filter(|_| side.size == Some(side.ranks.len() as u32))
            else {
                continue;
            };
            spoken.numbers.insert(it.id, spoken.defined.len() as u64);
            let ranks = side.ranks.iter().flatten().zip(0..);
            spoken
                .ranks
                .extend(ranks.map(|(world, rank)| ((it.id, *world), rank)));
            spoken.defined.push((it, members));
        }
        spoken
    }

    /// Writes the definitions.
    pub fn define(&self, all: &mut Definitions) -> io::Result<()> {
        if self.locations.is_empty() {
            return Ok(());
        }
        let name = all.string("MPI")?;
        let mut record = Record::new();
        record.byte(PARADIGM_MPI).number(name).byte(OF_PROCESSES);
        all.add(definition::PARADIGM, &record)?;
        let group = |all: &mut Definitions, number: u64, (old, kind), members: &[u64]| {
            let mut record = Record::new();
            // The empty name is the first string. What older versions did not have stands at the end.
            record.number(number).number(0).byte(old);
            record.number(members.len() as u64);
            for member in members {
                record.number(*member);
            }
            record.byte(kind).byte(PARADIGM_MPI).number(NO_FLAGS);
            all.add(definition::SET, &record)
        };
        group(all, 0, LOCATIONS, &self.locations)?;
        for (number, (communicator, members)) in (0..).zip(&self.defined) {
            group(all, number + 1, SOME_OF_THEM, members)?;
            let name = match communicator.origin {
                Origin::World => "MPI_COMM_WORLD",
                Origin::Own => "MPI_COMM_SELF",
                _ => "",
            };
            let name = all.string(name)?;
            let parent = communicator.parent.and_then(|it| self.numbers.get(&it));
            let mut record = Record::new();
            record.number(number).number(name).number(number + 1);
            record.optional(parent.copied()).number(NO_FLAGS);
            all.add(definition::COMMUNICATOR, &record)?;
        }
        Ok(())
    }

    /// The record of a contact where it begins, or where it is over, if there is one.
    pub fn record(&mut self, (number, contact): (u32, &Contact), begins: bool) -> Option<Vec<u8>> {
        use What::{Receive, Send, Share};
        let (kind, is_whole) = match (&contact.what, contact.is_by_request, begins) {
            (Send(_), false, true) => (event::SEND, true),
            (Send(_), true, true) => (event::ISEND, true),
            (Send(_), true, false) => (event::ISEND_COMPLETE, false),
            (Receive(_), true, true) => (event::IRECV_REQUEST, false),
            (Receive(_), false, false) => (event::RECEIVE, true),
            (Receive(_), true, false) => (event::IRECV, true),
            (Share(_), false, true) => (event::COLLECTIVE_BEGIN, false),
            (Share(_), false, false) => (event::COLLECTIVE_END, true),
            (Share(_), true, true) => (event::ICOLLECTIVE_REQUEST, false),
            (Share(_), true, false) => (event::ICOLLECTIVE_COMPLETE, true),
            (Send(_), false, false) | (Receive(_), false, true) => return None,
        };
        let Some(fields) = self.fields(&contact.what) else {
            self.left_out += u64::from(is_whole);
            return None;
        };
        let mut record = if is_whole { fields } else { Record::new() };
        if contact.is_by_request {
            record.number(number.into());
        }
        Some(match kind {
            event::ISEND_COMPLETE | event::IRECV_REQUEST => record.short(kind),
            _ => record.framed(kind),
        })
    }

    /// What is told of it; `None` where some of that is not known.
    fn fields(&self, what: &What) -> Option<Record> {
        let mut record = Record::new();
        match what {
            What::Send(it) | What::Receive(it) => {
                let rank = *self.ranks.get(&(it.communicator, it.peer))?;
                record.number(rank.into());
                record.number(*self.numbers.get(&it.communicator)?);
                record.number(u32::try_from(it.tag).ok()?.into());
                record.number(it.bytes?);
            }
            What::Share(it) => {
                let (sent, received) = it.bytes?;
                record.byte(operation(it)?);
                record.number(*self.numbers.get(&it.communicator)?);
                record.optional(it.root.map(u64::from));
                record.number(sent).number(received);
            }
        }
        Some(record)
    }
}

const fn communicator(contact: &Contact) -> CommunicatorId {
    match &contact.what {
        What::Send(it) | What::Receive(it) => it.communicator,
        What::Share(it) => it.communicator,
    }
}
