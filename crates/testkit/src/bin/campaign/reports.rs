//! Programs after public reports: how many answers have the right rank, kind and line, and what a normal run adds.

use anyhow::{Context, Result, bail, ensure};
use lockstep_testkit::mpi::Mpi;
use lockstep_testkit::reports::{self, Answer, Answers, Line, Rank};
use lockstep_testkit::{Scratch, artifacts};
use std::io::Write;
use std::process::ExitCode;

/// At least so many answers shall be right, and at most so many name a wrong rank.
const RIGHT: usize = 34;
const WRONG: usize = 1;

const HEADS: &str = "program\tanswer\trank\tkind\tline\tfunction\tverdict";

pub fn run(words: &[String]) -> Result<ExitCode> {
    let (mut wanted, mut mpi) = (Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mpi" => mpi = Some(library(words.next().context("--mpi needs a name")?)?),
            option if option.starts_with('-') => bail!("expected --mpi NAME, found `{option}`"),
            program => wanted.push(program),
        }
    }
    let here = || Mpi::ALL.into_iter().find(|it| it.is_here());
    let mpi = mpi
        .or_else(here)
        .context("expected an MPI library, found none")?;
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("reports-{mpi:?}.tsv").to_lowercase());
    let mut table = std::fs::File::create(&path)?;
    writeln!(table, "{HEADS}")?;
    println!(
        "{:<21} {:<22} with --normal{:<11} compare",
        "program", "progress", ""
    );
    let mut all = Vec::new();
    for report in reports::reports()? {
        if !wanted.is_empty() && !wanted.iter().any(|it| report.program.contains(*it)) {
            continue;
        }
        let scratch = Scratch::below(&directory, "reports");
        let Some(answers) = report.ask(mpi, &scratch) else {
            continue;
        };
        ensure!(
            answers.healthy,
            "{}: the healthy variant failed",
            report.program
        );
        let change = answers.change();
        println!(
            "{:<21} {} {change:<6} {} {}",
            report.program,
            cell(&answers.alone),
            cell(&answers.with_normal),
            cell(&answers.compared)
        );
        for (name, answer) in named(&answers) {
            writeln!(table, "{}\t{name}\t{}", report.program, row(answer))?;
        }
        all.push(answers);
    }
    println!("\n{}", summary(&all));
    println!("every row in {}", path.display());
    Ok(ExitCode::from(u8::from(!is_met(&all))))
}

fn library(name: &str) -> Result<Mpi> {
    let found = Mpi::ALL
        .into_iter()
        .find(|it| format!("{it:?}").eq_ignore_ascii_case(name));
    found.with_context(|| format!("expected openmpi or mpich, found `{name}`"))
}

fn named(answers: &Answers) -> [(&'static str, &Answer); 3] {
    [
        ("progress", &answers.alone),
        ("normal", &answers.with_normal),
        ("compare", &answers.compared),
    ]
}

/// Rank, kind and line: `right yes first`.
fn cell(answer: &Answer) -> String {
    let rank = format!("{:?}", answer.rank).to_lowercase();
    let line = format!("{:?}", answer.line).to_lowercase();
    let kind = if answer.is_kind { "kind" } else { "-" };
    format!("{rank:<7}{kind:<5}{line:<6}")
}

fn row(answer: &Answer) -> String {
    let verdict = answer.verdict.replace(['\t', '\n'], " ");
    format!(
        "{:?}\t{}\t{:?}\t{}\t{verdict}",
        answer.rank, answer.is_kind, answer.line, answer.has_function
    )
}

fn summary(all: &[Answers]) -> String {
    let mut text = format!(
        "of {:<3} {:>6} {:>6} {:>6} {:>6} {:>9} {:>6} {:>6}\n",
        all.len(),
        "right",
        "rank",
        "kind",
        "line",
        "function",
        "among",
        "wrong"
    );
    for (at, (name, _)) in all.iter().take(1).flat_map(named).enumerate() {
        let count =
            |is: &dyn Fn(&Answer) -> bool| all.iter().filter(|it| is(named(it)[at].1)).count();
        text.push_str(&format!(
            "{name:<8} {:>4} {:>6} {:>6} {:>6} {:>9} {:>6} {:>6}\n",
            count(&Answer::is_right),
            count(&|it| it.rank == Rank::Right),
            count(&|it| it.is_kind),
            count(&|it| it.line == Line::First),
            count(&|it| it.has_function),
            count(&|it| it.rank == Rank::Among),
            count(&|it| it.rank == Rank::Wrong)
        ));
    }
    let changed = |change: &str| all.iter().filter(|it| it.change() == change).count();
    text + &format!(
        "with --normal: {} better, {} same, {} worse",
        changed("better"),
        changed("same"),
        changed("worse")
    )
}

fn is_met(all: &[Answers]) -> bool {
    let right = all.iter().filter(|it| it.alone.is_right()).count();
    let wrong = all.iter().filter(|it| it.alone.rank == Rank::Wrong).count();
    let worse = all.iter().any(|it| it.change() == "worse");
    right >= RIGHT.min(all.len()) && wrong <= WRONG && !worse
}
