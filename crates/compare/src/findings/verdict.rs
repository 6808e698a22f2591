//! One sentence: who fell out of step, where, and what became of the others.

use super::finding::{Finding, Reason};
use super::first::Common;
use crate::difftrace::pairing::visible;
use crate::naming::{grouped, listed, told, told_around};
use crate::structure::arguments::is_poll;
use crate::structure::totals::Change;
use crate::{Divergence, DivergenceKind};
use lockstep_trace::{Run, SourceLine, ThreadName, TraceName, is_standard, mpi, ranges};
use std::collections::BTreeMap;

/// What the sentence is about.
pub(crate) struct Case<'a> {
    pub(crate) faulty: &'a Run,
    pub(crate) differs: bool,
    /// Most suspicious first.
    pub(crate) findings: &'a [Finding],
    /// Number of traces that both runs have.
    pub(crate) compared: usize,
}

impl Case<'_> {
    pub(crate) fn sentence(&self) -> String {
        let (changed, counted): (Vec<&Finding>, Vec<&Finding>) = self
            .findings
            .iter()
            .partition(|finding| !finding.reason.is_alike());
        if !self.differs {
            let (timed, counted): (Vec<&Finding>, Vec<&Finding>) =
                (counted.into_iter()).partition(|it| it.reason == Reason::Timing);
            return self.alike(changed.len(), &counted, timed.len());
        }
        let Some(first) = self.findings.first() else {
            return "the runs differ".to_owned();
        };
        if first.shared {
            return format!(
                "all traces differ alike, and none in any other way: {} {}",
                self.who(first.trace),
                clause(first)
            );
        }
        format!(
            "{} {}; {}",
            self.who(first.trace),
            clause(first),
            self.others(first.trace)
        )
    }

    fn alike(&self, changed: usize, counted: &[&Finding], timed: usize) -> String {
        let traces = match self.compared {
            1 => "the trace is".to_owned(),
            many => format!("all {many} traces are"),
        };
        let judged = self.findings.iter().any(|it| it.standing.is_some());
        let changed = changed + if judged { timed } else { 0 };
        if changed > 0 {
            return format!(
                "no thread differs more than the normal runs differ among themselves ({changed} of {} traces changed)",
                self.compared
            );
        }
        let timing = format!(
            "for what depends on timing (who waits, who takes which piece of work, and how often) in {timed} of them"
        );
        // Of one that goes round more often, or less, that is the news.
        if let ([one], 0) = (counted, timed)
            && let Some(change) = one.changes.first()
        {
            let rest = match self.compared {
                1 => String::new(),
                2 => "; the other trace is as before".to_owned(),
                many => format!("; the {} other traces are as before", many - 1),
            };
            return format!(
                "the runs behave alike but for trip counts: {} {}{rest} (--counts makes this a difference)",
                self.who(one.trace),
                change.clause()
            );
        }
        // Of many that waver, which ones says nothing.
        let few = match 2 * counted.len() < self.compared {
            true => format!(", {}", self.group(counted)),
            false => String::new(),
        };
        let counted = counted.len();
        let counts = format!(
            "for trip counts in {counted} of them{few} (--counts makes these a difference)"
        );
        match (counted, timed) {
            (0, 0) => format!("the runs behave alike: {traces} as before"),
            (0, _) => format!("the runs behave alike: {traces} as before but {timing}"),
            (_, 0) => format!("the runs behave alike: {traces} as before but {counts}"),
            _ => format!("the runs behave alike: {traces} as before but {timing}, and {counts}"),
        }
    }

    /// `rank 5`, `thread 4 of rank 6`, `thread 2`.
    fn who(&self, trace: TraceName) -> String {
        let process = format!(
            "{} {}",
            if self.faulty.is_mpi {
                "rank"
            } else {
                "process"
            },
            trace.process
        );
        let several = self.faulty.is_mpi || visible(self.faulty).nth(1).is_some();
        match trace.thread {
            ThreadName::Main(0) if several => process,
            ThreadName::Main(0) => "the main thread".to_owned(),
            thread if several => format!("thread {thread} of {process}"),
            thread => format!("thread {thread}"),
        }
    }

    /// What all traces do otherwise: a note beside the verdict.
    pub(crate) fn common(&self, common: &Common) -> String {
        let divergence = &common.divergence;
        let traces = match common.traces {
            1 => "a trace differs".to_owned(),
            many => format!("{many} traces differ alike"),
        };
        format!(
            "{traces} in this, which is left out of the search (other arguments, another input or build?): {} {}",
            self.who(divergence.trace),
            plain(divergence)
        )
    }

    /// What became of the other traces that both runs have.
    fn others(&self, first: TraceName) -> String {
        let mut by_fate: BTreeMap<Reason, Vec<&Finding>> = BTreeMap::new();
        let own = || self.findings.iter().filter(|finding| !finding.shared);
        let is_told = |finding: &&Finding| finding.trace != first && !finding.is_usual();
        for finding in own().filter(is_told) {
            by_fate.entry(finding.reason).or_default().push(finding);
        }
        let mut parts = Vec::new();
        for (fate, findings) in &by_fate {
            let who = self.group(findings);
            let verb = |one, many| if findings.len() == 1 { one } else { many };
            parts.push(match fate {
                Reason::Arguments => {
                    format!("{who} {} wrong arguments, too", verb("passes", "pass"))
                }
                Reason::OtherCall => format!("{who} {} another call, too", verb("makes", "make")),
                Reason::Unmatched => format!("{who} {} in one run only", verb("is", "are")),
                Reason::EndsEarly => {
                    format!("{who} {} early{}", verb("ends", "end"), ends_in(findings))
                }
                Reason::Unusual => format!("{who} {} unusual, too", verb("is", "are")),
                Reason::Counts => {
                    format!("{who} {} in trip counts alone", verb("differs", "differ"))
                }
                Reason::Timing => {
                    format!("{who} {} in timing alone", verb("differs", "differ"))
                }
            });
        }
        match own().filter(|finding| finding.is_usual()).count() {
            0 => {}
            1 => parts.push("1 differs no more than in normal runs".to_owned()),
            many => parts.push(format!("{many} differ no more than in normal runs")),
        }
        let changed = own()
            .filter(|finding| finding.reason != Reason::Unmatched)
            .count();
        match self.compared.saturating_sub(changed) {
            0 if parts.is_empty() => parts.push("there is no other to compare".to_owned()),
            0 => {}
            1 => parts.push("1 other behaves as before".to_owned()),
            same => parts.push(format!("{same} others behave as before")),
        }
        parts.join(", ")
    }

    /// `ranks 0-4,6-15`, or a list of traces.
    fn group(&self, findings: &[&Finding]) -> String {
        let plain = findings.iter().all(|finding| {
            let process = finding.trace.process;
            finding.trace.thread == ThreadName::Main(0) && (process.job, process.sibling) == (0, 0)
        });
        if plain {
            let ranks: Vec<u32> = findings
                .iter()
                .map(|finding| finding.trace.process.rank)
                .collect();
            let noun = match (self.faulty.is_mpi, ranks.len()) {
                (true, 1) => "rank",
                (true, _) => "ranks",
                (false, 1) => "process",
                (false, _) => "processes",
            };
            return format!("{noun} {}", ranges(&ranks));
        }
        let mut traces: Vec<TraceName> = findings.iter().map(|finding| finding.trace).collect();
        traces.sort_unstable();
        let noun = if traces.len() == 1 { "trace" } else { "traces" };
        format!("{noun} {}", listed(&traces, 4))
    }
}

