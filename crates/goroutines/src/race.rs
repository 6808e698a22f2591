//! Reads a report of Go's race detector.

use crate::symbols::package;
use crate::tree::Place;
use serde::Serialize;

/// One of the two accesses of a data race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// `write`, `read`, `atomic write`: the detector's word.
    pub kind: String,
    /// The detector's own number of the goroutine, which is not the runtime's; 1 for the main one.
    pub goroutine: Option<u64>,
    /// Where that goroutine was made, innermost frame first; empty for the main one.
    pub created: Vec<Place>,
    /// The function of the standard library that made it, where one did.
    pub maker: Option<String>,
    /// The test whose own goroutine that is: `TestGet`, of a subtest `TestGet.func1`.
    pub test: Option<String>,
    /// The program's innermost frame; where there is none, that of the standard library; else the innermost.
    pub place: Option<Place>,
    /// Whether package `sync` made it, to have the misuse of a wait group found: `Wait` writes, `Add` from 0 reads.
    pub of_wait_group: bool,
}

/// The accesses in a report: two, unless it is cut short. `own` are packages that are known to be the program's:
/// built with `-trimpath`, those of a module whose name has no dot look like the standard library's.
pub fn accesses(report: &str, own: &[String]) -> Vec<Access> {
    let root = root_of_go(report);
    let mut found: Vec<Access> = Vec::new();
    let mut taken = false;
    let mut function = "";
    let mut best = None;
    // Whose creation is being told.
    let mut made: Option<u64> = None;
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
                created: Vec::new(),
                maker: None,
                test: None,
                place: None,
                of_wait_group: false,
            });
            (taken, function, best, made) = (true, "", None, None);
        } else if let Some(rest) = text.strip_prefix("Goroutine ") {
            let number = rest.split(' ').next().and_then(|it| it.parse().ok());
            (taken, made) = (false, number);
        } else if text.starts_with("===") {
            (taken, made) = (false, None);
        } else if made.is_some() {
            let Some(place) = frame(text) else {
                function = text.strip_suffix("()").unwrap_or(text);
                continue;
            };
            let maker = (owner(function, &place.file, root.as_deref(), own) != Owner::Program)
                .then(|| function.to_owned());
            for access in found.iter_mut().filter(|it| it.goroutine == made) {
                if access.created.is_empty() {
                    access.maker.clone_from(&maker);
                }
                access.created.push(place.clone());
            }
        } else if taken && let Some(access) = found.last_mut() {
            let Some(place) = frame(text) else {
                access.of_wait_group |= function.is_empty() && is_by_hand(text);
                if text == "testing.tRunner()" {
                    access.test = package(function)
                        .and_then(|it| function.strip_prefix(&*it)?.strip_prefix('.'))
                        .map(str::to_owned);
                }
                function = text.strip_suffix("()").unwrap_or(function);
                continue;
            };
            let owner = Some(owner(function, &place.file, root.as_deref(), own));
            if owner > best {
                best = owner;
                access.place = Some(place);
            }
        }
    }
    found
}

/// The functions that a report names.
pub(crate) fn functions(report: &str) -> impl Iterator<Item = &str> {
    let lines = report.lines().map(str::trim);
    lines.filter_map(|it| it.strip_suffix("()"))
}

/// An access that a standard package announces itself, with `internal/race`; the only one is `sync.WaitGroup`.
fn is_by_hand(function: &str) -> bool {
    matches!(function, "runtime.raceread()" | "runtime.racewrite()")
}

/// Whose code a frame is: what the program did is said in its own lines, be the access in a library's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Runtime,
    Standard,
    Program,
}

/// The folder of Go's own sources, by frames that are certainly of them: in the report of a test there are some.
fn root_of_go(report: &str) -> Option<String> {
    let lines = report.lines().map(str::trim);
    lines.clone().zip(lines.skip(1)).find_map(|(function, at)| {
        let package = package(function.strip_suffix("()")?)?;
        let file = frame(at)?.file;
        let root = file.rsplit_once('/')?.0.strip_suffix(&package)?;
        matches!(package.as_str(), "runtime" | "testing").then(|| root.to_owned())
    })
}

