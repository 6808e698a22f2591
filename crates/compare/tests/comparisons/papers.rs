//! Tables and figures of the thesis (chapter 3) on odd/even sort.
#![allow(clippy::unwrap_used)]

use crate::odd_even::{Bug, odd_even};
use lockstep_compare::{
    Attributes, Frequency, Options, compare, context, lattice, loops, similarity,
};

fn mpi() -> Options {
    let mut options = Options {
        sweep: false,
        ..Options::default()
    };
    options.set_filter("11.mpi.0K10").unwrap();
    options
}

#[test]
fn table_3_3_loops() {
    let loops = loops(&odd_even(4, Bug::None), &mpi()).unwrap();
    let bodies: Vec<_> = loops
        .loops
        .iter()
        .map(|entry| (entry.name.as_str(), entry.body.join(" ")))
        .collect();
    assert_eq!(
        bodies,
        [
            ("L0", "MPI_Send MPI_Recv".to_owned()),
            ("L1", "MPI_Recv MPI_Send".to_owned())
        ]
    );
    assert_eq!(loops.loops[1].family, "L0");
    for (trace, folded) in loops.traces.iter().zip(["L0^2", "L1^4", "L0^4", "L1^2"]) {
        assert_eq!(
            trace.tokens,
            [
                "MPI_Init",
                "MPI_Comm_rank",
                "MPI_Comm_size",
                folded,
                "MPI_Finalize"
            ]
        );
    }
}

#[test]
fn figures_3_5_and_3_6_loops() {
    let rank_5 = |bug| {
        let loops = loops(&odd_even(16, bug), &mpi()).unwrap();
        (
            loops.traces[5].tokens[3..].join(" "),
            loops.traces[5].open.clone(),
        )
    };
    assert_eq!(rank_5(Bug::None), ("L1^16 MPI_Finalize".into(), vec![]));
    assert_eq!(rank_5(Bug::Swap), ("L1^7 L0^9 MPI_Finalize".into(), vec![]));
    assert_eq!(
        rank_5(Bug::Deadlock),
        ("L1^7 MPI_Send".into(), vec!["MPI_Send".into()])
    );
}

#[test]
fn table_3_4_context_and_figure_3_3_lattice() {
    let context = context(&odd_even(4, Bug::None), &mpi()).unwrap();
    assert_eq!(
        context.attributes(),
        [
            "MPI_Init",
            "MPI_Comm_rank",
            "MPI_Comm_size",
            "L0",
            "MPI_Finalize",
            "L1"
        ]
    );
    let common = ["MPI_Init", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Finalize"];
    let lattice = lattice(&context, 100).unwrap();
    assert_eq!(lattice.covers, [(0, 1), (0, 2), (1, 3), (2, 3)]);
    let [top, even, odd, bottom] = &lattice.concepts[..] else {
        panic!("{lattice:?}");
    };
    assert_eq!(top.own_attributes, common);
    assert_eq!(top.extent.len(), 4);
    assert_eq!(
        (&even.own_objects[..], &even.own_attributes[..]),
        (&["0.0".into(), "2.0".into()][..], &["L0".into()][..])
    );
    assert_eq!(
        (&odd.own_objects[..], &odd.own_attributes[..]),
        (&["1.0".into(), "3.0".into()][..], &["L1".into()][..])
    );
    assert!(
        bottom.extent.is_empty()
            && bottom.own_objects.is_empty()
            && bottom.own_attributes.is_empty()
    );
    assert_eq!(bottom.intent.len(), 6);
    assert!(top.own_objects.is_empty());
}

#[test]
fn figure_3_4_similarity() {
    let run = odd_even(4, Bug::None);
    let with = |attributes, frequency| {
        let options = Options {
            attributes,
            frequency,
            ..mpi()
        };
        let concepts = lattice(&context(&run, &options).unwrap(), 100)
            .unwrap()
            .concepts
            .len();
        let found = similarity(&run, &options).unwrap();
        let rows = (0..4).map(|row| found.row(row).collect());
        (concepts, rows.collect::<Vec<Vec<f64>>>())
    };
    let (concepts, matrix) = with(Attributes::Single, Frequency::None);
    assert_eq!(concepts, 4);
    assert_eq!(matrix[0], [1.0, 4.0 / 6.0, 1.0, 4.0 / 6.0]);
    assert_eq!(matrix[1], [4.0 / 6.0, 1.0, 4.0 / 6.0, 1.0]);
    let (concepts, matrix) = with(Attributes::Single, Frequency::Actual);
    assert_eq!((concepts, matrix[0][2]), (6, 4.0 / 6.0));
    let (concepts, matrix) = with(Attributes::Double, Frequency::None);
    assert_eq!((concepts, matrix[0][1]), (4, 2.0 / 6.0));
}

#[test]
fn similarity_as_csv() {
    let csv = similarity(&odd_even(4, Bug::None), &mpi())
        .unwrap()
        .to_csv();
    assert!(
        csv.starts_with("trace,0.0,1.0,2.0,3.0\n0.0,1,0.6666666666666666,1,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 5);
}

#[test]
fn row_sums_of_the_difference_under_swap() {
    let (normal, faulty) = (odd_even(16, Bug::None), odd_even(16, Bug::Swap));
    for (attributes, frequency, rank_5, others) in [
        (Attributes::Single, Frequency::None, 2.5, 1.0 / 6.0),
        (Attributes::Single, Frequency::Actual, 3.4286, 0.4286),
        (Attributes::Single, Frequency::Log10, 3.5714, 0.4286),
        (Attributes::Double, Frequency::None, 4.8333, 0.5),
    ] {
        let options = Options {
            attributes,
            frequency,
            ..mpi()
        };
        let comparison = compare(&[&normal], &faulty, &options, &|_, _| {}).unwrap();
        for (rank, sum) in comparison
            .view
            .difference
            .row_sums()
            .into_iter()
            .enumerate()
        {
            if rank == 5 {
                assert!(
                    (sum - rank_5).abs() < 1e-4,
                    "{attributes} {frequency}: {sum}"
                );
            } else {
                assert!(
                    sum < others + 1e-4,
                    "{attributes} {frequency}, rank {rank}: {sum}"
                );
            }
        }
    }
}
