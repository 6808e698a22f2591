//! Messages that were sent and not received, beside those that are waited for in vain: to another task,
//! from another, or in another communicator; and persistent sends that nobody started.

use crate::waits::{Wait, Waiting, Why};
use lockstep_check::{Loose, LooseEnd};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, PartId, PartKind, Peer, Unstarted,
};
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// A message that nobody received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stray {
    pub from: u32,
    pub to: u32,
    pub tag: i64,
    pub communicator: CommunicatorId,
    /// Whether the sender waits for that.
    pub is_open: bool,
    /// The operation of the sender.
    pub operation: usize,
}

impl Stray {
    /// Whether it may have been meant for who waits, but for its communicator.
    fn is_for(&self, wait: &Wait) -> bool {
        let (Why::Message(Some(tag)) | Why::OtherTag(tag, _)) = wait.why else {
            return false;
        };
        (self.from, self.to, self.tag) == (wait.to, wait.from, tag)
    }

    /// The communicator in which such a message is waited for, if that is another one.
    pub(crate) fn elsewhere(&self, wait: &Wait) -> Option<CommunicatorId> {
        let awaited = wait.communicator?;
        (self.is_for(wait) && awaited != self.communicator).then_some(awaited)
    }

    /// Whether it was sent by the rank that is asked for, to whom asks, in another communicator: there somebody else has this rank.
    pub(crate) fn is_asked_for_elsewhere(&self, wait: &Wait, members: &Membership) -> bool {
        let rank =
            |task: u32, of: CommunicatorId| members.members(of)?.iter().position(|it| *it == task);
        let Some(awaited) = wait.communicator.filter(|it| *it != self.communicator) else {
            return false;
        };
        let asked = rank(wait.to, awaited);
        let is_meant = matches!(wait.why, Why::Message(tag) if tag.is_none_or(|it| it == self.tag));
        is_meant
            && self.to == wait.from
            && asked.is_some()
            && asked == rank(self.from, self.communicator)
    }

    pub(crate) fn is_within(&self, wait: &Wait) -> bool {
        Some(self.communicator) == wait.communicator
    }

    /// Whether it may have been meant for who waits, with one mistake: another sender, another receiver, or another
    /// communicator. A message in which two of these differ has nothing to do with the wait.
    pub(crate) fn may_be_for(&self, wait: &Wait) -> bool {
        let is_to = self.to == wait.from;
        let is_alike = match (self.from == wait.to, is_to) {
            (true, true) => true,
            (false, true) => self.is_within(wait),
            (true, false) => self.is_within(wait) && self.to != self.from && !wait.or_another,
            (false, false) => false,
        };
        is_alike && matches!(wait.why, Why::Message(Some(tag)) if tag == self.tag)
    }
}

/// A message that nobody received, and that may have been meant for those who hang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreceived {
    /// Who sent it.
    pub from: u32,
    /// What it did: `sent rank 1 a message with tag 3 of #2 {0-3} that nobody received`.
    pub sentence: String,
    /// The operation of the sender.
    pub(crate) operation: usize,
}

/// The calls of messages that may have been meant for those who wait, trace and event.
pub(crate) fn calls<'a>(
    strays: &'a [Stray],
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
    members: &'a Membership,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let is_other = |it: &Stray, wait: &Wait| match &wait.why {
        Why::OtherTag(_, tags) => {
            (it.from, it.to) == (wait.to, wait.from)
                && it.is_within(wait)
                && tags.as_slice() == [it.tag]
        }
        _ => false,
    };
    let is_meant = move |it: &&Stray| {
        let mut waits = waiting.waits.iter();
        waits.any(|wait| {
            let is_of_it = wait.to == it.from && wait.is_for_message();
            it.is_for(wait)
                || is_other(it, wait)
                || is_of_it
                || it.is_asked_for_elsewhere(wait, members)
        })
    };
    let strays = strays.iter().filter(is_meant).take(MOST_LOCATED);
    strays.filter_map(|it| tasks.get(&it.from)?.call(it.operation))
}

