//! Faults: each kind, on a program's own function and on a library call, with and without recording.

use lockstep_testkit::command::{self, Outcome, Running};
use lockstep_testkit::mpi::{self, Mpi};
use lockstep_testkit::{Recipe, Recording, Scratch, lockstep, record, tools};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn inject_command(options: &[&str], words: &[&Path]) -> Command {
    let mut command = lockstep(&["inject"]);
    command.args(options).arg("--").args(words);
    command
}

fn inject(options: &[&str], program: &Path) -> Outcome {
    command::run(&mut inject_command(options, &[program]))
}

/// The same, recorded.
fn recorded(scratch: &Scratch, name: &str, options: &[&str], program: &Path) -> Recording {
    let directory = scratch.join(name);
    let place = directory.display().to_string();
    let mut all = vec!["-o", &place];
    all.extend(options);
    Recording {
        outcome: inject(&all, program),
        directory,
    }
}

fn leaf_calls(level: &str) -> PathBuf {
    Recipe::new("c/leaf_calls.c").flag(level).build()
}

fn at<'a>(kind: &'a str, place: &'a str) -> Vec<&'a str> {
    vec!["--fault", kind, "--at", place, "--process", "0"]
}

fn with<'a>(mut options: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    options.extend(more);
    options
}

/// The names of the calls in a trace, in order.
fn called(run: &Recording) -> Vec<String> {
    let events = run.text(&["events", "-t", "0.0"]);
    events
        .lines()
        .filter_map(|line| line.strip_prefix("call "))
        .map(str::to_owned)
        .collect()
}

const HEALTHY: &str = "10\n30\n100\n55\n285\n";

#[test]
fn what_the_program_prints_shows_the_fault_recorded_or_not() {
    let scratch = Scratch::new("inject-kinds");
    let cases: [(Vec<&str>, &str, i32); 9] = [
        (
            with(at("delay", "power#3"), &["--seconds", "0.1"]),
            HEALTHY,
            0,
        ),
        (at("skip", "power#3"), "7\n30\n100\n55\n285\n", 0),
        (
            with(at("skip", "power#3"), &["--set", "return=100"]),
            "107\n30\n100\n55\n285\n",
            0,
        ),
        (
            with(at("argument", "power#3"), &["--set", "2=9"]),
            "19690\n30\n100\n55\n285\n",
            0,
        ),
        // On the stack.
        (
            with(at("argument", "nine#1"), &["--set", "8=0"]),
            "10\n30\n100\n55\n221\n",
            0,
        ),
        (
            with(at("redirect", "power#3"), &["--to", "fibonacci"]),
            "9\n30\n100\n55\n285\n",
            0,
        ),
        (
            with(at("delay", "printf#2"), &["--seconds", "0.1"]),
            HEALTHY,
            0,
        ),
        (at("skip", "printf#2"), "10\n100\n55\n285\n", 0),
        (with(at("exit", "nine#1"), &["--set", "status=7"]), "", 7),
    ];
    for level in ["-O0", "-O2"] {
        // A caller that knows which registers a callee leaves alone (-fipa-ra) would see the new
        // argument too.
        let program = Recipe::new("c/leaf_calls.c")
            .flag(level)
            .flag("-fno-inline")
            .flag("-fno-ipa-ra")
            .build();
        for (index, (options, stdout, status)) in cases.iter().enumerate() {
            let plain = inject(options, &program);
            let name = format!("run-{}-{index}", &level[1..]);
            let run = recorded(&scratch, &name, options, &program);
            for outcome in [&plain, &run.outcome] {
                assert_eq!(outcome.status, *status, "{level} {options:?} {outcome:#?}");
                assert_eq!(outcome.stdout, *stdout, "{level} {options:?} {outcome:#?}");
                let line = format!(
                    "the fault happened: {} at call {} of {}",
                    options[1],
                    &options[3][options[3].len() - 1..],
                    &options[3][..options[3].len() - 2],
                );
                assert!(outcome.stderr.contains(&line), "{options:?} {outcome:#?}");
                assert!(
                    outcome.stderr.contains("in process 0, thread 0"),
                    "{outcome:#?}"
                );
            }
        }
    }
}

