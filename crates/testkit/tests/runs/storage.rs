//! What a run and the cache are on disk: how much, whose, and what stands in the place of their files.

use lockstep_testkit::{Recipe, Recording, Scratch, command, lockstep, record};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            _ => vec![entry.path()],
        })
        .collect()
}

fn plans(run: &Path) -> Vec<PathBuf> {
    files(&run.join("plans"))
}

fn bytes(paths: &[PathBuf]) -> u64 {
    paths.iter().flat_map(fs::metadata).map(|it| it.len()).sum()
}

fn leaf_calls() -> PathBuf {
    Recipe::new("c/leaf_calls.c").flag("-O0").build()
}

/// What `record` says of a program that works: its run is whole, and its main program's functions have names.
fn is_recorded(run: &Recording) {
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let calls = run.json(&["calls"]);
    let functions = calls["functions"].as_array().expect("functions");
    assert!(functions.iter().any(|it| it["name"] == "main"), "{calls:#}");
}

#[test]
fn a_run_holds_what_its_own_programs_need() {
    let scratch = Scratch::new("own-plans");
    // The same command, as far as the cache knows, with libraries and without.
    let large = ["sh", "-c", "python3 -c pass || perl -e 1"];
    let run = record(&scratch, &["--images", "all"], &large);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let run = record(&scratch, &["--images", "all"], &["sh", "-c", "exit 0"]);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let found = plans(&run.directory);
    // sh, libc, the linker, libgcc_s.
    assert!((1..8).contains(&found.len()), "{found:?}");
    assert!(bytes(&found) < 4 << 20, "{}", bytes(&found));
    for plan in &found {
        assert_eq!(fs::metadata(plan).expect("a plan").nlink(), 1, "{plan:?}");
    }
    // A copy elsewhere says the same.
    let program = leaf_calls();
    let run = record(&scratch, &[], &[program.as_os_str()]);
    is_recorded(&run);
    let copy = scratch.join("copy");
    let copied = command::run(
        std::process::Command::new("cp")
            .arg("-r")
            .arg(&run.directory)
            .arg(&copy),
    );
    assert_eq!(copied.status, 0);
    for words in [
        &["info", "--json"][..],
        &["calls", "--json"],
        &["tree", "-t", "0.0"],
    ] {
        let told = |directory: &Path| {
            let outcome = command::run(lockstep(words).arg(directory));
            assert_eq!(outcome.status, 0, "{outcome:#?}");
            outcome.stdout
        };
        assert_eq!(told(&run.directory), told(&copy));
    }
}

#[test]
fn a_process_that_lives_longer_than_its_recorder_has_its_plans() {
    let scratch = Scratch::new("outlives");
    let program = leaf_calls();
    // The child starts the program again when the recorder is gone.
    let script = format!(
        "{0}; (while [ ! -e go ]; do sleep 0.05; done; {0}; : >done) >/dev/null 2>&1 & exit 0",
        program.display()
    );
    let directory = scratch.join("run");
    let mut recorder = lockstep(&["record", "-o"]);
    recorder
        .arg(&directory)
        .args(["--", "sh", "-c", &script])
        .current_dir(scratch.path());
    assert_eq!(command::run(&mut recorder).status, 0);
    fs::write(scratch.join("go"), "").expect("scratch");
    let patience = std::time::Instant::now();
    while !scratch.join("done").exists() && patience.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let outcome = command::run(lockstep(&["info", "--json", "--all-processes"]).arg(&directory));
    let info: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let programs = info["processes"].as_array().expect("processes").iter();
    let name = program.file_name().and_then(OsStr::to_str).expect("a name");
    let recorded = programs.filter(|it| {
        let is_it = it["program"]
            .as_str()
            .is_some_and(|path| path.ends_with(name));
        is_it && it["functions"]["traced"].as_u64() > Some(0)
    });
    assert_eq!(recorded.count(), 2, "{info:#}");
}

