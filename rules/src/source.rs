//! The Rust files of the checkout.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;

/// What files and folders of tables in `api` are called.
const TABLES: [&str; 4] = ["rows", "rows.rs", "constants.rs", "rules.rs"];

/// A Rust file.
pub struct Source {
    /// From the checkout: `crates/trace/src/open.rs`.
    pub path: PathBuf,
    /// The crate's name, of a file under `crates/*/src`.
    pub room: Option<String>,
    /// Its text.
    pub text: String,
    /// What it says.
    pub file: syn::File,
    /// Lines of modules that only tests compile, from 1, both inclusive.
    pub test_lines: Vec<(usize, usize)>,
}

/// Every Rust file below `root` that the project wrote, by path.
///
/// # Errors
///
/// A folder or a file that cannot be read, or does not parse.
pub fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for part in [
        "crates", "bench", "fuzz", "xtask", "rules", "programs", "examples",
    ] {
        collect(&root.join(part), &mut paths)?;
    }
    paths.sort();
    let each = paths.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let file =
            syn::parse_file(&text).with_context(|| format!("{} does not parse", path.display()))?;
        let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let mut words = path.iter().filter_map(|it| it.to_str());
        let room = match (words.next(), words.next(), words.next()) {
            (Some("crates"), Some(room), Some("src")) => Some(room.to_owned()),
            _ => None,
        };
        Ok(Source {
            test_lines: test_modules(&file),
            file,
            path,
            room,
            text,
        })
    });
    each.collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or("");
        if path.is_dir() && name != "target" {
            collect(&path, paths)?;
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "test")
    })
}

fn test_modules(file: &syn::File) -> Vec<(usize, usize)> {
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if is_for_tests(&module.attrs) => Some(module.span()),
        _ => None,
    });
    modules.map(|it| (it.start().line, it.end().line)).collect()
}

impl Source {
    /// Whether all of it is for tests: by its name, or its folder.
    #[must_use]
    pub fn is_test(&self) -> bool {
        let name = self.path.to_str().unwrap_or("");
        let file = name.rsplit('/').next().unwrap_or(name);
        self.room.is_none()
            || self.room.as_deref() == Some("testkit")
            || file.ends_with("_tests.rs")
            || ["tests.rs", "fuzz.rs"].contains(&file)
            || name.contains("/tests/")
    }

    /// Whether it holds rows of a table of `api`.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.room.as_deref() == Some("api")
            && (self.path.iter()).any(|it| TABLES.iter().any(|name| it == *name))
    }

    /// Lines that hold code that is not for tests: no blank ones, no comments.
    #[must_use]
    pub fn code_lines(&self) -> usize {
        let is_test = |line: usize| {
            let within = |it: &&(usize, usize)| it.0 <= line && line <= it.1;
            self.test_lines.iter().find(within).is_some()
        };
        let lines = self.text.lines().zip(1..);
        let code = lines.filter(|(line, number)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("//") && !is_test(*number)
        });
        code.count()
    }
}
