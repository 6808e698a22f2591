//! Lines of the source in evidence.

use crate::difftrace::trees::Trees;
use crate::structure::source::call_lines;
use lockstep_calltree::FunctionKey;

/// ` at queue.c:41`, ` at queue.c:41 or elsewhere`: without directories.
pub(super) fn place(lines: &[String]) -> String {
    let short = |line: &String| line.rsplit('/').next().unwrap_or(line).to_owned();
    match lines {
        [] => String::new(),
        [one] => format!(" at {}", short(one)),
        [one, ..] => format!(" at {} or elsewhere", short(one)),
    }
}

/// Where a function calls another in the source of the last run.
pub(super) fn lines(trees: &Trees, caller: FunctionKey, callee: FunctionKey) -> Vec<String> {
    let last = trees.last();
    let is_callee = |id| last.functions.key(id) == callee;
    let lines = call_lines(last.run, &last.functions, caller, &is_callee);
    let each = lines.iter();
    each.map(|it| format!("{}:{}", it.file, it.line)).collect()
}
