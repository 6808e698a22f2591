//! What comparing two runs of 16 ranks costs: the whole sweep, time and memory.

use crate::measure::{cost, median, span};
use anyhow::{Result, ensure};
use lockstep_testkit::{Scratch, mpi::Mpi, record, recording};

/// Records a healthy and a faulty odd/even sort on 16 ranks and compares them; `None` without MPI.
pub fn measure(scratch: &Scratch) -> Result<Option<String>> {
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return Ok(None);
    };
    let program = mpi
        .recipe("odd_even.c")
        .flag("-O2")
        .build()
        .display()
        .to_string();
    let run = |arguments: &[&str]| {
        let mut words = mpi.launch(16);
        words.push(program.clone());
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        record(scratch, &[], &words)
    };
    let (healthy, faulty) = (run(&[]), run(&["--bug", "swap"]));
    let (mut loads, mut compares, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..5 {
        // Opening both runs is what `info` does too.
        let mut loading = 0.0;
        for recording in [&healthy, &faulty] {
            let mut info = recording::lockstep(&["info", "--json"]);
            loading += cost(info.arg(&recording.directory))?.wall;
        }
        loads.push(loading);
        let mut compare = recording::lockstep(&["compare", "--json", "--fresh"]);
        compare.arg(&healthy.directory).arg(&faulty.directory);
        let cost = cost(&mut compare)?;
        ensure!(
            cost.status == 1,
            "compare ended with status {}",
            cost.status
        );
        compares.push(cost.wall);
        memory = memory.max(cost.memory);
    }
    let (least, most) = span(&compares);
    Ok(Some(format!(
        "compare, 16 ranks, full sweep: {:.3} s ({least:.3}-{most:.3}), of which loading {:.3} s; at most {:.1} MB",
        median(&compares),
        median(&loads),
        memory as f64 / 1e6
    )))
}
