//! `lockstep diff`: how one trace of two runs differs, the first divergence first.

use crate::options::Analysis;
use crate::output::{self, Style, styled};
use crate::{compare, run};
use anyhow::{Result, bail};
use clap::Args;
use lockstep_compare::{Builds, Diff as Found, LineKind, Op, Options, diff};
use lockstep_trace::{Run, TraceName};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show how one trace of two runs differs, the first divergence first
///
/// Without -t it is the one that `compare` suspects most. Lines of both traces are green, of the normal one blue (-), of the faulty one red (+). Ends with 1 where they differ.
///
/// Two builds of one program (at -O0 and -O2, say) are compared by the names of functions: what only one build calls (unless
/// the code of the other calls it as well), or
/// calls in other places (inlined or moved by a compiler), is left out and named in a remark.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep diff good bad -t 5.0
  lockstep diff good bad -t 5.0 --filter mpi --flat     as the papers draw it
  lockstep diff good bad -t 5.0 --json | jq .first_divergence
")]
pub struct Diff {
    /// Directory of the normal run
    normal: PathBuf,
    /// Directory of the faulty run
    faulty: PathBuf,
    /// Compare nested loop representations entry by entry, as the papers do, instead of call trees
    #[arg(long)]
    flat: bool,
    /// Functions to leave out (repeatable)
    #[arg(long, value_name = "REGEX")]
    ignore: Vec<String>,
    /// Trip counts alone are a difference, too
    #[arg(long)]
    counts: bool,
    #[command(flatten)]
    analysis: Analysis,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub fn run(self) -> Result<ExitCode> {
        let normal = run::open_with(&self.normal, self.analysis.all_processes)?;
        let faulty = run::open_with(&self.faulty, self.analysis.all_processes)?;
        let mut options = self.analysis.options(&[&normal, &faulty])?;
        options.ignore.clone_from(&self.ignore);
        options.counts = self.counts;
        let trace = match options.traces.take() {
            Some(names) => the_trace(&names)?,
            None => most_suspicious(&normal, &faulty, &options)?,
        };
        let style = if self.flat {
            lockstep_compare::Style::Flat
        } else {
            lockstep_compare::Style::Tree
        };
        let found = diff(&normal, &faulty, trace, &options, style)?;
        output::remark(found.left_out.as_slice());
        output::remark(found.builds.as_ref().map(Builds::note).as_slice());
        if self.json {
            output::json(&found)?;
        } else {
            output::print(|out| print(out, trace, &found))?;
        }
        Ok(output::found(!found.equal))
    }
}

/// The trace that `-t` names.
fn the_trace(names: &[TraceName]) -> Result<TraceName> {
    match names {
        [one] => Ok(*one),
        [] => bail!("expected a trace in both runs, found none"),
        several => bail!(
            "expected one trace (-t P.T), found {}: {}",
            several.len(),
            lockstep_trace::in_short(several)
        ),
    }
}

/// Without `-t`, of the traces of both runs the only one that there is, or the one that `compare` suspects most.
fn most_suspicious(normal: &Run, faulty: &Run, options: &Options) -> Result<TraceName> {
    let mut names: Vec<TraceName> = normal.traces().map(|thread| thread.name).collect();
    names.retain(|name| faulty.trace(*name).is_some());
    names.sort_unstable();
    if names.len() < 2 {
        return the_trace(&names);
    }
    let found = compare::beside(&[normal], faulty, options)?;
    let mut suspects = found.suspects.iter().map(|it| it.trace);
    let suspect = suspects.find(|it| names.contains(it));
    let (shown, why) = match suspect {
        Some(trace) => (trace, "which is unlike the normal run most"),
        None => (names[0], "and none differs"),
    };
    output::remark(&[format!(
        "of {} traces this is {shown}, {why} (-t P.T for another)",
        names.len()
    )]);
    Ok(shown)
}

fn print(out: &mut output::Out<'_>, trace: TraceName, found: &Found) -> io::Result<()> {
    match &found.first_divergence {
        None if found.ops.is_empty() => {
            let far = match found.left_out {
                Some(_) => ", as far as was looked at",
                None => "",
            };
            writeln!(out, "{trace} does the same in both runs{far}.")?;
        }
        None if !found.equal => {
            let first = found.ops.iter().find_map(|op| match op {
                Op::Piece { name, .. } => Some(format!(", first in {name}")),
                _ => None,
            });
            let sentence = format!("{trace} differs{}.", first.unwrap_or_default());
            writeln!(out, "{}", styled(Style::Bold, sentence))?;
        }
        None => writeln!(
            out,
            "{trace} differs in trip counts only (--counts makes that a difference)."
        )?,
        Some(first) => {
            let sentence = output::printable(&format!("{trace} {first}."));
            writeln!(
                out,
                "{}",
                styled(Style::Bold, output::wrapped(&sentence, 0))
            )?;
            let mut place = format!("event {} (normal run: {})", first.event, first.normal_event);
            if !first.stack.is_empty() {
                place.push_str(&format!(", in {}", first.stack.join(" > ")));
            }
            let place = output::wrapped(&output::printable(&place), 2);
            writeln!(out, "  {}", styled(Style::Faint, place))?;
        }
    }
    if !found.ops.is_empty() {
        writeln!(out)?;
    }
    for line in found.lines() {
        let (mark, style) = match line.kind {
            LineKind::Common => (' ', Style::Common),
            LineKind::Normal => ('-', Style::Normal),
            LineKind::Faulty => ('+', Style::Faulty),
            LineKind::Changed => ('~', Style::Changed),
        };
        let indent = 2 * line.depth.min(20);
        let text = output::printable(&line.text);
        writeln!(
            out,
            "{}",
            styled(style, format_args!("{mark} {:indent$}{text}", ""))
        )?;
    }
    for (run, open) in [
        ("normal", &found.normal_open),
        ("faulty", &found.faulty_open),
    ] {
        if !open.is_empty() && found.normal_open != found.faulty_open {
            let open = output::printable(&open.join(" > "));
            writeln!(
                out,
                "\nOpen at the end of the {run} run: {}",
                output::wrapped(&open, 2)
            )?;
        }
    }
    if !found.loops.is_empty() && !found.ops.is_empty() {
        let rows = found
            .loops
            .iter()
            .map(|body| vec![body.name.clone(), body.body.join(" ")]);
        writeln!(out, "\n{}", output::table(&["LOOP", "BODY"], &[], rows))?;
    }
    Ok(())
}