#[test]
fn runs_are_closed_to_others_unless_asked_otherwise() {
    let scratch = Scratch::new("modes");
    let program = leaf_calls();
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    for (options, expected) in [(&[][..], 0o700), (&["--mode", "0755"], 0o755)] {
        let run = record(&scratch, options, &[program.as_os_str()]);
        is_recorded(&run);
        for part in ["", "processes", "plans", "ends"] {
            assert_eq!(mode(&run.directory.join(part)), expected, "{part}");
        }
    }
    // One that was there, and empty.
    let given = scratch.join("given");
    fs::create_dir(&given).expect("scratch");
    fs::set_permissions(&given, fs::Permissions::from_mode(0o777)).expect("scratch");
    let mut recorder = lockstep(&["record", "-o"]);
    assert_eq!(
        command::run(recorder.arg(&given).arg("--").arg(&program)).status,
        0
    );
    assert_eq!(mode(&given), 0o700);
    let wrong = command::run(lockstep(&["record", "--mode", "0655", "--"]).arg(&program));
    assert_eq!(wrong.status, 125, "{wrong:#?}");
}

/// Records with a cache of one's own, whose one entry for the program is what `plant` makes of it.
fn with_planted(scratch: &Scratch, plant: &dyn Fn(&Path)) -> Recording {
    let (program, cache) = (leaf_calls(), scratch.join("cache"));
    let _ = fs::remove_dir_all(&cache);
    let directory = scratch.join("planted");
    let _ = fs::remove_dir_all(&directory);
    let record = || {
        let mut recorder = lockstep(&["record", "--force", "-o"]);
        recorder.arg(&directory).arg("--").arg(&program);
        command::run(recorder.env("XDG_CACHE_HOME", &cache))
    };
    assert_eq!(record().status, 0);
    let entries = files(&cache);
    assert!(!entries.is_empty());
    for entry in entries {
        plant(&entry);
    }
    let outcome = record();
    Recording { directory, outcome }
}

#[test]
fn what_stands_in_the_place_of_a_cache_entry_is_not_used() {
    let scratch = Scratch::new("planted");
    let victim = scratch.join("victim");
    fs::write(&victim, "of great value").expect("scratch");
    type Plant<'a> = (&'a str, &'a dyn Fn(&Path));
    let plants: [Plant<'_>; 4] = [
        ("link", &|entry| {
            fs::remove_file(entry).expect("an entry");
            symlink(&victim, entry).expect("a link");
        }),
        ("pipe", &|entry| {
            fs::remove_file(entry).expect("an entry");
            let made = command::run(std::process::Command::new("mkfifo").arg(entry));
            assert_eq!(made.status, 0);
        }),
        ("writable", &|entry| {
            fs::set_permissions(entry, fs::Permissions::from_mode(0o666)).expect("an entry");
        }),
        ("damaged", &|entry| {
            fs::write(entry, b"LSPLAN").expect("an entry")
        }),
    ];
    for (name, plant) in plants {
        let run = with_planted(&scratch, plant);
        is_recorded(&run);
        assert_eq!(
            fs::read(&victim).expect("still there"),
            b"of great value",
            "{name}"
        );
    }
}

/// Whether this user may become another one.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

#[test]
fn a_cache_or_a_directory_of_another_user_is_not_used() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("foreign");
    let foreign =
        |path: &Path| std::os::unix::fs::chown(path, Some(12_345), None).expect("root may");
    let run = with_planted(&scratch, &|entry| foreign(entry));
    is_recorded(&run);
    // Entries that were made instead are this user's.
    let cache = scratch.join("cache");
    let plans = files(&cache);
    assert!(
        plans
            .iter()
            .any(|it| fs::metadata(it).is_ok_and(|it| it.uid() == 0)),
        "{plans:?}"
    );

    let program = leaf_calls();
    let given = scratch.join("of-another");
    fs::create_dir(&given).expect("scratch");
    foreign(&given);
    let refused = command::run(
        lockstep(&["record", "-o"])
            .arg(&given)
            .arg("--")
            .arg(&program),
    );
    assert_eq!(refused.status, 125, "{refused:#?}");
    assert!(refused.stderr.contains("user 12345"), "{refused:#?}");
    assert_eq!(files(&given), Vec::<PathBuf>::new());
}

