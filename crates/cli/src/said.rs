//! What `record --hang` said of a job, kept in its run: where it was stopped for that, it does not show any more that it hung, and
//! never where in its code a rank was.

use crate::spot::Spot;
use lockstep_progress::{Kind, Progress};
use lockstep_record::SAID;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What was said last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Said {
    pub verdict: String,
    pub kind: Kind,
    /// Whether the job was ended for it.
    pub stopped: bool,
    /// Where those computed who held the others up.
    pub spots: Vec<Spot>,
    /// Who held the others up and went on.
    #[serde(default)]
    pub went_on: Option<WentOn>,
}

/// Ranks, or threads, that were slow and then continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WentOn {
    /// Numbers of the tasks. Empty if the whole job was slow, and no task in particular.
    pub tasks: Vec<u32>,
    /// How long they made no progress, in seconds.
    pub seconds: f64,
}

impl WentOn {
    /// `rank 2 was slow for 3.1 s and went on`.
    pub fn sentence(&self, found: &Progress) -> String {
        let who = match self.tasks.as_slice() {
            [] => "the job".to_owned(),
            tasks => lockstep_wording::who(found, tasks),
        };
        let verb = if self.tasks.len() > 1 { "were" } else { "was" };
        format!("{who} {verb} slow for {:.1} s and went on", self.seconds)
    }
}

impl Said {
    /// Writes it into the run.
    pub fn keep(&self, run: &Path) {
        // Without it, less is known.
        let text = serde_json::to_vec(self).unwrap_or_default();
        let draft = run.join(format!(".{SAID}"));
        let _ = lockstep_record::put(&draft, &run.join(SAID), &text);
    }

    /// What was written, if anything was.
    pub fn of(run: &Path) -> Option<Self> {
        let text = std::fs::read(run.join(SAID)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Of a job that was stopped for a hang and does not show it, what was said then; of one that came on, who was slow.
    pub fn settle(&self, found: &mut Progress, verdict: &mut String) {
        if let Some(went_on) = self.went_on.as_ref().filter(|_| !found.hang) {
            verdict.push_str(&format!("; {}", went_on.sentence(found)));
        }
        if self.stopped && !found.hang {
            (found.hang, found.kind) = (true, self.kind);
            *verdict = format!("{} (as was said when it was stopped)", self.verdict);
        }
    }
}
