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

/// What came of the tests of packages.
#[derive(Serialize, JsonSchema)]
pub struct OfTests<'a> {
    /// The packages, in the order of their names; those that do not build come last.
    pub packages: Vec<Package<'a>>,
    /// The worst verdict.
    pub verdict: Verdict,
    /// The seed of all schedules.
    pub seed: u64,
}

/// One package.
#[derive(Serialize, JsonSchema)]
// Long: its fields are the keys of the JSON, which are a contract.
pub struct Package<'a> {
    /// Its path.
    package: &'a str,
    /// The worst verdict of its tests.
    verdict: Verdict,
    /// Whether it builds.
    builds: bool,
    /// Number of runs of the worst test.
    runs: u32,
    /// Number of executions of all tests: a run may take several.
    executions: u32,
    /// The run of the worst test that shows its verdict, from 1.
    first_run: Option<u32>,
    /// The seed of that run.
    seed: Option<u64>,
    /// The goroutines that the verdict is about.
    goroutines: &'a [Concerned],
    /// How many requirements of its concurrency usages were covered.
    coverage: Totals,
    /// The worst test.
    test: Option<&'a str>,
    /// What was found in it, in a sentence.
    sentence: Option<&'a str>,
    /// The line to look at first, `FILE:LINE`.
    cause: Option<String>,
    /// Its tests.
    tests: Vec<Test<'a>>,
    /// What healthy runs make suspicious, and no run confirmed.
    suspicions: Vec<Suspected<'a>>,
}

/// One test.
#[derive(Serialize, JsonSchema)]
pub struct Test<'a> {
    /// Its name.
    test: &'a str,
    /// The worst verdict of its runs; `pass` if that one is known (`--baseline`).
    verdict: Verdict,
    /// Number of runs.
    runs: u32,
    /// Number of executions: a run may take several.
    executions: u32,
    /// The run that shows the verdict, from 1.
    first_run: Option<u32>,
    /// The seed of that run.
    seed: Option<u64>,
    /// The number of the kept execution that shows it: `go replay --run`.
    kept: Option<usize>,
    /// What was found, in a sentence.
    sentence: Option<&'a str>,
    /// The line to look at first, `FILE:LINE`.
    cause: Option<String>,
    /// Whether the verdict is known (`--baseline`).
    known: bool,
    /// The goroutines that the verdict is about.
    goroutines: &'a [Concerned],
}

/// What came of the runs of a program.
#[derive(Serialize, JsonSchema)]
pub struct OfProgram<'a> {
    /// The main package.
    package: &'a str,
    /// The worst verdict.
    verdict: Verdict,
    /// Number of runs.
    runs: u32,
    /// Number of executions: a run may take several.
    executions: u32,
    /// The run that shows the verdict, from 1.
    first_run: u32,
    /// The seed of that run.
    seed: u64,
    /// The number of the kept execution that shows it: `go replay --run`.
    kept: Option<usize>,
    /// What was found, in a sentence.
    sentence: &'a str,
    /// The goroutines that the verdict is about.
    goroutines: &'a [Concerned],
    /// How many requirements of its concurrency usages were covered.
    coverage: Totals,
    /// What healthy runs make suspicious, and no run confirmed.
    suspicions: Vec<Suspected<'a>>,
}

/// What healthy runs make suspicious.
#[derive(Serialize, JsonSchema)]
pub struct Suspected<'a> {
    /// The test that shows it; `main` of a program.
    test: &'a str,
    /// What could go wrong.
    kind: Suspicion,
    /// The same in a sentence.
    sentence: &'a str,
    /// Lines that take part, `FILE:LINE`; the first is the one to look at first.
    places: Vec<String>,
    /// Goroutines that take part, by the runtime's number.
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
