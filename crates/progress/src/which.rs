//! Of several requests that a task waits for together, which did not complete: where each was begun.

use crate::clause::Called;
use crate::nonempty::NonEmpty;
use crate::progress::Facts;
use crate::waits::{Waiting, Why, waits_of};
use lockstep_comm::{Conversation, Operation, Part, PartKind, Peer, Waits};
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// So many of a task are told.
const MOST: usize = 2;
/// So many of all get their line.
const MOST_LOCATED: usize = 16;

/// The operations that began what a task waits for in vain, before the one in which it waits for that and more.
fn begun(task: u32, said: &Conversation, waiting: &Waiting) -> Vec<usize> {
    let several = |it: &&Operation| matches!(&it.waits, Waits::All(parts) if parts.len() > 1);
    let Some(Waits::All(parts)) = said.pending().filter(several).map(|it| &it.waits) else {
        return Vec::new();
    };
    let is_missing = |part: &Part| {
        let mut waits = waits_of(waiting, task);
        waits.any(|it| match (&part.kind, &it.why) {
            (
                PartKind::Receive {
                    from: Peer::Task(from),
                    tag,
                    communicator,
                    ..
                },
                why,
            ) => {
                let wanted = match why {
                    Why::Message(wanted) => *wanted,
                    Why::OtherTag(wanted, _) => Some(*wanted),
                    _ => return false,
                };
                (*from, Some(*communicator), *tag) == (it.to, it.communicator, wanted)
            }
            _ => false,
        })
    };
    let open = parts.iter().filter_map(|it| said.parts.get(*it));
    let open = open.filter(|it| !it.complete && !said.pending.contains(&it.operation));
    let mut found: Vec<usize> = open
        .filter(|it| is_missing(it))
        .map(|it| it.operation)
        .collect();
    found.dedup();
    found
}

/// The calls of those of tasks that are stuck.
pub(crate) fn begun_before<'a>(
    tasks: &'a BTreeMap<u32, Conversation>,
    waiting: &'a Waiting,
) -> impl Iterator<Item = (TraceName, u64)> + 'a {
    let stuck = waiting.stuck.iter();
    let stuck = stuck.filter_map(|it| Some((*it, tasks.get(it)?)));
    let begun = stuck.flat_map(|(task, said)| {
        let begun = begun(task, said, waiting).into_iter().take(MOST);
        begun.filter_map(|it| said.call(it))
    });
    begun.take(MOST_LOCATED)
}

/// Of one of these tasks, the calls that began the few that it waits for.
pub(crate) fn which(facts: &Facts<'_>, tasks: &[u32]) -> Option<(u32, NonEmpty<Called>)> {
    tasks.iter().find_map(|task| {
        let said = facts.conversations.get(task)?;
        let begun = begun(*task, said, &facts.progress.waiting);
        if begun.len() > MOST {
            return None;
        }
        let calls = begun.iter().map(|it| facts.sites.call(said, *it));
        let calls = calls.map(|it| it.filter(|it| it.site.is_some()));
        let mut calls = calls.collect::<Option<Vec<Called>>>()?;
        calls.dedup();
        Some((*task, NonEmpty::new(calls)?))
    })
}
