//! Who is meant and where, in words: tasks by number, places with their lines and iterations.

use crate::progress::Progress;
use crate::task::{Activity, Group, Place};
use lockstep_comm::is_named_so;
use lockstep_trace::threads::{self, Does};
use lockstep_trace::{base_name, brief, ranges};

impl Progress {
    /// What a group does, in a word or two.
    #[must_use]
    pub fn word(&self, group: &Group) -> &'static str {
        // Their first threads wait for others of theirs.
        let waits = |task: &u32| {
            let first = self.tasks.get(task).map(|it| it.trace);
            let mut inside = self.waiting.inside.iter();
            inside.any(|it| Some(it.from) == first)
        };
        match group.activity {
            Activity::Computation if group.tasks.iter().all(waits) => "waits",
            // A thread that came back from the function that it began with, or waits for work in a pool.
            Activity::Computation if !self.is_mpi && group.stack.is_empty() => "over or idle",
            Activity::Computation => "computes",
            Activity::Communication => "in MPI",
            Activity::Ended => "ended",
            Activity::Finished => "finished",
        }
    }

    /// `rank 5`, `ranks 0-3,7`, `thread 2`.
    #[must_use]
    pub fn who(&self, tasks: &[u32]) -> String {
        who(self, tasks)
    }
}

/// `rank 5`, `ranks 0-3,7`; without MPI `thread 2`. Where processes were forked, `process 1`, or `thread 0.2` of one that has several.
pub(crate) fn who(progress: &Progress, tasks: &[u32]) -> String {
    if progress.is_mpi || progress.forked.is_empty() {
        return numbered(progress.is_mpi, tasks);
    }
    let all = || progress.tasks.values().map(|it| it.trace);
    let (mut processes, mut threads) = (Vec::new(), Vec::new());
    for trace in tasks
        .iter()
        .filter_map(|it| Some(progress.tasks.get(it)?.trace))
    {
        match all().filter(|it| it.process == trace.process).count() {
            1 => processes.push(trace.process.to_string()),
            _ => threads.push(trace.to_string()),
        }
    }
    let listed = |one: &str, many: &str, names: &[String]| match names {
        [] => None,
        [name] => Some(format!("{one} {name}")),
        names => Some(format!("{many} {}", names.join(","))),
    };
    let processes = listed("process", "processes", &processes);
    let threads = listed("thread", "threads", &threads);
    let both: Vec<String> = processes.into_iter().chain(threads).collect();
    both.join(" and ")
}

pub(crate) fn numbered(are_ranks: bool, tasks: &[u32]) -> String {
    let kind = if are_ranks { "rank" } else { "thread" };
    match tasks {
        [task] => format!("{kind} {task}"),
        many => format!("{kind}s {}", ranges(many)),
    }
}

/// The frame that tells most: the outermost call of MPI, or the innermost open call.
pub(crate) fn telling(stack: &[Place]) -> Option<usize> {
    stack
        .iter()
        .position(|place| is_named_so(&place.function))
        .or_else(|| stack.len().checked_sub(1))
}

/// `in MPI_Allreduce at solve.c:214 in step(), iteration 812`.
pub(crate) fn place(group: &Group) -> String {
    place_with(group, "")
}

/// The same, and what was given to what was called: `in MPI_Send(dest=7) at solve.c:214`.
pub(crate) fn place_with(group: &Group, given: &str) -> String {
    let Some(index) = telling(&group.stack) else {
        return "in no function that was recorded".to_owned();
    };
    let frame = &group.stack[index];
    let name = lockstep_trace::c_name(&frame.function);
    let mut text = match (group.activity, frame.imported) {
        // A library's function goes by its plain name, of C++ without what is long of it.
        (Activity::Communication, _) | (_, true) if !name.contains('(') => {
            format!("in {name}{given}")
        }
        _ => format!("in {}", brief(&name)),
    };
    let caller = index.checked_sub(1).map(|it| &group.stack[it]);
    let caller = caller.filter(|_| frame.imported);
    // Of a library without lines, or in a header: where the program called it.
    let own = |it: &Place| it.called_at.clone().filter(|it| !it.is_of_the_system());
    let mut outer = group.stack[..=index].iter().enumerate().rev();
    let first = if frame.imported { index } else { index + 1 };
    match outer.find_map(|(depth, it)| Some((depth, it, own(it)?))) {
        Some((depth, called, line)) if depth < index => {
            if let Some(caller) = caller {
                text.push_str(&format!(" in {}", brief(&caller.function)));
            }
            if depth + 1 != first {
                text.push_str(&format!(", under {}", brief(&called.function)));
            }
            text.push_str(&format!(" called at {}", line.brief()));
        }
        here => {
            let here = here.map(|it| it.2).or_else(|| frame.called_at.clone());
            if let Some(line) = here {
                let called = if frame.imported { "at" } else { "called at" };
                text.push_str(&format!(" {called} {}", line.brief()));
            }
            if let Some(caller) = caller {
                text.push_str(&format!(" in {}", brief(&caller.function)));
            }
        }
    }
    if let Some(library) = behind(&group.stack, index) {
        let name = lockstep_trace::c_name(&library.function);
        let name = if name.contains('(') {
            brief(&name)
        } else {
            name.into_owned()
        };
        let at = library.called_at.as_ref();
        let at = at.map_or(String::new(), |it| format!(" at {}", it.brief()));
        text.push_str(&format!(", within {name}{at}"));
    }
    if let Some(leaf) = &group.leaf {
        text.push_str(&format!(", perhaps in its last call of {}", brief(leaf)));
    }
    text.push_str(&iteration(outermost(group), &group.loops).unwrap_or_default());
    text
}

