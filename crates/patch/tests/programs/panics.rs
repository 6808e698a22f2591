use std::collections::BTreeMap;

fn depth(n: u32) -> u32 {
    if n == 0 { panic!("at the bottom") } else { depth(n - 1) + 1 }
}

fn main() {
    let words: BTreeMap<String, usize> =
        std::env::args().map(|word| (word.clone(), word.len())).collect();
    let caught = std::panic::catch_unwind(|| depth(3));
    println!("{} {}", words.len(), caught.is_err());
}
