//! What a user bounds at record time: the size of the run, the recorder's memory, what is told.

use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, command, record, tools};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes on disk of the run's process files.
fn bytes_of(run: &Recording) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::read_dir(run.directory.join("processes"))
        .expect("processes")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("a file"))
        .map(|metadata| metadata.len().max(512 * metadata.blocks()))
        .sum()
}

fn irregular() -> PathBuf {
    Recipe::new("c/irregular.c").flag("-O1").build()
}

/// The events inside `walk`, as `lockstep events` prints them, for ever.
fn true_events() -> impl Iterator<Item = String> {
    let mut state = 1u32;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let function = format!("call f{}", state >> 29);
        let round = ["call step", &function, "return", "return"];
        round.map(str::to_owned)
    })
    .flatten()
}

fn processes(info: &Value) -> &[Value] {
    info["processes"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_full_run_keeps_what_came_first_and_the_program_goes_on() {
    let scratch = Scratch::new("keep-first");
    let words = [irregular().into_os_string(), "400000".into()];
    let options = ["--max-size", "1M", "--codec", "none"];
    let run = record(&scratch, &options, &words);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    assert!(bytes_of(&run) <= 1 << 20, "{}", bytes_of(&run));
    let info = run.json(&["info"]);
    let process = &processes(&info)[0];
    let (events, lost) = (
        process["threads"][0]["events"].as_u64().unwrap_or(0),
        process["events_lost"].as_u64().unwrap_or(0),
    );
    // Four bytes an event; a call that is not recorded counts once, and its return does not.
    assert!(events > 150_000, "{info:#}");
    assert!(
        lost >= 800_000 - events / 2 - 2 && lost <= 800_002,
        "{info:#}"
    );
    assert_eq!(process["losses"][0]["reason"], "size limit (--max-size)");
    let text = run.text(&["events", "-t", "0.0"]);
    let inside = text.lines().skip_while(|line| *line != "call walk").skip(1);
    let mut count = 0;
    for (found, expected) in inside.zip(true_events()) {
        assert_eq!(found, expected, "event {count}");
        count += 1;
    }
    assert!(count as u64 > events - 10);
}

#[test]
fn processes_share_one_bound() {
    let scratch = Scratch::new("shared-bound");
    let words = [irregular().into_os_string(), "300000".into(), "5".into()];
    let options = ["--max-size", "8M", "--codec", "none"];
    let run = record(&scratch, &options, &words);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    assert!(bytes_of(&run) <= 8 << 20, "{}", bytes_of(&run));
    let info = run.json(&["info", "--all-processes"]);
    // They do not fit: what there was is used, and those that came late could begin.
    assert!(bytes_of(&run) >= 5 << 20, "{}", bytes_of(&run));
    assert_eq!(processes(&info).len(), 6, "{info:#}");
    let lost: u64 = processes(&info)
        .iter()
        .filter_map(|process| process["events_lost"].as_u64())
        .sum();
    assert!(lost > 1_000_000, "{info:#}");
}

#[test]
fn every_rank_has_its_share() {
    let scratch = Scratch::new("rank-shares");
    // Four ranks of a launcher that is faked by its variables, one after the other: the first must not
    // take what the last needs.
    let script = format!(
        "for rank in 0 1 2 3; do PMI_RANK=$rank PMI_SIZE=4 PMI_JOBID=7 {} 200000; done",
        irregular().display()
    );
    let words = ["sh", "-c", &script];
    let run = record(&scratch, &["--max-size", "4M", "--codec", "none"], &words);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    assert!(bytes_of(&run) <= 4 << 20, "{}", bytes_of(&run));
    let info = run.json(&["info"]);
    let events: Vec<u64> = processes(&info)
        .iter()
        .filter(|process| process["rank"].is_u64())
        .map(|process| process["threads"][0]["events"].as_u64().unwrap_or(0))
        .collect();
    assert_eq!(events.len(), 4, "{info:#}");
    assert!(events.iter().all(|count| *count > 150_000), "{events:?}");
}

/// All bytes of all files under `directory`, and their names.
fn everything(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        all.extend_from_slice(entry.file_name().as_encoded_bytes());
        if entry.path().is_dir() {
            all.extend(everything(&entry.path()));
        } else {
            all.extend(fs::read(entry.path()).expect("a file"));
        }
    }
    all
}

#[test]
fn a_redacted_run_tells_neither_host_nor_arguments_nor_job() {
    let scratch = Scratch::new("redact");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host");
    let host = format!("{}-", host.trim_end());
    let script = format!("{} 10 1 my-secret-argument; exit 3", irregular().display());
    let run = |options: &[&str], name: &str| {
        let directory = scratch.join(name);
        let mut command = lockstep(&["record", "-o"]);
        command.arg(&directory).args(options);
        command.args(["--", "sh", "-c", &script]);
        for (name, value) in [
            ("PMI_RANK", "2"),
            ("PMI_SIZE", "4"),
            ("PMI_JOBID", "job-on-node"),
        ] {
            command.env(name, value);
        }
        let outcome = command::run(&mut command);
        assert_eq!(outcome.status, 3, "{outcome:#?}");
        Recording { directory, outcome }
    };
    let (plain, redacted) = (run(&[], "plain"), run(&["--redact"], "redacted"));
    let tells = |run: &Recording, text: &str| {
        let all = everything(&run.directory);
        all.windows(text.len()).any(|part| part == text.as_bytes())
    };
    for secret in ["my-secret-argument", "job-on-node", &host] {
        assert!(tells(&plain, secret), "{secret}");
        assert!(!tells(&redacted, secret), "{secret}");
    }
    // Names and ends are as they were.
    let of = |run: &Recording| {
        let info = run.json(&["info", "--all-processes"]);
        let rows: Vec<Value> = processes(&info)
            .iter()
            .map(|process| serde_json::json!([process["process"], process["rank"], process["end"]]))
            .collect();
        rows
    };
    assert_eq!(of(&plain), of(&redacted));
    assert!(!of(&plain).is_empty());
}

#[test]
fn low_memory_records_the_same() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("low-memory");
    let words = [irregular().into_os_string(), "3000".into()];
    let normal = record(&scratch, &[], &words);
    let low = record(&scratch, &["--memory", "low"], &words);
    let events = |run: &Recording| run.text(&["events", "-t", "0.0"]);
    assert_eq!(events(&normal), events(&low));
}
