//! What a build of `lockstep` says of a run, as typed facts, and in what two answers differ.

use crate::command::Outcome;
use anyhow::{Context, Result};
use serde_json::Value;

/// An answer: the status of the command, and what it found, the most telling first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    status: i32,
    facts: Vec<Fact>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Fact {
    kind: String,
    who: String,
    function: String,
    line: String,
}

/// Where two answers differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// `status`; of what is most telling `kind`, `who`, `function` and `line`; of all else `gone` and `new`.
    pub field: &'static str,
    /// What the base says.
    pub base: String,
    /// What is said now.
    pub now: String,
}

/// In the place of what is not there.
const NOTHING: &str = "-";

impl Answer {
    /// From what a command printed with `--json`.
    ///
    /// # Errors
    /// What it printed has no facts, though it found an answer.
    pub fn read(outcome: &Outcome) -> Result<Self> {
        let status = outcome.status;
        if ![0, 1].contains(&status) {
            return Ok(Self {
                status,
                facts: Vec::new(),
            });
        }
        let found: Value = serde_json::from_str(&outcome.stdout)
            .with_context(|| format!("expected JSON, found {outcome:#?}"))?;
        let facts = found["facts"].as_array();
        let facts = facts.context("expected `facts` in JSON, found none: too old a build")?;
        Ok(Self {
            status,
            facts: facts.iter().map(Fact::read).collect(),
        })
    }

    /// The exit status, and a line for each finding: `deadlock 6.0,7.0 MPI_Recv a.c:9`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let status = format!("status {}", self.status);
        let facts = self.facts.iter().map(Fact::text);
        std::iter::once(status).chain(facts).collect()
    }

    /// In what another answer differs.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        let mut tell = |field, base: &str, now: &str| {
            let (base, now) = (base.to_owned(), now.to_owned());
            all.push(Difference { field, base, now });
        };
        if self.status != now.status {
            tell("status", &self.status.to_string(), &now.status.to_string());
        }
        let nothing = Fact::default();
        let first = |it: &Self| it.facts.first().unwrap_or(&nothing).clone();
        let (old, new) = (first(self), first(now));
        for (field, base, now) in [
            ("kind", &old.kind, &new.kind),
            ("who", &old.who, &new.who),
            ("function", &old.function, &new.function),
            ("line", &old.line, &new.line),
        ] {
            if base != now {
                tell(field, base, now);
            }
        }
        // What is first in one of them is told already.
        let told = [old, new];
        for fact in without(&self.facts, &now.facts) {
            if !told.contains(&fact) {
                tell("gone", &fact.text(), NOTHING);
            }
        }
        for fact in without(&now.facts, &self.facts) {
            if !told.contains(&fact) {
                tell("new", NOTHING, &fact.text());
            }
        }
        all
    }
}

/// What is in the first list and not in the second, each as often as it is there more often.
fn without(these: &[Fact], those: &[Fact]) -> Vec<Fact> {
    let mut left = these.to_vec();
    for fact in those {
        if let Some(at) = left.iter().position(|it| it == fact) {
            left.remove(at);
        }
    }
    left.sort();
    left
}

impl Default for Fact {
    fn default() -> Self {
        let nothing = || NOTHING.to_owned();
        Self {
            kind: nothing(),
            who: nothing(),
            function: nothing(),
            line: nothing(),
        }
    }
}

impl Fact {
    fn read(fact: &Value) -> Self {
        let text = |it: &Value| it.as_str().unwrap_or(NOTHING).to_owned();
        let list = |it: &Value| match it.as_array().map_or(&[][..], Vec::as_slice) {
            [] => NOTHING.to_owned(),
            many => many.iter().map(text).collect::<Vec<_>>().join(","),
        };
        Self {
            kind: text(&fact["kind"]),
            who: list(&fact["who"]),
            function: text(&fact["function"]),
            line: list(&fact["lines"]),
        }
    }

    fn text(&self) -> String {
        let Self {
            kind,
            who,
            function,
            line,
        } = self;
        format!("{kind} {who} {function} {line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: i32, facts: &str) -> Answer {
        let outcome = Outcome {
            status,
            stdout: format!("{{\"facts\":[{facts}]}}"),
            stderr: String::new(),
            timed_out: false,
        };
        Answer::read(&outcome).expect("an answer")
    }

    fn told(base: &Answer, now: &Answer) -> Vec<String> {
        let each = base.differences(now).into_iter();
        each.map(|it| format!("{}: {} {}", it.field, it.base, it.now))
            .collect()
    }

    const SEND: &str =
        r#"{"kind":"omitted","who":["5.0"],"function":"MPI_Send","lines":["a.c:7"]}"#;
    const HANG: &str =
        r#"{"kind":"deadlock","who":["6.0","7.0"],"function":"MPI_Recv","lines":["a.c:9"]}"#;
    const LEFT: &str = r#"{"kind":"never-freed","who":["0.0"],"function":null,"lines":[]}"#;

    #[test]
    fn what_leads_is_told_field_by_field_and_the_rest_as_a_whole() {
        let base = answer(1, &format!("{SEND},{HANG}"));
        assert!(told(&base, &base).is_empty());
        let other_order = answer(1, &format!("{HANG},{SEND}"));
        let expected = [
            "kind: omitted deadlock",
            "who: 5.0 6.0,7.0",
            "function: MPI_Send MPI_Recv",
            "line: a.c:7 a.c:9",
        ];
        assert_eq!(told(&base, &other_order), expected);
        let more = answer(0, &format!("{SEND},{LEFT}"));
        let expected = [
            "status: 1 0",
            "gone: deadlock 6.0,7.0 MPI_Recv a.c:9 -",
            "new: - never-freed 0.0 - -",
        ];
        assert_eq!(told(&base, &more), expected);
    }

    #[test]
    fn a_command_that_failed_has_its_status_and_no_facts() {
        let failed = Outcome {
            status: 2,
            stdout: String::new(),
            stderr: "no".to_owned(),
            timed_out: false,
        };
        let failed = Answer::read(&failed).expect("an answer");
        assert_eq!(told(&answer(0, ""), &failed), ["status: 0 2"]);
    }
}
