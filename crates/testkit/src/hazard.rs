//! Runs a program with and without `lockstep record` and compares what the outside sees; what is
//! recorded must be whole and balanced, or say by itself what is missing.
//!
//! With `LOCKSTEP_TEST_OPTIONS` in the environment, its words are options of every recording: the same
//! tests once more with `--images all`, say.

use crate::command::{self, Outcome};
use crate::recording::traced_environment;
use crate::{Recipe, Scratch, tools};
use lockstep_trace::{Event, Run};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::Path;

/// A command that is run twice.
#[derive(Debug, Clone)]
pub struct Hazard {
    what: String,
    words: Vec<OsString>,
    options: Vec<String>,
    environment: Vec<(String, OsString)>,
    varies: bool,
    missing: bool,
}

/// A recording that went as the program does without us.
#[derive(Debug)]
pub struct Unharmed {
    /// What was recorded.
    pub run: Run,
    /// The recorded program's end and output.
    pub outcome: Outcome,
    what: String,
}

impl Hazard {
    /// The program of `recipe`; its tests are skipped where its compiler is not installed.
    #[must_use]
    pub fn new(recipe: &Recipe) -> Self {
        if tools::require(&[recipe.compiler_name()]) {
            let mut hazard = Self::command(&[recipe.build()]);
            hazard.what = recipe.describe();
            return hazard;
        }
        let mut hazard = Self::command(&["true"]);
        hazard.missing = true;
        hazard
    }

    /// A command; its tests are skipped where its first word is no program of this machine.
    #[must_use]
    pub fn command<S: Into<OsString> + Clone>(words: &[S]) -> Self {
        let words: Vec<OsString> = words.iter().cloned().map(Into::into).collect();
        let first = words[0].to_string_lossy().into_owned();
        let is_path = Path::new(&first).components().count() > 1;
        Self {
            what: format!("{words:?}"),
            words,
            options: Vec::new(),
            environment: Vec::new(),
            varies: false,
            missing: !is_path && !tools::require(&[&first]),
        }
    }

    /// More words behind.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.what = format!("{} {arguments:?}", self.what);
        self.words.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Words in front: another program that starts this one.
    #[must_use]
    pub fn through(mut self, launcher: &[String]) -> Self {
        self.words.splice(0..0, launcher.iter().map(OsString::from));
        self
    }

    /// Options of `lockstep record`.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Self {
        self.what = format!("{} {options:?}", self.what);
        self.options.extend(options.iter().map(|&o| o.to_owned()));
        self
    }

    /// A variable of both environments.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Its standard error is not compared: it names addresses, process ids or times.
    #[must_use]
    pub fn with_varying_stderr(mut self) -> Self {
        self.varies = true;
        self
    }

    /// How it ends by itself.
    #[must_use]
    pub fn plainly(&self) -> Outcome {
        let mut plain = command::command(&self.words);
        command::run(traced_environment(&mut plain).envs(self.environment.clone()))
    }

    /// Records it, and compares output and exit status with those of the program alone; the trace must
    /// be whole and balanced. `None` where a tool is missing.
    ///
    /// # Panics
    /// If something differs.
    #[must_use]
    pub fn unharmed(&self) -> Option<Unharmed> {
        let unharmed = self.compared()?;
        balanced(&unharmed.run, &unharmed.what);
        Some(unharmed)
    }

    /// The same without a look at what was recorded.
    ///
    /// # Panics
    /// If something differs.
    #[must_use]
    pub fn compared(&self) -> Option<Unharmed> {
        if self.missing {
            return None;
        }
        let what = &self.what;
        let plain = self.plainly();
        let scratch = Scratch::new("hazard");
        let recording = self.record(&scratch);
        let outcome = recording.outcome;
        assert_eq!(outcome.stdout, plain.stdout, "{what}: {outcome:#?}");
        assert_eq!(outcome.status, plain.status, "{what}: {outcome:#?}");
        assert!(!outcome.timed_out && !plain.timed_out, "{what}: time");
        if !self.varies {
            assert_eq!(words(&outcome), words(&plain), "{what}: standard error");
        }
        let run = Run::open(&recording.directory).unwrap_or_else(|e| panic!("{what}: {e}"));
        Some(Unharmed {
            run,
            outcome,
            what: what.clone(),
        })
    }

    /// Records it into `scratch`.
    #[must_use]
    pub fn record(&self, scratch: &Scratch) -> crate::Recording {
        let more = std::env::var("LOCKSTEP_TEST_OPTIONS").unwrap_or_default();
        let options: Vec<&str> = more
            .split_whitespace()
            .chain(self.options.iter().map(String::as_str))
            .collect();
        crate::recording::record_with(scratch, &options, &self.words, &self.environment)
    }
}

/// The lines of standard error that are the program's.
fn words(outcome: &Outcome) -> Vec<&str> {
    let own = |line: &&str| !line.starts_with("lockstep:") && !line.contains("panicked at");
    outcome.stderr.lines().filter(own).collect()
}

