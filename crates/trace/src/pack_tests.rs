//! Packed runs: they read as the files that were packed, whole, cut off anywhere, and with a bit changed.
#![allow(clippy::unwrap_used)]

use crate::damage_tests::{Action, actions, codecs, write_as};
use crate::open_tests::Directory;
use crate::{Event, Run};
use lockstep_format::check::crc32c;
use lockstep_format::codec::Kind;
use lockstep_format::pack::{BLOCK, Header, Member};
use proptest::prelude::*;

/// Names and contents.
type Files = Vec<(String, Vec<u8>)>;

fn pack(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    for (name, content) in files {
        let member = Member {
            name,
            length: content.len() as u64,
            check: crc32c(content),
        };
        bytes.extend(member.block().unwrap());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    }
    let header = Header {
        members: files.len() as u32,
        length: bytes.len() as u64,
    };
    bytes[..BLOCK].copy_from_slice(&header.block());
    bytes
}

fn processes(codec: Kind, actions: &[Vec<Action>], stores: u64) -> Files {
    let pids = 100..;
    pids.zip(actions)
        .map(|(pid, actions)| {
            let name = format!("h-{pid}-7-0.lockstep");
            (name, write_as(pid, codec, actions, stores).short().to_vec())
        })
        .collect()
}

fn ends(files: &Files) -> Files {
    let name = |file: &str| file.replace("-0.lockstep", ".json");
    let end = br#"{"kind":"signalled","code":11}"#;
    files
        .iter()
        .map(|(file, _)| (name(file), end.to_vec()))
        .collect()
}

fn packed(processes: &[u8], ends: &[u8]) -> Directory {
    let directory = Directory::new();
    directory.write("processes/node.pack", processes);
    directory.write("ends/node.pack", ends);
    directory
}

/// What a run says: its traces and their events, ends, and notes.
type Said = (Vec<(String, Vec<Event>, String)>, Vec<String>);

fn said(run: &Run) -> Said {
    let traces = run.processes.iter().flat_map(|process| {
        process.threads.iter().map(|thread| {
            let state = format!("{:?} {:?} {:?}", process.end, thread.open, thread.damage);
            (thread.name.to_string(), thread.events().collect(), state)
        })
    });
    (traces.collect(), run.notes.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_packed_run_reads_as_its_files(
        all in prop::collection::vec(actions(), 1..5),
        codec in codecs(),
        stores in 4u64..3000,
    ) {
        let files = processes(codec, &all, stores);
        let ends = ends(&files);
        let plain = Directory::new();
        for (name, content) in &files {
            plain.write(&format!("processes/{name}"), content);
        }
        for (name, content) in &ends {
            plain.write(&format!("ends/{name}"), content);
        }
        let expected = said(&plain.open());
        let packed = packed(&pack(&files), &pack(&ends));
        prop_assert_eq!(&said(&packed.open()), &expected);
        // What was being packed when the recorder was killed is in both places, or one of two.
        for (name, content) in files.iter().take(2) {
            packed.write(&format!("processes/{name}"), content);
        }
        prop_assert_eq!(&said(&packed.open()), &expected);
        let halves = files.split_at(files.len() / 2);
        for (half, name) in [(halves.0, "node"), (halves.1, "other")] {
            packed.write(&format!("processes/{name}.pack"), &pack(half));
        }
        prop_assert_eq!(&said(&packed.open()), &expected);
    }

    #[test]
    fn no_bit_changes_unnoticed(place in any::<prop::sample::Index>(), bit in 0..8, in_blocks in any::<bool>()) {
        let (files, whole) = sample();
        let mut bytes = whole;
        let mut at = place.index(bytes.len());
        if in_blocks {
            let starts = [0, BLOCK, 2 * BLOCK + files[0].1.len()];
            at = starts[at % 3] + place.index(BLOCK);
        }
        let expected = said(&packed(&bytes, &pack(&ends(&files))).open());
        bytes[at] ^= 1u8 << bit;
        let found = said(&packed(&bytes, &pack(&ends(&files))).open());
        prop_assert!(found.1 != expected.1, "byte {}", at);
        prop_assert!(found.1.iter().any(|note| note.contains("byte ")), "{:?}", found.1);
        if in_blocks {
            // Nothing of the processes is touched: they are found without it.
            prop_assert_eq!(found.0, expected.0, "byte {}", at);
        }
    }
}

fn sample() -> (Files, Vec<u8>) {
    let events = |body: &[u32]| vec![Action::Events(0, body.repeat(30)), Action::Commit(0)];
    let all = [events(&[16, 17, 0, 0]), events(&[16, 18, 0, 19, 0, 0])];
    let files = processes(Kind::Lockstep, &all, u64::MAX);
    let bytes = pack(&files);
    (files, bytes)
}

#[test]
fn cut_off_anywhere_is_noticed_and_gives_what_is_there() {
    let (files, whole) = sample();
    let ends = pack(&ends(&files));
    let (expected, notes) = said(&packed(&whole, &ends).open());
    let is_noticed = |notes: &[String]| notes.iter().any(|note| note.contains("byte "));
    assert!(!is_noticed(&notes));
    let directory = packed(&whole, &ends);
    let near = |length: usize| length % BLOCK < 3 || length % BLOCK == BLOCK - 1;
    for length in (0..whole.len()).filter(|length| near(*length) || length % 211 == 0) {
        directory.write("processes/node.pack", &whole[..length]);
        let (found, told) = said(&directory.open());
        assert!(is_noticed(&told), "{length}: {told:?}");
        // A thread without events has another name.
        for (_, events, _) in found {
            let is_prefix = expected.iter().any(|(_, all, _)| all.starts_with(&events));
            assert!(is_prefix, "{length}: {events:?}");
        }
    }
    directory.write("processes/node.pack", &whole);
    for length in 0..ends.len() {
        directory.write("ends/node.pack", &ends[..length]);
        let (found, told) = said(&directory.open());
        assert_eq!(found.len(), expected.len());
        assert!(is_noticed(&told), "{length}: {told:?}");
    }
}

#[test]
fn other_versions_are_refused_and_a_draft_is_nothing() {
    let (_, whole) = sample();
    let mut bytes = whole.clone();
    bytes[8] = 9;
    let check = crc32c(&bytes[..508]);
    bytes[508..512].copy_from_slice(&check.to_le_bytes());
    let directory = Directory::new();
    directory.write("processes/node.pack", &bytes);
    let notes = directory.open().notes.join("\n");
    assert!(
        notes
            .contains("processes/node.pack: byte 8: expected a pack of version 1, found version 9"),
        "{notes}"
    );
    let directory = Directory::new();
    directory.write("processes/.node.pack", &whole);
    assert!(directory.open().processes.is_empty());
}
