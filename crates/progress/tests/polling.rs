//! A rank that asks a hundred thousand times for what does not come: what is told of such a run is what is told of it when it is
//! sealed, and read event by event.
#![allow(clippy::unwrap_used)]

use lockstep_calltree::{Builder as TreeBuilder, Forest, trees};
use lockstep_progress::{Follower, LooseEnd, analyse};
use lockstep_trace::sealed::seal;
use lockstep_trace::{Event, Frames, Run, Sealable, Thread};
use lockstep_writer::{Builder, FunctionNumber, Named, ProcessFacts};
use std::path::{Path, PathBuf};

const WORLD: i64 = 0x4400_0000;
const INT: i64 = 0x4c00_0405;
const TAG: i64 = 3;
const NULL: i64 = 0x2c00_0000;
const UNDEFINED: i64 = -32766;

/// What a rank does.
#[derive(Clone, Copy)]
enum Asking {
    /// `MPI_Iprobe`.
    Plain(u32),
    /// In a function of its own, which calls another one first.
    Inside(u32),
    /// For two tags in turn, the first of them three times.
    InTurn(u32),
    /// With `MPI_Comm_rank` between.
    Idly(u32),
    /// `MPI_Waitany` of requests that are over.
    OfNothing(u32),
    /// Nothing: it computes, in rounds of 602 symbols.
    Computing(u32),
    /// It gets an answer, and receives.
    Answered,
}

struct Writing {
    builder: Builder,
    functions: Vec<FunctionNumber>,
}

const NAMES: [&str; 9] = [
    "main",
    "MPI_Init",
    "MPI_Iprobe",
    "MPI_Recv",
    "MPI_Send",
    "MPI_Comm_rank",
    "MPI_Waitany",
    "poll",
    "work",
];

impl Writing {
    fn call(&mut self, name: &str, given: &[i64]) -> FunctionNumber {
        let place = NAMES.iter().position(|it| *it == name).unwrap();
        let function = self.functions[place];
        self.builder.call(function, None).unwrap();
        if name.starts_with("MPI_") {
            let values: Vec<i64> = [0x1000 + place as i64]
                .iter()
                .chain(given)
                .copied()
                .collect();
            self.builder.arguments(function, false, &values).unwrap();
        }
        function
    }

    fn whole(&mut self, name: &str, given: &[i64], back: &[i64]) {
        let function = self.call(name, given);
        if !back.is_empty() {
            self.builder.arguments(function, true, back).unwrap();
        }
        self.builder.ret(None).unwrap();
    }

    fn probe(&mut self, tag: i64) {
        self.whole("MPI_Iprobe", &[0, tag, WORLD], &[0]);
    }

    fn asks(&mut self, asking: Asking) {
        match asking {
            Asking::Plain(times) => (0..times).for_each(|_| self.probe(TAG)),
            Asking::Inside(times) => {
                for _ in 0..times {
                    self.call("poll", &[]);
                    self.whole("work", &[], &[]);
                    self.probe(TAG);
                    self.builder.ret(None).unwrap();
                }
            }
            Asking::InTurn(times) => {
                for _ in 0..times {
                    for tag in [TAG, TAG, TAG, TAG + 1] {
                        self.probe(tag);
                    }
                }
            }
            Asking::Idly(times) => {
                for _ in 0..times {
                    self.whole("MPI_Comm_rank", &[WORLD], &[1]);
                    self.probe(TAG);
                }
            }
            Asking::OfNothing(times) => {
                for _ in 0..times {
                    self.whole("MPI_Waitany", &[2, 2, NULL, NULL], &[UNDEFINED]);
                }
            }
            Asking::Computing(times) => {
                for _ in 0..times {
                    self.call("poll", &[]);
                    (0..300).for_each(|_| self.whole("work", &[], &[]));
                    self.builder.ret(None).unwrap();
                }
            }
            Asking::Answered => {
                self.whole("MPI_Iprobe", &[0, TAG, WORLD], &[1, 0, TAG, 4]);
                self.whole("MPI_Recv", &[1, INT, 0, TAG, WORLD], &[]);
            }
        }
    }
}

/// Rank 0 sends twice and asks in vain, rank 1 does this; both are in it at the end.
fn write(directory: &Path, askings: &[Asking]) {
    let sends = |it: &mut Writing| {
        for _ in 0..2 {
            it.whole("MPI_Send", &[1, INT, 1, TAG, WORLD], &[]);
        }
        it.call("MPI_Recv", &[1, INT, 1, TAG, WORLD]);
    };
    let asks = |it: &mut Writing| askings.iter().for_each(|asking| it.asks(*asking));
    write_ranks(directory, [&sends, &asks]);
}

/// What each of two ranks does after `MPI_Init`.
fn write_ranks(directory: &Path, ranks: [&dyn Fn(&mut Writing); 2]) {
    let mut builder = Builder::new(directory).unwrap();
    let function = |builder: &mut Builder, name: &str| {
        let named = Named {
            image: "/app",
            name,
            imported: name.starts_with("MPI_"),
            source: None,
        };
        builder.function(&named).unwrap()
    };
    let functions = NAMES.map(|name| function(&mut builder, name)).to_vec();
    let mut it = Writing { builder, functions };
    for (rank, does) in (0..).zip(ranks) {
        let facts = ProcessFacts {
            host: "host".to_owned(),
            program: "/app".to_owned(),
            pid: 100 + rank,
            rank: Some(rank),
            status: None,
        };
        let process = it.builder.process(facts).unwrap();
        it.builder.begin(process, 100 + rank).unwrap();
        it.call("main", &[]);
        it.whole("MPI_Init", &[], &[]);
        does(&mut it);
        it.builder.end().unwrap();
    }
    it.builder.finish(&serde_json::json!({})).unwrap();
}

