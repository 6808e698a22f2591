//! Exports, read back by the tools that they are for, and compared with what our own commands print.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recipe, Recording, Scratch, command, lockstep, record, tools};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A recorded program.
fn recorded(scratch: &Scratch, source: &str, flags: &[&str]) -> Option<Recording> {
    if !tools::require(&["gcc"]) {
        return None;
    }
    let mut recipe = Recipe::new(source).flag("-g").flag("-O2");
    for flag in flags {
        recipe = recipe.flag(flag);
    }
    let program = recipe.build();
    let recording = record(scratch, &[], &[program.as_os_str()]);
    assert_eq!(recording.outcome.status, 0, "{recording:#?}");
    Some(recording)
}

/// Both kinds of program that matter here: several threads; tail calls, a thousand deep.
fn recordings(scratch: &Scratch) -> Vec<Recording> {
    [
        recorded(scratch, "threads/odd_even.c", &["-pthread"]),
        recorded(scratch, "c/tail_calls.c", &["-U_FORTIFY_SOURCE"]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn export(run: &Recording, format: &str, options: &[&str]) -> PathBuf {
    let file = run.directory.with_extension(format);
    let mut command = lockstep(&["export", "--force", "--to", format, "-o"]);
    let outcome = command::run(command.arg(&file).arg(&run.directory).args(options));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    file
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("the export is text")
}

fn parsed(file: &Path) -> Value {
    serde_json::from_str(&read(file)).expect("the export is JSON")
}

/// Calls by function, as `lockstep calls` counts them.
fn calls(run: &Recording) -> BTreeMap<String, u64> {
    let calls = run.json(&["calls"]);
    let mut sums = BTreeMap::new();
    for row in calls["functions"].as_array().expect("functions") {
        let name = row["name"].as_str().expect("a name").to_owned();
        *sums.entry(name).or_default() += row["calls"].as_u64().expect("a count");
    }
    sums
}

/// The events of a trace in the nested view: a call's name, or nothing for a return.
fn events(run: &Recording, trace: &str) -> Vec<Option<String>> {
    let text = run.text(&["events", "-t", trace]);
    text.lines()
        .map(|line| line.strip_prefix("call ").map(str::to_owned))
        .collect()
}

#[test]
fn callgrind_annotate_counts_the_same_calls() {
    if !tools::require(&["callgrind_annotate"]) {
        return;
    }
    let scratch = Scratch::new("callgrind");
    for run in recordings(&scratch) {
        let file = export(&run, "callgrind", &[]);
        let mut annotate = command::command(&[
            "callgrind_annotate",
            "--threshold=100",
            "--show-percs=no",
            "--show=Calls",
            "--auto=no",
        ]);
        let text = command::run(annotate.arg(&file)).success().stdout;
        let expected = calls(&run);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for line in text.lines() {
            // `1,234  /path/file.c:name [image]`
            let Some((number, rest)) = line.trim().split_once("  ") else {
                continue;
            };
            let Ok(number) = number.replace(',', "").parse::<u64>() else {
                continue;
            };
            let rest = rest.split(" [").next().unwrap_or_default();
            match rest.rsplit_once(':') {
                Some((_, name)) => *found.entry(name.to_owned()).or_default() += number,
                None => assert_eq!(number, expected.values().sum::<u64>(), "{line}"),
            }
        }
        assert_eq!(found, expected, "{text}");
        // What main led to is everything, with two exceptions at most: what runs before and after it.
        assert!(read(&file).contains("\nfn=("));
    }
}

#[test]
fn graphviz_reads_the_call_graph() {
    if !tools::require(&["dot"]) {
        return;
    }
    let scratch = Scratch::new("dot");
    for run in recordings(&scratch) {
        let file = export(&run, "dot", &[]);
        let mut draw = command::command(&["dot", "-Tplain"]);
        let text = command::run(draw.arg(&file)).success().stdout;
        let count = |word: &str| text.lines().filter(|it| it.starts_with(word)).count();
        assert_eq!(count("node "), calls(&run).len());
        let graph = run.json(&["calls", "--graph"]);
        assert_eq!(
            count("edge "),
            graph["edges"].as_array().map_or(0, Vec::len)
        );
        let svg = command::run(command::command(&["dot", "-Tsvg"]).arg(&file)).success();
        assert!(svg.stdout.contains("</svg>"));
    }
}

#[test]
fn collapsed_stacks_are_those_of_the_events() {
    let scratch = Scratch::new("collapsed");
    for run in recordings(&scratch) {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for trace in run.traces() {
            let mut stack: Vec<String> = Vec::new();
            for event in events(&run, &trace) {
                match event {
                    Some(name) => {
                        stack.push(name);
                        *expected.entry(stack.join(";")).or_default() += 1;
                    }
                    None => drop(stack.pop()),
                }
            }
        }
        let text = read(&export(&run, "collapsed", &[]));
        let found: BTreeMap<String, u64> = text
            .lines()
            .map(|line| {
                let (stack, count) = line.rsplit_once(' ').expect("a count");
                (stack.to_owned(), count.parse().expect("a number"))
            })
            .collect();
        assert_eq!(found.len(), text.lines().count());
        assert_eq!(found, expected);
    }
}

#[test]
fn speedscope_profiles_fit_its_schema_and_the_events() {
    let scratch = Scratch::new("speedscope");
    for run in recordings(&scratch) {
        let file = export(&run, "speedscope", &["--every-call"]);
        if let Some(python) = tools::python_with("jsonschema") {
            let schema = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/commands/speedscope.schema.json"
            );
            let script = "import json, jsonschema, sys\n\
                jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))";
            let mut check = command::command(&[python, "-c", script]);
            let _ = command::run(check.arg(&file).arg(schema)).success();
        }
        let whole = parsed(&file);
        let frames = whole["shared"]["frames"].as_array().expect("frames");
        let traces = run.traces();
        let profiles = whole["profiles"].as_array().expect("profiles");
        assert_eq!(profiles.len(), traces.len());
        for (profile, trace) in profiles.iter().zip(&traces) {
            let mut open = Vec::new();
            let mut last = profile["startValue"].as_u64().expect("a start");
            let mut found = Vec::new();
            for event in profile["events"].as_array().expect("events") {
                let at = event["at"].as_u64().expect("a time");
                assert!(at >= last);
                last = at;
                let frame = event["frame"].as_u64().expect("a frame");
                let name = frames[frame as usize]["name"].as_str().expect("a name");
                if event["type"] == "O" {
                    open.push(frame);
                    found.push(Some(name.to_owned()));
                } else {
                    assert_eq!(open.pop(), Some(frame));
                    found.push(None);
                }
            }
            assert!(open.is_empty());
            assert_eq!(profile["endValue"], last);
            let expected = events(&run, trace);
            assert_eq!(found[..expected.len()], expected);
            assert!(found[expected.len()..].iter().all(Option::is_none));
        }
    }
}

#[test]
fn json_has_every_event() {
    let scratch = Scratch::new("json");
    for run in recordings(&scratch) {
        for options in [&[][..], &["-t", "0.0"]] {
            let whole = parsed(&export(&run, "json", options));
            assert_eq!(whole["lockstep_events"], 2);
            // A clock cannot be told from a program that is over at once.
            let is_known = whole["clock"] == "recorded" || whole["clock"] == "logical";
            assert!(is_known);
            for trace in whole["traces"].as_array().expect("traces") {
                let name = trace["trace"].as_str().expect("a name");
                let text = run.text(&["events", "-t", name, "--raw", "--ids"]);
                let found: Vec<String> = trace["events"]
                    .as_array()
                    .expect("events")
                    .iter()
                    .map(|event| match event[0].as_str() {
                        Some("call") => format!("call {}", event[2]),
                        other => other.expect("a word").to_owned(),
                    })
                    .collect();
                assert_eq!(found, text.lines().collect::<Vec<_>>(), "{name}");
            }
        }
    }
}

#[test]
fn nothing_is_replaced_or_left_behind() {
    let scratch = Scratch::new("export-place");
    let Some(run) = recorded(&scratch, "c/leaf_calls.c", &[]) else {
        return;
    };
    let file = export(&run, "dot", &[]);
    let attempt = |words: &[&str], output: &Path| {
        let mut command = lockstep(&["export"]);
        command::run(
            command
                .arg(&run.directory)
                .args(words)
                .arg("-o")
                .arg(output),
        )
    };
    let expect = |outcome: command::Outcome, part: &str| {
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
        assert_eq!(outcome.stdout, "");
    };
    let before = read(&file);
    expect(
        attempt(&["--to", "json"], &file),
        "expected a new path, found a file",
    );
    assert_eq!(read(&file), before);
    let directory = scratch.join("directory");
    std::fs::create_dir(&directory).expect("a directory");
    let taken = attempt(&["--to", "json", "--force"], &directory);
    expect(taken, "expected a new path, found a directory");
    let nowhere = scratch.join("missing/file");
    expect(attempt(&["--to", "json"], &nowhere), "cannot be written");
    let file = scratch.join("new");
    expect(
        attempt(&["--to", "json", "-t", "7.0"], &file),
        "expected a trace 7.0",
    );
    let left: Vec<_> = std::fs::read_dir(scratch.path())
        .expect("the scratch directory")
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with('.') || name == "new")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let outcome = attempt(&["--to", "collapsed"], Path::new("-"));
    assert!(outcome.stdout.starts_with("main"), "{outcome:#?}");
}

/// Decodes a trace with Perfetto's own descriptors: one line a slice's begin (its name, its arguments) or end.
const DECODE: &str = "
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p
trace = p.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
names, arguments, tracks, last = {}, {}, {}, {}
for packet in trace.packet:
    for it in packet.interned_data.event_names: names[it.iid] = it.name
    for it in packet.interned_data.debug_annotation_names: arguments[it.iid] = it.name
    if packet.HasField('track_descriptor'):
        if packet.track_descriptor.HasField('thread'):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.thread.thread_name
        continue
    event = packet.track_event
    track = tracks[event.track_uuid]
    assert packet.timestamp >= last.get(track, 0)
    last[track] = packet.timestamp
    if event.type == event.TYPE_SLICE_BEGIN:
        told = [arguments[it.name_iid] for it in event.debug_annotations]
        print(track, names[event.name_iid], *told)
    else:
        assert event.type == event.TYPE_SLICE_END
        print(track)
";

#[test]
fn perfetto_decodes_every_call() {
    let scratch = Scratch::new("perfetto");
    for run in recordings(&scratch) {
        let file = export(&run, "perfetto", &["--every-call"]);
        if tools::require(&["protoc"]) {
            let bytes = std::fs::File::open(&file).expect("the export");
            let outcome = std::process::Command::new("protoc")
                .arg("--decode_raw")
                .stdin(bytes)
                .output()
                .expect("protoc runs");
            assert!(outcome.status.success(), "{outcome:?}");
        }
        let Some(python) = tools::python_with("perfetto") else {
            continue;
        };
        let mut decode = command::command(&[python, "-c", DECODE]);
        decode
            .env("PYTHONPATH", tools::python_packages())
            .arg(&file);
        let text = command::run(&mut decode).success().stdout;
        for trace in run.traces() {
            let found: Vec<Option<String>> = text
                .lines()
                .filter_map(|line| {
                    let mut words = line.split(' ');
                    (words.next() == Some(&trace)).then(|| words.next().map(str::to_owned))
                })
                .collect();
            assert_eq!(found, events(&run, &trace), "{trace}");
        }
    }
}

/// Prints a table's rows in the order in which calls begin, a trace at a time.
const ROWS: &str = "
import duckdb, sys
table = duckdb.read_parquet(sys.argv[1])
columns = 'trace, depth, end_event is not null, begin_earliest, end_latest, arguments, line, dest, tag, function'
for row in table.order('trace, begin_event').project(columns).fetchall():
    print(*row, sep='\\t')
";

#[test]
fn duckdb_reads_every_call() {
    let Some(python) = tools::python_with("duckdb") else {
        return;
    };
    let scratch = Scratch::new("parquet");
    let mut runs = recordings(&scratch);
    // Calls that never return.
    if tools::require(&["gcc"]) {
        let program = Recipe::new("c/ends.c").flag("-g").build();
        runs.push(record(
            &scratch,
            &[],
            &[program.as_os_str(), "exit".as_ref()],
        ));
    }
    if Mpi::OpenMpi.is_here() {
        let _a_turn = a_turn();
        runs.push(Mpi::OpenMpi.record(&scratch, "odd_even.c", 4, "--healthy"));
    }
    for run in runs {
        let file = export(&run, "parquet", &[]);
        let mut rows = command::command(&[python, "-c", ROWS]);
        rows.env("PYTHONPATH", tools::python_packages()).arg(&file);
        let text = command::run(&mut rows).success().stdout;
        for trace in run.traces() {
            let mut found = Vec::new();
            // Whether each open call ends.
            let mut open: Vec<bool> = Vec::new();
            let close = |open: &mut Vec<bool>, found: &mut Vec<Option<String>>, depth| {
                while open.len() > depth && open.pop() == Some(true) {
                    found.push(None);
                }
            };
            let rows = text.lines().map(|row| row.split('\t').collect::<Vec<_>>());
            for row in rows.filter(|row| row[0] == trace) {
                let [
                    _,
                    depth,
                    ends,
                    begin,
                    end,
                    arguments,
                    line,
                    dest,
                    tag,
                    function,
                ] = row[..]
                else {
                    panic!("{row:?}");
                };
                let depth: usize = depth.parse().expect("a depth");
                close(&mut open, &mut found, depth);
                assert_eq!(open.len(), depth, "{row:?}");
                open.push(ends == "True");
                let time = |text: &str| text.parse::<u64>().ok();
                assert!(
                    time(end).is_none_or(|end| time(begin) <= Some(end)),
                    "{row:?}"
                );
                if function == "MPI_Send" {
                    assert!(arguments.contains(&format!(r#""dest":{dest},"#)), "{row:?}");
                    assert!(tag.parse::<u32>().is_ok(), "{row:?}");
                    assert!(line.parse::<u32>().is_ok(), "{row:?}");
                }
                found.push(Some(function.to_owned()));
            }
            close(&mut open, &mut found, 0);
            assert_eq!(found, events(&run, &trace), "{trace}");
        }
    }
}

#[test]
fn otf2_print_shows_every_call_and_its_archive_comes_back() {
    if !tools::require(&["otf2-print"]) {
        return;
    }
    let scratch = Scratch::new("otf2");
    let mut runs = recordings(&scratch);
    // Its functions have names that are mangled in symbol tables.
    if tools::require(&["g++"]) {
        let program = Recipe::new("cpp/templates.cpp").flag("-g").build();
        runs.push(record(&scratch, &[], &[program.as_os_str()]));
    }
    for run in runs {
        let archive = run.directory.with_extension("otf2");
        let mut command = lockstep(&["export", "--to", "otf2", "-o"]);
        let _ = command::run(command.arg(&archive).arg(&run.directory)).success();
        let mut print = command::command(&["otf2-print"]);
        let text = command::run(print.arg(archive.join("traces.otf2")))
            .success()
            .stdout;
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let mut leaves = 0;
        for line in text.lines() {
            // `ENTER   0   12345  Region: "main" <0>`
            let name = line.split('"').nth(1).unwrap_or_default();
            match line.split(' ').next() {
                Some("ENTER") => *found.entry(name.to_owned()).or_default() += 1,
                Some("LEAVE") => leaves += 1,
                _ => {}
            }
        }
        assert_eq!(found, calls(&run));
        let returns = |trace: &String| events(&run, trace).iter().filter(|it| it.is_none()).count();
        assert_eq!(leaves, run.traces().iter().map(returns).sum::<usize>());

        let again = run.directory.with_extension("again");
        let mut command = lockstep(&["import", "--from", "otf2", "-o"]);
        let _ = command::run(command.arg(&again).arg(&archive)).success();
        let again = Recording {
            directory: again,
            outcome: run.outcome.clone(),
        };
        assert_eq!(again.traces(), run.traces());
        for trace in run.traces() {
            assert_eq!(events(&again, &trace), events(&run, &trace), "{trace}");
        }
        // The same program, by image and name: alike but for tail calls, which are no calls of their own there.
        let (status, found) = run.compare(&again, &[]);
        assert!(found["verdict"].is_string() && status < 2);
        let hands_over = run.traces().iter().any(|trace| {
            let text = run.text(&["events", "--raw", "-t", trace]);
            text.lines().any(|line| line == "tail")
        });
        assert!(hands_over || status == 0, "{found:#}");
    }
}

/// Devices, pipes and links stay what they are; what is written goes through them.
#[test]
fn an_export_into_what_is_no_file() {
    let scratch = Scratch::new("export-stream");
    let Some(run) = recorded(&scratch, "c/tail_calls.c", &["-U_FORTIFY_SOURCE"]) else {
        return;
    };
    let export = |words: &[&str], path: &Path| {
        let mut command = lockstep(&["export", "--to", "collapsed"]);
        command.args(words).arg("-o").arg(path).arg(&run.directory);
        command::run(&mut command)
    };
    let expected = export(&[], Path::new("-")).success().stdout;
    assert_eq!(
        export(&[], Path::new("/dev/stdout")).success().stdout,
        expected
    );
    let (file, link) = (scratch.join("file"), scratch.join("link"));
    std::fs::write(&file, "before").expect("scratch");
    std::os::unix::fs::symlink(&file, &link).expect("scratch");
    let refusal = export(&[], &link);
    assert!(refusal.stderr.contains("--force"), "{refusal:#?}");
    let _ = export(&["--force"], &link).success();
    assert!(link.is_symlink());
    assert_eq!(read(&file), expected);
    let missing = scratch.join("no/such/directory");
    let refusal = export(&[], &missing).stderr;
    assert_eq!(refusal.matches("No such file").count(), 1, "{refusal}");
}
