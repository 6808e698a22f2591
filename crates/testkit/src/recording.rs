//! Runs `lockstep` and reads what it says.

use crate::artifacts;
use crate::command::{self, Outcome, Running};
use crate::scratch::Scratch;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// `lockstep` with these arguments, ready to be run; what surrounds a test (a batch job's variables,
/// options of the user's) is taken out of its environment.
#[must_use]
pub fn lockstep<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(artifacts::lockstep());
    command.args(arguments);
    traced_environment(&mut command);
    command
}

/// Takes a batch job's variables out of the environment of `command`.
pub fn traced_environment(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let family = [
            "LOCKSTEP_",
            "SLURM_",
            "PMI_",
            "PMIX_",
            "OMPI_",
            "PALS_",
            "FLUX_",
            "MV2_",
        ];
        if family.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    // Open MPI refuses root, and more ranks than cores, unless told otherwise.
    command
        .env("XDG_CACHE_HOME", artifacts::target().join("testkit/cache"))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("RUST_BACKTRACE", "0")
}

/// A run that was recorded, and how the command ended.
#[derive(Debug)]
pub struct Recording {
    /// The run directory.
    pub directory: PathBuf,
    /// How `lockstep record` ended, with the program's own output.
    pub outcome: Outcome,
}

/// Records `words` with `options` into a new directory in `scratch`, and waits for the end.
#[must_use]
pub fn record<S: AsRef<OsStr>>(scratch: &Scratch, options: &[&str], words: &[S]) -> Recording {
    record_with(scratch, options, words, &[])
}

/// The same of a job that MPI ends, which is over soon: Open MPI's launcher may not come to its end then, with or without us.
#[must_use]
pub fn record_ended<S: AsRef<OsStr>>(scratch: &Scratch, words: &[S]) -> Recording {
    let directory = next_directory(scratch);
    let mut command = record_command(&directory, &[], words);
    let outcome = Running::start(&mut command).wait(SOON);
    Recording { directory, outcome }
}

const SOON: Duration = Duration::from_secs(20);

/// The same with these variables in the environment.
pub(crate) fn record_with<S: AsRef<OsStr>>(
    scratch: &Scratch,
    options: &[&str],
    words: &[S],
    environment: &[(String, OsString)],
) -> Recording {
    let directory = next_directory(scratch);
    let mut command = record_command(&directory, options, words);
    if options.contains(&"--on-hang") {
        ends_at_once(&mut command);
    }
    let outcome = command::run(command.envs(environment.to_vec()));
    Recording { directory, outcome }
}

/// `lockstep record -o DIRECTORY OPTIONS -- WORDS`, ready to be run; without a verdict at the end, for which every test
/// would have to wait, unless `options` ask for one.
#[must_use]
pub fn record_command<S: AsRef<OsStr>>(directory: &Path, options: &[&str], words: &[S]) -> Command {
    let mut command = lockstep(&["record"]);
    if !options.contains(&"--verdict") {
        command.args(["--verdict", "0"]);
    }
    command.arg("-o");
    command.arg(directory).args(options).arg("--").args(words);
    command
}

/// A path that nobody else has, of those who record into one scratch beside each other, either.
fn next_directory(scratch: &Scratch) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    scratch.join(format!("run-{number}"))
}

/// For a command that is stopped when all has been seen: no second between the SIGTERM and the SIGKILL of its launcher.
fn ends_at_once(command: &mut Command) {
    command.env("OMPI_MCA_odls_base_sigkill_timeout", "0");
}

impl Recording {
    /// Records a command that will hang: ends it with SIGTERM when some thread has an open call of
    /// `function` and nobody has made an event for a second.
    ///
    /// # Panics
    /// If that has not come within [`command::LIMIT`].
    #[must_use]
    pub fn until_open<S: AsRef<OsStr>>(
        scratch: &Scratch,
        options: &[&str],
        words: &[S],
        function: &str,
    ) -> Self {
        let directory = next_directory(scratch);
        let mut command = record_command(&directory, options, words);
        ends_at_once(&mut command);
        let running = Running::start(&mut command);
        Self::stop_when_open(directory, running, function)
    }

