//! The page in a real browser: it parses, shows its parts, and can be looked at.

mod fixture;

use lockstep_report::{Page, RunPart};
use lockstep_testkit::{Scratch, command, tools};
use lockstep_trace::TraceName;
use std::path::Path;

fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| tools::find(name).is_some());
    if found.is_none() {
        tools::skip("no Chromium");
    }
    found
}

/// Runs the browser on `page` with `options`; its standard output.
fn browse(browser: &str, scratch: &Scratch, page: &Path, options: &[&str]) -> String {
    let profile = scratch.join("profile");
    let mut run = command::command(&[browser]);
    run.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ])
    .arg(format!("--user-data-dir={}", profile.display()))
    .args(options)
    .arg(format!("file://{}", page.display()));
    command::run(&mut run).success().stdout
}

fn page(analysed: &fixture::Analysed) -> String {
    let parts = ["normal", "faulty"]
        .into_iter()
        .enumerate()
        .map(|(index, label)| RunPart {
            label,
            run: &analysed.runs[index],
            loops: Some(&analysed.loops[index]),
            similarity: None,
            lattice: Some(&analysed.lattices[index]),
        });
    let page = Page {
        title: "healthy and swapped".to_owned(),
        runs: parts.collect(),
        comparison: Some(&analysed.comparison),
        diffs: vec![fixture::diff(&analysed.runs)],
        trees: vec![fixture::tree(&analysed.runs[1], TraceName::new(5, 0))],
    };
    page.html()
}

#[test]
fn the_parts_are_on_the_page_and_it_can_be_seen() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new("report");
    let file = scratch.join("report.html");
    std::fs::write(&file, page(&fixture::analysed(16))).expect("a page can be written");

    let dom = browse(browser, &scratch, &file, &["--dump-dom"]);
    for part in [
        "id=\"similarity\"",
        "id=\"clusters\"",
        "id=\"lattice\"",
        "id=\"suspects\"",
        "id=\"diffs\"",
        "id=\"loops\"",
        "id=\"trees\"",
        "class=\"heat difference\"",
    ] {
        assert!(dom.contains(part), "{part} is not on the page");
    }
    assert_eq!(dom.matches("<svg class=\"heat").count(), 3);
    assert_eq!(dom.matches("<svg class=\"dendrogram").count(), 3);
    assert_eq!(dom.matches("<svg class=\"lattice").count(), 2);

    // Wide, narrow, dark: kept beside the build for a look where the variable names a directory.
    let pictures =
        std::env::var_os("LOCKSTEP_PICTURES").map_or_else(|| scratch.path().to_owned(), Into::into);
    for (name, options) in [
        ("wide", &["--window-size=1280,3200"][..]),
        ("narrow", &["--window-size=500,4200"][..]),
        (
            "dark",
            &[
                "--window-size=1280,3200",
                "--force-dark-mode",
                "--blink-settings=preferredColorScheme=0",
            ][..],
        ),
    ] {
        let picture = pictures.join(format!("{name}.png"));
        let shot = format!("--screenshot={}", picture.display());
        let options: Vec<&str> = options.iter().copied().chain([shot.as_str()]).collect();
        browse(browser, &scratch, &file, &options);
        let bytes = std::fs::read(&picture).expect("a screenshot");
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000,
            "{name}: {} bytes",
            bytes.len()
        );
    }
}
