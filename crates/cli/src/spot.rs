//! Where tasks that compute are right now, in words: of a run that goes on, and its processes of this host.

use crate::output;
use lockstep_progress::{Activity, Progress};
use lockstep_record::spots;
use lockstep_trace::{EndKind, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many tasks are looked at.
const MOST: usize = 3;
/// So many lines are one place: a loop.
const NEAR: u32 = 40;

/// A task that holds the others up and computes.
#[derive(Debug, Clone)]
pub struct Holder {
    /// `rank 5`.
    who: String,
    host: String,
    pid: u32,
    /// Of a run without MPI, where each thread is a task.
    tid: Option<u32>,
    is_here: bool,
}

/// Where one was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    host: String,
    pid: u32,
    #[serde(default)]
    tid: Option<u32>,
    at: String,
}

/// Those of a run.
pub fn holding(run: &Run, found: &Progress) -> Vec<Holder> {
    let groups = found.least.iter().filter_map(|it| found.groups.get(*it));
    let groups = groups.filter(|it| it.activity == Activity::Computation);
    let tasks = groups.flat_map(|it| &it.tasks).take(MOST);
    let of = |task: &u32| {
        let trace = found.tasks.get(task)?.trace;
        let process = run.processes.iter().find(|it| it.name == trace.process)?;
        let thread = run.trace(trace).filter(|_| !run.is_mpi);
        Some(Holder {
            who: lockstep_wording::who(found, &[*task]),
            host: process.host.clone(),
            pid: process.pid,
            tid: thread.map(|it| it.tid),
            is_here: process.end.kind == EndKind::Running && process.end.certain,
        })
    };
    tasks.filter_map(of).collect()
}

/// Where those of this host are, each that is found to run in code with source lines.
pub fn found(holding: &[Holder]) -> Vec<Spot> {
    let here = holding.iter().filter(|it| it.is_here);
    let spots = here.filter_map(|it| {
        Some(Spot {
            host: it.host.clone(),
            pid: it.pid,
            tid: it.tid,
            at: place(&spots(it.pid, it.tid))?,
        })
    });
    spots.collect()
}

/// `; rank 5 runs at halo.c:77-79`, where `verb` is `runs`.
pub fn told(holding: &[Holder], spots: &[Spot], verb: &str) -> String {
    let told = holding.iter().filter_map(|holder| {
        let of = (&holder.host, holder.pid, holder.tid);
        let is_it = |it: &&Spot| (&it.host, it.pid, it.tid) == of;
        let at = output::printable(&spots.iter().find(is_it)?.at);
        Some(format!("; {} {verb} at {at}", holder.who))
    });
    told.collect()
}

/// The file in which most of these are, and the lines: of a long way, that of most.
fn place(spots: &[(String, u32)]) -> Option<String> {
    let mut files: BTreeMap<&str, BTreeMap<u32, usize>> = BTreeMap::new();
    for (file, line) in spots {
        *files.entry(file).or_default().entry(*line).or_default() += 1;
    }
    let (file, lines) = files
        .into_iter()
        .max_by_key(|(_, lines)| lines.values().sum::<usize>())?;
    let (first, last) = (lines.keys().next()?, lines.keys().next_back()?);
    let most = lines.iter().max_by_key(|it| *it.1)?.0;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(match last - first {
        0 => format!("{name}:{first}"),
        1..=NEAR => format!("{name}:{first}-{last}"),
        _ => format!("{name}:{most}"),
    })
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn lines_of_a_loop_and_of_a_long_way() {
        let told = |spots: &[(&str, u32)]| {
            let spots: Vec<(String, u32)> =
                spots.iter().map(|it| (it.0.to_owned(), it.1)).collect();
            place(&spots)
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("/a/halo.c", 7)]).as_deref(), Some("halo.c:7"));
        let some = [("/a/halo.c", 7), ("/a/halo.c", 9), ("/b/other.h", 1)];
        assert_eq!(told(&some).as_deref(), Some("halo.c:7-9"));
        let far = [("halo.c", 7), ("halo.c", 700), ("halo.c", 700)];
        assert_eq!(told(&far).as_deref(), Some("halo.c:700"));
    }
}
