//! What the demo and the tests need of the machine, and how to get it.

use crate::shell::{find, run, say, target};
use std::io::{BufRead, IsTerminal, Write};
use std::process::{Command, Stdio};

/// Whether packages may be installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// A person sits at a terminal and is asked first.
    Ask,
    /// Nobody can be asked: continuous integration, a container build.
    Yes,
    /// `--no-install`.
    No,
}

impl Install {
    /// What holds for a command that was called with or without `--no-install`.
    pub fn new(never: bool) -> Self {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        match (never, terminal) {
            (true, _) => Self::No,
            (false, true) => Self::Ask,
            (false, false) => Self::Yes,
        }
    }

    /// Whether `what` may be installed. Asks if somebody can answer; an empty answer means yes.
    fn allows(self, what: &str) -> bool {
        match self {
            Self::Yes => true,
            Self::No => false,
            Self::Ask => {
                print!("Install {what} now? [Y/n] ");
                let mut answer = String::new();
                let heard = std::io::stdout()
                    .flush()
                    .and_then(|()| std::io::stdin().lock().read_line(&mut answer));
                // An end of input is no consent.
                let answer = answer.trim().to_ascii_lowercase();
                heard.is_ok_and(|bytes| bytes > 0) && matches!(answer.as_str(), "" | "y" | "yes")
            }
        }
    }
}

/// A tool, the Debian package that brings it, and what for.
pub struct Need {
    tool: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const fn need(tool: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need {
        tool,
        package,
        purpose,
    }
}

/// For the demo.
pub const DEMO: &[Need] = &[
    need("gcc", "gcc", "compiles the test programs"),
    need("mpirun.openmpi", "openmpi-bin", "runs the demo's ranks"),
    need(
        "mpicc.openmpi",
        "libopenmpi-dev",
        "compiles the demo's MPI program",
    ),
];

/// For libFuzzer.
pub const FUZZ: &[Need] = &[need("g++", "g++", "compiles libFuzzer")];

/// For root file systems.
pub const ENVIRONMENTS: &[Need] = &[
    need("debootstrap", "debootstrap", "root file systems of Debian"),
    need("bwrap", "bubblewrap", "enters them"),
    need(
        "busybox",
        "busybox-static",
        "a root file system of one file",
    ),
    need("musl-gcc", "musl-tools", "the other C library"),
    need("readelf", "binutils", "what the command needs"),
];

/// For the tests, beyond the demo's.
pub const TEST: &[Need] = &[
    need("g++", "g++", "C++ programs"),
    need("gfortran", "gfortran", "Fortran programs"),
    need("clang", "clang", "the second C compiler"),
    need(
        "ld.lld",
        "lld",
        "the second linker, which guards calls in its own way",
    ),
    need("mpirun.mpich", "mpich", "the second MPI"),
    need("mpicc.mpich", "libmpich-dev", "the second MPI"),
    need("strip", "binutils", "stripped twins"),
    need(
        "/usr/include/boost/coroutine2/all.hpp",
        "libboost-context-dev",
        "coroutines that switch stacks by themselves",
    ),
    need("setcap", "libcap2-bin", "programs with file capabilities"),
    need("bwrap", "bubblewrap", "programs in containers"),
    need("gdb", "gdb", "backtraces through recorded frames"),
    need("valgrind", "valgrind", "callgrind, to compare with"),
    need("uftrace", "uftrace", "to compare with"),
    need(
        "strace",
        "strace",
        "stops programs at each of their system calls",
    ),
    need("xz", "xz-utils", "debug data within programs"),
    need(
        "javac",
        "default-jdk-headless",
        "a language with a runtime of its own",
    ),
    need("chromium", "chromium", "opens the report"),
    need("python3", "python3", "reference results"),
    need("dot", "graphviz", "reads exported call graphs"),
    need("otf2-print", "otf2-tools", "reads exported archives"),
    need("otf2", "python3-otf2", "writes archives to import"),
    need("protoc", "protobuf-compiler", "reads exported timelines"),
    need("mpi4py", "python3-mpi4py", "an MPI job in Python"),
    need("scipy", "python3-scipy", "reference results"),
    need("sklearn", "python3-sklearn", "reference results"),
    need(
        "jsonschema",
        "python3-jsonschema",
        "checks exported profiles",
    ),
];

impl Need {
    fn is_here(&self) -> bool {
        if self.package == format!("python3-{}", self.tool) {
            // Debian's modules are its own Python's, which need not be the first on the path.
            let import = format!("import {}", self.tool);
            return ["python3", "/usr/bin/python3"]
                .iter()
                .any(|python| quiet(python, &["-c", &import]));
        }
        // Ubuntu and other browsers' names for the same thing.
        let other_names: &[&str] = match self.tool {
            "chromium" => &["chromium-browser", "google-chrome"],
            _ => &[],
        };
        find(self.tool).is_some() || other_names.iter().any(|name| find(name).is_some())
    }
}

/// Names what is missing and what it is for, installs it if that is possible and allowed, and gives
/// the tools that are still missing.
pub fn provide(needs: &[&[Need]], install_allowed: Install) -> Vec<&'static str> {
    let missing = || -> Vec<&Need> {
        let all = needs.iter().copied().flatten();
        all.filter(|need| !need.is_here()).collect()
    };
    let wanted = missing();
    if wanted.is_empty() {
        return Vec::new();
    }
    say("Missing on this machine:");
    for need in &wanted {
        println!(
            "    {:<16} {} (package {})",
            need.tool, need.purpose, need.package
        );
    }
    let mut packages: Vec<&str> = wanted.iter().map(|need| need.package).collect();
    packages.dedup();
    match installer() {
        Some(prefix) if install_allowed.allows("these packages through apt") => {
            install(&prefix, &packages);
        }
        Some(_) => println!("Nothing is installed; tests that need these tools are skipped."),
        None => println!(
            "Neither root nor sudo without a password: please run\n    \
             sudo apt-get install --no-install-recommends {}\n\
             Going on with what can run without.",
            packages.join(" ")
        ),
    }
    let left: Vec<&'static str> = missing().iter().map(|need| need.tool).collect();
    if !left.is_empty() {
        println!("Still missing: {}.", left.join(", "));
    }
    left
}

