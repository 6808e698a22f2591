//! Whether what a run did is among what normal runs did.
//!
//! One rule for all: of each quantity, the least and the most that normal runs have are allowed, and what lies between. Without a
//! run that has it, it is 0. What each call of a function made has to be one of the lists that normal runs made, each as often as there;
//! or, if that varies from one normal run to the next, or is a matter of timing by the function's nature, each call has to be followed
//! by what follows it in some normal run. Locks and waits change what share of the work a call does, and not in what order: calls of a
//! function that make the same calls, each in one row, make them in the orders of a normal run, each as often ([`keeps_orders`]).
//!
//! *Guarantee*: what is allowed beside some normal runs is allowed beside more of them. Each condition compares with a set, or with
//! the ends of an interval, that only grows with each run, and where there are two conditions either one will do.

use super::behaviour::{Amount, Behaviour, Frames, Given, OfProcess};
use super::settled::{Follows, Sequence};
use crate::calls::Edge;
use crate::structure::arguments::Said;
use lockstep_calltree::FunctionKey;
use lockstep_trace::{EndKind, ProcessName};
use std::collections::{BTreeMap, BTreeSet};

/// The least and the most that normal runs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub fewest: u64,
    pub most: u64,
}

impl Range {
    fn of(all: impl Iterator<Item = u64>) -> Self {
        let mut range = Self {
            fewest: u64::MAX,
            most: 0,
        };
        for each in all {
            range.fewest = range.fewest.min(each);
            range.most = range.most.max(each);
        }
        range.fewest = range.fewest.min(range.most);
        range
    }

    fn has(self, number: u64) -> bool {
        (self.fewest..=self.most).contains(&number)
    }
}

/// How a run ended: in which way, and with which number.
pub(super) type Ended = (EndKind, Option<i32>);

/// What is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Departure {
    /// A process that some normal run has, and all of them.
    Missing,
    /// One that none has.
    Extra,
    End {
        normal: Ended,
        now: Ended,
    },
    Calls {
        edge: Edge,
        normal: Range,
        now: u64,
    },
    /// What a function's calls make; the first pair of calls that no normal run has one behind the other.
    Order {
        function: FunctionKey,
        new: Option<Follows>,
    },
    /// What a call of MPI was given; the argument that no normal run says so, if it is one.
    Given {
        function: String,
        said: Option<(&'static str, Said)>,
        normal: Vec<Said>,
    },
}

/// All that is not allowed, by process.
pub(super) fn departures(
    normals: &[&Behaviour],
    now: &Behaviour,
    ignores_counts: bool,
) -> Vec<(ProcessName, Departure)> {
    let names: BTreeSet<ProcessName> = (normals.iter().copied().chain([now]))
        .flat_map(|it| it.processes.keys().copied())
        .collect();
    let mut found = Vec::new();
    for name in names {
        let before: Vec<&OfProcess> = (normals.iter())
            .filter_map(|it| it.processes.get(&name))
            .collect();
        let Some(own) = now.processes.get(&name) else {
            if before.len() == normals.len() {
                found.push((name, Departure::Missing));
            }
            continue;
        };
        if before.is_empty() {
            found.push((name, Departure::Extra));
            continue;
        }
        let beside = Beside {
            normals: &before,
            now: own,
            ignores_counts,
            is_all: false,
        };
        found.extend(beside.departures().into_iter().map(|it| (name, it)));
    }
    let first_come = normals.iter().any(|it| it.first_come) || now.first_come;
    if first_come && !found.is_empty() {
        // Which of the processes did a piece of work is a matter of timing.
        let all: Vec<OfProcess> = normals.iter().map(|it| together(it)).collect();
        let beside = Beside {
            normals: &all.iter().collect::<Vec<_>>(),
            now: &together(now),
            ignores_counts,
            is_all: true,
        };
        found.retain(|(_, departure)| !beside.allows(departure));
    }
    found
}

