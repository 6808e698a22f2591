//! `cargo xtask demo`: from a fresh machine to the sentence that names the rank.

use crate::setup;
use crate::shell::{find, root, say, show_and_run, target};
use crate::test;
use anyhow::{Result, ensure};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How long the deadlocked run may go on: start-up and the way to the deadlock take about a second.
const DEADLOCK_SECONDS: &str = "8";

/// What the demo runs: with MPI if there is any, else on threads.
struct Subject {
    compiler: String,
    source: &'static str,
    flags: &'static [&'static str],
    /// The words before the program.
    launcher: Vec<String>,
    what: String,
    /// Who goes wrong, as `lockstep` will name it.
    culprit: &'static str,
}

impl Subject {
    fn choose() -> Self {
        let libraries = [("Open MPI", ".openmpi"), ("MPICH", ".mpich"), ("MPI", "")];
        for (name, suffix) in libraries {
            let (compiler, launcher) = (format!("mpicc{suffix}"), format!("mpirun{suffix}"));
            if find(&compiler).is_some() && find(&launcher).is_some() {
                return Self {
                    compiler,
                    source: "programs/mpi/odd_even.c",
                    flags: &["-g", "-O1"],
                    launcher: vec![launcher, "-n".to_owned(), "16".to_owned()],
                    what: format!("16 ranks of {name}"),
                    culprit: "rank 5",
                };
            }
        }
        println!("No MPI here: the same bug on threads.");
        Self {
            compiler: "gcc".to_owned(),
            source: "programs/threads/odd_even.c",
            flags: &["-g", "-O1", "-pthread"],
            launcher: Vec::new(),
            what: "16 threads".to_owned(),
            culprit: "thread 6 (0 is main)",
        }
    }
}

/// Runs it.
pub fn run() -> Result<ExitCode> {
    let start = Instant::now();
    say("lockstep: which rank fell out of step, and where? A demo in five steps.");
    let _ = setup::provide(&[setup::DEMO], setup::Install::new(false));
    let step = |number: u32, text: &str| {
        say(&format!(
            "\n[{number}/5, {} s] {text}",
            start.elapsed().as_secs()
        ));
    };

    step(1, "Building lockstep (the first time takes some minutes)");
    test::build()?;
    let subject = Subject::choose();
    let directory = target().join("demo");
    std::fs::create_dir_all(&directory)?;
    let program = directory.join("odd_even");
    println!(
        "Compiling an ordinary program, an odd/even sort for {}:",
        subject.what
    );
    let mut compiler = Command::new(&subject.compiler);
    compiler
        .args(subject.flags)
        .arg("-o")
        .arg(&program)
        .arg(root().join(subject.source));
    ensure!(
        show_and_run(&mut compiler)? == 0,
        "{} failed",
        subject.compiler
    );

    let demo = Demo {
        lockstep: target().join("release/lockstep"),
        subject,
        program,
        directory,
    };
    step(2, "Recording a healthy run");
    demo.record("healthy", &[], false)?;
    step(
        3,
        &format!(
            "Recording two faulty runs: {} goes wrong after its 7th iteration",
            demo.subject.culprit
        ),
    );
    demo.record("swap", &["--bug", "swap"], false)?;
    println!("... and one that deadlocks, so that its time is limited to {DEADLOCK_SECONDS} s:");
    demo.record("deadlock", &["--bug", "deadlock"], true)?;

    step(4, "Comparing");
    demo.compare("swap")?;
    println!();
    demo.compare("deadlock")?;

    step(5, "Writing the report");
    let report = demo.directory.join("report.html");
    let mut command = demo.lockstep(&["report"]);
    command
        .arg(demo.run_of("healthy"))
        .arg(demo.run_of("deadlock"))
        .arg("-o")
        .arg(&report);
    ensure!(
        show_and_run(&mut command)? == 0,
        "the report could not be written"
    );
    say(&format!(
        "\nDone in {} s. Open {} in a browser; the runs lie beside it.",
        start.elapsed().as_secs(),
        report.display()
    ));
    Ok(ExitCode::SUCCESS)
}

struct Demo {
    lockstep: PathBuf,
    subject: Subject,
    program: PathBuf,
    directory: PathBuf,
}

impl Demo {
    fn lockstep(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.lockstep);
        command
            .args(arguments)
            // Open MPI refuses root, and more ranks than cores, unless told otherwise (4 and 5).
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command
    }

    fn run_of(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn record(&self, name: &str, arguments: &[&str], limited: bool) -> Result<()> {
        let mut command = self.lockstep(&["record", "--force", "-o"]);
        command.arg(self.run_of(name)).arg("--");
        if limited {
            // mpirun itself may hang or crash at its end when a signal ends it (PMIx 4.2): -k.
            command.args(["timeout", "-k", "5", DEADLOCK_SECONDS]);
        }
        command
            .args(&self.subject.launcher)
            .arg(&self.program)
            .args(arguments);
        let status = show_and_run(&mut command)?;
        let expected = if limited { status != 125 } else { status == 0 };
        ensure!(expected, "the recording ended with status {status}");
        Ok(())
    }

    fn compare(&self, faulty: &str) -> Result<()> {
        let mut command = self.lockstep(&["compare"]);
        command.arg(self.run_of("healthy")).arg(self.run_of(faulty));
        let status = show_and_run(&mut command)?;
        ensure!(
            status == 1,
            "compare should have found a difference (status 1), but ended with {status}"
        );
        Ok(())
    }
}
