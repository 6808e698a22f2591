//! An ordinary sequence while it is folded: what it carries are the trip counts of its loops.

use crate::body::{Bodies, BodyId};
use crate::element::{Element, Inner, Loop, TripsMark};
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
    pub fn finish(mut self) -> Vec<Element> {
        self.stack.settle();
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
    loops: Vec<Loop>,
    /// Of loops that became part of others: memory that the next ones take.
    spare: Vec<Inner>,
}

/// So much is spared at most.
const SPARE: usize = 16;

/// How far a loop of a sequence has got.
#[derive(Debug, Clone)]
pub struct CountsMark {
    count: u64,
    inner: Vec<TripsMark>,
}

impl Counts {
    /// Room for the trip counts of so many loops.
    fn room(&mut self, loops: usize) -> Inner {
        let fits = |spare: &mut Inner| spare.all().len() == loops;
        self.spare
            .pop_if(fits)
            .map_or_else(|| Inner::new(loops), Inner::cleared)
    }

    /// Drops the loops from `start` on.
    fn truncate(&mut self, start: usize) {
        for looped in self.loops.drain(start..) {
            if !looped.inner.all().is_empty() && self.spare.len() < SPARE {
                self.spare.push(looped.inner);
            }
        }
    }
}

impl Content for Counts {
    type Item = ();

    #[inline]
    fn create(&mut self, items: &mut Vec<()>, length: usize, loops: usize, body: BodyId) {
        items.truncate(items.len() - COPIES * length);
        items.push(());
        let mut inner = Inner::default();
        if loops > 0 {
            inner = self.room(loops);
            let start = self.loops.len() - COPIES * loops;
            for iteration in self.loops[start..].chunks_mut(loops) {
                inner.enter(iteration);
            }
            self.truncate(start);
        }
        self.loops.push(Loop {
            body,
            count: COPIES as u64,
            inner,
        });
    }

    #[inline]
    fn extend(&mut self, items: &mut Vec<()>, length: usize, loops: usize) {
        items.truncate(items.len() - length);
        let below = self.loops.len() - loops;
        let (standing, iteration) = self.loops.split_at_mut(below);
        let [.., looped] = standing else {
            return;
        };
        looped.count += 1;
        if loops > 0 {
            looped.inner.enter(iteration);
            self.truncate(below);
        }
    }

    fn merge(&mut self, items: &mut Vec<()>) {
        items.pop();
        let later = self.loops.pop();
        if let (Some(looped), Some(mut later)) = (self.loops.last_mut(), later) {
            looped.count += later.count;
            looped.inner.append(&mut later.inner);
        }
    }

    type Mark = CountsMark;

    fn mark(&self, (): &(), number: usize) -> CountsMark {
        let looped = &self.loops[number];
        CountsMark {
            count: looped.count,
            inner: looped.inner.marks(),
        }
    }

    fn again(&mut self, (): &mut (), number: usize, mark: &CountsMark, times: u64) {
        let looped = &mut self.loops[number];
        looped.count += (looped.count - mark.count) * times;
        looped.inner.again(&mark.inner, times);
    }
}
