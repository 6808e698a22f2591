//! The page about a run's progress: who is behind whom, where everybody stands, and what is waited for.

use crate::page::{Section, document};
use crate::text::{px, shortened, shown};
use lockstep_progress::{Activity, Group, Place, Progress};
use lockstep_trace::{SourceLine, ranges};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// What the page shows.
#[derive(Debug)]
pub struct ProgressPage<'a> {
    /// What it is about: the run's name.
    pub title: String,
    /// What was found.
    pub progress: &'a Progress,
    /// The answer in a sentence.
    pub verdict: &'a str,
    /// The lines of source files, by the names that the run has for them; those that could be read.
    pub sources: &'a BTreeMap<String, Vec<String>>,
}

/// A larger graph is a cloud of lines: it is not drawn.
const DRAWN: usize = 60;
/// Groups that have a part of their own.
const GROUPS: usize = 200;
/// Lines around a line of source.
const AROUND: usize = 4;
/// Width and height of a group's box, and the room between two.
const BOX: (f64, f64) = (210.0, 54.0);
const GAP: (f64, f64) = (24.0, 46.0);

impl ProgressPage<'_> {
    /// The whole document.
    #[must_use]
    pub fn html(&self) -> String {
        let found = self.progress;
        let lead = html! {
            p class=(if found.hang { "verdict differs" } else { "verdict" }) role="status" { (shown(self.verdict)) }
            @if !found.notes.is_empty() {
                ul.notes { @for note in &found.notes { li { (shown(note)) } } }
            }
        };
        let mut sections = vec![
            Section::new("order", "Who is behind whom", self.order()),
            Section::new("waits", "Who waits for whom", self.waits()),
            Section::new("stacks", "Call stacks of all", self.stacks()),
            Section::new("groups", "Groups", self.groups()),
        ];
        sections.retain(|section| !section.body.0.is_empty());
        document(&self.title, &lead, &sections)
    }

    fn order(&self) -> Markup {
        let groups = &self.progress.groups;
        if groups.len() > DRAWN {
            return html! { p.faint { "There are " (groups.len()) " groups; up to " (DRAWN) " are drawn." } };
        }
        html! {
            p {
                "Tasks at one place, in one iteration, are a group. An arrow leads to a group that is further behind. "
                span.key.faulty { "holds the others up" } " Boxes with round ends compute, the others communicate."
            }
            div.scroll tabindex="0" { (graph(self.progress)) }
        }
    }

    fn waits(&self) -> Markup {
        let found = self.progress;
        let more = lockstep_wording::mistakes(found);
        let reasons = lockstep_wording::reasons(found);
        if reasons.is_empty() && more.is_empty() && found.causes.is_empty() {
            return html! {};
        }
        html! {
            ul {
                @for cause in &found.causes {
                    li { strong { (lockstep_wording::who(found, &[cause.task])) " " (shown(&lockstep_wording::caused(cause))) } }
                }
                @for (who, why) in &reasons {
                    li { (lockstep_wording::who(found, who)) @if who.len() == 1 { " waits " } @else { " wait " } (shown(why)) }
                }
                @for sentence in &more { li { (shown(sentence)) } }
            }
        }
    }

    /// All stacks in one tree, as a debugger for many tasks would draw it.
    fn stacks(&self) -> Markup {
        let mut root = Branch::default();
        for (id, group) in self.progress.groups.iter().enumerate() {
            root.add(&group.stack, id, &group.tasks);
        }
        html! { div.tree { (root.html(self.progress, 0)) } }
    }

    fn groups(&self) -> Markup {
        let found = self.progress;
        html! {
            @for (id, group) in found.groups.iter().enumerate().take(GROUPS) {
                @let is_least = found.least.contains(&id);
                details.block id=(format!("group-{id}")) open[is_least] {
                    summary {
                        "group " (id) ": " (lockstep_wording::who(found, &group.tasks)) ", " (lockstep_wording::word(found, group))
                        @if is_least { " " span.key.faulty { "holds the others up" } }
                    }
                    @for (name, iteration) in &group.loops {
                        p.faint { "iteration " (iteration) " of the loop " code { (shown(name)) } }
                    }
                    ol.stack reversed {
                        @for place in group.stack.iter().rev() { li { (self.frame(place)) } }
                    }
                }
            }
            @if found.groups.len() > GROUPS { p.faint { "and " (found.groups.len() - GROUPS) " more" } }
        }
    }

    fn frame(&self, place: &Place) -> Markup {
        html! {
            code { (shown(&place.function)) }
            @if let Some(line) = &place.called_at {
                " called at " (shown(&format!("{}:{}", line.file, line.line)))
                @if let Some(around) = self.around(line) {
                    details { summary.faint { "source" } pre.source { (around) } }
                }
            }
        }
    }

    /// The lines around a line.
    fn around(&self, line: &SourceLine) -> Option<Markup> {
        let lines = self.sources.get(&line.file)?;
        let at = (line.line as usize)
            .checked_sub(1)
            .filter(|it| *it < lines.len())?;
        let first = at.saturating_sub(AROUND);
        let shown_lines = lines
            .iter()
            .enumerate()
            .skip(first)
            .take(at + AROUND + 1 - first);
        Some(html! {
            @for (index, text) in shown_lines {
                @let text = format!("{:>5}  {}\n", index + 1, shown(&text.replace('\t', "    ")));
                @if index == at { mark { (text) } } @else { (text) }
            }
        })
    }
}

