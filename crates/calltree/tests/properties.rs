//! The shared tree against the plain list of events.

use lockstep_calltree::{
    Builder, Counts, Forest, Function, FunctionKey, NodeId, Projection, Token, fold_tokens,
};
use lockstep_loops::{Bodies, Element, Mode, Names, fold};
use lockstep_trace::{Event, FunctionId, Run, Thread, TraceName};
use proptest::prelude::*;

const FUNCTIONS: u32 = 5;

/// A piece of a program.
#[derive(Debug, Clone)]
enum Part {
    Call(u32, Vec<Part>),
    /// A call that hands over to its last callee.
    Handing(u32, Vec<Part>, u32),
    Times(usize, Vec<Part>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Raw {
    Call(u32),
    Return,
    Tail,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let leaf = (0..FUNCTIONS).prop_map(|f| Part::Call(f, Vec::new()));
    let part = leaf.prop_recursive(5, 24, 3, |inner| {
        let body = prop::collection::vec(inner, 0..4);
        prop_oneof![
            (0..FUNCTIONS, body.clone()).prop_map(|(f, body)| Part::Call(f, body)),
            (0..FUNCTIONS, body.clone(), 0..FUNCTIONS)
                .prop_map(|(f, body, g)| Part::Handing(f, body, g)),
            (1usize..7, body).prop_map(|(times, body)| Part::Times(times, body)),
        ]
    });
    prop::collection::vec(part, 0..5)
}

fn run(parts: &[Part], out: &mut Vec<Raw>) {
    for part in parts {
        match part {
            Part::Call(f, body) => {
                out.push(Raw::Call(*f));
                run(body, out);
                out.push(Raw::Return);
            }
            Part::Handing(f, body, g) => {
                out.push(Raw::Call(*f));
                run(body, out);
                out.extend([Raw::Tail, Raw::Call(*g), Raw::Return]);
            }
            Part::Times(times, body) => {
                for _ in 0..*times {
                    run(body, out);
                    if out.len() > 3000 {
                        return;
                    }
                }
            }
        }
    }
}

/// Events of a program cut off at both ends, so that returns without calls and open calls occur.
fn events() -> impl Strategy<Value = Vec<Raw>> {
    (parts(), any::<prop::sample::Index>(), 0usize..4).prop_map(|(parts, end, start)| {
        let mut events = Vec::new();
        run(&parts, &mut events);
        let end = end.index(events.len() + 1);
        // Half of the programs end well.
        if end % 2 == 0 {
            events.truncate(end.max(events.len() / 2));
        }
        events.drain(..(start / 2).min(events.len()));
        events
    })
}

/// An event in the nested view, and whether the call was open at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plain {
    token: Token,
    /// The function that is called or returned from.
    function: Option<u32>,
}

/// The nested view, the slow way.
fn plain(events: &[Raw]) -> (Vec<Plain>, Vec<u32>) {
    let mut out: Vec<Plain> = Vec::new();
    // Function, whether it handed over, and where its call stands.
    let mut stack: Vec<(u32, bool, usize)> = Vec::new();
    for event in events {
        match event {
            Raw::Call(f) => {
                stack.push((*f, false, out.len()));
                out.push(Plain {
                    token: Token::Call(FunctionKey(*f)),
                    function: Some(*f),
                });
            }
            Raw::Return => {
                let mut close = |f: Option<u32>| {
                    out.push(Plain {
                        token: Token::Return,
                        function: f,
                    });
                };
                close(stack.pop().map(|frame| frame.0));
                while stack.last().is_some_and(|frame| frame.1) {
                    close(stack.pop().map(|frame| frame.0));
                }
            }
            Raw::Tail => {
                if let Some(top) = stack.last_mut() {
                    top.1 = true;
                }
            }
        }
    }
    for (f, _, at) in &stack {
        out[*at].token = Token::Open(FunctionKey(*f));
    }
    (out, stack.into_iter().map(|frame| frame.0).collect())
}

fn forest() -> Forest {
    let mut forest = Forest::new();
    for f in 0..FUNCTIONS {
        forest.add_function(Function {
            name: format!("f{f}"),
            linkage: format!("f{f}"),
            image: String::new(),
            imported: false,
        });
    }
    forest
}

fn build(forest: &mut Forest, events: &[Raw]) -> NodeId {
    let mut builder = Builder::new(forest);
    for event in events {
        match event {
            Raw::Call(f) => builder.call(FunctionKey(*f)),
            Raw::Return => builder.ret(),
            Raw::Tail => builder.tail(),
        }
    }
    builder.finish()
}

/// Builds the tree of the nested view, in which a tail call looks like any other.
fn build_plain(forest: &mut Forest, events: &[Plain]) -> NodeId {
    let mut builder = Builder::new(forest);
    for event in events {
        match event.token {
            Token::Call(f) | Token::Open(f) => builder.call(f),
            Token::Return => builder.ret(),
        }
    }
    builder.finish()
}

fn tokens(forest: &Forest, root: NodeId, projection: &Projection, returns: bool) -> Vec<Token> {
    let mut out = Vec::new();
    forest.tokens(root, projection, returns, &mut |token| out.push(token));
    out
}

fn keep(mask: u32) -> impl Fn(u32) -> bool {
    move |f| mask >> f & 1 == 1
}

/// The nested view under a filter; returns without a call are kept.
fn filtered(all: &[Plain], mask: u32) -> Vec<Plain> {
    all.iter()
        .filter(|event| event.function.is_none_or(keep(mask)))
        .copied()
        .collect()
}

fn projection(forest: &Forest, mask: u32) -> Projection {
    let mut f = 0;
    forest.projection(|_| {
        f += 1;
        keep(mask)(f - 1)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(events in events()) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let (plain, stack) = plain(&events);
        let expected: Vec<Token> = plain.iter().map(|event| event.token).collect();
        prop_assert_eq!(tokens(&forest, root, &projection(&forest, u32::MAX), true), expected);
        prop_assert_eq!(forest.node(root).events, plain.len() as u64);
        let open: Vec<u32> = forest.open(root).iter().map(|frame| frame.function.0).collect();
        prop_assert_eq!(open, stack);
    }

    #[test]
    fn a_projection_is_the_tree_of_what_is_kept(events in events(), mask in 0u32..1 << FUNCTIONS) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let (all, _) = plain(&events);
        let expected = filtered(&all, mask);
        let mut projection = projection(&forest, mask);
        let projected = forest.project(root, &mut projection);
        let direct = build_plain(&mut forest, &expected);
        prop_assert!(forest.same_shape(projected, direct));
        let all_of = |forest: &Forest, root| {
            let mut out = Vec::new();
            let everything = forest.projection(|_| true);
            forest.tokens(root, &everything, true, &mut |token| out.push(token));
            out
        };
        prop_assert_eq!(all_of(&forest, projected), all_of(&forest, direct));
        if !events.contains(&Raw::Tail) {
            prop_assert_eq!(projected, direct, "the very same node");
        }
        // Where the kept events stand among all.
        let mut kept = 0;
        for (index, event) in all.iter().enumerate() {
            if event.function.is_none_or(keep(mask)) {
                prop_assert_eq!(forest.origin(root, &mut projection, kept), index as u64);
                kept += 1;
            }
        }
        prop_assert_eq!(forest.origin(root, &mut projection, kept), all.len() as u64);
        prop_assert_eq!(forest.kept_events(root, &mut projection), kept);
    }

    #[test]
    fn of_a_closed_call_is_kept_what_is_shown(
        events in events(),
        mask in 0u32..1 << FUNCTIONS,
        closed in 0u32..1 << FUNCTIONS,
        shown in 0u32..1 << FUNCTIONS,
    ) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let (all, _) = plain(&events);
        let each = |mask| (0..FUNCTIONS).map(keep(mask)).collect::<Vec<bool>>();
        let mut f = 0;
        let all_kept = |_: &Function| {
            f += 1;
            keep(mask)(f - 1)
        };
        let mut projection = forest.projection(all_kept).close(each(closed), each(shown));
        let projected = forest.project(root, &mut projection);
        // Event by event: for each open call whether it is kept, and whether it is closed.
        let mut open: Vec<(bool, bool)> = Vec::new();
        let mut expected: Vec<(usize, Plain)> = Vec::new();
        for (index, event) in all.iter().enumerate() {
            let is_kept = match event.token {
                Token::Call(f) | Token::Open(f) => {
                    let inside = open.last().is_some_and(|(_, closed)| *closed);
                    let is_kept = keep(mask)(f.0) && (!inside || keep(shown)(f.0));
                    open.push((is_kept, keep(closed)(f.0)));
                    is_kept
                }
                Token::Return => open.pop().is_none_or(|(is_kept, _)| is_kept),
            };
            if is_kept {
                expected.push((index, *event));
            }
        }
        for (kept, (index, _)) in expected.iter().enumerate() {
            prop_assert_eq!(forest.origin(root, &mut projection, kept as u64), *index as u64);
        }
        prop_assert_eq!(forest.kept_events(root, &mut projection), expected.len() as u64);
        let expected: Vec<Plain> = expected.into_iter().map(|(_, event)| event).collect();
        let direct = build_plain(&mut forest, &expected);
        prop_assert!(forest.same_shape(projected, direct));
    }

