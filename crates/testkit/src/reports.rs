//! Programs after public reports of hangs and crashes, and how much of each answer is right.
//!
//! The programs lie in `programs/reports` with a table of what is right to say of them. Each is recorded twice: in its
//! healthy variant and in its faulty one. Three answers are measured: that of `progress`, that of `progress --normal`, and
//! that of `compare`. Facts come from typed fields where JSON has them, else from the first sentence.

use crate::mpi::Mpi;
use crate::recording::{Recording, record_with};
use crate::{Recipe, Scratch, artifacts, tools};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// How the faulty variant is watched. A deadlock needs no such time; on a busy machine, MPI_Init does.
const WATCHED: [&str; 4] = ["--hang", "8", "--on-hang", "stop"];

/// One program, and what is right to say of its faulty variant.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of its source.
    pub program: String,
    /// How many ranks; none without MPI.
    pub ranks: Option<usize>,
    /// Kinds that are right: `deadlock`, `mismatch`, `end`, `slow`, `livelock`.
    pub kinds: Vec<String>,
    /// Ranks that are right to name, or threads where there is no MPI.
    pub right: Vec<u64>,
    /// Ranks that it is wrong to name.
    pub wrong: Vec<u64>,
    /// The function where it happens.
    pub function: String,
    /// The public report.
    pub source: String,
    /// Lines with a comment `HERE`.
    pub lines: Vec<u64>,
}

/// All programs, in the table's order.
///
/// # Errors
/// Where the table or a source cannot be read, or says what cannot be.
pub fn reports() -> Result<Vec<Report>> {
    let folder = artifacts::repository().join("programs/reports");
    let path = folder.join("answers.txt");
    let table = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let rows = table.lines().filter(|it| !it.starts_with('#'));
    rows.map(|row| {
        let mut report = Report::parse(row).with_context(|| format!("in `{row}`"))?;
        let source = folder.join(&report.program);
        let text =
            std::fs::read_to_string(&source).with_context(|| source.display().to_string())?;
        let marked = (1..)
            .zip(text.lines())
            .filter(|(_, line)| line.contains("HERE"));
        report.lines = marked.map(|(number, _)| number).collect();
        ensure!(
            !report.lines.is_empty(),
            "{}: no line is marked",
            report.program
        );
        Ok(report)
    })
    .collect()
}

impl Report {
    fn parse(row: &str) -> Result<Self> {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [program, ranks, kinds, right, wrong, function, source] = cells[..] else {
            bail!("expected seven cells, found {}", cells.len());
        };
        let is_some = |cell: &&str| *cell != "-";
        let numbers = |cell: &str| -> Result<Vec<u64>> {
            let words = cell.split(',').filter(is_some);
            words.map(|it| Ok(it.parse()?)).collect()
        };
        let report = Self {
            program: program.to_owned(),
            ranks: Some(ranks).filter(is_some).map(str::parse).transpose()?,
            kinds: kinds.split(',').map(str::to_owned).collect(),
            right: numbers(right)?,
            wrong: numbers(wrong)?,
            function: function.to_owned(),
            source: source.to_owned(),
            lines: Vec::new(),
        };
        let both = report.right.iter().find(|it| report.wrong.contains(it));
        ensure!(both.is_none(), "{both:?} is right and wrong");
        Ok(report)
    }

    /// The words that run a variant: `ok` or `bug`. None where the compiler is missing, which is said aloud.
    #[must_use]
    pub fn words(&self, mpi: Mpi, variant: &str) -> Option<Vec<String>> {
        let path = format!("reports/{}", self.program);
        let (recipe, mut words) = match self.ranks {
            Some(ranks) => (mpi.recipe_of(&path), mpi.launch(ranks)),
            None => (Recipe::new(&path), Vec::new()),
        };
        let needed = [
            Some(recipe.compiler_name()),
            words.first().map(String::as_str),
        ];
        if !tools::require(&needed.into_iter().flatten().collect::<Vec<_>>()) {
            return None;
        }
        let program = recipe.flags(&["-g", "-O1"]).build();
        words.extend([program.display().to_string(), variant.to_owned()]);
        Some(words)
    }

    /// Records both variants and asks. None where the compiler is missing.
    #[must_use]
    pub fn ask(&self, mpi: Mpi, scratch: &Scratch) -> Option<Answers> {
        let (normal, faulty) = (self.words(mpi, "ok")?, self.words(mpi, "bug")?);
        // A run that hangs leaves its files behind.
        let files = [("SCRATCH".to_owned(), scratch.path().into())];
        let normal = record_with(scratch, &[], &normal, &files);
        let faulty = record_with(scratch, &WATCHED, &faulty, &files);
        let path = normal.directory.display().to_string();
        let beside = |options: &[&str]| self.of_progress(&faulty, options);
        Some(Answers {
            healthy: normal.outcome.status == 0,
            alone: beside(&["progress"]),
            with_normal: beside(&["progress", "--normal", &path]),
            compared: self.of_compare(&normal.compare(&faulty, &[]).1),
        })
    }

