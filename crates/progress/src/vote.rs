//! Who is right where as many members of a communicator are on each side: those on whose way most of the others are, who have
//! yet to come.
//!
//! ```text
//!  rank 0   operation 1                                    MPI_Allgather [open]
//!  rank 3   operation 1   MPI_Sendrecv   MPI_Sendrecv   MPI_Allreduce [open]
//!  rank 1   operation 1   MPI_Sendrecv [open]
//! ```
//! Rank 1 began what rank 3 did since the operation before, and nothing of what rank 0 did.
//!
//! *Guarantees*: nothing unless the calls of each who votes are the first of one side's, and of no other's. *Costs*: the calls of
//! the members since the operation before. *Not for*: operations of several threads of a task, whose order is not known.

use lockstep_check::Mismatch;
use lockstep_comm::{Conversation, Matching, Membership, Operation};
use lockstep_diagnosis::{Disagreement, Right};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the side that is right first, where the sides alone do not tell.
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
    /// The only side that has most of all, those counted in who are on its way.
    fn elected(&self, mismatch: &Mismatch) -> Option<usize> {
        let communicator = mismatch.communicator;
        if self.matching.is_unordered(communicator) {
            return None;
        }
        let members = self.membership.members(communicator)?;
        let came: BTreeSet<u32> = (mismatch.sides.iter())
            .flat_map(|(_, shares)| shares.iter().map(|it| it.task))
            .collect();
        let ways: Option<Vec<&[Operation]>> = (mismatch.sides.iter())
            .map(|(_, shares)| {
                let (task, part) = shares.first().map(|it| (it.task, it.part))?;
                let last = self.conversations.get(&task)?.parts.get(part)?.operation;
                self.since(mismatch, task, last + 1)
            })
            .collect();
        let ways = ways?;
        let mut votes: Vec<usize> = mismatch.sides.iter().map(|it| it.1.len()).collect();
        for task in members.iter().filter(|it| !came.contains(it)) {
            let own = self.since(mismatch, *task, usize::MAX).unwrap_or_default();
            let mut on = (0..ways.len()).filter(|it| begins(ways[*it], own));
            if let (Some(side), None) = (on.next(), on.next()) {
                votes[side] += 1;
            }
        }
        let most = votes.iter().max()?;
        let mut best = (0..votes.len()).filter(|it| votes[*it] == *most);
        best.next().filter(|_| best.next().is_none())
    }

    /// The calls of a task behind the operation before this one, those before call `end`.
    fn since(&self, mismatch: &Mismatch, task: u32, end: usize) -> Option<&'a [Operation]> {
        let said = self.conversations.get(&task)?;
        let before = mismatch.order.checked_sub(1);
        let mut all = self.matching.collectives();
        let before = all.find(|it| it.0 == mismatch.communicator && Some(it.1) == before);
        let shares = before.into_iter().flat_map(|it| it.2);
        let own = shares.into_iter().find(|it| it.task == task);
        let begin = match own {
            Some(share) => said.parts.get(share.part)?.operation + 1,
            // What came before those that are known is over.
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
    }
}
