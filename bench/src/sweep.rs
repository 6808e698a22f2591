//! `cargo xtask bench sweep`: the whole sweep of `compare` over as many traces as large jobs have, from files.
//!
//! Ranks play 40 roles (corners, edges and inner ones of a grid, say), each of which exchanges with its own number of
//! neighbours; in the faulty run one of them leaves messages out from step 20 on. Measured is the command as a whole: both
//! runs opened, read, compared under all filters, attributes, linkages and numbers of clusters, and printed.

use crate::generated;
use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_testkit::artifacts;
use lockstep_writer::Builder;
use std::path::{Path, PathBuf};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench sweep [OPTION]...

Seconds and memory of `lockstep compare` on two runs of many generated ranks of 40 roles, as recorded and sealed.

  --ranks LIST   64,1024,16384
  --fresh        forget the rows that are there
";

const HEADS: [&str; 8] = [
    "ranks",
    "stored",
    "events",
    "bytes",
    "rows",
    "seconds",
    "processor_seconds",
    "peak_bytes",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--ranks"], &["--fresh"])?;
    let path = measure::results_directory()?.join("sweep.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    for ranks in given.list("--ranks", "64,1024,16384") {
        if rows.has(&[&ranks, "sealed"]) {
            continue;
        }
        let count: u32 = ranks.parse()?;
        let (normal, events) = write("sweep-normal", count, None)?;
        let (faulty, _) = write("sweep-faulty", count, Some(count / 3))?;
        for stored in ["recorded", "sealed"] {
            if stored == "sealed" {
                for run in [&normal, &faulty] {
                    let sealed = Job::plain(&command(&["seal"], &[run])).run()?;
                    ensure!(sealed.status == 0, "seal: status {}", sealed.status);
                }
            }
            let row = one(&normal, &faulty, count, stored, events)?;
            println!("{}", row.join("\t"));
            rows.add(&row)?;
        }
        for run in [normal, faulty] {
            std::fs::remove_dir_all(run)?;
        }
    }
    Ok(())
}

fn command(words: &[&str], runs: &[&Path]) -> Vec<String> {
    let program = artifacts::lockstep().display().to_string();
    let words = words.iter().map(|&word| word.to_owned());
    let runs = runs.iter().map(|run| run.display().to_string());
    std::iter::once(program).chain(words).chain(runs).collect()
}

/// The least of three.
fn one(normal: &Path, faulty: &Path, count: u32, stored: &str, events: u64) -> Result<Vec<String>> {
    let bytes = measure::bytes_below(normal) + measure::bytes_below(faulty);
    let said = normal.with_extension("json");
    let words = command(&["compare", "--json", "--fresh"], &[normal, faulty]);
    let mut best: Option<crate::run::Ran> = None;
    for _ in 0..3 {
        let ran = Job::plain(&words).run_into(Some(&said))?;
        ensure!(ran.status == 1, "compare: status {}", ran.status);
        if best.is_none_or(|best| ran.wall < best.wall) {
            best = Some(ran);
        }
    }
    let best = best.context("a comparison")?;
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&said)?)?;
    let named = found["suspects"][0]["trace"].as_str().unwrap_or_default();
    ensure!(
        named == format!("{}.0", count / 3),
        "expected rank {}, found {named}",
        count / 3
    );
    Ok(vec![
        count.to_string(),
        stored.to_owned(),
        events.to_string(),
        bytes.to_string(),
        found["table"].as_array().map_or(0, Vec::len).to_string(),
        format!("{:.2}", best.wall),
        format!("{:.2}", best.cpu),
        best.peak.to_string(),
    ])
}

const ROLES: u64 = 40;
const FUNCTIONS: [&str; 6] = [
    "main",
    "MPI_Init",
    "MPI_Send",
    "MPI_Recv",
    "find_partner",
    "MPI_Finalize",
];

/// Writes a run; how many events it has.
fn write(name: &str, ranks: u32, faulty: Option<u32>) -> Result<(PathBuf, u64)> {
    let directory = empty(name)?;
    let mut builder = Builder::new(&directory)?;
    let functions = generated::functions(&mut builder, FUNCTIONS)?;
    let [main, init, send, receive, partner, finalize] = functions[..] else {
        anyhow::bail!("expected {} functions", FUNCTIONS.len());
    };
    let mut events = 0;
    for rank in 0..ranks {
        generated::begin(&mut builder, Some(rank))?;
        builder.call(main, None)?;
        let mut leaf = |function| -> Result<()> {
            events += 2;
            builder.call(function, None)?;
            Ok(builder.ret(None)?)
        };
        leaf(init)?;
        let role = u64::from(rank) * 7 % ROLES;
        for step in 0..50 {
            for _ in 0..1 + role {
                leaf(send)?;
                if faulty != Some(rank) || step < 20 {
                    leaf(receive)?;
                }
            }
            if role.is_multiple_of(2) {
                leaf(partner)?;
            }
        }
        leaf(finalize)?;
        events += 2;
        builder.ret(None)?;
        builder.end()?;
    }
    builder.finish(&serde_json::json!({}))?;
    Ok((directory, events))
}
