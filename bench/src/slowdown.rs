//! `cargo xtask bench slowdown`: processor time of all ranks, recorded and not, start-up apart.
//!
//! A round runs `plain bar bar plain bar bar plain ...`, every other round backwards, so that each
//! traced run stands beside an untraced one; its ratio is of these two. The start-up of either is what an
//! empty MPI program takes under the same launcher and the same bar; it is taken off both and told apart.

use crate::chart::{Chart, Line};
use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, compiled_with, empty, volume};
use crate::statistics::{Ratio, geometric_mean};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_testkit::{artifacts, tools};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench slowdown --programs DIR [OPTION]...

Processor time of all ranks beside the untraced program, and start-up apart. DIR holds NAS Parallel Benchmarks as
they are built: bt.W.x, or bt.W.4 of the older ones. Takes about rounds x (1.5 x bars + 1) x the programs' own time.

  --class LIST       input sizes (W)
  --ranks LIST       ranks (4)
  --names LIST       programs (bt,cg,ep,ft,is,lu,mg,sp)
  --bars LIST        of silent,none,lockstep,seed,all,all-none,uftrace,callgrind
                     (silent,none,lockstep,seed,all,uftrace, as far as they are there)
  --rounds N         pairs for each bar (5)
  --scaling          ranks 1,4,16,64 and classes S,W instead, bars none,lockstep,all, 3 rounds; draws slowdown and bandwidth
  --launcher WORDS   what starts N ranks when `-n N` follows (mpirun)
  --compiler NAME    of the empty MPI program (mpicc)
  --minutes N        begin no run after so many (60); the same command goes on there
  --label NAME       rows in slowdown-NAME.csv (nas, or scaling)
  --fresh            forget the rows that are there
";

/// Where rows lie.
const HEADS: [&str; 13] = [
    "program", "class", "ranks", "round", "slot", "bar", "wall", "cpu", "status", "events",
    "bytes", "lost", "load",
];

const EMPTY: &str = "empty";

/// One way to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bar {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Lockstep(&'static [&'static str]),
    Inside(&'static str),
}

const PLAIN: Bar = Bar {
    name: "plain",
    kind: Kind::Plain,
};

const BARS: [Bar; 8] = [
    Bar {
        name: "silent",
        kind: Kind::Lockstep(&["--no-events"]),
    },
    Bar {
        name: "none",
        kind: Kind::Lockstep(&["--codec", "none"]),
    },
    Bar {
        name: "lockstep",
        kind: Kind::Lockstep(&[]),
    },
    Bar {
        name: "seed",
        kind: Kind::Lockstep(&["--codec", "seed"]),
    },
    Bar {
        name: "all",
        kind: Kind::Lockstep(&["--images", "all"]),
    },
    Bar {
        name: "all-none",
        kind: Kind::Lockstep(&["--images", "all", "--codec", "none"]),
    },
    Bar {
        name: "uftrace",
        kind: Kind::Inside("exec uftrace record --no-pager -P . -d $OUT/$$"),
    },
    Bar {
        name: "callgrind",
        kind: Kind::Inside("exec valgrind --quiet --tool=callgrind --callgrind-out-file=$OUT/%p"),
    },
];

impl Bar {
    /// Why it cannot be measured here, if so.
    fn missing(&self) -> Option<String> {
        match self.kind {
            Kind::Inside(prefix) => {
                let tool = prefix.split_whitespace().nth(1).unwrap_or_default();
                let is_here = tools::find(tool).is_some();
                (!is_here).then(|| format!("no {tool} here"))
            }
            Kind::Plain | Kind::Lockstep(_) => None,
        }
    }

    fn job(&self, launcher: &[String], words: &[String], directory: &Path) -> Job {
        let all: Vec<String> = launcher.iter().chain(words).cloned().collect();
        match self.kind {
            Kind::Plain => Job::plain(&all),
            Kind::Lockstep(options) => Job::recorded(&all, options, directory),
            Kind::Inside(prefix) => Job::inside(launcher, prefix, words, directory),
        }
    }
}

/// One program at one size on so many ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Case {
    program: String,
    class: String,
    ranks: u32,
    path: PathBuf,
}

struct Plan {
    cases: Vec<Case>,
    bars: Vec<Bar>,
    rounds: usize,
    launcher: Vec<String>,
    empty: PathBuf,
    deadline: std::time::Instant,
}

