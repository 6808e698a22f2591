//! The goroutine tree and the wait-for graph as text for Graphviz.

use crate::execution::{Execution, State};
use crate::replay::Replay;
use crate::tree::Tree;
use crate::waits::{Need, waiting};
use crate::words::{Words, reason, short};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The nodes of the goroutine tree, with what each runs, where it was made, and how many there were.
pub fn tree(tree: &Tree) -> String {
    let mut text = "digraph goroutines {\n  node [shape=box];\n".to_owned();
    for id in tree.in_order() {
        let node = &tree.nodes[id.0 as usize];
        let made = match &node.created_at {
            Some(place) => format!("\nmade at {}", short(place)),
            None => String::new(),
        };
        let count = match node.goroutines {
            1 => String::new(),
            many => format!(" ({many})"),
        };
        let label = format!("{}{count}{made}", node.entry);
        // A string takes whatever is written to it.
        let _ = writeln!(text, "  n{} [label={}];", id.0, quoted(&label));
        if let Some(parent) = node.parent {
            let _ = writeln!(text, "  n{} -> n{};", parent.0, id.0);
        }
    }
    text.push_str("}\n");
    text
}

/// Who waits for whom at the end of an execution: who waits for ever is red; an edge to who holds a lock is
/// drawn through, one to who could end the wait is dashed. Goroutines that take no part are left out.
pub fn waits(execution: &Execution) -> String {
    let replay = Replay::whole(execution);
    let waiting = waiting(&replay);
    let words = Words { replay: &replay };
    let mut shown: BTreeSet<_> = waiting.waits.iter().map(|it| it.goroutine).collect();
    shown.extend(waiting.waits.iter().flat_map(|it| it.on()));
    let mut text = "digraph waits {\n  node [shape=box];\n".to_owned();
    for id in shown {
        let state = execution.goroutines[id.0 as usize].state;
        let standing = match (waiting.of(id), state) {
            (Some(wait), _) => format!("\nwaits at {}", words.at(wait.site)),
            (None, State::Ended) => "\nhas ended".to_owned(),
            (None, State::Waiting(it)) => format!("\nwaits {}", reason(it)),
            (None, State::Runnable) => "\nruns".to_owned(),
        };
        let colour = if waiting.is_stuck(id) {
            ", color=red"
        } else {
            ""
        };
        let label = format!("{}{standing}", words.who(id));
        let _ = writeln!(text, "  g{} [label={}{colour}];", id.0, quoted(&label));
    }
    for wait in &waiting.waits {
        for way in &wait.ways {
            let held = matches!(way.need, Need::Release(_) | Need::Behind(_));
            let style = if held { "" } else { ", style=dashed" };
            let label = quoted(&words.want(way.action, way.object));
            for on in way.on() {
                let _ = writeln!(
                    text,
                    "  g{} -> g{} [label={label}{style}];",
                    wait.goroutine.0, on.0
                );
            }
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Action;
    use crate::sample::{MAIN, Sample};

    #[test]
    fn pictures() {
        let mut it = Sample::new();
        let lock = it.mutex(10);
        let channel = it.channel(MAIN, 2, 0);
        let sender = it.go(MAIN, 3);
        it.does(sender, 10, Action::Lock, lock);
        it.waits(sender, 11, Action::Send, channel);
        it.waits(MAIN, 5, Action::Lock, lock);
        insta::assert_snapshot!(waits(&it.execution), @r#"
        digraph waits {
          node [shape=box];
          g0 [label="main\nwaits at main.go:5", color=red];
          g1 [label="goroutine 18\nwaits at main.go:11", color=red];
          g0 -> g1 [label="for the mutex first used at main.go:10"];
        }
        "#);
        let mut nodes = Tree::default();
        nodes.add(&it.execution);
        insta::assert_snapshot!(tree(&nodes), @r#"
        digraph goroutines {
          node [shape=box];
          n0 [label="main.main"];
          n1 [label="main.main.func1\nmade at main.go:3"];
          n0 -> n1;
        }
        "#);
    }
}
