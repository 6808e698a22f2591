//! Communicators and world ranks, against what MPI itself says of them.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Scratch, record};

const RANKS: usize = 6;

/// `#2 {0-2,5}` as the programs write it: `{0,1,2,5}`.
fn spelled_out(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('#') {
        out.push_str(before);
        rest = after.trim_start_matches(|it: char| it.is_ascii_digit());
        let Some((members, after)) = rest
            .strip_prefix(" {")
            .and_then(|rest| rest.split_once('}'))
        else {
            continue;
        };
        let members: Vec<String> = members
            .split(',')
            .map(|part| match part.split_once('-') {
                Some((first, last)) => {
                    let ranks = first.parse::<u32>().unwrap_or(0)..=last.parse().unwrap_or(0);
                    let ranks: Vec<String> = ranks.map(|rank| rank.to_string()).collect();
                    ranks.join(",")
                }
                None => part.to_owned(),
            })
            .collect();
        out.push_str(&format!("{{{}}}", members.join(",")));
        rest = after;
    }
    out + rest
}

/// Whether the trace's line says what the program's line does: the same function, and every part.
fn says(line: &str, expected: &str) -> bool {
    let (name, parts) = expected.split_once('(').unwrap_or((expected, ""));
    let fortran = format!("call {}_(", name.to_lowercase());
    let right = match name {
        "return" => line.starts_with("return "),
        _ => line.starts_with(&format!("call {name}(")) || line.starts_with(&fortran),
    };
    let parts = parts.strip_suffix(')').unwrap_or(parts);
    let has = |part: &str| line.contains(&format!("{part},")) || line.contains(&format!("{part})"));
    right && parts.split(", ").all(has)
}

fn check(mpi: Mpi, source: &str, least: usize) {
    if !mpi.is_here() {
        return;
    }
    let scratch = Scratch::new("communicators");
    let program = mpi.recipe(source).flag("-O1").build();
    let mut words = mpi.launch(RANKS);
    words.push(program.display().to_string());
    words.push(scratch.join("said").display().to_string());
    let turn = a_turn();
    let run = record(&scratch, &[], &words);
    drop(turn);
    assert_eq!(run.outcome.status, 0, "{:#?}", run.outcome);
    for rank in 0..RANKS {
        let own = format!("{rank} ");
        // The C program writes a file for each rank, the Fortran program prints.
        let file = std::fs::read_to_string(scratch.join(format!("said.{rank}")));
        let file = file.unwrap_or_default();
        let printed = run.outcome.stdout.lines();
        let printed = printed.filter_map(|line| line.trim_start().strip_prefix(&own));
        let expected: Vec<&str> = printed.chain(file.lines()).collect();
        assert!(expected.len() >= least, "{:#?}", run.outcome);
        let text = run.text(&["events", "-t", &format!("{rank}.0"), "--arguments"]);
        let mut lines = text.lines().map(spelled_out);
        for wanted in expected {
            assert!(
                lines.any(|line| says(&line, wanted)),
                "{mpi:?} {source}: rank {rank} said {wanted}, which the trace does not, at its place:\n{text}"
            );
        }
        assert!(!text.contains("world ?"), "{text}");
    }
}

#[test]
fn who_is_meant_is_what_mpi_says_in_c() {
    for mpi in Mpi::ALL {
        check(mpi, "communicators.c", 10);
    }
}

#[test]
fn who_is_meant_is_what_mpi_says_in_fortran() {
    for mpi in Mpi::ALL {
        check(mpi, "communicators.f90", 3);
    }
}
