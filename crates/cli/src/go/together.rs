//! What only all tests of a package in one process show, as go test runs them: that some rest on what others leave
//! behind, or do not go with others.

use lockstep_goroutines::campaign::{Found, Options, Run, Subject};
use lockstep_goroutines::execution::End;
use lockstep_goroutines::launch::LaunchError;
use lockstep_goroutines::verdict::Verdict;
use std::cell::OnceCell;

/// What they are called where only all of them show a bug.
pub const TOGETHER: &str = "all tests together";

/// Who fails now and then, alone and together, hardly ever does so as often on one side and never on the other.
const TIMES: usize = 3;

/// All tests of a package that were asked for, in one process.
pub struct Together<'a> {
    pub subject: Subject<'a>,
    tests: usize,
    /// Which of them fail in any of some undisturbed runs; nothing where one does not come to its end.
    failed: OnceCell<Option<Vec<String>>>,
}

impl<'a> Together<'a> {
    pub fn new(subject: Subject<'a>, tests: usize) -> Self {
        Self {
            subject,
            tests,
            failed: OnceCell::new(),
        }
    }

    fn passes(&self, test: &str, options: &Options) -> Result<bool, LaunchError> {
        if self.failed.get().is_none() {
            let mut failed = Some(Vec::new());
            for _ in 0..TIMES {
                let run = self.subject.calm(options)?;
                match (run.and_then(failed_in), &mut failed) {
                    (Some(more), Some(failed)) => failed.extend(more),
                    _ => failed = None,
                }
                if failed.is_none() {
                    break;
                }
            }
            let _ = self.failed.set(failed);
        }
        let failed = self.failed.get().and_then(Option::as_ref);
        Ok(failed.is_some_and(|it| it.iter().all(|it| it != test)))
    }

    /// A test that fails by itself whatever the schedule, and passes behind the others, may rest on what they leave
    /// behind: go test would not say that it fails.
    pub fn excuse(
        &self,
        found: &mut Found,
        test: &str,
        alone: &Subject<'_>,
        options: &Options,
    ) -> Result<(), LaunchError> {
        let fails = |it: Verdict| matches!(it, Verdict::Fail | Verdict::Crash);
        let found_so = found.worst.as_ref().is_some_and(|it| fails(it.0.verdict));
        if self.tests < 2 || !found_so {
            return Ok(());
        }
        for _ in 0..TIMES {
            let calm = alone.calm(options)?;
            if !calm.is_some_and(|it| fails(it.judgement.verdict)) {
                return Ok(());
            }
        }
        if self.passes(test, options)?
            && let Some((judgement, ..)) = &mut found.worst
        {
            judgement.verdict = Verdict::Inconclusive;
            judgement.sentence = format!(
                "{test} fails by itself, and passes together with the other tests of its package; by itself: {}",
                judgement.sentence
            );
            found.is_new = false;
        }
        Ok(())
    }

    /// A crash, a race or a failure of tests of which each by itself is healthy, and the run that shows it.
    pub fn find(&self, options: &Options) -> Result<Option<(Found, Run)>, LaunchError> {
        if self.tests < 2 {
            return Ok(None);
        }
        let Some((mut found, run)) = self.subject.fault(options)? else {
            return Ok(None);
        };
        if let Some((judgement, ..)) = &mut found.worst {
            judgement
                .sentence
                .push_str("; no test shows that by itself");
        }
        Ok(Some((found, run)))
    }
}

/// The tests that a run says to have failed, where it came to its end.
fn failed_in(run: Run) -> Option<Vec<String>> {
    let output = run.execution.output;
    let is_over = match run.outcome.end {
        End::Exited(0) => true,
        End::Exited(1) => output.fatal.is_none() && !output.failed_tests.is_empty(),
        _ => false,
    };
    is_over.then_some(output.failed_tests)
}
