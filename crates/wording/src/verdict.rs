//! One sentence: who holds the others up, where, and why.

use crate::amiss::amiss;
use crate::call::{doubted, mismatched, potential};
use crate::deed::{caused, departed, departs_from_normal};
use crate::loose::loose;
use crate::place::{called, place, site, waiter};
use crate::reason::{waiting, wants, why};
use crate::who::{numbered, thread, threads, wait, who};
use lockstep_progress::clause::{
    Called, Ended, Finish, Holds, Link, Look, Places, Reason, Waiter, What,
};
use lockstep_progress::{Cause, Deed, NonEmpty, Progress, Subject, Truant, Wants, Whereabouts};
use std::time::Duration;

/// The answer.
#[must_use]
pub fn verdict(progress: &Progress) -> String {
    let mut text = String::new();
    for clause in progress.verdict.clauses() {
        let link = match clause.link {
            _ if text.is_empty() => "",
            Link::And => "; ",
            Link::Then => "; then ",
            Link::But => "; but ",
        };
        text.push_str(link);
        text.push_str(&what(progress, &clause.what));
    }
    text
}

/// All that is amiss beside who waits: operations that do not fit, what fits by luck, and loose ends.
#[must_use]
pub fn mistakes(progress: &Progress) -> Vec<String> {
    let mismatches = progress.mismatched.iter();
    let potentials = progress.potential.iter();
    let all = mismatches.map(|it| mismatched(progress, it));
    let all = all.chain(potentials.map(|it| potential(progress, it)));
    all.chain(progress.loose.iter().map(loose)).collect()
}

fn what(progress: &Progress, what: &What) -> String {
    match what {
        What::Over(all) => format!("no task hangs: {}", finish(progress, all)),
        What::NotSeen { moved: false } => "no task is seen to hang".to_owned(),
        What::NotSeen { moved: true } => {
            "no task is seen to hang: between two looks, tasks moved".to_owned()
        }
        What::Killed { finished, at } => killed(progress, finished, at),
        What::Silent { quiet, at } => silent(progress, *quiet, at.as_ref()),
        What::Waits(all) => waits(progress, all),
        What::Stuck {
            is_livelock,
            waiters,
            more,
        } => stuck(progress, *is_livelock, waiters, *more),
        What::Began(task, calls) => began(progress, *task, calls),
        What::Took {
            thread: of,
            at,
            is_over,
        } => {
            let end = if *is_over {
                " and never gave it back"
            } else {
                ""
            };
            format!("{} took it {}{end}", thread(progress, *of), place(at))
        }
        What::Amiss(it) => amiss(progress, it),
        What::Stolen(task, by) => format!(
            "a message of {} was taken before by {} from anybody",
            who(progress, &[*task]),
            called(by)
        ),
        What::Crowd {
            who,
            by_name,
            at,
            why,
        } => crowd(progress, (who, *by_name), at, why.as_ref()),
        What::Truant(it) => truant(progress, it),
        What::Ended(it) => ended(progress, it),
        What::Mismatch(it) => mismatched(progress, it),
        What::Potential(it) => potential(progress, it),
        What::Loose(it) => loose(it),
        What::NoInit => "no process had called MPI_Init".to_owned(),
        What::Caused(tasks, cause) => made_wait(progress, tasks, cause),
        What::Holding {
            is_livelock,
            holders,
            look,
        } => holding(progress, *is_livelock, holders, *look),
        What::Blind(groups) => {
            let waits = |(tasks, at): &(Subject, Whereabouts)| {
                format!("{} {} {}", who(progress, tasks), wait(tasks), place(at))
            };
            format!("{}, for whom is not known", list(groups.iter().map(waits)))
        }
    }
}

fn list(clauses: impl Iterator<Item = String>) -> String {
    clauses.collect::<Vec<_>>().join(", ")
}

/// `all 4 ranks came to their end`.
fn finish(progress: &Progress, all: &Finish) -> String {
    let kind = if progress.is_mpi { "rank" } else { "thread" };
    match all {
        Finish::All => "all came to their end".to_owned(),
        Finish::Counted(1) => format!("the only {kind} came to its end"),
        Finish::Counted(all) => format!("all {all} {kind}s came to their end"),
        Finish::ByStatus(all) => by_status(all),
    }
}

