//! Collapsed stacks, as flame graph tools read them: `main;solve;MPI_Send 12`, one line a distinct stack
//! with the number of calls that led to exactly it. All traces together.

use crate::profile::Folded;
use crate::text::plain;
use lockstep_calltree::{FunctionKey, NodeId};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Deeper stacks are cut there: a line is as long as its stack, so that a deep recursion would fill the disk.
const DEPTH: usize = 4096;

/// Equal stacks: the nodes that they end in, and how often.
type Group = BTreeMap<NodeId, u64>;

/// Writes them; how many calls were counted where their stack was cut. Memory: the groups along one
/// stack.
pub(crate) fn write(folded: &Folded<'_>, out: &mut impl Write) -> io::Result<u64> {
    let inclusive = folded.inclusive();
    let names: Vec<String> = folded
        .forest
        .functions()
        .iter()
        .map(|function| plain(&function.name, ';', ':'))
        .collect();
    let mut roots = Group::new();
    for root in &folded.roots {
        *roots.entry(*root).or_default() += 1;
    }
    let mut cut = 0u64;
    let mut path = String::new();
    let mut steps = vec![(below(folded, &roots).into_iter(), 0)];
    while let Some((groups, length)) = steps.last_mut() {
        path.truncate(*length);
        let Some((function, group)) = groups.next() else {
            steps.pop();
            continue;
        };
        if !path.is_empty() {
            path.push(';');
        }
        path.push_str(names.get(function.0 as usize).map_or("?", String::as_str));
        let mut calls = group
            .values()
            .fold(0u64, |sum, times| sum.saturating_add(*times));
        if steps.len() < DEPTH {
            steps.push((below(folded, &group).into_iter(), path.len()));
        } else {
            let all = group.iter().fold(0u64, |sum, (node, times)| {
                sum.saturating_add(inclusive[node.0 as usize].saturating_mul(*times))
            });
            cut = cut.saturating_add(all - calls);
            calls = all;
        }
        writeln!(out, "{path} {calls}")?;
    }
    Ok(cut)
}

/// The calls right below a group, by function.
fn below(folded: &Folded<'_>, group: &Group) -> BTreeMap<FunctionKey, Group> {
    let mut found: BTreeMap<FunctionKey, Group> = BTreeMap::new();
    for (node, times) in group {
        folded.each_call(*node, *times, &mut |function, child, times| {
            let sum = found.entry(function).or_default().entry(child).or_default();
            *sum = sum.saturating_add(times);
        });
    }
    found
}
