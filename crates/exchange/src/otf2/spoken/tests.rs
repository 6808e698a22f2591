#![allow(clippy::unwrap_used)]
use super::super::read::Reader;
use super::super::record::Chunks;
use super::super::{CHUNK_HEADER, buffer};
use super::*;
use lockstep_comm::talk::Message;
use lockstep_testkit::Scratch;
use proptest::collection::vec;
use proptest::prelude::*;
use std::num::NonZeroU64;

/// Communicators that are known, and ranks in each: those of the world in reverse.
const KNOWN: u32 = 2;
const RANKS: u32 = 5;

fn spoken() -> Spoken<'static> {
    let communicators = (0..KNOWN).map(CommunicatorId);
    let ranks = communicators
        .clone()
        .flat_map(|it| (0..RANKS).map(move |rank| ((it, rank), RANKS - rank)));
    Spoken {
        locations: vec![0],
        numbers: communicators.map(|it| (it, u64::from(it.0) + 10)).collect(),
        ranks: ranks.collect(),
        defined: Vec::new(),
        left_out: 0,
    }
}

fn what() -> impl Strategy<Value = What> {
    let communicator = || (0..KNOWN + 1).prop_map(CommunicatorId);
    let tag = prop_oneof![
        0..300i64,
        Just(i64::from(u32::MAX)),
        Just(-1),
        Just(1 << 40)
    ];
    let bytes = prop::option::of(prop_oneof![0..300u64, any::<u64>()]);
    let message = (0..RANKS + 1, tag, communicator(), bytes);
    let message = message.prop_map(|(peer, tag, communicator, bytes)| Message {
        peer,
        tag,
        communicator,
        bytes,
        number: None,
    });
    let names = [
        "MPI_Bcast",
        "MPI_Iscatterv",
        "MPI_Allreduce_init",
        "MPI_Neighbor_alltoall",
    ];
    let both = prop::option::of((any::<u64>(), 0..300u64));
    let share = (
        0..names.len(),
        any::<bool>(),
        communicator(),
        prop::option::of(0..9u32),
        both,
    );
    let share = share.prop_map(move |(name, makes, communicator, root, bytes)| Share {
        communicator,
        name: names[name].into(),
        makes,
        root,
        bytes,
        ways: None,
    });
    prop_oneof![
        message.clone().prop_map(What::Send),
        message.prop_map(What::Receive),
        share.prop_map(What::Share),
    ]
}

/// What OTF2 has of it where it begins, and where it is over: types of records, and their fields. The mark `undefined` is all ones.
fn expected(number: u64, contact: &Contact) -> [Option<(u8, Vec<u64>)>; 2] {
    let asked = contact.is_by_request;
    let mut fields = match &contact.what {
        What::Send(it) | What::Receive(it) => {
            let (Ok(tag), Some(bytes)) = (u32::try_from(it.tag), it.bytes) else {
                return [None, None];
            };
            if it.peer >= RANKS || it.communicator.0 >= KNOWN {
                return [None, None];
            }
            let communicator = u64::from(it.communicator.0) + 10;
            vec![u64::from(RANKS - it.peer), communicator, tag.into(), bytes]
        }
        What::Share(it) => {
            let operation = match &*it.name {
                _ if it.makes => 17,
                "MPI_Bcast" => 1,
                "MPI_Iscatterv" => 5,
                "MPI_Allreduce_init" => 11,
                _ => return [None, None],
            };
            let (Some((sent, received)), 0..KNOWN) = (it.bytes, it.communicator.0) else {
                return [None, None];
            };
            let root = it.root.map_or(u64::MAX, u64::from);
            vec![
                operation,
                u64::from(it.communicator.0) + 10,
                root,
                sent,
                received,
            ]
        }
    };
    let request = vec![number];
    if asked {
        fields.push(number);
    }
    match (&contact.what, asked) {
        (What::Send(_), false) => [Some((14, fields)), None],
        (What::Send(_), true) => [Some((15, fields)), Some((16, request))],
        (What::Receive(_), false) => [None, Some((18, fields))],
        (What::Receive(_), true) => [Some((17, request)), Some((19, fields))],
        (What::Share(_), false) => [Some((22, Vec::new())), Some((23, fields))],
        (What::Share(_), true) => [Some((85, request)), Some((86, fields))],
    }
}

/// The next record but for times; nothing at the end.
fn next(reader: &mut Reader) -> Option<(u8, Vec<u64>)> {
    let kind = reader.kind().unwrap()?;
    let number = |reader: &mut Reader| reader.number().unwrap().unwrap_or(u64::MAX);
    Some(match kind {
        buffer::TIME => {
            let _: [u8; 8] = reader.take().unwrap();
            return next(reader);
        }
        16 | 17 => (kind, vec![number(reader)]),
        _ => {
            let length = reader.record_length().unwrap();
            let end = reader.at + length;
            let mut fields = Vec::new();
            if matches!(kind, 23 | 86) {
                fields.push(reader.take::<1>().unwrap()[0].into());
            }
            while reader.at < end {
                fields.push(number(reader));
            }
            assert_eq!(reader.at, end);
            (kind, fields)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        all in vec((what(), any::<bool>()), 0..60),
        chunk in CHUNK_HEADER as u64 + 64..400,
    ) {
        let scratch = Scratch::new("spoken");
        let path = scratch.join("0.evt");
        let mut file = Chunks::new(&path, chunk, true).unwrap();
        let mut spoken = spoken();
        let mut records = Vec::new();
        let mut left_out = 0;
        for (number, (what, is_by_request)) in (0..).zip(all) {
            let over = NonZeroU64::new(1);
            let contact = Contact { begun: 0, over, is_by_request, what };
            for begins in [true, false] {
                if let Some(record) = spoken.record((number, &contact), begins) {
                    file.event(u64::from(number), begins, &record).unwrap();
                }
            }
            let both = expected(number.into(), &contact);
            left_out += u64::from(both == [None, None]);
            records.extend(both.into_iter().flatten());
        }
        prop_assert_eq!(spoken.left_out, left_out);
        prop_assert_eq!(file.finish().unwrap(), records.len() as u64);
        let mut reader = Reader::open(&path, chunk).unwrap();
        for record in records {
            prop_assert_eq!(next(&mut reader), Some(record));
        }
        prop_assert_eq!(next(&mut reader), None);
    }
}
