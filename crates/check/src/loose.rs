//! Loose ends of a conversation: messages that nobody received, requests that nobody completed, pairs of
//! a send and a receive that do not fit, what is called too late, and what is never given back. None of
//! these need stop a program, and all of them are mistakes.

use crate::loose_end::LooseEnd;
use crate::usage::Usage;
use lockstep_api::mpi::{Does, Resource};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, Misfit, Part, PartId, PartKind, Peer, Size,
    State, Step, misfit,
};
use lockstep_trace::{Site, TraceName};
use std::collections::BTreeMap;

mod possible;

/// A loose end of some tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loose {
    /// Whose: of a message its sender.
    pub tasks: Vec<u32>,
    /// Which.
    pub end: LooseEnd,
    /// The call that began the first of them, as trace and number of the event, where that is known.
    pub first: Option<(TraceName, u64)>,
    /// Where that was called.
    pub site: Option<Site>,
    /// How often it came so in each.
    pub times: usize,
}

impl Loose {
    /// Whether it is a message between two of these tasks that nobody received.
    pub fn is_lost_between(&self, mut tasks: impl Iterator<Item = u32> + Clone) -> bool {
        let LooseEnd::NeverReceived { to, .. } = self.end else {
            return false;
        };
        let mut those = tasks.clone();
        tasks.any(|it| it == to) && those.any(|it| self.tasks.contains(&it))
    }
}

/// The first call, and how many.
type Times = (Option<(TraceName, u64)>, usize);

/// What was found, and of whom.
type Found = BTreeMap<(LooseEnd, u32), Times>;

/// All loose ends, those alike of several tasks together: in the order of [`LooseEnd`]. O(parts), a replay for each of
/// the first ready sends, and what accesses to windows take.
#[must_use]
pub fn loose_ends(
    tasks: &BTreeMap<u32, Conversation>,
    usages: &BTreeMap<u32, Usage>,
    members: &Membership,
    matching: &Matching,
) -> Vec<Loose> {
    let mut found = seen(tasks, usages, matching);
    possible::add(&mut found, tasks, members, matching);
    together(found)
}

/// The same, but for what might have come otherwise ([`LooseEnd::NotReady`], [`LooseEnd::Conflict`]): while a job goes on,
/// nobody asks for that. O(parts).
pub fn loose_ends_so_far(
    tasks: &BTreeMap<u32, Conversation>,
    usages: &BTreeMap<u32, Usage>,
    matching: &Matching,
) -> Vec<Loose> {
    together(seen(tasks, usages, matching))
}

/// What came to nothing, or was wrong.
fn seen(
    tasks: &BTreeMap<u32, Conversation>,
    usages: &BTreeMap<u32, Usage>,
    matching: &Matching,
) -> Found {
    let mut found = Found::new();
    for (&task, conversation) in tasks {
        let usage = usages.get(&task);
        let mistakes = usage.map(|it| it.mistakes_of(conversation));
        for (mistake, (trace, event, times)) in mistakes.into_iter().flatten() {
            found.insert((mistake, task), (Some((trace, event)), times));
        }
        let mut tell = |end: LooseEnd, first: Option<(TraceName, u64)>| {
            found.entry((end, task)).or_insert((first, 0)).1 += 1;
        };
        let is_over = conversation.state == State::Finished;
        for (index, part) in conversation.parts.iter().enumerate() {
            let id = PartId { task, part: index };
            let operation = &conversation.operations[part.operation];
            let name = || operation.name.to_string();
            let first = || conversation.call(part.operation);
            let partner = matching.partner(id);
            if is_over && !part.complete && !matches!(part.kind, PartKind::Probe { .. }) {
                tell(LooseEnd::NeverCompleted { name: name() }, first());
            }
            if let PartKind::Send {
                to: Peer::Task(to),
                tag,
                size,
                communicator,
                ..
            } = &part.kind
            {
                let is_gone = tasks.get(to).is_some_and(|it| it.state == State::Finished);
                match partner.and_then(|id| tasks.get(&id.task)?.parts.get(id.part)) {
                    None if is_gone
                        && partner.is_none()
                        && !may_have_come(tasks, (task, *to), part) =>
                    {
                        let (name, to, tag) = (name(), *to, *tag);
                        tell(LooseEnd::NeverReceived { name, to, tag }, first());
                    }
                    Some(other) => {
                        let is_certain =
                            partner.is_some_and(|it| is_sure(matching, *communicator, [id, it]));
                        if let PartKind::Receive { size: room, .. } = &other.kind
                            && is_certain
                            && let Some(end) = unfit(size, room, *to)
                        {
                            tell(end, first());
                        }
                    }
                    None => {}
                }
            }
        }
        if let Some((name, trace, event)) = &conversation.late {
            let name = name.to_string();
            tell(LooseEnd::AfterFinalize { name }, Some((*trace, *event)));
        }
        for (window, of, by) in locked(conversation) {
            if is_over || frees(conversation, window) {
                tell(LooseEnd::NeverUnlocked { of }, conversation.call(by));
            }
        }
        if is_over {
            let unended = usage.into_iter().flat_map(|it| it.unended());
            for (name, trace, event) in unended {
                let name = name.to_string();
                tell(LooseEnd::NeverEnded { name }, Some((trace, event)));
            }
        }
        // Some libraries end a job for what is not freed.
        if is_over || ended_in_finalize(conversation) {
            for held in conversation.resources.held() {
                let (resource, name) = (held.resource, held.name.to_string());
                let first = Some((held.trace, held.event));
                tell(LooseEnd::NeverFreed { resource, name }, first);
            }
        }
    }
    found
}