/// Whether the events of a thread go round somewhere, long enough for that to be told.
fn goes_round(thread: &Thread) -> bool {
    let mut events = thread.events();
    std::iter::from_fn(|| events.next().map(|_| events.round())).any(|it| it.is_some())
}

fn check(name: &str, askings: &[Asking]) {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("lockstep-polling-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    write(&directory, askings);
    let run = Run::open(&directory).unwrap();
    assert!(run.processes[1].threads.iter().any(goes_round), "{name}");
    for thread in run.processes.iter().flat_map(|it| &it.threads) {
        let events: Vec<Event> = thread.events().collect();
        let calls = events.iter().filter(|it| matches!(it, Event::Call(_)));
        let (all, calls) = (events.len() as u64, calls.count() as u64);
        assert_eq!((thread.events, thread.calls), (all, calls), "{name}");
        assert_eq!(thread.damage, None, "{name}");
        let mut frames = Frames::default();
        for event in &events {
            frames.apply(*event);
        }
        let open = frames.open().iter().map(|it| it.function);
        assert!(open.eq(thread.open.iter().map(|it| it.function)), "{name}");
        let mut forest = Forest::new();
        let functions = forest.add_functions(&run);
        let together = forest.add_trace(&functions, thread).root;
        let mut builder = TreeBuilder::new(&mut forest);
        events.iter().for_each(|it| builder.event(*it, &functions));
        assert_eq!(builder.finish(), together, "{name}");
    }
    let recorded = analyse(&run);
    let is_waiting = !matches!(
        askings.last(),
        Some(Asking::Answered | Asking::OfNothing(_))
    );
    let polls = recorded.tasks[&1].polls.is_some();
    assert_eq!(polls, is_waiting, "{name}");
    let is_idle = matches!(askings.last(), Some(Asking::OfNothing(_)));
    let mut loose = recorded.loose.iter();
    let is_told = loose.any(|it| matches!(it.end, LooseEnd::Idle { .. }));
    assert_eq!(is_told, is_idle, "{name}");
    let told = trees(&[&run], None).unwrap();
    drop(run);
    seal(&[&Sealable::open(&directory).unwrap()], &told, None, false).unwrap();
    let sealed = Run::open(&directory).unwrap();
    assert!(!goes_round(&sealed.processes[1].threads[0]), "{name}");
    let sealed = analyse(&sealed);
    assert_eq!(format!("{recorded:?}"), format!("{sealed:?}"), "{name}");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Who receives what a probe found would not have waited for it, however often it received the same without one before.
#[test]
fn a_message_that_was_found_is_in_no_circle() {
    for asks in [false, true] {
        let name = format!("lockstep-found-{asks}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let sends = |it: &mut Writing| {
            for tag in [TAG; 42].into_iter().chain([TAG + 1, TAG]) {
                it.whole("MPI_Send", &[1, INT, 1, tag, WORLD], &[]);
            }
        };
        let receives = |it: &mut Writing| {
            for at in 0..43 {
                if asks && at >= 40 {
                    it.whole("MPI_Iprobe", &[0, TAG, WORLD], &[1, 0, TAG, 4]);
                }
                it.whole("MPI_Recv", &[1, INT, 0, TAG, WORLD], &[0, TAG, 4]);
            }
            it.whole("MPI_Recv", &[1, INT, 0, TAG + 1, WORLD], &[]);
        };
        write_ranks(&directory, [&sends, &receives]);
        let run = Run::open(&directory).unwrap();
        // A watch knows calls again that came before.
        for progress in [analyse(&run), Follower::default().analyse(&run)] {
            assert_eq!(progress.potential.is_some(), !asks, "{progress:#?}");
        }
        drop(run);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn asking_for_one_thing() {
    use Asking::{Answered, Plain};
    check("plain", &[Plain(140_000)]);
    check(
        "again",
        &[
            Plain(140_001),
            Answered,
            Plain(300),
            Answered,
            Plain(139_999),
        ],
    );
}

#[test]
fn asking_within_a_function() {
    use Asking::{Answered, Inside};
    check("inside", &[Inside(50_003)]);
    check("last", &[Inside(50_003), Answered, Inside(7), Answered]);
}

#[test]
fn asking_for_two_things() {
    use Asking::{Answered, InTurn, Plain};
    check(
        "turns",
        &[InTurn(36_000), Answered, Plain(1000), InTurn(36_001)],
    );
}

#[test]
fn asking_and_looking_around() {
    use Asking::{Answered, Idly, Plain};
    check("idly", &[Idly(70_000), Answered, Plain(140_000)]);
}

/// What a rank computes between its calls of MPI goes round, too.
#[test]
fn asking_after_long_rounds() {
    use Asking::{Answered, Computing, Plain};
    check("rounds", &[Computing(700), Plain(140_000)]);
    check(
        "between",
        &[Answered, Computing(703), Answered, Computing(2), Plain(500)],
    );
}

#[test]
fn asking_for_nothing() {
    use Asking::{OfNothing, Plain};
    check("nothing", &[OfNothing(140_000)]);
    check("something", &[OfNothing(300), Plain(140_000)]);
}
