//! The fast folding: the same rules, with the impossible body lengths left out. For rule E these are told by where loops
//! are due, for rule F by where elements occurred before.

use crate::body::{Bodies, BodyId, Key};
use crate::echoes::Echoes;
use crate::element::{Element, Loop, Trips, TripsMark, append_all};
use crate::{COPIES, Mode};

/// What elements carry beside their keys, and how it is put together when elements become loops.
///
/// The rules look at keys alone; a sequence keeps trip counts, a call tree the subtrees themselves.
pub trait Content {
    /// The content of one element.
    type Item;

    /// Rule F: the last two blocks of `length` items are equal and become one item, a loop of `body`.
    fn create(&mut self, items: &mut Vec<Self::Item>, length: usize, body: BodyId);

    /// Rule E: the last `length` items become one more iteration of the loop just before them.
    fn extend(&mut self, items: &mut Vec<Self::Item>, length: usize);

    /// Rule M: the last two items are loops with the same body and become one.
    fn merge(&mut self, items: &mut Vec<Self::Item>);

    /// How far a loop has got, for [`Content::again`].
    type Mark;

    /// How far a loop has got.
    fn mark(&self, looped: &Self::Item) -> Self::Mark;

    /// The iterations that a loop got since `mark` come `times` times more.
    fn again(&mut self, looped: &mut Self::Item, mark: &Self::Mark, times: u64);
}

/// A sequence while it is folded. [`fold`] is the ordinary way; this is for own [`Content`].
#[derive(Debug, Clone)]
pub struct Stack<T> {
    k: usize,
    mode: Mode,
    keys: Vec<Key>,
    /// Of `code(keys[i])`.
    echoes: Echoes,
    items: Vec<T>,
    /// The loops.
    loops: Vec<Looped>,
    /// For each height: the topmost loop that has exactly one iteration more above it when the stack is so high, as its number
    /// in `loops` plus one.
    due: Vec<u32>,
    /// Elements below are not folded any more.
    floor: usize,
    /// How short the stack has been since the last look: what is below has not been touched.
    low: usize,
}

/// A loop on the stack.
#[derive(Debug, Clone, Copy)]
struct Looped {
    index: usize,
    body: BodyId,
    /// The height at which it has one iteration more.
    due: usize,
    /// What is `due` at the same height, below.
    next: u32,
}

/// Something that is pushed again and again, see [`Stack::repeat`].
#[derive(Debug, Clone)]
pub struct Repeat<M> {
    /// The top of the stack before this time.
    window: Vec<Key>,
    /// Its height then.
    height: usize,
    /// `low` of whatever is around this repetition.
    outer_low: usize,
    /// The height above which the last time has only rebuilt what was there before.
    steady: Option<usize>,
    /// How far the loop below that height had got before this time.
    mark: Option<M>,
}

/// A small number that is equal for equal keys, and rarely for others.
#[inline]
fn code(key: Key) -> u32 {
    match key {
        Key::Symbol(symbol) => symbol,
        Key::Loop(body) => !body.0,
        Key::Times(body, count) => !body.0 ^ (count as u32).wrapping_mul(0x9e37_79b9),
    }
}

impl<T> Stack<T> {
    /// An empty stack that folds bodies of up to `k` elements.
    #[must_use]
    pub fn new(k: usize, mode: Mode) -> Self {
        Self {
            k,
            mode,
            keys: Vec::new(),
            echoes: Echoes::new(k),
            items: Vec::new(),
            loops: Vec::new(),
            due: Vec::new(),
            floor: 0,
            low: 0,
        }
    }

