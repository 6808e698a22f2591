//! Runs a program again and again under different schedules until something is found.
//!
//! ```text
//! run ─► Execution ─► judge ─► bug? stop
//!            │
//!            ├─► failed by the clock? ─► once more, undisturbed; and again if it fails by its own word
//!            ├─► foresee ─► bad ends that are near ─► each tried at once, as part of this run
//!            └─► predict (of run 1) ─► where to delay ─► every second of the later runs
//! ```
//!
//! What a run foresees is tried with executions of its own, at most [`FIRST`] of the first run and [`LATER`] of each
//! later one; what they show that is new is foreseen from in turn. A suspicion counts only where one of them came to it.

use crate::capture;
use crate::coverage::Coverage;
use crate::execution::{End, Event, Execution, GoroutineId, Output};
use crate::foresight::Foresight;
use crate::launch::{Interrupted, IsOver, Launch, LaunchError, Outcome};
use crate::output;
use crate::paths::Paths;
use crate::prediction::{Delay, Finding, predict_with};
use crate::race;
use crate::ring::{Mode, Ring, kind};
use crate::schedule::{Plan, plan};
use crate::symbols::{OTHER, Symbols, USER, package};
use crate::tree::Place;
use crate::verdict::{Judgement, Verdict, is_own_word, judge, judge_meanwhile, waits};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

/// The argument of a test binary that says how many of its tests run side by side.
pub const PARALLEL: &str = "-test.parallel=";
/// How long a test binary may take to say which tests it has.
const LISTING: Duration = Duration::from_secs(20);
/// How many of the longest delays a place to steer by waits.
const STEERED: u8 = 16;

/// Executions with which what the first run foresees is tried, at most.
pub const FIRST: u32 = 16;
/// And what a later one does.
pub const LATER: u32 = 4;
/// After so many runs, one behind the other, that only their time limit ended, no other is made.
const SLOW: u32 = 3;
/// Plans of runs by delays alone, on all processors: with these, all tests together are run. And by how many bits delays are
/// longer, and fewer: on a busy machine it takes a while until another thread gets to run.
const DELAYED: [(u32, u32); 4] = [(6, 0), (16, 1), (26, 2), (36, 4)];
/// None begins later than this after the run did, but for those of [`DELAYED`] where an undisturbed run takes less than half of it.
pub const TRYING: Duration = Duration::from_secs(2);

/// What is run.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The program.
    pub file: &'a Path,
    /// What it holds.
    pub symbols: &'a Symbols<'a>,
    /// Whose code is where: `Program::classes`.
    pub classes: &'a [u8],
    /// What its source does with locks; empty where nobody looked.
    pub paths: &'a Paths,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub directory: &'a Path,
}

/// How often and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most runs.
    pub runs: u32,
    /// Whether it goes on behind a bug.
    pub goes_on: bool,
    /// Labels of verdicts that are known: it goes on behind these, and any other bug is worse.
    pub known: Vec<String>,
    /// Most delays of a run.
    pub delays: Option<u64>,
    /// What all schedules follow from.
    pub seed: u64,
    /// How long a run may take.
    pub limit: Duration,
    /// Percent of the requirements at which it is enough.
    pub coverage: Option<f64>,
    /// Most bytes of a ring.
    pub most: u64,
    /// Whether the program's output is shown as it comes.
    pub shows: bool,
    /// Whether somebody asked us to end: what was found so far is all, then.
    pub interrupted: Interrupted,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    /// From 1.
    pub number: u32,
    /// How it was made.
    pub plan: Plan,
    /// How it went.
    pub outcome: Outcome,
    /// What happened.
    pub execution: Execution,
    /// What that was.
    pub judgement: Judgement,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs that were made.
    pub runs: u32,
    /// Executions that they took, with those in which what they foresaw was tried.
    pub executions: u32,
    /// The worst judgement, the run where it was first, and that run's plan.
    pub worst: Option<(Judgement, u32, Plan)>,
    /// Which of the executions that was, from 1.
    pub shown_by: u32,
    /// Whether that is a bug, and not a known one.
    pub is_new: bool,
    /// What the program printed then.
    pub output: String,
    /// Executions that only their time limit ended, and that showed no bug.
    pub late: u32,
    /// What all runs together covered.
    pub coverage: Coverage,
    /// What was suspicious in the first run, where that was healthy, and no run came to.
    pub suspected: Vec<Finding>,
}

