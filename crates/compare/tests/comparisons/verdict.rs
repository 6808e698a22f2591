//! Whether runs differ, who is named first, and in what words.
#![allow(clippy::unwrap_used)]

use crate::odd_even::{self, Bug, function, odd_even, run};
use lockstep_compare::{Comparison, Options, Reason, compare};
use lockstep_trace::{Event, Run, TraceName};

fn with(normals: &[&Run], faulty: &Run, options: &Options) -> Comparison {
    compare(normals, faulty, options, &|_, _| {}).unwrap()
}

fn sweep(normal: &Run, faulty: &Run) -> Comparison {
    with(&[normal], faulty, &Options::default())
}

#[test]
fn swap_names_rank_5() {
    let found = sweep(&odd_even(16, Bug::None), &odd_even(16, Bug::Swap));
    assert!(found.differs);
    assert_eq!(
        found.verdict,
        "rank 5 calls MPI_Send where the normal run calls MPI_Recv, in odd_even_sort(), \
         after 7 of 16 iterations of the loop [MPI_Recv MPI_Send]; 15 others behave as before"
    );
    assert_eq!(found.suspects.len(), 1);
    assert_eq!(found.suspects[0].trace, TraceName::new(5, 0));
    assert_eq!(found.suspects[0].reason, Reason::OtherCall);
    assert_eq!(found.p, None);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    // 2 x 9 filters and returns keep something; 6 kinds of attributes, 7 linkages, 3 numbers of clusters.
    assert_eq!(found.table.len() % (6 * 7 * 3), 0);
    assert!(
        found
            .table
            .is_sorted_by(|a, b| a.b_score <= b.b_score || b.b_score.is_nan())
    );
    let first = &found.table[0];
    assert_eq!(
        (first.processes[0].rank, first.cluster_sizes.last()),
        (5, Some(&1))
    );
    // The closing row: who is a candidate most often.
    assert_eq!(found.top.processes[0].0, "5");
    assert_eq!(found.top.threads[0].0, "5.0");
    let rows = found
        .table
        .iter()
        .filter(|row| row.threads.contains(&TraceName::new(5, 0).into()));
    assert_eq!(found.top.threads[0].1, rows.count());
}

#[test]
fn the_threshold_of_candidates_can_be_told() {
    let (normal, faulty) = (odd_even(16, Bug::None), odd_even(16, Bug::Swap));
    let most = |few| {
        let found = with(
            &[&normal],
            &faulty,
            &Options {
                few,
                ..Options::default()
            },
        );
        found
            .table
            .iter()
            .map(|row| row.threads.len())
            .max()
            .unwrap()
    };
    // Of 16 at most one, two, or eight.
    assert!(most(16) <= 3 && most(8) <= 6 && most(2) >= most(8));
}

#[test]
fn deadlock_names_rank_5_and_not_its_victims() {
    let found = sweep(&odd_even(16, Bug::None), &odd_even(16, Bug::Deadlock));
    assert!(found.differs);
    assert_eq!(
        found.verdict,
        "rank 5 is stuck in MPI_Send, in odd_even_sort(), after 7 of 16 iterations of the loop \
         [MPI_Recv MPI_Send], where the normal run calls MPI_Recv; ranks 0-4,6-14 end early, in \
         MPI_Recv, 1 other behaves as before"
    );
    let order: Vec<u32> = found
        .suspects
        .iter()
        .map(|suspect| suspect.process.rank)
        .collect();
    assert_eq!(order[0], 5);
    // Of those that end early, a partner of rank 5 came least far, but for the edge with half the iterations.
    assert_eq!(order[1..3], [0, 6]);
    assert!(
        found.suspects[1..]
            .iter()
            .all(|suspect| suspect.reason == Reason::EndsEarly)
    );
    assert!(found.suspects[0].confidence > found.suspects[1].confidence);
}

#[test]
fn healthy_runs_are_alike() {
    let found = sweep(&odd_even(16, Bug::None), &odd_even(16, Bug::None));
    assert!(!found.differs && found.suspects.is_empty());
    assert_eq!(
        found.verdict,
        "the runs behave alike: all 16 traces are as before"
    );
}