#[test]
fn the_run_shows_what_the_faulty_program_did() {
    let scratch = Scratch::new("inject-runs");
    let program = leaf_calls("-O0");
    let healthy = called(&record(&scratch, &[], &[&program]));
    let power: Vec<usize> = (0..healthy.len())
        .filter(|i| healthy[*i] == "power")
        .collect();
    // A skipped call is no event, a redirected one is the other function's.
    let skipped = called(&recorded(
        &scratch,
        "skip",
        &at("skip", "power#3"),
        &program,
    ));
    let mut expected = healthy.clone();
    expected.remove(power[2]);
    assert_eq!(skipped, expected);
    let options = with(at("redirect", "power#3"), &["--to", "nine"]);
    let redirected = called(&recorded(&scratch, "redirect", &options, &program));
    let mut expected = healthy.clone();
    "nine".clone_into(&mut expected[power[2]]);
    assert_eq!(redirected, expected);
    // Whoever ends there has the call open.
    let ended = recorded(&scratch, "exit", &at("exit", "power#3"), &program);
    assert_eq!(ended.outcome.status, 1);
    assert_eq!(called(&ended), healthy[..=power[2]]);
    let info = ended.json(&["info"]);
    let process = &info["processes"][0];
    assert_eq!(process["end"]["kind"], "exited", "{process:#}");
    assert_eq!(
        process["threads"][0]["open"],
        serde_json::json!(["main", "sum_of_powers", "power"])
    );
}

#[test]
fn a_hanging_call_is_open_and_signals_still_work() {
    let scratch = Scratch::new("inject-hang");
    let program = leaf_calls("-O0");
    for (name, place, spin, open) in [
        ("own", "power#3", false, "power"),
        ("spin", "power#3", true, "power"),
        ("library", "printf#2", false, "printf"),
    ] {
        let directory = scratch.join(name);
        let shown = directory.display().to_string();
        let mut options = with(at("hang", place), &["-o", &shown]);
        options.extend(spin.then_some("--spin"));
        let running = Running::start(&mut inject_command(&options, &[&program]));
        let run = Recording::stop_when_open(directory, running, open);
        assert_eq!(run.outcome.status, 128 + 15, "{run:#?}");
        assert!(run.outcome.stderr.contains("hang at call"), "{run:#?}");
        let stack = run.text(&["stack", "-t", "0.0"]);
        assert!(
            stack
                .trim_end()
                .lines()
                .last()
                .is_some_and(|l| l.contains(open)),
            "{stack}"
        );
    }
    // Without recording; and it is told at once: whoever looks at a program that hangs need not wait
    // for its end.
    for (stop, status) in [
        (Running::stop as fn(Running) -> Outcome, 128 + 15),
        (Running::kill, 128 + 9),
    ] {
        let running = Running::start(&mut inject_command(&at("hang", "nine#1"), &[&program]));
        std::thread::sleep(Duration::from_secs(1));
        let outcome = stop(running);
        assert_eq!(outcome.status, status, "{outcome:#?}");
        let told = outcome.stderr.matches("hang at call 1 of nine").count();
        assert_eq!(told, 1, "{outcome:#?}");
    }
}

#[test]
fn cplusplus_fortran_and_stripped_programs() {
    if !tools::require(&["g++", "gfortran"]) {
        return;
    }
    let program = Recipe::new("cpp/virtual_calls.cpp").flag("-O1").build();
    let healthy = command::run(&mut Command::new(&program)).success();
    let scratch = Scratch::new("inject-languages");
    let names = called(&record(&scratch, &[], &[&program]));
    let method = names
        .iter()
        .find(|name| name.contains("::") && name.ends_with(')'));
    let method = method.expect("a method");
    for name in [method.as_str(), method.split('(').next().unwrap_or("")] {
        let place = format!("{name}#1");
        let outcome = inject(&with(at("delay", &place), &["--seconds", "0.01"]), &program);
        assert_eq!(outcome.stdout, healthy.stdout, "{outcome:#?}");
        assert!(
            outcome.stderr.contains("the fault happened"),
            "{outcome:#?}"
        );
    }
    let program = Recipe::new("c/switch_table.c")
        .flag("-O0")
        .stripped()
        .build();
    let names = called(&record(&scratch, &[], &[&program]));
    let unnamed = names
        .iter()
        .find(|name| name.contains("+0x"))
        .expect("a function without name");
    let outcome = inject(&at("exit", &format!("{unnamed}#1")), &program);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
}

