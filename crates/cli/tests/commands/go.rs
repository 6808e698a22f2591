//! `lockstep go`: statuses, messages and keys as the contract has them.

#![allow(clippy::unwrap_used)]

use lockstep_testkit::{Scratch, tools};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/go/capture")
}

fn lockstep(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    last.to_owned()
}

#[test]
fn tests_are_judged_one_by_one_and_kept_as_runs() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go");
    let place = scratch.join("found");
    let kept = place.to_string_lossy().into_owned();
    let words = [
        "go", "test", "--json", "--runs", "2", "-o", &kept, "./alone",
    ];
    let output = lockstep(&sources(), &words);
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["verdict"], "fail");
    let package = &found["packages"][0];
    assert_eq!(package["package"], "example.com/capture/alone");
    assert!(package["coverage"]["total"].as_u64().unwrap() > 0);
    let verdicts: Vec<_> = package["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["test"].as_str().unwrap(),
                it["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("TestPasses", "pass"),
        ("TestFails", "fail"),
        ("TestLeaks", "leak"),
    ];
    assert_eq!(verdicts, expected);
    // Each execution is kept: those in which what a run showed to be near was tried, too.
    let kept_rows = fs::read(place.join("lockstep-go.json")).unwrap();
    let kept_rows: Value = serde_json::from_slice(&kept_rows).unwrap();
    let tests: Vec<&str> = kept_rows["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["test"].as_str().unwrap())
        .collect();
    assert!(tests.iter().filter(|it| **it == "TestPasses").count() >= 2);
    let number = |test: &str| tests.iter().position(|it| *it == test).unwrap() + 1;
    assert_eq!(package["tests"][0]["kept"], Value::Null);
    assert_eq!(package["tests"][2]["kept"], number("TestLeaks"));
    let run = place.join(format!("run-{}", number("TestLeaks")));
    let run = run.to_string_lossy().into_owned();
    let info = lockstep(&sources(), &["info", &run, "--json"]);
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    let threads = info["processes"][0]["threads"].as_array().unwrap().clone();
    let last = threads.last().unwrap();
    assert_eq!(last["trace"], "0.2");
    assert_eq!(last["open"].as_array().unwrap().last().unwrap(), "send");
    let fails = number("TestFails").to_string();
    let replay = lockstep(&sources(), &["go", "replay", &kept, "--run", &fails]);
    assert_eq!(replay.status.code(), Some(1), "a failing test's own status");
    let one_more = (tests.len() + 1).to_string();
    let past = lockstep(&sources(), &["go", "replay", &kept, "--run", &one_more]);
    assert_eq!(past.status.code(), Some(125));
    assert_eq!(
        complaint(&past),
        format!(
            "lockstep: expected a run from 1 to {}, found {one_more}",
            tests.len()
        )
    );

    let baseline = scratch.join("known");
    fs::write(&baseline, "# known\nleak alone_test.go:17\n").unwrap();
    let baseline = baseline.to_string_lossy().into_owned();
    let words = [
        "go",
        "test",
        "--baseline",
        &baseline,
        "./alone",
        "--",
        "-run",
        "TestLeaks",
    ];
    assert_eq!(lockstep(&sources(), &words).status.code(), Some(0));
    // What is known is written once, and then nothing counts; a file stands for all its lines.
    let words = [
        "go",
        "test",
        "--runs",
        "1",
        "--write-baseline",
        &baseline,
        "./alone",
    ];
    assert_eq!(lockstep(&sources(), &words).status.code(), Some(0));
    let written = fs::read_to_string(&baseline).unwrap();
    let labels: Vec<&str> = written.lines().filter(|it| !it.starts_with('#')).collect();
    assert_eq!(labels, ["fail alone_test.go:12", "leak alone_test.go:17"]);
    fs::write(&baseline, "fail alone_test.go\nleak alone_test.go\n").unwrap();
    let words = [
        "go",
        "test",
        "--json",
        "--runs",
        "2",
        "--baseline",
        &baseline,
        "./alone",
    ];
    let output = lockstep(&sources(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for test in found["packages"][0]["tests"].as_array().unwrap() {
        assert_eq!(test["runs"], 2, "goes on behind what is known: {test}");
    }
}

#[test]
fn events_are_those_of_go_test() {
    if !tools::require(&["go"]) {
        return;
    }
    let words = [
        "go", "test", "--runs", "1", "./alone", "./ends", "--", "-json",
    ];
    let output = lockstep(&sources(), &words);
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut ends = Vec::new();
    let mut said = String::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let action = event["Action"].as_str().unwrap();
        match action {
            "output" if event["Test"] == "TestFails" => {
                said.push_str(event["Output"].as_str().unwrap());
            }
            "pass" | "fail" | "skip" => {
                let package = event["Package"].as_str().unwrap();
                let test = event["Test"].as_str().unwrap_or("-").to_owned();
                ends.push((
                    package.rsplit('/').next().unwrap().to_owned(),
                    test,
                    action.to_owned(),
                ));
            }
            "output" | "run" | "start" => {}
            other => panic!("{other}"),
        }
    }
    let expected = [
        ("ends", "-", "skip"),
        ("alone", "TestPasses", "pass"),
        ("alone", "TestFails", "fail"),
        ("alone", "TestLeaks", "fail"),
        ("alone", "-", "fail"),
    ];
    let expected = expected.map(|it| (it.0.to_owned(), it.1.to_owned(), it.2.to_owned()));
    assert_eq!(ends, expected);
    for part in [
        "=== RUN   TestFails\n",
        "fail alone_test.go:",
        "--- FAIL: TestFails (",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let both = ["go", "test", "--json", "./alone", "--", "-json"];
    assert_eq!(lockstep(&sources(), &both).status.code(), Some(2));
}

#[test]
fn subtests_have_events_of_their_own() {
    if !tools::require(&["go"]) {
        return;
    }
    let run = |more: &[&str]| -> Vec<(String, String)> {
        let words = ["go", "test", "--runs", "1", "./subtests", "--", "-json"];
        let output = lockstep(&sources(), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|it| {
            let event: Value = serde_json::from_str(it).unwrap();
            let time = event["Time"].as_str().unwrap();
            assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
            let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            match word("Output") {
                said if said.contains("as it should") => ("said".to_owned(), word("Test")),
                _ => (word("Action"), word("Test")),
            }
        });
        events
            .filter(|it| it.1.contains('/') && it.0 != "output")
            .collect()
    };
    let bad = ["run", "said", "fail"].map(|it| (it.to_owned(), "TestTable/bad".to_owned()));
    let good = ["run", "pass"].map(|it| (it.to_owned(), "TestTable/good".to_owned()));
    for more in [&[][..], &["-v"]] {
        let mut all = run(more);
        all.sort_by_key(|it| it.1.ends_with("bad"));
        assert_eq!(all, [&good[..], &bad[..]].concat());
    }
}

/// What keeps the order is memory, of which nothing is recorded.
#[test]
fn what_is_suspicious_and_never_happens_is_said_to_be_unconfirmed() {
    const ORDERED: &str = r#"package x

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestOrdered(t *testing.T) {
	c := make(chan int, 1)
	var sent atomic.Bool
	go func() {
		c <- 1
		sent.Store(true)
	}()
	for !sent.Load() {
		time.Sleep(time.Millisecond)
	}
	close(c)
}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", ORDERED)]);
    let words = ["go", "test", "--runs", "1", "x_test.go"];
    let output = lockstep(scratch.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    let part = "not confirmed by any:\n    TestOrdered: close-and-send: goroutine ";
    assert!(said.contains(part), "{said}");
    let words = [&["go", "test", "--json"], &words[2..]].concat();
    let output = lockstep(scratch.path(), &words);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let suspicion = &found["packages"][0]["suspicions"][0];
    assert_eq!(suspicion["kind"], "close-and-send", "{found:#}");
    assert_eq!(suspicion["places"].as_array().unwrap().len(), 2);
}

/// A bug that was found is told once.
#[test]
fn what_is_confirmed_is_no_suspicion() {
    if !tools::require(&["go"]) {
        return;
    }
    let zoo = sources().join("../zoo");
    let words = "go test --json --runs 10 ./abba_callback -- -run TestBug";
    let output = lockstep(&zoo, &words.split(' ').collect::<Vec<_>>());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = &found["packages"][0];
    assert_eq!(package["verdict"], "global-deadlock", "{found:#}");
    let suspicions = package["suspicions"].as_array().unwrap();
    assert!(
        suspicions.iter().all(|it| it["kind"] != "lock-order"),
        "{found:#}"
    );
}

/// What a healthy run says nothing of, and the source does.
#[test]
fn ways_that_no_run_went_are_suspicious() {
    if !tools::require(&["go"]) {
        return;
    }
    let words = "go test --json --runs 1 --delays 0 ./paths";
    let output = lockstep(&sources(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let package = &found["packages"][0];
    let suspicions = package["suspicions"].as_array().unwrap().iter();
    let told: BTreeSet<(u64, String)> = suspicions
        .map(|it| {
            let line = it["places"][0].as_str().unwrap().rsplit(':').next();
            let kind = it["kind"].as_str().unwrap().to_owned();
            (line.unwrap().parse().unwrap(), kind)
        })
        .collect();
    let source = std::fs::read_to_string(sources().join("paths/paths_test.go")).unwrap();
    let kinds = ["missed-unlock", "double-lock", "lock-order"];
    let expected = source.lines().zip(1..).filter_map(|(line, number)| {
        let kind = line.split("// ").nth(1).filter(|it| kinds.contains(it))?;
        Some((number, kind.to_owned()))
    });
    assert_eq!(told, expected.collect(), "{found:#}");
}

/// Others are never at rest, so that where goroutines stand is asked while they move.
#[test]
fn who_waits_for_ever_is_told_beside_others_that_go_on_and_who_goes_on_is_not() {
    if !tools::require(&["go"]) {
        return;
    }
    let said = |words: &str| {
        let words = ["go run --timeout", words].join(" ");
        let output = lockstep(&sources(), &words.split(' ').collect::<Vec<_>>());
        String::from_utf8(output.stderr).unwrap()
    };
    let stuck = said("600s ./aside stuck");
    assert!(stuck.contains("partial-deadlock in run 1"), "{stuck}");
    let slow = said("2s ./aside");
    assert!(slow.contains("slow in run 1"), "{slow}");
}

#[test]
fn a_program_ends_with_its_own_status() {
    if !tools::require(&["go"]) {
        return;
    }
    let run = |words: &[&str]| lockstep(&sources(), &[&["go", "run"], words].concat());
    assert_eq!(run(&["./ends", "exit"]).status.code(), Some(3));
    assert_eq!(run(&["./ends", "kill"]).status.code(), Some(137));
    let stuck = run(&["./deadlock"]);
    assert_eq!(stuck.status.code(), Some(137));
    let said = String::from_utf8_lossy(&stuck.stderr).into_owned();
    assert!(
        said.starts_with("lockstep: global-deadlock in run 1 of 1"),
        "{said}"
    );
    assert_eq!(run(&["./nowhere"]).status.code(), Some(125));
}

#[test]
fn what_cannot_be_done_is_said() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go");
    fs::write(scratch.join("go.mod"), "module broken\n\ngo 1.25\n").unwrap();
    fs::write(
        scratch.join("broken_test.go"),
        "package broken\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { x := 1 }\n",
    )
    .unwrap();
    let output = lockstep(scratch.path(), &["go", "test", "."]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("declared and not used: x"), "{said}");
    let none = lockstep(&sources(), &["go", "test", "./usages"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(complaint(&none).contains("none with tests"));
    let nothing = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["go", "test", "."])
        .env("PATH", "/nowhere")
        .current_dir(sources())
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert!(complaint(&nothing).contains("expected the go command on PATH"));
}

#[test]
fn a_test_that_needs_a_network_is_said_to() {
    if !tools::require(&["go"]) {
        return;
    }
    let test = "package x\n\nimport (\"net\"; \"testing\")\n\nfunc TestFetch(t *testing.T) {\n\tt.Fatal(&net.DNSError{Err: \"no such host\", Name: \"x.invalid\"})\n}\n";
    let scratch = place(&[("x_test.go", test)]);
    let found = lockstep(scratch.path(), &["go", "test", "--json", "x_test.go"]);
    assert_eq!(found.status.code(), Some(2));
    let said = complaint(&found);
    assert!(
        said.contains("expected a network, found none: TestFetch of"),
        "{said}"
    );
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["verdict"], "inconclusive");
    assert_eq!(found["packages"][0]["runs"], 1);
}

/// What `TestMain` waits for behind `m.Run` nobody does any more.
#[test]
fn test_main_may_wait_for_ever_behind_its_tests() {
    const TEST: &str = r#"package x

import (
	"os"
	"testing"
)

var in, done = make(chan int), make(chan bool)

func TestMain(m *testing.M) {
	go func() {
		for range in {
		}
		close(done)
	}()
	code := m.Run()
	<-done
	os.Exit(code)
}

func TestAdd(t *testing.T) { in <- 1 }
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", TEST)]);
    let found = lockstep(scratch.path(), &["go", "test", "--json", "x_test.go"]);
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["verdict"], "global-deadlock");
    let said = found["packages"][0]["sentence"].as_str().unwrap();
    assert!(
        said.contains("main waits at x_test.go:17 to receive from the channel made at x_test.go:8"),
        "{said}"
    );
}

/// What nobody outside could have ended, at the time limit: a lock that a handler keeps, and a connection whose other
/// end is the program's own; and what an end from outside is still possible of, which is not judged.
#[test]
fn who_waits_for_the_program_itself_by_the_network_hangs() {
    const TEST: &str = r#"package x

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
)

func TestHandler(t *testing.T) {
	var mu sync.Mutex
	known := map[string]bool{"/a": true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if !known[r.URL.Path] {
			http.NotFound(w, r)
			return
		}
		mu.Unlock()
	}))
	defer server.Close()
	for _, path := range []string{"/a", "/b", "/a"} {
		if answer, err := http.Get(server.URL + path); err == nil {
			answer.Body.Close()
		}
	}
}

func TestConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := listener.Accept(); err == nil {
			bufio.NewReader(c).ReadString('\n')
		}
	}()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("hello\n"))
	bufio.NewReader(c).ReadString('\n')
}

