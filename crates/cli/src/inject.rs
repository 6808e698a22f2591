//! `lockstep inject`: puts a fault into a program.

use crate::{output, probe, record, run};
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lockstep_api::mpi;
use lockstep_calltree::{Counts, Forest};
use lockstep_format::codec;
use lockstep_format::fault::{Kind, Order};
use lockstep_record::{Injection, Keep, Memory, Options, Size, inject};
use lockstep_trace::{ThreadName, c_name};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Put a fault into an unmodified program: at one call of one function, in one process and thread
///
/// hang: the call never ends. delay: it begins --seconds later. skip: it is not made, and returns 0 (--set return=VALUE).
/// exit: the process ends there with status 1 (--set status=N). swap: it is made after the next call that the same
/// caller makes. argument: it gets another argument (--set 4=7; --set dest=7 for MPI functions). redirect: the function
/// --to is called instead. Nothing else changes; without -o nothing else is even touched. Ends with the program's
/// status, or with 125, 126 or 127 where it was not started.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep inject --fault hang --at 'MPI_Recv#3' --process 2 -o faulty -- mpirun -n 4 ./app
  lockstep inject --fault delay --seconds 0.5 --at 'solve#1' --process 0 -- ./app
  lockstep inject --fault argument --set dest=7 --at 'MPI_Send#10' --process 5 -- mpirun -n 8 ./app
  lockstep inject --fault redirect --to memset --at 'memcpy#4' --process 0 -- ./app
  lockstep inject --fault hang --at 'solve_step#2' --images libsolver --process 1 -- mpirun -n 4 ./app
  lockstep inject --fault hang --at random --seed 42 --from good -o faulty -- mpirun -n 4 ./app
