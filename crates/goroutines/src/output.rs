//! What a Go program's own output says of its end.

use crate::execution::{End, FatalIn, Output};
use crate::tree::Place;

/// The status of a program that the runtime ended.
const CRASHED: i32 = 2;

/// Reads the text that a program printed before it ended so.
#[must_use]
pub fn read(text: &str, end: &End) -> Output {
    let crashed = matches!(end, End::Exited(CRASHED) | End::Signalled(_));
    let fatal = text
        .lines()
        .find(|line| is_fatal(line))
        .filter(|_| crashed)
        .map(|line| line.trim_end().to_owned());
    let mut failed_tests: Vec<String> = Vec::new();
    for line in text.lines() {
        // Whatever a test printed without a newline stands before it.
        let name = line
            .find("--- FAIL: ")
            .and_then(|at| line[at..].split(' ').nth(2));
        if let Some(name) = name
            && !failed_tests.iter().any(|it| it == name)
        {
            failed_tests.push(name.to_owned());
        }
    }
    let failures = match failed_tests.is_empty() {
        true => Vec::new(),
        false => failures(text),
    };
    Output {
        races: races(text),
        fatal_in: fatal.as_ref().and_then(|_| fatal_in(text)),
        fatal,
        failed_tests,
        failures,
        own: Vec::new(),
    }
}

/// Lines of a message that has none on its own line, at most.
const MOST_LINES: usize = 3;

/// What failed tests said, each with its place, in one line. A message that begins with a line break (those of testify)
/// stands on the lines below, which are indented further.
fn failures(text: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(mut said) = failure(line) else {
            continue;
        };
        if said.ends_with(": ") {
            let below = lines[at + 1..].iter().map_while(|it| {
                let is_of_it = indent(it) > indent(line) && failure(it).is_none();
                is_of_it.then(|| it.trim())
            });
            said.push_str(&message(&below.collect::<Vec<_>>()));
        }
        found.push(said);
    }
    found
}

