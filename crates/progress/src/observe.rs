//! What a run shows of its tasks: their call trees, open calls, ends, and what they told each other.

use crate::builds::Renamed;
use crate::ends::{
    died_of_a_signal, ended_well, ends_in_a_crash, is_crash, is_mpi, killed_first,
    lost_their_launcher, state,
};
use crate::place::{Moment, open};
use crate::source::{Context, Source};
use crate::task::{Activity, Place, Polling, Task};
use lockstep_calltree::{Forest, NodeId, StackFrame, left_out};
use lockstep_check::{Chosen, Usage};
use lockstep_comm::communicators::{Communicators, Members, Origin};
use lockstep_comm::{
    Conversation, Doing, Functions, Membership, Routines, State, Windows, set_apart,
};
use lockstep_trace::{Frame, Process, Run, SourceLine, Thread, ThreadName, TraceName, c_name};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The tasks of a run.
pub(crate) struct Observed {
    pub is_mpi: bool,
    pub tasks: BTreeMap<u32, Task>,
    /// Their call trees, in the order of the tasks.
    pub forest: Forest,
    pub roots: Vec<NodeId>,
    pub conversations: BTreeMap<u32, Conversation>,
    /// What each did wrong by itself, of those who did.
    pub usages: BTreeMap<u32, Usage>,
    /// Which rules are told of.
    pub chosen: Chosen,
    pub membership: Membership,
    pub communicators: Communicators,
    /// Stacks of threads that are not the first of their tasks, where there are several.
    pub stacks: BTreeMap<TraceName, Vec<Place>>,
    /// Whether no call and no argument is missing.
    pub is_whole: bool,
    pub notes: Vec<String>,
}

/// The tasks of a normal run, by number: their trees, in the same forest, and what they told each other.
pub(crate) struct Normal<'a> {
    pub run: &'a Run,
    /// The first thread of each.
    pub traces: BTreeMap<u32, TraceName>,
    pub roots: BTreeMap<u32, NodeId>,
    pub conversations: BTreeMap<u32, Conversation>,
}

impl Observed {
    /// What `run` shows; `source` reads its traces.
    pub fn new(run: &Run, source: &mut impl Source) -> Self {
        Self::beside(run, None, source).0
    }

    /// The same, and of a normal run.
    pub fn beside<'a>(
        run: &Run,
        normal: Option<&'a Run>,
        source: &mut impl Source,
    ) -> (Self, Option<Normal<'a>>) {
        let mut notes = Vec::new();
        let chosen = choose(run, &mut notes);
        let threads: Vec<&Thread> = chosen.iter().map(|(_, _, thread)| *thread).collect();
        let normal = normal.map(|run| (run, choose(run, &mut Vec::new())));
        let count = threads.len() + normal.as_ref().map_or(0, |(_, chosen)| chosen.len());
        let mut forest = Forest::new();
        let (traces, added) = forest.bounded(count, |forest| {
            let functions = forest.add_functions(run);
            let traces = source.trees(forest, &functions, &threads);
            let added = normal.as_ref().map(|(normal, chosen)| {
                let threads: Vec<&Thread> = chosen.iter().map(|(_, _, thread)| *thread).collect();
                let renamed = Renamed::new(run, normal);
                let functions = forest.add_functions_of(
                    normal,
                    |process| normal.is_visible(process),
                    |function| renamed.known_as(function),
                );
                forest.add_traces(&functions, &threads)
            });
            (traces, added)
        });
        notes.extend(left_out(traces.iter().chain(added.iter().flatten())));
        let added = normal.zip(added).map(|((run, chosen), traces)| {
            let numbers = chosen.iter().map(|(number, ..)| *number);
            let communicators = source.communicators(run);
            let notes = &mut Vec::new();
            Normal {
                run,
                traces: chosen.iter().map(|it| (it.0, it.2.name)).collect(),
                roots: numbers.zip(traces.iter().map(|it| it.root)).collect(),
                conversations: converse(run, source, &communicators, &chosen, notes).conversations,
            }
        });
        let roots: Vec<NodeId> = traces.into_iter().map(|trace| trace.root).collect();
        let communicators = source.communicators(run);
        let Heard {
            mut conversations,
            usages,
            membership,
        } = converse(run, source, &communicators, &chosen, &mut notes);
        let mut tasks = Vec::with_capacity(chosen.len());
        // Of many tasks most stand where others do.
        let mut stacks: HashSet<Arc<[Place]>> = HashSet::new();
        for ((number, process, thread), root) in chosen.iter().zip(&roots) {
            let conversation = conversations.entry(*number).or_default();
            let polls = polls(&forest, *root, thread, conversation);
            let stack = match polls.as_ref().and_then(|it| it.since) {
                Some(since) => {
                    let event = Some(since);
                    let line = conversation.polled_at.as_deref();
                    stack_then(run, thread, &forest, Moment { root: *root, event }, line)
                }
                None => stack(run, thread),
            };
            let stack = match stacks.get(stack.as_slice()) {
                Some(known) => known.clone(),
                None => {
                    let stack: Arc<[Place]> = stack.into();
                    stacks.insert(stack.clone());
                    stack
                }
            };
            conversation.state = state(process, conversation, &stack);
            let activity = match conversation.state {
                State::Running if stack.last().is_some_and(is_mpi) => Activity::Communication,
                State::Running => Activity::Computation,
                State::Waiting if conversation.waits_inside() => Activity::Computation,
                State::Waiting => Activity::Communication,
                State::Finished => Activity::Finished,
                State::Ended => Activity::Ended,
            };
            // `MPI_Abort` may give any status.
            let may_crash = run.is_mpi || !ended_well(&process.end);
            let task = Task {
                number: *number,
                trace: thread.name,
                end: process.end,
                crashed: activity == Activity::Ended
                    && (is_crash(&process.end) || may_crash && ends_in_a_crash(&stack)),
                stack,
                leaf: polls.is_none().then(|| leaf(run, thread)).flatten(),
                activity,
                polls,
                events: match run.is_mpi {
                    true => process.threads.iter().map(|it| it.events).sum(),
                    false => thread.events,
                },
                is_launcher: process.is_launcher(),
            };
            tasks.push((*number, task));
        }
        // Of what comes in order a tree's nodes are full.
        let mut tasks: BTreeMap<u32, Task> = tasks.into_iter().collect();
        let is_known = run.lost_its_launcher();
        lost_their_launcher(is_known, &mut tasks, &mut conversations, &usages);
        died_of_a_signal(run, &mut tasks, &mut conversations, &usages, &mut notes);
        let gone = chosen
            .iter()
            .map(|(number, process, _)| Some((process.gone_at?, *number)));
        // Where not all were seen to go, nobody was seen to go first.
        let gone = gone
            .collect::<Option<Vec<(u64, u32)>>>()
            .unwrap_or_default();
        killed_first(run, gone, &mut tasks, &mut conversations);
        note_other_tasks(&tasks, added.as_ref(), &mut notes);
        let observed = Self {
            is_mpi: run.is_mpi,
            tasks,
            roots,
            is_whole: is_whole(&threads),
            stacks: stacks_of_threads(run, &chosen),
            forest,
            conversations,
            usages,
            chosen: Chosen::default(),
            membership,
            communicators,
            notes,
        };
        (observed, added)
    }
}