/// `ranks 0,2-3 came to their end (exit 3)`: for such a status launchers end the others.
fn by_status(all: &[(i32, Subject)]) -> String {
    list(all.iter().map(|(status, tasks)| {
        let end = if tasks.len() == 1 { "its" } else { "their" };
        let text = format!("{} came to {end} end", numbered(true, tasks));
        match status {
            0 => text,
            status => format!("{text} (exit {status})"),
        }
    }))
}

/// `all ranks were ended from outside: rank 0 in MPI_Send at a.c:9 in main(), rank 1 in MPI_Recv at a.c:11 in main()`.
fn killed(progress: &Progress, finished: &[(i32, Subject)], at: &Places) -> String {
    let at = places(progress, at);
    match finished {
        [] => format!("all ranks were ended from outside: {at}"),
        some => format!(
            "{}; the others were ended from outside: {at}",
            by_status(some)
        ),
    }
}

/// `rank 0 in MPI_Send at a.c:9 in main(), ranks 1-3 in MPI_Recv at a.c:11 in main()`.
fn places(progress: &Progress, places: &Places) -> String {
    let groups = places.groups.iter();
    let clauses = groups.map(|(tasks, at)| format!("{} {}", who(progress, tasks), place(at)));
    let more = if places.more {
        ", and others elsewhere"
    } else {
        ""
    };
    format!("{}{more}", list(clauses))
}

/// `nobody called anything for 60 s: rank 0 in poll at a.c:9 in main(), rank 1 in MPI_Recv at a.c:12 in main()`.
fn silent(progress: &Progress, quiet: Duration, at: Option<&Places>) -> String {
    let at = at.map_or(String::new(), |it| format!(": {}", places(progress, it)));
    format!("nobody called anything for {} s{at}", quiet.as_secs())
}

fn waits(progress: &Progress, all: &NonEmpty<(Subject, Wants)>) -> String {
    let each = all.iter();
    let mut each: Vec<_> = each
        .map(|(tasks, it)| (wants(progress, it), tasks))
        .collect();
    each.sort_by(|one, other| one.0.cmp(&other.0));
    let clauses = each
        .iter()
        .map(|(why, tasks)| waiting(progress, tasks, why));
    clauses.collect::<Vec<_>>().join("; ")
}

/// `deadlock: rank 0 waits in MPI_Recv at a.c:9 in main(), for a message from rank 1; and 3 more of them`.
fn stuck(
    progress: &Progress,
    is_livelock: bool,
    waiters: &NonEmpty<Waiter>,
    more: usize,
) -> String {
    let kind = if is_livelock { "livelock" } else { "deadlock" };
    let clause = |it: &Waiter| {
        let at = it.at.as_ref();
        let at = at.map_or(String::new(), |it| format!(" {}", waiter(it)));
        let reason = because(progress, it.why.as_ref());
        format!("{} {}{at}{reason}", who(progress, &it.who), wait(&it.who))
    };
    let mut clauses: Vec<String> = waiters.iter().map(clause).collect();
    if more > 0 {
        clauses.push(format!("and {more} more of them"));
    }
    format!("{kind}: {}", clauses.join("; "))
}

/// `, for a message from rank 1`, if that is known.
fn because(progress: &Progress, reason: Option<&Reason>) -> String {
    reason.map_or(String::new(), |it| format!(", {}", why(progress, it)))
}

/// `rank 0 began it in MPI_Irecv at halo.c:31`.
fn began(progress: &Progress, task: u32, calls: &[Called]) -> String {
    let calls: Vec<String> = calls.iter().map(called).collect();
    let who = who(progress, &[task]);
    format!("{who} began it in {}", calls.join(" and "))
}

