//! Forty starts of the campaign (`cargo xtask campaign starts` runs five thousand).

use lockstep_testkit::starts::Start;
use lockstep_testkit::{Scratch, mpi::Mpi, tools};

#[test]
fn every_rank_begins_to_record() {
    if !tools::require(&["gcc", "sh"]) {
        return;
    }
    let all: Vec<Mpi> = Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()).collect();
    let scratch = Scratch::new("starts");
    for number in 0..40 {
        let start = Start::draw(20_261_128, number, &all);
        assert_eq!(start.run(&scratch), None, "{start}");
    }
}
