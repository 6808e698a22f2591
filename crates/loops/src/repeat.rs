//! The same symbols pushed again and again, without pushing them all.

use crate::Mode;
use crate::stack::{Content, Stack};

/// Something that is pushed again and again, see [`Stack::repeat`].
#[derive(Debug, Clone)]
pub struct Repeat<M> {
    /// The top of the stack before this time: its codes, and where its loops are.
    window: Vec<u32>,
    loops: Vec<u32>,
    /// Its height then.
    height: usize,
    /// `low` of whatever is around this repetition.
    outer_low: usize,
    /// The height above which the last time has only rebuilt what was there before.
    steady: Option<usize>,
    /// How far the loop below that height had got before this time.
    mark: Option<M>,
}

impl<T> Stack<T> {
    /// Announces that the same symbols are about to be pushed several times. After each time, ask
    /// [`Stack::repeat`] how often they are still to be pushed.
    ///
    /// A thousand iterations then cost about as much as four: once a time has left the stack as it
    /// found it, except that the loop at its top got longer, all further ones will do the same.
    pub fn start<M>(&mut self) -> Repeat<M> {
        let mut repeat = Repeat {
            window: Vec::new(),
            loops: Vec::new(),
            height: 0,
            outer_low: self.low,
            steady: None,
            mark: None,
        };
        self.look(&mut repeat);
        repeat
    }

    fn look<M>(&mut self, repeat: &mut Repeat<M>) {
        self.settle();
        repeat.height = self.codes.len();
        repeat.window.clear();
        // A partial iteration on top of its loop has less than K elements.
        let start = repeat.height.saturating_sub(self.k);
        repeat.window.extend_from_slice(&self.codes[start..]);
        repeat.loops.clear();
        let loops = self.loops.from(start).iter();
        repeat.loops.extend(loops.map(|it| it.index));
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
        self.settle();
        let low = self.low;
        repeat.outer_low = repeat.outer_low.min(low);
        let window = repeat.height - repeat.window.len();
        let unchanged = self.mode == Mode::Shape
            && self.codes.len() == repeat.height
            && low > window
            && self.codes[low..] == repeat.window[low - window..]
            && self.has_loops_at(low, &repeat.loops);
        // The first unchanged time may have finished an iteration that began differently; the second
        // one consists of these symbols alone, and so will every further one.
        if unchanged
            && repeat.steady == Some(low)
            && let (Some(looped), Some(mark)) = (self.items.get_mut(low - 1), &repeat.mark)
        {
            content.again(looped, self.loops.below(low - 1), mark, left);
            self.low = repeat.outer_low;
            return 0;
        }
        if left == 0 {
            self.low = repeat.outer_low;
            return 0;
        }
        repeat.steady = unchanged.then_some(low);
        repeat.mark = (unchanged && self.is_loop(low - 1))
            .then(|| content.mark(&self.items[low - 1], self.loops.below(low - 1)));
        self.look(repeat);
        left
    }

    /// Whether the loops from `low` on are at these places, of which some may be lower.
    fn has_loops_at(&self, low: usize, places: &[u32]) -> bool {
        let places = places.iter().copied().skip_while(|it| (*it as usize) < low);
        self.loops.from(low).iter().map(|it| it.index).eq(places)
    }

    fn is_loop(&self, index: usize) -> bool {
        let first = self.loops.from(index).first();
        first.is_some_and(|it| it.index as usize == index)
    }
}
