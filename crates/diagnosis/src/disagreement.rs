//! Collective operations whose members do not agree, and what is known of them.

use lockstep_check::Mismatch;
use lockstep_comm::PartId;
use lockstep_trace::SourceLine;

/// Which side of a mismatch is right, the first one: by what that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// In a normal run all did as this side does.
    Normal,
    /// More are on this side than on all others.
    Most,
    /// By nothing.
    Unknown,
}

impl Right {
    /// By how many are on each side; what is right, if anything is, is first.
    pub fn most<T>(sides: &[(T, Vec<PartId>)]) -> Self {
        let [(_, first), others @ ..] = sides else {
            return Self::Unknown;
        };
        match others.iter().all(|it| it.1.len() < first.len()) {
            true => Self::Most,
            false => Self::Unknown,
        }
    }
}

/// The calls that led to an operation, as far as they tell it from the same operation of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Callers {
    /// The function that called it; empty where that is not known.
    pub within: String,
    /// The function that called that one, where others came there by it, too.
    pub called_in: Option<String>,
    /// On these lines.
    pub lines: Vec<SourceLine>,
    /// The outermost call of all that others did not make.
    pub under: Option<String>,
}

/// A collective operation whose members do not agree, and what was found out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// What does not fit. If one side is known to be right, it is first.
    pub mismatch: Mismatch,
    /// How each side came to it, where the members went apart here.
    pub callers: Vec<Callers>,
    /// Whether the members went apart here: what does not fit later follows from it.
    pub is_first: bool,
    /// Who is right.
    pub right: Right,
}

impl From<Mismatch> for Disagreement {
    /// As far as the sides tell.
    fn from(mismatch: Mismatch) -> Self {
        Self {
            right: Right::most(&mismatch.sides),
            mismatch,
            callers: Vec::new(),
            is_first: false,
        }
    }
}

impl Disagreement {
    /// Puts the side that is right first; `by` tells how that is known.
    pub fn put_first(&mut self, side: usize, by: Right) {
        self.mismatch.sides[..=side].rotate_right(1);
        if self.callers.len() > side {
            self.callers[..=side].rotate_right(1);
        }
        self.right = by;
    }

    /// Those who are wrong, and what they say; none where nothing says who is.
    pub fn wrong(&self) -> &[(String, Vec<PartId>)] {
        match (self.right, self.mismatch.sides.split_first()) {
            (Right::Normal | Right::Most, Some((_, wrong))) => wrong,
            _ => &[],
        }
    }
}

/// Where the members of its communicator went apart, which a disagreement follows from; else itself.
pub fn origin<'a>(all: &'a [Disagreement], of: &'a Disagreement) -> &'a Disagreement {
    let is_it =
        |it: &&Disagreement| it.is_first && it.mismatch.communicator == of.mismatch.communicator;
    all.iter().find(is_it).unwrap_or(of)
}
