//! Call trees written as text.

use lockstep_calltree::{Builder, Forest, Function, NodeId};

/// Builds a tree from words: `f(` calls f, `)` returns, `f` does both, `3[ ... ]` comes three times.
pub fn tree(forest: &mut Forest, text: &str) -> NodeId {
    let words: Vec<String> = text
        .replace('(', "( ")
        .replace(')', " ) ")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let mut builder = Words { words, at: 0 };
    let mut events = Vec::new();
    builder.read(&mut events);
    let functions: Vec<_> = events
        .iter()
        .map(|event| {
            event.as_ref().map(|name| {
                forest.add_function(Function {
                    name: name.clone(),
                    linkage: name.clone(),
                    image: String::new(),
                    imported: false,
                })
            })
        })
        .collect();
    let mut builder = Builder::new(forest);
    for function in functions {
        match function {
            Some(function) => builder.call(function),
            None => builder.ret(),
        }
    }
    builder.finish()
}

struct Words {
    words: Vec<String>,
    at: usize,
}

impl Words {
    /// Up to `]` or the end. `None` is a return.
    fn read(&mut self, out: &mut Vec<Option<String>>) {
        while let Some(word) = self.words.get(self.at).cloned() {
            self.at += 1;
            if word == "]" {
                return;
            } else if word == ")" {
                out.push(None);
            } else if let Some(name) = word.strip_suffix('(') {
                out.push(Some(name.to_owned()));
            } else if let Some(count) = word.strip_suffix("[").and_then(|n| n.parse().ok()) {
                let mut body = Vec::new();
                self.read(&mut body);
                (0..count).for_each(|_: u32| out.extend(body.iter().cloned()));
            } else {
                out.push(Some(word));
                out.push(None);
            }
        }
    }
}
