//! Calls that do not fit each other, or fit by luck.

use crate::place::{called, name, site};
use crate::who::who;
use lockstep_check::Aspect;
use lockstep_diagnosis::Callers;
use lockstep_progress::clause::{Doubted, Of, Raced, Side, Then};
use lockstep_progress::{Mismatched, Potential, Progress};
use lockstep_trace::{base_name, brief};

/// What may come otherwise in another run.
#[must_use]
pub fn potential(progress: &Progress, it: &Potential) -> String {
    match it {
        Potential::Race(race) => raced(progress, race),
        Potential::Circle {
            who: tasks,
            calls,
            waits_for_all,
        } => {
            let clauses = calls.iter();
            let clauses = clauses
                .map(|(task, call)| format!("{} in {}", who(progress, &[*task]), called(call)));
            let also = match waits_for_all {
                true => " and collective operations waited for all",
                false => "",
            };
            format!(
                "{} would wait for each other if messages were not buffered{also}: {}",
                who(progress, tasks),
                clauses.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// `rank 0 in MPI_Recv from anybody at a.c:9 took a message of rank 2 and could have taken that of rank 1, for
/// which MPI_Recv at a.c:10 would then wait for ever`; or `of 20 MPI_INT, where it has room for 10 MPI_INT`.
fn raced(progress: &Progress, race: &Raced) -> String {
    let one = |task: u32| who(progress, &[task]);
    let took = race.took.map_or("another message".to_owned(), |it| {
        format!("a message of {}", one(it))
    });
    let then = match &race.then {
        Then::Starves(call) => format!(", for which {} would then wait for ever", called(call)),
        Then::TooLarge(sent, room) => format!(", of {sent}, where it has room for {room}"),
        Then::Unfit => ", which does not fit".to_owned(),
        Then::Chance => ": which one comes first is chance".to_owned(),
    };
    format!(
        "{} in {} from anybody took {took} and could have taken that of {}{then}",
        one(race.task),
        called(&race.call),
        one(race.instead)
    )
}

/// `for a message from rank 2 with tag 4, which MPI_Recv at a.c:9 from anybody may have taken`.
pub(crate) fn doubted(doubt: &Doubted) -> String {
    let tag = doubt.tag;
    let tag = tag.map_or(String::new(), |it| format!(" with tag {it}"));
    format!(
        "for a message from rank {}{tag}, which {} from anybody may have taken",
        doubt.from,
        called(&doubt.call)
    )
}

/// `rank 3 calls MPI_Reduce at a.c:9 where ranks 0-2 call MPI_Allreduce: operation 12 of MPI_COMM_WORLD`.
#[must_use]
pub fn mismatched(progress: &Progress, it: &Mismatched) -> String {
    let few: &[u32] = match &it.both {
        Some(both) => &[*both],
        None => &it.few.who,
    };
    format!("{} {}", who(progress, few), differs(progress, it))
}

/// The same, without who does otherwise.
pub(crate) fn differs(progress: &Progress, it: &Mismatched) -> String {
    let (few, most) = (&it.few, &it.most);
    let of = match &it.of {
        Of::Communicator(name) => name,
        Of::File => "a file",
        Of::Window => "a window",
    };
    if it.both.is_some() {
        let call = |side: &Side| {
            let call = side.call.as_ref();
            call.map_or("an operation".to_owned(), called)
        };
        return format!(
            "calls {} and {} of {of} in two threads at once",
            call(few),
            call(most)
        );
    }
    let calls = |side: &Side| if side.who.len() == 1 { "calls" } else { "call" };
    let as_normal = match it.by_normal {
        true => ", as in a normal run",
        false => "",
    };
    format!(
        "{} {} where {} {} {}{as_normal}: operation {} of {of}",
        calls(few),
        side(it, few, most),
        who(progress, &most.who),
        calls(most),
        side(it, most, few),
        it.number,
    )
}

/// What one side calls, and with what, beside what the other said.
fn side(of: &Mismatched, side: &Side, other: &Side) -> String {
    let callers = side.callers.as_ref().map_or(String::new(), way);
    let call = side.call.as_ref();
    // Without a line, the calls that led to it say where it is.
    let is_told = |it: &&_| site_has_lines(it) || callers.is_empty();
    let at = site(call.and_then(|it| it.site.as_ref()).filter(is_told));
    let said = match of.aspect {
        Aspect::Function | Aspect::Way => String::new(),
        Aspect::Root if of.is_led => format!(" with leader {}", side.said),
        Aspect::Root => format!(" with root {}", side.said),
        Aspect::Reduction | Aspect::Size => format!(" with {}", side.said),
        Aspect::Terms => format!(" with {}", without(&side.said, &other.said)),
    };
    let name = call.map_or("an operation".to_owned(), name);
    format!("{name}{at}{said}{callers}")
}

fn site_has_lines(it: &lockstep_trace::Site) -> bool {
    !it.lines.is_empty()
}

/// Of the terms of one side, those that are not the other's.
fn without(terms: &str, others: &str) -> String {
    let mut left: Vec<&str> = terms.split("; ").collect();
    left.retain(|it| !others.split("; ").any(|other| other == *it));
    left.join("; ")
}

/// ` in sum(), called at solve.c:31 in gather(), under couple()`: by which calls a side came to an operation.
pub(crate) fn way(callers: &Callers) -> String {
    let mut text = match callers.within.as_str() {
        "" => return String::new(),
        name => format!(" in {}", brief(base_name(name))),
    };
    if let Some(caller) = &callers.called_in {
        let at = match callers.lines.as_slice() {
            [] => String::new(),
            [one] => format!(" at {}", one.brief()),
            [one, two] => format!(" at {} or {}", one.brief(), two.line),
            [one, more @ ..] => format!(" at {} or {} other places", one.brief(), more.len()),
        };
        text.push_str(&format!(", called{at} in {}", brief(base_name(caller))));
    }
    if let Some(under) = &callers.under {
        text.push_str(&format!(", under {}", brief(base_name(under))));
    }
    text
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
