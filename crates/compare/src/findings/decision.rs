//! Whether a run differs from normal ones.

use super::finding::{Finding, Reason};
use super::suspect::order::answer;
use super::{steady, unended};
use crate::difftrace::trees::Trees;
use crate::statistics::normality::Normality;
use crate::structure::timing::Timing;
use crate::{Error, Options};

/// Whether the faulty run differs, and by what.
pub(super) struct Decision {
    pub(super) differs: bool,
    /// With several normal runs.
    pub(super) p: Option<f64>,
    /// Whether it is a step that no normal run takes, while these go the same way.
    pub(super) by_steps: bool,
}

/// Decides, by structure or with several normal runs by how unusual traces are; `mismatch` says whether arguments are wrong whatever the
/// rest of the run does. Where that finds no difference, the way of normal runs may, and a process that did not come to its end.
pub(super) fn decide(
    findings: &mut [Finding],
    trees: &Trees,
    normality: Option<&Normality>,
    mismatch: bool,
    options: &Options,
) -> Result<Decision, Error> {
    let faulty = trees.last().run;
    let p = normality.map(Normality::smallest);
    let unmatched = findings.iter().any(|it| it.reason == Reason::Unmatched);
    let mut differs = match p {
        Some(p) => p < options.level || unmatched || mismatch,
        None => findings
            .iter()
            .any(|finding| !finding.reason.is_alike() || options.counts),
    };
    answer(findings, faulty);
    // Who waits for a thread's end tells no more than that it did not come, and who started the process no more than how it ended.
    let mut told = findings.iter().filter(|it| !it.is_usual());
    let asks = p.is_some() && (!differs || told.all(|it| it.joins() || it.blame.answers));
    let normals = trees.normal_runs();
    let mut by_steps = false;
    if asks && findings.iter().any(steady::is_step) {
        let steady = steady::go_the_same_way(&normals, options)?;
        let timing = Timing::of(&trees.forest, &trees.roots());
        by_steps = findings
            .iter()
            .any(|it| it.is_usual() && steady.tells(it, &timing));
        if by_steps {
            steady::suspect(findings, steady, &timing);
            differs = true;
        }
    }
    if options.part.to.is_none() {
        let mut unended = unended::unended(&normals, faulty);
        // A crash is told whatever else differs, a hang where nothing else does.
        unended.retain(|_, end| (asks && !by_steps) || unended::is_crash(end));
        unended::suspect(findings, &unended, faulty);
        differs |= !unended.is_empty();
    }
    // What differs by now may be another's.
    answer(findings, faulty);
    Ok(Decision {
        differs,
        p,
        by_steps,
    })
}
