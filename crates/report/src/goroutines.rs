//! The parts of a page about a Go program: what was found, who waits for whom, who made whom, what happened when, what of
//! the source was covered.

use crate::page::Section;
use crate::text::{grouped, shortened, shown};
use crate::{timeline, waiting};
use lockstep_goroutines::NodeId;
use lockstep_goroutines::coverage::{Report, UsageReport};
use lockstep_goroutines::{Concerned, Execution, Judgement, Place, Tree, shiviz};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// What is shown of a Go program.
#[derive(Debug)]
pub struct GoPart<'a> {
    /// The run that states and times are of.
    pub label: String,
    /// The runs of its campaign, where the page is about one.
    pub runs: Vec<GoRun>,
    /// What that run did.
    pub execution: &'a Execution,
    /// And what it was.
    pub judgement: &'a Judgement,
    /// Who made whom, in all runs.
    pub tree: &'a Tree,
    /// What all runs covered.
    pub coverage: &'a Report,
    /// The lines of source files, by the names that the program has for them; those that could be read.
    pub sources: &'a BTreeMap<String, Vec<String>>,
}

/// A run of a campaign.
#[derive(Debug, Clone)]
pub struct GoRun {
    /// From 1.
    pub number: usize,
    /// Its test, or its package.
    pub of: String,
    /// `leak`, `pass`
    pub verdict: String,
    /// Whether that is a bug.
    pub is_bug: bool,
    /// What was found.
    pub sentence: String,
}

/// Runs in the table.
const RUNS: usize = 300;
/// Nodes of the goroutine tree.
const NODES: usize = 400;
/// Lines around a usage.
const AROUND: u32 = 3;
/// A larger log is exported, not shown.
const LOG: usize = 256 << 10;

