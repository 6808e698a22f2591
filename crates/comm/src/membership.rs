//! Who is in which communicator: derived from the calls that made it, or given by whoever knows.

use crate::communicators::CommunicatorId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who is in which communicator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// For each communicator its members' ranks in the world, in the order of their ranks in it;
    /// `None` where the run does not show them, and for intercommunicators.
    pub members: Vec<Option<Arc<[u32]>>>,
    /// Of intercommunicators the two sides, where the run shows them.
    pub sides: BTreeMap<CommunicatorId, [Arc<[u32]>; 2]>,
    /// Of windows and files which of them each is, where there are several of one communicator.
    pub named: BTreeMap<CommunicatorId, String>,
}

impl Membership {
    /// The members, if known.
    #[must_use]
    pub fn members(&self, id: CommunicatorId) -> Option<&Arc<[u32]>> {
        self.members.get(id.0 as usize)?.as_ref()
    }

    /// Whom a member can hear of: the members, or those on the other side.
    #[must_use]
    pub fn heard_by(&self, task: u32, id: CommunicatorId) -> Option<&Arc<[u32]>> {
        match self.sides.get(&id) {
            Some([first, second]) if first.contains(&task) => Some(second),
            Some([first, _]) => Some(first),
            None => self.members(id),
        }
    }
}
