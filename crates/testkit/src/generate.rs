//! Runs that nobody recorded: sources of events whose entropy is known, and as many ranks as one likes.

use std::collections::BTreeMap;

use lockstep_trace::{
    Coverage, End, EndKind, Event, Function, FunctionId, Process, Run, Thread, TraceName,
};

/// Numbers that look random, the same for the same seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }
}

/// Events, and how many bits their choices have at least, where that is known.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its events.
    pub events: Vec<Event>,
    /// Entropy of the choices in it.
    pub bits: Option<f64>,
}

struct Events(Vec<Event>);

impl Events {
    fn call(&mut self, function: u32) {
        self.0.push(Event::Call(FunctionId(function)));
    }

    fn ret(&mut self) {
        self.0.push(Event::Return);
    }

    fn leaf(&mut self, function: u32) {
        self.call(function);
        self.ret();
    }
}

/// Sources of about `size` events each, that differ in kind.
#[must_use]
pub fn sources(size: usize) -> Vec<Source> {
    let source = |name: &str, bits: Option<f64>, make: &dyn Fn(&mut Events, &mut Random) -> f64| {
        let mut events = Events(Vec::new());
        events.call(0);
        let mut random = Random::new(7);
        let mut told = 0.0;
        while events.0.len() < size {
            told += make(&mut events, &mut random);
        }
        events.ret();
        Source {
            name: name.to_owned(),
            bits: bits.map(|_| told),
            events: events.0,
        }
    };
    let known = Some(0.0);
    let (fixed, mut first) = (Random::new(3), Random::new(3));
    let rows: Vec<u64> = (0..2000).map(|_| 1 + first.below(30)).collect();
    vec![
        source("constant loops", None, &|events, _| {
            for _ in 0..10 {
                events.call(1);
                (0..30).for_each(|_| events.leaf(2));
                events.ret();
                events.leaf(3);
            }
            0.0
        }),
        source("varying loops", known, &|events, random| {
            events.call(1);
            (0..=random.below(16)).for_each(|_| events.leaf(2));
            events.ret();
            4.0
        }),
        source("polling", known, &|events, random| {
            events.leaf(4);
            // Geometric: one in four polls succeeds, each poll has 0.811 bits.
            let mut bits = 0.811_278;
            while random.below(4) != 0 {
                events.leaf(5);
                bits += 0.811_278;
            }
            events.leaf(6);
            bits
        }),
        source("random branches", known, &|events, random| {
            events.call(7);
            events.leaf(8);
            if random.below(2) == 0 {
                events.leaf(9);
            }
            events.ret();
            1.0
        }),
        source("random calls", known, &|events, random| {
            events.leaf(10 + random.below(8) as u32);
            3.0
        }),
        source("random sparse rows", known, &|events, random| {
            events.call(1);
            for _ in 0..64 {
                events.call(2);
                (0..=random.below(32)).for_each(|_| events.leaf(3));
                events.ret();
            }
            events.ret();
            64.0 * 5.0
        }),
        source("fixed sparse rows", None, &|events, _| {
            events.call(1);
            for row in &rows {
                events.call(2);
                (0..*row).for_each(|_| events.leaf(3));
                events.ret();
            }
            events.ret();
            0.0
        }),
        source("recursion over a random tree", None, &|events, random| {
            let mut keys: Vec<u64> = (0..200).map(|_| fixed.clone().below(9)).collect();
            keys.iter_mut().for_each(|key| *key = random.below(1000));
            sort(events, &mut keys);
            0.0
        }),
        source("long steps", None, &|events, _| {
            let mut step = Random::new(11);
            events.call(1);
            for _ in 0..20_000 {
                events.leaf(2 + step.below(6) as u32);
            }
            events.ret();
            0.0
        }),
        source("interpreter", None, &|events, random| {
            const PROGRAMS: [&[u32]; 4] = [
                &[1, 2, 3, 2],
                &[4, 2, 5],
                &[1, 1, 6, 7, 2],
                &[8, 3, 2, 9, 9],
            ];
            let program = PROGRAMS[random.below(4) as usize];
            events.call(20);
            for _ in 0..=random.below(5) {
                for word in program {
                    events.call(21);
                    events.leaf(20 + *word + 2);
                    events.ret();
                }
            }
            events.ret();
            0.0
        }),
    ]
}

/// Quicksort, as its calls show it.
fn sort(events: &mut Events, keys: &mut [u64]) {
    events.call(30);
    if keys.len() > 1 {
        let pivot = keys[keys.len() / 2];
        let mut low = 0;
        for index in 0..keys.len() {
            events.leaf(31);
            if keys[index] < pivot {
                events.leaf(32);
                keys.swap(index, low);
                low += 1;
            }
        }
        let (before, behind) = keys.split_at_mut(low);
        sort(events, before);
        if behind.len() > 1 {
            let rest = behind.len() - 1;
            sort(events, &mut behind[..rest]);
        }
    }
    events.ret();
}