/// What a trace does instead of what, and where.
pub(crate) fn clause(finding: &Finding) -> String {
    if let (Reason::Arguments, Some(wrong)) = (finding.reason, &finding.wrong) {
        return wrong.told.clone();
    }
    if let Some(told) = &finding.told {
        return told.clone();
    }
    // That a process crashed is no matter of what is usual.
    let is_sure = finding.has_crashed && finding.ended.is_some();
    let oddity = finding.oddity().filter(|_| !is_sure);
    // Where nothing is the same twice, where it first parts says less.
    let wavers = !is_sure && (finding.standing.as_ref()).is_some_and(|it| !it.is_steady);
    let is_told = |it: &&Change| it.is_whole() && (oddity.is_some() || (wavers && it.is_own()));
    match (finding.changes.iter().find(is_told), oddity) {
        (Some(change), _) => change.clause(),
        (None, Some(oddity)) => oddity.clause(),
        (None, None) => parts(finding),
    }
}

/// Where a trace parts from the normal run.
pub(crate) fn parts(finding: &Finding) -> String {
    let Some(divergence) = &finding.divergence else {
        return "differs".to_owned();
    };
    let iterations = iterations(finding);
    let by_mpi = finding
        .by_mpi
        .as_ref()
        .filter(|by_mpi| by_mpi.faulty != divergence.faulty);
    match divergence.kind {
        // A process that ended by what it called is not stuck in that.
        DivergenceKind::OtherCall | DivergenceKind::GoesOn
            if divergence.faulty_is_open && (finding.ended.is_none() || finding.is_waiting()) =>
        {
            let instead = instead(finding.by_mpi.as_ref().unwrap_or(divergence));
            match &finding.stuck {
                Some(stuck) if Some(&stuck.function) != divergence.faulty.as_ref() => format!(
                    "is stuck in {}{}, within {}{}{iterations},{instead}",
                    told(&stuck.function),
                    at(stuck.line.as_slice()),
                    told_around(divergence.faulty.as_deref().unwrap_or_default()),
                    place(divergence)
                ),
                _ => format!(
                    "{}{}{iterations},{instead}",
                    does(divergence),
                    place(divergence)
                ),
            }
        }
        DivergenceKind::OtherCall | DivergenceKind::GoesOn => {
            let inner = match by_mpi {
                Some(by_mpi) => match (&by_mpi.faulty, &by_mpi.normal) {
                    (Some(faulty), Some(normal)) => {
                        format!(" ({} for {})", told(faulty), told(normal))
                    }
                    _ => String::new(),
                },
                None => String::new(),
            };
            // How it came to its end says more than where it first was unlike others, and less of why.
            let ended = match (&finding.ended, &finding.stuck) {
                (Some(ended), Some(stuck))
                    if Some(&stuck.function) != divergence.faulty.as_ref() =>
                {
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
                "{does}{}{inner}{}{iterations}{ended}",
                instead(divergence),
                place(divergence)
            )
        }
        DivergenceKind::EndsEarly => {
            let does = match (&finding.ended, divergence.stack.last()) {
                (Some(ended), Some(function)) => format!("{ended} in {}", told(function)),
                (None, Some(function)) if asks_on(finding, function) => {
                    let times = times(finding);
                    return format!(
                        "calls {} on and on{}{times}",
                        told(function),
                        place(divergence)
                    );
                }
                _ => does(divergence),
            };
            format!("{does}{}{iterations}", place(divergence))
        }
        DivergenceKind::Timing => format!(
            "goes another way that functions that wait went before{}{iterations}",
            place(divergence)
        ),
        DivergenceKind::Counts => match finding.changes.first() {
            Some(change) => change.clause(),
            None => format!(
                "has other trip counts than before: it {}{}{}{iterations}",
                does(divergence),
                instead(divergence),
                place(divergence)
            ),
        },
    }
}

/// The same of a divergence by itself.
fn plain(divergence: &Divergence) -> String {
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
            at(divergence.missed.as_slice())
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
    if let Some(phases) = &finding.phases
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
fn ends_in(findings: &[&Finding]) -> String {
    let mut functions: Vec<&str> = findings
        .iter()
        .filter_map(|finding| {
            finding
                .divergence
                .as_ref()?
                .stack
                .last()
                .map(String::as_str)
        })
        .collect();
    functions.sort_unstable();
    functions.dedup();
    match functions.as_slice() {
        [one] => format!(", in {}", told(one)),
        [one, two] => format!(", in {} or {}", told(one), told(two)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups() {
        let cases = [0, 999, 1000, 588_777, 1_234_567].map(grouped);
        assert_eq!(cases, ["0", "999", "1,000", "588,777", "1,234,567"]);
    }
}
