//! One file is the whole installation: the probe that `lockstep` carries is put where programs can load it, also in
//! containers, and without the help of a home directory.

use lockstep_testkit::command::{self, Outcome};
use lockstep_testkit::mpi::{self, Mpi};
use lockstep_testkit::recording::traced_environment;
use lockstep_testkit::{Recipe, Recording, Scratch, artifacts, tools};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether this user's programs may become another's.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// An installation: a copy of the command, alone in a directory, and a user's cache.
struct Installed {
    scratch: Scratch,
    cache: PathBuf,
}

impl Installed {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        fs::create_dir(scratch.join("bin")).expect("scratch can be written");
        fs::copy(artifacts::lockstep(), scratch.join("bin/lockstep")).expect("a copy");
        let cache = scratch.join("cache");
        fs::create_dir(&cache).expect("scratch can be written");
        Self { scratch, cache }
    }

    /// Records a small program into `run`.
    fn record(&self, run: &Path, options: &[&str], words: &[&str]) -> Recording {
        let mut command = Command::new(self.scratch.join("bin/lockstep"));
        traced_environment(&mut command);
        command.env("XDG_CACHE_HOME", &self.cache);
        command
            .args(["record", "--verdict", "0", "--force", "-o"])
            .arg(run);
        command.args(options).arg("--").args(words);
        command.arg(program());
        let outcome = command::run(&mut command);
        Recording {
            directory: run.to_owned(),
            outcome,
        }
    }

    /// The probes in the cache.
    fn probes(&self) -> Vec<PathBuf> {
        let digests = fs::read_dir(self.cache.join("lockstep/probe"));
        let digests = digests.into_iter().flatten().flatten();
        let files = digests.flat_map(|it| fs::read_dir(it.path()).into_iter().flatten().flatten());
        files.map(|it| it.path()).collect()
    }
}

fn program() -> PathBuf {
    Recipe::new("c/leaf_calls.c").flag("-O0").build()
}

/// A whole recording of the program, which is silent.
fn whole(recording: &Recording) {
    let Outcome { status, stderr, .. } = &recording.outcome;
    assert!(
        *status == 0 && stderr.lines().count() == 1,
        "{recording:#?}"
    );
    let calls = recording.text(&["events", "-t", "0.0"]);
    let calls = calls.matches("call fibonacci").count();
    assert_eq!(calls, 177, "{recording:#?}");
}

#[test]
fn the_cache_has_one_probe_that_is_nobody_elses() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let installed = Installed::new("installed-cache");
    let run = installed.scratch.join("run");
    whole(&installed.record(&run, &[], &[]));
    let probes = installed.probes();
    let [probe] = &probes[..] else {
        panic!("expected one file, found {probes:?}");
    };
    let bytes = fs::read(probe).expect("a probe");
    assert_eq!(bytes, fs::read(artifacts::probe()).expect("a probe"));
    let directory = probe.parent().expect("a file lies in a directory");
    let mode = directory.metadata().expect("a directory").mode();
    // Programs of root may become others', who read it.
    let open = if is_root() { 0o755 } else { 0o700 };
    assert_eq!(mode & 0o7777, open);
    let inode = |path: &Path| path.symlink_metadata().expect("a file").ino();
    let first = inode(probe);
    whole(&installed.record(&run, &[], &[]));
    assert_eq!(inode(probe), first, "it is used again");

    // Another content, half of it, a link, a file that others can write: each is replaced.
    let foreign = installed.scratch.join("foreign");
    let spoil: [&dyn Fn(); 4] = [
        &|| fs::write(probe, vec![0; bytes.len()]).expect("written"),
        &|| fs::write(probe, &bytes[..bytes.len() / 2]).expect("written"),
        &|| {
            fs::write(&foreign, &bytes).expect("written");
            fs::remove_file(probe).expect("removed");
            symlink(&foreign, probe).expect("a link");
        },
        &|| fs::set_permissions(probe, fs::Permissions::from_mode(0o777)).expect("a mode"),
    ];
    for spoil in spoil {
        spoil();
        whole(&installed.record(&run, &[], &[]));
        assert_eq!(fs::read(probe).expect("a probe"), bytes);
        let found = probe.symlink_metadata().expect("a probe");
        assert!(found.is_file() && found.mode() & 0o022 == 0);
    }
    assert_eq!(installed.probes().len(), 1, "no draft is left");
}

/// A program of root that goes on as somebody else: the dynamic linker complains of what it cannot load.
#[test]
fn who_becomes_another_user_can_load_it() {
    if !tools::require(&["setpriv"]) || !is_root() {
        return;
    }
    let installed = Installed::new("installed-user");
    let home = installed.scratch.join("home");
    fs::create_dir(&home).expect("a directory");
    for mode in [0o700, 0o755] {
        fs::set_permissions(&home, fs::Permissions::from_mode(mode)).expect("a mode");
        let run = installed.scratch.join(format!("run-{mode:o}"));
        let mut command = Command::new(installed.scratch.join("bin/lockstep"));
        traced_environment(&mut command);
        command.env_remove("XDG_CACHE_HOME").env("HOME", &home);
        command.args(["record", "--verdict", "0", "--mode", "777", "-o"]);
        command.arg(&run).args(["--", "setpriv", "--reuid=65534"]);
        command.args(["--regid=65534", "--clear-groups", "/bin/true"]);
        let recording = Recording {
            outcome: command::run(&mut command),
            directory: run,
        };
        let Outcome { status, stderr, .. } = &recording.outcome;
        let is_silent = *status == 0 && stderr.lines().count() == 1;
        assert!(is_silent, "{recording:#?}");
        let text = recording.text(&["info"]);
        assert!(text.lines().any(|line| line.contains(" true ")), "{text}");
    }
}

