//! What goroutines did one after the other: a column for each, time downwards, thick where one waits, an arrow where one
//! lets another go on or makes it.

use crate::text::{px, shortened, shown};
use lockstep_goroutines::execution::{Action, Event, GoroutineId, What};
use lockstep_goroutines::{Execution, Judgement, Place};
use maud::{Markup, html};
use std::collections::HashMap;

/// Rows that are drawn: the last ones, which lead to the end.
const ROWS: usize = 240;
/// Columns.
const COLUMNS: usize = 24;
/// Width of a column, height of a row, and where the first of each stands.
const COLUMN: f64 = 150.0;
const ROW: f64 = 15.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;

/// A mark in a goroutine's column.
struct Mark {
    row: usize,
    who: GoroutineId,
    text: String,
    time: u64,
}

/// What is drawn.
#[derive(Default)]
struct Drawing {
    marks: Vec<Mark>,
    /// Who, and from which row to which it waited.
    waits: Vec<(GoroutineId, usize, usize)>,
    /// From whom to whom, in which row.
    arrows: Vec<(usize, GoroutineId, GoroutineId)>,
    /// Marks that lie before the first row.
    before: usize,
}

/// The picture, and what it leaves out.
pub fn svg(execution: &Execution, judgement: &Judgement) -> Markup {
    let drawing = Drawing::of(execution);
    let columns = columns(execution, judgement, &drawing);
    if columns.is_empty() {
        return html! {};
    }
    let x = |who: GoroutineId| {
        let index = columns.iter().position(|it| *it == who);
        index.map(|it| LEFT + it as f64 * COLUMN + 10.0)
    };
    let y = |row: usize| TOP + row as f64 * ROW + 10.0;
    let rows = drawing.marks.last().map_or(0, |it| it.row) + 1;
    let (width, height) = (LEFT + columns.len() as f64 * COLUMN + 20.0, y(rows) + 10.0);
    let others = execution
        .goroutines
        .iter()
        .filter(|it| !it.is_system)
        .count()
        - columns.len();
    html! {
        p.faint {
            "A column is a goroutine, a thick line a wait; an arrow lets another go on, or makes it."
            @if drawing.before > 0 { " The last " (rows) " events are drawn, " (drawing.before) " before them are not." }
            @if others > 0 { " " (others) " more goroutines have no column." }
        }
        div.scroll tabindex="0" {
            svg class="timeline" viewBox=(format!("0 0 {} {}", px(width), px(height))) width=(px(width)) height=(px(height))
                role="img" aria-label="events of goroutines in the order of time" {
                @for who in &columns {
                    @if let Some(x) = x(*who) {
                        text x=(px(x)) y="14" { (shortened(&name(execution, *who), 22)) }
                        text class="axis" x=(px(x)) y="27" { (shortened(&entry(execution, *who), 22)) }
                        path class="frame" d=(format!("M{} {}V{}", px(x), px(TOP), px(height))) {}
                    }
                }
                @for (who, from, to) in &drawing.waits {
                    @if let Some(x) = x(*who) { path class="wait" d=(format!("M{} {}V{}", px(x), px(y(*from)), px(y(*to)))) {} }
                }
                @for (row, from, to) in &drawing.arrows {
                    @if let (Some(from), Some(to)) = (x(*from), x(*to)) {
                        @let (back, y) = (if to > from { -6.0 } else { 6.0 }, y(*row) + 5.0);
                        path class="frame" d=(format!("M{} {}H{}", px(from), px(y), px(to))) {}
                        path class="arrow" d=(format!("M{} {}l{} -3v6z", px(to), px(y), px(back))) {}
                    }
                }
                @for mark in &drawing.marks {
                    @if let Some(x) = x(mark.who) {
                        circle cx=(px(x)) cy=(px(y(mark.row))) r="3" { title { (shown(&mark.text)) " after " (time(mark.time)) } }
                        text x=(px(x + 7.0)) y=(px(y(mark.row) + 4.0)) { (shortened(&mark.text, 21)) }
                    }
                    @if mark.row % 8 == 0 { text class="axis" x="2" y=(px(y(mark.row) + 4.0)) { (time(mark.time)) } }
                }
            }
        }
    }
}