#[test]
fn wrong_input_is_one_clear_line() {
    let program = leaf_calls("-O0");
    let cases: [(Vec<&str>, &str); 16] = [
        (at("melt", "power#1"), "invalid value 'melt'"),
        (at("hang", "power"), "expected FUNCTION#N"),
        (at("hang", "power#0"), "expected FUNCTION#N"),
        (at("hang", "#1"), "expected FUNCTION#N"),
        (at("hang", "power#-1"), "expected FUNCTION#N"),
        (
            at("hang", "pwoer#1"),
            "has no function pwoer, and calls none; did you mean power?",
        ),
        (
            vec!["--fault", "hang", "--at", "power#1", "--process", "x"],
            "expected a number from 0",
        ),
        (vec!["--fault", "hang", "--at", "power#1"], "--process"),
        (at("delay", "power#1"), "expected --seconds too"),
        (
            with(at("delay", "power#1"), &["--seconds=-1"]),
            "expected seconds",
        ),
        (
            with(at("hang", "power#1"), &["--seconds", "1"]),
            "--seconds: expected with --fault delay",
        ),
        (
            with(at("argument", "power#1"), &["--set", "x=1"]),
            "number of an argument",
        ),
        (
            with(at("argument", "power#1"), &["--set", "1=x"]),
            "expected ARGUMENT=VALUE",
        ),
        (
            with(at("exit", "power#1"), &["--set", "status=256"]),
            "status=N",
        ),
        (
            with(at("redirect", "power#1"), &["--to", "nowhere"]),
            "neither has nor calls nowhere",
        ),
        (at("hang", "random"), "expected --from RUN too"),
    ];
    for (options, expected) in cases {
        let outcome = inject(&options, &program);
        assert_eq!(outcome.status, 125, "{options:?} {outcome:#?}");
        assert!(
            outcome.stderr.contains(expected),
            "{options:?} {outcome:#?}"
        );
        assert_eq!(
            outcome.stderr.lines().count(),
            1,
            "{options:?} {outcome:#?}"
        );
        assert_eq!(outcome.stdout, "", "{options:?}");
    }
    let outcome = inject(&at("hang", "power#1"), Path::new("/no/such/program"));
    assert_eq!(outcome.status, 127, "{outcome:#?}");
}

#[test]
fn a_fault_that_never_happened_is_told() {
    let program = leaf_calls("-O0");
    for (place, expected) in [
        ("power#100", "power was called 12 times in process 0"),
        ("nine#2", "nine was called once in process 0"),
    ] {
        let outcome = inject(&at("hang", place), &program);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (0, HEALTHY));
        let line = format!("lockstep: the fault did not happen: {expected}\n");
        assert_eq!(outcome.stderr, line);
    }
    let options = ["--fault", "hang", "--at", "power#1", "--process", "3"];
    let outcome = inject(&options, &program);
    assert_eq!(outcome.stdout, HEALTHY);
    let expected = "the fault did not happen: power was never called in process 3";
    assert!(outcome.stderr.contains(expected), "{outcome:#?}");
}

#[test]
fn processes_are_numbered_by_start() {
    let program = leaf_calls("-O0");
    let script = format!("{0}; {0}; true", program.display());
    let words = [Path::new("sh"), Path::new("-c"), Path::new(&script)];
    let options = ["--fault", "skip", "--at", "printf#2", "--process", "2"];
    let outcome = command::run(&mut inject_command(&options, &words));
    assert_eq!(
        outcome.stdout,
        format!("{HEALTHY}10\n100\n55\n285\n"),
        "{outcome:#?}"
    );
    assert!(
        outcome.stderr.contains("in process 2, thread 0"),
        "{outcome:#?}"
    );
    let options = ["--fault", "skip", "--at", "printf#2", "--process", "*"];
    let outcome = command::run(&mut inject_command(&options, &words));
    assert_eq!(
        outcome.stdout,
        "10\n100\n55\n285\n".repeat(2),
        "{outcome:#?}"
    );
    assert_eq!(
        outcome.stderr.matches("the fault happened").count(),
        2,
        "{outcome:#?}"
    );
}

