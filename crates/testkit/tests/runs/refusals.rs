//! What cannot be done says so: a message in one line and the status of the contract, for every bad
//! input. And what goes wrong while a program runs never stops the program.

use lockstep_testkit::command::{self, Outcome};
use lockstep_testkit::recording::{lockstep, record_command};
use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// `outcome` must have this status, no panic, and one line of stderr that holds all of `words`.
fn refused(outcome: &Outcome, status: i32, words: &[&str]) {
    assert_eq!(outcome.status, status, "{outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
    let lines: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| !line.is_empty())
        .collect();
    let right =
        |line: &&str| line.starts_with("lockstep:") && words.iter().all(|word| line.contains(word));
    assert!(
        lines.iter().any(right),
        "a line `lockstep: ...` with {words:?}: {outcome:#?}"
    );
}

fn record_words(scratch: &Scratch, words: &[&str]) -> Outcome {
    record(scratch, &[], words).outcome
}

fn calls_program() -> String {
    Recipe::new("c/leaf_calls.c")
        .flag("-O1")
        .build()
        .display()
        .to_string()
}

fn good_run(scratch: &Scratch) -> Recording {
    let recording = record(scratch, &[], &[calls_program()]);
    assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
    recording
}

#[test]
fn no_such_program() {
    let scratch = Scratch::new("no-such");
    let outcome = record_words(&scratch, &["./no-such-program"]);
    refused(&outcome, 127, &["no-such-program"]);
    let left = std::fs::read_dir(scratch.path()).expect("scratch is there");
    assert_eq!(left.count(), 0, "nothing is left behind");
    refused(
        &record_words(&scratch, &["no-such-program-on-the-path"]),
        127,
        &["no-such-program-on-the-path"],
    );
}

#[test]
fn not_executable() {
    let scratch = Scratch::new("not-executable");
    let file = scratch.join("plain.txt");
    std::fs::write(&file, "only text\n").expect("scratch");
    let path = file.display().to_string();
    refused(&record_words(&scratch, &[&path]), 126, &["plain.txt"]);
    refused(
        &record_words(&scratch, &[&scratch.path().display().to_string()]),
        126,
        &[],
    );
}

#[test]
fn a_static_program() {
    let program = Recipe::new("c/leaf_calls.c")
        .flags(&["-O1", "-static"])
        .build();
    let program = program.display().to_string();
    let scratch = Scratch::new("static");
    refused(&record_words(&scratch, &[&program]), 125, &["static"]);
    let fine = record(&scratch, &["--untraced-is-fine"], &[&program]);
    assert_eq!(fine.outcome.status, 0, "{:#?}", fine.outcome);
    assert!(fine.outcome.stdout.contains("55"), "{:#?}", fine.outcome);
}

#[test]
fn a_setuid_program() {
    let scratch = Scratch::new("setuid");
    let program = scratch.join("setuid-program");
    std::fs::copy(calls_program(), &program).expect("scratch");
    // For its own owner a setuid program is like any other: only root can make one of somebody else's.
    let foreign = std::os::unix::fs::chown(&program, Some(65534), None).is_ok();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("own file");
    if !foreign {
        tools::note("SKIPPED a_setuid_program: only root can make one that belongs to another");
        return;
    }
    let program = program.display().to_string();
    refused(&record_words(&scratch, &[&program]), 125, &["setuid"]);
    let fine = record(&scratch, &["--untraced-is-fine"], &[&program]);
    assert_eq!(fine.outcome.status, 0, "{:#?}", fine.outcome);
}

