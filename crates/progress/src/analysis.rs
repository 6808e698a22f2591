//! A run's progress: the whole of it, in plain values.

use crate::conversation::{Reader, Windows};
use crate::ends::{CRASHES, ends_in, is_crash, is_mpi, lost_their_launcher, state};
use crate::group::Order;
use crate::judgement::{held_up_by, judge, least};
use crate::loose::{Loose, loose_ends};
use crate::matching::Matching;
use crate::message::{Conversation, Membership, State};
use crate::mismatch::{Mismatch, mismatches};
use crate::place::{Coordinates, Program};
use crate::replay::without_buffers;
use crate::verdict;
use crate::waits::{Wait, Waiting};
use crate::watch::Standing;
use lockstep_calltree::{Forest, NodeId};
use lockstep_trace::{
    Communicators, End, Frame, Origin, Process, Run, SourceLine, Thread, ThreadName, TraceName,
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What kind of standstill it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tasks wait for what can never come.
    Deadlock,
    /// A task goes round and round, and others wait for it.
    Livelock,
    /// A task is in its own code, and others wait for it.
    Slow,
    /// Nothing of the kind.
    None,
}

/// What a group of tasks is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// In its own code, or a library that is not MPI.
    Computation,
    /// In MPI.
    Communication,
    /// Its process is gone, other than by being killed with the job.
    Ended,
    /// After `MPI_Finalize`.
    Finished,
}

/// A task: a rank, or without MPI a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Rank, or number of the trace.
    pub number: u32,
    /// Its (main) trace.
    pub trace: TraceName,
    /// How its process ended.
    pub end: End,
    /// Open calls, outermost first.
    pub stack: Vec<Place>,
    /// What it is doing.
    pub activity: Activity,
    /// Whether it brought its job down: it died, or ended with a status that says so.
    pub crashed: bool,
    /// Events recorded of it; of a rank, those of all its threads.
    pub events: u64,
}

/// An open call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function.
    pub function: String,
    /// Whether it is a library's.
    pub imported: bool,
    /// Where it was called.
    pub called_at: Option<SourceLine>,
}

/// Tasks at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its tasks, by number.
    pub tasks: Vec<u32>,
    /// Open calls, outermost first.
    pub stack: Vec<Place>,
    /// Loops around its place, outermost first: by the function they are in and the first that they
    /// call, and the iteration, from 1.
    pub loops: Vec<(String, u64)>,
    /// What it is doing.
    pub activity: Activity,
}

/// A run's progress.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The answer in a sentence.
    pub verdict: String,
    /// Whether a task hangs.
    pub hang: bool,
    /// How.
    pub kind: Kind,
    /// Whether tasks are ranks; else they are threads.
    pub is_mpi: bool,
    /// The tasks, by number.
    pub tasks: BTreeMap<u32, Task>,
    /// The groups, by their first task.
    pub groups: Vec<Group>,
    /// Pairs of groups (more progressed, less progressed), transitively reduced.
    pub edges: Vec<(usize, usize)>,
    /// The groups that hold the others up: the least progressed of those whom the others wait for, or
    /// of all where nobody is known to wait.
    pub least: Vec<usize>,
    /// Who waits for whom.
    pub waiting: Waiting,
    /// Collective operations that do not fit.
    pub mismatches: Vec<Mismatch>,
    /// The same in sentences.
    pub mismatched: Vec<String>,
    /// Messages and requests that came to nothing, and pairs that do not fit.
    pub loose: Vec<Loose>,
    /// A deadlock that only buffering prevented, in a sentence.
    pub potential: Option<String>,
    /// Which answers are lost, and why.
    pub notes: Vec<String>,
}

/// Everything that the verdict is made of.
pub(crate) struct Facts<'a> {
    pub progress: &'a Progress,
    pub conversations: &'a BTreeMap<u32, Conversation>,
    pub communicators: &'a Communicators,
}

