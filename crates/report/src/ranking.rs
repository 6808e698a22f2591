//! The ranking table of a sweep, to be played with: choose a filter, attributes, a frequency, a linkage or a number of
//! clusters, and the rows that are left, with who is a candidate in how many of them, follow.
//!
//! Everything is there beforehand, and nothing runs: each choice is a radio button, and a rule of style hides the rows
//! that are of another choice. What is hidden does not count, so that the closing row's numbers are CSS counters.
//!
//! ```text
//! .choices:has(#pick-filter-2:checked) ~ .rows tr:not(.filter-2) { display: none }
//! .who-0 { counter-increment: who-0 }        in the cell of each row in which that trace is a candidate
//! ```

use crate::page::Section;
use crate::text::shown;
use lockstep_compare::{Comparison, ObjectName, Row};
use maud::{Markup, html};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// Candidates that are named in a row, and in the closing row.
const NAMED: usize = 8;

/// One question: its word for rules, its title, and what the rows say to it, in alphabetical order.
struct Choice {
    word: &'static str,
    title: &'static str,
    values: Vec<String>,
    of: fn(&Row) -> String,
}

impl Choice {
    fn new(word: &'static str, title: &'static str, rows: &[Row], of: fn(&Row) -> String) -> Self {
        // Rows come in the order of their scores, which is none for choosing.
        let values: BTreeSet<String> = rows.iter().map(of).collect();
        Self {
            word,
            title,
            values: values.into_iter().collect(),
            of,
        }
    }

    fn class(&self, row: &Row) -> String {
        let value = (self.of)(row);
        let number = self.values.iter().position(|it| *it == value);
        format!("{}-{}", self.word, number.unwrap_or(0))
    }

    fn html(&self) -> Markup {
        let id = |number: usize| format!("pick-{}-{number}", self.word);
        html! {
            fieldset {
                legend { (self.title) }
                label { input type="radio" name=(self.word) checked; "all" }
                @for (number, value) in self.values.iter().enumerate() {
                    label { input type="radio" name=(self.word) id=(id(number)); (shown(value)) }
                }
            }
        }
    }

    fn style(&self, to: &mut String) {
        let word = self.word;
        for number in 0..self.values.len() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                to,
                ".choices:has(#pick-{word}-{number}:checked) ~ .rows tbody tr:not(.{word}-{number}) {{ display: none; }}"
            );
        }
    }
}

/// The part of the page; empty where there is no table.
pub(crate) fn section(comparison: &Comparison) -> Section {
    let rows = &comparison.table;
    if rows.is_empty() {
        return Section::new("ranking", "Ranking table", html! {});
    }
    let mut choices = vec![
        Choice::new("filter", "Filter", rows, |row| row.filter.clone()),
        Choice::new("attributes", "Attributes", rows, |row| {
            row.attributes.to_string()
        }),
        Choice::new("frequency", "Frequency", rows, |row| {
            row.frequency.to_string()
        }),
        Choice::new("linkage", "Linkage", rows, |row| row.linkage.to_string()),
        Choice::new("clusters", "Clusters", rows, |row| row.clusters.to_string()),
    ];
    choices.retain(|choice| choice.values.len() > 1);
    let top: Vec<&str> = comparison
        .top
        .threads
        .iter()
        .take(NAMED)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut style = String::new();
    for choice in &choices {
        choice.style(&mut style);
    }
    let counters: String = (0..top.len())
        .map(|number| format!(" who-{number}"))
        .collect();
    let _ = writeln!(style, ".choose {{ counter-reset: sets{counters}; }}");
    for number in 0..top.len() {
        let _ = writeln!(
            style,
            "i.who-{number} {{ counter-increment: who-{number}; }}\nb.who-{number}::after {{ content: counter(who-{number}); }}"
        );
    }
    let body = html! {
        p {
            "One row for each set of options, lowest B-score first: a low one says that the traces fall into other groups than before. "
            "Candidates are the members of the smallest clusters of the difference, those that changed most first."
        }
        div.choose {
            @if !choices.is_empty() {
                div.choices { @for choice in &choices { (choice.html()) } }
            }
            div.scroll.rows tabindex="0" { (table(rows, &choices, &top)) }
            // After the rows, which it counts; style puts it before them.
            p.closing {
                b.sets {} " sets of options"
                @if !top.is_empty() {
                    "; candidates in how many of them: "
                    @for (number, name) in top.iter().enumerate() {
                        span { span.mono { (name) } " " b class=(format!("who-{number}")) {} } " "
                    }
                }
            }
        }
    };
    Section {
        style,
        ..Section::new("ranking", "Ranking table", body)
    }
}

fn table(rows: &[Row], choices: &[Choice], top: &[&str]) -> Markup {
    let place: HashMap<&str, usize> = top.iter().copied().zip(0..).collect();
    html! {
        table {
            thead { tr {
                @for name in ["Filter", "Attributes", "Linkage"] { th { (name) } }
                th.number { "Clusters" } th.number { "B-score" }
                th { "Their sizes" } th { "Candidates" }
            } }
            tbody {
                @for row in rows {
                    @let classes: Vec<String> = choices.iter().map(|choice| choice.class(row)).collect();
                    tr class=(classes.join(" ")) {
                        td.mono { (shown(&row.filter)) }
                        td { (row.attributes) "." (row.frequency) }
                        td { (row.linkage) }
                        td.number { (row.clusters) }
                        td.number { @if row.b_score.is_nan() { "-" } @else { (format!("{:.3}", row.b_score)) } }
                        td { (row.cluster_sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")) }
                        td.mono { (candidates(&row.threads, &place)) }
                    }
                }
            }
        }
    }
}

/// Their names, and for each that the closing row counts something to be counted.
fn candidates(threads: &[ObjectName], place: &HashMap<&str, usize>) -> Markup {
    let names: Vec<String> = threads.iter().map(ToString::to_string).collect();
    let more = names.len().saturating_sub(NAMED);
    html! {
        (names[..names.len() - more].join(" "))
        @if more > 0 { " and " (more) " more" }
        @for number in names.iter().filter_map(|name| place.get(name.as_str())) {
            i class=(format!("who-{number}")) {}
        }
    }
}