impl Subject<'_> {
    /// One run as planned.
    ///
    /// # Errors
    /// Where the program was not started.
    pub fn run(&self, number: u32, plan: Plan, options: &Options) -> Result<Run, LaunchError> {
        let mut classes = self.classes.to_vec();
        for offset in &plan.steer {
            if let Some(class) = classes.get_mut((*offset as usize).saturating_sub(1) / 32)
                && (*class == USER || *class == OTHER)
            {
                *class = USER | STEERED << 2;
            }
        }
        let outcome = Launch {
            program: self.file,
            arguments: &self.arguments,
            directory: self.directory,
            classes: &classes,
            policy: plan.policy,
            script: &plan.script,
            recorded: plan.recorded.as_ref(),
            processors: plan.processors,
            limit: options.limit,
            most: options.most,
            shows: options.shows,
            is_over: Some(IsOver(&|ring| is_over(ring, self.symbols))),
            interrupted: options.interrupted,
        }
        .run()?;
        let mut execution = read(&outcome, self.symbols);
        if let Some(recorded) = &plan.recorded {
            execution.stretched = recorded.stretched;
        }
        let judgement = judge(&execution);
        Ok(Run {
            number,
            plan,
            outcome,
            execution,
            judgement,
        })
    }

    /// The campaign's seed and what is run: else all programs of one shape would have the same luck. It is the same on
    /// every machine.
    fn seed(&self, seed: u64) -> u64 {
        let name = self.directory.file_name().unwrap_or_default();
        let of_machine = |it: &&OsString| it.to_string_lossy().starts_with(PARALLEL);
        let arguments = self.arguments.iter().filter(|it| !of_machine(it));
        let words = std::iter::once(name).chain(arguments.map(OsString::as_os_str));
        let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
        for byte in words.flat_map(|it| it.as_encoded_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    }

    /// Runs until there is a bug or enough; `each` sees every run.
    ///
    /// # Errors
    /// Where the program was not started, or `each` says so.
    pub fn campaign<E: From<LaunchError>>(
        &self,
        options: &Options,
        mut each: impl FnMut(&Run) -> Result<(), E>,
    ) -> Result<Found, E> {
        let mut found = Found::default();
        let mut suspicions: Vec<Vec<u32>> = Vec::new();
        let mut foresight = Foresight::default();
        let mut slow = 0;
        'runs: for number in 1..=options.runs {
            if (options.interrupted)().is_some() {
                break;
            }
            found.runs = number;
            let mut first = plan(self.seed(options.seed), number, options.delays);
            if number % 2 == 0 && !suspicions.is_empty() && options.delays != Some(0) {
                first.steer = suspicions[(number as usize / 2 - 1) % suspicions.len()].clone();
                if first.policy.mode != Mode::Turns {
                    // Steering is all there is, and both places wait.
                    first.policy.longest = first.policy.longest.max(100_000);
                    first.policy.mode = Mode::Sleep;
                }
            }
            let mut next = Some(first);
            let began = Instant::now();
            let mut calm = 0;
            let mut left = match (options.delays, number) {
                (Some(0), _) => 0,
                (_, 1) => FIRST,
                _ => LATER,
            };
            while let Some(plan) = next.take() {
                let is_first = plan.script.is_empty();
                let run = match self.run(number, plan, options) {
                    Err(LaunchError::Interrupted(_)) => {
                        found.runs -= u32::from(is_first);
                        break 'runs;
                    }
                    run => run?,
                };
                let is_new = is_new(&run.judgement, options);
                each(&run)?;
                if calm == 1 && is_own_word(&run.judgement, &run.execution) {
                    // Where the machine is busy, what goes by the clock may fail once without us.
                    calm = 2;
                    found.see(&run);
                    next = Some(run.plan);
                    continue;
                }
                found.take(&run, is_new);
                let is_bug = run.judgement.verdict.is_bug();
                // No schedule brings a network.
                if is_new && !options.goes_on || run.judgement.lacks_network {
                    break 'runs;
                }
                if is_first {
                    slow = if is_late(&run) { slow + 1 } else { 0 };
                }
                if slow == SLOW && !options.goes_on {
                    break 'runs;
                }
                let enough = |percent: f64| found.coverage.totals().percent() >= percent;
                if options.coverage.is_some_and(enough) || (options.interrupted)().is_some() {
                    break 'runs;
                }
                if number == 1 && is_first {
                    let findings = predict_with(&run.execution, self.paths);
                    suspicions = self.steering(&findings, &run);
                    if run.judgement.verdict == Verdict::Pass {
                        found.suspected = findings;
                    }
                }
                if run.judgement.asks_for_calm && calm == 0 {
                    // Whether it fails by itself.
                    calm = 1;
                    let seed = self.seed(options.seed);
                    next = Some(crate::schedule::plan(seed, number, Some(0)));
                    continue;
                }
                if is_bug || calm > 0 || left == 0 || began.elapsed() > TRYING {
                    break;
                }
                left -= 1;
                foresight.learn(&run.execution);
                if let Some(scenario) = foresight.propose() {
                    next = Some(run.plan.with_script(scenario.script));
                }
            }
        }
        found.confirm();
        Ok(found)
    }

    /// Runs it once, undisturbed; `None` where somebody asked us to end.
    ///
    /// # Errors
    /// Where the program was not started.
    pub fn calm(&self, options: &Options) -> Result<Option<Run>, LaunchError> {
        let plan = plan(self.seed(options.seed), 1, Some(0));
        match self.run(1, plan, options) {
            Err(LaunchError::Interrupted(_)) => Ok(None),
            run => run.map(Some),
        }
    }

    /// A crash, a race or a failure that shows where nothing disturbs it; what fails by its own word, twice. Or a crash
    /// or a race that shows where parallel tests begin one a little before the other, and are not over at once, in a few
    /// runs as long as they are short.
    ///
    /// # Errors
    /// Where the program was not started.
    pub fn fault(&self, options: &Options) -> Result<Option<(Found, Run)>, LaunchError> {
        let is_fault = |run: &Run| {
            let verdict = run.judgement.verdict;
            let counts = matches!(verdict, Verdict::Fail | Verdict::Race | Verdict::Crash);
            counts && is_new(&run.judgement, options)
        };
        let says_so = |run: &Run| is_own_word(&run.judgement, &run.execution);
        let began = Instant::now();
        let mut run = self.calm(options)?.filter(is_fault);
        if let Some(first) = run.take_if(|it| says_so(it)) {
            let failed = first.execution.output.failed_tests;
            let is_same = |it: &Run| is_fault(it) && it.execution.output.failed_tests == failed;
            run = self.calm(options)?.filter(is_same);
        }
        // What is over in a moment is tried as often on a busy machine, where a moment is longer.
        let is_short = began.elapsed() < TRYING / 2;
        let steer = self.symbols.offsets(&is_parallel);
        if run.is_none() && !steer.is_empty() && options.delays != Some(0) {
            for (number, longer) in DELAYED {
                if began.elapsed() > TRYING && !is_short {
                    break;
                }
                let mut plan = plan(self.seed(options.seed), number, options.delays);
                plan.policy.longest <<= longer;
                plan.policy.chance >>= longer;
                plan.steer.clone_from(&steer);
                run = match self.run(1, plan, options) {
                    Err(LaunchError::Interrupted(_)) => None,
                    run => Some(run?).filter(|it| is_fault(it) && !says_so(it)),
                };
                if run.is_some() {
                    break;
                }
            }
        }
        Ok(run.map(|run| {
            let mut found = Found {
                runs: 1,
                ..Found::default()
            };
            found.take(&run, true);
            (found, run)
        }))
    }

    /// Where each suspicion of a run says that delays may show it.
    fn steering(&self, findings: &[Finding], run: &Run) -> Vec<Vec<u32>> {
        let Ok(ring) = Ring::read(&run.outcome.ring) else {
            return Vec::new();
        };
        let mut wanted: Vec<BTreeSet<Delay>> = Vec::new();
        for finding in findings {
            let steer: BTreeSet<Delay> = finding.steer.iter().cloned().collect();
            if !steer.is_empty() && !wanted.contains(&steer) {
                wanted.push(steer);
            }
        }
        if wanted.is_empty() {
            return Vec::new();
        }
        let places: BTreeSet<u32> = ring
            .records
            .iter()
            .filter(|it| it.kind <= kind::BROADCAST || it.kind == kind::CREATE)
            .map(|it| {
                if it.kind == kind::CREATE {
                    it.word(1) as u32
                } else {
                    it.place
                }
            })
            .collect();
        let matches = |delays: &BTreeSet<Delay>| -> Vec<u32> {
            let is_there = |offset: &u32| {
                self.symbols.place(*offset).is_some_and(|site| {
                    delays
                        .iter()
                        .any(|it| it.place.line == site.line && it.place.file == site.file)
                })
            };
            places.iter().copied().filter(is_there).collect()
        };
        wanted
            .iter()
            .map(matches)
            .filter(|it| !it.is_empty())
            .collect()
    }
}

