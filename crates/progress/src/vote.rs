//! Which side of a collective operation is right if the sides are equally large: members that have not come yet decide it by
//! the calls that they made.
//!
//! ```text
//!  rank 0   operation 1                                    MPI_Allgather [open]
//!  rank 3   operation 1   MPI_Sendrecv   MPI_Sendrecv   MPI_Allreduce [open]
//!  rank 1   operation 1   MPI_Sendrecv [open]
//! ```
//! Rank 1 began what rank 3 did since the operation before, and nothing of what rank 0 did.
//!
//! *Guarantees*: a member votes for a side only if its calls since the operation before are the first of that side's, and of no
//! other's. *Costs*: the calls of the members since that operation. *Not for*: tasks whose threads call MPI side by side: their
//! calls have no order.

use lockstep_check::Mismatch;
use lockstep_comm::{Conversation, Matching, Membership, Operation, PartId};
use lockstep_diagnosis::{Disagreement, Right};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the side that is right first, if the sides alone do not tell which.
pub(crate) fn vote(
    disagreements: &mut [Disagreement],
    conversations: &BTreeMap<u32, Conversation>,
    membership: &Membership,
    matching: &Matching,
) {
    let poll = Poll {
        conversations,
        membership,
        matching,
    };
    let undecided = |it: &&mut Disagreement| it.right == Right::Unknown;
    for disagreement in disagreements.iter_mut().filter(undecided) {
        if let Some(side) = poll.elected(&disagreement.mismatch) {
            disagreement.put_first(side, Right::Most);
        }
    }
}

struct Poll<'a> {
    conversations: &'a BTreeMap<u32, Conversation>,
    membership: &'a Membership,
    matching: &'a Matching,
}

impl<'a> Poll<'a> {
    /// The side with most members and votes, if it is only one.
    fn elected(&self, mismatch: &Mismatch) -> Option<usize> {
        let communicator = mismatch.communicator;
        if self.matching.is_unordered(communicator) {
            return None;
        }
        let members = self.membership.members(communicator)?;
        let came: BTreeSet<u32> = (mismatch.sides.iter())
            .flat_map(|(_, shares)| shares.iter().map(|it| it.task))
            .collect();
        let before = mismatch.order.checked_sub(1);
        let before = before.map_or(&[][..], |it| self.matching.shares(communicator, it));
        let ways: Option<Vec<&[Operation]>> = (mismatch.sides.iter())
            .map(|(_, shares)| {
                let (task, part) = shares.first().map(|it| (it.task, it.part))?;
                let last = self.conversations.get(&task)?.parts.get(part)?.operation;
                self.calls(task, before, last + 1)
            })
            .collect();
        let ways = ways?;
        let mut votes: Vec<usize> = mismatch.sides.iter().map(|it| it.1.len()).collect();
        let absent = members.iter().filter(|it| !came.contains(it));
        // Who has yet to come to an earlier operation is not on its way to this one.
        for task in absent.filter(|it| self.matching.begun(communicator, **it) == mismatch.order) {
            let own = self.calls(*task, before, usize::MAX).unwrap_or_default();
            let mut on = (0..ways.len()).filter(|it| begins(ways[*it], own));
            if let (Some(side), None) = (on.next(), on.next()) {
                votes[side] += 1;
            }
        }
        let most = votes.iter().max()?;
        let mut best = (0..votes.len()).filter(|it| votes[*it] == *most);
        best.next().filter(|_| best.next().is_none())
    }

    /// The calls of a task behind its share of the operation before, those before call `end`. Of a share that is not there any
    /// more, all calls are over, too.
    fn calls(&self, task: u32, before: &[PartId], end: usize) -> Option<&'a [Operation]> {
        let said = self.conversations.get(&task)?;
        if said.is_threaded() {
            return None;
        }
        let begin = match before.iter().find(|it| it.task == task) {
            Some(share) => said.parts.get(share.part)?.operation + 1,
            None => 0,
        };
        said.operations.get(begin..end.min(said.operations.len()))
    }
}

/// Whether calls begin with these.
fn begins(way: &[Operation], own: &[Operation]) -> bool {
    let is_alike = way.iter().zip(own).all(|(a, b)| a.name == b.name);
    !own.is_empty() && own.len() <= way.len() && is_alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Job, collective, receive};
    use lockstep_check::mismatches;
    use lockstep_comm::Peer;

    /// Who is wrong in the first operation that does not fit, where each calls these; the last of which it waits in.
    fn wrong(calls: &[&[&str]]) -> Vec<u32> {
        let mut job = Job::default();
        for (task, names) in (0..).zip(calls) {
            for (at, name) in names.iter().enumerate() {
                let part = match *name {
                    "MPI_Recv" => receive(Peer::Task(9), Some(1)),
                    name => collective(name, None),
                };
                job.call(task, name, vec![part], at + 1 < names.len());
            }
        }
        let matching = Matching::new(&job.0);
        let all: std::sync::Arc<[u32]> = (0..4).collect();
        let membership = Membership {
            members: vec![Some(all)],
            ..Membership::default()
        };
        let mut found: Vec<Disagreement> = mismatches(&job.0, &membership, &matching)
            .into_iter()
            .map(Disagreement::from)
            .collect();
        vote(&mut found, &job.0, &membership, &matching);
        let first = found.first().into_iter();
        let wrong = first.flat_map(Disagreement::wrong);
        wrong.flat_map(|it| &it.1).map(|it| it.task).collect()
    }

    const GATHERS: &[&str] = &["MPI_Allgather"];
    const SUMS: &[&str] = &["MPI_Recv", "MPI_Allreduce"];

    #[test]
    fn who_has_yet_to_come_votes_by_the_way_it_is_on() {
        let receives: &[&str] = &["MPI_Recv"];
        assert_eq!(wrong(&[GATHERS, receives, receives, SUMS]), [0]);
        assert_eq!(wrong(&[SUMS, receives, receives, GATHERS]), [3]);
    }

    #[test]
    fn who_is_on_no_way_or_on_both_does_not_vote() {
        assert!(wrong(&[GATHERS, &[], &[], SUMS]).is_empty());
        let reduces: &[&str] = &["MPI_Recv", "MPI_Reduce"];
        let receives: &[&str] = &["MPI_Recv"];
        assert!(wrong(&[reduces, receives, receives, SUMS]).is_empty());
        // Who has yet to come to the operation before made its calls before that one.
        let [gathers, sums] = [GATHERS, SUMS].map(|it| [&["MPI_Barrier"], it].concat());
        assert!(wrong(&[&gathers, receives, receives, &sums]).is_empty());
    }
}
