//! `lockstep man`: the manual pages, made from the command line's own definition.

use crate::{arguments, output};
use anyhow::{Context, Result};
use clap::{Args, Command};
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
            let page = page(command, "lockstep")?;
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
            let file = directory.join(format!("{name}.1"));
            fs::write(&file, page(command, &name)?)
                .with_context(|| format!("{}: could not be written", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A page in roff, with the examples before the options as in `--help`.
fn page(command: Command, name: &str) -> std::io::Result<Vec<u8>> {
    let examples = command.get_before_help().map(ToString::to_string);
    let has_subcommands = command.has_subcommands();
    let manual = Page::new(command).title(name.to_uppercase());
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    if let Some(examples) = examples {
        writeln!(page, ".SH EXAMPLES\n.nf")?;
        for line in examples.lines().skip(1).filter(|line| !line.is_empty()) {
            // Outside of requests only backslashes, hyphens and quotes mean something else.
            let line = line
                .trim_start()
                .replace('\\', "\\e")
                .replace('-', "\\-")
                .replace('\'', "\\(aq");
            writeln!(page, "{line}")?;
        }
        writeln!(page, ".fi")?;
    }
    manual.render_options_section(&mut page)?;
    if has_subcommands {
        manual.render_subcommands_section(&mut page)?;
    }
    Ok(page)
}
