//! What came of tests under many schedules, as text.

use super::together::TOGETHER;
use super::words;
use crate::output;
use lockstep_goroutines::campaign::Found;
use lockstep_goroutines::coverage::Coverage;
use lockstep_goroutines::prediction::Finding;
use lockstep_goroutines::schedule::Plan;
use lockstep_goroutines::verdict::{Judgement, Verdict};
use std::io::Write;

/// What came of a test.
pub struct Tested {
    pub test: String,
    pub found: Found,
    /// The kept run that shows what was found.
    pub kept: Option<usize>,
    pub is_known: bool,
    /// Whether it came to its end before somebody asked us to end.
    pub is_over: bool,
}

/// `, kept as run-7`, as `go replay --run 7` has it.
pub fn kept_as(run: Option<usize>) -> String {
    run.map_or_else(String::new, |it| format!(", kept as run-{it}"))
}

/// What came of a package.
pub struct Outcome {
    pub package: String,
    /// Whether there was something to run.
    pub builds: bool,
    pub tests: Vec<Tested>,
    pub coverage: Coverage,
}

impl Outcome {
    /// Of a package that does not build.
    pub fn broken(package: String) -> Self {
        Self {
            package,
            builds: false,
            tests: Vec::new(),
            coverage: Coverage::new(),
        }
    }

    /// The test that is worst.
    pub fn worst(&self) -> Option<&Tested> {
        // The first of several.
        self.tests.iter().rev().max_by_key(|it| it.verdict())
    }

    pub fn verdict(&self) -> Verdict {
        if !self.builds {
            return Verdict::Fail;
        }
        self.worst().map_or(Verdict::Pass, Tested::verdict)
    }

    pub fn text(&self, out: &mut output::Out<'_>) -> std::io::Result<()> {
        if !self.builds {
            let package = output::printable(&self.package);
            return writeln!(out, "fail  {package}  does not build (above)");
        }
        let totals = self.coverage.totals();
        let runs: u32 = self.tests.iter().map(|it| it.found.runs).sum();
        let executions: u32 = self.tests.iter().map(|it| it.found.executions).sum();
        let tests = self.tests.iter().filter(|it| it.test != TOGETHER);
        let verdict = self.verdict();
        writeln!(
            out,
            "{}  {}  {}, {} in {}, {} of {} requirements covered",
            if verdict == Verdict::Pass {
                "ok  "
            } else {
                verdict.name()
            },
            output::printable(&self.package),
            output::plural(tests.count() as u64, "test"),
            output::plural(u64::from(runs), "run"),
            output::plural(u64::from(executions), "execution"),
            totals.covered,
            totals.total
        )?;
        self.tests.iter().try_for_each(|it| it.text(out))?;
        words::suspicions(out, &self.suspicions())
    }

    /// What is suspicious in healthy runs and no run came to, with the first test that shows it.
    pub fn suspicions(&self) -> Vec<(&str, &Finding)> {
        let mut all: Vec<(&str, &Finding)> = Vec::new();
        for tested in &self.tests {
            for it in &tested.found.suspected {
                let is_same =
                    |known: &Finding| known.suspicion == it.suspicion && known.places == it.places;
                if !all.iter().any(|known| is_same(known.1)) {
                    all.push((&tested.test, it));
                }
            }
        }
        all
    }
}

impl Tested {
    pub fn verdict(&self) -> Verdict {
        match &self.found.worst {
            Some(worst) if !self.is_known => worst.0.verdict,
            _ => Verdict::Pass,
        }
    }

    /// The verdict and what it rests on; nothing of one that passes.
    pub fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Some((judgement, number, plan)) = &self.found.worst else {
            return Ok(());
        };
        if judgement.verdict == Verdict::Pass {
            return Ok(());
        }
        let known = if self.is_known { " (known)" } else { "" };
        writeln!(
            out,
            "  {}: {}{known} in run {number} of {}, seed {}{}",
            output::printable(&self.test),
            judgement.label(),
            self.found.runs,
            plan.policy.seed,
            kept_as(self.kept)
        )?;
        if !self.is_known {
            words::explain(out, judgement)?;
        }
        Ok(())
    }

    /// The run that showed it.
    pub fn bug(&self) -> Option<&(Judgement, u32, Plan)> {
        self.found
            .worst
            .as_ref()
            .filter(|it| it.0.verdict != Verdict::Pass && !self.is_known)
    }
}