func TestProcess(t *testing.T) {
	out, err := exec.Command("sleep", "20").Output()
	if err != nil {
		t.Fatal(err, out)
	}
}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", TEST)]);
    let said = |test: &str, status: i32| {
        let words = format!("go test --json --runs 1 --timeout 4s x_test.go -- -run {test}");
        let found = lockstep(scratch.path(), &words.split(' ').collect::<Vec<_>>());
        let complaint = complaint(&found);
        assert_eq!(found.status.code(), Some(status), "{complaint}");
        let found: Value = serde_json::from_slice(&found.stdout).unwrap();
        let package = &found["packages"][0];
        let sentence = package["sentence"].as_str().unwrap_or_default();
        (
            package["verdict"].as_str().unwrap_or_default().to_owned(),
            sentence.to_owned(),
            complaint,
        )
    };
    let (verdict, sentence, _) = said("TestHandler", 1);
    assert_eq!(verdict, "global-deadlock", "{sentence}");
    for part in [
        "waits at x_test.go:17 for the mutex first used at x_test.go:17, held by goroutine",
        "; the test waits at x_test.go:26 within net/http",
        "; nothing moved for ",
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
    let (verdict, sentence, _) = said("TestConnection", 1);
    assert_eq!(verdict, "global-deadlock", "{sentence}");
    assert!(
        sentence.contains("the test waits at x_test.go:47 for the network"),
        "{sentence}"
    );
    let (verdict, sentence, complaint) = said("TestProcess", 2);
    assert_eq!(verdict, "inconclusive", "{sentence}");
    assert!(complaint.contains("expected TestProcess of"), "{complaint}");
}

