//! `bench/programs.md`, and the campaign's last words.

use super::list::Program;
use crate::rows::{Row, Rows};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Real programs

Made by `cargo xtask campaign programs` from [programs.list](programs.list), which holds the whole commands, and from the
rows of the last campaign: do not edit this page. Each program runs untraced twice and then recorded, in an empty
directory; its output, error output, exit status and files must be the same.
*same*: they are. *unrecorded*: they are, but the program has no events. *differs*, *status*, *hangs*: they are not.
*unsteady*: untraced it does not end the same way twice. *missing*: not installed. -: not run.

";

/// The page.
pub fn page(programs: &[Program], rows: &Rows) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "| program | packages | command | compared | main | all |\n|---|---|---|---|---|---|\n",
    );
    for program in programs {
        let verdict =
            |images: &str| newest(rows, program, images).map_or("-", |row| row.text("verdict"));
        let _ = writeln!(
            text,
            "| {} | {} | `{}` | {} | {} | {} |",
            program.name,
            program.packages,
            command(program),
            program.compares,
            verdict("main"),
            verdict("all")
        );
    }
    text
}

/// The line of the script that names what is recorded, cut short.
fn command(program: &Program) -> String {
    let wanted = program.recorded.first().map_or("", String::as_str);
    let line = program
        .script
        .lines()
        .find(|line| line.contains(wanted))
        .unwrap_or_default();
    let mut short: String = line.chars().take(70).collect();
    if short.len() < line.len() {
        short.push_str("...");
    }
    short.replace('|', "\\|").replace('`', "'")
}

fn newest<'a>(rows: &'a Rows, program: &Program, images: &str) -> Option<Row<'a>> {
    rows.all()
        .filter(|row| row.text("program") == program.name && row.text("images") == images)
        .last()
}

/// Counts, and what is not the same, by verdict; whether all is the same.
pub fn summary(programs: &[&Program], images: &[String], rows: &Rows) -> (String, bool) {
    let mut text = String::new();
    let mut is_good = true;
    for images in images {
        let mut verdicts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for program in programs {
            let row = newest(rows, program, images);
            let verdict = row.map_or("not run", |row| row.text("verdict"));
            let detail = row.map_or("", |row| row.text("detail"));
            verdicts
                .entry(verdict)
                .or_default()
                .push(format!("    {}  {detail}\n", program.name));
        }
        let count = |verdict: &str| verdicts.get(verdict).map_or(0, Vec::len);
        let _ = writeln!(
            text,
            "{images}: {} of {} the same",
            count("same"),
            programs.len()
        );
        is_good &= count("same") == programs.len();
        for (verdict, lines) in verdicts.iter().filter(|(verdict, _)| **verdict != "same") {
            let _ = write!(text, "  {verdict}: {}\n{}", lines.len(), lines.concat());
        }
    }
    (text, is_good)
}
