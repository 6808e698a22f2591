//! The requests that calls give back, start, ask for and give up.

use super::{MOST_GIVEN, Open, Said};
use crate::answer::{answered, found};
use crate::buffers::Begun;
use crate::loose::LooseEnd;
use crate::message::{Part, PartKind};
use lockstep_trace::Resolved;
use std::sync::Arc;

impl Said {
    /// A call gave back a request.
    pub(super) fn gives(&mut self, handle: i64, event_of_call: u64, mut open: Open) {
        self.past.remove(handle);
        if let Some(made) = &mut self.made_requests {
            made.insert(handle);
        }
        let kept = self.made_requests.take();
        self.made_requests = kept.filter(|it| it.len() < MOST_GIVEN);
        let touches = std::mem::take(&mut open.touches);
        let call = Begun {
            name: open.routine.name,
            line: open.line,
        };
        if let Some(template) = open.template {
            let over = self.requests.make(handle, template);
            self.are_over(&over);
            return self.buffers.make(handle, Some((call, touches)));
        }
        let over = (self.requests).begin(handle, &open.kinds, open.begun.clone());
        self.are_over(&over);
        self.buffers.make(handle, None);
        if !open.begun.is_empty() {
            self.clash(&call.name, &touches, event_of_call);
            let all = &self.conversation.parts;
            self.buffers
                .begin(&call, touches, (&open.begun, open.window), all);
        }
    }

    /// Requests are started.
    pub(super) fn start(&mut self, name: &Arc<str>, event: u64, handles: &[i64]) {
        for handle in handles {
            let Some((kinds, runs)) = self.requests.template(*handle) else {
                if self.requests.is_plain(*handle) {
                    let mistake = LooseEnd::Argument {
                        name: name.to_string(),
                        what: "a request that is not persistent".to_owned(),
                    };
                    let usage = self.conversation.usage.get_or_insert_default();
                    usage.tell(mistake, self.trace, event);
                }
                continue;
            };
            let kinds = kinds.to_vec();
            if runs {
                let usage = self.conversation.usage.get_or_insert_default();
                usage.started_twice(name, self.trace, event);
            }
            let parts = self.add(kinds);
            let over = self.requests.start(*handle, parts.clone());
            self.are_over(&over);
            let Some((begun, touches)) = self.buffers.template(*handle) else {
                continue;
            };
            if !runs {
                self.clash(name, &touches, event);
            }
            let all = &self.conversation.parts;
            self.buffers.begin(&begun, touches, (&parts, None), all);
        }
    }

    /// A call returned that asked for something.
    pub(super) fn answered(&mut self, operation: usize, event: &Resolved, open: &mut Open) {
        let Some((parts, probes)) = open.asked.take() else {
            return;
        };
        let asking = &self.conversation.operations[operation];
        match answered(event) {
            true => {
                self.polls.forget();
                match (open.takes.take(), probes.into_iter().next()) {
                    (Some(message), _) => self.take(message, operation, event),
                    (None, Some(probe)) => self.found = Some(found(probe, event)),
                    (None, None) => {}
                }
            }
            false => {
                let call = (&open.routine, asking.event, open.line.as_ref());
                self.polls.ask(call, parts, probes);
                let given = event.annotated.key();
                self.polls.remember(&asking.name, open.key.take(), given);
            }
        }
    }

    /// Requests are freed by this call, which returned then.
    pub(super) fn given_up(&mut self, handles: &[i64], (call, returned): (u64, u64)) {
        self.let_go(handles);
        let usage = self.conversation.usage.get_or_insert_default();
        if handles
            .iter()
            .any(|it| self.requests.is_awaited_in_vain(*it))
        {
            usage.never_started(self.trace, call);
        }
        for handle in handles {
            if self.requests.is_persistent(*handle) {
                self.past.add(*handle, returned);
            }
        }
        for part in self.requests.parts(handles) {
            self.conclude(part);
        }
        let unsure: Vec<usize> = self.requests.unsure().collect();
        let freed = handles.iter();
        let freed: Vec<usize> = freed.flat_map(|it| self.requests.free(*it)).collect();
        let said = &mut self.conversation;
        let is_sent = |it: &&usize| {
            let part = said.parts.get(**it);
            part.is_some_and(|it| matches!(it.kind, PartKind::Send { .. }))
        };
        // A send needs no more of its task; what a receive gets, nobody can use.
        let sent: Vec<usize> = freed.iter().filter(is_sent).copied().collect();
        let is_received = |part: &Part| matches!(part.kind, PartKind::Receive { .. });
        let given_up = freed.iter().filter(|it| !unsure.contains(it));
        let given_up = given_up.filter_map(|it| said.parts.get(*it));
        let given_up = given_up.filter(|it| is_received(it) && !it.complete);
        let usage = said.usage.get_or_insert_default();
        for operation in given_up.filter_map(|it| said.operations.get(it.operation)) {
            let name = operation.name.to_string();
            usage.tell(LooseEnd::GivenUp { name }, self.trace, call);
        }
        self.are_over(&sent);
    }
}
