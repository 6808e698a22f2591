//! A run beside several normal ones: who did otherwise than in each of them, so that others wait for it.
//!
//! *Guarantees*: nobody who did in one of the normal runs as it did here. *Costs*: [`analyse_against`] for each normal run, until one of
//! them leaves nobody.

use crate::analysis::analyse_against;
use crate::cause::Cause;
use lockstep_check::Chosen;
use lockstep_trace::Run;

/// Those tasks, and what each did, in words, as the first normal run shows it. Of several that left the way the first says why, and the
/// others may have left it for that: only those who did the same are told with it.
#[must_use]
pub fn departed_from_each(run: &Run, normals: &[&Run]) -> Vec<(u32, String)> {
    let mut found: Vec<(u32, String)> = Vec::new();
    for (place, normal) in normals.iter().enumerate() {
        let beside = analyse_against(run, Some(normal), &Chosen::default());
        let is_told =
            |it: &&Cause| it.is_misdirection() || it.is_departure() && !it.victims.is_empty();
        let deeds = beside.causes.iter().filter(is_told);
        let deeds: Vec<(u32, String)> = deeds.map(|it| (it.task, beside_normal(it))).collect();
        match place {
            0 => found = deeds,
            _ => found.retain(|(task, _)| deeds.iter().any(|(other, _)| task == other)),
        }
        if found.is_empty() {
            break;
        }
    }
    if let Some((_, first)) = found.first().cloned() {
        found.retain(|(_, deed)| *deed == first);
    }
    found
}

fn beside_normal(cause: &Cause) -> String {
    match cause.by_normal() {
        true => format!("{}, unlike in the normal run", cause.sentence()),
        false => cause.sentence(),
    }
}
