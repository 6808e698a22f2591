//! Where a group of tasks or a thread is: of its open calls those that tell most.

use crate::task::{Activity, Group, Place};
use lockstep_comm::is_named_so;
use lockstep_trace::threads::{self, Does};
use lockstep_trace::{SourceLine, base_name};

/// Where a group of tasks or a thread is. Who is at one place has equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    /// The call that tells most; `None` if no function was recorded.
    pub call: Option<OpenCall>,
    /// A function that it may still be in.
    pub leaf: Option<String>,
    /// In which iteration.
    pub iteration: Option<Iteration>,
}

/// The open call that tells most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// What was called.
    pub function: String,
    /// Whether that is a library's.
    pub imported: bool,
    /// Whether it goes by its whole name.
    pub is_plain: bool,
    /// What was given to it: `(count=-1, dest=7)`.
    pub given: Option<String>,
    /// The function of the program that called it, if it is a library's.
    pub caller: Option<String>,
    /// Where it was called.
    pub line: Line,
    /// The library's function out of which the program's code was called that is in this call, and its line.
    pub within: Option<(String, Option<SourceLine>)>,
}

/// Where a call was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// There, as far as that is known.
    Own(Option<SourceLine>),
    /// Of a call that stands in no line of the program: the line of one around it.
    Around {
        /// The function that was called there, if it is another than the caller.
        under: Option<String>,
        /// The line.
        line: SourceLine,
    },
}

/// An iteration of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Which, from 1.
    pub number: u64,
    /// Iterations around it, the innermost first: of loops in these functions.
    pub around: Vec<(String, u64)>,
}

/// The frame that tells most: the outermost call of MPI, or the innermost open call.
pub(crate) fn telling(stack: &[Place]) -> Option<usize> {
    stack
        .iter()
        .position(|place| is_named_so(&place.function))
        .or_else(|| stack.len().checked_sub(1))
}

impl Whereabouts {
    /// Of a group.
    #[must_use]
    pub fn of(group: &Group) -> Self {
        let index = telling(&group.stack);
        Self {
            call: index.map(|it| OpenCall::of(group, it)),
            leaf: group.leaf.clone().filter(|_| index.is_some()),
            iteration: index.and_then(|_| Iteration::of(outermost(group), &group.loops)),
        }
    }

    /// The same in whichever iteration.
    pub(crate) fn in_any_iteration(self) -> Self {
        Self {
            iteration: None,
            ..self
        }
    }

    /// Of a thread with these open calls, outermost first.
    pub(crate) fn of_stack(stack: &[Place]) -> Self {
        Self::of(&Group {
            tasks: Vec::new(),
            stack: stack.into(),
            leaf: None,
            loops: Vec::new(),
            turns: Vec::new(),
            activity: Activity::Computation,
        })
    }
}

impl OpenCall {
    fn of(group: &Group, index: usize) -> Self {
        let frame = &group.stack[index];
        let caller = index.checked_sub(1).map(|it| &group.stack[it]);
        let caller = caller.filter(|_| frame.imported);
        // Of a library without lines, or in a header: where the program called it.
        let own = |it: &Place| it.called_at.clone().filter(|it| !it.is_of_the_system());
        let mut outer = group.stack[..=index].iter().enumerate().rev();
        let first = if frame.imported { index } else { index + 1 };
        let line = match outer.find_map(|(depth, it)| Some((depth, it, own(it)?))) {
            Some((depth, called, line)) if depth < index => Line::Around {
                under: (depth + 1 != first).then(|| called.function.clone()),
                line,
            },
            here => Line::Own(here.map(|it| it.2).or_else(|| frame.called_at.clone())),
        };
        let within = behind(&group.stack, index);
        Self {
            function: frame.function.clone(),
            imported: frame.imported,
            is_plain: frame.imported || group.activity == Activity::Communication,
            given: None,
            caller: caller.map(|it| it.function.clone()),
            line,
            within: within.map(|it| (it.function.clone(), it.called_at.clone())),
        }
    }
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

impl Iteration {
    /// Of these loops the one that tells most, and those of its callers that go round, too: the time step says more than which
    /// neighbour it was. Of more than two such callers, the innermost and the outermost: one is a time step, and one what a script
    /// or a driver repeats. Who calls the same twice in a row need not go round.
    pub(crate) fn of(outermost: Option<&str>, loops: &[(String, u64)]) -> Option<Self> {
        let inner = around(loops)?;
        let is_outermost =
            |it: &str| outermost.is_some_and(|first| base_name(first) == base_name(it));
        let mut callers: Vec<(&str, u64)> = Vec::new();
        for it in loops {
            let Some(function) = function_of(it).filter(|it| Some(*it) != function_of(inner))
            else {
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
        let callers = callers.into_iter().rev();
        Some(Self {
            number: inner.1,
            around: callers.map(|it| (it.0.to_owned(), it.1)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_callers_that_go_round_two_are_told() {
        let told = |loops: &[(&str, u64)]| {
            let loops = loops.iter().map(|(it, count)| ((*it).to_owned(), *count));
            let found = Iteration::of(Some("main"), &loops.collect::<Vec<_>>()).expect("a loop");
            let around = found.around.into_iter();
            let around: Vec<String> = around.map(|it| format!("{} {}", it.1, it.0)).collect();
            (found.number, around.join(", "))
        };
        let script = [("file/one", 15), ("run/a", 60), ("run/b", 3)];
        assert_eq!(told(&script), (60, "15 file".to_owned()));
        let [file, run, _] = script;
        let all = [("main/file", 1), file, run, ("swap/MPI_Send", 4)];
        assert_eq!(told(&all), (4, "60 run, 1 main".to_owned()));
        assert_eq!(told(&[("twice/run", 2), run]), (60, String::new()));
    }
}
