//! A run of more files than a process may have mappings is read all the same. Alone in its process: while it looks, nothing
//! else can be mapped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use lockstep_trace::{Event, Run};
use lockstep_writer::{Builder, Named, ProcessFacts};
use memmap2::{MmapMut, MmapOptions};
use std::path::Path;

/// Where so many mappings are allowed, filling them up takes too long.
const MOST: usize = 1 << 21;

fn write(directory: &Path) -> Result<(), lockstep_writer::Error> {
    let mut builder = Builder::new(directory)?;
    let function = |builder: &mut Builder, name: &str| {
        builder.function(&Named {
            image: "/app",
            name,
            imported: false,
            source: None,
        })
    };
    let (main, work, other) = (
        function(&mut builder, "main")?,
        function(&mut builder, "work")?,
        function(&mut builder, "other")?,
    );
    // What is short is copied, mapped or not: half of the calls of a rank are bits of noise, which take room.
    let mut random = 1u64;
    let mut is_other = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
        random >> 63 == 1
    };
    for rank in 0..3 {
        let process = builder.process(ProcessFacts {
            host: "node".to_owned(),
            program: "/app".to_owned(),
            pid: 1000 + rank,
            rank: Some(rank),
            status: Some(0),
        })?;
        builder.begin(process, rank)?;
        builder.call(main, None)?;
        for call in 0..100_000 * rank {
            let noise = call % 2 == 1 && is_other();
            builder.call(if noise { other } else { work }, None)?;
            builder.ret(None)?;
        }
        builder.end()?;
    }
    builder.finish(&serde_json::json!({}))
}

/// What is read, as one text.
fn told(run: &Run) -> String {
    let threads = run.processes.iter().flat_map(|process| &process.threads);
    let told = threads.map(|thread| {
        let events: Vec<Event> = thread.events().collect();
        format!("{} {:?} {events:?}\n", thread.name, thread.open)
    });
    let mut told: String = told.collect();
    told.push_str(&format!("{:?} {:?}", run.functions, run.notes));
    told
}

fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap()
}

/// Mappings until there may be no more. Neighbours are of two kinds: else they would be one.
fn all_mappings() -> Vec<MmapMut> {
    let mut all = Vec::with_capacity(MOST);
    let mut kinds = [MmapOptions::new(), MmapOptions::new()];
    kinds[1].no_reserve_swap();
    for kind in kinds.iter().cycle() {
        match kind.clone().len(4096).map_anon() {
            Ok(one) => all.push(one),
            Err(_) => break,
        }
    }
    all
}

#[test]
fn files_that_cannot_be_mapped_are_read() {
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let most: usize = most.trim().parse().unwrap();
    if most > MOST {
        assert!(
            std::env::var_os("LOCKSTEP_TEST_SKIPS").is_none_or(|value| value != "never"),
            "{most} mappings are too many to be filled up"
        );
        eprintln!("SKIPPED files_that_cannot_be_mapped_are_read: {most} mappings are allowed");
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mappings");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    write(&directory).unwrap();
    let file = directory.join("processes");
    let file = file.to_str().unwrap();

    // Threads that read are there from here on.
    let run = Run::open(&directory).unwrap();
    let mapped = told(&run);
    assert!(maps().contains(file), "{}", maps());
    drop(run);

    let all = all_mappings();
    let run = Run::open(&directory);
    let shown = maps();
    let read = run.as_ref().map(told).map_err(ToString::to_string);
    let full = MmapOptions::new().len(1 << 20).map_anon().is_err();
    drop(all);
    assert!(full, "there was room for more than {most} mappings");
    assert!(!shown.contains(file), "a file was mapped");
    assert_eq!(read.as_deref(), Ok(mapped.as_str()));
    drop(run);
    std::fs::remove_dir_all(&directory).unwrap();
}
