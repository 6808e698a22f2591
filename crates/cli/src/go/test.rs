//! `lockstep go test`: the tests of Go packages, each by itself and under many schedules.

use super::document::{OfTests, Package as Tests};
use super::options::{Flags, Schedule, Sources, arguments, built, interrupted, sources, unmake};
use super::outcome::{Outcome, Tested};
use super::together::{TOGETHER, Together};
use crate::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use lockstep_goroutines::build::{Builder, Package};
use lockstep_goroutines::campaign::{self, Subject, tests};
use lockstep_goroutines::coverage::Coverage;
use lockstep_goroutines::launch::LaunchError;
use lockstep_goroutines::store::{self, Campaign, Row, StoreError, Stored};
use lockstep_goroutines::symbols::{Program, Symbols};
use lockstep_goroutines::verdict::Verdict;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Run the tests of packages under many schedules, and judge each run by what its goroutines did
///
/// Every test function is run in a process of its own, so that what is left behind is its own. Packages run side by
/// side, tests of a package one after another, as with go test. Stops a test at its first bug. Ends with 1 where
/// there is a bug or a failing test. SIGINT, SIGTERM and SIGHUP end it with what was found so far and 128 + n.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go test ./...
  lockstep go test --runs 100 --race ./server
  lockstep go test --until-failure -o found . -- -run TestShutdown -tags integration
  lockstep go test --write-baseline known.txt ./...     once
  lockstep go test --baseline known.txt ./...      in CI: only what is not in the list counts
  lockstep go test ./... -- -json | gotestsum --raw-command -- cat    events of go test, a line each
")]
pub struct Test {
    #[command(flatten)]
    schedule: Schedule,
    /// Verdicts that are known, one a line as this command prints them (`leak server.go:12`, or for any line of the
    /// file `leak server.go`): they do not count, and tests go on behind them
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write what is found to this list of known verdicts, and end with 0
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    write_baseline: Option<PathBuf>,
    /// Packages, as for the go command
    #[arg(value_name = "PACKAGES", default_value = ".")]
    packages: Vec<String>,
    /// Flags of go test
    #[arg(last = true, value_name = "GO TEST FLAGS")]
    flags: Vec<OsString>,
}

/// What a test binary that does not list its tests is called.
const WHOLE: &str = "TestMain";

/// A package that was built.
struct Built {
    package: Package,
    /// Of its binary.
    number: usize,
    file: PathBuf,
    program: Program,
    classes: Vec<u8>,
    /// Its tests; none where it does not list them (it hangs or fails before), and is run as a whole.
    tests: Vec<Option<String>>,
}

/// Runs that are kept.
struct Keeper<'a> {
    directory: &'a Path,
    campaign: Mutex<Campaign>,
}

