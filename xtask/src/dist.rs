//! `cargo xtask dist`: what a release is made of.
//!
//! ```text
//! lockstep-VERSION-x86_64-linux.tar.gz     the command, manual pages, completions, licences
//! lockstep_VERSION_amd64.deb               the same, where Debian has them
//! lockstep_trace-VERSION-...whl            the command, for `pip install`
//! lockstep-VERSION.tar.gz                  the source of the commit
//! lockstep-VERSION-recipes.tar.gz          recipes for Spack, EasyBuild and conda-forge
//! SHA256SUMS
//! ```
//! Everything is packed twice, and both must have the same bytes: files are sorted, belong to nobody, and have the
//! commit's date.

use crate::recipes;
use crate::shell::{cargo, must, output_of, root, say, target};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Named, so that flags do not reach build scripts and macros, which cannot be static.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/lockstep"),
    ("zsh", "zsh/vendor-completions/_lockstep"),
    ("fish", "fish/vendor_completions.d/lockstep.fish"),
];
const LICENCES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "packaging/NOTICE"];

/// Builds, packs twice, compares. With `--rebuild`, what is packed the second time is also built a second time;
/// `--command FILE` is packed as it is.
pub fn run(rest: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let (given, rebuilds) = match words[..] {
        [] => (None, false),
        ["--rebuild"] => (None, true),
        ["--command", file] => (Some(PathBuf::from(file)), false),
        _ => bail!("`dist` takes --rebuild or --command FILE, and nothing else"),
    };
    let place = target().join("dist");
    let date = date()?;
    let command = given.map_or_else(|| build(&place.join("build")), Ok)?;
    let packed = place.join("packed");
    pack(&command, &packed, &date)?;
    say("Again, to compare");
    let command = if rebuilds {
        build(&place.join("build-again"))?
    } else {
        command
    };
    let again = place.join("packed-again");
    pack(&command, &again, &date)?;
    let names = compare(&packed, &again)?;
    say(&format!("Twice the same bytes, in {}:", packed.display()));
    for name in names {
        println!(
            "    {name} ({} bytes)",
            fs::metadata(packed.join(&name))?.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds and packs, and takes the command out of the tarball into `place`.
pub fn unpack_into(place: &Path) -> Result<()> {
    let dist = target().join("dist");
    let command = build(&dist.join("build"))?;
    let packed = dist.join("packed");
    pack(&command, &packed, &date()?)?;
    let name = format!("lockstep-{VERSION}-x86_64-linux");
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(place)
        .args(["--strip-components=1", "-xzf"]);
    tar.arg(packed.join(format!("{name}.tar.gz")))
        .arg(format!("{name}/lockstep"));
    must(&mut tar)
}

/// Seconds since 1970: when the commit was made, unless `SOURCE_DATE_EPOCH` says.
fn date() -> Result<String> {
    if let Ok(date) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(date);
    }
    let mut git = Command::new("git");
    git.current_dir(root()).args(["log", "-1", "--format=%ct"]);
    Ok(output_of(&mut git)?.trim().to_owned())
}

/// The command that needs no library, and has no path of this machine in it.
pub fn build(directory: &Path) -> Result<PathBuf> {
    say("Building the static command");
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let renamed = [
        (Some(root()), "."),
        (home, "cargo"),
        (Some(directory.to_owned()), "target"),
    ];
    for (from, to) in renamed {
        if let Some(from) = from {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
    }
    let words = [
        "build",
        "--release",
        "--package",
        "lockstep",
        "--target",
        TRIPLE,
    ];
    let mut build = cargo(&words);
    build.arg("--target-dir").arg(directory);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // Optimising across the units of a crate was seen to name symbols otherwise in one build of four.
    build.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    must(&mut build)?;
    let command = directory.join(TRIPLE).join("release/lockstep");
    let bytes = fs::read(&command)?;
    for path in [root(), std::env::current_dir()?] {
        let path = path.display().to_string();
        let has_path = bytes.windows(path.len()).any(|it| it == path.as_bytes());
        ensure!(!has_path, "{}: holds the path {path}", command.display());
    }
    let mut readelf = Command::new("readelf");
    let needs = output_of(readelf.args(["-dV"]).arg(&command))?;
    let is_static = !needs.contains("NEEDED") && !needs.contains("Version needs");
    ensure!(
        is_static,
        "{}: expected a static command, found\n{needs}",
        command.display()
    );
    Ok(command)
}

/// Packs all archives around the command into `place`, which is made anew.
fn pack(command: &Path, place: &Path, date: &str) -> Result<()> {
    let _ = fs::remove_dir_all(place);
    let tree = place.join("tree");
    fs::create_dir_all(&tree)?;
    tarball(command, place, &tree, date)?;
    debian(command, place, &tree, date)?;
    let mut wheel = Command::new("python3");
    wheel.arg(root().join("packaging/wheel.py"));
    wheel.arg(command).arg(VERSION).arg(place);
    wheel.args(LICENCES.map(|it| root().join(it)));
    must(wheel.env("SOURCE_DATE_EPOCH", date))?;
    source(place)?;
    recipes(place, &tree, date)?;
    fs::remove_dir_all(tree)?;
    let mut sums = Command::new("sha256sum");
    sums.current_dir(place).args(names(place)?);
    fs::write(place.join("SHA256SUMS"), output_of(&mut sums)?)?;
    Ok(())
}

fn tarball(command: &Path, place: &Path, tree: &Path, date: &str) -> Result<()> {
    let name = format!("lockstep-{VERSION}-x86_64-linux");
    let top = tree.join(&name);
    put(command, &top.join("lockstep"), 0o755)?;
    for text in LICENCES.iter().chain(&["README.md"]) {
        put(&root().join(text), &top.join(file_name(text)), 0o644)?;
    }
    shared(command, &top.join("man"), |shell, _| {
        top.join("completions").join(shell)
    })?;
    archive(tree, &name, &place.join(format!("{name}.tar.gz")), date)
}

/// A package is an `ar` archive of a word, what is known of the package, and its files.
fn debian(command: &Path, place: &Path, tree: &Path, date: &str) -> Result<()> {
    let (about, data) = (tree.join("control"), tree.join("data"));
    put(command, &data.join("usr/bin/lockstep"), 0o755)?;
    let share = data.join("usr/share");
    for text in LICENCES {
        put(
            &root().join(text),
            &share.join("doc/lockstep").join(file_name(text)),
            0o644,
        )?;
    }
    let licence = share.join("doc/lockstep/copyright");
    put(&root().join("packaging/NOTICE"), &licence, 0o644)?;
    shared(command, &share.join("man/man1"), |_, path| share.join(path))?;
    for page in fs::read_dir(share.join("man/man1"))? {
        must(Command::new("gzip").args(["-9", "-n"]).arg(page?.path()))?;
    }
    let kilobytes = fs::metadata(command)?.len() / 1024;
    let text = format!(
        "Package: lockstep\nVersion: {VERSION}\nArchitecture: amd64\nMaintainer: The lockstep developers <lockstep@localhost>\n\
         Installed-Size: {kilobytes}\nSection: devel\nPriority: optional\n\
         Description: find the task that fell out of step in a parallel program\n \
         Records every call and return of an unmodified program, and compares runs.\n"
    );
    fs::create_dir_all(&about)?;
    fs::write(about.join("control"), text)?;
    let mut package = b"!<arch>\n".to_vec();
    let mut member = |name: &str, bytes: &[u8]| {
        let size = bytes.len();
        let header = format!(
            "{name:<16}{date:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 100_644
        );
        package.extend(header.as_bytes());
        package.extend(bytes);
        package.resize(package.len().next_multiple_of(2), b'\n');
    };
    member("debian-binary", b"2.0\n");
    for directory in [&about, &data] {
        let name = format!("{}.tar.gz", file_name(&directory.to_string_lossy()));
        let file = tree.join(&name);
        archive(directory, ".", &file, date)?;
        member(&name, &fs::read(&file)?);
    }
    fs::write(place.join(format!("lockstep_{VERSION}_amd64.deb")), package)?;
    Ok(())
}

/// Manual pages, and what shells need to complete words.
fn shared(command: &Path, pages: &Path, completions: impl Fn(&str, &str) -> PathBuf) -> Result<()> {
    fs::create_dir_all(pages)?;
    must(Command::new(command).args(["man", "-o"]).arg(pages))?;
    for (shell, path) in SHELLS {
        let text = output_of(Command::new(command).args(["completions", shell]))?;
        let path = completions(&format!("lockstep.{shell}"), path);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// What is committed, and nothing else.
fn source(place: &Path) -> Result<()> {
    let name = format!("lockstep-{VERSION}");
    let tar = place.join(format!("{name}.tar"));
    let mut git = Command::new("git");
    git.current_dir(root()).args(["archive", "--format=tar"]);
    git.arg(format!("--prefix={name}/"))
        .arg("-o")
        .arg(&tar)
        .arg("HEAD");
    must(&mut git)?;
    must(Command::new("gzip").args(["-9", "-n"]).arg(tar))
}

/// Recipes that build what [`source`] packed.
fn recipes(place: &Path, tree: &Path, date: &str) -> Result<()> {
    let name = format!("lockstep-{VERSION}-recipes");
    let source = place.join(format!("lockstep-{VERSION}.tar.gz"));
    let sum = output_of(Command::new("sha256sum").arg(source))?;
    let sum = sum
        .split_whitespace()
        .next()
        .context("sha256sum printed nothing")?;
    recipes::write(&tree.join(&name), VERSION, sum)?;
    archive(tree, &name, &place.join(format!("{name}.tar.gz")), date)
}

/// `what` in `directory` as a compressed tar archive.
fn archive(directory: &Path, what: &str, file: &Path, date: &str) -> Result<()> {
    let tar = file.with_extension("");
    let mut words = Command::new("tar");
    words.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=ustar",
    ]);
    words
        .arg(format!("--mtime=@{date}"))
        .arg("--mode=u+rw,go=rX,go-w");
    words
        .arg("-C")
        .arg(directory)
        .arg("-cf")
        .arg(&tar)
        .arg(what);
    must(&mut words)?;
    must(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&tar))
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file lies in a directory")?)?;
    fs::copy(from, to).with_context(|| format!("{}", from.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn names(place: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(place)?.flatten();
    let mut names: Vec<String> = entries
        .filter_map(|it| it.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The names of both, which must have the same bytes.
fn compare(one: &Path, other: &Path) -> Result<Vec<String>> {
    let found = names(one)?;
    ensure!(found == names(other)?, "different archives: {found:?}");
    for name in &found {
        let (a, b) = (fs::read(one.join(name))?, fs::read(other.join(name))?);
        ensure!(a == b, "{name}: packed twice, found different bytes");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Any program will do that takes `man -o DIRECTORY` and `completions SHELL`.
    #[test]
    fn what_is_packed_twice_has_the_same_bytes() {
        let place = std::env::temp_dir().join(format!("lockstep-dist-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let command = place.join("command");
        fs::write(
            &command,
            "#!/bin/sh\n[ $1 = man ] && echo page > $3/lockstep.1 || echo words\n",
        )
        .unwrap();
        fs::set_permissions(&command, fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["one", "other"] {
            pack(&command, &place.join(name), "1700000000").unwrap();
            // Another time, and another mode of what is copied.
            std::thread::sleep(std::time::Duration::from_millis(1100));
            fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let names = compare(&place.join("one"), &place.join("other")).unwrap();
        assert_eq!(names.len(), 6, "{names:?}");
        fs::remove_dir_all(&place).unwrap();
    }
}
