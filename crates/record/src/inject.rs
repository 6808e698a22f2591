//! Puts a fault into a program: starts it as [`crate::record`] does, with a description of the fault,
//! and reads afterwards what the processes tell of it.

use crate::directory::{self, Directory};
use crate::error::Error;
use crate::images::Images;
use crate::own;
use crate::program::{Program, plain};
use crate::{
    Bound, Options, Outcome, Watcher, execute, exit_code, kept, launch, plan, program, remove_run,
    summary,
};
use lockstep_binary::{Image, display_name};
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::fault::{Fault, Kind, Order, VARIABLE, report};
use lockstep_format::launcher::{LAUNCHERS, STARTERS};
use lockstep_format::plan::choice;
use lockstep_patch::is_named;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A fault, and where it shall happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// What, at which call, in which process and thread.
    pub order: Order,
    /// The function.
    pub at: String,
    /// Of a redirection: the function that is called instead.
    pub to: String,
}

/// The fault of the run that this process is part of, as far as planning goes.
pub(crate) fn inherited() -> Option<lockstep_patch::Fault> {
    let text = std::env::var(VARIABLE).ok()?;
    let fault = Fault::parse(&text)?;
    Some(planned(fault.order, fault.at, fault.to))
}

fn planned(order: Order, at: &str, to: &str) -> lockstep_patch::Fault {
    lockstep_patch::Fault {
        at: at.to_owned(),
        kind: order.kind,
        to: to.to_owned(),
        records: order.records,
        tells_threads: order.thread != Some(0),
    }
}

