//! Close-by-one (Kuznetsov 1993): every concept once, attribute by attribute. An oracle.

use crate::bits::{self, BitMatrix};
use crate::lattice::{Raw, TooManyConcepts};
use crate::{Context, order};

pub(crate) fn build(context: &Context, limit: usize) -> Result<Raw, TooManyConcepts> {
    let objects = context.incidence();
    let columns = objects.transposed();
    let mut raw = Raw {
        extents: BitMatrix::new(0, objects.rows()),
        intents: BitMatrix::new(0, objects.columns()),
        upper: Vec::new(),
    };
    let everything = BitMatrix::full_row(objects.rows());
    let intent = common(objects, &everything);
    let mut todo = vec![(everything, intent, 0)];
    while let Some((extent, intent, from)) = todo.pop() {
        if raw.upper.len() >= limit {
            return Err(TooManyConcepts { limit });
        }
        for attribute in from..objects.columns() {
            if has(&intent, attribute) {
                continue;
            }
            let smaller = bits::and(&extent, columns.row(attribute));
            let closed = common(objects, &smaller);
            // Canonical only if the closure adds nothing before `attribute`: else it is found elsewhere.
            let adds_earlier = bits::ones(&closed)
                .take_while(|earlier| *earlier < attribute)
                .any(|earlier| !has(&intent, earlier));
            if !adds_earlier {
                todo.push((smaller, closed, attribute + 1));
            }
        }
        raw.extents.push(&extent);
        raw.intents.push(&intent);
        raw.upper.push(Vec::new());
    }
    order::link(&mut raw, objects);
    Ok(raw)
}

fn has(set: &[u64], element: usize) -> bool {
    set[element / 64] >> (element % 64) & 1 == 1
}

/// The attributes that all objects of an extent have.
fn common(objects: &BitMatrix, extent: &[u64]) -> Vec<u64> {
    bits::ones(extent).fold(BitMatrix::full_row(objects.columns()), |intent, object| {
        bits::and(&intent, objects.row(object))
    })
}
