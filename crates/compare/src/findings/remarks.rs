//! What to know when reading a comparison: how far it goes, and what it finds beside its verdict.

use super::decision::Decision;
use super::finding::{Finding, Reason};
use super::verdict::Case;
use super::{notes, steady};
use crate::Options;
use crate::difftrace::trees::Trees;
use crate::naming::listed;
use crate::statistics::normality::Normality;
use crate::structure::totals::{self, Change};
use lockstep_trace::in_short;

/// The remarks, in order.
pub(super) fn remarks(
    case: &Case,
    trees: &Trees,
    decision: &Decision,
    normality: Option<&Normality>,
    options: &Options,
) -> Vec<String> {
    let mut notes = Vec::new();
    let empty = trees.last().without_part();
    if let (Some(from), false) = (&options.part.from, empty.is_empty()) {
        notes.push(format!(
            "nothing is looked at of {}, which never call {from} (--from) in the faulty run",
            in_short(&empty)
        ));
    }
    notes.extend(trees.left_out());
    notes.extend(own(trees));
    let normals = trees.normals().len();
    let estimated = |p| notes::estimated(p, normals, options.level);
    notes.extend(decision.p.and_then(estimated));
    notes.extend(decision.by_steps.then(|| steady::note(normals)));
    if let (false, Some(normality)) = (case.differs, normality) {
        notes.extend(normality.new_orders(trees));
    }
    if decision.p.is_none() && case.differs && wavers(case.findings) {
        notes.push(
            "several threads do something else, and one normal run does not tell what varies from run to run anyway: more of them (--normal) would"
                .to_owned(),
        );
    }
    let is_timed = |it: &Finding| it.reason == Reason::Timing;
    if !case.differs && (decision.p.is_some() || case.findings.iter().any(is_timed)) {
        notes.extend(in_sum(trees));
    }
    notes
}

/// Traces of which somebody says something else in the faulty run are told, up to so many.
const OTHERWISE: usize = 6;

/// What somebody says of traces of one run only.
fn own(trees: &Trees) -> Option<String> {
    let mut told = Vec::new();
    let faulty = trees.own_of(trees.last());
    for (name, normal) in trees.own_of(&trees.runs[0]) {
        let faulty = faulty.get(&name).copied().unwrap_or_default();
        for (set, other, which) in [(normal, faulty, "normal"), (faulty, normal, "faulty")] {
            let only = set.iter().filter(|it| !other.contains(it));
            told.extend(only.map(|it| format!("`{it}` of {name} in the {which} run only")));
        }
    }
    (!told.is_empty()).then(|| format!("own attributes: {}", listed(told, OTHERWISE)))
}

/// Whether several traces do something else, and timing has a part in others: what one of them does may be chance, too.
fn wavers(findings: &[Finding]) -> bool {
    let count = |reason: Reason| findings.iter().filter(|it| it.reason == reason).count();
    let is_sure = findings
        .iter()
        .any(|it| it.blame.is_culprit || it.blame.has_crashed);
    count(Reason::OtherCall) > 1 && count(Reason::Timing) > 0 && !is_sure
}

/// What is called much more or less in all traces together, never any more, or was never before: a note beside a verdict that finds no
/// difference, since which trace does it depends on timing.
fn in_sum(trees: &Trees) -> Option<String> {
    let changes = totals::together(trees);
    let told: Vec<String> = changes
        .iter()
        .take(FEW_CHANGES)
        .map(Change::clause)
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "no difference by itself, since it depends on timing who does what; but all traces together do otherwise: the run {}",
            told.join("; it ")
        )
    })
}

/// So many changes are told.
const FEW_CHANGES: usize = 3;
