//! Elements of a folded sequence, and the way back to the tokens.

use crate::body::{Bodies, BodyId, Key};

/// An element of a folded sequence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Element {
    /// A token that belongs to no loop here.
    Symbol(u32),
    /// A loop.
    Loop(Loop),
}

/// A loop as it occurs in a sequence: which body, how often, and the trip counts within.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loop {
    pub(crate) body: BodyId,
    pub(crate) count: u64,
    pub(crate) inner: Inner,
}

/// What loops are within a body. Most have none, and then it takes a word of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Inner(
    #[expect(clippy::box_collection, reason = "a third as large")] Option<Box<Vec<Trips>>>,
);

/// The trip counts of one loop of a body, over all the iterations of what surrounds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Trips {
    /// One count for each time the loop was entered, in order.
    pub counts: Runs,
    inner: Inner,
}

/// How far [`Trips`] reached at some moment.
#[derive(Debug, Clone)]
pub struct TripsMark {
    length: u64,
    inner: Vec<TripsMark>,
}

/// A sequence of numbers as runs of equal ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Runs {
    runs: Parts,
    length: u64,
}

/// The runs: most sequences have one, and there are as many sequences as loops.
#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    None,
    One((u64, u64)),
    Many(Vec<(u64, u64)>),
}

impl Loop {
    /// What is repeated.
    #[must_use]
    pub fn body(&self) -> BodyId {
        self.body
    }

    /// How often it is repeated, at least 2.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The trip counts of the loops within the body, in the order of the body.
    #[must_use]
    pub fn inner(&self) -> &[Trips] {
        self.inner.all()
    }
}

impl Inner {
    /// So many.
    pub(crate) fn new(loops: usize) -> Self {
        Self((loops > 0).then(|| Box::new(vec![Trips::default(); loops])))
    }

    #[inline]
    pub(crate) fn all(&self) -> &[Trips] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut [Trips] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    /// Adds the loops of an iteration, whose own inner ones are moved.
    #[inline]
    pub(crate) fn enter<'a>(&mut self, loops: impl IntoIterator<Item = &'a mut Loop>) {
        for (trips, looped) in self.all_mut().iter_mut().zip(loops) {
            trips.counts.push(looped.count, 1);
            trips.inner.append(&mut looped.inner);
        }
    }

    /// Moves what later iterations had to here, loop by loop.
    #[inline]
    pub(crate) fn append(&mut self, later: &mut Self) {
        // Nothing has been there, or it is empty and of other loops.
        if self.all().len() != later.all().len() {
            std::mem::swap(self, later);
            return;
        }
        for (trips, later) in self.all_mut().iter_mut().zip(later.all_mut()) {
            for (number, times) in later.counts.runs() {
                trips.counts.push(*number, *times);
            }
            trips.inner.append(&mut later.inner);
        }
    }

    /// Empties it and keeps its memory.
    pub(crate) fn cleared(mut self) -> Self {
        self.clear();
        self
    }

    fn clear(&mut self) {
        for trips in self.all_mut() {
            trips.counts.clear();
            trips.inner.clear();
        }
    }

    /// How far the counts of each loop reach.
    pub(crate) fn marks(&self) -> Vec<TripsMark> {
        let mark = |trips: &Trips| TripsMark {
            length: trips.counts.len(),
            inner: trips.inner.marks(),
        };
        self.all().iter().map(mark).collect()
    }

    /// Adds what came since the marks, `times` times more.
    pub(crate) fn again(&mut self, marks: &[TripsMark], times: u64) {
        for (trips, mark) in self.all_mut().iter_mut().zip(marks) {
            trips.counts.again(mark.length, times);
            trips.inner.again(&mark.inner, times);
        }
    }
}

impl Element {
    /// The key of the element when counts are, or are not, part of it.
    #[must_use]
    pub fn key(&self, mode: crate::Mode) -> Key {
        match (self, mode) {
            (Self::Symbol(symbol), _) => Key::Symbol(*symbol),
            (Self::Loop(looped), crate::Mode::Shape) => Key::Loop(looped.body),
            (Self::Loop(looped), crate::Mode::Exact) => Key::Times(looped.body, looped.count),
        }
    }
}

