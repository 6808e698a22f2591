//! Runs of odd/even sort in memory (case study 2): the calls of `programs/mpi/odd_even.c`.
#![allow(clippy::unwrap_used)]

use lockstep_format::codec::Kind;
use lockstep_trace::{
    Coverage, End, EndKind, Event, Function, FunctionId, Process, ProcessName, Run, SourceLine,
    Thread, TraceName,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    /// Rank 5 swaps Send and Recv after its 7th iteration.
    Swap,
    /// Rank 5 never returns from an MPI_Send in its 8th iteration; the others wait for it.
    Deadlock,
}

pub const FUNCTIONS: [&str; 9] = [
    "main",
    "MPI_Init",
    "MPI_Comm_rank",
    "MPI_Comm_size",
    "odd_even_sort",
    "find_partner",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Finalize",
];

pub fn function(name: &str) -> FunctionId {
    FunctionId(FUNCTIONS.iter().position(|other| *other == name).unwrap() as u32)
}

fn is_library(name: &str) -> bool {
    name.starts_with("MPI_") || name.starts_with("str")
}

/// A run of these traces: one process each.
pub fn run(names: &[&str], traces: Vec<Vec<Event>>) -> Run {
    Run {
        directory: "run".into(),
        codec: Kind::None,
        functions: names
            .iter()
            .zip(10..)
            .map(|(name, line)| Function {
                name: (*name).into(),
                linkage: (*name).into(),
                image: if is_library(name) {
                    "library"
                } else {
                    "odd_even"
                }
                .into(),
                imported: is_library(name),
                source: (!is_library(name)).then(|| SourceLine {
                    file: "odd_even.c".into(),
                    line,
                }),
                calls: Vec::new(),
                code: lockstep_trace::Code::default(),
            })
            .collect(),
        processes: traces
            .into_iter()
            .zip(0..)
            .map(|(events, rank)| Process {
                name: ProcessName::rank(rank),
                rank: Some(rank),
                is_mpi: true,
                pid: 100 + rank,
                forked_from: None,
                host: "node".into(),
                program: "odd_even".into(),
                build: String::new(),
                compiled: lockstep_trace::Compiled::default(),
                end: End {
                    kind: EndKind::Exited,
                    code: Some(0),
                    certain: true,
                },
                coverage: Coverage::default(),
                gone_at: None,
                losses: Vec::new(),
                threads: vec![Thread::from_events(TraceName::new(rank, 0), events)],
            })
            .collect(),
        is_mpi: true,
        notes: Vec::new(),
    }
}

pub fn odd_even(ranks: u32, bug: Bug) -> Run {
    // How far each rank gets before it waits for one that is stuck: phases completed.
    let mut reached: Vec<Option<u32>> = vec![None; ranks as usize];
    if bug == Bug::Deadlock {
        let partner = |phase: u32, rank: u32| {
            let other = if (phase + rank).is_multiple_of(2) {
                rank.checked_add(1)
            } else {
                rank.checked_sub(1)
            };
            other.filter(|other| *other < ranks)
        };
        let mut iterations = 0;
        for phase in 0..ranks {
            if partner(phase, 5).is_some() {
                iterations += 1;
                if iterations == 8 {
                    reached[5] = Some(phase);
                }
            }
            for _ in 0..ranks {
                for rank in 0..ranks {
                    if reached[rank as usize].is_none()
                        && let Some(other) = partner(phase, rank)
                        && reached[other as usize]
                            .is_some_and(|stuck| stuck < phase || (stuck == phase && other == 5))
                    {
                        reached[rank as usize] = Some(phase);
                    }
                }
            }
        }
    }
    let traces = (0..ranks)
        .map(|rank| trace(ranks, rank, bug, reached[rank as usize]))
        .collect();
    run(&FUNCTIONS, traces)
}

fn trace(ranks: u32, rank: u32, bug: Bug, reached: Option<u32>) -> Vec<Event> {
    let mut events = Vec::new();
    let open = |events: &mut Vec<Event>, name: &str| events.push(Event::Call(function(name)));
    let call = |events: &mut Vec<Event>, name: &str| {
        events.push(Event::Call(function(name)));
        events.push(Event::Return);
    };
    open(&mut events, "main");
    for name in ["MPI_Init", "MPI_Comm_rank", "MPI_Comm_size"] {
        call(&mut events, name);
    }
    open(&mut events, "odd_even_sort");
    let mut iteration = 0;
    for phase in 0..ranks {
        call(&mut events, "find_partner");
        let last = (phase + rank).is_multiple_of(2);
        if (last && rank == ranks - 1) || (!last && rank == 0) {
            continue;
        }
        iteration += 1;
        let late = rank == 5 && iteration > 7;
        if late && bug == Bug::Deadlock {
            open(&mut events, "MPI_Send");
            return events;
        }
        let send_first = rank.is_multiple_of(2) != (late && bug == Bug::Swap);
        if reached == Some(phase) {
            if send_first {
                call(&mut events, "MPI_Send");
            }
            open(&mut events, "MPI_Recv");
            return events;
        }
        let order = if send_first {
            ["MPI_Send", "MPI_Recv"]
        } else {
            ["MPI_Recv", "MPI_Send"]
        };
        for name in order {
            call(&mut events, name);
        }
    }
    events.push(Event::Return);
    call(&mut events, "MPI_Finalize");
    events.push(Event::Return);
    events
}