impl Test {
    pub fn run(self) -> Result<ExitCode> {
        let flags = Flags::of(&self.flags)?;
        let known = self.known()?;
        if flags.events && self.schedule.json {
            bail!("expected --json or, behind --, -json, found both");
        }
        let builder = self.schedule.builder(&flags)?;
        let packages = built(builder.packages(&self.packages))?;
        let (with, without): (Vec<_>, Vec<_>) = packages.into_iter().partition(|it| it.has_tests);
        if with.is_empty() {
            let what = if without.is_empty() {
                "no package"
            } else {
                "none with tests"
            };
            bail!(
                "expected packages with tests, found {what} in {}",
                self.packages.join(" ")
            );
        }
        let place = self.schedule.place()?;
        let scratch = Scratch::new()?;
        let bin = place
            .as_ref()
            .map_or_else(|| scratch.0.clone(), |it| it.join("bin"));
        let binaries =
            built(builder.tests(&with, &bin)).inspect_err(|_| unmake(place.as_deref()))?;
        if binaries.iter().all(Result::is_err) {
            unmake(place.as_deref());
            return built(binaries.into_iter().collect::<Result<(), _>>())
                .map(|()| ExitCode::SUCCESS);
        }
        let sources = sources(&builder, &self.packages);
        let programs = with
            .iter()
            .map(|it| Stored {
                package: it.path.clone(),
                directory: it.directory.clone(),
            })
            .collect();
        let (mut all, mut broken) = (Vec::new(), Vec::new());
        for ((number, package), binary) in with.into_iter().enumerate().zip(binaries) {
            match built(binary) {
                Ok(()) => all.push(look(&builder, package, number, &bin, &flags)?),
                Err(_) => {
                    flags.of_package(&package.path).broken()?;
                    broken.push(Outcome::broken(package.path));
                }
            }
        }
        for package in &without {
            flags.of_package(&package.path).skip()?;
        }
        let options = campaign::Options {
            known,
            ..self.schedule.options(10, &flags, false)
        };
        let keeper = place.as_ref().map(|directory| Keeper {
            directory,
            campaign: Mutex::new(Campaign {
                version: 1,
                seed: options.seed,
                directory: std::env::current_dir().unwrap_or_default(),
                root: builder.toolchain.root.clone(),
                programs,
                usages: sources.usages.clone(),
                runs: Vec::new(),
            }),
        });
        lockstep_record::remember_signals();
        let mut outcomes = run_all(&all, &options, &flags, keeper.as_ref(), &sources)?;
        outcomes.extend(broken);
        if let Some(keeper) = &keeper
            && let Ok(campaign) = keeper.campaign.lock()
        {
            campaign.write(keeper.directory)?;
        }
        let worst = outcomes
            .iter()
            .map(Outcome::verdict)
            .max()
            .unwrap_or(Verdict::Pass);
        let broken_off = interrupted();
        if let Some(interrupt) = broken_off {
            let count = |it: &Outcome| it.tests.iter().filter(|it| it.is_over).count();
            output::complain(&format!(
                "interrupted by signal {} when {} of {} tests were over: what was found so far",
                interrupt.signal,
                outcomes.iter().map(count).sum::<usize>(),
                all.iter().map(|it| it.tests.len()).sum::<usize>()
            ));
        }
        let status = match (&self.write_baseline, broken_off) {
            // A list of a part would make the rest look new.
            (_, Some(interrupt)) => {
                ExitCode::from(u8::try_from(128 + interrupt.signal).unwrap_or(1))
            }
            (Some(path), None) => {
                write_baseline(path, &outcomes)?;
                ExitCode::SUCCESS
            }
            (None, None) if worst.is_bug() => output::found(true),
            (None, None) => match without_network(&outcomes) {
                Some(who) => {
                    output::complain(&format!("expected a network, found none: {who}"));
                    ExitCode::from(2)
                }
                None => match never_ended(&outcomes) {
                    Some(who) => {
                        output::complain(&format!(
                            "expected {who} to end within {} s (--timeout), found no run that did",
                            options.limit.as_secs_f64()
                        ));
                        ExitCode::from(2)
                    }
                    None => output::found(false),
                },
            },
        };
        if flags.events {
            return Ok(status);
        }
        if self.schedule.json {
            output::json(&OfTests {
                packages: outcomes.iter().map(Tests::of).collect(),
                verdict: worst,
                seed: options.seed,
            })?;
        } else {
            output::print(|out| {
                for package in &without {
                    writeln!(
                        out,
                        "-     {}  no test files",
                        output::printable(&package.path)
                    )?;
                }
                outcomes.iter().try_for_each(|it| it.text(out))
            })?;
        }
        Ok(status)
    }

    fn known(&self) -> Result<Vec<String>> {
        let Some(path) = &self.baseline else {
            return Ok(Vec::new());
        };
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "expected a list of known verdicts (--write-baseline makes one), found {}",
                path.display()
            )
        })?;
        let lines = text.lines().map(str::trim);
        Ok(lines
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
            .map(str::to_owned)
            .collect())
    }
}

/// The tests that failed for want of a network: `TestFetch of example.com/fetch`.
fn without_network(outcomes: &[Outcome]) -> Option<String> {
    let each = outcomes.iter().flat_map(|outcome| {
        let lacks = |it: &&Tested| matches!(&it.found.worst, Some(it) if it.0.lacks_network);
        let tests = outcome.tests.iter().filter(lacks);
        tests.map(|it| format!("{} of {}", it.test, outcome.package))
    });
    let all: Vec<String> = each.collect();
    (!all.is_empty()).then(|| output::printable(&all.join(", ")))
}

