//! Traces that other tools really wrote, as runs.

use lockstep_testkit::{Recipe, Scratch, command, lockstep, tools};
use std::path::{Path, PathBuf};

/// A run that was imported.
struct Imported(PathBuf);

impl Imported {
    fn new(scratch: &Scratch, name: &str, from: &str, path: &Path) -> Self {
        let run = scratch.join(name);
        let mut command = lockstep(&["import", "--from", from, "-o"]);
        let _ = command::run(command.arg(&run).arg(path)).success();
        Self(run)
    }

    fn text(&self, words: &[&str]) -> String {
        let mut command = lockstep(&words[..1]);
        command.arg(&self.0).args(&words[1..]);
        command::run(&mut command).success().stdout
    }

    fn events(&self, trace: &str) -> Vec<String> {
        let text = self.text(&["events", "-t", trace]);
        text.lines().map(str::to_owned).collect()
    }
}

/// The directory with files of the original tool; they are not ours to keep, so this may be absent.
fn original_files() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("shared/data/parlot-run-16690"))
        .find(|directory| directory.is_dir());
    if found.is_none() {
        tools::note("SKIPPED: no shared/data/parlot-run-16690 beside this checkout");
    }
    found
}

#[test]
fn files_of_parlot_are_what_its_authors_decoded() {
    let Some(files) = original_files() else {
        return;
    };
    let read = |suffix: &str| {
        let path = files.join(format!("parlotm.attenborough.16690.{suffix}"));
        std::fs::read_to_string(path).expect("text")
    };
    // Names in the authors' text are those of other lines from 1153 on.
    let info = read("info");
    let right: Vec<&str> = info.lines().skip(2).take(1152).collect();
    let scratch = Scratch::new("parlot");
    let run = Imported::new(&scratch, "run", "parlot", &files);
    for thread in 0..5 {
        let text = read(&format!("{thread}.txt"));
        let events = run.events(&format!("0.{thread}"));
        assert_eq!(events.len(), text.lines().count());
        for (event, line) in events.iter().zip(text.lines()) {
            match event.strip_prefix("call ") {
                None => assert_eq!(line, "[ret]"),
                Some(name) if right.contains(&name) => assert_eq!(line, name),
                Some(_) => {}
            }
        }
    }
    // The commands work on it.
    let info = run.text(&["info"]);
    assert!(
        info.contains("attenborough") && info.contains("sched1"),
        "{info}"
    );
    assert!(run.text(&["tree", "-t", "0.1"]).contains("runtime.usleep"));
    assert!(run.text(&["loops"]).contains("L0"));
    assert!(run.text(&["calls"]).contains("runtime.futex"));
    assert!(run.text(&["stack", "-t", "0.1"]).contains("runtime.sysmon"));
    let mut compare = lockstep(&["compare"]);
    let _ = command::run(compare.arg(&run.0).arg(&run.0)).success();
}

/// What uftrace recorded of a program.
fn uftrace(scratch: &Scratch, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let mut recipe = Recipe::new(source).flag("-g").flag("-O1").flag("-pg");
    for flag in flags {
        recipe = recipe.flag(flag);
    }
    let data = scratch.join(name);
    let mut record = command::command(&["uftrace", "record", "--no-event", "-d"]);
    let _ = command::run(record.arg(&data).arg(recipe.build()));
    data
}

#[test]
fn a_directory_of_uftrace_is_what_uftrace_says_of_it() {
    if !tools::require(&["uftrace", "gcc", "g++"]) {
        return;
    }
    let scratch = Scratch::new("uftrace");
    for (source, flags) in [
        ("threads/odd_even.c", &["-pthread"][..]),
        ("c/recursion.c", &[]),
        ("c/recursion.c", &["-no-pie", "-fno-pie"]),
        ("c/longjmp.c", &[]),
    ] {
        let data = uftrace(&scratch, source, "data", flags);
        // The same through uftrace's own export: other names for processes, the same calls.
        let mut dump = command::command(&["uftrace", "dump", "--chrome", "-d"]);
        let json = command::run(dump.arg(&data)).success().stdout;
        let file = scratch.join("dump.json");
        std::fs::write(&file, json).expect("a file");
        let direct = Imported::new(&scratch, "direct", "uftrace", &data);
        let around = Imported::new(&scratch, "around", "chrome", &file);
        let names = |run: &Imported| {
            let info: serde_json::Value =
                serde_json::from_str(&run.text(&["info", "--json"])).expect("JSON");
            let threads = info["processes"][0]["threads"].as_array().cloned();
            threads.unwrap_or_default().len()
        };
        assert_eq!(names(&direct), names(&around), "{source}");
        let calls = |run: &Imported, trace: &str| -> Vec<String> {
            let events = run.events(trace);
            events
                .into_iter()
                .filter(|it| it.starts_with("call "))
                .collect()
        };
        let mut count = 0;
        for thread in 0..names(&direct) {
            let trace = format!("0.{thread}");
            let direct = calls(&direct, &trace);
            assert_eq!(direct, calls(&around, &trace), "{source} {trace}");
            count += direct.len();
        }
        assert!(count > 10, "{source}: {count}");
        for run in ["data", "direct", "around"] {
            std::fs::remove_dir_all(scratch.join(run)).expect("it is ours");
        }
    }
}

