//! All intents of a context, without their order: what it takes to know how large a lattice would be.
//!
//! Close-by-one with the objects of each attribute found in one pass over the rows of an extent (as linear-time
//! closed item set miners do it), so that a concept costs what its objects have and not what the context holds.
//!
//! *Costs*: O(attributes of the extent's objects) a concept and attribute; memory for the intents and one path down the
//! lattice. *Not for* neighbours: [`crate::Lattice`].

use crate::Context;
use crate::bits::{self, BitMatrix};
use crate::lattice::TooManyConcepts;

/// The intent of every concept of a context, once, of at most `limit` concepts.
///
/// # Errors
/// A context with more concepts.
pub fn intents(context: &Context, limit: usize) -> Result<BitMatrix, TooManyConcepts> {
    Ok(search(context, limit, true)?.found)
}

/// How many concepts a context has, if not more than `limit`: what [`intents`] finds, without keeping it.
///
/// # Errors
/// A context with more concepts.
pub fn count(context: &Context, limit: usize) -> Result<usize, TooManyConcepts> {
    Ok(search(context, limit, false)?.count)
}

fn search(context: &Context, limit: usize, keep: bool) -> Result<Search, TooManyConcepts> {
    let incidence = context.incidence();
    let columns = incidence.columns();
    // Rare attributes first: their concepts are small, and what is found twice is seen early.
    let mut order: Vec<usize> = (0..columns).collect();
    let transposed = incidence.transposed();
    order.sort_by_key(|column| bits::count(transposed.row(*column)));
    let mut place = vec![0; columns];
    for (new, old) in order.iter().enumerate() {
        place[*old] = new;
    }
    let mut rows: Vec<Vec<u32>> = (0..incidence.rows())
        .map(|row| {
            let mut row: Vec<u32> = bits::ones(incidence.row(row))
                .map(|it| place[it] as u32)
                .collect();
            row.sort_unstable();
            row
        })
        .collect();
    // Objects that are alike are in the same extents.
    rows.sort_unstable();
    rows.dedup();
    let mut sets = BitMatrix::new(rows.len(), columns);
    for (row, attributes) in rows.iter().enumerate() {
        for attribute in attributes {
            sets.set(row, *attribute as usize);
        }
    }
    let mut search = Search {
        rows,
        sets,
        order,
        limit,
        keep,
        count: 0,
        found: BitMatrix::new(0, columns),
    };
    let all: Vec<u32> = (0..search.rows.len() as u32).collect();
    let top = search.common(&all);
    search.below(&all, &top, 0)?;
    // No object has everything: then the concept of no object is one, too.
    let full = BitMatrix::full_row(columns);
    let has_all = search.rows.iter().any(|row| row.len() == columns);
    if !has_all && top != full {
        search.tell(&full)?;
    }
    Ok(search)
}

struct Search {
    /// For each distinct object its attributes, ascending, and the same as bits.
    rows: Vec<Vec<u32>>,
    sets: BitMatrix,
    /// The attribute of the context behind each of ours.
    order: Vec<usize>,
    limit: usize,
    /// Whether what is found is kept, or only counted.
    keep: bool,
    count: usize,
    found: BitMatrix,
}

impl Search {
    fn common(&self, extent: &[u32]) -> Vec<u64> {
        let mut intent = BitMatrix::full_row(self.order.len());
        for row in extent {
            for (word, own) in intent.iter_mut().zip(self.sets.row(*row as usize)) {
                *word &= own;
            }
        }
        intent
    }

    fn tell(&mut self, intent: &[u64]) -> Result<(), TooManyConcepts> {
        if self.count >= self.limit {
            return Err(TooManyConcepts { limit: self.limit });
        }
        self.count += 1;
        if !self.keep {
            return Ok(());
        }
        let mut told = vec![0u64; intent.len()];
        for attribute in bits::ones(intent) {
            let attribute = self.order[attribute];
            told[attribute / 64] |= 1 << (attribute % 64);
        }
        self.found.push(&told);
        Ok(())
    }

