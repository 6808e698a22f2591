//! Foreign traces of known events, read and compared; and what is wrong with others.
#![allow(clippy::unwrap_used)]

mod made;

use lockstep_exchange::{Error, Origin, import};
use lockstep_testkit::Scratch;
use lockstep_trace::{Event, Run, Thread, When};
use made::{Step, chrome_json, name, otf2_files, parlot_files, steps, uftrace_files};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn try_import(origin: Origin, path: &Path, scratch: &Scratch) -> Result<Run, Error> {
    let output = scratch.join("run");
    let _ = fs::remove_dir_all(&output);
    let imported = import(origin, path, &output, false)?;
    imported.draft.keep()?;
    let run = Run::open(&output).unwrap();
    assert_eq!(run.notes, Vec::<String>::new());
    Ok(run)
}

fn write(directory: &Path, names: &[&str], files: &[Vec<u8>]) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir(directory).unwrap();
    for (name, file) in names.iter().zip(files) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

fn told(run: &Run, thread: &Thread) -> Vec<String> {
    let each = |event| match event {
        Event::Call(function) => run.function(function).name.clone(),
        Event::Return => "return".to_owned(),
        Event::Tail => "tail".to_owned(),
    };
    thread.events().map(each).collect()
}

fn expected(steps: &[Step]) -> Vec<String> {
    let each = |step: &Step| match step {
        Step::Call(function) => name(*function),
        Step::Return => "return".to_owned(),
    };
    steps.iter().map(each).collect()
}

/// Times in nanoseconds; all must be known exactly.
fn times(thread: &Thread) -> Vec<u128> {
    let mut timeline = thread.timeline().unwrap();
    thread
        .arguments()
        .map(|event| match timeline.at(event.symbols) {
            When::Known(time) => time.as_nanos(),
            other => panic!("{other:?}"),
        })
        .collect()
}

const UFTRACE: [&str; 5] = ["info", "task.txt", "sid-1.map", "app.sym", "7.dat"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn events_and_times_are_those_of_the_source(steps in steps()) {
        let scratch = Scratch::new("import");
        let source = scratch.join("source");
        let sources = [
            (Origin::Parlot, vec!["p.host.7.info", "p.host.7.0"], parlot_files(&steps), 0),
            (Origin::Uftrace, UFTRACE.to_vec(), uftrace_files(&steps), 1),
            (Origin::Chrome, vec!["trace.json"], vec![chrome_json(&steps)], 1000),
            (Origin::Otf2, vec!["traces.otf2", "traces.def", "traces/0.evt"], otf2_files(&steps), 1000),
        ];
        for (origin, names, files, unit) in sources {
            // A document without events has no threads.
            if origin == Origin::Chrome && steps.is_empty() {
                continue;
            }
            write(&source, &names, &files);
            let path = if names.len() == 1 { source.join(names[0]) } else { source.clone() };
            let run = try_import(origin, &path, &scratch).unwrap();
            let traces: Vec<&Thread> = run.traces().collect();
            prop_assert_eq!(traces.len(), 1);
            prop_assert_eq!(traces[0].name.to_string(), "0.0");
            prop_assert_eq!(told(&run, traces[0]), expected(&steps));
            if unit > 0 && !steps.is_empty() {
                let clock: Vec<u128> = (0..steps.len() as u128).map(|it| it * unit).collect();
                prop_assert_eq!(times(traces[0]), clock);
            }
        }
    }
}

#[test]
fn more_functions_than_sixteen_bits_and_more_threads_than_files_may_be_open() {
    let scratch = Scratch::new("import-many");
    let path = scratch.join("trace.json");
    let mut lines = Vec::new();
    for number in 0..70_000 {
        let ts = number * 2;
        let pid = number % 1500 + 1;
        lines.push(format!(
            "{{\"name\":\"f{number}\",\"ph\":\"B\",\"ts\":{ts},\"pid\":{pid},\"tid\":1}}"
        ));
        lines.push(format!(
            "{{\"ph\":\"E\",\"ts\":{},\"pid\":{pid},\"tid\":1}}",
            ts + 1
        ));
    }
    // Without the closing bracket, as a crashed program leaves it.
    fs::write(&path, format!("[{},", lines.join(","))).unwrap();
    let run = try_import(Origin::Chrome, &path, &scratch).unwrap();
    assert_eq!(run.processes.len(), 1500);
    assert_eq!(run.functions.len(), 70_000);
    let events: u64 = run.traces().map(|thread| thread.events).sum();
    assert_eq!(events, 140_000);
    for thread in run.traces().step_by(97) {
        for event in told(&run, thread).chunks(2) {
            assert_eq!(event[1], "return");
        }
    }
}

