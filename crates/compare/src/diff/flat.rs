//! The papers' diffNLR: Myers' algorithm on the entries of nested loop representations.

use super::edit::segments;
use super::ops::Op;
use crate::loops::{LoopBody, table};
use crate::sequence::{Folding, Lens, Trees};
use lockstep_calltree::Token;
use lockstep_loops::{Element, Names};
use lockstep_trace::TraceName;

/// Compares a trace of the first run with that of the second, entry by entry as they are written.
/// Loops are named as `loops` names them: over all traces of both runs.
pub(super) fn diff(trees: &Trees, lens: &Lens, trace: TraceName) -> (Vec<Op>, Vec<LoopBody>) {
    let mut folding = Folding::default();
    let runs = [0, 1].map(|run| trees.objects(run, lens, &mut folding));
    let mut names = Names::new();
    for objects in &runs {
        for index in &objects.sequences {
            names.scan(&folding.sequences[*index], &folding.bodies);
        }
    }
    let [normal, faulty] = runs.map(|objects| {
        let of_trace = objects.names.iter().position(|name| name.trace == trace);
        of_trace.map(|index| objects.sequences[index])
    });
    let tokens = |sequence: Option<usize>| match sequence {
        Some(index) => names.tokens(&folding.sequences[index], |symbol| trees.name(symbol)),
        None => Vec::new(),
    };
    let is_open = faulty.is_some_and(|index| match folding.sequences[index].last() {
        Some(Element::Symbol(symbol)) => matches!(Token::from_symbol(*symbol), Token::Open(_)),
        _ => false,
    });
    let ops = entries(&tokens(normal), &tokens(faulty), is_open);
    (ops, table(&names, &folding.bodies, trees))
}

/// From one list of entries to another. Decided in the order of the lists and turned round if need be,
/// so that the way back is the way there mirrored.
pub(super) fn entries(normal: &[String], faulty: &[String], is_open: bool) -> Vec<Op> {
    if normal == faulty {
        return Vec::new();
    }
    fn strs(list: &[String]) -> Vec<&str> {
        list.iter().map(String::as_str).collect()
    }
    let (normal, faulty) = (strs(normal), strs(faulty));
    let turn = normal > faulty;
    let found = if turn {
        segments(&faulty, &normal)
            .into_iter()
            .map(|(faulty, normal)| (normal, faulty))
            .collect()
    } else {
        segments(&normal, &faulty)
    };
    let tokens = |list: &[&str]| list.iter().map(|token| (*token).to_owned()).collect();
    let mut ops = Vec::new();
    for (of_normal, of_faulty) in found {
        let (a, b) = (&normal[of_normal], &faulty[of_faulty.clone()]);
        if a == b {
            ops.push(Op::Equal { tokens: tokens(a) });
            continue;
        }
        if !a.is_empty() {
            ops.push(Op::Normal { tokens: tokens(a) });
        }
        if !b.is_empty() {
            ops.push(Op::Faulty {
                tokens: tokens(b),
                open: is_open && of_faulty.end == faulty.len(),
            });
        }
    }
    ops
}