    /// A concept, and those below it that are first found by an attribute from `from` on.
    fn below(
        &mut self,
        extent: &[u32],
        intent: &[u64],
        from: usize,
    ) -> Result<(), TooManyConcepts> {
        self.tell(intent)?;
        let columns = self.order.len();
        let is_new = |attribute: u32| {
            let attribute = attribute as usize;
            attribute >= from && intent[attribute / 64] >> (attribute % 64) & 1 == 0
        };
        // The objects of each attribute one after the other in one list.
        let mut ends = vec![0u32; columns + 1 - from.min(columns)];
        let each = |extent: &[u32], rows: &[Vec<u32>], to: &mut dyn FnMut(u32, usize)| {
            for row in extent {
                for attribute in rows[*row as usize].iter().rev() {
                    if (*attribute as usize) < from {
                        break;
                    }
                    if is_new(*attribute) {
                        to(*row, *attribute as usize - from);
                    }
                }
            }
        };
        each(extent, &self.rows, &mut |_, attribute| {
            ends[attribute + 1] += 1
        });
        for attribute in 1..ends.len() {
            ends[attribute] += ends[attribute - 1];
        }
        let mut flat = vec![0u32; ends.last().copied().unwrap_or(0) as usize];
        let mut next = ends.clone();
        each(extent, &self.rows, &mut |row, attribute| {
            flat[next[attribute] as usize] = row;
            next[attribute] += 1;
        });
        for attribute in from..columns {
            let own = ends[attribute - from] as usize..ends[attribute - from + 1] as usize;
            if own.is_empty() {
                continue;
            }
            let smaller = &flat[own];
            let closed = self.common(smaller);
            // Canonical only if the closure adds nothing before `attribute`: else it is found elsewhere.
            let (word, bit) = (attribute / 64, attribute % 64);
            let adds = (0..=word).any(|at| {
                let before = if at == word {
                    (1u64 << bit) - 1
                } else {
                    u64::MAX
                };
                closed[at] & !intent[at] & before != 0
            });
            if !adds {
                self.below(smaller, &closed, attribute + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Lattice;
    use proptest::prelude::*;

    fn context(rows: usize, columns: usize, has: impl Fn(usize, usize) -> bool) -> Context {
        let mut incidence = BitMatrix::new(rows, columns);
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            if has(row, column) {
                incidence.set(row, column);
            }
        }
        let names = |count: usize| (0..count).map(|it| it.to_string()).collect();
        Context::new(names(rows), names(columns), incidence)
    }

    #[test]
    fn known_counts() {
        let count = |context: Context| {
            let all = intents(&context, 100_000).unwrap().rows();
            assert_eq!(count(&context, all).unwrap(), all);
            assert!(count(&context, all - 1).is_err());
            all
        };
        assert_eq!(count(context(10, 10, |row, column| row != column)), 1024);
        assert_eq!(count(context(7, 7, |row, column| row == column)), 9);
        assert_eq!(count(context(70, 70, |row, column| row <= column)), 70);
        assert_eq!(count(context(0, 3, |_, _| true)), 1);
        assert_eq!(count(context(3, 0, |_, _| true)), 1);
        assert_eq!(count(context(3, 3, |_, _| true)), 1);
        let too_many = intents(&context(10, 10, |row, column| row != column), 1023);
        assert_eq!(too_many.unwrap_err().limit, 1023);
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_lattice(cells in proptest::collection::vec(any::<bool>(), 0..12 * 9), columns in 1usize..9) {
            let context = context(cells.len() / columns, columns, |row, column| cells[row * columns + column]);
            let lattice = Lattice::new(&context, 100_000).unwrap();
            let mut expected: Vec<Vec<usize>> = (0..lattice.len()).map(|it| lattice.intent(it).collect()).collect();
            let found = intents(&context, 100_000).unwrap();
            let mut found: Vec<Vec<usize>> = (0..found.rows()).map(|it| bits::ones(found.row(it)).collect()).collect();
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
