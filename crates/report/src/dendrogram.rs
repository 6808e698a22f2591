//! A clustering as a tree: traces on the left, merges to the right at their distance.

use crate::text::{px, shortened};
use lockstep_compare::{Dendrogram, ObjectName};
use maud::{Markup, html};

/// More leaves than this make a wall of lines: the tree is not drawn.
const DRAWN: usize = 256;
const ROW: f64 = 16.0;
const WIDTH: f64 = 260.0;
/// Length of a leaf's own line, so that merges at distance 0 show.
const STUB: f64 = 10.0;
const BELOW: f64 = 30.0;

/// The tree with its leaves named and a scale of distances, or why there is none.
pub fn svg(tree: &Dendrogram, names: &[ObjectName]) -> Markup {
    if tree.leaves == 0 || tree.leaves > DRAWN || names.len() != tree.leaves {
        return html! {
            p.faint { "The tree has " (tree.leaves) " leaves; up to " (DRAWN) " are drawn." }
        };
    }
    let order = order(tree);
    let labels: Vec<String> = names
        .iter()
        .map(|name| shortened(&name.to_string(), 14))
        .collect();
    let left = labels
        .iter()
        .map(|label| label.chars().count())
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
    let bottom = ROW * tree.leaves as f64 + 6.0;
    // Where each node's line ends: its distance and its row.
    let mut places = vec![(left, 0.0); tree.leaves];
    for (row, leaf) in order.iter().enumerate() {
        places[*leaf].1 = 6.0 + (row as f64 + 0.5) * ROW;
    }
    let mut joints = Vec::with_capacity(tree.merges.len());
    for merge in &tree.merges {
        let ((ax, ay), (bx, by)) = (places[merge.left], places[merge.right]);
        let x = at(merge.height);
        joints.push((
            format!("M{} {}H{}V{}H{}", px(ax), px(ay), px(x), px(by), px(bx)),
            merge,
        ));
        places.push((x, f64::midpoint(ay, by)));
    }
    let (width, height) = (left + STUB + WIDTH + 24.0, bottom + BELOW);
    html! {
        svg class="dendrogram" viewBox=(format!("0 0 {} {}", px(width), px(height)))
            width=(px(width)) height=(px(height)) role="img" {
            @for (row, leaf) in order.iter().enumerate() {
                text class="axis" x=(px(left - 6.0)) y=(px(6.0 + (row as f64 + 0.5) * ROW)) text-anchor="end" dominant-baseline="central" { (labels[*leaf]) }
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

/// The leaves from top to bottom, such that no lines cross.
fn order(tree: &Dendrogram) -> Vec<usize> {
    let mut order = Vec::with_capacity(tree.leaves);
    let mut is_part = vec![false; tree.leaves + tree.merges.len()];
    for merge in &tree.merges {
        is_part[merge.left] = true;
        is_part[merge.right] = true;
    }
    let mut open: Vec<usize> = (0..is_part.len())
        .rev()
        .filter(|node| !is_part[*node])
        .collect();
    while let Some(node) = open.pop() {
        match node
            .checked_sub(tree.leaves)
            .map(|merge| &tree.merges[merge])
        {
            None => order.push(node),
            Some(merge) => open.extend([merge.right, merge.left]),
        }
    }
    order
}
