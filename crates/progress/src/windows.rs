//! The windows and files of the communicators of a run, by numbers of their own.

use crate::message::{CommunicatorId, Conversation, PartKind};
use rustc_hash::FxHashMap;

/// Communicators that stand for what is collective by itself: the windows and the files of a communicator.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    /// By communicator and the number of the window or file made of it.
    ids: FxHashMap<(CommunicatorId, usize), CommunicatorId>,
    /// The same, from [`Windows::first`] on.
    made: Vec<(CommunicatorId, usize)>,
    first: u32,
}

impl Windows {
    /// Ids from `first` on are free.
    pub fn new(first: u32) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    pub fn id(&mut self, communicator: CommunicatorId, order: usize) -> CommunicatorId {
        let next = CommunicatorId(self.first + self.made.len() as u32);
        *self.ids.entry((communicator, order)).or_insert_with(|| {
            self.made.push((communicator, order));
            next
        })
    }

    /// The communicator that a window was made of; `None` of what is no window.
    pub fn parent(&self, window: CommunicatorId) -> Option<CommunicatorId> {
        let index = window.0.checked_sub(self.first)?;
        self.made.get(index as usize).map(|it| it.0)
    }

    /// Takes in those of a conversation that was read apart: there, they get the ids that they have here.
    pub fn adopt(&mut self, others: &Self, conversation: &mut Conversation) {
        let made = others.made.iter();
        let ids: Vec<CommunicatorId> = made.map(|it| self.id(it.0, it.1)).collect();
        if ids.is_empty() {
            return;
        }
        let here = |id: &mut CommunicatorId| {
            let index = id.0.checked_sub(others.first);
            if let Some(known) = index.and_then(|it| ids.get(it as usize)) {
                *id = *known;
            }
        };
        if let Some(accesses) = &mut conversation.accesses {
            accesses.renumber(here);
        }
        for part in &mut conversation.parts {
            match &mut part.kind {
                PartKind::Epoch { window, .. } => here(window),
                PartKind::Collective(share) => {
                    share.communicator.iter_mut().for_each(here);
                }
                PartKind::Send { .. }
                | PartKind::Receive { .. }
                | PartKind::Probe { .. }
                | PartKind::Own => {}
            }
        }
    }

    /// The communicators that they were made of, in the order of their ids.
    pub fn parents(&self) -> impl Iterator<Item = CommunicatorId> + '_ {
        self.made.iter().map(|(communicator, _)| *communicator)
    }
}
