//! How long the full sweep takes: `cargo test --release -p lockstep-compare --test comparisons speed:: -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::odd_even::{self, Bug, function, odd_even, run};
use lockstep_compare::{Options, compare};
use lockstep_trace::{Event, Run};
use std::time::Instant;

#[test]
#[ignore = "a measurement"]
fn full_sweep() {
    for ranks in [16, 64, 256, 1024] {
        measure(
            &odd_even(ranks, Bug::None),
            &odd_even(ranks, Bug::Swap),
            &format!("{ranks} ranks"),
        );
    }
    let (normal, faulty) = (many(16_384, None), many(16_384, Some(5_000)));
    measure(&normal, &faulty, "16,384 traces of 40 roles");
    for events in [10_000, 100_000, 1_000_000] {
        let (normal, faulty) = (noisy(1, events), noisy(2, events));
        measure(
            &normal,
            &faulty,
            &format!("16 ranks, {events} irregular events each"),
        );
    }
}

fn measure(normal: &Run, faulty: &Run, what: &str) {
    let before = peak();
    let start = Instant::now();
    let comparison = compare(&[normal], faulty, &Options::default(), &|_, _| {}).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let (rows, after) = (comparison.table.len(), peak());
    eprintln!("{what}, {rows} rows: {seconds:.3} s, from {before} to {after} KiB at most");
}

/// Many ranks in roles (corners, edges and inner ones of a grid, say), each of which exchanges with its own number of
/// neighbours in 50 steps; one of them leaves a message out from step 20 on.
fn many(ranks: u64, faulty: Option<u64>) -> Run {
    const ROLES: u64 = 40;
    let trace = |rank: u64| {
        let role = (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % ROLES;
        let mut events = Vec::new();
        let mut leaf = |name: &str| events.extend([Event::Call(function(name)), Event::Return]);
        leaf("MPI_Init");
        for step in 0..50 {
            for _ in 0..1 + role {
                leaf("MPI_Send");
                let left_out = faulty == Some(rank) && step >= 20;
                if !left_out {
                    leaf("MPI_Recv");
                }
            }
            if role.is_multiple_of(2) {
                leaf("find_partner");
            }
        }
        leaf("MPI_Finalize");
        events
    };
    run(&odd_even::FUNCTIONS, (0..ranks).map(trace).collect())
}

/// Programs whose loops run as often as chance wants, so that hardly two traces are equal.
fn noisy(seed: u64, count: usize) -> Run {
    let trace = |rank: u64| {
        let mut state = seed * 1000 + rank;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut events = Vec::with_capacity(count + 100);
        while events.len() < count {
            events.push(Event::Call(function("odd_even_sort")));
            for _ in 0..random(6) {
                for name in ["find_partner", "MPI_Send", "MPI_Recv"]
                    .into_iter()
                    .take(1 + random(3) as usize)
                {
                    events.extend([Event::Call(function(name)), Event::Return]);
                }
            }
            events.push(Event::Return);
        }
        events
    };
    run(&odd_even::FUNCTIONS, (0..16).map(trace).collect())
}

/// Largest resident size so far, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
