//! How long the full sweep takes: `cargo test --release -p lockstep-compare --test speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod odd_even;

use lockstep_compare::{Options, compare};
use odd_even::{Bug, odd_even};
use std::time::Instant;

#[test]
#[ignore = "a measurement"]
fn full_sweep() {
    for ranks in [16, 64, 256, 1024] {
        let (normal, faulty) = (odd_even(ranks, Bug::None), odd_even(ranks, Bug::Swap));
        let start = Instant::now();
        let comparison = compare(&[&normal], &faulty, &Options::default(), &|_, _| {}).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        eprintln!(
            "{ranks} ranks, {} rows: {seconds:.3} s, {} KiB at most",
            comparison.table.len(),
            peak()
        );
    }
}

/// Largest resident size so far, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
