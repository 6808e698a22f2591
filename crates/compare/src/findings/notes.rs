//! What could not be compared, and what to know when reading a comparison.

use crate::difftrace::pairing::{self, visible};
use crate::naming::listed;
use crate::structure::builds::Builds;
use lockstep_trace::{EndKind, ProcessName, Run, TraceName, ranges};
use std::collections::BTreeSet;

/// How many names a note lists before it counts the rest.
const LISTED: usize = 6;

/// What could not be compared of two runs, and what to know of them.
pub(crate) fn notes(
    normal: &Run,
    faulty: &Run,
    missing: &[TraceName],
    extra: &[TraceName],
    two: Option<&Builds>,
) -> Vec<String> {
    let mut notes = Vec::new();
    match pairing::note(normal, faulty) {
        Some(note) => notes.push(note),
        None => ranks(normal, faulty, &mut notes),
    }
    for (which, only) in [("normal", missing), ("faulty", extra)] {
        let count = match only.len() {
            0 => continue,
            1 => "1 trace is".to_owned(),
            many => format!("{many} traces are"),
        };
        let names = listed(only, LISTED);
        notes.push(format!(
            "{count} in the {which} run only, and not compared: {names}"
        ));
    }
    match two {
        // Whoever compares what does not belong together has to know that first.
        Some(two) if two.strangers.is_some() => notes.insert(0, two.note()),
        Some(two) => notes.push(two.note()),
        None => builds(normal, faulty, &mut notes),
    }
    for (which, run) in [("normal", normal), ("faulty", faulty)] {
        condition(which, run, &mut notes);
    }
    notes
}

/// Different numbers of ranks.
fn ranks(normal: &Run, faulty: &Run, notes: &mut Vec<String>) {
    let processes =
        |run: &Run| -> BTreeSet<ProcessName> { visible(run).map(|process| process.name).collect() };
    let (normal, faulty) = (processes(normal), processes(faulty));
    if normal.len() != faulty.len() {
        notes.push(format!(
            "processes: {} in the normal run, {} in the faulty one; the {} that both have are compared",
            normal.len(),
            faulty.len(),
            normal.intersection(&faulty).count()
        ));
    }
}

/// Functions that one run only knows: the programs' own, since what they call in libraries shows where it is
/// called. A recorded program's are all that it has; of one whose build nobody knows, those that were called.
fn builds(normal: &Run, faulty: &Run, notes: &mut Vec<String>) {
    let programs = |run: &Run| -> BTreeSet<String> { visible(run).map(pairing::program).collect() };
    let (left, right) = (programs(normal), programs(faulty));
    // Programs of one run only (a shell, `timeout`) are no builds of anything here, unless all are.
    let both: BTreeSet<&String> = left.intersection(&right).collect();
    let functions = |run: &Run, programs: &BTreeSet<String>| -> BTreeSet<String> {
        let is_own = |image: &String| match both.is_empty() {
            true => programs.contains(image),
            false => both.contains(image),
        };
        let own = run
            .functions
            .iter()
            .filter(|function| !function.imported && is_own(&function.image));
        own.map(|function| function.name.clone()).collect()
    };
    let (left, right) = (functions(normal, &left), functions(faulty, &right));
    let mut all = visible(normal).chain(visible(faulty));
    let why = match all.any(|process| process.build.is_empty()) {
        true => "another build, or never called there",
        false => "another choice of what is recorded?",
    };
    for (which, only) in [
        ("normal", left.difference(&right).collect::<Vec<_>>()),
        ("faulty", right.difference(&left).collect()),
    ] {
        if !only.is_empty() {
            notes.push(format!(
                "functions of the {which} run's program only ({why}): {}",
                listed(only, LISTED)
            ));
        }
    }
}

/// What is incomplete in a run.
fn condition(which: &str, run: &Run, notes: &mut Vec<String>) {
    let running: Vec<u32> = visible(run)
        .filter(|process| process.end.kind == EndKind::Running)
        .map(|process| process.name.rank)
        .collect();
    if !running.is_empty() {
        notes.push(format!(
            "the {which} run is not over: processes {} may still be running",
            ranges(&running)
        ));
    }
    let lost: u64 = visible(run)
        .flat_map(|process| &process.losses)
        .map(|(_, count)| count)
        .sum();
    if lost > 0 {
        notes.push(format!("{lost} events of the {which} run are lost"));
    }
    for thread in visible(run).flat_map(|process| &process.threads) {
        if let Some(damage) = &thread.damage {
            notes.push(format!(
                "trace {} of the {which} run: {damage}",
                thread.name
            ));
        }
    }
}

/// What so many normal runs can tell by themselves, where more is said.
pub(crate) fn estimated(p: f64, normals: usize, level: f64) -> Option<String> {
    let counted = 1.0 / (normals as f64 + 1.0);
    (p < counted && p < level && counted >= level).then(|| {
        let enough = (1.0 / level).floor();
        format!(
            "p is an estimate from how little {normals} normal runs differ: by their number alone they tell no less than {counted:.2}, since what happens in one \
             healthy run of {} would look the same; {enough} normal runs need no estimate",
            normals + 1
        )
    })
}
