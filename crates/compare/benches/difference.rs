//! What comparing two traces costs: `cargo bench -p lockstep-compare --bench difference`.

#![allow(clippy::print_stdout)]

use lockstep_calltree::{Builder, Forest, Function, FunctionKey, NodeId};
use lockstep_compare::{Side, diff_trees, first_divergence};
use lockstep_loops::Names;
use lockstep_trace::TraceName;
use std::time::Instant;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// `main` with calls that do not repeat: a list of that length. `other` changes some of them.
fn list(forest: &mut Forest, length: usize, changes: usize) -> NodeId {
    let mut random = Random(1);
    let every = length.checked_div(changes).unwrap_or(usize::MAX);
    let mut builder = Builder::new(forest);
    builder.call(FunctionKey(0));
    for index in 0..length {
        let mut function = 1 + random.below(1000) as u32;
        if index % every == every - 1 {
            function = 1001;
        }
        builder.call(FunctionKey(function));
        builder.ret();
    }
    builder.ret();
    builder.finish()
}

/// Nested loops of calls in calls that repeat for ever; `last` is called at the end.
fn loops(forest: &mut Forest, iterations: usize, last: u32) -> NodeId {
    let mut builder = Builder::new(forest);
    builder.call(FunctionKey(0));
    for _ in 0..iterations {
        builder.call(FunctionKey(1));
        for function in 2..50 {
            builder.call(FunctionKey(function));
            builder.ret();
        }
        builder.ret();
    }
    builder.call(FunctionKey(last));
    builder.ret();
    builder.ret();
    builder.finish()
}

fn main() {
    let forest = || {
        let mut forest = Forest::new();
        for number in 0..1002 {
            forest.add_function(Function {
                name: format!("f{number}"),
                linkage: format!("f{number}"),
                image: String::new(),
                imported: false,
            });
        }
        forest
    };
    let mut cases = Vec::new();
    let mut one = forest();
    let roots = (
        list(&mut one, 1_000_000, 0),
        list(&mut one, 1_000_000, 1000),
    );
    cases.push(("10^6 calls, 10^3 changed", one, roots));
    let mut two = forest();
    let roots = (list(&mut two, 1_000_000, 0), list(&mut two, 1_000_000, 1));
    cases.push(("10^6 calls, the last changed", two, roots));
    let mut three = forest();
    let roots = (
        loops(&mut three, 100_000, 60),
        loops(&mut three, 90_000, 61),
    );
    cases.push(("10^7 events in loops, the last changed", three, roots));
    println!(
        "{:>40} {:>14} {:>10} {:>8}",
        "case", "divergence ms", "diff ms", "ops"
    );
    for (name, forest, (normal, faulty)) in cases {
        let names = Names::new();
        let trace = TraceName::new(0, 0);
        let (a, b) = (Side::whole(normal), Side::whole(faulty));
        let start = Instant::now();
        let found = first_divergence(&forest, trace, a, b, None, &names);
        let divergence = start.elapsed();
        assert!(found.structure.is_some());
        let start = Instant::now();
        let ops = diff_trees(&forest, normal, faulty, &names);
        println!(
            "{name:>40} {:>14.2} {:>10.2} {:>8}",
            divergence.as_secs_f64() * 1e3,
            start.elapsed().as_secs_f64() * 1e3,
            serde_json::to_string(&ops)
                .unwrap_or_default()
                .matches("\"op\"")
                .count(),
        );
    }
}