/// All processes of a run as one.
fn together(run: &Behaviour) -> OfProcess {
    let mut all = OfProcess::default();
    for process in run.processes.values() {
        for (edge, amount) in &process.calls {
            let sum = all.calls.entry(*edge).or_default();
            sum.times = sum.times.saturating_add(amount.times);
            sum.is_timed |= amount.is_timed;
        }
        for (function, frames) in &process.frames {
            let sum = all.frames.entry(*function).or_default();
            sum.follows.extend(&frames.follows);
            sum.sorted.extend(&frames.sorted);
            sum.shares |= frames.shares;
            sum.answers |= frames.answers;
            for (list, times) in &frames.lists {
                *sum.lists.entry(*list).or_default() += times;
            }
        }
        for (function, given) in &process.given {
            let sum = all.given.entry(function.clone()).or_default();
            for (given, times) in given {
                *sum.entry(given.clone()).or_default() += times;
            }
        }
    }
    all
}

/// A process beside those of normal runs.
struct Beside<'a> {
    normals: &'a [&'a OfProcess],
    now: &'a OfProcess,
    ignores_counts: bool,
    /// Whether it is all processes together: who says what depends on who comes first.
    is_all: bool,
}

impl Beside<'_> {
    fn departures(&self) -> Vec<Departure> {
        let mut found = Vec::new();
        let ends = || self.normals.iter().filter_map(|it| it.end);
        if let (Some(now), Some(normal)) = (self.now.end, ends().next())
            && ends().all(|it| it != now)
        {
            found.push(Departure::End { normal, now });
        }
        let all = || self.normals.iter().copied().chain([self.now]);
        let edges: BTreeSet<Edge> = all().flat_map(|it| it.calls.keys().copied()).collect();
        found.extend(edges.into_iter().filter_map(|edge| self.calls(edge)));
        found.extend(self.now.frames.keys().filter_map(|it| self.order(*it)));
        found.extend(self.now.given.keys().filter_map(|it| self.given(it)));
        found
    }

    /// Whether something that departs elsewhere is as in the normal runs here.
    fn allows(&self, departure: &Departure) -> bool {
        match departure {
            Departure::Missing | Departure::Extra | Departure::End { .. } => false,
            Departure::Calls { edge, .. } => self.calls(*edge).is_none(),
            Departure::Order { function, .. } => self.order(*function).is_none(),
            Departure::Given { function, .. } => self.given(function).is_none(),
        }
    }

    fn calls(&self, edge: Edge) -> Option<Departure> {
        let of = |it: &OfProcess| it.calls.get(&edge).copied().unwrap_or_default();
        let amounts: Vec<Amount> = self.normals.iter().map(|it| of(it)).collect();
        let now = of(self.now);
        let is_timed = now.is_timed || amounts.iter().any(|it| it.is_timed);
        let counted = |times: u64| match self.ignores_counts || is_timed {
            true => times.min(1),
            false => times,
        };
        let allowed = Range::of(amounts.iter().map(|it| counted(it.times)));
        let normal = Range::of(amounts.iter().map(|it| it.times));
        (!allowed.has(counted(now.times))).then_some(Departure::Calls {
            edge,
            normal,
            now: now.times,
        })
    }

    fn order(&self, function: FunctionKey) -> Option<Departure> {
        let now = self.now.frames.get(&function)?;
        let normals: Vec<&Frames> = (self.normals.iter())
            .filter_map(|it| it.frames.get(&function))
            .collect();
        if now.lists.is_empty() {
            return None;
        }
        if as_often(
            &self.each(|it| Some(&it.frames.get(&function)?.lists)),
            &now.lists,
        ) {
            return None;
        }
        let mut follows: BTreeSet<Follows> = BTreeSet::new();
        for each in &normals {
            follows.extend(&each.follows);
        }
        let shares = now.shares || normals.iter().any(|it| it.shares);
        if shares {
            follows = closed(&follows);
        }
        let new = now.follows.iter().find(|it| !follows.contains(it)).copied();
        let answers = now.answers || normals.iter().any(|it| it.answers);
        let varies = self.ignores_counts
            || (shares && (answers || keeps_orders(&normals, now)))
            || self.normals.windows(2).any(|it| {
                let lists = |it: &OfProcess| it.frames.get(&function).map(|it| it.lists.clone());
                lists(it[0]) != lists(it[1])
            });
        (new.is_some() || !varies).then_some(Departure::Order { function, new })
    }

    /// A table of each normal run, and an empty one where it has none.
    fn each<'a, T>(&'a self, of: impl Fn(&'a OfProcess) -> Option<&'a T>) -> Vec<Option<&'a T>> {
        self.normals.iter().map(|it| of(it)).collect()
    }

    fn given(&self, function: &str) -> Option<Departure> {
        let now = self.now.given.get(function)?;
        let tables = self.each(|it| it.given.get(function));
        if as_often(&tables, now) {
            return None;
        }
        let varies =
            self.ignores_counts || self.is_all || tables.windows(2).any(|it| it[0] != it[1]);
        let said = |name: &str,
                    tables: &mut dyn Iterator<Item = &BTreeMap<Given, u64>>|
         -> BTreeSet<Said> {
            let all = tables.flat_map(|it| it.keys().flatten());
            all.filter(|it| it.0 == name)
                .map(|it| it.1.clone())
                .collect()
        };
        for (name, value) in now.keys().flatten() {
            let normal = said(name, &mut tables.iter().flatten().copied());
            let is_between = match value {
                Said::Number(_) if self.ignores_counts => true,
                Said::Name(_) => false,
                Said::Number(_) | Said::Offset(_) => {
                    let below = normal.range(..value.clone()).any(|it| is_kin(it, value));
                    varies && below && normal.range(value.clone()..).any(|it| is_kin(it, value))
                }
            };
            if !normal.contains(value) && !is_between {
                return Some(Departure::Given {
                    function: function.to_owned(),
                    said: Some((name, value.clone())),
                    normal: normal.into_iter().collect(),
                });
            }
        }
        (!varies).then(|| Departure::Given {
            function: function.to_owned(),
            said: None,
            normal: Vec::new(),
        })
    }
}

