//! Ranks that go apart, and threads that keep a lock: who is to blame, in which call and line, with a normal run and without.
//! What is found does not depend on who it is, nor on the compiler's optimisation.

use lockstep_testkit::mpi::{Mpi, a_turn, with_lines};
use lockstep_testkit::{Recipe, Recording, Scratch, record, record_ended, tools};
use serde_json::Value;

/// A fact: its kind, a rank or thread as `1.0`, and part of a line.
type Fact<'a> = (&'a str, String, &'a str);

/// Whether an answer has this fact; of its lines one is asked for where one is given.
fn has(answer: &Value, (kind, who, line): &Fact<'_>) -> bool {
    let facts = answer["facts"].as_array().expect("facts");
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    let is_line = |it: &Value| {
        it.as_str()
            .is_some_and(|it| it.ends_with(&format!("apart.c:{line}")))
    };
    facts.iter().any(|it| {
        let is_there = line.is_empty() || list(&it["lines"]).iter().any(is_line);
        it["kind"] == *kind && list(&it["who"]).iter().any(|it| it == who.as_str()) && is_there
    })
}

/// Whether nobody else is told in facts of these kinds.
fn names_only(answer: &Value, kinds: &[&str], who: &[String]) -> bool {
    let facts = answer["facts"].as_array().expect("facts");
    let mut of_kind = facts
        .iter()
        .filter(|it| kinds.iter().any(|kind| it["kind"] == *kind));
    let is_one = |it: &Value| {
        it.as_str()
            .is_some_and(|it| who.iter().any(|one| one == it))
    };
    of_kind.all(|it| it["who"].as_array().is_some_and(|it| it.iter().all(is_one)))
}

/// Kinds that blame somebody.
const BLAME: [&str; 5] = [
    "departed-from-normal",
    "differed",
    "other-collective",
    "went-apart",
    "other-root",
];

struct Runs {
    normal: Recording,
    scratch: Scratch,
    mpi: Mpi,
    program: String,
}

impl Runs {
    fn new(optimisation: &str) -> Option<Self> {
        let mpi = Mpi::ALL.into_iter().find(|it| it.is_here())?;
        let scratch = Scratch::new("apart");
        let program = mpi.recipe("apart.c").flags(&["-g", optimisation]).build();
        let program = program.display().to_string();
        let mut words = mpi.launch(4);
        words.push(program.clone());
        let normal = record_ended(&scratch, &words);
        Some(Self {
            normal,
            scratch,
            mpi,
            program,
        })
    }

    fn faulty(&self, word: &str, who: u32) -> Recording {
        let mut words = self.mpi.launch(4);
        words.extend([self.program.clone(), word.to_owned(), who.to_string()]);
        record(
            &self.scratch,
            &["--hang", "12", "--on-hang", "stop"],
            &words,
        )
    }

    /// The answers without and with the normal run.
    fn answers(&self, word: &str, who: u32) -> (Value, Value) {
        let faulty = self.faulty(word, who);
        let normal = self.normal.directory.display().to_string();
        let alone = faulty.json(&["progress"]);
        (alone, faulty.json(&["progress", "--normal", &normal]))
    }
}

fn trace(rank: u32) -> String {
    format!("{rank}.0")
}

fn all_but(who: u32) -> Vec<String> {
    (0..4).filter(|it| *it != who).map(trace).collect()
}

#[test]
fn who_left_an_operation_out_or_made_one_too_many_is_told_where_it_began() {
    let _turn = a_turn();
    for (optimisation, who) in [("-O0", 1), ("-O2", 0)] {
        let Some(runs) = Runs::new(optimisation) else {
            return;
        };
        let of = |rank| [trace(rank)];

        let (alone, beside) = runs.answers("skipped", who);
        let fact = ("went-apart", trace(who), "");
        assert!(has(&alone, &fact), "{alone:#}");
        assert!(names_only(&alone, &BLAME, &of(who)), "{alone:#}");
        assert!(names_only(&beside, &BLAME, &of(who)), "{beside:#}");
        assert!(
            has(&beside, &("departed-from-normal", trace(who), "")),
            "{beside:#}"
        );

        let (alone, beside) = runs.answers("early", who);
        assert!(names_only(&alone, &BLAME, &of(who)), "{alone:#}");
        assert!(has(&alone, &("differed", trace(who), "")), "{alone:#}");
        assert!(names_only(&beside, &BLAME, &of(who)), "{beside:#}");

        // Alone, it is the one that does otherwise; a normal run shows that the others left it out.
        let (alone, beside) = runs.answers("extra", who);
        assert!(names_only(&alone, &BLAME, &of(who)), "{alone:#}");
        assert!(names_only(&beside, &BLAME, &all_but(who)), "{beside:#}");
        for rank in all_but(who) {
            assert!(
                has(&beside, &("departed-from-normal", rank, "")),
                "{beside:#}"
            );
        }
        let verdict = beside["verdict"].as_str().expect("a sentence");
        assert!(verdict.contains("left out production()"), "{beside:#}");
    }
}