")]
pub struct Inject {
    /// What happens
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    fault: Kind,
    /// Where: call N of FUNCTION, counted in each thread from 1; or random (with --from)
    #[arg(long, value_name = "FUNCTION#N")]
    at: String,
    /// In which process: an MPI rank, or the number by order of start; '*' in all
    #[arg(long, value_name = "P", required_unless_present = "from", value_parser = one_or_any)]
    process: Option<Chosen>,
    /// In which thread: 0 started the process; '*' the first that comes to its call N [default: 0]
    #[arg(long, value_name = "T", value_parser = one_or_any)]
    thread: Option<Chosen>,
    /// Whose functions and calls are meant: the main program's, `all` images', or those of libraries beside it by name or
    /// REGEX (repeatable)
    ///
    /// As with `record`: a name or regular expression on the path (`mpi4py|libsolver`) adds the functions of libraries and
    /// the calls that those make into others, `all` the functions of every library; also of those that are loaded later.
    /// With -o they are recorded, too.
    #[arg(long, value_name = "main|all|NAME|REGEX", default_value = "main")]
    images: Vec<String>,
    /// Record what the faulty program does, into this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How long a delay takes
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// Hang computing, not sleeping
    #[arg(long)]
    spin: bool,
    /// The new argument (by number from 1, or name), the returned value, or the exit status
    #[arg(long, value_name = "ARG=VALUE", allow_hyphen_values = true)]
    set: Option<String>,
    /// The function that is called instead: the program's own, or one that it calls
    #[arg(long, value_name = "FUNCTION")]
    to: Option<String>,
    /// Choose among the calls of this run, where --at is random
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// Which random choice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Replace a former run in the directory (a run, and nothing else)
    #[arg(long)]
    force: bool,
    /// The probe's shared library [default: the one that this command carries]
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    /// The program and its arguments, after `--` or as they are
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A process or thread; all where `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen(Option<u32>);

fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.word()))
        .try_map(|word| Kind::from_word(&word).ok_or("no such fault"))
}

fn one_or_any(text: &str) -> Result<Chosen, String> {
    match text {
        "*" => Ok(Chosen(None)),
        _ => text
            .parse()
            .ok()
            .filter(|number| *number < u32::MAX - 2)
            .map(|number| Chosen(Some(number)))
            .ok_or_else(|| "expected a number from 0, or '*'".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds: &f64| (0.0..=1e9).contains(seconds))
        .ok_or_else(|| "expected seconds from 0 to 1000000000".to_owned())
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    function: String,
    call: u64,
    process: Option<u32>,
    thread: Option<u32>,
}

impl Inject {
    pub fn run(self) -> Result<ExitCode> {
        self.check()?;
        let place = self.place()?;
        let (argument, value, float) = self.value(&place.function)?;
        let seconds = self.seconds.unwrap_or(0.0);
        let injection = Injection {
            order: Order {
                kind: self.fault,
                call: place.call,
                process: place.process,
                thread: place.thread,
                records: self.output.is_some(),
                spins: self.spin,
                nanoseconds: (seconds * 1e9) as u64,
                value,
                float: float.to_bits(),
                argument,
            },
            at: place.function,
            to: self.to.unwrap_or_default(),
        };
        let options = Options {
            arguments: true,
            time: true,
            every_time: false,
            events: true,
            command: self.command,
            output: self.output,
            buffer: None,
            mode: 0o700,
            pack: false,
            images: self.images,
            trace: Vec::new(),
            skip: Vec::new(),
            codec: codec::Kind::Lockstep,
            memory: Memory::Normal,
            size: Size::Share(Keep::First),
            redact: false,
            force: self.force,
            untraced_is_fine: false,
            probe: probe::chosen(self.probe),
        };
        let outcome = match inject(&options, &injection, &mut output::complain) {
            Ok(outcome) => outcome,
            Err(error) => {
                output::complain(&error.to_string());
                return Ok(ExitCode::from(error.status()));
            }
        };
        record::say_unmatched(&outcome.unmatched_images);
        record::say_left(&outcome.left);
        if let Some(summary) = &outcome.summary {
            output::complain(&record::sentence(summary));
        }
        Ok(ExitCode::from(outcome.status))
    }

    /// Options that belong to one kind of fault.
    fn check(&self) -> Result<()> {
        let word = self.fault.word();
        let sets = [Kind::Argument, Kind::Skip, Kind::Exit];
        let rules = [
            (
                "--seconds",
                self.seconds.is_some(),
                &[Kind::Delay][..],
                true,
            ),
            ("--to", self.to.is_some(), &[Kind::Redirect], true),
            ("--spin", self.spin, &[Kind::Hang], false),
            (
                "--set",
                self.set.is_some(),
                &sets,
                self.fault == Kind::Argument,
            ),
        ];
        for (option, is_given, kinds, is_needed) in rules {
            let belongs = kinds.contains(&self.fault);
            if is_given && !belongs {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                bail!(
                    "{option}: expected with --fault {}, found --fault {word}",
                    kinds.join(", ")
                );
            }
            if belongs && is_needed && !is_given {
                bail!("--fault {word}: expected {option} too, found none");
            }
        }
        for name in [Some(&self.at), self.to.as_ref()].into_iter().flatten() {
            if name.is_empty() || name.contains(['\n', '\0']) {
                bail!("expected a function's name, found {name:?}");
            }
        }
        Ok(())
    }

    fn place(&self) -> Result<Place> {
        if self.at == "random" {
            let Some(from) = &self.from else {
                bail!(
                    "--at random: expected --from RUN too (a recorded run to choose a call from), found none"
                );
            };
            return self.random(from);
        }
        if self.from.is_some() {
            bail!(
                "--from: expected with --at random, found --at '{}'",
                self.at
            );
        }
        let wrong = || {
            format!(
                "--at: expected FUNCTION#N with N from 1 (such as 'MPI_Send#3'), found '{}'",
                self.at
            )
        };
        let (function, call) = self.at.rsplit_once('#').with_context(wrong)?;
        let call: u64 = call.parse().ok().with_context(wrong)?;
        if call == 0 || call > i64::MAX as u64 - 1 || function.is_empty() {
            bail!(wrong());
        }
        Ok(Place {
            function: function.to_owned(),
            call,
            process: self.process.and_then(|chosen| chosen.0),
            thread: self.thread.map_or(Some(0), |chosen| chosen.0),
        })
    }

    /// A call of the run: each function of each trace is as likely as another, and so is each of its
    /// calls there.
    fn random(&self, from: &Path) -> Result<Place> {
        let run = run::open(from)?;
        let mut forest = Forest::new();
        let functions = forest.add_functions(&run);
        let is_wanted = |chosen: Option<Chosen>, number| match chosen {
            Some(Chosen(Some(wanted))) => wanted == number,
            _ => true,
        };
        let mut candidates: Vec<(Place, u64)> = Vec::new();
        for thread in run.traces() {
            let name = thread.name;
            let ThreadName::Main(number) = name.thread else {
                continue;
            };
            let process = name.process;
            if process.job != 0
                || process.sibling != 0
                || !is_wanted(self.process, process.rank)
                || !is_wanted(self.thread, number)
            {
                continue;
            }
            let counts = Counts::of(&mut forest, &functions, &[thread]);
            for found in counts.calls(&forest) {
                let place = Place {
                    function: c_name(&found.name).into_owned(),
                    call: 0,
                    process: Some(process.rank),
                    thread: Some(number),
                };
                candidates.push((place, found.calls));
            }
        }
        candidates.retain(|(place, calls)| *calls > 0 && place.function != "main");
        candidates.sort_by(|(a, _), (b, _)| {
            (a.process, a.thread, &a.function).cmp(&(b.process, b.thread, &b.function))
        });
        let mut random = Random(self.seed);
        let Some((place, calls)) = random
            .below(candidates.len() as u64)
            .and_then(|index| candidates.into_iter().nth(index as usize))
        else {
            bail!(
                "{}: expected calls to choose from, found none",
                from.display()
            );
        };
        let place = Place {
            call: 1 + random.below(calls).unwrap_or(0),
            ..place
        };
        output::complain(&format!(
            "chosen: {}#{}, process {}, thread {}",
            place.function,
            place.call,
            place.process.unwrap_or(0),
            place.thread.unwrap_or(0),
        ));
        Ok(place)
    }

    /// What `--set` says: which argument, and its value as an integer and as a number.
    fn value(&self, function: &str) -> Result<(u32, i64, f64)> {
        let Some(set) = &self.set else {
            let default = i64::from(self.fault == Kind::Exit);
            return Ok((0, default, default as f64));
        };
        let expected = match self.fault {
            Kind::Exit => "status=N with N from 0 to 255",
            Kind::Skip => "return=VALUE",
            _ => "ARGUMENT=VALUE (a number from 1, or the name that the MPI standard gives it)",
        };
        let wrong = || format!("--set: expected {expected}, found '{set}'");
        let (name, text) = set.split_once('=').with_context(wrong)?;
        let (value, float) = number(text).with_context(wrong)?;
        let argument = match self.fault {
            Kind::Exit if name == "status" && (0..256).contains(&value) => 0,
            Kind::Skip if name == "return" => 0,
            Kind::Argument => argument(function, name)?,
            _ => bail!(wrong()),
        };
        Ok((argument, value, float))
    }
}

/// The number of an argument.
fn argument(function: &str, name: &str) -> Result<u32> {
    const MOST: u32 = 64;
    if let Ok(number) = name.parse::<u32>() {
        if (1..=MOST).contains(&number) {
            return Ok(number);
        }
        bail!("--set: expected an argument from 1 to {MOST}, found {number}");
    }
    let c = c_name(function);
    let Some(function_of_mpi) = mpi::Function::of(c.as_bytes()) else {
        bail!(
            "--set: expected the number of an argument of {function}, found '{name}' (names are known of MPI functions)"
        );
    };
    let names: Vec<&str> = function_of_mpi.parameters().map(|it| it.name).collect();
    match names.iter().position(|known| *known == name) {
        Some(index) => Ok(index as u32 + 1),
        None => bail!(
            "--set: expected an argument of {c} ({}), found '{name}'",
            names.join(", ")
        ),
    }
}

/// An integer (decimal, or hexadecimal with 0x), or a number with a point.
fn number(text: &str) -> Option<(i64, f64)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        let value = u64::from_str_radix(hexadecimal, 16).ok()? as i64;
        return Some((value.wrapping_mul(sign), value as f64));
    }
    if let Ok(value) = text.parse::<i64>() {
        return Some((value, value as f64));
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some((value as i64, value))
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere for a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; `None` where there is none.
    fn below(&mut self, limit: u64) -> Option<u64> {
        (limit > 0).then(|| ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_publication() {
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(random.below(0), None);
        assert!((0..100).all(|_| random.below(3).unwrap() < 3));
    }

    #[test]
    fn values_in_every_form() {
        assert_eq!(number("7"), Some((7, 7.0)));
        assert_eq!(number("-1"), Some((-1, -1.0)));
        assert_eq!(number("0x10"), Some((16, 16.0)));
        assert_eq!(number("2.5"), Some((2, 2.5)));
        assert_eq!(number("NaN"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn arguments_by_number_and_name() {
        assert_eq!(argument("step", "3").unwrap(), 3);
        assert_eq!(argument("MPI_Send", "dest").unwrap(), 4);
        assert_eq!(argument("mpi_send_", "dest").unwrap(), 4);
        for (function, name) in [
            ("step", "0"),
            ("step", "65"),
            ("step", "n"),
            ("MPI_Send", "root"),
        ] {
            assert!(argument(function, name).is_err());
        }
    }
}
