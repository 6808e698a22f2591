//! Sealed runs that are kept, of every kind of fault: what is found in them stays what it was, by typed facts. See
//! `tests/kept/README.md`.

use lockstep_testkit::command::{self, Running, few_at_once};
use lockstep_testkit::facts::Answer;
use lockstep_testkit::hang::stand_still;
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Scratch, artifacts, lockstep, tools};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// A line of `cases.txt`.
#[derive(Debug)]
struct Case {
    name: &'static str,
    program: &'static str,
    flags: &'static str,
    launcher: &'static str,
    words: &'static str,
    normal: Option<&'static str>,
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

fn cases() -> Vec<Case> {
    let text = include_str!("../kept/cases.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let case = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, program, flags, launcher, words, normal] = cells[..] else {
            panic!("expected six cells: {line}");
        };
        Case {
            name,
            program,
            flags,
            launcher,
            words,
            normal: Some(normal).filter(|it| *it != "-"),
        }
    };
    lines.map(case).collect()
}

impl Case {
    fn archive(&self) -> PathBuf {
        place().join(format!("{}.tar.gz", self.name))
    }

    /// What is asked.
    fn questions(&self) -> Vec<&'static [&'static str]> {
        let alone: &[&str] = &["progress", "run"];
        match self.normal {
            None => vec![alone],
            Some(_) => vec![
                alone,
                &["progress", "run", "--normal", "normal"],
                &["compare", "normal", "run", "--fresh"],
            ],
        }
    }

    /// The answers, as `expected.txt` has them.
    fn answers(&self, scratch: &Scratch) -> String {
        let directory = scratch.join(self.name);
        fs::create_dir_all(&directory).expect("scratch");
        let archive = self.archive();
        tar(&["-xzf", archive.to_str().expect("UTF-8")], &directory);
        let mut text = format!("{}\n", self.name);
        for words in self.questions() {
            let mut ask = lockstep(words);
            let outcome = command::run(ask.arg("--json").current_dir(&directory));
            let answer = Answer::read(&outcome).expect("an answer");
            // A string takes everything.
            let _ = writeln!(text, "  {}", words.join(" "));
            for line in answer.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }
}

fn tar(words: &[&str], directory: &Path) {
    let outcome = command::run(Command::new("tar").args(words).current_dir(directory));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn what_is_found_in_them_is_what_was() {
    let scratch = Scratch::new("kept");
    let found = Mutex::new(BTreeMap::new());
    let cases = cases();
    assert!(cases.len() >= 30);
    few_at_once(&cases, |case| {
        let answers = case.answers(&scratch);
        let mut found = found.lock().expect("no panic");
        found.insert(case.name, answers);
    });
    let found = found.into_inner().expect("no panic");
    let text: String = cases.iter().map(|it| found[it.name].as_str()).collect();
    let expected = fs::read_to_string(place().join("expected.txt")).unwrap_or_default();
    if text != expected {
        let new = artifacts::target().join("testkit/kept.txt");
        fs::write(&new, &text).expect("target can be written");
        let differ = |it: &(&str, &str)| it.0 != it.1;
        let first = text.lines().zip(expected.lines()).find(differ);
        panic!("{}: {first:#?} (now, before)", new.display());
    }
}

/// The answers that are kept of a case to a question, each a line: the status comes first.
fn kept<'t>(text: &'t str, case: &str, question: &[&str]) -> Vec<&'t str> {
    let question = format!("  {}", question.join(" "));
    let of_case = text.lines().skip_while(|it| *it != case).skip(1);
    let of_case = of_case.take_while(|it| it.starts_with(' '));
    let answers = of_case.skip_while(|it| *it != question).skip(1);
    let answers = answers.map_while(|it| it.strip_prefix("    "));
    answers.collect()
}