/// With capabilities of its own a program is another user's, as the dynamic loader sees it; for root, who has
/// them all, it is like any other.
#[test]
fn a_program_with_file_capabilities() {
    if !tools::require(&["setpriv"]) {
        return;
    }
    let scratch = Scratch::new("capabilities");
    let program = scratch.join("capable-program");
    std::fs::copy(calls_program(), &program).expect("scratch");
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o777)).expect("own");
    let program = program.display().to_string();
    let setcap = ["/sbin/setcap", "/usr/sbin/setcap"];
    let Some(setcap) = setcap.iter().find(|path| Path::new(path).exists()) else {
        tools::skip("setcap not installed");
        return;
    };
    let given = command::run(&mut command::command(&[setcap, "cap_net_raw+ep", &program]));
    if given.status != 0 {
        let why = "only root can give capabilities, where the file system keeps them";
        tools::note(&format!("SKIPPED a_program_with_file_capabilities: {why}"));
        return;
    }
    let nobody = |run: &str, options: &[&str]| {
        let record = record_command(&scratch.join(run), options, &[&program]);
        let words = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        let words: Vec<&str> = words.split(' ').collect();
        let mut all = command::command(&words);
        all.arg(record.get_program()).args(record.get_args());
        command::run(&mut all)
    };
    let outcome = nobody("run-a", &[]);
    if outcome.status == 126 || outcome.status == 127 {
        tools::note("SKIPPED a_program_with_file_capabilities: nobody else may read this checkout");
        return;
    }
    refused(&outcome, 125, &["capabilities"]);
    let fine = nobody("run-b", &["--untraced-is-fine"]);
    assert_eq!(fine.status, 0, "{fine:#?}");
    let root = record(&scratch, &[], &[&program]);
    assert_eq!(root.outcome.status, 0, "{:#?}", root.outcome);
    let calls = &root.json(&["calls"])["functions"];
    assert!(calls.as_array().is_some_and(|all| !all.is_empty()));
}

#[test]
fn another_machine() {
    let scratch = Scratch::new("machine");
    let program = scratch.join("for-arm");
    let mut bytes = std::fs::read(calls_program()).expect("a program");
    // The machine type, at byte 18: AArch64 instead of x86-64.
    bytes[18] = 183;
    std::fs::write(&program, bytes).expect("scratch");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("own file");
    let outcome = record_words(&scratch, &[&program.display().to_string()]);
    refused(&outcome, 125, &["x86-64"]);
}

#[test]
fn a_directory_that_cannot_be_written() {
    let scratch = Scratch::new("unwritable");
    let file = scratch.join("file");
    std::fs::write(&file, "in the way").expect("scratch");
    let below_a_file = file.join("run");
    let outcome = command::run(&mut record_command(&below_a_file, &[], &[calls_program()]));
    refused(&outcome, 125, &["file"]);
    let outcome = command::run(&mut record_command(
        Path::new("/proc/run"),
        &[],
        &[calls_program()],
    ));
    refused(&outcome, 125, &["/proc/run"]);
}

#[test]
fn a_directory_with_something_in_it() {
    let scratch = Scratch::new("occupied");
    let directory = scratch.join("thesis");
    std::fs::create_dir(&directory).expect("scratch");
    std::fs::write(directory.join("chapter.tex"), "years of work").expect("scratch");
    for options in [&[][..], &["--force"]] {
        let outcome = command::run(&mut record_command(&directory, options, &[calls_program()]));
        refused(&outcome, 125, &["thesis"]);
        assert!(directory.join("chapter.tex").exists(), "never touched");
    }
    let run = good_run(&scratch);
    let again = command::run(&mut record_command(&run.directory, &[], &[calls_program()]));
    refused(&again, 125, &[]);
    let forced = command::run(&mut record_command(
        &run.directory,
        &["--force"],
        &[calls_program()],
    ));
    assert_eq!(forced.status, 0, "{forced:#?}");
}

/// Runs `shell` with the recorder's command as `"$@"`.
/// What repeats itself compresses to nothing, and reaches no limit.
const UNCOMPRESSED: [&str; 2] = ["--codec", "none"];

fn under(shell: &str, scratch: &Scratch, words: &[String]) -> Recording {
    let directory = scratch.join("limited");
    let inner = record_command(&directory, &UNCOMPRESSED, words);
    let mut command = command::command(&["sh", "-c", shell, "sh"]);
    command.arg(inner.get_program()).args(inner.get_args());
    let outcome = command::run(&mut command);
    Recording { directory, outcome }
}

fn lost(recording: &Recording) -> u64 {
    let info = recording.json(&["info"]);
    let processes = info["processes"].as_array().cloned().unwrap_or_default();
    processes
        .iter()
        .filter_map(|process| process["events_lost"].as_u64())
        .sum()
}

