//! `lockstep go test`: what only all tests of a package in one process show, what does not hang on them, and
//! a method's value as a clean-up.

#![allow(clippy::unwrap_used)]

use lockstep_testkit::{Scratch, tools};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn lockstep(scratch: &Scratch, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(words)
        .current_dir(scratch.path())
        .output()
        .unwrap()
}

/// A package of its own.
fn package(name: &str, test: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::write(scratch.join("go.mod"), "module example.com/x\n\ngo 1.25\n").unwrap();
    fs::write(scratch.join("x_test.go"), test).unwrap();
    scratch
}

/// What is said of its worst test: name, verdict, sentence, cause.
fn worst(output: &Output) -> [String; 4] {
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = &found["packages"][0];
    let tests = package["tests"].as_array().unwrap();
    let worst = tests.iter().find(|it| it["test"] == package["test"]);
    ["test", "verdict", "sentence", "cause"].map(|key| {
        let text = worst.unwrap()[key].as_str().unwrap_or_default();
        text.replace(r"\n", " ")
    })
}

const RACE: &str = r#"package x

import "testing"

var retries int

func configure(n int) { retries = n }

func TestRetry(t *testing.T) {
	t.Parallel()
	configure(3)
}

func TestOnce(t *testing.T) {
	t.Parallel()
	configure(0)
}
"#;

#[test]
fn parallel_tests_race_with_each_other() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = package("go-together-race", RACE);
    let output = lockstep(&scratch, &["go", "test", "--race", "--json", "-o", "found"]);
    assert_eq!(output.status.code(), Some(1));
    let [test, verdict, sentence, cause] = worst(&output);
    assert_eq!((&*test, &*verdict), ("all tests together", "race"));
    assert!(sentence.contains("by TestRetry"), "{sentence}");
    assert!(sentence.ends_with("; no test shows that by itself"));
    assert!(cause.ends_with("x_test.go:7"), "{cause}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["packages"][0]["tests"][2]["kept"].is_u64());
}

const STATE: &str = r#"package x

import "testing"

var known = map[string]int{}

func TestPut(t *testing.T) {
	known["ann"] = 1
}

func TestEmpty(t *testing.T) {
	if len(known) > 0 {
		t.Fatal("not empty")
	}
}
"#;

#[test]
fn a_test_fails_behind_another() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = package("go-together-state", STATE);
    let output = lockstep(&scratch, &["go", "test", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let [test, verdict, sentence, _] = worst(&output);
    assert_eq!((&*test, &*verdict), ("all tests together", "fail"));
    assert_eq!(
        sentence,
        "TestEmpty failed, at x_test.go:13: not empty; no test shows that by itself"
    );
    let text = lockstep(&scratch, &["go", "test"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("  2 tests, 21 runs in "), "{text}");
}

/// It fails in all but one of its first runs: there are no others on whom that could hang.
const NOW_AND_THEN: &str = r#"package x

import (
	"os"
	"testing"
)

func TestCount(t *testing.T) {
	was, _ := os.ReadFile("count")
	os.WriteFile("count", append(was, '.'), 0o644)
	if len(was) != 2 {
		t.Fatal("now and then")
	}
}
"#;

#[test]
fn a_test_that_is_alone_needs_no_others() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = package("go-together-alone", NOW_AND_THEN);
    let output = lockstep(&scratch, &["go", "test", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let [test, verdict, ..] = worst(&output);
    assert_eq!((&*test, &*verdict), ("TestCount", "fail"));
}

/// A clean-up is a method's value, and waits for what the clean-up behind it would do.
const METHOD_VALUE: &str = r#"package x

import "testing"

type consumer struct {
	in   chan int
	done chan struct{}
}

func (c *consumer) run() {
	for range c.in {
	}
	close(c.done)
}

func (c *consumer) Wait() { <-c.done }

func TestConsume(t *testing.T) {
	c := &consumer{make(chan int), make(chan struct{})}
	t.Cleanup(func() { close(c.in) })
	go c.run()
	t.Cleanup(c.Wait)
	c.in <- 1
}
"#;

#[test]
fn what_a_method_s_value_does_is_seen() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = package("go-together-value", METHOD_VALUE);
    let output = lockstep(&scratch, &["go", "test", "--json"]);
    let [_, verdict, sentence, _] = worst(&output);
    assert_eq!(verdict, "global-deadlock");
    assert!(
        sentence.contains("waits at x_test.go:16 to receive from the channel made at"),
        "{sentence}"
    );
    assert!(sentence.ends_with(": a circle"), "{sentence}");
}
