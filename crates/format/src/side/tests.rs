//! The argument stream against the records that went in: at every moment, every truncation, noise.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

type Record = (u32, Vec<i64>);

/// The stream after each record, as its bytes and its open run.
fn encode(records: &[Record]) -> Vec<(Vec<u8>, u32)> {
    let mut encoder = Box::new(Encoder::NEW);
    let mut bytes = Vec::new();
    let mut states = Vec::new();
    for (key, values) in records {
        let before = bytes.len();
        let run = encoder.push(*key, values, &mut bytes);
        assert!(bytes.len() - before <= MOST_BYTES);
        states.push((bytes.clone(), run));
    }
    states
}

fn decode(mut bytes: &[u8], open: u32) -> (Vec<Record>, Result<(), Broken>) {
    let mut decoder = Box::new(Decoder::NEW);
    let mut tuples: Vec<Record> = Vec::new();
    let mut records = Vec::new();
    loop {
        match decoder.next(&mut bytes, open) {
            Ok(Some(Found::Known(number))) => records.push(tuples[number as usize].clone()),
            Ok(Some(Found::New(key))) => {
                tuples.push((key, decoder.values().to_vec()));
                records.push(tuples.last().unwrap().clone());
            }
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
        if records.len() > 100_000 {
            return (records, Ok(()));
        }
    }
}

fn records(most: usize) -> impl Strategy<Value = Vec<Record>> {
    let wild = (0..300u32, prop::collection::vec(any::<i64>(), 0..most));
    let tame = (0..4u32, prop::collection::vec(0..3i64, 0..3));
    prop::collection::vec(prop_oneof![1 => wild, 20 => tame], 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_state_gives_the_records_before_it(records in records(MOST_VALUES)) {
        for (index, (bytes, run)) in encode(&records).into_iter().enumerate() {
            let (found, end) = decode(&bytes, run);
            prop_assert_eq!(end, Ok(()));
            prop_assert_eq!(&found, &records[..=index]);
        }
    }

    #[test]
    fn a_stream_that_goes_on_is_not_read_again(
        records in records(5),
        steps in prop::collection::vec((1..9usize, 0..9usize), 60),
    ) {
        let states = encode(&records);
        let mut decoder = Box::new(Decoder::NEW);
        let (mut tuples, mut found): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
        let (mut at, mut taken) = (0, 0);
        for (step, most) in steps.into_iter().chain([(60, 60); 3]) {
            at = (at + step).min(states.len());
            let Some((bytes, run)) = at.checked_sub(1).map(|last| &states[last]) else { break };
            decoder.go_on();
            let mut rest = &bytes[taken..];
            // Some readers do not come to the end.
            for _ in 0..most {
                match decoder.next(&mut rest, *run).unwrap() {
                    Some(Found::Known(number)) => found.push(tuples[number as usize].clone()),
                    Some(Found::New(key)) => {
                        tuples.push((key, decoder.values().to_vec()));
                        found.push(tuples.last().unwrap().clone());
                    }
                    None => break,
                }
            }
            taken = bytes.len() - rest.len();
            prop_assert!(records.starts_with(&found));
        }
        prop_assert_eq!(found, records);
    }

    #[test]
    fn a_truncated_stream_gives_a_prefix(records in records(5)) {
        let Some((bytes, _)) = encode(&records).pop() else { return Ok(()) };
        for length in 0..bytes.len() {
            let (found, _) = decode(&bytes[..length], 0);
            prop_assert!(records.starts_with(&found));
        }
    }

    #[test]
    fn noise_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), open in 0..1000u32) {
        let _ = decode(&bytes, open);
    }
}

#[test]
fn repetition_costs_nothing() {
    let body: Vec<Record> = (0..20).map(|i| (i % 5, vec![i64::from(i); 6])).collect();
    let records: Vec<Record> = body.iter().cycle().take(20_000).cloned().collect();
    let states = encode(&records);
    assert!(states.last().unwrap().0.len() < 400);
}

#[test]
fn tuples_of_a_loop_keep_their_places() {
    // With one place for each of 4,096 hashes, a dozen pairs of these would share theirs.
    let body: Vec<Record> = (0..300).map(|i| (7, vec![i * 40, 12])).collect();
    let mut records = body.clone();
    let first = encode(&records).pop().unwrap().0.len();
    for _ in 0..20 {
        records.extend(body.iter().cloned());
    }
    let all = encode(&records).pop().unwrap().0.len();
    assert!(
        all - first < 1000,
        "{first} bytes for one round, {all} for all"
    );
}

#[test]
fn a_flipped_bit_is_noticed_before_long() {
    let records: Vec<Record> = (0..2000).map(|i| (1, vec![i * i, 7])).collect();
    let (bytes, run) = encode(&records).pop().unwrap();
    let (_, end) = decode(&bytes, run);
    assert_eq!(end, Ok(()));
    for at in (0..1024).step_by(7) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 4;
        let (found, end) = decode(&wrong, run);
        assert!(end.is_err() || found == records, "byte {at}");
    }
}

#[test]
fn words_and_numbers() {
    assert_eq!(
        from_word(word(0x12_3456_789a, 0xff_ffff)),
        (0x12_3456_789a, 0xff_ffff)
    );
    for value in [0, 1, 0x7f, 0x80, u64::from(u32::MAX), u64::MAX] {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        let mut rest = bytes.iter();
        let read = read_varint(|| rest.next().copied().ok_or(Broken::CutOff));
        assert_eq!(read, Ok(value));
    }
    for value in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(unzigzag(zigzag(value)), value);
    }
}

/// What is told to come again and again does, and the decoder goes on behind it as if it had come.
#[test]
fn rounds_of_a_run_are_passed_over() {
    let body = |tags: &[i64]| -> Vec<Record> {
        let asked = tags.iter().map(|tag| [(4, vec![*tag]), (5, vec![0])]);
        asked.flatten().collect()
    };
    let turns = [body(&[1]), body(&[1, 2]), body(&[1, 2, 3, 4, 5])];
    let records: Vec<Record> = turns
        .iter()
        .flat_map(|it| vec![it.clone(); 1000].concat())
        .collect();
    let (bytes, open) = encode(&records).pop().unwrap();
    let mut bytes = bytes.as_slice();
    let mut decoder = Box::new(Decoder::NEW);
    let mut tuples: Vec<Record> = Vec::new();
    let (mut at, mut passed) = (0, 0);
    while let Some(found) = decoder.next(&mut bytes, open).unwrap() {
        let number = match found {
            Found::Known(number) => number as usize,
            Found::New(key) => {
                tuples.push((key, decoder.values().to_vec()));
                tuples.len() - 1
            }
        };
        assert_eq!(tuples[number], records[at]);
        at += 1;
        if let Some(round) = decoder.round() {
            let before = decoder.standing();
            let length = round.numbers().len();
            let all = before.left as usize / length * length;
            let numbers = round.numbers().iter().cycle();
            let come = numbers.zip(&records[at..at + all]);
            assert!(
                come.into_iter()
                    .all(|(number, it)| tuples[*number as usize] == *it)
            );
            assert_eq!(decoder.pass_rounds(&round) as usize, all);
            assert!(decoder.standing().is_like(&before));
            (at, passed) = (at + all, passed + all);
        }
    }
    assert_eq!(at, records.len());
    assert!(passed > 15_000, "{passed}");
}
