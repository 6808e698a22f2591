//! `lockstep calls`: how often each function was called, or by whom.

use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_calltree::{CallEdge, Counts, Forest, FunctionCalls, FunctionMap};
use lockstep_exchange::Measured;
use lockstep_trace::{Function, Process, ProcessName, Run, Selection, Selections, Thread};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Events of which times are shown without being asked for.
const MOST_TIMED: u64 = 1 << 24;

type Times = HashMap<(String, String), Measured>;

/// Count calls per function, or per caller and callee
///
/// SECONDS is how long the calls took whose begin and end were measured (MEASURED), SELF how long without what they called, of
/// those whose own calls were all measured. Calls of MPI and of library functions that can wait are measured.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep calls good
  lockstep calls good -t 5.0 --graph
  lockstep calls good --json | jq '.functions[0]'
")]
pub struct Calls {
    /// Directory of the run
    run: PathBuf,
    /// Only these traces: 6.4, '6.*', 0-3.1-4, 6.4,7.0 (repeatable)
    #[arg(short = 't', value_name = "TRACE")]
    traces: Vec<Selections>,
    /// Count per caller and callee
    #[arg(long)]
    graph: bool,
    /// Show times of traces with more than 16,777,216 events too
    #[arg(long)]
    time: bool,
    /// Include processes that did not call MPI_Init
    #[arg(long)]
    all_processes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Number of calls of each function; with `--graph`, of each pair of a calling and a called function.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The functions. Absent with `--graph`.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<FunctionRow<'a>>>,
    /// Pairs of a calling and a called function. Only with `--graph`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<&'a [CallEdge]>,
}

/// One function. `measured`, `seconds`, `measured_self` and `self_seconds` are absent if none of its calls was measured.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FunctionCalls")]
struct FunctionRow<'a> {
    #[serde(flatten)]
    call: &'a FunctionCalls,
    /// Number of the function in the run, as in `events --ids`. Null if no single function of the run has this name.
    id: Option<usize>,
    #[serde(flatten)]
    times: Option<MeasuredRow>,
}

/// How long calls took.
#[derive(Serialize, JsonSchema)]
struct MeasuredRow {
    /// Number of calls whose begin and end were measured.
    measured: u64,
    /// Duration of these calls in seconds. A call inside another call of the same function is not added again.
    seconds: f64,
    /// Number of these calls in which every inner call was measured, too.
    measured_self: u64,
    /// Duration of the calls in `measured_self` without their inner calls, in seconds.
    self_seconds: f64,
}

impl Calls {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_with(&self.run, self.all_processes)?;
        run::selected(&[&run], &self.traces)?;
        let mut forest = Forest::new();
        let functions = forest.add_functions(&run);
        let chosen: Vec<Selection> = self.traces.iter().flat_map(Selections::iter).collect();
        let threads: Vec<&Thread> = run.select(&chosen).collect();
        let counts = Counts::of(&mut forest, &functions, &threads);
        if self.graph {
            self.print_graph(&counts.call_graph(&forest))?;
        } else {
            let of = threads.iter().map(|it| it.name.process).collect();
            let times = self.times(&forest, &functions, &threads)?;
            self.print_functions(&run, &of, (counts.calls(&forest), &times))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// How long calls took, by name and image in the tree, of those that were measured.
    fn times(
        &self,
        forest: &Forest,
        functions: &FunctionMap,
        threads: &[&Thread],
    ) -> Result<Times> {
        let events: u64 = threads.iter().map(|thread| thread.events).sum();
        if events > MOST_TIMED && !self.time {
            let text = "times are not shown of so many events: --time reads them";
            output::remark(&[text.to_owned()]);
            return Ok(Times::new());
        }
        let mut times = Times::new();
        for (id, sum) in lockstep_exchange::measured(threads)? {
            let function = forest.function(functions.key(id));
            let key = (function.name.clone(), function.image.clone());
            let all = times.entry(key).or_default();
            all.calls += sum.calls;
            all.total += sum.total;
            all.alone += sum.alone;
            all.own += sum.own;
        }
        Ok(times)
    }

    /// Calls of these processes.
    fn print_functions(
        &self,
        run: &Run,
        of: &BTreeSet<ProcessName>,
        (mut calls, times): (Vec<FunctionCalls>, &Times),
    ) -> Result<()> {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let measured: Vec<Option<Measured>> = calls
            .iter()
            .map(|call| times.get(&(call.name.clone(), call.image.clone())).copied())
            .collect();
        // In the tree a program's own functions belong to no image, whatever the program is called.
        let programs = run.processes.iter().filter(|it| of.contains(&it.name));
        let programs: BTreeSet<String> = programs.map(Process::image).collect();
        let is_own = |it: &&Function| !it.imported && programs.contains(&it.image);
        let mut own: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for function in run.functions.iter().filter(is_own) {
            let images = own.entry(function.name.as_str()).or_default();
            images.insert(&function.image);
        }
        for call in calls.iter_mut().filter(|call| call.image.is_empty()) {
            let images = own.get(call.name.as_str()).into_iter().flatten();
            call.image = images.copied().collect::<Vec<_>>().join(",");
        }
        if self.json {
            let ids: HashMap<(&str, &str), usize> = run
                .functions
                .iter()
                .enumerate()
                .map(|(id, function)| ((function.name.as_str(), function.image.as_str()), id))
                .collect();
            let functions = calls
                .iter()
                .zip(&measured)
                .map(|(call, sum)| FunctionRow {
                    call,
                    id: ids.get(&(call.name.as_str(), call.image.as_str())).copied(),
                    times: sum.map(|sum| MeasuredRow {
                        measured: sum.calls,
                        seconds: seconds(sum.total),
                        measured_self: sum.alone,
                        self_seconds: seconds(sum.own),
                    }),
                })
                .collect();
            return output::json(&Document {
                functions: Some(functions),
                edges: None,
            });
        }
        if times.is_empty() {
            let rows = calls
                .into_iter()
                .map(|call| vec![output::grouped(call.calls), call.image, call.name]);
            let table = output::table(&["CALLS", "IMAGE", "FUNCTION"], &[0], rows);
            return output::print(|out| writeln!(out, "{table}"));
        }
        let shown = |calls: u64, time: u64| match calls {
            0 => "-".to_owned(),
            _ => format!("{:.6}", seconds(time)),
        };
        let rows = calls.into_iter().zip(measured).map(|(call, sum)| {
            let sum = sum.unwrap_or_default();
            vec![
                output::grouped(call.calls),
                output::grouped(sum.calls),
                shown(sum.calls, sum.total),
                shown(sum.alone, sum.own),
                call.image,
                call.name,
            ]
        });
        let header = ["CALLS", "MEASURED", "SECONDS", "SELF", "IMAGE", "FUNCTION"];
        let table = output::table(&header, &[0, 1, 2, 3], rows);
        output::print(|out| writeln!(out, "{table}"))
    }

    fn print_graph(&self, edges: &[CallEdge]) -> Result<()> {
        if self.json {
            return output::json(&Document {
                functions: None,
                edges: Some(edges),
            });
        }
        let rows = edges.iter().map(|edge| {
            vec![
                output::grouped(edge.calls),
                edge.caller.clone(),
                edge.callee.clone(),
            ]
        });
        let table = output::table(&["CALLS", "CALLER", "CALLEE"], &[0], rows);
        output::print(|out| writeln!(out, "{table}"))
    }
}
