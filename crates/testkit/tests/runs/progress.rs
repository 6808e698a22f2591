//! Real MPI programs that come to a standstill in many ways, and what `lockstep progress` says of
//! each: that they hang, how, who holds the others up, and where.

use lockstep_testkit::command::few_at_once;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recording, Scratch, command, record};
use serde_json::{Value, json};

const RANKS: usize = 4;

/// What should be said of a fault.
struct Case {
    bug: &'static str,
    /// A function that is open when all stand still; none where the program ends by itself.
    open: Option<&'static str>,
    kind: &'static str,
    /// Ranks that hold the others up.
    culprits: &'static [u32],
    /// Parts of the sentence.
    says: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        bug: "loop",
        open: Some("MPI_Waitall"),
        kind: "slow",
        culprits: &[1],
        says: &["rank 1 is still in compute()", "iteration 21"],
    },
    // A killed run does not show whether a task would have gone on.
    Case {
        bug: "round",
        open: Some("MPI_Waitall"),
        kind: "slow",
        culprits: &[1],
        says: &["rank 1 is still in ", "iteration "],
    },
    Case {
        bug: "tag",
        open: Some("MPI_Barrier"),
        kind: "deadlock",
        culprits: &[3],
        says: &[
            "rank 3 waits in MPI_Waitall",
            "from rank 2 with tag 7, which sent tag 99",
        ],
    },
    Case {
        bug: "dropped",
        open: Some("MPI_Barrier"),
        kind: "deadlock",
        culprits: &[3],
        says: &[
            "rank 3 waits in MPI_Waitall",
            "for a message from rank 2 with tag 7",
        ],
    },
    Case {
        bug: "order",
        open: Some("MPI_Allreduce"),
        kind: "deadlock",
        culprits: &[3],
        says: &[
            "rank 3 calls MPI_Barrier",
            "where ranks 0-2 call MPI_Allreduce",
            "of MPI_COMM_WORLD",
        ],
    },
    Case {
        bug: "asks",
        open: Some("MPI_Iprobe"),
        kind: "livelock",
        culprits: &[3],
        says: &[
            "rank 3 waits calling MPI_Iprobe on and on at standstill.c:",
            " in ask(), iteration 21, for a message from rank 2 with tag 7",
        ],
    },
    Case {
        bug: "early",
        open: None,
        kind: "deadlock",
        culprits: &[3],
        says: &["rank 3 ended (exit 0", "without MPI_Finalize"],
    },
    Case {
        bug: "crash",
        open: None,
        kind: "none",
        culprits: &[3],
        says: &["rank 3 ended", "in abort"],
    },
    Case {
        bug: "heads",
        open: Some("MPI_Recv"),
        kind: "deadlock",
        culprits: &[0, 1, 2, 3],
        // In no iteration that is known: nobody came back from this call, as if it stood behind the loop.
        says: &[
            "rank 0 waits in MPI_Recv at standstill.c:74 in swap(), for a message from rank 1 with tag 3",
        ],
    },
    Case {
        bug: "part",
        open: Some("MPI_Bcast"),
        kind: "deadlock",
        culprits: &[0],
        says: &["rank 0 waits in MPI_Barrier"],
    },
    Case {
        bug: "anybody",
        open: Some("MPI_Recv"),
        kind: "deadlock",
        culprits: &[0],
        says: &["rank 0 waits in MPI_Recv", "from anybody"],
    },
];

fn recorded(mpi: Mpi, scratch: &Scratch, case: &Case) -> Recording {
    let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
    let mut words = mpi.launch(RANKS);
    words.extend([program.display().to_string(), case.bug.to_owned()]);
    match case.open {
        Some(function) => Recording::until_open(scratch, &[], &words, function),
        None => record(scratch, &[], &words),
    }
}

fn ranks_of(progress: &Value, groups: &Value) -> Vec<u64> {
    let groups = groups.as_array().expect("groups").iter();
    let mut ranks: Vec<u64> = groups
        .flat_map(|id| {
            let group = &progress["groups"][id.as_u64().expect("an id") as usize];
            group["processes"].as_array().expect("ranks").clone()
        })
        .filter_map(|rank| rank.as_u64())
        .collect();
    ranks.sort_unstable();
    ranks
}

