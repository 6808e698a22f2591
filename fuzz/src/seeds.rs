//! Bytes that readers accept: what our own writers write.

use crate::directory::Directory;
use lockstep_calltree::trees;
use lockstep_exchange::Target::Otf2;
use lockstep_exchange::fuzz::DIVIDER;
use lockstep_exchange::{View, export};
use lockstep_format::check::crc32c;
use lockstep_format::codec::{AnyEncoder, Kind};
use lockstep_format::plan::Role;
use lockstep_format::process::SUFFIX;
use lockstep_format::{pack, sealed, side};
use lockstep_patch::{Options, Scope};
use lockstep_progress::fuzz::chosen;
use lockstep_trace::sealed::seal;
use lockstep_trace::{Run, Sealable};
use lockstep_writer::{Builder, Named, ProcessFacts};
use std::fs;

/// Something small of the system's.
const PROGRAM: &str = "/bin/true";

/// Symbols of a program with loops: 16 calls 17 and 18 in turn, again and again.
fn symbols() -> Vec<u32> {
    let body = [17, 0, 18, 17, 0, 0];
    let mut symbols = vec![16];
    for round in 0..40 {
        symbols.extend(body.repeat(1 + round % 3));
        symbols.extend([19 + round as u32 % 5, 0]);
    }
    symbols.push(0);
    symbols
}

pub(crate) fn streams() -> Vec<Vec<u8>> {
    Kind::ALL.map(encoded).into()
}

fn encoded(kind: Kind) -> Vec<u8> {
    let mut encoder = Box::<AnyEncoder<crate::Words, crate::Words>>::default();
    let mut bytes = crate::Bytes::default();
    encoder.push_batch(kind, &symbols(), &mut bytes);
    let tail = encoder.tail(kind);
    bytes.0.extend_from_slice(&tail.bytes[..tail.length]);
    bytes.0
}

pub(crate) fn arguments() -> Vec<Vec<u8>> {
    let mut encoder = Box::new(side::Encoder::NEW);
    // The run that is going on stands in front.
    let mut bytes = crate::Bytes(vec![0, 0]);
    for index in 0..200 {
        let open = encoder.push(index % 3, &[i64::from(index / 50), 7], &mut bytes);
        bytes.0[..2].copy_from_slice(&(open as u16).to_le_bytes());
    }
    vec![bytes.0]
}

/// Calls that come back, each function in turn, and numbers of all sizes.
pub(crate) fn calls() -> Vec<Vec<u8>> {
    let small = (0..3000u32).map(|it| (it * 7 % 239) as u8);
    let large = (0..1500u32).flat_map(|it| {
        let wide = (it % 5 == 0).then_some([0xff; 9]);
        let small = [(it * 11 % 239) as u8; 2];
        wide.into_iter().flatten().chain(small)
    });
    vec![small.collect(), large.collect(), windows()]
}

/// Each of three tasks makes window 5 of the first communicator, comes to a fence, and puts to rank 1; with numbers that
/// no memory has. A small number is told by one byte, two more.
fn windows() -> Vec<u8> {
    const LARGE: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let [create, fence, put, no_more] = ["Win_create", "Win_fence", "Put", ""].map(chosen);
    let task = [
        &create[..],
        &[4],
        &LARGE,
        &LARGE,
        &[2, 7],
        &fence,
        &[2, 7],
        &put,
        &[4, 2, 2, 3],
        &LARGE,
        &LARGE,
        &[2, 7],
        &put,
        &[4, 2, 2, 3],
        &LARGE,
        &[3, 2, 7],
        &no_more,
    ];
    task.concat().repeat(3)
}

pub(crate) fn programs() -> Vec<Vec<u8>> {
    fs::read(PROGRAM).into_iter().collect()
}

pub(crate) fn plans() -> Vec<Vec<u8>> {
    let made = |role, own_functions| {
        let scope = Scope {
            role,
            own_functions,
            library_calls: own_functions,
            mpi_calls: false,
        };
        lockstep_patch::plan(&fs::read(PROGRAM).ok()?, scope, &Options::default()).ok()
    };
    let both = [made(Role::Main, false), made(Role::Library, true)];
    both.into_iter().flatten().collect()
}

/// A run of so many threads in a directory of its own.
pub(crate) fn run(threads: u32) -> Option<Directory> {
    let directory = Directory::empty();
    let mut builder = Builder::new(directory.path()).ok()?;
    let names = ["main", "step", "MPI_Send", "MPI_Recv"];
    let functions = names.map(|name| {
        builder.function(&Named {
            image: "/app",
            name,
            imported: name.starts_with("MPI_"),
            source: Some(("app.c", 7)),
        })
    });
    let process = builder.process(ProcessFacts::default()).ok()?;
    for thread in 0..threads {
        builder.begin(process, thread).ok()?;
        let [main, step, send, receive] = &functions;
        builder.call(*main.as_ref().ok()?, Some(1)).ok()?;
        for round in 0..30 {
            for function in [step, if round % 7 == 3 { receive } else { send }] {
                builder
                    .call(*function.as_ref().ok()?, Some(2 + round))
                    .ok()?;
                builder.ret(None).ok()?;
            }
        }
        builder.ret(Some(99)).ok()?;
        builder.end().ok()?;
    }
    builder.finish(&serde_json::json!({})).ok()?;
    Some(directory)
}

