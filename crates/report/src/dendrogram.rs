//! A clustering as a tree: traces on the left, merges to the right at their distance.

use crate::text::{px, shortened};
use lockstep_compare::{Dendrogram, ObjectName};
use lockstep_trace::in_short;
use maud::{Markup, html};

/// More rows than this make a wall of lines: the tree is not drawn.
const DRAWN: usize = 256;
/// Up to so many leaves, each has a row of its own.
const SINGLE: usize = 24;
/// Longest label, in characters.
const LABEL: usize = 14;
const ROW: f64 = 16.0;
const WIDTH: f64 = 260.0;
/// Length of a leaf's own line, so that merges at distance 0 show.
const STUB: f64 = 10.0;
const BELOW: f64 = 30.0;

/// The tree with its leaves named and a scale of distances, or why there is none.
pub fn svg(tree: &Dendrogram, names: &[ObjectName]) -> Markup {
    let rows = if names.len() == tree.leaves {
        rows(tree)
    } else {
        Vec::new()
    };
    if rows.is_empty() || rows.len() > DRAWN {
        return html! {
            p.faint { "The tree has " (rows.len()) " kinds of leaves; up to " (DRAWN) " are drawn." }
        };
    }
    let labels: Vec<String> = rows.iter().map(|row| label(&row.leaves, names)).collect();
    let left = labels
        .iter()
        .map(|label| label.chars().count().min(LABEL))
        .max()
        .unwrap_or(0) as f64
        * 6.8
        + 12.0;
    let tallest = tree
        .merges
        .iter()
        .map(|merge| merge.height)
        .fold(0.0, f64::max);
    let at = |height: f64| {
        let share = if tallest > 0.0 { height / tallest } else { 0.0 };
        left + STUB + share * WIDTH
    };
    let bottom = ROW * rows.len() as f64 + 6.0;
    // Where each node's line ends: its distance and its row.
    let mut places = vec![(left, 0.0); tree.leaves + tree.merges.len()];
    let middle = |row: usize| 6.0 + (row as f64 + 0.5) * ROW;
    for (index, row) in rows.iter().enumerate() {
        places[row.node].1 = middle(index);
    }
    // What stands in one row has no lines within.
    let mut has_row = vec![false; tree.leaves + tree.merges.len()];
    for node in rows.iter().flat_map(|row| &row.within) {
        has_row[*node] = true;
    }
    let mut joints = Vec::new();
    for (index, merge) in tree.merges.iter().enumerate() {
        let node = tree.leaves + index;
        if has_row[node] {
            continue;
        }
        let ((ax, ay), (bx, by)) = (places[merge.left], places[merge.right]);
        let x = at(merge.height);
        joints.push((
            format!("M{} {}H{}V{}H{}", px(ax), px(ay), px(x), px(by), px(bx)),
            merge,
        ));
        places[node] = (x, f64::midpoint(ay, by));
    }
    let (width, height) = (left + STUB + WIDTH + 24.0, bottom + BELOW);
    html! {
        svg class="dendrogram" viewBox=(format!("0 0 {} {}", px(width), px(height)))
            width=(px(width)) height=(px(height)) role="img" aria-label="dendrogram" {
            @for (index, label) in labels.iter().enumerate() {
                text class="axis" x=(px(left - 6.0)) y=(px(middle(index))) text-anchor="end" dominant-baseline="central" {
                    title { (label) }
                    (shortened(label, LABEL))
                }
            }
            @for (path, merge) in &joints {
                path class="line" d=(path) {
                    title { (merge.size) " traces, distance " (format!("{:.3}", merge.height)) }
                }
            }
            path class="scale" d=(format!("M{} {}H{}", px(left + STUB), px(bottom + 4.0), px(left + STUB + WIDTH))) {}
            @for (step, anchor) in [(0.0, "start"), (0.5, "middle"), (1.0, "end")] {
                text class="axis" x=(px(left + STUB + step * WIDTH)) y=(px(bottom + 17.0)) text-anchor=(anchor) { (format!("{:.2}", step * tallest)) }
            }
        }
    }
}

/// A row: a leaf, or where they are many, leaves that join at distance 0.
struct Row {
    node: usize,
    leaves: Vec<usize>,
    /// The merges below.
    within: Vec<usize>,
}

/// The rows from top to bottom, such that no lines cross.
fn rows(tree: &Dendrogram) -> Vec<Row> {
    let alike = |node: usize| {
        let merge = node
            .checked_sub(tree.leaves)
            .map(|merge| &tree.merges[merge]);
        tree.leaves > SINGLE && merge.is_some_and(|merge| merge.height <= 0.0)
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut is_part = vec![false; tree.leaves + tree.merges.len()];
    for merge in &tree.merges {
        is_part[merge.left] = true;
        is_part[merge.right] = true;
    }
    let mut open: Vec<(usize, Option<usize>)> = (0..is_part.len())
        .rev()
        .filter(|node| !is_part[*node])
        .map(|node| (node, None))
        .collect();
    while let Some((node, row)) = open.pop() {
        let row = row.or_else(|| {
            (node < tree.leaves || alike(node)).then(|| {
                rows.push(Row {
                    node,
                    leaves: Vec::new(),
                    within: Vec::new(),
                });
                rows.len() - 1
            })
        });
        match node
            .checked_sub(tree.leaves)
            .map(|merge| &tree.merges[merge])
        {
            Some(merge) => {
                if let Some(row) = row {
                    rows[row].within.push(node);
                }
                open.extend([(merge.right, row), (merge.left, row)]);
            }
            None => {
                if let Some(row) = row {
                    rows[row].leaves.push(node);
                }
            }
        }
    }
    rows
}

fn label(leaves: &[usize], names: &[ObjectName]) -> String {
    match leaves {
        [one] => names[*one].to_string(),
        several => in_short(
            &several
                .iter()
                .map(|leaf| names[*leaf].trace)
                .collect::<Vec<_>>(),
        ),
    }
}
