//! How the goroutines of a recorded Go program stood at its end, for `lockstep progress`.

use crate::progress::WaitRow;
use anyhow::{Context, Result};
use lockstep_goroutines::store;
use lockstep_goroutines::{Execution, Judgement, Verdict, judge};
use lockstep_progress::{Kind, Progress};
use std::path::Path;

/// The execution that the run is of; `None` for other runs.
pub(crate) fn execution(run: &Path) -> Result<Option<Execution>> {
    store::execution_in(run).context("expected what a Go program did")
}

/// Its judgement.
pub(crate) fn judged(run: &Path) -> Result<Option<Judgement>> {
    Ok(execution(run)?.as_ref().map(judge))
}

/// Goroutines wait for one another by other rules than ranks: their judgement is the verdict, in words.
pub(crate) fn settle(found: &mut Progress, judgement: &Judgement) -> String {
    (found.hang, found.kind) = match judgement.verdict {
        Verdict::GlobalDeadlock | Verdict::PartialDeadlock | Verdict::Leak => {
            (true, Kind::Deadlock)
        }
        Verdict::Livelock => (true, Kind::Livelock),
        Verdict::Slow => (false, Kind::Slow),
        _ => (false, Kind::None),
    };
    found.notes.clear();
    format!("{}: {}", judgement.verdict, judgement.sentence)
}

/// Who waits for whom, by the runtime's numbers.
pub(crate) fn waits(judgement: &Judgement) -> Vec<WaitRow> {
    let mut waits = Vec::new();
    for from in &judgement.goroutines {
        for way in &from.waits_for {
            waits.extend(way.goroutines.iter().map(|to| WaitRow {
                from: from.id,
                to: *to,
                why: way.why.clone(),
            }));
        }
    }
    waits
}
