//! The fast folding: the same rules, with the impossible body lengths left out.

use crate::body::{Bodies, BodyId, Key};
use crate::element::{Element, Loop, Trips, append_all};
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
}

/// A sequence while it is folded. [`fold`] is the ordinary way; this is for own [`Content`].
#[derive(Debug, Clone)]
pub struct Stack<T> {
    k: usize,
    mode: Mode,
    keys: Vec<Key>,
    /// `code(keys[i])`: small numbers side by side are scanned in no time.
    codes: Vec<u64>,
    items: Vec<T>,
    /// Indices of the loops.
    loops: Vec<usize>,
}

/// A number that differs for keys that differ, except rarely for exact loops.
#[inline]
fn code(key: Key) -> u64 {
    const LOOP: u64 = 1 << 32;
    match key {
        Key::Symbol(symbol) => symbol.into(),
        Key::Loop(body) => LOOP | u64::from(body.0),
        Key::Times(body, count) => {
            (LOOP | u64::from(body.0)) ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        }
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
            codes: Vec::new(),
            items: Vec::new(),
            loops: Vec::new(),
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
        self.codes.clear();
        self.items.clear();
        self.loops.clear();
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

    fn push_key(&mut self, key: Key) {
        if !matches!(key, Key::Symbol(_)) {
            self.loops.push(self.keys.len());
        }
        self.keys.push(key);
        self.codes.push(code(key));
    }

    /// Drops keys down to `length`; the items are the content's to drop.
    fn truncate_keys(&mut self, length: usize) {
        self.keys.truncate(length);
        self.codes.truncate(length);
        while self.loops.last().is_some_and(|index| *index >= length) {
            self.loops.pop();
        }
    }

    /// Adds to the count in the key of the loop on top, where counts are part of keys.
    fn recount(&mut self, more: u64) {
        if let Some(Key::Times(body, count)) = self.keys.last().copied() {
            self.truncate_keys(self.keys.len() - 1);
            self.push_key(Key::Times(body, count + more));
        }
    }

    #[inline]
    fn merge<C: Content<Item = T>>(&mut self, content: &mut C) -> bool {
        let more = match *self.keys.as_slice() {
            [.., Key::Loop(below), Key::Loop(top)] if below == top => 0,
            [.., Key::Times(below, _), Key::Times(top, count)] if below == top => count,
            _ => return false,
        };
        self.truncate_keys(self.keys.len() - 1);
        self.recount(more);
        content.merge(&mut self.items);
        true
    }

    #[inline]
    fn extend<C: Content<Item = T>>(&mut self, bodies: &Bodies, content: &mut C) -> bool {
        let end = self.keys.len();
        let candidate = self.loops.iter().rev().find_map(|index| {
            let start = index + 1;
            if end - start > self.k {
                return Some(None);
            }
            let (Key::Loop(body) | Key::Times(body, _)) = self.keys[*index] else {
                return None;
            };
            (start < end && bodies.keys(body) == &self.keys[start..]).then_some(Some(start))
        });
        let Some(Some(start)) = candidate else {
            return false;
        };
        self.truncate_keys(start);
        self.recount(1);
        content.extend(&mut self.items, end - start);
        true
    }

    #[inline]
    fn create<C: Content<Item = T>>(&mut self, bodies: &mut Bodies, content: &mut C) -> bool {
        let Some((top, below)) = self.codes.split_last() else {
            return false;
        };
        let end = self.codes.len();
        let reach = self.k.min(end / COPIES).min(below.len());
        // Two equal blocks end alike, and so only lengths at which the top occurs again can do.
        let found = below[below.len() - reach..]
            .iter()
            .rev()
            .enumerate()
            .filter(|(_, code)| *code == top)
            .map(|(distance, _)| distance + 1)
            .find(|length| {
                let (earlier, later) = (end - 2 * length, end - length);
                self.codes[earlier..later] == self.codes[later..]
                    && (self.mode == Mode::Shape || self.keys[earlier..later] == self.keys[later..])
            });
        let Some(length) = found else {
            return false;
        };
        let body = bodies.intern(&self.keys[end - length..]);
        self.truncate_keys(end - COPIES * length);
        self.push_key(match self.mode {
            Mode::Shape => Key::Loop(body),
            Mode::Exact => Key::Times(body, COPIES as u64),
        });
        content.create(&mut self.items, length, body);
        true
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

/// Keeps the trip counts of inner loops.
struct Counts;

impl Counts {
    /// Adds a block as one iteration.
    fn enter(inner: &mut Vec<Trips>, block: impl Iterator<Item = Element>) {
        let loops = block.filter_map(|element| match element {
            Element::Loop(looped) => Some(looped),
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
        items.push(Element::Loop(Loop {
            body,
            count: COPIES as u64,
            inner,
        }));
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
}
