//! Runs commands with a time limit.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take before it counts as hung.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How a command ended and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit status, or 128 + n where signal n ended it, as a shell tells it.
    pub status: i32,
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Whether it had to be ended since its time was over.
    pub timed_out: bool,
}

impl Outcome {
    /// This outcome, if the command succeeded.
    ///
    /// # Panics
    /// Otherwise, with all that it said.
    #[must_use]
    pub fn success(self) -> Self {
        assert!(self.status == 0 && !self.timed_out, "{self:#?}");
        self
    }
}

/// A command with these arguments.
#[must_use]
pub fn command<S: AsRef<OsStr>>(words: &[S]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// A command with these words before it, in its environment.
#[must_use]
pub fn behind(mut words: Vec<String>, inner: &Command) -> Command {
    let own = std::iter::once(inner.get_program()).chain(inner.get_args());
    words.extend(own.map(|it| it.to_string_lossy().into_owned()));
    let mut command = command(&words);
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs `command` for at most [`LIMIT`].
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn run(command: &mut Command) -> Outcome {
    Running::start(command).wait(LIMIT)
}

/// A command that has been started, in a process group of its own.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Running {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            stdout: drain(child.stdout.take()),
            stderr: drain(child.stderr.take()),
            child,
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn is_over(&mut self) -> bool {
        let ended = self.child.try_wait();
        ended.expect("a child can be waited for").is_some()
    }

    /// Waits until it has ended. When `limit` is over it gets SIGTERM, as `timeout` does it, and ten
    /// seconds later its whole group SIGKILL.
    ///
    /// # Panics
    /// If it cannot be waited for.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Outcome {
        let mut timed_out = false;
        let status = match self.wait_until(Instant::now() + limit) {
            Some(status) => status,
            None => {
                timed_out = true;
                self.terminate()
            }
        };
        Outcome {
            status: status
                .code()
                .or(status.signal().map(|signal| 128 + signal))
                .unwrap_or(-1),
            stdout: self.stdout.join().expect("the reader of stdout has ended"),
            stderr: self.stderr.join().expect("the reader of stderr has ended"),
            timed_out,
        }
    }

    /// Sends SIGTERM now and waits.
    #[must_use]
    pub fn stop(mut self) -> Outcome {
        self.terminate();
        self.wait(LIMIT)
    }

    /// Ends its whole group with SIGKILL now.
    #[must_use]
    pub fn kill(self) -> Outcome {
        self.kill_group();
        self.wait(LIMIT)
    }

    fn kill_group(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }

    fn terminate(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        if let Some(status) = self.wait_until(Instant::now() + Duration::from_secs(10)) {
            return status;
        }
        self.kill_group();
        self.child.wait().expect("a child can be waited for")
    }

    fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Does `one` for each of `cases`, some beside each other: for jobs that wait more than they work, or have one thread.
///
/// # Panics
/// If one of them does.
pub fn few_at_once<T: Sync>(cases: &[T], one: impl Fn(&T) + Sync) {
    const FEW: usize = 3;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..FEW {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(case);
                }
            });
        }
    });
}
