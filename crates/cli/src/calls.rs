//! `lockstep calls`: how often each function was called, or by whom.

use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_trace::{FunctionId, Run, Selection};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Count calls per function, or per caller and callee
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep calls good
  lockstep calls good -t 5.0 --graph
  lockstep calls good --json | jq '.functions[0]'
")]
pub struct Calls {
    /// Directory of the run
    run: PathBuf,
    /// Only these traces: 6.4, '6.*', 0-3.1-4 (repeatable)
    #[arg(short = 't', value_name = "TRACE")]
    traces: Vec<Selection>,
    /// Count per caller and callee
    #[arg(long)]
    graph: bool,
    /// Include processes that did not call MPI_Init
    #[arg(long)]
    all_processes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Calls {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_with(&self.run, self.all_processes)?;
        let mut pairs: BTreeMap<(Option<FunctionId>, FunctionId), u64> = BTreeMap::new();
        run::selected(&[&run], &self.traces)?;
        for thread in run.select(&self.traces) {
            for (pair, calls) in thread.calls() {
                *pairs.entry(pair).or_default() += calls;
            }
        }
        if self.graph {
            self.print_graph(&run, pairs)?;
        } else {
            let mut functions: BTreeMap<FunctionId, u64> = BTreeMap::new();
            for ((_, callee), calls) in pairs {
                *functions.entry(callee).or_default() += calls;
            }
            self.print_functions(&run, functions)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_functions(&self, run: &Run, functions: BTreeMap<FunctionId, u64>) -> Result<()> {
        let mut rows: Vec<_> = functions
            .into_iter()
            .map(|(id, calls)| (id, run.function(id), calls))
            .collect();
        rows.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.1.name.cmp(&b.1.name)));
        if self.json {
            let functions: Vec<_> = rows
                .iter()
                .map(|(id, function, calls)| {
                    json!({"name": function.name, "image": function.image, "calls": calls, "id": id.0})
                })
                .collect();
            return output::json(&json!({"functions": functions}));
        }
        let rows = rows.into_iter().map(|(_, function, calls)| {
            vec![
                output::grouped(calls),
                function.name.clone(),
                function.image.clone(),
            ]
        });
        let table = output::table(&["CALLS", "FUNCTION", "IMAGE"], &[0], rows);
        output::print(|out| writeln!(out, "{table}"))
    }

    fn print_graph(
        &self,
        run: &Run,
        pairs: BTreeMap<(Option<FunctionId>, FunctionId), u64>,
    ) -> Result<()> {
        let name = |id: FunctionId| run.function(id).name.clone();
        let mut rows: Vec<_> = pairs
            .into_iter()
            // What is outermost has no caller.
            .filter_map(|((caller, callee), calls)| Some((name(caller?), name(callee), calls)))
            .collect();
        rows.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        if self.json {
            let edges: Vec<_> = rows
                .iter()
                .map(|(caller, callee, calls)| json!({"caller": caller, "callee": callee, "calls": calls}))
                .collect();
            return output::json(&json!({"edges": edges}));
        }
        let rows = rows
            .into_iter()
            .map(|(caller, callee, calls)| vec![output::grouped(calls), caller, callee]);
        let table = output::table(&["CALLS", "CALLER", "CALLEE"], &[0], rows);
        output::print(|out| writeln!(out, "{table}"))
    }
}
