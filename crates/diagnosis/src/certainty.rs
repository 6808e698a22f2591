//! How certain it is that a suspect is to blame: one total order.

/// How certain it is that a suspect is to blame; the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// A task died of a message, or computes with it, that stood in the place of one that the suspect owed: before anybody waited.
    Displaced,
    /// It died: that is no matter of degree.
    Died,
    /// Its trace differs from those of normal runs, other than by ending early: a fact, and who is waited for is a conclusion.
    Differs,
    /// Few, and it is one of them, call another collective operation, which cannot complete so.
    Stops,
    /// It ended by itself before the others, which wait for it.
    Left,
    /// It computes, and all others wait for it in the end.
    Computes,
    /// A message went astray, and a series or the sender's other messages say who is wrong.
    Astray,
    /// It asks for what was never sent.
    Asks,
    /// It went another way than in a normal run, and others wait for it.
    Shown,
    /// As [`Self::Stops`], but only the majority says so: a normal run does not, or only those who wait for each other are asked.
    Outvoted,
    /// It is past a collective operation in which others wait.
    Passed,
    /// It went another way than in a normal run, and nobody is known to wait for it.
    ShownAlone,
    /// Something is missing that it used to do, or that others do.
    Missing,
    /// It said something else than most in an operation that completed, and went on with that.
    Misled,
    /// It sent a message that nobody received.
    Unreceived,
    /// It is past the place where others wait for its message.
    WentOn,
    /// It is one of those that wait for each other.
    Stuck,
    /// Its trace ends early: perhaps a victim.
    EndsEarly,
}

impl Certainty {
    /// Whether a hypothesis of this certainty leaves nothing to be said of a worse one about another suspect: it explains what
    /// that one saw, or makes it a guess that is not needed.
    #[must_use]
    pub fn silences(self, worse: Self) -> bool {
        use Certainty::{
            Asks, Astray, Computes, Died, Displaced, Left, Misled, Missing, Outvoted, Passed,
            Shown, ShownAlone, Stops, WentOn,
        };
        match (self, worse) {
            (Displaced, _) => true,
            // All wait for who is gone: others did more or less for that. What they said they said.
            (Died | Left, Shown | ShownAlone | Missing) => true,
            // Who sent a message astray made the others do more or less.
            (Astray, Shown | ShownAlone | Missing) => true,
            // The operation cannot complete, whatever came of messages behind it.
            (Stops, Astray | Asks | Passed) | (Outvoted, Passed) => true,
            // What was seen says more than what is missing.
            (Stops | Asks | Outvoted | Passed, Missing) => true,
            // What completed, and places, are asked for only if nothing else is known of what somebody did.
            (Died | Left | Computes, _) => false,
            (_, Misled | WentOn) => true,
            _ => false,
        }
    }
}