/// Whether a message is the one that a receive took: send and receive, as they were matched.
fn is_sure(matching: &Matching, communicator: CommunicatorId, pair: [PartId; 2]) -> bool {
    let is_disordered = pair.iter().any(|it| matching.is_disordered(*it));
    !is_disordered && !matching.is_uncertain(communicator, pair[1])
}

/// Whether a receive that was cancelled may have had the message.
fn may_have_come(tasks: &BTreeMap<u32, Conversation>, (from, to): (u32, u32), sent: &Part) -> bool {
    let PartKind::Send {
        tag, communicator, ..
    } = &sent.kind
    else {
        return false;
    };
    let unclear = tasks.get(&to).into_iter().flat_map(|it| &it.unclear);
    let mut unclear = unclear.filter_map(|it| match it {
        PartKind::Receive {
            from,
            tag,
            communicator,
            ..
        } => Some((from, tag, communicator)),
        _ => None,
    });
    unclear.any(|(sender, its_tag, its_communicator)| {
        let is_from = matches!(sender, Peer::Any | Peer::Unknown) || *sender == Peer::Task(from);
        is_from && its_tag.is_none_or(|it| it == *tag) && its_communicator == communicator
    })
}

/// Tasks of which several threads were in MPI when they ended, though one at a time may be.
pub fn at_once(tasks: &BTreeMap<u32, Conversation>, usages: &BTreeMap<u32, Usage>) -> Vec<Loose> {
    let of = |(task, usage): (&u32, &Usage)| {
        let it = tasks.get(task)?;
        if !usage.is_serialized() || it.polled.is_some() {
            return None;
        }
        let open = it.pending.iter().filter_map(|at| {
            let operation = it.operations.get(*at).filter(|it| !it.returned)?;
            let call = it.call(*at)?;
            (!operation.meaning().anytime).then_some((call, operation))
        });
        let open: BTreeMap<TraceName, _> = open.map(|it| (it.0.0, it)).collect();
        if open.len() < 2 {
            return None;
        }
        let mut open = open.iter();
        let (thread, (call, operation)) = open.next()?;
        let others = open.map(|(thread, (_, it))| format!("{} in thread {thread}", it.name));
        let (name, thread) = (operation.name.to_string(), thread.to_string());
        let others = others.collect::<Vec<_>>().join(" and ");
        Some(Loose {
            tasks: vec![*task],
            end: LooseEnd::AtOnce {
                name,
                thread,
                others,
            },
            first: Some(*call),
            site: None,
            times: 1,
        })
    };
    usages.iter().filter_map(of).collect()
}

/// Those that ended without `MPI_Finalize`.
pub fn never_finalized(tasks: Vec<u32>) -> Option<Loose> {
    (!tasks.is_empty()).then_some(Loose {
        tasks,
        end: LooseEnd::NeverFinalized,
        first: None,
        site: None,
        times: 1,
    })
}

/// Those alike of several tasks, and of several threads.
fn together(found: Found) -> Vec<Loose> {
    let mut alike: BTreeMap<(LooseEnd, usize), Loose> = BTreeMap::new();
    for ((mut end, task), (first, times)) in found {
        let of = end.threads_mut().map(std::mem::take);
        let loose = alike.entry((end.clone(), times)).or_insert(Loose {
            tasks: Vec::new(),
            end,
            first,
            site: None,
            times,
        });
        loose.tasks.push(task);
        if let Some(all) = loose.end.threads_mut() {
            all.extend(of.into_iter().flatten());
        }
    }
    let mut all: Vec<Loose> = alike.into_values().collect();
    for loose in &mut all {
        loose.tasks.sort_unstable();
        loose.tasks.dedup();
    }
    lead_with_the_lost(&mut all);
    all
}