/// Groups of tasks, each below those that it is behind of.
fn graph(found: &Progress) -> Markup {
    let count = found.groups.len();
    let mut level = vec![0_usize; count];
    // A longest path visits no group twice.
    for _ in 0..count {
        for &(more, less) in &found.edges {
            level[less] = level[less].max((level[more] + 1).min(count));
        }
    }
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let places: Vec<(f64, f64)> = level
        .iter()
        .map(|level| {
            let column = rows.entry(*level).or_default();
            *column += 1;
            let x = (*column - 1) as f64 * (BOX.0 + GAP.0) + 8.0;
            (x, *level as f64 * (BOX.1 + GAP.1) + 8.0)
        })
        .collect();
    let most = rows.values().copied().max().unwrap_or(1) as f64;
    let deepest = level.iter().copied().max().unwrap_or(0) as f64 + 1.0;
    let (width, height) = (
        most * (BOX.0 + GAP.0) + 16.0,
        deepest * (BOX.1 + GAP.1) + 16.0,
    );
    html! {
        svg class="order" viewBox=(format!("0 0 {} {}", px(width), px(height))) width=(px(width)) height=(px(height))
            role="img" aria-label="groups of tasks by progress" {
            @for &(more, less) in &found.edges {
                @let ((x1, y1), (x2, y2)) = (places[more], places[less]);
                @let (x2, y2) = (x2 + BOX.0 / 2.0, y2);
                path class="line" d=(format!("M{} {}L{} {}", px(x1 + BOX.0 / 2.0), px(y1 + BOX.1), px(x2), px(y2))) {}
                path class="head" d=(format!("M{} {}l-4 -8h8z", px(x2), px(y2))) {}
            }
            @for (id, group) in found.groups.iter().enumerate() {
                @let (x, y) = places[id];
                @let round = if group.activity == Activity::Communication { 4.0 } else { BOX.1 / 2.0 };
                a href=(format!("#group-{id}")) {
                    g class=(if found.least.contains(&id) { "group least" } else { "group" }) {
                        rect x=(px(x)) y=(px(y)) width=(px(BOX.0)) height=(px(BOX.1)) rx=(px(round)) {
                            title { (full(group)) }
                        }
                        text x=(px(x + BOX.0 / 2.0)) y=(px(y + 21.0)) text-anchor="middle" { (shortened(&ranges(&group.tasks), 28)) }
                        text class="axis" x=(px(x + BOX.0 / 2.0)) y=(px(y + 38.0)) text-anchor="middle" { (shortened(&brief(group), 28)) }
                    }
                }
            }
        }
    }
}

fn brief(group: &Group) -> String {
    let top = group.stack.last().map_or("-", |it| it.function.as_str());
    match group.loops.last() {
        Some((_, iteration)) => format!("{top}, it. {iteration}"),
        None => top.to_owned(),
    }
}

fn full(group: &Group) -> String {
    let stack: Vec<&str> = group.stack.iter().map(|it| it.function.as_str()).collect();
    let loops = group
        .loops
        .iter()
        .map(|(name, iteration)| format!("\niteration {iteration} of {name}"));
    shown(&format!(
        "{} tasks in {}",
        group.tasks.len(),
        stack.join(" > ")
    )) + &loops.collect::<String>()
}

/// Frames that several groups have in common.
#[derive(Default)]
struct Branch {
    tasks: Vec<u32>,
    /// Groups that stand here.
    here: Vec<usize>,
    below: BTreeMap<(String, Option<u32>), Branch>,
}

/// Levels of stacks that are drawn.
const DEPTH: usize = 60;

impl Branch {
    fn add(&mut self, stack: &[Place], group: usize, tasks: &[u32]) {
        let mut branch = self;
        for place in stack.iter().take(DEPTH) {
            let line = place.called_at.as_ref().map(|it| it.line);
            branch = branch
                .below
                .entry((place.function.clone(), line))
                .or_default();
            branch.tasks.extend(tasks);
        }
        branch.here.push(group);
    }

    fn html(&self, found: &Progress, depth: usize) -> Markup {
        html! {
            @for ((function, line), branch) in &self.below {
                @let mut tasks = branch.tasks.clone();
                @let () = tasks.sort_unstable();
                @let is_least = branch.here.iter().any(|it| found.least.contains(it));
                @let kind = if is_least { "open" } else { "" };
                details class=(kind) open {
                    summary {
                        (shown(function))
                        @if let Some(line) = line { span.times { " line " (line) } }
                        span.times { " " (tasks.len()) ": " (ranges(&tasks)) }
                        @for group in &branch.here { " " a href=(format!("#group-{group}")) { "group " (group) } }
                    }
                    @if depth < DEPTH { (branch.html(found, depth + 1)) }
                }
            }
        }
    }
}
