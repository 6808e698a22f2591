//! Fifty kills of the campaign (`cargo xtask campaign kill` runs fifteen hundred).

use lockstep_testkit::kill::Trial;
use lockstep_testkit::{Scratch, mpi::Mpi, tools};

#[test]
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
