//! Events as `go test -json` prints them (`go doc test2json`), for what reads those: a line each, as tests come to
//! their ends. A test is what was found of it in all its runs; its output is that of the run that decides, and behind
//! it the verdict. Subtests that this output names have events of their own.

use crate::output;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the events of a package go; nowhere where nobody asked for them.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    pub wanted: bool,
    pub package: &'a str,
}

/// An event, with the keys of test2json.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    time: String,
    action: &'a str,
    package: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a str>,
    #[serde(flatten)]
    more: Option<More<'a>>,
}

#[derive(Serialize)]
enum More<'a> {
    Output(&'a str),
    /// Seconds.
    Elapsed(f64),
}

impl Events<'_> {
    fn event(&self, action: &str, test: Option<&str>, more: Option<More<'_>>) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let event = serde_json::to_string(&Event {
            time: utc(now.unwrap_or_default()),
            action,
            package: self.package,
            test,
            more,
        })?;
        output::print(|out| writeln!(out, "{event}"))
    }

    /// The package begins.
    pub fn start(&self) -> Result<()> {
        self.event("start", None, None)
    }

    /// A test begins.
    pub fn run(&self, test: &str) -> Result<()> {
        self.event("run", Some(test), None)?;
        self.output(Some(test), &format!("=== RUN   {test}\n"))
    }

    /// Text, an event a line.
    pub fn output(&self, test: Option<&str>, text: &str) -> Result<()> {
        for line in text.split_inclusive('\n') {
            self.event("output", test, Some(More::Output(line)))?;
        }
        Ok(())
    }

    /// A test came to its end: what it printed, what is said of it, and whether that is no bug.
    pub fn tested(
        &self,
        test: &str,
        (printed, said): (&str, &str),
        passes: bool,
        took: Duration,
    ) -> Result<()> {
        // What a test binary says of itself as a whole is not the test's.
        let own = |line: &&str| !matches!(line.trim_end(), "PASS" | "FAIL");
        self.printed(test, printed.split_inclusive('\n').filter(own))?;
        if !printed.is_empty() && !printed.ends_with('\n') {
            self.output(Some(test), "\n")?;
        }
        let word = if passes { "PASS" } else { "FAIL" };
        let seconds = took.as_secs_f64();
        self.output(Some(test), said)?;
        self.output(Some(test), &format!("--- {word}: {test} ({seconds:.2}s)\n"))?;
        self.end(Some(test), passes, took)
    }

    /// What a test printed, each line as that of the subtest which it is of.
    fn printed<'t>(&self, test: &'t str, lines: impl Iterator<Item = &'t str>) -> Result<()> {
        let mut name = test;
        let mut begun = BTreeSet::from([test]);
        // Without `-v`, what a test says stands behind the line of its end.
        let mut end: Option<Said<'_>> = None;
        let close = |end: &mut Option<Said<'_>>| match end.take() {
            Some(it) => self.event(it.action, Some(it.test), it.took.map(More::Elapsed)),
            None => Ok(()),
        };
        for line in lines {
            let said = Said::of(line, test);
            if let Some(said) = &said {
                close(&mut end)?;
                name = said.test;
                if begun.insert(name) {
                    self.event("run", Some(name), None)?;
                }
                if matches!(said.action, "pause" | "cont") {
                    self.event(said.action, Some(name), None)?;
                }
            }
            self.output(Some(name), line)?;
            end = said
                .filter(|it| it.test != test && it.took.is_some())
                .or(end);
        }
        close(&mut end)
    }

    /// The package came to its end.
    pub fn over(&self, passes: bool, took: Duration) -> Result<()> {
        let seconds = took.as_secs_f64();
        let line = if passes {
            format!("PASS\nok  \t{}\t{seconds:.3}s\n", self.package)
        } else {
            format!("FAIL\nFAIL\t{}\t{seconds:.3}s\n", self.package)
        };
        self.output(None, &line)?;
        self.end(None, passes, took)
    }

    /// The package has no tests.
    pub fn skip(&self) -> Result<()> {
        self.start()?;
        self.output(None, &format!("?   \t{}\t[no test files]\n", self.package))?;
        self.event("skip", None, Some(More::Elapsed(0.0)))
    }

    /// The package does not build.
    pub fn broken(&self) -> Result<()> {
        self.start()?;
        self.output(None, &format!("FAIL\t{} [build failed]\n", self.package))?;
        self.end(None, false, Duration::ZERO)
    }

    fn end(&self, test: Option<&str>, passes: bool, took: Duration) -> Result<()> {
        let elapsed = (took.as_secs_f64() * 1000.0).round() / 1000.0;
        let action = if passes { "pass" } else { "fail" };
        self.event(action, test, Some(More::Elapsed(elapsed)))
    }
}

/// A line in which the testing package says how a test stands.
struct Said<'t> {
    action: &'static str,
    test: &'t str,
    /// Seconds, where it came to its end.
    took: Option<f64>,
}

impl<'t> Said<'t> {
    /// `=== RUN   TestA/b` or `    --- FAIL: TestA/b (0.00s)`, of `test` and its subtests.
    fn of(line: &'t str, test: &str) -> Option<Self> {
        const WORDS: [(&str, &str); 7] = [
            ("=== RUN ", "run"),
            ("=== PAUSE ", "pause"),
            ("=== CONT ", "cont"),
            ("=== NAME ", "output"),
            ("--- PASS: ", "pass"),
            ("--- FAIL: ", "fail"),
            ("--- SKIP: ", "skip"),
        ];
        let line = line.trim();
        let (action, rest) = WORDS
            .iter()
            .find_map(|(word, action)| Some((*action, line.strip_prefix(word)?.trim())))?;
        let (test_said, took) = match rest.rsplit_once(" (") {
            Some((name, took)) => (name, Some(took.strip_suffix("s)")?.parse().ok()?)),
            None => (rest, None),
        };
        let below = test_said.strip_prefix(test)?;
        (below.is_empty() || below.starts_with('/')).then_some(Self {
            action,
            test: test_said,
            took,
        })
    }
}

/// A time since 1970 as RFC 3339 has it: `2026-11-22T21:05:00.123456Z`. Days are counted from March, so that the leap
/// day is a year's last (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn utc(since: Duration) -> String {
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let (second, micros) = (second % 60, since.subsec_micros());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let of = |seconds| utc(Duration::new(seconds, 123_456_000));
        assert_eq!(of(0), "1970-01-01T00:00:00.123456Z");
        assert_eq!(of(951_782_399), "2000-02-28T23:59:59.123456Z");
        assert_eq!(of(951_868_799), "2000-02-29T23:59:59.123456Z");
        assert_eq!(of(1_795_381_500), "2026-11-22T21:05:00.123456Z");
    }

    #[test]
    fn lines_of_tests_and_their_subtests() {
        let of = |line| {
            Said::of(line, "TestA")
                .map(|it| format!("{} {} {:?}", it.action, it.test, it.took))
                .unwrap_or_default()
        };
        assert_eq!(of("=== RUN   TestA/b\n"), "run TestA/b None");
        assert_eq!(
            of("    --- FAIL: TestA/b (0.25s)\n"),
            "fail TestA/b Some(0.25)"
        );
        assert_eq!(of("--- PASS: TestA (1.00s)\n"), "pass TestA Some(1.0)");
        assert_eq!(of("=== RUN   TestAB\n"), "");
        assert_eq!(of("    a_test.go:3: --- FAIL: TestA\n"), "");
    }
}