/// What another test leaves behind may be needed; go test would find nothing wrong.
#[test]
fn a_test_that_needs_another_one_is_said_to() {
    const TEST: &str = r#"package x

import "testing"

var users = map[string]int{}

func TestAdd(t *testing.T) {
	users["ann"] = 1
}

func TestGet(t *testing.T) {
	if users["ann"] != 1 {
		t.Fatal("ann is missing")
	}
}

func TestNever(t *testing.T) {
	if users["bob"] != 1 {
		t.Fatal("bob is missing")
	}
}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", TEST)]);
    let said = |words: &str, status: i32| -> Value {
        let found = lockstep(scratch.path(), &words.split(' ').collect::<Vec<_>>());
        assert_eq!(found.status.code(), Some(status), "{}", complaint(&found));
        let found: Value = serde_json::from_slice(&found.stdout).unwrap();
        found["packages"][0]["tests"].clone()
    };
    let tests = said("go test --json --runs 1 x_test.go", 1);
    assert_eq!(tests[1]["verdict"], "inconclusive", "{tests:#}");
    assert_eq!(
        tests[1]["sentence"],
        "TestGet fails by itself, and passes together with the other tests of its package; by itself: TestGet failed, at x_test.go:13: ann is missing"
    );
    assert_eq!(tests[2]["verdict"], "fail", "{tests:#}");
    said("go test --json --runs 1 x_test.go -- -run Add|Get", 0);
    // Alone it fails with go test, too.
    said("go test --json --runs 1 x_test.go -- -run Get", 1);
}

