//! The gate's answer in words.

use super::answer::{Detail, Difference, Kind};
use crate::naming::{listed, range, times, told, told_around};
use lockstep_trace::{EndKind, ProcessName};

/// The answer in a sentence.
pub(super) fn verdict(differences: &[Difference], normals: usize) -> String {
    let Some(first) = differences.first() else {
        let runs = match normals {
            1 => "the run".to_owned(),
            more => format!("the {more} runs"),
        };
        return format!("the run does what {runs} of the baseline did");
    };
    let others = differences.iter().filter(|it| !it.follows).count() - 1;
    let more = match others {
        0 => String::new(),
        1 => "; 1 other difference".to_owned(),
        more => format!("; {more} other differences"),
    };
    format!("{}{more}", sentence(first))
}

/// How a process ended.
pub(super) fn ended((kind, code): (EndKind, Option<i32>)) -> String {
    match (kind, code) {
        (EndKind::Exited, Some(code)) => format!("exited with status {code}"),
        (EndKind::Signalled, Some(signal)) => format!("was ended by signal {signal}"),
        (EndKind::Running, _) => "was still running".to_owned(),
        _ => "was killed".to_owned(),
    }
}

/// One difference in a sentence.
pub(super) fn sentence(it: &Difference) -> String {
    let function = it.function.as_deref().map(told_around).unwrap_or_default();
    let own = it.function.as_deref().map(called).unwrap_or_default();
    let caller = it.caller.as_deref().map(called);
    let by = caller
        .as_ref()
        .map_or_else(String::new, |it| format!(" by {it}"));
    let at = place(it);
    let now = times(it.now.unwrap_or_default());
    let normal = it
        .normal
        .map_or_else(|| "never".to_owned(), |it| range(it[0], it[1]));
    let text = match it.kind {
        Kind::Missing => "a process of the baseline is missing".to_owned(),
        Kind::Extra => "a process is there that the baseline does not have".to_owned(),
        Kind::End => match &it.detail {
            Some(Detail::End { now, normal }) => {
                format!("a process {now}; in the baseline it {normal}")
            }
            _ => "a process ended in another way".to_owned(),
        },
        Kind::Gone => {
            let why = match it.may_be_inlined {
                true => " (removed, or inlined by the compiler)",
                false => "",
            };
            format!(
                "{own} is no longer called{by}{at}{why}; in the baseline {}",
                normal
            )
        }
        Kind::New => {
            let why = match it.may_be_inlined {
                true => " (added, or no longer inlined by the compiler)",
                false => "",
            };
            format!("{own} is called {now}{by}{at}{why}; the baseline never calls it")
        }
        Kind::Count => format!("{own} is called {now}{by}{at}; in the baseline {}", normal),
        Kind::Argument => match &it.detail {
            Some(Detail::Argument { name, now, normal }) => {
                let normal = match normal.as_slice() {
                    [] => "no such call".to_owned(),
                    some => format!("{name}={}", listed(some, LISTED)),
                };
                format!("{own} is called with {name}={now}; in the baseline with {normal}")
            }
            _ => format!(
                "{own} is called with its arguments in other combinations than in the baseline"
            ),
        },
        Kind::Order => order(it, &function, &at),
    };
    format!("{}{text}", who(it))
}

/// What calls a function makes, one behind the other.
fn order(it: &Difference, function: &str, at: &str) -> String {
    let does = match &it.detail {
        Some(Detail::Pair(None, None)) => {
            return format!("{function} makes no calls; in the baseline it always does");
        }
        Some(Detail::Pair(Some(a), Some(b))) => {
            format!("calls {} directly after {}{at}", called(b), called(a))
        }
        Some(Detail::Pair(None, Some(b))) => format!("calls {} first{at}", called(b)),
        Some(Detail::Pair(Some(a), None)) => format!("returns directly after {}", called(a)),
        _ => {
            return format!(
                "{function} makes its calls in another order, or spread otherwise over its own calls, than in the baseline"
            );
        }
    };
    format!("{function} {does}; in the baseline it never does")
}

fn called(name: &str) -> String {
    let name = told(name);
    match name.contains('(') || name.contains('<') {
        true => name.into_owned(),
        false => format!("{name}()"),
    }
}

/// Whose difference it is; nothing if the run has no other process.
fn who(it: &Difference) -> String {
    if it.is_alone {
        return String::new();
    }
    let is_rank = |it: &&ProcessName| **it == ProcessName::rank(it.rank);
    let ranks: Vec<u32> = (it.processes.iter().filter(is_rank))
        .map(|it| it.rank)
        .collect();
    if ranks.len() < it.processes.len() {
        let names: Vec<String> = it.processes.iter().map(ToString::to_string).collect();
        return format!("process {}: ", names.join(", "));
    }
    let what = match ranks.len() {
        1 => "rank",
        _ => "ranks",
    };
    format!("{what} {}: ", lockstep_trace::ranges(&ranks))
}

fn place(it: &Difference) -> String {
    it.source.as_ref().map_or_else(String::new, |(file, line)| {
        format!(" at {}:{line}", file.rsplit('/').next().unwrap_or(file))
    })
}

/// How many values are listed.
const LISTED: usize = 4;