    /// The keys so far.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
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
        self.keys.clear();
        self.echoes.clear();
        self.items.clear();
        self.loops.clear();
        self.due.clear();
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
        self.push_key(Key::Symbol(symbol));
        self.items.push(item);
        while self.merge(content) || self.extend(bodies, content) || self.create(bodies, content) {}
    }

    /// Keeps everything so far as it is: later elements are folded among themselves alone.
    pub fn seal(&mut self) {
        self.floor = self.keys.len();
    }

    /// Announces that the same symbols are about to be pushed several times. After each time, ask
    /// [`Stack::repeat`] how often they are still to be pushed.
    ///
    /// A thousand iterations then cost about as much as four: once a time has left the stack as it
    /// found it, except that the loop at its top got longer, all further ones will do the same.
    pub fn start<M>(&mut self) -> Repeat<M> {
        let mut repeat = Repeat {
            window: Vec::new(),
            height: 0,
            outer_low: self.low,
            steady: None,
            mark: None,
        };
        self.look(&mut repeat);
        repeat
    }

    fn look<M>(&mut self, repeat: &mut Repeat<M>) {
        repeat.height = self.keys.len();
        repeat.window.clear();
        // A partial iteration on top of its loop has less than K elements.
        let start = repeat.height.saturating_sub(self.k);
        repeat.window.extend_from_slice(&self.keys[start..]);
        self.low = repeat.height;
    }

    /// The symbols have been pushed once more and would have to be `left` times again: how often they
    /// really must be. With 0 the repetition is over, and must be brought to this end.
    pub fn repeat<C: Content<Item = T>>(
        &mut self,
        repeat: &mut Repeat<C::Mark>,
        left: u64,
        content: &mut C,
    ) -> u64 {
        let low = self.low;
        repeat.outer_low = repeat.outer_low.min(low);
        let window = repeat.height - repeat.window.len();
        let unchanged = self.mode == Mode::Shape
            && self.keys.len() == repeat.height
            && low > window
            && self.keys[low..] == repeat.window[low - window..];
        // The first unchanged time may have finished an iteration that began differently; the second
        // one consists of these symbols alone, and so will every further one.
        if unchanged
            && repeat.steady == Some(low)
            && let (Some(looped), Some(mark)) = (self.items.get_mut(low - 1), &repeat.mark)
        {
            content.again(looped, mark, left);
            self.low = repeat.outer_low;
            return 0;
        }
        if left == 0 {
            self.low = repeat.outer_low;
            return 0;
        }
        repeat.steady = unchanged.then_some(low);
        repeat.mark = if unchanged && matches!(self.keys[low - 1], Key::Loop(_)) {
            Some(content.mark(&self.items[low - 1]))
        } else {
            None
        };
        self.look(repeat);
        left
    }

    #[inline]
    fn push_key(&mut self, key: Key) {
        self.keys.push(key);
        self.echoes.push(code(key));
    }

    /// Drops keys down to `length`; the items are the content's to drop.
    #[inline]
    fn truncate_keys(&mut self, length: usize) {
        self.low = self.low.min(length);
        self.keys.truncate(length);
        self.echoes.truncate(length, |it| code(self.keys[it]));
        while let Some(looped) = self.loops.last()
            && looped.index >= length
        {
            self.due[looped.due] = looped.next;
            self.loops.pop();
        }
    }

    /// Adds to the count in the key of the loop on top ([`Mode::Exact`]).
    fn recount(&mut self, more: u64) {
        if let Some(Key::Times(body, count)) = self.keys.pop() {
            let keys = &self.keys;
            self.echoes.truncate(keys.len(), |it| code(keys[it]));
            self.push_key(Key::Times(body, count + more));
        }
    }

    #[inline]
    fn merge<C: Content<Item = T>>(&mut self, content: &mut C) -> bool {
        let more = match self.keys[self.floor..] {
            [.., Key::Loop(below), Key::Loop(top)] if below == top => 0,
            [.., Key::Times(below, _), Key::Times(top, count)] if below == top => count,
            _ => return false,
        };
        self.truncate_keys(self.keys.len() - 1);
        if self.mode == Mode::Exact {
            self.recount(more);
        }
        content.merge(&mut self.items);
        true
    }

    #[inline]
    fn extend<C: Content<Item = T>>(&mut self, bodies: &Bodies, content: &mut C) -> bool {
        let end = self.keys.len();
        let mut next = self.due.get(end).copied().unwrap_or(0);
        // Those that are due at one height have longer bodies the further down they are.
        let start = loop {
            let Some(looped) = self.loops.get((next as usize).wrapping_sub(1)) else {
                return false;
            };
            if looped.index < self.floor {
                return false;
            }
            let start = looped.index + 1;
            if bodies.keys(looped.body) == &self.keys[start..] {
                break start;
            }
            next = looped.next;
        };
        self.truncate_keys(start);
        if self.mode == Mode::Exact {
            self.recount(1);
        }
        content.extend(&mut self.items, end - start);
        true
    }

    #[inline]
    fn create<C: Content<Item = T>>(&mut self, bodies: &mut Bodies, content: &mut C) -> bool {
        let end = self.keys.len();
        let reach = self.k.min((end - self.floor) / COPIES);
        let found = self.echoes.find(reach, |length| {
            self.keys[end - 2 * length..end - length] == self.keys[end - length..]
        });
        let Some(length) = found else {
            return false;
        };
        let body = bodies.intern(&self.keys[end - length..]);
        let index = end - COPIES * length;
        self.truncate_keys(index);
        self.push_loop(index, length, body);
        content.create(&mut self.items, length, body);
        true
    }

    fn push_loop(&mut self, index: usize, length: usize, body: BodyId) {
        let due = index + 1 + length;
        if self.due.len() <= due {
            self.due.resize(due + 1, 0);
        }
        self.loops.push(Looped {
            index,
            body,
            due,
            next: self.due[due],
        });
        self.due[due] = self.loops.len() as u32;
        self.push_key(match self.mode {
            Mode::Shape => Key::Loop(body),
            Mode::Exact => Key::Times(body, COPIES as u64),
        });
    }
}

