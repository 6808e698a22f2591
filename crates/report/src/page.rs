//! The page: its parts in order of what one wants to know first.

use crate::goroutines::GoPart;
use crate::heatmap::Scale;
use crate::text::{grouped, shown, without_hidden};
use crate::{STYLE, dendrogram, diff, heatmap, lattice, ranking, tree};
use lockstep_calltree::OutlineLine;
use lockstep_compare::{Comparison, Dendrogram, Diff, Lattice, Loops, Similarity, Suspect};
use lockstep_trace::{Run, TraceName, in_short, names_in_short};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// What a page shows. Parts that are absent or empty are left out.
#[derive(Debug)]
pub struct Page<'a> {
    /// What it is about: the runs' names, say.
    pub title: String,
    /// One run, or the normal one and the faulty one.
    pub runs: Vec<RunPart<'a>>,
    /// What came of comparing them.
    pub comparison: Option<&'a Comparison>,
    /// How traces differ, the most suspicious first.
    pub diffs: Vec<TraceDiff>,
    /// Call trees, the most interesting first.
    pub trees: Vec<CallTree>,
    /// What is known of a Go program.
    pub goroutines: Option<GoPart<'a>>,
}

/// How a trace differs.
#[derive(Debug)]
pub struct TraceDiff {
    /// The trace.
    pub trace: TraceName,
    /// The difference of all its calls.
    pub whole: Diff,
    /// That of its MPI calls, loops folded, entry by entry: the papers' diffNLR.
    pub mpi: Option<Diff>,
}

/// The call tree of traces that did the same.
#[derive(Debug)]
pub struct CallTree {
    /// `normal`, `faulty`, or the run's name.
    pub label: String,
    /// The traces.
    pub traces: Vec<TraceName>,
    /// The tree.
    pub lines: Vec<OutlineLine>,
}

/// What is shown of one run.
#[derive(Debug)]
pub struct RunPart<'a> {
    /// `normal`, `faulty`, or the run's name.
    pub label: &'a str,
    /// The run.
    pub run: &'a Run,
    /// Its traces with loops folded.
    pub loops: Option<&'a Loops>,
    /// How alike its traces are (in a comparison the matrices of that are shown instead).
    pub similarity: Option<&'a Similarity>,
    /// Its concept lattice.
    pub lattice: Option<&'a Lattice>,
}

/// Up to so many traces, a table of them is unfolded at first.
const UNFOLDED: usize = 12;
/// Suspects with a card of their own.
const SUSPECTS: usize = 6;

/// Nothing is loaded, nothing is run; style stands in the page itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

