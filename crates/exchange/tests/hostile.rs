//! Readers and hostile input: random bytes, and files that are right but for some bytes.
#![allow(clippy::unwrap_used)]

mod made;

use lockstep_exchange::fuzz;
use made::{Step, chrome_json, otf2_files, parlot_files, uftrace_files};
use proptest::prelude::*;

type Body = fn(&[u8]) -> Result<Option<u64>, String>;

/// Changes to make: where (in proportion), and what.
fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, Change)>> {
    let change = prop_oneof![
        any::<u8>().prop_map(Change::Set),
        Just(Change::Remove),
        any::<u8>().prop_map(Change::Insert),
        Just(Change::Cut),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), change), 1..6)
}

#[derive(Debug, Clone)]
enum Change {
    Set(u8),
    Remove,
    Insert(u8),
    Cut,
}

fn mutated(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, Change)]) -> Vec<u8> {
    for (at, change) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match change {
            Change::Set(byte) => bytes[at] = *byte,
            Change::Remove => drop(bytes.remove(at)),
            Change::Insert(byte) => bytes.insert(at, *byte),
            Change::Cut => bytes.truncate(at),
        }
    }
    bytes
}

fn joined(files: &[Vec<u8>]) -> Vec<u8> {
    files.join(fuzz::DIVIDER)
}

fn agrees(body: Body, right: Vec<u8>, steps: &[Step], changes: &[(prop::sample::Index, Change)]) {
    assert_eq!(body(&right).unwrap(), Some(steps.len() as u64));
    body(&mutated(right, changes)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for body in [fuzz::parlot, fuzz::uftrace, fuzz::chrome, fuzz::otf2] as [Body; 4] {
            body(&bytes).unwrap();
        }
    }

    #[test]
    fn changed_files_of_parlot(steps in made::steps(), changes in changes()) {
        agrees(fuzz::parlot, joined(&parlot_files(&steps)), &steps, &changes);
    }

    #[test]
    fn changed_directories_of_uftrace(steps in made::steps(), changes in changes()) {
        agrees(fuzz::uftrace, joined(&uftrace_files(&steps)), &steps, &changes);
    }

    #[test]
    fn changed_archives_of_otf2(steps in made::steps(), changes in changes()) {
        agrees(fuzz::otf2, joined(&otf2_files(&steps)), &steps, &changes);
    }

    #[test]
    fn changed_documents_of_chrome(steps in made::steps(), changes in changes()) {
        agrees(fuzz::chrome, chrome_json(&steps), &steps, &changes);
    }
}

#[test]
fn a_small_file_that_would_be_many_events_is_stopped() {
    // A long run of the longest repeats.
    let steps: Vec<Step> = (0..70_000)
        .flat_map(|_| [Step::Call(1), Step::Return])
        .collect();
    let files = joined(&parlot_files(&steps));
    assert!(files.len() < 2000, "{}", files.len());
    assert_eq!(fuzz::parlot(&files).unwrap(), None);
}

/// Found by fuzzing: a clock that is at its end.
#[test]
fn the_last_times_of_a_clock_are_taken() {
    let steps = [Step::Call(1), Step::Return];
    let mut files = uftrace_files(&steps);
    for (record, time) in files[4].chunks_exact_mut(16).zip([u64::MAX - 1, u64::MAX]) {
        record[..8].copy_from_slice(&time.to_le_bytes());
    }
    assert_eq!(fuzz::uftrace(&joined(&files)).unwrap(), Some(2));
}

#[test]
fn json_that_is_deep_or_long_is_refused() {
    for (open, text) in [("[", "[".repeat(1 << 20)), ("{", "{\"a\":".repeat(1 << 18))] {
        assert_eq!(fuzz::chrome(text.as_bytes()).unwrap(), None, "{open}");
    }
    let long = format!(
        "[{{\"name\":\"{}\",\"ph\":\"B\",\"ts\":1}}]",
        "x".repeat(2 << 20)
    );
    assert_eq!(fuzz::chrome(long.as_bytes()).unwrap(), None);
}
