//! `lockstep info`: what a run holds, how its processes ended, what was not recorded and why.

mod document;

use crate::{output, run, unseen};
use anyhow::Result;
use clap::Args;
pub use document::Document;
use lockstep_trace::{Coverage, Process, Run, Thread, Times, in_short};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Show what a run holds: how each process and thread ended, events, bytes, losses
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep info bad
  lockstep info bad --refused
  lockstep info bad --json | jq '.processes[5].threads[0].open'
")]
pub struct Info {
    /// Directory of the run
    run: PathBuf,
    /// List every function that was not recorded, with the reason
    #[arg(long)]
    refused: bool,
    /// Show every process, not only those that called MPI_Init
    #[arg(long)]
    all_processes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Info {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_unread(&self.run)?;
        if self.json {
            output::json(&Document::new(&run))?;
        } else {
            let text = self.text(&run);
            output::print(|out| std::io::Write::write_all(out, text.as_bytes()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, run: &Run) -> String {
        let shown: Vec<&Process> = run
            .processes
            .iter()
            .filter(|process| self.all_processes || run.is_visible(process))
            .collect();
        let mut text = summary(run, &shown);
        text.push_str(&processes(&shown));
        text.push_str(&threads(run, &shown));
        text.push_str(&losses(&shown));
        text.push_str(&covered(&shown));
        text.push_str(&chosen(&shown));
        text.push_str(&refused(&shown, self.refused));
        text.push_str(&unseen::sentences(run, &shown));
        text
    }
}

/// Raw size as the ParLOT paper counts it: 2 bytes an event.
fn raw_bytes(events: u64) -> u64 {
    2 * events
}

fn ratio(events: u64, bytes: u64) -> String {
    if bytes == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", raw_bytes(events) as f64 / bytes as f64)
}

fn summary(run: &Run, shown: &[&Process]) -> String {
    let threads = || shown.iter().flat_map(|process| &process.threads);
    let events: u64 = threads().map(|thread| thread.events).sum();
    let bytes: u64 = threads().map(|thread| thread.bytes).sum();
    let hidden = run.processes.len() - shown.len();
    let mut text = format!(
        "{}{}, {}, {} in {} bytes (codec {}, ratio {})\n",
        if run.is_mpi { "MPI: " } else { "" },
        output::plural(shown.len() as u64, "process"),
        output::plural(threads().count() as u64, "thread"),
        output::plural(events, "event"),
        output::grouped(bytes),
        run.codec.name(),
        ratio(events, bytes),
    );
    if hidden > 0 {
        text.push_str(&format!(
            "{} without MPI_Init not shown (--all-processes)\n",
            output::plural(hidden as u64, "process")
        ));
    }
    text
}

/// One row for processes alike, their names in short.
fn processes(shown: &[&Process]) -> String {
    let mut alike: BTreeMap<Vec<String>, Vec<&Process>> = BTreeMap::new();
    for process in shown {
        let program = PathBuf::from(&process.program);
        let program = program
            .file_name()
            .map_or_else(|| "?".into(), |name| name.to_string_lossy());
        let key = vec![
            program.into_owned(),
            process.host.clone(),
            process.end.to_string(),
            process.coverage.traced.to_string(),
            process.coverage.refused.len().to_string(),
            process
                .losses
                .iter()
                .map(|(_, events)| events)
                .sum::<u64>()
                .to_string(),
        ];
        alike.entry(key).or_default().push(process);
    }
    let mut rows: Vec<(&Process, Vec<String>)> = alike
        .into_iter()
        .map(|(key, of)| {
            let names: Vec<_> = of
                .iter()
                .map(|process| lockstep_trace::TraceName {
                    process: process.name,
                    thread: lockstep_trace::ThreadName::Main(0),
                })
                .collect();
            let short = in_short(&names)
                .split(' ')
                .map(|name| name.trim_end_matches(".0"))
                .collect::<Vec<_>>()
                .join(" ");
            (of[0], std::iter::once(short).chain(key).collect())
        })
        .collect();
    rows.sort_by_key(|(first, _)| first.name);
    let header = [
        "PROCESS", "PROGRAM", "HOST", "END", "TRACED", "REFUSED", "LOST",
    ];
    format!(
        "\n{}\n",
        output::table(&header, &[4, 5, 6], rows.into_iter().map(|(_, row)| row))
    )
}

/// How long a thread was seen.
fn wall(times: &Times) -> Option<Duration> {
    times.last()?.checked_sub(times.first()?)
}

/// Times of threads that are alike: the earliest, and the latest where it differs.
fn span(threads: &[&Thread], time: impl Fn(&Times) -> Option<Duration>) -> String {
    let shown = |time: Duration| format!("{:.3}", time.as_secs_f64());
    let all = || {
        let times = threads.iter().filter_map(|thread| thread.times.as_ref());
        times.filter_map(&time)
    };
    match (all().min(), all().max()) {
        (Some(first), Some(last)) if shown(first) != shown(last) => {
            format!("{}-{}", shown(first), shown(last))
        }
        (Some(first), _) => shown(first),
        _ => "-".to_owned(),
    }
}

/// One row for threads alike.
fn threads(run: &Run, shown: &[&Process]) -> String {
    let mut alike: BTreeMap<Vec<String>, Vec<&Thread>> = BTreeMap::new();
    for thread in shown.iter().flat_map(|process| &process.threads) {
        let open = run::open_calls(run, thread);
        let key = vec![
            output::grouped(thread.events),
            output::grouped(thread.bytes),
            ratio(thread.events, thread.bytes),
            if open.is_empty() {
                "-".to_owned()
            } else {
                open
            },
            thread.damage.clone().unwrap_or_default(),
        ];
        alike.entry(key).or_default().push(thread);
    }
    let mut rows: Vec<(&Thread, Vec<String>)> = alike
        .into_iter()
        .map(|(mut key, of)| {
            let names: Vec<_> = of.iter().map(|thread| thread.name).collect();
            let damage = key.pop().filter(|damage| !damage.is_empty());
            if let (Some(open), Some(damage)) = (key.last_mut(), damage) {
                open.push_str(&format!(" ({damage})"));
            }
            let open = key.pop();
            let row = std::iter::once(in_short(&names))
                .chain(key)
                .chain([span(&of, wall), span(&of, |times| times.last())])
                .chain(open);
            (of[0], row.collect())
        })
        .collect();
    rows.sort_by_key(|(first, _)| first.name);
    let header = [
        "TRACE",
        "EVENTS",
        "BYTES",
        "RATIO",
        "SECONDS",
        "LAST SEEN",
        "OPEN AT THE END",
    ];
    let table = output::table(
        &header,
        &[1, 2, 3, 4, 5],
        rows.into_iter().map(|(_, row)| row),
    );
    let of_all: Vec<&Thread> = shown.iter().flat_map(|process| &process.threads).collect();
    let unverified = of_all.iter().map(|thread| thread.unverified).sum::<u64>();
    let note = match unverified {
        0 => String::new(),
        events => format!(
            "{} of the last events were not encoded yet: no checksum covers them\n",
            output::grouped(events)
        ),
    };
    let dropped: Vec<&&Thread> = of_all.iter().filter(|thread| thread.dropped > 0).collect();
    let names: Vec<_> = dropped.iter().map(|thread| thread.name).collect();
    let dropped = match dropped.iter().map(|thread| thread.dropped).sum::<u64>() {
        0 => String::new(),
        events => format!(
            "{} events before these were dropped (--keep last), of {}: each begins with the calls that were open\n",
            output::grouped(events),
            in_short(&names)
        ),
    };
    let inferred = match of_all.iter().map(|thread| thread.inferred).sum::<u64>() {
        0 => String::new(),
        returns => format!(
            "{} returns were inferred (`events --inferred`): their frames were left by a jump or an exception\n",
            output::grouped(returns)
        ),
    };
    format!("\n{table}\n{note}{dropped}{inferred}")
}

fn losses(shown: &[&Process]) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, events) in shown.iter().flat_map(|process| &process.losses) {
        *reasons.entry(reason).or_default() += events;
    }
    if reasons.is_empty() {
        return String::new();
    }
    let rows = reasons
        .into_iter()
        .map(|(reason, events)| vec![output::grouped(events), reason.to_owned()]);
    format!(
        "\n{}\n",
        output::table(&["EVENTS LOST", "REASON"], &[0], rows)
    )
}

/// The share of the calls that was recorded.
fn covered(shown: &[&Process]) -> String {
    let sum = |count: fn(&Coverage) -> u64| -> u64 {
        shown.iter().map(|process| count(&process.coverage)).sum()
    };
    let recorded = sum(|coverage| coverage.recorded_calls);
    let missed = sum(|coverage| coverage.unrecorded_calls);
    let all = recorded + missed;
    if all == 0 {
        return String::new();
    }
    let mut uncounted: Vec<(&str, &str)> = shown
        .iter()
        .flat_map(|process| &process.coverage.refused)
        .filter(|refused| refused.more)
        .map(|refused| (refused.image.as_str(), refused.name.as_str()))
        .collect();
    uncounted.sort_unstable();
    uncounted.dedup();
    let unknown = match uncounted.len() {
        0 => String::new(),
        number => format!(
            "; not known of {}, which may have been called more often",
            output::plural(number as u64, "function")
        ),
    };
    format!(
        "\ncovered: {} % of {} calls ({} not recorded{unknown})\n",
        percent(recorded, all),
        output::grouped(all),
        output::grouped(missed),
    )
}

/// Rounded down, so that 100 means all.
fn percent(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    match (hundredths / 100, hundredths % 100) {
        (100, _) => "100".to_owned(),
        (whole, part) => format!("{whole}.{part:02}"),
    }
}

/// Which functions were chosen to be recorded, where not all were.
fn chosen(shown: &[&Process]) -> String {
    let mut choices: Vec<String> = shown
        .iter()
        .map(|process| &process.coverage)
        .filter(|coverage| !coverage.trace.is_empty() || !coverage.skip.is_empty())
        .map(|coverage| {
            let options = coverage.trace.iter().map(|pattern| ("--trace", pattern));
            let options = options.chain(coverage.skip.iter().map(|pattern| ("--skip", pattern)));
            let options: Vec<String> = options
                .map(|(option, pattern)| format!("{option} '{}'", output::printable(pattern)))
                .collect();
            format!(
                "chosen by {}: {} functions and library calls left out\n",
                options.join(" "),
                output::grouped(coverage.left_out)
            )
        })
        .collect();
    choices.sort();
    choices.dedup();
    if choices.is_empty() {
        return String::new();
    }
    format!("\n{}", choices.concat())
}

/// A reason without the addresses in it: for a list of reasons.
fn in_general(reason: &str) -> String {
    let words = reason.split(' ').map(|word| {
        let is_address = word.trim_start_matches(['+', '(']).starts_with("0x");
        if is_address { "..." } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What was not recorded: reasons with counts, or every function.
fn refused(shown: &[&Process], every: bool) -> String {
    let mut functions: BTreeMap<(&str, String), BTreeMap<&str, Option<u64>>> = BTreeMap::new();
    for refused in shown.iter().flat_map(|process| &process.coverage.refused) {
        let reason = if every {
            refused.reason.clone()
        } else {
            in_general(&refused.reason)
        };
        let names = functions.entry((&refused.image, reason)).or_default();
        let calls = names.entry(&refused.name).or_insert(None);
        if let Some(more) = refused.calls {
            *calls = Some(calls.unwrap_or(0) + more);
        }
    }
    let shown_calls = |calls: Option<u64>| calls.map_or_else(|| "?".to_owned(), output::grouped);
    let mut text = String::new();
    if !functions.is_empty() {
        let rows: Vec<Vec<String>> = functions
            .into_iter()
            .flat_map(|((image, reason), names)| {
                if every {
                    names
                        .into_iter()
                        .map(|(name, calls)| {
                            vec![
                                shown_calls(calls),
                                image.to_owned(),
                                reason.clone(),
                                name.to_owned(),
                            ]
                        })
                        .collect()
                } else {
                    let counted = names.values().flatten().copied();
                    let calls = counted.reduce(u64::saturating_add);
                    vec![vec![
                        names.len().to_string(),
                        shown_calls(calls),
                        image.to_owned(),
                        reason,
                    ]]
                }
            })
            .collect();
        let table = if every {
            output::table(&["CALLS", "IMAGE", "REASON", "NOT RECORDED"], &[0], rows)
        } else {
            output::table(&["NOT RECORDED", "CALLS", "IMAGE", "REASON"], &[0, 1], rows)
        };
        text.push_str(&format!("\n{table}\n"));
    }
    text.push_str(&pointers(shown, every));
    let mut images: Vec<&(String, String)> = shown
        .iter()
        .flat_map(|process| &process.coverage.untraced_images)
        .collect();
    images.sort_unstable();
    images.dedup();
    for (image, reason) in images {
        text.push_str(&format!(
            "{} was not recorded: {}\n",
            output::printable(image),
            output::printable(reason)
        ));
    }
    text
}

/// Functions that may be called through pointers, which is not recorded.
fn pointers(shown: &[&Process], every: bool) -> String {
    let mut names: Vec<&str> = shown
        .iter()
        .flat_map(|process| &process.coverage.pointers)
        .map(|pointer| pointer.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => String::new(),
        number if every => format!(
            "calls through pointers are not recorded of {}: {}\n",
            output::plural(number as u64, "library function"),
            names
                .into_iter()
                .map(output::printable)
                .collect::<Vec<_>>()
                .join(" ")
        ),
        number => format!(
            "the program takes the address of {} (--refused lists them): calls through these pointers are not recorded\n",
            output::plural(number as u64, "library function"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_is_all() {
        assert_eq!(percent(7, 7), "100");
        assert_eq!(percent(999_999, 1_000_000), "99.99");
        assert_eq!(percent(1, 3), "33.33");
        assert_eq!(percent(0, 5), "0.00");
        assert_eq!(percent(u64::MAX - 1, u64::MAX), "99.99");
    }

    #[test]
    fn equal_reasons_are_one() {
        assert_eq!(
            in_general("the branch to it at 0x12f4 is short"),
            in_general("the branch to it at 0x99 is short")
        );
        assert_eq!(in_general("its address is taken"), "its address is taken");
    }
}
