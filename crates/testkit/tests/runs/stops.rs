//! What `record` stops is stopped: whatever it started, at any depth, also what lost its parent. A command that comes to
//! its end by itself keeps what it left in the background.

use lockstep_testkit::command::{self, Outcome, Running};
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recipe, Scratch, lockstep, record, tools};
use lockstep_trace::{EndKind, Run};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The variable that every process of a case inherits.
const MARK: &str = "STOPS_MARK";

/// A mark that no other case has.
fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

/// Processes that have the mark, by their programs' names, and that have not ended.
fn marked(mark: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let of = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let has = variables.any(|it| it == wanted.as_bytes());
        has.then(|| (pid, name.trim_end().to_owned()))
    };
    numbers.filter_map(of).collect()
}

/// Waits until so many processes of this name are there.
fn wait_for(mark: &str, name: &str, count: usize) {
    let begin = Instant::now();
    loop {
        let there = marked(mark);
        if there.iter().filter(|it| it.1 == name).count() >= count {
            return;
        }
        assert!(begin.elapsed() < command::LIMIT, "{name}: {there:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts `command`, and ends it with this signal once `count` processes `name` are there.
fn ended(mut command: Command, signal: &str, name: &str, count: usize) -> (Outcome, Duration) {
    let mark = mark();
    let running = Running::start(command.env(MARK, &mark));
    wait_for(&mark, name, count);
    let begin = Instant::now();
    let mut kill = command::command(&["kill", signal, &running.id().to_string()]);
    let _ = command::run(&mut kill).success();
    let outcome = running.wait(command::LIMIT);
    let took = begin.elapsed();
    assert_eq!(marked(&mark), [], "{command:?}");
    (outcome, took)
}

/// What a shell starts, and how many processes `sleep` there are then.
const SCRIPTS: [(&str, usize); 10] = [
    ("sleep 300; echo late", 1),
    ("sleep 300 | cat", 1),
    ("timeout 300 sleep 300; true", 1),
    ("nohup sleep 300 & wait", 1),
    ("setsid sleep 300 & wait", 1),
    ("( sleep 300 & ); sleep 300; true", 2),
    (
        "( setsid sh -c 'sleep 300 & sleep 300; true' & ); sleep 300; true",
        3,
    ),
    ("for i in 1 2 3; do sleep 300; done", 1),
    ("sleep 300 & sleep 300 & kill -STOP $!; wait", 1),
    ("f() { sleep 0.05; f & }; f; sleep 300; true", 1),
];

#[test]
fn whatever_a_shell_started_ends_with_it() {
    if !tools::require(&["bash", "timeout", "setsid"]) {
        return;
    }
    let scratch = Scratch::new("stops-shells");
    command::few_at_once(&SCRIPTS, |(script, count)| {
        let run = scratch.join(format!("run-{}", mark()));
        let words = ["bash", "-c", script];
        let (outcome, took) = ended(record_command(&run, &[], &words), "-TERM", "sleep", *count);
        assert_eq!(outcome.status, 143, "{script}: {outcome:#?}");
        assert!(took < Duration::from_secs(6), "{script}: {took:?}");
        let run = Run::open(&run).expect("a run");
        let is_running = |it: &lockstep_trace::Process| it.end.kind == EndKind::Running;
        assert!(!run.processes.iter().any(is_running), "{script}");
    });
}

/// Where the kernel names processes by numbers alone, and has none of the newer calls (Linux 4.18).
#[test]
fn on_an_old_kernel_it_ends_too() {
    if !tools::require(&["gcc", "setsid"]) {
        return;
    }
    let old = Recipe::new("c/old_kernel.c").build();
    let scratch = Scratch::new("stops-old-kernel");
    let script = "( setsid sleep 300 & ); ( trap '' TERM; exec sleep 300 ) & sleep 300; true";
    let inner = record_command(&scratch.join("run"), &[], &["sh", "-c", script]);
    let command = command::behind(vec![old.display().to_string()], &inner);
    let (outcome, took) = ended(command, "-TERM", "sleep", 3);
    assert_eq!(outcome.status, 143, "{outcome:#?}");
    let seconds = took.as_secs();
    assert!((5..12).contains(&seconds), "{took:?}: {outcome:#?}");
}

#[test]
fn what_was_there_before_stays() {
    let scratch = Scratch::new("stops-before");
    let mark = mark();
    let inner = record_command(&scratch.join("run"), &[], &["sh", "-c", "sleep 300 & wait"]);
    let mut words = vec!["sh".to_owned(), "-c".to_owned()];
    words.push("sleep 300 > /dev/null 2>&1 & exec \"$@\"".to_owned());
    words.push("sh".to_owned());
    let running = Running::start(command::behind(words, &inner).env(MARK, &mark));
    wait_for(&mark, "sleep", 2);
    assert_eq!(running.stop().status, 143);
    let left = marked(&mark);
    assert_eq!(left.len(), 1, "{left:?}");
    let number = left[0].0.to_string();
    let _ = command::run(&mut command::command(&["kill", "-KILL", &number])).success();
}

#[test]
fn after_an_interrupt_the_command_is_waited_for_and_the_rest_ends() {
    let scratch = Scratch::new("stops-interrupt");
    let script = "trap 'sleep 0.2; exit 3' INT; setsid sleep 300 & sleep 300 & wait";
    let inner = record_command(&scratch.join("run"), &[], &["sh", "-c", script]);
    // Shells ignore the signal in what they start in the background: these tests, say.
    let words = ["env", "--default-signal=INT"].map(str::to_owned);
    let command = command::behind(words.to_vec(), &inner);
    let (outcome, took) = ended(command, "-INT", "sleep", 2);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[test]
fn who_ignores_the_request_is_killed() {
    let scratch = Scratch::new("stops-stubborn");
    let script = "( trap '' TERM; exec sleep 300 ) & ( sleep 300 & ) ; wait";
    let command = record_command(&scratch.join("run"), &[], &["sh", "-c", script]);
    let (outcome, took) = ended(command, "-TERM", "sleep", 2);
    assert_eq!(outcome.status, 143, "{outcome:#?}");
    let seconds = took.as_secs();
    assert!((5..12).contains(&seconds), "{took:?}: {outcome:#?}");
}

#[test]
fn who_is_not_recorded_ends_too_and_so_does_what_a_fault_was_put_into() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("stops-others");
    let program = Recipe::new("c/leaf_calls.c").flag("-O0").build();
    let script = format!("sleep 300 & {}; true", program.display());
    let mut faulty = lockstep(&[
        "inject",
        "--fault",
        "hang",
        "--at",
        "fibonacci#1",
        "--process",
        "*",
        "--",
        "sh",
    ]);
    faulty.args(["-c", &script]);
    let mut other = lockstep(&["record", "--untraced-is-fine", "-o"]);
    other.arg(scratch.join("run")).arg("--");
    other.arg(Recipe::new("c/family.c").flag("-static").build());
    other.arg("leaves");
    for (command, name, count) in [(faulty, "leaf_calls", 1), (other, "family", 2)] {
        let (outcome, took) = ended(command, "-TERM", name, count);
        assert_eq!(outcome.status, 143, "{outcome:#?}");
        assert!(took < Duration::from_secs(6), "{took:?}: {outcome:#?}");
    }
}

/// Stops a command that hangs; how long that took, and what was said.
fn stopped(scratch: &Scratch, script: &str) -> Outcome {
    let mark = mark();
    let options = ["--hang", "1", "--on-hang", "stop"];
    let directory = scratch.join(format!("run-{mark}"));
    let mut command = record_command(&directory, &options, &["bash", "-c", script]);
    let outcome = command::run(command.env(MARK, &mark));
    assert_eq!(marked(&mark), [], "{script}: {outcome:#?}");
    assert_eq!(outcome.status, 1, "{script}: {outcome:#?}");
    assert!(
        !outcome.timed_out && !outcome.stdout.contains("late"),
        "{script}: {outcome:#?}"
    );
    outcome
}

#[test]
fn a_hang_in_a_script_is_stopped_as_a_whole() {
    if !tools::require(&["gcc", "bash", "timeout"]) {
        return;
    }
    let scratch = Scratch::new("stops-hangs");
    let program = Recipe::new("c/family.c").build();
    let program = program.display();
    let scripts = [
        format!("{program} stands; echo late"),
        format!("timeout 300 {program} stands | tee /dev/null; echo late"),
        format!("trap 'echo ended' TERM; {program} stands; {program} stands"),
        format!("{program} stubborn; echo late"),
    ];
    command::few_at_once(&scripts, |script| {
        let _ = stopped(&scratch, script);
    });
}

#[test]
fn a_job_in_a_script_is_stopped_with_its_ranks() {
    let scratch = Scratch::new("stops-jobs");
    let _turn = a_turn();
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let words = mpi.words("standstill.c", 4, "heads").join(" ");
        for script in [
            format!("{words}; echo late"),
            format!("( {words} & ); sleep 300; echo late"),
        ] {
            let outcome = stopped(&scratch, &script);
            assert!(
                outcome.stderr.contains("deadlock: "),
                "{mpi:?}: {outcome:#?}"
            );
        }
    }
}

#[test]
fn children_are_the_programs_own_and_nobody_elses() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("stops-family");
    let program = Recipe::new("c/family.c").build();
    for (mode, says) in [("waits", "1 1\n"), ("adopts", "2 1\n")] {
        let mut plain = command::command(&[&program]);
        assert_eq!(command::run(plain.arg(mode)).success().stdout, says);
        let words = [program.display().to_string(), mode.to_owned()];
        let recorded = record(&scratch, &[], &words).outcome.success();
        assert_eq!(recorded.stdout, says, "{mode}");
    }
}

#[test]
fn what_a_command_leaves_in_the_background_stays_when_nobody_stops_it() {
    let scratch = Scratch::new("stops-background");
    let mark = mark();
    let words = ["sh", "-c", "setsid sleep 300 > /dev/null 2>&1 & true"];
    let mut command = record_command(&scratch.join("run"), &[], &words);
    let _ = command::run(command.env(MARK, &mark)).success();
    wait_for(&mark, "sleep", 1);
    for (pid, _) in marked(&mark) {
        let _ = command::run(&mut command::command(&["kill", "-KILL", &pid.to_string()]));
    }
}
