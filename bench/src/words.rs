//! Command lines of the benches: options with one value each, switches, and the rest.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::str::FromStr;

/// What was given.
#[derive(Debug, Default)]
pub struct Words {
    values: BTreeMap<String, String>,
    /// Neither option nor value.
    pub rest: Vec<String>,
}

impl Words {
    /// Reads `words`, where the options `valued` take a value and `switches` none.
    pub fn read(words: &[String], valued: &[&str], switches: &[&str]) -> Result<Self> {
        let mut given = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if switches.contains(&word.as_str()) {
                given.values.insert(word.clone(), String::new());
            } else if valued.contains(&word.as_str()) {
                let value = rest
                    .next()
                    .with_context(|| format!("{word} needs a value"))?;
                given.values.insert(word.clone(), value.clone());
            } else if word.starts_with('-') {
                bail!(
                    "no option `{word}` here; there are {} {}",
                    valued.join(" "),
                    switches.join(" ")
                );
            } else {
                given.rest.push(word.clone());
            }
        }
        Ok(given)
    }

    /// Whether an option was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// An option's value.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.values.get(name).map_or(default, String::as_str)
    }

    /// A number.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        match self.values.get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .with_context(|| format!("{name}: expected a number, found `{text}`")),
        }
    }

    /// What stands between commas.
    pub fn list(&self, name: &str, default: &str) -> Vec<String> {
        self.text(name, default)
            .split(',')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }
}
