//! Messages that were sent and not received, beside those that are waited for in vain: to another task,
//! from another, or in another communicator; and persistent requests that nobody started.

use crate::{Loose, LooseEnd};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, PartId, PartKind, Peer, Unstarted,
};
use std::collections::BTreeMap;

/// A message that a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// Who waits.
    pub by: u32,
    /// For whose message.
    pub from: u32,
    /// With which tag; `None`: any.
    pub tag: Option<i64>,
    /// In which communicator.
    pub communicator: CommunicatorId,
    /// Whether another message would do as well.
    pub or_another: bool,
}

impl Awaited {
    /// Whether this is a send of it.
    #[must_use]
    pub fn is_met_by(&self, kind: &PartKind) -> bool {
        match kind {
            PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } => {
                let is_there = (*to, *communicator) == (self.by, self.communicator);
                is_there && self.tag.is_none_or(|it| it == *tag)
            }
            _ => false,
        }
    }

    /// The persistent send of it that the other waited for itself while it did not run.
    #[must_use]
    pub fn unstarted<'a>(&self, tasks: &'a BTreeMap<u32, Conversation>) -> Option<&'a Unstarted> {
        let mut unstarted = tasks.get(&self.from)?.unstarted.iter();
        unstarted.find(|it| self.is_met_by(&it.0))
    }
}

/// A message that nobody received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Who sent it.
    pub from: u32,
    /// To whom.
    pub to: u32,
    /// With which tag.
    pub tag: i64,
    /// In which communicator.
    pub communicator: CommunicatorId,
    /// Whether the sender waits for that.
    pub is_open: bool,
    /// The operation of the sender.
    pub operation: usize,
}

impl Stray {
    /// Whether it is what is awaited, but in another communicator: sent by that task, or by who has its rank there.
    #[must_use]
    pub fn is_elsewhere(&self, awaited: &Awaited, members: &Membership) -> bool {
        let rank =
            |task: u32, of: CommunicatorId| members.members(of)?.iter().position(|it| *it == task);
        let has_its_rank = || {
            let asked = rank(awaited.from, awaited.communicator);
            asked.is_some() && asked == rank(self.from, self.communicator)
        };
        self.communicator != awaited.communicator
            && self.to == awaited.by
            && awaited.tag.is_none_or(|it| it == self.tag)
            && (self.from == awaited.from || has_its_rank())
    }

    /// Whether it may have been meant for who waits, with one mistake: another sender, another receiver, or another
    /// communicator. A message in which two of these differ has nothing to do with the wait.
    #[must_use]
    pub fn may_be(&self, awaited: &Awaited) -> bool {
        let is_within = self.communicator == awaited.communicator;
        let is_alike = match (self.from == awaited.from, self.to == awaited.by) {
            (true, true) => true,
            (false, true) => is_within,
            (true, false) => is_within && self.to != self.from && !awaited.or_another,
            (false, false) => false,
        };
        is_alike && awaited.tag == Some(self.tag)
    }
}

/// All such messages, some of each sender.
#[must_use]
pub fn strays(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> Vec<Stray> {
    let mut found = Vec::new();
    for (&task, conversation) in tasks {
        let parts = conversation.parts.iter().enumerate();
        let of_task = parts.filter_map(|(index, part)| match part.kind {
            PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } if matching.partner(PartId { task, part: index }).is_none() => Some(Stray {
                from: task,
                to,
                tag,
                communicator,
                is_open: !conversation.operations[part.operation].returned,
                operation: part.operation,
            }),
            _ => None,
        });
        found.extend(of_task.take(MOST));
    }
    found
}

/// Kept of each sender.
const MOST: usize = 64;

/// The first wait of a receiver for a persistent receive that did not run, and that would have taken the message.
#[must_use]
pub fn unstarted_receive<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    loose: &Loose,
) -> Option<(u32, &'a Unstarted)> {
    let LooseEnd::NeverReceived { to, tag, .. } = loose.end else {
        return None;
    };
    let is_it = |kind: &PartKind| match kind {
        PartKind::Receive {
            from, tag: awaited, ..
        } => {
            let is_from = match from {
                Peer::Task(from) => loose.tasks.contains(from),
                Peer::Any => true,
                Peer::Nobody | Peer::Unknown => false,
            };
            is_from && awaited.is_none_or(|it| it == tag)
        }
        _ => false,
    };
    let mut unstarted = tasks.get(&to)?.unstarted.iter();
    Some((to, unstarted.find(|it| is_it(&it.0))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_comm::job::receive;
    use lockstep_trace::TraceName;

    #[test]
    fn a_message_may_be_what_is_wanted_with_one_mistake() {
        let awaited = |or_another| Awaited {
            by: 1,
            from: 0,
            tag: Some(3),
            communicator: CommunicatorId(0),
            or_another,
        };
        let stray = |from, to, tag, communicator| Stray {
            from,
            to,
            tag,
            communicator: CommunicatorId(communicator),
            is_open: false,
            operation: 0,
        };
        let may_be = |it: Stray| [false, true].map(|any| it.may_be(&awaited(any)));
        // Another communicator, receiver or sender.
        assert_eq!(may_be(stray(0, 1, 3, 7)), [true, true]);
        assert_eq!(may_be(stray(0, 2, 3, 0)), [true, false]);
        assert_eq!(may_be(stray(2, 1, 3, 0)), [true, true]);
        // Another tag; two of these; all of them; to itself.
        assert_eq!(may_be(stray(0, 1, 4, 7)), [false, false]);
        assert_eq!(may_be(stray(0, 2, 3, 7)), [false, false]);
        assert_eq!(may_be(stray(2, 1, 3, 7)), [false, false]);
        assert_eq!(may_be(stray(2, 3, 3, 7)), [false, false]);
        assert_eq!(may_be(stray(0, 0, 3, 0)), [false, false]);
    }

    #[test]
    fn a_wait_for_what_was_not_started_explains_a_message_that_fits() {
        let kind = receive(Peer::Task(1), Some(3));
        let conversation = Conversation {
            unstarted: vec![(kind, "MPI_Wait".into(), TraceName::new(2, 0), 7)],
            ..Conversation::default()
        };
        let tasks = [(2, conversation)].into();
        let found = |from: u32, to: u32, tag: i64| {
            let loose = Loose {
                tasks: vec![from],
                end: LooseEnd::NeverReceived {
                    name: "MPI_Start".to_owned(),
                    to,
                    tag,
                },
                first: None,
                site: None,
                times: 1,
            };
            unstarted_receive(&tasks, &loose).map(|(task, it)| (task, it.3))
        };
        assert_eq!(found(1, 2, 3), Some((2, 7)));
        assert_eq!(found(1, 2, 4), None);
        assert_eq!(found(0, 2, 3), None);
        assert_eq!(found(1, 0, 3), None);
    }
}
