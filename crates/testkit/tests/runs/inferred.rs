//! Returns that nobody saw are marked, others are not.

use lockstep_testkit::{Recipe, Recording, Scratch, record};

const MARK: &str = "  (inferred)";

fn recorded(scratch: &Scratch, source: &str, options: &[&str]) -> Recording {
    let program = Recipe::new(source).flag("-O1").build();
    let run = record(scratch, options, &[&program]);
    assert_eq!(run.outcome.status, 0, "{:#?}", run.outcome);
    run
}

fn counted(run: &Recording) -> u64 {
    let info = run.json(&["info"]);
    let thread = &info["processes"][0]["threads"][0];
    thread["inferred"].as_u64().unwrap_or(u64::MAX)
}

/// Every event, marked; that they are the events that there are, and as many as `info` says.
fn marked(run: &Recording) -> String {
    let text = run.text(&["events", "-t", "0.0", "--inferred"]);
    assert_eq!(
        text.replace(MARK, ""),
        run.text(&["events", "-t", "0.0"]),
        "marks change no event"
    );
    assert_eq!(text.matches(MARK).count() as u64, counted(run), "{text}");
    assert_eq!(
        text.matches(MARK).count(),
        text.matches(&format!("return{MARK}\n")).count()
    );
    text
}

/// The functions whose returns are marked, in order; the lines, indented by depth.
fn ended(text: &str) -> Vec<&str> {
    let mut open = Vec::new();
    let mut ended = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("call ") {
            Some(name) => open.push(name),
            None => {
                let name = open.pop().unwrap_or_default();
                ended.extend(line.ends_with(MARK).then_some(name));
            }
        }
    }
    ended
}

#[test]
fn what_was_jumped_over() {
    let scratch = Scratch::new("jumped");
    let run = recorded(&scratch, "c/longjmp.c", &[]);
    let dives = ["longjmp", "dive", "dive", "dive", "dive"];
    let expected = [
        &dives[..],
        &dives[..],
        &dives[..],
        &["longjmp", "by_value", "qsort"][..],
    ];
    assert_eq!(ended(&marked(&run)), expected.concat());
}

#[test]
fn what_exceptions_unwound() {
    let scratch = Scratch::new("unwound");
    let program = Recipe::new("cpp/throw.cpp").flag("-O1").build();
    let run = record(&scratch, &[], &[&program]);
    let text = marked(&run);
    let ended = ended(&text);
    assert!(ended.contains(&"deep(int)"), "{text}");
    for never in ["main", "printf", "caught(char const*)", "Guard::~Guard()"] {
        assert!(!ended.contains(&never), "{never} returned:\n{text}");
    }
}

#[test]
fn ordinary_programs_have_none() {
    for source in [
        "c/recursion.c",
        "c/tail_calls.c",
        "c/leaf_calls.c",
        "c/callbacks.c",
    ] {
        let scratch = Scratch::new("ordinary");
        let run = recorded(&scratch, source, &[]);
        assert_eq!(counted(&run), 0, "{source}");
        assert!(
            !run.text(&["events", "-t", "0.0", "--inferred"])
                .contains(MARK)
        );
    }
}

#[test]
fn the_last_ones_are_marked_too() {
    let scratch = Scratch::new("leaps");
    let whole = recorded(&scratch, "c/leaps.c", &[]);
    let whole = marked(&whole);
    // Of a deeper stack nothing else is seen either.
    assert_eq!(whole.matches(MARK).count(), 40_000 * 2 + 40_000 * 2);
    let scratch = Scratch::new("last-leaps");
    let options = ["--max-size", "1M", "--keep", "last"];
    let run = recorded(&scratch, "c/leaps.c", &options);
    let info = run.json(&["info"]);
    let dropped = info["processes"][0]["threads"][0]["dropped"].as_u64();
    assert!(dropped > Some(0), "{info}");
    // The trace begins with the calls that were open.
    let kept = marked(&run);
    let kept: Vec<&str> = kept.lines().skip(2).collect();
    let all: Vec<&str> = whole.lines().collect();
    assert!(kept.len() > 100 && all.ends_with(&kept), "{info}");
}