#[test]
fn a_random_choice_is_the_same_for_a_seed() {
    let scratch = Scratch::new("inject-random");
    let program = leaf_calls("-O0");
    let run = record(&scratch, &[], &[&program]);
    let from = run.directory.display().to_string();
    let choose = |seed: &str| {
        let options = [
            "--fault",
            "delay",
            "--seconds",
            "0",
            "--at",
            "random",
            "--seed",
            seed,
            "--from",
            &from,
        ];
        let outcome = inject(&options, &program);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (0, HEALTHY));
        assert!(
            outcome.stderr.contains("the fault happened"),
            "{outcome:#?}"
        );
        outcome.stderr
    };
    let seeds: Vec<String> = (0..6).map(|seed| seed.to_string()).collect();
    let first: Vec<String> = seeds.iter().map(|seed| choose(seed)).collect();
    let again: Vec<String> = seeds.iter().map(|seed| choose(seed)).collect();
    assert_eq!(first, again);
    assert!(first.iter().any(|line| *line != first[0]), "{first:?}");
}

#[test]
fn compare_names_the_rank_and_the_function() {
    let _turn = mpi::a_turn();
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let scratch = Scratch::new("inject-mpi");
        let program = mpi.recipe("odd_even.c").flag("-O1").build();
        let mut words = mpi.launch(4);
        words.push(program.display().to_string());
        let normal = record(&scratch, &[], &words);
        assert_eq!(normal.outcome.status, 0, "{normal:#?}");
        let directory = scratch.join("faulty");
        let shown = directory.display().to_string();
        let options = [
            "--fault",
            "hang",
            "--at",
            "MPI_Recv#2",
            "--process",
            "2",
            "-o",
            &shown,
        ];
        let words: Vec<&Path> = words.iter().map(Path::new).collect();
        let running = Running::start(&mut inject_command(&options, &words));
        let faulty = Recording::stop_when_open(directory, running, "MPI_Recv");
        let expected = "hang at call 2 of MPI_Recv, in process 2, thread 0";
        assert!(faulty.outcome.stderr.contains(expected), "{faulty:#?}");
        // The call hangs before the library sees it, and yet one knows what it was given.
        let stack = faulty.text(&["stack", "-t", "2.0"]);
        assert!(
            stack.contains("MPI_Recv(buf=.., count="),
            "{mpi:?}: {stack}"
        );
        let (status, result) = normal.compare(&faulty, &[]);
        assert_eq!(status, 1);
        assert_eq!(result["suspects"][0]["trace"], "2.0", "{result:#}");
        let verdict = result["verdict"].as_str().unwrap_or_default();
        assert!(
            verdict.contains("rank 2") && verdict.contains("MPI_Recv"),
            "{verdict}"
        );
    }
}

#[test]
fn neighbours_change_places() {
    let scratch = Scratch::new("inject-swap");
    const A: &str = "a 1 2.50\n";
    const B: &str = "b 3 4.50\n";
    const X: &str = "x1 2 3 4 5 6 7 8\n";
    let cases = [
        // An own function with numbers in both kinds of registers; with arguments on the stack, before a
        // library call; a library call before an own function.
        ("show#1", [B, A, X, "y\n", "z\n"].concat()),
        ("many#1", [A, B, "y\n", X, "z\n"].concat()),
        ("pairs#1", [X, "y\n", A, B, "z\n"].concat()),
        ("setvbuf#1", [A, B, X, "y\n", "z\n"].concat()),
        // Nothing follows in its frame.
        ("puts#2", [A, B, X, "y\n"].concat()),
    ];
    for flags in [&["-O0"][..], &["-O2", "-fno-optimize-sibling-calls"]] {
        let program = Recipe::new("c/neighbours.c").flags(flags).build();
        for (index, (place, stdout)) in cases.iter().enumerate() {
            let name = format!("run{}-{index}", flags[0]);
            let run = recorded(&scratch, &name, &at("swap", place), &program);
            for outcome in [&inject(&at("swap", place), &program), &run.outcome] {
                assert_eq!(outcome.stdout, *stdout, "{flags:?} {place} {outcome:#?}");
                let is_alone = outcome.stderr.contains("it was not made");
                assert_eq!(is_alone, *place == "puts#2", "{outcome:#?}");
            }
            let calls = called(&run);
            let at = |name: &str| calls.iter().position(|call| call == name);
            if *place == "many#1" {
                assert!(at("puts") < at("many"), "{calls:?}");
            }
        }
    }
}

