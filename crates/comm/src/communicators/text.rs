//! Arguments with what they stand for, in words: `dest=1 (world 5)`, `comm=#2 {0,2,4,6}`.

use super::communicator::{Communicator, CommunicatorId, Members, Origin};
use super::known::Communicators;
use super::resolved::{Meaning, Peer, Resolved};
use lockstep_api::mpi::constants::{COMM_SELF, COMM_WORLD};
use lockstep_trace::{Argument, Value};
use std::fmt::{self, Display, Formatter};

/// Displays the arguments of an event: `(count=1, dest=3)`.
#[derive(Debug)]
pub struct Shown<'a> {
    communicators: &'a Communicators,
    arguments: &'a [Argument],
    meanings: &'a [Meaning],
}

impl Communicators {
    /// An event's arguments, to be displayed.
    #[must_use]
    pub fn show<'a>(&'a self, event: &'a Resolved) -> Shown<'a> {
        Shown {
            communicators: self,
            arguments: event.annotated.arguments.as_deref().unwrap_or(&[]),
            meanings: &event.meanings,
        }
    }

    /// `MPI_COMM_WORLD`, `#2 {0,2,4,6}`.
    #[must_use]
    pub fn name(&self, id: CommunicatorId) -> String {
        let Some(it) = self.get(id) else {
            return "unknown".to_owned();
        };
        match (it.origin, self.number(id)) {
            (Origin::World, _) => COMM_WORLD.to_owned(),
            (Origin::Own, _) => COMM_SELF.to_owned(),
            (_, number) => format!("#{}{}", number.unwrap_or(0), members(it)),
        }
    }

    /// Whether a rank is the rank in the world, as the call itself says.
    fn is_plain(&self, peer: Peer) -> bool {
        let communicator = peer.communicator.and_then(|id| self.get(id));
        communicator.is_some_and(|it| it.origin == Origin::World)
    }

    fn peer(&self, peer: Option<Peer>) -> String {
        match peer {
            Some(peer) if self.is_plain(peer) => String::new(),
            Some(Peer {
                world: Some(world), ..
            }) => format!(" (world {world})"),
            Some(_) => " (world ?)".to_owned(),
            None => String::new(),
        }
    }
}

fn members(it: &Communicator) -> String {
    if it.sides.iter().all(|side| side.ranks.is_empty()) {
        return String::new();
    }
    let sides: Vec<String> = it.sides.iter().map(in_short).collect();
    format!(" {{{}}}", sides.join(" | "))
}

/// `0-3,7,?`: in the order of the ranks, runs in short.
fn in_short(members: &Members) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = members.ranks.as_slice();
    while let Some(first) = rest.first() {
        let run = |at: &usize| match first {
            Some(first) => rest.get(*at) == Some(&Some(first + *at as u32)),
            None => rest.get(*at) == Some(&None),
        };
        let length = (1..=rest.len()).find(|at| !run(at)).unwrap_or(1);
        parts.push(match (first, length) {
            (None, 1) => "?".to_owned(),
            (None, length) => format!("{length} unknown"),
            (Some(first), 1) => first.to_string(),
            (Some(first), 2) => format!("{first},{}", first + 1),
            (Some(first), length) => format!("{first}-{}", first + length as u32 - 1),
        });
        rest = &rest[length..];
    }
    if members.size.is_none() {
        parts.push("..".to_owned());
    }
    parts.join(",")
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (index, (name, text)) in self.texts().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={text}")?;
        }
        f.write_str(")")
    }
}

impl Shown<'_> {
    /// The arguments that were recorded, without buffers and arrays: `(count=1, dest=3)`.
    #[must_use]
    pub fn in_short(&self) -> String {
        let recorded = self.arguments.iter().map(|it| it.value.is_shown());
        let texts = self.texts().zip(recorded).filter(|(_, is_there)| *is_there);
        let texts: Vec<String> = texts
            .map(|((name, text), _)| format!("{name}={text}"))
            .collect();
        format!("({})", texts.join(", "))
    }

    /// The texts of the arguments, by name.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let meanings = self
            .meanings
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None));
        let texts = self.arguments.iter().zip(meanings);
        texts.map(|(argument, meaning)| (argument.name, self.text(argument, meaning)))
    }

    fn text(&self, argument: &Argument, meaning: Option<&Meaning>) -> String {
        match (&argument.value, meaning) {
            (_, Some(Meaning::Communicator { id: Some(id), .. })) => self.communicators.name(*id),
            (Value::Status(source, tag, bytes), Some(Meaning::Peer(peer))) => format!(
                "(source={source}{}, tag={tag}, bytes={bytes})",
                self.communicators.peer(Some(*peer))
            ),
            (value, Some(Meaning::Peer(peer))) => {
                format!("{value}{}", self.communicators.peer(Some(*peer)))
            }
            (Value::Statuses(count, statuses), Some(Meaning::Peers(peers))) => {
                let shown = statuses.iter().zip(peers).map(|((source, tag), peer)| {
                    let peer = self.communicators.peer(*peer);
                    format!("(source={source}{peer}, tag={tag})")
                });
                let mut shown: Vec<String> = shown.collect();
                if *count > shown.len() as i64 {
                    shown.push(format!(".. {count} in all"));
                }
                format!("[{}]", shown.join(", "))
            }
            (value, _) => value.to_string(),
        }
    }
}
