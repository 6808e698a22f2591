//! The rules of the house are kept: what `rules/limits.txt` counts may only fall.

use lockstep_rules::limits::{FILE, allowed, measured};
use std::path::Path;

#[test]
fn nothing_is_more_than_the_limits_allow() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let (measured, allowed) = (
        measured(root).expect("measures"),
        allowed(root).expect(FILE),
    );
    let more: Vec<String> = measured
        .iter()
        .filter_map(|(name, number)| {
            let limit = allowed.get(name).copied().unwrap_or(0);
            (*number > limit).then(|| format!("{name}: {number}, at most {limit}"))
        })
        .collect();
    assert!(
        more.is_empty(),
        "{}\n`cargo xtask circles | lengths | prose` says where; {FILE} has the limits",
        more.join("\n")
    );
    assert!(measured.get("reasons").is_none_or(|it| *it <= 15));
}