#[test]
fn without_a_cache_it_lies_in_the_run_and_else_in_memory() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let mut installed = Installed::new("installed-run");
    installed.cache = PathBuf::from("/proc/nothing");
    let run = installed.scratch.join("run");
    let shown = run.display().to_string();
    let loaded = |recording: &Recording| {
        let outcome = &recording.outcome;
        outcome.stdout.lines().next().unwrap_or_default().to_owned()
    };
    // The shell tells what it was given and becomes the program.
    let words = ["sh", "-c", "echo $LD_PRELOAD; exec $0"];
    let recording = installed.record(&run, &[], &words);
    whole_but_for_output(&recording);
    assert!(
        loaded(&recording).contains(&format!("{shown}/probe/")),
        "{recording:#?}"
    );
    assert!(!run.join("probe").exists(), "it goes with the recorder");

    let odd = installed.scratch.join("a run");
    let recording = installed.record(&odd, &[], &words);
    whole_but_for_output(&recording);
    assert!(loaded(&recording).contains("/proc/"), "{recording:#?}");

    // A file that is given is used where it lies, if it can be named there.
    for name in ["given.so", "a probe.so"] {
        let given = installed.scratch.join(name);
        fs::copy(artifacts::probe(), &given).expect("a copy");
        let given = given.display().to_string();
        let recording = installed.record(&run, &["--probe", &given], &words);
        whole_but_for_output(&recording);
        assert_eq!(
            loaded(&recording).ends_with(&given),
            !name.contains(' '),
            "{recording:#?}"
        );
    }
}

fn whole_but_for_output(recording: &Recording) {
    assert_eq!(recording.outcome.status, 0, "{recording:#?}");
    assert_eq!(
        recording.outcome.stderr.lines().count(),
        1,
        "{recording:#?}"
    );
    let calls = recording.json(&["calls"]).to_string();
    assert!(calls.contains("fibonacci"), "{calls}");
}

/// A root directory that has neither the command nor a cache, only the run and the program.
#[test]
fn a_container_has_probe_and_planner_in_the_run() {
    if !tools::require(&["gcc", "bwrap"]) {
        return;
    }
    let installed = Installed::new("installed-container");
    let run = installed.scratch.join("runs/run");
    fs::create_dir(installed.scratch.join("runs")).expect("scratch can be written");
    let runs = installed.scratch.join("runs").display().to_string();
    let program = program().display().to_string();
    let mut words = vec!["bwrap", "--proc", "/proc", "--dev", "/dev"];
    words.extend(["--bind", &runs, &runs, "--ro-bind", &program, &program]);
    for library in ["/usr", "/bin", "/lib", "/lib64"] {
        words.extend(["--ro-bind-try", library, library]);
    }
    if command::run(command::command(&words).args(["true"])).status != 0 {
        tools::skip("this machine lets nobody make namespaces");
        return;
    }
    let recording = installed.record(&run, &[], &words);
    whole_but_for_output(&recording);
    assert!(!run.join("probe").exists());
}

/// Nothing that is newer than the kernel of RHEL 8 is needed: records, stops a hang, explains, compares, reports, seals.
fn works_on_an_old_kernel(launcher: &[String], program: &Path, patience: &str, culprit: &str) {
    let old = Recipe::new("c/old_kernel.c").build();
    let scratch = Scratch::new("old-kernel");
    let (_, buffer) = scratch.buffer();
    let run = |name: &str| scratch.join(name).display().to_string();
    let (good, bad) = (run("good"), run("bad"));
    let on_old = |arguments: &[&str], words: &[&str], status: i32| {
        let mut command = Command::new(&old);
        traced_environment(&mut command);
        command.env("XDG_CACHE_HOME", scratch.join("cache"));
        command.arg(artifacts::lockstep()).args(arguments);
        if !words.is_empty() {
            command.arg("--").args(launcher).arg(program);
            command.args(words.iter().filter(|word| !word.is_empty()));
        }
        let outcome = command::run(&mut command);
        assert_eq!(outcome.status, status, "{outcome:#?}");
        outcome.stdout
    };
    on_old(&["record", "-o", &good, "--buffer", &buffer], &[""], 0);
    let hang = ["record", "-o", &bad, "--on-hang", "stop", "--hang"];
    let hang = [&hang[..], &[patience]].concat();
    on_old(&hang, &["--bug", "deadlock"], 1);
    let progress = on_old(&["progress", "--json", &bad], &[], 1);
    let progress: serde_json::Value = serde_json::from_str(&progress).expect("JSON");
    assert_eq!(progress["hang"], true, "{progress:#}");
    let compared = on_old(&["compare", "--json", &good, &bad], &[], 1);
    assert!(compared.contains(culprit), "{compared}");
    on_old(&["report", &good, &bad, "-o", &run("page.html")], &[], 0);
    on_old(&["seal", &good], &[], 0);
    on_old(&["compare", "--json", &good, &bad], &[], 1);
}

#[test]
fn an_old_kernel_is_enough_for_threads() {
    if tools::require(&["gcc"]) {
        let recipe = Recipe::new("threads/odd_even.c").flags(&["-g", "-O1"]);
        works_on_an_old_kernel(&[], &recipe.build(), "1", "thread 6");
    }
}

#[test]
fn an_old_kernel_is_enough_for_mpi() {
    let _turn = mpi::a_turn();
    if Mpi::OpenMpi.is_here() {
        let program = Mpi::OpenMpi.recipe("odd_even.c").flags(&["-g", "-O1"]);
        let launcher = Mpi::OpenMpi.launch(8);
        works_on_an_old_kernel(&launcher, &program.build(), "30", "rank 5");
    }
}
