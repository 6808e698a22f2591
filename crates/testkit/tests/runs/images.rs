//! Libraries: their own functions, those that are loaded later, and that nobody notices.

use lockstep_testkit::command::{self, Outcome};
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ALL: &[&str] = &["--images", "all"];

fn plugin() -> PathBuf {
    Recipe::new("c/plugin.c")
        .flags(&["-O1", "-shared", "-fPIC"])
        .build()
}

/// Runs the command as it is.
fn plain(words: &[&str]) -> Outcome {
    command::run(&mut command::command(words))
}

/// Records the command; it must do what it does unrecorded.
fn unharmed(scratch: &Scratch, options: &[&str], words: &[&str]) -> Recording {
    let expected = plain(words);
    let run = record(scratch, options, words);
    assert_eq!(run.outcome.stdout, expected.stdout, "{words:?}");
    assert_eq!(run.outcome.status, expected.status, "{words:?}");
    run
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

fn events(run: &Recording) -> Vec<String> {
    let events = run.text(&["events", "-t", "0.0"]);
    events.lines().map(str::to_owned).collect()
}

/// Numbers of calls by name, of names that `chosen` accepts.
fn calls(run: &Recording, chosen: impl Fn(&str) -> bool) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for line in events(run) {
        if let Some(name) = line.strip_prefix("call ").filter(|name| chosen(name)) {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

#[test]
fn a_library_that_is_loaded_is_recorded_from_its_constructor_on() {
    let scratch = Scratch::new("images-constructor");
    let (program, plugin) = (Recipe::new("c/loads.c").flag("-O1").build(), plugin());
    let words = [text(&program), text(&plugin), "2"];
    let run = unharmed(&scratch, &["--images", "plugin"], &words);
    let events = events(&run);
    let begin = events.iter().position(|event| event == "call dlopen");
    let expected = [
        "call dlopen",
        "return",
        "call plugin_begin",
        "call plugin_setup",
        "call plugin_helper",
    ];
    let found = &events[begin.expect("dlopen is called")..];
    let calls = |events: &[String]| -> Vec<String> {
        let is_call = |event: &&String| event.starts_with("call");
        events.iter().filter(is_call).cloned().collect()
    };
    let expected: Vec<String> = expected.map(str::to_owned).into();
    assert_eq!(calls(found)[..4], calls(&expected)[..], "{found:#?}");
    let end = events.iter().rposition(|event| event == "call dlclose");
    let behind = &events[end.expect("dlclose is called")..];
    assert!(
        behind.contains(&"call plugin_end".to_owned()),
        "{behind:#?}"
    );
}

/// What a library calls is recorded as what the main program calls, and once where it calls what is
/// recorded itself.
#[test]
fn calls_of_a_library_into_others_are_recorded() {
    let scratch = Scratch::new("images-calls");
    let plugin = plugin();
    let (loads, words) = (Recipe::new("c/loads.c").flag("-O1").build(), ["3"]);
    let words = [&[text(&loads), text(&plugin)][..], &words].concat();
    for options in [
        &["--images", "plugin"][..],
        &["--images", "plugin", "--images", r"libc\.so"],
    ] {
        let run = unharmed(&scratch, options, &words);
        let found = calls(&run, |name| ["plugin_work", "getppid"].contains(&name));
        let expected = [("getppid".to_owned(), 3), ("plugin_work".to_owned(), 3)];
        assert_eq!(found, BTreeMap::from(expected), "{options:?}");
    }
}

/// As a program in an interpreter has it: the main program knows nothing of MPI.
#[test]
fn mpi_that_is_loaded_late_is_recorded_with_its_arguments() {
    let _turn = a_turn();
    let scratch = Scratch::new("images-late-mpi");
    let program = Recipe::new("c/runs_library.c").build();
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let source = mpi.recipe("odd_even.c");
        let library = source.flags(&["-O1", "-shared", "-fPIC"]).build();
        let mut words = mpi.launch(4);
        words.extend([&program, &library].map(|path| text(path).to_owned()));
        // Nobody need know which library it is.
        for options in [&["--images", "odd_even"][..], &[]] {
            let run = record(&scratch, options, &words);
            assert_eq!(run.outcome.status, 0, "{run:#?}");
            assert!(run.outcome.stdout.contains("sorted"), "{run:#?}");
            let sent = "call MPI_Send(buf=.., count=64, datatype=MPI_INT, dest=0, tag=1, comm=MPI_COMM_WORLD)";
            let events = run.text(&["events", "-t", "1.0", "--arguments"]);
            assert_eq!(events.matches(sent).count(), 2, "{mpi:?}: {events}");
        }
    }
}

/// A program that leaves its communication to a library, which has no line numbers.
fn uses_halo(mpi: Mpi) -> PathBuf {
    let library = mpi.recipe("library_halo.c").shared().flag("-O1");
    let built = library.build();
    let folder = text(built.parent().expect("it lies in a folder")).to_owned();
    let program = mpi.recipe("uses_halo.c").flags(&["-O1", "-g"]);
    let link = [format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
    let link = [&link[0], &link[1], &format!("-l{}", library.library_name())];
    program.flags(&link.map(String::as_str)).build()
}

#[test]
fn calls_of_mpi_that_a_library_makes_are_recorded_with_who_makes_them() {
    let _turn = a_turn();
    let scratch = Scratch::new("images-mpi-library");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = uses_halo(mpi);
        let mut words = mpi.launch(4);
        words.push(text(&program).to_owned());
        let ours = |name: &str| name.starts_with("MPI_") || name.starts_with("halo_");
        let healthy = record(&scratch, &[], &words);
        assert_eq!(healthy.outcome.stdout.trim(), "10", "{healthy:#?}");
        let found = calls(&healthy, |name| {
            ours(name) || ["give", "take"].contains(&name)
        });
        let expected = [
            ("MPI_Allreduce", 10),
            ("MPI_Comm_dup", 1),
            ("MPI_Comm_free", 1),
            ("MPI_Comm_rank", 11),
            ("MPI_Comm_size", 10),
            ("MPI_Finalize", 1),
            ("MPI_Init", 1),
            ("MPI_Recv", 10),
            ("MPI_Send", 10),
            ("give", 10),
            ("halo_begin", 1),
            ("halo_end", 1),
            ("halo_exchange", 10),
            ("take", 10),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(found, BTreeMap::from(expected), "{mpi:?}");
        words.push("2".to_owned());
        let options = ["--hang", "5", "--on-hang", "stop"];
        let run = record(&scratch, &options, &words);
        let said = run.text(&["progress"]);
        for part in [
            "deadlock: ",
            "rank 3 waits in MPI_Recv in take(), under halo_exchange() called at uses_halo.c:13",
            "for a message from rank 2 with tag 3",
            "rank 2 left out MPI_Send in give()",
        ] {
            assert!(said.contains(part), "{mpi:?}, {part}: {said}");
        }
        assert!(run.outcome.stderr.contains("rank 2 left out"), "{run:#?}");
    }
}

#[test]
fn a_fault_is_put_into_calls_of_mpi_that_a_library_makes() {
    let _turn = a_turn();
    let scratch = Scratch::new("images-mpi-fault");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = uses_halo(mpi);
        for place in ["MPI_Send#6", "halo_exchange#6"] {
            let directory = scratch.join(format!("{mpi:?}-{place}"));
            for more in [&["-o", text(&directory)][..], &[]] {
                let mut words = mpi.launch(4);
                words.push(text(&program).to_owned());
                let fault = ["inject", "--fault", "delay", "--seconds", "0.1"];
                let at = ["--at", place, "--process", "2"];
                let mut inject = lockstep(&[&fault[..], &at, more, &["--"]].concat());
                let outcome = command::run(inject.args(&words));
                assert_eq!(outcome.stdout.trim(), "10", "{outcome:#?}");
                let said = outcome.stderr.contains("the fault happened");
                assert!(said, "{place}, {more:?}: {outcome:#?}");
            }
        }
    }
}

/// MPICH's Fortran interface, and the component of Open MPI that opens files, call MPI by the names that programs use.
#[test]
fn calls_of_an_mpi_library_s_own_parts_are_none_of_the_program_s() {
    let _turn = a_turn();
    let scratch = Scratch::new("images-mpi-parts");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("ring.f90").build();
        let mut words = mpi.launch(4);
        words.push(text(&program).to_owned());
        let run = record(&scratch, &[], &words);
        assert_eq!(run.outcome.status, 0, "{run:#?}");
        let nested = |name: &str| name.starts_with("MPI_") || name.starts_with("PMPI_");
        assert_eq!(calls(&run, nested), BTreeMap::new(), "{mpi:?}");
        let program = mpi.recipe("file.c").build();
        let mut words = ["env", "OMPI_MCA_io=romio321"].map(str::to_owned).to_vec();
        words.extend(mpi.launch(4));
        words.extend([&program, &scratch.join("written")].map(|it| text(it).to_owned()));
        let run = record(&scratch, &[], &words);
        assert_eq!(run.outcome.status, 0, "{run:#?}");
        let expected = ["Comm_rank", "File_close", "File_open", "File_write_all"];
        let expected = expected.into_iter().chain(["Finalize", "Init"]);
        let expected = expected.map(|name| (format!("MPI_{name}"), 1)).collect();
        assert_eq!(calls(&run, nested), expected, "{mpi:?}");
    }
}

#[test]
fn a_thousand_times_in_one_place_or_another_and_in_a_namespace_of_its_own() {
    let scratch = Scratch::new("images-loop");
    let (program, plugin) = (Recipe::new("c/loads.c").flag("-O1").build(), plugin());
    for (times, how) in [(1000, ""), (1000, "moved"), (12, "apart"), (200, "beside")] {
        let number = times.to_string();
        let mut words = vec![text(&program), text(&plugin), &number];
        if !how.is_empty() {
            words.push(how);
        }
        let run = unharmed(&scratch, ALL, &words);
        let said = &run.outcome.stdout;
        assert!(
            said.contains("no more mappings, 0 signals, no child"),
            "{how}: {said}"
        );
        let works = calls(&run, |name| name == "plugin_work");
        assert_eq!(works.get("plugin_work"), Some(&times), "{how}");
        let begins = calls(&run, |name| name == "plugin_begin");
        assert_eq!(begins.get("plugin_begin"), Some(&times), "{how}");
    }
}

/// What one run asked for is there when the next one begins: it needs no planner.
#[test]
fn the_second_run_finds_its_plans() {
    let scratch = Scratch::new("images-ahead");
    let (program, plugin) = (Recipe::new("c/loads.c").flag("-O1").build(), plugin());
    let program = [text(&program), text(&plugin), "1"];
    let plugin_calls = |planner: &str| {
        let words = [&["env", planner][..], &program].concat();
        let run = record(&scratch, &["--images", "plugin"], &words);
        let processes = &run.json(&["info"])["processes"];
        let events = run.text(&["events", "-t", "0.0"]);
        let calls = events.matches("call plugin_").count();
        assert_eq!(run.outcome.status, 0, "{processes:#}");
        calls
    };
    let first = plugin_calls("NOTHING=1");
    assert!(first > 0);
    assert_eq!(plugin_calls("LOCKSTEP_PLANNER=/nowhere"), first);
}

#[test]
fn what_matches_nothing_is_said_and_harms_nobody() {
    let scratch = Scratch::new("images-nothing");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let run = unharmed(&scratch, &["--images", "libnothing"], &[text(&program)]);
    let said = "--images 'libnothing': no image of the run matches";
    assert!(run.outcome.stderr.contains(said), "{}", run.outcome.stderr);
}

#[test]
fn calls_have_one_name_and_one_count_in_both_modes() {
    let scratch = Scratch::new("images-counts");
    let program = Recipe::new("c/callbacks.c").flag("-O1").build();
    let words = [text(&program)];
    let main = unharmed(&scratch, &[], &words);
    let all = unharmed(&scratch, ALL, &words);
    let own = calls(&main, |_| true);
    let more = calls(&all, |name| own.contains_key(name));
    for (name, count) in &own {
        assert!(
            more.get(name) >= Some(count),
            "{name}: {count}, then {more:?}"
        );
    }
}

#[test]
fn programs_with_hazards_are_unharmed_with_all_images() {
    let scratch = Scratch::new("images-hazards");
    let recipes = [
        Recipe::new("c/callbacks.c"),
        Recipe::new("c/cancel.c").flag("-pthread"),
        Recipe::new("c/contexts.c"),
        Recipe::new("c/fork.c"),
        Recipe::new("c/longjmp.c"),
        Recipe::new("c/pthread_exit.c").flag("-pthread"),
        Recipe::new("c/rtld_next.c"),
        Recipe::new("c/short_threads.c").flag("-pthread"),
        Recipe::new("c/sigaltstack.c"),
        Recipe::new("c/vfork.c"),
        Recipe::new("cpp/throw.cpp"),
        Recipe::new("cpp/throw_through_qsort.cpp"),
        Recipe::new("cpp/throwing_threads.cpp").flag("-pthread"),
        Recipe::new("cpp/uncaught.cpp"),
    ];
    for recipe in recipes {
        let program = recipe.flag("-O1").build();
        let _ = unharmed(&scratch, ALL, &[text(&program)]);
    }
}

#[test]
fn programs_of_the_distribution_are_unharmed_with_all_images() {
    let scratch = Scratch::new("images-distribution");
    let python = "import subprocess, threading, json, re\n\
        t = [threading.Thread(target=lambda: json.dumps(list(range(999)))) for _ in range(8)]\n\
        [x.start() for x in t]; [x.join() for x in t]\n\
        print(subprocess.check_output(['/bin/echo', 'x']), re.sub('a+', 'b', 'caat'))\n\
        try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(e)\nraise SystemExit(3)";
    let commands: [&[&str]; 7] = [
        &["/usr/bin/python3", "-c", python],
        &[
            "bash",
            "-c",
            "x=$(echo a | tr a b); trap 'echo end' EXIT; (exit 4); echo $x $?",
        ],
        &[
            "perl",
            "-e",
            "my %h = map { $_ => 1 } 1 .. 999; print scalar(keys %h), `echo x`; exit 5",
        ],
        &["git", "--version"],
        &["gdb", "--version"],
        &["gcc", "-x", "c", "-O2", "-S", "-o", "-", "/dev/null"],
        &["tar", "-cf", "-", "/etc/hostname"],
    ];
    for words in commands {
        if words[0].starts_with('/') || tools::require(&words[..1]) {
            let _ = unharmed(&scratch, ALL, words);
        }
    }
}

#[test]
fn mpi_calls_have_one_name_and_one_count_in_both_modes() {
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let _turn = a_turn();
        let scratch = Scratch::new("images-mpi");
        let program = mpi.recipe("gather.c").flag("-O1").build();
        let count = |options: &[&str]| {
            let mut words = mpi.launch(4);
            words.push(text(&program).to_owned());
            let run = record(&scratch, options, &words);
            assert_eq!(run.outcome.status, 0, "{}", run.outcome.stderr);
            calls(&run, |name| name.starts_with("MPI_"))
        };
        let main = count(&[]);
        assert!(main.contains_key("MPI_Init"), "{main:?}");
        let mut all = count(ALL);
        // What the library calls by itself has no counterpart.
        all.retain(|name, _| main.contains_key(name));
        assert_eq!(main, all, "{mpi:?}");
    }
}