/// What was begun before a test, and has done nothing since, is not the test's.
#[test]
fn who_was_there_before_the_test_and_idles_is_not_left_behind() {
    const TEST: &str = r#"package x

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	go func() { select {} }()
	go func() { <-make(chan int) }()
	os.Exit(m.Run())
}

func TestX(t *testing.T) {}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", TEST)]);
    let words = "go test --runs 3 x_test.go";
    let found = lockstep(scratch.path(), &words.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(0), "{said}");
    assert!(said.starts_with("ok "), "{said}");
}

/// The channels within a pipe of the standard library are not what anybody knows it by.
#[test]
fn pipes_are_told_as_pipes() {
    const TEST: &str = r#"package x

import (
	"io"
	"net"
	"testing"
)

func TestPipes(t *testing.T) {
	out, toOut := io.Pipe()
	errs, toErrs := io.Pipe()
	go func() {
		toErrs.Write([]byte("warning"))
		toOut.Close()
	}()
	io.ReadAll(out)
	io.ReadAll(errs)
}

func TestBothWrite(t *testing.T) {
	a, b := net.Pipe()
	go func() {
		a.Write([]byte("hello"))
		a.Read(make([]byte, 5))
	}()
	b.Write([]byte("hello"))
	b.Read(make([]byte, 5))
}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", TEST)]);
    let found = lockstep(scratch.path(), &["go", "test", "--json", "x_test.go"]);
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let tests = &found["packages"][0]["tests"];
    let said = |test: usize| tests[test]["sentence"].as_str().unwrap();
    for part in [
        "the test waits at x_test.go:16 to read from the pipe made at x_test.go:10, and goroutine ",
        " waits at x_test.go:13 to write to the pipe made at x_test.go:11, and nobody reads from it",
    ] {
        assert!(said(0).contains(part), "{}", said(0));
    }
    for part in [
        "the test waits at x_test.go:26 to write to the pipe made at x_test.go:21, and goroutine ",
        " waits at x_test.go:23 to write to the pipe made at x_test.go:21, and nobody reads from it",
    ] {
        assert!(said(1).contains(part), "{}", said(1));
    }
    let waits = &tests[1]["goroutines"][0]["waits_for"];
    assert_eq!(waits.as_array().unwrap().len(), 1, "{waits:#}");
}

