//! What keeps a comparison from being made.

/// Why there is no result. Every message says what was expected and what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option's value is not one of those it can have.
    #[error("{option}: expected {expected}, found `{found}`")]
    Value {
        /// The option, as it is written on the command line.
        option: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        found: String,
    },
    /// A regular expression does not parse.
    #[error("{option}: `{pattern}` is not a regular expression: {reason}")]
    Pattern {
        /// The option it was given to.
        option: &'static str,
        /// The expression.
        pattern: String,
        /// The parser's words, in one line.
        reason: String,
    },
    /// Nothing is left to look at.
    #[error("{0}")]
    Nothing(String),
    /// The result would be too large.
    #[error("{0}")]
    TooLarge(String),
}
