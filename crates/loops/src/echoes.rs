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
#[derive(Debug, Clone, Default)]
pub(crate) struct Echoes {
    elements: Vec<Echo>,
    /// The last place of each class, plus one; none before there is an element.
    last: Option<Box<[u32; CLASSES]>>,
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
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    #[inline]
    pub(crate) fn push(&mut self, code: u32) {
        let index = self.elements.len() as u32;
        let last = self.last.get_or_insert_with(|| Box::new([0; CLASSES]));
        let last = &mut last[class(code)];
        let previous = std::mem::replace(last, index + 1);
        // Its echoes are the element of the class before it, and the echoes of that.
        let below = match self.elements.get((previous as usize).wrapping_sub(1)) {
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

    #[inline]
    pub(crate) fn truncate(&mut self, length: usize) {
        let Some(last) = &mut self.last else { return };
        while self.elements.len() > length {
            if let Some(echo) = self.elements.pop() {
                last[class(echo.code)] = echo.previous;
            }
        }
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
        let mut place = self.elements.len();
        loop {
            let previous = self.elements.get(place.wrapping_sub(1))?.previous as usize;
            let length = self.elements.len() - previous;
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
