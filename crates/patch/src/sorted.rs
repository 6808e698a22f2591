//! Lists sorted by address, with a table that leads close to a row.
//!
//! Planning asks millions of times which row stands at an address. A binary search over a list of that size waits for
//! memory at every step; here the table gives a few neighbours to look among.
//!
//! ```text
//!  address ──► (address - base) >> shift ──► first[bucket] .. first[bucket + 1], rows of this bucket
//! ```

use std::ops::Deref;

use lockstep_binary::CodeRange;

use crate::parallel;
use crate::survey::Branch;

/// Rows that one processor sorts as fast as two.
const SORTED_AT_ONCE: usize = 1 << 14;

/// What a row is sorted by.
pub(crate) trait Placed {
    fn place(&self) -> u64;
}

impl Placed for u64 {
    fn place(&self) -> u64 {
        *self
    }
}

impl Placed for (u64, u64) {
    fn place(&self) -> u64 {
        self.0
    }
}

impl Placed for (u64, u32) {
    fn place(&self) -> u64 {
        self.0
    }
}

impl Placed for Branch {
    fn place(&self) -> u64 {
        self.target
    }
}

impl Placed for CodeRange<'_> {
    fn place(&self) -> u64 {
        self.address
    }
}

/// Rows sorted by their places.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    rows: Vec<T>,
    /// Of each row, its place: these alone are searched, and stay in the cache.
    places: Vec<u64>,
    base: u64,
    shift: u32,
    /// How many rows stand before each bucket, and how many there are.
    first: Vec<u32>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            places: Vec::new(),
            base: 0,
            shift: 0,
            first: Vec::new(),
        }
    }
}

impl<T: Placed> Sorted<T> {
    /// Takes rows that are sorted.
    pub(crate) fn new(rows: Vec<T>) -> Self {
        debug_assert!(rows.is_sorted_by_key(Placed::place));
        let base = rows.first().map_or(0, Placed::place);
        let span = rows.last().map_or(0, Placed::place) - base;
        // At most as many buckets as rows.
        let mut shift = 0;
        while span >> shift >= rows.len().max(1) as u64 {
            shift += 1;
        }
        let mut first = Vec::with_capacity((span >> shift) as usize + 2);
        for (index, row) in rows.iter().enumerate() {
            let bucket = ((row.place() - base) >> shift) as usize;
            first.resize(first.len().max(bucket + 1), index as u32);
        }
        first.push(rows.len() as u32);
        Self {
            places: rows.iter().map(Placed::place).collect(),
            rows,
            base,
            shift,
            first,
        }
    }

    /// Sorts the rows of all `lists` by `key`, which begins with their places; equal ones stay in their order. Rows that stand
    /// far apart go to their buckets at once, and each processor fills some of the buckets.
    pub(crate) fn sort<K: Ord>(lists: &[&[T]], key: impl Fn(&T) -> K + Sync) -> Self
    where
        T: Copy + Send + Sync,
    {
        let rows = || lists.iter().copied().flatten();
        let Some(some) = rows().next().copied() else {
            return Self::default();
        };
        let (mut base, mut end) = (u64::MAX, 0);
        for row in rows() {
            base = base.min(row.place());
            end = end.max(row.place());
        }
        let count: usize = lists.iter().map(|list| list.len()).sum();
        let span = end - base;
        let mut shift = 0;
        while span >> shift >= count as u64 {
            shift += 1;
        }
        let bucket = |row: &T| ((row.place() - base) >> shift) as usize;
        let mut first = vec![0_u32; (span >> shift) as usize + 2];
        let workers = count.div_ceil(SORTED_AT_ONCE).min(parallel::processors());
        let share = (first.len() - 1).div_ceil(workers);
        // How many each bucket has, in the place behind the bucket's own.
        let counters = first[1..].chunks_mut(share).enumerate().collect();
        parallel::all(counters, |(worker, counts): (usize, &mut [u32])| {
            for row in rows() {
                if let Some(at) = bucket(row).checked_sub(worker * share)
                    && let Some(count) = counts.get_mut(at)
                {
                    *count += 1;
                }
            }
        });
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut sorted = vec![some; count];
        let mut rest = &mut sorted[..];
        let mut places = Vec::new();
        for starts in first[..first.len() - 1].chunks(share).enumerate() {
            let end = first[(starts.0 * share + share).min(first.len() - 1)];
            let (own, behind) = rest.split_at_mut((end - starts.1[0]) as usize);
            places.push((starts.0, own));
            rest = behind;
        }
        parallel::all(places, |(worker, own): (usize, &mut [T])| {
            let start = worker * share;
            let starts = &first[start..(start + share + 1).min(first.len())];
            let mut next = starts[..starts.len() - 1].to_vec();
            for row in rows() {
                if let Some(at) = bucket(row).checked_sub(start)
                    && let Some(next) = next.get_mut(at)
                {
                    own[(*next - starts[0]) as usize] = *row;
                    *next += 1;
                }
            }
            for ends in starts.windows(2).filter(|ends| ends[1] - ends[0] > 1) {
                let ends = (ends[0] - starts[0]) as usize..(ends[1] - starts[0]) as usize;
                own[ends].sort_by_key(&key);
            }
        });
        Self {
            places: sorted.iter().map(Placed::place).collect(),
            rows: sorted,
            base,
            shift,
            first,
        }
    }