fn many_calls(scratch: &Scratch) -> Vec<String> {
    let program = Recipe::new("c/ordinals.c").flag("-O2").build();
    let witness = scratch.join("witness").display().to_string();
    vec![
        program.display().to_string(),
        witness,
        "20000000".to_owned(),
    ]
}

#[test]
fn a_limit_on_file_sizes() {
    let scratch = Scratch::new("fsize");
    // In blocks of 512 bytes: 640 KiB.
    let recording = under(
        "ulimit -f 1280; exec \"$@\"",
        &scratch,
        &many_calls(&scratch),
    );
    assert_eq!(
        recording.outcome.status, 0,
        "the program runs to its end: {:#?}",
        recording.outcome
    );
    assert!(
        recording.outcome.stdout.trim().parse::<u64>().is_ok(),
        "{:#?}",
        recording.outcome
    );
    assert!(lost(&recording) > 0, "{}", recording.text(&["info"]));
}

/// Takes all room that is left.
fn fill(file: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(file).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
}

/// `info` of a run that was imported before the disk was full: files have no holes, for which there would be no room when
/// they are read.
fn imported_to_a_full_disk(scratch: &Scratch, mount: &Path) -> Outcome {
    let room = mount.join("run");
    std::fs::remove_dir_all(&room).expect("the run is removed");
    let trace = scratch.join("trace.json");
    let call = r#"{"ph":"X","name":"work","ts":1,"dur":2,"pid":1,"tid":1}"#;
    std::fs::write(&trace, format!("[{call}]")).expect("scratch");
    let mut import = lockstep(&["import", "--from", "chrome"]);
    let import = import.arg(&trace).arg("-o").arg(&room);
    let _ = command::run(import).success();
    fill(&mount.join("rest"));
    command::run(lockstep(&["info"]).arg(&room))
}

/// A child without a file of its own tells by its parent's what it lost, and why.
#[test]
fn a_child_that_can_make_no_file() {
    let scratch = Scratch::new("no-file");
    let program = Recipe::new("c/forks_without_file.c").flag("-O1").build();
    let cases = [
        ("size", "file size limit"),
        ("files", "no file to write to"),
    ];
    for (limit, reason) in cases {
        let words = [program.as_os_str(), limit.as_ref()];
        let recording = record(&scratch, &[], &words);
        assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
        assert!(recording.outcome.stdout.ends_with("6\n"), "{recording:#?}");
        let info = recording.json(&["info"]);
        let losses = info["processes"][0]["losses"].clone();
        assert_eq!(losses[0]["reason"], reason, "{info:#}");
        // Those of step, and perhaps what the libraries do.
        assert!(losses[0]["events"].as_u64() >= Some(5), "{info:#}");
        assert_eq!(losses.as_array().map(Vec::len), Some(1), "{info:#}");
    }
}

/// Where the recorder itself may write no file, it says so; it is not ended by a signal.
#[test]
fn a_limit_below_every_file() {
    let scratch = Scratch::new("fsize-0");
    let program = [calls_program()];
    let refusal = under("ulimit -f 0; exec \"$@\"", &scratch, &program);
    refused(
        &refusal.outcome,
        125,
        &["cannot be written", "file too large"],
    );
    assert!(!refusal.directory.exists(), "nothing is left behind");
    // The program has the signal as it is everywhere.
    let shell = "ulimit -f 2; exec \"$@\"";
    let large = scratch.join("large").display().to_string();
    let write = r#"head -c 100000 /dev/zero > "$0"; echo $?"#;
    let words = ["sh", "-c", write, &large].map(str::to_owned);
    let mut plain = command::command(&["sh", "-c", shell, "sh"]);
    let plain = command::run(plain.args(&words));
    let recorded = under(shell, &scratch, &words).outcome;
    assert_eq!(plain.stdout, recorded.stdout, "{plain:#?} {recorded:#?}");
}

