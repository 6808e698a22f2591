//! What of a program's concurrency the executions of a test have exercised.
//!
//! A *requirement* is that a usage at some line, in some node of the goroutine tree, once behaved in some way:
//!
//! | usage | blocked | unblocking | blocking | nop |
//! |---|---|---|---|---|
//! | send, receive, each case of a `select` without `default` | x | x | | x |
//! | lock, read lock | x | | x | |
//! | close, unlock, signal, broadcast, done, `select` with `default` | | x | | x |
//! | wait | x | | | x |
//! | cond wait | x | | | |
//! | go, add, try-lock, once | | | | x |
//!
//! *Blocked*: it had to wait. *Unblocking*: it let somebody go on. *Blocking*: somebody had to wait for the lock
//! that it took. *Nop*: none of these. A send that only ever met channels without a buffer cannot be a nop, and
//! is not asked to be one. Cases, and which nodes come to a usage, are learnt at run time, so that the share can
//! fall when a run comes to something new; usages known from the source and never reached count as well.
//!
//! Merging is a union: the order of executions does not matter. *Costs*: O(events); memory by usages x nodes.

mod observe;
mod report;
mod words;

pub use report::{Covered, Report, UsageReport};

use crate::execution::{Action, Execution};
use crate::tree::{Place, Tree};
use crate::usages;
use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A concurrency usage: what the source does at some line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Usage {
    /// Where.
    pub place: Place,
    /// What.
    pub action: Action,
}

impl Usage {
    /// One of the source, as runs record it; `None` of those that make no events (atomics, cancellations), and of which
    /// nothing is required.
    #[must_use]
    pub fn in_source(it: &usages::Usage) -> Option<Self> {
        let (kind, line) = it.recorded()?;
        let kind: StrDeserializer<'_, Error> = kind.into_deserializer();
        Some(Self {
            action: Action::deserialize(kind).ok()?,
            place: Place {
                file: it.file.clone(),
                line,
            },
        })
    }
}

/// How a usage behaved. A usage is a source line with a channel operation, lock, wait or similar.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The goroutine had to wait.
    Blocked,
    /// It let a waiting goroutine continue.
    Unblocking,
    /// Another goroutine had to wait for the lock that it took.
    Blocking,
    /// No goroutine waited, neither this one nor another.
    Nop,
}

impl Aspect {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Unblocking => "unblocking",
            Self::Blocking => "blocking",
            Self::Nop => "nop",
        }
    }
}

/// One case of a `select`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct CaseOf {
    /// Number of the case in source order, from 0.
    pub index: u32,
    /// What the case does: `send` or `receive`.
    pub action: Action,
}

/// The places of `go` statements from the root of the goroutine tree: the same in every run. Empty for main.
pub type NodePath = Vec<Option<Place>>;

/// A usage in a node.
type Key = (NodePath, Usage);

/// What was learnt of a usage in a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// In how many executions it behaved so.
    seen: BTreeMap<(Option<CaseOf>, Aspect), u64>,
    cases: BTreeSet<CaseOf>,
    has_default: bool,
    /// Whether a channel with room was seen there.
    is_buffered: bool,
}

/// A requirement; [`Coverage::requirements`] says whether it is covered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Which usage.
    pub usage: Usage,
    /// In which node; `None` of a usage that no goroutine ever came to.
    pub node: Option<NodePath>,
    /// Which case of a `select`.
    pub case: Option<CaseOf>,
    /// How it should behave.
    pub aspect: Aspect,
}

/// What some executions together have covered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    executions: u64,
    entries: BTreeMap<Key, Entry>,
    /// What each node runs.
    nodes: BTreeMap<NodePath, String>,
    expected: BTreeSet<Usage>,
}

/// Number of requirements, and how many of them are covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Number of requirements that at least one execution covered.
    pub covered: u64,
    /// Number of all requirements.
    pub total: u64,
}

impl Totals {
    /// In percent; 100 where nothing is required.
    pub fn percent(self) -> f64 {
        if self.total == 0 {
            100.0
        } else {
            self.covered as f64 * 100.0 / self.total as f64
        }
    }
}

impl Coverage {
    /// Of no execution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Usages that the source has, whether or not an execution comes to them.
    pub fn expect(&mut self, usages: impl IntoIterator<Item = Usage>) {
        self.expected.extend(usages);
    }

    /// Adds what `execution` covered; says how many requirements were covered for the first time.
    pub fn add(&mut self, execution: &Execution) -> u64 {
        let before = self.totals().covered;
        self.merge(&Self::of(execution));
        self.totals().covered - before
    }