/// Runs it and gives the report; `label` names its files.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &[
            "--programs",
            "--class",
            "--ranks",
            "--names",
            "--bars",
            "--rounds",
            "--launcher",
            "--compiler",
            "--minutes",
            "--label",
        ],
        &["--scaling", "--fresh"],
    )?;
    let is_scaling = given.has("--scaling");
    let label = given
        .text("--label", if is_scaling { "scaling" } else { "nas" })
        .to_owned();
    let directory = measure::results_directory()?;
    let path = directory.join(format!("slowdown-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let (plan, notes) = plan(&given, is_scaling)?;
    let is_whole = perform(&plan, &mut rows)?;
    let mut report = format!("{}\n\n", measure::machine());
    for note in notes {
        let _ = writeln!(report, "{note}");
    }
    if !is_whole {
        report.push_str("The time was over before all was measured: the same command goes on.\n");
    }
    report.push_str(&tell(&rows, &plan));
    if is_scaling {
        draw(&rows, &plan, &directory, &label)?;
    }
    print!("{report}");
    std::fs::write(directory.join(format!("slowdown-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

fn plan(given: &Words, is_scaling: bool) -> Result<(Plan, Vec<String>)> {
    let mut notes = Vec::new();
    let (classes, ranks, bars, rounds) = if is_scaling {
        ("S,W", "1,4,16,64", "none,lockstep,all", 3)
    } else {
        ("W", "4", "silent,none,lockstep,seed,all,uftrace", 5)
    };
    let mut chosen = Vec::new();
    for name in given.list("--bars", bars) {
        let bar = BARS
            .iter()
            .find(|bar| bar.name == name)
            .with_context(|| format!("--bars: no bar `{name}`"))?;
        match bar.missing() {
            Some(reason) => notes.push(format!("bar {name} left out: {reason}")),
            None => chosen.push(*bar),
        }
    }
    let programs = PathBuf::from(given.text("--programs", "."));
    let programs = std::path::absolute(&programs)?;
    let mut cases = Vec::new();
    for class in given.list("--class", classes) {
        for count in given.list("--ranks", ranks) {
            let count: u32 = count.parse().context("--ranks: expected numbers")?;
            for program in given.list("--names", "bt,cg,ep,ft,is,lu,mg,sp") {
                let found = [
                    format!("{program}.{class}.x"),
                    format!("{program}.{class}.{count}"),
                ]
                .map(|name| programs.join(name))
                .into_iter()
                .find(|path| path.is_file());
                match found {
                    Some(path) => cases.push(Case {
                        program,
                        class: class.clone(),
                        ranks: count,
                        path,
                    }),
                    None => notes.push(format!(
                        "{program}.{class} for {count} ranks left out: not in {}",
                        programs.display()
                    )),
                }
            }
        }
    }
    ensure!(
        !cases.is_empty(),
        "no program to measure in {}: --programs DIR names where bt.W.x and the like are",
        programs.display()
    );
    let source = artifacts::repository().join("bench/c/empty_mpi.c");
    let minutes: u64 = given.number("--minutes", 60)?;
    let plan = Plan {
        cases,
        bars: chosen,
        rounds: given.number("--rounds", rounds)?,
        launcher: given
            .text("--launcher", "mpirun")
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        empty: compiled_with(given.text("--compiler", "mpicc"), &source, &[])?,
        deadline: std::time::Instant::now() + std::time::Duration::from_secs(60 * minutes),
    };
    Ok((plan, notes))
}

/// Makes what rows are missing; false where the time was over before.
fn perform(plan: &Plan, rows: &mut Rows) -> Result<bool> {
    let mut counts: Vec<u32> = plan.cases.iter().map(|case| case.ranks).collect();
    counts.sort_unstable();
    counts.dedup();
    // Start-up first: everything is subtracted from it.
    let mut cases: Vec<Case> = counts
        .into_iter()
        .map(|ranks| Case {
            program: EMPTY.to_owned(),
            class: "-".to_owned(),
            ranks,
            path: plan.empty.clone(),
        })
        .collect();
    cases.extend(plan.cases.iter().cloned());
    for round in 0..plan.rounds {
        for case in &cases {
            for (slot, bar) in sequence(&plan.bars, round).into_iter().enumerate() {
                if !measure_one(plan, rows, case, round, slot, bar)? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// The runs of a round: a plain one on one side of every bar.
fn sequence(bars: &[Bar], round: usize) -> Vec<Bar> {
    let mut sequence = vec![PLAIN];
    for two in bars.chunks(2) {
        sequence.extend_from_slice(two);
        if two.len() == 2 {
            sequence.push(PLAIN);
        }
    }
    if round % 2 == 1 {
        sequence.reverse();
    }
    sequence
}

fn measure_one(
    plan: &Plan,
    rows: &mut Rows,
    case: &Case,
    round: usize,
    slot: usize,
    bar: Bar,
) -> Result<bool> {
    let (ranks, number, place) = (case.ranks.to_string(), round.to_string(), slot.to_string());
    let key = [
        &*case.program,
        &*case.class,
        &*ranks,
        &*number,
        &*place,
        bar.name,
    ];
    if rows.has(&key) {
        return Ok(true);
    }
    if std::time::Instant::now() > plan.deadline {
        return Ok(false);
    }
    let mut launcher = plan.launcher.clone();
    launcher.extend(["-n".to_owned(), ranks.clone()]);
    let words = [case.path.display().to_string()];
    let run = |directory: &Path| bar.job(&launcher, &words, directory).seconds(600).run();
    if round == 0 && matches!(bar.kind, Kind::Lockstep(_)) {
        // Plans come from the cache; what the first run takes is another bench's business.
        run(&empty("slowdown")?)?;
    }
    let directory = empty("slowdown")?;
    let load = load();
    let ran = run(&directory)?;
    let volume = match bar.kind {
        Kind::Lockstep(_) => volume(&directory).unwrap_or_default(),
        _ => Default::default(),
    };
    std::fs::remove_dir_all(&directory)?;
    eprintln!(
        "{} {} on {ranks}, round {round}: {} {:.2} s of processors, status {}",
        case.program, case.class, bar.name, ran.cpu, ran.status
    );
    let mut cells: Vec<String> = key.iter().map(|&cell| cell.to_owned()).collect();
    cells.extend([
        format!("{:.6}", ran.wall),
        format!("{:.6}", ran.cpu),
        ran.status.to_string(),
        volume.events.to_string(),
        volume.bytes.to_string(),
        volume.lost.to_string(),
        load,
    ]);
    rows.add(&cells)?;
    Ok(true)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

/// What the rows say of one case and bar.
#[derive(Debug, Clone, Copy)]
struct Figures {
    ratio: Ratio,
    /// Processor time of the untraced program, start-up off.
    plain: f64,
    events: f64,
    /// Bytes a second of processor time, and so a rank's.
    bandwidth: f64,
    failed: usize,
}

fn median_of(rows: &Rows, key: &[&str], bar: &str, head: &str) -> f64 {
    let values: Vec<f64> = rows
        .find(key)
        .filter(|row| row.text("bar") == bar && row.text("status") == "0")
        .map(|row| row.number(head))
        .collect();
    measure::median(&values)
}

fn figures(rows: &Rows, case: &Case, bar: &str) -> Option<Figures> {
    let ranks = case.ranks.to_string();
    let nothing = [EMPTY, "-", &ranks];
    let key = [&*case.program, &*case.class, &ranks];
    let start = |bar: &str| median_of(rows, &nothing, bar, "cpu");
    let (start_plain, start_bar) = (start(PLAIN.name), start(bar));
    let mut ratios = Vec::new();
    let mut failed = 0;
    let mut bandwidths = Vec::new();
    for row in rows.find(&key).filter(|row| row.text("bar") == bar) {
        if row.text("status") != "0" {
            failed += 1;
            continue;
        }
        let slot = row.number("slot");
        let beside = rows.find(&key).find(|other| {
            other.text("bar") == PLAIN.name
                && other.text("status") == "0"
                && other.text("round") == row.text("round")
                && (other.number("slot") - slot).abs() == 1.0
        });
        let own = row.number("cpu") - start_bar;
        bandwidths.push(row.number("bytes") / row.number("cpu"));
        if let Some(plain) = beside {
            ratios.push(own / (plain.number("cpu") - start_plain));
        }
    }
    if ratios.is_empty() && failed == 0 {
        return None;
    }
    Some(Figures {
        ratio: Ratio::of(&ratios).unwrap_or(Ratio {
            mean: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
            pairs: 0,
        }),
        plain: median_of(rows, &key, PLAIN.name, "cpu") - start_plain,
        events: median_of(rows, &key, bar, "events"),
        bandwidth: measure::median(&bandwidths),
        failed,
    })
}

fn tell(rows: &Rows, plan: &Plan) -> String {
    let mut text = String::from("\nstart-up, an empty MPI program: processor ms a rank\n");
    let mut counts: Vec<u32> = plan.cases.iter().map(|case| case.ranks).collect();
    counts.sort_unstable();
    counts.dedup();
    for ranks in counts {
        let key = ranks.to_string();
        let key = [EMPTY, "-", &*key];
        let plain = median_of(rows, &key, PLAIN.name, "cpu");
        let _ = write!(
            text,
            "{ranks:>4} ranks  plain {:.1}",
            1e3 * plain / f64::from(ranks)
        );
        for bar in &plan.bars {
            let added = median_of(rows, &key, bar.name, "cpu") - plain;
            let _ = write!(
                text,
                "  {} +{:.1}",
                bar.name,
                1e3 * added / f64::from(ranks)
            );
        }
        text.push('\n');
    }
    text.push_str("\nprocessor time, start-up off: ratio [95 % interval]\n");
    let _ = writeln!(
        text,
        "{:<14}{:>5} {:<10}{:>9}  {:<26}{:>14}{:>22}",
        "program", "ranks", "bar", "plain s", "x plain", "events", "bytes/cpu s and rank"
    );
    let mut by_bar: BTreeMap<(usize, String, u32), Vec<f64>> = BTreeMap::new();
    for case in &plan.cases {
        for (index, bar) in plan.bars.iter().enumerate() {
            let Some(found) = figures(rows, case, bar.name) else {
                continue;
            };
            let name = format!("{}.{}", case.program, case.class);
            let failed = match found.failed {
                0 => String::new(),
                runs => format!("  {runs} runs failed"),
            };
            let _ = writeln!(
                text,
                "{name:<14}{:>5} {:<10}{:>9.2}  {:<26}{:>14.0}{:>22.0}{failed}",
                case.ranks,
                bar.name,
                found.plain,
                found.ratio.to_string(),
                found.events,
                found.bandwidth
            );
            if found.ratio.mean.is_finite() {
                by_bar
                    .entry((index, case.class.clone(), case.ranks))
                    .or_default()
                    .push(found.ratio.mean);
            }
        }
    }
    text.push_str("\nall programs: geometric mean / worst\n");
    for ((index, class, ranks), ratios) in by_bar {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "{class} on {ranks:>2}  {:<10} {:.3} / {worst:.3}  ({} programs)",
            plan.bars[index].name,
            geometric_mean(&ratios),
            ratios.len()
        );
    }
    text
}

/// Slowdown and bandwidth over ranks, a picture and a table each.
fn draw(rows: &Rows, plan: &Plan, directory: &Path, label: &str) -> Result<()> {
    let mut counts: Vec<u32> = plan.cases.iter().map(|case| case.ranks).collect();
    counts.sort_unstable();
    counts.dedup();
    for bar in &plan.bars {
        for (quantity, title) in [
            ("ratio", "processor time beside untraced"),
            ("bandwidth", "bytes per processor second and rank"),
        ] {
            let mut lines: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
            for case in &plan.cases {
                let value = figures(rows, case, bar.name)
                    .map(|found| match quantity {
                        "ratio" => found.ratio.mean,
                        _ => found.bandwidth,
                    })
                    .filter(|value| value.is_finite());
                let line = lines
                    .entry(format!("{}.{}", case.program, case.class))
                    .or_insert_with(|| vec![None; counts.len()]);
                if let Some(at) = counts.iter().position(|count| *count == case.ranks) {
                    line[at] = value;
                }
            }
            let chart = Chart {
                title: format!("{} ({})", title, bar.name),
                across: counts.iter().map(u32::to_string).collect(),
                lines: lines
                    .into_iter()
                    .map(|(name, values)| Line { name, values })
                    .collect(),
            };
            let stem = directory.join(format!("slowdown-{label}-{}-{quantity}", bar.name));
            std::fs::write(stem.with_extension("svg"), chart.svg())?;
            std::fs::write(stem.with_extension("csv"), chart.csv())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BARS, PLAIN, sequence};

    #[test]
    fn every_bar_stands_beside_a_plain_run() {
        for count in 1..=BARS.len() {
            for round in 0..2 {
                let all = sequence(&BARS[..count], round);
                for (at, bar) in all.iter().enumerate() {
                    let before = at.checked_sub(1).and_then(|before| all.get(before));
                    let beside = [before, all.get(at + 1)];
                    assert!(*bar == PLAIN || beside.contains(&Some(&PLAIN)));
                }
            }
        }
    }
}
