//! Jobs that nobody recorded: the case study of the Prodometer paper at its size, and a leaf that may still run.

use lockstep_progress::clause::{Clause, What};
use lockstep_progress::{Progress, analyse};
use lockstep_testkit::generate;
use lockstep_trace::{End, EndKind, Event, FunctionId};

fn innermost(found: &Progress, group: usize) -> &str {
    let place = found.groups[group].stack.last().expect("an open call");
    place.function.as_str()
}

/// How many tasks are in this function.
fn tasks_in(found: &Progress, function: &str) -> usize {
    let groups = (0..found.groups.len()).filter(|it| innermost(found, *it) == function);
    groups.map(|it| found.groups[it].tasks.len()).sum()
}

#[test]
fn the_papers_case_study() {
    let found = analyse(&generate::hanging(4096));
    assert_eq!(tasks_in(&found, "MPI_Allgather"), 4071);
    assert_eq!(tasks_in(&found, "MPI_Recv"), 24);
    let [least] = found.least.as_slice() else {
        panic!("{:?}", found.least)
    };
    assert_eq!(innermost(&found, *least), "MPI_Get_count");
    assert_eq!(found.groups[*least].tasks, [4095]);
    let holds = |it: &Clause| match &it.what {
        What::Holding { holders, .. } => holders[0].0[..] == [4095],
        _ => false,
    };
    assert!(found.verdict.clauses().iter().any(holds) || !found.hang);
}

#[test]
fn a_leaf_that_may_still_run_is_shown() {
    let call = |function| Event::Call(FunctionId(function));
    let trace = vec![call(0), call(1), Event::Return];
    let mut run = generate::run(vec![trace.clone(), trace]);
    for process in &mut run.processes {
        process.end = End {
            kind: EndKind::Running,
            code: None,
            certain: true,
        };
    }
    let found = analyse(&run);
    assert_eq!(found.groups.len(), 1);
    assert_eq!(found.groups[0].leaf, None);
    // The second may be in its leaf yet: it is at another place.
    run.processes[1].threads[0].open_leaf = Some(FunctionId(1));
    let found = analyse(&run);
    assert_eq!(found.groups.len(), 2);
    assert_eq!(found.groups[1].leaf.as_deref(), Some("function_1"));
    assert_eq!(found.tasks[&1].leaf.as_deref(), Some("function_1"));
}

/// Open MPI's may hang where MPI ended a rank: whoever waits for it kills it then.
#[test]
fn a_launcher_that_is_killed_since_it_does_not_end_was_not_lost() {
    let trace = vec![Event::Call(FunctionId(0))];
    let mut run = generate::run(vec![trace.clone(), trace.clone(), trace]);
    let launcher = &mut run.processes[0];
    (launcher.rank, launcher.is_mpi) = (None, false);
    launcher.program = "/usr/bin/mpirun".to_owned();
    launcher.end = End {
        kind: EndKind::Killed,
        code: Some(9),
        certain: true,
    };
    let mut is_lost = |gone: [Option<u64>; 3]| {
        for (process, at) in run.processes.iter_mut().zip(gone) {
            process.gone_at = at;
        }
        run.lost_its_launcher()
    };
    assert!(is_lost([None, None, None]));
    assert!(is_lost([Some(5), Some(7), Some(8)]));
    assert!(is_lost([Some(5), Some(3), Some(8)]));
    assert!(is_lost([None, Some(3), None]));
    assert!(!is_lost([Some(9), Some(7), Some(8)]));
    // Nobody was there to see it end, who saw the ranks end.
    assert!(!is_lost([None, Some(7), Some(8)]));
}