#[test]
fn code_that_a_program_makes_is_said() {
    let scratch = Scratch::new("images-made-code");
    let program = Recipe::new("c/made_code.c").flag("-O1").build();
    let run = unharmed(&scratch, &[], &[text(&program)]);
    let said = "code that the program makes as it runs is not recorded (4096 bytes at the end)";
    assert!(
        run.text(&["info"]).contains(said),
        "{}",
        run.text(&["info"])
    );
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let run = unharmed(&scratch, ALL, &[text(&program)]);
    assert!(!run.text(&["info"]).contains("makes as it runs"));
}

#[test]
fn a_stripped_program_has_the_names_that_are_compressed_in_it() {
    if !tools::require(&["objcopy", "strip", "xz"]) {
        return;
    }
    let scratch = Scratch::new("images-names");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let (symbols, stripped) = (scratch.join("symbols"), scratch.join("stripped"));
    let named = scratch.join("named");
    let run = |words: &[&str]| {
        let _ = command::run(&mut command::command(words)).success();
    };
    run(&[
        "objcopy",
        "--only-keep-debug",
        text(&program),
        text(&symbols),
    ]);
    run(&["strip", "-o", text(&stripped), text(&program)]);
    run(&["xz", text(&symbols)]);
    let section = format!(".gnu_debugdata={}.xz", text(&symbols));
    run(&[
        "objcopy",
        "--add-section",
        &section,
        text(&stripped),
        text(&named),
    ]);
    let full = unharmed(&scratch, &[], &[text(&program)]);
    let named = unharmed(&scratch, &[], &[text(&named)]);
    assert!(events(&full) == events(&named));
    let stripped = unharmed(&scratch, &[], &[text(&stripped)]);
    assert!(events(&full) != events(&stripped));
}
