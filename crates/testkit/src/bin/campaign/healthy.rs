//! What healthy runs of the zoo foretell: of each kernel one undisturbed run that passes, and whether what is
//! suspicious in it names a line of the bug, or a bad end near it does (in the model: nothing is run again); of its
//! repaired twin, whether anything is suspicious.

use anyhow::Result;
use lockstep_goroutines::execution::Execution;
use lockstep_goroutines::foresight::Foresight;
use lockstep_goroutines::{Verdict, judge, predict_with, schedule};
use lockstep_testkit::zoo::{Built, Kernel};
use std::collections::BTreeMap;

/// Kernels by class.
#[derive(Default)]
struct Class {
    /// With a run that passes.
    healthy: usize,
    /// Whose bug is foretold by it.
    flagged: usize,
    /// By that, or by an order of steps near it.
    near: usize,
    /// Twins with a run that passes, and those of them in which something is suspicious.
    twins: usize,
    suspicious: usize,
}

/// Prints a line a class; gives every kernel `runs` runs to pass in.
pub fn run(kernels: &[Kernel], seed: u64, runs: u64) -> Result<()> {
    let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
    for (kernel, built) in kernels.iter().zip(Built::all(kernels)?) {
        let class = classes.entry(&kernel.class).or_default();
        if let Some(execution) = healthy(&built, "TestBug", seed, runs)? {
            let findings = predict_with(&execution, built.paths());
            let mut places = findings.iter().flat_map(|it| &it.places);
            let is_flagged = places.any(|it| kernel.is_cause(Some(it)));
            class.healthy += 1;
            let is_near = is_flagged || is_near(kernel, &execution);
            class.flagged += usize::from(is_flagged);
            class.near += usize::from(is_near);
            if !is_near {
                println!("{}: not foretold", kernel.name);
            }
        }
        if let Some(execution) = healthy(&built, "TestRepaired", seed, runs)? {
            let findings = predict_with(&execution, built.paths());
            class.twins += 1;
            class.suspicious += usize::from(!findings.is_empty());
            for finding in findings {
                println!("{} repaired: {}", kernel.name, finding.sentence);
            }
        }
    }
    println!("class                 pass  foretold   near  twins  suspicious");
    for (name, it) in classes {
        println!(
            "{name:<20}{:>6}{:>10}{:>7}{:>7}{:>12}",
            it.healthy, it.flagged, it.near, it.twins, it.suspicious
        );
    }
    Ok(())
}

/// Whether the bug is among the bad ends near an execution.
fn is_near(kernel: &Kernel, execution: &Execution) -> bool {
    let mut foresight = Foresight::default();
    foresight.learn(execution);
    std::iter::from_fn(|| foresight.propose())
        .take_while(|it| it.is_bad)
        .any(|it| it.places.iter().any(|place| kernel.is_cause(Some(place))))
}

/// The first undisturbed run of a test that passes.
fn healthy(built: &Built, test: &str, seed: u64, runs: u64) -> Result<Option<Execution>> {
    for number in 1..=u32::try_from(runs)? {
        let plan = schedule::plan(seed, number, Some(0));
        let (execution, _) = built.run(test, &plan)?;
        if judge(&execution).verdict == Verdict::Pass {
            return Ok(Some(execution));
        }
    }
    Ok(None)
}
