//! Trees, equal ones once: what is written of a node is its label and then its children, each a node that is
//! known, or a new one that is told right there.
//!
//! ```text
//!  main ─┬─ f ─ a            Trace: New main: New f: New a: End, End, Node a, Node f, End, End
//!        ├─ a
//!        └─ f ─ a            a is node 0, f node 1, main node 2, the trace node 3
//! ```
//!
//! Nodes are numbered as they are complete. Both directions keep the same tables and run the same code
//! ([`super::bits`]); [`Grammar::write`] asks a [`Tree`] what comes next, [`Grammar::read`] the bytes.

use super::bits::{Broken, Coder, Predictor, spread};
use super::tables::{Map, Row};
use crate::codec::memory::Memory;

/// What a node is: a kind in the low three bits and, of a call, flags and the number of its name.
pub mod label {
    /// A whole thread.
    pub const TRACE: u32 = 0;
    /// A return without a call.
    pub const RETURN: u32 = 1;
    /// A loop: its children are its iterations, each so many times.
    pub const LOOP: u32 = 2;
    /// Several elements in a row, an iteration of a loop.
    pub const ITERATION: u32 = 3;
    /// A call.
    pub const CALL: u32 = 4;
    /// The bits of the kind.
    pub const KIND: u32 = 7;
    /// It had not returned at the end.
    pub const OPEN: u32 = 8;
    /// The call around it had handed over to it.
    pub const TAIL: u32 = 16;
    /// Its children are told one by one, without loops (of calls and traces).
    pub const PLAIN: u32 = 32;
    /// Where the number of the name begins.
    pub const NAME: u32 = 6;

    /// Its kind.
    #[must_use]
    pub const fn kind(label: u32) -> u32 {
        label & KIND
    }
}
use label::kind;

/// Trees that are to be written.
pub trait Tree {
    /// What a node is. Asked once, before its children.
    fn label(&mut self, node: u32) -> u32;
    /// A child, and how many times it comes in a row. In a list that is not plain, only in loops more
    /// than once.
    fn item(&self, node: u32, index: usize) -> Option<(u32, u64)>;
    /// The number that [`Tree::define`] gave.
    fn known(&self, node: u32) -> Option<u32>;
    /// A node has been written, and has this number.
    fn define(&mut self, node: u32, number: u32);
}

/// What comes next in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    End,
    Node(u32),
    New(u32),
}

/// Words of a node: label, class, first item, number of items.
const NODE: usize = 4;
/// Words of an item: node, and how many times (low, high).
const ITEM: usize = 3;
/// Kinds of elements.
mod element {
    pub const END: u32 = 0;
    pub const NEW: u32 = 1;
    pub const KNOWN: u32 = 2;
    pub const OTHER: u32 = 3;
    pub const KINDS: u32 = 4;
}
/// Sets of weights.
mod set {
    pub const KIND: usize = 0;
    pub const INDEX: usize = 8;
    pub const LABEL: usize = 16;
    pub const OTHER: usize = 24;
    pub const TIMES: usize = 32;
    pub const NEW_LABEL: usize = 34;
}
/// In maps: how many there are.
const COUNT: u32 = u32::MAX;

/// A list that is under way.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    label: u32,
    /// Alphabet of the call around it, or its own.
    function: u32,
    /// Which nodes have stood in such lists.
    alphabet: u32,
    /// The last elements: node + 1.
    last: [u32; 3],
    /// All of them.
    prefix: u32,
    length: u32,
    /// How often the last ones were repeated.
    times: [u32; 2],
    /// Its first item among those that are pending.
    start: u32,
    /// A list that may be alike: node + 1.
    model: u32,
    /// The item of it that may be next, and how many times of it have gone by.
    model_item: u32,
    model_used: u32,
}

const FRAME: usize = 14;

impl Frame {
    fn words(self) -> [u32; FRAME] {
        let Self {
            label,
            function,
            alphabet,
            last: [a, b, c],
            prefix,
            length,
            times: [s, t],
            start,
            model,
            model_item,
            model_used,
        } = self;
        [
            label, function, alphabet, a, b, c, prefix, length, s, t, start, model, model_item,
            model_used,
        ]
    }

    fn from_words(words: &[u32]) -> Self {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        Self {
            label: word(0),
            function: word(1),
            alphabet: word(2),
            last: [word(3), word(4), word(5)],
            prefix: word(6),
            length: word(7),
            times: [word(8), word(9)],
            start: word(10),
            model: word(11),
            model_item: word(12),
            model_used: word(13),
        }
    }
}