    /// What one execution covered.
    pub fn of(execution: &Execution) -> Self {
        let mut tree = Tree::default();
        let nodes = tree.add(execution);
        let paths: Vec<Option<NodePath>> = nodes
            .iter()
            .map(|it| it.map(|it| tree.path(it).split_off(1)))
            .collect();
        let mut coverage = Self {
            executions: 1,
            entries: observe::entries(execution, &paths),
            ..Self::default()
        };
        for (path, goroutine) in paths.into_iter().zip(&execution.goroutines) {
            if let Some(path) = path {
                coverage
                    .nodes
                    .entry(path)
                    .or_insert(goroutine.entry.clone());
            }
        }
        coverage
    }

    /// Adds what `other` covered.
    pub fn merge(&mut self, other: &Self) {
        self.executions += other.executions;
        self.expected.extend(other.expected.iter().cloned());
        for (path, entry) in &other.nodes {
            let known = self.nodes.entry(path.clone()).or_insert(entry.clone());
            // Two functions at one statement: any, as long as the order of merging does not choose it.
            if entry < known {
                known.clone_from(entry);
            }
        }
        for (key, more) in &other.entries {
            let entry = self.entries.entry(key.clone()).or_default();
            for (seen, count) in &more.seen {
                *entry.seen.entry(*seen).or_default() += count;
            }
            entry.cases.extend(&more.cases);
            entry.has_default |= more.has_default;
            entry.is_buffered |= more.is_buffered;
        }
    }

    /// How many executions were added.
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// Every requirement with the number of executions that covered it.
    pub fn requirements(&self) -> Vec<(Requirement, u64)> {
        let mut all = Vec::new();
        let mut reached = BTreeSet::new();
        for ((node, usage), entry) in &self.entries {
            reached.insert(usage);
            for (case, aspect) in required(usage.action, Some(entry)) {
                let requirement = Requirement {
                    usage: usage.clone(),
                    node: Some(node.clone()),
                    case,
                    aspect,
                };
                all.push((
                    requirement,
                    entry.seen.get(&(case, aspect)).copied().unwrap_or(0),
                ));
            }
        }
        for usage in &self.expected {
            if reached.contains(usage) {
                continue;
            }
            for (case, aspect) in required(usage.action, None) {
                let requirement = Requirement {
                    usage: usage.clone(),
                    node: None,
                    case,
                    aspect,
                };
                all.push((requirement, 0));
            }
        }
        all.sort();
        all
    }

    /// Covered of all.
    pub fn totals(&self) -> Totals {
        let all = self.requirements();
        Totals {
            covered: all.iter().filter(|it| it.1 > 0).count() as u64,
            total: all.len() as u64,
        }
    }

    /// Everything in values: for text, JSON and pages.
    pub fn report(&self) -> Report {
        report::report(self)
    }
}

/// What is asked of a usage.
fn required(action: Action, entry: Option<&Entry>) -> Vec<(Option<CaseOf>, Aspect)> {
    use Aspect::{Blocked, Blocking, Nop, Unblocking};
    let aspects: &[Aspect] = match action {
        Action::Send if entry.is_some_and(|it| !it.is_buffered) => &[Blocked, Unblocking],
        Action::Send | Action::Receive => &[Blocked, Unblocking, Nop],
        Action::Lock | Action::RLock => &[Blocked, Blocking],
        Action::Close
        | Action::Unlock
        | Action::RUnlock
        | Action::Signal
        | Action::Broadcast
        | Action::Done => &[Unblocking, Nop],
        Action::Wait => &[Blocked, Nop],
        Action::CondWait => &[Blocked],
        Action::Go | Action::Add | Action::TryLock | Action::TryRLock | Action::Once => &[Nop],
        Action::Sleep => &[],
        Action::Select => match entry {
            Some(entry) if entry.has_default => &[Unblocking, Nop],
            Some(entry) => {
                return entry
                    .cases
                    .iter()
                    .flat_map(|case| {
                        let possible = match case.action {
                            Action::Send if !entry.is_buffered => &[Blocked, Unblocking][..],
                            _ => &[Blocked, Unblocking, Nop],
                        };
                        possible.iter().map(|it| (Some(*case), *it))
                    })
                    .collect();
            }
            None => &[Blocked, Unblocking, Nop],
        },
    };
    aspects.iter().map(|it| (None, *it)).collect()
}

#[cfg(test)]
mod tests;
