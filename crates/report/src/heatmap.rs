//! A similarity matrix, or the difference of two, as a heat map.

use crate::text::{px, shortened};
use lockstep_compare::Similarity;
use lockstep_trace::{TraceName, in_short};
use maud::{Markup, html};

/// What the cells mean, which decides their hue and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Likeness: 0 to 1.
    Likeness,
    /// Difference of two likenesses: 0 to the largest that there is.
    Difference,
}

/// Up to here every trace has a row of its own; beyond, traces with equal rows share one.
const SINGLE: usize = 64;
/// Most rows; those with the largest sums are drawn.
const ROWS: usize = 128;
/// Up to here the value stands in its cell.
const VALUES: usize = 16;

struct Row {
    index: usize,
    label: String,
    full: String,
}

/// The heat map with its axes and legend.
pub fn svg(matrix: &Similarity, scale: Scale) -> Markup {
    let (rows, left_out) = rows(matrix);
    let largest = matrix.largest();
    let top = match scale {
        Scale::Likeness => 1.0,
        Scale::Difference if largest > 0.0 => largest,
        Scale::Difference => 1.0,
    };
    let class = match scale {
        Scale::Likeness => "likeness",
        Scale::Difference => "difference",
    };
    let cell = match rows.len() {
        0..=8 => 34.0,
        9..=16 => 24.0,
        17..=32 => 15.0,
        33..=64 => 10.0,
        _ => 7.0,
    };
    let size = cell * rows.len() as f64;
    let longest = rows
        .iter()
        .map(|row| row.label.chars().count())
        .max()
        .unwrap_or(0) as f64
        * 6.6;
    let upright = longest + 4.0 <= cell;
    let (left, above) = (longest + 10.0, if upright { 18.0 } else { longest + 10.0 });
    // Labels 11 px high need at least that distance.
    let every = (11.0_f64 / cell).ceil().max(1.0) as usize;
    let (width, height) = ((left + size).max(left + 150.0) + 4.0, above + size + 44.0);
    html! {
        svg class=(format!("heat {class}")) viewBox=(format!("0 0 {} {}", px(width), px(height)))
            width=(px(width)) height=(px(height)) role="img" aria-label="heat map" {
            @for (i, row) in rows.iter().enumerate() {
                @let middle = (i as f64 + 0.5) * cell;
                @if i % every == 0 {
                    text class="axis" x=(px(left - 6.0)) y=(px(above + middle)) text-anchor="end" dominant-baseline="central" { title { (row.full) } (row.label) }
                    @if upright {
                        text class="axis" x=(px(left + middle)) y=(px(above - 7.0)) text-anchor="middle" { (row.label) }
                    } @else {
                        text class="axis" transform=(format!("translate({} {}) rotate(-90)", px(left + middle), px(above - 6.0))) dominant-baseline="central" { title { (row.full) } (row.label) }
                    }
                }
                @for (j, column) in rows.iter().enumerate() {
                    @let value = matrix.value(row.index, column.index);
                    @let share = (value / top).clamp(0.0, 1.0);
                    g class="cell" {
                        rect x=(px(left + j as f64 * cell)) y=(px(above + i as f64 * cell))
                            width=(px(cell)) height=(px(cell)) fill-opacity=(format!("{share:.3}")) {
                            title { (row.full) " and " (column.full) ": " (format!("{value:.3}")) }
                        }
                        @if rows.len() <= VALUES && value != 0.0 {
                            text class=(if share > 0.55 { "value on" } else { "value" })
                                x=(px(left + (j as f64 + 0.5) * cell)) y=(px(above + middle))
                                text-anchor="middle" dominant-baseline="central" { (short(value)) }
                        }
                    }
                }
            }
            rect class="frame" x=(px(left)) y=(px(above)) width=(px(size)) height=(px(size)) {}
            (legend(left, above + size + 14.0, top))
            @if left_out > 0 {
                text class="axis" x=(px(left)) y=(px(height - 2.0)) { (left_out) " more rows with smaller sums" }
            }
        }
    }
}

fn legend(x: f64, y: f64, top: f64) -> Markup {
    const STEPS: u32 = 10;
    html! {
        g class="legend" {
            @for step in 0..=STEPS {
                rect x=(px(x + 22.0 + 9.0 * f64::from(step))) y=(px(y)) width="9" height="9"
                    fill-opacity=(format!("{:.2}", f64::from(step) / f64::from(STEPS))) {}
            }
            rect class="frame" x=(px(x + 22.0)) y=(px(y)) width="99" height="9" {}
            text class="axis" x=(px(x + 16.0)) y=(px(y + 5.0)) text-anchor="end" dominant-baseline="central" { "0" }
            text class="axis" x=(px(x + 127.0)) y=(px(y + 5.0)) dominant-baseline="central" { (short(top)) }
        }
    }
}

/// The rows to draw, and how many are left out.
fn rows(matrix: &Similarity) -> (Vec<Row>, usize) {
    let names: Vec<String> = matrix.traces.iter().map(ToString::to_string).collect();
    // Where every trace is thread 0, its rank says it all.
    let ranks_only = names.iter().all(|name| name.ends_with(".0"));
    let label = |name: &str| {
        let name = if ranks_only {
            name.trim_end_matches(".0")
        } else {
            name
        };
        shortened(name, 14)
    };
    if names.len() <= SINGLE {
        let each = |(index, name): (usize, &String)| Row {
            index,
            label: label(name),
            full: name.clone(),
        };
        return (names.iter().enumerate().map(each).collect(), 0);
    }
    let name = |place: &usize| matrix.traces[*place].trace;
    let mut classes: Vec<(usize, Vec<TraceName>)> = matrix
        .alike()
        .into_iter()
        .map(|places| (places[0], places.iter().map(name).collect()))
        .collect();
    let left_out = classes.len().saturating_sub(ROWS);
    if left_out > 0 {
        let sums = matrix.row_sums();
        classes.sort_by(|a, b| sums[b.0].total_cmp(&sums[a.0]));
        classes.truncate(ROWS);
        classes.sort_by_key(|(index, _)| *index);
    }
    let each = |(index, members): (usize, Vec<TraceName>)| {
        let full = in_short(&members);
        Row {
            index,
            label: shortened(&full, 14),
            full,
        }
    };
    (classes.into_iter().map(each).collect(), left_out)
}

/// `.67`, `1`.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "1.00" {
        "1".to_owned()
    } else {
        text.trim_start_matches('0').to_owned()
    }
}