/// Go's own sources lie in `GOROOT/src`, or, built with `-trimpath`, at their import paths, whose first part has no dot. Nor has
/// that of some programs (`own`, where one was asked), and theirs may lie in another folder `src`.
fn owner(function: &str, file: &str, root: Option<&str>, own: &[String]) -> Owner {
    const PRIMITIVES: [&str; 5] = ["runtime", "sync", "internal", "reflect", "sort"];
    let directory = file.rsplit_once('/').map_or("", |it| it.0);
    let Some(package) = package(function) else {
        return Owner::Runtime;
    };
    if own.contains(&package) {
        return Owner::Program;
    }
    let first = package.split('/').next().unwrap_or(&package);
    let is_root = |it: &str| match root {
        Some(root) => it == root,
        None => it.is_empty() || it.ends_with("/src/"),
    };
    // The runtime's own functions may lie in packages below `internal`.
    let is_standard = package == "runtime"
        || package != "main"
            && !first.contains('.')
            && directory.strip_suffix(&package).is_some_and(is_root);
    match is_standard {
        true if PRIMITIVES.contains(&first) => Owner::Runtime,
        true => Owner::Standard,
        false => Owner::Program,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_s_own_access_names_it() {
        let report = "\
WARNING: DATA RACE
Write at 0x00c00009c018 by goroutine 8:
  example.com/m/c.(*Client).Configure()
      /m/c/c.go:7 +0x44
  example.com/m/c.TestRetry()
      /m/c/c_test.go:8 +0x44
  testing.tRunner()
      /usr/local/go/src/testing/testing.go:1934 +0x21c

Previous write at 0x00c00009c018 by goroutine 9:
  example.com/m/c.(*Client).Configure()
      /m/c/c.go:7 +0x44
  example.com/m/c.TestOnce.func1()
      /m/c/c_test.go:18 +0x44
==================";
        let found = accesses(report, &[]);
        let tests: Vec<_> = found.iter().map(|it| it.test.as_deref()).collect();
        assert_eq!(tests, [Some("TestRetry"), None]);
    }

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
        let found = accesses(report, &[]);
        let made: Vec<Vec<u32>> = found
            .iter()
            .map(|it| it.created.iter().map(|it| it.line).collect())
            .collect();
        assert_eq!(made, [vec![18], vec![]]);
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

    fn lines(report: &str) -> Vec<Option<(String, u32)>> {
        let of = |it: Access| it.place.map(|it| (it.file, it.line));
        accesses(report, &[]).into_iter().map(of).collect()
    }

    #[test]
    fn an_access_in_a_library_is_said_at_the_program_s_line() {
        let report = "\
WARNING: DATA RACE
Write at 0x00c000012345 by goroutine 8:
  bytes.(*Buffer).Write()
      /usr/local/go/src/bytes/buffer.go:194 +0x44
  io.Copy()
      /usr/local/go/src/io/io.go:388 +0x9c
  example.com/m/exec.(*Cmd).Combined.func1()
      /m/exec/exec.go:37 +0x9c

Previous write at 0x00c000012345 by goroutine 9:
  bytes.(*Buffer).Write()
      bytes/buffer.go:194 +0x44
  example.com/src/m.f()
      example.com/src/m/m.go:3 +0x44
";
        let own = [("/m/exec/exec.go", 37), ("example.com/src/m/m.go", 3)];
        assert_eq!(lines(report), own.map(|it| Some((it.0.to_owned(), it.1))));
        let standard = "\
Read at 0x00c000012345 by goroutine 8:
  runtime.mapaccess1()
      /usr/local/go/src/internal/runtime/maps/runtime.go:1 +0x44
  net/http.(*Transport).f()
      /usr/local/go/src/net/http/transport.go:2 +0x44
  testing.tRunner()
      /usr/local/go/src/testing/testing.go:3 +0x44
";
        let inner = "/usr/local/go/src/net/http/transport.go";
        assert_eq!(lines(standard), [Some((inner.to_owned(), 2))]);
    }

    #[test]
    fn a_program_may_lie_in_another_src() {
        let report = |last: &str| {
            format!(
                "\
Write at 0x00c000012345 by goroutine 8:
  bytes.(*Buffer).Write()
      /usr/local/go/src/bytes/buffer.go:194 +0x44
  {last}
"
            )
        };
        let test = "server.copies.func1()
      /home/me/src/server/server.go:37 +0x9c

Goroutine 8 (running) created at:
  testing.(*T).Run()
      /usr/local/go/src/testing/testing.go:1997 +0x9d2";
        let own = "/home/me/src/server/server.go";
        assert_eq!(lines(&report(test)), [Some((own.to_owned(), 37))]);
        let program = "main.main()\n      /home/me/src/main/main.go:5 +0x9c";
        let own = "/home/me/src/main/main.go";
        assert_eq!(lines(&report(program)), [Some((own.to_owned(), 5))]);
    }

    /// Built with `-trimpath`, a module without a dot lies where the standard library does.
    #[test]
    fn what_is_known_to_be_the_program_s_is_told_at_its_line() {
        let report = "\
Write at 0x00c000012345 by goroutine 8:
  bytes.(*Buffer).Write()
      bytes/buffer.go:194 +0x44
  server/api.(*handler).serve()
      server/api/handler.go:31 +0x9c

Goroutine 8 (running) created at:
  testing.(*T).Run()
      testing/testing.go:1997 +0x9d2
";
        let at = |own: &[String]| {
            let access = accesses(report, own).remove(0);
            access.place.map(|it| it.file)
        };
        assert_eq!(at(&[]).as_deref(), Some("bytes/buffer.go"));
        let own = ["server/api".to_owned()];
        assert_eq!(at(&own).as_deref(), Some("server/api/handler.go"));
    }

    #[test]
    fn the_misuse_of_a_wait_group_is_told_apart() {
        let report = "\
Write at 0x00c00001aa08 by goroutine 8:
  runtime.racewrite()
      <autogenerated>:1 +0x1e
  m.TestShutdown()
      /m/server_test.go:13 +0x1e4

Previous read at 0x00c00001aa08 by goroutine 9:
  m.serve()
      /m/server.go:22 +0x1e
  runtime.racewrite()
      <autogenerated>:1 +0x1e
";
        let found: Vec<bool> = accesses(report, &[])
            .iter()
            .map(|it| it.of_wait_group)
            .collect();
        assert_eq!(found, [true, false]);
    }

    #[test]
    fn what_is_no_report_has_no_accesses() {
        assert_eq!(accesses("PASS\nok x 0.1s\nat 0x12 by", &[]), []);
    }
}