    /// The same for a command that was started already.
    ///
    /// # Panics
    /// If no call of `function` is open within [`command::LIMIT`].
    #[must_use]
    pub fn stop_when_open(directory: PathBuf, running: Running, function: &str) -> Self {
        Self::end_when_open(directory, running, function, Running::stop)
    }

    /// The same with an end of one's own, [`Running::kill`] say.
    ///
    /// # Panics
    /// If no call of `function` is open within [`command::LIMIT`].
    #[must_use]
    pub fn end_when_open(
        directory: PathBuf,
        running: Running,
        function: &str,
        end: fn(Running) -> Outcome,
    ) -> Self {
        let deadline = Instant::now() + command::LIMIT;
        let wanted = format!("\"{function}\"");
        let told = || command::run(lockstep(&["info", "--json"]).arg(&directory)).stdout;
        loop {
            std::thread::sleep(Duration::from_millis(300));
            if told().contains(&wanted) {
                break;
            }
            if Instant::now() > deadline {
                let outcome = running.stop();
                panic!("{function} was never open: {outcome:#?}");
            }
        }
        // The others come to where they wait, the sooner the less the machine has to do; those that ask again and
        // again never come to rest.
        let mut before = None;
        for _ in 0..MOST_LOOKS {
            std::thread::sleep(Duration::from_secs(1));
            let events = events(&told());
            if before.replace(events) == Some(events) && events > 0 {
                break;
            }
        }
        Self {
            directory,
            outcome: end(running),
        }
    }

    /// What `lockstep SUBCOMMAND RUN ARGUMENTS` prints, where `arguments` are the subcommand and
    /// what follows the run.
    ///
    /// # Panics
    /// If it fails with 2, or crashes.
    #[must_use]
    pub fn text(&self, arguments: &[&str]) -> String {
        let mut command = lockstep(&arguments[..1]);
        let outcome = command::run(command.arg(&self.directory).args(&arguments[1..]));
        assert!(outcome.status < 2, "lockstep {arguments:?}: {outcome:#?}");
        outcome.stdout
    }

    /// The same with `--json`, parsed.
    ///
    /// # Panics
    /// If it fails, or is not JSON.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let text = self.text(&all);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// `lockstep compare`, this run being the normal one: exit status and result.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    pub fn compare(&self, faulty: &Recording, options: &[&str]) -> (i32, Value) {
        let mut command = lockstep(&["compare", "--json"]);
        command
            .arg(&self.directory)
            .arg(&faulty.directory)
            .args(options);
        let outcome = command::run(&mut command);
        let value = serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{error} in {outcome:#?}"));
        (outcome.status, value)
    }

    /// The names of the traces that commands look at: of MPI processes only, if there are any.
    #[must_use]
    pub fn traces(&self) -> Vec<String> {
        let info = self.json(&["info"]);
        let processes = info["processes"].as_array().cloned().unwrap_or_default();
        let is_mpi = processes.iter().any(|process| process["mpi"] == true);
        processes
            .iter()
            .filter(|process| !is_mpi || process["mpi"] == true)
            .flat_map(|process| process["threads"].as_array().cloned().unwrap_or_default())
            .filter_map(|thread| thread["trace"].as_str().map(str::to_owned))
            .collect()
    }
}

/// Seconds after which a run is ended though its ranks make events yet.
const MOST_LOOKS: u32 = 5;

/// Events of all threads that `lockstep info --json` tells of.
fn events(info: &str) -> u64 {
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    let processes = info["processes"].as_array().into_iter().flatten();
    let threads = processes.flat_map(|it| it["threads"].as_array().into_iter().flatten());
    threads.filter_map(|it| it["events"].as_u64()).sum()
}
