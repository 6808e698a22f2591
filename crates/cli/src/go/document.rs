//! What `go test --json` and `go run --json` print.

use super::outcome::{Outcome, Tested};
use lockstep_goroutines::Place;
use lockstep_goroutines::campaign::Found;
use lockstep_goroutines::coverage::Totals;
use lockstep_goroutines::prediction::{Finding, Suspicion};
use lockstep_goroutines::schedule::Plan;
use lockstep_goroutines::verdict::{Concerned, Judgement, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

/// The results of testing Go packages. A run is one test, or program, under one schedule; it may take several executions.
#[derive(Serialize, JsonSchema)]
pub struct OfTests<'a> {
    /// The packages, sorted by name. Those that do not build come last.
    pub packages: Vec<Package<'a>>,
    /// The worst verdict of all packages.
    pub verdict: Verdict,
    /// The seed from which all schedules follow.
    pub seed: u64,
}

/// One package.
#[derive(Serialize, JsonSchema)]
// Long: its fields are the keys of the JSON, which are a contract.
pub struct Package<'a> {
    /// Import path of the package.
    package: &'a str,
    /// The worst verdict of its tests; `fail` if the package does not build.
    verdict: Verdict,
    /// Whether the package builds.
    builds: bool,
    /// Number of runs of the worst test.
    runs: u32,
    /// Number of executions of all tests. A run may take several.
    executions: u32,
    /// The run of the worst test that shows its verdict, from 1. Null if the verdict is `pass`, or the package does not
    /// build.
    first_run: Option<u32>,
    /// Seed of that run. Null if `first_run` is.
    seed: Option<u64>,
    /// Goroutines that the verdict is about.
    goroutines: &'a [Concerned],
    /// Number of requirements of the package's concurrency usages, and how many of them are covered.
    coverage: Totals,
    /// The worst test. Null if there are no tests.
    test: Option<&'a str>,
    /// What was found in that test, in one sentence. Null if nothing was.
    sentence: Option<&'a str>,
    /// The source line to look at first, `FILE:LINE`. Null if none is known.
    cause: Option<String>,
    /// The tests of the package.
    tests: Vec<Test<'a>>,
    /// What healthy runs make suspicious, but no run confirmed.
    suspicions: Vec<Suspected<'a>>,
}

/// One test.
#[derive(Serialize, JsonSchema)]
pub struct Test<'a> {
    /// Name of the test.
    test: &'a str,
    /// The worst verdict of its runs; `pass` if `--baseline` lists that verdict.
    verdict: Verdict,
    /// Number of runs.
    runs: u32,
    /// Number of executions. A run may take several.
    executions: u32,
    /// The run that shows the verdict, from 1. Null if the verdict is `pass`.
    first_run: Option<u32>,
    /// Seed of that run. Null if the verdict is `pass`.
    seed: Option<u64>,
    /// Number of the kept run that shows the verdict, for `go replay --run`. Null if none was kept.
    kept: Option<usize>,
    /// What was found, in one sentence. Null if the verdict is `pass`.
    sentence: Option<&'a str>,
    /// The source line to look at first, `FILE:LINE`. Null if none is known.
    cause: Option<String>,
    /// Whether `--baseline` lists the test's worst verdict.
    known: bool,
    /// Goroutines that the verdict is about.
    goroutines: &'a [Concerned],
}

/// The results of running a Go program. A run is the program under one schedule; it may take several executions.
#[derive(Serialize, JsonSchema)]
pub struct OfProgram<'a> {
    /// The main package.
    package: &'a str,
    /// The worst verdict of all runs.
    verdict: Verdict,
    /// Number of runs.
    runs: u32,
    /// Number of executions. A run may take several.
    executions: u32,
    /// The run that shows the verdict, from 1.
    first_run: u32,
    /// Seed of that run.
    seed: u64,
    /// Number of the kept run that shows the verdict, for `go replay --run`. Null if none was kept.
    kept: Option<usize>,
    /// What was found, in one sentence.
    sentence: &'a str,
    /// Goroutines that the verdict is about.
    goroutines: &'a [Concerned],
    /// Number of requirements of the program's concurrency usages, and how many of them are covered.
    coverage: Totals,
    /// What healthy runs make suspicious, but no run confirmed.
    suspicions: Vec<Suspected<'a>>,
}

