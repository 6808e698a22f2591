//! What tasks wait for, in words.

use crate::analysis::{Activity, Progress, waits_of};
use crate::thread_words::{behind, within};
use crate::verdict::{group_of, who};
use crate::waits::{Wait, Why};
use lockstep_api::mpi::{self, Does, Epoch};

/// `for a message from rank 3 with tag 7`.
pub(crate) fn reason(progress: &Progress, wait: &Wait) -> String {
    let to = who(progress, &[wait.to]);
    let over = match group_of(progress, wait.to).map(|it| it.activity) {
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

/// The function that is this step of an epoch.
pub(crate) fn function(step: Epoch) -> String {
    let mut all = mpi::functions();
    let found = all.find(|it| it.meaning().does == Does::Epoch(step));
    format!("MPI_{}", found.map_or("", |it| it.base))
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

/// Why a task waits, in short.
pub(crate) fn reasons(progress: &Progress, task: u32) -> Option<String> {
    if let Some(text) = within(progress, task) {
        return Some(text);
    }
    let text = outside(progress, task)?;
    Some(match behind(progress, task) {
        Some(clause) => format!("{text}; {clause}"),
        None => text,
    })
}

fn outside(progress: &Progress, task: u32) -> Option<String> {
    let waits: Vec<&Wait> = waits_of(&progress.waiting, task).collect();
    let first = waits.first()?;
    let alike = waits.iter().all(|it| it.why == first.why);
    if first.or_another && waits.len() > 1 {
        // What was sent and not received says more than that anybody might have something to say.
        let is_of_a_send = |it: &&&Wait| matches!(it.why, Why::Receiver(_));
        if let (Why::Message(_) | Why::OtherTag(..), false) = (&first.why, alike)
            && let Some(sent) = waits.iter().find(is_of_a_send)
        {
            return Some(format!("{}, or for a message", reason(progress, sent)));
        }
        return Some(match (&first.why, alike) {
            (Why::Message(Some(tag)), true) => {
                format!("for a message from anybody with tag {tag}")
            }
            (Why::Message(_) | Why::OtherTag(..), _) => "for a message from anybody".to_owned(),
            _ => together(progress, first, &targets(&waits)),
        });
    }
    if alike && waits.len() > 1 && waits.len() <= MOST_TARGETS {
        return Some(together(progress, first, &targets(&waits)));
    }
    let mut text = reason(progress, first);
    if waits.len() > 1 {
        text.push_str(&format!(" (and {} more)", waits.len() - 1));
    }
    Some(text)
}

/// So many that are waited for are named.
const MOST_TARGETS: usize = 16;

fn targets(waits: &[&Wait]) -> Vec<u32> {
    waits.iter().map(|it| it.to).collect()
}
