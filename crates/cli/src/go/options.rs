//! Options that `go test` and `go run` share, and the flags of the go command behind `--`.

use super::events::Events;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use lockstep_goroutines::build::{BuildError, Builder};
use lockstep_goroutines::campaign::{self, PARALLEL};
use lockstep_goroutines::coverage::Usage;
use lockstep_goroutines::launch::Interrupt;
use lockstep_goroutines::paths::Paths;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often and how a program is run.
#[derive(Debug, Args)]
pub struct Schedule {
    /// Most runs of each test, or of the program [default: 10 of a test, 1 of a program]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Run until something is found (at most 10,000 times, or --runs)
    #[arg(long)]
    until_failure: bool,
    /// Go on behind a bug: all runs are made
    #[arg(long, conflicts_with = "until_failure")]
    keep_going: bool,
    /// Most delays of a run; 0 leaves the schedule as it is [default: by the portfolio]
    #[arg(long, value_name = "D")]
    delays: Option<u64>,
    /// What all schedules follow from
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How long a run may take: 10s, 2m, 1h30m or seconds
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// Build with the race detector
    #[arg(long)]
    race: bool,
    /// Enough once PERCENT of the coverage requirements are met
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    coverage: Option<f64>,
    /// Most bytes of a run's records
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = crate::record::size)]
    max_size: u64,
    /// Keep every run there; it must not exist or be empty
    #[arg(short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const UNTIL_FAILURE: u32 = 10_000;

/// What of signals a campaign has to know; they end this process at once until `remember_signals` is called.
pub fn interrupted() -> Option<Interrupt> {
    lockstep_record::asked().map(|it| Interrupt {
        signal: it.signal,
        is_shared: it.is_shared,
        count: it.count,
    })
}

impl Schedule {
    /// For campaigns that make `usual` runs where nothing is said.
    pub fn options(&self, usual: u32, flags: &Flags, shows: bool) -> campaign::Options {
        let most = if self.until_failure {
            UNTIL_FAILURE
        } else {
            usual
        };
        campaign::Options {
            runs: self.runs.or(flags.count).unwrap_or(most),
            goes_on: self.keep_going,
            known: Vec::new(),
            delays: self.delays,
            seed: self.seed,
            limit: self.timeout,
            coverage: self.coverage,
            most: self.max_size,
            shows,
            interrupted,
        }
    }

    /// How the programs of the module around here are built.
    pub fn builder(&self, flags: &Flags) -> Result<Builder> {
        let mut build = flags.build.clone();
        if self.race {
            build.push("-race".into());
        }
        let here = std::env::current_dir().context("no working directory")?;
        let builder = Builder::new(&here, &build)?;
        let missing = builder.missing().iter().map(|(class, reason)| {
            format!(
                "{} are not recorded with {}: {reason}",
                class.name(),
                builder.toolchain.version
            )
        });
        output::remark(&missing.collect::<Vec<_>>());
        Ok(builder)
    }

    /// The directory of the campaign, made where it was not there; programs run elsewhere, so that it is absolute.
    pub fn place(&self) -> Result<Option<PathBuf>> {
        let Some(path) = &self.output else {
            return Ok(None);
        };
        std::fs::create_dir_all(path.join("bin"))
            .with_context(|| format!("{} cannot be made", path.display()))?;
        let others = std::fs::read_dir(path)
            .with_context(|| format!("{} cannot be read", path.display()))?
            .filter_map(Result::ok)
            .any(|it| it.file_name() != "bin");
        if others {
            bail!(
                "expected a directory that is not there or empty, found {}",
                path.display()
            );
        }
        let absolute = std::path::absolute(path);
        Ok(Some(absolute.with_context(|| path.display().to_string())?))
    }
}

/// Takes the directory of a campaign away that had no run, as nothing was built.
pub fn unmake(place: Option<&Path>) {
    if let Some(place) = place {
        let _ = std::fs::remove_dir_all(place.join("bin"));
        // Nothing else is in it.
        let _ = std::fs::remove_dir(place);
    }
}

