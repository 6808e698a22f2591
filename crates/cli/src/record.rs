//! `lockstep record`: runs a program and records what it calls.

use crate::conclusion::{self, Conclusion};
use crate::hang::Hang;
use crate::{output, probe};
use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use lockstep_format::codec::Kind;
use lockstep_record::{Bound, Keep, Memory, Missing, Options, Size, Summary, Watcher, record};
use lockstep_trace::ranges;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Which calls are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Times {
    /// Calls of MPI, and of library functions that can wait
    Waits,
    /// Every call: costs more, and makes the run larger
    All,
}

/// Run a program and record every call and return of its functions, and its calls into libraries
///
/// The program is not changed: its output, exit status, signals and working directory are its own. Ends with the
/// program's status (128 + n when signal n killed it), or with 125 where it was not started, 126 where it cannot be
/// executed, 127 where it was not found.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep record -o good -- ./app input.dat
  lockstep record -o good -- mpirun -n 8 ./app      around the launcher, or
  mpirun -n 8 lockstep record -o good -- ./app      inside it: the same run
  srun -n 64 lockstep record -- ./app               into lockstep-runs/app-JOB
  lockstep record --max-size 2G --keep last -- ./day-long-job
  lockstep record --hang 60 --on-hang stop -o run -- mpirun -n 8 ./app
  lockstep record --trace '^MPI_' --trace '^solve' --skip 'MPI_Wtime' -- mpirun -n 8 ./app
")]
pub struct Record {
    /// Directory of the run [default: lockstep-runs/NAME-N]
    ///
    /// It must not exist, be empty, or be the run that the other ranks of this very job are writing.
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What is recorded: the main program (its functions, and its calls into libraries), `all` images, or libraries
    /// beside it by name or REGEX (repeatable)
    ///
    /// A name or regular expression on the path (`mpi4py|libsolver`) adds the functions of libraries and the calls that
    /// those make into others, `all` the functions of every library; also of those that are loaded later. What any
    /// library calls of MPI is recorded without being asked for, and with it the functions that make these calls.
    #[arg(long, value_name = "main|all|NAME|REGEX", default_value = "main")]
    images: Vec<String>,
    /// Record only functions and library calls whose name REGEX finds (repeatable)
    ///
    /// Names as `calls` prints them or as the linker has them; `MPI_Send` finds Fortran's `mpi_send_` too. What is
    /// not chosen is not touched and costs nothing.
    #[arg(long, value_name = "REGEX")]
    trace: Vec<String>,
    /// Do not record functions and library calls whose name REGEX finds (repeatable)
    #[arg(long, value_name = "REGEX")]
    skip: Vec<String>,
    /// How events are stored
    #[arg(long, default_value = Kind::Lockstep.name(), value_parser = codecs())]
    codec: Kind,
    /// Memory of the recorder in the program: normal (up to 4 MB a thread) or low (at most 0.5 MB)
    #[arg(long, value_name = "HOW", default_value = "normal", value_parser = PossibleValuesParser::new(["normal", "low"]).map(|word| if word == "low" { Memory::Low } else { Memory::Normal }))]
    memory: Memory,
    /// Most bytes of the run's event files together: 500M, 2G, or none [default: a tenth of the free disk space]
    ///
    /// What does not fit is counted in `lockstep info`, and the program runs on. Suffixes K, M, G, T count by 1024; at
    /// least 1M. A run below its bound is the same as one without.
    #[arg(long, value_name = "BYTES|none", value_parser = bound)]
    max_size: Option<Most>,
    /// Which events a full run keeps: those that came first, or the last ones of every thread
    ///
    /// To keep the last ones costs something from the start: such a run has no times but the first and the last.
    #[arg(long, value_name = "WHICH", default_value = "first", value_parser = PossibleValuesParser::new(["first", "last"]).map(|word| if word == "last" { Keep::Last } else { Keep::First }))]
    keep: Keep,
    /// Watch for a hang: deadlocks are told at once, other standstills after SECONDS without progress
    ///
    /// The verdict is the sentence of `lockstep progress`. A rank counts as standing still while it makes no call, or
    /// goes round in one loop and others wait for it; through outer loops as well, after ten times SECONDS. Of one that
    /// computes the source lines are told, as a debugger finds them.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    hang: Option<Duration>,
    /// What becomes of a job that hangs: it is kept, for a debugger say, or stopped with all that it started (status 1)
    #[arg(long, value_name = "WHAT", requires = "hang", action = clap::ArgAction::Set, default_value = "keep", value_parser = PossibleValuesParser::new(["keep", "stop"]).map(|word| word == "stop"))]
    on_hang: bool,
    /// Most time for the last line, which says what `lockstep progress` makes of the run; 0: no such line [default: a
    /// tenth of the time that the command took, from 0.5 to 10]
    ///
    /// If it takes longer, only the next command is named. A program without MPI that ends well needs next to no time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    verdict: Option<Duration>,
    /// Do not record the arguments of MPI calls
    #[arg(long)]
    no_arguments: bool,
    /// Do not record times
    #[arg(long)]
    no_time: bool,
    /// Of which calls begin and end are measured
    #[arg(long, value_enum, default_value_t = Times::Waits, conflicts_with = "no_time")]
    times: Times,
    /// Patch the program and record nothing: what that costs is measured so
    #[arg(long, hide = true)]
    no_events: bool,
    /// Write events into DIR of each node (/dev/shm, a local disk), and into the run when a process has ended
    ///
    /// For runs on a parallel file system. It needs the room of the events in DIR. Where the recorder is killed, commands
    /// still find them there, as long as DIR lasts, and `seal` puts them into the run.
    #[arg(long, value_name = "DIR")]
    buffer: Option<PathBuf>,
    /// Permissions of the run's directory, in octal: 0755 lets others read it [default: 0700]
    #[arg(long, value_name = "MODE", default_value = "0700", hide_default_value = true, value_parser = mode)]
    mode: u32,
    /// Put what comes into the run from DIR into one file a node, instead of one a process
    ///
    /// The last recorder of the run on the node does it. Every command reads such a run as before.
    #[arg(long, requires = "buffer")]
    pack: bool,
    /// Leave arguments, environment and the host's name out of the run
    #[arg(long)]
    redact: bool,
    /// Replace a former run in the directory (a run, and nothing else)
    #[arg(long)]
    force: bool,
    /// Run a program that cannot be recorded (static, setuid) without recording, instead of refusing it
    #[arg(long)]
    untraced_is_fine: bool,
    /// The probe's shared library [default: the one that this command carries]
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    /// The program and its arguments, after `--` or as they are
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn codecs() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name())).try_map(|name| {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or("no such codec")
    })
}

