//! Every body, with noise, and with damaged bytes of our own writers.
#![allow(clippy::unwrap_used)]

use crate::{TARGETS, Target};
use proptest::prelude::*;
use proptest::sample::Index;

fn targets() -> impl Strategy<Value = Target> {
    prop::sample::select(TARGETS.to_vec())
}

#[derive(Debug, Clone)]
enum Change {
    Set(u8),
    Remove,
    Insert(u8),
    Cut,
    /// A word of ones, zeros, or something small.
    Word(u32),
}

fn changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    let change = prop_oneof![
        6 => any::<u8>().prop_map(Change::Set),
        1 => Just(Change::Remove),
        1 => any::<u8>().prop_map(Change::Insert),
        1 => Just(Change::Cut),
        3 => prop_oneof![Just(0), Just(u32::MAX), Just(1 << 31), 0..70_000u32].prop_map(Change::Word),
    ];
    prop::collection::vec((any::<Index>(), change), 0..8)
}

fn damaged(mut bytes: Vec<u8>, changes: &[(Index, Change)]) -> Vec<u8> {
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
            Change::Word(word) => {
                let at = at & !3;
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn noise(target in targets(), bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        (target.body)(&bytes);
    }

    #[test]
    fn damage(target in targets(), seed in any::<Index>(), changes in changes()) {
        let seeds = (target.seeds)();
        if !seeds.is_empty() {
            (target.body)(&damaged(seeds[seed.index(seeds.len())].clone(), &changes));
        }
    }
}

/// Also where a thread's control block is.
#[test]
fn a_file_that_is_cut_off_is_answered_and_sealed_alike() {
    for seed in crate::seeds::asked() {
        for length in (0..seed.len()).step_by(211) {
            crate::answers::answers(&seed[..length]);
        }
    }
}

/// Otherwise nothing of what becomes of arguments would be asked for.
#[test]
fn the_run_that_is_asked_tells_arguments_and_times() {
    let run = crate::seeds::talking().unwrap();
    let run = lockstep_trace::Run::open(run.path()).unwrap();
    assert!(run.is_mpi && run.notes.is_empty(), "{:?}", run.notes);
    let [thread] = run.traces().collect::<Vec<_>>()[..] else {
        panic!("one thread");
    };
    assert_eq!(thread.events, 80);
    // What 40 calls were given, and what 18 of them gave back.
    assert_eq!(
        thread
            .arguments()
            .filter(|it| it.arguments.is_some())
            .count(),
        40 + 18
    );
    assert!(thread.times.is_some());
    let found = lockstep_progress::analyse(&run);
    assert!(!found.hang, "{}", lockstep_wording::verdict(&found));
}

#[test]
fn a_trace_with_another_number_of_events_than_its_tree_is_refused() {
    let file = crate::seeds::sealed().pop().unwrap();
    let directory = crate::Directory::new("lockstep");
    directory.write(lockstep_format::sealed::FILE, &file);
    let mut run = lockstep_trace::Run::open(directory.path()).unwrap();
    run.load().unwrap();
    let events = run.processes[0].threads[1].events;
    run.processes[0].threads[1].events += 1;
    let told = run.load().unwrap_err().to_string();
    let (more, tree) = (events + 1, events);
    let expected = format!("trace 0.1: expected {more} events, found a tree of {tree}");
    assert!(told.contains(&expected), "{told}");
}

#[test]
fn seeds_are_accepted() {
    for target in TARGETS {
        for seed in (target.seeds)() {
            assert!(!seed.is_empty(), "{}", target.name);
            (target.body)(&seed);
        }
    }
    let with: Vec<&str> = TARGETS
        .iter()
        .filter(|it| !(it.seeds)().is_empty())
        .map(|it| it.name)
        .collect();
    let programs = ["plan", "elf"];
    let needed = [
        "codecs",
        "side",
        "process",
        "pack",
        "sealed",
        "context",
        "csv",
        "attributes",
        "selection",
        "ring",
        "execution",
        "run",
        "parlot",
        "uftrace",
        "chrome",
        "otf2",
        "progress",
        "answers",
    ];
    for name in needed.iter().chain(
        programs
            .iter()
            .filter(|_| std::path::Path::new("/bin/true").exists()),
    ) {
        assert!(with.contains(name), "{name} has none");
    }
}
