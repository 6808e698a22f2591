//! Calls that do not fit each other, or fit by luck, in words.

use crate::cause::way;
use crate::place_words::{telling, who};
use crate::progress::Facts;
use crate::sites::Sites;
use lockstep_api::mpi::{Does, Making, Shape};
use lockstep_check::races::{Harm, Race};
use lockstep_check::taken::Doubt;
use lockstep_check::{Aspect, LooseEnd};
use lockstep_comm::{Conversation, PartKind};
use lockstep_diagnosis::{Disagreement, Right};
use std::collections::{BTreeMap, BTreeSet};

/// `ranks 0,1 would wait for each other if messages were not buffered: rank 0 in MPI_Send ...`.
pub(crate) fn potential(facts: &Facts<'_>, circle: &crate::Circle) -> String {
    let tasks: Vec<u32> = circle.iter().map(|(task, _)| *task).collect();
    let clauses: Vec<String> = circle
        .iter()
        .take(4)
        .filter_map(|(task, at)| {
            let operation = facts.conversations.get(task)?.operations.get(*at)?;
            let who = who(facts.progress, &[*task]);
            let at = facts.sites.of(&facts.conversations[task], *at);
            Some(format!("{who} in {}{at}", operation.name))
        })
        .collect();
    let mut sorted = tasks;
    sorted.sort_unstable();
    let waits_for_some = |(task, at): &(u32, usize)| {
        let parts = facts.conversations.get(task).map(|it| &it.parts);
        let mut parts = parts.into_iter().flatten().filter(|it| it.operation == *at);
        parts.any(|it| match &it.kind {
            PartKind::Collective(share) => !matches!(share.shape(), Shape::All | Shape::Neighbours),
            _ => false,
        })
    };
    let also = match circle.iter().any(waits_for_some) {
        true => " and collective operations waited for all",
        false => "",
    };
    format!(
        "{} would wait for each other if messages were not buffered{also}: {}",
        who(facts.progress, &sorted),
        clauses.join(", ")
    )
}

/// `rank 0 in MPI_Recv from anybody at a.c:9 took a message of rank 2 and could have taken that of rank 1, for
/// which MPI_Recv at a.c:10 would then wait for ever`; or `of 20 MPI_INT, where it has room for 10 MPI_INT`.
pub(crate) fn race(facts: &Facts<'_>, race: &Race) -> String {
    let progress = facts.progress;
    let call = |part: usize| raced(facts, race.task, part);
    let task = who(progress, &[race.task]);
    let instead = who(progress, &[race.instead]);
    let took = race.took.map_or("another message".to_owned(), |it| {
        format!("a message of {}", who(progress, &[it]))
    });
    let then = match &race.harm {
        Harm::Starves(part) => format!(", for which {} would then wait for ever", call(*part)),
        Harm::Unfit(LooseEnd::TooLarge { sent, room, .. }) => {
            format!(", of {sent}, where it has room for {room}")
        }
        Harm::Unfit(_) => ", which does not fit".to_owned(),
        Harm::Chance => ": which one comes first is chance".to_owned(),
    };
    format!(
        "{task} in {} from anybody took {took} and could have taken that of {instead}{then}",
        call(race.wildcard)
    )
}

/// `MPI_Recv at a.c:9`.
fn raced(facts: &Facts<'_>, task: u32, part: usize) -> String {
    let Some(conversation) = facts.conversations.get(&task) else {
        return String::new();
    };
    let operation = conversation.parts[part].operation;
    let at = facts.sites.of(conversation, operation);
    format!("{}{at}", conversation.operations[operation].name)
}

/// `its message was taken before by MPI_Recv from anybody at a.c:9`.
pub(crate) fn stolen(facts: &Facts<'_>, waiting: &BTreeSet<u32>) -> Option<String> {
    let steal = facts.steals.iter().find(|it| waiting.contains(&it.task))?;
    Some(format!(
        "a message of {} was taken before by {} from anybody",
        who(facts.progress, &[steal.instead]),
        raced(facts, steal.task, steal.wildcard)
    ))
}

/// `for a message from rank 2 with tag 4, which MPI_Recv at a.c:9 from anybody may have taken`.
pub(crate) fn doubted(
    doubt: &Doubt,
    tasks: &BTreeMap<u32, Conversation>,
    sites: &Sites,
) -> Option<String> {
    let conversation = tasks.get(&doubt.task)?;
    let operation = conversation.parts.get(doubt.wildcard)?.operation;
    let name = &conversation.operations.get(operation)?.name;
    let tag = doubt
        .tag
        .map_or(String::new(), |it| format!(" with tag {it}"));
    Some(format!(
        "for a message from rank {}{tag}, which {name}{} from anybody may have taken",
        doubt.from,
        sites.of(conversation, operation)
    ))
}

/// `rank 3 calls MPI_Reduce at a.c:9 where ranks 0-2 call MPI_Allreduce: operation 12 of MPI_COMM_WORLD`.
pub(crate) fn mismatched(facts: &Facts<'_>, disagreement: &Disagreement) -> String {
    let told = differing(facts, disagreement);
    told.map_or(String::new(), |(few, what)| {
        format!("{} {what}", who(facts.progress, &few))
    })
}