/// `12 of 16 ranks wait in MPI_Barrier at a.c:9 in main()`.
fn crowd(
    progress: &Progress,
    (tasks, by_name): (&Subject, bool),
    at: &Whereabouts,
    reason: Option<&Reason>,
) -> String {
    let kind = if progress.is_mpi { "rank" } else { "thread" };
    let subject = match tasks.len() > 3 && !by_name {
        true => format!("{} of {} {kind}s", tasks.len(), progress.tasks.len()),
        false => who(progress, tasks),
    };
    let reason = because(progress, reason);
    format!("{subject} {} {}{reason}", wait(tasks), place(at))
}

/// `thread 1.2 left out meet() at step.c:12 in step() (call 8), unlike those that wait there`.
fn truant(progress: &Progress, truant: &Truant) -> String {
    let what = departed(&truant.departure, &site(truant.site.as_ref()));
    let who = thread(progress, truant.thread);
    format!("{who} {what}, unlike those that wait there")
}

/// `rank 3 ended (signal 11) in MPI_Send(dest=7) at a.c:9 in main() (2 more ended so)`.
fn ended(progress: &Progress, it: &Ended) -> String {
    let at = it.at.as_ref().map(place);
    let at = match it.thread {
        Some(of) => format!(
            " in {}, {}",
            threads(progress, &[of]),
            at.unwrap_or_default()
        ),
        None => at.map_or(String::new(), |at| format!(" {at}")),
    };
    let after = it.after.as_ref();
    let after = after.map_or(String::new(), |it| format!(" after {}", called(it)));
    let more = match it.more {
        0 => String::new(),
        more => format!(" ({more} more ended so)"),
    };
    let early = if it.early {
        " without MPI_Finalize"
    } else {
        ""
    };
    let who = who(progress, &[it.task]);
    format!("{who} ended ({}){early}{at}{after}{more}", it.end)
}

/// `rank 2 went ahead: it left out MPI_Isend at halo.c:77 in exchange() (call 21), unlike in a normal run`.
fn made_wait(progress: &Progress, tasks: &Subject, cause: &Cause) -> String {
    let (who, what) = (who(progress, tasks), caused(cause));
    match cause.deed {
        _ if departs_from_normal(cause) => {
            let it = if tasks.len() == 1 { "it" } else { "they" };
            format!("{who} went ahead: {it} {what}, unlike in a normal run")
        }
        Deed::Departed { .. } => format!("{who} {what}, unlike in all its calls before"),
        _ => format!("{who} {what}"),
    }
}

/// `rank 2 is still in relax() called at a.c:9: look there`.
fn holding(
    progress: &Progress,
    is_livelock: bool,
    holders: &[(Subject, Whereabouts, Option<Holds>)],
    look: Look,
) -> String {
    let how = if is_livelock {
        "calling on and on"
    } else {
        "still"
    };
    let clause = |(tasks, at, why): &(Subject, Whereabouts, Option<Holds>)| {
        let verb = if tasks.len() == 1 { "is" } else { "are" };
        let why = why.as_ref().map(|it| match it {
            Holds::Waits(reason) => self::why(progress, reason),
            Holds::Doubts(doubt) => doubted(doubt),
            Holds::Truant(it) => truant(progress, it),
        });
        let why = why.map_or(String::new(), |it| format!(", {it}"));
        format!("{} {verb} {how} {}{why}", who(progress, tasks), place(at))
    };
    let look = match look {
        Look::There => "look there",
        Look::SlowSoFar => "slow so far",
        Look::SoFar => "so far",
    };
    format!("{}: {look}", list(holders.iter().map(clause)))
}

#[cfg(test)]
mod tests {
    use super::by_status;
    use lockstep_progress::Subject;

    #[test]
    fn a_status_that_launchers_end_the_others_for() {
        let of = |tasks: &[u32]| Subject::new(tasks.to_vec()).expect("some");
        let both = "rank 0 came to its end, rank 2 came to its end (exit 3)";
        assert_eq!(by_status(&[(0, of(&[0])), (3, of(&[2]))]), both);
        let alike = "ranks 2,4 came to their end (exit 3)";
        assert_eq!(by_status(&[(3, of(&[2, 4]))]), alike);
    }
}
