//! What calls do to the memory of the program.

use super::{Open, Said};
use crate::buffers::{Begun, Touch, has_buffers, overlap, synchronises, wrong};
use crate::call::{opens_between, own_share};
use crate::loose::LooseEnd;
use crate::routines::Routine;
use lockstep_trace::{Resolved, Value};
use std::sync::Arc;

/// A root that only an operation between two groups has: `root MPI_PROC_NULL`.
fn no_root(event: &Resolved) -> Option<String> {
    // One that a library made may be between two groups.
    event.communicator()?;
    match event.get("root")?.0 {
        Value::Rank {
            name: Some(name), ..
        } => Some(format!("root {name}")),
        _ => None,
    }
}

impl Said {
    /// A call is given buffers: what is wrong with these by themselves.
    pub(super) fn given(&mut self, routine: &Routine, event: &Resolved, open: &Open) {
        let Routine { name, meaning, .. } = routine;
        self.meets_others |= opens_between(meaning.does);
        if !has_buffers(event) {
            return;
        }
        let (at, me) = (event.annotated.index, self.trace.process.rank);
        let what = wrong(meaning.does, event, me).or_else(|| {
            let is_between = self.meets_others;
            let own = || own_share(*meaning, event, (&self.datatypes, me));
            (!is_between)
                .then(|| own().or_else(|| no_root(event)))
                .flatten()
        });
        let told = self.conversation.usage.get_or_insert_default();
        if let Some(what) = what {
            let name = name.to_string();
            told.tell(LooseEnd::Argument { name, what }, self.trace, at);
        } else if overlap(&open.touches) {
            let name = name.to_string();
            told.tell(LooseEnd::Aliased { name }, self.trace, at);
        }
    }

    /// A call that gives no request back uses its buffers.
    pub(super) fn uses(&mut self, event: u64, open: &mut Open) {
        let Routine { name, meaning, .. } = &open.routine;
        if let Some(window) = open.window.filter(|_| synchronises(meaning.does)) {
            self.buffers.synchronise(window);
        }
        if open.template.is_some() || !open.begun.is_empty() {
            return;
        }
        let touches = std::mem::take(&mut open.touches);
        self.clash(name, &touches, event);
        if open.window.is_some() {
            let begun = Begun {
                name: name.clone(),
                line: open.line.clone(),
            };
            let parts = &self.conversation.parts;
            self.buffers
                .begin(&begun, touches, (&[], open.window), parts);
        }
    }

    /// Tells of an operation that runs and uses the same memory.
    pub(super) fn clash(&mut self, name: &Arc<str>, touches: &[Touch], event: u64) {
        let is_unsure = |part| self.requests.unsure().any(|it| it == part);
        let parts = &self.conversation.parts;
        let Some(clash) = self.buffers.clash(touches, parts, is_unsure) else {
            return;
        };
        let mistake = LooseEnd::Overlap {
            name: name.to_string(),
            writes: clash.writes,
            other: clash.other,
        };
        let usage = self.conversation.usage.get_or_insert_default();
        usage.tell(mistake, self.trace, event);
    }

    /// The buffers of these requests may be used, though the requests are not complete.
    pub(super) fn let_go(&mut self, handles: &[i64]) {
        let parts = self.requests.parts(handles);
        self.buffers.let_go(&parts);
    }
}