/// Where a request was lost, others use its buffer while it runs: that it was never completed comes first.
fn lead_with_the_lost(all: &mut Vec<Loose>) {
    let lost = |it: &Loose, (tasks, other): (&[u32], &str)| match &it.end {
        LooseEnd::NeverCompleted { name } => {
            other.starts_with(name.as_str()) && it.tasks.iter().any(|task| tasks.contains(task))
        }
        _ => false,
    };
    let mut at = 0;
    while let Some(loose) = all.get(at) {
        if let LooseEnd::Overlap { other, .. } = &loose.end
            && let Some(behind) =
                (at + 1..all.len()).find(|it| lost(&all[*it], (&loose.tasks, other)))
        {
            let lost = all.remove(behind);
            all.insert(at, lost);
            at += 1;
        }
        at += 1;
    }
}

/// Whether a task is in the call that frees a window.
fn frees(conversation: &Conversation, window: CommunicatorId) -> bool {
    let is_it = |part: &&Part| match &part.kind {
        PartKind::Collective(share) => {
            let frees = share.meaning.does == Does::Free(Resource::Window);
            frees && share.communicator == Some(window)
        }
        _ => false,
    };
    let parts = conversation.parts.iter().rev().filter(is_it);
    let mut pending = parts.map(|it| conversation.pending.contains(&it.operation));
    pending.next().unwrap_or(false)
}

/// Whether a task did not survive `MPI_Finalize`.
fn ended_in_finalize(conversation: &Conversation) -> bool {
    let mut pending = conversation.pending.iter();
    conversation.state == State::Ended
        && pending.any(|it| conversation.operations[*it].meaning().does == Does::End)
}

/// Locks of windows that were taken and not given back: the window, whose part, and the operation that took it.
fn locked(conversation: &Conversation) -> Vec<(CommunicatorId, Option<u32>, usize)> {
    let mut held = Vec::new();
    for part in &conversation.parts {
        match part.kind {
            PartKind::Epoch {
                window,
                step: Step::Lock(of),
                ..
            } => held.push((window, of, part.operation)),
            PartKind::Epoch {
                window,
                step: Step::Unlock(of),
                ..
            } => held.retain(|it| (it.0, it.1) != (window, of)),
            _ => {}
        }
    }
    held
}

/// What of a send to this task does not fit a receive.
#[must_use]
pub fn unfit(sent: &Size, room: &Size, to: u32) -> Option<LooseEnd> {
    Some(match misfit(sent, room)? {
        Misfit::OtherDatatype { sent, received } => LooseEnd::OtherDatatype {
            sent: sent.to_string(),
            received: received.to_string(),
            to,
        },
        Misfit::TooLarge { sent, room, of } => LooseEnd::TooLarge {
            sent: format!("{sent} {of}"),
            room: format!("{room} {of}"),
            to,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(found: &[(LooseEnd, u32)]) -> Vec<(Vec<u32>, LooseEnd)> {
        let found = found.iter().map(|it| (it.clone(), (None, 1)));
        let all = together(found.collect()).into_iter();
        all.map(|it| (it.tasks, it.end)).collect()
    }

    fn in_threads(threads: &[(u32, u32)]) -> LooseEnd {
        let threads = threads.iter();
        LooseEnd::WrongThread {
            name: "MPI_Send".to_owned(),
            threads: threads.map(|it| TraceName::new(it.0, it.1)).collect(),
            level: "MPI_THREAD_SINGLE",
        }
    }

    #[test]
    fn a_message_that_nobody_received_is_lost_between_two() {
        let lost = LooseEnd::NeverReceived {
            name: "MPI_Isend".to_owned(),
            to: 4,
            tag: 7,
        };
        let found: Vec<Loose> = together([((lost, 2), (None, 1))].into());
        let between = |tasks: &[u32]| found[0].is_lost_between(tasks.iter().copied());
        assert!(between(&[4, 2]) && between(&[1, 2, 4]));
        assert!(!between(&[4, 3]) && !between(&[2, 3]) && !between(&[]));
    }

    #[test]
    fn threads_that_do_the_same_are_told_together() {
        let of = |calls: &[(u32, u32)]| {
            let each = calls.iter().map(|it| (in_threads(&[*it]), it.0));
            told(&each.collect::<Vec<_>>())
        };
        assert_eq!(of(&[(1, 1)]), [(vec![1], in_threads(&[(1, 1)]))]);
        let many = [(0, 1), (0, 2), (1, 1), (1, 2), (3, 1)];
        assert_eq!(of(&many), [(vec![0, 1, 3], in_threads(&many))]);
    }

    #[test]
    fn a_request_that_was_lost_comes_before_what_followed() {
        let name = || "MPI_Irecv".to_owned();
        let overlap = LooseEnd::Overlap {
            name: name(),
            writes: true,
            other: "MPI_Irecv at a.c:6".to_owned(),
        };
        let lost = LooseEnd::NeverCompleted { name: name() };
        let all = told(&[(overlap.clone(), 1), (lost.clone(), 1)]);
        assert_eq!(all[0], (vec![1], lost.clone()));
        // It is another rank's.
        let all = told(&[(overlap, 1), (lost.clone(), 0)]);
        assert_eq!(all[1], (vec![0], lost));
    }
}