/// Folds a sequence of tokens with bodies of up to `k` elements; `bodies` gets those that are new.
///
/// `k` = 0 folds nothing.
#[must_use]
pub fn fold(
    tokens: impl IntoIterator<Item = u32>,
    k: usize,
    mode: Mode,
    bodies: &mut Bodies,
) -> Vec<Element> {
    let mut stack = Stack::new(k, mode);
    for token in tokens {
        stack.push(token, Element::Symbol(token), bodies, &mut Counts);
    }
    stack.into_items()
}

/// Content of an ordinary sequence: the trip counts of loops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts;

impl Counts {
    /// Adds a block as one iteration.
    fn enter(inner: &mut Vec<Trips>, block: impl Iterator<Item = Element>) {
        let loops = block.filter_map(|element| match element {
            Element::Loop(looped) => Some(*looped),
            Element::Symbol(_) => None,
        });
        for (index, looped) in loops.enumerate() {
            if inner.len() == index {
                inner.push(Trips::default());
            }
            inner[index].enter(looped);
        }
    }
}

impl Content for Counts {
    type Item = Element;

    fn create(&mut self, items: &mut Vec<Element>, length: usize, body: BodyId) {
        let mut inner = Vec::new();
        let start = items.len() - COPIES * length;
        let mut block = items.drain(start..);
        for _ in 0..COPIES {
            Self::enter(&mut inner, block.by_ref().take(length));
        }
        drop(block);
        items.push(Element::Loop(Box::new(Loop {
            body,
            count: COPIES as u64,
            inner,
        })));
    }

    fn extend(&mut self, items: &mut Vec<Element>, length: usize) {
        let start = items.len() - length;
        let Some((Element::Loop(looped), block)) = items[start - 1..].split_first_mut() else {
            return;
        };
        looped.count += 1;
        let block = block
            .iter_mut()
            .map(|element| std::mem::replace(element, Element::Symbol(0)));
        Self::enter(&mut looped.inner, block);
        items.truncate(start);
    }

    fn merge(&mut self, items: &mut Vec<Element>) {
        let later = items.pop();
        if let (Some(Element::Loop(looped)), Some(Element::Loop(later))) = (items.last_mut(), later)
        {
            looped.count += later.count;
            append_all(&mut looped.inner, later.inner);
        }
    }

    type Mark = (u64, Vec<TripsMark>);

    fn mark(&self, looped: &Element) -> Self::Mark {
        match looped {
            Element::Symbol(_) => (0, Vec::new()),
            Element::Loop(looped) => (looped.count, Trips::marks(&looped.inner)),
        }
    }

    fn again(&mut self, looped: &mut Element, (count, marks): &Self::Mark, times: u64) {
        if let Element::Loop(looped) = looped {
            looped.count += (looped.count - count) * times;
            Trips::again(&mut looped.inner, marks, times);
        }
    }
}