    #[test]
    fn the_flat_sequence_is_folded_like_any(
        events in events(), mask in 0u32..1 << FUNCTIONS, returns in any::<bool>(), k in 1usize..12,
    ) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let projection = projection(&forest, mask);
        let mut bodies = Bodies::new();
        let flat = forest.flat(root, &projection, returns, k, Mode::Shape, &mut bodies);
        let (all, _) = plain(&events);
        let tokens: Vec<Token> = filtered(&all, mask)
            .into_iter()
            .map(|event| event.token)
            .filter(|token| returns || *token != Token::Return)
            .collect();
        prop_assert_eq!(&flat, &fold_tokens(tokens.iter().copied(), k, Mode::Shape, &mut bodies));
        // Open calls stand alone; between them all is folded as usual.
        let mut expected: Vec<Element> = Vec::new();
        for part in tokens.split_inclusive(|token| matches!(token, Token::Open(_))) {
            let (open, closed) = match part {
                [closed @ .., open @ Token::Open(_)] => (Some(*open), closed),
                closed => (None, closed),
            };
            let symbols = closed.iter().map(|token| token.symbol());
            expected.extend(fold(symbols, k, Mode::Shape, &mut bodies));
            expected.extend(open.map(|open| Element::Symbol(open.symbol())));
        }
        prop_assert_eq!(flat, expected);
    }

    #[test]
    fn every_position_has_its_stack(events in events()) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let (all, _) = plain(&events);
        let mut stack: Vec<u32> = Vec::new();
        for (index, event) in all.iter().enumerate() {
            let returns = event.token == Token::Return;
            if let (Some(f), false) = (event.function, returns) {
                stack.push(f);
            }
            let position = forest.position(root, index as u64).expect("within the trace");
            let found: Vec<u32> = position.stack.iter().map(|frame| frame.function.0).collect();
            prop_assert_eq!(&found, &stack);
            prop_assert_eq!(position.is_return, returns);
            for at in position.loops {
                prop_assert!(at.iteration >= 1 && at.iteration <= at.of && at.of >= 2);
                prop_assert!(at.depth <= stack.len());
            }
            if returns {
                stack.pop();
            }
        }
        prop_assert!(forest.position(root, all.len() as u64).is_none());
    }

    #[test]
    fn calls_are_counted(events in events()) {
        let mut forest = forest();
        let root = build(&mut forest, &events);
        let mut counts = std::collections::BTreeMap::new();
        let mut edges = std::collections::BTreeMap::new();
        let mut stack: Vec<u32> = Vec::new();
        for event in plain(&events).0 {
            match (event.token, event.function) {
                (Token::Return, _) => { stack.pop(); }
                (_, Some(f)) => {
                    *counts.entry(format!("f{f}")).or_insert(0) += 2;
                    if let Some(caller) = stack.last() {
                        *edges.entry((format!("f{caller}"), format!("f{f}"))).or_insert(0) += 2;
                    }
                    stack.push(f);
                }
                _ => {}
            }
        }
        let calls = forest.calls(&[root, root]);
        prop_assert!(calls.is_sorted_by_key(|calls| std::cmp::Reverse(calls.calls)));
        let calls: std::collections::BTreeMap<String, u64> =
            calls.into_iter().map(|calls| (calls.name, calls.calls)).collect();
        prop_assert_eq!(calls, counts);
        let graph: std::collections::BTreeMap<(String, String), u64> = forest
            .call_graph(&[root, root])
            .into_iter()
            .map(|edge| ((edge.caller, edge.callee), edge.calls))
            .collect();
        prop_assert_eq!(graph, edges);
    }

    #[test]
    fn equal_traces_are_one_node_with_one_hash_everywhere(a in events(), b in events()) {
        let mut one = forest();
        let mut two = forest();
        let first = build(&mut one, &a);
        let size = one.len();
        let other = build(&mut one, &b);
        prop_assert_eq!(build(&mut one, &a), first);
        build(&mut two, &b);
        let again = build(&mut two, &a);
        prop_assert_eq!(one.hash(first), two.hash(again));
        prop_assert_eq!(one.hash(first) == one.hash(other), first == other);
        prop_assert!(size <= one.len());
        let mut names = Names::new();
        one.name_loops(first, &mut names);
        prop_assert!(one.outline(first, &names).len() <= a.len());
    }
}

