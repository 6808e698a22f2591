//! diffNLR in the thesis' colours: what both traces do in green over the whole width, what only the
//! normal one does in blue on the left, what only the faulty one does in red on the right.

use crate::text::shown;
use lockstep_compare::{Diff, Op};
use maud::{Markup, html};

/// Of a longer block of equal elements, this many at either end are drawn.
const CONTEXT: usize = 6;
/// Differences within differences are drawn so deep.
const DEPTH: usize = 40;

/// The whole diff of a trace, with the loops that it names.
pub fn html(diff: &Diff) -> Markup {
    html! {
        @if diff.ops.is_empty() {
            p.faint { "No difference." }
        } @else {
            div.diff {
                div.head.normal { "normal only" }
                div.head.faulty { "faulty only" }
                (ops(&diff.ops, 0))
                @if diff.normal_open != diff.faulty_open {
                    (open("normal", &diff.normal_open))
                    (open("faulty", &diff.faulty_open))
                }
            }
            @if !diff.loops.is_empty() {
                table {
                    thead { tr { th { "Loop" } th { "Body" } } }
                    tbody {
                        @for body in &diff.loops {
                            tr { td.mono { (shown(&body.name)) } td.mono { (shown(&body.body.join(" "))) } }
                        }
                    }
                }
            }
        }
    }
}

fn ops(list: &[Op], depth: usize) -> Markup {
    html! { @for op in list { (one(op, depth)) } }
}

fn one(op: &Op, depth: usize) -> Markup {
    let times = |name: &str, times: u64| format!("{name}^{times}");
    match op {
        Op::Equal { tokens } => block("common", &cut(tokens)),
        Op::Normal { tokens } => block("normal", tokens),
        Op::Faulty { tokens, open } => {
            let mut tokens = tokens.clone();
            if let (Some(last), true) = (tokens.last_mut(), open) {
                last.push_str("  (never returned)");
            }
            block("faulty", &tokens)
        }
        Op::Count {
            name,
            normal,
            faulty,
            ..
        } => html! {
            (head(&op.title()))
            (block("normal", &[times(name, *normal)]))
            (block("faulty", &[times(name, *faulty)]))
        },
        Op::Body {
            normal_name,
            faulty_name,
            normal_times,
            faulty_times,
            ops: within,
            ..
        } => html! {
            (head(&op.title()))
            (block("normal", &[times(normal_name, *normal_times)]))
            (block("faulty", &[times(faulty_name, *faulty_times)]))
            // Bodies of the same names differ further down.
            @if op.is_nested() { (nested("in each of them", within, depth)) }
        },
        Op::Iterations { ops, .. } | Op::Piece { ops, .. } | Op::Call { ops, .. } => {
            nested(&op.title(), ops, depth)
        }
    }
}

/// What happens within a call or an iteration, drawn inside of it.
fn nested(text: &str, within: &[Op], depth: usize) -> Markup {
    html! {
        (head(text))
        @if depth < DEPTH {
            div.within { div.diff { (ops(within, depth + 1)) } }
        } @else {
            div.within { "..." }
        }
    }
}

fn head(text: &str) -> Markup {
    html! { div.changed { (shown(text)) } }
}

fn block(class: &str, tokens: &[String]) -> Markup {
    html! {
        div class=(class) {
            @for (index, token) in tokens.iter().enumerate() {
                @if index > 0 { "\n" }
                (shown(token))
            }
        }
    }
}

fn open(class: &str, stack: &[String]) -> Markup {
    if stack.is_empty() {
        return html! {};
    }
    block(class, &[format!("open at the end: {}", stack.join(" > "))])
}

/// Long equal parts are cut short.
fn cut(tokens: &[String]) -> Vec<String> {
    if tokens.len() <= 2 * CONTEXT + 1 {
        return tokens.to_vec();
    }
    let hidden = tokens.len() - 2 * CONTEXT;
    let mut short = tokens[..CONTEXT].to_vec();
    short.push(format!("... {hidden} more"));
    short.extend_from_slice(&tokens[tokens.len() - CONTEXT..]);
    short
}
