//! Traces that differ, as values.

use crate::findings::finding::{Finding, Reason};
use lockstep_trace::{Fact, Run, SourceLine};

/// What is first to be known of a trace.
pub(crate) fn fact(finding: &Finding, faulty: &Run) -> Fact {
    let (function, lines) = place(finding, faulty);
    Fact {
        kind: match finding.reason {
            _ if finding.blame.has_crashed => "crashed",
            _ if finding.blame.is_culprit => "culprit",
            reason => reason.word(),
        },
        who: vec![finding.trace],
        function,
        lines,
    }
}

/// The function that it is about, and where that was called.
fn place(finding: &Finding, faulty: &Run) -> (Option<String>, Vec<SourceLine>) {
    if let (Reason::Arguments, Some(wrong)) = (finding.reason, &finding.wrong) {
        let thread = faulty.trace(finding.trace);
        let site = thread.and_then(|it| faulty.sites(it, &[wrong.event]).pop().flatten());
        return (
            Some(wrong.function.clone()),
            site.map_or_else(Vec::new, |it| it.lines),
        );
    }
    if let (Reason::Counts, Some(change)) = (finding.reason, finding.beside.changes.first()) {
        return change.called();
    }
    let is_stuck = finding.reason == Reason::EndsEarly
        || finding.blame.is_culprit
        || finding.blame.has_crashed;
    match (finding.stuck(), finding.divergence()) {
        (Some(stuck), _) if is_stuck => (
            Some(stuck.function.clone()),
            stuck.line.iter().cloned().collect(),
        ),
        (_, Some(divergence)) => {
            let is_call = |it: &&String| *it != "return";
            let call = divergence.faulty.as_ref().filter(is_call);
            let call = call.or(divergence.normal.as_ref().filter(is_call));
            (call.cloned(), divergence.source.clone())
        }
        _ => (None, Vec::new()),
    }
}
