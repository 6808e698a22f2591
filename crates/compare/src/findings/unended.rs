//! Processes that did not come to their end, where those of every normal run did.
//!
//! How much normal runs differ says how likely an order of calls is; that a process hangs until it is
//! killed, or crashes, is no matter of degree. Where none of them did, it is a difference by itself,
//! and what its threads were in when it was over is what there is to tell.

use super::finding::{Finding, Reason, Stuck};
use crate::naming::told as told_name;
use lockstep_trace::threads::{Does, Meaning};
use lockstep_trace::{End, EndKind, ProcessName, Run, brief};
use std::collections::BTreeMap;

/// Processes of the faulty run that ended otherwise than by themselves, while those of the same name
/// in all normal runs ended by themselves.
pub(crate) fn unended(normals: &[&Run], faulty: &Run) -> BTreeMap<ProcessName, End> {
    let exits = |run: &Run, name: ProcessName| {
        let mut processes = run.processes.iter();
        processes.any(|it| it.name == name && it.end.kind == EndKind::Exited)
    };
    let processes = faulty.processes.iter().filter(|it| faulty.is_visible(it));
    processes
        .filter(|it| it.end.kind != EndKind::Exited)
        .filter(|it| normals.iter().all(|run| exits(run, it.name)))
        .map(|it| (it.name, it.end))
        .collect()
}

/// Signals by which somebody else ends a job.
const BY_OTHERS: [i32; 8] = [1, 2, 3, 9, 10, 14, 15, 24];

/// Whether a process ended by a signal of its own.
pub(crate) fn is_crash(end: &End) -> bool {
    end.kind == EndKind::Signalled && end.code.is_some_and(|it| !BY_OTHERS.contains(&it))
}

/// Suspects the threads that such a process was held up by, or crashed in, for what they were in.
pub(crate) fn suspect(
    findings: &mut [Finding],
    unended: &BTreeMap<ProcessName, End>,
    faulty: &Run,
) {
    for (process, end) in unended {
        let held = |it: &Finding| {
            let stuck = it.stuck().filter(|_| it.trace.process == *process)?;
            (it.reason != Reason::Unmatched).then(|| place(stuck.meaning, *end))
        };
        let Some(first) = findings.iter().filter_map(held).min() else {
            continue;
        };
        for finding in findings.iter_mut().filter(|it| held(it) == Some(first)) {
            // Who rethrows hands on what another one threw.
            let rethrows = |it: &Stuck| it.function.contains("rethrow");
            let is_own = !finding.stuck().is_some_and(rethrows);
            finding.blame.is_culprit |= is_crash(end) && is_own;
            finding.blame.has_crashed = is_crash(end) && is_own;
            // Where it is told how it came to its end already, that says more.
            let is_open = finding.divergence().is_some_and(|it| it.faulty_is_open);
            let is_told = finding.reason == Reason::EndsEarly || is_open;
            if is_told && !finding.is_usual() {
                continue;
            }
            finding.reason = Reason::EndsEarly;
            finding.told = Some(told(finding, *end, faulty));
            if let Some(standing) = &mut finding.standing {
                standing.is_usual = false;
            }
        }
    }
}

/// How far from the cause a thread is that is open in this call: of a process that crashed who ended it is the cause; one that waits
/// for another's end, or for something to do, is farther than one that waits for a lock or does not wait.
fn place(call: Meaning, end: End) -> u8 {
    match call.does {
        Does::Raise if is_crash(&end) => 0,
        _ if is_crash(&end) && call.crashes() => 0,
        Does::Join => 3,
        // Who crashes does not wait for a lock.
        Does::Take(_) => 1 + u8::from(end.kind == EndKind::Signalled),
        Does::Sleep { .. } => 2,
        _ => 1 + u8::from(call.waits_for_others()),
    }
}

/// `is in pthread_mutex_lock, within Pool::work() at pool.cpp:16, when its process is killed, where those of normal runs end`.
fn told(finding: &Finding, end: End, faulty: &Run) -> String {
    let stuck = (finding.stuck()).map_or_else(String::new, |it| it.function.clone());
    let plain = told_name(&stuck);
    let thread = faulty.trace(finding.trace);
    let open = thread.map_or(&[][..], |it| it.open.as_slice());
    // The innermost call out of a file that is not the compiler's or the system's.
    let own = open.iter().rev().find_map(|frame| {
        let line = frame.called_at.as_ref()?;
        (!line.is_of_the_system()).then(|| {
            let function = faulty.functions.get(frame.function.0 as usize);
            let name = function.map_or("?", |it| it.name.as_str());
            (name, format!(" at {}", line.brief()))
        })
    });
    let within = match own {
        Some((name, at)) if name == stuck => at,
        Some((name, at)) => format!(", within {} called{at},", brief(name)),
        None => String::new(),
    };
    if is_crash(&end) {
        return format!("crashed ({end}) in {plain}{within} as no normal run does");
    }
    let over = match end.kind {
        EndKind::Running => "is not over".to_owned(),
        _ => format!("is over ({end})"),
    };
    format!(
        "is stuck in {plain}{within} where its process {over}; that of each normal run ends by itself"
    )
}