/// Something that healthy runs make suspicious.
#[derive(Serialize, JsonSchema)]
pub struct Suspected<'a> {
    /// The test that shows it; `main` for a program.
    test: &'a str,
    /// What could go wrong.
    kind: Suspicion,
    /// The same in one sentence.
    sentence: &'a str,
    /// Source lines that take part, `FILE:LINE`. Look at the first one first.
    places: Vec<String>,
    /// Numbers of the goroutines that take part, as Go's runtime counts.
    goroutines: &'a [u64],
}

impl<'a> Package<'a> {
    pub fn of(outcome: &'a Outcome) -> Self {
        let worst = outcome.worst();
        let shown = worst.and_then(Tested::bug);
        let executions = outcome.tests.iter().map(|it| it.found.executions);
        let suspicions = outcome.suspicions().into_iter();
        Self {
            package: &outcome.package,
            verdict: outcome.verdict(),
            builds: outcome.builds,
            runs: worst.map_or(0, |it| it.found.runs),
            executions: executions.sum(),
            first_run: shown.map(|it| it.1),
            seed: shown.map(|it| it.2.policy.seed),
            goroutines: shown.map_or(&[], |it| &it.0.goroutines),
            coverage: outcome.coverage.totals(),
            test: worst.map(|it| it.test.as_str()),
            sentence: shown.map(|it| it.0.sentence.as_str()),
            cause: shown.and_then(|it| cause(&it.0)),
            tests: outcome.tests.iter().map(Test::of).collect(),
            suspicions: suspicions
                .map(|(test, it)| Suspected::of(test, it))
                .collect(),
        }
    }
}

impl<'a> Test<'a> {
    fn of(tested: &'a Tested) -> Self {
        let shown = tested.bug();
        Self {
            test: &tested.test,
            verdict: tested.verdict(),
            runs: tested.found.runs,
            executions: tested.found.executions,
            first_run: shown.map(|it| it.1),
            seed: shown.map(|it| it.2.policy.seed),
            kept: shown.and(tested.kept),
            sentence: shown.map(|it| it.0.sentence.as_str()),
            cause: shown.and_then(|it| cause(&it.0)),
            known: tested.is_known,
            goroutines: shown.map_or(&[], |it| &it.0.goroutines),
        }
    }
}

impl<'a> OfProgram<'a> {
    /// Of this program, whose worst run was this one.
    pub fn of(
        package: &'a str,
        found: &'a Found,
        (judgement, number, plan): &'a (Judgement, u32, Plan),
        kept: Option<usize>,
    ) -> Self {
        let suspected = found.suspected.iter();
        Self {
            package,
            verdict: judgement.verdict,
            runs: found.runs,
            executions: found.executions,
            first_run: *number,
            seed: plan.policy.seed,
            kept,
            sentence: &judgement.sentence,
            goroutines: &judgement.goroutines,
            coverage: found.coverage.totals(),
            suspicions: suspected.map(|it| Suspected::of("main", it)).collect(),
        }
    }
}

impl<'a> Suspected<'a> {
    fn of(test: &'a str, finding: &'a Finding) -> Self {
        Self {
            test,
            kind: finding.suspicion,
            sentence: &finding.sentence,
            places: finding.places.iter().map(line).collect(),
            goroutines: &finding.goroutines,
        }
    }
}

fn cause(judgement: &Judgement) -> Option<String> {
    judgement.cause.as_ref().map(line)
}

fn line(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}
