//! `lockstep go` when a signal asks it to end.

#![allow(clippy::unwrap_used)]

use lockstep_testkit::{Scratch, tools};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than a build on a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(300);

const MODULE: &str = "module x\n\ngo 1.25\n";

/// Each execution leaves a byte.
const TESTS: &str = r#"package x

import (
	"os"
	"testing"
)

func TestPasses(t *testing.T) {
	file, err := os.OpenFile("ran", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString(".")
	file.Close()
}

func TestLater(t *testing.T) {}
"#;

const SERVER: &str = r#"package main

import (
	"os"
	"os/signal"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	os.WriteFile("ran", []byte("....."), 0o644)
	<-stop
	os.Stdout.WriteString("down\n")
	os.Exit(3)
}
"#;

/// Starts it, and interrupts it when `ran` has more than `bytes` bytes.
fn interrupted(directory: &Path, words: &[&str], bytes: u64) -> Output {
    // Who runs in the background of a shell script inherits that SIGINT is ignored, and would ignore it, too.
    let mut child: Child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_lockstep")])
        .args(words)
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let ran = directory.join("ran");
    while fs::metadata(&ran).map_or(0, |it| it.len()) <= bytes {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "ended by itself: {ended:?}");
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("nothing ran");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    child.wait_with_output().unwrap()
}

#[test]
fn tests_that_are_interrupted_tell_what_was_found_so_far() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go-interrupted");
    fs::write(scratch.join("go.mod"), MODULE).unwrap();
    fs::write(scratch.join("x_test.go"), TESTS).unwrap();
    // So many executions are of several runs, whatever is tried beside the first.
    let words = [
        "go",
        "test",
        "--runs",
        "20000",
        "--write-baseline",
        "known",
        ".",
    ];
    let output = interrupted(scratch.path(), &words, 40);
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("ok    x  1 test, "), "{said}");
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    let note =
        "lockstep: interrupted by signal 2 when 0 of 2 tests were over: what was found so far";
    assert!(complained.contains(note), "{complained}");
    assert!(!scratch.join("known").exists());
}

#[test]
fn a_program_gets_the_signal_and_ends_as_it_likes() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go-interrupted");
    fs::write(scratch.join("go.mod"), MODULE).unwrap();
    fs::write(scratch.join("main.go"), SERVER).unwrap();
    let output = interrupted(scratch.path(), &["go", "run", "--runs", "5", "."], 0);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "down\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("lockstep: fail in run 1 of 1, seed "),
        "{said}"
    );
}
