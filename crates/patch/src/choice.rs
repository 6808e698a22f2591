//! Which functions of an image are recorded: `--trace` and `--skip`, by name.

use crate::PlanFailure;
use crate::fault::Fault;
use lockstep_binary::{c_name, display_name};
use lockstep_format::digest::Digest;
use lockstep_format::plan::choice;
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};

/// Which functions to record. What is not chosen is not touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Record only functions whose name one of these regular expressions finds; all, if empty.
    pub trace: Vec<String>,
    /// Never record functions whose name one of these finds.
    pub skip: Vec<String>,
    /// A fault to put into a function.
    pub fault: Option<Fault>,
    /// Patch all that is chosen, and record nothing: for measuring.
    pub silent: bool,
}

impl Options {
    /// Whether nothing is left out, and nothing put in.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.trace.is_empty() && self.skip.is_empty() && self.fault.is_none() && !self.silent
    }

    /// Checks every expression.
    ///
    /// # Errors
    /// The first that does not parse, and where.
    pub fn check(&self) -> Result<(), PlanFailure> {
        Choice::new(self).map(|_| ())
    }

    /// What tells this choice from every other in the names of plans; empty where nothing is left
    /// out.
    #[must_use]
    pub fn digest(&self) -> String {
        if self.is_everything() {
            return String::new();
        }
        let mut digest = Digest::default();
        for (mark, patterns) in [(b"t", &self.trace), (b"s", &self.skip)] {
            for pattern in patterns {
                // No UTF-8 text has the byte behind it.
                digest = digest.with(mark).with(pattern.as_bytes()).with(&[0xff]);
            }
        }
        if self.silent {
            digest = digest.with(b"n").with(&[0xff]);
        }
        for part in self.fault.iter().flat_map(Fault::parts) {
            digest = digest.with(b"f").with(part).with(&[0xff]);
        }
        String::from_utf8_lossy(&digest.hexadecimal()).into_owned()
    }
}

/// An expression, and how many names it found.
struct Pattern {
    kind: u32,
    text: String,
    regex: Regex,
    found: Cell<u32>,
}

/// The expressions of [`Options`], compiled; counts what they find.
pub(crate) struct Choice {
    patterns: Vec<Pattern>,
    has_trace: bool,
    fault: Option<Fault>,
    /// What was decided, by linkage name: the slots of one library function are asked for one by one.
    decided: RefCell<FxHashMap<Vec<u8>, bool>>,
}

/// A row of the plan's choices.
#[derive(Debug, Clone)]
pub(crate) struct ChoiceRow {
    pub kind: u32,
    pub pattern: String,
    pub found: u32,
}

impl Choice {
    pub(crate) fn new(options: &Options) -> Result<Self, PlanFailure> {
        let mut patterns = Vec::new();
        for (kind, texts) in [
            (choice::TRACE, &options.trace),
            (choice::SKIP, &options.skip),
        ] {
            for text in texts {
                patterns.push(Pattern {
                    kind,
                    text: text.clone(),
                    regex: Regex::new(text).map_err(|error| wrong(text, &error))?,
                    found: Cell::new(0),
                });
            }
        }
        Ok(Self {
            patterns,
            has_trace: !options.trace.is_empty(),
            fault: options.fault.clone(),
            decided: RefCell::default(),
        })
    }

    /// Whether the function of this linkage name is chosen, by the name that people write, the linkage
    /// name, or the name that C has for a Fortran binding.
    pub(crate) fn wants(&self, linkage: &[u8]) -> bool {
        if self.patterns.is_empty() && self.fault.is_none() {
            return true;
        }
        if let Some(wanted) = self.decided.borrow().get(linkage) {
            return *wanted;
        }
        let wanted = self.decide(linkage);
        self.decided.borrow_mut().insert(linkage.to_vec(), wanted);
        wanted
    }

    /// Has these functions patched, whatever else is chosen.
    pub(crate) fn add(&self, linkages: &FxHashSet<Vec<u8>>) {
        let mut decided = self.decided.borrow_mut();
        decided.extend(linkages.iter().map(|linkage| (linkage.clone(), true)));
    }

