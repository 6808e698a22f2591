//! Windows, files and grids that a thread makes, and what it does with windows.

use super::{Open, Said};
use crate::call::{everybody, step};
use crate::communicators::{Meaning, Resolved};
use crate::message::{CommunicatorId, PartKind, Waits};
use crate::observer::Observer;
use crate::windows::Made;
use lockstep_api::mpi::{Does, Epoch, Memory};

impl<O: Observer> Said<O> {
    /// Calls on windows: making one and fences are collective, others are steps of epochs.
    pub(super) fn window(&mut self, event: &Resolved, open: &mut Open) -> Waits {
        let does = open.routine.meaning.does;
        let known = event
            .handle("win")
            .and_then(|handle| self.window_ids.get(&handle.raw))
            .copied();
        if let (Does::Epoch(epoch), Some(window)) = (does, known)
            && let Some(step) = step(epoch, event)
        {
            let parts = self.add(vec![PartKind::Epoch {
                window,
                step,
                group: self.groups.named(event),
            }]);
            return Waits::All(parts);
        }
        let communicator = match does {
            Does::Epoch(Epoch::Fence) | Does::Free(_) => known,
            Does::Window(_) => {
                open.window_of = event.communicator();
                open.window_of
            }
            _ => return Waits::Unknown,
        };
        let parts = self.add(vec![everybody(communicator, &open.routine)]);
        Waits::All(parts)
    }

    /// A call is over: whether it gave back a grid, a window or a file. `sizes` are the bytes of a unit of displacement and of all of
    /// the task's part of a window.
    pub(super) fn made(
        &mut self,
        does: Does,
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
            let is_shared = does == Does::Window(Memory::Shared);
            // Of memory that is attached later, displacements are addresses.
            let sizes = match does {
                Does::Window(Memory::Dynamic) => (Some(1), None),
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
