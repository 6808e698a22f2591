//! The compression suite: programs whose event streams differ in kind (`programs/suite`).

use crate::Recipe;

/// A program of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Its source in `programs/suite`.
    pub source: &'static str,
    /// What it is called with.
    pub arguments: &'static [&'static str],
}

const fn member(
    name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
) -> Member {
    Member {
        name,
        source,
        arguments,
    }
}

/// The suite.
pub const SUITE: [Member; 11] = [
    member("nested", "nested.c", &[]),
    member("varying", "varying.c", &[]),
    member("search_tree", "search_tree.c", &[]),
    member("sorting", "sorting.c", &[]),
    member("sparse", "sparse.c", &["60"]),
    member("sparse_changing", "sparse.c", &["60", "changing"]),
    member("polling", "polling.c", &[]),
    member("interpreter", "interpreter.c", &[]),
    member("long_steps", "long_steps.c", &[]),
    member("recursion", "recursion.c", &[]),
    member("exceptions", "exceptions.cpp", &[]),
];

impl Member {
    /// The program, built, and its arguments.
    ///
    /// # Panics
    /// If its compiler is not there.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let program = Recipe::new(&format!("suite/{}", self.source))
            .flag("-O1")
            .build();
        let mut words = vec![program.display().to_string()];
        words.extend(self.arguments.iter().map(|&word| word.to_owned()));
        words
    }
}
