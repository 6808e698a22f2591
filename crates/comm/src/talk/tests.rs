#![allow(clippy::unwrap_used)]
use super::made::{receive, send, share, talk};
use super::*;
use crate::conversation::State;
use crate::job;
use crate::message::{Mode, Operation, Part, Size, Wildcard};
use proptest::collection::vec;
use proptest::prelude::*;

fn numbers(talk: &Talk, rank: u32) -> Vec<Option<u32>> {
    let number = |it: &Contact| match &it.what {
        What::Send(it) | What::Receive(it) => it.number.map(NonZeroU32::get),
        What::Share(_) => None,
    };
    talk.of(TraceName::new(rank, 0))
        .iter()
        .map(number)
        .collect()
}

/// What happens next between one rank, or two, that send to rank 0.
#[derive(Debug, Clone)]
enum Act {
    /// This rank sends with this tag.
    Send(u32, i64),
    /// A receive is begun: from this rank or anybody, with this tag or any.
    Receive(Option<u32>, Option<i64>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..3u32, 0..2i64).prop_map(|(rank, tag)| Act::Send(rank, tag)),
        (proptest::option::of(1..3u32), proptest::option::of(0..2i64))
            .prop_map(|(from, tag)| Act::Receive(from, tag)),
    ]
}

fn with_tag(mut contact: Contact, number: i64) -> Contact {
    if let What::Send(it) | What::Receive(it) = &mut contact.what {
        it.tag = number;
    }
    contact
}

proptest! {
    /// A library that matches as the standard says: both ends of each message get one number, whatever was waited for first.
    #[test]
    fn messages_are_those_of_the_standard(
        acts in vec(act(), 0..60),
        over in vec(1000..2000u64, 60),
    ) {
        // Begin and bytes of a send are its place among the acts.
        let mut sent: Vec<(u32, i64, u64)> = Vec::new();
        let mut receives: Vec<(Option<u32>, Option<i64>, Option<(u32, i64, u64)>)> = Vec::new();
        for (at, act) in (0..).zip(&acts) {
            let fits = |it: (Option<u32>, Option<i64>), (rank, tag): (u32, i64)| {
                it.0.is_none_or(|it| it == rank) && it.1.is_none_or(|it| it == tag)
            };
            match *act {
                Act::Send(rank, tag) => {
                    let mut waiting = receives.iter_mut();
                    let found = waiting.find(|it| it.2.is_none() && fits((it.0, it.1), (rank, tag)));
                    match found {
                        Some(it) => it.2 = Some((rank, tag, at)),
                        None => sent.push((rank, tag, at)),
                    }
                }
                Act::Receive(from, tag) => {
                    let found = sent.iter().position(|it| fits((from, tag), (it.0, it.1)));
                    receives.push((from, tag, found.map(|it| sent.remove(it))));
                }
            }
        }
        let sends = |rank: u32| {
            let all = (0..).zip(&acts).filter_map(move |(at, act)| match *act {
                Act::Send(by, tag) if by == rank => Some(with_tag(send(at, 0), tag)),
                _ => None,
            });
            all.collect::<Vec<_>>()
        };
        let taken: Vec<(u32, i64, u64)> = receives.iter().filter_map(|it| it.2).collect();
        let own = (0..).zip(&taken).zip(&over).map(|((at, it), over)| with_tag(receive(at, *over, it.0), it.1));
        let talk = talk(vec![own.collect(), sends(1), sends(2)]);
        prop_assert_eq!(talk.messages() as usize, taken.len());
        for (contact, (rank, _, at)) in talk.at(0).iter().zip(taken) {
            let What::Receive(message) = &contact.what else { unreachable!() };
            prop_assert!(message.number.is_some());
            prop_assert_eq!(message.bytes, Some(at));
            let sender = talk.at(rank as usize).iter().find(|it| it.begun == at).unwrap();
            let What::Send(sent) = &sender.what else { unreachable!() };
            prop_assert_eq!(sent.number, message.number);
        }
    }
}

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
    assert_eq!(contacts.len(), 2);
    let mut all = talk(vec![contacts, vec![send(1, 0), send(2, 0)]]);
    assert_eq!(numbers(&all, 0), [Some(1), Some(2)]);
    all.messages = 0;
    for it in all.contacts.iter_mut().flatten() {
        if let What::Send(it) | What::Receive(it) = &mut it.what {
            it.number = None;
        }
    }
    all.number(&doubts);
    assert_eq!(numbers(&all, 0), [Some(1), None]);
    assert_eq!(numbers(&all, 1), [Some(1), None]);
}

#[test]
fn of_several_threads_no_message_is_sure() {
    let mut all = Talk {
        names: vec![
            TraceName::new(0, 0),
            TraceName::new(0, 1),
            TraceName::new(1, 0),
        ],
        contacts: vec![
            vec![send(1, 1), with_tag(send(2, 1), 8)],
            vec![send(1, 1)],
            vec![receive(1, 2, 0), with_tag(receive(3, 4, 0), 8)],
        ],
        ..Talk::default()
    };
    all.number(&Doubts::default());
    // Of the other tag only one of them sends.
    assert_eq!(numbers(&all, 1), [None, Some(1)]);
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
            it.amounts = Some(Arc::new(crate::message::Amounts {
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
    let talk = talk(vec![vec![share(1, 2)]]);
    assert_eq!(talk.messages(), 0);
}
