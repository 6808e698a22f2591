//! Threads that a library runs for itself keep nobody from being stuck; threads of the program that have not sent anything yet do.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recording, Scratch, artifacts, record, tools};
use std::path::PathBuf;

/// Longer than a deadlock takes to be seen, whatever else the machine does.
const OPTIONS: [&str; 4] = ["--hang", "60", "--on-hang", "stop"];

/// A program that has its own entry for `malloc`, through which its library's calls go, too.
fn program(mpi: Mpi) -> PathBuf {
    let library = mpi.recipe("bystander.c").shared().flag("-DLIBRARY");
    let built = library.build();
    let folder = built.parent().expect("it lies in a folder").display();
    let link = [
        format!("-L{folder}"),
        format!("-Wl,-rpath,{folder}"),
        format!("-l{}", library.library_name()),
    ];
    let program = mpi
        .recipe("bystander.c")
        .flags(&["-g", "-O1", "-no-pie", "-fno-pic"]);
    program.flags(&link.each_ref().map(String::as_str)).build()
}

/// It is a deadlock, and was seen as one.
fn check(recording: &Recording) {
    assert_eq!(recording.outcome.status, 1, "{:#?}", recording.outcome);
    assert!(!recording.outcome.timed_out, "{:#?}", recording.outcome);
    let progress = recording.json(&["progress"]);
    assert_eq!(progress["kind"], "deadlock", "{progress:#}");
    assert_eq!(
        progress["deadlocks"],
        serde_json::json!([[0, 1]]),
        "{progress:#}"
    );
}

#[test]
fn a_thread_of_a_library_is_nobody_whom_others_wait_for() {
    let _turn = a_turn();
    let scratch = Scratch::new("bystanders");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = program(mpi).display().to_string();
        let recorded = |mode: &str| {
            let mut words = mpi.launch(2);
            words.extend([program.clone(), mode.to_owned()]);
            record(&scratch, &OPTIONS, &words)
        };
        check(&recorded("quiet"));
        check(&recorded("polls"));
        let worker = recorded("worker");
        assert_eq!(worker.outcome.status, 0, "{mpi:?}: {:#?}", worker.outcome);
        assert!(
            !worker.outcome.stderr.contains("deadlock"),
            "{:#?}",
            worker.outcome
        );
    }
}

#[test]
fn a_job_of_mpi4py() {
    let _turn = a_turn();
    let Some(python) = tools::python_with("mpi4py").filter(|_| Mpi::OpenMpi.is_here()) else {
        return;
    };
    let scratch = Scratch::new("bystanders-python");
    let source = artifacts::repository().join("programs/python/receives.py");
    let mut words = Mpi::OpenMpi.launch(2);
    words.extend([
        python.to_owned(),
        source.display().to_string(),
        "--bug".to_owned(),
    ]);
    check(&record(&scratch, &OPTIONS, &words));
}
