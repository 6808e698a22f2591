//! A run beside several normal ones: who did otherwise than in each of them, so that others wait for it.
//!
//! *Guarantees*: nobody who did in one of the normal runs as it did here. *Costs*: [`analyse_against`] for each normal run, until one of
//! them leaves nobody.

use crate::analysis::analyse_against;
use crate::cause::Cause;
use crate::progress::Progress;
use lockstep_check::Chosen;
use lockstep_trace::Run;

/// [`analyse_against`] the first of several normal runs, without those who did in another one as they did here.
#[must_use]
pub fn analyse_beside(run: &Run, normals: &[&Run], chosen: &Chosen) -> Progress {
    let mut found = analyse_against(run, normals.first().copied(), chosen);
    for normal in normals.iter().skip(1) {
        if !found.causes.iter().any(Cause::by_normal) {
            break;
        }
        let beside = analyse_against(run, Some(normal), chosen);
        let is_shown = |it: &Cause| beside.causes.iter().any(|other| other.task == it.task);
        found.causes.retain(|it| !it.by_normal() || is_shown(it));
    }
    found
}
