//! The call graph for Graphviz: functions and who calls whom, with counts.

use crate::profile::Folded;
use lockstep_calltree::FunctionKey;
use std::io::{self, Write};

pub(crate) fn write(folded: &Folded<'_>, out: &mut impl Write) -> io::Result<()> {
    let profile = folded.profile();
    writeln!(out, "digraph calls {{")?;
    writeln!(out, "  node [shape=box, fontname=\"sans-serif\"];")?;
    writeln!(out, "  edge [fontname=\"sans-serif\"];")?;
    for (function, calls) in &profile.functions {
        let style = if folded.forest.function(*function).imported {
            ", style=dashed"
        } else {
            ""
        };
        writeln!(
            out,
            "  {} [label=\"{}\\n{calls} call{}\"{style}];",
            node(*function),
            quoted(folded.name(*function)),
            if *calls == 1 { "" } else { "s" },
        )?;
    }
    for ((caller, callee), edge) in &profile.edges {
        let (caller, callee) = (node(*caller), node(*callee));
        writeln!(out, "  {caller} -> {callee} [label=\"{}\"];", edge.calls)?;
    }
    writeln!(out, "}}")
}

fn node(function: FunctionKey) -> String {
    format!("f{}", function.0)
}

/// Inside of quotation marks.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted
}
