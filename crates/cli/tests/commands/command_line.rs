//! The command line as scripts meet it: exit statuses, one line on stderr, nothing followed.

use lockstep_testkit::Scratch;
use lockstep_testkit::command::{self, Outcome, Running};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn lockstep(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command.args(words).env_remove("LOCKSTEP_OPTIONS");
    command
}

fn run(words: &[&str]) -> Outcome {
    command::run(&mut lockstep(words))
}

/// It could not be done: nothing on stdout, one line on stderr that names us and says why.
#[track_caller]
fn refused(outcome: &Outcome, status: i32, said: &str) {
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (status, ""),
        "{outcome:?}"
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(
        outcome.stderr.starts_with("lockstep: ") && outcome.stderr.contains(said),
        "{outcome:?}"
    );
}

#[test]
fn mistakes_are_answered_in_one_line() {
    refused(&run(&[]), 2, "expected a command");
    refused(&run(&["frob"]), 2, "'frob'");
    refused(
        &run(&["frobnicate"]),
        2,
        "unrecognized subcommand 'frobnicate'",
    );
    refused(&run(&["info"]), 2, "<RUN>");
    refused(&run(&["info", "--colour", "run"]), 2, "'--colour'");
    refused(
        &run(&["events", "run", "-t", "five"]),
        2,
        "expected a trace such as 6.4",
    );
    refused(
        &run(&["compare", "a", "b", "--linkage", "wrd"]),
        2,
        "'ward'",
    );
    refused(&run(&["loops", "run", "-k", "0"]), 2, "1..");
    refused(&run(&["compare", "a", "b", "--clusters", "1"]), 2, "2..");
    refused(
        &run(&["compare", "a", "b", "--level", "7"]),
        2,
        "from 0 to 1",
    );
    refused(
        &run(&["compare", "a", "b", "--sweep", "-k", "3"]),
        2,
        "cannot be used with",
    );
}

#[test]
fn what_is_not_a_run_is_said() {
    let scratch = Scratch::new("not-a-run");
    let path = |name: &str| scratch.join(name).display().to_string();
    fs::write(scratch.join("file"), "text").expect("a file");
    fs::create_dir(scratch.join("empty")).expect("a directory");
    for name in ["missing", "file", "empty"] {
        for words in [
            &["info", &path(name)][..],
            &["events", &path(name), "-t", "0.0"],
            &["compare", &path(name), &path(name)],
            &["report", &path(name), "-o", &path("page.html")],
        ] {
            refused(&run(words), 2, "expected a run");
        }
    }
    assert!(!scratch.join("page.html").exists());
}

#[test]
fn failures_of_wrappers_themselves_have_the_statuses_of_timeout() {
    refused(&run(&["record"]), 125, "<COMMAND>");
    refused(
        &run(&["record", "--hang", "soon", "--", "true"]),
        125,
        "expected seconds",
    );
    refused(
        &run(&["record", "--images", "(lib", "--", "true"]),
        125,
        "'(lib'",
    );
    refused(&run(&["go", "run", "--fast", "."]), 125, "'--fast'");
    refused(&run(&["go", "replay", "found"]), 125, "--run <N>");
    refused(&run(&["go", "test", "-run", "TestX"]), 2, "-- -run TestX");
}

#[test]
fn options_may_come_from_the_environment() {
    let with = |options: &str, words: &[&str]| {
        command::run(lockstep(words).env("LOCKSTEP_OPTIONS", options))
    };
    refused(&with("--nonsense", &["info", "run"]), 2, "LOCKSTEP_OPTIONS");
    refused(
        &with("--custom 'open", &["info", "run"]),
        2,
        "LOCKSTEP_OPTIONS",
    );
    // An option of another command is passed over; one on the command line wins.
    refused(
        &with("--codec none --json", &["info", "missing"]),
        2,
        "expected a run",
    );
    refused(
        &with(
            "--linkage single",
            &["compare", "a", "b", "--linkage", "ward"],
        ),
        2,
        "expected a run",
    );
}

#[test]
fn only_runs_are_removed_and_links_are_not_followed() {
    let scratch = Scratch::new("rm");
    let make = |name: &str, marker: bool| {
        let directory = scratch.join(name);
        fs::create_dir(&directory).expect("a directory");
        if marker {
            let text = r#"{"version":4,"tool":"0.1.0","command":["./app","a b"],"codec":"seed"}"#;
            fs::write(directory.join("lockstep.json"), text).expect("a marker");
        }
        directory
    };
    let (thesis, good, bad) = (make("thesis", false), make("good", true), make("bad", true));
    fs::write(good.join("hang.json"), "{}").expect("what was said of a hang");
    let path = |directory: &Path| directory.display().to_string();
    symlink(&good, scratch.join("link")).expect("a link");
    symlink(&thesis, bad.join("processes")).expect("a link");

    refused(&run(&["rm", &path(&thesis)]), 2, "expected a run");
    refused(&run(&["rm", &path(&scratch.join("link"))]), 2, "link");
    // One that is none keeps all of them.
    refused(
        &run(&["rm", &path(&good), &path(&thesis)]),
        2,
        "nothing was removed",
    );
    assert!(thesis.exists() && good.exists());

    let listed = run(&["runs", &path(scratch.path())]).success().stdout;
    assert!(
        listed.contains("good") && listed.contains("./app a b") && !listed.contains("thesis"),
        "{listed}"
    );

    let outcome = run(&["rm", &path(&good), &path(&bad)]).success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    assert!(thesis.exists() && !good.exists() && !bad.exists());
}

