//! Which calls are made by timing alone, by their names and by what they call.
//!
//! A task that waits by asking asks as often as it takes: this is no behaviour. Each call of a tree has a [`Class`], which
//! depends on the call alone and on nothing around it, so that it is the same in every run.

use lockstep_calltree::{Forest, Function, Label, NodeId};
use lockstep_trace::threads::{Does, Meaning};
use lockstep_trace::{c_name, mpi};

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Class {
    /// It does something.
    #[default]
    Work,
    /// It is made or not by timing alone (`pthread_cond_wait`): never counted.
    Wait,
    /// The same, and what comes behind it may be said once more (`usleep`).
    Sleep,
    /// The same, and it is only made while something is not ready (`sched_yield`).
    Yield,
    /// It asks whether something is ready.
    Question,
    /// It takes a lock, gives one back or reads a clock, and may be part of a question.
    Idle,
}

/// Questions for messages, and for all else: locks, events, flags.
const MESSAGES: u8 = 1;
const LOCKED: u8 = 2;
/// All of them.
pub(super) const ALL: u8 = MESSAGES | LOCKED;

/// What a name says of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Named {
    pub class: Class,
    /// Of which questions something comes by such a call, as [`MESSAGES`] and [`LOCKED`]: a message is taken, a lock is given back.
    commits: u8,
    /// What it asks for, likewise.
    asks: u8,
    /// Whether who calls it shares work, or a state, with other threads.
    pub shares: bool,
    /// Whether its answer may depend on who was faster, so that its caller goes one way or another. A lock has no answer.
    pub answers: bool,
    /// Whether it hands something to who comes first.
    pub first_come: bool,
    /// Whether it is a receive or a wait of MPI.
    pub receives: bool,
    /// Whether it is OpenMP's runtime.
    pub is_runtime: bool,
    /// Whether it is a library's, or of the standard library, and not MPI's.
    pub is_library: bool,
}

impl Named {
    fn of(function: &Function, meaning: Meaning) -> Self {
        let name = c_name(&function.name);
        let is_mpi = mpi::is_called_by_programs(name.as_bytes());
        let of_mpi = mpi::meaning(&name);
        let asks_messages = of_mpi.asks();
        let asks = asks_messages || meaning.asks();
        let is_clock = meaning.does == Does::Clock || of_mpi.reads_clock();
        let class = match meaning.does {
            Does::Yield => Class::Yield,
            Does::Sleep { brief: true } => Class::Sleep,
            Does::MakeRoom => Class::Wait,
            _ if meaning.is_pause() => Class::Wait,
            _ if asks => Class::Question,
            _ if meaning.is_lock() || is_clock => Class::Idle,
            _ => Class::Work,
        };
        let first_come = meaning.is_first_come() || of_mpi.waits_for_any();
        Self {
            class,
            commits: match () {
                () if meaning.gives_back() => LOCKED,
                () if is_mpi && !asks && !is_clock => MESSAGES,
                () => 0,
            },
            asks: match () {
                () if asks_messages => MESSAGES,
                () if asks => LOCKED,
                () => 0,
            },
            shares: meaning.is_lock() || asks || first_come || class == Class::Wait,
            answers: asks || first_come || meaning.may_give_up(),
            first_come,
            receives: is_mpi && (of_mpi.receives() || matches!(of_mpi.does, mpi::Does::Wait(_))),
            is_runtime: meaning.is_runtime(),
            is_library: (function.imported || lockstep_trace::is_standard(&function.name))
                && !is_mpi,
        }
    }
}

/// What a node is, whatever stands around it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quiet {
    pub class: Class,
    /// Of which questions something comes in it.
    pub commits: u8,
    /// Of what is idle: what it asks for.
    pub asks: u8,
    /// Of what is idle: whether it has a pause, that may be said once more.
    pauses: bool,
    /// Of a loop or an iteration: whether it has work only, so that it need not be opened.
    pub is_plain: bool,
    /// Of a loop or an iteration: whether it only waits and asks.
    pub is_idle: bool,
}

/// The classes of a forest's nodes.
pub(super) struct Classes {
    pub named: Vec<Named>,
    nodes: Vec<Quiet>,
}

impl Classes {
    /// O(nodes). Children have smaller numbers than their parents.
    pub fn of(forest: &Forest) -> Self {
        let named: Vec<Named> = (forest.functions().iter().zip(forest.meanings()))
            .map(|(function, meaning)| Named::of(function, *meaning))
            .collect();
        let mut nodes: Vec<Quiet> = Vec::with_capacity(forest.len());
        for id in (0..forest.len() as u32).map(NodeId) {
            let node = forest.node(id);
            let children = || node.items.iter().map(|item| &nodes[item.node.0 as usize]);
            let inner = Quiet {
                class: Class::Work,
                commits: children().fold(0, |all, it| all | it.commits),
                asks: children().fold(0, |all, it| all | it.asks),
                pauses: children()
                    .any(|it| it.pauses || matches!(it.class, Class::Sleep | Class::Yield)),
                is_plain: children().zip(node.items).all(|(child, item)| {
                    match forest.node(item.node).label {
                        Label::Loop(_) | Label::Iteration => child.is_plain,
                        _ => child.class == Class::Work,
                    }
                }),
                is_idle: !node.items.is_empty()
                    && children().all(|it| it.is_idle || it.class != Class::Work),
            };
            let found = match node.label {
                Label::Call(call) => called(named[call.function.0 as usize], inner),
                _ => inner,
            };
            nodes.push(found);
        }
        Self { named, nodes }
    }

    pub fn node(&self, id: NodeId) -> Quiet {
        self.nodes.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// A call with such a name, and this in it. A function that does nothing but ask is a question, one that only pauses a pause.
fn called(named: Named, inner: Quiet) -> Quiet {
    let is_idle = named.class == Class::Work && inner.is_idle;
    let class = match named.class {
        Class::Work if is_idle && inner.asks != 0 => Class::Question,
        Class::Work if is_idle && inner.pauses && inner.commits == 0 => Class::Sleep,
        Class::Work if is_idle => Class::Idle,
        class => class,
    };
    Quiet {
        class,
        commits: named.commits | inner.commits,
        asks: match is_idle {
            true => inner.asks,
            false => named.asks,
        },
        ..Quiet::default()
    }
}