fn is_kin(a: &Said, b: &Said) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Whether everything stands in a table as often as in those of normal runs.
fn as_often<K: Ord>(normals: &[Option<&BTreeMap<K, u64>>], now: &BTreeMap<K, u64>) -> bool {
    let keys = normals.iter().flatten().flat_map(|it| it.keys());
    let keys: BTreeSet<&K> = keys.chain(now.keys()).collect();
    keys.into_iter().all(|key| {
        let of = |table: &BTreeMap<K, u64>| table.get(key).copied().unwrap_or(0);
        let range = Range::of(normals.iter().map(|it| it.map_or(0, of)));
        range.has(of(now))
    })
}

/// Whether lists of the same calls are spread over their orders as in normal runs. If there are more of them than in a normal run, or fewer,
/// those may be in any order. A list that goes back to a function behind another may go by what it took: its order is not judged.
fn keeps_orders(normals: &[&Frames], now: &Frames) -> bool {
    let of = |it: &Frames, list: &Sequence| it.lists.get(list).copied().unwrap_or(0);
    let totals = |it: &Frames| {
        let mut totals: BTreeMap<Sequence, u64> = BTreeMap::new();
        for (list, sorted) in &it.sorted {
            *totals.entry(*sorted).or_default() += of(it, list);
        }
        totals
    };
    let normals: Vec<_> = normals.iter().map(|it| (*it, totals(it))).collect();
    let own = totals(now);
    let each = normals.iter().map(|it| it.0).chain([now]);
    let lists: BTreeSet<_> = each.flat_map(|it| &it.sorted).collect();
    lists.into_iter().all(|(list, sorted)| {
        let total = |it: &BTreeMap<Sequence, u64>| it.get(sorted).copied().unwrap_or(0);
        let ends = normals.iter().flat_map(|(normal, totals)| {
            let (times, before, now) = (of(normal, list), total(totals), total(&own));
            let fewest = times.saturating_sub(before.saturating_sub(now));
            [fewest, times + now.saturating_sub(before)]
        });
        Range::of(ends).has(of(now, list))
    })
}

/// What follows what, over what may not have been done at all: a share of some work may be empty.
fn closed(follows: &BTreeSet<Follows>) -> BTreeSet<Follows> {
    let starts: BTreeSet<Option<FunctionKey>> = follows.iter().map(|it| it.0).collect();
    let mut all = BTreeSet::new();
    for start in starts {
        let mut open = vec![start];
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            let next = follows.range((at, None)..).take_while(|it| it.0 == at);
            for (_, to) in next {
                if seen.insert(*to) {
                    // The end leads nowhere.
                    open.extend(to.map(Some));
                    all.insert((start, *to));
                }
            }
        }
    }
    all
}

#[cfg(test)]
#[path = "allowed_tests.rs"]
mod tests;