/// Runs `options.command` with the fault in it and waits for it. Where nothing is to be recorded,
/// `options.output` is not used. `say` gets what there is to say of the fault, a line at a time and
/// what has happened as soon as it has: a program that hangs need not end by itself. It gets nothing
/// where another one of the job says it.
///
/// # Errors
/// If the command was not started; [`Error::status`] is the exit status to end with.
pub fn inject(
    options: &Options,
    injection: &Injection,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Outcome, Error> {
    let records = injection.order.records;
    let name = options
        .command
        .first()
        .ok_or_else(|| Error::own("expected a command to put a fault into, found none"))?;
    let images = Images::new(&options.images)?;
    let mut choice = crate::choice(options)?;
    choice.fault = Some(planned(injection.order, &injection.at, &injection.to));
    let program = program::check(&program::find(name)?)?;
    let probe = options.probe.check()?;
    let directory = if records {
        directory::claim(options.output.as_deref(), options)?
    } else {
        directory::temporary()?
    };
    let bound = Bound::new(options.size, [&*directory.path]);
    let mut teller = Teller {
        injection,
        said: HashSet::new(),
        say,
    };
    let result = prepare(&directory, &program, &choice, &images, injection).and_then(|()| {
        plan::recall(&directory.path, &choice, &images, &options.command);
        let fault = Fault {
            order: injection.order,
            at: &injection.at,
            to: &injection.to,
        };
        execute(&probe, &directory, options, Some(&mut teller), |probe| {
            let mut command = launch::command(
                options, &choice, &images, &program, &directory, bound, probe,
            );
            command.env(VARIABLE, fault.to_string());
            command
        })
    });
    let mut unmatched_images = Vec::new();
    if records && directory.elected {
        plan::remember(&directory.path, &choice, &images, &options.command);
        unmatched_images = images.unmatched(&directory.path);
    } else if !records && own_rank().is_none_or(|rank| rank == 0) {
        // No process left a file that says which images it had, but each asked for their plans.
        let asked = plan::remember(&directory.path, &choice, &images, &options.command);
        unmatched_images = images.unmatched_among(&asked);
    }
    let result = result.map(|ended| {
        teller.finish(&directory.path, &choice, &images);
        Outcome {
            status: exit_code(ended.status),
            left: ended.left,
            summary: (records && directory.elected).then(|| summary(&directory, bound)),
            untraced: None,
            unmatched: Vec::new(),
            unmatched_images,
            buffered: None,
        }
    });
    if !records {
        let _ = fs::remove_dir_all(&directory.path);
    } else if result.is_err() && directory.elected {
        let _ = remove_run(&directory.path);
    } else if directory.elected {
        kept::trim(&directory.path);
    }
    result
}

/// Makes the program's plan. A program that starts no others must have the function, unless a library may.
fn prepare(
    directory: &Directory,
    program: &Program,
    choice: &lockstep_patch::Options,
    images: &Images,
    injection: &Injection,
) -> Result<(), Error> {
    let reports = directory.path.join(report::DIRECTORY);
    let made = match own::create_directory(&reports, 0o700) {
        // Another recorder of the job was first.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    made.map_err(|error| Error::own(format!("{}: {}", reports.display(), plain(&error))))?;
    let shown = program.image.display();
    if let Err(plan::PlanError::Image(reason)) =
        plan::ensure(&directory.path, &program.image, choice)
    {
        return Err(Error::own(format!("{shown}: cannot be patched: {reason}")));
    }
    let found = Found::read(&directory.path, choice, injection);
    if images.variable().is_some() {
        return Ok(());
    }
    match found.problem(&injection.at) {
        Some(problem) if !found.reasons.is_empty() || !starts_others(&program.image) => {
            let hint = similar(&program.image, &injection.at);
            let libraries = match (hint.is_empty(), found.reasons.is_empty()) {
                (true, true) => "; --images puts faults into functions of libraries, too",
                _ => "",
            };
            Err(Error::own(format!("{shown}: {problem}{hint}{libraries}")))
        }
        _ => Ok(()),
    }
}

/// Whether a program may start other programs, itself or through a library of which we do not know
/// that it starts none.
fn starts_others(image: &Path) -> bool {
    const LIBRARIES: [&str; 14] = [
        "libc.",
        "libm.",
        "libpthread.",
        "libdl.",
        "librt.",
        "libgcc_s.",
        "libstdc++.",
        "libgomp.",
        "libgfortran.",
        "libquadmath.",
        "libmpi.",
        "libmpich.",
        "libmpi_",
        "ld-linux",
    ];
    let is_launcher = image
        .file_name()
        .is_some_and(|name| STARTERS.iter().any(|starter| name == *starter));
    let Ok(bytes) = fs::read(image) else {
        return true;
    };
    let Ok(image) = Image::parse(&bytes) else {
        return true;
    };
    let is_known = |library: &&[u8]| {
        LIBRARIES
            .iter()
            .any(|known| library.starts_with(known.as_bytes()))
    };
    let starts = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        let stem = name.trim_start_matches('_');
        ["exec", "fork", "vfork", "clone", "posix_spawn"]
            .iter()
            .any(|start| stem.starts_with(start))
            || ["system", "popen", "syscall"].contains(&stem)
    };
    is_launcher
        || !image.needed().iter().all(is_known)
        || image.imports().iter().any(|import| starts(import.name))
}

/// Functions of the image whose names look like `wanted`.
fn similar(image: &Path, wanted: &str) -> String {
    let Ok(bytes) = fs::read(image) else {
        return String::new();
    };
    let Ok(image) = Image::parse(&bytes) else {
        return String::new();
    };
    let symbols = image.function_symbols();
    let imports = image.imports();
    let names = symbols.iter().map(|symbol| symbol.name);
    let names = names.chain(imports.iter().map(|import| import.name));
    let mut names: Vec<(usize, String)> = names
        .map(|name| display_name(&String::from_utf8_lossy(name)))
        .map(|name| (distance(&name, wanted), name))
        .filter(|(distance, name)| *distance <= 2.min(name.len() / 2))
        .collect();
    names.sort();
    names.dedup();
    match names.first() {
        Some((_, name)) => format!("; did you mean {name}?"),
        None => String::new(),
    }
}

/// How many letters must be added, removed, changed or exchanged with their neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// What the plans of a run say of the function.
#[derive(Debug, Default)]
struct Found {
    /// In how many functions and library calls of that name the fault can happen.
    places: u32,
    /// Why not in others.
    reasons: Vec<String>,
}

impl Found {
    fn read(run: &Path, choice: &lockstep_patch::Options, injection: &Injection) -> Self {
        let ending = format!("-{}.plan", choice.digest());
        let mut found = Self::default();
        let files = fs::read_dir(run.join("plans")).into_iter().flatten();
        for file in files.flatten() {
            if !file.file_name().to_string_lossy().ends_with(&ending) {
                continue;
            }
            let bytes = own::read(&file.path()).unwrap_or_default();
            let Ok(plan) = crate::cache::checked(&bytes) else {
                continue;
            };
            let rows = plan.choices().filter(|row| row.kind == choice::FAULT);
            found.places += rows.map(|row| row.found).sum::<u32>();
            let refusals = plan.refusals();
            let refusals = refusals.filter(|refusal| is_named(refusal.name, &injection.at));
            found.reasons.extend(
                refusals.map(|refusal| String::from_utf8_lossy(refusal.reason).into_owned()),
            );
        }
        found.reasons.sort();
        found.reasons.dedup();
        found
    }

    /// Why the fault cannot happen anywhere.
    fn problem(&self, at: &str) -> Option<String> {
        match (self.places, self.reasons.as_slice()) {
            (0, []) => Some(format!("has no function {at}, and calls none")),
            (0, reasons) => Some(format!("{at} cannot be patched: {}", reasons.join("; "))),
            _ => None,
        }
    }
}

/// What a process tells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    state: u32,
    process: Option<u32>,
    thread: u32,
    call: u64,
    /// Calls by thread.
    calls: Vec<(Option<u32>, u64)>,
}

