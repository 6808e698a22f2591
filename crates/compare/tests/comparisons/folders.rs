//! The folders of the crate's source never import upwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders, each above those that it uses.
const FOLDERS: [&str; 4] = ["difftrace", "structure", "statistics", "findings"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// The names behind `crate::` in a text, those of lists too.
fn imported(text: &str) -> Vec<String> {
    let is_name = |it: &char| it.is_alphanumeric() || *it == '_';
    let mut names = Vec::new();
    for (at, word) in text.match_indices("crate::") {
        let rest = &text[at + word.len()..];
        let list = rest.strip_prefix('{').and_then(|it| it.split('}').next());
        let first = || rest.chars().take_while(is_name).collect();
        match list {
            Some(list) => names.extend(list.split(',').map(|it| it.trim().to_owned())),
            None => names.push(first()),
        }
    }
    names
}

#[test]
fn folders_import_only_those_before_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a source file");
    // What the crate makes known under its own name is of the folder that it comes from.
    let mut level: BTreeMap<String, usize> = BTreeMap::new();
    for (number, folder) in FOLDERS.iter().enumerate() {
        level.insert((*folder).to_owned(), number);
        let front = read(&source.join("lib.rs"));
        let exports = front.split("pub use ").filter(|it| it.starts_with(folder));
        for export in exports.filter_map(|it| it.split(';').next()) {
            let items = export.rsplit("::").next().unwrap_or(export);
            for item in items.trim_matches(['{', '}']).split(',') {
                level.insert(item.trim().to_owned(), number);
            }
        }
    }
    let mut upwards = Vec::new();
    let mut all = Vec::new();
    files(&source, &mut all);
    for path in all {
        let inside = path.strip_prefix(&source).expect("a file of the crate");
        let name = inside.with_extension("");
        let folder = name.iter().next().and_then(|it| it.to_str()).unwrap_or("");
        let own = level.get(folder).copied();
        let text = read(&path);
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let code = product
            .lines()
            .filter(|it| !it.trim_start().starts_with("//"));
        for import in imported(&code.collect::<Vec<_>>().join("\n")) {
            if folder != "lib" && level.get(&import).copied() > own {
                upwards.push(format!("{} imports {import}", inside.display()));
            }
        }
    }
    assert!(upwards.is_empty(), "{upwards:#?}");
}
