//! `ARCHITECTURE.md` says how the house is built; here cargo says how it is.

use lockstep_testkit::command;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates that stand outside the house: they may use anything.
const OUTSIDE: [&str; 5] = ["testkit", "bench", "fuzz", "rules", "xtask"];

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn document() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md")
}

/// The lines `3  record → format, binary` of the document, with their levels.
fn written() -> (Arrows, BTreeMap<String, u32>) {
    let (mut arrows, mut levels) = (Arrows::new(), BTreeMap::new());
    for line in document().lines() {
        let Some((level, rest)) = line.split_once("  ") else {
            continue;
        };
        let Ok(level) = level.parse::<u32>() else {
            continue;
        };
        let (name, uses) = rest.split_once(" → ").unwrap_or((rest, ""));
        let uses = uses
            .split(", ")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        arrows.insert(name.trim().to_owned(), uses);
        levels.insert(name.trim().to_owned(), level);
    }
    (arrows, levels)
}

/// The arrows that cargo builds, and those of tests only.
fn built() -> (Arrows, Arrows) {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut metadata = command::command(&[
        cargo.as_str(),
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let text = command::run(metadata.current_dir(root())).success().stdout;
    let metadata: Value = serde_json::from_str(&text).expect("metadata is JSON");
    // The binary's package has the project's own name.
    let short = |name: &str| {
        if name == "lockstep" {
            "cli".to_owned()
        } else {
            name.trim_start_matches("lockstep-").to_owned()
        }
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let (mut arrows, mut of_tests) = (Arrows::new(), Arrows::new());
    for package in packages {
        let name = short(package["name"].as_str().expect("a name"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = dependency["name"].as_str().expect("a name");
            let kind = if dependency["kind"] == "dev" {
                &mut of_tests
            } else {
                &mut arrows
            };
            let uses = kind.entry(name.clone()).or_default();
            if ours.contains(other) {
                uses.insert(short(other));
            }
        }
        arrows.entry(name).or_default();
    }
    (arrows, of_tests)
}

#[test]
fn the_arrows_are_those_of_the_document() {
    let (mut arrows, _) = built();
    arrows.retain(|name, _| !OUTSIDE.contains(&name.as_str()));
    assert_eq!(written().0, arrows);
}

#[test]
fn arrows_run_upwards_only() {
    let (arrows, levels) = written();
    for (name, uses) in &arrows {
        for other in uses {
            assert!(levels[other] < levels[name], "{name} uses {other}");
        }
    }
}

#[test]
fn the_probe_is_nobodys_dependency_and_testkit_only_of_tests() {
    let (arrows, of_tests) = built();
    for (name, uses) in arrows.iter().chain(&of_tests) {
        assert!(!uses.contains("probe"), "{name} depends on the probe");
    }
    for (name, uses) in &arrows {
        assert!(
            !uses.contains("testkit") || OUTSIDE.contains(&name.as_str()),
            "{name} ships testkit"
        );
    }
}

#[test]
fn every_room_is_described() {
    let document = document();
    for name in built().0.keys() {
        let named =
            document.contains(&format!("`{name}`")) || document.contains(&format!("`{name}/`"));
        assert!(named, "{name} is not in ARCHITECTURE.md");
    }
}

#[test]
fn the_launchers_of_the_limits_are_those_of_the_code() {
    let limits = std::fs::read_to_string(root().join("docs/limits.md")).expect("docs/limits.md");
    for launcher in lockstep_format::launcher::LAUNCHERS {
        let tokens: Vec<String> = launcher
            .token
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let row = format!(
            "| {} | `{}` | `{}` | {} |",
            launcher.name,
            launcher.rank,
            launcher.size,
            tokens.join(", ")
        );
        assert!(limits.contains(&row), "docs/limits.md lacks {row}");
    }
}

/// Every Markdown file of the repository, as path and text.
fn documents() -> Vec<(std::path::PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                let text = std::fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn links_between_documents_lead_somewhere() {
    for (path, text) in documents() {
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let there = path.parent().expect("a directory").join(file).exists();
            assert!(there, "{}: {target} does not exist", path.display());
        }
    }
}

#[test]
fn tests_that_the_papers_page_names_exist() {
    let papers = std::fs::read_to_string(root().join("docs/papers.md")).expect("docs/papers.md");
    let mut sources = String::new();
    let mut files = BTreeSet::new();
    let mut open = vec![root().join("crates")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else if entry.path().extension().is_some_and(|it| it == "rs") {
                sources.push_str(&std::fs::read_to_string(entry.path()).expect("text"));
                files.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    for name in papers.split('`').skip(1).step_by(2) {
        let is_test = name.matches('_').count() >= 2
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        assert!(
            !is_test || sources.contains(&format!("fn {name}(")),
            "no test {name}"
        );
        assert!(
            !name.ends_with(".rs") || files.contains(name),
            "no file {name}"
        );
    }
}
