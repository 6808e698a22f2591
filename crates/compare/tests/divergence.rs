//! First divergence on odd/even sort, and on what loops can do.

mod words;

use lockstep_calltree::Forest;
use lockstep_compare::{Divergence, DivergenceKind, Divergences, Side, first_divergence};
use lockstep_loops::Names;
use lockstep_trace::TraceName;
use words::tree;

fn compare(normal: &str, faulty: &str) -> Divergences {
    let mut forest = Forest::new();
    let normal = tree(&mut forest, normal);
    let faulty = tree(&mut forest, faulty);
    let mut names = Names::new();
    // As among the traces of odd/even sort: rank 0 comes first.
    let even = tree(&mut forest, "2[ MPI_Send MPI_Recv ]");
    for root in [even, normal, faulty] {
        forest.name_loops(root, &mut names);
    }
    let trace = TraceName::new(5, 0);
    first_divergence(
        &forest,
        trace,
        Side::whole(normal),
        Side::whole(faulty),
        None,
        &names,
    )
}

fn structure(normal: &str, faulty: &str) -> Divergence {
    let found = compare(normal, faulty).structure;
    found.expect("a difference of structure")
}

const NORMAL: &str =
    "main( MPI_Init MPI_Comm_rank MPI_Comm_size 16[ MPI_Recv MPI_Send ] MPI_Finalize )";

#[test]
fn swap_bug() {
    let found = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] 9[ MPI_Send MPI_Recv ] MPI_Finalize )",
    );
    assert_eq!(found.kind, DivergenceKind::OtherCall);
    assert_eq!(found.event, 1 + 6 + 7 * 4);
    assert_eq!(found.normal_event, found.event);
    assert_eq!(found.stack, ["main"]);
    assert_eq!(found.normal.as_deref(), Some("MPI_Recv"));
    assert_eq!(found.faulty.as_deref(), Some("MPI_Send"));
    assert_eq!(found.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        found.to_string(),
        "calls MPI_Send where it called MPI_Recv, in iteration 8 of L1, in main"
    );
}

#[test]
fn deadlock_bug() {
    let found = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] MPI_Send(",
    );
    assert_eq!(found.kind, DivergenceKind::OtherCall);
    assert!(found.faulty_is_open);
    assert_eq!(found.event, 1 + 6 + 7 * 4);
    assert_eq!(found.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        found.to_string(),
        "calls MPI_Send (and never returns from it) where it called MPI_Recv, in iteration 8 of L1, in main"
    );
    // Its neighbour waits for ever in a call that it used to return from.
    let victim = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] MPI_Recv(",
    );
    assert_eq!(victim.kind, DivergenceKind::EndsEarly);
    assert_eq!(victim.event, 1 + 6 + 7 * 4 + 1);
    assert_eq!(victim.stack, ["main", "MPI_Recv"]);
    assert_eq!(victim.normal.as_deref(), Some("return"));
    assert_eq!(victim.faulty, None);
    assert_eq!(victim.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        victim.to_string(),
        "stops in MPI_Recv where it returned, in iteration 8 of L1"
    );
}

#[test]
fn trip_counts_alone() {
    let found = compare(NORMAL, &NORMAL.replace("16[", "7["));
    assert_eq!(found.structure, None);
    let counts = found.counts.expect("a difference of counts");
    assert_eq!(counts.kind, DivergenceKind::Counts);
    assert_eq!(counts.loops, [("L1".to_owned(), 8)]);
    assert_eq!(counts.normal.as_deref(), Some("MPI_Recv"));
    assert_eq!(counts.faulty.as_deref(), Some("MPI_Finalize"));
    assert_eq!(compare(NORMAL, NORMAL), Divergences::default());
}
