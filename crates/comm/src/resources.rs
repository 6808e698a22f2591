//! What a task made in MPI and has to free: communicators, datatypes, groups, reductions, windows, persistent
//! requests, files, info objects, error handlers and attribute keys. Who does not runs out of them some day, and `MPI_Finalize` does not say so.
//!
//! *Guarantees*: what is said to be held was given back by a call and named by none that frees, in any
//! thread; what MPI predefines is nobody's. *Costs*: O(1) a call that makes or frees, mostly.

use crate::communicators::Resolved;
use crate::routines::Routine;
use lockstep_api::mpi::{Does, Kind, Making, Meaning, Resource};
use lockstep_trace::{Argument, TraceName, Value};
use std::sync::Arc;

/// Something that was made and not freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What.
    pub resource: Resource,
    /// By which function.
    pub name: Arc<str>,
    /// Of which thread.
    pub trace: TraceName,
    /// Number of the call in the trace, from 0.
    pub event: u64,
    handle: i64,
}

/// What a task holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    held: Vec<Held>,
    /// Freed by a thread that did not make it.
    freed: Vec<(Resource, i64)>,
}

/// What is no name of the standard: an object's handle, or the number of a key. A file that could not be opened has none.
fn handle(value: &Value) -> Option<i64> {
    match value {
        Value::Handle(handle) => (handle.name.is_none() && handle.raw != 0).then_some(handle.raw),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Those among the arguments of a call.
fn handles(event: &Resolved) -> impl Iterator<Item = i64> {
    let arguments = event.annotated.arguments.iter();
    let values = arguments.flat_map(|it| it.iter().map(|it| &it.value));
    values.filter_map(handle)
}

impl Resources {
    /// A call begins: it may free something.
    pub fn call(&mut self, meaning: Meaning, event: &Resolved) {
        let Some(resource) = meaning.frees() else {
            return;
        };
        if event.annotated.arguments.is_none() {
            // It frees one of them, who knows which.
            self.held.retain(|it| it.resource != resource);
        }
        for handle in handles(event) {
            self.free((resource, handle));
        }
    }

    /// A call begins within another: the delete function of an attribute, say, or the library's own call, which frees nothing of the
    /// program's.
    pub fn called_back(&mut self, meaning: Meaning, event: &Resolved) {
        let Some(resource) = meaning.frees() else {
            return;
        };
        for handle in handles(event) {
            if self.holds((resource, handle)) {
                self.free((resource, handle));
            }
        }
    }

    fn free(&mut self, (resource, handle): (Resource, i64)) {
        let is_it = |it: &Held| (it.resource, it.handle) == (resource, handle);
        match self.held.iter().rposition(is_it) {
            Some(index) => drop(self.held.remove(index)),
            None => self.freed.push((resource, handle)),
        }
    }

    /// A call returned: of this function, and with this number in the trace.
    pub fn returned(
        &mut self,
        (routine, at): (&Routine, u64),
        trace: TraceName,
        is_persistent: bool,
        event: &Resolved,
    ) {
        let had_none = event.number("flag") == Some(0);
        let made = |argument: &Argument| match argument.kind {
            Kind::NewMessage if had_none => None,
            Kind::NewRequest => is_persistent.then_some(Resource::PersistentRequest),
            kind => Resource::made(kind),
        };
        // A parent was made by another job.
        if routine.meaning.does == Does::Communicator(Making::Parent) {
            return;
        }
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        for argument in arguments {
            if let (Some(resource), Some(handle)) = (made(argument), handle(&argument.value)) {
                self.held.push(Held {
                    resource,
                    name: routine.name.clone(),
                    trace,
                    event: at,
                    handle,
                });
            }
        }
    }

    /// Whether it was made, and not freed as often.
    pub fn holds(&self, (resource, handle): (Resource, i64)) -> bool {
        let is_it = |it: &Held| (it.resource, it.handle) == (resource, handle);
        self.held.iter().any(is_it)
    }

    /// How many there are, and how many were freed that are not here.
    pub fn mark(&self) -> (usize, usize) {
        (self.held.len(), self.freed.len())
    }

    /// Adds those of another thread of the task.
    pub fn append(&mut self, other: Self) {
        self.held.extend(other.held);
        for freed in std::mem::take(&mut self.freed)
            .into_iter()
            .chain(other.freed)
        {
            self.free(freed);
        }
    }

    /// What was made and not freed, thread by thread in the order of the calls.
    #[must_use]
    pub fn held(&self) -> &[Held] {
        &self.held
    }
}
