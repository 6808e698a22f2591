//! Fifty kills of the campaign (`cargo xtask campaign kill` runs fifteen hundred), and some of the programs of the suite
//! (`cargo xtask campaign kill --suite`: a thousand).

use lockstep_testkit::kill::{Trial, suite};
use lockstep_testkit::suite::SUITE;
use lockstep_testkit::{Scratch, mpi::Mpi, tools};

#[test]
#[ignore = "long: a sample of a campaign"]
fn nothing_but_the_event_in_flight_is_missing() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let launchers: Vec<Vec<String>> = Mpi::ALL
        .into_iter()
        .filter(|mpi| tools::find(&mpi.launcher()).is_some())
        .map(|mpi| vec![mpi.launcher()])
        .collect();
    let scratch = Scratch::new("kill");
    let mut faults = Vec::new();
    for number in 0..50 {
        let trial = Trial::draw(20_261_121, number, &launchers);
        for row in trial.run(&scratch) {
            if let Some(fault) = &row.fault {
                faults.push(format!(
                    "{trial}, process {}: {fault}; told {:?}, traced {:?}",
                    row.process, row.told, row.traced
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Three programs, four kills of each, wherever they come.
#[test]
fn what_a_killed_program_has_done_is_the_beginning_of_what_it_does() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("kill-suite");
    for name in ["nested", "polling", "recursion"] {
        let member = SUITE
            .iter()
            .position(|it| it.name == name)
            .expect("it is there");
        let whole = suite::Whole::record(SUITE[member], &scratch).expect("it is recorded");
        for number in 0..4 {
            let trial = suite::Trial {
                member,
                ..suite::Trial::draw(20_261_123, number)
            };
            let row = trial.run(&whole, &scratch);
            assert_eq!(row.fault, None, "{name}: {trial:?}, {row:?}");
        }
    }
}
