//! Why a task waits, in short: for others, and for threads of its own.

use crate::progress::Progress;
use crate::thread_words::{behind, within};
use crate::wait_words::{reason, together};
use crate::waits::{Wait, Why, waits_of};

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
