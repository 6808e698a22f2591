//! Whole run directories: names, functions, lines, ends, and what is hostile or missing in them.
#![allow(clippy::unwrap_used)]

use crate::writer::{Identity, Writer};
use crate::{EndKind, Error, Event, Run, SourceLine, TraceName};
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::Kind;
use lockstep_format::plan::{self, call_site, function, header, refusal, section};
use lockstep_format::process::{end, flag};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A run directory that is removed in the end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Without anything in it.
    pub(crate) fn empty() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockstep-trace-test-{}-{number}", std::process::id());
        let directory = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        directory
    }

    pub(crate) fn new() -> Self {
        let directory = Self::empty();
        for name in ["processes", "plans", "lines", "ends"] {
            fs::create_dir_all(directory.0.join(name)).unwrap();
        }
        let marker = format!(r#"{{"version":{},"codec":"seed"}}"#, crate::VERSION);
        directory.write("lockstep.json", marker.as_bytes());
        directory
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self) -> Run {
        Run::open(&self.0).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A plan with `main` at 0x1100, `step` at 0x1200, the import `MPI_Send`, a nameless function, one
/// refusal, and calls main -> step (behind 0x1110) and step -> MPI_Send (behind 0x1210).
pub(crate) fn small_plan() -> Vec<u8> {
    let mut strings = Vec::new();
    let mut text = |value: &str| {
        let place = (strings.len() as u32, value.len() as u32);
        strings.extend(value.as_bytes());
        place
    };
    let rows = [
        (0x1100, "main", function::OWN),
        (0x1200, "step", function::OWN),
        (0x3000, "MPI_Send", function::IMPORT),
        (0x1300, "+0x1300", function::OWN),
    ];
    let mut functions = Vec::new();
    for (address, name, origin) in rows {
        let mut row = [0; function::SIZE];
        let (at, length) = text(name);
        put_u64(&mut row, function::ADDRESS, address);
        put_u32(&mut row, function::NAME, at);
        put_u32(&mut row, function::NAME_LENGTH, length);
        put_u32(&mut row, function::ORIGIN, origin);
        functions.extend(row);
    }
    let mut refusals = [0; refusal::SIZE];
    for (field, value) in [(refusal::NAME, "tiny"), (refusal::REASON, "too short")] {
        let (at, length) = text(value);
        put_u32(&mut refusals, field, at);
        put_u32(&mut refusals, field + 4, length);
    }
    let mut sites = Vec::new();
    for (address, caller, callee) in [(0x1110, 0, 1), (0x1210, 1, 2)] {
        let mut row = [0; call_site::SIZE];
        put_u64(&mut row, call_site::RETURN, address);
        put_u32(&mut row, call_site::CALLER, caller);
        put_u32(&mut row, call_site::CALLEE, callee);
        sites.extend(row);
    }
    let code = [0; 8 * plan::routine::COUNT];
    let sections: [&[u8]; section::COUNT] = [
        &code,
        &[],
        &[],
        &functions,
        &refusals,
        &sites,
        &strings,
        &[],
        &[],
        &[],
        &[],
    ];
    let mut bytes = vec![0; header::SIZE];
    put(&mut bytes, header::MAGIC, &plan::MAGIC);
    put_u32(&mut bytes, header::VERSION, plan::VERSION);
    put_u32(&mut bytes, header::SYMBOLS, rows.len() as u32);
    for (index, content) in sections.into_iter().enumerate() {
        let start = bytes.len() as u32;
        put_u32(&mut bytes, header::SECTIONS + 8 * index, start);
        put_u32(
            &mut bytes,
            header::SECTIONS + 8 * index + 4,
            content.len() as u32,
        );
        bytes.extend(content);
    }
    let sum = check::crc32c(&bytes[header::ROLE..]);
    put_u32(&mut bytes, header::CHECK, sum);
    bytes
}

const LINES: &str = r#"{"functions":{"0x1100":["a.c",1],"0x1200":["a.c",10]},
    "calls":{"0x1110":["a.c",5],"0x1210":["a.c",12]}}"#;

pub(crate) fn facts(rank: Option<u32>) -> String {
    let mut facts = "host\tsomewhere-else\nprogram\t/opt/app\n\
                     image\t/opt/app\tab.plan\tmain\t16\t4\t0x400000\n\
                     untraced\t/lib/x.so\tno\\tplan\nfuture\twords\n"
        .to_owned();
    if let Some(rank) = rank {
        facts += &format!("environment\tPMI_RANK\t{rank}\nenvironment\tPMI_JOBID\tj\n");
    }
    facts
}

pub(crate) fn identity(pid: u32, flags: u32) -> Identity {
    Identity {
        pid,
        start_time: 7,
        created: u64::from(pid),
        flags,
        ..Identity::default()
    }
}

/// main called step, which called MPI_Send and is still in it.
fn process(rank: u32) -> Writer {
    let pid = 100 + rank;
    let mut writer = Writer::new(
        Kind::Seed,
        identity(pid, flag::MPI),
        &facts(Some(rank)),
        u64::MAX,
    );
    let thread = writer.thread(pid, 0);
    for symbol in [16, 17, 18, 0, 18] {
        writer.event(thread, symbol);
    }
    for (depth, address) in [0x7000, 0x40_1110, 0x40_1200].into_iter().enumerate() {
        writer.mirror(thread, depth, address);
    }
    writer.commit(thread);
    writer.event(thread, 0);
    writer.call(thread, 18, 0x40_1210);
    writer
}

fn two_ranks() -> Directory {
    let directory = Directory::new();
    directory.write("plans/ab.plan", &small_plan());
    directory.write("lines/ab.json", LINES.as_bytes());
    for rank in 0..2 {
        let name = format!("processes/somewhere-else-{}-7-0.lockstep", 100 + rank);
        directory.write(&name, process(rank).bytes());
    }
    directory
}

fn line(line: u32) -> Option<SourceLine> {
    Some(SourceLine {
        file: "a.c".to_owned(),
        line,
    })
}

#[test]
fn names_functions_lines_and_open_calls() {
    let directory = two_ranks();
    let run = directory.open();
    assert_eq!(run.notes, Vec::<String>::new());
    assert!(run.is_mpi);
    assert_eq!(run.codec, Kind::Seed);
    let names: Vec<&str> = run.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["main", "step", "MPI_Send", "app+0x1300"]);
    assert_eq!(run.functions[2].image, "library");
    assert!(run.functions[2].imported && !run.functions[1].imported);
    assert_eq!(run.functions[1].source, line(10));
    assert_eq!(run.functions[0].calls.len(), 1);

    let thread = run.trace(TraceName::new(1, 0)).unwrap();
    assert_eq!((thread.events, thread.unverified, thread.tid), (7, 2, 101));
    let open: Vec<_> = thread
        .open
        .iter()
        .map(|frame| {
            (
                run.function(frame.function).name.as_str(),
                frame.called_at.clone(),
            )
        })
        .collect();
    assert_eq!(
        open,
        [("main", None), ("step", line(5)), ("MPI_Send", line(12))]
    );
    assert_eq!(thread.events().count(), 7);
    assert_eq!(
        thread.events().last(),
        Some(Event::Call(thread.open[2].function))
    );

    let coverage = &run.processes[0].coverage;
    assert_eq!(coverage.traced, 4);
    assert_eq!(coverage.refused[0].reason, "too short");
    assert_eq!(
        coverage.untraced_images,
        [("/lib/x.so".to_owned(), "no\tplan".to_owned())]
    );
}

