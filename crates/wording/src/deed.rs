//! What tasks did that made others wait.

use crate::amiss::unreceived;
use crate::call::differs;
use lockstep_progress::{Cause, Charge, Deed, Progress};

/// What a task did, without its name: `left out MPI_Isend in exchange() (call 21)`.
#[must_use]
pub fn caused(cause: &Cause) -> String {
    cause.sentence()
}

/// [`Progress::suspects`], and what each did, in words.
#[must_use]
pub fn suspects(progress: &Progress) -> Vec<(u32, Option<String>)> {
    let words = |charge: Charge<'_>| match charge {
        Charge::Caused(cause) if departs_from_normal(cause) => {
            format!("{}, unlike in the normal run", caused(cause))
        }
        Charge::Caused(cause) => caused(cause),
        Charge::Differed(it) => differs(progress, it),
        Charge::Unreceived(it) => unreceived(progress, it),
    };
    let all = progress.suspects().into_iter();
    all.map(|(task, charge)| (task, charge.map(words)))
        .collect()
}

/// Whether a normal run shows that it went another way.
pub(crate) fn departs_from_normal(cause: &Cause) -> bool {
    matches!(
        cause.deed,
        Deed::Departed {
            by_normal: true,
            ..
        }
    )
}
