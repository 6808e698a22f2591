//! Why answers differ: a table that is committed, a line for each difference or kind of differences.
//!
//! ```text
//! # run | question | field | base | now | reason
//! hydro-tag-* | progress | kind | omitted | misdirected | the message was there, with another tag
//! ```
//! `*` stands for anything, also within a word. Empty lines and those that begin with `#` say nothing.

use anyhow::{Context, Result, bail};
use lockstep_testkit::facts::Difference;

/// The table.
#[derive(Debug, Default)]
pub struct Reasons(Vec<Reason>);

#[derive(Debug)]
struct Reason {
    line: usize,
    /// Run, question, field, base, now.
    pattern: [String; 5],
    /// How many differences it was the reason of.
    used: usize,
}

impl Reasons {
    /// From the text of the table.
    ///
    /// # Errors
    /// A line has other than six cells, or no reason.
    pub fn read(text: &str) -> Result<Self> {
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = line.splitn(6, " | ").map(str::trim).collect();
            let [pattern @ .., why] = cells.as_slice() else {
                bail!("line {number}: expected cells, found none");
            };
            let pattern: [&str; 5] = pattern
                .try_into()
                .ok()
                .filter(|_| !why.is_empty())
                .with_context(|| {
                    format!("line {number}: expected run | question | field | base | now | reason")
                })?;
            all.push(Reason {
                line: number,
                pattern: pattern.map(str::to_owned),
                used: 0,
            });
        }
        Ok(Self(all))
    }

    /// Whether a difference has a reason; all that fit are used.
    pub fn explain(&mut self, run: &str, question: &str, it: &Difference) -> bool {
        let cells = [run, question, it.field, it.base.as_str(), it.now.as_str()];
        let mut has_one = false;
        for reason in &mut self.0 {
            let mut pairs = reason.pattern.iter().zip(cells);
            if pairs.all(|(pattern, cell)| fits(pattern, cell)) {
                reason.used += 1;
                has_one = true;
            }
        }
        has_one
    }

    /// The lines that are the reason of nothing.
    pub fn stale(&self) -> Vec<usize> {
        let unused = self.0.iter().filter(|it| it.used == 0);
        unused.map(|it| it.line).collect()
    }
}

/// Whether a word fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, word: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == word;
    };
    let Some(mut word) = word.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, between) = parts.split_last().unwrap_or((&"", &[]));
    for part in between {
        match word.split_once(part) {
            Some((_, behind)) => word = behind,
            None => return false,
        }
    }
    word.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, word) in [
            ("*", ""),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*b*c", "axbxbc"),
            ("**", "x"),
        ] {
            assert!(fits(pattern, word), "{pattern} {word}");
        }
        for (pattern, word) in [("a", "ab"), ("a*a", "a"), ("*b", "abc"), ("a*b*c", "ac")] {
            assert!(!fits(pattern, word), "{pattern} {word}");
        }
    }

    #[test]
    fn a_difference_is_explained_or_not_and_a_line_is_stale() {
        let text = "# why\n\nhydro-* | progress | kind | * | slow | it computes\nx | * | * | * | * | gone\n";
        let mut reasons = Reasons::read(text).expect("a table");
        let mut slow = Difference {
            field: "kind",
            base: "livelock".to_owned(),
            now: "slow".to_owned(),
        };
        assert!(reasons.explain("hydro-tag-1", "progress", &slow));
        assert!(!reasons.explain("sweep-tag-1", "progress", &slow));
        slow.now = "none".to_owned();
        assert!(!reasons.explain("hydro-tag-1", "progress", &slow));
        assert_eq!(reasons.stale(), [4]);
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        for text in ["a | b | c | d | e", "a | b | c | d | e | ", "a"] {
            assert!(Reasons::read(text).is_err(), "{text}");
        }
    }
}
