//! The concepts of objects and attributes alone, ordered (the AOC-poset, or Galois sub-hierarchy).

use crate::bits::{self, BitMatrix};
use crate::lattice::{Lattice, Raw};
use crate::{Context, order};
use std::collections::HashSet;

pub(crate) fn build(context: &Context) -> Lattice {
    let rows = context.incidence();
    let columns = rows.transposed();
    // The objects that have all of some attributes, and the attributes that all of some objects have.
    let common = |of: &BitMatrix, all: &[u64], others: usize| {
        let mut found = BitMatrix::full_row(others);
        for row in bits::ones(all) {
            for (word, own) in found.iter_mut().zip(of.row(row)) {
                *word &= own;
            }
        }
        found
    };
    let (objects, attributes) = (rows.rows(), rows.columns());
    let mut raw = Raw {
        extents: BitMatrix::new(0, objects),
        intents: BitMatrix::new(0, attributes),
        upper: Vec::new(),
    };
    let mut known: HashSet<Vec<u64>> = HashSet::new();
    let mut add = |extent: Vec<u64>, intent: &[u64]| {
        if !known.contains(&extent) {
            raw.extents.push(&extent);
            raw.intents.push(intent);
            raw.upper.push(Vec::new());
            known.insert(extent);
        }
    };
    let mut seen: HashSet<&[u64]> = HashSet::new();
    for row in (0..objects).map(|object| rows.row(object)) {
        // Objects that are alike bring one concept.
        if seen.insert(row) {
            add(common(&columns, row, objects), row);
        }
    }
    for column in (0..attributes).map(|attribute| columns.row(attribute)) {
        add(column.to_vec(), &common(rows, column, attributes));
    }
    link(&mut raw);
    order::canonical(&raw)
}

/// Upper neighbours: of the concepts above one, from the smallest up, those that are above no other of them.
fn link(raw: &mut Raw) {
    let count = raw.upper.len();
    let sizes: Vec<usize> = (0..count)
        .map(|it| bits::count(raw.extents.row(it)))
        .collect();
    let mut by_size: Vec<usize> = (0..count).collect();
    by_size.sort_by_key(|concept| sizes[*concept]);
    for concept in 0..count {
        let own = raw.extents.row(concept);
        let mut upper: Vec<usize> = Vec::new();
        let from = by_size.partition_point(|other| sizes[*other] <= sizes[concept]);
        for other in &by_size[from..] {
            let extent = raw.extents.row(*other);
            let is_above = bits::is_subset(own, extent);
            if is_above
                && !(upper.iter()).any(|near| bits::is_subset(raw.extents.row(*near), extent))
            {
                upper.push(*other);
            }
        }
        raw.upper[concept] = upper;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_part_of_the_lattice(cells in proptest::collection::vec(any::<bool>(), 0..12 * 9), columns in 1usize..9) {
            let rows = cells.len() / columns;
            let mut incidence = BitMatrix::new(rows, columns);
            for (place, _) in cells.iter().take(rows * columns).enumerate().filter(|(_, has)| **has) {
                incidence.set(place / columns, place % columns);
            }
            let names = |count: usize| (0..count).map(|it| it.to_string()).collect();
            let context = Context::new(names(rows), names(columns), incidence);
            let (whole, part) = (Lattice::new(&context, 100_000).unwrap(), build(&context));
            let concept = |of: &Lattice, it: usize| (of.extent(it).collect::<Vec<_>>(), of.intent(it).collect::<Vec<_>>());
            let expected: BTreeSet<_> = whole.object_concepts(&context).into_iter()
                .chain(whole.attribute_concepts(&context))
                .map(|it| concept(&whole, it))
                .collect();
            let found: BTreeSet<_> = (0..part.len()).map(|it| concept(&part, it)).collect();
            prop_assert_eq!(found.len(), part.len());
            prop_assert_eq!(found, expected);
            // Neighbours are what lies above with nothing between.
            let above = |a: usize, b: usize| a != b && bits::is_subset(part.extents.row(b), part.extents.row(a));
            for upper in 0..part.len() {
                for lower in 0..part.len() {
                    let near = above(upper, lower) && !(0..part.len()).any(|it| above(upper, it) && above(it, lower));
                    prop_assert_eq!(part.covers().contains(&(upper, lower)), near);
                }
            }
        }
    }
}
