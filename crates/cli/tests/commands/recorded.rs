//! What the commands print of a recorded program: golden text, where machine and time do not show.

use lockstep_testkit::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, command, record, tools};
use std::process::Command;

/// Runs `programs/c/tail_calls.c`: main calls first and is_even, each of which hands over again and again.
fn tail_calls(scratch: &Scratch) -> Option<Recording> {
    if !tools::require(&["gcc"]) {
        return None;
    }
    let program = Recipe::new("c/tail_calls.c")
        .flag("-O2")
        .flag("-U_FORTIFY_SOURCE")
        .build();
    let recording = record(scratch, &[], &[program.as_os_str()]);
    assert_eq!(recording.outcome.status, 0, "{recording:#?}");
    Some(recording)
}

#[test]
fn a_tail_call_shows_nested() {
    let scratch = Scratch::new("golden");
    let Some(run) = tail_calls(&scratch) else {
        return;
    };

    let from_first = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != "call first");
        lines.take(6).map(str::to_owned).collect()
    };
    let events = run.text(&["events", "-t", "0.0"]);
    let nested = [
        "call first",
        "call second",
        "call third",
        "return",
        "return",
        "return",
    ];
    assert_eq!(from_first(&events), nested);
    let raw = run.text(&["events", "-t", "0.0", "--raw"]);
    let handed_over = [
        "call first",
        "tail",
        "call second",
        "tail",
        "call third",
        "return",
    ];
    assert_eq!(from_first(&raw), handed_over);
    let count = |text: &str, word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(count(&events, "call"), count(&events, "return"));
    assert_eq!(
        count(&raw, "call"),
        count(&raw, "return") + count(&raw, "tail")
    );

    let many = raw.lines().count();
    let ask = |range: &[&str]| {
        let mut events = lockstep(&["events", "-t", "0.0"]);
        let outcome = command::run(events.args(range).arg(&run.directory));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""));
        outcome.stderr
    };
    let (last, beyond) = ((many - 1).to_string(), (many + 5).to_string());
    assert_eq!(
        ask(&["--from", &beyond]),
        format!("lockstep: --from {beyond}: expected an event of trace 0.0, from 0 to {last}\n")
    );
    assert_eq!(
        ask(&["--from", "7", "--to", "7"]),
        "lockstep: --from 7 --to 7: expected a range, found no event between them\n"
    );

    insta::assert_snapshot!(run.text(&["stack", "-t", "0.0", "--at", "5"]), @r"
    0.0 at event 5, outermost first:
      main
        is_even
          ~> is_odd
            ~> is_even
    ");
    let tree = run.text(&["tree", "-t", "0.0", "--depth", "6"]);
    insta::assert_snapshot!(tree, @r"
    TIMES  CALL TREE of 0.0
        1  main
        1    is_even
        1      ~> is_odd
        1        ~> is_even
        1          ~> is_odd
        1            ~> is_even
        1    first
        1      ~> second
        1        ~> third
        1    printf
    ");
    insta::assert_snapshot!(run.text(&["calls"]), @r"
    CALLS  IMAGE       FUNCTION
      500  tail_calls  is_even
      500  tail_calls  is_odd
        1  tail_calls  first
        1  tail_calls  main
        1  library     printf
        1  tail_calls  second
        1  tail_calls  third
    ");
    insta::assert_snapshot!(run.text(&["calls", "--graph"]), @r"
    CALLS  CALLER   CALLEE
      500  is_even  is_odd
      499  is_odd   is_even
        1  first    second
        1  main     first
        1  main     is_even
        1  main     printf
        1  second   third
    ");
    insta::assert_snapshot!(run.text(&["loops", "--custom", "^(is_|third)"]), @r"
    LOOP  BODY
    L0    is_even is_odd

    TRACES  WITH LOOPS FOLDED
    0.0     L0^500 third
    ");
}

#[test]
fn the_page_of_one_run_is_written() {
    let scratch = Scratch::new("page");
    let Some(run) = tail_calls(&scratch) else {
        return;
    };
    let page = scratch.join("page.html");
    let _ = run.text(&["report", "-o", &page.display().to_string()]);
    let html = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "Content-Security-Policy",
        "id=\"processes\"",
        "id=\"trees\"",
        "is_even",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let scratch = Scratch::new("pipe");
    let Some(run) = tail_calls(&scratch) else {
        return;
    };
    for subcommand in [
        "events RUN -t 0.0",
        "events RUN -t 0.0 --json",
        "tree RUN -t 0.0",
        "info RUN --json",
    ] {
        let words = subcommand.replace("RUN", &run.directory.display().to_string());
        let script = format!(
            "set -o pipefail; {} {words} | true",
            env!("CARGO_BIN_EXE_lockstep")
        );
        let outcome = command::run(Command::new("bash").args(["-c", &script]));
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{words}"
        );
    }
}

#[test]
fn a_baseline_lets_the_same_pass_and_stops_what_changed() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("baseline");
    let program = Recipe::new("threads/odd_even.c")
        .flags(&["-g", "-pthread"])
        .build();
    let program = program.display().to_string();
    let run = |arguments: &[&str]| {
        let words: Vec<&str> = [program.as_str()]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let recording = record(&scratch, &[], &words);
        assert_eq!(recording.outcome.status, 0, "{recording:#?}");
        recording
    };
    let (first, second, faulty) = (run(&[]), run(&[]), run(&["--bug", "swap"]));
    let kept = scratch.join("expected");
    let baseline = |words: &[&std::path::Path]| {
        let mut command = lockstep_testkit::recording::lockstep(&["baseline"]);
        command::run(command.args(words))
    };
    let set = std::path::Path::new("set");
    let check = std::path::Path::new("check");
    let missing = baseline(&[check, &kept, &first.directory]);
    assert_eq!(missing.status, 2, "{missing:#?}");
    assert!(
        missing.stderr.contains("expected a baseline"),
        "{missing:#?}"
    );
    let no_run = baseline(&[set, &kept, scratch.path()]);
    assert_eq!(no_run.status, 2, "{no_run:#?}");
    assert!(!kept.exists(), "nothing is begun with what is no run");

    assert_eq!(baseline(&[set, &kept, &first.directory]).status, 0);
    // Copies: the run itself may go.
    std::fs::remove_dir_all(&first.directory).ok();
    let same = baseline(&[check, &kept, &second.directory]);
    assert_eq!(same.status, 0, "{same:#?}");
    let changed = baseline(&[check, &kept, &faulty.directory, "--json".as_ref()]);
    assert_eq!(changed.status, 1, "{changed:#?}");
    assert!(changed.stdout.contains("\"differs\":true"), "{changed:#?}");
    let added = baseline(&[set, &kept, "--add".as_ref(), &second.directory]);
    assert!(added.stdout.contains("2 runs kept"), "{added:#?}");
    let again = baseline(&[set, &kept, &second.directory]);
    assert!(again.stdout.contains("1 run kept"), "{again:#?}");
}
