//! Choosing functions by name: a run with `--trace` and `--skip` is the full run without the others.

use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};

/// What is left of `lockstep events` when only calls of functions that `keep` accepts stay, with the
/// returns that belong to them.
fn projected(events: &str, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let mut open: Vec<bool> = Vec::new();
    let mut left = Vec::new();
    for line in events.lines() {
        let kept = match line.strip_prefix("call ") {
            Some(name) => {
                open.push(keep(name));
                open.last().copied()
            }
            None => open.pop(),
        };
        if kept == Some(true) {
            left.push(line.to_owned());
        }
    }
    left
}

fn events(run: &Recording) -> String {
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    run.text(&["events", "-t", "0.0"])
}

#[test]
fn a_chosen_run_is_the_full_run_without_the_others() {
    if !tools::require(&["gcc", "g++"]) {
        return;
    }
    let scratch = Scratch::new("choice");
    // Among them: jumps over frames, exceptions, and tail calls from and to what is left out.
    let cases = [
        ("c/longjmp.c", "-O1", "dive|after", "^$x"),
        ("c/longjmp.c", "-O1", ".", "longjmp|setjmp"),
        ("c/tail_calls.c", "-O2", "first|third|is_odd", "^$x"),
        ("c/tail_calls.c", "-O2", ".", "second|is_odd"),
        ("cpp/throw.cpp", "-O1", "^(deep|caught)\\(", "^$x"),
        ("cpp/throw.cpp", "-O1", ".", "throw|~Guard"),
        ("c/recursion.c", "-O1", "^[a-m]", "e$"),
    ];
    for (source, level, trace, skip) in cases {
        let program = Recipe::new(source).flag(level).build();
        let full = record(&scratch, &[], &[&program]);
        let part = record(&scratch, &["--trace", trace, "--skip", skip], &[&program]);
        assert_eq!(part.outcome.stdout, full.outcome.stdout, "{source}");
        let (wanted, unwanted) = (pattern(trace), pattern(skip));
        let expected = projected(&events(&full), |name| wanted(name) && !unwanted(name));
        assert!(!expected.is_empty(), "{source} {trace}");
        let found: Vec<String> = events(&part).lines().map(str::to_owned).collect();
        assert_eq!(found, expected, "{source} --trace {trace} --skip {skip}");
    }
}

/// The few forms of expression that the cases use.
fn pattern(text: &str) -> impl Fn(&str) -> bool {
    let text = text.to_owned();
    move |name| match text.as_str() {
        "." => true,
        "^$x" => false,
        "^[a-m]" => name.starts_with(|c| ('a'..='m').contains(&c)),
        "e$" => name.ends_with('e'),
        "^(deep|caught)\\(" => name.starts_with("deep(") || name.starts_with("caught("),
        words => words.split('|').any(|word| name.contains(word)),
    }
}

#[test]
fn programs_that_the_command_starts_are_chosen_from_too() {
    let scratch = Scratch::new("choice-inside");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let script = format!("{}; true", program.display());
    let words = ["sh", "-c", &script];
    let run = record(
        &scratch,
        &["--trace", "^main$", "--skip", "^nobody$"],
        &words,
    );
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let told = |option: &str| {
        let line = format!("lockstep: {option} found no function and no library call");
        run.outcome.stderr.lines().any(|found| found == line)
    };
    assert!(
        told("--skip '^nobody$'") && !told("--trace '^main$'"),
        "{run:#?}"
    );
    let info = run.json(&["info"]);
    for process in info["processes"].as_array().expect("processes") {
        assert_eq!(process["chosen"]["trace"][0], "^main$", "{process:#}");
        assert_eq!(process["chosen"]["skip"][0], "^nobody$", "{process:#}");
        assert!(
            process["chosen"]["left_out"].as_u64() > Some(0),
            "{process:#}"
        );
        assert_eq!(process["functions"]["refused"], serde_json::json!([]));
        assert!(
            process["functions"]["traced"].as_u64() <= Some(1),
            "{process:#}"
        );
    }
    let calls = run.text(&["calls"]);
    assert!(
        calls.contains("main") && calls.lines().count() <= 3,
        "{calls}"
    );
}

#[test]
fn the_end_of_the_program_is_its_own_whatever_is_chosen() {
    let scratch = Scratch::new("choice-status");
    let words = ["sh", "-c", "exit 7"];
    let run = record(&scratch, &["--trace", "no_such_function"], &words);
    assert_eq!(run.outcome.status, 7, "{run:#?}");
    assert!(run.outcome.stderr.contains("found no function"), "{run:#?}");
    let wrong = record(&scratch, &["--trace", "sol(ve"], &words);
    assert_eq!(wrong.outcome.status, 125, "{wrong:#?}");
    assert!(
        wrong.outcome.stderr.contains("at character 4"),
        "{wrong:#?}"
    );
    assert!(!wrong.directory.exists());
}
