//! A call tree that folds: one `details` element a call or loop with something in it.

use crate::text::{grouped, shown};
use lockstep_calltree::OutlineLine;
use maud::{Markup, html};

/// Levels that are drawn; deeper calls are counted.
const DEPTH: usize = 60;
/// Lines of one tree that are drawn.
const LINES: usize = 3000;
/// Levels that are unfolded at first.
const UNFOLDED: usize = 3;

/// The tree, outermost calls first.
pub fn html(lines: &[OutlineLine]) -> Markup {
    let drawn = &lines[..lines.len().min(LINES)];
    html! {
        div.tree {
            (branches(drawn, 0))
            @if lines.len() > drawn.len() {
                p.faint { "and " (grouped((lines.len() - drawn.len()) as u64)) " more lines" }
            }
        }
    }
}

/// Lines of depth `depth`, each with those deeper ones that follow it.
fn branches(lines: &[OutlineLine], depth: usize) -> Markup {
    let starts: Vec<usize> = (0..lines.len())
        .filter(|index| lines[*index].depth <= depth)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    html! {
        @for (start, end) in starts.iter().copied().zip(ends) {
            @let (line, below) = (&lines[start], &lines[start + 1..end]);
            @if below.is_empty() {
                div class=(format!("leaf {}", line.kind)) { (label(line)) }
            } @else if depth + 1 >= DEPTH {
                div class=(format!("leaf {}", line.kind)) { (label(line)) span.times { " and " (below.len()) " deeper" } }
            } @else {
                details class=(line.kind) open[depth < UNFOLDED] {
                    summary { (label(line)) }
                    (branches(below, depth + 1))
                }
            }
        }
    }
}

fn label(line: &OutlineLine) -> Markup {
    html! {
        @if line.tail { "~> " }
        (shown(&line.name))
        @if let Some(trips) = line.trips {
            sup { (trips.least) @if trips.greatest > trips.least { ".." (trips.greatest) } }
        }
        @if line.kind == "open" { " (open)" }
        @if line.occurrences > 1 { span.times { " × " (grouped(line.occurrences)) } }
    }
}
