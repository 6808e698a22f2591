//! The windows and files of the communicators of a run, by numbers of their own.

use crate::communicators::{Communicators, Origin};
use crate::conversation::Conversation;
use crate::message::{CommunicatorId, PartKind};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Communicators that stand for what is collective by itself: the windows and the files of a communicator.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    /// By communicator and the number of the window or file made of it.
    ids: FxHashMap<(CommunicatorId, Made), CommunicatorId>,
    /// The same, from [`Windows::first`] on.
    made: Vec<(CommunicatorId, Made)>,
    first: u32,
}

/// Which of those of its communicator a window or file is, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Made {
    Window(usize),
    File(usize),
}

impl Windows {
    /// Ids from `first` on are free.
    pub fn new(first: u32) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    /// The number of this window or file.
    pub fn id(&mut self, communicator: CommunicatorId, order: Made) -> CommunicatorId {
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

    /// Names of windows and files where a communicator has more than one: `window 2`, `file 3 of #2 {0-3}`.
    pub fn names(&self, known: &Communicators) -> BTreeMap<CommunicatorId, String> {
        let kind = |it: &(CommunicatorId, Made)| (it.0, matches!(it.1, Made::Window(_)));
        let mut times: FxHashMap<_, usize> = FxHashMap::default();
        for it in &self.made {
            *times.entry(kind(it)).or_default() += 1;
        }
        let named = self.made.iter().zip(self.first..);
        let named = named.filter(|(it, _)| times[&kind(it)] > 1);
        let named = named.take(MOST_NAMED);
        let named = named.map(|((parent, made), id)| {
            let own = match made {
                Made::Window(order) => format!("window {}", order + 1),
                Made::File(order) => format!("file {}", order + 1),
            };
            let of = known.get(*parent).filter(|it| it.origin != Origin::World);
            let of = of.map_or(String::new(), |it| format!(" of {}", known.name(it.id)));
            (CommunicatorId(id), own + &of)
        });
        named.collect()
    }

    /// The communicators that they were made of, in the order of their ids.
    pub fn parents(&self) -> impl Iterator<Item = CommunicatorId> + '_ {
        self.made.iter().map(|(communicator, _)| *communicator)
    }
}

/// So many windows and files are told apart.
const MOST_NAMED: usize = 1 << 10;
