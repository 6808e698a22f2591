//! Reads a report of Go's race detector.

use crate::tree::Place;
use serde::Serialize;

/// One of the two accesses of a data race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// `write`, `read`, `atomic write`: the detector's word.
    pub kind: String,
    /// The runtime's number of the goroutine; 1 for the main one.
    pub goroutine: Option<u64>,
    /// Its innermost frame that is no part of Go itself, or the innermost.
    pub place: Option<Place>,
}

/// The accesses in a report: two, unless it is cut short.
pub fn accesses(report: &str) -> Vec<Access> {
    let mut found: Vec<Access> = Vec::new();
    let mut taken = false;
    let mut certain = false;
    for line in report.lines() {
        let text = line.trim();
        if let Some((kind, rest)) = header(text) {
            let goroutine = rest.split("goroutine ").nth(1).map_or_else(
                || rest.contains("main goroutine").then_some(1),
                |it| it.trim_end_matches(':').parse().ok(),
            );
            found.push(Access {
                kind,
                goroutine,
                place: None,
            });
            (taken, certain) = (true, false);
        } else if text.starts_with("Goroutine ") || text.starts_with("===") {
            taken = false;
        } else if taken
            && !certain
            && let Some(place) = frame(text)
            && let Some(access) = found.last_mut()
        {
            certain = !is_of_go(&place.file);
            if certain || access.place.is_none() {
                access.place = Some(place);
            }
        }
    }
    found
}

/// `Previous write at 0x00c000012345 by goroutine 7:`
fn header(line: &str) -> Option<(String, &str)> {
    let (before, rest) = line.split_once(" at 0x")?;
    let kind = before.trim_start_matches("Previous ").to_lowercase();
    let known = kind.ends_with("read") || kind.ends_with("write");
    (known && rest.contains(" by ")).then_some((kind, rest))
}

/// `/src/x.go:12 +0x44`
fn frame(line: &str) -> Option<Place> {
    let path = line.split_once(" +0x").map_or(line, |it| it.0);
    let (file, number) = path.rsplit_once(':')?;
    let line = number.parse().ok()?;
    file.ends_with(".go").then(|| Place {
        file: file.to_owned(),
        line,
    })
}

fn is_of_go(file: &str) -> bool {
    [
        "/src/runtime/",
        "/src/sync/",
        "/src/internal/",
        "/src/reflect/",
        "/src/sort/",
    ]
    .iter()
    .any(|it| file.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_accesses_are_read_with_the_program_s_own_line() {
        let report = "\
WARNING: DATA RACE
Write at 0x00c00009c018 by goroutine 8:
  runtime.mapassign_faststr()
      /usr/local/go/src/runtime/map_faststr.go:202 +0x0
  zoo.(*cache).put()
      /zoo/cache/kernel_test.go:14 +0x44

Previous read at 0x00c00009c018 by main goroutine:
  zoo.main()
      /zoo/cache/kernel_test.go:20 +0x9c

Goroutine 8 (running) created at:
  zoo.main()
      /zoo/cache/kernel_test.go:18 +0x7a
==================";
        let found = accesses(report);
        let lines: Vec<_> = found
            .iter()
            .map(|it| {
                let line = it.place.as_ref().map(|it| it.line);
                (it.kind.as_str(), it.goroutine, line)
            })
            .collect();
        assert_eq!(
            lines,
            [("write", Some(8), Some(14)), ("read", Some(1), Some(20))]
        );
    }

    #[test]
    fn what_is_no_report_has_no_accesses() {
        assert_eq!(accesses("PASS\nok x 0.1s\nat 0x12 by"), []);
    }
}
