//! Opening runs, and what several subcommands say of their traces.

use crate::output;
use anyhow::{Result, bail};
use lockstep_trace::{FunctionId, Run, Selection, Selections, Thread, TraceName, in_short};
use std::collections::BTreeSet;
use std::path::Path;

/// Opens a run; what should be known about it goes to stderr.
pub fn open(directory: &Path) -> Result<Run> {
    let run = open_unread(directory)?;
    run.load()?;
    Ok(run)
}

/// The same for a command that asks for no events: the trees of a sealed run are not read.
pub fn open_unread(directory: &Path) -> Result<Run> {
    let run = Run::open(directory)?;
    output::remark(&run.notes);
    Ok(run)
}

/// [`open`] for a command about the traces that `wanted` means: other processes are not decoded, unless `needs_all` says of
/// what was found that they tell something about it.
pub fn open_for(
    directory: &Path,
    wanted: &Selection,
    needs_all: impl FnOnce(&Run, &Thread) -> bool,
) -> Result<Run> {
    let run = Run::open_only(directory, std::slice::from_ref(wanted))?;
    match trace(&run, wanted) {
        Ok(thread) if !needs_all(&run, thread) => {
            output::remark(&run.notes);
            run.load()?;
            Ok(run)
        }
        // Also where there is no such trace: what there is, is said.
        _ => open(directory),
    }
}

/// [`open`], with no process hidden where `all_processes`.
pub fn open_with(directory: &Path, all_processes: bool) -> Result<Run> {
    let run = open(directory)?;
    Ok(if all_processes {
        run.with_all_processes()
    } else {
        run
    })
}

/// The one trace of this name.
pub fn trace<'a>(run: &'a Run, name: &Selection) -> Result<&'a Thread> {
    let name = std::slice::from_ref(name);
    let found: Vec<&Thread> = run.select(name).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => bail!(no_trace(&[run], name)),
        several => bail!(
            "expected one trace, found that {} means {}",
            name[0],
            several.len()
        ),
    }
}

/// The traces of any of `runs` that the selections mean, in order; `None` without a selection. Each
/// selection must mean one.
pub fn selected(runs: &[&Run], lists: &[Selections]) -> Result<Option<Vec<TraceName>>> {
    let selections: Vec<Selection> = lists.iter().flat_map(Selections::iter).collect();
    if selections.is_empty() {
        return Ok(None);
    }
    let mut names = BTreeSet::new();
    for selection in selections.chunks(1) {
        let mut found = runs
            .iter()
            .flat_map(|run| run.select(selection))
            .map(|thread| thread.name)
            .peekable();
        if found.peek().is_none() {
            bail!(no_trace(runs, selection));
        }
        names.extend(found);
    }
    Ok(Some(names.into_iter().collect()))
}

fn no_trace(runs: &[&Run], wanted: &[Selection]) -> String {
    let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let places: Vec<String> = runs
        .iter()
        .map(|run| run.directory.display().to_string())
        .collect();
    let names: Vec<TraceName> = runs
        .iter()
        .flat_map(|run| run.traces())
        .map(|thread| thread.name)
        .collect();
    let found = if names.is_empty() {
        "no trace at all".to_owned()
    } else {
        in_short(&names)
    };
    format!(
        "expected a trace {} in {}, found {found}",
        wanted.join(" or "),
        places.join(" or ")
    )
}

/// The name of a function, fit for a terminal.
pub fn function_name(run: &Run, id: FunctionId) -> String {
    output::printable(&run.function(id).name)
}

/// The open calls of a trace on one line, outermost first; of a deep recursion how deep it is.
pub fn open_calls(run: &Run, thread: &Thread) -> String {
    let open: Vec<FunctionId> = thread.open.iter().map(|frame| frame.function).collect();
    let rounds = rounds(&open);
    let names = rounds.into_iter().map(|(round, times)| {
        let names: Vec<String> = round.iter().map(|it| function_name(run, *it)).collect();
        match (times, names.as_slice()) {
            (1, names) => names.join(" > "),
            (_, [name]) => format!("{name} ({times} times)"),
            (_, names) => format!("[{}] ({times} times)", names.join(" > ")),
        }
    });
    names.collect::<Vec<_>>().join(" > ")
}

/// Takes apart what repeats, up to [`LONGEST_ROUND`] functions that call each other in turn, more than [`FEW_TIMES`].
fn rounds(open: &[FunctionId]) -> Vec<(&[FunctionId], usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < open.len() {
        let rest = &open[at..];
        let times = |long: usize| {
            let again = rest.chunks_exact(long);
            again.take_while(|it| *it == &rest[..long]).count()
        };
        let longest = LONGEST_ROUND.min(rest.len());
        let round = (1..=longest).map(|long| (long, times(long)));
        let (long, times) = round
            .filter(|(_, times)| *times > FEW_TIMES)
            .max_by_key(|(long, times)| (long * times, std::cmp::Reverse(*long)))
            .unwrap_or((1, 1));
        found.push((&rest[..long], times));
        at += long * times;
    }
    found
}

const LONGEST_ROUND: usize = 8;
const FEW_TIMES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursions_are_told_by_their_depth() {
        let open =
            |ids: &[u32]| -> Vec<FunctionId> { ids.iter().copied().map(FunctionId).collect() };
        let told = |ids: &[u32]| -> Vec<(Vec<u32>, usize)> {
            let open = open(ids);
            let rounds = rounds(&open).into_iter();
            let rounds =
                rounds.map(|(round, times)| (round.iter().map(|it| it.0).collect(), times));
            rounds.collect()
        };
        assert_eq!(told(&[]), []);
        assert_eq!(told(&[1, 2, 2, 2]), [1, 2, 2, 2].map(|it| (vec![it], 1)));
        assert_eq!(
            told(&[1, 2, 2, 2, 2, 3]),
            [(vec![1], 1), (vec![2], 4), (vec![3], 1)]
        );
        assert_eq!(
            told(&[1, 2, 3, 2, 3, 2, 3, 2, 3, 2]),
            [(vec![1], 1), (vec![2, 3], 4), (vec![2], 1)]
        );
    }
}
