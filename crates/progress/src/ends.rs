//! How the tasks ended: by themselves, with their job, or with their launcher.

use crate::task::{Activity, Place, Task};
use crate::waits::Waiting;
use lockstep_check::Usage;
use lockstep_comm::{Conversation, Doing, State, is_routine};
use lockstep_trace::threads::{self, Does, Meaning};
use lockstep_trace::{End, EndKind, Process, Run, c_name, mpi};
use std::collections::BTreeMap;

/// Whether a process that ended in this call had crashed: nobody caught what it threw, either.
pub(crate) fn ends_in_a_crash(stack: &[Place]) -> bool {
    let aborts = |it: &Place| does(it) == mpi::Does::Abort;
    ends_in(stack, Meaning::crashes) || last(stack).is_some_and(aborts)
}

/// Whether it ended itself as it had to.
fn ends_in_an_exit(stack: &[Place]) -> bool {
    ends_in(stack, |it| it.does == Does::Exit)
}

/// Whether it sent itself a signal last.
fn raises(stack: &[Place]) -> bool {
    ends_in(stack, |it| it.does == Does::Raise)
}

fn ends_in(stack: &[Place], is_it: impl Fn(Meaning) -> bool) -> bool {
    last(stack).is_some_and(|it| is_it(threads::meaning(&it.function)))
}

/// The last call, of a library's function.
fn last(stack: &[Place]) -> Option<&Place> {
    stack.last().filter(|it| it.imported)
}

/// Signals by which somebody else ends a job.
pub(crate) const ENDED_BY_OTHERS: [i32; 8] = [1, 2, 3, 9, 10, 14, 15, 24];

pub(crate) fn state(process: &Process, conversation: &Conversation, stack: &[Place]) -> State {
    let by_itself = match process.end.kind {
        EndKind::Exited => true,
        EndKind::Signalled => process
            .end
            .code
            .is_none_or(|signal| !ENDED_BY_OTHERS.contains(&signal)),
        // Nobody saw how it ended, but it was about to.
        EndKind::Killed => ends_in_a_crash(stack) || ends_in_an_exit(stack),
        EndKind::Running => false,
    };
    // Whoever is in a call that comes too late did not get away with it.
    let is_late = || conversation.late.is_some() && !conversation.pending.is_empty();
    // Another of its threads ended MPI meanwhile.
    let is_within = || is_crash(&process.end) && stack.iter().any(|it| is_mpi(it) && !is_last(it));
    let is_too_late = || is_late() || is_within();
    if conversation.finalized && !is_too_late() && !died(process.end, stack) {
        return State::Finished;
    }
    if by_itself {
        return State::Ended;
    }
    let waits = match conversation.strands.first() {
        // It waits if its first thread does.
        Some(strand) => matches!(strand.doing, Doing::Operation(_)) || strand.waits_inside(),
        None => !conversation.pending.is_empty() && stack.iter().any(is_mpi),
    };
    match waits {
        true => State::Waiting,
        false => State::Running,
    }
}

/// Whether a process was ended by a signal of its own: wherever it was, what it had to do was not done. Of one that nobody saw
/// end, its last call tells.
fn died(end: End, stack: &[Place]) -> bool {
    match end.kind {
        EndKind::Signalled => is_crash(&end),
        EndKind::Killed => ends_in_a_crash(stack),
        EndKind::Exited | EndKind::Running => false,
    }
}

/// Signals by which a process ends itself.
const OWN: [i32; 6] = [4, 6, 7, 8, 11, 31];

