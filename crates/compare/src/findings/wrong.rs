//! An argument that is wrong.

use crate::naming::told_around;
use lockstep_trace::{Run, TraceName};

/// A trace that passed what it should not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) trace: TraceName,
    /// The event of the call.
    pub(crate) event: u64,
    /// The function.
    pub(crate) function: String,
    /// `calls MPI_Allreduce with op=MPI_MAX where the 7 others of that call say MPI_MIN`, and where.
    pub(crate) told: String,
    /// Whether the ranks of one call disagree; else it is only that normal runs never did so.
    pub(crate) is_mismatch: bool,
    /// Whether it may depend on data: no difference by itself.
    pub(crate) is_weak: bool,
    /// Whether it leaves what its own series says in the normal run.
    pub(crate) leaves_series: bool,
}

impl Wrong {
    /// That a trace calls what is `said`, where others say something else (`instead`).
    pub(super) fn new(
        run: &Run,
        (trace, event): (TraceName, u64),
        function: &str,
        (said, instead): (String, String),
    ) -> Self {
        let place = place(run, trace, event);
        Self {
            trace,
            event,
            function: function.to_owned(),
            told: format!("calls {said} where {instead}{place}"),
            is_mismatch: false,
            is_weak: false,
            leaves_series: false,
        }
    }
}

/// `, in main() at ilcs.c:240`.
fn place(run: &Run, trace: TraceName, event: u64) -> String {
    let thread = run.trace(trace);
    let site = thread.and_then(|it| run.sites(it, &[event]).pop().flatten());
    let Some(site) = site else {
        return String::new();
    };
    let at = match site.at() {
        at if at.is_empty() => at,
        at => format!(" at {at}"),
    };
    format!(", in {}{at}", told_around(&site.caller))
}
