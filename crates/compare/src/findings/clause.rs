//! What a trace does instead of what, and where: the clause of a sentence.

use super::finding::{Finding, Reason};
use crate::naming::{grouped, told, told_around};
use crate::structure::arguments::is_poll;
use crate::structure::totals::Change;
use crate::{Divergence, DivergenceKind};
use lockstep_trace::{SourceLine, is_standard, mpi};

/// What a trace does instead of what, and where.
pub(crate) fn clause(finding: &Finding) -> String {
    if let (Reason::Arguments, Some(wrong)) = (finding.reason, &finding.wrong) {
        return wrong.told.clone();
    }
    if let Some(told) = &finding.told {
        return told.clone();
    }
    // That a process crashed is no matter of what is usual.
    let is_sure = finding.blame.has_crashed && finding.beside.ended.is_some();
    let oddity = finding.oddity().filter(|_| !is_sure);
    // Where nothing is the same twice, where it first parts says less.
    let wavers = !is_sure && (finding.standing.as_ref()).is_some_and(|it| !it.is_steady);
    let is_told = |it: &&Change| it.is_whole() && (oddity.is_some() || (wavers && it.is_own()));
    match (finding.beside.changes.iter().find(is_told), oddity) {
        (Some(change), _) => change.clause(),
        (None, Some(oddity)) => oddity.clause(),
        (None, None) => parts(finding),
    }
}

/// Where a trace parts from the normal run.
pub(crate) fn parts(finding: &Finding) -> String {
    let Some(divergence) = finding.divergence() else {
        return "differs".to_owned();
    };
    let is_open = divergence.faulty_is_open;
    match divergence.kind {
        // A process that ended by what it called is not stuck in that.
        DivergenceKind::OtherCall | DivergenceKind::GoesOn
            if is_open && (finding.beside.ended.is_none() || finding.is_waiting()) =>
        {
            is_stuck(finding, divergence)
        }
        DivergenceKind::OtherCall | DivergenceKind::GoesOn => goes_otherwise(finding, divergence),
        DivergenceKind::EndsEarly => ends_early(finding, divergence),
        DivergenceKind::Timing => format!(
            "goes another way that functions that wait went before{}{}",
            place(divergence),
            iterations(finding)
        ),
        DivergenceKind::Counts => match finding.beside.changes.first() {
            Some(change) => change.clause(),
            None => format!(
                "has other trip counts than before: it {}{}",
                plain(divergence),
                iterations(finding)
            ),
        },
    }
}

/// Of a trace that never comes back from another call.
fn is_stuck(finding: &Finding, divergence: &Divergence) -> String {
    let iterations = iterations(finding);
    let instead = instead(finding.by_mpi().unwrap_or(divergence));
    let place = place(divergence);
    match finding.stuck() {
        Some(stuck) if Some(&stuck.function) != divergence.faulty.as_ref() => format!(
            "is stuck in {}{}, within {}{place}{iterations},{instead}",
            told(&stuck.function),
            at(stuck.line.as_slice()),
            told_around(divergence.faulty.as_deref().unwrap_or_default()),
        ),
        _ => format!("{}{place}{iterations},{instead}", does(divergence)),
    }
}

/// Of a trace that makes another call, and goes on or ends by it.
fn goes_otherwise(finding: &Finding, divergence: &Divergence) -> String {
    let by_mpi = finding.by_mpi().filter(|it| it.faulty != divergence.faulty);
    let inner = by_mpi.and_then(|it| Some((it.faulty.as_ref()?, it.normal.as_ref()?)));
    let inner = inner.map(|(faulty, normal)| format!(" ({} for {})", told(faulty), told(normal)));
    // How it came to its end says more than where it first was unlike others, and less of why.
    let ended = match (&finding.beside.ended, finding.stuck()) {
        (Some(ended), Some(stuck)) if Some(&stuck.function) != divergence.faulty.as_ref() => {
            let at = at(stuck.line.as_slice());
            format!(", and {ended} in {}{at}", told(&stuck.function))
        }
        (Some(ended), _) => format!(", and {ended}"),
        (None, _) => String::new(),
    };
    let does = match &divergence.faulty {
        Some(call) if divergence.faulty_is_open => format!("calls {}", told(call)),
        _ => does(divergence),
    };
    format!(
        "{does}{}{}{}{}{ended}",
        instead(divergence),
        inner.unwrap_or_default(),
        place(divergence),
        iterations(finding)
    )
}

fn ends_early(finding: &Finding, divergence: &Divergence) -> String {
    let place = place(divergence);
    let does = match (&finding.beside.ended, divergence.stack.last()) {
        (Some(ended), Some(function)) => format!("{ended} in {}", told(function)),
        (None, Some(function)) if asks_on(finding, function) => {
            let times = times(finding);
            return format!("calls {} on and on{place}{times}", told(function));
        }
        _ => does(divergence),
    };
    format!("{does}{place}{}", iterations(finding))
}