#[test]
fn exceptions_pass_through_calls_that_changed_places() {
    if !tools::require(&["g++"]) {
        return;
    }
    let scratch = Scratch::new("inject-throw");
    let program = Recipe::new("cpp/throw.cpp").flag("-O1").build();
    let healthy = record(&scratch, &[], &[&program]);
    assert_eq!(healthy.outcome.status, 0);
    // Whichever calls change places, the program ends by itself.
    let mut names = called(&healthy);
    names.retain(|name| name != "main");
    names.sort();
    names.dedup();
    let mut happened = 0;
    for name in names {
        let outcome = inject(&at("swap", &format!("{name}#1")), &program);
        assert!(!outcome.timed_out, "{name} {outcome:#?}");
        happened += usize::from(outcome.stderr.contains("the fault happened"));
    }
    assert!(happened > 0);
}

#[test]
fn threads_are_numbered_by_creation() {
    let scratch = Scratch::new("inject-threads");
    let program = Recipe::new("threads/numbered.c")
        .flags(&["-O1", "-pthread"])
        .build();
    for (thread, stdout) in [("1", "4 5 5\n"), ("2", "5 4 5\n"), ("3", "5 5 4\n")] {
        let options = with(at("skip", "work#3"), &["--thread", thread]);
        let run = recorded(&scratch, thread, &options, &program);
        for outcome in [&inject(&options, &program), &run.outcome] {
            assert_eq!(outcome.stdout, stdout, "{outcome:#?}");
            let place = format!("in process 0, thread {thread}\n");
            assert!(outcome.stderr.contains(&place), "{outcome:#?}");
        }
        // The recorded run has the same names.
        for other in 1..=3 {
            let trace = format!("0.{other}");
            let calls = run.text(&["events", "-t", &trace]);
            let calls = calls.lines().filter(|line| *line == "call work").count();
            let expected = if thread == other.to_string() { 4 } else { 5 };
            assert_eq!(calls, expected, "{trace}");
        }
    }
    let never = inject(&at("skip", "work#1"), &program);
    let expected = "the fault did not happen: work was never called in process 0\n";
    assert!(never.stderr.contains(expected), "{never:#?}");
    let any = inject(&with(at("skip", "work#5"), &["--thread", "*"]), &program);
    assert_eq!(any.stdout, "5 5 4\n", "{any:#?}");
}

#[test]
fn forked_children_count_for_themselves() {
    let program = Recipe::new("c/counted.c").flag("-O1").build();
    let cases = [
        ("0", "count#3", "child 3\nparent 3\n"),
        ("1", "count#3", "child 2\nparent 4\n"),
        ("*", "count#3", "child 2\nparent 3\n"),
        // In a signal handler.
        ("0", "count#4", "child 3\nparent 3\n"),
    ];
    for (process, place, stdout) in cases {
        let options = ["--fault", "skip", "--at", place, "--process", process];
        let outcome = inject(&options, &program);
        assert_eq!(outcome.stdout, stdout, "{process} {place} {outcome:#?}");
    }
}

