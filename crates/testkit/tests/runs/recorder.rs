//! What the recorder and the probe do where the surroundings are unusual: paths with spaces, signals
//! for the program, policies against new code, a run that is removed, storms of signals.

use lockstep_testkit::{Recipe, Scratch, artifacts, command, lockstep, record, recording, tools};
use lockstep_trace::{EndKind, Run};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Own words of the recorder are not the program's.
fn lost(run: &Run) -> u64 {
    let processes = run.processes.iter();
    processes
        .flat_map(|process| &process.losses)
        .map(|loss| loss.1)
        .sum()
}

fn calls(run: &Run, name: &str) -> u64 {
    let threads = run.processes.iter().flat_map(|process| &process.threads);
    threads
        .flat_map(|thread| thread.events().collect::<Vec<_>>())
        .filter(|event| {
            matches!(event, lockstep_trace::Event::Call(id) if run.function(*id).linkage == name)
        })
        .count() as u64
}

/// No damage, and no open call but those of `still_open`.
fn whole(run: &Run, still_open: &[&str]) {
    for thread in run.processes.iter().flat_map(|process| &process.threads) {
        assert_eq!(thread.damage, None, "{}", thread.name);
        for frame in &thread.open {
            let name = &run.function(frame.function).linkage;
            assert!(
                still_open.contains(&name.as_str()),
                "{}: {name} is open",
                thread.name
            );
        }
    }
}

#[test]
fn paths_with_spaces_and_colons() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("a path: with $ignificant characters");
    let place = scratch.join("bin");
    std::fs::create_dir_all(&place).expect("scratch can be written");
    std::fs::copy(artifacts::lockstep(), place.join("lockstep")).expect("a copy");
    let program = scratch.join("my program");
    let recipe = Recipe::new("c/leaf_calls.c").flag("-O0");
    std::fs::copy(recipe.build(), &program).expect("a copy");
    let directory = scratch.join("my run");
    let mut recorder = command::command(&[place.join("lockstep")]);
    recorder
        .args(["record", "-o"])
        .arg(&directory)
        .arg("--")
        .arg(&program);
    let outcome = command::run(&mut recorder);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let run = Run::open(&directory).expect("a run");
    assert_eq!(calls(&run, "fibonacci"), 177);
    whole(&run, &[]);
}

#[test]
fn signals_are_passed_on_and_the_status_is_the_programs() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("signals-passed-on");
    let directory = scratch.join("run");
    let mut recorder = lockstep(&["record", "-o"]);
    recorder
        .arg(&directory)
        .arg("--")
        .arg(Recipe::new("c/told_to_end.c").build());
    let mut recorder = recorder
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("lockstep starts");
    let mut ready = [0; 6];
    let mut output = recorder.stdout.take().expect("its output is a pipe");
    output.read_exact(&mut ready).expect("the program prints");
    let mut kill = command::command(&["kill", "-TERM", &recorder.id().to_string()]);
    let _ = command::run(&mut kill).success();
    let status = recorder.wait().expect("it ends");
    assert_eq!(status.code(), Some(42));
    let run = Run::open(&directory).expect("a run");
    let end = run.processes[0].end;
    assert_eq!((end.kind, end.code), (EndKind::Exited, Some(42)));
}

#[test]
fn ignored_and_blocked_signals_stay_so() {
    if !tools::require(&["env"]) {
        return;
    }
    let scratch = Scratch::new("inherited-signals");
    let status = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let given = ["env", "--ignore-signal=PIPE,HUP", "--block-signal=USR2"];
    let mut plain = command::command(&given);
    plain.args(["sh", "-c", status]);
    let plain = command::run(&mut plain).success();
    let mut recorder = command::command(&given);
    recorder.arg(artifacts::lockstep()).args(["record", "-o"]);
    recorder
        .arg(scratch.join("run"))
        .args(["--", "sh", "-c", status]);
    let recorded = command::run(&mut recorder).success();
    assert_eq!(masks(&recorded.stdout), masks(&plain.stdout));
}

/// Sets of signals without 32 and 33, which are the C library's own: it ignores them, or not, as it has begun threads.
fn masks(status: &str) -> Vec<(&str, u64)> {
    let lines = status.lines().map(|line| {
        let (name, set) = line.split_once('\t').expect("a name and a set");
        let set = u64::from_str_radix(set, 16).expect("a set");
        (name, set & !(0b11 << 31))
    });
    lines.collect()
}

#[test]
fn where_memory_that_was_written_may_not_become_executable() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("no-new-code");
    let guard = Recipe::new("c/no_new_code.c").build();
    let program = Recipe::new("c/leaf_calls.c").flag("-O0").build();
    let recording = record(&scratch, &[], &[guard, program]);
    if recording.outcome.status == 77 {
        return tools::skip("this kernel cannot forbid executable memory");
    }
    assert_eq!(recording.outcome.status, 0);
    assert!(
        recording.outcome.stdout.contains("55\n"),
        "{:#?}",
        recording.outcome
    );
    let run = Run::open(&recording.directory).expect("a run");
    let is_it = |it: &&lockstep_trace::Process| it.program.contains("leaf_calls");
    let process = run.processes.iter().find(is_it).expect("the program");
    let coverage = &process.coverage;
    assert!(coverage.untraced_images.is_empty(), "{coverage:?}");
    let events: u64 = process.threads.iter().map(|it| it.events).sum();
    assert!(events > 100, "{events}");
}