/// Where nobody saw how the ranks ended, a launcher that ended by one of their signals tells: it was one
/// that did not wait in MPI. Where there are several such, which of them is not known.
pub(crate) fn died_of_a_signal(
    run: &Run,
    tasks: &mut BTreeMap<u32, Task>,
    conversations: &mut BTreeMap<u32, Conversation>,
    usages: &BTreeMap<u32, Usage>,
    notes: &mut Vec<String>,
) {
    let is_gone = |task: &Task| task.end.kind == EndKind::Killed && !task.end.certain;
    if !run.is_mpi || tasks.is_empty() || !tasks.values().all(is_gone) {
        return;
    }
    let others = run.processes.iter().filter(|it| !it.is_mpi);
    let signal = others
        .filter(|it| it.end.kind == EndKind::Exited)
        .find_map(|it| OWN.into_iter().find(|own| it.end.code == Some(128 + own)));
    let Some(signal) = signal else { return };
    let computes: Vec<u32> = tasks
        .values()
        .filter(|it| it.activity == Activity::Computation && it.polls.is_none())
        .map(|it| it.number)
        .collect();
    let raised: Vec<u32> = tasks
        .values()
        .filter(|it| raises(&it.stack))
        .map(|it| it.number)
        .collect();
    let mistaken = usages.iter().filter(|(task, it)| {
        let task = conversations.get(task);
        task.is_some_and(|task| it.may_have_died_of_a_mistake(task))
    });
    let mistaken: Vec<u32> = mistaken.map(|(task, _)| *task).collect();
    let mut ways = [raised, mistaken].into_iter();
    let suspects = ways.find(|it| !it.is_empty()).unwrap_or(computes);
    let [task] = suspects.as_slice() else {
        notes.push(format!(
            "the launcher says that a rank died of signal {signal}, not which"
        ));
        return;
    };
    if let Some(task) = tasks.get_mut(task) {
        (task.activity, task.crashed) = (Activity::Ended, true);
        task.end = End {
            kind: EndKind::Signalled,
            code: Some(signal),
            certain: false,
        };
    }
    if let Some(conversation) = conversations.get_mut(task) {
        conversation.state = State::Ended;
    }
}

/// Where the launcher says that a rank was killed, and one was gone well before all others, it is that one: as when memory is
/// short. The others were ended for it. `gone` is when each task was seen to be gone, in microseconds.
pub(crate) fn killed_first(
    run: &Run,
    gone: Vec<(u64, u32)>,
    tasks: &mut BTreeMap<u32, Task>,
    conversations: &mut BTreeMap<u32, Conversation>,
) {
    let launchers = run.processes.iter().filter(|it| !it.is_mpi);
    let launchers = launchers.filter(|it| it.end.kind == EndKind::Exited);
    let statuses: Vec<i32> = launchers.filter_map(|it| it.end.code).collect();
    let Some(first) = first_killed(tasks, gone, &statuses) else {
        return;
    };
    for task in tasks.values_mut() {
        let is_first = task.number == first;
        if !is_first && !task.crashed {
            continue;
        }
        // Whoever ended later did so for the first, whatever its status.
        let (activity, state) = match (is_first, task.stack.iter().any(is_mpi)) {
            (true, _) => (Activity::Ended, State::Ended),
            (false, true) => (Activity::Communication, State::Waiting),
            (false, false) => (Activity::Computation, State::Running),
        };
        (task.crashed, task.activity) = (is_first, activity);
        if let Some(conversation) = conversations.get_mut(&task.number) {
            conversation.state = state;
        }
    }
}

/// Of tasks that are gone since these moments, in microseconds, and launchers that ended with these statuses, who was killed first.
fn first_killed(
    tasks: &BTreeMap<u32, Task>,
    gone: Vec<(u64, u32)>,
    statuses: &[i32],
) -> Option<u32> {
    let is_killed = |it: &Task| match it.end.kind {
        EndKind::Killed => true,
        EndKind::Signalled => it.end.code.is_some_and(|it| ENDED_BY_OTHERS.contains(&it)),
        EndKind::Exited | EndKind::Running => false,
    };
    // By a signal of its own, or well, nobody ends for another.
    let may_be_ended = |it: &Task| {
        is_killed(it) || it.end.kind == EndKind::Exited && it.end.code.is_some_and(|it| it != 0)
    };
    let mut each = tasks.values();
    let are_ended = each.all(|it| it.activity != Activity::Finished && may_be_ended(it));
    let candidate = who_raised(tasks).or_else(|| who_went_first(tasks, gone))?;
    let killed = tasks.get(&candidate).filter(|it| is_killed(it))?;
    let signal = killed.end.code.unwrap_or(SIGKILL);
    // A launcher that is told to end its job by a signal has another status, but for one whose status is the bare number.
    let says_so = |status: &i32| *status == 128 + signal || (*status, signal) == (SIGKILL, SIGKILL);
    (are_ended && statuses.iter().any(says_so)).then_some(candidate)
}