/// So many of them get their line.
const MOST_LOCATED: usize = 8;

/// All such messages, some of each sender.
pub(crate) fn strays(tasks: &BTreeMap<u32, Conversation>, matching: &Matching) -> Vec<Stray> {
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

/// The persistent send of what a task waits for that the other waited for itself while it did not run.
pub(crate) fn awaited<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    wait: &Wait,
) -> Option<&'a Unstarted> {
    let Why::Message(wanted) = wait.why else {
        return None;
    };
    let mut unstarted = tasks.get(&wait.to)?.unstarted.iter();
    unstarted.find(|it| match &it.0 {
        PartKind::Send {
            to: Peer::Task(to),
            tag,
            communicator,
            ..
        } => {
            let is_there = (*to, Some(*communicator)) == (wait.from, wait.communicator);
            is_there && wanted.is_none_or(|it| it == *tag)
        }
        _ => false,
    })
}

/// Of a message that is sent and that the other's probe took, the probe: its task and part.
pub(crate) fn held_back(tasks: &BTreeMap<u32, Conversation>, wait: &Wait) -> Option<(u32, usize)> {
    let Why::Receiver(sent) = wait.why else {
        return None;
    };
    let receiver = tasks.get(&wait.to)?;
    let is_it = |part: &usize| match &receiver.parts[*part].kind {
        PartKind::Receive {
            from: Peer::Task(from),
            tag,
            communicator,
            ..
        } => {
            let is_there = (*from, Some(*communicator)) == (wait.from, wait.communicator);
            is_there && tag.is_none_or(|it| it == sent) && receiver.holds_back(*part)
        }
        _ => false,
    };
    let mut parts = 0..receiver.parts.len();
    Some((wait.to, parts.find(is_it)?))
}

/// The calls of what was not received or not started again, for who waits.
pub(crate) fn owed<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let stuck = waiting.waits.iter();
    let stuck = stuck.filter(|it| waiting.stuck.contains(&it.from));
    stuck.take(MOST).filter_map(|wait| {
        let held_back =
            held_back(tasks, wait).and_then(|(task, part)| tasks.get(&task)?.called(part));
        held_back.or_else(|| awaited(tasks, wait).map(|it| (it.2, it.3)))
    })
}

/// The first wait of a receiver for a persistent receive that did not run, and that would have taken the message.
pub(crate) fn unstarted_receive<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    loose: &Loose,
) -> Option<(u32, &'a Unstarted)> {
    let LooseEnd::NeverReceived { to, tag, .. } = loose.end else {
        return None;
    };
    let is_it = |kind: &PartKind| match kind {
        PartKind::Receive {
            from, tag: wanted, ..
        } => {
            let is_from = match from {
                Peer::Task(from) => loose.tasks.contains(from),
                Peer::Any => true,
                Peer::Nobody | Peer::Unknown => false,
            };
            is_from && wanted.is_none_or(|it| it == tag)
        }
        _ => false,
    };
    let mut unstarted = tasks.get(&to)?.unstarted.iter();
    Some((to, unstarted.find(|it| is_it(&it.0))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::receive;
    use lockstep_trace::{ProcessName, ThreadName};

    #[test]
    fn a_message_may_be_for_a_wait_with_one_mistake() {
        let wait = |or_another| Wait {
            from: 1,
            to: 0,
            why: Why::Message(Some(3)),
            communicator: Some(CommunicatorId(0)),
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
        let may_be = |it: Stray| [false, true].map(|any| it.may_be_for(&wait(any)));
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
        let trace = TraceName {
            process: ProcessName {
                job: 0,
                rank: 2,
                sibling: 0,
            },
            thread: ThreadName::Main(0),
        };
        let kind = receive(Peer::Task(1), Some(3));
        let conversation = Conversation {
            unstarted: vec![(kind, "MPI_Wait".into(), trace, 7)],
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