#[test]
fn only_runs_are_replaced_and_only_when_the_new_one_is_whole() {
    let scratch = Scratch::new("import-place");
    let good = scratch.join("good.json");
    std::fs::write(&good, r#"[{"name":"f","ph":"B","ts":1,"pid":1,"tid":1}]"#).expect("a file");
    let bad = scratch.join("bad.json");
    std::fs::write(&bad, "[{]").expect("a file");
    let run = Imported::new(&scratch, "run", "chrome", &good);
    let attempt = |path: &Path, output: &Path, force: bool| {
        let mut command = lockstep(&["import", "--from", "chrome", "-o"]);
        command
            .arg(output)
            .arg(path)
            .args(force.then_some("--force"));
        let outcome = command::run(&mut command);
        (outcome.status, outcome.stderr)
    };
    let (status, text) = attempt(&good, &run.0, false);
    assert_eq!(status, 2);
    assert!(
        text.contains("expected a new path, found a directory"),
        "{text}"
    );
    let (status, text) = attempt(&bad, &run.0, true);
    assert_eq!(status, 2);
    assert!(text.contains("bad.json, byte 2: expected"), "{text}");
    assert_eq!(run.events("0.0"), ["call f"]);
    assert_eq!(attempt(&good, &run.0, true).0, 0);
    assert_eq!(run.events("0.0"), ["call f"]);
    let (status, text) = attempt(&good, scratch.path(), true);
    assert_eq!(status, 2);
    assert!(text.contains("expected a run"), "{text}");
}

/// Writes an archive of two ranks, with attributes and events that are no calls, and more than one chunk of events.
const ARCHIVE: &str = "
import otf2, sys
from otf2.enums import *
with otf2.writer.open(sys.argv[1], timer_resolution=1000000) as trace:
    regions = [trace.definitions.region('function %d' % i, source_file='a.c', begin_line_number=i) for i in range(70000)]
    root = trace.definitions.system_tree_node('root')
    attribute = trace.definitions.attribute('text', '', Type.STRING)
    parameter = trace.definitions.parameter('p', ParameterType.UINT64)
    for rank in range(2):
        group = trace.definitions.location_group('MPI Rank %d' % (1 - rank), system_tree_parent=root)
        location = trace.definitions.location('thread', group=group)
        writer = trace.event_writer_from_location(location)
        writer.enter(100, regions[69999], {attribute: 'hello'})
        writer.parameter_unsigned_int(101, parameter, 7)
        for i in range(60000):
            writer.enter(200 + 2 * i, regions[i + rank])
            writer.leave(201 + 2 * i, regions[i + rank])
        writer.enter(900000, regions[0])
";

#[test]
fn an_archive_that_otf2_wrote() {
    let Some(python) = tools::python_with("otf2") else {
        return;
    };
    let scratch = Scratch::new("otf2-written");
    let archive = scratch.join("archive");
    let mut write = command::command(&[python, "-c", ARCHIVE]);
    let _ = command::run(write.arg(&archive)).success();
    let run = Imported::new(&scratch, "run", "otf2", &archive.join("traces.otf2"));
    for (trace, shift) in [("0.0", 1), ("1.0", 0)] {
        let mut expected = vec!["call function 69999".to_owned()];
        for i in 0..60_000 {
            expected.extend([format!("call function {}", i + shift), "return".to_owned()]);
        }
        expected.push("call function 0".to_owned());
        assert_eq!(run.events(trace), expected);
    }
    let times = run.text(&["events", "-t", "0.0", "--time"]);
    assert!(
        times
            .lines()
            .last()
            .is_some_and(|line| line.contains("0.899900")),
        "{trace}",
        trace = times.lines().last().unwrap_or_default()
    );
    assert!(run.text(&["stack", "-t", "1.0"]).contains("function 0"));
}