/// What stood behind `--`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// For the compiler.
    pub build: Vec<OsString>,
    /// For the test binary.
    pub test: Vec<OsString>,
    /// `-run`
    pub run: Option<String>,
    /// `-count`
    pub count: Option<u32>,
    /// `-json`
    pub events: bool,
}

/// Flags of test binaries that have a value.
const VALUED: &[&str] = &[
    "skip",
    "parallel",
    "cpu",
    "bench",
    "benchtime",
    "shuffle",
    "fuzz",
    "fuzztime",
    "v",
    "short",
];
/// Build flags that have a value in a word of its own.
const BUILD_VALUED: &[&str] = &[
    "asmflags",
    "buildmode",
    "compiler",
    "gccgoflags",
    "gcflags",
    "installsuffix",
    "ldflags",
    "mod",
    "modfile",
    "overlay",
    "p",
    "pgo",
    "pkgdir",
    "tags",
    "toolexec",
    "covermode",
    "coverpkg",
];

impl Flags {
    /// Events about a package, where they are asked for.
    pub fn of_package<'a>(&self, package: &'a str) -> Events<'a> {
        Events {
            wanted: self.events,
            package,
        }
    }

    /// Tells them apart.
    pub fn of(words: &[OsString]) -> Result<Self> {
        let mut flags = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let Some(name) = text.strip_prefix('-') else {
                bail!("expected flags of go test behind --, found '{text}'");
            };
            let name = name.strip_prefix('-').unwrap_or(name);
            if name == "args" {
                flags.test.extend(words.cloned());
                break;
            }
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let name = name.strip_prefix("test.").unwrap_or(name);
            let mut needed = || -> Result<String> {
                match &value {
                    Some(value) => Ok(value.clone()),
                    None => words
                        .next()
                        .map(|it| it.to_string_lossy().into_owned())
                        .with_context(|| format!("expected a value behind -{name}")),
                }
            };
            match name {
                "run" => flags.run = Some(needed()?),
                "count" => {
                    let value = needed()?;
                    let count = value.parse().ok().filter(|it| *it > 0);
                    flags.count =
                        Some(count.with_context(|| format!("expected -count=N, found '{value}'"))?);
                }
                "timeout" => {
                    needed()?;
                    output::complain("-timeout is not passed on: --timeout is for each run");
                }
                // What it builds is run in its own way: these have nothing to say.
                "vet" | "vettool" => drop(needed()?),
                "coverprofile" | "cpuprofile" | "memprofile" | "blockprofile" | "mutexprofile"
                | "trace" | "outputdir" => {
                    needed()?;
                    output::complain(&format!(
                        "-{name} is not passed on: each test runs many times"
                    ));
                }
                "json" => flags.events = value.as_deref() != Some("false"),
                "c" | "o" | "exec" | "list" => bail!(
                    "-{name} is not for here: lockstep builds and starts test binaries itself"
                ),
                "v" | "short" | "failfast" | "fullpath" | "benchmem" if value.is_none() => {
                    flags.test.push(format!("-test.{name}").into());
                }
                _ if VALUED.contains(&name) => {
                    let value = needed()?;
                    flags.test.push(format!("-test.{name}={value}").into());
                }
                _ => {
                    flags.build.push(word.clone());
                    if value.is_none() && BUILD_VALUED.contains(&name) {
                        flags.build.push(needed()?.into());
                    }
                }
            }
        }
        Ok(flags)
    }
}

/// What the sources of packages say.
pub struct Sources {
    /// Usages that runs may come to; `None` where they do not say.
    pub usages: Option<Vec<Usage>>,
    /// What is done with locks.
    pub paths: Paths,
}

/// Asks the sources; a line on stderr where they do not say.
pub fn sources(builder: &Builder, packages: &[String]) -> Sources {
    match builder.read(packages) {
        Ok((usages, paths)) => Sources {
            usages: Some(usages),
            paths,
        },
        Err(error) => {
            output::complain(&format!(
                "the source was not read: what it does with locks, and usages that no run comes to, are left out: {error}"
            ));
            Sources {
                usages: None,
                paths: Paths::default(),
            }
        }
    }
}

