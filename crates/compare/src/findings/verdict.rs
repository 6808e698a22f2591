//! One sentence: who fell out of step, where, and what became of the others.

use super::clause::{clause, ends_in, plain};
use super::finding::{Finding, Reason};
use super::first::Common;
use crate::difftrace::pairing::visible;
use crate::naming::listed;
use lockstep_trace::{Run, ThreadName, TraceName, ranges};
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
            && let Some(change) = one.beside.changes.first()
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
