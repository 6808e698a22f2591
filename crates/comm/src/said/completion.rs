//! How what was begun comes to an end.

use super::Said;
use crate::answer::{had_none, status};
use crate::communicators::Resolved;
use crate::conversation::Unstarted;
use crate::message::{Part, PartKind, Peer, Waits};
use crate::observer::Observer;
use crate::requests::Named;
use std::sync::Arc;

/// So many of a thread are known.
const MOST_UNSTARTED: usize = 16;

impl<O: Observer> Said<O> {
    /// These are over, though nobody saw when.
    pub(super) fn are_over(&mut self, parts: &[usize]) {
        for part in parts {
            if let Some(part) = self.conversation.parts.get_mut(*part) {
                part.complete = true;
            }
        }
    }

    pub(super) fn complete_all(&mut self, named: &Named, event: &Resolved) {
        self.complete(named.handles.iter().copied().enumerate(), event);
        let unseen = self.requests.complete_unseen(named.more, &[]);
        self.are_over(&unseen);
    }

    /// A call waits for requests: of persistent ones that do not run it waits for nothing. Of sends only those are kept that had
    /// been started before: it is usual to wait first and to start then.
    pub(super) fn rests(&mut self, named: &Named, name: &Arc<str>, event: u64) {
        let idle = named
            .handles
            .iter()
            .filter(|it| self.requests.is_idle(**it));
        for handle in idle {
            let kinds = self.requests.template(*handle).map_or(&[][..], |it| it.0);
            let unstarted = &mut self.conversation.unstarted;
            for kind in kinds {
                let is_new = |all: &[_]| all.iter().all(|it: &Unstarted| it.0 != *kind);
                let is_told = match kind {
                    PartKind::Receive { .. } => true,
                    PartKind::Send { .. } => self.requests.was_started(*handle),
                    _ => false,
                };
                if is_told && unstarted.len() < MOST_UNSTARTED && is_new(unstarted) {
                    unstarted.push((kind.clone(), name.clone(), self.trace, event));
                }
            }
        }
    }

    /// These requests are over, each with the place of its status.
    pub(super) fn complete(
        &mut self,
        seen: impl IntoIterator<Item = (usize, i64)>,
        event: &Resolved,
    ) {
        for (place, handle) in seen {
            if !self.requests.is_known(handle) {
                self.conversation.taken.insert(handle);
            }
            let parts = self.requests.complete(handle);
            // What was sent may have had its handle together with others.
            let all = &self.conversation.parts;
            let is_received = |it: &usize| {
                let kind = all.get(*it).map(|it| &it.kind);
                matches!(kind, Some(PartKind::Receive { from, .. }) if *from != Peer::Nobody && *from != Peer::Unknown)
            };
            if !parts.is_empty() && parts.iter().all(is_received) && !self.requests.is_known(handle)
            {
                self.past.add(handle, event.annotated.index);
            }
            for part in parts {
                self.finish(part, event, Some(place));
            }
        }
    }

    /// Receives that wait for nothing any more, nor take a message from others, as far as the run shows.
    /// Of sends that are cancelled the receivers know nothing: they are taken to be sent.
    pub(super) fn cancel(&mut self, handles: &[i64]) {
        for number in self.requests.parts(handles) {
            let Some(part) = self.conversation.parts.get_mut(number) else {
                continue;
            };
            if matches!(part.kind, PartKind::Receive { .. }) {
                let kind = std::mem::replace(&mut part.kind, PartKind::Own);
                self.cancelled.push((number, kind));
            }
        }
    }

    /// The request of a part is freed: a receive that was cancelled is over then, and nobody knows how.
    pub(super) fn conclude(&mut self, number: usize) {
        if self.cancelled.iter().any(|it| it.0 == number) {
            self.outcome(number, false);
            self.are_over(&[number]);
        }
    }

    /// An operation that did not wait received a message.
    pub(super) fn take(&mut self, kind: PartKind, operation: usize, event: &Resolved) {
        let part = self.conversation.parts.len();
        self.conversation.parts.push(Part {
            operation,
            kind,
            complete: true,
            completed_at: None,
        });
        self.finish(part, event, None);
        self.conversation.operations[operation].waits = Waits::Found(vec![part]);
    }

    /// A receive that was cancelled is over: it had no message, or nobody knows.
    pub(super) fn outcome(&mut self, number: usize, had_none: bool) {
        let Some(place) = self.cancelled.iter().position(|it| it.0 == number) else {
            return;
        };
        let (_, kind) = self.cancelled.swap_remove(place);
        let unclear = &mut self.conversation.unclear;
        if !had_none && !unclear.contains(&kind) {
            unclear.push(kind);
        }
    }

    /// A part is complete; a status may say whose message it was: the only one, or number `index`.
    pub(super) fn finish(&mut self, part: usize, event: &Resolved, index: Option<usize>) {
        self.outcome(part, had_none(event, index));
        let Some(part) = self.conversation.parts.get_mut(part) else {
            return;
        };
        part.complete = true;
        part.completed_at = Some(event.annotated.index);
        let PartKind::Receive { from, tag, .. } = &mut part.kind else {
            return;
        };
        if let Some((said, sender)) = status(event, index) {
            if let (Peer::Any, Some(sender)) = (*from, sender) {
                *from = Peer::Task(sender);
            }
            if tag.is_none() && said >= 0 {
                *tag = Some(said);
            }
        }
    }
}
