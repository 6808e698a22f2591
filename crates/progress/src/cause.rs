//! Who made the others wait by doing something else: tasks that left work out are ahead, and whoever waits
//! for them is their victim.

use crate::departure::{Departure, departure, unlike_before};
use crate::observe::Observed;
use crate::waits::Waiting;
use lockstep_calltree::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A task that departed from what is normal, and others wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub task: u32,
    /// Who waits for it.
    pub victims: Vec<u32>,
    /// What it did.
    pub departure: Departure,
    /// Whether a normal run shows it; else the task's own habit.
    pub by_normal: bool,
}

/// The causes of a hang, those first for whom the tasks of `least` wait. `normal` holds the same tasks of a
/// normal run.
pub(crate) fn causes(
    observed: &Observed,
    normal: Option<&BTreeMap<u32, NodeId>>,
    waiting: &Waiting,
    least: &BTreeSet<u32>,
) -> Vec<Cause> {
    let mut victims: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|wait| !wait.or_another) {
        victims.entry(wait.to).or_default().insert(wait.from);
    }
    let tasks = observed.tasks.keys().zip(&observed.roots);
    let mut found: Vec<Cause> = tasks
        .filter(|(task, _)| normal.is_some() || victims.contains_key(task))
        .filter_map(|(task, root)| {
            let departed = match normal {
                Some(normal) => departure(&observed.forest, *normal.get(task)?, *root)?,
                None => unlike_before(&observed.forest, *root)?,
            };
            let waiting = victims.get(task).into_iter().flatten();
            Some(Cause {
                task: *task,
                victims: waiting.copied().collect(),
                departure: departed,
                by_normal: normal.is_some(),
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
            text.push_str(&format!(" in {function}()"));
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
        false => format!("{name}()"),
    }
}