pub(crate) fn processes() -> Vec<Vec<u8>> {
    let Some(run) = run(2) else { return Vec::new() };
    let files = fs::read_dir(run.path().join("processes"))
        .into_iter()
        .flatten();
    files
        .flatten()
        .filter_map(|file| fs::read(file.path()).ok())
        .collect()
}

/// A run of a rank that exchanges messages with itself: what it gave and was given back, and when.
pub(crate) fn talking() -> Option<Directory> {
    const WORLD: i64 = 0x4400_0000;
    const INT: i64 = 0x4c00_0405;
    const CALLS: [(&str, &[i64], &[i64]); 7] = [
        ("MPI_Init", &[], &[]),
        ("MPI_Comm_rank", &[WORLD], &[0]),
        ("MPI_Isend", &[64, 1, INT, 0, 3, WORLD], &[9]),
        ("MPI_Recv", &[128, 1, INT, 0, 3, WORLD], &[0, 3, 4]),
        ("MPI_Wait", &[9], &[]),
        ("MPI_Barrier", &[WORLD], &[]),
        ("MPI_Allreduce", &[64, 128, 1, INT, 0x5800_0003, WORLD], &[]),
    ];
    let directory = Directory::empty();
    let mut builder = Builder::new(directory.path()).ok()?;
    let process = builder.process(ProcessFacts {
        rank: Some(0),
        ..ProcessFacts::default()
    });
    let process = process.ok()?;
    builder.begin(process, 1).ok()?;
    for (at, (name, given, back)) in (1u64..).zip(CALLS.iter().cycle().take(40)) {
        let function = builder.function(&Named {
            image: "/app",
            name,
            imported: true,
            source: Some(("app.c", 7)),
        });
        let function = function.ok()?;
        builder.call(function, Some(at * 1000)).ok()?;
        let values: Vec<i64> = [&[0x1000 + at as i64 % 7], *given].concat();
        builder.arguments(function, false, &values).ok()?;
        if !back.is_empty() {
            builder.arguments(function, true, back).ok()?;
        }
        builder.ret(Some(at * 1000 + 500)).ok()?;
    }
    builder.end().ok()?;
    builder.finish(&serde_json::json!({})).ok()?;
    Some(directory)
}

/// The process file of that run.
pub(crate) fn asked() -> Vec<Vec<u8>> {
    let files = files_of(talking()).into_iter().take(1);
    files.map(|it| it.1).collect()
}

/// The files of a run, by their paths below it; its process file first.
pub(crate) fn files_of(run: Option<Directory>) -> Vec<(String, Vec<u8>)> {
    let Some(run) = run else { return Vec::new() };
    let process = fs::read_dir(run.path().join("processes"));
    let process = process.into_iter().flatten().flatten().next();
    let Some(process) = process.and_then(|it| it.file_name().into_string().ok()) else {
        return Vec::new();
    };
    let end = format!("ends/{}.json", process.trim_end_matches("-0.lockstep"));
    run.write(&end, br#"{"kind":"exited","code":0}"#);
    let mut files = Vec::new();
    for folder in ["processes", ".", "plans", "lines", "ends"] {
        let entries = fs::read_dir(run.path().join(folder));
        let names = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> = names
            .filter(|it| it.path().is_file())
            .filter_map(|it| it.file_name().into_string().ok())
            .collect();
        names.sort();
        for name in names {
            let path = format!("{folder}/{name}");
            if let Ok(content) = fs::read(run.path().join(&path)) {
                files.push((path, content));
            }
        }
    }
    files
}

/// What lies beside the process file, as one text.
pub(crate) fn beside_processes() -> Vec<Vec<u8>> {
    let files = files_of(run(2)).into_iter().skip(1);
    let contents: Vec<Vec<u8>> = files.map(|it| it.1).collect();
    vec![contents.join(DIVIDER)]
}

pub(crate) fn packs() -> Vec<Vec<u8>> {
    let end = br#"{"kind":"exited","code":0}"#.to_vec();
    let mut files = vec![("h-1-1.json".to_owned(), end)];
    let names = (0..).map(|index| format!("h-1-1-{index}{SUFFIX}"));
    files.extend(names.zip(processes()));
    let mut bytes = vec![0; pack::BLOCK];
    for (name, content) in &files {
        let member = pack::Member {
            name,
            length: content.len() as u64,
            check: crc32c(content),
        };
        bytes.extend(member.block().into_iter().flatten());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(pack::BLOCK), 0);
    }
    let header = pack::Header {
        members: files.len() as u32,
        length: bytes.len() as u64,
    };
    bytes[..pack::BLOCK].copy_from_slice(&header.block());
    vec![bytes]
}

