//! What `progress --json` prints, and what `record` reads of it at its end.

use crate::said::WentOn;
use lockstep_api::mpi::rules::Rule;
use lockstep_progress::{Activity, Cause, Deed, Group, Kind, Progress as Found};
use lockstep_trace::{Fact, SourceLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where every task is, which task waits for which, and whether that can end. A task is a rank, or without MPI a thread.
// Long: its fields are the keys of the JSON, which are a contract.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The answer in one sentence.
    pub verdict: String,
    /// Whether a task hangs (exit status 1).
    pub hang: bool,
    /// How it hangs; `slow` and `none` are possible without a hang.
    pub kind: Kind,
    /// The findings as values, most important first.
    #[serde(skip_deserializing)]
    pub facts: Vec<Fact>,
    /// Those of `facts` that break a rule of MPI.
    #[serde(skip_deserializing)]
    pub checks: Vec<Broken>,
    /// Groups of tasks that are at the same place, sorted by their first task.
    pub groups: Vec<GroupRow>,
    /// Pairs of groups, by `id`: the second has made less progress than the first. Pairs that follow from others are
    /// left out.
    pub edges: Vec<(usize, usize)>,
    /// Groups that hold up the others, by `id`. If no task waits, those with the least progress.
    pub least_progressed: Vec<usize>,
    /// Which task waits for which; at most 64 waits of a task are listed. For a Go program: which goroutine waits for which.
    pub waits: Vec<WaitRow>,
    /// Tasks that can never continue. Tasks that ended are not among them.
    pub stuck: BTreeSet<u32>,
    /// What the tasks in `stuck` wait for in the end. Each entry is a circle of tasks that wait for each other, or
    /// tasks that ended.
    pub deadlocks: Vec<Vec<u32>>,
    /// Collective operations whose calls do not match, in sentences.
    pub mismatches: Vec<String>,
    /// Broken rules of MPI, and messages, requests and handles that are left over, in sentences.
    pub loose_ends: Vec<String>,
    /// A deadlock that only buffering or a lucky order of messages prevented, in one sentence. Null if there is none.
    pub potential_deadlock: Option<String>,
    /// Tasks that did something unusual and so made others wait.
    pub causes: Vec<CauseRow>,
    /// Which answers are missing, and why, in sentences.
    pub notes: Vec<String>,
    /// Whether a process of the run still runs.
    pub running: bool,
    /// True if only the ends of processes were read, and no trace. Absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_ends_alone: bool,
    /// Tasks that held up the others during the recording and then continued. Null if there were none.
    pub went_on: Option<WentOn>,
}

/// A rule of MPI that was broken.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Broken {
    #[serde(flatten)]
    fact: Fact,
    /// `fatal` (MPI may end the job), `error` (MPI forbids it), `luck` (it worked, but need not), or `left` (something
    /// is left over).
    severity: &'static str,
    /// Clause of the MPI 4.1 standard, such as `11.2.1`.
    clause: &'static str,
}

/// Tasks that are at the same place.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupRow {
    /// Number of the group, from 0.
    pub id: usize,
    /// Numbers of its tasks: ranks, or without MPI threads.
    pub processes: Vec<u32>,
    /// Functions whose calls are open, outermost first.
    pub stack: Vec<String>,
    /// The source line of the innermost call whose line is known. Null if none is.
    #[serde(skip_deserializing)]
    pub source: Option<SourceLine>,
    /// Loops around that place, outermost first, each with its iteration, from 1. Only iterations that are certain are
    /// listed.
    pub loops: Vec<(String, u64)>,
    /// What the tasks are doing.
    pub activity: Activity,
    /// A function inside the innermost open call that the tasks may still run. Null if there is none.
    pub leaf: Option<String>,
}

/// One task waits for another. For a Go program: one goroutine waits for another.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub struct WaitRow {
    /// Number of the task or goroutine that waits.
    pub from: u64,
    /// Number of the task or goroutine that it waits for.
    pub to: u64,
    /// What it waits for, in words.
    pub why: String,
}

/// A task that did something unusual, so that others wait for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cause")]
pub struct CauseRow {
    /// Number of the task.
    task: u32,
    /// Numbers of the tasks that wait for it.
    victims: Vec<u32>,
    /// What it did, in words.
    what: String,
    /// Functions that it called, or did not call.
    functions: Vec<String>,
    /// Calls that it left out, in order. Null if it did not leave the usual order of calls.
    left_out: Option<Vec<String>>,
    /// Calls that it made instead or in addition, in order. Null if `left_out` is.
    instead: Option<Vec<String>>,
    /// The frames around that place, outermost first: a function, and the number of its call in the frame around it,
    /// from 1. Null if `left_out` is.
    frames: Option<Vec<(String, usize)>>,
    /// True if the task went another way than in the normal run (`--normal`). False for what the faulty run alone shows.
    by_normal: bool,
}

impl Document {
    /// Of a run that is over, unless `running` is set.
    pub fn new(found: &Found, verdict: String) -> Self {
        let facts = found.facts();
        let waits = found.waiting.waits.iter().map(|wait| WaitRow {
            from: wait.from.into(),
            to: wait.to.into(),
            why: lockstep_wording::reason(found, wait),
        });
        let mismatches = found.mismatched.iter();
        let mismatches = mismatches.map(|it| lockstep_wording::mismatched(found, it));
        let potential = found.potential.as_ref();
        Self {
            checks: facts.iter().filter_map(Broken::of).collect(),
            facts,
            waits: waits.collect(),
            loose_ends: found.loose.iter().map(lockstep_wording::loose).collect(),
            groups: (0..).zip(&found.groups).map(GroupRow::of).collect(),
            causes: found.causes.iter().map(CauseRow::of).collect(),
            verdict,
            hang: found.hang,
            kind: found.kind,
            edges: found.edges.clone(),
            least_progressed: found.least.clone(),
            stuck: found.waiting.stuck.clone(),
            deadlocks: found.waiting.cores.clone(),
            mismatches: mismatches.collect(),
            potential_deadlock: potential.map(|it| lockstep_wording::potential(found, it)),
            notes: found.notes.clone(),
            ..Self::default()
        }
    }
}

impl Broken {
    /// If the fact is one.
    fn of(fact: &Fact) -> Option<Self> {
        let rule = Rule::named(fact.kind)?;
        Some(Self {
            fact: fact.clone(),
            severity: rule.severity.name(),
            clause: rule.clause,
        })
    }
}

impl GroupRow {
    fn of((id, group): (usize, &Group)) -> Self {
        let places = group.stack.iter();
        let source = places.clone().rev().find_map(|it| it.called_at.as_ref());
        Self {
            id,
            source: source.cloned(),
            stack: places.map(|it| it.function.clone()).collect(),
            processes: group.tasks.clone(),
            loops: group.loops.clone(),
            activity: group.activity,
            leaf: group.leaf.clone(),
        }
    }
}

impl CauseRow {
    fn of(cause: &Cause) -> Self {
        let departure = match &cause.deed {
            Deed::Departed { departure, .. } => Some(departure),
            _ => None,
        };
        Self {
            task: cause.task,
            victims: cause.victims.clone(),
            what: lockstep_wording::caused(cause),
            functions: cause.functions().into_iter().map(str::to_owned).collect(),
            left_out: departure.map(|it| it.left_out.clone()),
            instead: departure.map(|it| it.instead.clone()),
            frames: departure.map(|it| it.frames.clone()),
            by_normal: cause.by_normal(),
        }
    }
}
