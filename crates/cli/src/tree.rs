//! `lockstep tree`.

use anyhow::{Result, bail};
use clap::Args;
use std::process::ExitCode;

/// To be written
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES\n")]
pub struct Tree {}

impl Tree {
    pub fn run(self) -> Result<ExitCode> {
        bail!("not built yet")
    }
}
