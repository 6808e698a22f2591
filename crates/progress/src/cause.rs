//! Who made the others wait by doing something else: tasks that left work out are ahead, and whoever waits
//! for them is their victim; so is whoever waits for a message that went astray, or for a task that went past a
//! collective operation.

use crate::analysis::Group;
use crate::astray::Misdirection;
use crate::departure::{Departure, departure, unlike_before};
use crate::group::Order;
use crate::habit::unlike_others;
use crate::matching::PartId;
use crate::message::{CommunicatorId, Conversation};
use crate::mismatch::{Aspect, Mismatch};
use crate::observe::Observed;
use crate::waits::{Waiting, Why};
use lockstep_calltree::NodeId;
use lockstep_trace::brief;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A task that departed from what is normal, and others wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub task: u32,
    /// Who waits for it.
    pub victims: Vec<u32>,
    /// What it did.
    pub deed: Deed,
}

/// What a task did that made others wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It left calls out, or did something else.
    Departed {
        /// What.
        departure: Departure,
        /// Whether a normal run shows it; else the task's own habit.
        by_normal: bool,
    },
    /// A message went astray.
    Misdirected(Misdirection),
    /// It is past the place where most call this collective operation, and did not call it.
    Passed(Arc<str>),
    /// It called another collective operation than most, or with another root or size.
    Differed {
        /// Which.
        name: Arc<str>,
        /// What it said of it: `called MPI_Barrier`.
        said: String,
        /// What most said.
        most: String,
    },
}

impl Cause {
    /// Whether a normal run shows it.
    #[must_use]
    pub fn by_normal(&self) -> bool {
        matches!(self.deed, Deed::Departed { by_normal, .. } if by_normal)
    }

    /// Whether it is a message that went astray.
    #[must_use]
    pub fn is_misdirection(&self) -> bool {
        matches!(self.deed, Deed::Misdirected(_))
    }

    /// What the task did, without its name: `left out MPI_Isend in exchange() (call 21)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.deed {
            Deed::Departed { departure, .. } => departure.sentence(),
            Deed::Misdirected(message) => message.sentence(),
            Deed::Passed(name) => format!("went on without calling {name}"),
            Deed::Differed { said, most, .. } => format!("{said} where most {most}"),
        }
    }

    /// The functions whose calls were wrong, or are missing.
    #[must_use]
    pub fn functions(&self) -> Vec<&str> {
        match &self.deed {
            Deed::Departed { departure, .. } => {
                let all = departure.left_out.iter().chain(&departure.instead);
                all.map(String::as_str).collect()
            }
            Deed::Misdirected(message) => vec![&message.name],
            Deed::Passed(name) | Deed::Differed { name, .. } => vec![name],
        }
    }
}

/// The causes of a hang, those first for whom the tasks of `least` wait. `normal` holds the same tasks of a
/// normal run.
pub(crate) fn causes(
    observed: &Observed,
    normal: Option<&BTreeMap<u32, NodeId>>,
    waiting: &Waiting,
    least: &BTreeSet<u32>,
) -> Vec<Cause> {
    let victims = victims(waiting);
    let awaited: BTreeSet<u32> = waiting.waits.iter().map(|it| it.to).collect();
    let is_message = |why: &Why| matches!(why, Why::Message(_) | Why::OtherTag(..));
    let messages = waiting.waits.iter().filter(|it| is_message(&it.why));
    let missed: BTreeSet<u32> = messages.map(|it| it.to).collect();
    let unlike = |task: &u32, root: NodeId| {
        let found = unlike_before(&observed.forest, root);
        found.or_else(|| match missed.contains(task) {
            true => unlike_others(&observed.forest, root),
            false => None,
        })
    };
    let tasks = observed.tasks.keys().zip(&observed.roots);
    let mut found: Vec<Cause> = tasks
        .filter(|(task, _)| normal.is_some() || awaited.contains(task))
        .filter_map(|(task, root)| {
            let departed = match normal {
                Some(normal) => departure(&observed.forest, *normal.get(task)?, *root)?,
                None => unlike(task, *root)?,
            };
            let waiting = victims.get(task).into_iter().flatten();
            Some(Cause {
                task: *task,
                victims: waiting.copied().collect(),
                deed: Deed::Departed {
                    departure: departed,
                    by_normal: normal.is_some(),
                },
            })
        })
        .collect();
    // Where most differ, the runs do not belong together, or the program never does the same twice.
    if found.len() * 2 > observed.tasks.len() {
        return Vec::new();
    }
    if found.iter().any(|it| !it.victims.is_empty()) {
        found.retain(|it| !it.victims.is_empty());
    }
    let is_first = |it: &Cause| it.victims.iter().any(|task| least.contains(task));
    found.sort_by_key(|it| (!is_first(it), it.task));
    found
}

/// Who waits for each task, for it alone.
fn victims(waiting: &Waiting) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut victims: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|wait| !wait.or_another) {
        victims.entry(wait.to).or_default().insert(wait.from);
    }
    victims
}

