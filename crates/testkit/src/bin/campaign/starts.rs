//! `cargo xtask campaign starts [COUNT] [--seed N]`: jobs of a few ranks, several at a time on a machine that is busy besides,
//! each of whose ranks must have begun to record.

use anyhow::{Context, Result, bail};
use lockstep_testkit::starts::Start;
use lockstep_testkit::{Scratch, artifacts, mpi::Mpi};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Jobs at a time, for each processor.
const BESIDE: usize = 2;

/// Runs it.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let (mut count, mut seed) = (5000, 1);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--seed" => seed = rest.next().context("--seed needs a number")?.parse()?,
            number => match number.parse() {
                Ok(number) => count = number,
                Err(_) => bail!("expected a number of starts, found `{number}`"),
            },
        }
    }
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let all: Vec<Mpi> = Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()).collect();
    let scratch = Scratch::below(&directory, "starts");
    let (next, faults, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        // The load: as many threads that only compute as there are processors.
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let workers: Vec<_> = (0..BESIDE * processors)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return;
                        }
                        let start = Start::draw(seed, number, &all);
                        if let Some(fault) = start.run(&scratch) {
                            faults.fetch_add(1, Ordering::Relaxed);
                            println!("{start}: {fault}");
                        }
                        if (number + 1) % 100 == 0 {
                            println!(
                                "{} of {count} starts, {} s",
                                number + 1,
                                begun.elapsed().as_secs()
                            );
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            let _ = worker.join();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let faults = faults.into_inner();
    println!("{count} starts, {faults} of which a rank did not record");
    if faults > 0 {
        // What went wrong stays.
        std::mem::forget(scratch);
    }
    Ok(match faults {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
