//! What `compare` prints, apart from how wide and in which colours: a part of what was found that can be kept.

use super::{Compare, exactly};
use crate::output::{self, Style, styled};
use lockstep_compare::{Comparison, Gate, Row, p_in_words};
use lockstep_trace::{TraceName, in_short, names_in_short};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// How much of long lists is printed; `--json` has all.
const SUSPECTS: usize = 3;
const CHANGES: usize = 10;
const ROWS: usize = 10;
const TOP: usize = 5;
/// Events around a call that are shown with it.
const BEFORE: u64 = 4;
const AFTER: u64 = 2;

/// What is told of a comparison.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    pub differs: bool,
    verdict: String,
    /// What the gate found beside the verdict, and how much follows from all of it.
    changes: (Vec<String>, usize),
    notes: Vec<String>,
    suspects: Vec<Suspect>,
    /// How many more there are, and who.
    others: (usize, String),
    /// The first rows of the ranking, cell by cell, and how many there are.
    rows: Vec<Vec<String>>,
    all_rows: usize,
    /// The ranking's closing row: processes and threads.
    top: [Vec<(String, usize)>; 2],
    left_out: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Suspect {
    trace: String,
    /// `confidence 0.95, p < 0.001`
    sure: String,
    reasons: Vec<String>,
    /// The event of a call whose argument is the first reason.
    wrong_at: Option<u64>,
}

impl Told {
    pub fn of(found: &Comparison, gate: Option<&Gate>) -> Self {
        let changes = gate.map_or_else(Vec::new, |it| it.sentences().skip(1).collect());
        let follows = gate.map_or(0, |it| {
            it.differences.iter().filter(|it| it.follows).count()
        });
        let suspects = found.suspects.iter().take(SUSPECTS).map(|suspect| {
            let p = suspect
                .p
                .map_or_else(String::new, |p| format!(", {}", p_in_words(p)));
            Suspect {
                trace: suspect.trace.to_string(),
                sure: format!("confidence {:.2}{p}", suspect.confidence),
                reasons: suspect.reasons.clone(),
                wrong_at: suspect.wrong_at,
            }
        });
        let others: Vec<TraceName> = found
            .suspects
            .iter()
            .skip(SUSPECTS)
            .map(|suspect| suspect.trace)
            .collect();
        Self {
            differs: found.differs,
            verdict: found.verdict.clone(),
            changes: (changes, follows),
            notes: found.notes.clone(),
            suspects: suspects.collect(),
            others: (others.len(), in_short(&others)),
            // A gate's answer is no matter of likeness.
            rows: match gate {
                Some(_) => Vec::new(),
                None => found.table.iter().take(ROWS).map(cells).collect(),
            },
            all_rows: found.table.len(),
            top: [&found.top.processes, &found.top.threads]
                .map(|all| all.iter().take(TOP).cloned().collect()),
            left_out: found.left_out.clone(),
        }
    }
}

fn cells(row: &Row) -> Vec<String> {
    let threads: Vec<String> = row.threads.iter().map(ToString::to_string).collect();
    let sizes: Vec<String> = row.cluster_sizes.iter().map(ToString::to_string).collect();
    vec![
        row.filter.clone(),
        format!("{}.{}", row.attributes, row.frequency),
        row.linkage.to_string(),
        row.clusters.to_string(),
        if row.b_score.is_nan() {
            "-".to_owned()
        } else {
            format!("{:.3}", row.b_score)
        },
        sizes.join("+"),
        names_in_short(&threads),
    ]
}

impl Compare {
    pub fn text(&self, told: &Told) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text, told);
        text
    }

    fn write_text(&self, text: &mut String, told: &Told) -> std::fmt::Result {
        let verdict = output::wrapped(&output::printable(&told.verdict), 0);
        writeln!(text, "{}", styled(Style::Bold, verdict))?;
        let (changes, follows) = &told.changes;
        for change in changes.iter().take(CHANGES) {
            let change = format!("- {}", output::printable(change));
            writeln!(text, "  {}", output::wrapped(&change, 4))?;
        }
        if let more @ 1.. = changes.len().saturating_sub(CHANGES) {
            writeln!(text, "  - {more} more (--json has all)")?;
        }
        if *follows > 0 {
            writeln!(
                text,
                "  - {follows} more follow from these (--json has all)"
            )?;
        }
        for note in &told.notes {
            let note = format!("Note: {}", output::printable(note));
            writeln!(text, "{}", output::wrapped(&note, 6))?;
        }
        if !told.suspects.is_empty() {
            writeln!(text, "\nSUSPECTS, most suspicious first")?;
        }
        for suspect in &told.suspects {
            let name = styled(Style::Faulty, &suspect.trace);
            writeln!(text, "  {name}  ({})", suspect.sure)?;
            for reason in &suspect.reasons {
                let reason = format!("- {}", output::printable(reason));
                writeln!(text, "    {}", output::wrapped(&reason, 6))?;
            }
        }
        let (others, who) = &told.others;
        if *others > 0 {
            writeln!(text, "  and {others} more: {who}")?;
        }
        // Where the runs are alike, so are their clusterings: nothing to rank.
        if told.differs && !told.rows.is_empty() {
            let (shown, all) = (told.rows.len(), told.all_rows);
            writeln!(
                text,
                "\nRANKING, lowest B-score first ({shown} of {all} rows)"
            )?;
            writeln!(text, "{}", ranking(&told.rows))?;
            for (what, all) in ["processes", "threads"].iter().zip(&told.top) {
                let first: Vec<String> = all
                    .iter()
                    .map(|(name, rows)| format!("{name} ({rows} rows)"))
                    .collect();
                if !first.is_empty() {
                    writeln!(text, "Top suspicious {what}: {}", first.join(", "))?;
                }
            }
        }
        if let (Some(first), true) = (told.suspects.first(), told.differs) {
            let mut next = format!(
                "lockstep diff {} {} -t {}",
                self.normal.display(),
                self.faulty.display(),
                first.trace
            );
            for name in &told.left_out {
                next.push_str(&format!(" --ignore '{}'", exactly(name)));
            }
            // An argument is no event of its own: `diff` shows what came of it.
            if let Some(event) = first.wrong_at {
                next = format!(
                    "lockstep events {} -t {} --arguments --from {} --to {}",
                    self.faulty.display(),
                    first.trace,
                    event.saturating_sub(BEFORE),
                    event + AFTER
                );
            }
            writeln!(text, "\nNext: {}", output::printable(&next))?;
        }
        if let Some(file) = &self.options.html {
            let file = file.display().to_string();
            writeln!(text, "Page: {}", output::printable(&file))?;
        }
        Ok(())
    }
}

fn ranking(rows: &[Vec<String>]) -> String {
    let header = [
        "FILTER",
        "ATTRIBUTES",
        "LINKAGE",
        "CUT",
        "B",
        "CLUSTERS",
        "CANDIDATES",
    ];
    output::table(&header, &[3, 4], rows.iter().cloned())
}
