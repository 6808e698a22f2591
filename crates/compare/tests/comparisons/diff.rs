//! `diff` on the runs of odd/even sort.

#![allow(clippy::unwrap_used)]

use crate::odd_even::{Bug, odd_even};
use lockstep_compare::{Diff, LineKind, Options, Style, diff};
use lockstep_trace::TraceName;

fn rank_5(bug: Bug, filter: &str, style: Style) -> Diff {
    let mut options = Options::default();
    options.set_filter(filter).unwrap();
    let (normal, faulty) = (odd_even(16, Bug::None), odd_even(16, bug));
    diff(&normal, &faulty, TraceName::new(5, 0), &options, style).unwrap()
}

fn text(diff: &Diff) -> Vec<String> {
    let line = |line: lockstep_compare::DiffLine| {
        let sign = match line.kind {
            LineKind::Common => '=',
            LineKind::Normal => '-',
            LineKind::Faulty => '+',
            LineKind::Changed => '~',
        };
        format!("{}{sign} {}", "  ".repeat(line.depth), line.text)
    };
    diff.lines().into_iter().map(line).collect()
}

#[test]
fn swap_under_the_mpi_filter() {
    let diff = rank_5(Bug::Swap, "mpi", Style::Tree);
    assert!(!diff.equal);
    assert_eq!(
        text(&diff),
        [
            "= MPI_Init",
            "= MPI_Comm_rank",
            "= MPI_Comm_size",
            "= L1^7",
            "~ iterations 8-16: L1 [MPI_Recv MPI_Send] -> L0 [MPI_Send MPI_Recv] x9 (rotation)",
            "= MPI_Finalize",
        ]
    );
    let flat = rank_5(Bug::Swap, "mpi", Style::Flat);
    assert_eq!(
        text(&flat),
        [
            "= MPI_Init",
            "= MPI_Comm_rank",
            "= MPI_Comm_size",
            "- L1^16",
            "+ L1^7",
            "+ L0^9",
            "= MPI_Finalize",
        ]
    );
    assert_eq!(flat.first_divergence, diff.first_divergence);
    let names: Vec<&str> = diff.loops.iter().map(|body| body.name.as_str()).collect();
    assert_eq!(names, ["L0", "L1"]);
    assert_eq!(diff.loops[1].family, "L0");
}

#[test]
fn events_are_those_of_the_whole_trace() {
    // main, three calls, odd_even_sort, and seven iterations of find_partner and two messages; then
    // find_partner.
    let event = 1 + 6 + 1 + 7 * 6 + 2;
    for filter in ["mpi", "everything"] {
        let diff = rank_5(Bug::Swap, filter, Style::Tree);
        let first = diff.first_divergence.unwrap();
        assert_eq!(
            (first.event, first.normal_event),
            (event, event),
            "{filter}"
        );
        assert_eq!(first.normal.as_deref(), Some("MPI_Recv"));
        assert_eq!(first.faulty.as_deref(), Some("MPI_Send"));
        assert_eq!(first.loops.last().unwrap().1, 8);
        let stack: &[&str] = match filter {
            "mpi" => &[],
            _ => &["main", "odd_even_sort"],
        };
        assert_eq!(first.stack, stack);
    }
}

#[test]
fn deadlock_shows_the_call_that_never_returns() {
    let diff = rank_5(Bug::Deadlock, "mpi", Style::Tree);
    assert_eq!(
        text(&diff),
        [
            "= MPI_Init",
            "= MPI_Comm_rank",
            "= MPI_Comm_size",
            "~ L1: 16 -> 7  [MPI_Recv MPI_Send]",
            "- MPI_Finalize",
            "+ MPI_Send  (never returned)",
        ]
    );
    assert_eq!(diff.faulty_open, ["MPI_Send"]);
    assert!(diff.normal_open.is_empty());
    let everything = rank_5(Bug::Deadlock, "everything", Style::Tree);
    assert_eq!(
        everything.faulty_open,
        ["main", "odd_even_sort", "MPI_Send"]
    );
    let lines = text(&everything);
    assert_eq!(lines[0], "~ main  (never returned in the faulty run)");
    assert_eq!(
        lines[4],
        "  ~ odd_even_sort  (never returned in the faulty run)"
    );
    assert_eq!(lines.last().unwrap(), "  - MPI_Finalize");
}

#[test]
fn equal_traces_have_no_steps() {
    for style in [Style::Tree, Style::Flat] {
        let diff = rank_5(Bug::None, "everything", style);
        assert!(diff.equal && diff.ops.is_empty() && diff.first_divergence.is_none());
    }
}

#[test]
fn keys_that_others_rely_on() {
    let diff = rank_5(Bug::Swap, "mpi", Style::Tree);
    let json: serde_json::Value = serde_json::to_value(&diff).unwrap();
    assert_eq!(json["equal"], false);
    let first = &json["first_divergence"];
    assert_eq!(first["trace"], "5.0");
    assert_eq!(first["event"], 52);
    assert_eq!(first["stack"], serde_json::json!([]));
    assert_eq!(first["normal"], "MPI_Recv");
    assert_eq!(first["faulty"], "MPI_Send");
    assert_eq!(first["loop"], serde_json::json!([["L1", 8]]));
    assert_eq!(json["ops"][0]["op"], "equal");
    assert_eq!(json["ops"][1]["op"], "body");
    assert_eq!(json["ops"][1]["first"], 8);
    assert_eq!(json["ops"][1]["last"], 16);
}

#[test]
fn a_missing_trace_and_an_empty_filter_are_told() {
    let run = odd_even(4, Bug::None);
    let all = Options::default();
    let error = diff(&run, &run, TraceName::new(9, 0), &all, Style::Tree).unwrap_err();
    assert!(error.to_string().contains("9.0"), "{error}");
    let mut options = Options::default();
    options.set_filter("omp").unwrap();
    let error = diff(&run, &run, TraceName::new(0, 0), &options, Style::Tree).unwrap_err();
    assert!(error.to_string().contains("keeps nothing"), "{error}");
}