    fn decide(&self, linkage: &[u8]) -> bool {
        // What a fault is put into is patched whatever else is chosen.
        if let Some(wanted) = self.fault.as_ref().and_then(|fault| fault.wants(linkage)) {
            return wanted;
        }
        let linkage = String::from_utf8_lossy(linkage);
        let display = display_name(&linkage);
        let c = c_name(&linkage);
        let (mut traced, mut skipped) = (!self.has_trace, false);
        for pattern in &self.patterns {
            let names = [display.as_str(), &linkage, &c];
            if names.iter().any(|name| pattern.regex.is_match(name)) {
                pattern.found.set(pattern.found.get() + 1);
                match pattern.kind {
                    choice::SKIP => skipped = true,
                    _ => traced = true,
                }
            }
        }
        traced && !skipped
    }

    /// How many names it left out, and how many each expression found.
    pub(crate) fn counts(&self) -> (u32, Vec<ChoiceRow>) {
        let rows = self.patterns.iter().map(|pattern| ChoiceRow {
            kind: pattern.kind,
            pattern: pattern.text.clone(),
            found: pattern.found.get(),
        });
        let decided = self.decided.borrow();
        let left_out = decided.values().filter(|wanted| !**wanted).count();
        (left_out as u32, rows.collect())
    }
}

/// What is wrong with an expression, in one line, and at which character.
fn wrong(pattern: &str, error: &regex::Error) -> PlanFailure {
    use regex_syntax::Error;
    let at = |kind: String, offset: usize| {
        let before = pattern.get(..offset).unwrap_or(pattern);
        format!("{kind}, at character {}", before.chars().count() + 1)
    };
    let reason = match regex_syntax::parse(pattern) {
        Err(Error::Parse(found)) => at(found.kind().to_string(), found.span().start.offset),
        Err(Error::Translate(found)) => at(found.kind().to_string(), found.span().start.offset),
        _ => error.to_string(),
    };
    PlanFailure::Pattern {
        pattern: pattern.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options(trace: &[&str], skip: &[&str]) -> Options {
        let owned = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect();
        Options {
            trace: owned(trace),
            skip: owned(skip),
            fault: None,
            silent: false,
        }
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        let wants = |trace: &[&str], skip: &[&str], name: &str| {
            let choice = Choice::new(&options(trace, skip)).unwrap();
            choice.wants(name.as_bytes())
        };
        assert!(wants(&[], &[], "anything"));
        assert!(wants(&["^MPI_Send$"], &[], "mpi_send_"));
        assert!(wants(&["^mpi_send_$"], &[], "mpi_send_"));
        assert!(wants(&["^foo::"], &[], "_ZN3foo3barEv") && wants(&["3bar"], &[], "_ZN3foo3barEv"));
        assert!(!wants(&["^a"], &[], "b") && wants(&["^a", "^b"], &[], "b"));
        assert!(!wants(&["^a"], &["b$"], "ab") && !wants(&[], &["b$"], "ab"));
    }

    #[test]
    fn what_an_expression_finds_is_counted_even_where_another_forbids_it() {
        let choice = Choice::new(&options(&["^a", "^x"], &["b$"])).unwrap();
        for name in ["ab", "aa", "c", "c"] {
            choice.wants(name.as_bytes());
        }
        let (left_out, rows) = choice.counts();
        let found: Vec<u32> = rows.iter().map(|row| row.found).collect();
        assert_eq!((left_out, found), (2, vec![2, 0, 1]));
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let told = |pattern: &str| options(&[], &[pattern]).check().unwrap_err().to_string();
        assert_eq!(
            told("sol(ve"),
            "the pattern 'sol(ve' is not a regular expression: unclosed group, at character 4"
        );
        assert!(
            told("ü[z-a]").contains("at character 3"),
            "{}",
            told("ü[z-a]")
        );
        assert!(told("\\p{Nothing}").contains("at character 1"));
    }

    #[test]
    fn a_digest_tells_choices_apart() {
        let all = [
            options(&["a"], &[]),
            options(&[], &["a"]),
            options(&["a", "b"], &[]),
            options(&["ab"], &[]),
            options(&["a"], &["b"]),
        ];
        let mut digests: Vec<String> = all.iter().map(Options::digest).collect();
        assert!(digests.iter().all(|digest| digest.len() == 16));
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), all.len());
        assert_eq!(Options::default().digest(), "");
    }
}
