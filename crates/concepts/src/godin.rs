//! Godin's incremental algorithm (Godin, Missaoui, Alaoui 1995), the one DiffTrace uses (thesis 3.3.2).
//! An oracle, and the published method to measure against.

use crate::Context;
use crate::bits;
use crate::lattice::{Raw, TooManyConcepts};

pub(crate) fn build(context: &Context, limit: usize) -> Result<Raw, TooManyConcepts> {
    let mut lattice = Raw::new(context);
    for object in 0..context.objects().len() {
        add(&mut lattice, object, context.incidence().row(object), limit)?;
    }
    Ok(lattice)
}

fn add(
    lattice: &mut Raw,
    object: usize,
    attributes: &[u64],
    limit: usize,
) -> Result<(), TooManyConcepts> {
    // Concepts by the size of their intent, as they are now; and those that have the new object.
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); lattice.intents.columns() + 1];
    for concept in 0..lattice.upper.len() {
        before[bits::count(lattice.intents.row(concept))].push(concept);
    }
    let mut having: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (size, concepts) in before.iter().enumerate() {
        for concept in concepts {
            let intent = lattice.intents.row(*concept);
            if bits::is_subset(intent, attributes) {
                let all = intent == attributes;
                lattice.extents.set(*concept, object);
                having[size].push(*concept);
                if all {
                    return Ok(());
                }
                continue;
            }
            let shared = bits::and(intent, attributes);
            let size = bits::count(&shared);
            if having[size]
                .iter()
                .any(|other| lattice.intents.row(*other) == shared)
            {
                continue;
            }
            let new = generate(lattice, *concept, &shared, &having[..size], limit)?;
            lattice.extents.set(new, object);
            having[size].push(new);
            if shared == attributes {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Makes the concept with intent `shared` above its generator, and below the fitting ones of `having`.
fn generate(
    lattice: &mut Raw,
    generator: usize,
    shared: &[u64],
    having: &[Vec<usize>],
    limit: usize,
) -> Result<usize, TooManyConcepts> {
    let fits =
        |lattice: &Raw, concept: usize| bits::is_subset(lattice.intents.row(concept), shared);
    let above: Vec<usize> = having
        .iter()
        .flatten()
        .copied()
        .filter(|concept| fits(lattice, *concept))
        .collect();
    // A parent only if nothing lies between: none of its own lower neighbours fits as well.
    let parents: Vec<usize> = above
        .iter()
        .copied()
        .filter(|parent| {
            !(0..lattice.upper.len())
                .any(|child| lattice.upper[child].contains(parent) && fits(lattice, child))
        })
        .collect();
    let new = lattice.push(shared, generator, limit)?;
    lattice.upper[generator].retain(|upper| !parents.contains(upper));
    lattice.upper[generator].push(new);
    lattice.upper[new] = parents;
    Ok(new)
}
