//! `lockstep completions`: what a shell needs to complete our command line.

use crate::{arguments, output};
use anyhow::Result;
use clap::Args;
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

/// Print shell completions
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completions zsh > ~/.zfunc/_lockstep
  lockstep completions fish > ~/.config/fish/completions/lockstep.fish
")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut arguments::command(),
            "lockstep",
            &mut script,
        );
        output::print(|out| out.write_all(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