    fn of_progress(&self, faulty: &Recording, words: &[&str]) -> Answer {
        let found = faulty.json(words);
        let verdict = text(&found["verdict"]);
        let blamed = blamed(&found, verdict);
        let rank = self.rank(&blamed);
        let cause = &found["causes"][0];
        let first = first_sentence(verdict);
        let mut near = format!("{first} {} {}", text(&cause["what"]), cause["functions"]);
        // Where those stand who are blamed, unless all of a circle are.
        let groups = found["groups"].as_array().into_iter().flatten();
        for group in groups.filter(|_| rank == Rank::Right) {
            if numbers(&group["processes"])
                .iter()
                .any(|it| blamed.contains(it))
            {
                near.push_str(&format!(" {} {}", text(&group["source"]), group["stack"]));
            }
        }
        let is_right_kind = |kind: &&str| self.kinds.iter().any(|own| own == kind);
        Answer {
            rank,
            is_kind: kinds(&found).iter().any(is_right_kind),
            line: self.line(&near, verdict),
            has_function: near.contains(&self.function),
            verdict: verdict.to_owned(),
        }
    }

    fn of_compare(&self, found: &Value) -> Answer {
        let verdict = text(&found["verdict"]);
        let suspect = &found["suspects"][0];
        let thread = text(&suspect["trace"])
            .rsplit('.')
            .next()
            .and_then(|it| it.parse().ok());
        let task = match self.ranks {
            Some(_) => suspect["process"].as_u64(),
            None => thread,
        };
        let blamed: Vec<u64> = task.into_iter().collect();
        let near = format!("{} {}", first_sentence(verdict), suspect["divergence"]);
        Answer {
            rank: self.rank(&blamed),
            is_kind: found["differs"] == true,
            line: self.line(&near, &suspect.to_string()),
            has_function: near.contains(&self.function),
            verdict: verdict.to_owned(),
        }
    }

    fn rank(&self, blamed: &[u64]) -> Rank {
        let are_in = |list: &[u64]| blamed.iter().filter(|it| list.contains(it)).count();
        match (are_in(&self.right), are_in(&self.wrong)) {
            _ if blamed.is_empty() => Rank::Nobody,
            (right, _) if right == blamed.len() => Rank::Right,
            (1.., _) => Rank::Among,
            (0, 1..) => Rank::Wrong,
            (0, 0) => Rank::Other,
        }
    }

    /// Where a marked line is told: in `near`, or only in `all`.
    fn line(&self, near: &str, all: &str) -> Line {
        let is_in = |text: &str| {
            let lines = lines_of(text, &self.program);
            lines
                .iter()
                .any(|(from, to)| self.lines.iter().any(|it| (from..=to).contains(&it)))
        };
        match (is_in(near), is_in(all)) {
            (true, _) => Line::First,
            (_, true) => Line::Later,
            _ => Line::None,
        }
    }
}

/// The answers of one program.
#[derive(Debug, Clone)]
pub struct Answers {
    /// Whether the healthy variant came to its end.
    pub healthy: bool,
    /// Of `progress`.
    pub alone: Answer,
    /// Of `progress --normal`.
    pub with_normal: Answer,
    /// Of `compare`.
    pub compared: Answer,
}

impl Answers {
    /// What the normal run does to the answer of `progress`: `better`, `same` or `worse`.
    #[must_use]
    pub fn change(&self) -> &'static str {
        match self.with_normal.grade().cmp(&self.alone.grade()) {
            std::cmp::Ordering::Greater => "better",
            std::cmp::Ordering::Equal => "same",
            std::cmp::Ordering::Less => "worse",
        }
    }
}

/// How much of one answer is right.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Who is blamed.
    pub rank: Rank,
    /// Whether the kind is one of the right ones; of `compare`, whether a difference is told.
    pub is_kind: bool,
    /// Where a right line is told.
    pub line: Line,
    /// Whether the function is told with it.
    pub has_function: bool,
    /// The sentence.
    pub verdict: String,
}

impl Answer {
    /// Rank, kind and line are right, at once.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.rank == Rank::Right && self.is_kind && self.line == Line::First
    }

    fn grade(&self) -> (Rank, Line, bool) {
        (self.rank, self.line, self.is_kind)
    }
}

