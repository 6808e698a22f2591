//! Normal runs that go the same way: a step that none of them takes is a difference by itself.
//!
//! The p-value says how much a trace is like others, all its steps together; where threads share work by
//! chance, one step among hundreds that vary does not weigh much. But each normal run can be looked at as
//! if it were the faulty one, beside the others. If none of them leaves the others' way (but for what
//! depends on timing), and the run in question does, then that is no chance, or a rare one: of `n` normal
//! runs and one more in which something happens with the probability `r`, it is the last one alone with
//! `r (1 - r)^n`, which is at most 0.08 for four, whatever `r` is, and as a rule far less.

use super::finding::{Finding, Reason};
use super::first::findings;
use crate::difftrace::trees::Trees;
use crate::structure::builds;
use crate::structure::timing::Timing;
use crate::{Divergence, Error, Options};
use lockstep_trace::{Run, ThreadName, TraceName};

/// Who goes the same way in all normal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steady {
    /// The main threads of all processes.
    main: bool,
    /// All other threads.
    others: bool,
}

impl Steady {
    const ALL: Self = Self {
        main: true,
        others: true,
    };
    const NONE: Self = Self {
        main: false,
        others: false,
    };

    fn of(&mut self, trace: TraceName) -> &mut bool {
        match trace.thread {
            ThreadName::Main(_) => &mut self.main,
            _ => &mut self.others,
        }
    }

    /// Whether the trace takes a step that is no chance. To wait once more, or for a lock once more, always may be one.
    pub(crate) fn tells(mut self, finding: &Finding, timing: &Timing) -> bool {
        let callee = finding.divergence().and_then(Divergence::callee);
        let waits = callee.is_some_and(|it| timing.is_timed(it) || timing.waits.contains(&it));
        is_step(finding) && !waits && *self.of(finding.trace)
    }
}

/// Normal runs that each one is looked at beside: more of them explain hardly more, and all of them beside each would cost the
/// square of their number.
const BESIDE: usize = 4;

/// Whether each of the normal runs goes as the others do, but for what depends on timing and for counts: its main threads, and
/// its others, since a main thread that waits for the others in this way or that says nothing of them.
///
/// Reads them once more, and costs the search for the first divergence beside [`BESIDE`] runs once more for each of them, up to the
/// first in which both differ.
///
/// # Errors
/// As of [`Trees::new`].
pub(crate) fn go_the_same_way(normals: &[&Run], options: &Options) -> Result<Steady, Error> {
    let mut steady = Steady::ALL;
    let mut options = options.clone();
    // What somebody knows of objects is given run by run, and no part of their way.
    options.own.clear();
    let mut trees = Trees::new(normals, &options)?;
    let last = BESIDE.min(normals.len() - 1);
    // Each of them is the last one once, behind those before it in the ring.
    for _ in normals {
        let aside = trees.runs.split_off(last + 1);
        // What one build has alone stays left out.
        builds::leave_out(&mut trees, &options);
        let (first, faulty) = (&trees.runs[0], trees.last());
        if !(first.without(faulty).is_empty() && faulty.without(first).is_empty()) {
            return Ok(Steady::NONE);
        }
        let (findings, _) = findings(&mut trees, &options);
        for finding in findings.iter().filter(|it| is_step(it)) {
            *steady.of(finding.trace) = false;
        }
        if steady == Steady::NONE {
            break;
        }
        trees.runs.extend(aside);
        trees.runs.rotate_left(1);
    }
    Ok(steady)
}

/// Whether a trace takes a step that is not timing's.
pub(crate) fn is_step(finding: &Finding) -> bool {
    matches!(finding.reason, Reason::OtherCall | Reason::EndsEarly)
}

/// Lets the way decide: who leaves it is told for where it does.
pub(crate) fn suspect(findings: &mut [Finding], steady: Steady, timing: &Timing) {
    for finding in findings {
        let is_step = steady.tells(finding, timing);
        if let Some(standing) = &mut finding.standing {
            standing.is_steady = true;
            standing.is_usual &= !is_step;
        }
    }
}

/// What a reader of the p-value should know.
pub(crate) fn note(normals: usize) -> String {
    format!(
        "the {normals} normal runs go the same way but for what depends on timing: a step that none of them takes is a difference, whatever p is"
    )
}
