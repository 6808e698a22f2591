//! Nanoseconds a call for building trees, and what they take: `cargo bench -p lockstep-calltree`.

#![allow(clippy::print_stdout)]

use lockstep_calltree::{Builder, Forest, Function, FunctionKey};
use lockstep_loops::{Bodies, Mode};
use std::time::Duration;

/// Time that this process has been on a processor, so that others on the machine matter less.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const CALLS: usize = 2_000_000;

/// A call (some function) or a return (none).
type Event = Option<u32>;

/// Constant nested loops of calls in calls.
fn nested() -> Vec<Event> {
    let mut events = vec![Some(0)];
    while events.len() < 2 * CALLS {
        events.push(Some(1));
        for _ in 0..20 {
            events.extend([Some(2), Some(3), None, Some(4), None, None]);
        }
        events.extend([Some(5), None, None]);
    }
    events
}

/// Messages and polling, with a random number of polls each time.
fn polling() -> Vec<Event> {
    let mut random = Random(1);
    let mut events = vec![Some(0)];
    while events.len() < 2 * CALLS {
        events.extend([Some(1), Some(2), None]);
        for _ in 0..1 + random.below(30) {
            events.extend([Some(3), None]);
        }
        events.push(None);
    }
    events
}

/// A recursive sort with a random pivot.
fn sort() -> Vec<Event> {
    fn sort(length: u64, random: &mut Random, events: &mut Vec<Event>) {
        events.push(Some(1));
        if length > 1 {
            for _ in 0..length.min(8) {
                events.extend([Some(2), None]);
            }
            let pivot = random.below(length);
            sort(pivot, random, events);
            sort(length - pivot - 1, random, events);
        }
        events.push(None);
    }
    let mut random = Random(2);
    let mut events = vec![Some(0)];
    while events.len() < 2 * CALLS {
        sort(10_000, &mut random, &mut events);
    }
    events
}

fn main() {
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>12} {:>12}",
        "trace", "calls", "ns/call", "nodes", "flat ns/call", "project ns"
    );
    for (name, events) in [
        ("nested", nested()),
        ("polling", polling()),
        ("sort", sort()),
    ] {
        let mut forest = Forest::new();
        for number in 0..6 {
            forest.add_function(Function {
                name: format!("f{number}"),
                linkage: format!("f{number}"),
                image: String::new(),
                imported: false,
            });
        }
        let start = now();
        let mut builder = Builder::new(&mut forest);
        for event in &events {
            match event {
                Some(function) => builder.call(FunctionKey(*function)),
                None => builder.ret(),
            }
        }
        let root = builder.finish();
        let built = now().saturating_sub(start);
        let nodes = forest.len();
        let calls = events.iter().flatten().count() as f64;
        let start = now();
        let everything = forest.projection(|_| true);
        let flat = forest.flat(
            root,
            &everything,
            false,
            10,
            Mode::Shape,
            &mut Bodies::new(),
        );
        let flattened = now().saturating_sub(start);
        let start = now();
        let mut leaves =
            forest.projection(|function| function.name == "f3" || function.name == "f2");
        forest.project(root, &mut leaves);
        let projected = now().saturating_sub(start);
        println!(
            "{name:>10} {calls:>9} {:>9.1} {nodes:>9} {:>12.1} {:>12.1}   {} flat elements",
            built.as_nanos() as f64 / calls,
            flattened.as_nanos() as f64 / calls,
            projected.as_nanos() as f64 / calls,
            flat.len(),
        );
    }
}