/// Says where a normal run has other tasks.
fn note_other_tasks(
    tasks: &BTreeMap<u32, Task>,
    normal: Option<&Normal<'_>>,
    notes: &mut Vec<String>,
) {
    if let Some(normal) = normal
        && !normal.roots.keys().eq(tasks.keys())
    {
        notes.push(format!(
            "expected the tasks of the run in the normal one, found {} there and {} here",
            normal.roots.len(),
            tasks.len()
        ));
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
        if Routines::new(run).are_some() {
            let note = "no process called MPI_Init: who waits for whose message is not known";
            notes.push(note.to_owned());
        }
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

/// Tasks that are read at once, in parallel.
const AT_ONCE: usize = 1 << 14;

/// What the tasks told each other, what each did wrong by itself, and who is in which communicator.
struct Heard {
    conversations: BTreeMap<u32, Conversation>,
    usages: BTreeMap<u32, Usage>,
    membership: Membership,
}

/// Hears the tasks.
fn converse(
    run: &Run,
    source: &mut impl Source,
    communicators: &Communicators,
    chosen: &[(u32, &Process, &Thread)],
    notes: &mut Vec<String>,
) -> Heard {
    let mut conversations = Vec::with_capacity(chosen.len());
    let mut usages = BTreeMap::new();
    let mut members: Vec<Option<Arc<[u32]>>> = communicators
        .all()
        .iter()
        .map(|it| match it.sides.as_slice() {
            [side] if side.size.is_some() => side.ranks.iter().copied().collect(),
            _ => None,
        })
        .collect();
    let functions = Functions::new(run);
    if !run.is_mpi {
        for (number, _, thread) in chosen {
            let conversation = Conversation {
                strands: vec![source.strand(&functions, thread)],
                ..Conversation::default()
            };
            conversations.push((*number, conversation));
        }
        set_apart(conversations.iter_mut().flat_map(|it| &mut it.1.strands));
        let membership = Membership {
            members,
            ..Membership::default()
        };
        return Heard {
            conversations: conversations.into_iter().collect(),
            usages,
            membership,
        };
    }
    let first = members.len() as u32;
    let mut windows = Windows::new(first);
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
    let context = Context {
        communicators,
        routines: Routines::new(run),
        functions,
        first,
        world,
    };
    // Some at a time: what is read lies twice in memory until it is where it belongs.
    for chosen in chosen.chunks(AT_ONCE) {
        let threads = chosen.iter().flat_map(|(number, it, _)| {
            let threads = it.threads.iter();
            threads.map(move |thread| (*number, thread))
        });
        let threads: Vec<(u32, &Thread)> = threads.collect();
        let mut read = source.conversations(&context, &threads).into_iter();
        for (number, process, _) in chosen {
            let mut all: Option<Conversation> = None;
            let mut wrong: Option<Usage> = None;
            for (thread, (mut said, made, usage, mut strand)) in
                process.threads.iter().zip(&mut read)
            {
                let is_in_mpi = || stack(run, thread).iter().any(is_mpi);
                if let Some(pending) = said.pending.first()
                    && (said.polled.is_some() || is_in_mpi())
                {
                    strand.doing = Doing::Operation(*pending);
                }
                if matches!(thread.name.thread, ThreadName::Main(_)) {
                    said.strands.push(strand);
                }
                windows.adopt(&made, &mut said);
                match &mut wrong {
                    Some(all) => all.append(usage),
                    None => wrong = Some(usage),
                }
                match &mut all {
                    Some(all) => all.append(said),
                    None => all = Some(said),
                }
            }
            let mut all = all.unwrap_or_default();
            set_apart(all.strands.iter_mut());
            all.shrink();
            let wrong = wrong.filter(|it| !it.is_blameless());
            usages.extend(wrong.map(|it| (*number, it)));
            conversations.push((*number, all));
        }
    }
    for parent in windows.parents() {
        let of = members.get(parent.0 as usize).cloned().flatten();
        members.push(of);
    }
    if conversations
        .iter()
        .all(|(_, it)| it.parts.is_empty() && !it.is_cut)
    {
        notes.push(
            "no arguments of MPI calls were recorded: who waits for whom is not known".to_owned(),
        );
    }
    let between = communicators.all().iter().filter_map(|it| {
        let [first, second] = it.sides.as_slice() else {
            return None;
        };
        let all = |side: &Members| -> Option<Arc<[u32]>> {
            side.size?;
            side.ranks.iter().copied().collect()
        };
        Some((it.id, [all(first)?, all(second)?]))
    });
    let sides = between.collect();
    let conversations = conversations.into_iter().collect();
    let membership = Membership {
        members,
        sides,
        named: windows.names(communicators),
    };
    Heard {
        conversations,
        usages,
        membership,
    }
}

/// The stacks of the threads of processes that have several.
fn stacks_of_threads(
    run: &Run,
    chosen: &[(u32, &Process, &Thread)],
) -> BTreeMap<TraceName, Vec<Place>> {
    let several = chosen.iter().filter(|(_, it, _)| it.threads.len() > 1);
    let threads = several.flat_map(|(_, process, _)| &process.threads);
    threads.map(|it| (it.name, stack(run, it))).collect()
}

fn is_whole(threads: &[&Thread]) -> bool {
    threads
        .iter()
        .all(|it| it.arguments_lost == 0 && it.dropped == 0 && it.damage.is_none())
}

/// A function that the thread may still be in: its call and its return were recorded together.
fn leaf(run: &Run, thread: &Thread) -> Option<String> {
    Some(run.function(thread.open_leaf?).name.clone())
}

/// How a task waits that asks again and again; `root` is its first thread's tree.
fn polls(
    forest: &Forest,
    root: NodeId,
    thread: &Thread,
    conversation: &Conversation,
) -> Option<Polling> {
    let (name, (trace, event)) = conversation.polls()?;
    let is_it = |it: &StackFrame| c_name(&forest.function(it.function).name) == *name;
    let is_there = || {
        let position = forest.position(root, event);
        position.is_some_and(|it| !it.is_return && it.stack.last().is_some_and(is_it))
    };
    let since = (trace == thread.name && is_there()).then_some(event);
    Some(Polling { name, since })
}

/// The open calls of a moment, the last of them called at `line`.
fn stack_then(
    run: &Run,
    thread: &Thread,
    forest: &Forest,
    moment: Moment,
    line: Option<&SourceLine>,
) -> Vec<Place> {
    let open = open(forest, moment);
    let mut now = thread.open.iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(open.len());
    for frame in &open {
        let function = forest.function(frame.function);
        // Calls that are open still were called where they are now.
        let is_open = |it: &&Frame| run.function(it.function).name == function.name;
        let called_at = now.next_if(is_open).map(|it| it.called_at.clone());
        if called_at.is_none() {
            now = [].iter().peekable();
        }
        if frame.tail {
            places.pop();
        }
        places.push(Place {
            function: function.name.clone(),
            imported: function.imported,
            called_at: called_at.flatten(),
        });
    }
    if let (Some(last), Some(line)) = (places.last_mut(), line) {
        last.called_at = Some(line.clone());
    }
    places
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
