#![allow(clippy::unwrap_used)]
use super::*;
use crate::conversation::State;
use crate::job;
use crate::message::{Amounts, Mode, Operation, Part, Size, Wildcard};
use std::sync::Arc;

/// One rank that sent to itself by requests and waited for them.
fn heard(
    kinds: Vec<PartKind>,
    incomplete: Option<usize>,
    all: bool,
) -> (Vec<Contact>, Doubts, usize) {
    let operations = kinds.iter().enumerate().map(|(part, _)| Operation {
        name: "MPI_Irecv".into(),
        event: 10 * part as u64,
        returned: true,
        waits: Waits::No,
    });
    let said = Conversation {
        operations: operations.collect(),
        parts: kinds
            .into_iter()
            .enumerate()
            .map(|(part, kind)| Part {
                operation: part,
                kind,
                complete: incomplete != Some(part),
                completed_at: Some(100),
            })
            .collect(),
        state: State::Finished,
        ..Conversation::default()
    };
    let members = Members::default();
    let mut listener = Listener {
        me: TraceName::new(0, 0),
        is_alone: true,
        is_cut: false,
        members: &members,
        contacts: Vec::new(),
    };
    let mut doubts = Doubts::default();
    let end = listener.hear(&said, &mut doubts, all);
    (listener.contacts, doubts, end)
}

#[test]
fn what_is_not_over_is_kept_back() {
    let kinds = || {
        vec![
            job::send(1, 0, Mode::Standard),
            job::receive(Peer::Task(1), Some(0)),
            job::send(1, 0, Mode::Standard),
        ]
    };
    let (contacts, _, end) = heard(kinds(), Some(1), false);
    assert_eq!((contacts.len(), end), (1, 1));
    let (contacts, _, end) = heard(kinds(), Some(1), true);
    assert_eq!((contacts.len(), end), (3, 3));
    assert!(contacts.iter().all(|it| it.is_by_request));
}

#[test]
fn nothing_is_sure_behind_what_is_not_known() {
    let from_anybody = PartKind::Receive {
        from: Peer::Any,
        tag: None,
        communicator: CommunicatorId(0),
        size: Size::default(),
        wildcard: Some(Wildcard { tag: None }),
    };
    let known = || job::receive(Peer::Task(1), Some(7));
    let (contacts, doubts, _) = heard(vec![known(), from_anybody, known()], None, true);
    let end = ((0, 0), CommunicatorId(0), false);
    let are_in_doubt = contacts.iter().map(|it| doubts.are_about(end, it));
    assert_eq!(are_in_doubt.collect::<Vec<_>>(), [false, true]);
    // What it sends is not.
    let end = ((0, 0), CommunicatorId(0), true);
    assert!(!contacts.iter().any(|it| doubts.are_about(end, it)));
}

/// A share of four ranks, of 3 `MPI_INT` where that is said.
fn bytes(name: &str, rank: u32, change: impl Fn(&mut Collective)) -> Option<(u64, u64)> {
    let PartKind::Collective(mut share) = job::collective(name, Some(2)) else {
        unreachable!()
    };
    share.size = Size {
        count: Some(3),
        datatype: Some("MPI_INT".into()),
    };
    change(&mut share);
    exchanged(&share, &[0, 1, 2, 3], rank, Some(rank == 2))
}

#[test]
fn bytes_of_shares_are_those_that_score_p_counts() {
    let plain = |_: &mut Collective| ();
    let in_place = |it: &mut Collective| it.in_place = true;
    let cases = [
        (bytes("MPI_Barrier", 0, plain), (0, 0)),
        (bytes("MPI_Bcast", 2, plain), (48, 12)),
        (bytes("MPI_Bcast", 1, plain), (0, 12)),
        (bytes("MPI_Reduce", 2, plain), (12, 48)),
        (bytes("MPI_Reduce", 2, in_place), (0, 36)),
        (bytes("MPI_Reduce", 3, plain), (12, 0)),
        (bytes("MPI_Scatter", 2, plain), (48, 12)),
        (bytes("MPI_Scatter", 2, in_place), (36, 0)),
        (bytes("MPI_Gather", 0, plain), (12, 0)),
        (bytes("MPI_Allreduce", 0, plain), (48, 48)),
        (bytes("MPI_Iallreduce", 0, in_place), (36, 36)),
        (bytes("MPI_Alltoall", 3, plain), (48, 48)),
        (bytes("MPI_Scan", 1, plain), (36, 24)),
        (bytes("MPI_Exscan", 1, plain), (24, 12)),
        (bytes("MPI_Comm_dup", 1, plain), (0, 0)),
    ];
    for (number, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found, Some(expected), "{number}");
    }
    let unknown = |it: &mut Collective| it.size = Size::default();
    assert_eq!(bytes("MPI_Allreduce", 0, unknown), None);
    assert_eq!(bytes("MPI_Neighbor_alltoall", 0, plain), None);
}

#[test]
fn bytes_of_shares_with_arrays() {
    let of = |sent: Option<Amount>, expected: Option<Amount>| {
        move |it: &mut Collective| {
            it.size = Size::default();
            it.amounts = Some(Arc::new(Amounts {
                sent: sent.clone(),
                expected: expected.clone(),
            }));
        }
    };
    let same = || Some(Amount::Same(2, "MPI_BYTE".into()));
    let each = || Some(Amount::Each([1, 2, 3, 4].into(), "MPI_SHORT".into()));
    let cases = [
        (bytes("MPI_Allgatherv", 0, of(same(), each())), (8, 20)),
        (bytes("MPI_Gatherv", 2, of(same(), each())), (2, 20)),
        (bytes("MPI_Gatherv", 0, of(same(), None)), (2, 0)),
        (bytes("MPI_Scatterv", 2, of(each(), same())), (20, 2)),
        (bytes("MPI_Scatterv", 1, of(None, same())), (0, 2)),
        (bytes("MPI_Alltoallv", 1, of(each(), each())), (20, 20)),
        (bytes("MPI_Reduce_scatter", 1, of(each(), same())), (20, 16)),
    ];
    for (number, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found, Some(expected), "{number}");
    }
    // In place: what is sent is not said.
    assert_eq!(bytes("MPI_Allgatherv", 0, of(None, each())), None);
}