/// The tests of which no run came to an end, and none showed why: nothing is known of them.
fn never_ended(outcomes: &[Outcome]) -> Option<String> {
    let each = outcomes.iter().flat_map(|outcome| {
        let is_one = |it: &&Tested| it.found.late > 0 && it.found.late == it.found.executions;
        let tests = outcome.tests.iter().filter(is_one);
        tests.map(|it| format!("{} of {}", it.test, outcome.package))
    });
    let all: Vec<String> = each.collect();
    (!all.is_empty()).then(|| output::printable(&all.join(", ")))
}

/// The list of what was found, each with the tests that show it.
fn write_baseline(path: &Path, outcomes: &[Outcome]) -> Result<()> {
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for outcome in outcomes {
        for tested in &outcome.tests {
            if let Some((judgement, ..)) = tested.bug()
                && judgement.verdict.is_bug()
            {
                let test = format!("{} {}", outcome.package, tested.test);
                labels.entry(judgement.label()).or_default().push(test);
            }
        }
    }
    let mut text = "# Verdicts that are known, for lockstep go test --baseline.\n".to_owned();
    for (label, tests) in &labels {
        text.push_str(&format!("# {}\n{label}\n", tests.join(", ")));
    }
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// What a test binary holds.
fn look(
    builder: &Builder,
    package: Package,
    number: usize,
    bin: &Path,
    flags: &Flags,
) -> Result<Built> {
    let file = bin.join(number.to_string());
    let program = Program::open(&file, &builder.toolchain.root, Some(&package.path))?;
    let pattern = flags.run.as_deref().unwrap_or(".");
    let pattern = pattern.split('/').next().unwrap_or(".");
    let tests = match tests(&file, &package.directory, pattern, &flags.test)? {
        Some(tests) => tests.into_iter().map(Some).collect(),
        None => vec![None],
    };
    Ok(Built {
        classes: program.classes(),
        file,
        number,
        program,
        tests,
        package,
    })
}

/// Packages side by side, as many as there are processors.
fn run_all(
    all: &[Built],
    options: &campaign::Options,
    flags: &Flags,
    keeper: Option<&Keeper<'_>>,
    sources: &Sources,
) -> Result<Vec<Outcome>> {
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(all.len());
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Result<Outcome>>>> =
        Mutex::new(all.iter().map(|_| None).collect());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(built) = all.get(index).filter(|_| interrupted().is_none()) else {
                return;
            };
            let outcome = run_package(built, options, flags, keeper, sources);
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes[index] = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // Where no thread can be had (`ulimit -u`, `ulimit -v`) this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.into_iter().flatten().collect()
}

fn run_package(
    built: &Built,
    options: &campaign::Options,
    flags: &Flags,
    keeper: Option<&Keeper<'_>>,
    sources: &Sources,
) -> Result<Outcome> {
    let symbols = Symbols::of(&built.program);
    let mut outcome = Outcome {
        package: built.package.path.clone(),
        builds: true,
        tests: Vec::new(),
        coverage: Coverage::new(),
    };
    let events = flags.of_package(&built.package.path);
    let began = Instant::now();
    events.start()?;
    let subject = |test: Option<&str>| Subject {
        file: &built.file,
        symbols: &symbols,
        classes: &built.classes,
        paths: &sources.paths,
        arguments: arguments(flags, test),
        directory: &built.package.directory,
    };
    let together = Together::new(subject(None), built.tests.len());
    let tested = |name: &str, found: campaign::Found, kept: &[usize]| Tested {
        test: name.to_owned(),
        kept: kept.get((found.shown_by as usize).wrapping_sub(1)).copied(),
        is_known: found
            .worst
            .as_ref()
            .is_some_and(|it| it.0.is_among(&options.known)),
        is_over: interrupted().is_none() || found.is_new,
        found,
    };
    let mut tell = |mut tested: Tested, began: Instant| {
        let printed = std::mem::take(&mut tested.found.output);
        let mut said = Vec::new();
        tested.text(&mut said)?;
        let texts = (printed.as_str(), &*String::from_utf8_lossy(&said));
        let passes = !tested.verdict().is_bug();
        events.tested(&tested.test, texts, passes, began.elapsed())?;
        outcome.coverage.merge(&tested.found.coverage);
        outcome.tests.push(tested);
        Ok::<(), anyhow::Error>(())
    };
    let mut are_healthy = true;
    for test in &built.tests {
        if interrupted().is_some() {
            break;
        }
        let test = test.as_deref();
        let name = test.unwrap_or(WHOLE);
        let began = Instant::now();
        events.run(name)?;
        let subject = subject(test);
        let mut kept = Vec::new();
        let mut found = subject.campaign(options, |run| {
            if let Some(keeper) = keeper {
                kept.push(keeper.keep(built.number, test, &subject.arguments, options, run)?);
            }
            Ok::<(), Stopped>(())
        })?;
        if found.runs == 0 {
            break;
        }
        if let Some(test) = test.filter(|_| found.is_new) {
            together.excuse(&mut found, test, &subject, options)?;
        }
        are_healthy &= found.late == 0 && found.is_healthy();
        tell(tested(name, found, &kept), began)?;
    }
    let package_began = began;
    let began = Instant::now();
    if are_healthy
        && interrupted().is_none()
        && let Some((found, run)) = together.find(options)?
    {
        events.run(TOGETHER)?;
        let arguments = &together.subject.arguments;
        let kept = keeper.map(|it| it.keep(built.number, None, arguments, options, &run));
        let kept: Vec<usize> = kept.transpose()?.into_iter().collect();
        tell(tested(TOGETHER, found, &kept), began)?;
    }
    let usages = sources
        .usages
        .iter()
        .flatten()
        .filter(|it| Path::new(&it.place.file).parent() == Some(&built.package.directory));
    outcome.coverage.expect(usages.cloned());
    events.over(!outcome.verdict().is_bug(), package_began.elapsed())?;
    Ok(outcome)
}

/// Why a campaign was given up.
#[derive(Debug)]
pub enum Stopped {
    Launch(LaunchError),
    Store(StoreError),
}

impl From<LaunchError> for Stopped {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<Stopped> for anyhow::Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Launch(error) => error.into(),
            Stopped::Store(error) => error.into(),
        }
    }
}

