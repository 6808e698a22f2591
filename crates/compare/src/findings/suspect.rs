//! Who differs, how, and in what order of suspicion.

use super::finding::{Finding, Reason};
use crate::Divergence;
use crate::difftrace::trees::Trees;
use crate::statistics::normality::Normality;
use crate::statistics::normality::evidence::Evidence;
use crate::structure::phases::Phases;
use lockstep_diagnosis::Certainty;
use lockstep_trace::{ProcessName, TraceName};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) mod fact;
pub(crate) mod order;

/// A trace that differs from the normal runs.
// Long: its fields are the keys of the JSON, which are a contract.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspect {
    /// The trace.
    pub trace: TraceName,
    /// The process that the trace belongs to.
    pub process: ProcessName,
    /// A judgement from 0 to 1, not a probability. It starts from a weight of `reason`: `arguments` 0.97, `other-call`
    /// 0.95, `unmatched` 0.8, `ends-early` and `unusual` 0.5, `counts` 0.2, `timing` 0.1. The weight is at least 0.9 if
    /// the other traces wait for this one. It is divided by the number of traces of that kind that diverge as early,
    /// and by 4 if all traces diverge alike. With several normal runs it is multiplied by 1 - `p`.
    pub confidence: f64,
    /// The first suspect, if messages from it may have caused this difference. Null otherwise, and if no arguments of
    /// MPI calls were recorded.
    pub after: Option<TraceName>,
    /// How often a normal run has a trace as unusual as this one, from 0 to 1. Null with a single normal run.
    pub p: Option<f64>,
    /// How unusual the trace is for its role: the largest `z` (see `evidence`), at least 0. Null with a single normal run.
    pub score: Option<f64>,
    /// The share, from 0 to 1, of random samples of the normal runs in which the trace is among the three most unusual.
    /// Null with a single normal run.
    pub stability: Option<f64>,
    /// The role of the trace. Null with a single normal run.
    pub role: Option<String>,
    /// What is unusual in the trace. Empty with a single normal run, and except for the 8 most unusual traces.
    pub evidence: Vec<Evidence>,
    /// Whether the other traces wait for this one, or it did what makes them wait.
    #[serde(skip)]
    pub is_culprit: bool,
    /// Why the trace is suspicious, in sentences, strongest reason first.
    pub reasons: Vec<String>,
    /// The kind of the strongest reason.
    pub reason: Reason,
    /// Sum of the trace's row of the JSM_D, averaged over filters and attributes.
    pub row_sum: f64,
    /// The iterations of the trace's outermost loop beside those of the normal runs. Null if there is no such loop, or
    /// it was not looked for. If the normal runs do not agree in that loop, no body counts as new.
    pub phases: Option<Phases>,
    /// The first divergence of the trace. Null if there is none, for example because only one run has the trace.
    pub divergence: Option<Divergence>,
    /// The event of a call whose argument is its strongest reason.
    #[serde(skip)]
    pub wrong_at: Option<u64>,
}

impl Suspect {
    /// How certain it is that it is to blame, beside what others find.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        match self.reason {
            Reason::EndsEarly if !self.is_culprit => Certainty::EndsEarly,
            _ => Certainty::Differs,
        }
    }
}

/// How many traces have evidence: it is looked for in the events.
const WITH_EVIDENCE: usize = 8;

/// Adds traces that are unusual as a whole, and how unusual each one is.
pub(crate) fn weigh(findings: &mut Vec<Finding>, normality: &Normality, trees: &Trees, level: f64) {
    for trace in normality.beyond(level) {
        if findings.iter().all(|finding| finding.trace != trace) {
            findings.push(Finding::new(trace, Reason::Unusual));
        }
    }
    findings.sort_by(|a, b| {
        let score = |finding: &Finding| normality.score(finding.trace.into());
        score(b).total_cmp(&score(a)).then(a.trace.cmp(&b.trace))
    });
    for (place, finding) in findings.iter_mut().enumerate() {
        let mut standing = normality.standing(finding.trace, level);
        // A trace that no normal run has cannot be judged.
        standing.is_usual &= match finding.reason {
            Reason::Unmatched => false,
            Reason::Arguments => finding.wrong.as_ref().is_some_and(|it| it.is_weak),
            _ => true,
        };
        if place < WITH_EVIDENCE {
            standing.evidence = normality.evidence(trees, finding.trace);
        }
        finding.standing = Some(standing);
    }
}

/// `p = 0.031`, `p < 0.001`.
#[must_use]
pub fn p_in_words(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}
