// A sort with an own comparison, a map, and text.
// A right trace shows `key` for each comparison, under the standard library's own functions (which are
// part of the program: Rust links them in).
use std::collections::BTreeMap;

#[inline(never)]
fn key(word: &str) -> usize {
    word.len() * 10 + word.as_bytes()[0] as usize % 10
}

fn main() {
    let text = "the quick brown fox jumps over the lazy dog again and again";
    let mut words: Vec<&str> = text.split(' ').collect();
    words.sort_by_key(|word| key(word));
    let mut counts = BTreeMap::new();
    for word in &words {
        *counts.entry(word.len()).or_insert(0) += 1;
    }
    println!("{words:?}");
    println!("{counts:?}");
}