impl Found {
    /// Whether no bug was found, known or not, and there was what the program needs.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let worst = self.worst.as_ref().map(|it| &it.0);
        worst.is_none_or(|it| !it.verdict.is_bug() && !it.lacks_network)
    }

    fn see(&mut self, run: &Run) {
        self.executions += 1;
        self.late += u32::from(is_late(run));
        self.coverage.add(&run.execution);
    }

    fn take(&mut self, run: &Run, is_new: bool) {
        self.see(run);
        let is_worse = self
            .worst
            .as_ref()
            .is_none_or(|it| (self.is_new, it.0.verdict) < (is_new, run.judgement.verdict));
        if is_worse {
            self.is_new = is_new;
            self.shown_by = self.executions;
            self.worst = Some((run.judgement.clone(), run.number, run.plan.clone()));
            self.output.clone_from(&run.outcome.text);
        }
    }

    /// What a bug came of is no suspicion any more.
    fn confirm(&mut self) {
        let Some((judgement, ..)) = &self.worst else {
            return;
        };
        if judgement.verdict.is_bug() {
            let told: Vec<&Place> = judgement.cause.iter().chain(&judgement.related).collect();
            let is_open = |it: &Finding| !it.places.iter().any(|place| told.contains(&place));
            self.suspected.retain(is_open);
        }
    }
}

