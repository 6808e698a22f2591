//! Which address of the image an address of the arena stands for, and where the copy of an overwritten instruction is.
//!
//! Both are asked in signal handlers. *Guarantees*: no allocation, no panic, whatever the rows hold. *Costs*: one binary search.

use crate::bytes::{array, u32_at};
use crate::plan::{origin, stub};

/// What a piece of code in the arena stands for, by its distance from the image's lowest address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandsFor {
    /// The instruction there.
    Address(u64),
    /// What the slot there leads to.
    Slot(u64),
}

/// The rows of a plan's section.
#[derive(Debug, Clone, Copy)]
pub struct Origins<'a> {
    rows: &'a [[u8; origin::SIZE]],
}

/// A row of [`origin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    at: u32,
    flags: u32,
    body: u32,
    length: u32,
    address: u32,
}

impl Row {
    fn new(row: &[u8; origin::SIZE]) -> Self {
        let at = u32_at(row, origin::AT).unwrap_or(0);
        let short = |at| array(row, at).map_or(0, |it| u32::from(u16::from_le_bytes(it)));
        Self {
            at: at & (origin::FLAGS - 1),
            flags: at & !(origin::FLAGS - 1),
            body: short(origin::BODY),
            length: short(origin::LENGTH),
            address: u32_at(row, origin::ADDRESS).unwrap_or(origin::NOWHERE),
        }
    }

    fn has(self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether it has a copy of instructions, or of none before a way out.
    fn is_copy(self) -> bool {
        self.address != origin::NOWHERE && !self.has(origin::SLOT)
    }

    fn stands_for(self, offset: u32) -> Option<StandsFor> {
        let address = u64::from(self.address);
        if self.address == origin::NOWHERE {
            return None;
        }
        let within = offset.checked_sub(self.at)?;
        // From behind ENTER to before the last `ret` the return address is not where it belongs.
        let is_moved = stub::AFTER_ENTRY + 1..stub::AFTER_EXIT;
        if self.has(origin::THROUGH) && is_moved.contains(&within) {
            return None;
        }
        if self.has(origin::SLOT) {
            return Some(StandsFor::Slot(address));
        }
        let into = match within.checked_sub(self.body) {
            Some(into) => into.min(self.length),
            None if self.has(origin::EXIT) => self.length,
            None => 0,
        };
        Some(StandsFor::Address(address + u64::from(into)))
    }

    /// Where the instruction at `address` is now, if its bytes were overwritten or moved.
    fn moved(self, address: u32) -> Option<u32> {
        let into = address.checked_sub(self.address)?;
        let is_first = into == 0 && self.has(origin::FIRST);
        let end = self.length + u32::from(self.has(origin::EXIT));
        (self.is_copy() && into < end && !is_first).then(|| self.at + self.body + into)
    }
}

impl<'a> Origins<'a> {
    /// Of a section's rows.
    #[must_use]
    pub fn new(rows: &'a [[u8; origin::SIZE]]) -> Self {
        Self { rows }
    }

    /// The rows.
    #[must_use]
    pub fn rows(self) -> &'a [[u8; origin::SIZE]] {
        self.rows
    }

    fn row(self, index: usize) -> Option<Row> {
        self.rows.get(index).map(Row::new)
    }

