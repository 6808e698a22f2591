//! Coverage in values, and in text.

use super::{Aspect, CaseOf, Coverage, Requirement, Totals, required, words};
use crate::execution::Action;
use crate::tree::Place;
use crate::words::{count, short};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One requirement: a usage has to behave in one way at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Covered {
    /// The case of the `select`. Null if the usage is no `select`, or if the case does not matter.
    pub case: Option<CaseOf>,
    /// How the usage should behave.
    pub aspect: Aspect,
    /// Number of executions in which it behaved so.
    pub executions: u64,
    /// What it means that no execution covered it, in words. Null if one did.
    pub means: Option<&'static str>,
}

/// A usage in one node of the goroutine tree. A node is all goroutines that the same `go` statements created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageReport {
    /// The source file.
    pub file: String,
    /// The source line, from 1.
    pub line: u32,
    /// What the usage does.
    pub action: Action,
    /// The `go` statements from main to the node; an entry is null if its line is unknown. Empty for main; null if no
    /// goroutine reached the usage.
    pub node: Option<Vec<Option<Place>>>,
    /// The function that the node runs. Null if it is unknown, or if no goroutine reached the usage.
    pub function: Option<String>,
    /// Requirements of this usage.
    pub requirements: Vec<Covered>,
}

/// How well executions of a test or program covered its concurrency usages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Number of executions that were read.
    pub executions: u64,
    /// Number of requirements, and how many of them are covered.
    pub coverage: Totals,
    /// The usages, sorted by file and line.
    pub usages: Vec<UsageReport>,
}

pub(super) fn report(coverage: &Coverage) -> Report {
    let mut usages: BTreeMap<(super::Usage, Option<super::NodePath>), Vec<Covered>> =
        BTreeMap::new();
    for (requirement, executions) in coverage.requirements() {
        let means = (executions == 0).then(|| words::means(&requirement));
        let Requirement {
            usage,
            node,
            case,
            aspect,
        } = requirement;
        usages.entry((usage, node)).or_default().push(Covered {
            case,
            aspect,
            executions,
            means,
        });
    }
    Report {
        executions: coverage.executions(),
        coverage: coverage.totals(),
        usages: usages
            .into_iter()
            .map(|((usage, node), requirements)| UsageReport {
                file: usage.place.file,
                line: usage.place.line,
                action: usage.action,
                function: node.as_ref().and_then(|it| coverage.nodes.get(it)).cloned(),
                node,
                requirements,
            })
            .collect(),
    }
}

impl Report {
    /// Leaves out what was covered.
    pub fn retain_missing(&mut self) {
        for usage in &mut self.usages {
            usage.requirements.retain(|it| it.executions == 0);
        }
        self.usages.retain(|it| !it.requirements.is_empty());
    }

    /// For people: a line a usage and node, and below it what was never covered and what that means.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} of {} requirements covered ({:.1} %) in {}\n",
            self.coverage.covered,
            self.coverage.total,
            self.coverage.percent(),
            count(self.executions as usize, "execution")
        );
        for usage in &self.usages {
            let place = Place {
                file: usage.file.clone(),
                line: usage.line,
            };
            let covered = usage.requirements.iter().filter(|it| it.executions > 0);
            // A string takes whatever is written to it.
            let _ = writeln!(
                text,
                "\n{}  {}  {} of {}  {}",
                short(&place),
                usage.action.name(),
                covered.count(),
                usage.requirements.len(),
                node(usage)
            );
            for it in &usage.requirements {
                let case = it.case.map_or_else(String::new, |case| {
                    format!("case {} ({}) ", case.index + 1, case.action.name())
                });
                // Where nothing else can be asked for, it is no more than that it came to its end.
                let aspect = match required(usage.action, None)[..] {
                    [(_, Aspect::Nop)] => "done",
                    _ => it.aspect.name(),
                };
                let _ = match it.means {
                    Some(means) => writeln!(text, "  - {case}{aspect}: {means}"),
                    None => writeln!(
                        text,
                        "  + {case}{aspect}, in {}",
                        count(it.executions as usize, "execution")
                    ),
                };
            }
        }
        text
    }
}

/// `in main.worker, made at main.go:8`
fn node(usage: &UsageReport) -> String {
    let Some(path) = &usage.node else {
        return "never reached".to_owned();
    };
    let function = usage.function.as_deref().unwrap_or("main");
    // The package's path says little beside the line.
    let function = function.rsplit('/').next().unwrap_or(function);
    match path.last() {
        // Tests, examples and fuzz targets are begun at one line of a file that nobody sees, or of `TestMain`.
        Some(Some(place)) if place.file.ends_with("_testmain.go") => "in the test".to_owned(),
        Some(Some(_)) if path.len() == 1 && function == "testing.tRunner" => {
            "in the test".to_owned()
        }
        Some(Some(place)) if function == "testing.tRunner" => {
            format!("in a subtest, made at {}", short(place))
        }
        Some(Some(place)) => format!("in {function}, made at {}", short(place)),
        _ => format!("in {function}"),
    }
}
