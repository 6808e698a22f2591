//! Paths through the source, as far as locks go: what a healthy run says nothing of is often one `if` away from it.
//!
//! The helper in Go ([`crate::usages`]) writes down of each function the locks, calls, branches, loops and returns
//! ([`Function`]); here all paths through them are walked ([`mod@walk`]), and what is left is
//!
//! * a lock that is taken by whoever holds it, on some path, in the same function or through calls;
//! * a lock that one way out of a function gives back and another does not;
//! * who takes which lock with which other held, for circles of orders.
//!
//! *Not seen*: calls through interfaces and values of functions, and through more calls than [`walk::DEEPEST`]; locks of which the source does not say that they
//! are the same object (elements, results of calls, variables that change). Functions with `goto`, `fallthrough`, or more than [`walk::MOST`]
//! states are left out. A path may be one that no run can go: what is asked twice in the same words has one answer,
//! else every branch is free. So all this is suspicion, and is told of a run only where the run took the first lock at
//! that line ([`crate::prediction`]). *Costs*: O(steps x states) for each function once.

mod walk;

use crate::tree::Place;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A lock, as the source names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Lock {
    /// Which object, for as long as the function runs: `p0.home.mu` from its receiver, `p1.mu` from its first
    /// parameter, `g:...` of the package, `v:...` of a variable. Empty where the source does not say.
    #[serde(default)]
    pub path: String,
    /// The field or variable: `shop.Cart.mu`.
    pub class: String,
    /// As the source has it.
    pub said: String,
}

/// What a function does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[allow(missing_docs)] // the words say it; `line` is from 1
pub enum Step {
    Lock {
        line: u32,
        lock: Lock,
    },
    RLock {
        line: u32,
        lock: Lock,
    },
    Unlock {
        line: u32,
        lock: Lock,
    },
    RUnlock {
        line: u32,
        lock: Lock,
    },
    TryLock {
        lock: Lock,
    },
    TryRLock {
        lock: Lock,
    },
    /// The method that unlocks is given away.
    Give {
        lock: Lock,
    },
    Call {
        line: u32,
        to: String,
        /// Paths of receiver and arguments; empty where they have none.
        passed: Vec<String>,
    },
    /// One arm is taken; of two with `asks`, the first where it holds.
    Branch {
        #[serde(default)]
        arms: Vec<Vec<Step>>,
        #[serde(default, rename = "if")]
        asks: String,
        #[serde(default)]
        label: String,
        /// Whether `break` leaves it.
        #[serde(default)]
        breaks: bool,
        /// Whether it asks for a value that a caller passes.
        #[serde(default)]
        given: bool,
    },
    Loop {
        #[serde(default)]
        body: Vec<Step>,
        #[serde(default)]
        label: String,
        /// Left by its own steps alone.
        #[serde(default)]
        endless: bool,
    },
    /// The body of a literal that runs where it stands.
    Literal {
        #[serde(default)]
        body: Vec<Step>,
    },
    Defer {
        #[serde(default)]
        body: Vec<Step>,
    },
    Return {
        line: u32,
    },
    Break {
        #[serde(default)]
        label: String,
    },
    Continue {
        #[serde(default)]
        label: String,
    },
    /// Nothing behind it is done: `panic`, `os.Exit`, `t.Fatal`.
    Stop {},
    /// What it changes, as the source has it.
    Assign {
        is: Vec<String>,
    },
}

/// A function that comes to a lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Function {
    /// `(*shop.Cart).add`
    pub function: String,
    /// Its file.
    pub file: String,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A lock that is held when something happens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// Where it was taken: the line of `Lock` itself.
    pub place: Place,
    /// Its field or variable.
    pub class: String,
    /// As the source has it.
    pub said: String,
    /// Whether only to read.
    pub reading: bool,
}

/// A lock that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Where.
    pub place: Place,
    /// Its field or variable.
    pub class: String,
    /// Whether only to read.
    pub reading: bool,
    /// The calls that lead there, the outermost first.
    pub via: Vec<Place>,
}

/// What some path does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// The same lock again, by whoever holds it.
    Again {
        /// Held.
        held: Taken,
        /// And wanted.
        wanted: Wanted,
    },
    /// A way out with it, where another gives it back.
    Kept {
        /// Held.
        held: Taken,
        /// The way out.
        out: Place,
    },
}

/// With one lock held another is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nesting {
    /// Held.
    pub held: Taken,
    /// And wanted.
    pub wanted: Wanted,
}

/// What the source's paths do with locks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// What no run should do.
    pub hazards: Vec<Hazard>,
    /// Orders of locks of different fields or variables.
    pub nestings: Vec<Nesting>,
    /// The field or variable that is locked at a line; none where a line has several.
    pub classes: BTreeMap<Place, Option<String>>,
}

impl Paths {
    /// Walks all paths of all functions.
    #[must_use]
    pub fn of(functions: &[Function]) -> Self {
        walk::walk(functions)
    }
}

#[cfg(test)]
mod tests;
