//! Runs a command and says what it cost, to the microsecond, of all processes that it waited for.

use anyhow::{Context, Result, ensure};
use lockstep_testkit::artifacts;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of processors, user and system.
    pub cpu: f64,
    /// Exit status, 128 + n after signal n, 124 when it took too long.
    pub status: i32,
    /// Most bytes of memory that one of its processes had, pages of mapped files among them.
    pub peak: u64,
}

/// A command that is measured.
#[derive(Debug, Clone)]
pub struct Job {
    words: Vec<String>,
    variables: Vec<(String, String)>,
    limit: u64,
}

impl Job {
    /// `words`, as they are.
    pub fn plain(words: &[String]) -> Self {
        let mut variables: Vec<(String, String)> = [
            // Open MPI refuses root, and more ranks than cores, unless told otherwise (4 and 5).
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        let cache = artifacts::target().join("bench/cache");
        variables.push(("XDG_CACHE_HOME".to_owned(), cache.display().to_string()));
        Self {
            words: words.to_vec(),
            variables,
            limit: 600,
        }
    }

    /// `words`, recorded into `directory`.
    pub fn recorded(words: &[String], options: &[&str], directory: &Path) -> Self {
        let mut all = vec![
            artifacts::lockstep().display().to_string(),
            "record".to_owned(),
            "--verdict".to_owned(),
            "0".to_owned(),
            "-o".to_owned(),
            directory.display().to_string(),
        ];
        all.extend(options.iter().map(|&option| option.to_owned()));
        all.push("--".to_owned());
        all.extend_from_slice(words);
        Self::plain(&all)
    }

    /// Each rank of `launcher words` under a shell's `prefix`, such as `exec uftrace record`, which
    /// finds the directory for what it writes in `$OUT`.
    pub fn inside(launcher: &[String], prefix: &str, words: &[String], directory: &Path) -> Self {
        let mut all = launcher.to_vec();
        all.extend(["sh", "-c"].map(str::to_owned));
        all.push(format!("{prefix} \"$0\" \"$@\""));
        all.extend_from_slice(words);
        Self::plain(&all).with("OUT", &directory.display().to_string())
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a limit of time.
    #[must_use]
    pub fn seconds(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Its words and environment as an ordinary command.
    pub fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LOCKSTEP_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// Runs it without output.
    pub fn run(&self) -> Result<Ran> {
        self.run_into(None)
    }

    /// Runs it and keeps its output in `stdout`.
    pub fn run_into(&self, stdout: Option<&Path>) -> Result<Ran> {
        let meter = compiled("rusage.c", &[])?;
        let report = artifacts::target().join(format!("bench/rusage-{}", std::process::id()));
        let mut command = Command::new(meter);
        command
            .arg(&report)
            .arg(self.limit.to_string())
            .args(&self.words)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(match stdout {
                Some(path) => Stdio::from(std::fs::File::create(path)?),
                None => Stdio::null(),
            });
        self.surround(&mut command);
        let status = command.status()?;
        ensure!(status.success(), "the meter ended with {status}");
        let text = std::fs::read_to_string(&report)?;
        let _ = std::fs::remove_file(&report);
        let numbers: Vec<i64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [wall, user, system, status, peak] = numbers[..] else {
            anyhow::bail!("the meter said `{text}`");
        };
        Ok(Ran {
            wall: wall as f64 / 1e9,
            cpu: (user + system) as f64 / 1e6,
            status: i32::try_from(status)?,
            peak: 1024 * peak.unsigned_abs(),
        })
    }
}

/// A program of `bench/c`, compiled with `gcc -O2` unless `compiler` says otherwise.
pub fn compiled(source: &str, flags: &[&str]) -> Result<PathBuf> {
    compiled_with(
        "gcc",
        &artifacts::repository().join("bench/c").join(source),
        flags,
    )
}

/// The C program `source`, compiled with -O2 unless that is done already.
pub fn compiled_with(compiler: &str, source: &Path, flags: &[&str]) -> Result<PathBuf> {
    let directory = artifacts::target().join("bench/programs");
    std::fs::create_dir_all(&directory)?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let program = directory.join(format!(
        "{name}{}{}",
        flags.concat(),
        compiler.replace("gcc", "")
    ));
    let age = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if age(&program).is_some_and(|made| age(source).is_some_and(|written| written < made)) {
        return Ok(program);
    }
    let mut command = Command::new(compiler);
    command
        .args(["-O2", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags);
    let output = command.output().with_context(|| compiler.to_owned())?;
    ensure!(
        output.status.success(),
        "{compiler} {}: {}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(program)
}

/// An empty directory of that name, below the target directory: the disk that recordings really go to.
pub fn empty(name: &str) -> Result<PathBuf> {
    let directory = artifacts::target().join("bench").join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// What `lockstep SUBCOMMAND --json RUN` says.
pub fn json(words: &[&str], run: &Path) -> Result<serde_json::Value> {
    let mut all = vec![artifacts::lockstep().display().to_string()];
    all.extend(words.iter().map(|&word| word.to_owned()));
    all.extend(["--json".to_owned(), run.display().to_string()]);
    let output = Job::plain(&all).command().output()?;
    ensure!(
        output.status.success(),
        "lockstep {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What a recording holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Calls and returns.
    pub events: u64,
    /// Bytes of streams.
    pub bytes: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Processes.
    pub processes: u64,
}

/// Counts what `run` holds.
pub fn volume(run: &Path) -> Result<Volume> {
    let info = json(&["info"], run)?;
    let mut volume = Volume::default();
    for process in info["processes"].as_array().into_iter().flatten() {
        volume.processes += 1;
        volume.lost += process["events_lost"].as_u64().unwrap_or(0);
        for thread in process["threads"].as_array().into_iter().flatten() {
            volume.events += thread["events"].as_u64().unwrap_or(0);
            volume.bytes += thread["bytes"].as_u64().unwrap_or(0);
        }
    }
    Ok(volume)
}
