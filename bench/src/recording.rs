//! What tracing costs: lockstep, callgrind and uftrace on the same binary.

use crate::measure::{Cost, bytes_below, cost, median, span};
use crate::options::{Options, Subject};
use anyhow::{Result, ensure};
use lockstep_testkit::{Scratch, command, recording, tools};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Heads of the table that [`measure`] makes.
pub fn heads() -> String {
    let row = Row {
        program: "program".to_owned(),
        tool: "tool",
        cells: [
            "wall s",
            "x plain",
            "(min-max)",
            "cpu s",
            "x plain",
            "events",
            "events/s",
            "bytes/event",
            "stream+names",
            "on disk",
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    row.to_string()
}

/// One line of the table.
struct Row {
    program: String,
    tool: &'static str,
    cells: Vec<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTHS: [usize; 10] = [8, 8, 15, 8, 8, 12, 11, 12, 13, 11];
        write!(f, "{:<14}{:<10}", self.program, self.tool)?;
        for (cell, width) in self.cells.iter().zip(WIDTHS) {
            write!(f, " {cell:>width$}")?;
        }
        Ok(())
    }
}

/// A tracer to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Lockstep,
    Callgrind,
    Uftrace,
}

impl Tool {
    const ALL: [Tool; 3] = [Tool::Lockstep, Tool::Callgrind, Tool::Uftrace];

    fn name(self) -> &'static str {
        match self {
            Tool::Lockstep => "lockstep",
            Tool::Callgrind => "callgrind",
            Tool::Uftrace => "uftrace",
        }
    }

    fn is_here(self) -> bool {
        match self {
            Tool::Lockstep => true,
            Tool::Callgrind => tools::find("valgrind").is_some(),
            Tool::Uftrace => tools::find("uftrace").is_some(),
        }
    }

    /// The command that traces `subject` into `directory`.
    fn command(self, subject: &Subject, directory: &Path) -> Command {
        if self == Tool::Lockstep {
            let words: Vec<&String> = subject.launcher.iter().chain(&subject.words).collect();
            return recording::record_command(directory, &[], &words);
        }
        // The others stand inside the launcher, before each rank.
        let inner = match self {
            Tool::Callgrind => {
                "exec valgrind --quiet --tool=callgrind --callgrind-out-file=$OUT/%p \"$0\" \"$@\""
            }
            // Every function that it can patch in an ordinary binary, and all library calls.
            _ => "exec uftrace record --no-pager -P . -d $OUT/$$ \"$0\" \"$@\"",
        };
        let mut words: Vec<&str> = subject.launcher.iter().map(String::as_str).collect();
        words.extend(["sh", "-c", inner]);
        words.extend(subject.words.iter().map(String::as_str));
        let mut command = with_mpi(command::command(&words));
        command.env("OUT", directory);
        command
    }

    /// Events recorded in `directory`, and bytes that they take.
    fn volume(self, directory: &Path) -> Result<Option<Volume>> {
        match self {
            Tool::Lockstep => lockstep_volume(directory).map(Some),
            Tool::Callgrind => Ok(None),
            Tool::Uftrace => Ok(Some(uftrace_volume(directory))),
        }
    }
}

/// How much a recording holds.
#[derive(Debug, Clone, Copy)]
struct Volume {
    events: u64,
    /// Streams and names.
    bytes: u64,
    disk: u64,
}

/// Open MPI refuses root, and more ranks than cores, unless told otherwise.
fn with_mpi(mut command: Command) -> Command {
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command
}

/// The lines of the table for one program.
pub fn measure(subject: &Subject, options: &Options, scratch: &Scratch) -> Vec<String> {
    let chosen = |tool: &Tool| {
        options.tools.is_empty() || options.tools.iter().any(|name| name == tool.name())
    };
    let name = subject.words.first().map_or("", String::as_str);
    let name = Path::new(name)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let mut lines = Vec::new();
    for tool in Tool::ALL.into_iter().filter(chosen) {
        let row = |cells| Row {
            program: name.to_string(),
            tool: tool.name(),
            cells,
        };
        if !tool.is_here() {
            lines.push(row(vec!["not installed".to_owned()]).to_string());
            continue;
        }
        let cells = match pairs(tool, subject, options.pairs, scratch) {
            Ok(cells) => cells,
            Err(error) => vec![format!("failed: {error:#}")],
        };
        lines.push(row(cells).to_string());
    }
    lines
}

