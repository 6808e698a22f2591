//! A command whose system calls fail, or that is killed at one of them: by `strace`, from outside.

use crate::command::{self, Outcome};
use crate::scratch::Scratch;
use std::process::Command;

/// Runs `inner` so that its first thread meets `what` (`signal=KILL`, `error=ENOSPC`) when it makes `system_call` for the
/// `number`th time; and whether it did make it so often.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn system_call(
    scratch: &Scratch,
    inner: &Command,
    system_call: &str,
    what: &str,
    number: u32,
) -> (Outcome, bool) {
    let log = scratch.join("system-calls");
    let words = vec![
        "strace".to_owned(),
        format!("-o{}", log.display()),
        format!("-etrace={system_call}"),
        format!("-einject={system_call}:{what}:when={number}"),
    ];
    let outcome = command::run(&mut command::behind(words, inner));
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let is_met = log.contains("INJECTED") || log.contains("killed by SIGKILL");
    (outcome, is_met)
}