/// Messages that went astray, and tasks that are past a collective operation in which others wait for them.
pub(crate) fn deeds(
    astray: Vec<Misdirection>,
    groups: &[Group],
    order: &Order,
    waiting: &Waiting,
) -> Vec<Cause> {
    let mut deeds: BTreeMap<u32, Deed> = BTreeMap::new();
    for it in astray {
        deeds.entry(it.task()).or_insert(Deed::Misdirected(it));
    }
    for (task, name) in passed(groups, order, waiting) {
        deeds.entry(task).or_insert(Deed::Passed(name));
    }
    let victims = victims(waiting);
    let victims_of = |task| victims.get(&task).into_iter().flatten().copied().collect();
    let cause = |(task, deed)| Cause {
        task,
        victims: victims_of(task),
        deed,
    };
    deeds.into_iter().map(cause).collect()
}

/// The few who call another collective operation than most, or with another root or size, where it cannot complete so; none
/// where they are as many as the others.
pub(crate) fn differed(
    mismatches: &[Mismatch],
    conversations: &BTreeMap<u32, Conversation>,
    waiting: &Waiting,
) -> Vec<Cause> {
    let Some(mismatch) = mismatches.iter().find(|it| it.prevents()) else {
        return Vec::new();
    };
    let [(most, many), rest @ ..] = mismatch.sides.as_slice() else {
        return Vec::new();
    };
    if rest.iter().any(|(_, few)| few.len() >= many.len()) {
        return Vec::new();
    }
    let told = |said: &str| match mismatch.aspect {
        Aspect::Function => format!("called {said}"),
        Aspect::Root => format!("named root {said}"),
        Aspect::Reduction | Aspect::Size => format!("had {said}"),
    };
    let victims = victims(waiting);
    let each = rest
        .iter()
        .flat_map(|(said, few)| few.iter().map(move |it| (said, it)));
    let cause = |(said, id): (&String, &PartId)| {
        let conversation = conversations.get(&id.task)?;
        let operation = conversation.parts.get(id.part)?.operation;
        let victims = victims.get(&id.task).into_iter().flatten();
        Some(Cause {
            task: id.task,
            victims: victims.copied().collect(),
            deed: Deed::Differed {
                name: conversation.operations.get(operation)?.name.clone(),
                said: told(said),
                most: told(most),
            },
        })
    };
    let mut causes: Vec<Cause> = each.filter_map(cause).collect();
    causes.sort_by_key(|it| it.task);
    causes
}

/// Tasks that are further in the program than others, which wait for them in a collective operation: where they are the
/// fewer. If they are not, those who wait made a call that most do not make.
fn passed(groups: &[Group], order: &Order, waiting: &Waiting) -> Vec<(u32, Arc<str>)> {
    let mut group_of: FxHashMap<u32, usize> = FxHashMap::default();
    for (group, it) in groups.iter().enumerate() {
        group_of.extend(it.tasks.iter().map(|task| (*task, group)));
    }
    let is_behind = |a: u32, b: u32| {
        let groups = group_of.get(&a).zip(group_of.get(&b));
        groups.is_some_and(|(a, b)| order.is_behind(*a, *b))
    };
    // Of each operation who waits in it, and who is past it.
    type Sides = (BTreeSet<u32>, BTreeSet<u32>);
    let mut operations: BTreeMap<(&Arc<str>, CommunicatorId), Sides> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|wait| !wait.or_another) {
        if let Why::Collective(name, communicator) = &wait.why
            && is_behind(wait.from, wait.to)
        {
            let (behind, ahead) = operations.entry((name, *communicator)).or_default();
            behind.insert(wait.from);
            ahead.insert(wait.to);
        }
    }
    let few = operations
        .into_iter()
        .filter(|(_, (behind, ahead))| ahead.len() < behind.len());
    few.flat_map(|((name, _), (_, ahead))| ahead.into_iter().map(|task| (task, name.clone())))
        .collect()
}

impl Departure {
    /// `left out MPI_Isend in exchange() (call 21)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|it| call(it)).collect();
            names.join(", ")
        };
        let mut text = match (self.left_out.is_empty(), self.instead.is_empty()) {
            (true, _) => format!("called {} besides", list(&self.instead)),
            (false, true) => format!("left out {}", list(&self.left_out)),
            (false, false) => format!(
                "called {} instead of {}",
                list(&self.instead),
                list(&self.left_out)
            ),
        };
        if let Some((function, nth)) = self.frames.last() {
            text.push_str(&format!(" in {}", brief(function)));
            if *nth > 1 {
                text.push_str(&format!(" (call {nth})"));
            }
        }
        text
    }
}

/// A function as sentences have it.
fn call(name: &str) -> String {
    match name.starts_with("MPI_") {
        true => name.to_owned(),
        false => brief(name),
    }
}
