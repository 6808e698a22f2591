//! What `progress --json` prints, and what `record` reads of it at its end.

use crate::said::WentOn;
use lockstep_api::mpi::rules::Rule;
use lockstep_progress::{Activity, Cause, Deed, Group, Kind, Progress as Found};
use lockstep_trace::{Fact, SourceLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where every task stands, who waits for whom, and whether that can end. A task is a rank, or without MPI a thread.
// Long: its fields are the keys of the JSON, which are a contract.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// The answer in a sentence.
    pub verdict: String,
    /// Whether a task hangs.
    pub hang: bool,
    /// How it hangs.
    pub kind: Kind,
    /// What was found, as values, the most telling first.
    #[serde(skip_deserializing)]
    pub facts: Vec<Fact>,
    /// Those of `facts` that are a rule of MPI that was broken.
    #[serde(skip_deserializing)]
    pub checks: Vec<Broken>,
    /// Tasks that stand at one place, by their first task.
    pub groups: Vec<GroupRow>,
    /// Pairs of groups: the second is behind the first.
    pub edges: Vec<(usize, usize)>,
    /// The groups that hold the others up.
    pub least_progressed: Vec<usize>,
    /// Who waits for whom.
    pub waits: Vec<WaitRow>,
    /// Tasks that can never go on.
    pub stuck: BTreeSet<u32>,
    /// What these wait for in the end: tasks that wait for each other, or that ended.
    pub deadlocks: Vec<Vec<u32>>,
    /// Collective operations that do not fit, in sentences.
    pub mismatches: Vec<String>,
    /// Messages and requests that came to nothing, in sentences.
    pub loose_ends: Vec<String>,
    /// A deadlock that only buffering or the order of messages prevented, in a sentence.
    pub potential_deadlock: Option<String>,
    /// Tasks that did something unusual, and made the others wait.
    pub causes: Vec<CauseRow>,
    /// Which answers are lost, and why.
    pub notes: Vec<String>,
    /// Whether a process of the run still goes on.
    pub running: bool,
    /// Whether nothing was read but how processes ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_ends_alone: bool,
    /// Tasks that held the others up during the recording, and went on.
    pub went_on: Option<WentOn>,
}

/// A rule of MPI that was broken.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Broken {
    #[serde(flatten)]
    fact: Fact,
    /// `fatal`, `error`, `luck` or `left`.
    severity: &'static str,
    /// The clause of the MPI 4.1 standard.
    clause: &'static str,
}

/// Tasks that stand at one place.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupRow {
    /// Its number, from 0.
    pub id: usize,
    /// Its tasks.
    pub processes: Vec<u32>,
    /// Functions whose calls are open, outermost first.
    pub stack: Vec<String>,
    /// The innermost known line that they are called from.
    #[serde(skip_deserializing)]
    pub source: Option<SourceLine>,
    /// The loops around that place, outermost first, each with its iteration, from 1.
    pub loops: Vec<(String, u64)>,
    /// What its tasks are doing.
    pub activity: Activity,
    /// A function that they may still be in, within the innermost open call.
    pub leaf: Option<String>,
}

/// One task waits for another one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wait")]
pub struct WaitRow {
    /// The task that waits, or the goroutine.
    pub from: u64,
    /// The one that it waits for.
    pub to: u64,
    /// Why it waits.
    pub why: String,
}

/// A task that did something unusual, and others wait for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cause")]
pub struct CauseRow {
    /// The task.
    task: u32,
    /// Tasks that wait for it.
    victims: Vec<u32>,
    /// What it did, in words.
    what: String,
    /// Functions that it called, or did not call.
    functions: Vec<String>,
    /// Calls that it left out, in order.
    left_out: Option<Vec<String>>,
    /// What it called instead.
    instead: Option<Vec<String>>,
    /// The frames in which that happened, outermost first: a function, and which of the calls in the frame around it, from 1.
    frames: Option<Vec<(String, usize)>>,
    /// Whether the normal run (`--normal`) shows what is usual.
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
