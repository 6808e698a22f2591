//! Two builds of one program: what a compiler makes of it is no difference, and what the program does otherwise is told.

use lockstep_testkit::{Recipe, Recording, Scratch, record};
use serde_json::Value;

/// A run of a build.
struct Built {
    _scratch: Scratch,
    recording: Recording,
}

fn built(flags: &[&str]) -> Built {
    let program = Recipe::new("threads/shares.c")
        .flags(flags)
        .flag("-g")
        .build();
    let scratch = Scratch::new("builds");
    let recording = record(&scratch, &[], &[program]);
    Built {
        _scratch: scratch,
        recording,
    }
}

/// Exit status and answer of `compare`.
fn compare(normal: &Built, faulty: &Built) -> (i32, Value) {
    normal
        .recording
        .compare(&faulty.recording, &["--filter", "everything"])
}

fn diff(normal: &Built, faulty: &Built, trace: &str) -> Value {
    let faulty = faulty.recording.directory.display().to_string();
    normal.recording.json(&["diff", &faulty, "-t", trace])
}

#[test]
fn healthy_builds_behave_alike() {
    let levels = ["-O0", "-O1", "-O2", "-O3"].map(|level| built(&[level]));
    for (a, normal) in levels.iter().enumerate() {
        for (b, faulty) in levels.iter().enumerate() {
            let (status, found) = compare(normal, faulty);
            assert_eq!(status, 0, "-O{a} and -O{b}: {found:#}");
            assert_eq!(found["builds"].is_null(), a == b, "{found:#}");
        }
    }
    // What was inlined is said.
    let (_, found) = compare(&levels[0], &levels[2]);
    let left_out = found["builds"]["normal_only"].to_string();
    assert!(left_out.contains("\"swap\""), "{left_out}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("two builds of the program"), "{notes}");
}

#[test]
fn faults_of_an_optimised_build_are_told_beside_one_that_is_not() {
    let healthy = built(&["-O0"]);
    for (fault, trace, thread) in [
        ("-DUNLOCKED", "0.4", "thread 4"),
        ("-DSKIPPED", "0.3", "thread 3"),
    ] {
        for level in ["-O1", "-O2", "-O3"] {
            let faulty = built(&[level, fault]);
            let (status, found) = compare(&healthy, &faulty);
            assert_eq!(status, 1, "{level} {fault}: {found:#}");
            let verdict = found["verdict"].to_string();
            assert!(verdict.contains(thread), "{level} {fault}: {verdict}");
            assert!(
                verdict.contains("pthread_mutex_lock"),
                "{level} {fault}: {verdict}"
            );
            assert!(
                verdict.contains("4 others behave as before"),
                "{level} {fault}: {verdict}"
            );
            let diff = diff(&healthy, &faulty, trace);
            assert!(
                !diff["equal"].as_bool().unwrap_or(true),
                "{level} {fault}: {diff:#}"
            );
        }
        let faulty = built(&["-O2", fault]);
        let diff = diff(&healthy, &faulty, "0.1");
        assert!(
            diff["equal"].as_bool().unwrap_or(false),
            "{fault}: {diff:#}"
        );
    }
}
