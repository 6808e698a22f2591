//! Source files for pages.

use std::collections::BTreeMap;
use std::path::Path;

/// Endings of what looks like source.
const SOURCE: [&str; 18] = [
    "c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "C", "H", "f", "F", "f90", "F90", "f03",
    "f08", "rs", "go",
];
const LARGEST: u64 = 8 << 20;

/// The lines of those of the files that can be read here, by the names that the run has for them. A run
/// may be a stranger's, and the page may be mailed: what does not look like source stays unread.
pub fn read(names: impl Iterator<Item = String>) -> BTreeMap<String, Vec<String>> {
    let mut sources = BTreeMap::new();
    for name in names {
        let path = Path::new(&name);
        let ending = path.extension().and_then(|it| it.to_str());
        let is_fit = !sources.contains_key(&name)
            && ending.is_some_and(|it| SOURCE.contains(&it))
            && std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
        if is_fit && let Ok(text) = std::fs::read(path) {
            let text = String::from_utf8_lossy(&text).into_owned();
            sources.insert(name, text.lines().map(str::to_owned).collect());
        }
    }
    sources
}