#[test]
fn ends() {
    let directory = two_ranks();
    directory.write(
        "ends/somewhere-else-100-7.json",
        br#"{"kind":"signalled","code":11}"#,
    );
    directory.write("ends/somewhere-else-101-7.json", b"{");
    // A shell that exec'ed a program, which exited.
    for (count, told) in [(0, (end::EXEC, 0)), (1, (end::EXITED, 3))] {
        let identity = Identity {
            exec_count: count,
            end: told,
            ..identity(300, 0)
        };
        let writer = Writer::new(Kind::Seed, identity, &facts(None), u64::MAX);
        directory.write(
            &format!("processes/somewhere-else-300-7-{count}.lockstep"),
            writer.bytes(),
        );
    }
    let run = directory.open();
    let ends: Vec<_> = run
        .processes
        .iter()
        .map(|process| {
            (
                process.name.to_string(),
                process.end.kind,
                process.end.code,
                process.end.certain,
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("0".to_owned(), EndKind::Signalled, Some(11), true),
            ("1".to_owned(), EndKind::Running, None, false),
            ("2".to_owned(), EndKind::Exited, Some(3), true),
            ("2~1".to_owned(), EndKind::Exited, None, true),
        ]
    );
    assert_eq!(run.traces().count(), 2);
    assert!(
        run.notes
            .iter()
            .any(|note| note.starts_with("ends/somewhere-else-101-7.json"))
    );
}

#[test]
fn without_its_plan_a_run_has_its_events() {
    let directory = two_ranks();
    fs::remove_file(directory.0.join("plans/ab.plan")).unwrap();
    let run = directory.open();
    let thread = run.trace(TraceName::new(0, 0)).unwrap();
    assert_eq!((thread.events, thread.open.len()), (7, 3));
    assert_eq!(run.function(thread.open[2].function).name, "app+?2");
    assert!(
        run.notes
            .iter()
            .any(|note| note.starts_with("plans/ab.plan"))
    );
}

#[test]
fn links_out_of_the_run_are_not_followed() {
    let other = two_ranks();
    let directory = Directory::new();
    let name = "processes/somewhere-else-100-7-0.lockstep";
    std::os::unix::fs::symlink(other.0.join(name), directory.0.join(name)).unwrap();
    fs::remove_dir(directory.0.join("plans")).unwrap();
    std::os::unix::fs::symlink(other.0.join("plans"), directory.0.join("plans")).unwrap();
    let run = directory.open();
    assert!(run.processes.is_empty());
    let noted = |start: &str| run.notes.iter().any(|note| note.starts_with(start));
    assert!(
        noted(name) && noted("plans: ") && noted("no process"),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_plan_is_only_looked_for_in_the_run() {
    let directory = two_ranks();
    let facts = facts(Some(0)).replace("ab.plan", "../plans/ab.plan");
    let writer = Writer::new(Kind::Seed, identity(100, flag::MPI), &facts, u64::MAX);
    directory.write("processes/somewhere-else-100-7-0.lockstep", writer.bytes());
    let run = directory.open();
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("expected a plain file name"))
    );
}

#[test]
fn what_is_no_run_is_refused() {
    let refused = |path: &Path| Run::open(path).unwrap_err().to_string();
    let directory = Directory::new();
    assert!(refused(&directory.0.join("none")).ends_with("found nothing"));
    assert!(refused(&directory.0.join("lockstep.json")).ends_with("found a file"));
    assert!(refused(&directory.0.join("plans")).ends_with("a directory without it"));
    directory.write("lockstep.json", br#"{"version":99}"#);
    let error = Run::open(&directory.0).unwrap_err();
    assert!(
        matches!(&error, Error::Version { found, .. } if found == "99"),
        "{error}"
    );
    directory.write("lockstep.json", b"not json");
    assert!(refused(&directory.0).contains("that is no JSON"));
}

#[test]
fn a_running_process_is_read_up_to_some_moment() {
    let directory = two_ranks();
    let name = directory
        .0
        .join("processes/somewhere-else-100-7-0.lockstep");
    let mut writer = process(0);
    let file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&name)
        .unwrap();
    // Before anybody reads: a file that shrinks under a mapping is a fault.
    writer.go_live(file);
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A function's number is its place in the stream, so that any prefix is known.
            let mut number = 0u32;
            while stop.load(Ordering::Relaxed) == 0 && number < 300_000 {
                writer.event(0, 16 + number % 4);
                number += 1;
            }
        });
        let mut latest = 0;
        for _ in 0..25 {
            let run = directory.open();
            let thread = run.trace(TraceName::new(0, 0)).unwrap();
            assert_eq!(thread.damage, None);
            assert!(thread.events >= latest, "{} after {latest}", thread.events);
            latest = thread.events;
            let events: Vec<Event> = thread.events().collect();
            assert_eq!(events.len() as u64, thread.events);
            let later = events.iter().skip(7).zip(0..);
            for (event, number) in later {
                assert_eq!(*event, Event::Call(crate::FunctionId(number % 4)));
            }
        }
        stop.store(1, Ordering::Relaxed);
        assert!(latest > 1000);
    });
}

