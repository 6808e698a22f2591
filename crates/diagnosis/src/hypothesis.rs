//! What a detector says.

use crate::Certainty;

/// What a suspect did; what tells most of it comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It went another way than in a normal run: that names the call.
    Departed,
    /// It called another collective operation than others, or with another root or size: it cannot complete so.
    Stops,
    /// The same, but only the majority says so: a normal run does not, or only those who wait for each other are asked.
    Outvoted,
    /// It asked for another message than was sent, and than its series says.
    Asked,
    /// It asks for what was never sent.
    Asks,
    /// One call is missing, as all its calls before show.
    LeftOut,
    /// It sent a message elsewhere, or with another tag.
    Sent,
    /// It is past a collective operation in which others wait.
    Passed,
    /// A message, or a call within a round, is missing; or it went another way than it used to.
    Missing,
    /// It said something else in an operation that completed.
    Misled,
    /// It sent a message that nobody received.
    Unreceived,
    /// It is past the place where others wait for a message of it.
    WentOn,
    /// It computes.
    Computes,
    /// It ended by itself before the others.
    Left,
    /// It died.
    Died,
    /// It owes a message, in the place of which another one came.
    Displaced,
}

/// That a task is to blame, for what, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hypothesis {
    /// The task.
    pub suspect: u32,
    /// What it did.
    pub kind: Kind,
    /// How many tasks wait for it, or are in an operation with it that cannot complete.
    pub explains: usize,
    /// Whether one of those is a task for which all others wait in the end.
    pub holds_up: bool,
}

impl Hypothesis {
    /// One that explains nothing yet.
    #[must_use]
    pub const fn new(suspect: u32, kind: Kind) -> Self {
        Self {
            suspect,
            kind,
            explains: 0,
            holds_up: false,
        }
    }

    /// How certain it is.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self.kind {
            Kind::Departed if self.explains > 0 => Certainty::Shown,
            Kind::Departed => Certainty::ShownAlone,
            Kind::Stops => Certainty::Stops,
            Kind::Outvoted => Certainty::Outvoted,
            Kind::Asked | Kind::Sent => Certainty::Astray,
            Kind::Asks => Certainty::Asks,
            Kind::LeftOut | Kind::Missing => Certainty::Missing,
            Kind::Passed => Certainty::Passed,
            Kind::Misled => Certainty::Misled,
            Kind::Unreceived => Certainty::Unreceived,
            Kind::WentOn => Certainty::WentOn,
            Kind::Computes => Certainty::Computes,
            Kind::Left => Certainty::Left,
            Kind::Died => Certainty::Died,
            Kind::Displaced => Certainty::Displaced,
        }
    }
}