impl Trips {
    /// The loops within its own body, in the order of the body.
    #[must_use]
    pub fn inner(&self) -> &[Self] {
        self.inner.all()
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Parts {}

impl std::hash::Hash for Parts {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.all().hash(state);
    }
}

impl Parts {
    #[inline]
    fn all(&self) -> &[(u64, u64)] {
        match self {
            Self::None => &[],
            Self::One(run) => std::slice::from_ref(run),
            Self::Many(runs) => runs,
        }
    }

    fn push(&mut self, run: (u64, u64)) {
        match self {
            Self::None => *self = Self::One(run),
            Self::One(first) => *self = Self::Many(vec![*first, run]),
            Self::Many(runs) => runs.push(run),
        }
    }
}

impl Runs {
    /// Adds `number`, `times` times.
    pub fn push(&mut self, number: u64, times: u64) {
        self.length += times;
        let last = match &mut self.runs {
            Parts::None => None,
            Parts::One(run) => Some(run),
            Parts::Many(runs) => runs.last_mut(),
        };
        match last {
            Some((last, count)) if *last == number => *count += times,
            _ if times > 0 => self.runs.push((number, times)),
            _ => {}
        }
    }

    /// Empties it and keeps its memory.
    fn clear(&mut self) {
        match &mut self.runs {
            Parts::Many(runs) => runs.clear(),
            other => *other = Parts::None,
        }
        self.length = 0;
    }

    /// How many numbers there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The runs from number `start` on.
    fn since(&self, start: u64) -> Vec<(u64, u64)> {
        let mut wanted = self.length - start;
        let mut tail = Vec::new();
        for (number, times) in self.runs().iter().rev() {
            if wanted == 0 {
                break;
            }
            let take = wanted.min(*times);
            tail.push((*number, take));
            wanted -= take;
        }
        tail.reverse();
        tail
    }

    /// Adds what stands there since `start`, `times` times more.
    fn again(&mut self, start: u64, times: u64) {
        match self.since(start).as_slice() {
            [] => {}
            [(number, count)] => self.push(*number, count * times),
            tail => {
                for _ in 0..times {
                    tail.iter()
                        .for_each(|(number, count)| self.push(*number, *count));
                }
            }
        }
    }

    /// The runs: number, and how often it stands there.
    #[must_use]
    pub fn runs(&self) -> &[(u64, u64)] {
        self.runs.all()
    }

    /// The numbers one by one.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs()
            .iter()
            .flat_map(|(number, times)| (0..*times).map(move |_| *number))
    }
}

/// Gives the tokens of a folded sequence, in order, to `each`.
///
/// Linear in the number of tokens. Memory: the nesting depth, which is at most the logarithm of it.
pub fn expand(sequence: &[Element], bodies: &Bodies, each: &mut dyn FnMut(u32)) {
    for element in sequence {
        match element {
            Element::Symbol(symbol) => each(*symbol),
            Element::Loop(looped) => {
                let mut cursors: Vec<Cursor<'_>> = looped.inner().iter().map(Cursor::new).collect();
                for _ in 0..looped.count {
                    iteration(looped.body, bodies, &mut cursors, each);
                }
            }
        }
    }
}

/// Where the reading of [`Trips`] stands.
struct Cursor<'a> {
    runs: &'a [(u64, u64)],
    taken: u64,
    inner: Vec<Cursor<'a>>,
}

impl<'a> Cursor<'a> {
    fn new(trips: &'a Trips) -> Self {
        Self {
            runs: trips.counts.runs(),
            taken: 0,
            inner: trips.inner().iter().map(Cursor::new).collect(),
        }
    }

    fn next(&mut self) -> u64 {
        let Some((number, times)) = self.runs.first() else {
            return 0;
        };
        self.taken += 1;
        if self.taken == *times {
            self.taken = 0;
            self.runs = &self.runs[1..];
        }
        *number
    }
}

fn iteration(body: BodyId, bodies: &Bodies, cursors: &mut [Cursor<'_>], each: &mut dyn FnMut(u32)) {
    let mut cursors = cursors.iter_mut();
    for key in bodies.keys(body) {
        match key {
            Key::Symbol(symbol) => each(*symbol),
            Key::Loop(inner) | Key::Times(inner, _) => {
                let Some(cursor) = cursors.next() else { return };
                for _ in 0..cursor.next() {
                    iteration(*inner, bodies, &mut cursor.inner, each);
                }
            }
        }
    }
}
