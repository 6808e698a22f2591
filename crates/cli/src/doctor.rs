//! `lockstep doctor`: what this machine lacks for which feature.

use crate::go::scratch;
use crate::{output, probe};
use anyhow::Result;
use clap::Args;
use lockstep_goroutines::build::BuildError;
use lockstep_goroutines::doctor::check;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Say what this machine lacks for which feature, and test the Go toolchain
///
/// The self-test builds a small program with the overlay of this directory's Go toolchain, runs it, and compares what
/// was recorded with what it does. Ends with 1 where something that is there does not work.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep doctor
")]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a feature needs from outside.
const TOOLS: [(&str, &str); 3] = [
    ("mpirun", "recording MPI programs"),
    ("go", "go test, go run, go usages"),
    ("gcc", "-race of Go programs, cgo"),
];

/// What this machine has, and what it lacks.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    /// The checks, in order.
    checks: Vec<Row>,
}

/// One check.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Check")]
struct Row {
    /// What was checked: `probe`, the name of a tool, or `Go self-test`.
    what: String,
    /// `works`, `limited`, `there`, `not there`, `broken` or `not usable`.
    state: &'static str,
    /// Where it is, what needs it, or why it does not work.
    note: String,
}

impl Doctor {
    pub fn run(self) -> Result<ExitCode> {
        let (state, note) = match probe::chosen(None).place() {
            Ok(place) => ("works", place.display().to_string()),
            Err(error) => ("limited", format!("{error}: it is put into each run")),
        };
        let mut rows = vec![Row {
            what: "probe".to_owned(),
            state,
            note,
        }];
        for (tool, feature) in TOOLS {
            let found = std::env::var_os("PATH").and_then(|path| {
                let mut places = std::env::split_paths(&path).map(|it| it.join(tool));
                places.find(|it| it.is_file())
            });
            rows.push(Row {
                what: tool.to_owned(),
                state: if found.is_some() {
                    "there"
                } else {
                    "not there"
                },
                note: found.map_or_else(
                    || format!("needed for {feature}"),
                    |it| it.display().to_string(),
                ),
            });
        }
        let mut is_broken = false;
        if rows.iter().any(|it| it.what == "go" && it.state == "there") {
            let place = scratch()?;
            let (state, note) = match check(&place.0) {
                Ok(health) if health.complaints.is_empty() => ("works", health.version),
                Ok(health) => (
                    "broken",
                    format!("{}: {}", health.version, health.complaints.join("; ")),
                ),
                Err(error @ BuildError::Toolchain(_)) => ("not usable", error.to_string()),
                Err(error) => ("broken", error.to_string()),
            };
            is_broken = state == "broken";
            rows.push(Row {
                what: "Go self-test".to_owned(),
                state,
                note,
            });
        }
        if self.json {
            output::json(&Document { checks: rows })?;
        } else {
            let rows = rows
                .into_iter()
                .map(|it| vec![it.what, it.state.to_owned(), it.note]);
            let table = output::table(&["WHAT", "STATE", ""], &[], rows);
            output::print(|out| writeln!(out, "{table}"))?;
        }
        Ok(output::found(is_broken))
    }
}
