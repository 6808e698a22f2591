//! `cargo xtask environments`: the release's command at work where it was not built.
//!
//! The command is taken out of the tarball. In each environment it records, watches a hang, says who is stuck, compares
//! and writes the report: of threads, and where MPI is, of ranks. What cannot be made on this machine is said.

use crate::shell::{find, must, output_of, root, say, target};
use crate::{dist, setup};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What is done everywhere, by any shell: `walk LOCKSTEP OUT WHO PROGRAM [LAUNCHER]...`.
const WALK: &str = r#"
lockstep=$1 out=$2 who=$3 program=$4; shift 4
expect() {
    want=$1; shift
    "$@" > $out/said 2>&1 < /dev/null; got=$?
    [ $got = $want ] && return
    echo "expected status $want, found $got: $*"; head -n 5 $out/said; exit 1
}
mkdir -p $out || exit 1
# Ranks take a while to start; their deadlock is seen at once.
case $who in rank*) patience=60 ;; *) patience=5 ;; esac
expect 0 $lockstep record --force -o $out/good -- "$@" $program
expect 1 $lockstep record --force --hang $patience --on-hang stop -o $out/bad -- "$@" $program --bug deadlock
expect 1 $lockstep progress $out/bad
expect 1 $lockstep compare $out/good $out/bad
case $(head -n 3 $out/said) in *"$who"*) ;; *) echo "expected: $who"; head -n 5 $out/said; exit 1 ;; esac
expect 0 $lockstep report $out/good $out/bad -o $out/page.html
"#;

/// Debian's releases with the C libraries at both ends: 2.31 and 2.41.
const RELEASES: [&str; 2] = ["bullseye", "trixie"];
/// What programs are made of there. (`automake`: debootstrap does not see what merely stands for a package.)
const PACKAGES: &str = "gcc,libc6-dev,openmpi-bin,libopenmpi-dev,automake";
const MPI: [&str; 3] = ["mpirun", "-n", "8"];
/// Environment of all: Open MPI refuses root, and more ranks than cores, unless told otherwise.
const VARIABLES: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    // Namespaces do not see each other's interfaces.
    ("OMPI_MCA_btl", "^tcp"),
];
/// A user who owns nothing.
const NOBODY: &str = "65534";

struct Visit {
    /// Everything of ours is below it, also inside.
    place: PathBuf,
    failed: Vec<String>,
    left: Vec<String>,
}

