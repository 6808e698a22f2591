//! What `progress` finds in a run: with what was said while it was recorded, and of goroutines by their own rules.

use crate::go::standing;
use crate::said::{Said, WentOn};
use crate::{run, spot};
use anyhow::{Result, bail};
use lockstep_goroutines::Judgement;
use lockstep_progress::published::{Method, analyse_by};
use lockstep_progress::{Chosen, Kind, Progress as Found, Standing, Watch, analyse_against};
use lockstep_trace::{EndKind, Run};
use std::path::Path;
use std::time::Duration;

/// A run, and what was found in it.
pub(crate) struct Analysed {
    pub run: Run,
    pub found: Found,
    /// The answer in a sentence.
    pub verdict: String,
    /// Who held the others up while it was recorded, and went on.
    pub went_on: Option<WentOn>,
    pub goroutines: Option<Judgement>,
}

impl Analysed {
    /// Opens the run in this directory, and looks at it.
    pub fn of(
        directory: &Path,
        normal: Option<&Path>,
        method: Method,
        checks: &Chosen,
    ) -> Result<Self> {
        let run = run::open(directory)?;
        if run.traces().next().is_none() {
            bail!("{}: expected traces, found none", directory.display());
        }
        let normal = normal.map(run::open).transpose()?;
        let look = |run: &Run| match method {
            Method::Lockstep => analyse_against(run, normal.as_ref(), checks),
            method => analyse_by(run, method),
        };
        let mut found = look(&run);
        if found.hang && is_running(&run) && method == Method::Lockstep {
            found = look_again(found, directory, look)?;
        }
        let mut verdict = lockstep_wording::verdict(&found);
        let mut went_on = None;
        if method == Method::Lockstep {
            let said = Said::of(directory).filter(|_| !is_running(&run));
            if let Some(said) = &said {
                said.settle(&mut found, &mut verdict);
                went_on = said.went_on.clone().filter(|_| !found.hang);
            }
            if found.hang && found.kind != Kind::Deadlock {
                let holding = spot::holding(&run, &found);
                let told = match &said {
                    Some(said) => spot::told(&holding, &said.spots, "ran"),
                    None => spot::told(&holding, &spot::found(&holding), "runs"),
                };
                verdict.push_str(&told);
            }
        }
        let goroutines = standing::judged(directory)?;
        if let Some(judgement) = &goroutines {
            verdict = standing::settle(&mut found, judgement);
        }
        Ok(Self {
            run,
            found,
            verdict,
            went_on,
            goroutines,
        })
    }
}

pub(crate) fn is_running(run: &Run) -> bool {
    run.processes
        .iter()
        .any(|it| it.end.kind == EndKind::Running)
}

/// Between two looks at a run that is still going on.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// The ranks were not read at one moment: who hangs has to hang the second time, too.
fn look_again(found: Found, run: &Path, look: impl Fn(&Run) -> Found) -> Result<Found> {
    let mut watch = Watch::new(BETWEEN_LOOKS);
    watch.look(&found, Duration::ZERO);
    std::thread::sleep(BETWEEN_LOOKS);
    let mut again = look(&Run::open(run)?);
    match watch.look(&again, BETWEEN_LOOKS) {
        // Half a second of calls is no livelock.
        Standing::Hangs(Kind::Livelock) if again.waiting.stuck.is_empty() => {
            again.settle(Standing::No);
        }
        Standing::Silent(_) => again.settle(Standing::No),
        standing => again.settle(standing),
    }
    Ok(again)
}
