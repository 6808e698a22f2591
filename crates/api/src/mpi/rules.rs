//! The rules of MPI that are checked: one row each. Add a row, and a finding that names it.

/// How bad it is to break a rule; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// MPI may end the job in that very call.
    Fatal,
    /// MPI forbids it; what comes of it is not defined.
    Error,
    /// It went well, and need not.
    Luck,
    /// Something is left over at the end.
    Left,
}

impl Severity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fatal, Self::Error, Self::Luck, Self::Left];

    /// Its name, as options and JSON have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fatal => "fatal",
            Self::Error => "error",
            Self::Luck => "luck",
            Self::Left => "left",
        }
    }

    /// What it means, for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Fatal => "MPI may end the job in that very call",
            Self::Error => "MPI does not define what comes of it",
            Self::Luck => "it went well this time, and need not the next time",
            Self::Left => "something is left over at the end",
        }
    }
}

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Its name, as options, JSON and the book have it; it never changes.
    pub id: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// The section of MPI 4.1.
    pub clause: &'static str,
    /// What is told.
    pub what: &'static str,
}

impl Rule {
    /// The one with this name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        RULES.iter().find(|it| it.id == id).copied()
    }
}

/// Declares the rules, and [`RULES`] with all of them.
macro_rules! rules {
    ($($name:ident: $id:literal $severity:ident $clause:literal $what:literal,)*) => {
        $(#[doc = $what] pub const $name: &Rule = &Rule {
            id: $id,
            severity: Severity::$severity,
            clause: $clause,
            what: $what,
        };)*

        /// All rules, those of one severity together.
        pub const RULES: &[&Rule] = &[$($name,)*];
    };
}

rules! {
    BEFORE_INIT: "before-init" Fatal "11.2.1" "MPI is called before `MPI_Init`",
    AGAIN: "again" Fatal "11.2.1" "`MPI_Init` is called though MPI had begun",
    WRONG_THREAD: "wrong-thread" Fatal "11.2.1" "a thread calls MPI that may not at this level of thread support",
    AT_ONCE: "at-once" Fatal "11.2.1" "two threads are in MPI at once at `MPI_THREAD_SERIALIZED`",
    UNMADE: "unmade" Fatal "3.7.3" "a request is named that no call made",
    NOT_MARKED: "not-marked" Fatal "4.2" "a partitioned send is waited for, and a partition was not marked ready",
    IDLE: "idle" Fatal "3.7.5" "a call waits again and again for any of no requests",
    ARGUMENT: "argument" Fatal "2.8" "an argument has a value that MPI does not allow",
    ALIASED: "aliased" Fatal "2.3" "two buffers of one call overlap, and one of them is written",
    FREED: "freed" Fatal "2.5.1" "a handle is used after it was freed",
    PAST: "past" Fatal "3.7.3" "a request is used after it was completed: a copy of its handle",
    STARTED_TWICE: "started-twice" Fatal "3.9" "a persistent request is started while it runs",
    LOCKED_TWICE: "locked-twice" Fatal "12.5.3" "a window is locked that the rank had locked",
    OUTSIDE_EPOCH: "outside-epoch" Fatal "12.5" "a window is used, or an epoch ended, where none had begun",
    NEVER_ENDED: "never-ended" Fatal "12.5" "an epoch on a window is begun and never ended",
    NO_BUFFER: "no-buffer" Fatal "3.6" "a buffered send has no buffer",
    ATTACHED_TWICE: "attached-twice" Fatal "3.6" "a buffer is attached though there is one",
    SMALL_BUFFER: "small-buffer" Fatal "3.6" "a buffered send is larger than the buffer",
    UNCOMMITTED: "uncommitted" Fatal "5.1.9" "a datatype is used that was not committed",
    NOT_IN_GROUP: "not-in-group" Fatal "12.5.2" "the target of an access is not in the group of `MPI_Win_start`",
    OUTSIDE_WINDOW: "outside-window" Fatal "12.3" "an access goes beyond the end of the window",
    AFTER_FINALIZE: "after-finalize" Fatal "11.2.2" "MPI is called after `MPI_Finalize`",
    OTHER_COLLECTIVE: "other-collective" Error "6.14" "the members of a communicator call different collective operations",
    OTHER_ROOT: "other-root" Error "6.14" "they name different roots",
    OTHER_REDUCTION: "other-reduction" Error "6.14" "they reduce by different operations",
    OTHER_SIZE: "other-size" Error "6.14" "they give different counts or datatypes",
    OTHER_TERMS: "other-terms" Error "6.14" "they differ in what else all have to say alike",
    OVERLAP: "overlap" Error "3.7.2" "a call uses memory that an operation uses which runs, and one of the two writes it",
    OTHER_WAY: "other-way" Error "14.2.1" "a file is written that was opened for reading, or the other way round",
    FAILED: "failed" Error "9.3" "a call gave back an error, and the rank went on",
    NEVER_STARTED: "never-started" Error "3.9" "a persistent request is waited for and freed, and was never started",
    GIVEN_UP: "given-up" Error "3.7.3" "the request of a receive is freed before it is complete",
    OTHER_DATATYPE: "other-datatype" Error "3.3.1" "a message is received as another datatype",
    TOO_LARGE: "too-large" Error "3.2.4" "a message is larger than the room of its receive",
    NEVER_UNLOCKED: "never-unlocked" Error "12.5.3" "a window is locked to the end",
    NEVER_FINALIZED: "never-finalized" Error "11.2.2" "a rank ends without `MPI_Finalize`",
    CONFLICT: "conflict" Luck "12.7" "two accesses to a window overlap, and nothing orders them",
    NOT_READY: "not-ready" Luck "3.4" "the receive of a ready send need not have begun by then",
    POTENTIAL_DEADLOCK: "potential-deadlock" Luck "3.5" "only buffering of messages prevents a deadlock",
    MESSAGE_RACE: "message-race" Luck "3.5" "a receive from anybody may get another message, and the run would hang then, or died so",
    NEVER_RECEIVED: "never-received" Left "11.2.2" "a message is sent and never received",
    NEVER_COMPLETED: "never-completed" Left "11.2.2" "an operation is begun and never completed",
    NEVER_FREED: "never-freed" Left "2.5.1" "something is made and never freed",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_rule_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = RULES.iter().map(|it| it.id).collect();
        assert_eq!(names.len(), RULES.len());
        let order = RULES.iter().map(|it| it.severity);
        assert!(order.is_sorted());
    }
}
