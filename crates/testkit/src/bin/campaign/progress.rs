//! Faults in MPI programs, and who is named for each: by our analysis and by the published methods.

use anyhow::{Context, Result, bail};
use lockstep_testkit::hang::{Fault, Healthy, METHODS, PROGRAMS};
use lockstep_testkit::{Scratch, artifacts, mpi::Mpi};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

const HEADS: &str =
    "program,fault,number,rank,at,hung,seconds,method,hang,named,accurate,precision,first,site";

pub fn run(words: &[String]) -> Result<ExitCode> {
    let (mut seed, mut loops, mut others, mut ranks) = (1, 10, 3, 8);
    let (mut command, mut images) = (None, Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
        let mut number = || -> Result<u64> { Ok(value()?.parse()?) };
        match word.as_str() {
            "--seed" => seed = number()?,
            "--loops" => loops = number()?,
            "--others" => others = number()?,
            "--ranks" => ranks = u32::try_from(number()?)?,
            "--command" => command = Some(value()?.as_str()),
            "--images" => images.push(value()?.as_str()),
            other => bail!(
                "expected --seed, --loops, --others, --ranks, --command or --images, found `{other}`"
            ),
        }
    }
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        bail!("expected an MPI library, found none");
    };
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("progress-{seed}-{ranks}.csv"));
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut rows: Vec<String> = before.lines().skip(1).map(str::to_owned).collect();
    let mut table = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    if before.is_empty() {
        writeln!(table, "{HEADS}")?;
    }
    let scratch = Scratch::below(&directory, "progress");
    let ours = PROGRAMS.iter().filter(|_| command.is_none());
    let ours = ours.map(|program| Healthy::record(mpi, program, ranks, scratch.path()));
    let given = command.map(|it| Healthy::of_command(it, &images, scratch.path()));
    for healthy in ours.chain(given) {
        let program = healthy.program();
        for fault in Fault::ALL {
            let name = fault.words().0;
            let count = if fault == Fault::Loop { loops } else { others };
            for number in 0..count {
                let key = format!("{program},{name},{number},");
                // The rows of a trial are written at once; one that was broken off is run again.
                if rows.iter().filter(|row| row.starts_with(&key)).count() >= METHODS.len() {
                    continue;
                }
                let Some(trial) = healthy.draw(fault, seed.wrapping_mul(1000) + number) else {
                    continue;
                };
                let outcome = healthy.run(&trial, &scratch);
                // A cell has no comma, and a C++ function's parameters may.
                let at = format!("{}#{}", trial.function, trial.call).replace(", ", ";");
                let mut text = String::new();
                for (method, named) in METHODS.iter().zip(&outcome.named) {
                    let ranks: Vec<String> = named.ranks.iter().map(u32::to_string).collect();
                    let precision = named.precision(trial.rank);
                    let row = format!(
                        "{key}{},{at},{},{:.1},{method},{},{},{},{precision:.4},{},{}",
                        trial.rank,
                        outcome.hung,
                        outcome.seconds,
                        named.hang,
                        ranks.join(" "),
                        u8::from(precision > 0.0),
                        u8::from(named.ranks.first() == Some(&trial.rank)),
                        u8::from(named.has(&trial.function)),
                    );
                    text.push_str(&format!("{row}\n"));
                    rows.push(row);
                }
                table.write_all(text.as_bytes())?;
                println!(
                    "{key}{at} in rank {}: {:?}",
                    trial.rank, outcome.named[0].ranks
                );
            }
        }
    }
    println!("\n{}", summary(&rows));
    println!("every row in {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// By fault and method, over the trials that hung; of slow runs, those that were told to hang.
fn summary(rows: &[String]) -> String {
    // Cases, and sums of accuracy, precision, top-1 and site.
    let mut sums: BTreeMap<(&str, &str), [f64; 5]> = BTreeMap::new();
    let (mut alarms, mut slow) = (0, 0);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let [_, fault, _, _, _, hung, _, method, _, _, figures @ ..] = cells.as_slice() else {
            continue;
        };
        if *fault == "slow" {
            slow += usize::from(*method == METHODS[0]);
            alarms += usize::from(*method == METHODS[0] && *hung == "true");
        } else if *hung == "true" {
            let sum = sums.entry((*fault, *method)).or_default();
            sum[0] += 1.0;
            for (sum, figure) in sum[1..].iter_mut().zip(figures) {
                *sum += figure.parse::<f64>().unwrap_or(0.0);
            }
        }
    }
    let mut text =
        "fault       method           cases  accuracy  precision  top-1  site\n".to_owned();
    for ((fault, method), [cases, accurate, precision, first, site]) in &sums {
        text.push_str(&format!(
            "{fault:<11} {method:<16} {cases:>5}  {:>8.2}  {:>9.2}  {:>5.2}  {:>4.2}\n",
            accurate / cases,
            precision / cases,
            first / cases,
            site / cases,
        ));
    }
    text + &format!("false alarms on slow runs: {alarms} of {slow}")
}
