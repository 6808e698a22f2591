//! Loose ends by name, as JSON has them.

use super::LooseEnd;

impl LooseEnd {
    /// Its name in JSON.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::BeforeInit { .. } => "before-init",
            Self::Again { .. } => "again",
            Self::WrongThread { .. } => "wrong-thread",
            Self::Unmade { .. } => "unmade",
            Self::NotMarked { .. } => "not-marked",
            Self::Idle { .. } => "idle",
            Self::Argument { .. } => "argument",
            Self::Aliased { .. } => "aliased",
            Self::Overlap { .. } => "overlap",
            Self::Uncommitted { .. } => "uncommitted",
            Self::OtherWay { .. } => "other-way",
            Self::Freed { .. } => "freed",
            Self::Past { .. } => "past",
            Self::StartedTwice { .. } => "started-twice",
            Self::LockedTwice { .. } => "locked-twice",
            Self::OutsideEpoch { .. } => "outside-epoch",
            Self::NeverStarted => "never-started",
            Self::NoBuffer { .. } => "no-buffer",
            Self::AttachedTwice => "attached-twice",
            Self::SmallBuffer { .. } => "small-buffer",
            Self::NotInGroup { .. } => "not-in-group",
            Self::OutsideWindow { .. } => "outside-window",
            Self::NotReady { .. } => "not-ready",
            Self::Conflict { .. } => "conflict",
            Self::AtOnce { .. } => "at-once",
            Self::GivenUp { .. } => "given-up",
            Self::NeverReceived { .. } => "never-received",
            Self::NeverCompleted { .. } => "never-completed",
            Self::OtherDatatype { .. } => "other-datatype",
            Self::TooLarge { .. } => "too-large",
            Self::AfterFinalize { .. } => "after-finalize",
            Self::NeverUnlocked { .. } => "never-unlocked",
            Self::NeverEnded { .. } => "never-ended",
            Self::NeverFinalized => "never-finalized",
            Self::NeverFreed { .. } => "never-freed",
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
            | Self::AfterFinalize { name, .. }
            | Self::NeverEnded { name, .. }
            | Self::NeverFreed { name, .. } => Some(name),
            _ => None,
        }
    }
}