impl Report {
    fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.get(..8) != Some(&report::MAGIC_VALUE) {
            return None;
        }
        let less_one = |value: u32| value.checked_sub(1);
        let rows = bytes.get(report::FIRST_ROW..)?.chunks_exact(report::ROW);
        let used = u32_at(bytes, report::ROWS)? as usize;
        let calls = rows.take(used).filter_map(|row| {
            let thread = less_one(u32_at(row, report::ROW_THREAD)?);
            Some((thread, u64_at(row, report::ROW_CALLS)?))
        });
        Some(Self {
            state: u32_at(bytes, report::STATE)?,
            process: less_one(u32_at(bytes, report::PROCESS)?),
            thread: u32_at(bytes, report::THREAD)?,
            call: u64_at(bytes, report::CALL)?,
            calls: calls.collect(),
        })
    }
}

fn reports(run: &Path) -> Vec<Report> {
    let files = fs::read_dir(run.join(report::DIRECTORY))
        .into_iter()
        .flatten();
    let names = files.flatten().map(|file| file.path());
    let mut found: Vec<Report> = names
        .filter(|path| path.to_string_lossy().ends_with(report::SUFFIX))
        .filter_map(|path| Report::parse(&own::read(&path).ok()?))
        .collect();
    found.sort_by_key(|report| (report.process, report.thread));
    found
}

/// The rank of this process itself: inside a launcher.
pub(crate) fn own_rank() -> Option<u32> {
    let mut names = LAUNCHERS.iter().map(|launcher| launcher.rank);
    names.find_map(|name| std::env::var(name).ok()?.trim().parse().ok())
}

/// Says each thing once.
struct Teller<'a> {
    injection: &'a Injection,
    said: HashSet<String>,
    say: &'a mut (dyn FnMut(&str) + Send),
}

impl Watcher for Teller<'_> {
    fn look(&mut self, run: &Path, _events: u64) -> Option<Duration> {
        // A swap goes on after its first word.
        self.tell(&self.told_here(run), |state| state == report::HAPPENED);
        None
    }
}

impl Teller<'_> {
    /// The reports of which this process tells; inside a launcher everyone tells of their own rank.
    fn told_here(&self, run: &Path) -> Vec<Report> {
        let mut reports = reports(run);
        if let Some(own) = own_rank() {
            reports.retain(|report| report.process == Some(own));
        }
        reports
    }

    fn tell(&mut self, reports: &[Report], is_wanted: impl Fn(u32) -> bool) {
        for report in reports.iter().filter(|report| is_wanted(report.state)) {
            let sentence = sentence(report, self.injection);
            if !self.said.contains(&sentence) {
                (self.say)(&sentence);
                self.said.insert(sentence);
            }
        }
    }

    /// When all is over.
    fn finish(&mut self, run: &Path, choice: &lockstep_patch::Options, images: &Images) {
        let reports = self.told_here(run);
        self.tell(&reports, |state| state != report::COUNTING);
        let own = own_rank();
        let is_anothers = |wanted| own.is_some_and(|own| wanted != own);
        if !self.said.is_empty() || self.injection.order.process.is_some_and(is_anothers) {
            return;
        }
        let at = &self.injection.at;
        let found = Found::read(run, choice, self.injection);
        let why = match found.problem(at) {
            Some(_) if found.reasons.is_empty() => {
                let with_libraries = match images.variable() {
                    Some(_) => ", nor does a library that --images chose",
                    None => "; --images puts faults into functions of libraries, too",
                };
                format!("no program that ran has or calls a function {at}{with_libraries}")
            }
            Some(problem) => problem,
            None => calls(&reports, self.injection, own),
        };
        (self.say)(&format!("the fault did not happen: {why}"));
    }
}