/// The only task whose last call sent a signal.
fn who_raised(tasks: &BTreeMap<u32, Task>) -> Option<u32> {
    let mut raised = tasks.values().filter(|it| raises(&it.stack));
    match (raised.next(), raised.next()) {
        (Some(task), None) => Some(task.number),
        _ => None,
    }
}

/// The task that was gone well before all others.
fn who_went_first(tasks: &BTreeMap<u32, Task>, mut gone: Vec<(u64, u32)>) -> Option<u32> {
    gone.sort_unstable();
    let [(at, first), (next, _), ..] = gone[..] else {
        return None;
    };
    let waits = tasks.get(&first)?.stack.iter().any(is_mpi);
    let enough = if waits { LONG_BEFORE } else { WELL_BEFORE };
    (next - at >= enough).then_some(first)
}

const SIGKILL: i32 = 9;

/// In microseconds: processes that are ended together are not gone at once, and whoever looks may come late.
const WELL_BEFORE: u64 = 200;

/// A process closes its files, by which its launcher hears of its end, some milliseconds before it is seen to be gone: one that
/// was killed for it can be seen first. So this much, in microseconds, of a task that waited for others.
const LONG_BEFORE: u64 = 20_000;

/// Tasks that all end with one status that is not 0, and none of them by a call of its own: their launcher went away, and what
/// they did before is what counts. So do all that are not over, where they are in MPI; and where the launcher is known to have been
/// killed, whoever waits there, whatever became of the others.
pub(crate) fn lost_their_launcher(
    is_known: bool,
    tasks: &mut BTreeMap<u32, Task>,
    conversations: &mut BTreeMap<u32, Conversation>,
    usages: &BTreeMap<u32, Usage>,
) {
    let is_amiss = |(task, it): (&u32, &Conversation)| {
        // Whoever ended MPI and did not come to its end waited for nobody.
        let is_over = it.finalized && it.state == State::Ended;
        let usage = usages.get(task);
        is_over || it.late.is_some() || usage.is_some_and(|usage| usage.is_in_a_mistake(it))
    };
    if conversations.iter().any(is_amiss) {
        return;
    }
    let waits = |task: &Task| {
        let conversation = conversations.get(&task.number);
        conversation.is_some_and(|it| !it.pending.is_empty()) && task.stack.iter().any(is_mpi)
    };
    let is_well = |task: &Task| {
        let is_over = matches!(task.activity, Activity::Ended | Activity::Finished);
        is_over && !task.crashed && task.end.kind == EndKind::Exited
    };
    let (well, mut others): (Vec<&Task>, Vec<&Task>) = tasks.values().partition(|it| is_well(it));
    let is_ended = |task: &Task| {
        task.activity == Activity::Ended
            && task.crashed
            && task.end.kind == EndKind::Exited
            && !ends_in_a_crash(&task.stack)
            && !ends_in_an_exit(&task.stack)
    };
    let alike = |task: &&Task| {
        is_ended(task) && task.end.code == others[0].end.code && (well.is_empty() || waits(task))
    };
    // One alone, where its status says so and it waits.
    let says_so = |it: &&Task| it.end.tells_of_a_lost_launcher() && waits(it);
    let enough = others.len() >= 2 || others.iter().any(says_so);
    let all_alike = enough && others.iter().all(alike);
    match (all_alike, is_known) {
        (true, _) => {}
        (false, true) => others.retain(|it| is_ended(it) && waits(it)),
        (false, false) => return,
    }
    let states: Vec<(u32, bool)> = others.iter().map(|it| (it.number, waits(it))).collect();
    for (number, waits) in states {
        let conversation = conversations.entry(number).or_default();
        let Some(task) = tasks.get_mut(&number) else {
            continue;
        };
        (conversation.state, task.activity) = match waits {
            true => (State::Waiting, Activity::Communication),
            false => (State::Running, Activity::Computation),
        };
        task.crashed = false;
    }
}