/// What `--max-size` says.
#[derive(Debug, Clone, Copy)]
enum Most {
    Nothing,
    Bytes(u64),
}

fn bound(text: &str) -> Result<Most, String> {
    match text {
        "none" => Ok(Most::Nothing),
        _ => size(text).map(Most::Bytes),
    }
}

/// Permissions as `chmod` has them. Without the owner's own nothing could be recorded.
fn mode(text: &str) -> Result<u32, String> {
    const OWN: u32 = 0o700;
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| mode & OWN == OWN && *mode <= 0o777)
        .ok_or_else(|| format!("expected permissions from 0700 to 0777, found '{text}'"))
}

/// Bytes as people write them, as many as a run needs at least.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes < Bound::LEAST {
        return Err(format!(
            "expected at least {} bytes, found {bytes}",
            output::grouped(Bound::LEAST)
        ));
    }
    Ok(bytes)
}

/// Bytes as people write them.
pub fn bytes(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size such as 500M or 2G, found '{text}'");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let power = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 1,
        "M" | "MB" | "MIB" => 2,
        "G" | "GB" | "GIB" => 3,
        "T" | "TB" | "TIB" => 4,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(1 << (10 * power)).ok_or_else(expected)
}

impl Record {
    /// Whether it looks at what it records.
    pub fn looks(&self) -> bool {
        self.hang.is_some()
    }

    pub fn run(self) -> Result<ExitCode> {
        let size = match (self.max_size, self.keep) {
            (Some(Most::Bytes(bytes)), keep) => Size::Most(bytes, keep),
            (None, keep) => Size::Share(keep),
            (Some(Most::Nothing), Keep::First) => Size::Unbounded,
            (Some(Most::Nothing), Keep::Last) => {
                anyhow::bail!("expected a size with --keep last, found --max-size none")
            }
        };
        let options = Options {
            command: self.command,
            output: self.output,
            buffer: self.buffer,
            mode: self.mode,
            pack: self.pack,
            images: self.images,
            trace: self.trace,
            skip: self.skip,
            codec: self.codec,
            memory: self.memory,
            size,
            redact: self.redact,
            arguments: !self.no_arguments,
            time: !self.no_time,
            every_time: self.times == Times::All,
            events: !self.no_events,
            force: self.force,
            untraced_is_fine: self.untraced_is_fine,
            probe: probe::chosen(self.probe),
        };
        let mut hang = self.hang.map(|patience| Hang::new(patience, self.on_hang));
        let watcher = hang.as_mut().map(|it| it as &mut dyn Watcher);
        let began = Instant::now();
        let outcome = match record(&options, watcher) {
            Ok(outcome) => outcome,
            Err(error) => {
                output::complain(&error.to_string());
                return Ok(ExitCode::from(error.status()));
            }
        };
        if let Some(reason) = &outcome.untraced {
            output::complain(&format!("ran without recording: {reason}"));
        }
        for option in &outcome.unmatched {
            output::complain(&format!("{option} found no function and no library call"));
        }
        say_unmatched(&outcome.unmatched_images);
        say_left(&outcome.left);
        if let Some(text) = &outcome.buffered {
            output::complain(text);
        }
        if let Some(summary) = &outcome.summary {
            output::complain(&sentence(summary));
            say_missing(&summary.missing);
        }
        let status = match &hang {
            Some(hang) if hang.stopped => 1,
            _ => outcome.status,
        };
        // The command has ended: what comes behind it changes nothing of that.
        lockstep_record::Heap::exhausted_means(status);
        let patience = self
            .verdict
            .unwrap_or_else(|| conclusion::patience(began.elapsed()));
        if let Some(summary) = &outcome.summary
            && summary.events > 0
            && !patience.is_zero()
        {
            let mut conclusion = Conclusion::of(&summary.directory, patience);
            if let Some(hang) = &mut hang
                && hang.conclude(&summary.directory, &conclusion)
            {
                // The run says it now.
                conclusion = Conclusion::of(&summary.directory, patience);
            }
            output::complain(&conclusion.sentence(&summary.directory, status));
        }
        Ok(ExitCode::from(status))
    }
}

