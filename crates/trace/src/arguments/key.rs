//! Tells records of calls apart without looking into them.

use super::{Annotated, Argument};
use std::sync::Arc;

/// What a call was given, or what it gave back: equal only for equal ones, of one reading of a thread. It is kept as
/// long as this is, so that no other one comes to its place.
#[derive(Debug, Clone)]
pub struct RecordKey(Arc<[Argument]>);

impl PartialEq for RecordKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RecordKey {}

impl RecordKey {
    /// A number for it, that of no other one that is kept.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

impl Annotated {
    /// The number of its key; 0 where there are no arguments.
    #[must_use]
    pub fn key_number(&self) -> usize {
        let arguments = self.arguments.as_ref();
        arguments.map_or(0, |it| it.as_ptr().addr())
    }

    /// `None` where there are no arguments.
    #[must_use]
    pub fn key(&self) -> Option<RecordKey> {
        self.arguments.clone().map(RecordKey)
    }
}