#[test]
fn calls_of_chrome_in_any_order_and_with_any_ids() {
    let scratch = Scratch::new("import-order");
    let path = scratch.join("trace.json");
    let text = r#"{"traceEvents":[
        {"ph":"M","name":"process_name","pid":"b","args":{"name":"server"}},
        {"name":"inner","ph":"X","ts":2.5,"dur":1,"pid":"b","tid":9},
        {"name":"late","ph":"X","ts":"4","dur":0,"pid":"b","tid":9},
        {"name":"outer","ph":"X","ts":2,"dur":10.25,"pid":"b","tid":9},
        {"name":"counter","ph":"C","ts":3,"pid":"b","tid":9,"args":{"a":1}},
        {"ph":"E","ts":1,"pid":"b","tid":9},
        {"name":"first","ph":"B","ts":1,"pid":5,"tid":18446744073709551615},
        {"name":"main","ph":"B","ts":9,"pid":5,"tid":5}
    ],"other":{"deep":[[1,2],{"x":null}]}}"#;
    fs::write(&path, text).unwrap();
    let run = try_import(Origin::Chrome, &path, &scratch).unwrap();
    let all: Vec<(String, Vec<String>)> = run
        .traces()
        .map(|thread| (thread.name.to_string(), told(&run, thread)))
        .collect();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        ("0.0", words("main")),
        ("0.1", words("first")),
        ("1.0", words("outer inner return late return return")),
    ];
    assert_eq!(
        all,
        expected.map(|(name, events)| (name.to_owned(), events))
    );
    assert_eq!(run.processes[1].program, "server");
    assert_eq!(run.processes[0].program, "trace");
    let last = run.traces().last().unwrap();
    assert_eq!(times(last), [1000, 1500, 2500, 3000, 3000, 11250]);
}

