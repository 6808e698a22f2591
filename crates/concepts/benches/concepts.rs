//! All concepts of a context of 8,124 objects and 119 attributes, beside the Python package `concepts` where it is:
//! `cargo bench -p lockstep-concepts`. Processor time.
//!
//! The context is generated: each object has one of the values of each of 22 features, chosen by its kind more often than
//! by chance: with less noise there are fewer concepts than the 238,710 of the known context of that size, with more of it more.

#![allow(clippy::print_stdout)]

use lockstep_concepts::{BitMatrix, Context, intents};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const OBJECTS: usize = 8124;
/// How many values each feature has: 119 in all.
const VALUES: [usize; 22] = [
    6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 5, 4, 4, 9, 9, 2, 4, 3, 5, 9, 6, 8,
];
/// Kinds of objects.
const KINDS: u64 = 24;

/// Prints its own processor time for all concepts of the context on its input.
const SCRIPT: &str = r#"
import sys, time, concepts
rows = sys.stdin.read().split()
context = concepts.Context([f"o{i}" for i in range(len(rows))], [f"a{i}" for i in range(len(rows[0]))], [[c == "1" for c in row] for row in rows])
start = time.process_time()
count = len(context.lattice)
print(count, time.process_time() - start)
"#;

/// Time that this process has been on a processor.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

fn context(objects: usize, noise: u64) -> Context {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let columns = VALUES.iter().sum();
    let usual: Vec<Vec<usize>> = (0..KINDS)
        .map(|_| {
            let value = |values: &usize| {
                // Some values are common to most kinds.
                let (a, b) = (random.below(*values as u64), random.below(*values as u64));
                a.min(b) as usize
            };
            VALUES.iter().map(value).collect()
        })
        .collect();
    let mut incidence = BitMatrix::new(objects, columns);
    for object in 0..objects {
        let kind = &usual[random.below(KINDS) as usize];
        let mut first = 0;
        for (feature, values) in VALUES.iter().enumerate() {
            let value = match random.below(1000) < noise {
                true => random.below(*values as u64) as usize,
                false => kind[feature],
            };
            incidence.set(object, first + value);
            first += values;
        }
    }
    let names = |count: usize| (0..count).map(|it| it.to_string()).collect();
    Context::new(names(objects), names(columns), incidence)
}

/// The package's concepts and seconds; where `cargo xtask test` puts Python packages that Debian does not have.
fn python(context: &Context) -> Option<String> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/testkit/python");
    let mut command = Command::new("timeout");
    command
        .args(["600", "python3", "-c", SCRIPT])
        .env("PYTHONPATH", packages);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let incidence = context.incidence();
    let mut text = String::new();
    for row in 0..incidence.rows() {
        let cells =
            (0..incidence.columns()).map(|it| if incidence.get(row, it) { '1' } else { '0' });
        text.extend(cells);
        text.push('\n');
    }
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    println!(
        "{:>8} {:>6} {:>9} {:>9}  python: concepts, seconds",
        "objects", "noise", "concepts", "seconds"
    );
    for (objects, noise) in [(OBJECTS, 2), (OBJECTS, 3), (1000, 8)] {
        let context = context(objects, noise);
        let start = now();
        let found = intents(&context, 10_000_000).map_or(0, |found| found.rows());
        let seconds = (now() - start).as_secs_f64();
        // The package takes minutes for the large ones.
        let theirs = match objects < OBJECTS || std::env::var_os("WITH_PYTHON").is_some() {
            true => {
                python(&context).unwrap_or_else(|| "is not here, or took ten minutes".to_owned())
            }
            false => "WITH_PYTHON=1 asks it".to_owned(),
        };
        println!("{objects:>8} {noise:>6} {found:>9} {seconds:>9.3}  {theirs}");
    }
}