/// Python packages for the tests that Debian does not have, into the build directory. A name here is a module that the tests import.
const PYTHON: &[(&str, &[&str])] = &[
    ("perfetto", &["perfetto==0.16.0", "protobuf"]),
    ("concepts", &["concepts==0.9.2"]),
    ("duckdb", &["duckdb==2.0.1"]),
];

/// Installs them if they are missing and that is allowed; gives those that are still missing.
pub fn provide_python(install_allowed: Install) -> Vec<&'static str> {
    let directory = target().join("testkit/python");
    let has = |module: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", &format!("import {module}")]);
        command.env("PYTHONPATH", &directory).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut missing = Vec::new();
    for (module, packages) in PYTHON {
        if has(module) {
            continue;
        }
        say(&format!(
            "Missing on this machine: Python's {module}, for reference results."
        ));
        let what = format!(
            "{} through pip, into the build directory",
            packages.join(" ")
        );
        if !install_allowed.allows(&what) {
            println!("{module} is not installed; tests that need it are skipped.");
            missing.push(*module);
            continue;
        }
        say(&format!("Installing through pip: {}", packages.join(" ")));
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-warn-script-location",
        ];
        let mut command = Command::new("python3");
        command
            .args(pip)
            .arg("--target")
            .arg(&directory)
            .args(*packages);
        let installed = run(&mut command).is_ok_and(|status| status == 0);
        if !installed || !has(module) {
            println!("{module} could not be installed.");
            missing.push(*module);
        }
    }
    missing
}

/// The words before `apt-get` with which we may install, if any.
fn installer() -> Option<Vec<&'static str>> {
    find("apt-get")?;
    let root = Command::new("id").arg("-u").output().ok()?.stdout == b"0\n";
    if root {
        return Some(Vec::new());
    }
    quiet("sudo", &["-n", "true"]).then(|| vec!["sudo", "-n"])
}

/// Installs all at once; if that fails, one by one, since one unknown name spoils the whole list.
fn install(prefix: &[&str], packages: &[&str]) {
    say(&format!("Installing through apt: {}", packages.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut words = prefix.to_vec();
        words.extend([
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-q",
            "-y",
        ]);
        words.extend(arguments);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdout(Stdio::null());
        run(&mut command).is_ok_and(|status| status == 0)
    };
    let one = |packages: &[&str]| {
        let mut arguments = vec!["install", "--no-install-recommends"];
        arguments.extend(packages);
        apt(&arguments)
    };
    if !apt(&["update"]) {
        println!("apt-get update failed; trying with the lists that are here.");
    }
    if one(packages) {
        return;
    }
    for package in packages {
        if !one(&[package]) {
            println!("{package} could not be installed.");
        }
    }
}

fn quiet(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