/// Events of a run.
fn thread(number: u32, events: &[Raw]) -> Thread {
    let events = events.iter().map(|event| match event {
        Raw::Call(f) => Event::Call(FunctionId(*f)),
        Raw::Return => Event::Return,
        Raw::Tail => Event::Tail,
    });
    Thread::from_events(TraceName::new(0, number), events.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn side_by_side_is_as_one_after_the_other(all in prop::collection::vec(events(), 0..6)) {
        let threads: Vec<Thread> =
            all.iter().zip(0..).map(|(events, number)| thread(number, events)).collect();
        let run = |forest: &mut Forest| {
            let functions = (0..FUNCTIONS).map(|f| lockstep_trace::Function {
                name: format!("f{f}"),
                linkage: format!("f{f}"),
                image: String::new(),
                imported: false,
                source: None,
                calls: Vec::new(),
                code: lockstep_trace::Code::default(),
            });
            let run = Run {
                directory: std::path::PathBuf::new(),
                codec: lockstep_format::codec::Kind::None,
                functions: functions.collect(),
                processes: Vec::new(),
                is_mpi: false,
                notes: Vec::new(),
            };
            forest.add_functions(&run)
        };
        let (mut one, mut two) = (Forest::new(), Forest::new());
        let map = run(&mut one);
        let after: Vec<_> = threads.iter().map(|thread| one.add_trace(&map, thread)).collect();
        let map = run(&mut two);
        let beside = two.add_traces(&map, &threads.iter().collect::<Vec<_>>());
        let roots: Vec<NodeId> = beside.iter().map(|trace| trace.root).collect();
        let mut counts = Counts::default();
        threads.iter().for_each(|thread| counts.add_events(&map, thread.events()));
        prop_assert_eq!(counts.calls(&two), two.calls(&roots));
        prop_assert_eq!(counts.call_graph(&two), two.call_graph(&roots));
        for ((after, beside), events) in after.iter().zip(&beside).zip(&all) {
            prop_assert_eq!(after.name, beside.name);
            prop_assert_eq!(one.hash(after.root), two.hash(beside.root));
            // And no other node for the same trace from now on.
            prop_assert_eq!(build(&mut two, events), beside.root);
            let mut names = Names::new();
            two.name_loops(beside.root, &mut names);
            let mut others = Names::new();
            one.name_loops(after.root, &mut others);
            prop_assert_eq!(
                two.outline(beside.root, &names),
                one.outline(after.root, &others)
            );
        }
    }
}

#[test]
fn a_million_calls_deep() {
    let mut forest = forest();
    let mut events: Vec<Raw> = (0..1_000_000).map(|depth| Raw::Call(depth % 3)).collect();
    let mut closed = events.clone();
    closed.extend(vec![Raw::Return; 1_000_000]);
    let root = build(&mut forest, &closed);
    assert_eq!(forest.node(root).events, 2_000_000);
    events.truncate(10_000);
    let open = build(&mut forest, &events);
    let mut projection = forest.projection(|function| function.name == "f1");
    let projected = forest.project(root, &mut projection);
    assert_eq!(forest.node(projected).events, 666_666);
    assert_eq!(forest.open(open).len(), 10_000);
    let mut names = Names::new();
    forest.name_loops(root, &mut names);
    assert_eq!(forest.outline(root, &names).len(), 1_000_000);
    assert_eq!(
        forest.position(root, 999_999).map(|at| at.stack.len()),
        Some(1_000_000)
    );
}