/// The first lines of a message; of one with labels (`Error Trace:`, `Error:`, `Test:`), those of its error.
fn message(lines: &[&str]) -> String {
    let label = |it: &&str| {
        let (label, rest) = it.split_once(':').unwrap_or((it, ""));
        let is_label = rest.trim_start_matches(' ').starts_with('\t');
        is_label.then(|| label.to_owned())
    };
    let error = lines
        .iter()
        .position(|it| label(it).as_deref() == Some("Error"));
    let from = error.unwrap_or(0);
    let wanted = lines[from..]
        .iter()
        .enumerate()
        .take_while(|(at, it)| error.is_none() || *at == 0 || label(it).is_none());
    let words = wanted.map(|(_, it)| match error {
        Some(_) => it.strip_prefix("Error:").unwrap_or(it),
        None => it,
    });
    let words = words.filter(|it| !it.trim().is_empty()).take(MOST_LINES);
    let words: Vec<&str> = words.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// `    x_test.go:31: no result`, as the testing package prints what a test logs.
fn failure(line: &str) -> Option<String> {
    let said = line.trim_start();
    let (file, rest) = said.split_once(".go:")?;
    let number = rest.split_once(": ")?.0;
    let is_place = !file.contains(char::is_whitespace) && number.parse::<u32>().is_ok();
    let is_ours = !said.ends_with("race detected during execution of test");
    (is_place && is_ours && said.len() < line.len()).then(|| said.to_owned())
}

fn is_fatal(line: &str) -> bool {
    ["panic: ", "fatal error: ", "runtime: ", "SIG"]
        .iter()
        .any(|it| line.starts_with(it))
        && (!line.starts_with("SIG") || line.contains(": "))
        && (!line.starts_with("runtime: ") || line.contains("goroutine stack exceeds"))
}

/// The first goroutine that ran below the fatal message, and its first frame outside the runtime.
fn fatal_in(text: &str) -> Option<FatalIn> {
    let mut lines = text.lines().skip_while(|it| !is_fatal(it));
    let goroutine = lines.find_map(|it| {
        let (number, state) = it.strip_prefix("goroutine ")?.split_once(" [")?;
        // `gp=0x... m=0 mp=0x...` may stand between the two.
        let number = number.split(' ').next()?.parse().ok()?;
        state.starts_with("running").then_some(number)
    })?;
    let stack: Vec<&str> = lines.take_while(|it| !it.is_empty()).collect();
    let is_inside = |function: &str| {
        let inside = ["runtime.", "internal/", "sync.", "panic("];
        inside.iter().any(|it| function.starts_with(it))
    };
    let place = stack.chunks_exact(2).find_map(|frame| {
        let &[function, at] = frame else {
            return None;
        };
        let (file, rest) = at.trim_start().rsplit_once(".go:")?;
        let line = rest.split(' ').next()?.parse().ok()?;
        let file = format!("{file}.go");
        (!is_inside(function)).then_some(Place { file, line })
    });
    Some(FatalIn { goroutine, place })
}

/// The race detector's reports, between their rules.
fn races(text: &str) -> Vec<String> {
    const RULE: &str = "==================";
    let mut found = Vec::new();
    let mut report: Option<String> = None;
    for line in text.lines() {
        if line == RULE {
            found.extend(
                report
                    .take()
                    .filter(|it| it.starts_with("WARNING: DATA RACE")),
            );
            report = Some(String::new());
        } else if let Some(report) = &mut report {
            report.push_str(line);
            report.push('\n');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_end_only_where_the_runtime_ended_the_program() {
        let text = "panic: broken\n\ngoroutine 1 [running]:\n";
        assert_eq!(
            read(text, &End::Exited(2)).fatal.as_deref(),
            Some("panic: broken")
        );
        assert_eq!(read(text, &End::Exited(0)).fatal, None);
    }

    #[test]
    fn a_fatal_error_has_a_goroutine_and_a_place() {
        let text = "12\nfatal error: concurrent map writes\n\ngoroutine 15 [running]:\n\
            internal/runtime/maps.fatal({0x4e232a?, 0x0?})\n\t/go/src/runtime/panic.go:1184 +0x18\n\
            main.main.func2()\n\t/app/main file.go:29 +0x2c\ncreated by main.main in goroutine 1\n\
            \t/app/main.go:27 +0x27c\n\ngoroutine 1 [select (no cases)]:\n";
        let stood = read(text, &End::Exited(2)).fatal_in.map(|it| {
            let place = it.place.map(|it| (it.file, it.line));
            (it.goroutine, place)
        });
        assert_eq!(
            stood,
            Some((15, Some(("/app/main file.go".to_owned(), 29))))
        );
        assert_eq!(read("fatal error: x\n", &End::Exited(2)).fatal_in, None);
    }

    #[test]
    fn failed_tests_and_races() {
        let text = "==================\nWARNING: DATA RACE\nRead at\n==================\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\n";
        let output = read(text, &End::Exited(1));
        assert_eq!(output.failed_tests, ["TestA", "TestA/b"]);
        assert_eq!(output.races, ["WARNING: DATA RACE\nRead at\n"]);
        assert_eq!(output.failures, [] as [&str; 0]);
    }

    #[test]
    fn a_message_may_begin_on_the_next_line() {
        let text = "\
--- FAIL: TestA (0.00s)
    a_test.go:31: 
        \tError Trace:\t/src/a_test.go:31
        \tError:      \tNot equal: 
        \t            \texpected: 1
        \t            \tactual  : 2
        \tTest:       \tTestA
    b_test.go:4: 
        first
        second
    c_test.go:5: last
FAIL
";
        let said = [
            "a_test.go:31: Not equal: expected: 1 actual : 2",
            "b_test.go:4: first second",
            "c_test.go:5: last",
        ];
        assert_eq!(read(text, &End::Exited(1)).failures, said);
    }

    #[test]
    fn what_a_failing_test_said() {
        let text =
            "--- FAIL: TestA (0.00s)\n    a_test.go:31: no result\n    see b.go: there\nFAIL\n";
        let said = ["a_test.go:31: no result"];
        assert_eq!(read(text, &End::Exited(1)).failures, said);
        assert_eq!(
            read("    a_test.go:31: fine\nPASS\n", &End::Exited(0)).failures,
            [] as [&str; 0]
        );
    }
}