/// A small stack is the program's: neither the recorder around it nor what makes its plans dies of it.
#[test]
fn a_small_stack() {
    let scratch = Scratch::new("small-stack");
    let shell = "ulimit -s 64; exec \"$@\"";
    let program = calls_program();
    let around = under(shell, &scratch, std::slice::from_ref(&program));
    let words = ["sh", "-c", shell, "sh", &program].map(str::to_owned);
    let inside = record(&scratch, &[], &words);
    for recording in [around, inside] {
        assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
        let told = recording.outcome.stderr.contains("overflow");
        assert!(!told, "{:#?}", recording.outcome);
        let info = recording.json(&["info"]);
        let process = &info["processes"][0];
        assert_eq!(
            process["untraced_images"],
            serde_json::json!([]),
            "{info:#}"
        );
        assert!(
            process["threads"][0]["events"].as_u64() > Some(0),
            "{info:#}"
        );
    }
}

#[test]
fn a_full_disk() {
    let scratch = Scratch::new("full");
    let mount = scratch.join("small");
    std::fs::create_dir(&mount).expect("scratch");
    let mut tmpfs = command::command(&["mount", "-t", "tmpfs", "-o", "size=1m", "none"]);
    if command::run(tmpfs.arg(&mount)).status != 0 {
        tools::note("SKIPPED a_full_disk: only root can make a small disk");
        return;
    }
    let directory = mount.join("run");
    let words = many_calls(&scratch);
    let outcome = command::run(&mut record_command(&directory, &UNCOMPRESSED, &words));
    let recording = Recording { directory, outcome };
    let ended = recording.outcome.clone();
    let missing = if ended.status == 0 {
        lost(&recording)
    } else {
        0
    };
    let imported = imported_to_a_full_disk(&scratch, &mount);
    // Where no run can begin, nothing of it stays.
    fill(&mount.join("fill"));
    let late = mount.join("late");
    let refusal = command::run(&mut record_command(&late, &[], &[calls_program()]));
    let is_left = late.exists();
    let _ = command::run(command::command(&["umount"]).arg(&mount));
    assert_eq!(ended.status, 0, "the program runs to its end: {ended:#?}");
    assert!(ended.stdout.trim().parse::<u64>().is_ok(), "{ended:#?}");
    assert!(missing > 0, "losses are counted: {ended:#?}");
    refused(&refusal, 125, &["cannot be written", "no space left"]);
    assert!(!is_left, "nothing is left behind");
    let imported = imported.success();
    assert!(imported.stdout.starts_with("1 process"), "{imported:#?}");
}

#[test]
fn a_run_of_another_version() {
    let scratch = Scratch::new("version");
    let run = good_run(&scratch);
    let marker = run.directory.join("lockstep.json");
    let text = std::fs::read_to_string(&marker).expect("a run has a marker");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("the marker is JSON");
    value["version"] = 999.into();
    std::fs::write(&marker, value.to_string()).expect("scratch");
    for subcommand in ["info", "loops", "calls", "similarity"] {
        let mut command = lockstep(&[subcommand]);
        let outcome = command::run(command.arg(&run.directory));
        refused(&outcome, 2, &["999"]);
    }
}

#[test]
fn no_run_at_all() {
    let scratch = Scratch::new("no-run");
    for subcommand in [
        "info",
        "events",
        "tree",
        "calls",
        "stack",
        "loops",
        "lattice",
        "similarity",
    ] {
        let mut command = lockstep(&[subcommand]);
        command.arg(scratch.path());
        if ["events", "tree", "stack"].contains(&subcommand) {
            command.args(["-t", "0.0"]);
        }
        let outcome = command::run(&mut command);
        refused(&outcome, 2, &[]);
    }
    let missing = scratch.join("missing").display().to_string();
    refused(
        &command::run(&mut lockstep(&["info", &missing])),
        2,
        &["missing"],
    );
    refused(
        &command::run(&mut lockstep(&["compare", &missing, &missing])),
        2,
        &["missing"],
    );
}

#[test]
fn a_regular_expression_that_does_not_parse_or_matches_nothing() {
    let scratch = Scratch::new("regex");
    let run = good_run(&scratch);
    let directory = run.directory.display().to_string();
    let custom = |regex: &str| {
        let words = ["loops", &directory, "--filter", "custom", "--custom", regex];
        command::run(&mut lockstep(&words))
    };
    refused(&custom("["), 2, &["["]);
    refused(
        &custom("^nothing_is_called_this$"),
        2,
        &["nothing_is_called_this"],
    );
    let ignore = ["compare", &directory, &directory, "--ignore", "("];
    refused(&command::run(&mut lockstep(&ignore)), 2, &["("]);
}

