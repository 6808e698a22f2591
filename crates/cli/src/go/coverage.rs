//! `lockstep go coverage`: which requirements the runs of a kept campaign covered.

use crate::output;
use anyhow::{Context, Result};
use clap::Args;
use lockstep_goroutines::coverage::{Coverage, Usage};
use lockstep_goroutines::store::{self, Campaign};
use lockstep_goroutines::toolchain::Toolchain;
use lockstep_goroutines::{Tree, dot, usages};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Tell which concurrency usages the runs of a kept campaign exercised, in which way, and which not
///
/// Each send, receive, case of a select, lock and so on is to be seen waiting, letting others go on, keeping others
/// out, and doing none of these, in each place of the goroutine tree that comes to it. What is not covered is said
/// with what it means.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go test -o found ./server
  lockstep go coverage found
  lockstep go coverage found --json | jq .coverage
")]
pub struct GoCoverage {
    /// Directory that `go test -o` or `go run -o` wrote
    directory: PathBuf,
    /// Only what was not covered
    #[arg(long)]
    missing: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the goroutine tree of all runs for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
}

impl GoCoverage {
    pub fn run(self) -> Result<ExitCode> {
        let campaign = Campaign::read(&self.directory)?;
        let mut coverage = Coverage::new();
        let mut tree = Tree::default();
        for number in 1..=campaign.runs.len() {
            let execution = store::execution(&self.directory, number)?;
            coverage.add(&execution);
            tree.add(&execution);
        }
        match expected(&campaign) {
            Ok(usages) => coverage.expect(usages),
            Err(reason) => output::remark(&[format!(
                "usages that no run came to are left out, as the source was not read: {reason:#}"
            )]),
        }
        if let Some(file) = &self.dot {
            std::fs::write(file, dot::tree(&tree)).with_context(|| file.display().to_string())?;
        }
        let mut report = coverage.report();
        if self.missing {
            report.retain_missing();
        }
        if self.json {
            output::json(&report)?;
        } else {
            output::print(|out| {
                for line in report.text().lines() {
                    writeln!(out, "{}", output::printable(line))?;
                }
                Ok(())
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The usages that the packages' sources have: had when it was run, or, of a campaign that does not say, have now.
pub(super) fn expected(campaign: &Campaign) -> Result<Vec<Usage>> {
    if let Some(usages) = &campaign.usages {
        return Ok(usages.clone());
    }
    let mut packages: Vec<String> = campaign
        .programs
        .iter()
        .map(|it| it.package.clone())
        .collect();
    packages.sort();
    packages.dedup();
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let directory = &campaign.directory;
    let toolchain = Toolchain::of(directory)?;
    let found = usages::usages(directory, &toolchain, &[], &packages)?;
    Ok(found.iter().filter_map(Usage::in_source).collect())
}
