//! Trees that are too large, beside those of events from which what is left out was taken away.

use crate::{Builder, Forest, FunctionMap, NodeId};
use lockstep_trace::{Event, FunctionId, Run, Thread, TraceName};

const FUNCTIONS: u32 = 60;

fn run() -> Run {
    let functions = (0..FUNCTIONS).map(|f| lockstep_trace::Function {
        name: format!("f{f}"),
        linkage: format!("f{f}"),
        image: String::new(),
        imported: false,
        source: None,
        calls: Vec::new(),
        code: lockstep_trace::Code::default(),
    });
    Run {
        directory: std::path::PathBuf::new(),
        codec: lockstep_format::codec::Kind::None,
        functions: functions.collect(),
        processes: Vec::new(),
        is_mpi: false,
        notes: Vec::new(),
    }
}

fn forest() -> (Forest, FunctionMap) {
    let mut forest = Forest::new();
    let map = forest.add_functions(&run());
    (forest, map)
}

/// Calls in random order, tail calls and returns without a call among them.
fn events(seed: u64, count: usize) -> Vec<Event> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut depth = 0;
    let each = (0..count).map(|_| match random(100) {
        0 => Event::Tail,
        1..=49 if depth < 40 => {
            depth += 1;
            Event::Call(FunctionId(random(FUNCTIONS.into()) as u32))
        }
        _ => {
            depth = (depth - 1).max(-3);
            Event::Return
        }
    });
    each.collect()
}

fn thread(number: u32, events: &[Event]) -> Thread {
    Thread::from_events(TraceName::new(0, number), events.to_vec())
}

/// What the tree of a trace should be that is full from this call on: the events of late calls that return taken away, in
/// the nested view.
fn without_late(events: &[Event], full_at: usize) -> (Vec<Event>, u64) {
    // Where each open call stands, and where it handed over.
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut kept: Vec<Option<Event>> = events.iter().copied().map(Some).collect();
    let mut taken = 0;
    for (event, at) in events.iter().zip(0..) {
        match event {
            Event::Call(_) => open.push((at, Vec::new())),
            Event::Tail => match open.last_mut() {
                Some((_, tails)) => tails.push(at),
                None => kept[at] = None,
            },
            Event::Return => {
                let mut ended = Vec::from_iter(open.pop());
                while open.last().is_some_and(|(_, tails)| !tails.is_empty()) {
                    ended.extend(open.pop());
                }
                let is_late = |call: usize| call >= full_at;
                if ended.is_empty() && is_late(at) {
                    taken += 1;
                }
                // What ends an early call stays.
                if ended.iter().all(|(call, _)| is_late(*call)) && is_late(at) {
                    kept[at] = None;
                }
                for (call, tails) in ended.into_iter().filter(|(call, _)| is_late(*call)) {
                    taken += 2;
                    kept[call] = None;
                    tails.into_iter().for_each(|tail| kept[tail] = None);
                }
            }
        }
    }
    (kept.into_iter().flatten().collect(), taken)
}

#[test]
fn a_tree_that_is_full_has_the_first_events_and_the_open_calls() {
    let mut cut = 0;
    for seed in 0..20 {
        let events = events(seed, 40_000);
        let (mut forest, map) = self::forest();
        let (root, left_out, full_at) =
            forest.bounded_by(3_000 + 1_000 * seed as usize, 1, |forest| {
                let mut builder = Builder::new(forest);
                let mut full_at = usize::MAX;
                for (event, at) in events.iter().zip(0..) {
                    let is_call = matches!(event, Event::Call(_));
                    builder.event(*event, &map);
                    if is_call && builder.is_full() {
                        full_at = full_at.min(at);
                    }
                }
                let left_out = builder.left_out();
                (builder.finish(), left_out, full_at)
            });
        let (kept, taken) = without_late(&events, full_at);
        let (mut other, map) = self::forest();
        let mut builder = Builder::new(&mut other);
        kept.iter().for_each(|event| builder.event(*event, &map));
        let expected = builder.finish();
        assert_eq!(left_out, taken, "seed {seed}");
        assert_eq!(forest.hash(root), other.hash(expected), "seed {seed}");
        cut += u64::from(taken > 0);
    }
    assert!(cut > 10);
}

#[test]
fn traces_that_begin_alike_are_cut_alike_and_all_together_are_bounded() {
    const MOST: usize = 20_000;
    let whole = |events: &mut Vec<Event>| {
        let calls = events.iter().filter(|it| matches!(it, Event::Call(_)));
        let returns = vec![Event::Return; calls.count()];
        events.extend(returns);
    };
    // The last events differ.
    let mut one = events(1, 100_000);
    let mut other = one.clone();
    one.extend(events(2, 10_000));
    other.extend(events(3, 30_000));
    whole(&mut one);
    whole(&mut other);
    let small = events(4, 100);
    for more in [0u32, 1, 100] {
        let mut threads = vec![thread(0, &one), thread(1, &small), thread(2, &other)];
        threads.extend((0..more).map(|it| thread(3 + it, &events(10 + u64::from(it), 20_000))));
        let threads: Vec<&Thread> = threads.iter().collect();
        let (mut forest, map) = self::forest();
        let mut tries = 0;
        let traces = forest.bounded_by(MOST, threads.len(), |forest| {
            tries += 1;
            forest.add_traces(&map, &threads)
        });
        let roots: Vec<NodeId> = traces.iter().map(|trace| trace.root).collect();
        assert!(tries > 1 && roots.len() == threads.len());
        assert_eq!(roots[0], roots[2]);
        assert!(traces[0].left_out > 0 && traces[2].left_out > traces[0].left_out);
        let rest = forest.node(roots[0]).events + traces[0].left_out;
        let (mut unbounded, map) = self::forest();
        let all = unbounded.add_traces(&map, &threads);
        assert_eq!(unbounded.node(all[0].root).events, rest);
        // What lies between two looks comes on top, for each of them.
        assert!(forest.nodes.size() < 2 * MOST + 4 * 4096 * threads.len());
        assert!(forest.nodes.size() < unbounded.nodes.size() / 2);
        assert!(crate::left_out(&traces).is_some_and(|text| text.contains("0.0,2")));
    }
}

#[test]
fn trees_that_fit_are_whole() {
    let (one, other) = (events(1, 5_000), events(2, 5_000));
    let threads = [thread(0, &one), thread(1, &other)];
    let threads: Vec<&Thread> = threads.iter().collect();
    let (mut forest, map) = self::forest();
    let mut tries = 0;
    let traces = forest.bounded(threads.len(), |forest| {
        tries += 1;
        forest.add_traces(&map, &threads)
    });
    let (mut unbounded, map) = self::forest();
    let all = unbounded.add_traces(&map, &threads);
    assert_eq!(tries, 1);
    assert_eq!(crate::left_out(&traces), None);
    for (a, b) in traces.iter().zip(&all) {
        assert_eq!(forest.hash(a.root), unbounded.hash(b.root));
    }
}
