//! A program that may have few descriptors, or little address space, runs as without us; and where that leaves it
//! unrecorded, the run says what was lacking and which limit it was.

use lockstep_testkit::command::{self, Outcome};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recipe, Recording, Scratch};
use serde_json::Value;

/// Records `words` below a shell that sets `limit` for them alone; plans of former runs are not known.
fn record_below(scratch: &Scratch, limit: &str, images: &str, words: &[&str]) -> Recording {
    let directory = scratch.join(format!("run{limit}-{images}").replace(' ', ""));
    let mut command = record_command(&directory, &["--images", images], &below(limit, words));
    let outcome = command::run(command.env("XDG_CACHE_HOME", scratch.join("cache")));
    // One run leaves the next nothing.
    let _ = std::fs::remove_dir_all(scratch.join("cache"));
    Recording { directory, outcome }
}

/// Descriptors that whoever started the test left open would count too.
fn below(limit: &str, words: &[&str]) -> Vec<String> {
    let shell = format!("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit {limit}; exec \"$@\"");
    let mut all = vec!["sh".to_owned(), "-c".to_owned(), shell, "sh".to_owned()];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

fn plain(limit: &str, words: &[&str]) -> Outcome {
    let words = below(limit, words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    command::run(&mut command::command(&words))
}

/// What the program says and returns is what it does without us.
fn unharmed(recording: &Recording, plain: &Outcome) {
    let recorded = &recording.outcome;
    assert_eq!(recorded.status, plain.status, "{recorded:#?}");
    assert_eq!(recorded.stdout, plain.stdout, "{recorded:#?}");
    let ours = |line: &&str| !line.starts_with("lockstep: ");
    let rest: Vec<&str> = recorded.stderr.lines().filter(ours).collect();
    assert_eq!(rest, plain.stderr.lines().collect::<Vec<_>>());
}

/// The process of the program that was limited.
fn process(recording: &Recording, name: &str) -> Value {
    let info = recording.json(&["info"]);
    let processes = info["processes"].as_array().cloned().unwrap_or_default();
    let is_it = |process: &Value| {
        let program = process["program"].as_str().unwrap_or_default();
        program.rsplit('/').next() == Some(name)
    };
    let found = processes.into_iter().find(is_it);
    found.unwrap_or_else(|| panic!("a process of {name}: {info:#}"))
}

fn reasons(process: &Value) -> Vec<&str> {
    let images = process["untraced_images"].as_array();
    let reasons = images.into_iter().flatten();
    reasons
        .filter_map(|image| image["reason"].as_str())
        .collect()
}

fn leaf_calls() -> String {
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    program.display().to_string()
}

/// The planner cannot open what it needs: said with the limit.
#[test]
fn few_descriptors() {
    let program = leaf_calls();
    let scratch = Scratch::new("few-descriptors");
    for images in ["main", "all"] {
        let recording = record_below(&scratch, "-n 4", images, &[&program]);
        unharmed(&recording, &plain("-n 4", &[&program]));
        let process = process(&recording, "leaf_calls");
        let expected = "the planner had too few file descriptors (ulimit -n is 4)";
        assert!(reasons(&process).contains(&expected), "{process:#}");
    }
}

/// However little there is: events, or a reason with the limit, or a number of calls for which there was no memory.
#[test]
fn little_address_space() {
    let program = leaf_calls();
    let scratch = Scratch::new("little-space");
    let mut has_reason = false;
    for kibibytes in ["6000", "12000", "16000", "20000", "30000"] {
        let limit = format!("-v {kibibytes}");
        for images in ["main", "all"] {
            let recording = record_below(&scratch, &limit, images, &[&program]);
            unharmed(&recording, &plain(&limit, &[&program]));
            let process = process(&recording, "leaf_calls");
            let named = format!("(ulimit -v is {kibibytes})");
            let reasons = reasons(&process);
            let is_named = reasons.iter().any(|reason| reason.ends_with(&named));
            let threads = process["threads"].as_array().map_or(0, Vec::len);
            let lost = process["events_lost"].as_u64().unwrap_or(0);
            assert!(is_named || threads > 0 || lost > 0, "{limit}: {process:#}");
            let others = reasons.iter().filter(|reason| reason.contains("ulimit -n"));
            assert_eq!(others.count(), 0, "{limit}: {process:#}");
            has_reason |= is_named;
        }
    }
    assert!(has_reason, "at least with the least of them");
}

/// The planner inherits none of the descriptors that its host holds.
#[test]
fn a_program_that_takes_all_descriptors() {
    let program = Recipe::new("c/takes_descriptors.c").flag("-O1").build();
    let program = program.display().to_string();
    let plugin = Recipe::new("c/plugin.c")
        .flags(&["-O1", "-shared", "-fPIC"])
        .build();
    let plugin = plugin.display().to_string();
    let scratch = Scratch::new("takes-descriptors");
    let words = [program.as_str(), plugin.as_str()];
    let recording = record_below(&scratch, "-c 0", "plugin", &words);
    unharmed(&recording, &plain("-c 0", &words));
    let process = process(&recording, "takes_descriptors");
    assert_eq!(reasons(&process), Vec::<&str>::new(), "{process:#}");
    let events = recording.text(&["events", "-t", "0.0"]);
    assert!(events.contains("call plugin_work"), "{events}");
}

/// Our own command line with less and less address space: it does its work, or says in one line that it could not.
#[test]
fn little_address_space_for_us() {
    let scratch = Scratch::new("little-space-for-us");
    let run = scratch.join("run").display().to_string();
    let ours = [
        (&["record", "--force", "-o", &run, "--", "true"][..], 125),
        (&["info", &run], 2),
    ];
    for (arguments, failed) in ours {
        let mut done = 0;
        let mut refused = 0;
        for mebibytes in 8.. {
            let limit = format!("-c 0; ulimit -v {}", mebibytes << 10);
            let binary = lockstep_testkit::artifacts::lockstep()
                .display()
                .to_string();
            let mut words = vec![binary.as_str()];
            words.extend(arguments);
            let Outcome { status, stderr, .. } = plain(&limit, &words);
            match status {
                0 => done += 1,
                _ if status == failed => {
                    let is_one_line = stderr.starts_with("lockstep: expected ");
                    assert!(is_one_line && stderr.lines().count() == 1, "{stderr}");
                    refused += 1;
                }
                // The kernel or the dynamic linker, before our first instruction; or the C library and `std` before our main.
                2 | 127 | 134 | 139 if done == 0 && refused == 0 => {}
                other => panic!("{limit}: {other}: {stderr}"),
            }
            if done == 3 {
                break;
            }
        }
        assert!(refused > 0, "{arguments:?}");
    }
}

/// Our own commands with more and more descriptors: all that they say without a limit, or in one line that they could not
/// open a run. Never what a run without its plans or its ends looks like.
#[test]
fn few_descriptors_for_us() {
    let program = leaf_calls();
    let scratch = Scratch::new("few-descriptors-for-us");
    let [run, other] = ["run", "other"].map(|name| {
        let directory = scratch.join(name);
        let words = [program.as_str()];
        let recorded = command::run(&mut record_command(&directory, &[], &words));
        assert_eq!(recorded.status, 0, "{recorded:#?}");
        directory.display().to_string()
    });
    for arguments in [
        &["compare", &run, &other][..],
        &["info", &run],
        &["events", "-t", "0.0", &run],
    ] {
        let binary = lockstep_testkit::artifacts::lockstep()
            .display()
            .to_string();
        // A comparison that is known already opens no run.
        let mut words = vec!["env", "XDG_CACHE_HOME=/dev/null", binary.as_str()];
        words.extend(arguments);
        let whole = plain("-c 0", &words);
        let (mut done, mut refused) = (0, 0);
        // Below 4 the dynamic linker opens no library.
        for most in 4.. {
            let found = plain(&format!("-n {most}"), &words);
            let limit = format!("found none (ulimit -n is {most})");
            match found.status {
                2 => {
                    let line = &found.stderr;
                    assert!(line.contains("expected a free file descriptor"), "{line}");
                    assert!(line.trim_end().ends_with(&limit), "{line}");
                    assert_eq!((line.lines().count(), found.stdout.as_str()), (1, ""));
                    refused += 1;
                }
                _ => {
                    let of = |outcome: &Outcome| (outcome.status, outcome.stdout.clone());
                    assert_eq!(of(&found), of(&whole), "{most}: {}", found.stderr);
                    done += 1;
                }
            }
            if done == 3 {
                break;
            }
        }
        assert!(refused > 2, "{arguments:?}: {refused}");
    }
}
