//! `cargo xtask bench warm`: how many times as long ten real programs take while they are recorded.
//!
//! *Costs* counted: all of `lockstep record`, on the clock and in processor time, with the plans that an earlier run made
//! (cached), and with none (cold). Each recorded run stands beside an untraced one.

use crate::measure;
use crate::rows::Rows;
use crate::run::empty;
use crate::startup::{HEADS, Subject, measure_one};
use crate::words::Words;
use anyhow::{Result, ensure};
use lockstep_testkit::tools;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench warm [OPTION]...

Ratio of recorded to untraced runs of ten real programs, main and all images, plans kept (cached) and made (cold), worst first.
Takes about ten minutes.

  --names LIST   of clang,gcc,node,ruby,python3,perl,git,sqlite3,cmake,ffmpeg (all that are here)
  --rounds N     pairs with cached plans (5); one of them cold
  --label NAME   rows in warm-NAME.csv (own)
  --fresh        forget the rows that are there
";

const KINDS: [(&str, &str); 4] = [
    ("main", "cached"),
    ("main", "cold"),
    ("all", "cached"),
    ("all", "cold"),
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--names", "--rounds", "--label"], &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("warm-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let rounds: usize = given.number("--rounds", 5)?;
    let every = "clang,gcc,node,ruby,python3,perl,git,sqlite3,cmake,ffmpeg";
    let names = given.list("--names", every);
    let mut subjects = subjects(&empty("warm-input")?)?;
    subjects.retain(|subject| names.iter().any(|name| name == subject.name));
    for subject in &subjects {
        for (images, plans) in KINDS {
            for round in 0..if plans == "cold" { 1 } else { rounds } {
                measure_one(&mut rows, subject, images, plans, round)?;
            }
        }
    }
    let mut report = format!(
        "{}\n\ntimes as long as untraced: on the clock / in processor time\n",
        measure::machine()
    );
    for images in ["main", "all"] {
        let _ = writeln!(
            report,
            "\n{:<10}{:>10}{:>18}{:>18}{:>12}",
            format!("images {images}"),
            "untraced s",
            "plans kept",
            "first run",
            "events"
        );
        let mut lines: Vec<(f64, String)> = subjects
            .iter()
            .map(|subject| line(&rows, subject.name, images))
            .collect();
        lines.sort_by(|one, other| other.0.total_cmp(&one.0));
        lines.iter().for_each(|(_, line)| report.push_str(line));
    }
    print!("{report}");
    std::fs::write(directory.join(format!("warm-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

/// The ratio on the clock with plans kept, and the whole line.
fn line(rows: &Rows, name: &str, images: &str) -> (f64, String) {
    let ratio = |plans: &str, with: &str, plain: &str| {
        let key = [name, images, plans];
        let ratios: Vec<f64> = rows
            .find(&key)
            .map(|row| row.number(with) / row.number(plain))
            .collect();
        measure::median(&ratios)
    };
    let both = |plans: &str| {
        let (wall, cpu) = (
            ratio(plans, "wall", "plain_wall"),
            ratio(plans, "cpu", "plain_cpu"),
        );
        format!("{wall:.2} / {cpu:.2}")
    };
    let key = [name, images, "cached"];
    let of = |head: &str| -> Vec<f64> { rows.find(&key).map(|row| row.number(head)).collect() };
    let failed = of("status").iter().filter(|status| **status != 0.0).count();
    let mut line = format!(
        "{name:<10}{:>10.2}{:>18}{:>18}{:>12}",
        measure::median(&of("plain_wall")),
        both("cached"),
        both("cold"),
        measure::median(&of("events")),
    );
    if failed > 0 {
        let _ = write!(line, "  {failed} runs failed");
    }
    line.push('\n');
    (ratio("cached", "wall", "plain_wall"), line)
}

/// Programs with something to do for about a second, in `input`.
fn subjects(input: &Path) -> Result<Vec<Subject>> {
    let mut source = String::new();
    for index in 0..400 {
        let _ = writeln!(
            source,
            "int f{index}(int *a, int n) {{ int s = {index}; for (int i = 0; i < n; i++) s += a[i] * (s ^ i) % {}; return s; }}",
            index + 2
        );
    }
    std::fs::write(input.join("many.c"), &source)?;
    let script = "set(s 0)\nforeach(i RANGE 60000)\nmath(EXPR s \"(${s} * 7 + ${i}) % 1009\")\nendforeach()\nmessage(${s})\n";
    std::fs::write(input.join("loop.cmake"), script)?;
    repository(input, &source)?;
    let at = |name: &str| input.join(name).display().to_string();
    let (many, cmake, repository) = (at("many.c"), at("loop.cmake"), at("repository"));
    let python = "import json\nd = [{'k': i, 'v': str(i) * 3} for i in range(40000)]\nfor _ in range(4): d = json.loads(json.dumps(d))\nprint(sum(x['k'] for x in sorted(d, key=lambda x: x['v'])))";
    let node = "let m = new Map(); for (let i = 0; i < 2000000; i++) m.set(i % 5003, (m.get(i % 5003) || 0) + i); console.log([...m.values()].sort((a, b) => a - b)[7])";
    let ruby = "h = Hash.new(0); 900000.times { |i| h[i % 1013] += i * i % 7 }; p h.values.sort[5]";
    let perl = "my %h; for (1..1500000) { $h{$_ % 1013} += $_ * $_ % 7 } print join(',', (sort { $a <=> $b } values %h)[0..4])";
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 700000) select sum(i * i % 7), count(distinct i % 1013) from n";
    let source = "testsrc=size=640x360:rate=25:duration=3";
    let all: [(&'static str, Vec<&str>); 10] = [
        (
            "clang",
            vec!["clang", "-O2", "-c", &many, "-o", "/dev/null"],
        ),
        ("gcc", vec!["gcc", "-O2", "-c", &many, "-o", "/dev/null"]),
        ("node", vec!["/usr/bin/node", "-e", node]),
        ("ruby", vec!["ruby", "-e", ruby]),
        ("python3", vec!["/usr/bin/python3", "-c", python]),
        ("perl", vec!["perl", "-e", perl]),
        ("git", vec!["git", "-C", &repository, "log", "-p", "--stat"]),
        ("sqlite3", vec!["sqlite3", ":memory:", sql]),
        ("cmake", vec!["cmake", "-P", &cmake]),
        (
            "ffmpeg",
            vec![
                "ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", source, "-f", "null", "-",
            ],
        ),
    ];
    let here = all
        .into_iter()
        .filter(|(_, words)| tools::find(words[0]).is_some());
    let subjects = here.map(|(name, words)| Subject {
        name,
        words: words.into_iter().map(str::to_owned).collect(),
    });
    Ok(subjects.collect())
}

/// A repository with some history.
fn repository(input: &Path, source: &str) -> Result<()> {
    if tools::find("git").is_none() {
        return Ok(());
    }
    let place = input.join("repository");
    std::fs::create_dir(&place)?;
    let git = |words: &[&str]| -> Result<()> {
        let mut command = Command::new("git");
        let names = ["-c", "user.name=n", "-c", "user.email=e@x"];
        let output = command
            .current_dir(&place)
            .args(names)
            .args(words)
            .output()?;
        ensure!(output.status.success(), "git {words:?}: {output:?}");
        Ok(())
    };
    git(&["init", "-q"])?;
    for commit in 0..40 {
        let text = source.replace("int s", &format!("int s{commit}"));
        std::fs::write(place.join("many.c"), text)?;
        git(&["add", "many.c"])?;
        git(&["commit", "-q", "-m", "change"])?;
    }
    Ok(())
}
