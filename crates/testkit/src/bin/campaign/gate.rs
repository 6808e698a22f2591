//! Changes of programs that `baseline check` must find, and rebuilds that change nothing and that it must let pass.

use anyhow::Result;
use lockstep_testkit::artifacts;
use lockstep_testkit::command::Outcome;
use lockstep_testkit::gate::{FLAGS, Gate, MUTATIONS, OTHER_FLAGS, PROGRAMS, REBUILDS};
use std::io::Write;
use std::process::ExitCode;

const HEADS: &str = "program,what,options,number,status,verdict";

/// A table of rows; what an earlier campaign left is taken up.
struct Table {
    rows: Vec<String>,
    file: std::fs::File,
}

impl Table {
    fn new(name: &str) -> Result<Self> {
        let directory = artifacts::target().join("campaign");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(name);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)?;
        if before.is_empty() {
            writeln!(file, "{HEADS}")?;
        }
        println!("every row in {}", path.display());
        let rows = before.lines().skip(1).map(str::to_owned).collect();
        Ok(Self { rows, file })
    }

    /// The row with this key, made by `check` if it is not there.
    fn row(&mut self, key: &str, check: impl FnOnce() -> Outcome) -> Result<()> {
        if !self.rows.iter().any(|row| row.starts_with(key)) {
            let outcome = check();
            let answer: serde_json::Value =
                serde_json::from_str(&outcome.stdout).unwrap_or_default();
            let verdict = answer["verdict"].as_str().unwrap_or("").replace(',', ";");
            let row = format!("{key}{},{verdict}", outcome.status);
            writeln!(self.file, "{row}")?;
            println!("{row}");
            self.rows.push(row);
        }
        Ok(())
    }

    /// How many rows with this in their third cell have that status, and how many there are.
    fn count(&self, options: &str, status: &str) -> (usize, usize) {
        let cells = self.rows.iter().map(|it| it.split(',').collect::<Vec<_>>());
        let of: Vec<_> = cells.filter(|it| it.get(2) == Some(&options)).collect();
        let with = of.iter().filter(|it| it.get(4) == Some(&status)).count();
        (with, of.len())
    }
}

/// `checks` runs of each rebuild of each program, beside a baseline of `normals` runs.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let (mut checks, mut normals) = (10, 1);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = words.next().map_or(Ok(0), |it| it.parse::<usize>());
        match (word.as_str(), number) {
            ("--checks", Ok(number)) => checks = number,
            ("--normals", Ok(number @ 1..)) => normals = number,
            _ => anyhow::bail!("expected --checks N or --normals N, found `{word}`"),
        }
    }
    let mut table = Table::new(&format!("gate-{checks}-{normals}.csv"))?;
    for program in PROGRAMS {
        let Some(gate) = Gate::of(program, normals) else {
            continue;
        };
        for mutation in MUTATIONS.iter().filter(|it| it.program == program) {
            for (flags, options) in [(FLAGS, "same"), (OTHER_FLAGS, "other")] {
                let key = format!("{program},{},{options},0,", mutation.kind);
                if let Some(words) = mutation.words(flags) {
                    table.row(&key, || gate.check(&words, &[]))?;
                }
            }
        }
        for rebuild in REBUILDS {
            let Some(words) = rebuild.words(program) else {
                continue;
            };
            for number in 0..checks {
                let key = format!("{program},{},rebuilt,{number},", rebuild.name);
                table.row(&key, || gate.check(&words, &[]))?;
            }
        }
    }
    let same = table.count("same", "1");
    let other = table.count("other", "1");
    let rebuilt = table.count("rebuilt", "1");
    println!(
        "changes found, compiled with the same options: {} of {}",
        same.0, same.1
    );
    println!(
        "changes found, compiled with other options:    {} of {}",
        other.0, other.1
    );
    println!(
        "rebuilds that were stopped:                    {} of {}",
        rebuilt.0, rebuilt.1
    );
    let is_met = same.0 == same.1 && rebuilt.0 == 0;
    Ok(ExitCode::from(u8::from(!is_met)))
}