#[test]
fn arguments_of_mpi_calls_by_name_in_c_and_fortran() {
    let _turn = mpi::a_turn();
    for mpi in Mpi::ALL {
        if !mpi.is_here() || !tools::require(&[&mpi.fortran()]) {
            continue;
        }
        // Rank 1 sends nothing in one of three rounds: the token is one less, and the callee's variable
        // is a copy.
        let program = mpi.recipe("ring.f90").compiler(&mpi.fortran()).build();
        let mut words = mpi.launch(2);
        words.push(program.display().to_string());
        let words: Vec<&Path> = words.iter().map(Path::new).collect();
        let options = [
            "--fault",
            "argument",
            "--set",
            "count=0",
            "--at",
            "MPI_Send#2",
            "--process",
            "1",
        ];
        let outcome = command::run(&mut inject_command(&options, &words));
        assert_eq!(outcome.stdout.trim(), "token 3", "{mpi:?} {outcome:#?}");
        let expected = "argument at call 2 of MPI_Send, in process 1, thread 0";
        assert!(outcome.stderr.contains(expected), "{outcome:#?}");
        // Inside the launcher everyone tells of their own rank.
        let options = [
            "--fault",
            "delay",
            "--seconds",
            "0.1",
            "--at",
            "MPI_Send#2",
            "--process",
            "1",
        ];
        let program = mpi.recipe("odd_even.c").flag("-O1").build();
        let mut words = mpi.launch(4);
        words.push(
            lockstep_testkit::artifacts::lockstep()
                .display()
                .to_string(),
        );
        words.push("inject".to_owned());
        words.extend(options.map(str::to_owned));
        words.push("--".to_owned());
        words.push(program.display().to_string());
        let mut command = lockstep(&["--version"]);
        let mut inside = Command::new(&words[0]);
        inside.args(&words[1..]);
        for (name, value) in command.env("LANG", "C").get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        let outcome = command::run(&mut inside);
        assert_eq!(outcome.status, 0, "{mpi:?} {outcome:#?}");
        assert_eq!(
            outcome.stderr.matches("the fault").count(),
            1,
            "{outcome:#?}"
        );
        let expected = "delay at call 2 of MPI_Send, in process 1, thread 0";
        assert!(outcome.stderr.contains(expected), "{outcome:#?}");
    }
}

/// A program, and the library that it is linked to.
fn layered() -> (PathBuf, PathBuf) {
    let recipe = Recipe::new("c/layers.c")
        .shared()
        .flags(&["-O1", "-fno-builtin", "-pthread"]);
    let library = recipe.build();
    let folder = library.parent().expect("it lies in a folder");
    let program = Recipe::new("c/uses_layers.c").flags(&[
        "-O1",
        &format!("-L{}", folder.display()),
        &format!("-Wl,-rpath,{}", folder.display()),
        &format!("-l{}", recipe.library_name()),
    ]);
    (program.build(), library)
}

const LAYERS: &[&str] = &["--images", "liblayers"];

#[test]
fn functions_of_libraries_are_hit_and_each_call_counts_once() {
    let scratch = Scratch::new("inject-images");
    let (program, _) = layered();
    let cases: [(Vec<&str>, &str); 9] = [
        (at("skip", "layer_inside#2"), "1 0 21 23 \n7 = 45\n"),
        // The program's own call of it, and the library's own: both lead to one function.
        (at("skip", "layer#2"), "1 21 23 \n7 = 45\n"),
        (at("skip", "layer#3"), "1 3 23 \n7 = 27\n"),
        (
            with(at("skip", "layers#1"), &["--set", "return=5"]),
            "1 3 7 = 9\n",
        ),
        (
            with(at("argument", "layer#4"), &["--set", "1=0"]),
            "1 3 21 1 \n7 = 26\n",
        ),
        // A call that the library makes into another one.
        (at("skip", "puts#1"), "1 3 21 23 7 = 48\n"),
        (
            with(at("redirect", "layer#3"), &["--to", "layer_inside"]),
            "1 3 23 \n7 = 48\n",
        ),
        // Its next call comes first, and it returns 0 meanwhile.
        (at("swap", "layer#3"), "1 3 23 21 \n7 = 27\n"),
        (at("exit", "layer#5"), "1 3 21 23 \n7 = 48\n"),
    ];
    for (index, (options, stdout)) in cases.iter().enumerate() {
        let options = with(options.clone(), LAYERS);
        let run = recorded(&scratch, &format!("run{index}"), &options, &program);
        for outcome in [&inject(&options, &program), &run.outcome] {
            assert_eq!(outcome.stdout, *stdout, "{options:?} {outcome:#?}");
            let is_there = outcome.stderr.contains("the fault happened");
            // The fifth call is a thread's of the library.
            assert_eq!(is_there, options[1] != "exit", "{options:?} {outcome:#?}");
        }
        let calls = called(&run);
        assert!(calls.contains(&"layer_inside".to_owned()), "{calls:?}");
    }
    let helper = with(at("skip", "layer_inside#1"), &["--thread", "1"]);
    let outcome = inject(&with(helper, LAYERS), &program);
    assert_eq!(outcome.stdout, "1 3 21 23 \n7 = 48\n", "{outcome:#?}");
    let any = with(at("skip", "layer_thread#1"), &["--thread", "*"]);
    let outcome = inject(&with(any, LAYERS), &program);
    assert_eq!(outcome.stdout, "1 3 21 23 \n= 48\n", "{outcome:#?}");
    let place = "in process 0, in a library's own thread";
    assert!(outcome.stderr.contains(place), "{outcome:#?}");
    let options = with(at("skip", "layer#4"), &["--images", "all"]);
    let outcome = inject(&options, &program);
    assert_eq!(outcome.stdout, "1 3 21 \n7 = 25\n", "{outcome:#?}");
}

