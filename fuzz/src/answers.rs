//! A run of a process file that somebody made up is asked for all that runs are asked for.

use crate::directory::Directory;
use crate::{MOST, checked, seeds};
use lockstep_calltree::trees;
use lockstep_exchange::Target::{
    Callgrind, Collapsed, Dot, Json, Otf2, Parquet, Perfetto, Speedscope,
};
use lockstep_exchange::{View, export, write};
use lockstep_trace::sealed::seal;
use lockstep_trace::{Event, Run, Sealable, Thread};
use std::io::sink;
use std::sync::LazyLock;

/// The formats that are one file.
const FILES: [lockstep_exchange::Target; 7] = [
    Callgrind, Collapsed, Dot, Json, Parquet, Perfetto, Speedscope,
];

/// Exports it in every format, says who is behind, and seals it: then it has the events that it had, and the same is behind.
///
/// # Panics
/// Where one of these cannot be done.
pub(crate) fn answers(input: &[u8]) {
    static BESIDE: LazyLock<Vec<(String, Vec<u8>)>> =
        LazyLock::new(|| seeds::files_of(seeds::talking()));
    let directory = Directory::new("lockstep");
    for (index, (path, content)) in BESIDE.iter().enumerate() {
        let made = (index == 0).then(|| checked(input));
        directory.write(path, made.as_ref().unwrap_or(content));
    }
    let Ok(run) = Run::open(directory.path()) else {
        return;
    };
    let threads: Vec<&Thread> = run.traces().collect();
    let events = threads
        .iter()
        .map(|it| it.events)
        .fold(0, u64::saturating_add);
    if events > MOST as u64 {
        return;
    }
    for target in FILES {
        let written = write(&run, &threads, (target, &View::default()), &mut sink());
        assert!(written.is_ok(), "{target:?}: {written:?}");
    }
    let archive = directory.path().join("archive");
    let written = export(&run, &threads, (Otf2, &View::default()), &archive, false);
    assert!(written.is_ok(), "{written:?}");
    let found = lockstep_progress::analyse(&run);
    let told = lockstep_wording::verdict(&found);
    assert!(!told.is_empty() && !told.contains("  "), "{told:?}");

    let before: Vec<Vec<Event>> = threads.iter().map(|it| it.events().collect()).collect();
    let Ok(sealable) = Sealable::open(directory.path()) else {
        return;
    };
    // A run that goes on is not sealed, nor one that cannot be told again.
    let Ok(trees) = trees(&[&sealable.run], None) else {
        return;
    };
    if seal(&[&sealable], &trees, None, false).is_err() {
        return;
    }
    let run = Run::open(directory.path()).expect("a run that was sealed can be opened");
    let after: Vec<Vec<Event>> = run.traces().map(|it| it.events().collect()).collect();
    assert_eq!(before, after);
    assert_eq!(found.verdict, lockstep_progress::analyse(&run).verdict);
}
