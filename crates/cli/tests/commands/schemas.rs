//! What `--json` prints fits the schemas in the book, and these are made from the types.

use lockstep_testkit::artifacts::repository;
use lockstep_testkit::command::Outcome;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recipe, Recording, Scratch, command, lockstep, record, tools};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Checks files `NAME.N.json` in the first directory against `NAME.json` in the second. A field that the schema does not
/// name is new to a script, which must pass over it; here it is a mistake.
const CHECK: &str = r#"
import json, pathlib, sys, jsonschema

def close(schema):
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for part in parts:
        close(part)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)

bad = False
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    schema = json.load(open(pathlib.Path(sys.argv[2], file.name.split(".")[0] + ".json")))
    close(schema)
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    error = jsonschema.exceptions.best_match(validator(schema).iter_errors(json.load(open(file))))
    if error:
        bad = True
        print(file.name, error.json_path, error.message[:1000])
sys.exit(bad)
"#;

fn book() -> PathBuf {
    repository().join("docs/schema")
}

/// The files in a directory, by name.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let text = fs::read_to_string(entry.path()).expect("a text");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    entries.map(file).collect()
}

#[test]
fn the_schemas_in_the_book_are_those_of_the_types() {
    let scratch = Scratch::new("schemas");
    let _ = command::run(lockstep(&["__schema", "-o"]).arg(scratch.path())).success();
    let (made, found) = (files(scratch.path()), files(&book()));
    for (name, text) in &made {
        let is_same = found.get(name) == Some(text);
        assert!(is_same, "docs/schema/{name}: run `cargo xtask pages`");
    }
    let old: Vec<&String> = found.keys().filter(|it| !made.contains_key(*it)).collect();
    assert!(old.is_empty(), "no command prints these: {old:?}");
}

/// What commands printed.
struct Printed {
    scratch: Scratch,
    names: BTreeSet<String>,
    number: usize,
}

impl Printed {
    /// Keeps what `lockstep WORDS --json` prints; the command is the first `depth` of its words.
    fn add(&mut self, depth: usize, words: &[&str]) {
        let mut command = lockstep(words);
        let outcome = command::run(command.arg("--json"));
        assert!(outcome.status < 2, "{words:?}: {outcome:#?}");
        self.keep(&words[..depth], &outcome.stdout);
    }

    fn keep(&mut self, command: &[&str], text: &str) {
        let name = command.join("-");
        self.number += 1;
        let file = format!("printed/{name}.{}.json", self.number);
        fs::write(self.scratch.join(&file), text).expect("a file");
        self.names.insert(name);
    }

    /// What one run shows, and a thread of it.
    fn one_run(&mut self, run: &Recording, trace: &str) {
        let run = run.directory.to_str().expect("a plain path");
        for command in ["info", "calls", "progress"] {
            self.add(1, &[command, run]);
        }
        for command in ["loops", "lattice", "similarity", "outliers"] {
            self.add(1, &[command, run]);
        }
        self.add(1, &["calls", run, "--graph"]);
        for options in [
            &[][..],
            &["--raw"],
            &["--arguments"],
            &["--time", "--inferred"],
        ] {
            self.add(1, &[&["events", run, "-t", trace], options].concat());
        }
        for command in ["tree", "stack"] {
            self.add(1, &[command, run, "-t", trace]);
        }
        self.add(1, &["stack", run, "-t", trace, "--at", "3"]);
    }

    /// How two runs differ, beside another normal one.
    fn two_runs(&mut self, normal: &Recording, faulty: &Recording, other: &Recording) {
        let runs = [normal, faulty, other].map(|run| run.directory.to_str().expect("plain"));
        let [normal, faulty, other] = runs;
        self.add(1, &["compare", normal, faulty]);
        self.add(1, &["compare", normal, faulty, "--normal", other]);
        self.add(1, &["diff", normal, faulty]);
        self.add(
            1,
            &["diff", normal, faulty, "--flat", "--filter", "everything"],
        );
        self.add(1, &["progress", faulty, "--normal", normal]);
        let baseline = self.scratch.join("baseline").display().to_string();
        let mut set = lockstep(&["baseline", "set", &baseline, normal, other]);
        let _ = command::run(&mut set).success();
        self.add(2, &["baseline", "check", &baseline, faulty]);
        fs::remove_dir_all(baseline).expect("it was made");
    }
}