#[test]
fn libraries_that_are_loaded_later_are_hit() {
    let scratch = Scratch::new("inject-loaded");
    let (_, library) = layered();
    let program = Recipe::new("c/runs_library.c").flag("-O1").build();
    let options = with(at("skip", "layer#2"), LAYERS);
    let plain = command::run(&mut inject_command(&options, &[&program, &library]));
    let directory = scratch.join("run").display().to_string();
    let options = with(vec!["-o", &directory], &options);
    let recorded = command::run(&mut inject_command(&options, &[&program, &library]));
    for outcome in [&plain, &recorded] {
        assert_eq!(outcome.stdout, "3 \n= 3\n", "{outcome:#?}");
        assert!(
            outcome.stderr.contains("the fault happened"),
            "{outcome:#?}"
        );
    }
}

#[test]
fn functions_without_names_are_those_of_their_image() {
    let scratch = Scratch::new("inject-nameless");
    let (program, library) = layered();
    // The same code with fewer names, in the other's place.
    let folder = scratch.join("stripped");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let stripped = folder.join("liblayers.so");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(&library);
    assert_eq!(command::run(&mut strip).status, 0);
    let run = {
        let directory = scratch.join("healthy");
        let mut command = lockstep(&["record", "-o"]);
        command.arg(&directory).args(LAYERS).arg("--").arg(&program);
        command.env("LD_LIBRARY_PATH", &folder);
        let outcome = command::run(&mut command);
        Recording { outcome, directory }
    };
    assert_eq!(
        run.outcome.stdout, "1 3 21 23 \n7 = 48\n",
        "{:#?}",
        run.outcome
    );
    let calls = called(&run);
    // `layer_inside`: in the first thread nothing else of the library without a name is called four times.
    let is_it = |name: &&String| {
        name.starts_with("liblayers.so+0x") && calls.iter().filter(|it| it == name).count() == 4
    };
    let nameless = calls
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{calls:?}"));
    let skip = |name: &str| {
        let place = format!("{name}#2");
        let options = with(at("skip", &place), LAYERS);
        let mut command = inject_command(&options, &[&program]);
        command::run(command.env("LD_LIBRARY_PATH", &folder))
    };
    assert_eq!(skip(nameless).stdout, "1 0 21 23 \n7 = 45\n");
    // Another image's, at the same place.
    let other = nameless.replace("liblayers", "libother");
    assert_eq!(skip(&other).stdout, "1 3 21 23 \n7 = 48\n");
}

#[test]
fn without_its_library_chosen_a_function_is_not_there_and_that_is_said() {
    let (program, _) = layered();
    let cases: [(&[&str], &str); 3] = [
        (&[], "--images puts faults into functions of libraries, too"),
        (
            &["--images", "libnothing"],
            "--images 'libnothing': no image of the run matches",
        ),
        (
            &["--images", "(lib"],
            "--images: the pattern '(lib' is not a regular expression",
        ),
    ];
    for (more, expected) in cases {
        let outcome = inject(&with(at("skip", "layer_inside#1"), more), &program);
        assert!(outcome.stderr.contains(expected), "{outcome:#?}");
    }
}
