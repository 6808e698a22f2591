//! The zoo of concurrency bugs in Go: what each kernel is, and runs of it under seeded delays.
//!
//! A kernel is a directory of `programs/go/zoo` (or `zoo121`) with `TestBug` and `TestRepaired`; `expected.txt` says its class and the verdicts
//! that are right, and a comment `cause` marks each line that may be named as the one to look at.

use crate::{Scratch, artifacts};
use anyhow::{Context, Result, ensure};
use lockstep_goroutines::build::Builder;
use lockstep_goroutines::campaign::{self, Found, Run, Subject};
use lockstep_goroutines::execution::Execution;
use lockstep_goroutines::launch::{Launch, LaunchError};
use lockstep_goroutines::paths::Paths;
use lockstep_goroutines::ring::Ring;
use lockstep_goroutines::schedule::{self, Plan};
use lockstep_goroutines::symbols::{Program, Symbols};
use lockstep_goroutines::{Judgement, Place, capture, output};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any kernel takes; what still moves then is judged as it stands.
pub const LIMIT: Duration = Duration::from_millis(2500);

/// The tests of [`Built::clocked`].
pub const CLOCKED: [&str; 4] = ["TestSleepers", "TestDeadlines", "TestTicker", "TestRetries"];

/// One kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its directory's name.
    pub name: String,
    /// `ab-ba`, `data-race`, ...
    pub class: String,
    /// Names of verdicts that are right for its bug.
    pub verdicts: Vec<String>,
    /// Lines with a comment `cause`.
    pub causes: Vec<u32>,
    module: PathBuf,
}

/// All kernels of all modules.
///
/// # Errors
/// Where a table or a source cannot be read.
pub fn kernels() -> Result<Vec<Kernel>> {
    let mut all = Vec::new();
    for module in ["zoo", "zoo121"] {
        let module = artifacts::repository().join("programs/go").join(module);
        let table = module.join("expected.txt");
        let text = std::fs::read_to_string(&table).with_context(|| table.display().to_string())?;
        for line in text.lines().filter(|it| !it.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, class, verdicts] = words[..] else {
                anyhow::bail!(
                    "{}: expected name, class, verdicts; found `{line}`",
                    table.display()
                );
            };
            let source = module.join(name).join("kernel_test.go");
            let source =
                std::fs::read_to_string(&source).with_context(|| source.display().to_string())?;
            let causes = (1..)
                .zip(source.lines())
                .filter(|(_, line)| line.contains("// cause"))
                .map(|(number, _)| number)
                .collect();
            all.push(Kernel {
                name: name.to_owned(),
                class: class.to_owned(),
                verdicts: verdicts.split(',').map(str::to_owned).collect(),
                causes,
                module: module.clone(),
            });
        }
    }
    Ok(all)
}

impl Kernel {
    /// Its source.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn source(&self) -> std::io::Result<String> {
        std::fs::read_to_string(self.module.join(&self.name).join("kernel_test.go"))
    }

    /// The name of its module's directory.
    pub fn module(&self) -> &str {
        let name = self.module.file_name().and_then(|it| it.to_str());
        name.unwrap_or_default()
    }

    /// Whether its bug shows only to the race detector.
    pub fn needs_race(&self) -> bool {
        self.verdicts.iter().any(|it| it == "race")
    }

    /// Whether a verdict is right for its bug.
    pub fn is_right(&self, judgement: &Judgement) -> bool {
        self.verdicts
            .iter()
            .any(|it| it == judgement.verdict.name())
    }

    /// Whether a place is one of the lines to look at.
    pub fn is_cause(&self, place: Option<&Place>) -> bool {
        place.is_some_and(|it| {
            it.file.ends_with(&format!("{}/kernel_test.go", self.name))
                && self.causes.contains(&it.line)
        })
    }
}

/// A kernel's test binary.
pub struct Built {
    program: Program,
    file: PathBuf,
    directory: PathBuf,
    classes: Vec<u8>,
    paths: Arc<Paths>,
    _scratch: Arc<Scratch>,
}

impl Built {
    /// Builds a kernel, with the race detector where it needs it.
    ///
    /// # Errors
    /// Where the go command or the overlay fails.
    pub fn of(kernel: &Kernel) -> Result<Self> {
        let built = Self::all(std::slice::from_ref(kernel))?;
        built.into_iter().next().context("no kernel")
    }

