//! Who waits for whom, drawn: goroutines on an ellipse, an arrow to each that could end a wait.

use crate::text::{px, shortened, shown};
use lockstep_goroutines::Concerned;
use maud::{Markup, html};
use std::collections::BTreeSet;
use std::f64::consts::TAU;

/// A larger graph is a cloud of lines: it is not drawn.
const DRAWN: usize = 40;
/// Width and height of a goroutine's box.
const BOX: (f64, f64) = (190.0, 40.0);

/// The picture.
pub fn svg(all: &[Concerned]) -> Markup {
    let mut shown_ids: BTreeSet<u64> = all.iter().map(|it| it.id).collect();
    shown_ids.extend(edges(all).map(|it| it.1));
    let ids: Vec<u64> = shown_ids.into_iter().collect();
    if ids.len() > DRAWN {
        return html! { p.faint { "There are " (ids.len()) " goroutines; up to " (DRAWN) " are drawn." } };
    }
    let radius = if ids.len() < 2 {
        (0.0, 0.0)
    } else {
        let around = ids.len() as f64 * 26.0;
        (around.max(150.0), around.max(60.0))
    };
    let (width, height) = (2.0 * radius.0 + BOX.0 + 20.0, 2.0 * radius.1 + BOX.1 + 20.0);
    let place = |id: u64| {
        let index = ids.iter().position(|it| *it == id).unwrap_or(0);
        let angle = TAU * index as f64 / ids.len() as f64 - TAU / 4.0;
        (
            width / 2.0 + radius.0 * angle.cos(),
            height / 2.0 + radius.1 * angle.sin(),
        )
    };
    html! {
        svg class="order" viewBox=(format!("0 0 {} {}", px(width), px(height))) width=(px(width)) height=(px(height))
            role="img" aria-label="goroutines that wait, and for whom" {
            @for (from, to, why) in edges(all).filter(|it| it.0 != it.1) {
                @let ((x1, y1), (x2, y2)) = (place(from), place(to));
                g {
                    title { (shown(why)) }
                    path class="line" d=(format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2))) {}
                    path class="head" d=(head((x1, y1), (x2, y2))) {}
                }
            }
            @for id in &ids {
                @let (x, y) = place(*id);
                @let one = all.iter().find(|it| it.id == *id);
                g class=(if one.is_some_and(|it| !it.waits_for.is_empty()) { "group least" } else { "group" }) {
                    rect x=(px(x - BOX.0 / 2.0)) y=(px(y - BOX.1 / 2.0)) width=(px(BOX.0)) height=(px(BOX.1)) rx="4" {
                        title { (one.map_or_else(String::new, |it| shown(&it.state))) }
                    }
                    text x=(px(x)) y=(px(y - 3.0)) text-anchor="middle" { "goroutine " (id) }
                    text class="axis" x=(px(x)) y=(px(y + 12.0)) text-anchor="middle" {
                        (shortened(one.map_or("", |it| last(it)), 27))
                    }
                }
            }
        }
    }
}

/// The end of the path where it stands.
fn last(one: &Concerned) -> &str {
    let place = one.blocked_at.as_deref().unwrap_or_default();
    place.rsplit('/').next().unwrap_or(place)
}

fn edges(all: &[Concerned]) -> impl Iterator<Item = (u64, u64, &str)> {
    all.iter().flat_map(|one| {
        one.waits_for
            .iter()
            .flat_map(move |way| way.goroutines.iter().map(|to| (one.id, *to, &*way.why)))
    })
}

/// An arrow's head, beyond the middle of its line, where no box covers it.
fn head((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    let length = (x2 - x1).hypot(y2 - y1).max(1.0);
    let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
    let (x, y) = (x1 + (x2 - x1) * 0.55, y1 + (y2 - y1) * 0.55);
    let side = |sign: f64| {
        (
            x - 9.0 * dx + sign * 5.0 * dy,
            y - 9.0 * dy - sign * 5.0 * dx,
        )
    };
    let ((ax, ay), (bx, by)) = (side(1.0), side(-1.0));
    format!(
        "M{} {}L{} {}L{} {}z",
        px(x),
        px(y),
        px(ax),
        px(ay),
        px(bx),
        px(by)
    )
}
