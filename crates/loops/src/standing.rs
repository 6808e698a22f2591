//! The loops that stand on a stack, and where one of them has an iteration more.

use crate::Mode;
use crate::body::{BodyId, Key};

/// The loops of a stack, the lowest first.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    loops: Vec<Looped>,
    /// For each height: the topmost loop that has exactly one iteration more above it when the stack is so high, as its number
    /// in `loops` plus one.
    ///
    /// A ring, since that is at most K above the loop: where the top of the stack comes by again, loops further below are
    /// next in the row of those that share the place.
    due: Vec<u32>,
    mask: usize,
}

/// A loop on the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looped {
    pub index: u32,
    pub body: BodyId,
    /// How often, in [`Mode::Exact`].
    pub count: u64,
    /// The height at which it has one iteration more.
    due: u32,
    /// What was `due` at the same place.
    next: u32,
}

impl Looped {
    pub(crate) fn key(&self, mode: Mode) -> Key {
        match mode {
            Mode::Shape => Key::Loop(self.body),
            Mode::Exact => Key::Times(self.body, self.count),
        }
    }
}

impl Standing {
    /// None, of bodies of at most `k` elements.
    pub(crate) fn new(k: usize) -> Self {
        Self {
            loops: Vec::new(),
            due: Vec::new(),
            // More places than K, or as many as there are numbers.
            mask: usize::MAX >> k.saturating_add(1).leading_zeros(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.loops.clear();
        self.due.clear();
    }

    pub(crate) fn all(&self) -> &[Looped] {
        &self.loops
    }

    pub(crate) fn top_mut(&mut self) -> Option<&mut Looped> {
        self.loops.last_mut()
    }

    /// Those from `index` on.
    #[inline]
    pub(crate) fn from(&self, index: usize) -> &[Looped] {
        let above = self.loops.iter().rev();
        let above = above.take_while(|it| it.index as usize >= index).count();
        &self.loops[self.loops.len() - above..]
    }

    /// Adds one of a body of `length` elements.
    #[inline]
    pub(crate) fn push(&mut self, index: usize, length: usize, body: BodyId, count: u64) {
        let due = index + 1 + length;
        let place = due & self.mask;
        if self.due.len() <= place {
            self.due.resize(place + 1, 0);
        }
        self.loops.push(Looped {
            index: index as u32,
            body,
            count,
            due: due as u32,
            next: self.due[place],
        });
        self.due[place] = self.loops.len() as u32;
    }

    /// Drops those from `length` on.
    #[inline]
    pub(crate) fn truncate(&mut self, length: usize) {
        while let Some(looped) = self.loops.last()
            && looped.index as usize >= length
        {
            self.due[looped.due as usize & self.mask] = looped.next;
            self.loops.pop();
        }
    }

    /// The topmost that is due at `height`, and those above it, that `is_complete`.
    ///
    /// Those that are due at one height have longer bodies the further down they are.
    #[inline]
    pub(crate) fn find_due(
        &self,
        height: usize,
        mut is_complete: impl FnMut(&Looped, &[Looped]) -> bool,
    ) -> Option<usize> {
        let mut next = *self.due.get(height & self.mask)?;
        loop {
            let (looped, above) = self
                .loops
                .get((next as usize).wrapping_sub(1)..)?
                .split_first()?;
            if looped.due as usize != height {
                return None;
            }
            if is_complete(looped, above) {
                return Some(looped.index as usize);
            }
            next = looped.next;
        }
    }
}
