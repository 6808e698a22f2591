//! The repository's own commands: `cargo xtask demo | test | pages | bench | campaign | answers | dist |
//! environments | sizes | prose | fuzz`.
//!
//! *Guarantees*: says what it does before it does it, and installs nothing but Debian packages, and
//! those only as root or with a `sudo` that asks no password; otherwise it says what to install and
//! goes on with what can run.
//!
//! *Costs*: depends on nothing but `anyhow` and the tables of `api`, so that the first words come within seconds.
//!
//! *Not for* logic: measuring and fault injection live in `bench` and `lockstep-testkit`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod answers;
mod demo;
mod dist;
mod environments;
#[cfg(test)]
mod function_names;
mod fuzz;
mod pages;
mod recipes;
mod setup;
mod shell;
mod test;

use anyhow::Result;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  demo                   install what is missing, build, record a healthy and a faulty run of a real
                         MPI program, and say which rank fell out of step
  test [--quick | --all] [--no-install] [CARGO TEST OPTION]...
                         install what is missing (asks first at a terminal), then run the tests; --quick: unit tests
                         and one recording; --all: also what takes long (browsers, Java, samples of campaigns)
  pages                  write the pages of the book that are made from the code: tables of MPI, schemas of JSON
  bench [OPTION|PROGRAM]...
                         slowdown, events per second and bytes per event beside callgrind and
                         uftrace on the same programs; `cargo xtask bench --help` says more
  bench slowdown|call|startup|stall|coverage|memory|capture|store|ranks|large|progress|watch|divergence|loops|sweep|go
                         one figure each, rows kept, taken up where it stopped; `--help` says more
  campaign programs      real programs, untraced and recorded, must say and write the same
  campaign compare       faults whose place is known, and whether compare names it
  campaign kill [COUNT] [--seed N]
                         SIGKILL at random moments: what had happened must be in the trace
  campaign starts [COUNT] [--seed N]
                         jobs of a few ranks on a busy machine: every rank must have begun to record
  campaign progress [--seed N] [--loops N] [--others N] [--ranks N | --command TEXT [--images NAME]...]
                         faults at random calls of MPI programs: who is named, by us and as published
  campaign go [--seed N] [KERNEL]...
                         the zoo of concurrency bugs in Go: found in how many runs, and what is said of the
                         repaired twins
  campaign gate [--checks N] [--normals N]
                         changes of programs, and rebuilds that change nothing: what baseline check says of them
  campaign reports [--mpi NAME] [PROGRAM]...
                         programs after public reports of hangs and crashes: right rank, kind and line of how many
  campaign properties [--cases N] [--seed N]
                         every property of the tests, with a new seed each time and, where a test sets no number, many more cases
  answers BASE [--runs N] [--seed N]
                         what the revision BASE and the working tree find in the same 300 runs: who, kind, function, line and
                         exit status; each difference needs a reason in bench/answers.txt
  dist [--rebuild | --command FILE]
                         the archives of a release: static command, .deb, Python wheel, source; packed
                         twice with the same bytes (--rebuild: also built twice; --command: of this file)
  environments [--command FILE]
                         the release's command in root file systems of Debian 11 and 13, beside busybox alone, without
                         root, without /tmp or a home, and with the program in a container
  sizes | circles | lengths | prose | limits
                         what the rules of the house measure: lines of code, imports in circles, long functions, long
                         sentences; and all of it as rules/limits.txt has it
  fuzz [TARGET]... [--seconds N]
                         libFuzzer on every decoder and importer
";

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = words.split_first() else {
        eprint!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    match command.as_str() {
        "answers" => answers::run_answers(rest),
        "demo" => demo::run(),
        "test" => test::everything(rest),
        "dist" => dist::run(rest),
        "environments" => environments::run(rest),
        "pages" => pages::write(),
        "fuzz" => fuzz::run_targets(rest),
        "sizes" | "circles" | "lengths" | "prose" | "limits" => test::rules(command),
        "bench" => test::harness("lockstep-bench", "lockstep-bench", rest),
        "campaign"
            if rest
                .first()
                .is_some_and(|word| word == "programs" || word == "compare") =>
        {
            test::harness("lockstep-bench", "lockstep-bench", rest)
        }
        "campaign" if rest.first().is_some_and(|word| word == "properties") => {
            test::properties(rest.get(1..).unwrap_or_default())
        }
        "campaign" => test::harness("lockstep-testkit", "campaign", rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => {
            eprint!("xtask: no command `{other}`\n\n{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}
