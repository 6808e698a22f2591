//! Of several requests that a task waits for together, which did not complete: where each was begun.

use crate::analysis::Facts;
use crate::message::{Conversation, Operation, Waits};
use crate::verdict::who;
use crate::waits::Waiting;
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// So many of a task are told.
const MOST: usize = 2;

/// The operations that began what a task waits for, before the one in which it waits for all of it.
fn begun(said: &Conversation) -> Vec<usize> {
    let several = |it: &&Operation| matches!(&it.waits, Waits::All(parts) if parts.len() > 1);
    let Some(Waits::All(parts)) = said.pending().filter(several).map(|it| &it.waits) else {
        return Vec::new();
    };
    let open = parts.iter().filter_map(|it| said.parts.get(*it));
    let open = open.filter(|it| !it.complete && !said.pending.contains(&it.operation));
    let mut found: Vec<usize> = open.map(|it| it.operation).collect();
    found.dedup();
    found
}

/// The calls of those of tasks that are stuck.
pub(crate) fn begun_before<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let stuck = waiting
        .stuck
        .iter()
        .take(MOST)
        .filter_map(|it| tasks.get(it));
    stuck.flat_map(|it| {
        begun(it)
            .into_iter()
            .take(MOST)
            .filter_map(|at| it.call(at))
    })
}

/// `rank 0 began it in MPI_Irecv at halo.c:31`: of the few that these tasks wait for.
pub(crate) fn which(facts: &Facts<'_>, tasks: &[u32]) -> Option<String> {
    tasks.iter().find_map(|task| {
        let said = facts.conversations.get(task)?;
        let begun = begun(said);
        if begun.is_empty() || begun.len() > MOST {
            return None;
        }
        let calls = begun
            .iter()
            .map(|it| (said.operations.get(*it), facts.sites.of(said, *it)));
        let calls: Option<Vec<String>> = calls
            .map(|(operation, at)| {
                Some(format!(
                    "{}{at}",
                    operation.filter(|_| !at.is_empty())?.name
                ))
            })
            .collect();
        let mut calls = calls?;
        calls.dedup();
        Some(format!(
            "{} began it in {}",
            who(facts.progress, &[*task]),
            calls.join(" and ")
        ))
    })
}
