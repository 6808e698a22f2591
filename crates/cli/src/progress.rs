//! `lockstep progress`: who is behind, and who waits for whom.

mod document;

use crate::analysed::{Analysed, is_running};
use crate::go::standing;
use crate::output::{self, Style, styled};
use crate::said::Said;
use crate::sources;
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
#[cfg(test)]
pub use document::GroupRow;
pub use document::{Document, WaitRow};
use lockstep_progress::published::{Method, model_of};
use lockstep_progress::{Activity, Chosen, Group, Progress as Found};
use lockstep_report::ProgressPage;
use lockstep_trace::{Outline, ranges};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Order the tasks of a run by progress: which is behind, who waits for whom, and for ever?
#[derive(Debug, Args)]
#[command(
    before_help = "EXAMPLES
  lockstep progress hung
  lockstep progress hung --normal healthy
  lockstep progress hung --html hung.html
  lockstep progress hung --dot groups.dot && dot -Tsvg groups.dot > groups.svg
",
    after_help = "On a finished, killed or still running run. Ends with 1 if a task hangs."
)]
pub struct Progress {
    /// Directory of the run
    run: PathBuf,
    /// A run in which all went well: tasks that left out what they did there are named as the cause
    #[arg(long, value_name = "DIR", conflicts_with = "method")]
    normal: Option<PathBuf>,
    /// How tasks are compared: by our own analysis, or as published (Prodometer, PLDI 2014, or AutomaDeD)
    ///
    /// The published methods know MPI calls and no messages: they name the least progressed tasks of a job that is taken
    /// to hang, and are there to compare with.
    #[arg(long, value_name = "NAME", default_value = "lockstep", value_parser = methods())]
    method: Method,
    /// Write a page to look at and to mail: order, waits, stacks and source lines
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the groups and their order for graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Write the Markov model of the published methods: states before and after MPI calls, and how often each rank went
    /// from one to another, as JSON
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Which of MPI's rules are told of: names and severities (fatal, error, luck, left), parted by commas; with - before
    /// each, all but those
    ///
    /// The names are in the guide's page "Checks of MPI's rules", and in --json.
    #[arg(long, value_name = "LIST", default_value = "all", allow_hyphen_values = true, value_parser = chosen,
          conflicts_with = "method")]
    checks: Chosen,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print as JSON what there is to say at the end of a recording: without places, if the ends of processes tell all
    #[arg(long, hide = true)]
    at_the_end: bool,
}

impl Progress {
    pub fn run(self) -> Result<ExitCode> {
        if self.at_the_end
            && let Some(found) = at_a_glance(&self.run)?
        {
            let mut document = Document::new(&found, lockstep_wording::verdict(&found));
            document.by_ends_alone = true;
            output::json(&document)?;
            return Ok(output::found(found.hang));
        }
        let Analysed {
            run,
            found,
            verdict,
            went_on,
            goroutines,
        } = Analysed::of(&self.run, self.normal.as_deref(), self.method, &self.checks)?;
        if let Some(path) = &self.html {
            let page = ProgressPage {
                title: self.run.display().to_string(),
                progress: &found,
                verdict: &verdict,
                sources: &sources::read(files(&found)),
            };
            write(path, &page.html())?;
        }
        if let Some(path) = &self.dot {
            write(path, &dot(&found))?;
        }
        if let Some(path) = &self.model {
            write(path, &serde_json::to_string(&model_of(&run))?)?;
        }
        if self.json || self.at_the_end {
            let mut document = Document::new(&found, verdict);
            document.running = is_running(&run);
            document.went_on = went_on;
            if let Some(judgement) = &goroutines {
                document.waits = standing::waits(judgement);
            }
            output::json(&document)?;
            return Ok(output::found(found.hang));
        }
        output::remark(&found.notes);
        output::print(|out| text(&found, &verdict, out))?;
        Ok(output::found(found.hang))
    }
}

/// What the ends of processes tell, if that is all: nothing was said while the run was recorded, and no goroutines are to be judged.
fn at_a_glance(directory: &Path) -> Result<Option<Found>> {
    if Said::of(directory).is_some() || standing::execution(directory)?.is_some() {
        return Ok(None);
    }
    let outline = Outline::open(directory)?;
    Ok(outline.as_ref().and_then(lockstep_progress::at_a_glance))
}

