//! What tasks wait for, in words.

use crate::loose_words::function;
use crate::place_words::who;
use crate::progress::Progress;
use crate::task::Activity;
use crate::waits::{Wait, Why, waits_of};
use std::collections::BTreeMap;

impl Progress {
    /// What a task waits for: `for a message from rank 3 with tag 7`.
    #[must_use]
    pub fn reason(&self, wait: &Wait) -> String {
        reason(self, wait)
    }

    /// [`Self::reasons`] in sentences: `ranks 0-1 wait for a message from rank 3 with tag 7`.
    #[must_use]
    pub fn waits_told(&self) -> Vec<String> {
        let told = |(who, why): (Vec<u32>, String)| {
            let verb = if who.len() == 1 { "waits" } else { "wait" };
            format!("{} {verb} {why}", self.who(&who))
        };
        self.reasons().into_iter().map(told).collect()
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
                true => together(self, first, &targets),
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

/// `for a message from rank 3 with tag 7`.
pub(crate) fn reason(progress: &Progress, wait: &Wait) -> String {
    let to = who(progress, &[wait.to]);
    let over = match progress.group_of(wait.to).map(|it| it.activity) {
        Some(Activity::Finished) => ", which has finished",
        Some(Activity::Ended) => ", which has ended",
        _ => "",
    };
    // What is said in another communicator is no answer.
    let within = wait
        .communicator
        .map_or(String::new(), |it| of(progress, it));
    match &wait.why {
        Why::Message(Some(tag)) => format!("for a message from {to} with tag {tag}{within}{over}"),
        Why::Message(None) => format!("for a message from {to}{within}{over}"),
        // It sent these later.
        Why::OtherTag(tag, _) if left_out(progress, wait) => {
            format!("for a message from {to} with tag {tag}{within}{over}")
        }
        Why::OtherTag(tag, sent) => {
            let sent: Vec<String> = sent.iter().map(ToString::to_string).collect();
            format!(
                "for a message from {to} with tag {tag}{within}, which sent tag {}{over}",
                sent.join(", ")
            )
        }
        Why::Receiver(tag) => {
            format!("for {to} to receive a message with tag {tag}{within}{over}")
        }
        Why::Collective(name, id) => {
            format!("for {to} to call {name}{}{over}", of(progress, *id))
        }
        Why::Epoch(step) => format!("for {to} to call {}{over}", function(*step)),
        Why::Unlock(window) => format!("for {to} to unlock {}{over}", window_of(*window)),
    }
}

/// Whether the message that is waited for was left out, as is told.
fn left_out(progress: &Progress, wait: &Wait) -> bool {
    let causes = progress.causes.first();
    causes.is_some_and(|it| it.task == wait.to && it.left_a_message_out())
}

/// ` of #2 {0-3}`; nothing where it is the world's.
fn of(progress: &Progress, id: crate::CommunicatorId) -> String {
    let name = progress.communicators.get(&id);
    name.map_or(String::new(), |name| format!(" of {name}"))
}

fn window_of(task: Option<u32>) -> String {
    match task {
        Some(task) => format!("the window of rank {task}"),
        None => "the window".to_owned(),
    }
}

/// The same wait for several: `for ranks 3,5 to call MPI_Barrier`.
pub(crate) fn together(progress: &Progress, wait: &Wait, targets: &[u32]) -> String {
    let mut targets = targets.to_vec();
    targets.sort_unstable();
    targets.dedup();
    let to = who(progress, &targets);
    let any = if wait.or_another { "any of " } else { "" };
    match &wait.why {
        Why::Message(Some(tag)) | Why::OtherTag(tag, _) => {
            format!("for a message from {any}{to} with tag {tag}")
        }
        Why::Message(None) => format!("for a message from {any}{to}"),
        Why::Receiver(tag) => format!("for {any}{to} to receive a message with tag {tag}"),
        Why::Collective(name, id) => format!("for {any}{to} to call {name}{}", of(progress, *id)),
        Why::Epoch(step) => format!("for {any}{to} to call {}", function(*step)),
        Why::Unlock(window) => format!("for {any}{to} to unlock {}", window_of(*window)),
    }
}
