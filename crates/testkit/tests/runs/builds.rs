//! Two builds of one program: what a compiler makes of it is no difference, and what the program does otherwise is told.

use lockstep_testkit::{Recipe, Recording, Scratch, record};
use serde_json::Value;

/// A run of a build.
struct Built {
    _scratch: Scratch,
    recording: Recording,
}

fn built(flags: &[&str]) -> Built {
    built_of("threads/shares.c", flags)
}

fn built_of(source: &str, flags: &[&str]) -> Built {
    let program = Recipe::new(source).flags(flags).flag("-g").build();
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

/// Calls that the program has in its code and does not come to: by name, by a table, by a library.
const UNREACHED: [(&str, &str); 3] = [
    ("-DMISSED=1", "set_boundary"),
    ("-DUNREACHED=1", "reflect"),
    ("-DUNSORTED=1", "by_size"),
];

#[test]
fn what_a_build_has_in_its_code_and_does_not_call_is_told() {
    for level in ["-O0", "-O2"] {
        let healthy = built_of("threads/boundary.c", &[level]);
        for (fault, function) in UNREACHED {
            let faulty = built_of("threads/boundary.c", &[level, fault]);
            for (normal, other) in [(&healthy, &faulty), (&faulty, &healthy)] {
                let (status, found) = compare(normal, other);
                assert_eq!(status, 1, "{level} {fault}: {found:#}");
                let told = found["builds"]["reachable"].to_string();
                assert!(told.contains(function), "{level} {fault}: {found:#}");
                let verdict = found["verdict"].to_string();
                assert!(verdict.contains(function), "{level} {fault}: {verdict}");
            }
        }
    }
}

#[test]
fn what_a_build_calls_by_name_and_does_not_come_to_is_told_across_levels() {
    let (fault, function) = UNREACHED[0];
    for (normal, other) in [("-O0", "-O2"), ("-O3", "-O1")] {
        let normal = built_of("threads/boundary.c", &[normal]);
        let faulty = built_of("threads/boundary.c", &[other, fault]);
        let (status, found) = compare(&normal, &faulty);
        assert_eq!(status, 1, "{found:#}");
        assert!(found["verdict"].to_string().contains(function), "{found:#}");
    }
}

#[test]
fn healthy_builds_that_inline_call_and_jump_otherwise_behave_alike() {
    let source = "threads/boundary.c";
    let mut builds: Vec<Built> = ["-O0", "-O1", "-O2", "-O3"]
        .iter()
        .map(|level| built_of(source, &[level]))
        .collect();
    builds.push(built_of(source, &["-O2", "-no-pie"]));
    builds.push(built_of(source, &["-O2", "-flto"]));
    for normal in &builds {
        for faulty in &builds {
            let (status, found) = compare(normal, faulty);
            assert_eq!(status, 0, "{found:#}");
        }
    }
    // What is gone altogether is said.
    let (_, found) = compare(&builds[0], &builds[2]);
    let absent = found["builds"]["absent"].to_string();
    assert!(absent.contains("\"square\""), "{found:#}");
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("the other build does not have: square()"),
        "{notes}"
    );
}
