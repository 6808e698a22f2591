//! Roles: which traces do the same work, found from the normal runs.
//!
//! Two traces play one role if they differ no more than each of them differs from itself over the normal
//! runs: in a program that does the same each time, roles are the classes of traces that do the same
//! (boundary ranks, even ranks); in one that does not, workers are one role and their master another.

use super::features::Features;
use lockstep_trace::{ThreadName, TraceName};
use schemars::JsonSchema;
use serde::Serialize;

/// Traces that do the same work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Role {
    /// Name of the role, for `-t`: `worker`, `master`, `boundary`, `role-4`.
    pub name: String,
    /// Traces with this role.
    pub traces: Vec<TraceName>,
}

/// How much further two traces of one role may be apart than each is from itself, on average: a mean over
/// few runs is not exact.
const SLACK: f64 = 1.5;

/// For each name its role, numbered as they first occur, from the first `normals` runs. Names that none
/// of these has play a role of their own.
pub(crate) fn roles(features: &Features, normals: usize) -> Vec<usize> {
    struct Leader {
        classes: Vec<usize>,
        noise: f64,
    }
    let distance = |a: usize, b: usize| {
        let (mut both, mut either) = (0, 0);
        let kinds = features.families.iter().zip(&features.meanings);
        for (family, _) in kinds.filter(|(_, meaning)| !meaning.counts) {
            let (a, b) = (family.set(a), family.set(b));
            let common = common(a, b);
            both += common;
            either += a.len() + b.len() - common;
        }
        if either == 0 {
            0.0
        } else {
            1.0 - both as f64 / either as f64
        }
    };
    let mean = |a: &[usize], b: &[usize], same: bool| {
        let pairs = (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j)));
        let apart: Vec<f64> = pairs
            .filter(|(i, j)| !(same && i == j))
            .map(|(i, j)| {
                if a[i] == b[j] {
                    0.0
                } else {
                    distance(a[i], b[j])
                }
            })
            .collect();
        apart.iter().sum::<f64>() / apart.len().max(1) as f64
    };
    let mut leaders: Vec<Leader> = Vec::new();
    features
        .classes
        .iter()
        .map(|classes| {
            let classes: Vec<usize> = classes[..normals].iter().flatten().copied().collect();
            let noise = mean(&classes, &classes, true);
            let like = |leader: &Leader| {
                !classes.is_empty()
                    && !leader.classes.is_empty()
                    && (leader.classes == classes
                        || mean(&leader.classes, &classes, false)
                            <= SLACK * (leader.noise + noise) / 2.0)
            };
            leaders.iter().position(like).unwrap_or_else(|| {
                leaders.push(Leader { classes, noise });
                leaders.len() - 1
            })
        })
        .collect()
}

fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut count = 0;
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(a.next()),
            std::cmp::Ordering::Greater => drop(b.next()),
            std::cmp::Ordering::Equal => {
                count += 1;
                a.next();
                b.next();
            }
        }
    }
    count
}

/// Roles with words for them: most members first is `worker`, one that only threads 0 or only the first
/// process play is `master`, one with the first or last process `boundary`.
pub(crate) fn named(names: &[TraceName], roles: &[usize]) -> Vec<Role> {
    let count = roles.iter().max().map_or(0, |last| last + 1);
    let mut members: Vec<Vec<TraceName>> = vec![Vec::new(); count];
    for (name, role) in names.iter().zip(roles) {
        members[*role].push(*name);
    }
    for traces in &mut members {
        traces.sort_unstable();
        traces.dedup();
    }
    let worker = (0..count).max_by_key(|role| (members[*role].len(), count - role));
    let is_first_thread = |name: &TraceName| name.thread == ThreadName::Main(0);
    let first = names.iter().map(|name| name.process).min();
    let last = names.iter().map(|name| name.process).max();
    let threads = names.iter().any(|name| !is_first_thread(name));
    let mut used: Vec<String> = Vec::new();
    (members.into_iter().enumerate())
        .map(|(role, traces)| {
            let at = |process| traces.iter().any(|name| Some(name.process) == process);
            let alone = traces.len() == 1 && at(first) && traces.iter().all(is_first_thread);
            let above = threads && traces.iter().all(is_first_thread);
            let word = if count == 1 {
                "all"
            } else if Some(role) == worker {
                "worker"
            } else if alone || above {
                "master"
            } else if at(first) || at(last) {
                "boundary"
            } else {
                "role"
            };
            let mut name = word.to_owned();
            let mut number = 2;
            while used.contains(&name) {
                name = format!("{word}-{number}");
                number += 1;
            }
            used.push(name.clone());
            Role { name, traces }
        })
        .collect()
}
