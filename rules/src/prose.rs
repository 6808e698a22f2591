//! How long the sentences of the documents are.

use anyhow::Result;
use std::path::Path;

/// Words of a sentence, at the most.
pub const WORDS: usize = 30;

/// The sentences of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Prose {
    /// From the checkout.
    pub path: String,
    /// Words of each sentence, ascending.
    pub lengths: Vec<usize>,
    /// Sentences that are too long: line, words, and how they begin.
    pub long: Vec<(usize, usize, String)>,
}

/// Every document below `root`, by path.
///
/// # Errors
///
/// A document that cannot be read.
pub fn documents(root: &Path) -> Result<Vec<Prose>> {
    let mut paths = vec![
        root.join("README.md"),
        root.join("ARCHITECTURE.md"),
        root.join("CONTRIBUTING.md"),
    ];
    let mut folders = vec![
        root.join("docs"),
        root.join("examples"),
        root.join("bench"),
        root.join("packaging"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let each = paths.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path)?;
        let name = path.strip_prefix(root).unwrap_or(&path);
        Ok(of(name.display().to_string(), &text))
    });
    each.collect()
}

/// The sentences of a text in Markdown: no code, no tables, no headings.
#[must_use]
pub fn of(path: String, text: &str) -> Prose {
    let (mut lengths, mut long) = (Vec::new(), Vec::new());
    for (line, paragraph) in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            let words = sentence
                .split_whitespace()
                .filter(|it| it.bytes().any(|it| it.is_ascii_alphanumeric()))
                .count();
            if words == 0 {
                continue;
            }
            lengths.push(words);
            if words > WORDS {
                let begin: String = sentence.chars().take(60).collect();
                long.push((line, words, begin));
            }
        }
    }
    lengths.sort_unstable();
    Prose {
        path,
        lengths,
        long,
    }
}

/// Paragraphs and items of lists, each with its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            (is_code, is_open) = (!is_code, false);
            continue;
        }
        let is_item = ["* ", "- ", "+ "].iter().any(|it| trimmed.starts_with(it))
            || trimmed
                .split_once(". ")
                .is_some_and(|it| it.0.bytes().all(|it| it.is_ascii_digit()));
        let is_prose = !is_code
            && !trimmed.is_empty()
            && !trimmed.starts_with(['|', '#', '<'])
            && (is_open || is_item || !line.starts_with("    "));
        match (is_prose, is_open && !is_item) {
            (true, true) => {
                if let Some((_, paragraph)) = found.last_mut() {
                    paragraph.push(' ');
                    paragraph.push_str(trimmed);
                }
            }
            (true, false) => found.push((number, trimmed.to_owned())),
            _ => {}
        }
        is_open = is_prose;
    }
    found
}

/// The sentences of a paragraph: they end at a full stop, a question mark or an exclamation mark before a space, or at a colon at the end.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut in_code) = (0, false);
    let bytes = paragraph.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        in_code ^= *byte == b'`';
        if in_code || !matches!(byte, b'.' | b'?' | b'!') {
            continue;
        }
        let is_last = matches!(bytes.get(at + 1), Some(b' ' | b')' | b'*' | b'"') | None);
        let is_short = ["e.g", "i.e"]
            .iter()
            .any(|it| paragraph[..at].ends_with(it));
        if is_last && !is_short {
            found.push(&paragraph[start..=at]);
            start = at + 1;
        }
    }
    found.push(&paragraph[start..]);
    found
}

impl Prose {
    /// The length that this share of the sentences does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> usize {
        let last = self.lengths.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.lengths.get(at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_a_page() {
        let page = "# Title\n\nOne two. Three `a. b` four?\nFive six\n\n* item one\n* item two\n\n```\ncode here.\n```\n| a | b |\n";
        let found = of("page".to_owned(), page);
        assert_eq!(found.lengths, [2, 2, 2, 2, 4]);
        assert_eq!(found.quantile(0.5), 2);
    }
}
