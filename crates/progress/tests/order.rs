//! Which of today's rules about who is to blame contradict each other: `order.txt` has them as pairs of hypotheses.
//!
//! The table lies here, and not in `compare`, as most of the rules are of this crate, which also has the graph library. What the one
//! order of `diagnosis` decides is not in it; this test says of the rest which pairs no such order can satisfy.

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("order.txt");

/// A rule of the table.
struct Rule {
    winners: Vec<&'static str>,
    losers: Vec<&'static str>,
    when: &'static str,
    file: &'static str,
    shown: &'static str,
}

impl Rule {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let winners = self.winners.iter();
        winners.flat_map(|winner| self.losers.iter().map(move |loser| (*winner, *loser)))
    }
}

fn rules() -> Vec<Rule> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let list = |text: &'static str| text.split(", ").collect::<Vec<_>>();
    let rule = |line: &'static str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [pair, when, place, why, shown] = cells[..] else {
            panic!("expected five cells: {line}");
        };
        let (winners, losers) = pair.split_once(" > ").expect("a pair");
        let (file, function) = place.split_once(' ').expect("a file and a function");
        assert!(!why.is_empty() && !function.is_empty(), "{line}");
        Rule {
            winners: list(winners),
            losers: list(losers),
            when,
            file,
            shown,
        }
    };
    lines.map(rule).collect()
}

/// The hypotheses that the head of the table explains.
fn hypotheses() -> BTreeSet<&'static str> {
    let head = TABLE
        .lines()
        .skip_while(|line| *line != "# The hypotheses:");
    let rows = head.skip(1).take_while(|line| line.starts_with('#'));
    rows.filter_map(|line| line.split_whitespace().nth(1))
        .collect()
}

/// Hypotheses of which each comes before each other one, by these pairs; each set in order.
fn circles(pairs: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<Vec<&'static str>> {
    let graph: DiGraphMap<&str, ()> = pairs.map(|(a, b)| (a, b, ())).collect();
    let mut found = kosaraju_scc(&graph);
    found.retain(|it| it.len() > 1);
    for circle in &mut found {
        circle.sort_unstable();
    }
    found.sort();
    found
}

/// The conditions under which the pairs within a set hold, with the pairs.
fn within(rules: &[Rule], circle: &[&str]) -> String {
    let mut text = format!("{}\n", circle.join(" "));
    for rule in rules {
        let inside = |it: &&'static str| circle.contains(it);
        let winners: Vec<&str> = rule.winners.iter().copied().filter(inside).collect();
        let losers: Vec<&str> = rule.losers.iter().copied().filter(inside).collect();
        if !winners.is_empty() && !losers.is_empty() {
            let (winners, losers) = (winners.join(", "), losers.join(", "));
            text.push_str(&format!(
                "  {winners} > {losers} | {} | {}\n",
                rule.when, rule.file
            ));
        }
    }
    text
}

#[test]
fn each_word_is_explained_and_each_place_is_there() {
    let (rules, known) = (rules(), hypotheses());
    let mut used = BTreeSet::new();
    for (winner, loser) in rules.iter().flat_map(Rule::pairs) {
        assert_ne!(winner, loser);
        used.extend([winner, loser]);
    }
    assert_eq!(used, known);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for rule in &rules {
        let (name, file) = rule.file.split_once('/').expect("a crate and a file");
        let path = crates.join(name).join("src").join(file);
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn what_shows_a_rule_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = String::new();
    let mut open: Vec<PathBuf> = vec![root.join("crates")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).expect("a directory");
            open.extend(entries.map(|it| it.expect("an entry").path()));
        } else if path.extension().is_some_and(|it| it == "rs") {
            sources.push_str(&std::fs::read_to_string(path).expect("a source"));
        }
    }
    for shown in rules().iter().map(|it| it.shown).filter(|it| *it != "-") {
        match shown.split_once(' ') {
            // A program and its word, or the fault of a campaign.
            Some((program, word)) => {
                let path = root.join(format!("programs/mpi/{program}.c"));
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let is_word = text.contains(&format!("//   {program} {word} "));
                let is_fault = sources.contains(&format!("(\"{word}\", &[\"--fault\""));
                assert!(!text.is_empty() && (is_word || is_fault), "{shown}");
            }
            None => assert!(sources.contains(&format!("fn {shown}()")), "{shown}"),
        }
    }
}

