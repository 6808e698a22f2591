//! Runs commands as a person would, showing them first.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |directory| root().join(directory))
}

/// The cargo that runs us.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Where `tool` lies on `PATH`.
pub fn find(tool: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(tool))
        .find(|path| path.is_file())
}

/// A headline.
pub fn say(text: &str) {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        println!("\x1b[1m{text}\x1b[0m");
    } else {
        println!("{text}");
    }
}

/// Shows the command, runs it with our own input and output, and gives its status (128 + n for
/// signal n).
pub fn show_and_run(command: &mut Command) -> Result<i32> {
    println!("    $ {}", shown(command));
    run(command)
}

/// Runs it with our own input and output, and gives its status.
pub fn run(command: &mut Command) -> Result<i32> {
    use std::os::unix::process::ExitStatusExt;
    let status = command
        .status()
        .with_context(|| format!("{} could not be started", shown(command)))?;
    let signal = status.signal().map(|signal| 128 + signal);
    Ok(status.code().or(signal).unwrap_or(-1))
}

/// Runs it, and fails unless it succeeds.
pub fn must(command: &mut Command) -> Result<()> {
    match run(command)? {
        0 => Ok(()),
        status => bail!("{} ended with status {status}", shown(command)),
    }
}

/// What it prints; fails unless it succeeds.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{} could not be started", shown(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, with paths relative to the checkout.
fn shown(command: &Command) -> String {
    let root = root();
    let word = |word: &OsStr| {
        let path = Path::new(word);
        let short = path.strip_prefix(&root).unwrap_or(path);
        short.display().to_string()
    };
    let mut text = word(command.get_program());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&word(argument));
    }
    text
}
