//! The canonical numbering of concepts, and the order between concepts given by their extents alone.

use crate::bits;
use crate::lattice::{Lattice, Raw};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Renumbers concepts: larger extents first, equally large ones by their objects.
pub(crate) fn canonical(raw: &Raw) -> Lattice {
    let mut order: Vec<usize> = (0..raw.upper.len()).collect();
    order.sort_by_cached_key(|concept| {
        let extent = raw.extents.row(*concept);
        (
            Reverse(bits::count(extent)),
            bits::ones(extent).collect::<Vec<_>>(),
        )
    });
    let mut place = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        place[*old] = new;
    }
    let upper = order
        .iter()
        .map(|old| {
            let mut upper: Vec<usize> = raw.upper[*old].iter().map(|upper| place[*upper]).collect();
            upper.sort_unstable();
            upper
        })
        .collect();
    Lattice {
        extents: raw.extents.permuted(&order),
        intents: raw.intents.permuted(&order),
        upper,
    }
}

/// Upper neighbours from the concepts alone: the smallest closures of an extent with one more object
/// (as in Lindig's algorithm). O(concepts · objects · (objects + attributes)).
pub(crate) fn link(raw: &mut Raw, objects: &bits::BitMatrix) {
    let index: HashMap<Vec<u64>, usize> = (0..raw.intents.rows())
        .map(|concept| (raw.intents.row(concept).to_vec(), concept))
        .collect();
    for concept in 0..raw.upper.len() {
        let mut above: Vec<usize> = (0..objects.rows())
            .filter(|object| !raw.extents.get(concept, *object))
            .filter_map(|object| {
                let intent = bits::and(raw.intents.row(concept), objects.row(object));
                index.get(&intent).copied()
            })
            .collect();
        above.sort_unstable();
        above.dedup();
        let minimal = |candidate: &usize| {
            !above.iter().any(|other| {
                other != candidate
                    && bits::is_subset(raw.extents.row(*other), raw.extents.row(*candidate))
            })
        };
        raw.upper[concept] = above.iter().copied().filter(minimal).collect();
    }
}
