//! Which process of one run is which of the other, where ranks do not say it.
//!
//! Without MPI processes are named in the order of their start, and a run under `timeout` or from a
//! script has more of them. Then the k-th process of a program is the k-th of that program in the other
//! run.

use lockstep_trace::{Process, ProcessName, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// For the processes of a run their names in the last run; others are not looked at.
pub(crate) type Partners = BTreeMap<ProcessName, ProcessName>;

/// The partners by program, one entry a run, the last one included. All `None` where names do it: MPI
/// runs, and runs whose processes of one name run one program, or that have no program in common (two
/// builds).
pub(crate) fn partners(normals: &[&Run], last: &Run) -> Vec<Option<Partners>> {
    let by_name = || vec![None; normals.len() + 1];
    if last.is_mpi || normals.iter().any(|run| run.is_mpi) {
        return by_name();
    }
    let names = by_program(last);
    let all: Vec<Partners> = normals
        .iter()
        .map(|normal| pair(&by_program(normal), &names))
        .collect();
    if all.iter().flatten().all(|(own, other)| own == other) {
        return by_name();
    }
    let compared: BTreeSet<ProcessName> = all
        .iter()
        .flat_map(|partners| partners.values().copied())
        .collect();
    let itself = compared.into_iter().map(|name| (name, name)).collect();
    all.into_iter().chain([itself]).map(Some).collect()
}

/// The name in the last run of a process of a run with these partners; without any, its own.
pub(crate) fn partner(partners: Option<&Partners>, process: ProcessName) -> Option<ProcessName> {
    match partners {
        Some(partners) => partners.get(&process).copied(),
        None => Some(process),
    }
}

type ByProgram = BTreeMap<String, Vec<ProcessName>>;

fn by_program(run: &Run) -> ByProgram {
    let mut by_program = ByProgram::new();
    for process in &run.processes {
        by_program
            .entry(program(process))
            .or_default()
            .push(process.name);
    }
    by_program
}

fn pair(run: &ByProgram, last: &ByProgram) -> Partners {
    let both = run
        .iter()
        .filter_map(|(program, names)| Some((names, last.get(program)?)));
    both.flat_map(|(names, others)| names.iter().copied().zip(others.iter().copied()))
        .collect()
}

/// The processes of a run that commands look at.
pub(crate) fn visible(run: &Run) -> impl Iterator<Item = &Process> {
    run.processes.iter().filter(|it| run.is_visible(it))
}

/// File name of the program of a process.
pub(crate) fn program(process: &Process) -> String {
    let path = Path::new(&process.program);
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// What was matched with what, and what was not, in a sentence; nothing where names did it.
pub(crate) fn note(normal: &Run, last: &Run) -> Option<String> {
    let all = partners(&[normal], last);
    let [Some(partners), Some(compared)] = all.as_slice() else {
        return None;
    };
    let pairs: Vec<String> = partners
        .iter()
        .map(|(own, other)| format!("{own} of the normal run with {other} of the faulty one"))
        .collect();
    let mut note = format!("processes are matched by program: {}", pairs.join(", "));
    for (which, run, matched) in [("normal", normal, partners), ("faulty", last, compared)] {
        let others: Vec<String> = run
            .processes
            .iter()
            .filter(|process| !matched.contains_key(&process.name))
            .map(|process| format!("{} ({})", process.name, program(process)))
            .collect();
        if !others.is_empty() {
            note.push_str(&format!(
                "; not compared: {} of the {which} run",
                others.join(", ")
            ));
        }
    }
    Some(note)
}
