//! Messages that came in the place of others: what a task died of, or computes with for ever, did not fit its receive, and would
//! have been in its place had the sender not left out a message before it, or sent that one astray.
//!
//! ```text
//!  the sender      350 numbers   (1 number is left out)   350 numbers
//!                       │                 ┌───────────────────┘
//!  the receiver    room for 350    room for 1: it dies
//! ```
//! It is asked of that receive what is asked of one that still waits ([`crate::astray`], [`crate::cause`]): whether the sender
//! owes it something. Where it owes nothing, the sizes themselves are wrong.
//!
//! *Costs*: O(parts) of each task that died, or is late. *Not for*: messages that fit, or that no arguments tell of.

use crate::waits::{Wait, Waiting, Why};
use lockstep_check::unfit;
use lockstep_comm::{Conversation, Matching, PartId, PartKind, Size};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The last messages that did not fit, as if they were still waited for: of those who died, of receives that did not come to
/// their end, and of those who are late and in their own code, of the last receive that did.
pub(crate) fn displaced(
    tasks: &BTreeMap<u32, Conversation>,
    matching: &Matching,
    died: &[u32],
    late: &[u32],
) -> Vec<Wait> {
    let owed = |task: &u32, is_late: bool| {
        let said = tasks.get(task)?;
        let receives = said.parts.iter().enumerate().rev();
        let receives = receives.filter_map(|(part, it)| match &it.kind {
            PartKind::Receive { size, .. } => Some((part, it.complete, size)),
            _ => None,
        });
        let is_over = |it: &(usize, bool, &Size)| it.1;
        let looked_at = match is_late {
            true => receives.take(1).filter(is_over).collect::<Vec<_>>(),
            false => receives.filter(|it| !is_over(it)).collect(),
        };
        looked_at.into_iter().find_map(|(part, _, room)| {
            let sent = matching.partner(PartId { task: *task, part })?;
            let PartKind::Send {
                tag,
                size,
                communicator,
                ..
            } = &tasks.get(&sent.task)?.parts.get(sent.part)?.kind
            else {
                return None;
            };
            unfit(size, room, *task).map(|_| Wait {
                from: *task,
                to: sent.task,
                why: Why::Message(Some(*tag)),
                communicator: Some(*communicator),
                or_another: false,
            })
        })
    };
    let died = died.iter().filter_map(|it| owed(it, false));
    died.chain(late.iter().filter_map(|it| owed(it, true)))
        .collect()
}

impl Waiting {
    /// With these waits besides.
    pub(crate) fn with(&self, more: &[Wait]) -> Cow<'_, Self> {
        if more.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut all = self.clone();
        all.waits.extend_from_slice(more);
        all.waits.sort_by_key(|it| it.from);
        Cow::Owned(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Job, receive, send};
    use lockstep_comm::{Mode, Peer};

    fn numbers(mut kind: PartKind, count: i64) -> PartKind {
        if let PartKind::Send { size, .. } | PartKind::Receive { size, .. } = &mut kind {
            *size = Size {
                count: Some(count),
                datatype: Some("MPI_INT".into()),
            };
        }
        kind
    }

    /// Of one who died.
    fn owed(messages: &[(i64, i64)], is_over: bool) -> Vec<Wait> {
        owed_to((&[1], &[]), messages, is_over)
    }

    /// What rank 1 is owed that received messages of so many numbers, the last one or not, with room for others.
    fn owed_to(
        (died, late): (&[u32], &[u32]),
        messages: &[(i64, i64)],
        is_over: bool,
    ) -> Vec<Wait> {
        let mut job = Job::default();
        for (at, (sent, room)) in messages.iter().enumerate() {
            let is_last = at + 1 == messages.len();
            let message = numbers(send(1, 5, Mode::Standard), *sent);
            job.call(0, "MPI_Send", vec![message], true);
            let asked = numbers(receive(Peer::Task(0), Some(5)), *room);
            job.call(1, "MPI_Recv", vec![asked], is_over || !is_last);
        }
        displaced(&job.0, &Matching::new(&job.0), died, late)
    }

    #[test]
    fn of_a_receive_that_is_open_and_too_small() {
        let wait = Wait {
            from: 1,
            to: 0,
            why: Why::Message(Some(5)),
            communicator: Some(lockstep_comm::CommunicatorId(0)),
            or_another: false,
        };
        let wait = [wait];
        assert_eq!(owed(&[(9, 9), (1, 1), (9, 1)], false), wait);
        assert!(owed(&[(9, 9), (1, 1), (9, 9)], false).is_empty());
        // It got what did not fit, and went on.
        assert!(owed(&[(9, 9), (1, 1), (9, 1)], true).is_empty());
        // And computes with it for ever.
        let late = |messages: &[_]| owed_to((&[], &[1]), messages, true);
        assert_eq!(late(&[(9, 9), (1, 1), (9, 1)]), wait);
        assert!(late(&[(9, 9), (9, 1), (1, 1)]).is_empty());
    }

    #[test]
    fn waits_are_in_the_order_of_those_who_wait() {
        let wait = |from: u32| Wait {
            from,
            to: 9,
            why: Why::Message(None),
            communicator: None,
            or_another: false,
        };
        let waiting = Waiting {
            waits: vec![wait(1), wait(4)],
            ..Waiting::default()
        };
        let from = |all: &Waiting| all.waits.iter().map(|it| it.from).collect::<Vec<_>>();
        assert_eq!(from(&waiting.with(&[wait(3)])), [1, 3, 4]);
        assert_eq!(from(&waiting.with(&[])), [1, 4]);
    }
}
