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

/// A trace that differs.
// Long: its fields are the keys of the JSON, which are a contract.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspect {
    /// The trace.
    pub trace: TraceName,
    /// Its process.
    pub process: ProcessName,
    /// 0..1, a judgement and no probability: the weight of the kind of its first divergence (wrong
    /// arguments 0.97, another call 0.95, the others wait for it 0.9, in one run only 0.8, ends early 0.5, trip counts 0.2, timing 0.1), divided by the number of
    /// traces of that kind which diverge as early; a quarter of it where all traces diverge alike; with
    /// several normal runs times 1 - p.
    pub confidence: f64,
    /// The first suspect, where this trace differs only after it can have heard of that: perhaps a
    /// consequence. Known where arguments of MPI calls are recorded.
    pub after: Option<TraceName>,
    /// With several normal runs: how often a normal run has a trace as unusual as this one.
    pub p: Option<f64>,
    /// With several normal runs: how unusual it is, in standard deviations of its role.
    pub score: Option<f64>,
    /// With several normal runs: the share of resamples of them in which it is among the first three.
    pub stability: Option<f64>,
    /// With several normal runs: the role that it plays in them.
    pub role: Option<String>,
    /// With several normal runs: what is unusual in it.
    pub evidence: Vec<Evidence>,
    /// Whether the others wait for it, or it did what makes them wait.
    #[serde(skip)]
    pub is_culprit: bool,
    /// Why, strongest first, in sentences.
    pub reasons: Vec<String>,
    /// The kind of the strongest reason.
    pub reason: Reason,
    /// Sum of its row of the JSM_D, mean over filters and attributes.
    pub row_sum: f64,
    /// The iterations of its outermost loop beside those of the normal runs, if they have such a loop. Where they are not
    /// alike in it, no body is new.
    pub phases: Option<Phases>,
    /// Its first divergence, unless it is in one run only.
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
