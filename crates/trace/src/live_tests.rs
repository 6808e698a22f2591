//! A run that grows, opened after any store, against the same opened for the first time.
#![allow(clippy::unwrap_used)]

use crate::open_tests::{Directory, facts, identity, small_plan};
use crate::writer::Writer;
use crate::{Bookmark, Event, Live, Run, StreamId, Thread};
use lockstep_format::codec::Kind;
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN, TAIL};
use proptest::prelude::*;

/// What a thread does: calls in rows, some of them over and over, and commits.
#[derive(Debug, Clone)]
enum Part {
    Symbols(Vec<u32>, usize),
    Commit,
}

fn part() -> impl Strategy<Value = Part> {
    let symbol = prop_oneof![
        3 => FIRST_FUNCTION..FIRST_FUNCTION + 4,
        2 => Just(RETURN),
        1 => Just(TAIL),
    ];
    prop_oneof![
        3 => (prop::collection::vec(symbol, 1..6), 1..200usize)
            .prop_map(|(body, times)| Part::Symbols(body, times)),
        2 => Just(Part::Commit),
    ]
}

/// The file of two threads that did this, after `stores` stores.
fn file(codec: Kind, parts: &[(usize, Part)], stores: u64) -> Vec<u8> {
    let mut writer = Writer::new(codec, identity(7, 0), &facts(None), stores);
    writer.thread(7, 0);
    writer.thread(8, 2);
    for (thread, part) in parts {
        match part {
            Part::Symbols(body, times) => {
                for symbol in body.iter().cycle().take(body.len() * times) {
                    writer.event(*thread, *symbol);
                }
            }
            Part::Commit => writer.commit(*thread),
        }
    }
    writer.bytes().to_vec()
}

fn told(run: &Run) -> String {
    let thread = |it: &Thread| {
        let opened = (&it.open, it.open_leaf, it.unverified, it.arguments_lost);
        let counts = (it.events, it.calls, it.bytes, &it.damage, opened);
        format!("{}: {counts:?}", it.name)
    };
    let threads: Vec<String> = run.traces().map(thread).collect();
    format!("{threads:#?} {:?}", run.notes)
}

/// Looks after each of these numbers of stores; how many streams went on.
fn agrees(codec: Kind, parts: &[(usize, Part)], looks: &[u64]) -> usize {
    let directory = Directory::new();
    directory.write("plans/ab.plan", &small_plan());
    let mut live = Live::default();
    let mut read: Vec<(StreamId, Bookmark, Vec<Event>)> = Vec::new();
    let mut went_on = 0;
    for stores in looks {
        let name = "processes/somewhere-else-7-7-0.lockstep";
        directory.write(name, &file(codec, parts, *stores));
        let whole = directory.open();
        let run = live.open(directory.path()).unwrap();
        assert_eq!(told(&run), told(&whole), "after {stores} stores");
        let mut next = Vec::new();
        for (thread, whole) in run.traces().zip(whole.traces()) {
            let expected: Vec<Event> = whole.events().collect();
            assert!(thread.events().eq(expected.iter().copied()));
            let Some(id) = thread.stream_id() else {
                continue;
            };
            let known = read.iter().find(|it| it.0 == id);
            went_on += usize::from(known.is_some());
            let (mark, mut events) =
                known.map_or_else(Default::default, |it| (it.1.clone(), it.2.clone()));
            let mut rest = thread.events_after(&mark);
            events.extend(&mut rest);
            assert_eq!(events, expected, "after {stores} stores");
            next.push((id, rest.bookmark().unwrap(), events));
        }
        read = next;
    }
    went_on
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn looks_after_any_store_agree_with_the_whole(
        parts in prop::collection::vec((0..2usize, part()), 1..20),
        steps in prop::collection::vec(0..400u64, 1..12),
    ) {
        let mut at = 0;
        let mut looks: Vec<u64> = steps.iter().map(|step| { at += step; at }).collect();
        looks.extend([u64::MAX, u64::MAX]);
        agrees(Kind::Lockstep, &parts, &looks);
        agrees(Kind::Seed, &parts, &looks);
    }
}

#[test]
fn what_only_grew_goes_on() {
    let body = [FIRST_FUNCTION, FIRST_FUNCTION + 1, RETURN, RETURN];
    let parts = [(0, Part::Symbols(body.to_vec(), 3000))];
    let looks: Vec<u64> = (0..30).map(|it| it * 700).collect();
    assert!(agrees(Kind::Lockstep, &parts, &looks) > 20);
    assert_eq!(agrees(Kind::Seed, &parts, &looks), 0);
    // What goes round for long is kept once.
    let parts = [(0, Part::Symbols(body.to_vec(), 30_000))];
    let looks: Vec<u64> = (0..12).map(|it| it * 9_001).collect();
    assert!(agrees(Kind::Lockstep, &parts, &looks) > 5);
}
