//! Opening runs, and what several subcommands say of their traces.

use crate::output;
use anyhow::{Result, bail};
use lockstep_trace::{
    FunctionId, ProcessName, Run, Selection, Selections, Thread, TraceName, in_short,
};
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

/// A process as JSON has it: its rank as a number, or its name where it is more than a rank.
pub fn process_json(name: ProcessName) -> serde_json::Value {
    if name == ProcessName::rank(name.rank) {
        name.rank.into()
    } else {
        name.to_string().into()
    }
}

/// The name of a function, fit for a terminal.
pub fn function_name(run: &Run, id: FunctionId) -> String {
    output::printable(&run.function(id).name)
}

/// The open calls of a trace on one line, outermost first.
pub fn open_calls(run: &Run, thread: &Thread) -> String {
    thread
        .open
        .iter()
        .map(|frame| function_name(run, frame.function))
        .collect::<Vec<_>>()
        .join(" > ")
}