    /// Index of the first row at `address` or behind it.
    pub(crate) fn first_from(&self, address: u64) -> usize {
        let Some(distance) = address.checked_sub(self.base) else {
            return 0;
        };
        let bucket = (distance >> self.shift) as usize;
        let (Some(start), Some(end)) = (self.first.get(bucket), self.first.get(bucket + 1)) else {
            return self.rows.len();
        };
        let places = &self.places[*start as usize..*end as usize];
        *start as usize + places.partition_point(|place| *place < address)
    }

    /// Index of the last row at `address` or before it.
    pub(crate) fn last_until(&self, address: u64) -> Option<usize> {
        self.first_from(address.saturating_add(1)).checked_sub(1)
    }

    /// Index of the first row at `address`.
    pub(crate) fn at(&self, address: u64) -> Option<usize> {
        let index = self.first_from(address);
        let place = self.places.get(index)?;
        (*place == address).then_some(index)
    }

    /// The rows in `from..to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> &[T] {
        let first = self.first_from(from);
        let rows = &self.rows[first..];
        // Most questions are about a few bytes.
        const NEAR: usize = 8;
        let near = self.places[first..].iter().take(NEAR);
        let near = near.take_while(|place| **place < to);
        match near.count() {
            NEAR => &rows[..self.first_from(to).saturating_sub(first)],
            count => &rows[..count],
        }
    }
}

impl Sorted<u64> {
    /// Sorts addresses, each once.
    pub(crate) fn of(mut addresses: Vec<u64>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        Self::new(addresses)
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }
}

impl<T> Deref for Sorted<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_found_as_by_a_search_of_all(
            mut rows in prop::collection::vec(prop_oneof![0..400u64, any::<u64>()], 0..60),
            asked in prop::collection::vec(prop_oneof![0..400u64, any::<u64>()], 30),
        ) {
            rows.sort_unstable();
            let (some, others) = rows.split_at(rows.len() / 3);
            let sorted = Sorted::sort(&[others, some], |row| *row);
            prop_assert_eq!(&sorted[..], &rows[..]);
            if !rows.is_empty() {
                prop_assert_eq!(&sorted.first, &Sorted::new(rows.clone()).first);
            }
            for address in asked.iter().chain(&rows).copied() {
                let first = rows.partition_point(|row| *row < address);
                prop_assert_eq!(sorted.first_from(address), first);
                let is_there = rows.get(first) == Some(&address);
                prop_assert_eq!(sorted.at(address), is_there.then_some(first));
                for to in [0, address, address.saturating_add(1), address.saturating_add(90), u64::MAX] {
                    let end = rows.partition_point(|row| *row < to).max(first);
                    prop_assert_eq!(sorted.between(address, to), &rows[first..end]);
                }
            }
        }
    }
}
