//! Why others wait: what a task did otherwise, as a value.

use crate::astray::Misdirection;
use crate::departure::Departure;
use crate::gap::Gap;
use crate::lapse::Lapse;
use crate::omission::Omission;
use lockstep_diagnosis::{Callers, Hypothesis, Kind};
use lockstep_trace::{Site, SourceLine, TraceName, is_standard};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A task that departed from what is normal, and others wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub task: u32,
    /// Who waits for it.
    pub victims: Vec<u32>,
    /// What it did.
    pub deed: Deed,
    /// The call that it was, or earlier ones like that which it left out.
    pub(crate) alike: Alike,
    /// Where these were made.
    pub site: Option<Site>,
    /// How it is ranked beside others.
    pub hypothesis: Hypothesis,
}

/// Calls, as trace and event, that tell where one was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Alike {
    /// By the same functions.
    pub along: Vec<(TraceName, u64)>,
    /// Of the same messages: those that are waited for.
    pub sent: Vec<(TraceName, u64)>,
}

/// What a task did that made others wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It left calls out, or did something else.
    Departed {
        /// What.
        departure: Departure,
        /// Whether a normal run shows it; else the task's own habit.
        by_normal: bool,
    },
    /// A round of a loop lacks a call.
    Lapsed(Lapse),
    /// It sent to all but one.
    Skipped(Gap),
    /// A message was not between two others, or not in an exchange.
    Omitted(Omission),
    /// A message went astray.
    Misdirected(Misdirection),
    /// It is past the place where most call this collective operation, and did not call it.
    Passed(Arc<str>),
    /// It is past the place where others wait for a message of it: it came to its end, or waits in a collective operation, or is in
    /// a later iteration.
    WentOn,
    /// It called another collective operation than those who are right, or with another root or size, or came to it another way.
    Differed {
        /// Which.
        name: Arc<str>,
        /// Which most called, where that is another.
        instead_of: Option<Arc<str>>,
        /// How it took part.
        did: Part,
        /// How most did, or those who are right.
        most: Part,
        /// Whether a normal run says who is right.
        by_normal: bool,
        /// Whether it cannot complete for that.
        stops: bool,
    },
}

/// How a task took part in a collective operation, as far as others did otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// It called this.
    Called(String),
    /// It called this with that.
    CalledWith(Arc<str>, String),
    /// It called this from there.
    CalledFrom(Arc<str>, Callers),
    /// It called this there.
    CalledAt {
        /// What.
        name: Arc<str>,
        /// In which line, if that is known.
        line: Option<SourceLine>,
        /// Whether others called the same there, in another communicator.
        is_apart: bool,
    },
    /// It named this root.
    Root(String),
    /// It had this size, reduction, or these terms.
    Had(String),
    /// It came another way.
    OtherWay,
}

impl Cause {
    /// Of this task, for which nobody is known to wait.
    #[must_use]
    pub fn of(task: u32, deed: Deed) -> Self {
        Self {
            task,
            victims: Vec::new(),
            alike: Alike {
                along: match &deed {
                    Deed::Misdirected(message) => message.call.into_iter().collect(),
                    _ => Vec::new(),
                },
                sent: Vec::new(),
            },
            hypothesis: Hypothesis::new(task, kind(&deed)),
            deed,
            site: None,
        }
    }

    /// Takes in who waits for it: all others wait for those of `held_up`, and those of `wrong` are wrong in an operation that
    /// cannot complete.
    pub(crate) fn suppose(
        &mut self,
        held_up: &BTreeSet<u32>,
        wrong: &BTreeSet<u32>,
        beside_normal: bool,
    ) {
        let (is_departure, by_normal) = (self.is_departure(), self.by_normal());
        let it = &mut self.hypothesis;
        it.explains = self.victims.len() + usize::from(wrong.contains(&self.task));
        it.holds_up = is_departure && self.victims.iter().any(|it| held_up.contains(it));
        if it.kind == Kind::Stops && beside_normal && !by_normal {
            it.kind = Kind::Outvoted;
        }
    }

    /// Where its call was made, or those like it.
    #[must_use]
    pub fn lines(&self) -> &[SourceLine] {
        self.site.as_ref().map_or(&[], |it| &it.lines)
    }