#[test]
fn keys_that_others_rely_on() {
    let found = sweep(&odd_even(4, Bug::None), &odd_even(4, Bug::None));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["differs"], false);
    assert!(json["verdict"].is_string() && json["p"].is_null() && json["suspects"].is_array());
    let row = &json["table"][0];
    for key in [
        "filter",
        "attributes",
        "frequency",
        "linkage",
        "clusters",
        "b_score",
        "cluster_sizes",
        "processes",
        "threads",
    ] {
        assert!(row.get(key).is_some(), "{key}");
    }
    let found = sweep(&odd_even(16, Bug::None), &odd_even(16, Bug::Swap));
    let json = serde_json::to_value(&found).unwrap();
    let suspect = &json["suspects"][0];
    assert_eq!(
        (&suspect["trace"], &suspect["process"]),
        (&"5.0".into(), &5.into())
    );
    assert!(suspect["confidence"].as_f64().unwrap() > 0.9 && suspect["reasons"][0].is_string());
    let fact = &json["facts"][0];
    assert_eq!(
        (&fact["kind"], &fact["who"][0]),
        (&"other-call".into(), &"5.0".into())
    );
    assert!(fact["function"] == suspect["divergence"]["faulty"] && fact["lines"].is_array());
}

fn calls(names: &[&str]) -> Vec<Event> {
    names
        .iter()
        .flat_map(|name| [Event::Call(function(name)), Event::Return])
        .collect()
}

/// Polls `times` times before it sends.
fn polling(times: [usize; 4]) -> Run {
    let trace = |times| {
        let mut events = calls(&["MPI_Init"]);
        events.extend(calls(&vec!["MPI_Recv"; times]));
        events.extend(calls(&["MPI_Send", "MPI_Finalize"]));
        events
    };
    run(&odd_even::FUNCTIONS, times.map(trace).to_vec())
}

#[test]
fn trip_counts_alone_are_told_and_are_no_difference_unless_asked() {
    let (normal, faulty) = (polling([1, 5, 5, 5]), polling([3, 5, 1, 9]));
    let found = sweep(&normal, &faulty);
    assert!(!found.differs);
    assert_eq!(
        found.verdict,
        "the runs behave alike: all 4 traces are as before but for trip counts in 3 of them (--counts makes these a difference)"
    );
    assert_eq!(found.suspects.len(), 3);
    let counts = Options {
        counts: true,
        ..Options::default()
    };
    assert!(with(&[&normal], &faulty, &counts).differs);
}

#[test]
fn the_few_that_go_round_otherwise_are_named() {
    let (normal, faulty) = (polling([1, 5, 5, 5]), polling([1, 5, 5, 3]));
    assert_eq!(
        sweep(&normal, &faulty).verdict,
        "the runs behave alike but for trip counts: rank 3 calls MPI_Recv 3 times (5 times in the normal run); the 3 other traces are as before (--counts makes this a difference)"
    );
    let counts = Options {
        counts: true,
        ..Options::default()
    };
    let found = with(&[&normal], &faulty, &counts);
    let said = "rank 3 calls MPI_Recv 3 times (5 times in the normal run)";
    assert!(found.verdict.starts_with(said), "{}", found.verdict);
}

#[test]
fn fewer_ranks_are_compared_as_far_as_they_go() {
    let found = sweep(&odd_even(16, Bug::None), &odd_even(4, Bug::None));
    assert!(found.differs);
    assert_eq!(found.missing.len(), 12);
    assert!(
        found.notes[0].starts_with("processes: 16 in the normal run, 4 in the faulty one"),
        "{:?}",
        found.notes
    );
    assert!(
        found.notes[1].starts_with("12 traces are in the normal run only"),
        "{:?}",
        found.notes
    );
    assert_eq!(found.view.difference.traces.len(), 4);
}

#[test]
fn runs_without_a_common_trace_are_refused() {
    let mut faulty = odd_even(4, Bug::None);
    faulty.processes.clear();
    let error = compare(
        &[&odd_even(4, Bug::None)],
        &faulty,
        &Options::default(),
        &|_, _| {},
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("expected traces of the same names in both runs"),
        "{error}"
    );
    assert!(compare(&[], &faulty, &Options::default(), &|_, _| {}).is_err());
}

#[test]
fn a_function_of_one_build_only_is_told_and_no_difference() {
    let mut other = odd_even(4, Bug::None);
    let mut unused = other.functions[0].clone();
    unused.name = "new_and_never_called".into();
    unused.linkage.clone_from(&unused.name);
    other.functions.push(unused);
    let found = sweep(&odd_even(4, Bug::None), &other);
    assert!(!found.differs);
    assert_eq!(
        found.notes,
        [
            "functions of the faulty run's program only (another build, or never called there): new_and_never_called"
        ]
    );
}

