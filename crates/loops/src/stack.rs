//! The fast folding: the same rules, with the impossible body lengths left out. For rule E these are told by where loops
//! are due, for rule F by where elements occurred before.

use crate::body::{Bodies, BodyId, Key, code};
use crate::echoes::{Echoes, Lengths};
use crate::habits::{Applied, Followed, Habits, Part, WORTH};
use crate::standing::{Looped, Round, Standing};
use crate::{COPIES, Mode};

/// What elements carry beside their keys, and how it is put together when elements become loops.
///
/// The rules look at keys alone; a sequence keeps trip counts, a call tree the subtrees themselves. What is told of loops is for
/// those that keep something of loops alone.
pub trait Content {
    /// The content of one element.
    type Item;

    /// Rule F: the last two blocks of `length` items, of which `loops` are loops in each, are equal and become one item, a loop
    /// of `body`.
    fn create(&mut self, items: &mut Vec<Self::Item>, length: usize, loops: usize, body: BodyId);

    /// Rule E: the last `length` items, of which `loops` are loops, become one more iteration of the loop just before them.
    fn extend(&mut self, items: &mut Vec<Self::Item>, length: usize, loops: usize);

    /// Rule M: the last two items are loops with the same body and become one.
    fn merge(&mut self, items: &mut Vec<Self::Item>);

    /// How far a loop has got, for [`Content::again`].
    type Mark;

    /// How far a loop has got that has `number` loops below it.
    fn mark(&self, looped: &Self::Item, number: usize) -> Self::Mark;

    /// The iterations that this loop got since `mark` come `times` times more.
    fn again(&mut self, looped: &mut Self::Item, number: usize, mark: &Self::Mark, times: u64);
}

/// A sequence while it is folded. [`crate::Folding`] is the ordinary way; this is for own [`Content`].
///
/// An element is told by a number, its [code](crate::body::code): a symbol and a loop may share one, and so do loops of the same
/// body, so that what is equal by its codes is asked for its loops too.
#[derive(Debug, Clone)]
pub struct Stack<T> {
    pub(crate) k: usize,
    pub(crate) mode: Mode,
    pub(crate) codes: Vec<u32>,
    /// Of the codes.
    echoes: Echoes,
    pub(crate) items: Vec<T>,
    pub(crate) loops: Standing,
    /// What need not be folded again; while it is followed, the codes and loops stay behind.
    habits: Habits,
    /// Keys of some of the elements.
    block: Vec<Key>,
    /// Elements below are not folded any more.
    floor: usize,
    /// How short the stack has been since the last look: what is below has not been touched.
    pub(crate) low: usize,
}

impl<T> Stack<T> {
    /// An empty stack that folds bodies of up to `k` elements.
    #[must_use]
    pub fn new(k: usize, mode: Mode) -> Self {
        Self {
            k,
            mode,
            codes: Vec::new(),
            echoes: Echoes::new(k),
            items: Vec::new(),
            loops: Standing::new(k),
            habits: Habits::default(),
            block: Vec::new(),
            floor: 0,
            low: 0,
        }
    }

    /// The keys so far, put together for whoever asks.
    #[must_use]
    pub fn keys(&mut self) -> &[Key] {
        self.settle();
        self.take_keys(0);
        &self.block
    }

