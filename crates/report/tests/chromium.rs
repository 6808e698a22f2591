//! The page in a real browser: it parses, shows its parts, and can be looked at.

mod fixture;

use lockstep_compare::{Linkage, Options, Row, compare};
use lockstep_report::{Page, RunPart};
use lockstep_testkit::{Scratch, command, tools};
use lockstep_trace::TraceName;
use std::collections::BTreeSet;
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
        goroutines: None,
    };
    page.html()
}

#[test]
#[ignore = "long: a browser"]
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

/// Each choice in turn, then two at once: how many rows are seen.
const CHOOSER: &str = r#"<script>
  const seen = () => [...document.querySelectorAll(".choose tbody tr")].filter(it => it.getClientRects().length).length;
  const said = ["all " + seen()];
  const pick = input => { input.checked = true; return input.parentElement.textContent; };
  for (const set of document.querySelectorAll(".choices fieldset")) {
    const name = set.querySelector("legend").textContent;
    const inputs = [...set.querySelectorAll("input")];
    for (const input of inputs.slice(1)) said.push(name + " " + pick(input) + " " + seen());
    inputs[0].checked = true;
  }
  const both = ["filter", "linkage"].map(it => pick(document.getElementById("pick-" + it + "-0")));
  said.push("both " + both.join(" ") + " " + seen());
  document.body.innerHTML = "<pre>" + said.join("\n") + "</pre>";
</script>"#;

#[test]
#[ignore = "long: a browser"]
fn rows_of_the_ranking_follow_what_is_chosen() {
    let Some(browser) = browser() else { return };
    let analysed = fixture::analysed(8);
    let options = Options::default();
    let [normal, faulty] = &analysed.runs;
    let comparison = compare(&[normal], faulty, &options, &|_, _| ()).expect("comparable");
    let table = comparison.table.clone();
    let whole = page(&fixture::Analysed {
        comparison,
        ..analysed
    });
    // The page itself may run nothing; what asks is the test's.
    let asked = whole.replace("Content-Security-Policy", "x-policy");
    let scratch = Scratch::new("ranking");
    let file = scratch.join("report.html");
    std::fs::write(
        &file,
        asked.replace("</body>", &format!("{CHOOSER}</body>")),
    )
    .expect("a page can be written");

    let dom = browse(browser, &scratch, &file, &["--dump-dom"]);
    let said = dom.split_once("<pre>").expect("what was seen").1;
    let said: BTreeSet<&str> = said
        .split("</pre>")
        .next()
        .expect("lines")
        .lines()
        .collect();
    let mut expected = BTreeSet::from([format!("all {}", table.len())]);
    let of = |row: &Row| {
        [
            format!("Filter {}", row.filter),
            format!("Attributes {}", row.attributes),
            format!("Frequency {}", row.frequency),
            format!("Linkage {}", row.linkage),
            format!("Clusters {}", row.clusters),
        ]
    };
    for choice in table.iter().flat_map(of).collect::<BTreeSet<_>>() {
        let count = table.iter().filter(|row| of(row).contains(&choice)).count();
        expected.insert(format!("{choice} {count}"));
    }
    let filter = table.iter().map(|row| &row.filter).min().expect("a row");
    let rows = table
        .iter()
        .filter(|row| row.filter == *filter && row.linkage == Linkage::Average);
    expected.insert(format!("both {filter} average {}", rows.count()));
    assert!(table.len() > 500, "{} rows", table.len());
    assert_eq!(said, expected.iter().map(String::as_str).collect());
}
