//! Windows, files and grids that a thread makes, and what it does with windows.

use super::{Open, Said};
use crate::call::{everybody, step};
use crate::message::{CommunicatorId, PartKind, Waits};
use crate::windows::Made;
use lockstep_trace::{Meaning, Resolved};

impl Said {
    /// Calls on windows: making one and fences are collective, others are steps of epochs.
    pub(super) fn window(&mut self, base: &str, event: &Resolved, open: &mut Open) -> Waits {
        let known = event
            .handle("win")
            .and_then(|handle| self.window_ids.get(&handle.raw))
            .copied();
        if let (Some(window), Some(step)) = (known, step(base, event)) {
            let parts = self.add(vec![PartKind::Epoch {
                window,
                step,
                group: self.groups.named(event),
            }]);
            return Waits::All(parts);
        }
        let communicator = match base {
            "Win_fence" | "Win_free" => known,
            "Win_create" | "Win_allocate" | "Win_allocate_shared" | "Win_create_dynamic" => {
                open.window_of = event.communicator();
                open.window_of
            }
            _ => return Waits::Unknown,
        };
        let parts = self.add(vec![everybody(communicator, base)]);
        Waits::All(parts)
    }

    /// A call is over: whether it gave back a grid, a window or a file. `sizes` are the bytes of a unit of displacement and of all of
    /// the task's part of a window.
    pub(super) fn made(
        &mut self,
        base: &str,
        event: &Resolved,
        of: Option<CommunicatorId>,
        sizes: (Option<i64>, Option<i64>),
    ) {
        if let Some((_, Meaning::Communicator { id: Some(id), .. })) = event.get("comm_cart") {
            self.grids.insert(*id);
        }
        let Some(communicator) = of else {
            return;
        };
        let [windows, files] = self.made_windows.entry(communicator).or_default();
        let (order, made) = match event.handle("fh") {
            Some(_) => (files, Made::File as fn(usize) -> Made),
            None => (windows, Made::Window as fn(usize) -> Made),
        };
        let id = self.windows.id(communicator, made(*order));
        *order += 1;
        if let Some(window) = event.handle("win") {
            self.window_ids.insert(window.raw, id);
            let is_shared = base == "Win_allocate_shared";
            // Of memory that is attached later, displacements are addresses.
            let sizes = match base {
                "Win_create_dynamic" => (Some(1), None),
                _ => sizes,
            };
            let accesses = self.conversation.accesses.get_or_insert_default();
            accesses.made(id, sizes, is_shared);
        }
        if let Some(file) = event.handle("fh") {
            self.files.insert(file.raw, id);
        }
    }
}