#[test]
fn uftrace_depths_close_what_was_left_without_an_exit() {
    let scratch = Scratch::new("import-depth");
    let source = scratch.join("source");
    let mut files = uftrace_files(&[]);
    let mut record = |kind: u64, depth: u64, function: u64, time: u64| {
        let address = 0x40_0000 + 0x100 * function;
        files[4].extend(time.to_le_bytes());
        files[4].extend((kind | 5 << 3 | depth << 6 | address << 16).to_le_bytes());
    };
    record(1, 0, 9, 1); // the exit of a call before fork
    record(0, 0, 0, 2);
    record(0, 1, 1, 3);
    record(0, 2, 2, 4); // left by an exception
    record(0, 1, 3, 5);
    record(0, 2, 4, 6); // and again
    record(1, 0, 0, 7);
    record(0, 0, 0x1234_5678, 8); // in no image
    write(&source, &UFTRACE, &files);
    let run = try_import(Origin::Uftrace, &source, &scratch).unwrap();
    let thread = run.traces().next().unwrap();
    let expected = "return function_0 function_1 function_2 return return function_3 function_4 \
                    return return return app+0x1234967800";
    assert_eq!(told(&run, thread).join(" "), expected);
    let process = &run.processes[0];
    assert_eq!(
        (process.host.as_str(), process.end.to_string()),
        ("node", "exit 3".to_owned())
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let scratch = Scratch::new("import-wrong");
    let source = scratch.join("source");
    let steps = [Step::Call(0), Step::Call(11), Step::Return];
    let refused = |origin, path: &Path, part: &str| {
        let error = try_import(origin, path, &scratch).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let left: Vec<PathBuf> = fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("source"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    };
    let parlot = ["p.host.7.info", "p.host.7.0"];
    let mut files = parlot_files(&steps);
    files[0] = b"+\n/opt/app\nonly\n".to_vec();
    write(&source, &parlot, &files);
    refused(
        Origin::Parlot,
        &source,
        "p.host.7.0, byte 4: expected the number of a function, up to 1, found 12",
    );
    files[0] = b"names\n".to_vec();
    write(&source, &parlot, &files);
    refused(
        Origin::Parlot,
        &source,
        "p.host.7.info, line 1 (byte 0): expected a line with a plus sign, found \"names\"",
    );
    let mut files = parlot_files(&steps);
    files[1].pop();
    write(&source, &parlot, &files);
    refused(Origin::Parlot, &source, "p.host.7.0, byte");
    write(&source, &["7.dat"], &[Vec::new()]);
    refused(Origin::Parlot, &source, "expected files of ParLOT");
    refused(Origin::Uftrace, &source, "info: No such file");

    let mut files = uftrace_files(&steps);
    files[4].truncate(40);
    write(&source, &UFTRACE, &files);
    refused(
        Origin::Uftrace,
        &source,
        "7.dat, byte 32: expected a record of 16 bytes, found 8 bytes",
    );
    files[4][24] ^= 0x10;
    write(&source, &UFTRACE, &files);
    refused(
        Origin::Uftrace,
        &source,
        "7.dat, byte 24: expected a record with magic 5, found magic 7",
    );
    files[4][8] |= 4;
    write(&source, &UFTRACE, &files);
    refused(
        Origin::Uftrace,
        &source,
        "byte 8: expected a record without arguments",
    );
    for (file, name) in [(1, "task.txt"), (2, "sid-1.map"), (3, "app.sym")] {
        let mut files = uftrace_files(&steps);
        let lines = files[file].iter().filter(|byte| **byte == b'\n').count();
        let place = format!("{name}, line {} (byte {}): ", lines + 1, files[file].len());
        files[file].extend(b"nonsense\n");
        write(&source, &UFTRACE, &files);
        refused(Origin::Uftrace, &source, &place);
    }
    files[0][8] = 9;
    write(&source, &UFTRACE, &files);
    refused(
        Origin::Uftrace,
        &source,
        "info, byte 8: expected version 4, found version 9",
    );

    let otf2 = ["traces.otf2", "traces.def", "traces/0.evt"];
    let right = otf2_files(&steps);
    let changed = |file: usize, change: &dyn Fn(&mut Vec<u8>), part: &str| {
        let mut files = right.clone();
        change(&mut files[file]);
        write(&source, &otf2, &files);
        refused(Origin::Otf2, &source, part);
    };
    changed(
        0,
        &|anchor| anchor[3] = b'X',
        "traces.otf2, byte 0: expected the anchor of an OTF2 archive",
    );
    changed(
        0,
        &|anchor| anchor[9] = 4,
        "traces.otf2, byte 9: expected version 3 at most, found version 4",
    );
    changed(
        0,
        &|anchor| anchor[29] = 2,
        "traces.otf2, byte 29: expected an archive without compression",
    );
    changed(
        0,
        &|anchor| anchor[20..28].fill(0),
        "traces.otf2, byte 20: expected chunks of 64 to",
    );
    changed(
        1,
        &|definitions| definitions.truncate(30),
        "traces.def, byte",
    );
    changed(
        1,
        &|definitions| definitions[0] = 9,
        "traces.def, byte 0: expected a chunk (3), found 9",
    );
    changed(
        1,
        &|definitions| definitions[1] = 9,
        "traces.def, byte 1: expected a little-endian chunk, found 0x09",
    );
    changed(
        2,
        &|events| events.truncate(events.len() - 2),
        "expected the end of the archive's file",
    );
    changed(
        2,
        &|events| events[28] = 3,
        "0.evt, byte 28: expected a region that is defined",
    );
    changed(
        2,
        &|events| events[28] = 9,
        "0.evt, byte 28: expected a number of at most 8 bytes, found 9",
    );

    let document = |text: &str, part: &str| {
        write(&source, &["t.json"], &[text.as_bytes().to_vec()]);
        refused(Origin::Chrome, &source.join("t.json"), part);
    };
    document("{}", "expected trace events as JSON");
    document("[1]", "byte 2: expected trace events");
    document("[{]", "byte 2: expected trace events");
    document("[\n{\"ph\":\"B\",", "byte 12: expected trace events");
    document("[\n{\"ph\";\"B\"}]", "byte 7: expected trace events");
    document("\u{1f}garbage", "byte 0: expected trace events");
    let long = format!("[{{\"name\":\"{}\"}}]", "a".repeat(1 << 20));
    document(
        &long,
        "byte 1048576: expected events of at most 1048576 bytes",
    );
    refused(
        Origin::Chrome,
        &source,
        "expected a file of JSON, found a directory",
    );
}