/// Files in a place of their own, by name.
fn place(files: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::new("go");
    for (name, text) in files {
        let path = scratch.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    scratch
}

const LEAKS: &str = "package x\n\nimport \"testing\"\n\nfunc TestLeaks(t *testing.T) {\n\tc := make(chan int)\n\tgo func() { c <- 1 }()\n}\n";

/// What looks and acts then, with nothing of `sync` between but atomics and a map: the race detector has no race to
/// tell, and under it such methods are not inlined.
#[test]
fn checks_that_are_old_when_they_are_acted_on_show_under_the_race_detector_too() {
    const CHECKS: &str = r#"package x

import (
	"sync"
	"sync/atomic"
	"testing"
)

func twice(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Go(f)
	wg.Wait()
}

func TestAtomics(t *testing.T) {
	var free, taken atomic.Int64
	free.Store(1)
	twice(func() {
		if free.Load() > 0 {
			free.Add(-1)
			taken.Add(1)
		}
	})
	if taken.Load() != 1 {
		t.Error("taken twice")
	}
}

func TestMap(t *testing.T) {
	var m sync.Map
	var mu sync.Mutex
	made := 0
	twice(func() {
		if _, ok := m.Load("k"); !ok {
			m.Store("k", 1)
			mu.Lock()
			made++
			mu.Unlock()
		}
	})
	if made != 1 {
		t.Error("made twice")
	}
}
"#;
    if !tools::require(&["go", "gcc"]) {
        return;
    }
    let scratch = place(&[("x_test.go", CHECKS)]);
    let words = "go test --json --race --runs 40 x_test.go";
    let found = lockstep(scratch.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    for test in found["packages"][0]["tests"].as_array().unwrap() {
        assert_eq!(test["verdict"], "fail", "{found:#}");
    }
}

/// On one processor, as most schedules have it, the two would not run side by side by themselves.
#[test]
fn parallel_subtests_run_side_by_side_in_every_schedule() {
    const SUBTESTS: &str = r#"package x

import "testing"

func TestSubtests(t *testing.T) {
	c := make(chan int)
	t.Run("receive", func(t *testing.T) { t.Parallel(); <-c })
	t.Run("send", func(t *testing.T) { t.Parallel(); c <- 1 })
}
"#;
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", SUBTESTS)]);
    let run = |processors: &str| {
        Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["go", "test", "x_test.go"])
            .env("GOMAXPROCS", processors)
            .current_dir(scratch.path())
            .output()
            .unwrap()
    };
    let found = run("2");
    assert_eq!(found.status.code(), Some(0), "{}", complaint(&found));
    // So it is where go test itself would run one at a time.
    assert_eq!(run("1").status.code(), Some(1));
}

#[test]
fn files_need_no_module() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[("x_test.go", LEAKS)]);
    let found = lockstep(scratch.path(), &["go", "test", "--json", "x_test.go"]);
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["verdict"], "leak");
    let found = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["go", "test", "--json"])
        .env("GO111MODULE", "off")
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
}

