//! What is measured, beside what is allowed: a number may only fall.

use crate::sizes::Sizes;
use crate::{circles, lengths, prose, sources};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Numbers by what they count: `circles progress`, `prose docs/limits.md`.
pub type Numbers = BTreeMap<String, usize>;

/// Where the limits stand, from the checkout.
pub const FILE: &str = "rules/limits.txt";

/// Measures the checkout.
///
/// # Errors
///
/// A file that cannot be read or does not parse.
pub fn measured(root: &Path) -> Result<Numbers> {
    let sources = sources(root)?;
    let mut numbers = Numbers::new();
    for circle in circles::circles(&sources) {
        *numbers
            .entry(format!("circles {}", circle.room))
            .or_default() += circle.files.len();
    }
    for long in lengths::long(&sources) {
        let room = long.what.split('/').nth(1).unwrap_or("").to_owned();
        match long.has_reason {
            true => *numbers.entry("reasons".to_owned()).or_default() += 1,
            false => *numbers.entry(format!("long {room}")).or_default() += 1,
        }
    }
    for document in prose::documents(root)? {
        numbers.insert(format!("prose {}", document.path), document.long.len());
    }
    let sizes = Sizes::of(&sources);
    numbers.insert("lines product".to_owned(), sizes.product());
    numbers.insert("lines analyses".to_owned(), sizes.analyses());
    numbers.insert("lines everything".to_owned(), sizes.everything);
    numbers.retain(|_, number| *number > 0);
    Ok(numbers)
}

/// The limits.
///
/// # Errors
///
/// A file that cannot be read, or a line that is no name and number.
pub fn allowed(root: &Path) -> Result<Numbers> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let lines = text
        .lines()
        .filter(|it| !it.starts_with('#') && !it.is_empty());
    let each = lines.map(|line| {
        let (name, number) = line.rsplit_once(' ').context(line.to_owned())?;
        Ok((name.to_owned(), number.parse().context(line.to_owned())?))
    });
    each.collect()
}

/// The limits as a file.
#[must_use]
pub fn text(numbers: &Numbers) -> String {
    let head = "# What the rules of the house allow; the test `house` compares. A number may only fall:\n\
        # `cargo xtask limits` prints this file as it would be now.\n\
        #   circles CRATE   files that import each other in a circle\n\
        #   long CRATE      functions over 80 lines and structures over 12 fields, without a reason\n\
        #   reasons         those with one; 15 at the most\n\
        #   prose DOCUMENT  sentences over 30 words\n\
        #   lines WHAT      as `cargo xtask sizes` counts them\n";
    let lines = numbers
        .iter()
        .map(|(name, number)| format!("{name} {number}\n"));
    head.to_owned() + &lines.collect::<String>()
}
