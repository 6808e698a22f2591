//! Calls that do not fit each other, or fit by luck.

use crate::clause::{Called, Doubted, Mismatched, Of, Potential, Raced, Side, Then};
use crate::nonempty::Subject;
use crate::progress::Facts;
use crate::sites::Sites;
use crate::whereabouts::telling;
use lockstep_api::mpi::{Does, Making, Shape};
use lockstep_check::LooseEnd;
use lockstep_check::races::{Harm, Race};
use lockstep_check::taken::Doubt;
use lockstep_comm::{Circle, Conversation, PartId, PartKind};
use lockstep_diagnosis::{Disagreement, Right};
use lockstep_trace::Site;
use std::collections::{BTreeMap, BTreeSet};

/// Tasks that would wait for each other if messages were not buffered.
pub(crate) fn potential(facts: &Facts<'_>, circle: &Circle) -> Option<Potential> {
    let calls = circle.iter().take(MOST_CALLS).filter_map(|(task, at)| {
        let conversation = facts.conversations.get(task)?;
        Some((*task, facts.sites.call(conversation, *at)?))
    });
    let mut who: Vec<u32> = circle.iter().map(|(task, _)| *task).collect();
    who.sort_unstable();
    let waits_for_some = |(task, at): &(u32, usize)| {
        let parts = facts.conversations.get(task).map(|it| &it.parts);
        let mut parts = parts.into_iter().flatten().filter(|it| it.operation == *at);
        parts.any(|it| match &it.kind {
            PartKind::Collective(share) => !matches!(share.shape(), Shape::All | Shape::Neighbours),
            _ => false,
        })
    };
    Some(Potential::Circle {
        who: Subject::new(who)?,
        calls: calls.collect(),
        waits_for_all: circle.iter().any(waits_for_some),
    })
}

/// So many calls of a circle are told of.
const MOST_CALLS: usize = 4;

/// A receive from anybody that could have taken another message.
pub(crate) fn raced(facts: &Facts<'_>, race: &Race) -> Option<Raced> {
    let call = |part| part_call(facts, race.task, part);
    Some(Raced {
        task: race.task,
        call: call(race.wildcard)?,
        took: race.took,
        instead: race.instead,
        then: match &race.harm {
            Harm::Starves(part) => Then::Starves(call(*part)?),
            Harm::Unfit(LooseEnd::TooLarge { sent, room, .. }) => {
                Then::TooLarge(sent.clone(), room.clone())
            }
            Harm::Unfit(_) => Then::Unfit,
            Harm::Chance => Then::Chance,
        },
    })
}

/// The call of a part.
pub(crate) fn part_call(facts: &Facts<'_>, task: u32, part: usize) -> Option<Called> {
    let conversation = facts.conversations.get(&task)?;
    let operation = conversation.parts.get(part)?.operation;
    facts.sites.call(conversation, operation)
}

/// Of those who wait, one whose message a receive from anybody took before, and that.
pub(crate) fn stolen(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<(u32, Called)> {
    let steal = facts.steals.iter().find(|it| waiting.contains(&it.task))?;
    Some((steal.instead, part_call(facts, steal.task, steal.wildcard)?))
}

/// A message that a task may wait for.
pub(crate) fn doubted(
    doubt: &Doubt,
    tasks: &BTreeMap<u32, Conversation>,
    sites: &Sites,
) -> Option<Doubted> {
    let conversation = tasks.get(&doubt.task)?;
    let operation = conversation.parts.get(doubt.wildcard)?.operation;
    Some(Doubted {
        from: doubt.from,
        tag: doubt.tag,
        call: sites.call(conversation, operation)?,
    })
}

/// Who does otherwise than most, or than is right, and what.
pub(crate) fn mismatched(facts: &Facts<'_>, disagreement: &Disagreement) -> Option<Mismatched> {
    let mismatch = &disagreement.mismatch;
    let side = |number: usize| {
        let (said, parts) = mismatch.sides.get(number)?;
        Some(Side {
            who: Subject::new(parts.iter().map(|it| it.task).collect())?,
            call: parts.first().and_then(|it| called(facts, *it)),
            said: said.clone(),
            callers: disagreement.callers.get(number).cloned(),
        })
    };
    let (most, few) = (side(0)?, side(1)?);
    let first = mismatch.sides[1].1.first();
    let does = first.and_then(|id| does(facts, *id));
    let named = facts.membership.named.get(&mismatch.communicator);
    let of = match (facts.communicators.get(mismatch.communicator), named) {
        (Some(it), _) => Of::Communicator(facts.communicators.name(it.id)),
        (None, Some(name)) => Of::Communicator(name.clone()),
        (None, None) if matches!(does, Some(Does::File(_))) => Of::File,
        (None, None) => Of::Window,
    };
    Some(Mismatched {
        both: few.who.iter().copied().find(|it| most.who.contains(it)),
        few,
        most,
        aspect: mismatch.aspect,
        is_led: does == Some(Does::Communicator(Making::Between)),
        by_normal: disagreement.right == Right::Normal,
        number: mismatch.order + 1,
        of,
    })
}

/// The call of a member, with its line if its first thread is in it.
fn called(facts: &Facts<'_>, id: PartId) -> Option<Called> {
    let conversation = facts.conversations.get(&id.task)?;
    let part = conversation.parts.get(id.part)?;
    let operation = conversation.operations.get(part.operation)?;
    let task = facts.progress.tasks.get(&id.task);
    let is_first = |(trace, _)| task.is_some_and(|it| it.trace == trace);
    let is_open = conversation.pending.contains(&part.operation)
        && conversation.call(part.operation).is_some_and(is_first);
    let group = facts.progress.group_of(id.task).filter(|_| is_open);
    let frame = group.and_then(|it| it.stack.get(telling(&it.stack)?));
    let line = frame.and_then(|it| it.called_at.clone());
    let called = facts.sites.call(conversation, part.operation)?;
    Some(Called {
        // What a start begins was said before.
        starts: match &part.kind {
            PartKind::Collective(share) if matches!(operation.meaning().does, Does::Start(_)) => {
                Some(share.name.clone())
            }
            _ => None,
        },
        site: match line {
            Some(line) => Some(Site {
                caller: String::new(),
                lines: vec![line],
            }),
            None => called.site,
        },
        name: called.name,
    })
}

/// What a share of a collective operation does.
fn does(facts: &Facts<'_>, id: PartId) -> Option<Does> {
    match &facts.conversations.get(&id.task)?.parts.get(id.part)?.kind {
        PartKind::Collective(share) => Some(share.meaning.does),
        _ => None,
    }
}
