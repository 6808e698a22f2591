//! Who differs, how, and in what order of suspicion.

use crate::flat::{self, Iterations, Parting};
use crate::novelty::Novelty;
use crate::object::{serialize_process, serialize_trace};
use crate::sequence::Trees;
use crate::sweep::{Pair, Ranking};
use crate::verdict;
use crate::{Divergence, DivergenceKind, ObjectName};
use lockstep_trace::{ProcessName, SourceLine, TraceName};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;

/// A trace that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    /// The trace.
    #[serde(serialize_with = "serialize_trace")]
    pub trace: TraceName,
    /// Its process.
    #[serde(serialize_with = "serialize_process")]
    pub process: ProcessName,
    /// 0..1, a judgement and no probability: the weight of the kind of its first divergence (another
    /// call 0.95, in one run only 0.8, ends early 0.5, trip counts 0.2), divided by the number of
    /// traces of that kind which diverge as early; a quarter of it where all traces diverge alike; with
    /// several normal runs times 1 - p.
    pub confidence: f64,
    /// Why, strongest first, in sentences.
    pub reasons: Vec<String>,
    /// The kind of the strongest reason.
    pub reason: Reason,
    /// Sum of its row of the JSM_D, mean over filters and attributes.
    pub row_sum: f64,
    /// Its first divergence, unless it is in one run only.
    pub divergence: Option<Divergence>,
}

/// In what way a trace differs; earlier ones are more suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It makes another call than before.
    OtherCall,
    /// It exists in one run only.
    Unmatched,
    /// It ends early: perhaps a victim of another.
    EndsEarly,
    /// Only trip counts differ.
    Counts,
}

impl Reason {
    pub(crate) fn of(kind: DivergenceKind) -> Self {
        match kind {
            DivergenceKind::OtherCall | DivergenceKind::GoesOn => Self::OtherCall,
            DivergenceKind::EndsEarly => Self::EndsEarly,
            DivergenceKind::Counts => Self::Counts,
        }
    }

    const fn weight(self) -> f64 {
        match self {
            Self::OtherCall => 0.95,
            Self::Unmatched => 0.8,
            Self::EndsEarly => 0.5,
            Self::Counts => 0.2,
        }
    }
}

/// An open call.
pub(crate) struct Stuck {
    pub(crate) function: String,
    /// Where it was called, if known.
    pub(crate) line: Option<SourceLine>,
}

/// A trace that differs, and all that is known of it.
pub(crate) struct Finding {
    pub(crate) trace: TraceName,
    pub(crate) reason: Reason,
    pub(crate) divergence: Option<Divergence>,
    /// Whether all traces of its kind diverge so, and it in no other way.
    pub(crate) shared: bool,
    /// The same divergence under the MPI filter, if that shows it: its calls and loops are those that
    /// people know.
    pub(crate) by_mpi: Option<Divergence>,
    /// The innermost call that is open at the end of the trace.
    pub(crate) stuck: Option<Stuck>,
    /// How far the normal trace was when they parted, 0..1.
    pub(crate) progress: f64,
    /// The filter of the short diffNLR, and itself.
    pub(crate) parting: Option<(String, Parting)>,
    /// What an unmatched trace is.
    pub(crate) unmatched: Option<&'static str>,
}

impl Finding {
    /// Where in its loops the trace was, as far as traces can be compared in that: iterations, outermost
    /// loop first. What lies outside of loops comes before all of them or after, by how far the
    /// normal trace was.
    fn coordinate(&self) -> Vec<u64> {
        match (self.loops().is_empty(), self.progress < 0.5) {
            (false, _) => self
                .loops()
                .iter()
                .map(|(_, iteration)| *iteration)
                .collect(),
            (true, true) => vec![0],
            (true, false) => vec![u64::MAX],
        }
    }

    /// The loops around the divergence, outermost first, and the iteration, from 1.
    pub(crate) fn loops(&self) -> &[(String, u64)] {
        let divergence = self.by_mpi.as_ref().or(self.divergence.as_ref());
        divergence.map_or(&[], |divergence| &divergence.loops)
    }

    fn weight(&self) -> f64 {
        let weight = self.reason.weight();
        if self.shared { weight / 4.0 } else { weight }
    }

    /// Adds the short diffNLR under a pair's filter.
    pub(crate) fn part(&mut self, pair: &Pair, trees: &Trees) {
        let object = ObjectName::from(self.trace);
        let Some(place) = pair.names.iter().position(|name| *name == object) else {
            return;
        };
        let (normal, faulty) = (pair.normal[place], pair.faulty[place]);
        self.parting = flat::parting(normal, faulty, &pair.folding, trees)
            .map(|parting| (pair.lens.filter.to_string(), parting));
    }

    /// The loop in which the traces parted, if the short diffNLR shows the same one.
    pub(crate) fn iterations(&self) -> Option<&Iterations> {
        let (_, parting) = self.parting.as_ref()?;
        let iterations = parting.iterations.as_ref()?;
        let [(_, at)] = self.loops() else {
            return None;
        };
        (iterations.done.checked_add(1) == Some(*at)).then_some(iterations)
    }
}

/// Puts the findings in order and gives the reasons in words.
pub(crate) fn rank(
    findings: &mut [Finding],
    ranking: &Ranking,
    novelty: Option<&Novelty>,
) -> Vec<Suspect> {
    let mut row_sums: FxHashMap<TraceName, f64> = FxHashMap::default();
    for (object, sum) in &ranking.row_sums {
        let most = row_sums.entry(object.trace).or_default();
        *most = most.max(*sum);
    }
    let row_sum = |finding: &Finding| row_sums.get(&finding.trace).copied().unwrap_or_default();
    let mut candidates: FxHashMap<TraceName, usize> = FxHashMap::default();
    for trace in ranking.rows.iter().flat_map(|row| &row.threads) {
        *candidates.entry(*trace).or_default() += 1;
    }
    findings.sort_by_cached_key(|finding| {
        (
            finding.shared,
            finding.reason,
            finding.coordinate(),
            Reverse((row_sum(finding) * 1e9) as u64),
            finding.trace,
        )
    });
    findings
        .chunk_by(|a, b| (a.shared, a.reason) == (b.shared, b.reason))
        .flat_map(|kind| {
            kind.iter().map(|finding| {
                let coordinate = finding.coordinate();
                let as_early = kind.partition_point(|other| other.coordinate() <= coordinate);
                let p = novelty.map_or(0.0, |novelty| novelty.p(finding.trace.into()));
                let row_sum = row_sum(finding);
                let candidate = candidates.get(&finding.trace).copied().unwrap_or_default();
                Suspect {
                    trace: finding.trace,
                    process: finding.trace.process,
                    confidence: finding.weight() / as_early.max(1) as f64 * (1.0 - p),
                    reasons: reasons(finding, row_sum, candidate, ranking.rows.len()),
                    reason: finding.reason,
                    row_sum,
                    divergence: finding.divergence.clone(),
                }
            })
        })
        .collect()
}

fn reasons(finding: &Finding, row_sum: f64, candidate: usize, rows: usize) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.push(verdict::clause(finding));
    if let Some((filter, parting)) = &finding.parting {
        reasons.push(format!(
            "under the filter {filter} it was `{}` and is `{}`",
            parting.normal, parting.faulty
        ));
    }
    if row_sum > 0.0 {
        reasons.push(format!(
            "its likeness to the other traces changed by {row_sum:.2} in sum; it is a candidate in {candidate} of {rows} rows of the ranking table"
        ));
    }
    reasons
}
