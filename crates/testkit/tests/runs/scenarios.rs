//! Ranks that stay behind in eight ways, and one that is ahead because it skipped a step.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recording, Scratch, record};
use serde_json::Value;

/// A scenario, what is open where the others wait, and the iterations that the verdict has to know.
const SCENARIOS: [(&str, &str, &[u64]); 8] = [
    ("straight", "MPI_Barrier", &[4]),
    ("nested", "MPI_Barrier", &[4, 6]),
    ("branch", "MPI_Barrier", &[4]),
    ("two", "MPI_Barrier", &[4]),
    ("gather", "MPI_Allgather", &[]),
    ("deep", "MPI_Barrier", &[3]),
    ("ring", "MPI_Waitall", &[5]),
    ("late", "MPI_Barrier", &[]),
];

fn mpi() -> Option<Mpi> {
    Mpi::ALL.into_iter().find(|mpi| mpi.is_here())
}

fn words(mpi: Mpi, ranks: usize, source: &str, more: &[&str]) -> Vec<String> {
    let program = mpi.recipe(source).flags(&["-g", "-O1"]).build();
    let mut words = mpi.launch(ranks);
    words.push(program.display().to_string());
    words.extend(more.iter().map(|it| (*it).to_owned()));
    words
}

#[test]
fn rank_3_stays_behind() {
    let Some(mpi) = mpi() else { return };
    let _turn = a_turn();
    let scratch = Scratch::new("scenarios");
    for (scenario, open, iterations) in SCENARIOS {
        let words = words(mpi, 8, "scenarios.c", &[scenario]);
        let recording = Recording::until_open(&scratch, &[], &words, open);
        let progress = recording.json(&["progress"]);
        let told = format!("{scenario}: {progress:#}");
        assert_eq!(progress["kind"], "slow", "{told}");
        let least = progress["least_progressed"].as_array().expect("groups");
        let [id] = least.as_slice() else {
            panic!("{told}")
        };
        let group = &progress["groups"][id.as_u64().expect("an id") as usize];
        assert_eq!(group["processes"], serde_json::json!([3]), "{told}");
        let stack = group["stack"].as_array().expect("a stack");
        assert!(stack.contains(&Value::from("spin")), "{told}");
        let loops = group["loops"].as_array().expect("loops");
        let found: Vec<u64> = loops.iter().filter_map(|it| it[1].as_u64()).collect();
        assert_eq!(found, iterations, "{told}");
    }
}

#[test]
fn who_skipped_the_leap_frog_step_is_ahead() {
    let Some(mpi) = mpi() else { return };
    let _turn = a_turn();
    let scratch = Scratch::new("hydro");
    let normal = record(&scratch, &[], &words(mpi, 8, "hydro.c", &["40"]));
    let normal = normal.directory.display().to_string();
    let faulty = words(mpi, 8, "hydro.c", &["40", "skip", "2"]);
    let faulty = Recording::until_open(&scratch, &[], &faulty, "MPI_Allreduce");
    let progress = faulty.json(&["progress", "--normal", &normal]);
    let told = format!("{progress:#}");
    let verdict = progress["verdict"].as_str().expect("a sentence");
    assert!(
        verdict.starts_with("rank 2 went ahead: it left out leap_frog() at hydro.c:80 in main()"),
        "{told}"
    );
    assert_eq!(progress["causes"][0]["task"], 2, "{told}");
    assert_eq!(progress["causes"][0]["left_out"][0], "leap_frog", "{told}");
    assert_eq!(
        progress["causes"].as_array().map(Vec::len),
        Some(1),
        "{told}"
    );
}

#[test]
fn who_left_a_message_out_comes_before_whoever_sent_what_nobody_received() {
    let Some(mpi) = mpi() else { return };
    let _turn = a_turn();
    let scratch = Scratch::new("tree");
    let right = words(mpi, 8, "tree.c", &[]);
    let normals = [(); 2].map(|()| record(&scratch, &[], &right));
    let other = normals[1].directory.display().to_string();
    let faulty = words(mpi, 8, "tree.c", &["forgets"]);
    let faulty = Recording::until_open(&scratch, &[], &faulty, "MPI_Recv");
    let said = "rank 4 left out give() at tree.c:34 in down() (call 6), unlike in the normal run; \
                ranks 0-3,5-7 end early, in MPI_Recv";
    for more in [&[][..], &["--normal", &other]] {
        let (status, found) = normals[0].compare(&faulty, more);
        let told = format!("{found:#}");
        assert_eq!(
            (status, found["verdict"].as_str()),
            (1, Some(said)),
            "{told}"
        );
        assert_eq!(found["suspects"][0]["process"], 4, "{told}");
    }
}
