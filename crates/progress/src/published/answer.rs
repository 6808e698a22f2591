//! What the published methods say of a run, in the words of our own answer.

use super::Method;
use super::model::{Model, StateId};
use super::order::{Baseline, automaded, prodometer};
use super::states::{Moment, State, States};
use crate::analysis::analyse;
use crate::clause::{Finish, Verdict, What};
use crate::group::Order;
use crate::nonempty::NonEmpty;
use crate::observe::Observed;
use crate::place::Program;
use crate::progress::Progress;
use crate::source::Whole;
use crate::task::{Activity, Group, Kind, Task};
use crate::verdict;
use lockstep_comm::{Conversation, PartKind, Peer};
use lockstep_trace::Run;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where the tasks of a run stand, by this method. The published ones know no messages that wait, no
/// deadlock and no end: to them a job hangs whose tasks have not all come to their end.
#[must_use]
pub fn analyse_by(run: &Run, method: Method) -> Progress {
    if method == Method::Lockstep {
        return analyse(run);
    }
    let observed = Observed::new(run, &mut Whole);
    let (model, states) = read(&observed);
    let found = match method {
        Method::Automaded => automaded(&model),
        _ => prodometer(&model, &sent(&observed.conversations)),
    };
    answer(observed, &found, &states)
}

fn read(observed: &Observed) -> (Model, Vec<State>) {
    let program = Program::of_all(&observed.forest);
    let mut states = States::default();
    let tasks = observed.tasks.keys().zip(&observed.roots);
    let models = tasks.map(|(task, root)| {
        let walked = states.walk(&observed.forest, &program, *root);
        Model::of(*task, &walked)
    });
    let model = Model::reduce(models.collect());
    (model, states.list(&observed.forest))
}

/// Who ever sent to whom.
fn sent(conversations: &BTreeMap<u32, Conversation>) -> BTreeSet<(u32, u32)> {
    let mut sent = BTreeSet::new();
    for (task, conversation) in conversations {
        sent.extend(
            conversation
                .parts
                .iter()
                .filter_map(|part| match part.kind {
                    PartKind::Send {
                        to: Peer::Task(to), ..
                    } => Some((*task, to)),
                    _ => None,
                }),
        );
    }
    sent
}

fn answer(observed: Observed, found: &Baseline, states: &[State]) -> Progress {
    let over = |task: &Task| matches!(task.activity, Activity::Finished | Activity::Ended);
    let hang = !observed.tasks.values().all(over);
    let entry = |state: StateId| {
        let stack = states.get(state as usize).map(|it| it.stack.join("/"));
        stack.unwrap_or_default()
    };
    let group = |it: &super::BaselineGroup| {
        let tasks: Vec<u32> = it.tasks.iter().collect();
        let state = states.get(it.state as usize);
        let first = tasks.first().and_then(|task| observed.tasks.get(task));
        Group {
            stack: first.map_or(Arc::default(), |it| it.stack.clone()),
            leaf: None,
            loops: it
                .loops
                .iter()
                .map(|(it, count)| (entry(*it), *count))
                .collect(),
            turns: Vec::new(),
            activity: match state.map(|it| it.moment) {
                Some(Moment::Before) => Activity::Communication,
                _ => Activity::Computation,
            },
            tasks,
        }
    };
    let groups: Vec<Group> = found.groups.iter().map(group).collect();
    let mut notes = observed.notes;
    notes.extend(found.notes.iter().cloned());
    let mut progress = Progress {
        hang,
        kind: if hang { Kind::Slow } else { Kind::None },
        edges: Order::pairs(found.behind.clone()).edges(),
        least: found.least.clone(),
        groups,
        ..Progress::of(observed.is_mpi, observed.tasks, notes)
    };
    progress.verdict = match hang {
        true => NonEmpty::new(verdict::held_up(&progress)),
        false => Some(NonEmpty::one(What::Over(Finish::All).into())),
    }
    .map_or_else(Verdict::default, Verdict::new);
    progress
}

/// A run's Markov model as a document.
#[derive(Debug, Serialize)]
pub struct ModelDocument {
    states: Vec<StateDocument>,
    edges: Vec<EdgeDocument>,
}

#[derive(Debug, Serialize)]
struct StateDocument {
    id: StateId,
    stack: Vec<String>,
    moment: &'static str,
    /// Ranges of the tasks that are in it.
    tasks: Vec<(u32, u32)>,
}

#[derive(Debug, Serialize)]
struct EdgeDocument {
    from: StateId,
    to: StateId,
    /// Counts, and ranges of the tasks that have them.
    counts: Vec<(u64, Vec<(u32, u32)>)>,
}

/// The Markov model of a run: the states of all tasks before and after MPI calls, and how often each
/// task went from one to another.
#[must_use]
pub fn model_of(run: &Run) -> ModelDocument {
    let (model, states) = read(&Observed::new(run, &mut Whole));
    let ranges = |it: &super::Ranks| it.ranges().to_vec();
    let states = (0..).zip(states).map(|(id, state)| StateDocument {
        id,
        moment: match state.moment {
            Moment::Before => "before",
            Moment::After => "after",
            Moment::Marker => "marker",
        },
        stack: state.stack,
        tasks: model.at.get(&id).map(ranges).unwrap_or_default(),
    });
    let edges = model.edges.iter().map(|((from, to), counts)| EdgeDocument {
        from: *from,
        to: *to,
        counts: counts
            .iter()
            .map(|(count, who)| (*count, ranges(who)))
            .collect(),
    });
    ModelDocument {
        states: states.collect(),
        edges: edges.collect(),
    }
}