/// The same of a divergence by itself.
pub(super) fn plain(divergence: &Divergence) -> String {
    format!(
        "{}{}{}",
        does(divergence),
        instead(divergence),
        place(divergence)
    )
}

fn instead(divergence: &Divergence) -> String {
    match divergence.normal.as_deref() {
        Some("return") => match divergence.stack.last() {
            Some(function) => format!(" where the normal run returns from {}", told(function)),
            None => " where the normal run returns".to_owned(),
        },
        Some(call) => format!(
            " where the normal run calls {}{}",
            told(call),
            at(divergence.missed().cloned().as_slice())
        ),
        None => " where the normal run has ended".to_owned(),
    }
}

fn does(divergence: &Divergence) -> String {
    match (divergence.faulty.as_deref(), divergence.stack.last()) {
        (Some("return"), Some(function)) => format!("returns from {}", told(function)),
        (Some("return"), None) => "returns".to_owned(),
        (Some(call), _) if divergence.faulty_is_open => format!("is stuck in {}", told(call)),
        (Some(call), _) => format!("calls {}", told(call)),
        (None, Some(function)) => format!("never returns from {}", told(function)),
        (None, None) => "ends early".to_owned(),
    }
}

/// `, in exchange() at odd_even.c:41`.
fn place(divergence: &Divergence) -> String {
    let mut place = String::new();
    // An end has the function that it is stuck in on top of the stack, and is told already.
    if let (Some(caller), Some(_)) = (divergence.stack.last(), &divergence.faulty) {
        place.push_str(&format!(", in {}", told_around(caller)));
        // Who looks for it looks in the program's own function.
        let own = divergence.stack.iter().rev().find(|it| !is_standard(it));
        if let (true, Some(own)) = (is_standard(caller), own) {
            place.push_str(&format!(", called in {}", told_around(own)));
        }
    }
    place.push_str(&at(&divergence.source));
    place
}

/// ` at odd_even.c:41`, ` at odd_even.c:83 or 87`.
fn at(lines: &[SourceLine]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(" at {}", line.brief()),
        [a, b] if a.file == b.file => format!(" at {} or {}", a.brief(), b.line),
        [a, b] => format!(" at {} or {}", a.brief(), b.brief()),
        [first, rest @ ..] => format!(" at {} or {} other places", first.brief(), rest.len()),
    }
}

/// A loop that goes round so much more often than it did is not on its way to an end.
const MANY: u64 = 100;

/// Whether a trace asks whether something has come, again and again: it is not stuck in a call.
fn asks_on(finding: &Finding, function: &str) -> bool {
    is_poll(mpi::meaning(&told(function)))
        && (finding.iterations()).is_some_and(|it| it.done > it.of.saturating_mul(2) + MANY)
}

/// ` (588,777 rounds of the loop [MPI_Test], 4 in the normal run)`.
fn times(finding: &Finding) -> String {
    finding.iterations().map_or_else(String::new, |it| {
        let (done, of) = (grouped(it.done), grouped(it.of));
        format!(
            " ({done} rounds of the loop {}, {of} in the normal run)",
            it.body
        )
    })
}

/// `, after 7 of 16 iterations of the loop [MPI_Recv MPI_Send]`, ` (17 rounds of the loop [MPI_Recv], 16 in the normal run)`, or
/// `, in iteration 8 of the loop [MPI_Recv MPI_Send]`.
fn iterations(finding: &Finding) -> String {
    if let Some(iterations) = finding.iterations() {
        // More than there were are no part of them.
        if iterations.done > iterations.of {
            return times(finding);
        }
        return format!(
            ", after {} of {} iterations of the loop {}",
            iterations.done, iterations.of, iterations.body
        );
    }
    // A loop that was folded from a piece of the main loop counts from anywhere.
    let outermost = finding
        .loops()
        .first()
        .map(|(_, iteration)| *iteration as usize);
    if let Some(phases) = &finding.beside.phases
        && let Some(at) = phases.at.filter(|at| *at > 0 && outermost != Some(*at))
    {
        return format!(
            ", in iteration {at} of {} (from one {} to the next)",
            told(&phases.function),
            told(&phases.marker)
        );
    }
    let around = finding.around();
    let loops = finding.loops().iter().enumerate().rev();
    loops
        .map(|(place, (name, iteration))| match around.get(place) {
            Some(calls) => format!(", in iteration {iteration} of the loop {calls}"),
            None => format!(", in iteration {iteration} of loop {name}"),
        })
        .collect()
}

/// ` in MPI_Recv` if all that end early do so in one function.
pub(super) fn ends_in(findings: &[&Finding]) -> String {
    let mut functions: Vec<&str> = findings
        .iter()
        .filter_map(|finding| finding.divergence()?.stack.last().map(String::as_str))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    match functions.as_slice() {
        [one] => format!(", in {}", told(one)),
        [one, two] => format!(", in {} or {}", told(one), told(two)),
        _ => String::new(),
    }
}