pub(crate) fn sealed() -> Vec<Vec<u8>> {
    let file = || {
        let run = run(2)?;
        let sealable = Sealable::open(run.path()).ok()?;
        let trees = trees(&[&sealable.run], None).ok()?;
        seal(&[&sealable], &trees, None, false).ok()?;
        fs::read(run.path().join(sealed::FILE)).ok()
    };
    // Small, as what grows from a seed takes its time, too: those that reach the bounds have a test of their own.
    let hostile = lockstep_trace::sealed::fuzz::hostile(30, 30);
    hostile.into_iter().chain(file()).collect()
}

pub(crate) fn contexts() -> Vec<Vec<u8>> {
    vec![b"B\n\n3\n2\n\nduck\ncarp\nreed\nswims\nflies\nXX\nX.\n..\n".to_vec()]
}

pub(crate) fn selections() -> Vec<Vec<u8>> {
    ["6.4", "6.*", "*.0", "0-3.1-4", "5~1.0", "1:6.4", "6.h1"]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

pub(crate) fn tables() -> Vec<Vec<u8>> {
    vec![b"object,swims,\"flies, \"\"high\"\"\"\nduck,1,X\n\"carp\",true,\nreed,0,.\n".to_vec()]
}

pub(crate) fn attributes() -> Vec<Vec<u8>> {
    vec![br#"{"6.4": ["holds lock a", "region heap"], "6.5": []}"#.to_vec()]
}

pub(crate) fn rings() -> Vec<Vec<u8>> {
    vec![lockstep_goroutines::fuzz::records()]
}

pub(crate) fn executions() -> Vec<Vec<u8>> {
    vec![lockstep_goroutines::fuzz::kept()]
}

/// Names, and a thread that calls them.
pub(crate) fn parlot() -> Vec<Vec<u8>> {
    let names: Vec<String> = (1..24).map(|number| format!("f{number}\n")).collect();
    let names = format!("+\n/opt/app\n{}", names.concat());
    let stream = encoded(Kind::SeedParlot);
    vec![[names.into_bytes(), stream].join(DIVIDER)]
}

/// Two functions of one image: the first calls the second thirty times.
pub(crate) fn uftrace() -> Vec<Vec<u8>> {
    let mut info = b"Ftrace!\0\x04\0\0\0\x28\0\x01\x02".to_vec();
    info.extend(0x363u64.to_le_bytes());
    info.extend([0; 16]);
    info.extend(b"exename:/opt/app\nexit_status:768\nosinfo:hostname=node\n");
    let task = "SESS timestamp=0.000000001 pid=7 sid=1 exename=\"/opt/app\"\nTASK timestamp=0.000000002 tid=7 pid=7\n";
    let map = "00400000-00500000 r-xp 00000000 00:00 0     /opt/app\n";
    let symbols =
        "# symbols: 2\n# path name: /opt/app\n0000000000000100 T main\n0000000000000200 T step\n";
    let mut records = Vec::new();
    let mut time = 100u64;
    let mut put = |kind: u64, depth: u64, address: u64| {
        let word = kind | 5 << 3 | depth << 6 | (0x40_0000 + address) << 16;
        records.extend([time, word].into_iter().flat_map(u64::to_le_bytes));
        time += 1;
    };
    put(0, 0, 0x104);
    for _ in 0..30 {
        put(0, 1, 0x204);
        put(1, 1, 0x204);
    }
    put(1, 0, 0x104);
    let texts = [task, map, symbols].map(|text| text.as_bytes().to_vec());
    let files: Vec<Vec<u8>> = [info].into_iter().chain(texts).chain([records]).collect();
    vec![files.join(DIVIDER)]
}

/// A run of one thread, as we write it.
pub(crate) fn otf2() -> Vec<Vec<u8>> {
    let files = || {
        let directory = run(1)?;
        let run = Run::open(directory.path()).ok()?;
        let threads: Vec<_> = run.traces().collect();
        let archive = directory.path().join("archive");
        export(&run, &threads, (Otf2, &View::default()), &archive, false).ok()?;
        let read = |name: &str| fs::read(archive.join(name)).ok();
        Some(
            [
                read("traces.otf2")?,
                read("traces.def")?,
                read("traces/0.evt")?,
            ]
            .join(DIVIDER),
        )
    };
    files().into_iter().collect()
}

pub(crate) fn chrome() -> Vec<Vec<u8>> {
    let text = r#"{"traceEvents":[{"ph":"B","name":"f","pid":1,"tid":2,"ts":1.5},{"ph":"X","name":"g","pid":1,"tid":2,"ts":2,"dur":1},
        {"ph":"E","pid":1,"tid":2,"ts":4},{"ph":"M","name":"process_name","pid":1,"args":{"name":"app"}}]}"#;
    vec![text.as_bytes().to_vec()]
}
