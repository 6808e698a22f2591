//! Which lengths two equal blocks at the end of a sequence can have, without trying them all.

/// How far back an element's echoes are kept as bits.
const BITS: usize = u64::BITS as usize;

/// Classes of codes. Few, so that an empty sequence costs little; elements of one class are compared.
const CLASSES: usize = 64;

/// The codes of a sequence that grows and shrinks at its end, and for each where its class occurred before.
///
/// Blocks of `l` elements are equal only if each of the last `l` elements has its class again `l` places below: that is a bit
/// of each, and what all of them share is a few instructions. What is known of an element tells of nothing above it, and
/// holds for as long as it stays.
///
/// ```text
/// element      0 ................ base ............... end
/// is known              no             yes, at most 2 * keep
/// ```
///
/// Only the last ones are ever asked, so that those far below are forgotten, and found again from the sequence itself when it has
/// shrunk that far: memory that is written once and never read would cost more than all else.
#[derive(Debug, Clone)]
pub(crate) struct Echoes {
    /// Those from `base` on.
    elements: Vec<Echo>,
    base: usize,
    /// The last place of each class, plus one; none before there is an element.
    last: Option<Box<[u32; CLASSES]>>,
    /// How many have to be known for what is asked of the topmost.
    need: usize,
    /// How many may be known, and how many stay when the others are forgotten.
    most: usize,
    keep: usize,
}

#[derive(Debug, Clone, Copy)]
struct Echo {
    /// Bit `l - 1`: the element `l` places below is of the same class.
    below: u64,
    /// The last place of the same class below, plus one; 0 if there is none.
    previous: u32,
    code: u32,
}

/// The upper bits of a product: codes are small numbers, and large ones that count down.
fn class(code: u32) -> usize {
    (code.wrapping_mul(0x9e37_79b9) >> (u32::BITS - CLASSES.ilog2())) as usize
}

impl Echoes {
    /// Of an empty sequence that will be asked for lengths of up to `most`.
    pub(crate) fn new(most: usize) -> Self {
        // An element looks so far down, and as many elements are looked at.
        let need = most.max(BITS).saturating_add(BITS);
        Self {
            elements: Vec::new(),
            base: 0,
            last: None,
            need,
            most: need.saturating_mul(16),
            keep: need.saturating_mul(8),
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.base > 0 {
            self.last = None;
            self.elements.clear();
            self.base = 0;
        }
        self.pop(0);
    }

    #[inline]
    pub(crate) fn push(&mut self, code: u32) {
        if self.elements.len() >= self.most {
            self.forget();
        }
        let index = (self.base + self.elements.len()) as u32;
        let last = self.last.get_or_insert_with(|| Box::new([0; CLASSES]));
        let last = &mut last[class(code)];
        let previous = std::mem::replace(last, index + 1);
        // Its echoes are the element of the class before it, and the echoes of that.
        let known = (previous as usize).wrapping_sub(1 + self.base);
        let below = match self.elements.get(known) {
            Some(echo) => {
                let distance = index + 1 - previous;
                (echo.below.checked_shl(distance).unwrap_or(0))
                    | 1u64.checked_shl(distance - 1).unwrap_or(0)
            }
            None => 0,
        };
        self.elements.push(Echo {
            below,
            previous,
            code,
        });
    }

    #[cold]
    fn forget(&mut self) {
        let gone = self.elements.len() - self.keep;
        self.elements.drain(..gone);
        self.base += gone;
    }

    /// `code` gives those of the elements that stay.
    #[inline]
    pub(crate) fn truncate(&mut self, length: usize, code: impl Fn(usize) -> u32) {
        self.pop(length.saturating_sub(self.base));
        if self.base > 0 && self.elements.len() < self.need {
            self.remember(length, code);
        }
    }

    #[inline]
    fn pop(&mut self, length: usize) {
        let Some(last) = &mut self.last else { return };
        while self.elements.len() > length {
            if let Some(echo) = self.elements.pop() {
                last[class(echo.code)] = echo.previous;
            }
        }
    }

    #[cold]
    fn remember(&mut self, length: usize, code: impl Fn(usize) -> u32) {
        self.elements.clear();
        self.last = None;
        self.base = length.saturating_sub(self.keep);
        (self.base..length).for_each(|it| self.push(code(it)));
    }

    /// The least length of at most `most` at which the last two blocks are of the same classes and `equal`.
    #[inline]
    pub(crate) fn find(&self, most: usize, mut equal: impl FnMut(usize) -> bool) -> Option<usize> {
        let (top, rest) = self.elements.split_last()?;
        let mut shared = top.below;
        if most < BITS {
            shared &= (1 << most) - 1;
        }
        // Bit 0 is of `length`, and shorter ones have been tried.
        let mut length = 1;
        let mut below = rest.iter().rev();
        while shared != 0 {
            if shared & 1 != 0 && equal(length) {
                return Some(length);
            }
            shared >>= 1;
            if shared != 0 {
                shared &= below.next().map_or(0, |echo| echo.below) >> length;
            }
            length += 1;
        }
        if most <= BITS {
            None
        } else {
            self.find_far(most, equal)
        }
    }

    /// [`Echoes::find`] among the lengths that are no bits.
    #[cold]
    fn find_far(&self, most: usize, mut equal: impl FnMut(usize) -> bool) -> Option<usize> {
        let end = self.base + self.elements.len();
        let mut place = end;
        loop {
            let known = place.wrapping_sub(1 + self.base);
            let previous = self.elements.get(known)?.previous as usize;
            let length = end - previous;
            if previous == 0 || length > most {
                return None;
            }
            if length > BITS && equal(length) {
                return Some(length);
            }
            place = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What was forgotten is found again: the same as of a sequence that forgets nothing.
        #[test]
        fn forgetting_is_not_seen(
            most in 1usize..90,
            swings in prop::collection::vec((0usize..1500, 0usize..1500, 1u32..9), 1..8),
        ) {
            let mut some = Echoes::new(most);
            some.keep = some.need + 1;
            some.most = some.need + 200;
            let mut all = Echoes::new(usize::MAX);
            let mut codes: Vec<u32> = Vec::new();
            for (up, down, symbols) in swings {
                for step in 0..up + down {
                    if step < up {
                        let code = (step * step / 7) as u32 % symbols;
                        codes.push(code);
                        some.push(code);
                        all.push(code);
                    } else {
                        codes.truncate(codes.len().saturating_sub(1 + step % 40));
                        some.truncate(codes.len(), |it| codes[it]);
                        all.truncate(codes.len(), |it| codes[it]);
                    }
                    let end = codes.len();
                    let equal = |length: usize| {
                        2 * length <= end && codes[end - 2 * length..end - length] == codes[end - length..]
                    };
                    prop_assert_eq!(some.find(most, equal), all.find(most, equal));
                }
            }
        }
    }
}
