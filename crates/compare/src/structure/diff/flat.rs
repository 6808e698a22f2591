//! The papers' diffNLR: Myers' algorithm on the entries of nested loop representations.

use super::edit::segments;
use super::ops::Op;
use crate::difftrace::loops::{LoopBody, table};
use crate::difftrace::sequence::{Folding, Lens};
use crate::difftrace::trees::Trees;
use crate::{Error, ObjectName};
use lockstep_calltree::Token;
use lockstep_loops::{Element, Mode, Names};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};

/// Compares a trace of the first run with that of the second, entry by entry as they are written.
/// Loops are named as `loops` names them: over all traces of both runs.
///
/// And whether their structure is the same: bodies and order, piece by piece of those that both have.
pub(super) fn diff(
    trees: &Trees,
    lens: &Lens,
    trace: TraceName,
) -> Result<(Vec<Op>, Vec<LoopBody>, bool), Error> {
    let mut folding = Folding::default();
    let runs = [0, 1].map(|run| trees.objects(run, lens, &[], &mut folding));
    let mut names = Names::new();
    for objects in &runs {
        for item in &objects.items {
            names.scan(&folding.sequences[item.sequence], &folding.bodies);
        }
    }
    let [normal, faulty] = runs.map(|objects| {
        let own = objects.names.iter().zip(&objects.items);
        let own = own.filter(|(name, _)| name.trace == trace);
        own.map(|(name, item)| (*name, item.sequence))
            .collect::<BTreeMap<ObjectName, usize>>()
    });
    let tokens = |sequence: Option<&usize>| match sequence {
        Some(index) => names.tokens(&folding.sequences[*index], |symbol| trees.name(symbol)),
        None => Vec::new(),
    };
    let differ = |object: &ObjectName| {
        let (normal, faulty) = (normal.get(object), faulty.get(object));
        let last = faulty.and_then(|index| folding.sequences[*index].last());
        let is_open = matches!(last, Some(Element::Symbol(symbol)) if matches!(Token::from_symbol(*symbol), Token::Open(_)));
        entries(&tokens(normal), &tokens(faulty), is_open)
    };
    let objects: BTreeSet<ObjectName> = normal.keys().chain(faulty.keys()).copied().collect();
    if objects.is_empty() {
        return Err(Error::Nothing(format!(
            "expected such a piece of {trace} in one of the runs, found none"
        )));
    }
    let ops = if objects.iter().all(|object| object.piece.is_none()) {
        differ(&trace.into())
    } else {
        pieces(objects, &differ, &|object| {
            (normal.contains_key(object), faulty.contains_key(object))
        })
    };
    let keys = |index: &usize| {
        let elements = folding.sequences[*index].iter();
        elements.map(|it| it.key(Mode::Shape)).collect::<Vec<_>>()
    };
    let alike = normal.iter().all(|(object, index)| {
        let other = faulty.get(object);
        other.is_none_or(|other| keys(index) == keys(other))
    });
    Ok((ops, table(&names, &folding.bodies, trees), alike))
}

/// What differs within each piece that both traces have, and which pieces only one of them has; nothing where nothing
/// differs.
fn pieces(
    objects: BTreeSet<ObjectName>,
    differ: &dyn Fn(&ObjectName) -> Vec<Op>,
    has: &dyn Fn(&ObjectName) -> (bool, bool),
) -> Vec<Op> {
    let mut ops: Vec<Op> = Vec::new();
    for object in objects {
        let name = object.to_string();
        let within = differ(&object);
        let tokens = vec![name.clone()];
        let op = match has(&object) {
            (true, true) if within.is_empty() => Op::Equal { tokens },
            (true, true) => Op::Piece { name, ops: within },
            (true, false) => Op::Normal { tokens },
            (false, _) => Op::Faulty {
                tokens,
                open: false,
            },
        };
        match (ops.last_mut(), op) {
            (Some(Op::Equal { tokens }), Op::Equal { tokens: more })
            | (Some(Op::Normal { tokens }), Op::Normal { tokens: more })
            | (Some(Op::Faulty { tokens, .. }), Op::Faulty { tokens: more, .. }) => {
                tokens.extend(more);
            }
            (_, op) => ops.push(op),
        }
    }
    if matches!(ops.as_slice(), [] | [Op::Equal { .. }]) {
        return Vec::new();
    }
    ops
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