/// The source files of open calls.
fn files(found: &Found) -> impl Iterator<Item = String> {
    let places = found.groups.iter().flat_map(|group| group.stack.iter());
    places.filter_map(|place| Some(place.called_at.as_ref()?.file.clone()))
}

fn methods() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(["lockstep", "prodometer", "automaded"]).map(|name| {
        match name.as_str() {
            "prodometer" => Method::Prodometer,
            "automaded" => Method::Automaded,
            _ => Method::Lockstep,
        }
    })
}

fn chosen(list: &str) -> Result<Chosen, String> {
    Chosen::parse(list).map_err(|word| {
        format!("expected names of checks or fatal, error, luck, left, found {word:?}")
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} could not be written", path.display()))
}

fn text(found: &Found, verdict: &str, out: &mut output::Out<'_>) -> std::io::Result<()> {
    writeln!(out, "{}", styled(Style::Bold, output::printable(verdict)))?;
    writeln!(out)?;
    for (id, group) in found.groups.iter().enumerate() {
        let mark = if found.least.contains(&id) { "*" } else { " " };
        writeln!(
            out,
            "{mark} group {id}: {} ({}{})",
            lockstep_wording::who(found, &group.tasks),
            lockstep_wording::word(found, group),
            loops(group)
        )?;
        let is_over = group.activity == Activity::Finished;
        if let Some(leaf) = group.leaf.as_ref().filter(|_| !is_over) {
            writeln!(out, "      {}  may be over", output::printable(leaf))?;
        }
        for place in group.stack.iter().rev() {
            let at = place.called_at.as_ref().map_or(String::new(), |line| {
                format!("  called at {}:{}", line.file, line.line)
            });
            writeln!(
                out,
                "      {}{}",
                output::printable(&lockstep_trace::c_name(&place.function)),
                output::printable(&at)
            )?;
        }
    }
    if !found.edges.is_empty() {
        writeln!(out)?;
        writeln!(out, "PROGRESS (* least progressed)")?;
        for (more, less) in &found.edges {
            writeln!(out, "  group {less} is behind group {more}")?;
        }
    }
    if !found.waiting.waits.is_empty() {
        writeln!(out)?;
        writeln!(out, "WAITS")?;
        for wait in lockstep_wording::waits(found) {
            writeln!(out, "  {wait}")?;
        }
    }
    for cause in &found.causes {
        writeln!(out)?;
        let who = |tasks: &[u32]| lockstep_wording::who(found, tasks);
        let (who, victims) = (who(&[cause.task]), who(&cause.victims));
        let what = lockstep_wording::caused(cause);
        write!(out, "{who} {}", output::printable(&what))?;
        match cause.victims.len() {
            0 => writeln!(out)?,
            1 => writeln!(out, "; {victims} waits for it")?,
            _ => writeln!(out, "; {victims} wait for it")?,
        }
    }
    for sentence in lockstep_wording::mistakes(found) {
        writeln!(out)?;
        writeln!(out, "{}", output::printable(&sentence))?;
    }
    Ok(())
}

fn loops(group: &Group) -> String {
    let mut text = String::new();
    for (name, iteration) in &group.loops {
        // A string takes everything.
        let name = match name.rsplit_once('/') {
            Some((function, call)) => format!("{function}/{}", lockstep_trace::c_name(call)),
            None => name.clone(),
        };
        let _ = write!(text, ", {name} iteration {iteration}");
    }
    text
}

/// The groups, an arrow from each to those that are behind it.
fn dot(found: &Found) -> String {
    let mut text =
        String::from("digraph progress {\n  node [shape=box, style=filled, fillcolor=white];\n");
    for (id, group) in found.groups.iter().enumerate() {
        let colour = match found.least.contains(&id) {
            true => "\"#f4a6a0\"",
            false => "white",
        };
        let shape = match group.activity {
            Activity::Communication => "box",
            _ => "ellipse",
        };
        let top = group.stack.last().map_or("-", |it| it.function.as_str());
        let label = format!("{}\n{top}{}", ranges(&group.tasks), loops(group));
        let label = label
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = writeln!(
            text,
            "  g{id} [label=\"{label}\", shape={shape}, fillcolor={colour}];"
        );
    }
    for (more, less) in &found.edges {
        let _ = writeln!(text, "  g{more} -> g{less};");
    }
    text.push_str("}\n");
    text
}