#[test]
fn another_normal_run_widens_what_is_normal() {
    // Rank 0 sends or receives first, as it happens; rank 3 never did otherwise.
    let trace = |names: &[&str]| calls(&[&["MPI_Init"], names, &["MPI_Finalize"]].concat());
    let (send, recv) = (["MPI_Send", "MPI_Recv"], ["MPI_Recv", "MPI_Send"]);
    let make = |orders: [&[&str]; 16]| run(&odd_even::FUNCTIONS, orders.map(trace).to_vec());
    let mut orders: [&[&str]; 16] = [&send; 16];
    let one = make(orders);
    orders[0] = &recv;
    let two = make(orders);
    assert!(sweep(&one, &two).differs);
    let found = with(&[&one, &two], &two, &Options::default());
    assert!(!found.differs, "{}", found.verdict);
    assert_eq!(found.p, Some(1.0));
    orders[3] = &recv[..1];
    let found = with(&[&one, &two], &make(orders), &Options::default());
    assert_eq!(found.suspects.len(), 1);
    assert_eq!(found.suspects[0].process.rank, 3);
    assert!(found.p.unwrap() < 0.1);
}

#[test]
fn what_is_ignored_makes_no_difference() {
    let options = Options {
        ignore: vec!["^MPI_(Send|Recv)$".into()],
        ..Options::default()
    };
    let found = with(
        &[&odd_even(16, Bug::None)],
        &odd_even(16, Bug::Swap),
        &options,
    );
    assert!(!found.differs, "{}", found.verdict);
}

#[test]
fn mistakes_in_options_are_told() {
    let run = odd_even(4, Bug::None);
    let refuse = |options: Options| {
        compare(&[&run], &run, &options, &|_, _| {})
            .unwrap_err()
            .to_string()
    };
    let mut options = Options {
        ignore: vec!["(".into()],
        ..Options::default()
    };
    assert_eq!(
        refuse(options.clone()),
        "--ignore: `(` is not a regular expression: unclosed group"
    );
    options.ignore.clear();
    options.sweep = false;
    options.set_filter("omp").unwrap();
    assert_eq!(
        refuse(options),
        "--filter: expected a filter that keeps a function that was called, found `11.ompall.0K10`, which keeps none"
    );
}

/// The same run with more calls of `strcmp` between the first calls of each trace, as an option on the
/// command line brings them.
fn with_option(run: &Run) -> Run {
    let names: Vec<&str> = odd_even::FUNCTIONS
        .iter()
        .copied()
        .chain(["strcmp"])
        .collect();
    let strcmp = lockstep_trace::FunctionId(names.len() as u32 - 1);
    let traces = run.traces().map(|thread| {
        let mut events: Vec<Event> = thread.events().collect();
        events.splice(
            7..7,
            [
                Event::Call(strcmp),
                Event::Return,
                Event::Call(strcmp),
                Event::Return,
            ],
        );
        events
    });
    odd_even::run(&names, traces.collect())
}

#[test]
fn what_all_traces_share_hides_nobody() {
    let healthy = odd_even(16, Bug::None);
    let plain = sweep(&healthy, &odd_even(16, Bug::Swap));
    let found = sweep(&healthy, &with_option(&odd_even(16, Bug::Swap)));
    assert_eq!(found.verdict, plain.verdict);
    assert_eq!(found.suspects.len(), 1);
    assert_eq!(
        found.notes,
        [
            "16 traces differ alike in this, which is left out of the search (other arguments, another input or build?): \
          rank 0 calls strcmp where the normal run calls odd_even_sort, in main()"
        ]
    );
}

#[test]
fn what_all_traces_share_is_a_difference_when_there_is_no_other() {
    let healthy = odd_even(16, Bug::None);
    let found = sweep(&healthy, &with_option(&healthy));
    assert!(found.differs);
    assert_eq!(found.suspects.len(), 16);
    assert_eq!(
        found.verdict,
        "all traces differ alike, and none in any other way: rank 0 calls strcmp where the normal run calls odd_even_sort, in main()"
    );
    assert!(found.suspects[0].confidence < 0.05);
}

#[test]
fn a_wrapper_does_not_shift_the_processes() {
    let plain = |bug| {
        let mut run = odd_even(16, bug);
        run.is_mpi = false;
        run
    };
    let (normal, mut faulty) = (plain(Bug::None), plain(Bug::Swap));
    // `timeout` starts first and takes the name 0.
    for process in &mut faulty.processes {
        process.name.rank += 1;
        for thread in &mut process.threads {
            thread.name.process = process.name;
        }
    }
    let mut wrapper = odd_even(1, Bug::None).processes;
    wrapper[0].program = "/usr/bin/timeout".into();
    faulty.processes.splice(0..0, wrapper);
    let found = sweep(&normal, &faulty);
    assert_eq!(found.suspects.len(), 1, "{}", found.verdict);
    assert_eq!(found.suspects[0].trace, TraceName::new(6, 0));
    assert!(
        found.notes[0].ends_with("not compared: 0 (timeout) of the faulty run"),
        "{:?}",
        found.notes
    );
    assert!(found.missing.is_empty() && found.extra.is_empty());
}
