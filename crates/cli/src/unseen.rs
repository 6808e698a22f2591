//! What `info` says of work that a run does not show, and how to see it.

use lockstep_api::mpi::{self, Counts, Does, FileUse};
use lockstep_trace::{Process, Run};
use std::collections::BTreeSet;

use crate::output;

/// What a process becomes another program by.
const EXEC: [&str; 9] = [
    "execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve",
];

/// Sentences, each with its end of line.
pub fn sentences(run: &Run, shown: &[&Process]) -> String {
    let mut text = String::new();
    // What was left out by name is told elsewhere.
    let is_whole = |process: &&&Process| process.coverage.left_out == 0;
    let uses_mpi = shown.iter().filter(is_whole).any(|process| process.is_mpi);
    if uses_mpi && !run.functions.iter().any(|f| moves_data(&f.linkage)) {
        text.push_str(
            "MPI is in use, but no function that is recorded sends or receives: where any does, it calls MPI through \
             pointers, or was linked with an MPI library of its own\n",
        );
    }
    let became: BTreeSet<String> = shown
        .iter()
        .filter_map(|it| unseen_successor(run, it))
        .collect();
    text.extend(became);
    text
}

/// Whether this is a function of MPI by which ranks exchange something: `MPI_Send`, `mpi_bcast_`.
fn moves_data(linkage: &str) -> bool {
    let meaning = mpi::meaning(linkage);
    let moves = match meaning.does {
        Does::Collective(_, counts) => counts != Counts::None,
        Does::Ready(_) | Does::Arrived | Does::Access(_) => true,
        Does::Wait(_) | Does::Test(_) | Does::Status(_) | Does::Start(_) => true,
        Does::File(FileUse::Transfer { .. }) => true,
        _ => false,
    };
    moves || meaning.sends() || meaning.receives()
}

/// Of a process whose last call was that of `exec`, and of whose next program there is no trace.
fn unseen_successor(run: &Run, process: &Process) -> Option<String> {
    let last = process.threads.first()?.open.last()?;
    let function = run.function(last.function);
    let executes = EXEC.contains(&function.linkage.as_str());
    let same = |other: &&Process| other.pid == process.pid && other.host == process.host;
    if !function.imported || !executes || run.processes.iter().filter(same).count() > 1 {
        return None;
    }
    let program = process.program.rsplit('/').next().unwrap_or("?");
    Some(format!(
        "{} called {} last, and nothing is recorded of the program that it became: it is statically linked, runs as a user \
         who may not write to the run (or with other rights than its parent), or without the environment that the recorder gave\n",
        output::printable(program),
        output::printable(&function.name)
    ))
}

#[cfg(test)]
mod tests {
    use super::moves_data;

    #[test]
    fn what_moves_data() {
        for yes in ["MPI_Send", "PMPI_Allreduce", "mpi_bcast_", "MPI_Isend"] {
            assert!(moves_data(yes), "{yes}");
        }
        for no in [
            "MPI_Init",
            "mpi_comm_rank_",
            "MPI_Barrier",
            "send",
            "MPIR_x",
            "mpi_sort",
        ] {
            assert!(!moves_data(no), "{no}");
        }
    }
}