#[test]
fn a_campaign_is_kept_below_where_one_stands_and_a_run_of_it_made_again() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[
        ("go.mod", "module example.com/below\n\ngo 1.25\n"),
        ("leaks/x_test.go", LEAKS),
    ]);
    let words = ["go", "test", "-o", "found", "./leaks"];
    let found = lockstep(scratch.path(), &words);
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let words = ["go", "replay", "found", "--run", "1"];
    let again = lockstep(scratch.path(), &words);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        said.contains(", as before, usage by usage (leak)"),
        "{said}"
    );
    let run = lockstep(scratch.path(), &["progress", "found/run-1", "--json"]);
    let run: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(run["kind"], "deadlock");
    let coverage = lockstep(scratch.path(), &["go", "coverage", "found"]);
    assert_eq!(coverage.status.code(), Some(0), "{}", complaint(&coverage));
    let page = |of: &[&str]| {
        let words = [&["report"], of, &["-o", "page.html"]].concat();
        let told = lockstep(scratch.path(), &words);
        assert_eq!(told.status.code(), Some(0), "{}", complaint(&told));
        fs::read_to_string(scratch.join("page.html")).unwrap()
    };
    for of in [&["found"][..], &["found/run-1"], &["found", "found/run-1"]] {
        let page = page(of);
        for title in [
            "Who waits for whom",
            "Timeline",
            "Goroutine tree",
            "Coverage",
            "Log for ShiViz",
        ] {
            assert!(page.contains(&format!(">{title}</h2>")), "{of:?}: {title}");
        }
        assert!(page.contains("go func() { c &lt;- 1 }()"), "the source");
        assert!(page.contains("proven unreachable"), "{of:?}");
    }
    let words = ["export", "found/run-1", "--to", "shiviz", "-o", "-"];
    let log = lockstep(scratch.path(), &words);
    assert!(String::from_utf8_lossy(&log.stdout).contains("send x_test.go:7\n"));
    // What was kept is damaged.
    let kept = scratch.join("found/run-1/execution.json.gz");
    let bytes = fs::read(&kept).unwrap();
    for length in [0, 5, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&kept, &bytes[..length]).unwrap();
        for (words, status) in [
            (&["go", "replay", "found", "--run", "1"][..], 125),
            (&["progress", "found/run-1"], 2),
            (&["go", "coverage", "found"], 2),
        ] {
            let found = lockstep(scratch.path(), words);
            assert_eq!(found.status.code(), Some(status), "{words:?}, {length}");
            assert!(complaint(&found).contains("execution.json.gz"), "{words:?}");
        }
    }
}

