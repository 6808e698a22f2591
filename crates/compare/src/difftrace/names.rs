//! Under which name a function goes in both builds: without what compilers append to clones, and library functions by what
//! the source calls.

use super::pairing::visible;
use lockstep_trace::{Function, Run, base_name};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What compilers call in place of another function.
const INSTEAD: [(&str, &str); 9] = [
    ("puts", "printf"),
    ("putchar", "printf"),
    ("fputs", "fprintf"),
    ("fputc", "fprintf"),
    ("putc", "fprintf"),
    ("_IO_putc", "fprintf"),
    ("fwrite", "fprintf"),
    ("calloc", "malloc"),
    ("stpcpy", "strcpy"),
];

/// Name and linkage name of a function for both builds, by whether it is a library's, and its linkage name.
type Known = FxHashMap<(bool, String), (String, String)>;

/// Linkage names and names of the functions of a build.
type Own<'a> = BTreeSet<(&'a str, &'a str)>;

/// The names that functions have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    known: Known,
    /// Clones that are called by a base name, each as `sort.part.0`.
    pub(crate) clones: Vec<String>,
}

impl Names {
    /// Of the last run and those before it, where they are of two builds. A name that both builds have stays as it is.
    pub(crate) fn of(runs: &[&Run]) -> Self {
        let Some((last, normals)) = runs.split_last() else {
            return Self::default();
        };
        let base = |function: &Function| -> String {
            match function.imported {
                true => instead(&function.linkage).to_owned(),
                false => base_name(&function.linkage).to_owned(),
            }
        };
        // Under each base name the linkage names in the normal builds, and in the other.
        let mut by_base: BTreeMap<(bool, String), [Own<'_>; 2]> = BTreeMap::new();
        let each = normals.iter().map(|run| (0, *run)).chain([(1, *last)]);
        for (side, run) in each {
            for function in &run.functions {
                let key = (function.imported, base(function));
                by_base.entry(key).or_default()[side].insert((&function.linkage, &function.name));
            }
        }
        let mut names = Self::default();
        for ((imported, base), sides) in by_base {
            if sides[0] == sides[1] {
                continue;
            }
            for (linkage, name) in sides.iter().flatten().filter(|it| it.0 != base) {
                if !imported {
                    names.clones.push((*name).to_owned());
                }
                let name = match imported {
                    true => base.clone(),
                    false => base_name(name).to_owned(),
                };
                let key = (imported, (*linkage).to_owned());
                names.known.insert(key, (name, base.clone()));
            }
        }
        names.clones.sort_unstable();
        names.clones.dedup();
        names
    }

    /// Name and linkage name of a function, if it goes by another.
    pub(crate) fn known_as(&self, function: &Function) -> Option<(String, String)> {
        if self.known.is_empty() {
            return None;
        }
        let key = (function.imported, function.linkage.clone());
        self.known.get(&key).cloned()
    }
}

/// Whether the program of the last run is another build than that of the others.
pub(crate) fn are_two(runs: &[&Run]) -> bool {
    let of = |run: &Run| -> BTreeSet<String> {
        let known = visible(run).filter(|it| !it.is_launcher() && !it.build.is_empty());
        known.map(|it| it.build.clone()).collect()
    };
    let Some((last, normals)) = runs.split_last() else {
        return false;
    };
    let faulty = of(last);
    let normal: BTreeSet<String> = normals.iter().flat_map(|run| of(run)).collect();
    !faulty.is_subset(&normal) && !normal.is_subset(&faulty)
}

/// Without what checked versions and those of other standards have in their names, and by what the source calls.
fn instead(name: &str) -> &str {
    let standard = name.strip_prefix("__isoc").and_then(|rest| {
        let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        rest.strip_prefix('_')
    });
    let base = standard.unwrap_or(name);
    let checked = base
        .strip_prefix("__")
        .and_then(|it| it.strip_suffix("_chk"));
    let base = checked.unwrap_or(base);
    INSTEAD
        .iter()
        .find(|(other, _)| *other == base)
        .map_or(base, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_functions_go_by_what_the_source_calls() {
        for (name, base) in [
            ("__printf_chk", "printf"),
            ("puts", "printf"),
            ("__memcpy_chk", "memcpy"),
            ("__isoc99_sscanf", "sscanf"),
            ("__isoc23_strtol", "strtol"),
            ("MPI_Send", "MPI_Send"),
            ("__stack", "__stack"),
        ] {
            assert_eq!(instead(name), base, "{name}");
        }
    }
}
