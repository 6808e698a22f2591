//! Sets as rows of bits.

/// Rows of equally many bits in one allocation: row `i` is a set over the columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BitMatrix {
    rows: usize,
    columns: usize,
    words: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl BitMatrix {
    /// All zeros.
    #[must_use]
    pub fn new(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            words: vec![0; rows * columns.div_ceil(BITS)],
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of bits in a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    fn stride(&self) -> usize {
        self.columns.div_ceil(BITS)
    }

    /// A row, lowest bit first; the bits past the last column are zero.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let stride = self.stride();
        &self.words[row * stride..(row + 1) * stride]
    }

    /// The bit at a place.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> bool {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        self.row(row)[column / BITS] >> (column % BITS) & 1 == 1
    }

    /// Sets the bit at a place.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn set(&mut self, row: usize, column: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        assert!(column < self.columns, "column {column} of {}", self.columns);
        let stride = self.stride();
        self.words[row * stride + column / BITS] |= 1 << (column % BITS);
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If it is of another width.
    pub fn push(&mut self, row: &[u64]) {
        assert_eq!(row.len(), self.stride(), "width of a row");
        self.words.extend_from_slice(row);
        self.rows += 1;
    }

    /// A row with a one in every column.
    #[must_use]
    pub fn full_row(columns: usize) -> Vec<u64> {
        let mut row = vec![u64::MAX; columns.div_ceil(BITS)];
        if let Some(last) = row.last_mut()
            && !columns.is_multiple_of(BITS)
        {
            *last >>= BITS - columns % BITS;
        }
        row
    }

    /// Rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut result = Self::new(self.columns, self.rows);
        for row in 0..self.rows {
            for column in ones(self.row(row)) {
                result.set(column, row);
            }
        }
        result
    }

    /// The rows in this order.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let mut result = Self::new(0, self.columns);
        for row in order {
            result.push(self.row(*row));
        }
        result
    }
}

/// Size of the intersection of two sets.
#[must_use]
pub fn and_count(a: &[u64], b: &[u64]) -> usize {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a & b).count_ones() as usize)
        .sum()
}

/// Whether every element of `a` is in `b`.
#[must_use]
pub fn is_subset(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a & !b == 0)
}

/// The elements of a set, ascending.
pub fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                index * BITS + bit
            })
        })
    })
}

/// Size of a set.
pub(crate) fn count(a: &[u64]) -> usize {
    a.iter().map(|word| word.count_ones() as usize).sum()
}

/// The intersection of two sets.
pub(crate) fn and(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn rows_are_sets(columns in 1usize..200, picks in proptest::collection::vec((0usize..4, 0usize..200), 0..300)) {
            let mut matrix = BitMatrix::new(4, columns);
            let mut sets = vec![BTreeSet::new(); 4];
            for (row, column) in picks {
                let column = column % columns;
                matrix.set(row, column);
                sets[row].insert(column);
            }
            for (i, a) in sets.iter().enumerate() {
                prop_assert!(ones(matrix.row(i)).eq(a.iter().copied()));
                prop_assert_eq!(count(matrix.row(i)), a.len());
                prop_assert!(is_subset(matrix.row(i), &BitMatrix::full_row(columns)));
                for (j, b) in sets.iter().enumerate() {
                    prop_assert_eq!(and_count(matrix.row(i), matrix.row(j)), a.intersection(b).count());
                    prop_assert_eq!(is_subset(matrix.row(i), matrix.row(j)), a.is_subset(b));
                }
            }
            prop_assert_eq!(matrix.transposed().transposed(), matrix);
        }
    }

    #[test]
    fn a_full_row_ends_with_the_last_column() {
        assert_eq!(ones(&BitMatrix::full_row(0)).count(), 0);
        assert_eq!(ones(&BitMatrix::full_row(64)).count(), 64);
        assert_eq!(ones(&BitMatrix::full_row(65)).last(), Some(64));
    }
}