#[test]
fn what_does_not_build_or_begin_keeps_nothing_else_from_it() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = place(&[
        ("go.mod", "module example.com/several\n\ngo 1.25\n"),
        ("leaks/x_test.go", LEAKS),
        (
            "broken/x_test.go",
            "package x\n\nfunc f() { undefined() }\n",
        ),
        ("syntax/x_test.go", "package x\n\nfunc {\n"),
        // Built with calls of our own functions, and told as it is.
        (
            "atomics/x_test.go",
            "package x\n\nimport \"sync/atomic\"\n\nfunc f() { var n int64; atomic.AddInt32(&n, 1) }\n",
        ),
        (
            "panics/x_test.go",
            "package x\n\nimport \"testing\"\n\nfunc init() { panic(1) }\n\nfunc TestX(t *testing.T) {}\n",
        ),
        (
            "waits/x_test.go",
            "package x\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) { <-make(chan int) }\n\nfunc TestX(t *testing.T) {}\n",
        ),
    ]);
    let found = lockstep(scratch.path(), &["go", "test", "--json", "./..."]);
    assert_eq!(found.status.code(), Some(1), "{}", complaint(&found));
    let said = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(said.contains("undefined: undefined"), "{said}");
    assert!(said.contains("atomics/x_test.go:5:41: "), "{said}");
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let mut verdicts: Vec<(&str, &str, bool)> = found["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["package"].as_str().unwrap().rsplit('/').next().unwrap(),
                it["verdict"].as_str().unwrap(),
                it["builds"].as_bool().unwrap(),
            )
        })
        .collect();
    verdicts.sort_unstable();
    let expected = [
        ("atomics", "fail", false),
        ("broken", "fail", false),
        ("leaks", "leak", true),
        ("panics", "crash", true),
        ("syntax", "fail", false),
        ("waits", "global-deadlock", true),
    ];
    assert_eq!(verdicts, expected);
    for words in [&["test"][..], &["run"]] {
        let words = [&["go"], words, &["-o", "kept", "./broken"]].concat();
        let found = lockstep(scratch.path(), &words);
        assert!(complaint(&found).contains("packages that build"));
        assert!(!scratch.join("kept").exists(), "{words:?}");
    }
}

#[test]
fn usages_are_listed_with_types() {
    if !tools::require(&["go"]) {
        return;
    }
    let output = lockstep(&sources(), &["go", "usages", "--json", "./usages"]);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<&str> = found["usages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!(
        (
            count("select"),
            count("go"),
            count("close"),
            count("cond-wait")
        ),
        (2, 4, 1, 1)
    );
    assert_eq!(
        (count("receive"), count("send"), count("cancel")),
        (3, 2, 1)
    );
    let all = found["usages"].as_array().unwrap();
    let types = all.iter().filter_map(|it| it["type"].as_str());
    let types: BTreeSet<&str> = types.collect();
    for expected in ["chan int", "sync.Mutex", "context.CancelFunc"] {
        assert!(types.contains(expected), "{types:?}");
    }
}

#[test]
fn a_usage_has_the_form_of_its_source() {
    if !tools::require(&["go"]) {
        return;
    }
    let source = "package x\n\nimport \"sync\"\n\nfunc all(c <-chan int) {\n\tvar w sync.WaitGroup\n\tw.Go(func() {\n\t\tfor range c {\n\t\t}\n\t})\n\tw.Wait()\n}\n";
    let scratch = place(&[("go.mod", "module x\n\ngo 1.25\n"), ("x.go", source)]);
    let found = lockstep(scratch.path(), &["go", "usages", "."]);
    assert_eq!(
        String::from_utf8_lossy(&found.stdout),
        "x.go:7:4  add by Go  w  x.all\nx.go:8:3  receive by range  c  x.all.func1\nx.go:11:4  wait  w  x.all\n"
    );
}

