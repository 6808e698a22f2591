//! What earlier versions wrote is read as it was then: a run, a sealed run and a baseline of each version of the format, and
//! what every command said of them.
//!
//! ```text
//! fixtures/6.tar.gz     run/  sealed/  baseline/  answers/NAME.json      written by version 6, never again
//! fixtures/checks.txt   6 CRC-32C of that archive
//! ```
//! A new version of the format: `cargo test -p lockstep-testkit --test runs formats:: -- --ignored` makes its archive.

use lockstep_format::check::crc32c;
use lockstep_testkit::{Recipe, Scratch, artifacts, command, copy, lockstep};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn checks() -> Vec<(String, u32)> {
    let text = fs::read_to_string(fixtures().join("checks.txt")).unwrap_or_default();
    let row = |line: &str| {
        let (version, check) = line.split_once(' ').expect("a version and a check");
        let check = u32::from_str_radix(check, 16).expect("a check");
        (version.to_owned(), check)
    };
    text.lines().map(row).collect()
}

/// What is asked of an archive: a name, and the words.
const QUESTIONS: [(&str, &[&str]); 15] = [
    ("info", &["info", "--json", "run"]),
    ("info-sealed", &["info", "--json", "sealed"]),
    ("calls", &["calls", "--json", "run"]),
    ("calls-sealed", &["calls", "--json", "sealed"]),
    ("graph", &["calls", "--json", "--graph", "run"]),
    ("events", &["events", "--json", "-t", "0.0", "run"]),
    (
        "events-sealed",
        &["events", "--json", "-t", "0.0", "sealed"],
    ),
    ("tree", &["tree", "--json", "-t", "0.0", "run"]),
    ("stack", &["stack", "--json", "-t", "0.0", "run"]),
    ("loops", &["loops", "--json", "run"]),
    ("lattice", &["lattice", "--json", "run"]),
    ("similarity", &["similarity", "--json", "run"]),
    ("progress", &["progress", "--json", "run"]),
    ("diff", &["diff", "--json", "-t", "0.0", "run", "sealed"]),
    ("check", &["baseline", "check", "--json", "baseline", "run"]),
];

/// The answer to a question in this directory, as JSON.
fn answer(directory: &Path, words: &[&str]) -> Value {
    let outcome = command::run(lockstep(words).current_dir(directory));
    assert!([0, 1].contains(&outcome.status), "{words:?}: {outcome:#?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Whether all of what was said is still said; more may be.
fn still_says(new: &Value, old: &Value, place: &str) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (key, value) in old {
                let place = format!("{place}.{key}");
                let found = new.get(key).unwrap_or_else(|| panic!("{place} is gone"));
                still_says(found, value, &place);
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            assert_eq!(new.len(), old.len(), "{place}");
            for (index, (new, old)) in new.iter().zip(old).enumerate() {
                still_says(new, old, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(new, old, "{place}"),
    }
}

fn tar(words: &[&str], directory: &Path) {
    let outcome = command::run(Command::new("tar").args(words).current_dir(directory));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn what_was_kept_was_not_changed() {
    let kept = checks();
    assert!(!kept.is_empty());
    let is_last = |(version, _): &(String, u32)| *version == lockstep_trace::VERSION.to_string();
    assert!(
        kept.last().is_some_and(is_last),
        "this version has no archive: see this file's first page"
    );
    for (version, check) in kept {
        let bytes = fs::read(fixtures().join(format!("{version}.tar.gz"))).expect("an archive");
        assert!(bytes.len() < 64 << 10, "{version}: {} bytes", bytes.len());
        assert_eq!(crc32c(&bytes), check, "{version}: made anew");
    }
}

#[test]
fn what_earlier_versions_wrote_is_read_as_it_was_then() {
    for (version, _) in checks() {
        let scratch = Scratch::new(&format!("format-{version}"));
        let archive = fixtures().join(format!("{version}.tar.gz"));
        tar(&["xzf", archive.to_str().expect("UTF-8")], scratch.path());
        for (name, words) in QUESTIONS {
            let kept = scratch.join("answers").join(format!("{name}.json"));
            // A question that is asked since a later version.
            let Ok(text) = fs::read_to_string(kept) else {
                continue;
            };
            let old: Value = serde_json::from_str(&text).expect("JSON");
            still_says(
                &answer(scratch.path(), words),
                &old,
                &format!("{version} {name}: "),
            );
        }
    }
}

/// Makes the archive of this version, if there is none yet.
#[test]
#[ignore = "only for a new version of the format"]
fn make_an_archive() {
    let version = lockstep_trace::VERSION.to_string();
    let mut kept = checks();
    if kept.iter().any(|(known, _)| *known == version) {
        return;
    }
    let scratch = Scratch::new("format-new");
    let directory = scratch.path();
    // No path of the machine that makes it.
    let here = format!("-ffile-prefix-map={}=.", artifacts::repository().display());
    let program = Recipe::new("c/leaf_calls.c")
        .flags(&["-O0", "-g", &here])
        .build();
    let place = scratch.join("app");
    fs::copy(program, &place).expect("scratch");
    let done = |command: &mut Command| {
        let outcome = command::run(command.current_dir(directory));
        assert_eq!(outcome.status, 0, "{outcome:#?}");
    };
    done(&mut lockstep(&[
        "record", "-o", "run", "--redact", "--", "./app",
    ]));
    copy(&scratch.join("run"), &scratch.join("sealed"));
    done(&mut lockstep(&["seal", "sealed"]));
    done(&mut lockstep(&["baseline", "set", "baseline", "run"]));
    fs::create_dir(scratch.join("answers")).expect("scratch");
    for (name, words) in QUESTIONS {
        let text = serde_json::to_string_pretty(&answer(directory, words)).expect("JSON");
        fs::write(scratch.join("answers").join(format!("{name}.json")), text).expect("scratch");
    }
    fs::create_dir_all(fixtures()).expect("fixtures");
    let archive = fixtures().join(format!("{version}.tar.gz"));
    let archive = archive.to_str().expect("UTF-8");
    let owner = ["--owner=0", "--group=0", "--sort=name"];
    let parts = ["run", "sealed", "baseline", "answers"];
    tar(
        &[&["-czf", archive][..], &owner, &parts].concat(),
        directory,
    );
    kept.push((version, crc32c(&fs::read(archive).expect("an archive"))));
    let rows = kept
        .iter()
        .map(|(version, check)| format!("{version} {check:08x}\n"));
    fs::write(fixtures().join("checks.txt"), rows.collect::<String>()).expect("fixtures");
}