fn threads(printed: &mut Printed) {
    let program = Recipe::new("threads/odd_even.c").flags(&["-g", "-O1", "-pthread"]);
    let program = program.build().display().to_string();
    let words = |bug| [program.as_str(), "--bug", bug];
    let record = |bug| record(&printed.scratch, &[], &words(bug));
    let [good, other, bad] = ["none", "none", "swap"].map(record);
    let hung = Recording::until_open(&printed.scratch, &[], &words("deadlock"), "sem_wait");
    printed.one_run(&good, "0.1");
    printed.one_run(&hung, "0.1");
    printed.two_runs(&good, &bad, &other);
    printed.two_runs(&good, &hung, &other);
    let [other, bad] = [&other, &bad].map(|run| run.directory.to_str().expect("plain"));
    printed.add(1, &["seal", other]);
    let store = printed.scratch.join("store").display().to_string();
    printed.add(1, &["seal", bad, "--store", &store]);
    let all = printed.scratch.path().display().to_string();
    printed.add(1, &["runs", &all]);
    printed.add(2, &["runs", "prune", &all, "--max", "1", "--dry-run"]);
    printed.keep(&["doctor"], &go(&["doctor", "--json"]).stdout);
}

/// So many that the bug, in the 8th exchange of a rank, comes.
const RANKS: usize = 10;

fn ranks(printed: &mut Printed) {
    let _turn = a_turn();
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let [good, other] =
            [0, 1].map(|_| mpi.record(&printed.scratch, "odd_even.c", RANKS, "none"));
        let program = mpi.recipe("odd_even.c").flags(&["-g", "-O1"]).build();
        let program = program.display().to_string();
        let mut words = mpi.launch(RANKS);
        words.extend([&program, "--bug", "deadlock", "--rank", "3"].map(str::to_owned));
        let options = ["--hang", "60", "--on-hang", "stop"];
        let hung = record(&printed.scratch, &options, &words);
        printed.one_run(&good, "3.0");
        printed.one_run(&hung, "3.0");
        printed.two_runs(&good, &hung, &other);
    }
}

/// A command that calls Go, whose cache is the user's: to build its library anew takes minutes.
fn go(words: &[&str]) -> Outcome {
    let mut command = lockstep(words);
    let sources = repository().join("programs/go/capture");
    command::run(command.env_remove("XDG_CACHE_HOME").current_dir(sources))
}

fn goroutines(printed: &mut Printed) {
    let kept = printed.scratch.join("kept").display().to_string();
    let test = go(&[
        "go", "test", "--json", "--runs", "2", "-o", &kept, "./alone", "./paths",
    ]);
    printed.keep(&["go", "test"], &test.stdout);
    let run = go(&["go", "run", "--json", "./deadlock"]);
    let last = run.stderr.lines().find(|line| line.starts_with('{'));
    printed.keep(&["go", "run"], last.expect("a document"));
    printed.keep(
        &["go", "usages"],
        &go(&["go", "usages", "--json", "./usages"]).stdout,
    );
    printed.keep(
        &["go", "coverage"],
        &go(&["go", "coverage", "--json", &kept]).stdout,
    );
    let first = Path::new(&kept).join("run-1").display().to_string();
    printed.add(1, &["progress", &first]);
}

#[test]
fn what_is_printed_fits_its_schema() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let mut printed = Printed {
        scratch: Scratch::new("printed"),
        names: BTreeSet::new(),
        number: 0,
    };
    fs::create_dir(printed.scratch.join("printed")).expect("a directory");
    threads(&mut printed);
    ranks(&mut printed);
    let has_go = tools::require(&["go"]);
    if has_go {
        goroutines(&mut printed);
    }
    let schemas = files(&book()).into_keys();
    let names = schemas.filter_map(|it| it.strip_suffix(".json").map(str::to_owned));
    let expected: BTreeSet<String> = names
        .filter(|it| has_go || !it.starts_with("go-"))
        .collect();
    assert_eq!(
        printed.names, expected,
        "commands whose documents were printed"
    );
    let Some(python) = tools::python_with("jsonschema") else {
        return;
    };
    let mut check = command::command(&[python, "-c", CHECK]);
    let _ = command::run(check.arg(printed.scratch.join("printed")).arg(book())).success();
}
