//! The event sequence of whole programs against the single-step oracle; stripped twins by address.

use lockstep_testkit::elf::Elf;
use lockstep_testkit::{Recipe, Scratch, record, stepper, tools};
use lockstep_trace::{Event, Run};
use std::collections::HashSet;
use std::path::Path;

/// The events that `lockstep` recorded of the program's first thread, as lines.
fn recorded(run: &Run, elf: &Elf) -> Vec<String> {
    let thread = &run.processes[0].threads[0];
    assert_eq!(thread.damage, None);
    thread
        .events()
        .map(|event| match event {
            Event::Call(id) => {
                let function = run.function(id);
                if function.imported {
                    format!("call {}", function.linkage)
                } else {
                    format!("call {}", one_name(elf, &function.linkage))
                }
            }
            Event::Return => "return".to_owned(),
            Event::Tail => "tail".to_owned(),
        })
        .collect()
}

/// A function may have several names, and in a stripped program has none but `image+0x1234`: whatever
/// `linkage` says of it, this is the oracle's name for what stands at that address.
fn one_name(elf: &Elf, linkage: &str) -> String {
    let written = linkage.rsplit_once("+0x").map(|(_, address)| address);
    let address = written
        .and_then(|address| u64::from_str_radix(address, 16).ok())
        .or_else(|| elf.addresses.get(linkage).copied());
    address
        .and_then(|address| elf.function_from(address))
        .map_or_else(|| linkage.to_owned(), |index| elf.functions[index].label())
}

/// Takes the calls of `refused` functions out of `lines`, with their returns. A frame that such a
/// function handed over to, or that was handed over to it, is an ordinary call and return then.
fn without(lines: &[String], refused: &HashSet<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    // For each open frame the kept calls that end with it.
    let mut frames: Vec<usize> = Vec::new();
    let mut tail = false;
    for line in lines {
        if line == "tail" {
            tail = true;
        } else if line == "return" {
            let returns = frames.pop().unwrap_or(0);
            kept.extend((0..returns).map(|_| "return".to_owned()));
        } else {
            let seen = !refused.contains(line.trim_start_matches("call "));
            let handed_over = std::mem::take(&mut tail);
            if handed_over && frames.last().is_some_and(|kept| *kept > 0) {
                // The predecessor is seen: it hands over only to what is seen too.
                if seen {
                    kept.push("tail".to_owned());
                }
            } else if handed_over {
                *frames.last_mut().expect("a frame hands over") += usize::from(seen);
            } else {
                frames.push(usize::from(seen));
            }
            if seen {
                kept.push(line.clone());
            }
        }
    }
    kept
}

/// Compares what is recorded of `program` with what single-stepping it shows, where `elf` says what
/// its functions are.
fn compare(program: &Path, elf: &Elf, what: &str) {
    let (events, status) = stepper::events(elf, program, &[]);
    let expected = stepper::lines(elf, &events);
    let scratch = Scratch::new("oracle");
    let recording = record(&scratch, &[], &[program]);
    assert_eq!(recording.outcome.status, status, "{what}");
    let run = Run::open(&recording.directory).expect("a run");
    // Of a library function it is some places of call that are refused, and then said; the oracle
    // looks at the others.
    let own = |label: &String| {
        elf.functions
            .iter()
            .any(|function| function.label() == *label)
    };
    let coverage = &run.processes[0].coverage;
    let refused: HashSet<String> = coverage
        .refused
        .iter()
        .map(|refused| by_display_name(elf, &refused.name))
        .filter(own)
        .collect();
    let expected = without(&expected, &refused);
    let found = recorded(&run, elf);
    if let Some(at) =
        (0..expected.len().max(found.len())).find(|&i| expected.get(i) != found.get(i))
    {
        let around = |lines: &[String]| {
            lines[at.saturating_sub(8).min(lines.len())..(at + 8).min(lines.len())].join("\n  ")
        };
        panic!(
            "{what}: event {at} of {} (oracle) and {} (recorded) differs\noracle:\n  {}\nrecorded:\n  {}\nrefused: {refused:?}",
            expected.len(),
            found.len(),
            around(&expected),
            around(&found)
        );
    }
    let own: HashSet<&String> = expected
        .iter()
        .filter(|line| line.starts_with("call "))
        .collect();
    assert!(!own.is_empty(), "{what}: nothing to compare");
    lockstep_testkit::tools::note(&format!(
        "oracle: {what}: {} events, {} functions called, {} refused",
        expected.len(),
        own.len(),
        refused.len()
    ));
}

/// The oracle's name for the function that people call `name`.
fn by_display_name(elf: &Elf, name: &str) -> String {
    let mut names = elf.addresses.keys();
    let linkage = names.find(|linkage| lockstep_binary::display_name(linkage) == name);
    one_name(elf, linkage.map_or(name, String::as_str))
}

fn check(recipe: &Recipe) {
    if !tools::require(&[recipe.compiler_name()]) {
        return;
    }
    let program = recipe.build();
    compare(&program, &Elf::read(&program), &recipe.describe());
}

/// A stripped program must show the same as its twin, address by address.
fn check_stripped(recipe: &Recipe) {
    if !tools::require(&[recipe.compiler_name(), "strip"]) {
        return;
    }
    let stripped = recipe.clone().stripped();
    let twin = Elf::read(&recipe.build());
    compare(&stripped.build(), &twin, &stripped.describe());
}

const LEVELS: [&str; 2] = ["-O0", "-O2"];

#[test]
fn c_programs() {
    for source in [
        "c/leaf_calls.c",
        "c/tail_calls.c",
        "c/loop_at_entry.c",
        "c/switch_table.c",
        "c/cold_part.c",
        "c/callbacks.c",
        "c/large_values.c",
        "c/longjmp.c",
    ] {
        for compiler in ["gcc", "clang"] {
            for level in LEVELS {
                check(&Recipe::new(source).compiler(compiler).flag(level));
            }
        }
    }
}

/// In a program that may unwind its stack by itself no return of a library call is seen: each is found where it was all the same.
#[test]
fn returns_that_nobody_sees() {
    for compiler in ["gcc", "clang"] {
        for level in LEVELS {
            let recipe = Recipe::new("c/unseen_returns.c");
            check(&recipe.compiler(compiler).flag(level));
        }
    }
    check_stripped(&Recipe::new("c/unseen_returns.c").flag("-O2"));
}

#[test]
fn cpp_programs() {
    for source in [
        "cpp/virtual_calls.cpp",
        "cpp/static_objects.cpp",
        "cpp/templates.cpp",
        "cpp/throw.cpp",
        "cpp/throw_through_qsort.cpp",
    ] {
        for level in LEVELS {
            check(&Recipe::new(source).flag(level));
        }
        check(&Recipe::new(source).compiler("clang++").flag("-O1"));
    }
}

#[test]
fn fortran_programs() {
    for source in ["fortran/matrix.f90", "fortran/recursive.f90"] {
        for level in LEVELS {
            check(&Recipe::new(source).flag(level));
        }
    }
}

#[test]
fn rust_programs() {
    for source in ["rust/closures.rs", "rust/collections.rs"] {
        check(&Recipe::new(source).flag("-Copt-level=2"));
    }
}

#[test]
fn stripped_twins() {
    for source in [
        "c/leaf_calls.c",
        "c/tail_calls.c",
        "c/switch_table.c",
        "c/callbacks.c",
    ] {
        check_stripped(&Recipe::new(source).flag("-O2"));
    }
    check_stripped(&Recipe::new("cpp/virtual_calls.cpp").flag("-O2"));
    check_stripped(&Recipe::new("fortran/matrix.f90").flag("-O2"));
}
