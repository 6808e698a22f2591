//! The loops that stand on a stack, and where one of them has an iteration more.

use crate::body::{BodyId, Key};
use crate::{COPIES, Mode};

/// The loops of a stack, the lowest first.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    loops: Vec<Looped>,
    /// For each height: the topmost loop that has exactly one iteration more above it when the stack is so high.
    ///
    /// A ring, since that is at most K above the loop: where the top of the stack comes by again, loops further below are
    /// next in the row of those that share the place.
    due: Vec<Due>,
    mask: usize,
}

/// A loop that is due.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    height: u32,
    /// Its number in `loops` plus one.
    number: u32,
}

/// What there is to know of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub body: BodyId,
    /// The code that it ends with.
    pub last: u32,
    pub length: u32,
}

/// A loop on the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looped {
    pub index: u32,
    pub round: Round,
    /// How often, in [`Mode::Exact`]; otherwise since it was last pushed.
    pub count: u64,
    /// The height at which it has one iteration more.
    due: u32,
    /// The number of what was due at the same place: where it is due at the same height, its body is longer.
    pub next: u32,
}

impl Looped {
    pub(crate) fn key(&self, mode: Mode) -> Key {
        match mode {
            Mode::Shape => Key::Loop(self.round.body),
            Mode::Exact => Key::Times(self.round.body, self.count),
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

    #[inline]
    fn get(&self, number: u32) -> Option<&Looped> {
        self.loops.get((number as usize).wrapping_sub(1))
    }

    /// How many are below `index`.
    pub(crate) fn below(&self, index: usize) -> usize {
        self.loops.len() - self.from(index).len()
    }

    /// Adds one.
    #[inline]
    pub(crate) fn push(&mut self, index: usize, round: Round) {
        let due = index + 1 + round.length as usize;
        let place = due & self.mask;
        if self.due.len() <= place {
            self.due.resize(place + 1, Due::default());
        }
        self.loops.push(Looped {
            index: index as u32,
            round,
            count: COPIES as u64,
            due: due as u32,
            next: self.due[place].number,
        });
        self.due[place] = Due {
            height: due as u32,
            number: self.loops.len() as u32,
        };
    }

    /// Drops those from `length` on.
    #[inline]
    pub(crate) fn truncate(&mut self, length: usize) {
        while let Some(looped) = self.loops.last()
            && looped.index as usize >= length
        {
            let place = looped.due as usize & self.mask;
            let number = looped.next;
            let height = self.get(number).map_or(0, |it| it.due);
            self.due[place] = Due { height, number };
            self.loops.pop();
        }
    }

    /// The number of the topmost that is due at `height`, 0 if none is.
    #[inline]
    pub(crate) fn due(&self, height: usize) -> u32 {
        match self.due.get(height & self.mask) {
            Some(due) if due.height as usize == height => due.number,
            _ => 0,
        }
    }

    /// By its number, if it is due at `height`.
    #[inline]
    pub(crate) fn get_due(&self, number: u32, height: usize) -> Option<&Looped> {
        let looped = self.get(number)?;
        (looped.due as usize == height).then_some(looped)
    }

    /// Those above the one with this number.
    #[inline]
    pub(crate) fn above(&self, number: u32) -> &[Looped] {
        &self.loops[number as usize..]
    }
}
