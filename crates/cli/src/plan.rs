//! `lockstep __plan`: makes the patch plan of one image, for the probe. Not for people.

use anyhow::Result;
use clap::Args;
use lockstep_record::plan_command;
use std::ffi::OsString;
use std::process::ExitCode;

/// Make the patch plan of one image
#[derive(Debug, Args)]
pub struct Plan {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Plan {
    pub fn run(self) -> Result<ExitCode> {
        Ok(ExitCode::from(plan_command(&self.arguments)))
    }
}
