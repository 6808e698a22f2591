//! `campaign kill --suite`: kills of the programs of the suite, a row each, and a table of the programs at the end.

use anyhow::{Result, anyhow};
use lockstep_testkit::kill::suite::{Came, Trial, Whole};
use lockstep_testkit::suite::SUITE;
use lockstep_testkit::{Scratch, artifacts};
use std::io::Write;
use std::process::ExitCode;

/// What came of the kills of a program.
#[derive(Default)]
struct Tally {
    not_begun: u64,
    ended: u64,
    faults: u64,
    /// Events in the traces of those that were killed.
    traced: Vec<u64>,
}

pub fn run(count: u64, seed: u64) -> Result<ExitCode> {
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("kill-suite-{seed}.csv"));
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut table = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    if before.is_empty() {
        writeln!(table, "{}", Trial::HEADS)?;
    }
    let mut tallies: Vec<Tally> = SUITE.iter().map(|_| Tally::default()).collect();
    let mut kills = 0;
    let mut next = 0;
    for line in before.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [number, program, _, _, _, came, _, traced, fault] = cells[..] {
            next = number.parse::<u64>()? + 1;
            let member = SUITE.iter().position(|it| it.name == program);
            if let Some(tally) = member.and_then(|it| tallies.get_mut(it)) {
                kills += u64::from(came == "Killed");
                tally.add(came, traced.parse()?, !fault.is_empty());
            }
        }
    }
    let scratch = Scratch::below(&directory, "kill-suite");
    let mut wholes: Vec<Option<Whole>> = SUITE.iter().map(|_| None).collect();
    while kills < count {
        let trial = Trial::draw(seed, next);
        let whole = match &mut wholes[trial.member] {
            Some(whole) => whole,
            none => none.insert(
                Whole::record(SUITE[trial.member], &scratch).map_err(|error| anyhow!(error))?,
            ),
        };
        let row = trial.run(whole, &scratch);
        writeln!(table, "{}", trial.csv(whole, &row))?;
        if let Some(fault) = &row.fault {
            println!("{trial:?}: {fault}");
        }
        let came = format!("{:?}", row.came);
        tallies[trial.member].add(&came, row.traced, row.fault.is_some());
        next += 1;
        if row.came == Came::Killed {
            kills += 1;
            if kills % 100 == 0 {
                println!("{kills} of {count} kills");
            }
        }
    }
    let mut faults = 0;
    println!(
        "program            kills  not begun  ended  events: least     median       most  wrong"
    );
    for (member, tally) in SUITE.iter().zip(&mut tallies) {
        tally.traced.sort_unstable();
        let all = &tally.traced;
        let at = |index: usize| all.get(index).copied().unwrap_or(0);
        println!(
            "{:17} {:6} {:10} {:6} {:14} {:10} {:10} {:6}",
            member.name,
            all.len(),
            tally.not_begun,
            tally.ended,
            at(0),
            at(all.len() / 2),
            at(all.len().saturating_sub(1)),
            tally.faults
        );
        faults += tally.faults;
    }
    println!(
        "{kills} kills, {faults} faults; every row in {}",
        path.display()
    );
    Ok(match faults {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

impl Tally {
    fn add(&mut self, came: &str, traced: u64, is_wrong: bool) {
        self.faults += u64::from(is_wrong);
        match came {
            "Killed" => self.traced.push(traced),
            "Ended" => self.ended += 1,
            _ => self.not_begun += 1,
        }
    }
}
