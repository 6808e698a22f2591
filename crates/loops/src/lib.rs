//! Nested loop recognition: folds a sequence of tokens into loops, and gives it back unchanged.
//!
//! The principal function is [`fold`]: `a b a b a b c` becomes `L0^3 c` with the body `L0 = a b`. The
//! bodies live in a [`Bodies`] table that any number of sequences share, so that the same loop has the
//! same [`BodyId`] wherever it occurs, and the same [`Bodies::hash`] in whatever table.
//!
//! ```
//! use lockstep_loops::{Bodies, Element, Mode, Names, expand, fold};
//!
//! let (send, recv, finalize) = (0, 1, 2);
//! let tokens = [send, recv, send, recv, send, recv, finalize];
//! let mut bodies = Bodies::new();
//! let sequence = fold(tokens, 10, Mode::Shape, &mut bodies);
//! assert_eq!(sequence.len(), 2);
//! let Element::Loop(looped) = &sequence[0] else { panic!("a loop comes first") };
//! assert_eq!(looped.count(), 3);
//! assert_eq!(sequence[1], Element::Symbol(finalize));
//!
//! let mut names = Names::new();
//! names.scan(&sequence, &bodies);
//! assert_eq!(names.label(looped.body()), "L0");
//!
//! let mut again = Vec::new();
//! expand(&sequence, &bodies, &mut |token| again.push(token));
//! assert_eq!(again, tokens);
//! ```
//!
//! *The rules* (R = 2 copies make a loop, K is the longest body in elements). Push the next token on a
//! stack, then repeat until none applies, left to right, smallest body first, no look-ahead:
//!
//! * M: the top two elements are loops with the same body: they become one, counts added;
//! * E: the top `b` elements are the body of the loop just below them: it counts one more;
//! * F: the top two blocks of `b` elements are equal: they become a loop, twice.
//!
//! In [`Mode::Shape`] two loops inside a body are equal when their bodies are, whatever their counts
//! (these are kept beside, in [`Loop::inner`]); in [`Mode::Exact`] the counts must agree too.
//!
//! *Guarantees*: `expand(fold(x)) = x`; the result depends on nothing but the sequence, K and the mode;
//! it equals that of [`reference::fold`], which follows the rules literally. *Costs*, whatever K below 64: some hundred instructions
//! a token that does what it did before on the same stack (in [`Mode::Shape`], within a loop that has come four times), else two
//! to five hundred, by how often it completes an iteration or begins a loop. Memory while it is folded is 4 bytes an element,
//! about sixty a loop, and 2 MB for what is remembered at most; 24 an element at the end.
//! *Not for*: the smallest possible grammar (the rules are greedy on purpose: the same behaviour must fold
//! alike in every trace).

mod body;
mod echoes;
mod element;
mod folding;
mod habits;
mod hash;
mod names;
mod repeat;
mod stack;
mod standing;

pub mod reference;

pub use body::{Bodies, BodyId, Key};
pub use element::{Element, Loop, Runs, Trips, expand};
pub use folding::{CountsMark, Folding, fold};
pub use hash::Hasher128;
pub use names::Names;
pub use repeat::Repeat;
pub use stack::{Content, Stack};

/// Whether trip counts of loops within a body are part of what the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Mode {
    /// They are not: a loop with a varying inner trip count is one loop.
    #[default]
    Shape,
    /// They are.
    Exact,
}

/// How many copies in a row make a loop. Two is the only value that reproduces the published tables
/// (two iterations are shown as `L0^2` there).
pub const COPIES: usize = 2;
