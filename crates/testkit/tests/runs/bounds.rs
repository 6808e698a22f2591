//! What a user bounds at record time: the size of the run, the recorder's memory, what is told.

use lockstep_testkit::command::few_at_once;
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, command, record, tools};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Where `walk` begins among the events of `irregular`.
fn events_before_walk(scratch: &Scratch) -> usize {
    let run = record(scratch, &[], &[irregular().into_os_string(), "1".into()]);
    let text = run.text(&["events", "-t", "0.0"]);
    let at = text.lines().position(|line| line == "call walk");
    at.expect("a call of walk") + 1
}

/// A trace of `irregular`, of which what came first may be missing: checks that it is part of the true
/// sequence, begins with the calls that were open there, and is missing nothing else. How many events
/// were dropped before it, and how many there are.
fn check_part(thread: &Value, text: &str, before_walk: usize) -> (u64, usize) {
    assert!(thread["damage"].is_null(), "{thread:#}");
    let dropped = thread["dropped"].as_u64().unwrap_or(0);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len() as u64, thread["events"].as_u64().unwrap_or(0));
    let Some(at) = (dropped as usize).checked_sub(before_walk) else {
        assert_eq!(dropped, 0, "what comes before walk fits into one segment");
        let inside = lines.get(before_walk..).unwrap_or(&[]);
        compare(inside, true_events());
        return (0, lines.len());
    };
    let mut open = vec!["call main".to_owned(), "call walk".to_owned()];
    for event in true_events().take(at).skip(at - at % 4) {
        match event.as_str() {
            "return" => drop(open.pop()),
            _ => open.push(event),
        }
    }
    assert_eq!(lines[..open.len()], open, "after {dropped} events");
    compare(&lines[open.len()..], true_events().skip(at));
    (dropped, lines.len())
}

/// `lines` must be the beginning of `truth`, except for the end of the program.
fn compare(lines: &[&str], truth: impl Iterator<Item = String>) {
    for (index, (line, expected)) in lines.iter().zip(truth).enumerate() {
        if *line != expected {
            let rest = &lines[index..];
            let is_end = rest.iter().all(|line| *line == "return");
            assert!(
                is_end && rest.len() <= 2,
                "event {index}: {expected}, found {rest:?}"
            );
        }
    }
}

#[test]
fn a_full_run_keeps_what_came_last() {
    let scratch = Scratch::new("keep-last");
    let before_walk = events_before_walk(&scratch);
    // More than fits, however well it compresses.
    for (codec, rounds) in [
        ("none", 700_000),
        ("seed", 700_000),
        ("lockstep", 2_000_000),
    ] {
        let words = [irregular().into_os_string(), rounds.to_string().into()];
        let options = ["--max-size", "1M", "--keep", "last", "--codec", codec];
        let run = record(&scratch, &options, &words);
        assert_eq!(run.outcome.status, 0, "{run:#?}");
        assert!(bytes_of(&run) <= 1 << 20, "{}", bytes_of(&run));
        let info = run.json(&["info"]);
        let thread = &processes(&info)[0]["threads"][0];
        let text = run.text(&["events", "-t", "0.0"]);
        let (dropped, kept) = check_part(thread, &text, before_walk);
        let total = before_walk + 4 * rounds + 2;
        // The calls that are open at the beginning of what is kept are told again.
        let told_again = dropped as usize + kept - total;
        assert!(
            dropped > 0 && (2..=4).contains(&told_again),
            "{codec}: {info:#}"
        );
        assert_eq!(processes(&info)[0]["events_lost"], dropped, "{info:#}");
        assert!(kept > 100_000, "{codec}: {kept}");
    }
}

#[test]
fn whenever_it_is_killed_the_last_events_are_there() {
    if !tools::require(&["timeout"]) {
        return;
    }
    let scratch = Scratch::new("killed-ring");
    let before_walk = events_before_walk(&scratch);
    let program = irregular().display().to_string();
    let mut state = 1u32;
    let rings = AtomicU32::new(0);
    let rounds: Vec<(usize, String)> = (0..24)
        .map(|round| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (round, format!("0.{:04}", 1000 + (state >> 16) % 3000))
        })
        .collect();
    few_at_once(&rounds, |(round, seconds)| {
        let words = ["timeout", "-s", "KILL", seconds, &program, "2000000000"];
        let codec = ["none", "seed", "lockstep"][round % 3];
        let options = ["--max-size", "1536K", "--keep", "last", "--codec", codec];
        let run = record(&scratch, &options, &words);
        let info = run.json(&["info", "--all-processes"]);
        let is_ours = |process: &&Value| process["program"].as_str() == Some(&program);
        let Some(process) = processes(&info).iter().find(is_ours) else {
            return;
        };
        for thread in process["threads"].as_array().expect("threads") {
            let name = thread["trace"].as_str().expect("a name");
            let text = run.text(&["events", "-t", name]);
            let (dropped, _) = check_part(thread, &text, before_walk);
            rings.fetch_add(u32::from(dropped > 0), Ordering::Relaxed);
        }
        assert!(bytes_of(&run) <= 1536 << 10, "{}", bytes_of(&run));
        fs::remove_dir_all(&run.directory).expect("scratch");
    });
    let rings = rings.into_inner();
    assert!(
        rings >= 8,
        "{rings} of 24 were killed after something was dropped"
    );
}

/// An encoder begins anew with each segment, in memory that must be zeros; which is not dropped where it is locked.
#[test]
fn a_full_run_of_a_program_with_locked_memory() {
    let scratch = Scratch::new("locked-ring");
    let program = Recipe::new("c/locked_memory.c").flag("-O1").build();
    let options = ["--max-size", "2M", "--keep", "last"];
    let run = record(&scratch, &options, &[&program]);
    if run.outcome.status == 77 {
        tools::note("SKIPPED locked memory: not allowed here");
        return;
    }
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let info = run.json(&["info"]);
    let thread = &processes(&info)[0]["threads"][0];
    assert!(thread["damage"].is_null(), "{info:#}");
    assert!(thread["events"].as_u64() > Some(1_000_000), "{info:#}");
}

#[test]
fn short_threads_and_deep_stacks_go_round_too() {
    let scratch = Scratch::new("ring-threads");
    let many = Recipe::new("c/short_threads.c")
        .flags(&["-O1", "-pthread"])
        .build();
    let deep = Recipe::new("c/recursion.c").flag("-O1").build();
    for program in [many, deep] {
        let plain = record(&scratch, &[], &[&program]);
        let options = ["--max-size", "1M", "--keep", "last", "--codec", "none"];
        let ring = record(&scratch, &options, &[&program]);
        assert_eq!(ring.outcome.stdout, plain.outcome.stdout);
        assert_eq!(ring.outcome.status, plain.outcome.status, "{ring:#?}");
        assert!(bytes_of(&ring) <= 1 << 20, "{}", bytes_of(&ring));
        let info = ring.json(&["info"]);
        for thread in processes(&info)[0]["threads"].as_array().expect("threads") {
            assert!(thread["damage"].is_null(), "{thread:#}");
        }
    }
}
