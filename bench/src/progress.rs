//! `cargo xtask bench progress`: how long aggregating and analysing the tasks of a hanging job takes.
//!
//! The tasks are generated (`lockstep_testkit::generate::hanging`): 40 roles, more than 2,000 functions, at least
//! 40 groups. What is measured is the whole of `analyse`, with the reading of every task's events; and apart
//! the wait-for graph of as many tasks, all but two of which wait in a collective operation, and these for
//! messages from each other.

use crate::measure;
use crate::rows::Rows;
use crate::words::Words;
use anyhow::Result;
use lockstep_comm::{
    Collective, CommunicatorId, Conversation, Matching, Membership, PartKind, Peer, Role, Size,
};
use lockstep_progress::{Waiting, analyse};
use lockstep_testkit::generate;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench progress [OPTION]...

Seconds that the analysis of a hanging job takes, by its number of tasks. A minute.

  --tasks LIST     4096,16384,65536,262144,1048576
  --fresh          forget the rows that are there
";

const HEADS: [&str; 6] = [
    "tasks",
    "groups",
    "functions",
    "analyse_seconds",
    "waits_seconds",
    "peak_bytes",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--tasks"], &["--fresh"])?;
    let path = measure::results_directory()?.join("progress.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    for count in given.list("--tasks", "4096,16384,65536,262144,1048576") {
        if rows.has(&[&count]) {
            continue;
        }
        let row = one(count.parse()?);
        println!("{}", row.join("\t"));
        rows.add(&row)?;
    }
    Ok(())
}

fn one(count: u32) -> Vec<String> {
    let tasks = waiting_tasks(count);
    let members = Membership {
        members: vec![Some((0..count).collect())],
        ..Membership::default()
    };
    let begin = Instant::now();
    let matching = Matching::new(&tasks);
    let waiting = Waiting::new(&tasks, &members, &matching, &[]);
    let waits = begin.elapsed();
    assert_eq!(waiting.stuck.len(), count as usize);
    drop((tasks, matching, waiting));
    let run = generate::hanging(count);
    let begin = Instant::now();
    let found = analyse(&run);
    let analysed = begin.elapsed();
    vec![
        count.to_string(),
        found.groups.len().to_string(),
        run.functions.len().to_string(),
        format!("{:.3}", analysed.as_secs_f64()),
        format!("{:.3}", waits.as_secs_f64()),
        peak().to_string(),
    ]
}

/// All but the first two wait in a collective operation; these for messages from each other.
fn waiting_tasks(count: u32) -> BTreeMap<u32, Conversation> {
    let name: Arc<str> = "MPI_Allgather".into();
    let receives: Arc<str> = "MPI_Recv".into();
    let task = |number: u32| {
        let (name, kind) = match number {
            0 | 1 => (
                receives.clone(),
                PartKind::Receive {
                    from: Peer::Task(1 - number),
                    tag: Some(1),
                    communicator: CommunicatorId(0),
                    size: Size::default(),
                    wildcard: None,
                },
            ),
            _ => (
                name.clone(),
                PartKind::Collective(Collective {
                    communicator: Some(CommunicatorId(0)),
                    name: name.clone(),
                    meaning: lockstep_trace::mpi::meaning(&name),
                    root: None,
                    role: Role::Member,
                    reduction: None,
                    terms: None,
                    size: Size::default(),
                    amounts: None,
                    in_place: false,
                }),
            ),
        };
        Conversation::waiting_in(&name, kind)
    };
    (0..count).map(|number| (number, task(number))).collect()
}

/// The most memory that this process has had, input included.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
