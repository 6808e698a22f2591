//! Programs are built with the overlay, run, and what was captured is what they did.

use lockstep_goroutines::build::Builder;
use lockstep_goroutines::capture;
use lockstep_goroutines::execution::{Action, End, Execution, State, WaitReason, What};
use lockstep_goroutines::launch::{Launch, Outcome};
use lockstep_goroutines::output;
use lockstep_goroutines::ring::{Mode, Policy, Ring, Turns};
use lockstep_goroutines::symbols::{Program, Symbols};
use lockstep_testkit::{Scratch, tools};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const QUIET: Policy = Policy {
    seed: 1,
    mode: Mode::None,
    chance: 0,
    longest: 0,
    bound: 0,
    settle: 100_000_000,
    steady: false,
    turns: Turns {
        hold: 0,
        behind: 0,
        after: 0,
        maker: 0,
        reader: 0,
        level: 0,
        opposite: false,
    },
};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/go/capture")
}

struct Built {
    _scratch: Scratch,
    file: PathBuf,
    program: Program,
    directory: PathBuf,
}

fn build_in(directory: &Path, package: &str, flags: &[&str]) -> Built {
    let scratch = Scratch::new("goroutines");
    let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
    let builder = Builder::new(directory, &flags).expect("a builder");
    assert!(builder.missing().is_empty(), "{:?}", builder.missing());
    let file = scratch.join("program");
    if package.ends_with("alone") {
        builder.test(package, &file).expect("a test binary");
    } else {
        builder.program(package, &file).expect("a program");
    }
    let program = Program::open(&file, &builder.toolchain.root, None).expect("symbols");
    Built {
        _scratch: scratch,
        file,
        program,
        directory: directory.to_owned(),
    }
}

fn build(package: &str, flags: &[&str]) -> Built {
    build_in(&sources(), package, flags)
}

impl Built {
    fn run(&self, arguments: &[&str], policy: Policy, limit: Duration) -> (Outcome, Execution) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let outcome = Launch {
            program: &self.file,
            arguments: &arguments,
            directory: &self.directory,
            classes: &self.program.classes(),
            policy,
            script: &[],
            recorded: None,
            processors: None,
            limit,
            most: 64 << 20,
            shows: false,
            interrupted: || None,
            is_over: None,
        }
        .run()
        .expect("a run");
        let ring = Ring::read(&outcome.ring).expect("a ring");
        let symbols = Symbols::of(&self.program);
        let said = output::read(&outcome.text, &outcome.end);
        let execution = capture::execution(&ring, &symbols, outcome.end.clone(), said);
        assert_eq!(execution.lost, 0);
        (outcome, execution)
    }
}

/// The usages of the program at lines with a comment, by that.
fn usages(execution: &Execution, file: &Path) -> Vec<(String, Action)> {
    let source = fs::read_to_string(file).expect("the source");
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for event in &execution.events {
        if let (What::Request { action, .. }, Some(site)) = (&event.what, event.site) {
            let site = &execution.sites[site.0 as usize];
            let line = lines.get(site.line as usize - 1).unwrap_or(&"");
            let name = line.split("// ").nth(1).unwrap_or("-");
            found.push((name.to_owned(), *action));
        }
    }
    found
}

fn check_usages(built: &Built, file: &Path) {
    let (outcome, execution) = built.run(&[], QUIET, Duration::from_secs(20));
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.text);
    assert!(execution.main_ended);
    let found = usages(&execution, file);
    for (name, action) in [
        ("embedded lock", Action::Lock),
        ("deferred unlock", Action::Unlock),
        ("method value", Action::Lock),
        ("unlock", Action::Unlock),
        ("go", Action::Go),
        ("send", Action::Send),
        ("receive", Action::Receive),
        ("buffered", Action::Send),
        ("two cases", Action::Select),
        ("default", Action::Select),
        ("close", Action::Close),
        ("range", Action::Receive),
        ("rlock", Action::RLock),
        ("runlock", Action::RUnlock),
        ("write lock", Action::Lock),
        ("tryrlock", Action::TryRLock),
        ("write unlock", Action::Unlock),
        ("locker", Action::RLock),
        ("locker unlock", Action::RUnlock),
        ("add", Action::Add),
        ("done", Action::Done),
        ("second done", Action::Done),
        ("wait", Action::Wait),
        ("once", Action::Once),
        ("signaller", Action::Go),
        ("signaller lock", Action::Lock),
        ("signal", Action::Signal),
        ("signaller unlock", Action::Unlock),
        ("cond lock", Action::Lock),
        ("cond unlock", Action::Unlock),
        ("broadcast", Action::Broadcast),
        ("trylock", Action::TryLock),
        ("sleep", Action::Sleep),
        ("cancel", Action::Go),
        ("done context", Action::Receive),
    ] {
        let count = found
            .iter()
            .filter(|it| **it == (name.to_owned(), action))
            .count();
        assert_eq!(count, 1, "{name}: {action:?} in {found:#?}");
    }
    // Each usage that began was over, but for those of a goroutine that main did not wait for.
    for id in 0..execution.goroutines.len() as u32 {
        let mut open = 0;
        for event in execution
            .events
            .iter()
            .filter(|it| it.goroutine.is_some_and(|g| g.0 == id))
        {
            match event.what {
                What::Request { .. } => open += 1,
                What::Complete { .. } => open -= 1,
                _ => {}
            }
            assert!(open >= 0);
        }
        assert!(
            open == 0 || id != 0,
            "goroutine {id} has {open} open usages"
        );
    }
    let worker = execution
        .goroutines
        .iter()
        .find(|it| it.entry.ends_with(".worker"));
    assert!(worker.is_some_and(|it| it.parent.is_some_and(|it| it.0 == 0)));
}