/// A run of threads with these events, one a process.
#[must_use]
pub fn run(traces: Vec<Vec<Event>>) -> Run {
    let most = traces.iter().flatten().map(|event| match event {
        Event::Call(function) => function.0 + 1,
        Event::Return | Event::Tail => 0,
    });
    let functions = (0..most.max().unwrap_or(0)).map(|number| Function {
        name: format!("function_{number}"),
        linkage: format!("function_{number}"),
        image: String::new(),
        imported: false,
        source: None,
        calls: Vec::new(),
        code: lockstep_trace::Code::default(),
    });
    let named = |(events, rank)| Thread::from_events(TraceName::new(rank, 0), events);
    let threads = traces.into_iter().zip(0..).map(named);
    job(functions.collect(), threads)
}

/// A job of ranks with one thread each, in order.
fn job(functions: Vec<Function>, threads: impl Iterator<Item = Thread>) -> Run {
    let processes = threads.zip(0..).map(|(thread, rank)| {
        let name = thread.name;
        Process {
            name: name.process,
            rank: Some(rank),
            is_mpi: true,
            pid: rank + 1,
            forked_from: None,
            host: "host".to_owned(),
            program: "program".to_owned(),
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
            threads: vec![thread],
        }
    });
    Run {
        directory: std::path::PathBuf::new(),
        codec: lockstep_format::codec::Kind::Lockstep,
        functions,
        processes: processes.collect(),
        is_mpi: true,
        notes: Vec::new(),
    }
}

/// Functions of [`rank_events`].
pub const RANK_FUNCTIONS: u32 = 11;

/// Ranks of one program on a grid, one after another, as they are recorded: the boundary that a rank has decides with whom
/// it speaks, its share how often it loops, and one rank in a hundred does something of its own.
pub fn rank_events(count: u32) -> impl Iterator<Item = Vec<Event>> {
    let mut random = Random::new(5);
    let side = (1..).find(|side| side * side >= count).unwrap_or(1);
    (0..count).map(move |rank| {
        let (row, column) = (rank / side, rank % side);
        let neighbours = [row > 0, row + 1 < side, column > 0, column + 1 < side];
        let trips = 4 + u64::from(rank % 7);
        let noise = (random.below(100) == 0).then(|| random.below(40));
        let mut events = Events(Vec::new());
        events.call(0);
        events.leaf(1);
        for step in 0..40 {
            events.call(2);
            for (neighbour, function) in neighbours.iter().zip(3..) {
                if *neighbour {
                    events.leaf(function);
                }
            }
            (0..trips).for_each(|_| events.leaf(7));
            if noise == Some(step) {
                (0..random.below(9)).for_each(|_| events.leaf(8));
            }
            events.leaf(9);
            events.ret();
        }
        events.leaf(10);
        events.ret();
        events.0
    })
}

/// A run of these ranks, in memory.
#[must_use]
pub fn ranks(count: u32) -> Run {
    run(rank_events(count).collect())
}

/// Tasks of a job that hangs, by role: 40 roles of 50 functions each, with an exchange in the middle of each step. Most wait
/// in `MPI_Allgather` at the end of their second step; one in 171 is still in `MPI_Recv` of that exchange; the last is
/// before that, in `MPI_Get_count`. Tasks that do the same share their events, as in a sealed run.
#[must_use]
pub fn hanging(count: u32) -> Run {
    const ROLES: u32 = 40;
    const CALLS: u32 = 50;
    let special = [
        "main",
        "step",
        "MPI_Allgather",
        "exchange",
        "MPI_Get_count",
        "MPI_Recv",
    ];
    let first = special.len() as u32;
    let last = |task: u32| match (task + 1 == count, task % 171 == 7) {
        (true, _) => 4,
        (_, true) => 5,
        _ => 2,
    };
    let trace = |role: u32, last: u32| {
        let mut events = Events(Vec::new());
        let own = |events: &mut Events, call: u32| {
            events.leaf(first + role * CALLS + call);
        };
        events.call(0);
        events.call(1);
        (0..CALLS / 2).for_each(|call| own(&mut events, call));
        events.call(3);
        events.leaf(4);
        events.leaf(5);
        events.ret();
        (CALLS / 2..CALLS).for_each(|call| own(&mut events, call));
        events.leaf(2);
        events.ret();
        events.call(1);
        (0..CALLS / 2).for_each(|call| own(&mut events, call));
        events.call(3);
        if last == 4 {
            events.call(4);
            return events.0;
        }
        events.leaf(4);
        if last == 5 {
            events.call(5);
            return events.0;
        }
        events.leaf(5);
        events.ret();
        (CALLS / 2..CALLS).for_each(|call| own(&mut events, call));
        events.call(2);
        events.0
    };
    let functions = run((0..ROLES).map(|role| trace(role, 2)).collect()).functions;
    let mut known: BTreeMap<(u32, u32), Thread> = BTreeMap::new();
    let threads = (0..count).map(|task| {
        let (role, last) = (task % ROLES, last(task));
        let name = TraceName::new(task, 0);
        let alike = known
            .entry((role, last))
            .or_insert_with(|| Thread::from_events(name, trace(role, last)));
        let mut thread = alike.clone();
        thread.name = name;
        thread
    });
    let mut run = job(functions, threads);
    for (function, name) in run.functions.iter_mut().zip(special) {
        function.name = name.to_owned();
        function.linkage = name.to_owned();
        function.imported = name.starts_with("MPI_");
    }
    for process in &mut run.processes {
        process.end = End {
            kind: EndKind::Running,
            code: None,
            certain: true,
        };
    }
    run
}