    /// Builds kernels, those of one module and kind at once, and gives them in their order.
    ///
    /// # Errors
    /// Where the go command or the overlay fails.
    pub fn all(kernels: &[Kernel]) -> Result<Vec<Self>> {
        let mut groups: BTreeMap<(&Path, bool), Vec<usize>> = BTreeMap::new();
        for (index, kernel) in kernels.iter().enumerate() {
            let group = (kernel.module.as_path(), kernel.needs_race());
            groups.entry(group).or_default().push(index);
        }
        let mut built: Vec<Option<Self>> = kernels.iter().map(|_| None).collect();
        for ((module, races), members) in groups {
            let flags: &[OsString] = if races { &["-race".into()] } else { &[] };
            let builder = Builder::new(module, flags)?;
            ensure!(
                builder.missing().is_empty(),
                "the overlay misses {:?}",
                builder.missing()
            );
            let scratch = Arc::new(Scratch::new("zoo"));
            let names = members.iter().map(|it| format!("./{}", kernels[*it].name));
            let packages = builder.packages(&names.collect::<Vec<_>>())?;
            builder.tests(&packages, scratch.path())?;
            let words: Vec<String> = packages.iter().map(|it| it.path.clone()).collect();
            let paths = Arc::new(builder.read(&words)?.1);
            for (number, package) in packages.iter().enumerate() {
                let is_it = |index: &&usize| package.directory.ends_with(&kernels[**index].name);
                let index = members.iter().find(is_it).context("another package")?;
                let file = scratch.join(number.to_string());
                let program = Program::open(&file, &builder.toolchain.root, None)?;
                built[*index] = Some(Self {
                    classes: program.classes(),
                    paths: paths.clone(),
                    program,
                    file,
                    directory: package.directory.clone(),
                    _scratch: Arc::clone(&scratch),
                });
            }
        }
        let all: Option<Vec<Self>> = built.into_iter().collect();
        all.context("a kernel that was not built")
    }

    /// Builds tests whose order of usages hangs on the clock.
    ///
    /// # Errors
    /// Where the go command or the overlay fails.
    pub fn clocked() -> Result<Self> {
        Self::of(&Kernel {
            name: "clocked".to_owned(),
            class: String::new(),
            verdicts: Vec::new(),
            causes: Vec::new(),
            module: artifacts::repository().join("programs/go/capture"),
        })
    }

    /// Builds the tests of a package of the standard library.
    ///
    /// # Errors
    /// Where the go command or the overlay fails.
    pub fn standard(package: &str) -> Result<Self> {
        let builder = Builder::new(&artifacts::repository().join("programs/go/zoo"), &[])?;
        let scratch = Scratch::new("zoo");
        let file = scratch.join("standard.test");
        builder.test(package, &file)?;
        let root = &builder.toolchain.root;
        let program = Program::open(&file, root, Some(package))?;
        Ok(Self {
            classes: program.classes(),
            paths: Arc::default(),
            program,
            file,
            directory: root.join("src").join(package),
            _scratch: Arc::new(scratch),
        })
    }

    /// What its source does with locks.
    #[must_use]
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Runs one of its tests as `lockstep go test` does, until something is found or `runs` are over; `each` sees
    /// every run.
    ///
    /// # Errors
    /// Where it was not started.
    pub fn campaign(
        &self,
        test: &str,
        seed: u64,
        runs: u32,
        mut each: impl FnMut(&Run),
    ) -> Result<Found, LaunchError> {
        let symbols = Symbols::of(&self.program);
        let subject = Subject {
            file: &self.file,
            symbols: &symbols,
            classes: &self.classes,
            paths: &self.paths,
            arguments: vec![
                format!("-test.run=^{test}$").into(),
                "-test.timeout=0".into(),
            ],
            directory: &self.directory,
        };
        let options = campaign::Options {
            runs,
            goes_on: false,
            known: Vec::new(),
            delays: None,
            seed,
            limit: LIMIT,
            coverage: None,
            most: 64 << 20,
            shows: false,
            interrupted: || None,
        };
        subject.campaign(&options, |run| {
            each(run);
            Ok(())
        })
    }

    /// Runs one of its tests under a schedule; also says how long that took.
    ///
    /// # Errors
    /// Where it was not started, or left no ring.
    pub fn run(&self, test: &str, plan: &Plan) -> Result<(Execution, Duration)> {
        let only = OsString::from(format!("-test.run=^{test}$"));
        self.launch(&[only, "-test.timeout=0".into()], plan, LIMIT)
    }

    /// Runs all its tests in one process.
    ///
    /// # Errors
    /// Where it was not started, or left no ring.
    pub fn run_all(&self, plan: &Plan, limit: Duration) -> Result<(Execution, Duration)> {
        let words = ["-test.short", "-test.timeout=0"].map(OsString::from);
        self.launch(&words, plan, limit)
    }

    fn launch(
        &self,
        arguments: &[OsString],
        plan: &Plan,
        limit: Duration,
    ) -> Result<(Execution, Duration)> {
        let started = Instant::now();
        let outcome = Launch {
            program: &self.file,
            arguments,
            directory: &self.directory,
            classes: &self.classes,
            policy: plan.policy,
            script: &plan.script,
            recorded: plan.recorded.as_ref(),
            processors: plan.processors,
            limit,
            most: 256 << 20,
            shows: false,
            interrupted: || None,
            is_over: None,
        }
        .run()?;
        let ring = Ring::read(&outcome.ring)?;
        let said = output::read(&outcome.text, &outcome.end);
        let symbols = Symbols::of(&self.program);
        let execution = capture::execution(&ring, &symbols, outcome.end, said);
        Ok((execution, started.elapsed()))
    }

    /// Where the binary is.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// The schedule of run `number` (from 0) of a campaign.
pub fn plan(seed: u64, number: u64) -> Plan {
    let number = u32::try_from(number).unwrap_or(u32::MAX - 1) + 1;
    schedule::plan(seed, number, None)
}
