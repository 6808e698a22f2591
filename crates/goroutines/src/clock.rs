//! Whether a test goes by the clock, and whether a schedule that held goroutines up has thereby put it wrong.

use crate::execution::{Action, Execution, GoroutineId, ObjectKind, What};
use crate::replay::Replay;

/// A delay of one part in so many of what a test waits for may make it fail.
const SLACK: u64 = 10;

/// Whether goroutines were held up for so long that a failing test may be the schedule's doing: long beside the
/// shortest time that the program waited for.
pub(crate) fn is_out_of_step(execution: &Execution) -> bool {
    execution.stretched > 0
        && shortest(execution).is_some_and(|it| execution.stretched >= it / SLACK)
}

/// Whether a test goes by where its goroutines stand, and a schedule held them up somewhere else.
pub(crate) fn is_out_of_place(execution: &Execution) -> bool {
    execution.stretched > 0 && execution.looked
}

/// Nanoseconds of the shortest wait that the clock ended, be it the deadline of a context, or the function of a timer
/// (`time.AfterFunc`), which was set no earlier than the test began.
fn shortest(execution: &Execution) -> Option<u64> {
    let mut at = Replay::new(execution);
    let mut least: Option<u64> = None;
    let mut began = 0;
    for (index, event) in execution.events.iter().enumerate() {
        let own = event.goroutine.filter(|id| is_own(execution, *id));
        if let Some(id) = own
            && let Some(open) = at.open(id)
            && (open.action == Action::Sleep && matches!(event.what, What::Complete { .. })
                || is_struck(&at, id, &event.what))
        {
            let took = event.time.saturating_sub(execution.events[open.event].time);
            least = Some(least.map_or(took, |it| it.min(took)));
        }
        if let What::Request {
            action: Action::Close,
            object: Some(object),
            ..
        } = event.what
            && is_deadline(execution, event.goroutine)
            && let Some((_, made)) = at.made(object)
        {
            let took = event.time.saturating_sub(execution.events[made].time);
            least = Some(least.map_or(took, |it| it.min(took)));
        }
        if let What::Create(id) = event.what {
            if Some(id) == execution.test {
                began = event.time;
            } else if event.goroutine.is_none() && id != GoroutineId(0) && is_own(execution, id) {
                let took = event.time.saturating_sub(began);
                least = Some(least.map_or(took, |it| it.min(took)));
            }
        }
        at.step(index);
    }
    least
}

/// Whether a goroutine is the program's.
fn is_own(execution: &Execution, id: GoroutineId) -> bool {
    let goroutine = execution.goroutines.get(id.0 as usize);
    goroutine.is_some_and(|it| !it.is_system)
}

/// Whether a goroutine is the runtime's for a deadline of a context that has come.
fn is_deadline(execution: &Execution, id: Option<GoroutineId>) -> bool {
    let goroutine = id.and_then(|it| execution.goroutines.get(it.0 as usize));
    goroutine.is_some_and(|it| it.entry.starts_with("context.WithDeadline"))
}

/// Whether a timer's channel let it go on: its rounds are the clock's.
pub(crate) fn is_struck(at: &Replay<'_>, id: GoroutineId, what: &What) -> bool {
    let What::Complete { action, case, .. } = what else {
        return false;
    };
    let Some(open) = at.open(id) else {
        return false;
    };
    let object = match (action, case) {
        (Action::Receive, _) => open.object,
        (Action::Select, Some(case)) => open.cases.get(*case as usize).and_then(|it| it.channel),
        _ => None,
    };
    let object = object.and_then(|it| at.execution.objects.get(it.0 as usize));
    object.is_some_and(|it| it.kind == ObjectKind::Timer)
}