#[test]
fn with_a_normal_run_it_is_not_the_majority_that_is_right() {
    let _turn = a_turn();
    let Some(runs) = Runs::new("-O1") else { return };
    for who in [0, 2] {
        let line = with_lines("apart.c", "@// root@");
        let (alone, beside) = runs.answers("root", who);
        assert!(has(&alone, &("other-root", trace(who), &line)), "{alone:#}");
        for rank in all_but(who) {
            assert!(has(&beside, &("other-root", rank, &line)), "{beside:#}");
        }
        assert!(names_only(&beside, &BLAME, &all_but(who)), "{beside:#}");
    }
    let faulty = runs.faulty("most", 0);
    let (status, found) = runs.normal.compare(&faulty, &[]);
    assert_eq!(status, 1, "{found:#}");
    let first = found["facts"][0]["who"][0].as_str();
    assert!(
        first.is_some_and(|it| all_but(0).iter().any(|rank| rank == it)),
        "{found:#}"
    );
}

#[test]
fn which_message_is_meant_and_in_which_communicator() {
    let _turn = a_turn();
    let Some(runs) = Runs::new("-O0") else { return };
    let told = |word: &str, who: u32| {
        let answer = runs.faulty(word, who).json(&["progress"]);
        answer["verdict"].as_str().expect("a sentence").to_owned()
    };
    let sent = with_lines(
        "apart.c",
        "rank 3 sent rank 0 a message with tag 5 of MPI_COMM_WORLD that nobody received (MPI_Send at apart.c:@// elsewhere@): rank 0 waits for one of #",
    );
    let elsewhere = told("elsewhere", 0);
    assert!(elsewhere.contains(&sent), "{elsewhere}");
    let begun = with_lines(
        "apart.c",
        "rank 2 began it in MPI_Irecv at apart.c:@// second@",
    );
    let second = told("second", 2);
    assert!(second.contains(&begun), "{second}");
    let polls = told("polls", 1);
    assert!(polls.contains("rank 1 left out MPI_Isend"), "{polls}");
}

#[test]
fn a_thread_that_ended_with_a_lock_is_told_with_the_line() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("kept-lock");
    let source = std::fs::read_to_string(
        lockstep_testkit::artifacts::repository().join("programs/threads/kept_lock.c"),
    );
    let source = source.expect("the source is there");
    let line_of = |text: &str| {
        source
            .lines()
            .position(|it| it.ends_with(text))
            .expect("a line")
            + 1
    };
    for optimisation in ["-O0", "-O2"] {
        let program = Recipe::new("threads/kept_lock.c")
            .flags(&["-g", optimisation])
            .build();
        let hang = |word: &str| {
            let words = [program.display().to_string(), word.to_owned()];
            let recording = record(&scratch, &["--hang", "12", "--on-hang", "stop"], &words);
            recording.json(&["progress"])
        };
        let kept = hang("kept");
        let line = line_of("// kept");
        assert_eq!(kept["kind"], "deadlock", "{kept:#}");
        let facts = kept["facts"].as_array().expect("facts");
        let is_it = |it: &&Value| it["kind"] == "kept-lock";
        let fact = facts
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{kept:#}"));
        assert_eq!(fact["who"][0], "0.2", "{kept:#}");
        assert!(
            fact["lines"][0]
                .as_str()
                .is_some_and(|it| it.ends_with(&format!("kept_lock.c:{line}"))),
            "{kept:#}"
        );
        assert!(
            facts
                .iter()
                .any(|it| it["kind"] == "deadlock" && it["who"][0] == "0.1"),
            "{kept:#}"
        );

        let exit = hang("exit");
        let verdict = exit["verdict"].as_str().expect("a sentence");
        // An optimiser lets exit() call what the handler called last.
        let at = format!("at kept_lock.c:{}", line_of("// exit"));
        assert!(verdict.contains("exit"), "{exit:#}");
        assert!(verdict.contains(&at), "{exit:#}");
    }
}