#[test]
fn rules_that_nothing_shows_become_fewer() {
    let rules = rules();
    let unshown = rules.iter().filter(|it| it.shown == "-").count();
    assert_eq!(unshown, UNSHOWN, "of {}", rules.len());
}

/// What holds always contradicts itself: no order, and no further condition that somebody wrote down, satisfies these.
#[test]
fn what_no_order_can_satisfy() {
    let rules = rules();
    let always = || rules.iter().filter(|it| it.when == "always");
    let found = circles(always().flat_map(Rule::pairs));
    let told: Vec<String> = found.iter().map(|it| within(&rules, it)).collect();
    assert_eq!(found, ALWAYS, "{}", told.concat());
}

/// Where the condition of a rule holds, and no other one does: what contradicts what holds always.
#[test]
fn what_each_condition_adds() {
    let rules = rules();
    let conditions: BTreeSet<&str> = rules.iter().map(|it| it.when).collect();
    let mut found = Vec::new();
    for condition in conditions {
        let holds = |it: &&Rule| ["always", condition].contains(&it.when);
        let circles = circles(rules.iter().filter(holds).flat_map(Rule::pairs));
        let new = circles.iter().filter(|it| !ALWAYS.contains(&it.as_slice()));
        found.extend(new.map(|it| format!("{condition}: {}", it.join(" "))));
    }
    assert_eq!(found.join("\n"), UNDER.trim());
}

/// What an order of kinds alone cannot satisfy: of these, the condition has to be part of the hypothesis, or of what it explains.
#[test]
fn what_an_order_of_kinds_alone_cannot_satisfy() {
    let rules = rules();
    let found = circles(rules.iter().flat_map(Rule::pairs));
    let told: Vec<String> = found.iter().map(|it| within(&rules, it)).collect();
    let found: Vec<String> = found.iter().map(|it| it.join(" ")).collect();
    assert_eq!(found, KINDS, "{}", told.concat());
    // Pairs of which both ways are written down.
    let pairs: BTreeSet<_> = rules.iter().flat_map(Rule::pairs).collect();
    let both = pairs
        .iter()
        .filter(|(a, b)| a < b && pairs.contains(&(b, a)));
    let both: Vec<String> = both.map(|(a, b)| format!("{a} <> {b}")).collect();
    assert_eq!(
        both.join("\n"),
        BOTH.trim(),
        "pairs of which both ways are written down"
    );
}

const ALWAYS: &[&[&str]] = &[
    &["ended", "stops"],
    &["habit.way", "lapsed", "omitted", "skipped"],
];

const UNDER: &str = "
it was made before: crashed other-call series
messages are taken as they come, and several differ: exchange habit.call habit.way lapsed normal.call normal.way omitted skipped
nobody is stuck: asks computes core exchange habit.call habit.way lapsed normal.call normal.way omitted passed sent skipped
of one trace, at that place or before: crashed mismatch new-argument other-call series
the call sent to another task than those that wait: exchange habit.call habit.way lapsed omitted skipped
";

/// Three sets hang together: what is asked of one task, the traces of `compare`, and who is gone beside who differs.
const KINDS: &[&str] = &[
    "asks computes core exchange habit.call habit.way lapsed normal.call normal.way omitted passed polls sent skipped",
    "blamed crashed ends-early mismatch new-argument other-call series stays-away unmatched unusual",
    "ended stops",
];

const BOTH: &str = "
blamed <> other-call
blamed <> unmatched
core <> polls
ended <> stops
ends-early <> unusual
exchange <> normal.call
exchange <> normal.way
habit.call <> normal.call
habit.call <> normal.way
habit.way <> normal.call
habit.way <> normal.way
lapsed <> normal.call
lapsed <> normal.way
mismatch <> other-call
new-argument <> other-call
normal.call <> omitted
normal.call <> skipped
normal.way <> omitted
normal.way <> skipped
omitted <> skipped
other-call <> series
";

/// Rules that no test and no program shows. It may only fall.
const UNSHOWN: usize = 32;