/// The go command's own words on stderr, before the line that says that nothing was built.
pub fn built<T>(result: Result<T, BuildError>) -> Result<T> {
    result.map_err(|error| match error {
        BuildError::Failed { command, said } => {
            let _ = writeln!(std::io::stderr(), "{}", output_lines(&said));
            anyhow::anyhow!("expected packages that build, but go {command} failed (above)")
        }
        other => other.into(),
    })
}

fn output_lines(text: &str) -> String {
    let lines = text.lines().map(|it| it.replace('\t', "        "));
    let lines: Vec<String> = lines.map(|it| output::printable(&it)).collect();
    lines.join("\n")
}

/// The arguments of one test's binary, or of all that are asked for.
pub fn arguments(flags: &Flags, test: Option<&str>) -> Vec<OsString> {
    let asked = flags.run.as_deref();
    let mut pattern = match test {
        Some(test) => format!("^{test}$"),
        None => asked.unwrap_or(".").to_owned(),
    };
    if let Some((_, sub)) = asked
        .filter(|_| test.is_some())
        .and_then(|it| it.split_once('/'))
    {
        pattern = format!("{pattern}/{sub}");
    }
    let mut arguments: Vec<OsString> = vec![
        format!("-test.run={pattern}").into(),
        "-test.timeout=0".into(),
        "-test.paniconexit0".into(),
    ];
    // As `go test -json` does: what names all subtests is what `-v` prints.
    if flags.events {
        arguments.push("-test.v".into());
    }
    // The schedule's processors are not what says how many tests of the program run side by side.
    let is_said = |it: &OsString| it.to_string_lossy().starts_with(PARALLEL);
    if !flags.test.iter().any(is_said) {
        arguments.push(format!("{PARALLEL}{}", processors()).into());
    }
    arguments.extend(flags.test.iter().cloned());
    arguments
}

/// What `GOMAXPROCS` is where nobody disturbs the schedule.
fn processors() -> usize {
    let asked = std::env::var("GOMAXPROCS").ok();
    let asked = asked.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A path as the user would write it from here.
pub fn from_here(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = Path::new(path);
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// From 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|it| (0.0..=100.0).contains(it));
    value.ok_or_else(|| format!("expected a percentage from 0 to 100, found '{text}'"))
}

/// `10s`, `1h30m`, `250ms` or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a time such as 30s or 2m, found '{text}'");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let units = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let unit = units.iter().find(|(unit, _)| rest.starts_with(unit));
        let (unit, worth) = match unit {
            Some(unit) => *unit,
            None if rest.is_empty() => ("", 1.0),
            None => return Err(wrong()),
        };
        rest = &rest[unit.len()..];
        seconds += number * worth;
    }
    if seconds > 0.0 && seconds < 1e9 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_go_where_they_belong() {
        let words = [
            "-run", "TestA/b", "-tags=x", "-mod", "vendor", "-short", "-count=3", "-race",
            "-vet=off", "-args", "y",
        ];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let flags = Flags::of(&words).unwrap();
        assert_eq!(flags.run.as_deref(), Some("TestA/b"));
        assert_eq!(flags.count, Some(3));
        assert_eq!(
            flags.build,
            ["-tags=x", "-mod", "vendor", "-race"].map(OsString::from)
        );
        assert_eq!(flags.test, ["-test.short", "y"].map(OsString::from));
        assert_eq!(arguments(&flags, Some("TestA"))[0], "-test.run=^TestA$/b");
        let events = Flags::of(&["-json".into()]).unwrap();
        assert!(arguments(&events, None).contains(&"-test.v".into()));
        let side_by_side = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let words = arguments(&Flags::of(&words).unwrap(), None);
            let mut words = words.into_iter().map(|it| it.into_string().unwrap());
            words.find_map(|it| it.strip_prefix(PARALLEL).map(str::to_owned))
        };
        assert_eq!(side_by_side(&["-parallel=5"]).as_deref(), Some("5"));
        assert!(side_by_side(&[]).is_some());
        assert!(Flags::of(&["-exec".into()]).is_err());
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("87.5"), Ok(87.5));
        for wrong in ["", "-1", "101", "NaN", "x"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("1m30s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(duration("7").unwrap(), Duration::from_secs(7));
        for wrong in ["", "x", "1d", "0s", "-3s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
