//! `lockstep go usages`: the concurrency usages of packages.

use super::options::{Flags, built, from_here};
use crate::output;
use anyhow::{Result, bail};
use clap::Args;
use lockstep_goroutines::toolchain::Toolchain;
use lockstep_goroutines::usages::{Usage, usages};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// List the concurrency usages of packages and their tests: what a test of concurrency has to cover
///
/// Sends, receives, closes, select statements with their cases, locks, wait groups, condition variables, once, go
/// statements, sleeps, atomics and cancellations, as the type checker knows them.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go usages ./...
  lockstep go usages --json ./server -- -tags integration
")]
pub struct Usages {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Packages, as for the go command
    #[arg(value_name = "PACKAGES", default_value = ".")]
    packages: Vec<String>,
    /// Build flags of the go command
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// The concurrency usages of packages and of their tests.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    /// The usages, sorted by file, line and column.
    usages: Vec<Usage>,
}

impl Usages {
    pub fn run(self) -> Result<ExitCode> {
        let flags = Flags::of(&self.flags)?;
        let here = std::env::current_dir()?;
        let toolchain = Toolchain::of(&here)?;
        let found = built(usages(&here, &toolchain, &flags.build, &self.packages))?;
        if found.is_empty() && self.packages.is_empty() {
            bail!("expected packages, found none");
        }
        if self.json {
            output::json(&Document { usages: found })?;
        } else {
            output::print(|out| {
                for usage in &found {
                    writeln!(out, "{}", output::printable(&line(usage)))?;
                }
                Ok(())
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `server.go:12:3  send  c  server.(*T).Run`
fn line(usage: &Usage) -> String {
    let mut object = usage.object.clone();
    if usage.kind == "select" {
        let mut cases: Vec<String> = usage
            .cases
            .iter()
            .map(|it| format!("{} {}", it.kind, it.object))
            .collect();
        cases.extend(usage.default.then(|| "default".to_owned()));
        object = format!("{{{}}}", cases.join("; "));
    }
    let mut kind = match usage.deferred {
        true => format!("defer {}", usage.kind),
        false => usage.kind.clone(),
    };
    if !usage.form.is_empty() {
        kind = format!("{kind} by {}", usage.form);
    }
    format!(
        "{}:{}:{}  {kind}  {object}  {}",
        from_here(&usage.file),
        usage.line,
        usage.column,
        usage.function
    )
}
