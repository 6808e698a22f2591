//! The command line: which subcommands there are, how a wrong one is answered, and
//! `LOCKSTEP_OPTIONS`.

use crate::{
    baseline, calls, compare, completions, diff, doctor, events, export, go, import, info, inject,
    lattice, loops, man, outliers, output, plan, progress, record, report, runs, schema, seal,
    similarity, stack, tree, words,
};
use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use lockstep_format::plan::planner;
use lockstep_record::Heap;
use std::ffi::OsString;
use std::process::ExitCode;

/// Find the task that fell out of step, and the place, in an unmodified parallel program.
#[derive(Debug, Parser)]
#[command(
    name = "lockstep",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    before_help = "EXAMPLES
  lockstep record -o good -- mpirun -n 4 ./app
  lockstep record -o bad  -- mpirun -n 4 ./app --new-input
  lockstep compare good bad
",
    after_help = "Ends with 0 (done), 1 (done: compare, diff found a difference, progress a hang) or 2 (could not be done);
record and inject with the program's own status. LOCKSTEP_OPTIONS may hold options (batch scripts)."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Record(record::Record),
    Inject(inject::Inject),
    Info(info::Info),
    Events(events::Events),
    Tree(tree::Tree),
    Calls(calls::Calls),
    Stack(stack::Stack),
    Loops(loops::Loops),
    Lattice(lattice::Lattice),
    Similarity(similarity::Similarity),
    Compare(compare::Compare),
    Diff(diff::Diff),
    Outliers(outliers::Outliers),
    Baseline(baseline::Baseline),
    Progress(progress::Progress),
    Report(report::Report),
    Export(export::Export),
    Import(import::Import),
    Seal(seal::Seal),
    Go(go::Go),
    Doctor(doctor::Doctor),
    Runs(runs::Runs),
    Rm(runs::Rm),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(name = "__plan", hide = true)]
    Plan(plan::Plan),
    #[command(name = "__schema", hide = true)]
    Schema(schema::Schemas),
}

impl Command {
    /// Does what was asked.
    pub fn run(self) -> Result<ExitCode> {
        // What Go's commands start has the signal as it is.
        if !matches!(self, Self::Go(_) | Self::Doctor(_)) {
            lockstep_record::file_limit_is_an_error();
        }
        match self {
            Self::Record(it) => it.run(),
            Self::Inject(it) => it.run(),
            Self::Info(it) => it.run(),
            Self::Events(it) => it.run(),
            Self::Tree(it) => it.run(),
            Self::Calls(it) => it.run(),
            Self::Stack(it) => it.run(),
            Self::Loops(it) => it.run(),
            Self::Lattice(it) => it.run(),
            Self::Similarity(it) => it.run(),
            Self::Compare(it) => it.run(),
            Self::Diff(it) => it.run(),
            Self::Outliers(it) => it.run(),
            Self::Baseline(it) => it.run(),
            Self::Progress(it) => it.run(),
            Self::Report(it) => it.run(),
            Self::Export(it) => it.run(),
            Self::Import(it) => it.run(),
            Self::Seal(it) => it.run(),
            Self::Go(it) => it.run(),
            Self::Doctor(it) => it.run(),
            Self::Runs(it) => it.run(),
            Self::Rm(it) => it.run(),
            Self::Completions(it) => it.run(),
            Self::Man(it) => it.run(),
            Self::Plan(it) => it.run(),
            Self::Schema(it) => it.run(),
        }
    }

    /// The status of a failure of our own: of the wrappers, 125, as `timeout` and `env` have it.
    pub fn failure_status(&self) -> u8 {
        match self {
            Self::Record(_) | Self::Inject(_) => WRAPPER_FAILED,
            Self::Go(it) if it.wraps() => WRAPPER_FAILED,
            // What the probe takes for it.
            Self::Plan(_) => planner::MEMORY,
            _ => FAILED,
        }
    }

    /// Whether it has work for several threads.
    pub fn is_parallel(&self) -> bool {
        match self {
            Self::Record(it) => it.looks(),
            Self::Inject(_) | Self::Plan(_) | Self::Rm(_) | Self::Schema(_) => false,
            Self::Runs(_) | Self::Doctor(_) | Self::Completions(_) | Self::Man(_) => false,
            _ => true,
        }
    }
}

const FAILED: u8 = 2;
const WRAPPER_FAILED: u8 = 125;
/// Options for every command of a batch script.
const VARIABLE: &str = "LOCKSTEP_OPTIONS";

/// The command with examples before its options, in this and every subcommand's help.
pub fn command() -> clap::Command {
    const TEMPLATE: &str =
        "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
    // What stands on the command line wins over LOCKSTEP_OPTIONS, so a repeated option is no error.
    let each = |command: clap::Command| command.help_template(TEMPLATE).args_override_self(true);
    let mut command = each(Cli::command());
    command.build();
    command.mut_subcommands(each)
}

