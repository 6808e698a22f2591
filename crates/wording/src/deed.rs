//! What tasks did that made others wait.

use crate::amiss::unreceived;
use crate::call::{differs, way};
use crate::place::{at, site};
use lockstep_progress::{
    Cause, Charge, Deed, Departure, Evidence, Gap, Instead, Lapse, Misdirection, Omission, Part,
    Progress,
};
use lockstep_trace::threads::{self, Library};
use lockstep_trace::{base_name, brief, c_name, ranges};

/// What a task did, without its name: `left out MPI_Isend in exchange() (call 21)`.
#[must_use]
pub fn caused(cause: &Cause) -> String {
    let at = site(cause.site.as_ref());
    match &cause.deed {
        Deed::Departed { departure, .. } => departed(departure, &at),
        Deed::Lapsed(lapse) => lapsed(lapse, &at),
        Deed::Skipped(gap) => skipped(gap, &at),
        Deed::Omitted(omission) => omitted(omission, &at),
        Deed::Misdirected(message) => misdirected(message, &at),
        Deed::Passed(name) => format!("went on without calling {name}"),
        Deed::WentOn => match cause.victims.as_slice() {
            [one] => format!("went on without sending rank {one} what it waits for"),
            many => format!(
                "went on without sending ranks {} what they wait for",
                ranges(many)
            ),
        },
        Deed::Differed {
            did,
            most,
            by_normal,
            ..
        } => match by_normal {
            true => format!("{} where it {} in a normal run", part(did), part(most)),
            false => format!("{} where most {}", part(did), part(most)),
        },
    }
}

/// [`Progress::suspects`], and what each did, in words.
#[must_use]
pub fn suspects(progress: &Progress) -> Vec<(u32, Option<String>)> {
    let words = |charge: Charge<'_>| match charge {
        Charge::Caused(cause) if departs_from_normal(cause) => {
            format!("{}, unlike in the normal run", caused(cause))
        }
        Charge::Caused(cause) => caused(cause),
        Charge::Differed(it) => differs(progress, it),
        Charge::Unreceived(it) => unreceived(progress, it),
    };
    let all = progress.suspects().into_iter();
    all.map(|(task, charge)| (task, charge.map(words)))
        .collect()
}

/// Whether a normal run shows that it went another way.
pub(crate) fn departs_from_normal(cause: &Cause) -> bool {
    matches!(
        cause.deed,
        Deed::Departed {
            by_normal: true,
            ..
        }
    )
}

/// How a task took part in a collective operation: `called MPI_Barrier`.
fn part(it: &Part) -> String {
    match it {
        Part::Called(name) => format!("called {name}"),
        Part::CalledWith(name, what) => format!("called {name} with {what}"),
        Part::CalledFrom(name, callers) => format!("called {name}{}", way(callers)),
        Part::CalledAt {
            name,
            line,
            is_apart,
        } => {
            let apart = if *is_apart {
                " in another communicator"
            } else {
                ""
            };
            format!("called {name}{}{apart}", at(line.as_ref()))
        }
        Part::Root(root) => format!("named root {root}"),
        Part::Had(what) => format!("had {what}"),
        Part::OtherWay => "came another way".to_owned(),
    }
}

/// `left out MPI_Isend at halo.c:77 in exchange() (call 21)`; `at` is ` at halo.c:77`, or empty.
pub(crate) fn departed(it: &Departure, at: &str) -> String {
    let list = |names: &[String]| {
        let several = |same: &[String]| match same.len() {
            1 => call(&same[0]),
            many => format!("{} ({many} times)", call(&same[0])),
        };
        let names: Vec<String> = names.chunk_by(|a, b| a == b).map(several).collect();
        names.join(", ")
    };
    let mut text = match (it.left_out.is_empty(), it.instead.is_empty()) {
        (true, _) => format!("called {}{at} besides", list(&it.instead)),
        (false, true) => format!("left out {}{at}", list(&it.left_out)),
        (false, false) => format!(
            "called {}{at} instead of {}",
            list(&it.instead),
            list(&it.left_out)
        ),
    };
    if let Some((function, nth)) = it.frames.last() {
        text.push_str(&format!(" in {}", brief(base_name(function))));
        if *nth > 1 {
            text.push_str(&format!(" (call {nth})"));
        }
    }
    text
}

