//! The rules that loose ends break, and the functions that they are about.

use super::LooseEnd;
use lockstep_api::mpi::rules::{self, Rule};

impl LooseEnd {
    /// The rule that it breaks.
    #[must_use]
    pub const fn rule(&self) -> &'static Rule {
        match self {
            Self::BeforeInit { .. } => rules::BEFORE_INIT,
            Self::Again { .. } => rules::AGAIN,
            Self::WrongThread { .. } => rules::WRONG_THREAD,
            Self::Unmade { .. } => rules::UNMADE,
            Self::NotMarked { .. } => rules::NOT_MARKED,
            Self::Idle { .. } => rules::IDLE,
            Self::Argument { rule, .. } => rule,
            Self::Aliased { .. } => rules::ALIASED,
            Self::Overlap { .. } => rules::OVERLAP,
            Self::Uncommitted { .. } => rules::UNCOMMITTED,
            Self::OtherWay { .. } => rules::OTHER_WAY,
            Self::Freed { .. } => rules::FREED,
            Self::Past { .. } => rules::PAST,
            Self::StartedTwice { .. } => rules::STARTED_TWICE,
            Self::LockedTwice { .. } => rules::LOCKED_TWICE,
            Self::OutsideEpoch { .. } => rules::OUTSIDE_EPOCH,
            Self::NeverStarted => rules::NEVER_STARTED,
            Self::NoBuffer { .. } => rules::NO_BUFFER,
            Self::AttachedTwice => rules::ATTACHED_TWICE,
            Self::SmallBuffer { .. } => rules::SMALL_BUFFER,
            Self::NotInGroup { .. } => rules::NOT_IN_GROUP,
            Self::OutsideWindow { .. } => rules::OUTSIDE_WINDOW,
            Self::NotReady { .. } => rules::NOT_READY,
            Self::Conflict { .. } => rules::CONFLICT,
            Self::AtOnce { .. } => rules::AT_ONCE,
            Self::GivenUp { .. } => rules::GIVEN_UP,
            Self::NeverReceived { .. } => rules::NEVER_RECEIVED,
            Self::NeverCompleted { .. } => rules::NEVER_COMPLETED,
            Self::OtherDatatype { .. } => rules::OTHER_DATATYPE,
            Self::TooLarge { .. } => rules::TOO_LARGE,
            Self::Failed { .. } => rules::FAILED,
            Self::AfterFinalize { .. } => rules::AFTER_FINALIZE,
            Self::NeverUnlocked { .. } => rules::NEVER_UNLOCKED,
            Self::NeverEnded { .. } => rules::NEVER_ENDED,
            Self::NeverFinalized => rules::NEVER_FINALIZED,
            Self::NeverFreed { .. } => rules::NEVER_FREED,
        }
    }

    /// The function that it is about.
    #[must_use]
    pub fn function(&self) -> Option<&str> {
        match self {
            Self::BeforeInit { name, .. }
            | Self::Again { name, .. }
            | Self::WrongThread { name, .. }
            | Self::Unmade { name, .. }
            | Self::NotMarked { name, .. }
            | Self::Idle { name, .. }
            | Self::Argument { name, .. }
            | Self::Aliased { name, .. }
            | Self::Overlap { name, .. }
            | Self::Uncommitted { name, .. }
            | Self::OtherWay { name, .. }
            | Self::Freed { name, .. }
            | Self::Past { name, .. }
            | Self::StartedTwice { name, .. }
            | Self::OutsideEpoch { name, .. }
            | Self::NoBuffer { name, .. }
            | Self::SmallBuffer { name, .. }
            | Self::NotInGroup { name, .. }
            | Self::OutsideWindow { name, .. }
            | Self::NotReady { name, .. }
            | Self::Conflict { name, .. }
            | Self::AtOnce { name, .. }
            | Self::GivenUp { name, .. }
            | Self::NeverReceived { name, .. }
            | Self::NeverCompleted { name, .. }
            | Self::Failed { name, .. }
            | Self::AfterFinalize { name, .. }
            | Self::NeverEnded { name, .. }
            | Self::NeverFreed { name, .. } => Some(name),
            _ => None,
        }
    }
}