/// Whether all tasks were ended from outside, and not as somebody who has had enough ends them: some launchers do that before
/// MPI has, that found a mistake.
pub(crate) fn are_ended_amiss(run: &Run, tasks: &BTreeMap<u32, Task>) -> bool {
    // A launcher that a signal ended, or was told to end the job by one, says so in its status.
    let is_amiss = |code: i32| !matches!(code, 0 | 9 | 15 | 137 | 143);
    let mut others = run.processes.iter().filter(|it| !it.is_mpi);
    tasks.values().all(|it| it.end.kind == EndKind::Killed)
        && others.any(|it| it.end.kind == EndKind::Exited && it.end.code.is_some_and(is_amiss))
}

/// Tasks that ended before `MPI_Finalize`, and others wait for them, or were ended for it.
pub(crate) fn ended(tasks: &BTreeMap<u32, Task>, waiting: &Waiting) -> Vec<u32> {
    if waiting.stuck.is_empty() {
        return left(tasks);
    }
    let core = waiting.cores.iter().flatten().copied();
    core.filter(|task| tasks[task].activity == Activity::Ended)
        .collect()
}

/// Tasks that ended by themselves before `MPI_Finalize` where all others were killed: some launchers end a job for that
/// at once, before anybody waits for them.
pub(crate) fn left(tasks: &BTreeMap<u32, Task>) -> Vec<u32> {
    let has_left = |task: &&Task| {
        task.activity == Activity::Ended && task.end.kind == EndKind::Exited && !task.crashed
    };
    let left: Vec<u32> = tasks
        .values()
        .filter(has_left)
        .map(|it| it.number)
        .collect();
    let others = tasks.values().filter(|it| !has_left(it));
    let mut killed = others.map(|it| it.end.kind == EndKind::Killed).peekable();
    match killed.peek().is_some() && killed.all(|it| it) {
        true => left,
        false => Vec::new(),
    }
}

/// Tasks that began MPI and ended as if all was well, without `MPI_Finalize`.
pub(crate) fn unfinalized(
    tasks: &BTreeMap<u32, Task>,
    conversations: &BTreeMap<u32, Conversation>,
) -> Vec<u32> {
    let is_well = |it: &&Task| it.end.kind == EndKind::Exited && it.end.code == Some(0);
    let well = tasks.values().filter(is_well).map(|it| it.number);
    let has_left = |task: &u32| {
        let it = conversations.get(task);
        it.is_some_and(|it| it.state == State::Ended && !it.operations.is_empty())
    };
    well.filter(has_left).collect()
}

/// Tasks that brought their job down. Of threads that ended with their process, first the one whose last call says that it did
/// that, or which was in code of its own, while others were in calls.
pub(crate) fn crashed(tasks: &BTreeMap<u32, Task>) -> Vec<u32> {
    let crashed = tasks.values().filter(|task| task.crashed);
    let mut crashed: Vec<&Task> = crashed.collect();
    crashed.sort_by_key(|task| {
        let is_of_it = |it: &&Task| it.trace.process == task.trace.process;
        let is_alone = tasks.values().filter(is_of_it).nth(1).is_none();
        let is_in_a_call = task.stack.last().is_none_or(|it| it.imported);
        match is_alone || ends_in_a_crash(&task.stack) {
            true => 0,
            false => 1 + u8::from(is_in_a_call),
        }
    });
    crashed.into_iter().map(|it| it.number).collect()
}

