//! Other people's tools and languages around and inside a recorded program: debuggers, tracers,
//! sanitizers; Go, Java, Python.

use lockstep_testkit::artifacts::repository;
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Hazard, Recipe, Scratch, artifacts, command, hazard, record, tools};
use lockstep_trace::Run;
use std::path::PathBuf;

fn calls() -> Hazard {
    Hazard::new(&Recipe::new("c/allocates.c").flag("-O1"))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn under_strace() {
    if !tools::require(&["strace"]) {
        return;
    }
    let traced = calls().through(&words(&["strace", "-f", "-o", "/dev/null"]));
    if let Some(unharmed) = traced.unharmed() {
        unharmed.exactly(&[("allocate", 100)]);
    }
}

/// Valgrind runs our code as the program's; memcheck takes our stack for the program's, and complains.
#[test]
fn under_valgrind() {
    if !tools::require(&["valgrind"]) {
        return;
    }
    let checked = calls().through(&words(&["valgrind", "-q", "--tool=none"]));
    if let Some(unharmed) = checked.unharmed() {
        unharmed.exactly(&[("allocate", 100)]);
    }
}

#[test]
fn sanitizers() {
    let recipe = |flag: &str| Recipe::new("c/sanitized.c").flags(&["-O1", "-g", flag]);
    for (compiler, flag) in [
        ("gcc", "-fsanitize=address,undefined"),
        ("gcc", "-fsanitize=thread"),
    ] {
        let program = Hazard::new(&recipe(flag).compiler(compiler));
        if let Some(unharmed) = program.unharmed() {
            unharmed.exactly(&[("work", 100)]).ended();
        }
        // It finds what the program does wrong, and names addresses that vary.
        if flag.contains("address")
            && let Some(spoiled) = program
                .arguments(&["spoil"])
                .with_varying_stderr()
                .unharmed()
        {
            assert!(spoiled.outcome.stderr.contains("heap-buffer-overflow"));
            spoiled.exactly(&[("work", 100), ("spoil", 1)]);
        }
    }
}

const GDB: &str =
    "gdb -q -batch -nx -iex set|debuginfod|enabled|off -ex set|pagination|off -ex set|width|0";

/// gdb, with these commands and arguments.
fn gdb(commands: &[&str], arguments: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = GDB.split(' ').map(|word| word.replace('|', " ")).collect();
    for command in commands {
        all.extend(["-ex".to_owned(), (*command).to_owned()]);
    }
    all.extend(words(arguments));
    all
}

/// The names stand in frames one behind the other in a backtrace, others between them.
fn in_order(text: &str, names: &[&str]) {
    let mut frames = text.lines().filter(|line| line.starts_with('#'));
    for name in names {
        let is_it = |line: &str| {
            let behind = |before: &str| line.contains(&format!("{before}{name} ("));
            behind(" ") || behind("_")
        };
        assert!(frames.any(is_it), "{name} in order in {text}");
    }
}

/// A debugger that attaches walks through every kind of frame of ours: a library call, call-through, patched
/// returns, and the code of a leaf.
#[test]
fn a_debugger_that_attaches() {
    if !tools::require(&["gdb", "gcc"]) {
        return;
    }
    for level in ["-O0", "-O1", "-O2"] {
        let program = Recipe::new("c/watched.c").flag(level).build();
        let scratch = Scratch::new("attach");
        let run = scratch.join("run");
        let words = [program.display().to_string(), "wait".to_owned()];
        let running = command::Running::start(&mut record_command(&run, &[], &words));
        let traced = || -> Option<String> {
            let found = command::run(&mut command::command(&[
                "pgrep",
                "-P",
                &running.id().to_string(),
            ]));
            let pid = found.stdout.lines().next()?.to_owned();
            let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            (link == program).then_some(pid)
        };
        let deadline = std::time::Instant::now() + command::LIMIT;
        let pid = loop {
            match traced() {
                Some(pid) => break pid,
                None => assert!(
                    std::time::Instant::now() < deadline,
                    "the program never began"
                ),
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        };
        // It is in its third call by then.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let at_stub = "eval \"tbreak *%ld\", (long)leaf + 5 + *(int *)((long)leaf + 1)";
        let commands = [
            "bt",
            "set var waits = 0",
            at_stub,
            "continue",
            "bt",
            "detach",
        ];
        let told = command::run(&mut command::command(&gdb(&commands, &["-p", &pid])));
        if told.stderr.contains("not permitted") {
            let _ = running.stop();
            tools::note("NOT EXECUTED: a_debugger_that_attaches: this machine does not let it");
            return;
        }
        let (waiting, in_leaf) = told
            .stdout
            .split_once("Temporary breakpoint")
            .unwrap_or_else(|| {
                panic!("{told:#?}");
            });
        let above = [
            "through", "patched", "order", "qsort_r", "lockstep", "callback", "main",
        ];
        in_order(waiting, &["usleep", "lockstep", "stop"]);
        in_order(waiting, &above);
        in_order(in_leaf, &["lockstep"]);
        in_order(in_leaf, &above);
        let outcome = running.wait(command::LIMIT);
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (0, "waiting\n10\n"),
            "{outcome:#?}"
        );
        let run = Run::open(&run).expect("a run");
        for name in ["callback", "stop", "leaf"] {
            let expected = if name == "callback" { 4 } else { 8 };
            assert_eq!(hazard::calls(&run, name), expected, "calls of {name}");
        }
    }
}

/// One that starts the program learns of our code while it is written.
#[test]
fn a_debugger_that_starts_the_program() {
    if !tools::require(&["gdb", "gcc"]) {
        return;
    }
    let program = Recipe::new("c/watched.c").flag("-O1").build();
    let program = program.display().to_string();
    let scratch = Scratch::new("start");
    // Where the debugger has its breakpoint when the recorder comes, a function stays as it is.
    let commands = [
        "set breakpoint pending on",
        "break qsort",
        "run",
        "bt",
        "delete",
        "continue",
    ];
    let recording = record(&scratch, &[], &gdb(&commands, &[&program]));
    let told = recording.outcome;
    assert_eq!(told.status, 0, "{told:#?}");
    in_order(&told.stdout, &["qsort", "lockstep", "callback", "main"]);
    assert!(told.stdout.contains("exited normally"), "{told:#?}");
    assert!(
        !told.stdout.contains("Detaching"),
        "our planner is not seen: {told:#?}"
    );
    let run = Run::open(&recording.directory).expect("a run");
    assert_eq!(hazard::calls(&run, "callback"), 4);
}

fn built(name: &str, commands: &[&[&str]]) -> Option<PathBuf> {
    let directory = artifacts::target().join("testkit/languages");
    std::fs::create_dir_all(&directory).expect("the target directory can be written");
    let product = directory.join(name);
    for words in commands {
        if !product.exists() {
            let mut build = command::command(words);
            build
                .current_dir(&directory)
                .env("GOCACHE", directory.join("go-cache"));
            let outcome = command::run(&mut build);
            if outcome.status != 0 {
                tools::skip(&format!("{words:?}: {}", outcome.stderr));
                return None;
            }
        }
    }
    Some(product)
}

/// Go's own programs are static, and refused; with its C linker they are like others.
#[test]
fn a_go_program() {
    if !tools::require(&["go", "gcc"]) {
        return;
    }
    let source = repository()
        .join("programs/go/calls.go")
        .display()
        .to_string();
    let build: &[&str] = &[
        "go",
        "build",
        "-o",
        "calls-go",
        "-buildmode=pie",
        "-ldflags=-linkmode=external",
        &source,
    ];
    if let Some(program) = built("calls-go", &[build]) {
        let _ = Hazard::command(&[program]).unharmed();
    }
}

#[test]
#[ignore = "long: Java and its libraries"]
fn a_java_program() {
    if !tools::require(&["java", "javac"]) {
        return;
    }
    let source = repository()
        .join("programs/java/Calls.java")
        .display()
        .to_string();
    if let Some(class) = built("Calls.class", &[&["javac", "-d", ".", &source]]) {
        let place = class.parent().expect("a directory").display().to_string();
        for images in ["main", "all"] {
            let java = Hazard::command(&words(&["java", "-cp", &place, "Calls"]));
            let _ = java.options(&["--images", images]).unharmed();
        }
    }
}

#[test]
fn a_python_program() {
    let source = repository()
        .join("programs/python/foreign.py")
        .display()
        .to_string();
    for images in ["main", "all"] {
        let python = Hazard::command(&words(&["/usr/bin/python3", &source]));
        if std::path::Path::new("/usr/bin/python3").exists() {
            let _ = python.options(&["--images", images]).unharmed();
        }
    }
}