impl Page<'_> {
    /// The whole document.
    #[must_use]
    pub fn html(&self) -> String {
        let lead = html! {
            @if let Some(comparison) = self.comparison { (verdict(comparison)) }
            @if let Some(part) = &self.goroutines { (part.lead()) }
        };
        document(&self.title, &lead, &self.sections())
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        sections.extend(self.goroutines.iter().flat_map(GoPart::sections));
        if let Some(comparison) = self.comparison {
            sections.extend([
                Section::new("suspects", "Suspects", self.suspects(&comparison.suspects)),
                Section::new("diffs", "What differs", self.diffs()),
                Section::new("similarity", "Similarity", matrices(comparison)),
                Section::new("clusters", "Clusters", trees(comparison)),
            ]);
        } else {
            sections.push(Section::new("processes", "Processes", self.processes()));
            sections.push(Section::new(
                "similarity",
                "Similarity",
                self.similarities(),
            ));
        }
        sections.push(Section::new("lattice", "Concept lattice", self.lattices()));
        sections.push(Section::new("loops", "Loops", self.loops()));
        if let Some(comparison) = self.comparison {
            sections.push(ranking::section(comparison));
        }
        sections.push(Section::new("trees", "Call trees", self.call_trees()));
        if self.comparison.is_some() {
            sections.push(Section::new("processes", "Processes", self.processes()));
        }
        sections.retain(|section| !section.body.0.is_empty());
        sections
    }

    fn similarities(&self) -> Markup {
        let parts: Vec<_> = self
            .runs
            .iter()
            .filter_map(|part| Some((part.label, part.similarity?)))
            .collect();
        if parts.is_empty() {
            return html! {};
        }
        html! {
            p { "How many attributes two traces have in common, of all that either has." }
            div.figures {
                @for (label, matrix) in parts { (heat(label, "", matrix, Scale::Likeness)) }
            }
        }
    }

    fn lattices(&self) -> Markup {
        let parts: Vec<_> = self
            .runs
            .iter()
            .filter_map(|part| Some((part.label, part.lattice?)))
            .collect();
        if parts.is_empty() {
            return html! {};
        }
        html! {
            p {
                "Each box is a group of traces that share a group of attributes. It has the attributes written in it and in "
                "all boxes above it, and holds the traces written in it and in all boxes below it."
            }
            div.figures {
                @for (label, it) in parts {
                    figure {
                        figcaption { (shown(label)) " " span.faint { "(" (it.concepts.len()) " concepts" @if it.is_poset { ", those of traces and attributes alone: all are too many to be drawn" } ")" } }
                        div.scroll tabindex="0" { (lattice::svg(it)) }
                    }
                }
            }
        }
    }

    fn loops(&self) -> Markup {
        let parts: Vec<_> = self
            .runs
            .iter()
            .filter_map(|part| Some((part.label, part.loops?)))
            .collect();
        html! {
            @for (label, loops) in parts {
                details.block open[self.runs.len() == 1 && loops.traces.len() <= UNFOLDED] {
                    summary { (shown(label)) ": " (loops.loops.len()) " loop bodies, " (loops.traces.len()) " traces" }
                    (folded(loops))
                }
            }
        }
    }

    fn suspects(&self, suspects: &[Suspect]) -> Markup {
        if suspects.is_empty() {
            return html! {};
        }
        let rest: Vec<TraceName> = suspects
            .iter()
            .skip(SUSPECTS)
            .map(|suspect| suspect.trace)
            .collect();
        html! {
            ol.suspects {
                @for suspect in suspects.iter().take(SUSPECTS) {
                    li {
                        @if self.diffs.iter().any(|it| it.trace == suspect.trace) {
                            a.name.mono href=(format!("#diff-{}", suspect.trace)) { (suspect.trace.to_string()) }
                        } @else {
                            span.name.mono { (suspect.trace.to_string()) }
                        }
                        label.faint {
                            "confidence " (format!("{:.2}", suspect.confidence)) " "
                            progress max="1" value=(format!("{:.3}", suspect.confidence)) {}
                        }
                        ul { @for reason in &suspect.reasons { li { (shown(reason)) } } }
                    }
                }
            }
            @if !rest.is_empty() { p.faint { "and " (rest.len()) " more: " (in_short(&rest)) } }
        }
    }

    fn diffs(&self) -> Markup {
        if self.diffs.is_empty() {
            return html! {};
        }
        html! {
            p {
                span.key.common { "common" } span.key.normal { "normal only" } span.key.faulty { "faulty only" }
                span.key.changed { "in both, not the same" }
            }
            @for (index, it) in self.diffs.iter().enumerate() {
                details.block id=(format!("diff-{}", it.trace)) open[index == 0] {
                    summary {
                        (it.trace.to_string())
                        @if let Some(first) = &it.whole.first_divergence { " " (shown(&first.to_string())) }
                    }
                    @if let Some(mpi) = &it.mpi {
                        h3 { "MPI calls, loops folded" }
                        (diff::html(mpi))
                        h3 { "All calls" }
                    }
                    (diff::html(&it.whole))
                }
            }
        }
    }

    fn call_trees(&self) -> Markup {
        if self.trees.is_empty() {
            return html! {};
        }
        html! {
            p { "Equal trees once; loops are those of each frame, with names of their own." }
            @for (index, it) in self.trees.iter().enumerate() {
                details.block open[index == 0] {
                    summary { (shown(&it.label)) ": " (in_short(&it.traces)) }
                    div.scroll tabindex="0" { (tree::html(&it.lines)) }
                }
            }
        }
    }

    fn processes(&self) -> Markup {
        html! {
            @for part in &self.runs {
                details.block open {
                    summary { (shown(part.label)) ": " (shown(&part.run.directory.display().to_string())) }
                    @if !part.run.notes.is_empty() {
                        ul.notes { @for note in &part.run.notes { li { (shown(note)) } } }
                    }
                    (process_table(part.run))
                }
            }
        }
    }
}

/// A page: `lead` under its title, then its parts.
pub(crate) fn document(title: &str, lead: &Markup, sections: &[Section]) -> String {
    let title = shown(title);
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " - lockstep" }
                style {
                    (PreEscaped(STYLE))
                    @for section in sections { (PreEscaped(&section.style)) }
                }
            }
            body {
                header {
                    div.lead {
                        h1 { (title) }
                        span.faint { "lockstep " (env!("CARGO_PKG_VERSION")) }
                    }
                    (lead)
                    nav aria-label="Parts of this page" {
                        @for section in sections { a href=(format!("#{}", section.id)) { (section.title) } }
                    }
                }
                main {
                    @for section in sections {
                        section {
                            h2 id=(section.id) { (section.title) }
                            (section.body)
                        }
                    }
                }
            }
        }
    }
    .into_string();
    without_hidden(html)
}

pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) body: Markup,
    /// Rules that only this part of this page needs.
    pub(crate) style: String,
}

impl Section {
    pub(crate) fn new(id: &'static str, title: &'static str, body: Markup) -> Self {
        Self {
            id,
            title,
            body,
            style: String::new(),
        }
    }
}

fn verdict(comparison: &Comparison) -> Markup {
    html! {
        p class=(if comparison.differs { "verdict differs" } else { "verdict" }) role="status" { (shown(&comparison.verdict)) }
        @if let Some(p) = comparison.p {
            p.faint { "Empirical p-value " (format!("{p:.3}")) }
        }
        @if !comparison.notes.is_empty() {
            ul.notes { @for note in &comparison.notes { li { (shown(note)) } } }
        }
    }
}

fn heat(label: &str, what: &str, matrix: &Similarity, scale: Scale) -> Markup {
    html! {
        figure {
            figcaption { (shown(label)) " " span.faint { (what) } }
            (heatmap::svg(matrix, scale))
        }
    }
}

fn matrices(comparison: &Comparison) -> Markup {
    let view = &comparison.view;
    html! {
        p {
            "How many attributes two traces have in common, of all that either has, and how much that changed; filter "
            code { (shown(&view.filter)) } "."
        }
        div.figures {
            (heat("normal", "", &view.normal, Scale::Likeness))
            (heat("faulty", "", &view.faulty, Scale::Likeness))
            (heat("difference", "of the two", &view.difference, Scale::Difference))
        }
    }
}

fn trees(comparison: &Comparison) -> Markup {
    let view = &comparison.view;
    let tree = |label: &str, tree: &Dendrogram, of: &Similarity| {
        html! {
            figure {
                figcaption { (label) }
                (dendrogram::svg(tree, &of.traces))
            }
        }
    };
    html! {
        p { "Traces that behave alike join early (left), others late." }
        div.figures {
            (tree("normal", &view.normal_tree, &view.normal))
            (tree("faulty", &view.faulty_tree, &view.faulty))
            (tree("difference", &view.difference_tree, &view.difference))
        }
    }
}

/// Traces with loops folded, those alike in one row.
fn folded(loops: &Loops) -> Markup {
    html! {
        div.scroll tabindex="0" {
            @if !loops.loops.is_empty() {
                table {
                    thead { tr { th { "Loop" } th { "Body" } } }
                    tbody {
                        @for body in &loops.loops {
                            tr { td.mono { (shown(&body.name)) } td.mono { (shown(&body.body.join(" "))) } }
                        }
                    }
                }
            }
            table {
                thead { tr { th { "Traces" } th { "With loops folded" } } }
                tbody {
                    @for (names, line) in loops.rows() {
                        tr { td.mono { (shown(&names_in_short(&names))) } td.mono { (shown(&line)) } }
                    }
                }
            }
        }
    }
}

/// One row for traces alike.
fn process_table(run: &Run) -> Markup {
    let mut rows: Vec<([String; 6], Vec<TraceName>)> = Vec::new();
    let visible = run
        .processes
        .iter()
        .filter(|process| run.is_visible(process));
    for (process, thread) in
        visible.flat_map(|it| it.threads.iter().map(move |thread| (it, thread)))
    {
        let mut open: Vec<String> = thread
            .open
            .iter()
            .map(|frame| shown(&run.function(frame.function).name))
            .collect();
        open.extend(
            thread
                .damage
                .iter()
                .map(|damage| format!("({})", shown(damage))),
        );
        let cells = [
            shown(&process.program),
            shown(&process.host),
            process.end.to_string(),
            grouped(thread.events),
            grouped(thread.bytes),
            open.join(" > "),
        ];
        match rows.iter_mut().find(|(other, _)| *other == cells) {
            Some((_, names)) => names.push(thread.name),
            None => rows.push((cells, vec![thread.name])),
        }
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr {
                    th { "Traces" } th { "Program" } th { "Host" } th { "End" }
                    th.number { "Events" } th.number { "Bytes" } th { "Open at the end" }
                } }
                tbody {
                    @for ([program, host, end, events, bytes, open], names) in &rows {
                        tr {
                            td.mono { (in_short(names)) }
                            td.mono { (program) }
                            td { (host) }
                            td { (end) }
                            td.number { (events) }
                            td.number { (bytes) }
                            td.mono { (open) }
                        }
                    }
                }
            }
        }
    }
}