fn check(mpi: Mpi) {
    if !mpi.is_here() {
        return;
    }
    let _turn = a_turn();
    let scratch = Scratch::new("progress");
    few_at_once(CASES, |case| {
        let recording = recorded(mpi, &scratch, case);
        let progress = recording.json(&["progress"]);
        let told = format!("{mpi:?} {}: {progress:#}", case.bug);
        assert_eq!(progress["kind"], case.kind, "{told}");
        assert_eq!(progress["hang"], case.kind != "none", "{told}");
        let culprits: Vec<u64> = case.culprits.iter().map(|it| u64::from(*it)).collect();
        assert_eq!(
            ranks_of(&progress, &progress["least_progressed"]),
            culprits,
            "{told}"
        );
        let verdict = progress["verdict"].as_str().expect("a sentence");
        for part in case.says {
            assert!(verdict.contains(part), "{part}: {told}");
        }
        if case.bug == "order" {
            let cause = &progress["causes"][0];
            assert_eq!(cause["task"], 3, "{told}");
            let what = "called MPI_Barrier where most called MPI_Allreduce";
            assert_eq!(cause["what"], what, "{told}");
        }
    });
}

#[test]
fn standstills_of_open_mpi() {
    check(Mpi::OpenMpi);
}

#[test]
fn standstills_of_mpich() {
    check(Mpi::Mpich);
}

#[test]
fn what_does_not_hang() {
    let _turn = a_turn();
    let scratch = Scratch::new("progress-none");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let run = |bug: &str| {
            let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
            let mut words = mpi.launch(RANKS);
            words.extend([program.display().to_string(), bug.to_owned()]);
            let recording = record(&scratch, &[], &words);
            assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
            let progress = recording.json(&["progress"]);
            assert_eq!(progress["hang"], false, "{progress:#}");
            assert_eq!(progress["kind"], "none");
            assert_eq!(progress["waits"], json!([]));
            progress
        };
        let healthy = run("");
        assert_eq!(healthy["mismatches"], json!([]), "{healthy:#}");
        assert_eq!(healthy["loose_ends"], json!([]), "{healthy:#}");
        assert_eq!(healthy["potential_deadlock"], Value::Null, "{healthy:#}");
        let lucky = run("lucky");
        let potential = lucky["potential_deadlock"].as_str().unwrap_or_default();
        assert!(
            potential.contains("ranks 0-1 would wait for each other"),
            "{lucky:#}"
        );
        let operation = run("operation");
        let verdict = operation["verdict"].as_str().unwrap_or_default();
        assert!(
            verdict.contains("rank 1 calls MPI_Allreduce at standstill.c:")
                && verdict.contains(" with MPI_MAX where ranks "),
            "{operation:#}"
        );
    }
}

#[test]
fn a_job_is_watched() {
    let _turn = a_turn();
    let scratch = Scratch::new("progress-watch");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
        // A deadlock is told long before patience ends.
        let cases = [
            ("tag", "1000", Some("deadlock: rank 3 waits in MPI_Waitall")),
            ("loop", "5", Some("rank 1 is still in compute()")),
            ("round", "5", Some("rank 1 is calling on and on in ")),
            ("", "60", None),
        ];
        few_at_once(&cases, |&(bug, patience, says)| {
            let mut words = mpi.launch(RANKS);
            words.extend([program.display().to_string(), bug.to_owned()]);
            let options = ["--hang", patience, "--on-hang", "stop"];
            let told = record(&scratch, &options, &words).outcome;
            assert_eq!(told.status, i32::from(says.is_some()), "{told:#?}");
            match says {
                Some(says) => assert!(told.stderr.contains(says), "{told:#?}"),
                None => assert!(!told.stderr.contains(" after "), "{told:#?}"),
            }
        });
    }
}

