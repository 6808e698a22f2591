//! What attributes are about.

use lockstep_calltree::{FunctionKey, Token};
use lockstep_loops::{BodyId, Element};
use std::collections::BTreeMap;
use std::fmt;

/// An entry, whether its call is open or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Function(u32),
    Loop(BodyId),
}

impl Entry {
    pub(crate) fn of(element: &Element) -> Self {
        match element {
            Element::Symbol(symbol) => Self::Function(plain(*symbol)),
            Element::Loop(looped) => Self::Loop(looped.body()),
        }
    }
}

/// What an attribute is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Entry(Entry),
    Pair(Entry, Entry),
    /// A call, by its caller.
    Call(Option<FunctionKey>, FunctionKey),
    /// The calls around a call, outermost first, and itself.
    Path(Vec<FunctionKey>),
    /// A call while locks are held.
    Holding(Held, FunctionKey),
    /// What somebody says of the object.
    Own(String),
}

/// The symbol of a call, open or not.
fn plain(symbol: u32) -> u32 {
    Token::from_symbol(symbol)
        .function()
        .map_or(symbol, |function| Token::Call(function).symbol())
}

/// Locks that are held, and how often each.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Held(BTreeMap<&'static str, u32>);

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, lock: &'static str) {
        *self.0.entry(lock).or_default() += 1;
    }

    pub(crate) fn give(&mut self, lock: &'static str) {
        if let Some(held) = self.0.get_mut(lock) {
            *held -= 1;
            if *held == 0 {
                self.0.remove(lock);
            }
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(lock, times)| match times {
            1 => (*lock).to_owned(),
            _ => format!("{times} {lock}"),
        });
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}