/// Where the tasks of a run stand, and what it waits for.
#[must_use]
pub fn analyse(run: &Run) -> Progress {
    let mut notes = Vec::new();
    let chosen = choose(run, &mut notes);
    let threads: Vec<&Thread> = chosen.iter().map(|(_, _, thread)| *thread).collect();
    let mut forest = Forest::new();
    let functions = forest.add_functions(run);
    let roots: Vec<NodeId> = forest
        .add_traces(&functions, &threads)
        .into_iter()
        .map(|trace| trace.root)
        .collect();
    let communicators = run.communicators();
    let (mut conversations, membership) = converse(run, &communicators, &chosen, &mut notes);
    let mut tasks = BTreeMap::new();
    for (number, process, thread) in &chosen {
        let stack = stack(run, thread);
        let conversation = conversations.entry(*number).or_default();
        conversation.state = state(process, conversation, &stack);
        let activity = match conversation.state {
            State::Running if stack.last().is_some_and(is_mpi) => Activity::Communication,
            State::Running => Activity::Computation,
            State::Waiting => Activity::Communication,
            State::Finished => Activity::Finished,
            State::Ended => Activity::Ended,
        };
        tasks.insert(
            *number,
            Task {
                number: *number,
                trace: thread.name,
                end: process.end,
                crashed: activity == Activity::Ended
                    && (is_crash(&process.end) || ends_in(&stack, &CRASHES)),
                stack,
                activity,
                events: match run.is_mpi {
                    true => process.threads.iter().map(|it| it.events).sum(),
                    false => thread.events,
                },
            },
        );
    }
    lost_their_launcher(&mut tasks, &mut conversations);
    let matching = Matching::new(&conversations);
    let mismatches = match is_whole(&threads) {
        true => mismatches(&conversations, &matching),
        false => {
            notes.push(
                "calls or arguments are missing: collective operations are not compared".to_owned(),
            );
            Vec::new()
        }
    };
    let waiting = Waiting::new(&conversations, &membership, &matching, &mismatches);
    let program = Program::new(&forest, &roots);
    let coordinates: Vec<Coordinates> = roots
        .iter()
        .map(|root| program.coordinates(*root))
        .collect();
    let (groups, places) = group(&tasks, &coordinates, &program);
    let order = Order::new(&program, &places);
    let least = held_up_by(&groups, &tasks, &order, &waiting, &mismatches)
        .unwrap_or_else(|| least(&groups, &order, &waiting));
    let mut progress = Progress {
        verdict: String::new(),
        hang: false,
        kind: Kind::None,
        is_mpi: run.is_mpi,
        tasks,
        edges: order.edges(),
        least,
        groups,
        waiting,
        mismatches,
        mismatched: Vec::new(),
        loose: match is_whole(&threads) {
            true => loose_ends(&conversations, &matching),
            false => Vec::new(),
        },
        potential: None,
        notes,
    };
    (progress.hang, progress.kind) = judge(&progress);
    let facts = Facts {
        progress: &progress,
        conversations: &conversations,
        communicators: &communicators,
    };
    let sentence = |it| verdict::mismatched(&facts, it);
    let mismatched = progress
        .mismatches
        .iter()
        .take(MOST_MISMATCHES)
        .map(sentence)
        .collect();
    let potential = without_buffers(&conversations, &membership, &matching)
        .filter(|_| facts.progress.waiting.stuck.is_empty())
        .map(|it| verdict::potential(&facts, &it));
    let sentence = verdict::sentence(&facts, potential.as_deref());
    (progress.verdict, progress.mismatched, progress.potential) = (sentence, mismatched, potential);
    progress
}

/// Mismatches that are put in words: after the first, others follow from it.
const MOST_MISMATCHES: usize = 10;

impl Progress {
    /// Says what a watch found of a run that still goes on: whether a task hangs, how, and the sentence.
    pub fn settle(&mut self, standing: Standing) {
        match standing {
            Standing::No if self.hang => {
                (self.hang, self.kind) = (false, Kind::None);
                self.verdict = verdict::moving();
            }
            Standing::No | Standing::Hangs(Kind::Deadlock) => {}
            Standing::Hangs(kind) => {
                (self.hang, self.kind) = (true, kind);
                if kind == Kind::Livelock {
                    self.verdict = verdict::held_up(self);
                }
            }
            Standing::Silent(quiet) => {
                (self.hang, self.kind) = (true, Kind::Slow);
                self.verdict = verdict::silent(self, quiet);
            }
        }
    }

    /// `rank 5`, `ranks 0-3,7`, `thread 2`.
    #[must_use]
    pub fn who(&self, tasks: &[u32]) -> String {
        verdict::who(self, tasks)
    }

    /// What a task waits for: `for a message from rank 3 with tag 7`.
    #[must_use]
    pub fn reason(&self, wait: &Wait) -> String {
        verdict::reason(self, wait)
    }

    /// What tasks wait for, those that wait for the same together.
    #[must_use]
    pub fn reasons(&self) -> Vec<(Vec<u32>, String)> {
        let mut reasons: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for task in self.tasks.keys() {
            let waits: Vec<&Wait> = waits_of(&self.waiting, *task).collect();
            let Some(first) = waits.first() else { continue };
            let targets: Vec<u32> = waits.iter().map(|wait| wait.to).collect();
            let all_alike = waits.iter().all(|wait| wait.why == first.why);
            let text = match all_alike && waits.len() > 1 {
                true => verdict::together(self, first, &targets),
                false => {
                    let each: Vec<String> = waits.iter().map(|it| self.reason(it)).collect();
                    each.join(" and ")
                }
            };
            reasons.entry(text).or_default().push(*task);
        }
        reasons
            .into_iter()
            .map(|(text, tasks)| (tasks, text))
            .collect()
    }
}

