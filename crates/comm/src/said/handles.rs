//! The requests that calls give back, start, ask for and give up.

use super::{MOST_GIVEN, Open, Said};
use crate::answer::{answered, found};
use crate::communicators::Resolved;
use crate::message::{Part, PartKind};
use crate::observer::{Begun, Call, Observer, Started};
use crate::routines::Routine;

impl<O: Observer> Said<O> {
    /// A call gave back a request.
    pub(super) fn gives(&mut self, handle: i64, event_of_call: u64, open: Open) {
        self.past.remove(handle);
        if let Some(made) = &mut self.made_requests {
            made.insert(handle);
        }
        let kept = self.made_requests.take();
        self.made_requests = kept.filter(|it| it.len() < MOST_GIVEN);
        let is_persistent = open.template.is_some();
        let over = match open.template {
            Some(template) => self.requests.make(handle, template),
            None => (self.requests).begin(handle, &open.kinds, open.begun.clone()),
        };
        self.are_over(&over);
        let begun = Begun {
            parts: &self.conversation.parts,
            requests: &self.requests,
        };
        let of = (open.begun.as_slice(), is_persistent);
        self.observer.gives(handle, of, event_of_call, &begun);
    }

    /// Requests are started.
    pub(super) fn start(&mut self, routine: &Routine, event: &Resolved, handles: &[i64]) {
        let at = event.annotated.index;
        for handle in handles {
            let Some((kinds, runs)) = self.requests.template(*handle) else {
                if self.requests.is_plain(*handle) {
                    let plain = Started::Plain;
                    self.observer.starts(&routine.name, self.trace, at, plain);
                }
                continue;
            };
            let kinds = kinds.to_vec();
            let how = if runs {
                Started::Again
            } else {
                Started::Rightly
            };
            self.observer.starts(&routine.name, self.trace, at, how);
            let parts = self.add(kinds);
            let over = self.requests.start(*handle, parts.clone());
            self.are_over(&over);
            let call = Call {
                routine,
                event,
                trace: self.trace,
                datatypes: &self.datatypes,
                layouts: &self.layouts,
            };
            let begun = Begun {
                parts: &self.conversation.parts,
                requests: &self.requests,
            };
            self.observer.runs(*handle, &parts, (&call, how), &begun);
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
        let mut handles_of = handles.iter();
        if handles_of.any(|it| self.requests.is_awaited_in_vain(*it)) {
            self.observer.never_started(self.trace, call);
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
        let said = &self.conversation;
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
        for operation in given_up.filter_map(|it| said.operations.get(it.operation)) {
            self.observer.given_up(&operation.name, self.trace, call);
        }
        self.are_over(&sent);
    }

    /// The memory of these requests may be used, though the requests are not complete.
    pub(super) fn let_go(&mut self, handles: &[i64]) {
        let parts = self.requests.parts(handles);
        self.observer.let_go(&parts);
    }
}