/// Whether a process ended in a way that ends its job: by a signal of its own, or a status that says so.
pub(crate) fn is_crash(end: &End) -> bool {
    match end.kind {
        EndKind::Signalled => end.code.is_none_or(|it| !ENDED_BY_OTHERS.contains(&it)),
        EndKind::Exited => end.code.is_some_and(|status| status != 0),
        EndKind::Killed | EndKind::Running => false,
    }
}

/// Whether a process came to its end as if all was well, or as another program.
pub(crate) fn ended_well(end: &End) -> bool {
    end.kind == EndKind::Exited && end.code.is_none_or(|status| status == 0)
}

pub(crate) fn is_mpi(place: &Place) -> bool {
    is_routine(&place.function, place.imported)
}

/// Whether it is the last call of MPI.
pub(crate) fn is_last(place: &Place) -> bool {
    does(place) == mpi::Does::End
}

fn does(place: &Place) -> mpi::Does {
    mpi::meaning(&c_name(&place.function)).does
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::message_tests::{Job, receive, send};
    use lockstep_comm::{Mode, Peer};
    use lockstep_trace::TraceName;

    /// A task that ended with this status in these calls of libraries.
    pub(crate) fn ended(number: u32, status: i32, stack: &[&str]) -> Task {
        let place = |function: &&str| Place {
            function: (*function).to_owned(),
            imported: true,
            called_at: None,
        };
        let end = End {
            kind: EndKind::Exited,
            code: Some(status),
            certain: true,
        };
        Task {
            number,
            trace: TraceName::new(number, 0),
            crashed: is_crash(&end),
            end,
            stack: stack.iter().map(place).collect(),
            leaf: None,
            activity: Activity::Ended,
            polls: None,
            events: 1,
            is_launcher: false,
        }
    }

    #[test]
    fn an_exception_that_nobody_catches() {
        let is_crash = |stack: &[&str]| ends_in_a_crash(&ended(0, 0, stack).stack);
        assert!(is_crash(&[
            "std::__throw_out_of_range_fmt(char const*, ...)"
        ]));
        assert!(is_crash(&["MPI_Send", "__cxa_throw"]) && is_crash(&["abort"]));
        assert!(!is_crash(&["__cxa_throw", "MPI_Send"]) && !is_crash(&[]));
        // The program's own, of that name.
        let mut own = ended(0, 0, &["std::__throw_own"]).stack[0].clone();
        own.imported = false;
        assert!(!ends_in_a_crash(&[own]));
    }

    /// Of tasks 0 and 1, which wait for each other, and 2, which does not, those that crashed.
    fn crashes(tasks: [Task; 3]) -> Vec<u32> {
        crashes_of(false, tasks)
    }

    fn crashes_of(is_known: bool, tasks: [Task; 3]) -> Vec<u32> {
        let mut job = Job::default();
        for (task, other) in [(0, 1), (1, 0)] {
            let wanted = receive(Peer::Task(other), Some(0));
            job.call(task, "MPI_Recv", vec![wanted], false);
        }
        job.call(2, "MPI_Send", vec![send(2, 0, Mode::Standard)], true);
        let mut tasks = tasks.into_iter().map(|it| (it.number, it)).collect();
        lost_their_launcher(is_known, &mut tasks, &mut job.0, &BTreeMap::new());
        crashed(&tasks)
    }

    #[test]
    fn whoever_is_left_when_the_launcher_goes_did_not_crash() {
        let waits = |number, status| ended(number, status, &["MPI_Recv"]);
        let none: [u32; 0] = [];
        // All of them, whatever they did; or those that wait where others are over.
        assert_eq!(
            crashes([waits(0, 195), waits(1, 195), ended(2, 195, &["work"])]),
            none
        );
        assert_eq!(
            crashes([waits(0, 195), waits(1, 195), ended(2, 0, &[])]),
            none
        );
        // One alone, and its status says so.
        assert_eq!(
            crashes([waits(0, 195), ended(1, 0, &[]), ended(2, 0, &[])]),
            none
        );
        // In different ways; only one; by a call of its own; not in MPI.
        assert_eq!(
            crashes([waits(0, 195), waits(1, 1), ended(2, 0, &[])]),
            [0, 1]
        );
        assert_eq!(crashes([waits(0, 1), waits(1, 0), ended(2, 0, &[])]), [0]);
        assert_eq!(
            crashes([waits(0, 1), waits(1, 1), ended(2, 1, &["exit"])]),
            [0, 1, 2]
        );
        assert_eq!(
            crashes([waits(0, 1), ended(1, 1, &["work"]), ended(2, 0, &[])]),
            [0, 1]
        );
        // It is known that the launcher was killed.
        let killed = |mut task: Task| {
            (task.crashed, task.end.kind, task.end.code) = (false, EndKind::Killed, None);
            task
        };
        let some = [waits(0, 195), killed(waits(1, 0)), ended(2, 0, &[])];
        assert_eq!(crashes_of(true, some), none);
        let some = [
            waits(0, 195),
            ended(1, 1, &["exit"]),
            ended(2, 3, &["work"]),
        ];
        assert_eq!(crashes_of(true, some), [1, 2]);
    }

    #[test]
    fn who_was_killed_before_the_others() {
        let first = |ends: [(EndKind, i32); 3], gone: [u64; 3], status: i32| {
            let task = |(number, (kind, code)): (u32, (EndKind, i32))| {
                let mut task = ended(number, code, &["work"]);
                task.end.kind = kind;
                (number, task)
            };
            let tasks = (0..).zip(ends).map(task).collect();
            first_killed(&tasks, gone.into_iter().zip(0..).collect(), &[status])
        };
        use EndKind::{Exited, Killed, Signalled};
        // Open MPI asks the others to end a second later, and MPICH kills them at once.
        let asked = [(Signalled, 15), (Killed, 9), (Signalled, 15)];
        let (late, soon) = ([1_000_900, 7, 1_000_100], [2700, 7, 900]);
        assert_eq!(first(asked, late, 137), Some(1));
        let killed = [(Killed, 9); 3];
        assert_eq!(first(killed, soon, 9), Some(1));
        // At once; the launcher was told to end them, or says nothing of that; one came to its end.
        assert_eq!(first(killed, [100, 7, 60], 9), None);
        assert_eq!(first([(Signalled, 15); 3], soon, 15), None);
        assert_eq!(first(killed, soon, 1), None);
        let and = |code| [(Killed, 9), (Killed, 9), (Exited, code)];
        assert_eq!(first(and(0), soon, 9), None);
        // It failed since the other was gone; or before.
        assert_eq!(first(and(1), soon, 9), Some(1));
        assert_eq!(first(and(1), [2700, 900, 7], 9), None);
        // At once, and one of them had just sent a signal.
        let mut at_once: BTreeMap<u32, Task> = BTreeMap::new();
        for (number, function) in [(0, "MPI_Barrier"), (1, "kill"), (2, "MPI_Barrier")] {
            let mut task = ended(number, 9, &[function]);
            task.end.kind = Killed;
            at_once.insert(number, task);
        }
        let at = |gone: [u64; 3]| gone.into_iter().zip(0..).collect();
        assert_eq!(first_killed(&at_once, at([100, 101, 102]), &[9]), Some(1));
        // Seen to be gone as the last.
        assert_eq!(first_killed(&at_once, at([7, 4600, 1500]), &[9]), Some(1));
        // Without a word of its own, of those that waited; a second is enough.
        at_once.get_mut(&1).expect("there").stack = Vec::new().into();
        assert_eq!(first_killed(&at_once, at([7, 4600, 1500]), &[9]), None);
        let late = at([7, 1_000_900, 1_000_100]);
        assert_eq!(first_killed(&at_once, late, &[9]), Some(0));
    }
}