#[test]
fn another_users_plans_in_a_run_are_made_anew() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("foreign-plans");
    let program = leaf_calls();
    let twice = format!("{0}; sleep 0.4; {0}", program.display());
    let directory = scratch.join("run");
    let mut recorder = lockstep(&["record", "-o"]);
    recorder.arg(&directory).args(["--", "sh", "-c", &twice]);
    let running = command::Running::start(&mut recorder);
    // Between the two: whoever owned a plan could have the program do anything.
    std::thread::sleep(Duration::from_millis(300));
    for plan in plans(&directory) {
        let bytes = fs::read(&plan).unwrap_or_default();
        let _ = fs::remove_file(&plan);
        let _ = fs::write(&plan, bytes);
        let _ = std::os::unix::fs::chown(&plan, Some(12_345), None);
    }
    let outcome = running.wait(Duration::from_secs(60));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let info = command::run(lockstep(&["info", "--json", "--all-processes"]).arg(&directory));
    let info: serde_json::Value = serde_json::from_str(&info.stdout).expect("JSON");
    let processes = info["processes"].as_array().expect("processes").iter();
    let name = program.file_name().and_then(OsStr::to_str).expect("a name");
    let recorded = processes.filter(|it| {
        let is_it = it["program"]
            .as_str()
            .is_some_and(|path| path.ends_with(name));
        is_it && it["functions"]["traced"].as_u64() > Some(0)
    });
    assert_eq!(recorded.count(), 2, "{info:#}");
}

#[test]
fn what_stands_in_the_place_of_a_runs_file_is_not_written() {
    let scratch = Scratch::new("links-in-run");
    let program = leaf_calls();
    let victim = scratch.join("victim");
    fs::write(&victim, "of great value").expect("scratch");
    let run = record(&scratch, &[], &[program.as_os_str()]);
    is_recorded(&run);
    // Sealing writes beside the process files.
    symlink(&victim, run.directory.join("sealed.lockstep.tmp")).expect("a link");
    let sealed = command::run(lockstep(&["seal"]).arg(&run.directory));
    assert_eq!(sealed.status, 0, "{sealed:#?}");
    assert_eq!(fs::read(&victim).expect("still there"), b"of great value");
    assert_eq!(
        run.json(&["info"])["processes"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn old_runs_are_pruned_and_nothing_else() {
    let scratch = Scratch::new("prune");
    let runs = scratch.join("runs");
    fs::create_dir_all(runs.join("no-run")).expect("scratch");
    fs::write(runs.join("no-run/notes"), "mine").expect("scratch");
    let program = leaf_calls();
    let directories: Vec<PathBuf> = ["a", "b", "c"].iter().map(|name| runs.join(name)).collect();
    for (directory, age) in directories.iter().zip([90, 40, 0]) {
        let mut recorder = lockstep(&["record", "-o"]);
        assert_eq!(
            command::run(recorder.arg(directory).arg("--").arg(&program)).status,
            0
        );
        let marker = directory.join("lockstep.json");
        let text = fs::read_to_string(&marker).expect("a marker");
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let started = value["started"].as_u64().expect("a time");
        value["started"] = (started - age * 86_400).into();
        fs::write(&marker, value.to_string()).expect("a marker");
    }
    let prune = |words: &[&str]| {
        let outcome = command::run(lockstep(&["runs", "prune"]).args(words).arg(&runs));
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let value: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        value["removed"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(prune(&["--json", "--older", "30d", "--dry-run"]), 2);
    assert!(directories.iter().all(|it| it.exists()));
    assert_eq!(prune(&["--json", "--older", "60d"]), 1);
    assert!(!directories[0].exists() && directories[1].exists());
    // One that is being written stays, however old it says that it is.
    let held = std::process::id();
    let marker = directories[1].join("lockstep.json");
    let text = fs::read_to_string(&marker).expect("a marker");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let name = value["recorder"].as_str().expect("a recorder").to_owned();
    let host = name.rsplitn(3, '-').nth(2).expect("a host");
    let stat = fs::read_to_string(format!("/proc/{held}/stat")).expect("this process");
    let start = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(19));
    value["recorder"] = format!("{host}-{held}-{}", start.expect("a start")).into();
    fs::write(&marker, value.to_string()).expect("a marker");
    assert_eq!(prune(&["--json", "--max", "0"]), 1);
    assert!(directories[1].exists() && !directories[2].exists());
    assert!(runs.join("no-run/notes").exists());
    let neither = command::run(lockstep(&["runs", "prune"]).arg(&runs));
    assert_eq!(neither.status, 2);
}
