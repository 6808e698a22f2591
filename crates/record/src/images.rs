//! Which libraries' own functions are recorded: `--images`.

use crate::error::Error;
use crate::tally;
use regex::Regex;
use std::path::Path;

/// The environment variable that passes the choice of images on: one wish a line.
pub(crate) const VARIABLE: &str = "LOCKSTEP_IMAGES";

/// What was wished for, beside the main program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    all: bool,
    wishes: Vec<(String, Regex)>,
}

impl Images {
    /// From the words of the command line: `main`, `all`, parts of names, regular expressions.
    pub(crate) fn new<S: AsRef<str>>(words: &[S]) -> Result<Self, Error> {
        let mut images = Self::default();
        for word in words.iter().map(AsRef::as_ref) {
            match word {
                "main" => {}
                "all" => images.all = true,
                _ if word.is_empty() || word.contains(['\n', '\r', '\0']) => {
                    return Err(Error::own(format!(
                        "--images: expected main, all, a name or a pattern, found {word:?}"
                    )));
                }
                _ => {
                    let regex = Regex::new(word).map_err(|error| {
                        let reason = error.to_string();
                        let reason = reason.lines().last().unwrap_or_default();
                        Error::own(format!(
                            "--images: the pattern '{word}' is not a regular expression: {reason}"
                        ))
                    })?;
                    images.wishes.push((word.to_owned(), regex));
                }
            }
        }
        Ok(images)
    }

    /// Those of the run that this process is part of.
    pub(crate) fn inherited() -> Self {
        let value = std::env::var(VARIABLE).unwrap_or_default();
        let words: Vec<&str> = value.lines().collect();
        Self::new(&words).unwrap_or_default()
    }

    /// The value of [`VARIABLE`]; `None` for the main program alone.
    pub(crate) fn variable(&self) -> Option<String> {
        let words: Vec<&str> = self.wishes.iter().map(|(word, _)| word.as_str()).collect();
        if self.all {
            return Some("all".to_owned());
        }
        (!words.is_empty()).then(|| words.join("\n"))
    }

    /// Whether every library is wished for.
    pub(crate) fn are_all(&self) -> bool {
        self.all
    }

    /// Whether own functions of the library at `path` are wished for.
    pub(crate) fn wants(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.all || self.wishes.iter().any(|wish| finds(wish, &path))
    }

    /// The wishes that no library of the run fulfilled, as they were written.
    pub(crate) fn unmatched(&self, run: &Path) -> Vec<String> {
        if self.wishes.is_empty() {
            return Vec::new();
        }
        self.unmatched_among(tally::recorded_images(run))
    }

    /// The wishes that none of these images fulfils, as they were written.
    pub(crate) fn unmatched_among(
        &self,
        images: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Vec<String> {
        let mut missing: Vec<&(String, Regex)> = self.wishes.iter().collect();
        for image in images {
            let path = image.as_ref().to_string_lossy();
            missing.retain(|wish| !finds(wish, &path));
        }
        missing.iter().map(|(word, _)| word.clone()).collect()
    }
}

/// A part of the file's name, literally (`libstdc++`), or an expression that finds something in its
/// path.
fn finds((word, regex): &(String, Regex), path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.contains(word.as_str()) || regex.is_match(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_patterns_and_all() {
        let wants = |words: &[&str], path: &str| Images::new(words).unwrap().wants(Path::new(path));
        assert!(!wants(&[], "/lib/libc.so.6") && !wants(&["main"], "/lib/libc.so.6"));
        assert!(wants(&["main", "all"], "/lib/libc.so.6"));
        assert!(wants(&["libstdc++"], "/usr/lib/libstdc++.so.6"));
        let pattern = &["mpi4py|libsolver"];
        assert!(wants(pattern, "/usr/lib/python3/mpi4py/MPI.so") && wants(pattern, "libsolver.so"));
        assert!(!wants(pattern, "/usr/lib/libm.so.6"));
    }

    #[test]
    fn what_is_passed_on_is_what_was_said() {
        let variable = |words: &[&str]| Images::new(words).unwrap().variable();
        assert_eq!(variable(&["main"]), None);
        assert_eq!(variable(&["a", "all"]).as_deref(), Some("all"));
        assert_eq!(variable(&["a", "b|c"]).as_deref(), Some("a\nb|c"));
        assert!(Images::new(&["(a"]).is_err() && Images::new(&[""]).is_err());
    }
}
