//! `lockstep man`: the manual pages, made from the command line's own definition.

use crate::{arguments, output};
use anyhow::{Context, Result};
use clap::Args;
use clap_mangen::Man as Page;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the manual page, or write one page a command into a directory
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep man | man -l -
  lockstep man -o ~/.local/share/man/man1
")]
pub struct Man {
    /// Write lockstep.1, lockstep-record.1 and so on into this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<ExitCode> {
        let command = arguments::command();
        let Some(directory) = self.output else {
            let mut page = Vec::new();
            Page::new(command).render(&mut page)?;
            output::print(|out| out.write_all(&page))?;
            return Ok(ExitCode::SUCCESS);
        };
        fs::create_dir_all(&directory)
            .with_context(|| format!("{}: expected a directory", directory.display()))?;
        let visible = command
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .cloned();
        let pages = visible.map(|it| (format!("lockstep-{}", it.get_name()), it));
        for (name, command) in
            std::iter::once(("lockstep".to_owned(), command.clone())).chain(pages)
        {
            let mut page = Vec::new();
            Page::new(command)
                .title(name.to_uppercase())
                .render(&mut page)?;
            let file = directory.join(format!("{name}.1"));
            fs::write(&file, page)
                .with_context(|| format!("{}: could not be written", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
