//! Concepts and their order against the Python package `concepts`, where there is one.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use lockstep_concepts::{BitMatrix, Context, Lattice};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A line a context, its rows as words of 0 and 1; back comes a line a context: its concepts and covers.
const SCRIPT: &str = r#"
import sys, concepts
for line in sys.stdin:
    rows = line.split()
    objects = [f"o{i}" for i in range(len(rows))]
    properties = [f"a{i}" for i in range(len(rows[0]))]
    lattice = concepts.Context(objects, properties, [[c == "1" for c in row] for row in rows]).lattice
    key = lambda c: " ".join(sorted(c.extent)) + "|" + " ".join(sorted(c.intent))
    names = sorted(key(c) for c in lattice)
    covers = sorted(key(c) + ">" + key(lower) for c in lattice for lower in c.lower_neighbors)
    print(";".join(names + covers))
"#;

fn ours(context: &Context) -> String {
    let lattice = Lattice::new(context, usize::MAX).unwrap();
    let key = |concept: usize| {
        let mut extent: Vec<String> = lattice.extent(concept).map(|it| format!("o{it}")).collect();
        let mut intent: Vec<String> = lattice.intent(concept).map(|it| format!("a{it}")).collect();
        extent.sort();
        intent.sort();
        format!("{}|{}", extent.join(" "), intent.join(" "))
    };
    let mut names: Vec<String> = (0..lattice.len()).map(key).collect();
    names.sort();
    let covers = lattice.covers().into_iter();
    let mut covers: Vec<String> = covers
        .map(|(upper, lower)| format!("{}>{}", key(upper), key(lower)))
        .collect();
    covers.sort();
    names.append(&mut covers);
    names.join(";")
}

#[test]
fn python_agrees() {
    // Where `cargo xtask test` puts Python packages that Debian does not have.
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/testkit/python");
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &packages).args(arguments);
        command
    };
    let there = python(&["-c", "import concepts"])
        .stderr(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("LOCKSTEP_TEST_SKIPS").is_none_or(|it| it != "never"));
        eprintln!("SKIPPED python_agrees: Python's concepts not installed");
        return;
    }
    let mut state = 7u64;
    let mut random = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let (mut input, mut expected) = (String::new(), Vec::new());
    for _ in 0..200 {
        let (objects, attributes) = (1 + random(9) as usize, 1 + random(9) as usize);
        let dense = 1 + random(9);
        let mut incidence = BitMatrix::new(objects, attributes);
        let mut rows = Vec::new();
        for object in 0..objects {
            let mut row = String::new();
            for attribute in 0..attributes {
                let has = random(10) < dense;
                if has {
                    incidence.set(object, attribute);
                }
                row.push(if has { '1' } else { '0' });
            }
            rows.push(row);
        }
        input.push_str(&rows.join(" "));
        input.push('\n');
        let names =
            |letter: char, count: usize| (0..count).map(|it| format!("{letter}{it}")).collect();
        expected.push(ours(&Context::new(
            names('o', objects),
            names('a', attributes),
            incidence,
        )));
    }
    let mut child = python(&["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let found: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(found, expected);
}