/// The library's function out of which the program's code was called that is in this call: one that ends the process, or that a
/// signal interrupted.
fn behind(stack: &[Place], telling: usize) -> Option<&Place> {
    let own = stack.get(..telling)?.iter().rposition(|it| !it.imported)?;
    let library = stack.get(..own)?.iter().rev().find(|it| it.imported)?;
    let meaning = threads::meaning(&library.function);
    let is_again = stack
        .get(telling)
        .is_some_and(|it| it.imported && it.function == library.function);
    (meaning.does == Does::Exit || is_again && !meaning.is_openmp()).then_some(library)
}

/// The function that was called first.
pub(crate) fn outermost(group: &Group) -> Option<&str> {
    group.stack.first().map(|it| it.function.as_str())
}

/// The function that a loop is in.
fn function_of(it: &(String, u64)) -> Option<&str> {
    it.0.rsplit_once('/').map(|it| it.0)
}

/// The loop that tells most: the outermost of the innermost function that is in one.
pub(crate) fn around(loops: &[(String, u64)]) -> Option<&(String, u64)> {
    let innermost = function_of(loops.last()?);
    loops.iter().find(|it| function_of(it) == innermost)
}

/// `, iteration 4`, and `, iteration 4 in iteration 812 of main()` where a caller goes round, too: the time step says more than
/// which neighbour it was. Of more callers that go round, the innermost and the outermost: one is a time step, and one what a script
/// or a driver repeats. Who calls the same twice in a row need not go round.
pub(crate) fn iteration(outermost: Option<&str>, loops: &[(String, u64)]) -> Option<String> {
    let inner = around(loops)?;
    let mut text = format!(", iteration {}", inner.1);
    let is_outermost = |it: &str| outermost.is_some_and(|first| base_name(first) == base_name(it));
    let mut callers: Vec<(&str, u64)> = Vec::new();
    for it in loops {
        let Some(function) = function_of(it).filter(|it| Some(*it) != function_of(inner)) else {
            continue;
        };
        let is_known = callers.last().is_some_and(|last| last.0 == function);
        if !is_known && (it.1 > 2 || is_outermost(function)) {
            callers.push((function, it.1));
        }
    }
    if callers.len() > 2 {
        callers.drain(1..callers.len() - 1);
    }
    for (function, iteration) in callers.into_iter().rev() {
        let function = brief(base_name(function));
        text.push_str(&format!(" in iteration {iteration} of {function}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_callers_that_go_round_two_are_told() {
        let told = |loops: &[(&str, u64)]| {
            let loops = loops.iter().map(|(it, count)| ((*it).to_owned(), *count));
            iteration(Some("main"), &loops.collect::<Vec<_>>()).unwrap_or_default()
        };
        let script = [("file/one", 15), ("run/a", 60), ("run/b", 3)];
        assert_eq!(told(&script), ", iteration 60 in iteration 15 of file()");
        let [file, run, _] = script;
        let all = [("main/file", 1), file, run, ("swap/MPI_Send", 4)];
        let words = ", iteration 4 in iteration 60 of run() in iteration 1 of main()";
        assert_eq!(told(&all), words);
        assert_eq!(told(&[("twice/run", 2), run]), ", iteration 60");
    }

    #[test]
    fn long_names_are_told_without_arguments_of_templates() {
        let state = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()";
        assert_eq!(brief(state), "std::thread::_State_impl<...>::_M_run()");
        assert_eq!(brief("Halo<double>::exchange"), "Halo<double>::exchange()");
        let shift = format!("{}::operator<<(Grid&)", "name".repeat(20));
        assert_eq!(brief(&shift), shift.replace("Grid&", "..."));
    }
}