    /// Whether the same is to be said of it, whatever calls led there.
    pub(crate) fn is_told_as(&self, other: &Self) -> bool {
        let told = |it: &Departure| {
            let place = it.frames.last().cloned();
            (it.left_out.clone(), it.instead.clone(), place)
        };
        match (&self.deed, &other.deed) {
            (Deed::Departed { departure, .. }, Deed::Departed { departure: of, .. }) => {
                told(departure) == told(of) && self.lines() == other.lines()
            }
            (deed, of) => deed == of,
        }
    }

    /// Whether another task did the same.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (&self.deed, &self.site) == (&other.deed, &other.site)
    }

    /// Whether a normal run shows it.
    #[must_use]
    pub fn by_normal(&self) -> bool {
        match self.deed {
            Deed::Departed { by_normal, .. } | Deed::Differed { by_normal, .. } => by_normal,
            _ => false,
        }
    }

    /// Whether it is that the task went another way than is normal.
    #[must_use]
    pub fn is_departure(&self) -> bool {
        matches!(
            self.deed,
            Deed::Departed { .. } | Deed::Lapsed(_) | Deed::Skipped(_) | Deed::Omitted(_)
        )
    }

    /// Whether it is a message that went astray.
    #[must_use]
    pub fn is_misdirection(&self) -> bool {
        matches!(self.deed, Deed::Misdirected(_))
    }

    /// Whether it is that a message was not sent, or the call that sends it not made: what came behind it is no message that
    /// went astray.
    pub(crate) fn left_a_message_out(&self) -> bool {
        match &self.deed {
            Deed::Omitted(_) | Deed::Skipped(_) => true,
            _ => self.left_a_call_out().is_some(),
        }
    }

    /// The call that was left out, where nothing was done instead.
    pub(crate) fn left_a_call_out(&self) -> Option<&str> {
        match &self.deed {
            Deed::Departed { departure, .. } => departure.only(),
            _ => None,
        }
    }

    /// Whether it is one that this task sent.
    pub(crate) fn is_of_a_message_of(&self, task: u32) -> bool {
        matches!(&self.deed, Deed::Misdirected(message) if message.from == task)
    }

    /// The functions whose calls were wrong, or are missing.
    #[must_use]
    pub fn functions(&self) -> Vec<&str> {
        match &self.deed {
            Deed::Departed { departure, .. } => {
                let all = departure.left_out.iter().chain(&departure.instead);
                all.map(String::as_str).collect()
            }
            Deed::Lapsed(lapse) => vec![lapse.name()],
            Deed::Skipped(gap) => vec![&gap.name],
            Deed::Omitted(omission) => omission.name.as_deref().into_iter().collect(),
            Deed::Misdirected(message) => vec![&message.name],
            Deed::Passed(name) => vec![name],
            Deed::WentOn => Vec::new(),
            Deed::Differed {
                name, instead_of, ..
            } => {
                let instead_of = instead_of.iter().map(|it| &**it);
                std::iter::once(&**name).chain(instead_of).collect()
            }
        }
    }
}

/// What a deed is, beside those of others.
fn kind(deed: &Deed) -> Kind {
    match deed {
        Deed::Departed {
            by_normal: true, ..
        } => Kind::Departed,
        Deed::Departed { departure, .. } if departure.only().is_some() => Kind::LeftOut,
        Deed::Departed { .. } | Deed::Lapsed(_) | Deed::Skipped(_) | Deed::Omitted(_) => {
            Kind::Missing
        }
        Deed::Misdirected(it) if it.by_sender => Kind::Sent,
        Deed::Misdirected(it) if it.asked.is_some() => Kind::Asked,
        Deed::Misdirected(_) => Kind::Asks,
        Deed::Passed(_) => Kind::Passed,
        Deed::WentOn => Kind::WentOn,
        Deed::Differed { stops: true, .. } => Kind::Stops,
        Deed::Differed { .. } => Kind::Misled,
    }
}

impl Departure {
    /// Whether it happened inside of C++'s standard library, compiled into the program.
    pub(crate) fn is_of_a_library(&self) -> bool {
        self.frames.last().is_some_and(|it| is_standard(&it.0))
    }

    /// What was left out, where that is one call and nothing was done instead.
    pub(crate) fn only(&self) -> Option<&str> {
        match (self.left_out.as_slice(), self.instead.is_empty()) {
            ([only], true) => Some(only),
            _ => None,
        }
    }
}