impl Keeper<'_> {
    /// Keeps a run; its number in the directory.
    fn keep(
        &self,
        program: usize,
        test: Option<&str>,
        arguments: &[OsString],
        options: &campaign::Options,
        run: &campaign::Run,
    ) -> Result<usize, Stopped> {
        // Nobody panics while it is locked.
        let mut campaign = self.campaign.lock().unwrap_or_else(PoisonError::into_inner);
        let row = row(program, test, arguments, options, run);
        campaign.runs.push(row);
        let number = campaign.runs.len();
        campaign
            .keep(self.directory, number, program, run)
            .map_err(Stopped::Store)?;
        Ok(number)
    }
}

/// The row of a run.
pub fn row(
    program: usize,
    test: Option<&str>,
    arguments: &[OsString],
    options: &campaign::Options,
    run: &campaign::Run,
) -> Row {
    Row {
        program,
        test: test.map(str::to_owned),
        arguments: arguments
            .iter()
            .map(|it| it.to_string_lossy().into_owned())
            .collect(),
        plan: run.plan.clone(),
        limit: options.limit.as_secs_f64(),
        end: run.outcome.end.clone(),
        verdict: run.judgement.verdict,
        sentence: run.judgement.sentence.clone(),
        seconds: run.outcome.took.as_secs_f64(),
    }
}

/// A directory for programs that are not kept.
pub struct Scratch(pub PathBuf);

/// What scratch directories are called, before the number of the process.
const SCRATCH: &str = "lockstep-go-";

impl Scratch {
    pub fn new() -> Result<Self> {
        let base = std::env::temp_dir();
        // A killed one could not tidy up.
        for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|it| it.strip_prefix(SCRATCH));
            let is_left = owner
                .filter(|it| it.bytes().all(|it| it.is_ascii_digit()))
                .is_some_and(|it| !Path::new("/proc").join(it).exists());
            if is_left {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let place = base.join(format!("{SCRATCH}{}", std::process::id()));
        std::fs::create_dir_all(&place)
            .with_context(|| format!("{} cannot be made", place.display()))?;
        Ok(Self(place))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The file of a program of a campaign that was kept.
pub fn kept_program(directory: &Path, index: usize) -> PathBuf {
    store::program(directory, index)
}
