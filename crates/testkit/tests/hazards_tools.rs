//! Other people's tools and languages around and inside a recorded program: debuggers, tracers,
//! sanitizers; Go, Java, Python.

use lockstep_testkit::artifacts::repository;
use lockstep_testkit::{Hazard, Recipe, artifacts, command, tools};
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