    /// The first index in `0..count` of which `is_before` is false.
    fn first(self, is_before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What the code at an offset in the arena stands for.
    #[must_use]
    pub fn stands_for(self, offset: u32) -> Option<StandsFor> {
        let behind = self.first(|index| self.row(index).is_some_and(|row| row.at <= offset));
        self.row(behind.checked_sub(1)?)?.stands_for(offset)
    }

    /// Which row has this number in the order of addresses.
    fn in_order(self, number: usize) -> Option<Row> {
        let row = self.rows.get(number)?;
        self.row(u32_at(row, origin::ORDER)? as usize)
    }

    /// Where in the arena the copy of the instruction is that was at an address, if its bytes were overwritten.
    #[must_use]
    pub fn moved(self, address: u64) -> Option<u32> {
        let address = u32::try_from(address).ok()?;
        let is_before = |row: Row| row.is_copy() && row.address <= address;
        let behind = self.first(|number| self.in_order(number).is_some_and(is_before));
        // Copies of nothing stand beside others.
        let near = behind.saturating_sub(3)..behind;
        near.rev()
            .find_map(|number| self.in_order(number)?.moved(address))
    }

    /// The first row that is wrong: out of order, or beyond `code` bytes.
    pub(crate) fn wrong(self, code: usize) -> Option<usize> {
        let mut before = None;
        (0..self.rows.len()).find(|index| {
            let Some(row) = self.row(*index) else {
                return true;
            };
            let is_behind = before.is_none_or(|before| before < row.at);
            before = Some(row.at);
            let has_place = self.in_order(*index).is_some();
            let end = row.at as usize + row.body as usize + row.length as usize;
            !is_behind || !has_place || end > code
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put;

    fn rows(of: &[(u32, u32, u32, u32, u32)]) -> Vec<[u8; origin::SIZE]> {
        let mut rows: Vec<[u8; origin::SIZE]> = Vec::new();
        for (at, flags, body, length, address) in of {
            let mut row = [0; origin::SIZE];
            put(&mut row, origin::AT, &(at | flags).to_le_bytes());
            put(&mut row, origin::BODY, &(*body as u16).to_le_bytes());
            put(&mut row, origin::LENGTH, &(*length as u16).to_le_bytes());
            put(&mut row, origin::ADDRESS, &address.to_le_bytes());
            rows.push(row);
        }
        let key = |index: &usize| {
            let row = Row::new(&rows[*index]);
            (!row.is_copy(), row.address)
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(key);
        for (row, number) in rows.iter_mut().zip(order) {
            put(row, origin::ORDER, &(number as u32).to_le_bytes());
        }
        rows
    }

    #[test]
    fn there_and_back() {
        let rows = rows(&[
            (64, origin::FIRST, 40, 7, 0x100),
            (128, origin::EXIT | origin::FIRST, 24, 4, 0x140),
            (192, origin::SLOT, 0, 0, 0x3000),
            (256, 0, 0, 0, origin::NOWHERE),
            (320, origin::FIRST, 40, 5, 0x20),
            (365, 0, 0, 6, 0x25),
        ]);
        let all = Origins::new(&rows);
        assert_eq!(all.wrong(400), None);
        assert_eq!(all.wrong(370), Some(5));
        let address = |offset| match all.stands_for(offset) {
            Some(StandsFor::Address(address)) => address,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [72, 104, 107, 111, 120].map(address),
            [0x100, 0x100, 0x103, 0x107, 0x107]
        );
        assert_eq!(
            [130, 152, 154, 170].map(address),
            [0x144, 0x140, 0x142, 0x144]
        );
        assert_eq!(all.stands_for(200), Some(StandsFor::Slot(0x3000)));
        assert_eq!([10, 256, 300].map(|it| all.stands_for(it)), [None; 3]);
        assert_eq!([360, 365, 370].map(address), [0x20, 0x25, 0x2a]);
        let moved = |of| all.moved(of);
        // The entry and the first of a way out are led there by jumps; a return's own bytes are gone.
        assert_eq!(
            [0x100, 0x101, 0x106, 0x107].map(moved),
            [None, Some(105), Some(110), None]
        );
        assert_eq!(
            [0x140, 0x141, 0x144, 0x145].map(moved),
            [None, Some(153), Some(156), None]
        );
        assert_eq!(
            [0x20, 0x21, 0x25, 0x2b].map(moved),
            [None, Some(361), Some(365), None]
        );
        assert_eq!([0, 0x3000, u64::MAX].map(moved), [None; 3]);
    }

    #[test]
    fn a_stub_that_takes_the_return_address_is_no_place_of_the_program() {
        let rows = rows(&[(64, origin::THROUGH | origin::FIRST, 40, 7, 0x100)]);
        let all = Origins::new(&rows);
        let is_known = |of: u32| all.stands_for(64 + of).is_some();
        assert_eq!(
            [8, 14, 19, 25, 30, 36, 40].map(is_known),
            [true, true, false, false, false, true, true]
        );
    }
}
