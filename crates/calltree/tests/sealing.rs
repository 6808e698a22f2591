//! Any row of events is given back by its sealed tree: all of it, and from any event on; and makes the same tree.
#![allow(clippy::unwrap_used)]

use lockstep_calltree::{Forest, trees};
use lockstep_format::codec::Kind;
use lockstep_trace::{
    Coverage, End, EndKind, Event, Frames, Function, FunctionId, Process, Run, Thread, TraceName,
};
use proptest::prelude::*;

const FUNCTIONS: u32 = 4;

fn run(traces: Vec<Vec<Event>>) -> Run {
    let functions = (0..FUNCTIONS).map(|f| Function {
        name: format!("f{f}"),
        linkage: format!("f{f}"),
        image: String::new(),
        imported: false,
        source: None,
        calls: Vec::new(),
        code: lockstep_trace::Code::default(),
    });
    let threads = traces.into_iter().zip(0..);
    let threads =
        threads.map(|(events, number)| Thread::from_events(TraceName::new(0, number), events));
    let process = Process {
        name: TraceName::new(0, 0).process,
        rank: None,
        is_mpi: false,
        pid: 1,
        forked_from: None,
        host: String::new(),
        program: String::new(),
        build: String::new(),
        compiled: lockstep_trace::Compiled::default(),
        end: End {
            kind: EndKind::Exited,
            code: Some(0),
            certain: true,
        },
        coverage: Coverage::default(),
        gone_at: None,
        losses: Vec::new(),
        threads: threads.collect(),
    };
    Run {
        directory: std::path::PathBuf::new(),
        codec: Kind::None,
        functions: functions.collect(),
        processes: vec![process],
        is_mpi: false,
        notes: Vec::new(),
    }
}

/// Seals and reads; bytes of the trees.
fn check(traces: Vec<Vec<Event>>, all_positions: bool) -> usize {
    let run = run(traces);
    let told = trees(&[&run], None).unwrap();
    let back = told.read_back(&run, 0).unwrap();
    let sealed: Vec<Thread> = back[0].iter().map(|it| it.clone().unwrap()).collect();
    for (thread, sealed) in run.processes[0].threads.iter().zip(&sealed) {
        assert!(thread.events().eq(sealed.events()));
        let events: Vec<Event> = thread.events().collect();
        let step = if all_positions {
            1
        } else {
            events.len() / 7 + 1
        };
        let mut frames = Frames::default();
        for (index, event) in events.iter().enumerate() {
            if index.is_multiple_of(step) {
                let at = index as u64;
                assert_eq!(
                    sealed.frames_before(at).into_frames(),
                    frames.clone().into_frames()
                );
                let tail = sealed.events_from(at).take(50);
                assert!(
                    tail.eq(events[index..].iter().copied().take(50)),
                    "from {index}"
                );
            }
            frames.apply(*event);
            if index.is_multiple_of(step) {
                assert_eq!(
                    sealed.stack_at(index as u64),
                    Some(frames.clone().into_frames())
                );
            }
        }
        assert_eq!(sealed.stack_at(events.len() as u64), None);
    }
    let (mut one, mut two) = (Forest::new(), Forest::new());
    let map = one.add_functions(&run);
    let recorded: Vec<&Thread> = run.processes[0].threads.iter().collect();
    let recorded = one.add_traces(&map, &recorded);
    let map = two.add_functions(&run);
    let sealed = two.add_traces(&map, &sealed.iter().collect::<Vec<_>>());
    for (recorded, sealed) in recorded.iter().zip(&sealed) {
        assert_eq!(one.hash(recorded.root), two.hash(sealed.root));
        assert_eq!(one.node(recorded.root).events, two.node(sealed.root).events);
    }
    told.nodes.len()
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..FUNCTIONS).prop_map(|f| Event::Call(FunctionId(f))),
        4 => Just(Event::Return),
        1 => Just(Event::Tail),
    ]
}

/// Events with repetitions in them.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let block = (prop::collection::vec(event(), 0..8), 1..6usize);
    prop::collection::vec(block, 0..6).prop_map(|blocks| {
        let repeated = blocks.into_iter().map(|(block, times)| block.repeat(times));
        repeated.flatten().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_events_are_given_back(traces in prop::collection::vec(events(), 0..4)) {
        check(traces, true);
    }
}

#[test]
fn a_million_equal_calls() {
    let pair = [Event::Call(FunctionId(1)), Event::Return];
    let bytes = check(vec![pair.repeat(1_000_000)], false);
    assert!(bytes < 16, "{bytes}");
}

#[test]
fn a_hundred_thousand_calls_deep() {
    let mut down: Vec<Event> = (0..100_000)
        .map(|f| Event::Call(FunctionId(f % 3)))
        .collect();
    let open = down.clone();
    down.extend(vec![Event::Return; 100_000]);
    check(vec![down, open], false);
}

#[test]
fn handing_over_in_every_way() {
    let call = |f| Event::Call(FunctionId(f));
    let (tail, back) = (Event::Tail, Event::Return);
    check(
        vec![
            vec![tail, call(0), tail, tail, call(1), back, tail],
            vec![call(0), tail, back, back],
            vec![call(0), call(1), tail],
            vec![call(0), call(1), tail, call(2), tail, call(3), tail, tail],
            vec![
                call(0),
                call(1),
                tail,
                call(2),
                back,
                call(1),
                tail,
                call(2),
                back,
                back,
            ],
            vec![back, back, call(0)],
            vec![],
        ],
        true,
    );
}