impl Unharmed {
    /// How often the function was called, in all threads of all processes.
    #[must_use]
    pub fn calls(&self, name: &str) -> usize {
        calls(&self.run, name)
    }

    /// These functions were called so often, exactly.
    ///
    /// # Panics
    /// If not.
    pub fn exactly(&self, expected: &[(&str, usize)]) -> &Self {
        for &(name, count) in expected {
            assert_eq!(self.calls(name), count, "{}: calls of {name}", self.what);
        }
        self
    }

    /// No call of the program's first thread is open at its end.
    ///
    /// # Panics
    /// If one is.
    pub fn ended(&self) -> &Self {
        let open = &self.run.processes[0].threads[0].open;
        assert!(open.is_empty(), "{}: open at the end: {open:?}", self.what);
        self
    }

    /// How deep the calls of a function are, in the program's first thread.
    #[must_use]
    pub fn depths(&self, name: &str) -> BTreeSet<usize> {
        let (mut depths, mut depth, mut tail) = (BTreeSet::new(), 0, false);
        for event in self.run.processes[0].threads[0].events() {
            match event {
                Event::Call(id) => {
                    depth += usize::from(!std::mem::take(&mut tail));
                    if self.run.function(id).name == name {
                        depths.insert(depth);
                    }
                }
                Event::Return => depth -= 1,
                Event::Tail => tail = true,
            }
        }
        depths
    }

    /// Events that were lost, in all.
    #[must_use]
    pub fn lost(&self) -> u64 {
        lost(&self.run)
    }
}

/// How often each function was called, in all threads of all processes.
#[must_use]
pub fn calls(run: &Run, name: &str) -> usize {
    let named = |id| {
        let function = run.function(id);
        function.name == name || function.linkage == name
    };
    let mut known: HashMap<u32, bool> = HashMap::new();
    run.processes
        .iter()
        .flat_map(|process| &process.threads)
        .flat_map(|thread| thread.events())
        .filter(|event| matches!(event, Event::Call(id) if *known.entry(id.0).or_insert_with(|| named(*id))))
        .count()
}

/// Events that were lost, whatever the reason.
#[must_use]
pub fn lost(run: &Run) -> u64 {
    let losses = run.processes.iter().flat_map(|process| &process.losses);
    losses.map(|loss| loss.1).sum()
}

/// No return without a call, no loss that is not counted on, no damage.
///
/// # Panics
/// If there is.
pub fn balanced(run: &Run, what: &str) {
    assert!(!run.processes.is_empty(), "{what}: nothing recorded");
    for process in &run.processes {
        // What a handler calls while it interrupts the recorder, and a vfork child before its exec,
        // is counted instead of recorded.
        let counted = ["signal inside the recorder", "vfork child"];
        let losses = process.losses.iter();
        let unexpected: Vec<_> = losses
            .filter(|loss| !counted.contains(&loss.0.as_str()))
            .collect();
        assert!(unexpected.is_empty(), "{what}: {unexpected:?}");
    }
    whole(run, what);
}

/// No return without a call, no damage.
///
/// # Panics
/// If there is.
pub fn whole(run: &Run, what: &str) {
    for thread in run.processes.iter().flat_map(|process| &process.threads) {
        let name = &thread.name;
        assert_eq!(thread.damage, None, "{what}: {name}");
        let (mut open, mut tail) = (0_u64, false);
        for (index, event) in thread.events().enumerate() {
            let calls = matches!(event, Event::Call(_));
            assert!(
                calls || open > 0,
                "{what}: {name}: nothing to end at {index}"
            );
            assert!(
                calls || !tail,
                "{what}: {name}: tail without call at {index}"
            );
            match event {
                Event::Call(_) => open += u64::from(!std::mem::take(&mut tail)),
                Event::Return => open -= 1,
                Event::Tail => tail = true,
            }
        }
    }
}

/// The variants in which a C program is built where linking and code generation matter.
pub const VARIANTS: &[&[&str]] = &[
    &["-O0"],
    &["-O2"],
    &["-O3", "-fno-plt"],
    &["-O1", "-Wl,-z,now", "-Wl,-z,relro"],
    &["-O2", "-no-pie", "-fno-pie"],
    &["-O2", "-fcf-protection", "-Wl,-z,ibtplt"],
    &["-O2", "-Wl,-z,lazy", "-fomit-frame-pointer"],
];

/// The whole matrix of one C program: compilers, optimisation, kinds of linking.
pub fn matrix(source: &str, mut also: impl FnMut(&Unharmed, &str)) {
    for compiler in ["gcc", "clang"] {
        for flags in VARIANTS {
            let recipe = Recipe::new(source).compiler(compiler).flags(flags);
            if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
                also(&unharmed, &recipe.describe());
            }
        }
    }
}
