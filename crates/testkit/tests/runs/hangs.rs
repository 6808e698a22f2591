//! A sample of the progress campaign: two faults of each kind.

use lockstep_testkit::Scratch;
use lockstep_testkit::hang::{Fault, Healthy};
use lockstep_testkit::mpi::Mpi;

#[test]
#[ignore = "long: a sample of a campaign"]
fn two_faults_of_each_kind() {
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return;
    };
    let scratch = Scratch::new("hangs");
    for program in ["hydro", "sweep"] {
        let healthy = Healthy::record(mpi, program, 4, scratch.path());
        for fault in Fault::ALL {
            let trial = healthy.draw(fault, 1).expect("something to hit");
            let outcome = healthy.run(&trial, &scratch);
            let told = format!("{program}, {trial:?}: {outcome:?}");
            let [ours, normal, ..] = outcome.named.as_slice() else {
                panic!("{told}");
            };
            match fault {
                Fault::Slow => assert!(!outcome.hung, "{told}"),
                Fault::Loop => {
                    assert!(outcome.hung && ours.ranks == [trial.rank], "{told}");
                    assert!(ours.functions.contains(&trial.function), "{told}");
                }
                Fault::Dropped | Fault::Collective => {
                    assert!(outcome.hung && normal.ranks.contains(&trial.rank), "{told}");
                }
                Fault::Tag | Fault::Peer => {
                    assert!(outcome.hung && ours.ranks == [trial.rank], "{told}");
                    assert!(ours.functions.contains(&trial.function), "{told}");
                }
                // The others wait for the one that is gone; the launcher may end them first.
                Fault::Exit => assert_eq!(ours.ranks, [trial.rank], "{told}"),
                Fault::Sleep => {
                    assert!(outcome.hung && ours.ranks == [trial.rank], "{told}");
                }
                // Where the next call is of no matter to others, nothing happens.
                Fault::Swap => assert!(!outcome.hung || ours.hang, "{told}"),
            }
        }
    }
}