/// A function as sentences have it.
fn call(name: &str) -> String {
    let of_threads = |name: &str| {
        let it = threads::meaning(name);
        it.is_runtime() || it.library == Library::Pthread
    };
    match c_name(name) {
        name if name.starts_with("MPI_") || of_threads(&name) => name.into_owned(),
        _ => brief(base_name(name)),
    }
}

/// `left out MPI_Send at sweep.c:31 in give(), unlike in its 22 other rounds`.
fn lapsed(it: &Lapse, at: &str) -> String {
    let name = it.name();
    let within = it.path.iter().rev().nth(1);
    let within = within.map_or(String::new(), |it| format!(" in {}", brief(it)));
    let own = match it.own {
        1 => "its other round".to_owned(),
        many => format!("its {many} other rounds"),
    };
    let others = match it.others {
        0 => String::new(),
        1 => " and in one of others".to_owned(),
        many => format!(" and in {many} of others"),
    };
    format!("left out {name}{at}{within}, unlike in {own}{others}")
}

/// `called MPI_Send at farm.c:38 for ranks 12 and 14, and not for rank 13 between them`.
fn skipped(it: &Gap, at: &str) -> String {
    let Gap { name, missed, .. } = it;
    let [before, behind] = it.beside;
    let others = format!("called {name}{at} for ranks {before} and {behind}");
    match it.instead {
        Some(Instead::Tag { own, usual }) => {
            format!("{others} with tag {usual}, and with tag {own} for rank {missed} between them")
        }
        Some(Instead::To(other)) => {
            format!("{others}, and for rank {other} instead of rank {missed} between them")
        }
        None => format!("{others}, and not for rank {missed} between them"),
    }
}

/// `left out MPI_Send at sweep.c:31 for rank 9 with tag 4, unlike 29 times before between the same calls`.
fn omitted(it: &Omission, at: &str) -> String {
    let Omission { to, tag, .. } = it;
    let name = it.name.as_deref().unwrap_or("a message");
    let unlike = match it.evidence {
        Evidence::Before(times) => format!("{times} times before between the same calls"),
        Evidence::Others(0) => "in the exchanges before".to_owned(),
        Evidence::Others(1) => "for the other with which it exchanges messages".to_owned(),
        Evidence::Others(many) => {
            format!("for the {many} others with which it exchanges messages")
        }
    };
    format!("left out {name}{at} for rank {to} with tag {tag}, unlike {unlike}")
}

/// `sent rank 2 a message with tag 77 instead of 20 in MPI_Isend at halo.c:77`.
fn misdirected(it: &Misdirection, at: &str) -> String {
    let Misdirection {
        from, sent, wanted, ..
    } = it;
    let place = format!("in {}{at}", it.name);
    let unlike = match it.by_normal {
        true => ", unlike in a normal run",
        false => "",
    };
    if let Some(asked) = it.asked {
        let instead = match (asked == *from, sent.tag == wanted.tag) {
            (true, _) => sent.tag.to_string(),
            (false, true) => format!("rank {from}"),
            (false, false) => format!("rank {from} for tag {}", sent.tag),
        };
        let tag = wanted.tag;
        return format!(
            "asked rank {asked} for a message with tag {tag} instead of {instead} {place}{unlike}"
        );
    }
    if !it.by_sender {
        let tag = wanted.tag;
        return format!(
            "asks rank {from} for tag {tag}, which sent it tag {}",
            sent.tag
        );
    }
    if sent.to == wanted.to {
        return format!(
            "sent rank {} a message with tag {} instead of {} {place}{unlike}",
            sent.to, sent.tag, wanted.tag
        );
    }
    let to = match sent.to == *from {
        true => "itself".to_owned(),
        false => format!("rank {}", sent.to),
    };
    let instead = match it.others {
        true => " that nobody received".to_owned(),
        false if sent.tag != wanted.tag => {
            format!(" instead of to rank {} with tag {}", wanted.to, wanted.tag)
        }
        false => format!(" instead of to rank {}", wanted.to),
    };
    format!(
        "sent a message with tag {} to {to}{instead} {place}{unlike}",
        sent.tag
    )
}
