//! Events as `go test -json` prints them (`go doc test2json`), for what reads those: a line each, as tests come to
//! their ends. A test is what was found of it in all its runs; its output is that of the run that decides, and behind
//! it the verdict.

use crate::output;
use anyhow::Result;
use serde_json::{Map, Value};
use std::io::Write;
use std::time::Duration;

/// Where the events of a package go; nowhere where nobody asked for them.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    pub wanted: bool,
    pub package: &'a str,
}

impl Events<'_> {
    fn event(&self, action: &str, test: Option<&str>, more: &[(&str, Value)]) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        let mut event = Map::new();
        event.insert("Action".to_owned(), action.into());
        event.insert("Package".to_owned(), self.package.into());
        if let Some(test) = test {
            event.insert("Test".to_owned(), test.into());
        }
        for (key, value) in more {
            event.insert((*key).to_owned(), value.clone());
        }
        let event = Value::Object(event);
        output::print(|out| writeln!(out, "{event}"))
    }

    /// The package begins.
    pub fn start(&self) -> Result<()> {
        self.event("start", None, &[])
    }

    /// A test begins.
    pub fn run(&self, test: &str) -> Result<()> {
        self.event("run", Some(test), &[])?;
        self.output(Some(test), &format!("=== RUN   {test}\n"))
    }

    /// Text, an event a line.
    pub fn output(&self, test: Option<&str>, text: &str) -> Result<()> {
        for line in text.split_inclusive('\n') {
            self.event("output", test, &[("Output", line.into())])?;
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
        let printed: String = printed.split_inclusive('\n').filter(own).collect();
        self.output(Some(test), &printed)?;
        if !printed.is_empty() && !printed.ends_with('\n') {
            self.output(Some(test), "\n")?;
        }
        let word = if passes { "PASS" } else { "FAIL" };
        let seconds = took.as_secs_f64();
        self.output(Some(test), said)?;
        self.output(Some(test), &format!("--- {word}: {test} ({seconds:.2}s)\n"))?;
        self.end(Some(test), passes, took)
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
        self.event("skip", None, &[("Elapsed", 0.into())])
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
        self.event(action, test, &[("Elapsed", elapsed.into())])
    }
}