#[test]
fn the_toolchain_tests_itself() {
    if !tools::require(&["go"]) {
        return;
    }
    let output = lockstep(&sources(), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = found["checks"].as_array().unwrap();
    let test = checks
        .iter()
        .find(|it| it["what"] == "Go self-test")
        .unwrap();
    assert_eq!(test["state"], "works", "{test}");
}

/// The go command fetches the toolchain that a `go.mod` names to where modules lie, and overlays no file there.
#[test]
fn a_toolchain_among_the_modules_is_tested_with() {
    if !tools::require(&["go"]) {
        return;
    }
    let root = Command::new("go").args(["env", "GOROOT"]).output().unwrap();
    let root = PathBuf::from(String::from_utf8_lossy(&root.stdout).trim());
    let scratch = place(&[("go.mod", "module x\n\ngo 1.25\n"), ("x_test.go", LEAKS)]);
    for words in [
        &["go", "test", "--json", "."][..],
        &["go", "usages", "--json", "."],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(words)
            .env("GOMODCACHE", root.parent().unwrap())
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        if words[1] == "test" {
            assert_eq!(output.status.code(), Some(1), "{found}");
            assert_eq!(found["verdict"], "leak", "{found}");
        } else {
            assert_eq!(output.status.code(), Some(0), "{found}");
        }
    }
}

fn files(scratch: &Scratch, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = scratch.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn vendored_packages_and_overlays_of_the_users_own_are_built_with() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go");
    files(
        &scratch,
        &[
            (
                "go.mod",
                "module m\n\ngo 1.25\n\nrequire example.com/dep v1.0.0\n",
            ),
            (
                "vendor/modules.txt",
                "# example.com/dep v1.0.0\n## explicit; go 1.25\nexample.com/dep\n",
            ),
            (
                "vendor/example.com/dep/dep.go",
                "package dep\n\nimport \"sync\"\n\nvar M sync.Mutex\n\nfunc Twice() {\n\tM.Lock()\n\tM.Lock()\n}\n",
            ),
            (
                "m_test.go",
                "package m\n\nimport (\n\t\"testing\"\n\n\t\"example.com/dep\"\n)\n\nfunc TestX(t *testing.T) { dep.Twice() }\n",
            ),
            (
                "other.txt",
                "package m\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Fatal(\"overlaid\") }\n",
            ),
        ],
    );
    let verdict = |flags: &[&str]| {
        let words = [&["go", "test", "--json", ".", "--"], flags].concat();
        let output = lockstep(scratch.path(), &words);
        let found: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let cause = found["packages"][0]["cause"].as_str().unwrap_or_default();
        let file = cause.rsplit('/').next().unwrap_or_default().to_owned();
        (found["verdict"].as_str().unwrap().to_owned(), file)
    };
    assert_eq!(
        verdict(&["-trimpath", "-mod=vendor"]),
        ("global-deadlock".into(), "dep.go:9".into())
    );
    let here = scratch.path().to_string_lossy().into_owned();
    let overlay =
        serde_json::json!({"Replace": {format!("{here}/m_test.go"): format!("{here}/other.txt")}});
    fs::write(scratch.join("mine.json"), overlay.to_string()).unwrap();
    assert_eq!(verdict(&["-overlay", "mine.json"]).0, "fail");
}

#[test]
fn callbacks_from_c_are_recorded_and_a_deadlock_behind_them_is_told() {
    if !tools::require(&["go", "gcc"]) {
        return;
    }
    let scratch = Scratch::new("go");
    let source = "package main

// #include <unistd.h>
// extern void back(int);
// static void call(int n) { usleep(1000); back(n); }
import \"C\"
import \"sync\"

var mu sync.Mutex
var c = make(chan int, 100)

//export back
func back(n C.int) { mu.Lock(); c <- int(n); mu.Unlock() }

func main() {
\tvar wg sync.WaitGroup
\tfor i := range 20 {
\t\twg.Add(1)
\t\tgo func() { defer wg.Done(); C.call(C.int(i)) }()
\t}
\twg.Wait()
\tprintln(len(c))
\tmu.Lock()
\tmu.Lock()
}
";
    files(
        &scratch,
        &[("go.mod", "module m\n\ngo 1.25\n"), ("main.go", source)],
    );
    let output = lockstep(scratch.path(), &["go", "run", "--json", "."]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("20"), "{said}");
    let found: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(found["verdict"], "global-deadlock");
    assert_eq!(found["goroutines"].as_array().unwrap().len(), 1);
}
