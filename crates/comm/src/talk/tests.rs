#![allow(clippy::unwrap_used)]
use super::made::{receive, send, talk};
use super::*;
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

/// A receive: from whom and with which tag, and the message that it got: its sender, its tag, and its place among the acts.
type Asked = (Option<u32>, Option<i64>, Option<(u32, i64, u64)>);

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
        let mut receives: Vec<Asked> = Vec::new();
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