/// The nodes so far, and what is expected of the next.
#[derive(Debug, Clone)]
pub struct Grammar<M> {
    predictor: Predictor<M>,
    nodes: Row<M>,
    items: Row<M>,
    /// Items of lists that are under way.
    pending: Row<M>,
    frames: Row<M>,
    /// (alphabet, index) gives the node, (alphabet, COUNT) how many there are.
    alphabets: Map<M>,
    /// (alphabet, node) gives the index.
    places: Map<M>,
    /// (class or alphabet, 0) gives the latest node of it.
    latest: Map<M>,
    /// Elements that were told.
    elements: u64,
}

/// Choices that stand in any context.
const NO_LIST: u32 = 0;

impl<M: Memory + Default> Grammar<M> {
    /// Without nodes; 2^`bits` slots for the predictor.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self {
            predictor: Predictor::new(bits),
            nodes: Row::default(),
            items: Row::default(),
            pending: Row::default(),
            frames: Row::default(),
            alphabets: Map::default(),
            places: Map::default(),
            latest: Map::default(),
            elements: 0,
        }
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> u32 {
        (self.nodes.len() / NODE) as u32
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements of lists were told.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// What a node is.
    #[must_use]
    pub fn label(&self, node: u32) -> u32 {
        self.nodes.get(NODE * node as usize)
    }

    fn class(&self, node: u32) -> u32 {
        self.nodes.get(NODE * node as usize + 1)
    }

    /// How many items a node has.
    #[must_use]
    pub fn count(&self, node: u32) -> usize {
        self.nodes.get(NODE * node as usize + 3) as usize
    }

    /// A child, and how many times it comes in a row.
    #[must_use]
    pub fn item(&self, node: u32, index: usize) -> Option<(u32, u64)> {
        let start = self.nodes.get(NODE * node as usize + 2) as usize;
        (index < self.count(node)).then(|| item(&self.items, start + index))
    }

    /// Writes the tree of `root`; its number.
    ///
    /// # Errors
    /// Where the tree is larger than can be told.
    pub fn write<C: Coder, T: Tree>(
        &mut self,
        coder: &mut C,
        tree: &mut T,
        root: u32,
    ) -> Result<u32, Broken> {
        if let Some(known) = tree.known(root) {
            return Ok(known);
        }
        // For each list: node, item, and how many times of it are left.
        let mut path: Row<M> = Row::default();
        let mut here = (root, 0usize, 0u64);
        let mut frame = Frame::default();
        let label = self.label_symbol(coder, &frame, tree.label(root))?;
        frame = self.enter(&frame, label);
        let bottom = self.frames.len();
        loop {
            let (node, index, left) = here;
            let next = tree.item(node, index);
            let Some((child, times)) = next else {
                self.element(coder, &frame, Element::End)?;
                let number = self.close(&frame);
                tree.define(node, number);
                if self.frames.len() == bottom {
                    return Ok(number);
                }
                frame = self.leave();
                here = pop(&mut path);
                let (child, times) = tree.item(here.0, here.1).unwrap_or((0, 1));
                self.follow(coder, &mut frame, &mut here, number, times)?;
                let _ = child;
                continue;
            };
            if left == 0 {
                here.2 = times;
            }
            if let Some(number) = tree.known(child) {
                self.element(coder, &frame, Element::Node(number))?;
                self.follow(coder, &mut frame, &mut here, number, times)?;
            } else {
                let label = tree.label(child);
                self.element(coder, &frame, Element::New(label))?;
                push(&mut path, here);
                here = (child, 0, 0);
                let inner = self.enter(&frame, label);
                self.frames_push(frame);
                frame = inner;
            }
        }
    }

    /// An element has been told: how many times it comes where that is told, and on to the next.
    fn follow<C: Coder>(
        &mut self,
        coder: &mut C,
        frame: &mut Frame,
        here: &mut (u32, usize, u64),
        number: u32,
        times: u64,
    ) -> Result<(), Broken> {
        let told = self.add(coder, frame, number, times)?;
        here.2 = here.2.saturating_sub(told);
        if here.2 == 0 {
            here.1 += 1;
        }
        Ok(())
    }

    /// Reads a tree of at most `most` elements; its number.
    ///
    /// # Errors
    /// Where the bytes do not go on as one.
    pub fn read<C: Coder>(&mut self, coder: &mut C, most: u64) -> Result<u32, Broken> {
        let most = self.elements.saturating_add(most);
        let mut frame = Frame::default();
        let label = self.label_symbol(coder, &frame, 0)?;
        frame = self.enter(&frame, label);
        let bottom = self.frames.len();
        loop {
            if self.elements >= most {
                return Err(Broken::TooMuch);
            }
            match self.element(coder, &frame, Element::End)? {
                Element::End => {
                    let number = self.close(&frame);
                    if self.frames.len() == bottom {
                        return Ok(number);
                    }
                    frame = self.leave();
                    self.add(coder, &mut frame, number, 0)?;
                }
                Element::Node(number) => {
                    self.add(coder, &mut frame, number, 0)?;
                }
                Element::New(label) => {
                    let inner = self.enter(&frame, label);
                    self.frames_push(frame);
                    frame = inner;
                }
            }
        }
    }

    fn frames_push(&mut self, frame: Frame) {
        frame
            .words()
            .iter()
            .for_each(|word| self.frames.push(*word));
    }

    /// Back to the list around the one that is complete.
    fn leave(&mut self) -> Frame {
        let start = self.frames.len().saturating_sub(FRAME);
        let frame = Frame::from_words(self.frames.words().get(start..).unwrap_or(&[]));
        self.frames.truncate(start);
        frame
    }

    /// The list of a new node in that of `around`.
    fn enter(&mut self, around: &Frame, label: u32) -> Frame {
        let function = match kind(label) {
            label::LOOP | label::ITERATION => around.function,
            _ => spread(label, 1),
        };
        let alphabet = match kind(label) {
            label::LOOP | label::ITERATION => spread(around.function, kind(label)),
            _ => function,
        };
        let expected = self.expected(around);
        let like = expected.checked_sub(1).filter(|node| {
            self.label(*node) & !label::PLAIN == label & !label::PLAIN && *node < self.len()
        });
        let like = like.or_else(|| match kind(label) {
            label::ITERATION => around.last[0]
                .checked_sub(1)
                .filter(|node| kind(self.label(*node)) == label::ITERATION),
            _ => None,
        });
        let like = like.or_else(|| self.latest.get(alphabet & !label::PLAIN, 0));
        Frame {
            label,
            function,
            alphabet,
            start: (self.pending.len() / ITEM) as u32,
            model: like.map_or(0, |node| node + 1),
            ..Frame::default()
        }
    }

    /// What the list that may be alike has here: node + 1, or 0.
    fn expected(&self, frame: &Frame) -> u32 {
        frame
            .model
            .checked_sub(1)
            .and_then(|model| self.item(model, frame.model_item as usize))
            .map_or(0, |(node, _)| node + 1)
    }

    fn contexts(&self, frame: &Frame) -> [u32; 9] {
        let alphabet = frame.alphabet;
        let [a, b, c] = frame.last;
        let expected = self.expected(frame);
        let class = |node: u32| node.checked_sub(1).map_or(0, |node| self.class(node));
        let around = self.frames.len().checked_sub(FRAME);
        let around = |word: usize| around.map_or(0, |at| self.frames.get(at + word));
        let two = spread(alphabet ^ 2, spread(a, b));
        let left = frame.model.checked_sub(1).map_or(0, |model| {
            (self.count(model) as u32)
                .saturating_sub(frame.model_item)
                .min(3)
        });
        [
            alphabet,
            spread(alphabet ^ 1, a),
            two,
            spread(two ^ 3, c),
            spread(alphabet ^ 4, frame.prefix ^ frame.length << 20),
            spread(spread(alphabet ^ 5, expected), a << 2 ^ left),
            spread(spread(alphabet ^ 6, around(2)), spread(around(3), a)),
            spread(spread(alphabet ^ 7, around(2)), frame.length.min(255)),
            spread(
                spread(alphabet ^ 8, class(a)),
                spread(class(b), class(expected)),
            ),
        ]
    }

    /// One element of a list.
    fn element<C: Coder>(
        &mut self,
        coder: &mut C,
        frame: &Frame,
        wanted: Element,
    ) -> Result<Element, Broken> {
        self.elements += 1;
        let contexts = self.contexts(frame);
        let index = match wanted {
            Element::Node(node) => self.places.get(frame.alphabet, node),
            _ => None,
        };
        let kind = match (wanted, index) {
            (Element::End, _) => element::END,
            (Element::New(_), _) => element::NEW,
            (Element::Node(_), Some(_)) => element::KNOWN,
            (Element::Node(_), None) => element::OTHER,
        };
        let kind = self
            .predictor
            .choice(coder, &contexts, set::KIND, element::KINDS, kind)?;
        match kind {
            element::END => Ok(Element::End),
            element::NEW => {
                let wanted = match wanted {
                    Element::New(label) => label,
                    _ => 0,
                };
                Ok(Element::New(self.label_symbol(coder, frame, wanted)?))
            }
            element::KNOWN => {
                let count = self.alphabets.get(frame.alphabet, COUNT).unwrap_or(0);
                let contexts = contexts.map(|context| context ^ 0x5bd1_e995);
                let index = index.unwrap_or(0);
                let index = self
                    .predictor
                    .choice(coder, &contexts, set::INDEX, count, index)?;
                let node = self.alphabets.get(frame.alphabet, index);
                node.map(Element::Node).ok_or(Broken::Nothing("element"))
            }
            _ => {
                let wanted = match wanted {
                    Element::Node(node) => node,
                    _ => 0,
                };
                let contexts = [spread(self.expected(frame), 11), spread(frame.alphabet, 12)];
                let count = self.len();
                let node = self
                    .predictor
                    .choice(coder, &contexts, set::OTHER, count, wanted)?;
                if node >= count {
                    return Err(Broken::Nothing("node"));
                }
                Ok(Element::Node(node))
            }
        }
    }

    /// The label of a new node.
    fn label_symbol<C: Coder>(
        &mut self,
        coder: &mut C,
        frame: &Frame,
        wanted: u32,
    ) -> Result<u32, Broken> {
        let alphabet = spread(frame.alphabet, 21);
        let class = |node: u32| node.checked_sub(1).map_or(0, |node| self.class(node));
        let contexts = [
            alphabet,
            spread(alphabet ^ 1, class(frame.last[0])),
            spread(
                alphabet ^ 2,
                spread(class(frame.last[0]), class(frame.last[1])),
            ),
            spread(alphabet ^ 3, class(self.expected(frame))),
            spread(alphabet ^ 4, frame.length),
        ];
        let count = self.alphabets.get(alphabet, COUNT).unwrap_or(0);
        let index = self.places.get(alphabet, wanted).map_or(0, |at| at + 1);
        let index = self
            .predictor
            .choice(coder, &contexts, set::LABEL, count + 1, index)?;
        if let Some(index) = index.checked_sub(1) {
            return self
                .alphabets
                .get(alphabet, index)
                .ok_or(Broken::Nothing("label"));
        }
        // Names are numbered as they come up, so the next one is likely.
        let next = self.latest.get(NO_LIST, COUNT).unwrap_or(0);
        let flags =
            self.predictor
                .choice(coder, &[spread(22, 0)], set::NEW_LABEL, 64, wanted & 63)?;
        let distance = next.wrapping_sub(wanted >> label::NAME);
        let name = if kind(flags) == label::CALL {
            let contexts = [spread(23, 0)];
            let distance = u64::from(distance & 0x3ff_ffff);
            let distance = self
                .predictor
                .number(coder, &contexts, set::NEW_LABEL + 8, distance)?;
            next.wrapping_sub(distance as u32) & 0x3ff_ffff
        } else {
            0
        };
        if kind(flags) > label::CALL {
            return Err(Broken::Nothing("label"));
        }
        if kind(flags) == label::CALL && name == next {
            self.latest.set(NO_LIST, COUNT, next.wrapping_add(1));
        }
        let label = flags | name << label::NAME;
        self.learn_symbol(alphabet, label);
        Ok(label)
    }

    /// An element belongs to the alphabet from now on.
    fn learn_symbol(&mut self, alphabet: u32, symbol: u32) {
        if self.places.get(alphabet, symbol).is_none() {
            let count = self.alphabets.get(alphabet, COUNT).unwrap_or(0);
            self.alphabets.set(alphabet, count, symbol);
            self.alphabets.set(alphabet, COUNT, count + 1);
            self.places.set(alphabet, symbol, count);
        }
    }

    /// Adds an element to its list, with how many times it comes in loops; how many times that is.
    fn add<C: Coder>(
        &mut self,
        coder: &mut C,
        frame: &mut Frame,
        node: u32,
        times: u64,
    ) -> Result<u64, Broken> {
        let is_loop = kind(frame.label) == label::LOOP;
        let times = if is_loop {
            self.times(coder, frame, node, times)?
        } else {
            1
        };
        self.learn_symbol(frame.alphabet, node);
        self.advance(frame, node, is_loop);
        let count = self.pending.len() / ITEM;
        let last = count
            .checked_sub(1)
            .filter(|last| *last >= frame.start as usize);
        let run = last.map(|last| (last, item(&self.pending, last)));
        match run {
            Some((last, (before, run))) if before == node && !is_loop => {
                let run = run.saturating_add(1);
                self.pending.set(ITEM * last + 1, run as u32);
                self.pending.set(ITEM * last + 2, (run >> 32) as u32);
            }
            _ => {
                self.pending.push(node);
                self.pending.push(times as u32);
                self.pending.push((times >> 32) as u32);
            }
        }
        let [a, b, _] = frame.last;
        frame.last = [node + 1, a, b];
        frame.prefix = spread(frame.prefix, node);
        frame.length += 1;
        Ok(times)
    }

    fn times<C: Coder>(
        &mut self,
        coder: &mut C,
        frame: &mut Frame,
        node: u32,
        times: u64,
    ) -> Result<u64, Broken> {
        let alphabet = spread(frame.alphabet, 31);
        let class = self.class(node);
        let [last, before] = frame.times;
        let model = frame
            .model
            .checked_sub(1)
            .and_then(|model| self.item(model, frame.model_item as usize));
        let model = model.map_or(0, |(_, times)| times as u32);
        let around = self.frames.len().checked_sub(FRAME);
        let around = around.map_or(0, |at| self.frames.get(at + 3));
        let contexts = [
            spread(alphabet, class),
            spread(alphabet ^ 1, node),
            spread(spread(alphabet ^ 2, class), last),
            spread(spread(alphabet ^ 3, node), spread(last, before)),
            spread(spread(alphabet ^ 4, class), model),
            spread(spread(alphabet ^ 5, around), node),
            spread(spread(alphabet ^ 6, class), frame.length),
        ];
        let times = times.saturating_sub(1);
        let times = self.predictor.number(coder, &contexts, set::TIMES, times)?;
        let times = times.checked_add(1).ok_or(Broken::TooMuch)?;
        frame.times = [times as u32, last];
        Ok(times)
    }

    /// Goes on in the list that may be alike.
    fn advance(&self, frame: &mut Frame, node: u32, whole: bool) {
        let Some(model) = frame.model.checked_sub(1) else {
            return;
        };
        let at = frame.model_item as usize;
        let Some((expected, times)) = self.item(model, at) else {
            return;
        };
        if expected == node && !whole && u64::from(frame.model_used) + 1 < times {
            frame.model_used += 1;
            return;
        }
        let is_next = expected != node
            && self
                .item(model, at + 1)
                .is_some_and(|(next, _)| next == node);
        frame.model_item += if is_next { 2 } else { 1 };
        frame.model_used = 0;
    }

    /// The list is complete: the number of its node.
    fn close(&mut self, frame: &Frame) -> u32 {
        let number = self.len();
        let first = frame.start as usize;
        let count = self.pending.len() / ITEM - first;
        let start = self.items.len() / ITEM;
        let mut class = match kind(frame.label) {
            label::LOOP | label::ITERATION => kind(frame.label),
            _ => frame.label & !label::PLAIN,
        };
        for index in first..first + count {
            let (node, times) = item(&self.pending, index);
            self.items.push(node);
            self.items.push(times as u32);
            self.items.push((times >> 32) as u32);
            let is_body = kind(frame.label) == label::ITERATION
                || kind(frame.label) == label::LOOP && index == first;
            if is_body {
                class = spread(class, self.class(node));
            }
        }
        self.pending.truncate(ITEM * first);
        for word in [frame.label, class, start as u32, count as u32] {
            self.nodes.push(word);
        }
        self.latest.set(frame.alphabet & !label::PLAIN, 0, number);
        number
    }
}

fn item<M: Memory>(row: &Row<M>, index: usize) -> (u32, u64) {
    let word = |at: usize| row.get(ITEM * index + at);
    (word(0), u64::from(word(2)) << 32 | u64::from(word(1)))
}

fn push<M: Memory>(path: &mut Row<M>, (node, index, left): (u32, usize, u64)) {
    let index = index as u64;
    for word in [
        node,
        index as u32,
        (index >> 32) as u32,
        left as u32,
        (left >> 32) as u32,
    ] {
        path.push(word);
    }
}

fn pop<M: Memory>(path: &mut Row<M>) -> (u32, usize, u64) {
    let start = path.len().saturating_sub(5);
    let word = |at: usize| path.get(start + at);
    let long = |at: usize| u64::from(word(at + 1)) << 32 | u64::from(word(at));
    let here = (word(0), long(1) as usize, long(3));
    path.truncate(start);
    here
}