#[test]
fn every_kind_of_usage_is_at_its_line() {
    if !tools::require(&["go"]) {
        return;
    }
    let file = sources().join("usages/main.go");
    for flags in [
        &[][..],
        &["-trimpath"],
        &["-race"],
        &["-gcflags=-N -l"],
        &["-ldflags=-compressdwarf=false"],
    ] {
        tools::note(&format!("usages with {flags:?}"));
        check_usages(&build("./usages", flags), &file);
    }
}

#[test]
fn selects_tell_their_cases() {
    if !tools::require(&["go"]) {
        return;
    }
    let (_, execution) = build("./usages", &[]).run(&[], QUIET, Duration::from_secs(20));
    let selects: Vec<_> = execution
        .events
        .iter()
        .filter_map(|it| match &it.what {
            What::Request {
                action: Action::Select,
                cases,
                default,
                ..
            } if it.site.is_some() => Some((
                cases.iter().map(|it| it.action).collect::<Vec<_>>(),
                *default,
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        selects,
        [
            (vec![Action::Send, Action::Receive], false),
            (vec![Action::Send], true)
        ]
    );
    let taken: Vec<_> = execution
        .events
        .iter()
        .filter_map(|it| match it.what {
            What::Complete {
                action: Action::Select,
                case,
                ..
            } if it.site.is_some() => Some(case),
            _ => None,
        })
        .collect();
    assert_eq!(taken, [Some(1), None]);
}

#[test]
fn a_global_deadlock_is_told_at_once() {
    if !tools::require(&["go"]) {
        return;
    }
    let built = build("./deadlock", &[]);
    let (outcome, execution) = built.run(&[], QUIET, Duration::from_secs(20));
    assert_eq!(outcome.end, End::Quiescent);
    assert!(!execution.main_ended);
    let waiting: Vec<_> = execution
        .goroutines
        .iter()
        .filter(|it| !it.is_system)
        .collect();
    assert_eq!(waiting.len(), 2);
    for goroutine in waiting {
        assert_eq!(goroutine.state, State::Waiting(WaitReason::Mutex));
        let stack: Vec<&str> = goroutine
            .stack
            .iter()
            .map(|it| execution.sites[it.0 as usize].function.as_str())
            .collect();
        assert_eq!(stack.len(), 2, "{stack:?}");
        assert_eq!(stack[0], "sync.(*Mutex).Lock");
        assert!(stack[1].starts_with("main.main"));
    }
    // Somebody may still write to the pipe.
    let (outcome, execution) = built.run(&["pipe"], QUIET, Duration::from_secs(1));
    assert_eq!(outcome.end, End::TimedOut);
    let states: Vec<_> = execution
        .goroutines
        .iter()
        .filter(|it| !it.is_system)
        .map(|it| it.state)
        .collect();
    assert!(
        states.contains(&State::Waiting(WaitReason::Io)),
        "{states:?}"
    );
    assert!(states.contains(&State::Waiting(WaitReason::Mutex)));
}

#[test]
fn whatever_ends_the_program_loses_nothing() {
    if !tools::require(&["go"]) {
        return;
    }
    let built = build("./ends", &[]);
    for (how, end) in [
        ("exit", End::Exited(3)),
        ("panic", End::Exited(2)),
        ("fatal", End::Exited(2)),
        ("kill", End::Signalled(9)),
        ("return", End::Exited(0)),
    ] {
        let (outcome, execution) = built.run(&[how], QUIET, Duration::from_secs(20));
        assert_eq!(outcome.end, end, "{how}: {}", outcome.text);
        let count = |wanted: Action| {
            execution
                .events
                .iter()
                .filter(|it| matches!(it.what, What::Request { action, .. } if action == wanted))
                .count()
        };
        assert_eq!(count(Action::Lock), 1000, "{how}");
        assert_eq!(
            count(Action::Unlock),
            if how == "fatal" { 1001 } else { 1000 },
            "{how}"
        );
        match how {
            "panic" => assert_eq!(execution.output.fatal.as_deref(), Some("panic: broken")),
            "fatal" => assert_eq!(
                execution.output.fatal.as_deref(),
                Some("fatal error: sync: unlock of unlocked mutex")
            ),
            _ => assert_eq!(execution.output.fatal, None),
        }
    }
}

#[test]
fn leaks_are_judged_when_the_others_have_settled() {
    if !tools::require(&["go"]) {
        return;
    }
    let (_, execution) = build("./ends", &[]).run(&["leak"], QUIET, Duration::from_secs(20));
    let states: Vec<_> = execution
        .goroutines
        .iter()
        .filter(|it| !it.is_system && it.number != 1)
        .map(|it| it.state)
        .collect();
    assert_eq!(states, [State::Waiting(WaitReason::Forever), State::Ended]);
    let proven = execution.proven_leaks.expect("a look of the collector");
    let numbers: Vec<_> = proven
        .iter()
        .map(|it| execution.goroutines[it.0 as usize].entry.as_str())
        .collect();
    assert_eq!(numbers, ["main.main.func1"]);
}

#[test]
fn who_waits_for_a_finalizer_is_not_left_behind() {
    if !tools::require(&["go"]) {
        return;
    }
    let (outcome, execution) =
        build("./ends", &[]).run(&["finalizer"], QUIET, Duration::from_secs(20));
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.text);
    let waits = execution
        .goroutines
        .iter()
        .find(|it| it.entry.starts_with("main.main."))
        .expect("the goroutine");
    assert_eq!(waits.state, State::Ended);
    assert_eq!(execution.proven_leaks, Some(Vec::new()));
}

#[test]
fn a_program_that_goes_on_is_ended_at_its_limit() {
    if !tools::require(&["go"]) {
        return;
    }
    let built = build("./ends", &[]);
    let (outcome, execution) = built.run_lossy(&["spin"], Duration::from_millis(300));
    assert_eq!(outcome.end, End::TimedOut);
    assert!(execution.lost > 0);
}

impl Built {
    fn run_lossy(&self, arguments: &[&str], limit: Duration) -> (Outcome, Execution) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let outcome = Launch {
            program: &self.file,
            arguments: &arguments,
            directory: &self.directory,
            classes: &self.program.classes(),
            policy: QUIET,
            script: &[],
            recorded: None,
            processors: None,
            limit,
            most: 1 << 20,
            shows: false,
            interrupted: || None,
            is_over: None,
        }
        .run()
        .expect("a run");
        let ring = Ring::read(&outcome.ring).expect("a ring");
        let symbols = Symbols::of(&self.program);
        let said = output::read(&outcome.text, &outcome.end);
        let execution = capture::execution(&ring, &symbols, outcome.end.clone(), said);
        (outcome, execution)
    }
}

#[test]
fn a_test_is_a_goroutine() {
    if !tools::require(&["go"]) {
        return;
    }
    let built = build("./alone", &[]);
    let (outcome, execution) =
        built.run(&["-test.run=^TestLeaks$"], QUIET, Duration::from_secs(20));
    assert_eq!(outcome.end, End::Exited(0));
    assert!(execution.main_ended);
    let test = execution.test.expect("a test");
    assert_eq!(execution.goroutines[test.0 as usize].state, State::Ended);
    let leaked: Vec<_> = execution
        .goroutines
        .iter()
        .filter(|it| !it.is_system && it.state == State::Waiting(WaitReason::Send))
        .collect();
    assert_eq!(leaked.len(), 1);
    assert_eq!(leaked[0].parent, Some(test));
    assert_eq!(execution.proven_leaks.as_ref().map(Vec::len), Some(1));
    let (outcome, execution) =
        built.run(&["-test.run=^TestFails$"], QUIET, Duration::from_secs(20));
    assert_eq!(outcome.end, End::Exited(1));
    assert_eq!(execution.output.failed_tests, ["TestFails"]);
}