/// Who does otherwise than most, or than is right, and what.
pub(crate) fn differing(
    facts: &Facts<'_>,
    disagreement: &Disagreement,
) -> Option<(Vec<u32>, String)> {
    let (progress, mismatch) = (facts.progress, &disagreement.mismatch);
    let ((usual, most), (other, few)) = (mismatch.sides.first()?, mismatch.sides.get(1)?);
    let tasks = |parts: &[crate::PartId]| parts.iter().map(|it| it.task).collect::<Vec<u32>>();
    let name = |parts: &[crate::PartId]| {
        let id = parts.first()?;
        let conversation = facts.conversations.get(&id.task)?;
        let part = conversation.parts.get(id.part)?;
        let operation = conversation.operations.get(part.operation)?;
        // Where its first thread is in it, its line is known.
        let task = progress.tasks.get(&id.task);
        let is_first = |(trace, _)| task.is_some_and(|it| it.trace == trace);
        let is_open = conversation.pending.contains(&part.operation)
            && conversation.call(part.operation).is_some_and(is_first);
        let line = is_open
            .then(|| progress.group_of(id.task))
            .flatten()
            .and_then(|group| {
                let frame = group.stack.get(telling(&group.stack)?)?;
                frame
                    .called_at
                    .as_ref()
                    .map(|line| format!(" at {}", line.brief()))
            });
        let called = || facts.sites.of(conversation, part.operation);
        // What a start begins was said before.
        let name = match &part.kind {
            PartKind::Collective(share) if matches!(operation.meaning().does, Does::Start(_)) => {
                format!("{} of {}", operation.name, share.name)
            }
            _ => operation.name.to_string(),
        };
        Some((name, line.unwrap_or_else(called)))
    };
    let does = few.first().and_then(|id| does(facts, *id));
    let (few_name, few_line) = name(few).unwrap_or_default();
    let (most_name, most_line) = name(most).unwrap_or_default();
    let calls = |tasks: &[u32]| if tasks.len() == 1 { "calls" } else { "call" };
    let (few, most) = (tasks(few), tasks(most));
    let named = facts.membership.named.get(&mismatch.communicator);
    let whose = match facts.communicators.get(mismatch.communicator) {
        Some(it) => facts.communicators.name(it.id),
        None if named.is_some() => named.cloned().unwrap_or_default(),
        None if matches!(does, Some(Does::File(_))) => "a file".to_owned(),
        None => "a window".to_owned(),
    };
    let both = few.iter().find(|it| most.contains(it));
    if let Some(both) = both {
        let what = format!(
            "calls {few_name}{few_line} and {most_name}{most_line} of {whose} in two threads at once"
        );
        return Some((vec![*both], what));
    }
    let what = match mismatch.aspect {
        Aspect::Function | Aspect::Way => (String::new(), String::new()),
        Aspect::Root if does == Some(Does::Communicator(Making::Between)) => (
            format!(" with leader {other}"),
            format!(" with leader {usual}"),
        ),
        Aspect::Root => (format!(" with root {other}"), format!(" with root {usual}")),
        Aspect::Reduction | Aspect::Size => (format!(" with {other}"), format!(" with {usual}")),
        Aspect::Terms => {
            let (other, usual) = (without(other, usual), without(usual, other));
            (format!(" with {other}"), format!(" with {usual}"))
        }
    };
    let callers = |side: usize| disagreement.callers.get(side).map_or(String::new(), way);
    // Without a line, the calls that led to it say where it is.
    let place =
        |line: String, side: usize| match line.starts_with(" at ") || callers(side).is_empty() {
            true => line,
            false => String::new(),
        };
    let (few_line, most_line) = (place(few_line, 1), place(most_line, 0));
    let as_normal = match disagreement.right {
        Right::Normal => ", as in a normal run",
        Right::Most | Right::Unknown => "",
    };
    let what = format!(
        "{} {few_name}{few_line}{}{} where {} {} {most_name}{most_line}{}{}{as_normal}: operation {} of {whose}",
        calls(&few),
        what.0,
        callers(1),
        who(progress, &most),
        calls(&most),
        what.1,
        callers(0),
        mismatch.order + 1,
    );
    Some((few, what))
}

/// What a share of a collective operation does.
fn does(facts: &Facts<'_>, id: crate::PartId) -> Option<Does> {
    match &facts.conversations.get(&id.task)?.parts.get(id.part)?.kind {
        PartKind::Collective(share) => Some(share.meaning.does),
        _ => None,
    }
}

/// Of the terms of one side, those that are not the other's.
fn without(terms: &str, others: &str) -> String {
    let mut left: Vec<&str> = terms.split("; ").collect();
    left.retain(|it| !others.split("; ").any(|other| other == *it));
    left.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_terms_those_that_differ() {
        let grid = |dims, periods| format!("dims {dims}; periods {periods}");
        let (one, other) = (grid("[4]", "[0]"), grid("[4]", "[1]"));
        assert_eq!(without(&one, &other), "periods [0]");
        assert_eq!(without(&one, &grid("[2]", "[1]")), one);
        assert_eq!(without("amode 1", "amode 2"), "amode 1");
    }
}