    /// The contents so far.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The contents, at the end.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// Empties the stack and keeps its memory.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.echoes.clear();
        self.items.clear();
        self.loops.clear();
        self.habits.forget();
        self.floor = 0;
        self.low = 0;
    }

    /// Adds a symbol and applies the rules.
    #[inline]
    pub fn push<C: Content<Item = T>>(
        &mut self,
        symbol: u32,
        item: T,
        bodies: &mut Bodies,
        content: &mut C,
    ) {
        self.items.push(item);
        match self.habits.follow(symbol) {
            Followed::Pushed => {}
            Followed::Applied { rules, untouched } => {
                self.low = self.low.min(untouched);
                for rule in rules {
                    rule.again(&mut self.items, content);
                }
            }
            Followed::No => {
                self.settle();
                self.habits.begin();
                self.push_code(symbol);
                // Rule M comes first, and has nothing to do where a symbol is on top.
                while self.apply(bodies, content) {
                    while self.merge(content) {}
                }
                self.habits.end(symbol, self.codes.len());
            }
        }
    }

    /// Brings the codes and loops to where the habits are.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.habits.is_at_work() && !self.habits.is_settled(self.codes.len()) {
            self.catch_up();
        }
    }

    #[inline(never)]
    fn catch_up(&mut self) {
        let settled = self.habits.settled;
        self.echoes.truncate(&self.codes, settled);
        self.codes.truncate(settled);
        self.loops.truncate(settled);
        for part in self.habits.parts(settled) {
            let length = self.codes.len();
            let code = match part {
                Part::Symbol(symbol) => symbol,
                Part::Loop(round) => {
                    self.loops.push(length, round);
                    code(Key::Loop(round.body))
                }
            };
            self.echoes.push(length, code);
            self.codes.push(code);
        }
        self.habits.settled = self.codes.len();
    }

    /// Rule E, or F. Most elements leave it at the two looks that are taken here.
    #[inline]
    fn apply<C: Content<Item = T>>(&mut self, bodies: &mut Bodies, content: &mut C) -> bool {
        let end = self.codes.len();
        let top = self.codes.last().copied();
        let mut next = self.loops.due(end);
        while let Some(looped) = self.loops.get_due(next, end) {
            let looped = *looped;
            if top == Some(looped.round.last) && self.extend(next, looped, bodies, content) {
                return true;
            }
            next = looped.next;
        }
        let lengths = self.echoes.lengths(end);
        !lengths.is_empty() && self.create(lengths, bodies, content)
    }

    /// Keeps everything so far as it is: later elements are folded among themselves alone.
    pub fn seal(&mut self) {
        self.settle();
        self.habits.forget();
        self.floor = self.codes.len();
    }

    #[inline]
    fn push_code(&mut self, code: u32) {
        self.echoes.push(self.codes.len(), code);
        self.codes.push(code);
    }

    /// Drops elements down to `length`; the items are the content's to drop.
    #[inline]
    fn truncate(&mut self, length: usize) {
        self.low = self.low.min(length);
        self.echoes.truncate(&self.codes, length);
        self.codes.truncate(length);
        self.loops.truncate(length);
    }

    /// Adds to the count of the loop on top.
    #[inline]
    fn recount(&mut self, more: u64) {
        if let Some(looped) = self.loops.top_mut() {
            looped.count += more;
        }
    }

    /// Leaves the keys from `start` on in `block`; how many of them are loops.
    fn take_keys(&mut self, start: usize) -> usize {
        let codes = self.codes[start..].iter();
        self.block.clear();
        self.block.extend(codes.map(|code| Key::Symbol(*code)));
        let loops = self.loops.from(start);
        for looped in loops {
            self.block[looped.index as usize - start] = looped.key(self.mode);
        }
        loops.len()
    }

    #[inline]
    fn merge<C: Content<Item = T>>(&mut self, content: &mut C) -> bool {
        let end = self.codes.len();
        let [.., below, top] = self.loops.all() else {
            return false;
        };
        let more = top.count;
        let adjoin = top.index as usize + 1 == end && below.index + 1 == top.index;
        if !adjoin || below.round.body != top.round.body || (below.index as usize) < self.floor {
            return false;
        }
        self.truncate(end - 1);
        self.recount(more);
        self.habits.apply(Applied::Merge);
        content.merge(&mut self.items);
        true
    }

    /// Rule E, of the loop with this number, if the iteration is complete.
    #[inline(never)]
    fn extend<C: Content<Item = T>>(
        &mut self,
        number: u32,
        looped: Looped,
        bodies: &Bodies,
        content: &mut C,
    ) -> bool {
        let end = self.codes.len();
        let start = looped.index as usize + 1;
        let loops = self.loops.above(number);
        let complete = start > self.floor
            && same(bodies.codes(looped.round.body), &self.codes[start..])
            && self.has_loops_of(start, loops, looped.round.body, bodies);
        if complete {
            let (length, loops) = (end - start, loops.len());
            content.extend(&mut self.items, length, loops);
            self.truncate(start);
            self.recount(1);
            self.habits.apply(Applied::Extend {
                length: length as u32,
                loops: loops as u32,
            });
            let worth = self.mode == Mode::Shape && looped.count >= WORTH;
            if worth && !self.habits.is_at_work() {
                self.habits.take_root(start - 1, looped.round);
            }
        }
        complete
    }

    /// Whether the loops from `start` on are those of the body.
    #[inline]
    fn has_loops_of(&self, start: usize, loops: &[Looped], body: BodyId, bodies: &Bodies) -> bool {
        bodies.loops(body) == loops.len()
            && loops.iter().all(|looped| {
                bodies.keys(body)[looped.index as usize - start] == looped.key(self.mode)
            })
    }

    #[inline(never)]
    fn create<C: Content<Item = T>>(
        &mut self,
        lengths: Lengths,
        bodies: &mut Bodies,
        content: &mut C,
    ) -> bool {
        let end = self.codes.len();
        let free = &self.codes[self.floor..];
        let found = self.echoes.find(&self.codes, lengths, |length| {
            let start = free.len().checked_sub(COPIES * length);
            start.is_some_and(|start| {
                let (below, top) = free[start..].split_at(length);
                same(below, top) && self.has_same_loops(length)
            })
        });
        let Some(length) = found else {
            return false;
        };
        let loops = self.take_keys(end - length);
        let body = bodies.intern(&self.block);
        let index = end - COPIES * length;
        let round = Round {
            body,
            last: self.codes[end - 1],
            length: length as u32,
        };
        self.truncate(index);
        self.loops.push(index, round);
        self.push_code(code(Key::Loop(body)));
        self.habits.apply(Applied::Create {
            length: length as u32,
            loops: loops as u32,
            round,
        });
        content.create(&mut self.items, length, loops, body);
        true
    }

    /// Whether the last two blocks, which have the same codes, have the same loops.
    #[inline]
    fn has_same_loops(&self, length: usize) -> bool {
        let end = self.codes.len();
        let both = self.loops.from(end - COPIES * length);
        let (below, top) = both.split_at(both.len() / 2);
        below.len() == top.len()
            && below.iter().zip(top).all(|(below, top)| {
                below.index as usize + length == top.index as usize
                    && below.key(self.mode) == top.key(self.mode)
            })
    }
}

impl Applied {
    /// Applies it to the content of elements that do the same as they did.
    #[inline]
    fn again<C: Content>(self, items: &mut Vec<C::Item>, content: &mut C) {
        match self {
            Self::Extend { length, loops } => {
                content.extend(items, length as usize, loops as usize);
            }
            Self::Create {
                length,
                loops,
                round,
            } => {
                content.create(items, length as usize, loops as usize, round.body);
            }
            Self::Merge => content.merge(items),
        }
    }
}

/// Whether two blocks are equal. Most are short, or differ at once.
#[inline]
fn same(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}
