//! Iterations that `progress` says are those that the program says: where the calls do not tell, nothing is said.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Scratch, record};
use serde_json::Value;

/// A case, and whether the iterations that rank 1 hangs in have to be known.
const CASES: [(&str, bool); 11] = [
    ("middle", true),
    ("roles", true),
    ("behind", false),
    ("roles_behind", false),
    ("one", true),
    ("two", true),
    ("nested", true),
    // A loop in a loop, or a condition: the calls do not tell.
    ("inner", false),
    ("arms", true),
    // Nobody came to that call before: it may be behind the loop.
    ("once", false),
    ("called", true),
];

#[test]
fn what_is_said_is_true() {
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return;
    };
    let _turn = a_turn();
    let scratch = Scratch::new("iterations");
    let program = mpi.recipe("iterations.c").flags(&["-g", "-O1"]).build();
    for (case, is_known) in CASES {
        let mut words = mpi.launch(3);
        words.extend([program.display().to_string(), case.to_owned()]);
        let recording = record(&scratch, &["--hang", "60", "--on-hang", "stop"], &words);
        let truth = recording.outcome.stdout.lines();
        let truth = truth.flat_map(str::split_whitespace);
        let truth: Vec<u64> = truth.map(|it| it.parse().expect("a number")).collect();
        let progress = recording.json(&["progress"]);
        let told = format!("{case}, {truth:?}: {progress:#}");
        assert_eq!(progress["kind"], "deadlock", "{told}");
        let groups = progress["groups"].as_array().expect("groups");
        let has = |it: &&Value| {
            let tasks = it["processes"].as_array();
            tasks.is_some_and(|it| it.contains(&Value::from(1)))
        };
        let loops = groups.iter().find(has).expect("a group")["loops"].as_array();
        let said = loops.expect("loops").iter().filter_map(|it| it[1].as_u64());
        let said: Vec<u64> = said.collect();
        assert!(
            said == truth || said.is_empty() && !is_known,
            "{said:?} of {told}"
        );
        // The sentence tells of the outermost.
        let sentence = progress["verdict"].as_str().expect("a sentence");
        let is_said =
            |it: &u64| sentence.contains(&format!(", iteration {it}, for a message from rank 0"));
        assert!(said.first().is_none_or(is_said), "{told}");
    }
}