#[test]
fn of_a_run_that_hangs_both_commands_suspect_the_same() {
    let text = fs::read_to_string(place().join("expected.txt")).expect("expected.txt");
    let mut asked = 0;
    for case in cases() {
        let [_, beside, compared] = case.questions()[..] else {
            continue;
        };
        let answers = [beside, compared].map(|it| kept(&text, case.name, it));
        let suspects = answers.each_ref().map(|it| {
            let first = it.get(1).and_then(|it| it.split(' ').nth(1));
            first.map_or(Vec::new(), |it| it.split(',').collect::<Vec<&str>>())
        });
        if answers[0].first() == Some(&"status 1") {
            assert_eq!(suspects[0], suspects[1], "{}", case.name);
            asked += 1;
        }
    }
    assert!(asked >= 6, "{asked}");
}

#[test]
fn they_are_small_and_name_no_place() {
    let scratch = Scratch::new("kept-places");
    let mut bytes = 0;
    for case in cases() {
        let archive = case.archive();
        bytes += fs::metadata(&archive).expect("an archive").len();
        tar(&["-xzf", archive.to_str().expect("UTF-8")], scratch.path());
        for run in ["run", "normal"] {
            let run = scratch.join(run);
            if !run.exists() {
                continue;
            }
            let told = command::run(lockstep(&["info", "--json", "--all-processes"]).arg(&run));
            let mut text = told.success().stdout;
            let parts = fs::read_dir(&run).expect("a run");
            for part in parts.map(|it| it.expect("an entry").path()) {
                let files = match part.is_dir() {
                    true => fs::read_dir(&part)
                        .expect("a directory")
                        .flatten()
                        .map(|it| it.path())
                        .collect(),
                    false => vec![part],
                };
                for file in files {
                    text.push_str(&String::from_utf8_lossy(&fs::read(file).expect("a file")));
                }
            }
            for word in ["/tmp", "/work", "/home", "/root"] {
                assert!(!text.contains(word), "{} has {word}", case.name);
            }
            fs::remove_dir_all(run).expect("scratch");
        }
    }
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

/// Where they are made: a path that says nothing of whoever makes them.
const MADE: &str = "/opt/kept";

#[test]
#[ignore = "only for new cases: records them, and needs Open MPI and a writable /opt"]
fn make() {
    for case in cases().iter().filter(|it| !it.archive().exists()) {
        let directory = Path::new(MADE);
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory).expect("/opt can be written");
        let program = compile(case);
        let mut parts = vec!["run"];
        if let Some(words) = case.normal {
            record(case, &program, words, "normal");
            parts.push("normal");
        }
        record(case, &program, case.words, "run");
        let archive = case.archive();
        let owner = ["--owner=0", "--group=0", "--sort=name", "--mtime=@0"];
        let file = archive.to_str().expect("UTF-8");
        tar(&[&["-czf", file][..], &owner, &parts].concat(), directory);
    }
    let _ = fs::remove_dir_all(MADE);
}

/// Compiles the program in [`MADE`]; how it is called there.
fn compile(case: &Case) -> String {
    let source = artifacts::repository().join("programs").join(case.program);
    let file = source
        .file_name()
        .and_then(|it| it.to_str())
        .expect("a name");
    fs::copy(&source, Path::new(MADE).join(file)).expect("a source");
    let (name, kind) = file.rsplit_once('.').expect("an ending");
    let compiler = if kind == "cpp" {
        "mpicxx.openmpi"
    } else {
        "mpicc.openmpi"
    };
    let here = format!("-ffile-prefix-map={MADE}=.");
    let mut compile = Command::new(compiler);
    compile
        .args(["-g", "-O1", &here])
        .args(case.flags.split_whitespace());
    let _ = command::run(compile.args([file, "-o", name]).current_dir(MADE)).success();
    format!("./{name}")
}

/// Records one of the two runs, and seals it.
fn record(case: &Case, program: &str, words: &str, name: &str) {
    let mut all: Vec<&str> = case.launcher.split_whitespace().collect();
    all.push(program);
    all.extend(words.split_whitespace());
    let run = Path::new(MADE).join(name);
    let mut command = record_command(Path::new(name), &["--redact", "--no-time"], &all);
    let stood = stand_still(
        Running::start(command.current_dir(MADE)),
        &run,
        Duration::ZERO,
    );
    tools::note(&format!("{} {name}: hung: {}", case.name, stood.hung));
    let _ = command::run(lockstep(&["seal"]).arg(&run)).success();
    let _ = fs::remove_dir_all(run.join("budgets"));
}