impl GoPart<'_> {
    pub(crate) fn lead(&self) -> Markup {
        let found = self.judgement;
        html! {
            p class=(if found.verdict.is_bug() { "verdict differs" } else { "verdict" }) role="status" {
                (found.verdict.to_string()) ": " (shown(&found.sentence))
            }
            @if !self.runs.is_empty() { p.faint { "This is " (shown(&self.label)) ", the worst of " (grouped(self.runs.len() as u64)) " executions." } }
        }
    }

    pub(crate) fn sections(&self) -> Vec<Section> {
        vec![
            Section::new("waits", "Who waits for whom", self.waits()),
            Section::new(
                "timeline",
                "Timeline",
                timeline::svg(self.execution, self.judgement),
            ),
            Section::new("goroutines", "Goroutine tree", self.goroutines()),
            Section::new("coverage", "Coverage", self.coverage()),
            Section::new("executions", "Executions", self.executions()),
            Section::new("shiviz", "Log for ShiViz", self.log()),
        ]
    }

    fn waits(&self) -> Markup {
        let all = &self.judgement.goroutines;
        if all.is_empty() {
            return html! {};
        }
        html! {
            div.scroll tabindex="0" { (waiting::svg(all)) }
            @for one in all {
                details.block open[all.len() <= 8] {
                    summary { "goroutine " (one.id) " " (shown(&standing(one))) @if one.proven { " " span.key.faulty { "proven unreachable" } } }
                    @if let Some(place) = &one.created_at { p.faint { "made at " (shown(place)) } }
                    ul { @for way in &one.waits_for { li { (shown(&way.why)) (names(&way.goroutines)) } } }
                    @if let Some(around) = one.blocked_at.as_ref().and_then(|it| self.around(it)) { pre.source { (around) } }
                }
            }
        }
    }

    /// The lines around `dir/file.go:12`, by the end of the file's name.
    fn around(&self, place: &str) -> Option<Markup> {
        let (file, line) = place.rsplit_once(':')?;
        let line: u32 = line.parse().ok()?;
        let is_it = |name: &&String| name.ends_with(file);
        let name = self.sources.keys().find(is_it)?;
        let lines = self.sources.get(name)?;
        Some(html! {
            @for (number, text) in (1..).zip(lines).filter(|(number, _)| line.abs_diff(*number) <= AROUND) {
                @let text = format!("{number:>5}  {}\n", shown(&text.replace('\t', "    ")));
                @if number == line { mark { (text) } } @else { (text) }
            }
        })
    }

    fn goroutines(&self) -> Markup {
        let roots = self.tree.nodes.iter().enumerate();
        let roots = roots.filter(|(_, it)| it.parent.is_none());
        let roots: Vec<NodeId> = roots.map(|it| NodeId(it.0 as u32)).collect();
        html! {
            div.tree { @for root in roots { (self.node(root, 0)) } }
            @if self.tree.nodes.len() > NODES { p.faint { "The first " (NODES) " of " (self.tree.nodes.len()) " are shown." } }
        }
    }

    fn node(&self, id: NodeId, depth: usize) -> Markup {
        let node = &self.tree.nodes[id.0 as usize];
        let below = self.tree.nodes.iter().enumerate().take(NODES);
        let below = below.filter(|(_, it)| it.parent == Some(id));
        let below: Vec<NodeId> = below.map(|it| NodeId(it.0 as u32)).collect();
        let text = html! {
            (shown(&node.entry))
            @if node.goroutines != 1 { span.times { " × " (grouped(node.goroutines)) } }
            @if let Some(place) = &node.created_at { span.times { " made at " (shown(&short(place))) } }
        };
        html! {
            @if below.is_empty() || depth > 60 {
                div.leaf { (text) }
            } @else {
                details open { summary { (text) } @for child in below { (self.node(child, depth + 1)) } }
            }
        }
    }

    fn coverage(&self) -> Markup {
        let totals = self.coverage.coverage;
        let mut files: BTreeMap<&str, BTreeMap<u32, Vec<&UsageReport>>> = BTreeMap::new();
        for usage in &self.coverage.usages {
            let lines = files.entry(&usage.file).or_default();
            lines.entry(usage.line).or_default().push(usage);
        }
        if files.is_empty() {
            return html! {};
        }
        html! {
            p {
                (totals.covered) " of " (totals.total) " requirements are covered (" (format!("{:.1}", totals.percent())) " %), in "
                (self.coverage.executions) " executions. "
                span.key.common { "all of a line's" } span.key.changed { "some" } span.key.faulty { "none" }
            }
            @for (file, lines) in &files {
                details.block open[files.len() <= 3] {
                    summary { (shown(file)) }
                    (self.file(file, lines))
                }
            }
        }
    }

    fn file(&self, file: &str, usages: &BTreeMap<u32, Vec<&UsageReport>>) -> Markup {
        let source = self.sources.get(file);
        let mut wanted: BTreeSet<u32> = BTreeSet::new();
        for line in usages.keys() {
            wanted.extend(line.saturating_sub(AROUND).max(1)..=line + AROUND);
        }
        let last = source.map_or(u32::MAX, |it| it.len() as u32);
        let mut before = 0;
        html! {
            div.scroll tabindex="0" {
                table.lines {
                    @for line in wanted.into_iter().filter(|it| usages.contains_key(it) || source.is_some() && *it <= last) {
                        @let is_apart = before != 0 && line > before + 1;
                        @let () = before = line;
                        @if is_apart { tr { td.number {} td {} td { "⋮" } } }
                        @let here = usages.get(&line);
                        @let (covered, total) = here.map_or((0, 0), |it| counted(it));
                        tr class=(colour(covered, total)) {
                            td.number { (line) }
                            td.number { @if total > 0 { (covered) "/" (total) } }
                            td {
                                code { (shown(&source.and_then(|it| it.get(line as usize - 1)).map_or_else(String::new, |it| it.replace('\t', "    ")))) }
                                @if let Some(here) = here { (missing(here)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn executions(&self) -> Markup {
        if self.runs.is_empty() {
            return html! {};
        }
        let (bugs, others): (Vec<&GoRun>, Vec<&GoRun>) = self.runs.iter().partition(|it| it.is_bug);
        html! {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th.number { "Run" } th { "Of" } th { "Verdict" } th {} } }
                    tbody {
                        @for run in bugs.iter().chain(&others).take(RUNS) {
                            tr {
                                td.number { (run.number) }
                                td.mono { (shown(&run.of)) }
                                td { (shown(&run.verdict)) }
                                td { @if run.is_bug { (shortened(&run.sentence, 400)) } }
                            }
                        }
                    }
                }
            }
            @if self.runs.len() > RUNS { p.faint { "and " (self.runs.len() - RUNS) " more" } }
        }
    }

    fn log(&self) -> Markup {
        let log = shiviz::log(self.execution);
        html! {
            p { "Each event with its vector clock; ShiViz reads it by " code { (shiviz::EXPRESSION) } "." }
            @if log.len() > LOG {
                p.faint { "It is " (grouped(log.len() as u64)) " bytes long: lockstep export --to shiviz writes it." }
            } @else {
                details {
                    summary { (grouped(log.lines().count() as u64 / 2)) " events" }
                    pre.source { @for line in log.lines() { (shown(line)) "\n" } }
                }
            }
        }
    }
}

fn standing(one: &Concerned) -> String {
    let at = one.blocked_at.as_ref();
    let at = at.map_or_else(String::new, |it| format!(" at {it}"));
    format!("{}{at}", one.state)
}

fn names(of: &[u64]) -> String {
    if of.is_empty() {
        return String::new();
    }
    let all: Vec<String> = of.iter().map(u64::to_string).collect();
    format!(" (goroutine {})", all.join(", "))
}

fn short(place: &Place) -> String {
    let name = place.file.rsplit('/').next().unwrap_or(&place.file);
    format!("{name}:{}", place.line)
}

fn counted(usages: &[&UsageReport]) -> (usize, usize) {
    let all = || usages.iter().flat_map(|it| &it.requirements);
    let covered = all().filter(|it| it.executions > 0).count();
    (covered, all().count())
}

fn colour(covered: usize, total: usize) -> &'static str {
    match (covered, total) {
        (_, 0) => "",
        (0, _) => "none",
        (some, all) if some < all => "some",
        _ => "all",
    }
}

/// What was never seen of a line's usages, and what that means, each once.
fn missing(usages: &[&UsageReport]) -> Markup {
    let means: BTreeSet<String> = usages
        .iter()
        .flat_map(|usage| usage.requirements.iter().map(move |it| (usage, it)))
        .filter(|(_, it)| it.executions == 0)
        .filter_map(|(usage, it)| {
            let case = it.case.map(|it| format!(", case {}", it.index + 1));
            Some(format!(
                "{}{} {}: {}",
                usage.action.name(),
                case.unwrap_or_default(),
                it.aspect.name(),
                it.means?
            ))
        })
        .collect();
    html! {
        @if !means.is_empty() {
            details { summary.faint { (means.len()) " not covered" } ul { @for one in &means { li { (shown(one)) } } } }
        }
    }
}