/// Visits all, with the command of the tarball or with `--command FILE`.
pub fn run(rest: &[String]) -> Result<ExitCode> {
    let given = match rest {
        [] => None,
        [word, file] if word == "--command" => Some(file),
        _ => bail!("`environments` takes nothing but --command FILE"),
    };
    let _ = setup::provide(
        &[setup::DEMO, setup::ENVIRONMENTS],
        setup::Install::new(false),
    );
    let place = target().join("environments");
    fs::create_dir_all(&place)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    match given {
        Some(file) => drop(fs::copy(file, place.join("lockstep")).context("--command")?),
        None => dist::unpack_into(&place)?,
    }
    fs::write(place.join("walk"), WALK)?;
    for name in ["threads/odd_even.c", "mpi/odd_even.c"] {
        let copy = place.join(name.replace('/', "-"));
        fs::copy(root().join("programs").join(name), copy)?;
    }
    let mut visit = Visit {
        place,
        failed: Vec::new(),
        left: Vec::new(),
    };
    visit.here()?;
    visit.busybox()?;
    for release in RELEASES {
        visit.debian(release)?;
    }
    for text in &visit.left {
        say(&format!("NOT TRIED on this machine: {text}"));
    }
    for text in &visit.failed {
        say(&format!("FAILED: {text}"));
    }
    Ok(if visit.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Visit {
    /// Walks behind the words `inside`, which enter an environment.
    fn walk(&mut self, name: &str, inside: &[&str], who: &str, program: &[&str]) -> Result<()> {
        let place = self.place.display().to_string();
        let lockstep = format!("{place}/lockstep");
        let out = format!(
            "{place}/out/{}",
            name.replace(|c: char| !c.is_alphanumeric(), "-")
        );
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        fs::set_permissions(&out, fs::Permissions::from_mode(0o777))?;
        let walk = format!("{place}/walk");
        let mut words = inside.to_vec();
        words.extend(["sh", &walk, &lockstep, &out, who]);
        words.extend(program);
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .envs(VARIABLES)
            .env("XDG_CACHE_HOME", format!("{out}/cache"));
        say(name);
        let output = command.output().with_context(|| words[0].to_owned())?;
        if !output.status.success() {
            println!(
                "{}",
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
            );
            self.failed.push(name.to_owned());
        }
        Ok(())
    }

    /// Compiles both programs with what `inside` has; gives their paths. The second may fail.
    fn compile(&self, inside: &[&str], label: &str) -> Result<(String, Option<String>)> {
        let build = |compiler: &str, name: &str| -> Result<String> {
            let place = self.place.display();
            let program = format!("{place}/{label}-{name}");
            let source = format!("{place}/{name}-odd_even.c");
            let mut words = inside.to_vec();
            words.extend([compiler, "-g", "-O1", "-pthread", "-o", &program, &source]);
            must(Command::new(words[0]).args(&words[1..]))?;
            Ok(program)
        };
        Ok((build("gcc", "threads")?, build("mpicc", "mpi").ok()))
    }

    /// On this machine's own root file system: without root, without a temporary directory, with a home that cannot be
    /// written.
    fn here(&mut self) -> Result<()> {
        let (threads, mpi) = self.compile(&["env"], "here")?;
        let place = self.place.display().to_string();
        let home = format!("{place}/home");
        fs::create_dir_all(&home)?;
        let no_cache = ["env", "-u", "XDG_CACHE_HOME"];
        let read_only = [
            "bwrap",
            "--dev-bind",
            "/",
            "/",
            "--ro-bind",
            &home,
            &home,
            "--setenv",
            "HOME",
            &home,
        ];
        let user = [
            "setpriv",
            "--reuid",
            NOBODY,
            "--regid",
            NOBODY,
            "--clear-groups",
        ];
        let no_tmp = [
            "unshare",
            "-rm",
            "sh",
            "-c",
            "mount -t tmpfs -o ro none /tmp && exec \"$@\"",
            "sh",
        ];
        for (name, inside) in [
            ("this machine", &["env"][..]),
            ("a user without root", &user),
            ("no /tmp that can be written", &no_tmp),
            ("a home that cannot be written", &read_only),
        ] {
            if !self.can_enter(name, inside) {
                continue;
            }
            let mut words = no_cache.to_vec();
            words.extend(inside);
            self.walk(name, &words, "thread 6", &[&threads])?;
            // Open MPI itself writes to /tmp.
            if let Some(mpi) = mpi.as_deref().filter(|_| !name.contains("/tmp")) {
                let program = [&[mpi][..], &MPI].concat();
                self.walk(&format!("{name}, MPI"), &words, "rank 5", &program)?;
            }
        }
        Ok(())
    }

    /// Nothing but busybox, and a program with its own C library.
    fn busybox(&mut self) -> Result<()> {
        let empty = self.place.join("busybox");
        let _ = fs::remove_dir_all(&empty);
        for directory in ["bin", "proc", "dev", "tmp", "lib", "lib64"] {
            fs::create_dir_all(empty.join(directory))?;
        }
        let Some(busybox) = find("busybox") else {
            self.left
                .push("an empty file system with busybox: there is none".to_owned());
            return Ok(());
        };
        fs::copy(busybox, empty.join("bin/busybox"))?;
        for name in ["sh", "head", "mkdir"] {
            let _ = std::os::unix::fs::symlink("busybox", empty.join("bin").join(name));
        }
        let source = self.place.join("threads-odd_even.c");
        for (compiler, name) in [("gcc", "the GNU C library"), ("musl-gcc", "musl")] {
            let name = format!("busybox and {name}, nothing else");
            if find(compiler).is_none() {
                self.left.push(format!("{name}: there is no {compiler}"));
                continue;
            }
            let program = self.place.join(format!("{compiler}-threads"));
            let mut build = Command::new(compiler);
            must(
                build
                    .args(["-g", "-O1", "-pthread", "-o"])
                    .arg(&program)
                    .arg(&source),
            )?;
            bring_libraries(&program, &empty)?;
            let inside = self.inside(&empty);
            let words: Vec<&str> = inside.iter().map(String::as_str).collect();
            if self.can_enter(&name, &words) {
                let program = program.display().to_string();
                self.walk(&name, &words, "thread 6", &[&program])?;
                self.contained(&name, &empty, &program, &[])?;
            }
        }
        Ok(())
    }

    fn debian(&mut self, release: &str) -> Result<()> {
        let system = self.place.join(release);
        if !system.join("usr/bin/mpicc").exists()
            && let Err(error) = bootstrap(release, &system)
        {
            self.left.push(format!("Debian {release}: {error:#}"));
            return Ok(());
        }
        let name = format!("Debian {release}");
        let inside = self.inside(&system);
        let words: Vec<&str> = inside.iter().map(String::as_str).collect();
        if !self.can_enter(&name, &words) {
            return Ok(());
        }
        let (threads, mpi) = self.compile(&words, release)?;
        self.walk(&name, &words, "thread 6", &[&threads])?;
        self.contained(&name, &system, &threads, &[])?;
        match mpi {
            Some(mpi) => {
                self.walk(
                    &format!("{name}, MPI"),
                    &words,
                    "rank 5",
                    &[&[&mpi[..]][..], &MPI].concat(),
                )?;
                self.contained(&name, &system, &mpi, &MPI)?;
            }
            None => self
                .left
                .push(format!("{name}: MPI programs do not compile")),
        }
        Ok(())
    }

    /// The recorder outside, the program within, as with `mpirun apptainer exec IMAGE PROGRAM`. Only the runs are seen on
    /// both sides.
    fn contained(
        &mut self,
        name: &str,
        system: &Path,
        program: &str,
        launcher: &[&str],
    ) -> Result<()> {
        let out = self.place.join("out").display().to_string();
        let system = system.display().to_string();
        let mut words = vec![program];
        words.extend(launcher);
        words.extend(["bwrap", "--die-with-parent", "--bind", &system, "/"]);
        words.extend(["--proc", "/proc"]);
        words.extend(["--dev-bind", "/dev", "/dev", "--bind", "/tmp", "/tmp"]);
        words.extend(["--bind", &out, &out, "--ro-bind", program, program]);
        let (what, who) = if launcher.is_empty() {
            ("recorded from outside", "thread 6")
        } else {
            ("recorded from outside, MPI", "rank 5")
        };
        self.walk(&format!("{name}, {what}"), &["env"], who, &words)
    }

    /// The words that enter a file system.
    fn inside(&self, system: &Path) -> Vec<String> {
        let (system, place) = (
            system.display().to_string(),
            self.place.display().to_string(),
        );
        let words = [
            "bwrap", "--bind", &system, "/", "--proc", "/proc", "--dev", "/dev",
        ];
        let more = [
            "--tmpfs", "/tmp", "--bind", &place, &place, "--chdir", &place,
        ];
        words
            .iter()
            .chain(&more)
            .map(|it| (*it).to_owned())
            .collect()
    }

    /// Whether the environment can be entered at all.
    fn can_enter(&mut self, name: &str, inside: &[&str]) -> bool {
        let mut words = Command::new(inside[0]);
        words.args(&inside[1..]).args(["sh", "-c", ":"]);
        let output = words.output();
        let reason = match output {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("{}: {error}", inside[0]),
        };
        self.left.push(format!("{name}: {reason}"));
        false
    }
}

/// Copies the program's dynamic linker, and its libraries if it has others, to the same places below `system`.
fn bring_libraries(program: &Path, system: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    let mut listed = output_of(readelf.args(["-p", ".interp"]).arg(program))?;
    // It knows its own C library only.
    listed += &output_of(Command::new("ldd").arg(program)).unwrap_or_default();
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with("/lib") || word.starts_with("/usr"));
    for path in paths {
        let place = system.join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().context("a file lies in a directory")?)?;
        fs::copy(path, &place).with_context(|| path.to_owned())?;
    }
    Ok(())
}

/// A root file system of Debian, from where this machine's packages come from.
fn bootstrap(release: &str, system: &Path) -> Result<()> {
    let mirror = mirror().context("apt has no source of Debian packages")?;
    say(&format!("Making a root file system of Debian {release}"));
    let _ = fs::remove_dir_all(system);
    let mut words = Command::new("debootstrap");
    words.args([
        "--variant=minbase",
        &format!("--include={PACKAGES}"),
        release,
    ]);
    let made = words.arg(system).arg(&mirror).output();
    let made = made.context("debootstrap could not be started")?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stdout);
        bail!("debootstrap: {}", said.lines().last().unwrap_or("no word"));
    }
    Ok(())
}

/// The first archive in apt's sources, of either format.
fn mirror() -> Option<String> {
    let more = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = more.map(|it| it.path()).collect();
    files.sort();
    files.insert(0, PathBuf::from("/etc/apt/sources.list"));
    let texts = files.iter().filter_map(|it| fs::read_to_string(it).ok());
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .find_map(|line| {
            let mut words = line.split_whitespace();
            let is_source = matches!(words.next(), Some("URIs:" | "deb"));
            words
                .find(|word| is_source && word.contains("://") && word.ends_with("/debian"))
                .map(str::to_owned)
        })
}
