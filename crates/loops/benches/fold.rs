//! Nanoseconds a token for folding, beside the rules followed to the letter: `cargo bench -p
//! lockstep-loops`, or of some traces alone: `cargo bench -p lockstep-loops -- noise steps`.

#![allow(clippy::print_stdout)]

use lockstep_loops::{Bodies, Mode, fold, reference};
use std::time::Duration;

const TOKENS: usize = 1_000_000;

/// How often a trace is folded for one time: the kernel tells times in steps of some milliseconds.
const TIMES: u32 = 5;

/// Time that this process has been on a processor, so that others on the machine matter less.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// A small generator, so that every run folds the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Constant nested loops.
fn nested() -> Vec<u32> {
    let inner: Vec<u32> = [1, 2, 3].repeat(50);
    let outer = [&[0][..], &inner, &[4, 5]].concat();
    outer.into_iter().cycle().take(TOKENS).collect()
}

/// Messages and polling, with a random number of polls each time.
fn polling() -> Vec<u32> {
    let mut random = Random(1);
    let mut tokens = Vec::new();
    while tokens.len() < TOKENS {
        tokens.extend([10, 11, 12, 13]);
        for _ in 0..1 + random.below(30) {
            tokens.extend([14, 15]);
        }
        tokens.push(16);
    }
    tokens
}

/// A time step of 1,000 calls without a repetition of its own.
fn steps() -> Vec<u32> {
    let mut random = Random(2);
    let step: Vec<u32> = (0..1000).map(|_| random.below(200) as u32).collect();
    step.into_iter().cycle().take(TOKENS).collect()
}

/// Noise over few functions: nothing but short accidental loops.
fn noise() -> Vec<u32> {
    let mut random = Random(3);
    (0..TOKENS).map(|_| random.below(6) as u32).collect()
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    println!(
        "{:>10} {:>4} {:>12} {:>12} {:>12}",
        "trace", "K", "ns/token", "reference", "elements"
    );
    for (name, tokens) in [
        ("nested", nested()),
        ("polling", polling()),
        ("steps", steps()),
        ("noise", noise()),
    ] {
        if !wanted.is_empty() && !wanted.iter().any(|it| it == name) {
            continue;
        }
        for k in [10, 32, 50] {
            let mut bodies = Bodies::new();
            let mut elements = 0;
            let best = (0..3)
                .map(|_| {
                    let start = now();
                    for _ in 0..TIMES {
                        elements = fold(tokens.iter().copied(), k, Mode::Shape, &mut bodies).len();
                    }
                    now().saturating_sub(start) / TIMES
                })
                .min()
                .unwrap_or_default();
            let part = TOKENS / 20;
            let start = now();
            let slow = reference::fold(tokens[..part].iter().copied(), k, Mode::Shape, &mut bodies);
            let slow = (slow.len(), now().saturating_sub(start)).1;
            println!(
                "{name:>10} {k:>4} {:>12.1} {:>12.1} {elements:>12}",
                best.as_nanos() as f64 / TOKENS as f64,
                slow.as_nanos() as f64 / part as f64,
            );
        }
    }
}
