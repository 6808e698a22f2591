//! Bytes coded by what stood before them: names, and what else a run has beside its events.

use super::bits::{Broken, Coder, Node, Predictor, spread};
use crate::codec::memory::Memory;

/// Remembers the last bytes.
#[derive(Debug, Clone)]
pub struct Text<M> {
    predictor: Predictor<M>,
    /// All bytes so far, one a word.
    bytes: M,
    length: usize,
    /// Where the last four bytes stood before: place behind them.
    places: M,
    /// Where the next byte is expected to stand, 0 for nowhere, and for how long that went well.
    expected: usize,
    run: u32,
}

/// Sets of weights of text, behind those of the grammar.
const SET: usize = 64;
const PLACES: usize = 1 << 16;

impl<M: Memory + Default> Text<M> {
    /// 2^`bits` slots for the predictor.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self {
            predictor: Predictor::new(bits),
            bytes: M::default(),
            length: 0,
            places: M::default(),
            expected: 0,
            run: 0,
        }
    }

    fn at(&self, index: usize) -> u32 {
        self.bytes.present().get(index).copied().unwrap_or(0)
    }

    /// Codes a byte.
    ///
    /// # Errors
    /// As [`Coder::bit`].
    pub fn byte<C: Coder>(&mut self, coder: &mut C, byte: u8) -> Result<u8, Broken> {
        let back = |n: usize| self.length.checked_sub(n).map_or(0, |at| self.at(at));
        let one = back(1);
        let two = one << 8 | back(2);
        let three = two << 8 | back(3);
        let four = three << 8 | back(4);
        let six = spread(four, back(5) << 8 | back(6));
        let guess = if self.expected > 0 {
            256 | self.at(self.expected)
        } else {
            0
        };
        let contexts = [
            0,
            spread(1, one),
            spread(2, two),
            spread(3, three),
            spread(4, four),
            spread(5, six),
            spread(6, guess << 8 | self.run.min(32)),
            spread(7, guess << 8 ^ one),
        ];
        let mut value = 1u32;
        for left in (0..8).rev() {
            let agrees = guess >> 8 == 1 && (guess | 256) >> (left + 1) == value;
            let set = SET
                + if agrees {
                    1 + (self.run.min(15) / 4) as usize
                } else {
                    0
                };
            let bit = byte >> left & 1 == 1;
            let bit = self
                .predictor
                .bit(coder, &contexts, Node::behind(value, 0), set, bit)?;
            value = value << 1 | u32::from(bit);
        }
        let byte = value as u8;
        self.learn(byte, three);
        Ok(byte)
    }

    fn learn(&mut self, byte: u8, before: u32) {
        let length = self.length;
        if self.expected > 0 && self.at(self.expected) == u32::from(byte) {
            self.expected += 1;
            self.run += 1;
        } else {
            self.expected = 0;
            self.run = 0;
        }
        if let Some(place) = self.bytes.words(length + 1).get_mut(length) {
            *place = u32::from(byte);
        }
        self.length = length + 1;
        let key = spread(before, u32::from(byte)) as usize % PLACES;
        if let Some(place) = self.places.words(PLACES).get_mut(key) {
            if self.expected == 0 {
                self.expected = *place as usize;
            }
            *place = self.length as u32;
        }
    }
}