/// Who is blamed, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Innocent ranks.
    Wrong,
    /// No rank at all.
    Nobody,
    /// Ranks that are neither right nor wrong.
    Other,
    /// Right ones and others: a whole circle, say.
    Among,
    /// Only right ones.
    Right,
}

/// Where a right line is told, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// Nowhere.
    None,
    /// Behind the first sentence and the first cause.
    Later,
    /// There.
    First,
}

/// Who is blamed: the task of the first cause; else who the sentence of a mismatch begins with; else the circle that cannot
/// go on; else the least progressed. Nobody of whom the verdict says nothing.
fn blamed(found: &Value, verdict: &str) -> Vec<u64> {
    let said = mentioned(verdict);
    let mut blamed = suspects(found, verdict);
    blamed.retain(|it| said.contains(it));
    blamed
}

fn suspects(found: &Value, verdict: &str) -> Vec<u64> {
    if let Some(task) = found["causes"][0]["task"].as_u64() {
        return vec![task];
    }
    let mismatch = text(&found["mismatches"][0]);
    if !mismatch.is_empty() && verdict.starts_with(mismatch) {
        return first_ranks(verdict);
    }
    let circle = numbers(&found["deadlocks"][0]);
    if found["kind"] == "deadlock" && !circle.is_empty() {
        return circle;
    }
    let least = numbers(&found["least_progressed"]);
    let groups = least
        .iter()
        .map(|id| &found["groups"][*id as usize]["processes"]);
    groups.flat_map(numbers).collect()
}

/// Which kinds the answer says.
fn kinds(found: &Value) -> Vec<&str> {
    let mut kinds = vec![text(&found["kind"])];
    if found["mismatches"]
        .as_array()
        .is_some_and(|it| !it.is_empty())
    {
        kinds.push("mismatch");
    }
    let mut groups = found["groups"].as_array().into_iter().flatten();
    if kinds[0] == "none" && groups.any(|it| it["activity"] == "ended") {
        kinds.push("end");
    }
    kinds
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn numbers(value: &Value) -> Vec<u64> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_u64).collect()
}

fn first_sentence(verdict: &str) -> &str {
    verdict.split("; ").next().unwrap_or_default()
}

/// The ranks or threads that a sentence begins with.
fn first_ranks(sentence: &str) -> Vec<u64> {
    lists(sentence).next().unwrap_or_default()
}

/// All ranks and threads that a text names.
fn mentioned(text: &str) -> Vec<u64> {
    lists(text).flatten().collect()
}

/// What stands behind each `rank`, `ranks`, `thread` or `threads`: `2`, or `0-1,3`.
fn lists(text: &str) -> impl Iterator<Item = Vec<u64>> + '_ {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = (1..words.len()).map(move |at| (words[at - 1], words[at]));
    pairs.filter_map(|(noun, list)| {
        let noun = noun.trim_start_matches('(');
        let is_noun = ["rank", "ranks", "thread", "threads"].contains(&noun);
        let list = list.trim_end_matches([',', ';', ':', '.', ')']);
        is_noun.then(|| list.split(',').filter_map(range).flatten().collect())
    })
}

/// `3`, or `0-1`; of `1.2` the first number.
fn range(word: &str) -> Option<std::ops::RangeInclusive<u64>> {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    let number = |it: &str| it.split('.').next().and_then(|it| it.parse().ok());
    Some(number(from)?..=number(to)?)
}

/// The lines of a source that a text names: `name.c:12`, or `name.c:12-14`.
fn lines_of(text: &str, source: &str) -> Vec<(u64, u64)> {
    let stem = format!("{source}:");
    let parts = text.split(stem.as_str()).skip(1);
    parts
        .filter_map(|part| {
            let end = part.find(|it: char| !it.is_ascii_digit() && it != '-');
            let range = range(part[..end.unwrap_or(part.len())].trim_end_matches('-'))?;
            Some((*range.start(), *range.end()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_lines_are_read_from_sentences() {
        let sentence = "deadlock: ranks 0-1,3 wait in MPI_Recv at a.c:12 in f(), for rank 2 (a.c:30-32); 4 of 5 ranks wait";
        assert_eq!(first_ranks(sentence), [0, 1, 3]);
        assert_eq!(mentioned(sentence), [0, 1, 3, 2]);
        assert_eq!(lines_of(sentence, "a.c"), [(12, 12), (30, 32)]);
        assert_eq!(first_sentence("a; b"), "a");
        assert_eq!(mentioned("deadlock: "), [0; 0]);
    }
}