/// Words of `--images` that no image of the run matches.
pub fn say_unmatched(images: &[String]) {
    for word in images {
        output::complain(&format!(
            "--images '{word}': no image of the run matches; lockstep info tells which were recorded"
        ));
    }
}

/// Ranks of which nothing is recorded.
pub fn say_missing(jobs: &[Missing]) {
    for Missing { expected, ranks } in jobs {
        let (kind, left) = match ranks[..] {
            [_] => ("rank", "it is"),
            _ => ("ranks", "they are"),
        };
        output::complain(&format!(
            "expected records of {}, found {}, and none of {kind} {}: perhaps {left} statically linked, lost the launcher's environment or \
             rights, or ran where the run is not seen",
            output::plural(u64::from(*expected), "rank"),
            u64::from(*expected) - ranks.len() as u64,
            ranges(ranks),
        ));
    }
}

/// Processes that were to be ended and could not.
pub fn say_left(left: &[i32]) {
    if !left.is_empty() {
        let numbers: Vec<String> = left.iter().map(i32::to_string).collect();
        output::complain(&format!(
            "expected to end every process that the command started, found {} left: {}",
            left.len(),
            numbers.join(", ")
        ));
    }
}

/// A time as people write it: `10`, `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected seconds such as 60 or 0.5, found '{text}'");
    let number: f64 = text.parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number).map_err(|_| expected())
}

pub fn sentence(summary: &Summary) -> String {
    let lost = match summary.lost {
        0 if summary.events == 0 => " (lockstep info says why)".to_owned(),
        0 => String::new(),
        lost => format!(
            " ({} lost: {})",
            output::grouped(lost),
            full(summary).unwrap_or_else(|| "see lockstep info".to_owned())
        ),
    };
    format!(
        "{}{lost} of {} in {} bytes, in {}",
        output::plural(summary.events, "event"),
        output::plural(summary.processes, "process"),
        output::grouped(summary.bytes),
        summary.directory.display(),
    )
}

/// Of a run that came to its bound: what the bound is, and what else could be done.
fn full(summary: &Summary) -> Option<String> {
    let bound = summary.bound.filter(|_| summary.too_many > 0)?;
    let bytes = output::grouped(bound.bytes);
    let (what, instead) = match bound.keep {
        Keep::First => ("the first", "--keep last keeps the last ones"),
        Keep::Last => ("the last", "--keep first keeps the first ones"),
    };
    let bound = match bound.is_asked {
        true => format!("--max-size is {bytes} bytes"),
        false => format!(
            "the run may have a tenth of the free disk space, {bytes} bytes; --max-size sets another bound"
        ),
    };
    Some(format!("{what} events were kept, as {bound}; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::{bytes, mode, size};

    #[test]
    fn permissions_as_chmod_has_them() {
        assert_eq!([mode("755"), mode("0700")], [Ok(0o755), Ok(0o700)]);
        for wrong in ["", "0", "0655", "1755", "u+x", "789"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bytes("5K"), Ok(5120));
    }

    #[test]
    fn sizes_as_people_write_them() {
        assert_eq!(size("1048576"), Ok(1 << 20));
        assert_eq!(size("10M"), Ok(10 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("3GiB"), Ok(3 << 30));
        for wrong in ["", "M", "1.5G", "-1M", "10X", "99999999T", "1 G", "0x10M"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(size("1000K").is_err_and(|text| text.contains("at least 1,048,576")));
    }
}
