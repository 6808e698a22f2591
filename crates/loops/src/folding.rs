//! An ordinary sequence while it is folded: what it carries are the trip counts of its loops.

use crate::body::{Bodies, BodyId};
use crate::element::{Element, Loop, Trips, TripsMark, append_all};
use crate::repeat::Repeat;
use crate::stack::{Content, Stack};
use crate::{COPIES, Mode};

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
    let mut folding = Folding::new(k, mode);
    for token in tokens {
        folding.push(token, bodies);
    }
    folding.finish()
}

/// A sequence of which more tokens come; [`fold`] is for one that is there.
#[derive(Debug, Clone)]
pub struct Folding {
    stack: Stack<()>,
    counts: Counts,
}

impl Folding {
    /// An empty sequence, that is folded with bodies of up to `k` elements.
    #[must_use]
    pub fn new(k: usize, mode: Mode) -> Self {
        Self {
            stack: Stack::new(k, mode),
            counts: Counts::default(),
        }
    }

    /// Adds a token.
    #[inline]
    pub fn push(&mut self, token: u32, bodies: &mut Bodies) {
        self.stack.push(token, (), bodies, &mut self.counts);
    }

    /// As [`Stack::seal`].
    pub fn seal(&mut self) {
        self.stack.seal();
    }

    /// As [`Stack::start`].
    pub fn start(&mut self) -> Repeat<CountsMark> {
        self.stack.start()
    }

    /// As [`Stack::repeat`].
    pub fn repeat(&mut self, repeat: &mut Repeat<CountsMark>, left: u64) -> u64 {
        self.stack.repeat(repeat, left, &mut self.counts)
    }

    /// The elements, at the end.
    #[must_use]
    pub fn finish(self) -> Vec<Element> {
        let symbols = self.stack.codes.iter();
        let mut elements: Vec<Element> = symbols.map(|it| Element::Symbol(*it)).collect();
        let places = self.stack.loops.all().iter().map(|it| it.index as usize);
        for (place, looped) in places.zip(self.counts.loops) {
            elements[place] = Element::Loop(looped);
        }
        elements
    }
}

/// The loops of a sequence, the lowest first: what symbols are is told by the stack, and most elements are symbols.
#[derive(Debug, Clone, Default)]
struct Counts {
    #[expect(clippy::vec_box, reason = "they become elements as they are")]
    loops: Vec<Box<Loop>>,
}

/// How far a loop of a sequence has got.
#[derive(Debug, Clone)]
pub struct CountsMark {
    count: u64,
    inner: Vec<TripsMark>,
}

/// Adds the loops of one iteration.
fn enter(inner: &mut Vec<Trips>, loops: impl Iterator<Item = Box<Loop>>) {
    for (index, looped) in loops.enumerate() {
        if inner.len() == index {
            inner.push(Trips::default());
        }
        inner[index].enter(*looped);
    }
}

impl Content for Counts {
    type Item = ();

    #[inline]
    fn create(&mut self, items: &mut Vec<()>, length: usize, loops: usize, body: BodyId) {
        items.truncate(items.len() - COPIES * length);
        items.push(());
        let mut inner = Vec::new();
        if loops > 0 {
            let mut all = self.loops.drain(self.loops.len() - COPIES * loops..);
            for _ in 0..COPIES {
                enter(&mut inner, all.by_ref().take(loops));
            }
        }
        self.loops.push(Box::new(Loop {
            body,
            count: COPIES as u64,
            inner,
        }));
    }

    #[inline]
    fn extend(&mut self, items: &mut Vec<()>, length: usize, loops: usize) {
        items.truncate(items.len() - length);
        let below = self.loops.len() - loops;
        let [.., looped] = &mut self.loops[..below] else {
            return;
        };
        looped.count += 1;
        if loops > 0 {
            let mut inner = std::mem::take(&mut looped.inner);
            enter(&mut inner, self.loops.drain(below..));
            self.loops[below - 1].inner = inner;
        }
    }

    fn merge(&mut self, items: &mut Vec<()>) {
        items.pop();
        let later = self.loops.pop();
        if let (Some(looped), Some(later)) = (self.loops.last_mut(), later) {
            looped.count += later.count;
            append_all(&mut looped.inner, later.inner);
        }
    }

    type Mark = CountsMark;

    fn mark(&self, (): &(), number: usize) -> CountsMark {
        let looped = &self.loops[number];
        CountsMark {
            count: looped.count,
            inner: Trips::marks(&looped.inner),
        }
    }

    fn again(&mut self, (): &mut (), number: usize, mark: &CountsMark, times: u64) {
        let looped = &mut self.loops[number];
        looped.count += (looped.count - mark.count) * times;
        Trips::again(&mut looped.inner, &mark.inner, times);
    }
}