#[test]
fn a_run_that_goes_on_is_not_replaced() {
    let scratch = Scratch::new("goes-on");
    let directory = scratch.join("run");
    let output = directory.display().to_string();
    let record = ["record", "-o", &output, "--", "sleep", "600"];
    let first = Running::start(Command::new(env!("CARGO_BIN_EXE_lockstep")).args(record));
    let is_begun = || fs::read_dir(directory.join("processes")).is_ok_and(|it| it.count() > 0);
    let begin = Instant::now();
    while !is_begun() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing began");
        std::thread::sleep(Duration::from_millis(20));
    }
    refused(&run(&["rm", &output]), 2, "nothing was removed");
    let again = run(&["record", "--force", "-o", &output, "--", "true"]);
    refused(
        &again,
        125,
        "expected a run that has ended, found its process",
    );
    let _ = first.stop();
    let _ = run(&["rm", &output]).success();
    assert!(!directory.exists());
}

#[test]
fn a_closed_pipe_is_silent() {
    let binary = env!("CARGO_BIN_EXE_lockstep");
    for words in ["man", "completions bash", "--help"] {
        let script = format!("set -o pipefail; {binary} {words} | true");
        let outcome = command::run(Command::new("bash").args(["-c", &script]));
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{words}"
        );
    }
}

#[test]
fn a_full_disk_is_said() {
    if !Path::new("/dev/full").exists() {
        return lockstep_testkit::tools::skip("no /dev/full");
    }
    let script = format!("{} man > /dev/full", env!("CARGO_BIN_EXE_lockstep"));
    refused(
        &command::run(Command::new("sh").args(["-c", &script])),
        2,
        "stdout could not be written",
    );
}

#[test]
fn completions_and_manual_pages_are_made_of_the_same_definition() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            run(&["completions", shell])
                .success()
                .stdout
                .contains("similarity"),
            "{shell}"
        );
    }
    let scratch = Scratch::new("man");
    let directory = scratch.join("man1");
    let _ = run(&["man", "-o", &directory.display().to_string()]).success();
    let page = fs::read_to_string(directory.join("lockstep-compare.1")).expect("a page");
    assert!(
        page.contains("EXAMPLES") && page.contains("linkage"),
        "{page}"
    );
    assert!(directory.join("lockstep.1").exists() && !directory.join("lockstep-__plan.1").exists());
}

#[test]
fn contexts_of_ones_own_are_read_in_each_format() {
    let scratch = Scratch::new("contexts");
    let json = scratch.join("own.json");
    std::fs::write(&json, r#"{"0.0": ["a", "f(int, long)"], "1.0": ["a"]}"#).expect("a file");
    let (csv, cxt) = (scratch.join("own.csv"), scratch.join("own.cxt"));
    let lattice = |from: &std::path::Path, more: &[&std::ffi::OsStr]| {
        command::run(lockstep(&["lattice"]).arg(from).args(more))
    };
    let write = |option: &str, file: &std::path::Path| {
        assert_eq!(lattice(&json, &[option.as_ref(), file.as_ref()]).status, 0);
    };
    write("--csv", &csv);
    write("--cxt", &cxt);
    let expected = lattice(&json, &[]);
    assert!(expected.stdout.starts_with("2 concepts"), "{expected:#?}");
    assert_eq!(lattice(&csv, &[]), expected);
    assert_eq!(lattice(&cxt, &[]), expected);
    // Own attributes beside those that are there; of nobody else.
    let locks = scratch.join("locks.json");
    std::fs::write(&locks, r#"{"1.0": ["holds lock b"]}"#).expect("a file");
    let joined = lattice(&json, &["--own".as_ref(), locks.as_ref()]);
    assert!(joined.stdout.contains("holds lock b"), "{joined:#?}");
    std::fs::write(&locks, r#"{"7.0": ["holds lock b"]}"#).expect("a file");
    let refused = lattice(&json, &["--own".as_ref(), locks.as_ref()]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("found some of 7.0"), "{refused:#?}");
    std::fs::write(&locks, "[1]").expect("a file");
    assert_eq!(lattice(&locks, &[]).status, 2);
}