impl Drawing {
    fn of(execution: &Execution) -> Self {
        let is_own = |it: &Event| {
            let who = it
                .goroutine
                .and_then(|it| execution.goroutines.get(it.0 as usize));
            who.is_some_and(|it| !it.is_system) && is_shown(&it.what)
        };
        let all = execution.events.iter().filter(|it| is_own(it)).count();
        let mut found = Self {
            before: all.saturating_sub(ROWS),
            ..Self::default()
        };
        let (mut seen, mut row) = (0, 0);
        let mut waiting: HashMap<GoroutineId, usize> = HashMap::new();
        for event in &execution.events {
            let who = event.goroutine;
            if is_own(event)
                && let Some(who) = who
            {
                seen += 1;
                if seen <= found.before {
                    continue;
                }
                row = seen - found.before - 1;
                found.marks.push(Mark {
                    row,
                    who,
                    text: said(execution, event),
                    time: event.time,
                });
            }
            match (&event.what, who) {
                (What::Park(_), Some(who)) => {
                    waiting.insert(who, row);
                }
                (What::Ready(other), by) => {
                    if let Some(from) = waiting.remove(other)
                        && seen > found.before
                    {
                        found.waits.push((*other, from, row));
                        found.arrows.extend(by.map(|by| (row, by, *other)));
                    }
                }
                (What::Create(child), Some(by)) if seen > found.before => {
                    found.arrows.push((row, by, *child));
                }
                _ => {}
            }
        }
        // Whoever waits at the end.
        let mut left: Vec<(GoroutineId, usize)> = waiting.into_iter().collect();
        left.sort_unstable();
        found
            .waits
            .extend(left.into_iter().map(|(who, from)| (who, from, row + 1)));
        found
    }
}

fn is_shown(what: &What) -> bool {
    match what {
        What::Request { action, .. } => !matches!(action, Action::Go),
        What::Create(_) | What::End | What::Panic => true,
        _ => false,
    }
}

fn said(execution: &Execution, event: &Event) -> String {
    let what = match &event.what {
        What::Request { action, .. } => action.name().to_owned(),
        What::Create(child) => format!("go {}", name(execution, *child)),
        What::Panic => "panic".to_owned(),
        _ => "end".to_owned(),
    };
    let place = event.site.and_then(|it| execution.site(it)).map(Place::of);
    let line = place.map_or_else(String::new, |it| {
        let file = it.file.rsplit('/').next().unwrap_or_default().to_owned();
        format!(" {file}:{}", it.line)
    });
    format!("{what}{line}")
}

/// Who has a column: whom the verdict is about, then who has marks, in the order of creation.
fn columns(execution: &Execution, judgement: &Judgement, drawing: &Drawing) -> Vec<GoroutineId> {
    let numbered = |id: &GoroutineId| execution.goroutines.get(id.0 as usize).map(|it| it.number);
    let all = (0..execution.goroutines.len() as u32).map(GoroutineId);
    let is_own = |it: &GoroutineId| !execution.goroutines[it.0 as usize].is_system;
    let concerned = |it: &GoroutineId| {
        let number = numbered(it);
        judgement
            .goroutines
            .iter()
            .any(|one| Some(one.id) == number)
    };
    let acts = |it: &GoroutineId| drawing.marks.iter().any(|mark| mark.who == *it);
    let own: Vec<GoroutineId> = all.filter(is_own).collect();
    let first = own.iter().filter(|it| concerned(it));
    let then = own.iter().filter(|it| !concerned(it) && acts(it));
    let mut chosen: Vec<GoroutineId> = first.chain(then).copied().take(COLUMNS).collect();
    chosen.sort_unstable();
    chosen
}

fn name(execution: &Execution, id: GoroutineId) -> String {
    match execution.goroutines.get(id.0 as usize) {
        Some(_) if id.0 == 0 => "main".to_owned(),
        Some(it) => format!("goroutine {}", it.number),
        None => "?".to_owned(),
    }
}

fn entry(execution: &Execution, id: GoroutineId) -> String {
    let entry = execution
        .goroutines
        .get(id.0 as usize)
        .map(|it| it.entry.as_str());
    let entry = entry.unwrap_or_default();
    entry.rsplit('/').next().unwrap_or(entry).to_owned()
}

fn time(nanoseconds: u64) -> String {
    format!("{:.2} ms", nanoseconds as f64 / 1e6)
}