/// Whether parallel tests come through this function of package testing before they go on, or where they are over. Both
/// take the lock of what counts them: who comes to it behind one that is over is ordered by that, and shows no race with it.
fn is_parallel(function: &str) -> bool {
    let is_one = |it: &&str| function.ends_with(*it);
    function.starts_with("testing.(*") && [").waitParallel", ").release"].iter().any(is_one)
}

/// Whether only its time limit ended it, and it showed no bug.
fn is_late(run: &Run) -> bool {
    run.outcome.end == End::TimedOut && !run.judgement.verdict.is_bug()
}

/// Whether it is a bug, and none of those that are known.
fn is_new(judgement: &Judgement, options: &Options) -> bool {
    judgement.verdict.is_bug() && !judgement.is_among(&options.known)
}

/// Whether goroutines wait for ever that main or the test hangs on, or for one another, whatever else may move: a number
/// for where they came to, another one once one of them has done anything.
fn is_over(ring: &[u8], symbols: &Symbols<'_>) -> Option<u64> {
    let ring = Ring::read(ring).unwrap_or_default();
    let execution = capture::execution(&ring, symbols, End::TimedOut, Output::default());
    let verdict = judge_meanwhile(&execution).verdict;
    // A livelock is told only at the limit: many rounds may be all that a test is.
    if execution.main_ended
        || !matches!(verdict, Verdict::GlobalDeadlock | Verdict::PartialDeadlock)
    {
        return None;
    }
    let waiting = waits(&execution);
    let stuck: BTreeSet<GoroutineId> = waiting.stuck().map(|it| it.goroutine).collect();
    let did = |it: &&Event| it.goroutine.is_some_and(|it| stuck.contains(&it));
    let mut hasher = DefaultHasher::new();
    stuck.hash(&mut hasher);
    execution
        .events
        .iter()
        .filter(did)
        .count()
        .hash(&mut hasher);
    Some(hasher.finish())
}

/// What a run's ring and output tell.
#[must_use]
pub fn read(outcome: &Outcome, symbols: &Symbols<'_>) -> Execution {
    // A program that ended before its runtime began has a ring without records.
    let ring = Ring::read(&outcome.ring).unwrap_or_default();
    let mut said = output::read(&outcome.text, &outcome.end);
    let functions = said.races.iter().flat_map(|it| race::functions(it));
    let own = functions
        .filter(|it| symbols.is_user(it))
        .filter_map(package);
    said.own = own.collect::<BTreeSet<_>>().into_iter().collect();
    let mut execution = capture::execution(&ring, symbols, outcome.end.clone(), said);
    execution.outside = outcome.outside;
    execution
}

/// The tests that `file`, a test binary, has: those whose name `pattern` finds. `None` where it does not come so far
/// as to list them.
///
/// # Errors
/// Where it was not started.
pub fn tests(
    file: &Path,
    directory: &Path,
    pattern: &str,
    flags: &[OsString],
) -> Result<Option<Vec<String>>, LaunchError> {
    let mut arguments = vec![format!("-test.list={pattern}").into()];
    arguments.extend(flags.iter().cloned());
    let outcome = Launch {
        program: file,
        arguments: &arguments,
        directory,
        classes: &[],
        policy: plan(0, 1, Some(0)).policy,
        script: &[],
        recorded: None,
        processors: None,
        limit: LISTING,
        most: 1 << 20,
        shows: false,
        is_over: None,
        interrupted: || None,
    }
    .run()?;
    if outcome.end != End::Exited(0) {
        return Ok(None);
    }
    // Both streams are here: names of tests, not lines of a log.
    let is_test = |it: &&str| {
        it.chars().all(|c| c == '_' || c.is_alphanumeric())
            && ["Test", "Example", "Fuzz"]
                .iter()
                .any(|kind| it.starts_with(kind))
    };
    let tests = outcome.text.lines().filter(is_test).map(str::to_owned);
    Ok(Some(tests.collect()))
}
