//! `cargo xtask answers BASE`: builds a revision beside the working tree, and lets the bench ask both about the same runs.

use crate::shell::{cargo, must, output_of, root, run, say, target};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How both are built. One profile for both, so that neither has another one's overflow checks.
const PROFILE: &str = "dev";
/// Where cargo leaves what it built so.
const BUILT: &str = "debug";

/// With the revision and the options that follow it.
pub fn run_answers(words: &[String]) -> Result<ExitCode> {
    let is_help = words.iter().any(|it| it == "--help" || it == "-h");
    if is_help || words.is_empty() {
        let mut help = cargo(&["run", "--quiet", "--package", "lockstep-bench", "--"]);
        must(help.args(["answers", "--help"]))?;
        return Ok(ExitCode::from(if is_help { 0 } else { 2 }));
    }
    let (revision, rest) = words.split_first().context("a revision")?;
    let base = base(revision)?;
    say("The working tree");
    let begun = Instant::now();
    let mut build = cargo(&["build", "--profile", PROFILE, "--package", "lockstep"]);
    build.args(["--bin", "lockstep", "--package", "lockstep-bench"]);
    must(build.args(["--bin", "lockstep-bench"]))?;
    println!("{} s", begun.elapsed().as_secs());
    let place = target().join(BUILT);
    // A copy: somebody may build while it is asked.
    let now = target().join("answers/now");
    fs::copy(place.join("lockstep"), &now)?;
    let mut ask = Command::new(place.join("lockstep-bench"));
    ask.arg("answers").arg("--base").arg(&base);
    ask.arg("--now").arg(&now).args(rest);
    let status = run(ask.env("LOCKSTEP_TEST_COMMAND", &base))?;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// The command of a revision, built in a work tree of its own if it is not there yet.
fn base(revision: &str) -> Result<PathBuf> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(root()).args(words);
        command
    };
    let name = format!("{revision}^{{commit}}");
    let commit = output_of(&mut git(&["rev-parse", "--verify", &name]))?;
    let commit = commit.trim();
    let place = target().join("answers");
    let kept = place.join(format!("lockstep-{commit}"));
    say(&format!("{revision} is {commit}"));
    if kept.exists() {
        return Ok(kept);
    }
    let begun = Instant::now();
    let tree = place.join("base");
    fs::create_dir_all(&place)?;
    if tree.join("Cargo.toml").exists() {
        let mut checkout = git(&["checkout", "--quiet", "--force", "--detach", commit]);
        must(checkout.current_dir(&tree))?;
    } else {
        // One that was removed by hand is still known to git.
        let mut add = git(&["worktree", "add", "--quiet", "--force", "--detach"]);
        must(add.arg(&tree).arg(commit))?;
    }
    let mut build = cargo(&["build", "--profile", PROFILE, "--package", "lockstep"]);
    build.current_dir(&tree).args(["--bin", "lockstep"]);
    let built = place.join("build");
    must(build.env("CARGO_TARGET_DIR", &built))?;
    // By a rename: half a copy must not be taken for the command.
    let part = place.join("part");
    fs::copy(built.join(BUILT).join("lockstep"), &part)?;
    fs::rename(&part, &kept)?;
    println!("{} s", begun.elapsed().as_secs());
    Ok(kept)
}