#[test]
fn a_trace_that_does_not_exist() {
    let scratch = Scratch::new("trace");
    let run = good_run(&scratch);
    let directory = run.directory.display().to_string();
    for subcommand in ["events", "tree", "stack"] {
        let outcome = command::run(&mut lockstep(&[subcommand, &directory, "-t", "7.3"]));
        refused(&outcome, 2, &["7.3"]);
    }
    let outcome = command::run(&mut lockstep(&["events", &directory, "-t", "seven"]));
    refused(&outcome, 2, &["seven"]);
}

#[test]
fn a_hostile_run_directory() {
    let scratch = Scratch::new("hostile");
    let secret = scratch.join("secret");
    std::fs::write(&secret, "never shown").expect("scratch");
    let cut = |name: &str, spoil: &dyn Fn(&Path)| {
        let run = good_run(&scratch);
        spoil(&run.directory);
        for subcommand in ["info", "loops", "calls"] {
            let outcome = command::run(lockstep(&[subcommand]).arg(&run.directory));
            assert!([0, 2].contains(&outcome.status), "{name}: {outcome:#?}");
            assert!(!outcome.stderr.contains("panicked"), "{name}: {outcome:#?}");
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(
                !said.contains("never shown"),
                "{name}: followed a link: {said}"
            );
        }
    };
    let all = |directory: &Path, part: &str| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(directory.join(part)).expect("a part of a run");
        entries.flatten().map(|entry| entry.path()).collect()
    };
    for part in ["processes", "plans"] {
        cut("empty", &|run| {
            for file in all(run, part) {
                std::fs::write(file, b"").expect("scratch");
            }
        });
        cut("noise", &|run| {
            for file in all(run, part) {
                std::fs::write(file, [0xff; 70_000]).expect("scratch");
            }
        });
        cut("half", &|run| {
            for file in all(run, part) {
                let bytes = std::fs::read(&file).expect("a file of the run");
                std::fs::write(file, &bytes[..bytes.len() / 2]).expect("scratch");
            }
        });
        cut("links", &|run| {
            for file in all(run, part) {
                std::fs::remove_file(&file).expect("scratch");
                std::os::unix::fs::symlink(&secret, &file).expect("scratch");
            }
        });
        cut("gone", &|run| {
            std::fs::remove_dir_all(run.join(part)).expect("scratch")
        });
    }
}

#[test]
fn runs_whose_ranks_do_not_match() {
    let mpi = lockstep_testkit::mpi::Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let _turn = lockstep_testkit::mpi::a_turn();
    let program = mpi.recipe("odd_even.c").flags(&["-g", "-O1"]).build();
    let scratch = Scratch::new("mismatch");
    let run = |ranks: usize| {
        let mut words = mpi.launch(ranks);
        words.push(program.display().to_string());
        record(&scratch, &[], &words)
    };
    let (four, six) = (run(4), run(6));
    let (status, result) = four.compare(&six, &[]);
    assert_eq!(status, 1, "{result}");
    let mut text = lockstep(&["compare"]);
    let outcome = command::run(text.arg(&four.directory).arg(&six.directory));
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        said.contains('4') && said.contains('5'),
        "the ranks in one run only are named: {said}"
    );
}

#[test]
fn options_that_are_not_there_yet() {
    let scratch = Scratch::new("options");
    let outcome = record(&scratch, &["--burst-buffer", "here"], &[calls_program()]).outcome;
    assert_eq!(outcome.status, 125, "{outcome:#?}");
    assert!(outcome.stderr.contains("--burst-buffer"), "{outcome:#?}");
    let help = command::run(&mut lockstep(&["record", "--help"]));
    assert!(!help.stdout.contains("--burst-buffer"), "{}", help.stdout);
}

#[test]
fn a_closed_pipe_is_silent() {
    let scratch = Scratch::new("pipe");
    let run = good_run(&scratch);
    let program = lockstep_testkit::artifacts::lockstep()
        .display()
        .to_string();
    let directory = run.directory.display().to_string();
    let line = format!("{program} events {directory} -t 0.0 | head -1");
    let outcome = command::run(&mut command::command(&["sh", "-c", &line]));
    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, ""),
        "{outcome:#?}"
    );
}