/// `cargo test --release -p lockstep-trace -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr)]
fn speed() {
    let resident = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap();
        line.trim_start_matches("VmHWM:").trim().to_owned()
    };
    let mut state = 1u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32
    };
    for (name, is_noisy) in [("periodic", false), ("branches", true)] {
        let directory = two_ranks();
        for rank in 0..2 {
            let pid = 100 + rank;
            let mut writer = Writer::new(
                Kind::Seed,
                identity(pid, flag::MPI),
                &facts(Some(rank)),
                u64::MAX,
            );
            let thread = writer.thread(pid, 0);
            writer.event(thread, 16);
            for _ in 0..5_000_000 {
                let callee = if is_noisy { 17 + random() % 2 } else { 17 };
                for symbol in [callee, 18, 0, 0] {
                    writer.event(thread, symbol);
                }
            }
            let file = format!("processes/somewhere-else-{pid}-7-0.lockstep");
            directory.write(&file, writer.bytes());
        }
        let start = std::time::Instant::now();
        let run = directory.open();
        let opening = start.elapsed();
        let events: u64 = run.traces().map(|thread| thread.events).sum();
        let start = std::time::Instant::now();
        let count = run.traces().flat_map(|thread| thread.events()).count();
        assert_eq!(count as u64, events);
        eprintln!(
            "{name:9} {events} events: open {opening:?} on all cores, iterate {:?}, peak {}",
            start.elapsed(),
            resident()
        );
    }
}
