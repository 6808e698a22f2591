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
    let mut words = vec![
        "strace".to_owned(),
        format!("-o{}", log.display()),
        format!("-etrace={system_call}"),
        format!("-einject={system_call}:{what}:when={number}"),
        inner.get_program().to_string_lossy().into_owned(),
    ];
    let arguments = inner.get_args();
    words.extend(arguments.map(|it| it.to_string_lossy().into_owned()));
    let mut command = command::command(&words);
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let outcome = command::run(&mut command);
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let is_met = log.contains("INJECTED") || log.contains("killed by SIGKILL");
    (outcome, is_met)
}
