//! Lists that are never empty: a sentence has a subject.

use std::ops::{Deref, DerefMut};

/// One or more of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonEmpty<T>(Vec<T>);

/// Tasks of which something is said.
pub type Subject = NonEmpty<u32>;

impl<T> NonEmpty<T> {
    /// These in their order, if there are any.
    #[must_use]
    pub fn new(all: Vec<T>) -> Option<Self> {
        (!all.is_empty()).then_some(Self(all))
    }

    /// This one.
    pub fn one(it: T) -> Self {
        Self(vec![it])
    }

    /// One more, behind the others.
    pub(crate) fn push(&mut self, it: T) {
        self.0.push(it);
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self) -> &T {
        &self.0[0]
    }
}

impl<T> Deref for NonEmpty<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for NonEmpty<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
