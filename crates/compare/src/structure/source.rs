//! Lines of the source from which functions call others.

use crate::difftrace::trees::Trees;
use lockstep_calltree::{FunctionKey, FunctionMap};
use lockstep_trace::{FunctionId, Run, SourceLine};

/// Every line from which a function, or a clone of it, calls such a one, each once.
pub(crate) fn call_lines(
    run: &Run,
    functions: &FunctionMap,
    caller: FunctionKey,
    is_callee: &dyn Fn(FunctionId) -> bool,
) -> Vec<SourceLine> {
    let mut lines: Vec<SourceLine> = Vec::new();
    for (callee, line) in functions.ids(caller).flat_map(|it| &run.function(it).calls) {
        if is_callee(*callee) && !lines.contains(line) {
            lines.push(line.clone());
        }
    }
    lines
}

/// Where one calls the other, in the last run that shows it.
pub(crate) fn lines(trees: &Trees, caller: FunctionKey, callee: FunctionKey) -> Vec<SourceLine> {
    let each = trees.runs.iter().rev();
    let mut each = each.map(|it| {
        call_lines(it.run, &it.functions, caller, &|id| {
            it.functions.key(id) == callee
        })
    });
    each.find(|it| !it.is_empty()).unwrap_or_default()
}
