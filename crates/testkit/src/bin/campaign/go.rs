//! The zoo: each kernel is run under delays until its bug is found, its twin a fixed number of times.

use crate::{beside, healthy};
use anyhow::{Context, Result};
use lockstep_goroutines::{Verdict, judge, predict_with};
use lockstep_testkit::zoo::{self, Built, Kernel};
use lockstep_testkit::{artifacts, tools};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

struct Options {
    seed: u64,
    runs: u64,
    twins: u64,
    standard: u64,
    beside: bool,
    healthy: bool,
    campaigns: u64,
    only: Vec<String>,
}

/// What a campaign tells of one kernel; a line of the table.
struct Row {
    name: String,
    class: String,
    /// The run that found it, from 1; 0 where none did.
    found: u64,
    /// Executions until then: a run is followed by those in which what it foresaw is tried.
    executions: u64,
    verdict: String,
    right: bool,
    line: bool,
    /// Whether a healthy run raised the suspicion; `-` where the first run found the bug.
    predicted: String,
    false_verdicts: u64,
    milliseconds: u128,
}

impl Row {
    const HEADS: &str =
        "kernel,class,found,executions,verdict,right_class,right_line,predicted,false_verdicts,ms";

    fn csv(&self) -> String {
        format!(
            "{},{},{},{},{},{},{},{},{},{}",
            self.name,
            self.class,
            self.found,
            self.executions,
            self.verdict,
            self.right,
            self.line,
            self.predicted,
            self.false_verdicts,
            self.milliseconds
        )
    }

    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(',').collect();
        let [
            name,
            class,
            found,
            executions,
            verdict,
            right,
            line,
            predicted,
            false_verdicts,
            ms,
        ] = words[..]
        else {
            return None;
        };
        Some(Self {
            name: name.to_owned(),
            class: class.to_owned(),
            found: found.parse().ok()?,
            executions: executions.parse().ok()?,
            verdict: verdict.to_owned(),
            right: right == "true",
            line: line == "true",
            predicted: predicted.to_owned(),
            false_verdicts: false_verdicts.parse().ok()?,
            milliseconds: ms.parse().ok()?,
        })
    }
}