/// Runs `count` pairs of the plain and the traced program and gives the cells of its row.
fn pairs(tool: Tool, subject: &Subject, count: usize, scratch: &Scratch) -> Result<Vec<String>> {
    let (mut walls, mut cpus): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut traced_costs: Vec<Cost> = Vec::new();
    let mut volume = None;
    for _ in 0..count {
        let words: Vec<&String> = subject.launcher.iter().chain(&subject.words).collect();
        let plain = cost(&mut with_mpi(command::command(&words)))?;
        ensure!(
            plain.status == 0,
            "the program itself ended with {}",
            plain.status
        );
        let directory = fresh(scratch)?;
        let traced = cost(&mut tool.command(subject, &directory))?;
        ensure!(traced.status == 0, "status {} under it", traced.status);
        volume = tool.volume(&directory)?;
        std::fs::remove_dir_all(&directory)?;
        walls.push(traced.wall / plain.wall);
        cpus.push(traced.cpu / plain.cpu);
        traced_costs.push(traced);
    }
    let wall = median(
        &traced_costs
            .iter()
            .map(|cost| cost.wall)
            .collect::<Vec<_>>(),
    );
    let cpu = median(&traced_costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>());
    let (least, most) = span(&walls);
    let mut cells = vec![
        format!("{wall:.2}"),
        format!("{:.2}", median(&walls)),
        format!("({least:.2}-{most:.2})"),
        format!("{cpu:.2}"),
        format!("{:.2}", median(&cpus)),
    ];
    if let Some(volume) = volume {
        let per_event = volume.bytes as f64 / volume.events.max(1) as f64;
        cells.extend([
            volume.events.to_string(),
            format!("{:.0}", volume.events as f64 / wall),
            format!("{per_event:.4}"),
            volume.bytes.to_string(),
            volume.disk.to_string(),
        ]);
    }
    Ok(cells)
}

/// An empty directory for one recording.
fn fresh(scratch: &Scratch) -> Result<PathBuf> {
    let directory = scratch.join("recording");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn lockstep_volume(directory: &Path) -> Result<Volume> {
    let mut info = recording::lockstep(&["info", "--json"]);
    let outcome = command::run(info.arg(directory));
    ensure!(outcome.status == 0, "lockstep info: {}", outcome.stderr);
    let value: Value = serde_json::from_str(&outcome.stdout)?;
    let mut volume = Volume {
        events: 0,
        // Names lie in the plans, beside the code that the probe applies.
        bytes: bytes_below(&directory.join("plans")),
        disk: bytes_below(directory),
    };
    let processes = value["processes"].as_array().cloned().unwrap_or_default();
    for process in &processes {
        for thread in process["threads"].as_array().into_iter().flatten() {
            volume.events += thread["events"].as_u64().unwrap_or(0);
            volume.bytes += thread["bytes"].as_u64().unwrap_or(0);
        }
        let lost = process["events_lost"].as_u64().unwrap_or(0);
        ensure!(lost == 0, "{lost} events lost");
    }
    Ok(volume)
}

/// An event of uftrace takes 16 bytes in a file `TID.dat` where no arguments are kept.
fn uftrace_volume(directory: &Path) -> Volume {
    let mut data = 0;
    for rank in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(rank.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_thread = name
                .strip_suffix(".dat")
                .is_some_and(|tid| tid.parse::<u32>().is_ok());
            if is_thread {
                data += file.metadata().map_or(0, |metadata| metadata.len());
            }
        }
    }
    let bytes = bytes_below(directory);
    Volume {
        events: data / 16,
        bytes,
        disk: bytes,
    }
}
