//! The faults of the campaign: in which program, and how they are put in.

/// A fault: its name, the program, and how it is put in.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub program: &'static Program,
    pub fault: Fault,
}

/// How a fault is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// None: who is named is a false alarm.
    Healthy,
    /// A switch of the program, in a process.
    Process(&'static str),
    /// A switch of the program, in a thread of a process that is not the first.
    Thread(&'static str),
    /// `lockstep inject` with these options, at call 1 to so many of a function.
    Inject(&'static [&'static str], &'static str, u64),
    /// `lockstep inject` with these options, at a call that it draws from a normal run.
    Anywhere(&'static [&'static str]),
}

/// A program whose runs are compared.
#[derive(Debug)]
pub struct Program {
    /// Its source, in `programs/mpi`; of a given command its name.
    pub source: &'static str,
    /// The command itself, where one was given.
    pub command: &'static [String],
    pub flags: &'static [&'static str],
    pub ranks: u64,
    /// Ranks before this one have another task, and no fault.
    pub first: u64,
    /// Threads beside the first in each rank.
    pub workers: u64,
    pub arguments: &'static [&'static str],
    /// How its switch and the place are told: process, thread, and a number below [`Program::steps`].
    pub switch: fn(&str, u64, u64, u64) -> Vec<String>,
    pub steps: u64,
}

const C: &[&str] = &["-g", "-O1"];

