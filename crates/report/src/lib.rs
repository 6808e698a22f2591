//! One self-contained HTML page about a run, or about a normal and a faulty one.
//!
//! The principal type is [`Page`]: what is to be shown; [`Page::html`] draws it. [`ProgressPage`] is the one about progress; a page about a Go program has a [`GoPart`], too. Pictures for files
//! of their own come from [`similarity_svg`], [`lattice_svg`] and [`lattice_dot`].
//!
//! ```text
//! Comparison, Diff, Lattice, Forest ... ─► Page ─► one HTML file: no script, no network, no other file
//! ```
//!
//! *Guarantees*: everything from the traced program (names, paths, arguments) is text on the page,
//! whatever it contains; the page loads nothing and runs nothing (its content security policy forbids
//! both); it reads well in narrow and wide windows, dark and light, and without a mouse.
//! *Costs*: a heat map has a cell for each pair of traces, or of kinds of trace where they are many.
//! *Not for*: finding anything out: it draws what it is given.

mod dendrogram;
mod diff;
mod goroutines;
mod heatmap;
mod lattice;
mod page;
mod progress;
mod ranking;
mod text;
mod timeline;
mod tree;
mod waiting;

pub use goroutines::{GoPart, GoRun};
pub use lattice::DRAWN;
pub use page::{CallTree, Page, RunPart, TraceDiff};
pub use progress::ProgressPage;
pub use text::grouped;

use lockstep_compare::{Lattice, Similarity};
use maud::{Markup, html};

const STYLE: &str = include_str!("style.css");

/// A similarity matrix as an SVG file.
#[must_use]
pub fn similarity_svg(matrix: &Similarity) -> String {
    file(&heatmap::svg(matrix, heatmap::Scale::Likeness))
}

/// A concept lattice as an SVG file.
#[must_use]
pub fn lattice_svg(lattice: &Lattice) -> String {
    file(&lattice::svg(lattice))
}

/// A concept lattice in Graphviz' language.
#[must_use]
pub fn lattice_dot(lattice: &Lattice) -> String {
    lattice::dot(lattice)
}

/// A drawing as a file: it needs a name space and its own style.
fn file(drawing: &Markup) -> String {
    let style = html! { style { (maud::PreEscaped(STYLE)) } };
    match drawing.0.split_once('>') {
        Some((svg, rest)) if svg.starts_with("<svg") => {
            format!(
                "{svg} xmlns=\"http://www.w3.org/2000/svg\">{}{rest}\n",
                style.0
            )
        }
        // What is not drawn says so in a paragraph.
        _ => concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="320" height="40">"#,
            r#"<text x="8" y="24">too large to be drawn</text></svg>"#,
            "\n"
        )
        .to_owned(),
    }
}
