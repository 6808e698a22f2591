//! The self-test: a small program is built with this toolchain's overlay and run, and must tell what it does.

use crate::build::{BuildError, Builder};
use crate::campaign::{Options, Subject};
use crate::execution::{Action, End, What};
use crate::paths::Paths;
use crate::schedule::plan;
use crate::symbols::{Program, Symbols};
use std::fs;
use std::path::Path;
use std::time::Duration;

const SOURCE: &str = "package main

import \"sync\"

func main() {
\tvar m sync.Mutex
\tvar wg sync.WaitGroup
\tc := make(chan int)
\twg.Add(1)
\tgo func() {
\t\tdefer wg.Done()
\t\tm.Lock()
\t\tdefer m.Unlock()
\t\tc <- 1
\t}()
\t<-c
\twg.Wait()
\tselect {
\tcase <-c:
\tdefault:
\t}
\tclose(c)
}
";

/// What the program does and where, in the order of lines.
const EXPECTED: [(u32, Action); 10] = [
    (9, Action::Add),
    (10, Action::Go),
    (11, Action::Done),
    (12, Action::Lock),
    (13, Action::Unlock),
    (14, Action::Send),
    (16, Action::Receive),
    (17, Action::Wait),
    (19, Action::Select),
    (22, Action::Close),
];

/// What the self-test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The toolchain's version.
    pub version: String,
    /// What is not as expected, a sentence each.
    pub complaints: Vec<String>,
}

/// Builds and runs the small program in `place`, which must be there and empty.
///
/// # Errors
/// Where there is no toolchain, or it cannot build it.
pub fn check(place: &Path) -> Result<Health, BuildError> {
    let failed = |error: String| BuildError::Place {
        path: place.to_owned(),
        reason: error,
    };
    for (name, text) in [
        ("main.go", SOURCE),
        ("go.mod", "module selftest\n\ngo 1.25\n"),
    ] {
        fs::write(place.join(name), text).map_err(|error| failed(error.to_string()))?;
    }
    let builder = Builder::new(place, &[])?;
    let file = place.join("selftest");
    builder.program(".", &file)?;
    let root = &builder.toolchain.root;
    let program = Program::open(&file, root, None).map_err(|error| failed(error.to_string()))?;
    let symbols = Symbols::of(&program);
    let subject = Subject {
        file: &file,
        symbols: &symbols,
        classes: &program.classes(),
        paths: &Paths::default(),
        arguments: Vec::new(),
        directory: place,
    };
    let options = Options {
        runs: 1,
        goes_on: false,
        known: Vec::new(),
        delays: Some(0),
        seed: 1,
        limit: Duration::from_secs(10),
        coverage: None,
        most: 16 << 20,
        shows: false,
        interrupted: || None,
    };
    let run = subject
        .run(1, plan(1, 1, Some(0)), &options)
        .map_err(|error| failed(error.to_string()))?;
    let mut complaints: Vec<String> = builder
        .missing()
        .iter()
        .map(|(class, reason)| format!("{} are not recorded: {reason}", class.name()))
        .collect();
    if run.outcome.end != End::Exited(0) {
        complaints.push(format!(
            "expected that it ends with 0, found {:?}",
            run.outcome.end
        ));
    }
    let execution = &run.execution;
    let mut found: Vec<(u32, Action)> = Vec::new();
    for event in &execution.events {
        if let (What::Request { action, .. }, Some(site)) = (&event.what, event.site) {
            found.push((execution.sites[site.0 as usize].line, *action));
        }
    }
    found.sort();
    if found != EXPECTED {
        complaints.push(format!("expected the usages {EXPECTED:?}, found {found:?}"));
    }
    Ok(Health {
        version: builder.toolchain.version.clone(),
        complaints,
    })
}
