//! A first difference that no explanation can pass: most are seen to be so without explaining what comes before them.
//!
//! Up to the first difference of any kind the faulty trace is the normal one. If that event is a call that its caller never
//! makes in the normal trace, or no call of its caller there explains more of this one, however often loops run, then nothing
//! explains it, and it is the first difference of structure, too.
//!
//! *Costs*: what is distinct in the normal trace, and the explanations of one frame.

use super::exact::Exact;
use super::structure::explains_more;
use crate::calls::function;
use crate::structure::list::Next;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};

/// Calls of one function that are tried as an explanation; where there are more, all that comes before is explained.
const FRAMES: usize = 64;

/// Whether nothing in the tree `normal` explains the event at which `exact` finds the first difference. Where it is not
/// known: no.
pub(super) fn is_novel(forest: &Forest, normal: NodeId, exact: &Exact) -> bool {
    let callers = Callers::of(forest, normal, function(forest, exact.frame));
    if let Next::Call { function, .. } = exact.mismatch.faulty
        && !callers.calls.contains(&function)
    {
        return true;
    }
    // A frame without a caller is the whole trace.
    function(forest, exact.frame).is_some()
        && callers.frames.len() <= FRAMES
        && !explains_more(forest, normal, &callers.frames, exact.frame, exact.within)
}

/// The calls of a function in a tree, or its outermost frame.
struct Callers {
    /// One of each shape.
    frames: Vec<NodeId>,
    /// What they call.
    calls: Vec<FunctionKey>,
}

impl Callers {
    fn of(forest: &Forest, root: NodeId, caller: Option<FunctionKey>) -> Self {
        let mut found = Self {
            frames: Vec::new(),
            calls: Vec::new(),
        };
        // Below every call, and within those that are looked for up to what they call.
        let mut seen = [vec![false; forest.len()], vec![false; forest.len()]];
        let mut open = vec![(root, false)];
        let mut shapes = rustc_hash::FxHashSet::default();
        while let Some((id, is_inside)) = open.pop() {
            if std::mem::replace(&mut seen[usize::from(is_inside)][id.0 as usize], true) {
                continue;
            }
            let node = forest.node(id);
            let is_inside = match node.label {
                Label::Call(_) | Label::Trace => {
                    let own = function(forest, id);
                    if let (true, Some(own)) = (is_inside, own)
                        && !found.calls.contains(&own)
                    {
                        found.calls.push(own);
                    }
                    if own == caller && shapes.insert(forest.shape(id)) {
                        found.frames.push(id);
                    }
                    own == caller
                }
                _ => is_inside,
            };
            open.extend(node.items.iter().map(|item| (item.node, is_inside)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::divergence::{exact, structure};
    use lockstep_calltree::{Builder, Function};
    use proptest::prelude::*;

    const FUNCTIONS: u32 = 5;

    /// A list of calls, some repeated, in calls of the same kind.
    #[derive(Debug, Clone)]
    struct Call {
        function: u32,
        times: u64,
        inner: Vec<Call>,
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let leaf = (0..FUNCTIONS, 1..4u64).prop_map(|(function, times)| Call {
            function,
            times,
            inner: Vec::new(),
        });
        let call = leaf.prop_recursive(4, 40, 6, |inner| {
            let inner = proptest::collection::vec(inner, 0..6);
            (0..FUNCTIONS, 1..4u64, inner).prop_map(|(function, times, inner)| Call {
                function,
                times,
                inner,
            })
        });
        proptest::collection::vec(call, 0..8)
    }

    fn events(calls: &[Call], to: &mut Vec<Option<u32>>) {
        for call in calls {
            for _ in 0..call.times {
                to.push(Some(call.function));
                events(&call.inner, to);
                to.push(None);
            }
        }
    }

    fn tree(forest: &mut Forest, events: &[Option<u32>]) -> NodeId {
        let mut builder = Builder::new(forest);
        for event in events {
            match event {
                Some(function) => builder.call(FunctionKey(*function)),
                None => builder.ret(),
            }
        }
        builder.finish()
    }

    proptest! {
        #[test]
        fn what_is_novel_is_the_first_difference_of_structure(
            calls in calls(),
            at in any::<prop::sample::Index>(),
            change in 0..4u32,
            function in 0..FUNCTIONS + 1,
        ) {
            let mut normal = Vec::new();
            events(&calls, &mut normal);
            let mut faulty = normal.clone();
            let place = at.index(normal.len() + 1);
            match (change, faulty.get(place).copied()) {
                // Another call; one more; one less; the end.
                (0, Some(Some(_))) => faulty[place] = Some(function),
                (1, _) => drop(faulty.splice(place..place, [Some(function), None])),
                (2, Some(Some(_))) if faulty.get(place + 1) == Some(&None) => drop(faulty.drain(place..place + 2)),
                _ => faulty.truncate(place),
            }
            let mut forest = Forest::new();
            for number in 0..=FUNCTIONS {
                forest.add_function(Function {
                    name: format!("f{number}"),
                    linkage: format!("f{number}"),
                    image: String::new(),
                    imported: false,
                });
            }
            let (a, b) = (tree(&mut forest, &normal), tree(&mut forest, &faulty));
            let Some(exact) = exact::first_mismatch(&forest, a, b) else {
                prop_assert_eq!(normal, faulty);
                return Ok(());
            };
            let (frame, within) = (exact.mismatch.faulty_event, exact.within);
            prop_assert!(within <= frame);
            if !forest.same_shape(a, b) && is_novel(&forest, a, &exact) {
                let (found, _) = structure::first_mismatch(&forest, a, b, None);
                prop_assert_eq!(found.map(|it| it.faulty_event), Some(exact.mismatch.faulty_event));
            }
        }
    }
}