#[test]
fn a_run_that_is_removed_while_the_program_runs() {
    let scratch = Scratch::new("removed");
    let directory = scratch.join("run");
    let script = format!(
        "for i in 1 2 3; do echo $i | cat; done; rm -rf '{}'; for i in 4 5 6; do echo $i | cat; done; exit 9",
        directory.display()
    );
    let mut recorder = lockstep(&["record", "-o"]);
    recorder.arg(&directory).args(["--", "sh", "-c", &script]);
    let outcome = command::run(&mut recorder);
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (9, "1\n2\n3\n4\n5\n6\n")
    );
}

#[test]
fn storms_of_signals() {
    if !tools::require(&["gcc"]) {
        return;
    }
    for level in ["-O0", "-O2"] {
        let program = Recipe::new("c/signal_storm.c").flag(level).build();
        for kind in ["plain", "alternate", "jump"] {
            let scratch = Scratch::new("storm");
            let words = [program.as_os_str(), kind.as_ref()];
            let recording = record(&scratch, &[], &words);
            assert_eq!(
                recording.outcome.status, 0,
                "{kind}: {:#?}",
                recording.outcome
            );
            assert!(recording.outcome.stdout.ends_with("stormy\n"), "{kind}");
            let run = Run::open(&recording.directory).expect("a run");
            whole(&run, &[]);
            if kind == "jump" {
                assert!(calls(&run, "handle") + lost(&run) >= 200);
            } else {
                // A tree of depth 12 is 8,191 calls, one of depth 2 is 7: whatever is not there was counted.
                let trees = calls(&run, "leaf");
                assert!(trees + lost(&run) >= 8191, "{kind}: {trees} leaves");
            }
        }
    }
}

#[test]
fn threads_that_throw() {
    for compiler in ["g++", "clang++"] {
        if !tools::require(&[compiler]) {
            continue;
        }
        for level in ["-O0", "-O1", "-O2"] {
            let recipe = Recipe::new("cpp/throwing_threads.cpp")
                .compiler(compiler)
                .flag(level);
            let program = recipe.build();
            let plain = command::run(&mut command::command(&[&program]));
            let scratch = Scratch::new("throwing-threads");
            let recording = record(&scratch, &[], &[&program]);
            assert_eq!(
                recording.outcome.stdout,
                plain.stdout,
                "{}",
                recipe.describe()
            );
            assert_eq!(recording.outcome.status, 0);
            let run = Run::open(&recording.directory).expect("a run");
            assert_eq!(lost(&run), 0);
            whole(&run, &[]);
        }
    }
}

#[test]
fn coroutines_that_nobody_told_us_about() {
    for compiler in ["gcc", "clang"] {
        if !tools::require(&[compiler]) {
            continue;
        }
        for level in ["-O0", "-O2"] {
            let recipe = Recipe::new("c/coroutines.c").compiler(compiler).flag(level);
            let program = recipe.build();
            let plain = command::run(&mut command::command(&[&program]));
            let scratch = Scratch::new("coroutines");
            let recording = record(&scratch, &[], &[&program]);
            assert_eq!(
                (recording.outcome.status, &recording.outcome.stdout),
                (0, &plain.stdout),
                "{}",
                recipe.describe()
            );
            let run = Run::open(&recording.directory).expect("a run");
            for thread in run.processes.iter().flat_map(|process| &process.threads) {
                assert_eq!(thread.damage, None);
            }
            assert_eq!(calls(&run, "yield_now"), 4400);
        }
    }
}

/// A call of a library that computes and computes is no hang, though no event comes; one that sleeps is
/// taken for one.
#[test]
fn work_that_is_not_seen_is_no_hang() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("recorder-unseen");
    let told = |source: &str, seconds: u64| {
        let program = Recipe::new(source).flag("-O1").build();
        let directory = scratch.join(source.replace('/', "-"));
        let options = ["--hang", "1", "--on-hang", "stop"];
        let mut command = recording::record_command(&directory, &options, &[&program]);
        let mut running = command::Running::start(&mut command);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while !running.is_over() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let was_over = running.is_over();
        (was_over, running.stop().stderr)
    };
    let (stopped, said) = told("c/library_work.c", 5);
    assert!(!stopped, "{said}");
    let sentence = "nothing was recorded for 1 s: thread 0 is in crypt, a library's function";
    assert!(
        said.contains("no hang is seen") && said.contains(sentence),
        "{said}"
    );
    assert_eq!(said.matches("no hang is seen").count(), 1, "{said}");

    let (stopped, said) = told("c/told_to_end.c", 60);
    assert!(stopped && said.contains("nobody called anything"), "{said}");
}
