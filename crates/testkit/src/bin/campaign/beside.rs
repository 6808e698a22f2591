//! `campaign go --beside`: the zoo under other detectors, and in how many runs each finds its bugs.
//!
//! ```text
//! programs/go/zoo ─► target/beside/DETECTOR/   a copy, with what the detector needs beside each kernel ─► go test -c
//! ```
//! A run finds a bug where the program itself says so: it ends with another status than 0. One that hangs says nothing;
//! it is ended, and a kernel that hung so often is given up. The detectors come through the Go module proxy when they
//! are asked for, into `target/`. Yields before usages, as published, and ours are judged by what goroutines did.

use anyhow::{Context, Result, ensure};
use lockstep_goroutines::judge;
use lockstep_goroutines::ring::Mode;
use lockstep_testkit::artifacts;
use lockstep_testkit::zoo::{self, Built, Kernel};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Longer than any kernel takes by itself, and longer than a detector waits for a lock.
const LIMIT: Duration = Duration::from_millis(1500);
/// Hangs after which a kernel is given up.
const HANGS: u32 = 5;
/// Delays of the published method: any number of yields up to this.
const BOUNDS: [u64; 5] = [0, 1, 2, 3, 4];

/// A detector that is built into the program.
struct Detector {
    name: &'static str,
    /// Modules that it needs.
    modules: &'static [&'static str],
    /// What `sync` is imported as.
    sync: Option<&'static str>,
    /// A file of each kernel's package, behind `package NAME`.
    file: &'static str,
    /// The test that is run.
    test: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const DETECTORS: [Detector; 5] = [
    Detector {
        name: "go test",
        modules: &[],
        sync: None,
        file: "",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "goleak",
        modules: &["go.uber.org/goleak@v1.3.0"],
        sync: None,
        file: "
import (\"testing\"; \"go.uber.org/goleak\")
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "leak profile",
        modules: &[],
        sync: None,
        file: "
import (\"os\"; \"runtime/pprof\"; \"strings\"; \"testing\"; \"time\")
func look() {
	var text strings.Builder
	pprof.Lookup(\"goroutineleak\").WriteTo(&text, 2)
	if strings.Contains(text.String(), \"(leaked)\") {
		os.Exit(3)
	}
}
func TestMain(m *testing.M) {
	time.AfterFunc(500*time.Millisecond, look)
	code := m.Run()
	look()
	os.Exit(code)
}
",
        test: "TestBug",
        environment: &[("GOEXPERIMENT", "goroutineleakprofile")],
    },
    Detector {
        name: "go-deadlock",
        modules: &["github.com/sasha-s/go-deadlock@v0.3.5"],
        sync: Some("github.com/sasha-s/go-deadlock"),
        file: "
import (\"os\"; \"testing\"; \"time\"; \"github.com/sasha-s/go-deadlock\")
func TestMain(m *testing.M) {
	deadlock.Opts.DeadlockTimeout = 500 * time.Millisecond
	os.Exit(m.Run())
}
",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "synctest",
        modules: &[],
        sync: None,
        file: "
import (\"testing\"; \"testing/synctest\")
func TestInBubble(t *testing.T) { synctest.Test(t, TestBug) }
",
        test: "TestInBubble",
        environment: &[("GODEBUG", "asynctimerchan=0")],
    },
];

/// In which run a kernel's bug was found, from 1; 0: in none.
struct Row {
    detector: String,
    kernel: String,
    found: u64,
    milliseconds: u128,
}

/// Makes the table.
pub fn run(runs: u64, seed: u64, only: &[String]) -> Result<ExitCode> {
    let directory = artifacts::target().join("campaign");
    fs::create_dir_all(&directory)?;
    let path = directory.join(format!("beside-{seed}-{runs}.csv"));
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut rows: Vec<Row> = before.lines().filter_map(Row::read).collect();
    let mut table = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    let mut kernels = zoo::kernels()?;
    kernels.retain(|it| only.is_empty() || only.iter().any(|part| it.name.contains(part)));
    let mut keep = |rows: &mut Vec<Row>, row: Row| -> Result<()> {
        writeln!(table, "{}", row.csv())?;
        rows.push(row);
        Ok(())
    };
    let is_there = |rows: &[Row], name: &str, kernel: &Kernel| {
        rows.iter()
            .any(|it| it.detector == name && it.kernel == kernel.name)
    };
    for detector in &DETECTORS {
        let left: Vec<&Kernel> = kernels
            .iter()
            .filter(|it| !is_there(&rows, detector.name, it))
            .collect();
        if left.is_empty() {
            continue;
        }
        let place = match detector.place() {
            Ok(place) => place,
            Err(error) => {
                println!("{}: left out: {error:#}", detector.name);
                continue;
            }
        };
        for kernel in left {
            let began = Instant::now();
            // One that does not build with it (another type of lock) is not found by it.
            let found = match detector.build(&place, kernel) {
                Ok(file) => detector.found(&file, runs),
                Err(error) => {
                    println!("{}: {}: {error:#}", detector.name, kernel.name);
                    0
                }
            };
            keep(&mut rows, Row::of(detector.name, kernel, found, began))?;
        }
    }
    let built = Built::all(&kernels)?;
    for (kernel, built) in kernels.iter().zip(&built) {
        for bound in BOUNDS {
            let name = format!("yields, D={bound}");
            if !is_there(&rows, &name, kernel) {
                let began = Instant::now();
                let found = yields(built, seed, runs, bound)?;
                keep(&mut rows, Row::of(&name, kernel, found, began))?;
            }
        }
        if !is_there(&rows, "lockstep", kernel) {
            let began = Instant::now();
            let found = built.campaign("TestBug", seed, u32::try_from(runs)?, |_| {})?;
            let bug = found.worst.filter(|it| it.0.verdict.is_bug());
            let found = bug.map_or(0, |it| u64::from(it.1));
            keep(&mut rows, Row::of("lockstep", kernel, found, began))?;
        }
    }
    print!("{}", summary(&rows, runs));
    Ok(ExitCode::SUCCESS)
}

/// The run in which yields before usages, half of them and at most `bound`, show a bug.
fn yields(built: &Built, seed: u64, runs: u64, bound: u64) -> Result<u64> {
    for number in 1..=runs {
        let mut plan = zoo::plan(seed, number - 1);
        plan.processors = None;
        plan.policy.steady = false;
        plan.policy.mode = if bound == 0 { Mode::None } else { Mode::Yield };
        (plan.policy.chance, plan.policy.bound) = (128, bound);
        let (execution, _) = built.run("TestBug", &plan)?;
        if judge(&execution).verdict.is_bug() {
            return Ok(number);
        }
    }
    Ok(0)
}

impl Detector {
    /// Its copy of the modules of the zoo.
    fn place(&self) -> Result<PathBuf> {
        let place = artifacts::target()
            .join("beside")
            .join(self.name.replace(' ', "-"));
        for module in ["zoo", "zoo121"] {
            let to = place.join(module);
            fs::create_dir_all(&to)?;
            let from = artifacts::repository().join("programs/go").join(module);
            fs::copy(from.join("go.mod"), to.join("go.mod"))?;
            for name in self.modules {
                self.go(&to, &["get", name])?;
            }
        }
        Ok(place)
    }

    /// The test binary of a kernel.
    fn build(&self, place: &Path, kernel: &Kernel) -> Result<PathBuf> {
        let mut source = kernel.source()?;
        let mut more = format!("package {}\n{}", kernel.name, self.file);
        if let Some(sync) = self.sync {
            if !source.contains("\"sync\"") {
                // Nothing to replace, and nothing that it could see.
                more = format!("package {}\n", kernel.name);
            }
            source = source.replace("\"sync\"", &format!("sync \"{sync}\""));
        }
        let module = place.join(kernel.module());
        let directory = module.join(&kernel.name);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("kernel_test.go"), source)?;
        fs::write(directory.join("detector_test.go"), more)?;
        let file = directory.join("kernel.test");
        let mut words = vec!["test", "-c", "-vet=off", "-o"];
        let (path, package) = (file.to_string_lossy(), format!("./{}", kernel.name));
        words.push(&path);
        if kernel.needs_race() {
            words.push("-race");
        }
        words.push(&package);
        self.go(&module, &words)?;
        Ok(file)
    }

    fn go(&self, directory: &Path, words: &[&str]) -> Result<()> {
        let output = Command::new("go")
            .args(words)
            .env("GOFLAGS", "-mod=mod")
            .envs(
                self.environment
                    .iter()
                    .filter(|it| it.0 == "GOEXPERIMENT")
                    .copied(),
            )
            .current_dir(directory)
            .output()
            .context("go was not started")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said
            .lines()
            .find(|it| !it.starts_with('#'))
            .unwrap_or_default();
        ensure!(output.status.success(), "go {}: {line}", words[0]);
        Ok(())
    }

    /// In which run it says something.
    fn found(&self, file: &Path, runs: u64) -> u64 {
        let mut hangs = 0;
        for number in 1..=runs {
            match self.says(file) {
                Some(true) => return number,
                Some(false) => {}
                None => hangs += 1,
            }
            if hangs == HANGS {
                break;
            }
        }
        0
    }

    /// Whether a run says that something is wrong; `None` where it hangs.
    fn says(&self, file: &Path) -> Option<bool> {
        let mut child = Command::new(file)
            .arg(format!("-test.run=^{}$", self.test))
            .arg("-test.timeout=0")
            // Else the race detector waits a second at each exit.
            .env("GORACE", "atexit_sleep_ms=0")
            .envs(self.environment.iter().copied())
            .current_dir(file.parent()?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(!status.success());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }
}

impl Row {
    fn of(detector: &str, kernel: &Kernel, found: u64, began: Instant) -> Self {
        Self {
            detector: detector.to_owned(),
            kernel: kernel.name.clone(),
            found,
            milliseconds: began.elapsed().as_millis(),
        }
    }

    fn csv(&self) -> String {
        let detector = self.detector.replace(',', ";");
        format!(
            "{detector},{},{},{}",
            self.kernel, self.found, self.milliseconds
        )
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(',');
        let mut next = || words.next();
        Some(Self {
            detector: next()?.replace(';', ","),
            kernel: next()?.to_owned(),
            found: next()?.parse().ok()?,
            milliseconds: next()?.parse().ok()?,
        })
    }
}

fn summary(rows: &[Row], runs: u64) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.detector.as_str()) {
            names.push(&row.detector);
        }
    }
    let last = format!("<={runs}");
    let mut text = format!(
        "{:<14}{:>8}{:>18}{:>18}{:>18}{:>9}\n",
        "detector", "kernels", "run 1", "<=10", last, "seconds"
    );
    for name in names {
        let own: Vec<&Row> = rows.iter().filter(|it| it.detector == name).collect();
        let within = |most: u64| {
            let found = own
                .iter()
                .filter(|it| it.found > 0 && it.found <= most)
                .count();
            let (low, high) = wilson(found as f64, own.len() as f64);
            format!("{found} ({:.0}-{:.0} %)", low * 100.0, high * 100.0)
        };
        let seconds = own.iter().map(|it| it.milliseconds).sum::<u128>() as f64 / 1000.0;
        // A string takes whatever is written to it.
        let _ = writeln!(
            text,
            "{name:<14}{:>8}{:>18}{:>18}{:>18}{seconds:>9.1}",
            own.len(),
            within(1),
            within(10),
            within(runs)
        );
    }
    text
}

/// The 95 % interval of a share.
fn wilson(found: f64, of: f64) -> (f64, f64) {
    const Z: f64 = 1.96;
    let (share, square) = (found / of, Z * Z);
    let middle = share + square / (2.0 * of);
    let half = Z * (share * (1.0 - share) / of + square / (4.0 * of * of)).sqrt();
    let whole = 1.0 + square / of;
    ((middle - half) / whole, (middle + half) / whole)
}