fn none(_: &str, _: u64, _: u64, _: u64) -> Vec<String> {
    Vec::new()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn at(bug: &str, process: u64, thread: u64, step: u64) -> Vec<String> {
    let place = format!("{process}.{thread}.{step}");
    strings(&["--bug", bug, "--at", &place])
}

fn of_rank(bug: &str, process: u64, _: u64, _: u64) -> Vec<String> {
    strings(&["--bug", bug, "--rank", &process.to_string()])
}

fn skips(_: &str, process: u64, _: u64, _: u64) -> Vec<String> {
    strings(&["40", "skip", &process.to_string()])
}

const PLAIN: Program = Program {
    source: "",
    command: &[],
    flags: C,
    ranks: 8,
    first: 0,
    workers: 0,
    arguments: &[],
    switch: none,
    steps: 0,
};

static SEARCH: Program = Program {
    source: "ilcs.c",
    workers: 4,
    arguments: &["--seeds", "30", "--rounds", "8"],
    switch: at,
    steps: 20,
    ..PLAIN
};

static SORT: Program = Program {
    source: "odd_even.c",
    ranks: 16,
    switch: of_rank,
    ..PLAIN
};

static HYDRO: Program = Program {
    source: "hydro.c",
    switch: skips,
    ..PLAIN
};

static BLAST: Program = Program {
    source: "blast.cpp",
    flags: &["-g", "-O2"],
    workers: 2,
    switch: at,
    steps: 35,
    ..PLAIN
};

static SWEEP: Program = Program {
    source: "sweep.c",
    ..PLAIN
};

static MULTIGRID: Program = Program {
    source: "multigrid.c",
    ..PLAIN
};

static WORKERS: Program = Program {
    source: "workers.c",
    first: 1,
    ..PLAIN
};

const fn of(name: &'static str, program: &'static Program, fault: Fault) -> Kind {
    Kind {
        name,
        program,
        fault,
    }
}

use Fault::{Anywhere, Healthy, Inject, Process, Thread};

/// All of them, each program's healthy runs first.
pub static KINDS: &[Kind] = &[
    of("search-healthy", &SEARCH, Healthy),
    of("search-missing-critical", &SEARCH, Thread("misCrit-1-1-x")),
    of(
        "search-operation-1",
        &SEARCH,
        Process("allRed1wrgOp-1-all-x"),
    ),
    of(
        "search-operation-2",
        &SEARCH,
        Process("allRed2wrgOp-1-all-x"),
    ),
    of("search-size-1", &SEARCH, Process("allRed1wrgSize-1-all-x")),
    of(
        "search-size-bcast",
        &SEARCH,
        Process("bcastWrgSize-1-all-x"),
    ),
    of("search-endless-loop", &SEARCH, Thread("infLoop-1-1-1")),
    of("sort-healthy", &SORT, Healthy),
    of("sort-swapped-order", &SORT, Process("swap")),
    of("sort-deadlock", &SORT, Process("deadlock")),
    of(
        "sort-wrong-tag",
        &SORT,
        Inject(&["--fault", "argument", "--set", "tag=9"], "MPI_Send", 6),
    ),
    of(
        "sort-wrong-count",
        &SORT,
        Inject(&["--fault", "argument", "--set", "count=8"], "MPI_Send", 6),
    ),
    of(
        "sort-early-exit",
        &SORT,
        Inject(&["--fault", "exit"], "MPI_Recv", 6),
    ),
    of(
        "sort-skipped-send",
        &SORT,
        Inject(&["--fault", "skip"], "MPI_Send", 6),
    ),
    of(
        "sort-hang",
        &SORT,
        Inject(&["--fault", "hang"], "find_partner", 6),
    ),
    of("hydro-healthy", &HYDRO, Healthy),
    of("hydro-skipped-step", &HYDRO, Process("skip")),
    of(
        "hydro-skipped-call",
        &HYDRO,
        Inject(&["--fault", "skip"], "equation_of_state", 100),
    ),
    of(
        "hydro-swapped-calls",
        &HYDRO,
        Inject(&["--fault", "swap"], "stress", 30),
    ),
    of(
        "hydro-wrong-peer",
        &HYDRO,
        Inject(&["--fault", "argument", "--set", "dest=0"], "MPI_Isend", 60),
    ),
    of(
        "hydro-hang",
        &HYDRO,
        Inject(&["--fault", "hang", "--spin"], "hourglass", 30),
    ),
    of(
        "hydro-skip-anywhere",
        &HYDRO,
        Anywhere(&["--fault", "skip"]),
    ),
    of("blast-healthy", &BLAST, Healthy),
    of("blast-skipped-step", &BLAST, Process("skip")),
    of("blast-extra-iterations", &BLAST, Process("extra")),
    of("blast-operation", &BLAST, Process("operation")),
    of("blast-missing-critical", &BLAST, Thread("critical")),
    of("blast-swapped-calls", &BLAST, Process("swap")),
    of("blast-endless-loop", &BLAST, Thread("hang")),
    of("blast-wrong-count", &BLAST, Process("count")),
    of("sweep-healthy", &SWEEP, Healthy),
    of(
        "sweep-skipped-call",
        &SWEEP,
        Inject(&["--fault", "skip"], "update", 8),
    ),
    of(
        "sweep-hang",
        &SWEEP,
        Inject(&["--fault", "hang"], "substitute", 8),
    ),
    of(
        "sweep-exit-anywhere",
        &SWEEP,
        Anywhere(&["--fault", "exit"]),
    ),
    of(
        "sweep-delay-anywhere",
        &SWEEP,
        Anywhere(&["--fault", "delay", "--seconds", "0.3"]),
    ),
    of("multigrid-healthy", &MULTIGRID, Healthy),
    of(
        "multigrid-skipped-call",
        &MULTIGRID,
        Inject(&["--fault", "skip"], "smooth", 20),
    ),
    of(
        "multigrid-swapped-calls",
        &MULTIGRID,
        Inject(&["--fault", "swap"], "restrict_to", 8),
    ),
    of(
        "multigrid-hang-anywhere",
        &MULTIGRID,
        Anywhere(&["--fault", "hang"]),
    ),
    of("workers-healthy", &WORKERS, Healthy),
    of(
        "workers-skipped-call",
        &WORKERS,
        Inject(&["--fault", "skip"], "work", 2),
    ),
    of(
        "workers-hang",
        &WORKERS,
        Inject(&["--fault", "hang"], "work", 2),
    ),
    of(
        "workers-exit",
        &WORKERS,
        Inject(&["--fault", "exit"], "work", 2),
    ),
];

/// Sorts of faults, and what the names of their kinds have in them: the first that fits.
const SORTS: [(&str, &str); 14] = [
    ("healthy", "healthy"),
    ("skipped-send", "message dropped"),
    ("skip", "call left out"),
    ("hang", "endless loop"),
    ("endless", "endless loop"),
    ("swap", "order swapped"),
    ("exit", "early exit"),
    ("operation", "wrong operation"),
    ("size", "wrong count"),
    ("count", "wrong count"),
    ("peer", "wrong peer"),
    ("tag", "wrong tag"),
    ("critical", "critical section missing"),
    ("deadlock", "deadlock"),
];

/// Which sort of fault a kind of this name is; without a row above by its own last words.
pub fn sort(name: &str) -> &str {
    let named = SORTS.iter().find(|(part, _)| name.contains(part));
    let last = || name.split_once('-').map_or(name, |it| it.1);
    named.map_or_else(last, |(_, sort)| sort)
}

/// The faults that can be put into any program, at a call that a normal run makes.
const ANY: &[(&str, Fault)] = &[
    ("healthy", Healthy),
    ("skip", Anywhere(&["--fault", "skip"])),
    ("hang", Anywhere(&["--fault", "hang"])),
    ("exit", Anywhere(&["--fault", "exit"])),
    ("delay", Anywhere(&["--fault", "delay", "--seconds", "0.3"])),
];

/// Those of a command that was given. They live as long as the campaign.
pub fn of_command(command: &str) -> Vec<Kind> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let words: &'static [String] = words.leak();
    let counted = words.iter().position(|it| it == "-n" || it == "-np");
    let is_program = |word: &&String| word.contains('/') || word.ends_with(".x");
    let name = counted.and_then(|at| words.get(at + 2));
    let name = name.or(words.iter().find(is_program)).or(words.last());
    let name = name.map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    let program: &'static Program = Box::leak(Box::new(Program {
        source: name,
        command: words,
        ..PLAIN
    }));
    let kind = |(fault, how): &(&str, Fault)| {
        let name = format!("{name}-{fault}");
        of(name.leak(), program, *how)
    };
    ANY.iter().map(kind).collect()
}

/// What a sample of the campaign runs: a kind of every sort that ends quickly.
pub const SAMPLE: &[&str] = &[
    "sort-swapped-order",
    "hydro-healthy",
    "hydro-skipped-step",
    "blast-extra-iterations",
    "blast-operation",
    "blast-missing-critical",
];