#[test]
fn who_asks_on_and_on_is_told_once() {
    let _turn = a_turn();
    let scratch = Scratch::new("progress-asks");
    // MPICH answers so fast that a watcher on a busy machine reads less than is recorded.
    let mpi = Mpi::OpenMpi;
    let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
    let mut words = vec!["timeout".to_owned(), "20".to_owned()];
    words.extend(mpi.launch(RANKS));
    words.extend([program.display().to_string(), "asks".to_owned()]);
    let asks = record(&scratch, &["--hang", "2"], &words).outcome;
    // It stands where it began to, so the sentence stays.
    let told = asks.stderr.matches("livelock: rank 3 waits calling");
    assert_eq!(told.count(), 1, "{asks:#?}");
}

#[test]
fn who_left_something_out_is_the_cause() {
    let _turn = a_turn();
    let scratch = Scratch::new("progress-normal");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
        let mut words = mpi.launch(RANKS);
        words.push(program.display().to_string());
        let normal = record(&scratch, &[], &words)
            .directory
            .display()
            .to_string();
        let by_bug = |bug: &str| CASES.iter().find(|it| it.bug == bug).expect("a case");
        let dropped = recorded(mpi, &scratch, by_bug("dropped"));
        // Its own habit tells, too.
        let said = "rank 2 left out MPI_Isend at standstill.c:51 in exchange() (call 21)";
        let progress = dropped.json(&["progress"]);
        let verdict = progress["verdict"].as_str().expect("a sentence");
        assert!(verdict.contains(said), "{progress:#}");
        let progress = dropped.json(&["progress", "--normal", &normal]);
        let verdict = progress["verdict"].as_str().expect("a sentence");
        let said =
            "rank 2 went ahead: it left out MPI_Isend at standstill.c:51 in exchange() (call 21)";
        assert!(verdict.starts_with(said), "{progress:#}");
        assert_eq!(progress["causes"][0]["victims"], json!([3]), "{progress:#}");
        // Who is only late left nothing out.
        let part = recorded(mpi, &scratch, by_bug("part"));
        let progress = part.json(&["progress", "--normal", &normal]);
        assert_eq!(progress["causes"][0]["task"], 2, "{progress:#}");
        let endless = recorded(mpi, &scratch, by_bug("loop"));
        let progress = endless.json(&["progress", "--normal", &normal]);
        assert_eq!(progress["causes"], json!([]), "{progress:#}");
    }
}

#[test]
fn the_published_methods_on_a_loop() {
    let _turn = a_turn();
    let scratch = Scratch::new("progress-published");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let recording = recorded(mpi, &scratch, &CASES[0]);
        let model = scratch.join("model.json").display().to_string();
        for method in ["prodometer", "automaded"] {
            let progress = recording.json(&["progress", "--method", method, "--model", &model]);
            assert_eq!(progress["hang"], true, "{progress:#}");
            let least = ranks_of(&progress, &progress["least_progressed"]);
            assert!(least.contains(&1), "{method}: {progress:#}");
        }
        let page = scratch.join("page.html");
        let shown = page.display().to_string();
        let verdict = recording.text(&["progress", "--html", &shown]);
        assert!(verdict.contains("rank 1 is still in"), "{verdict}");
        let text = std::fs::read_to_string(&page).expect("a page");
        for part in ["rank 1 is still in", "id=\"group-0\"", "<mark>", "<svg"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("<script"), "{text}");
        let text = std::fs::read_to_string(&model).expect("a model");
        let model: Value = serde_json::from_str(&text).expect("JSON");
        let states = model["states"].as_array().expect("states");
        let ranks = states
            .iter()
            .flat_map(|it| it["tasks"].as_array().expect("ranges"));
        assert!(ranks.count() >= 2, "{model:#}");
    }
}

#[test]
fn a_directory_that_is_no_run() {
    let scratch = Scratch::new("progress-bad");
    let outcome = command::run(
        lockstep_testkit::recording::lockstep(&["progress"]).arg(scratch.join("none")),
    );
    assert_eq!(outcome.status, 2, "{outcome:#?}");
}