/// The command line of this process, or the status to end with (help, version, a mistake).
pub fn parse() -> Result<Command, ExitCode> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let name: Vec<_> = arguments.iter().skip(1).take(2).collect();
    let failed = if wraps(&name) { WRAPPER_FAILED } else { FAILED };
    Heap::exhausted_means(failed);
    let failed = ExitCode::from(failed);
    let is_go_test = name == ["go", "test"];
    let command = command();
    if let Some(line) = std::env::var_os(VARIABLE) {
        let words = line.to_str().and_then(words::split);
        let options = words.map_or_else(
            || {
                Err(format!(
                    "{VARIABLE}: expected words as a shell splits them, found {line:?}"
                ))
            },
            |words| supplied(&command, &arguments, words),
        );
        match options {
            // Right behind the subcommand's name, so that the command line comes later and wins.
            Ok(options) => {
                drop(arguments.splice(2.min(arguments.len())..2.min(arguments.len()), options))
            }
            Err(message) => {
                output::complain(&message);
                return Err(failed);
            }
        }
    }
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => Ok(cli.command),
        Err(error) if error.exit_code() == 0 => {
            // Help or version, which go to stdout; a closed pipe is silent.
            let _ = error.print();
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            let mut message = in_one_line(&error);
            if is_go_test && error.kind() == ErrorKind::UnknownArgument {
                message.push_str(
                    "; flags of go test stand behind --: lockstep go test ./... -- -run TestX",
                );
            }
            output::complain(&message);
            Err(failed)
        }
    }
}

/// Those of `words` that the subcommand in `arguments` has. An option of another subcommand is
/// passed over, since one script uses several; one that no subcommand has is a mistake.
fn supplied(
    command: &clap::Command,
    arguments: &[OsString],
    words: Vec<String>,
) -> Result<Vec<OsString>, String> {
    let Some(wanted) = arguments
        .get(1)
        .and_then(|name| command.find_subcommand(name))
        .filter(|wanted| !wanted.is_hide_set())
    else {
        return Ok(Vec::new());
    };
    let mut chosen = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        let has = |command: &clap::Command| {
            command
                .get_arguments()
                .find(|option| {
                    option
                        .get_long()
                        .is_some_and(|long| name.strip_prefix("--") == Some(long))
                        || option
                            .get_short()
                            .is_some_and(|short| name == format!("-{short}"))
                })
                .map(|option| matches!(option.get_action(), ArgAction::Set | ArgAction::Append))
        };
        let here = has(wanted);
        let Some(takes_value) = here.or_else(|| command.get_subcommands().find_map(has)) else {
            return Err(format!(
                "{VARIABLE}: expected options of lockstep, found '{word}'"
            ));
        };
        let value = if takes_value && !word.contains('=') {
            words.next()
        } else {
            None
        };
        if here.is_some() {
            chosen.push(word.into());
            chosen.extend(value.map(OsString::from));
        }
    }
    Ok(chosen)
}

/// Whether a subcommand ends as a command that it starts.
fn wraps(name: &[&OsString]) -> bool {
    match name {
        [go, what] if *go == "go" => *what == "run" || *what == "replay",
        [name, ..] => *name == "record" || *name == "inject",
        [] => false,
    }
}

/// What clap has to say, without its usage block.
fn in_one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "expected a command such as record, compare or info; see 'lockstep --help'".into();
    }
    let text = error.render().to_string();
    let mut message = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        // Only sometimes true, and never what was meant.
        if line.is_empty() || line.starts_with("tip: to pass") {
            continue;
        }
        if !message.is_empty() {
            message.push_str(if line.starts_with("tip: ") { "; " } else { " " });
        }
        message.push_str(
            line.trim_start_matches("error: ")
                .trim_start_matches("tip: "),
        );
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options(subcommand: &str, words: &[&str]) -> Result<Vec<OsString>, String> {
        let arguments = ["lockstep".into(), subcommand.into()];
        supplied(
            &command(),
            &arguments,
            words.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_examples_before_its_options() {
        for subcommand in command()
            .get_subcommands_mut()
            .filter(|command| !command.is_hide_set())
        {
            let help = subcommand.render_long_help().to_string();
            let examples = help
                .find("EXAMPLES")
                .unwrap_or_else(|| panic!("{}", subcommand.get_name()));
            assert!(examples < help.find("Usage:").unwrap());
        }
    }

    #[test]
    fn options_from_the_environment_go_where_they_belong() {
        let words = ["--linkage", "single", "--json", "--codec=none", "-k", "5"];
        assert_eq!(
            options("compare", &words).unwrap(),
            ["--linkage", "single", "--json", "-k", "5"]
        );
        assert_eq!(options("record", &words).unwrap(), ["--codec=none"]);
        assert!(options("__plan", &words).unwrap().is_empty());
        assert!(options("compare", &["--linkgae", "single"]).is_err());
    }
}