/// What happened, and where.
fn sentence(report: &Report, injection: &Injection) -> String {
    let Order { kind, .. } = injection.order;
    let mut text = format!(
        "the fault happened: {} at call {} of {}",
        kind.word(),
        report.call,
        injection.at
    );
    if kind == Kind::Redirect {
        // Writing into a String cannot fail.
        let _ = write!(text, ", to {}", injection.to);
    }
    if let Some(process) = report.process {
        let _ = match report.thread {
            report::HELPER => write!(text, ", in process {process}, in a library's own thread"),
            thread => write!(text, ", in process {process}, thread {thread}"),
        };
    }
    text.push_str(match report.state {
        report::ALONE => "; no call followed there, so that it was not made",
        report::POSTPONED => "; no call followed, so that it was not made",
        report::REFUSED => "; it was made at its time after all: its arguments could not be kept",
        _ => "",
    });
    text
}

/// How often the function was called where the fault should have happened.
fn calls(reports: &[Report], injection: &Injection, own: Option<u32>) -> String {
    let Order {
        process, thread, ..
    } = injection.order;
    let at = &injection.at;
    let place = |process: Option<u32>| match (process, thread) {
        (Some(process), None | Some(0)) => format!("in process {process}"),
        (Some(process), Some(thread)) => format!("in process {process}, thread {thread}"),
        (None, None | Some(0)) => "in any process".to_owned(),
        (None, Some(thread)) => format!("in thread {thread} of any process"),
    };
    let mut most: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for report in reports {
        let rows = report.calls.iter();
        let rows = rows.filter(|(found, _)| thread.is_none() || *found == thread);
        let calls = rows.map(|(_, calls)| *calls).max().unwrap_or(0);
        let entry = most.entry(report.process).or_default();
        *entry = (*entry).max(calls);
    }
    let wanted = process.or(own);
    let calls = match wanted {
        Some(_) => most.get(&wanted).copied().unwrap_or(0),
        None => most.values().copied().max().unwrap_or(0),
    };
    let times = match calls {
        0 => "was never called".to_owned(),
        1 => "was called once".to_owned(),
        2 => "was called twice".to_owned(),
        more => format!("was called {more} times"),
    };
    let most_often = if wanted.is_none() && calls > 0 {
        " at most"
    } else {
        ""
    };
    format!("{at} {times}{most_often} {}", place(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(process: Option<u32>, thread: Option<u32>) -> Injection {
        Injection {
            order: Order {
                kind: Kind::Hang,
                call: 9,
                process,
                thread,
                records: false,
                spins: false,
                nanoseconds: 0,
                value: 0,
                float: 0,
                argument: 0,
            },
            at: "step".to_owned(),
            to: String::new(),
        }
    }

    #[test]
    fn counts_in_words() {
        let report = |process, calls: &[(u32, u64)]| Report {
            process: Some(process),
            calls: calls
                .iter()
                .map(|(thread, n)| (Some(*thread), *n))
                .collect(),
            ..Report::default()
        };
        let reports = [report(0, &[(0, 1)]), report(2, &[(0, 3), (1, 7)])];
        let say = |process, thread| calls(&reports, &order(process, thread), None);
        assert_eq!(
            say(Some(2), Some(0)),
            "step was called 3 times in process 2"
        );
        assert_eq!(
            say(Some(2), Some(1)),
            "step was called 7 times in process 2, thread 1"
        );
        assert_eq!(say(Some(0), None), "step was called once in process 0");
        assert_eq!(say(Some(1), Some(0)), "step was never called in process 1");
        assert_eq!(
            say(None, None),
            "step was called 7 times at most in any process"
        );
    }

    #[test]
    fn mistakes_that_people_make() {
        assert_eq!(distance("step", "step"), 0);
        assert_eq!(distance("step", "stpe"), 1);
        assert_eq!(distance("exchange", "exchagne_"), 2);
        assert!(distance("main", "exchange") > 2);
    }

    #[test]
    fn what_is_no_report_is_none() {
        assert_eq!(Report::parse(b""), None);
        assert_eq!(Report::parse(&[0; report::SIZE]), None);
        let mut bytes = report::MAGIC_VALUE.to_vec();
        for length in 8..report::FIRST_ROW {
            bytes.resize(length, 0);
            assert_eq!(Report::parse(&bytes), None);
        }
        bytes.resize(report::FIRST_ROW, 0xff);
        assert!(Report::parse(&bytes).is_some());
    }
}
