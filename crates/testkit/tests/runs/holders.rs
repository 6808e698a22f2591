//! Threads that wait for what another holds, or for what never comes: who holds it and where it was taken, whatever else is taken and
//! given back meanwhile; processes that were forked; a handler that waits for what it interrupted.

use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};
use serde_json::Value;
use std::path::Path;

/// The line of a program with this comment at its end.
fn line_of(program: &str, comment: &str) -> String {
    let path = lockstep_testkit::artifacts::repository()
        .join("programs")
        .join(program);
    let source = std::fs::read_to_string(&path).expect("the source is there");
    let mut lines = source.lines();
    let line = lines.position(|it| it.ends_with(&format!("// {comment}")));
    let name = path.file_name().expect("a name").to_string_lossy();
    format!("{name}:{}", line.expect("a line") + 1)
}

fn hang(scratch: &Scratch, program: &Path, words: &[&str]) -> Recording {
    let mut all = vec![program.display().to_string()];
    all.extend(words.iter().map(|it| (*it).to_owned()));
    record(scratch, &["--hang", "12", "--on-hang", "stop"], &all)
}

/// Who is told, in facts of a kind, and the end of the first line.
fn told(answer: &Value, kind: &str) -> Vec<(String, String)> {
    let facts = answer["facts"].as_array().expect("facts");
    let of_kind = facts.iter().filter(|it| it["kind"] == kind);
    let text = |it: &Value| it.as_str().unwrap_or("").to_owned();
    of_kind
        .map(|it| {
            let line = text(&it["lines"][0]);
            let name = line.rsplit('/').next().unwrap_or("").to_owned();
            (text(&it["who"][0]), name)
        })
        .collect()
}

fn who(told: &[(String, String)]) -> Vec<&str> {
    told.iter().map(|it| it.0.as_str()).collect()
}

#[test]
fn who_holds_it_is_told_with_the_line_in_which_it_was_taken() {
    if !tools::require(&["gcc"]) {
        return;
    }
    const KINDS: [&str; 9] = [
        "mutex",
        "tried",
        "twice",
        "rwlock",
        "readers",
        "spin",
        "semaphore",
        "c11",
        "openmp",
    ];
    let scratch = Scratch::new("holders");
    let source = "threads/holders.c";
    for optimisation in ["-O0", "-O2"] {
        let program = Recipe::new(source).flags(&["-g", optimisation]).build();
        for kind in KINDS {
            let answer = hang(&scratch, &program, &[kind]).json(&["progress"]);
            assert_eq!(answer["kind"], "deadlock", "{kind}: {answer:#}");
            let expected = ("0.1".to_owned(), line_of(source, &format!("kept {kind}")));
            assert_eq!(told(&answer, "kept-lock"), [expected], "{kind}: {answer:#}");
        }
    }
    let program = Recipe::new(source).flags(&["-g"]).build();
    for kind in KINDS {
        let healthy = hang(&scratch, &program, &[kind, "back"]);
        assert_eq!(healthy.outcome.stdout, "1\n", "{kind}");
        assert_eq!(healthy.json(&["progress"])["kind"], "none", "{kind}");
    }
}

#[test]
fn a_mutex_of_cplusplus_is_told_with_the_programs_own_line() {
    if !tools::require(&["g++"]) {
        return;
    }
    let scratch = Scratch::new("guards");
    let source = "cpp/guards.cpp";
    for optimisation in ["-O0", "-O2"] {
        let program = Recipe::new(source).flags(&["-g", optimisation]).build();
        let answer = hang(&scratch, &program, &[]).json(&["progress"]);
        assert_eq!(answer["kind"], "deadlock", "{answer:#}");
        let kept = told(&answer, "kept-lock");
        assert_eq!(who(&kept), ["0.1"], "{answer:#}");
        // An optimiser leaves no call in the program's own lines but that of the header's function.
        if optimisation == "-O0" {
            assert_eq!(kept[0].1, line_of(source, "kept"), "{answer:#}");
        }
        let verdict = answer["verdict"].as_str().expect("a sentence");
        assert!(verdict.contains("push("), "{verdict}");
        let healthy = hang(&scratch, &program, &["back"]);
        assert_eq!(healthy.outcome.stdout, "6\n");
    }
}

#[test]
fn a_child_of_fork_is_a_process() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("forks");
    for optimisation in ["-O0", "-O2"] {
        let program = Recipe::new("openmp/forks.c")
            .flags(&["-g", optimisation])
            .build();
        for (word, kind) in [("pool", "waits-for-team"), ("lock", "waits-for-lock")] {
            let answer = hang(&scratch, &program, &[word]).json(&["progress"]);
            assert_eq!(answer["kind"], "deadlock", "{word}: {answer:#}");
            assert_eq!(who(&told(&answer, kind)), ["1.0"], "{word}: {answer:#}");
            assert_eq!(who(&told(&answer, "deadlock")), ["1.0"], "{answer:#}");
            let verdict = answer["verdict"].as_str().expect("a sentence");
            assert!(
                verdict.starts_with("deadlock: process 1 waits in "),
                "{verdict}"
            );
        }
        let healthy = hang(&scratch, &program, &["healthy"]);
        assert_eq!(healthy.outcome.status, 0);
        assert_eq!(healthy.json(&["progress"])["kind"], "none");
    }
}

#[test]
fn a_handler_that_wants_what_it_interrupted_waits_for_itself() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("interrupts-malloc");
    let source = "c/interrupts_malloc.c";
    let program = Recipe::new(source).flags(&["-g"]).build();
    let answer = hang(&scratch, &program, &[]).json(&["progress"]);
    assert_eq!(answer["kind"], "deadlock", "{answer:#}");
    let itself = told(&answer, "waits-for-itself");
    assert_eq!(
        itself,
        [("0.0".to_owned(), line_of(source, "again"))],
        "{answer:#}"
    );
    let verdict = answer["verdict"].as_str().expect("a sentence");
    assert!(
        verdict.contains("a signal handler ran within "),
        "{verdict}"
    );
    let healthy = hang(&scratch, &program, &["healthy"]);
    assert_eq!(healthy.outcome.stdout, "1\n");
}
