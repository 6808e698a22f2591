//! Runs of which some processes alone are opened.
#![allow(clippy::unwrap_used)]

use crate::open_tests::Directory;
use crate::{Run, Selection};
use lockstep_writer::{Builder, Named, ProcessFacts};
use std::fs;

/// Three ranks, each of which does something else, at times of its own.
fn three_ranks() -> Directory {
    let directory = Directory::empty();
    let mut builder = Builder::new(directory.path()).unwrap();
    let functions = ["main", "step", "MPI_Send", "MPI_Recv"].map(|name| {
        let named = Named {
            image: "/app",
            name,
            imported: name.starts_with("MPI_"),
            source: None,
        };
        builder.function(&named).unwrap()
    });
    for rank in 0..3 {
        let facts = ProcessFacts {
            pid: 100 + rank,
            rank: Some(rank),
            ..ProcessFacts::default()
        };
        let process = builder.process(facts).unwrap();
        builder.begin(process, rank).unwrap();
        let mut now = 1_000_000 * u64::from(rank);
        let mut time = || {
            now += 1_000_000;
            Some(now)
        };
        builder.call(functions[0], time()).unwrap();
        for round in 0..100 + rank {
            let called = functions[1 + (rank * round % 3) as usize];
            builder.call(called, time()).unwrap();
            builder.ret(time()).unwrap();
        }
        builder.end().unwrap();
    }
    builder.finish(&serde_json::json!({})).unwrap();
    directory
}

fn only(directory: &Directory, wanted: &str) -> Run {
    let wanted: Selection = wanted.parse().unwrap();
    Run::open_only(directory.path(), &[wanted]).unwrap()
}

#[test]
fn what_is_opened_alone_is_as_in_the_whole() {
    let directory = three_ranks();
    let whole = directory.open();
    let names = |run: &Run| {
        let functions = run.functions.iter();
        functions.map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    for rank in 0..3 {
        let alone = only(&directory, &format!("{rank}.0"));
        assert_eq!(names(&alone), names(&whole));
        assert_eq!(alone.is_mpi, whole.is_mpi);
        let [process] = &alone.processes[..] else {
            panic!("{:?}", alone.processes);
        };
        let [thread] = &process.threads[..] else {
            panic!("{:?}", process.threads);
        };
        let same = whole.trace(thread.name).unwrap();
        assert_eq!(thread.name.process.rank, rank);
        assert_eq!(thread.open, same.open);
        assert!(thread.events().eq(same.events()) && thread.events == same.events);
        let (mut times, mut expected) = (thread.timeline().unwrap(), same.timeline().unwrap());
        for event in thread.arguments() {
            assert_eq!(times.at(event.symbols), expected.at(event.symbols));
        }
    }
    assert_eq!(only(&directory, "0-1.0").processes.len(), 2);
    assert_eq!(only(&directory, "7.0").processes.len(), 0);
}

#[test]
fn what_is_wrong_with_others_is_not_told() {
    let directory = three_ranks();
    let processes = directory.path().join("processes");
    let mut files: Vec<_> = fs::read_dir(&processes)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    // Some committed byte of the last rank's stream.
    let last = files.last().unwrap();
    let mut bytes = fs::read(last).unwrap();
    let stream = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[stream] ^= 0x10;
    fs::write(last, bytes).unwrap();
    assert!(!directory.open().notes.is_empty());
    assert!(!only(&directory, "2.0").notes.is_empty());
    assert_eq!(only(&directory, "1.0").notes, [""; 0]);
}
