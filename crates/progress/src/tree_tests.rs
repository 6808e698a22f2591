//! Call trees from words.

use lockstep_calltree::{Builder, Forest, Function, NodeId};

/// A tree from words: `name` a call that returns at once, `name(` one that stays open until `)`.
pub(crate) fn tree(forest: &mut Forest, text: &str) -> NodeId {
    let words: Vec<&str> = text.split_whitespace().collect();
    let keys: Vec<_> = words
        .iter()
        .map(|word| {
            let name = word.trim_end_matches(['(', '!']).to_owned();
            forest.add_function(Function {
                linkage: name.clone(),
                imported: name.starts_with("MPI_"),
                name,
                image: String::new(),
            })
        })
        .collect();
    let mut builder = Builder::new(forest);
    for (word, key) in words.iter().zip(keys) {
        match *word {
            ")" => builder.ret(),
            word => {
                builder.call(key);
                // `!` is where the task hangs.
                if !word.ends_with(['(', '!']) {
                    builder.ret();
                }
            }
        }
    }
    builder.finish()
}
