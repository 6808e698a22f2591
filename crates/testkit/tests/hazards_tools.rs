//! Other people's tools and languages around and inside a recorded program: debuggers, tracers,
//! sanitizers; Go, Java, Python.

use lockstep_testkit::artifacts::repository;
use lockstep_testkit::command::{self, Running};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Hazard, Recipe, Scratch, artifacts, tools};
use std::path::PathBuf;
use std::time::Duration;

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

/// A debugger that comes later finds its way from the innermost function to `main`.
#[test]
fn gdb_finds_its_way_through_traced_frames() {
    if !tools::require(&["gdb", "gcc"]) {
        return;
    }
    let program = Recipe::new("c/waits.c").flag("-O1").build();
    let script = repository()
        .join("docs/lockstep-gdb.py")
        .display()
        .to_string();
    for arguments in [&[][..], &["inline"]] {
        let scratch = Scratch::new("gdb");
        let mut all = vec![program.as_os_str()];
        all.extend(arguments.iter().map(std::ffi::OsStr::new));
        let running = Running::start(&mut record_command(&scratch.join("run"), &[], &all));
        let child = traced_child(running.id());
        for _ in 0..3 {
            let mut gdb = command::command(&["gdb", "-nx", "-batch", "-x", &script]);
            gdb.args(["-p", &child, "-ex", "bt"]);
            let said = command::run(&mut gdb).stdout;
            let frames: Vec<&str> = said.lines().filter(|line| line.starts_with('#')).collect();
            let place = |name: &str| {
                frames
                    .iter()
                    .position(|f| f.contains(&format!(" {name} (")))
            };
            let found = ["inner", "middle", "outer", "main"].map(place);
            assert!(
                found.is_sorted() && found[0].is_some(),
                "{arguments:?}: {said}"
            );
        }
        let _ = command::run(&mut command::command(&["kill", &child]));
        let _ = running.wait(Duration::from_secs(20));
    }
}

/// The process that the recorder started, once it waits.
fn traced_child(recorder: u32) -> String {
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        let mut children = command::command(&["pgrep", "-x", "waits", "-P", &recorder.to_string()]);
        let child = command::run(&mut children).stdout.trim().to_owned();
        if !child.is_empty() {
            // It comes to where it waits.
            std::thread::sleep(Duration::from_millis(300));
            return child;
        }
    }
    panic!("the program was never started");
}