pub fn run(words: &[String]) -> Result<ExitCode> {
    let mut options = Options {
        seed: 1,
        runs: 30,
        twins: 10,
        standard: 0,
        beside: false,
        healthy: false,
        campaigns: 1,
        only: Vec::new(),
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut number = || -> Result<u64> {
            let number = rest
                .next()
                .with_context(|| format!("{word} needs a number"))?;
            Ok(number.parse()?)
        };
        match word.as_str() {
            "--seed" => options.seed = number()?,
            "--runs" => options.runs = number()?,
            "--twins" => options.twins = number()?,
            "--standard" => options.standard = number()?,
            "--beside" => options.beside = true,
            "--healthy" => options.healthy = true,
            "--campaigns" => options.campaigns = number()?,
            name => options.only.push(name.to_owned()),
        }
    }
    if !tools::require(&["go"]) {
        return Ok(ExitCode::from(2));
    }
    if options.beside {
        return beside::run(&beside::Options {
            runs: options.runs,
            seed: options.seed,
            campaigns: options.campaigns,
            only: options.only,
        });
    }
    if options.standard > 0 {
        return standard(&options);
    }
    let mut kernels = zoo::kernels()?;
    let is_asked = |name: &str| options.only.iter().any(|it| name.contains(it));
    kernels.retain(|it| options.only.is_empty() || is_asked(&it.name));
    if options.healthy {
        healthy::run(&kernels, options.seed, options.runs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!(
        "go-{}-{}-{}.csv",
        options.seed, options.runs, options.twins
    ));
    // A few kernels by name are for looking: they are run again, and not kept.
    let before = if options.only.is_empty() {
        std::fs::read_to_string(&path).unwrap_or_default()
    } else {
        String::new()
    };
    let mut rows: Vec<Row> = before.lines().filter_map(Row::read).collect();
    let mut table = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    if before.is_empty() && options.only.is_empty() {
        writeln!(table, "{}", Row::HEADS)?;
    }
    kernels.retain(|kernel| !rows.iter().any(|it| it.name == kernel.name));
    let started = Instant::now();
    let built = Built::all(&kernels)?;
    let built_for = started.elapsed();
    for (kernel, built) in kernels.iter().zip(&built) {
        let row = trial(kernel, built, &options)?;
        if options.only.is_empty() {
            writeln!(table, "{}", row.csv())?;
        }
        rows.push(row);
    }
    print!("{}", summary(&rows, options.runs));
    println!("building took {:.1} s", built_for.as_secs_f64());
    let wrong = rows.iter().any(|it| it.false_verdicts > 0);
    Ok(ExitCode::from(u8::from(wrong)))
}

fn trial(kernel: &Kernel, built: &Built, options: &Options) -> Result<Row> {
    let started = Instant::now();
    let mut row = Row {
        name: kernel.name.clone(),
        class: kernel.class.clone(),
        found: 0,
        executions: 0,
        verdict: "pass".to_owned(),
        right: false,
        line: false,
        predicted: "-".to_owned(),
        false_verdicts: 0,
        milliseconds: 0,
    };
    let runs = u32::try_from(options.runs)?;
    built.campaign("TestBug", options.seed, runs, |run| {
        let judgement = &run.judgement;
        row.executions += 1;
        row.verdict = judgement.verdict.name().to_owned();
        if judgement.verdict.is_bug() {
            row.found = u64::from(run.number);
            row.right = kernel.is_right(judgement);
            row.line = kernel.is_cause(judgement.cause.as_ref());
            if !row.right || !row.line {
                println!(
                    "{}: {}: {}",
                    kernel.name, judgement.verdict, judgement.sentence
                );
            }
        } else if run.number == 1 && run.plan.script.is_empty() {
            let suspicious = predict_with(&run.execution, built.paths())
                .iter()
                .any(|it| it.places.iter().any(|place| kernel.is_cause(Some(place))));
            row.predicted = suspicious.to_string();
        }
    })?;
    if row.found == 0 {
        println!("{}: not found ({})", kernel.name, row.verdict);
    }
    let twins = u32::try_from(options.twins)?;
    built.campaign("TestRepaired", options.seed, twins, |run| {
        let judgement = &run.judgement;
        if judgement.verdict != Verdict::Pass {
            row.false_verdicts += u64::from(judgement.verdict.is_bug());
            println!(
                "{} repaired, run {}: {}: {}",
                kernel.name, run.number, judgement.verdict, judgement.sentence
            );
        }
    })?;
    row.milliseconds = started.elapsed().as_millis();
    Ok(row)
}

/// Tests of the standard library, which have no bugs that these schedules would show.
fn standard(options: &Options) -> Result<ExitCode> {
    let mut wrong = 0;
    for package in STANDARD {
        if !options.only.is_empty() && !options.only.iter().any(|it| it == package) {
            continue;
        }
        let built = Built::standard(package)?;
        for number in 0..options.standard {
            let plan = zoo::plan(options.seed, number);
            let (execution, took) = built.run_all(&plan, Duration::from_secs(120))?;
            let judgement = judge(&execution);
            let events = execution.events.len();
            println!(
                "{package}, run {}: {} ({events} events, {} goroutines, {:.1} s): {}",
                number + 1,
                judgement.verdict,
                execution.goroutines.len(),
                took.as_secs_f64(),
                judgement.sentence
            );
            wrong += u64::from(judgement.verdict.is_bug());
        }
    }
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Packages whose tests are run for false verdicts.
const STANDARD: &[&str] = &["context", "sync", "io", "database/sql", "net/http"];

fn summary(rows: &[Row], runs: u64) -> String {
    let mut classes: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        classes.entry(&row.class).or_default().push(row);
    }
    let mut text = format!(
        "{:<22}{:>8}{:>7}{:>9}{:>9}{:>7}{:>7}{:>11}{:>7}\n",
        "class",
        "kernels",
        "run 1",
        "<=10",
        format!("<={runs}"),
        "class",
        "line",
        "predicted",
        "false"
    );
    let all: Vec<&Row> = rows.iter().collect();
    for (class, rows) in classes.into_iter().chain([("all", all)]) {
        let within = |most: u64| {
            rows.iter()
                .filter(|it| it.found > 0 && it.found <= most)
                .count()
        };
        let healthy = rows.iter().filter(|it| it.predicted != "-").count();
        // A string takes whatever is written to it.
        let _ = writeln!(
            text,
            "{class:<22}{:>8}{:>7}{:>9}{:>9}{:>7}{:>7}{:>11}{:>7}",
            rows.len(),
            within(1),
            within(10),
            within(runs),
            rows.iter().filter(|it| it.right).count(),
            rows.iter().filter(|it| it.line).count(),
            format!(
                "{}/{healthy}",
                rows.iter().filter(|it| it.predicted == "true").count()
            ),
            rows.iter().map(|it| it.false_verdicts).sum::<u64>(),
        );
    }
    let executions = rows.iter().map(|it| it.executions).sum::<u64>();
    let runs = rows.iter().map(|it| match it.found {
        0 => runs,
        found => found,
    });
    let runs = runs.sum::<u64>();
    let _ = writeln!(text, "{runs} runs of bugs took {executions} executions");
    let seconds = rows.iter().map(|it| it.milliseconds).sum::<u128>() as f64 / 1000.0;
    let _ = writeln!(text, "running took {seconds:.1} s");
    text
}