/// The tasks: main threads of the ranks of one job, or all threads of a run without MPI.
fn choose<'a>(run: &'a Run, notes: &mut Vec<String>) -> Vec<(u32, &'a Process, &'a Thread)> {
    let visible = || {
        run.processes
            .iter()
            .filter(|process| run.is_visible(process))
    };
    if !run.is_mpi {
        notes.push("no process called MPI_Init: who waits for whom is not known".to_owned());
        let threads =
            visible().flat_map(|process| process.threads.iter().map(move |it| (process, it)));
        return (0..)
            .zip(threads.filter(|(_, it)| matches!(it.name.thread, ThreadName::Main(_))))
            .map(|(number, (process, thread))| (number, process, thread))
            .collect();
    }
    let job = visible().map(|process| process.name.job).min().unwrap_or(0);
    if visible().any(|process| process.name.job != job) {
        notes.push(format!("only the ranks of job {job} are looked at"));
    }
    let mut ranks: Vec<_> = visible()
        .filter(|process| process.name.job == job && process.name.sibling == 0)
        .filter_map(|process| Some((process.rank?, process, process.threads.first()?)))
        .collect();
    ranks.sort_by_key(|(rank, ..)| *rank);
    ranks.dedup_by_key(|(rank, ..)| *rank);
    ranks
}

/// What the tasks told each other, and who is in which communicator.
fn converse(
    run: &Run,
    communicators: &Communicators,
    chosen: &[(u32, &Process, &Thread)],
    notes: &mut Vec<String>,
) -> (BTreeMap<u32, Conversation>, Membership) {
    let mut conversations = BTreeMap::new();
    let mut members: Vec<Option<Arc<[u32]>>> = communicators
        .all()
        .iter()
        .map(|it| match it.sides.as_slice() {
            [side] if side.size.is_some() => side.ranks.iter().copied().collect(),
            _ => None,
        })
        .collect();
    if !run.is_mpi {
        return (conversations, Membership { members });
    }
    let mut windows = Windows::new(members.len() as u32);
    // That of the first job comes first.
    let world = communicators
        .all()
        .iter()
        .find(|it| it.origin == Origin::World)
        .map(|it| it.id);
    let size = world.and_then(|id| communicators.get(id)?.sides.first()?.size);
    if let Some(missing) = size.and_then(|size| (size as usize).checked_sub(chosen.len()))
        && missing > 0
    {
        notes.push(format!(
            "{missing} ranks left no trace: whoever waits for them may go on"
        ));
    }
    for (number, process, _) in chosen {
        let mut all: Option<Conversation> = None;
        for thread in &process.threads {
            let reader = Reader::new(run, &mut windows, world);
            let said = reader.read(communicators, thread);
            match &mut all {
                Some(all) => all.append(said),
                None => all = Some(said),
            }
        }
        conversations.insert(*number, all.unwrap_or_default());
    }
    for parent in &windows.parents {
        let of = members.get(parent.0 as usize).cloned().flatten();
        members.push(of);
    }
    if conversations.values().all(|it| it.parts.is_empty()) {
        notes.push(
            "no arguments of MPI calls were recorded: who waits for whom is not known".to_owned(),
        );
    }
    (conversations, Membership { members })
}

fn is_whole(threads: &[&Thread]) -> bool {
    threads
        .iter()
        .all(|it| it.arguments_lost == 0 && it.dropped == 0 && it.damage.is_none())
}

fn stack(run: &Run, thread: &Thread) -> Vec<Place> {
    let place = |frame: &Frame| {
        let function = run.function(frame.function);
        Place {
            function: function.name.clone(),
            imported: function.imported,
            called_at: frame.called_at.clone(),
        }
    };
    let real = thread.open.iter().filter(|frame| !frame.handed_over);
    real.map(place).collect()
}

/// Groups by place, and where each stands.
fn group<'s>(
    tasks: &BTreeMap<u32, Task>,
    coordinates: &'s [Coordinates],
    program: &Program<'_>,
) -> (Vec<Group>, Vec<&'s Coordinates>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: Vec<&Coordinates> = Vec::new();
    let mut known: HashMap<(Activity, &[Place]), Vec<usize>> = HashMap::new();
    for (task, standing) in tasks.values().zip(coordinates) {
        let same = known
            .entry((task.activity, task.stack.as_slice()))
            .or_default();
        match same.iter().find(|group| places[**group] == standing) {
            Some(group) => groups[*group].tasks.push(task.number),
            None => {
                same.push(groups.len());
                places.push(standing);
                groups.push(Group {
                    tasks: vec![task.number],
                    stack: task.stack.clone(),
                    loops: program.loops(standing),
                    activity: task.activity,
                });
            }
        }
    }
    (groups, places)
}

/// A wait of a task, if it has one.
pub(crate) fn waits_of(waiting: &Waiting, task: u32) -> impl Iterator<Item = &Wait> {
    waiting.waits.iter().filter(move |wait| wait.from == task)
}
