#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

const ALL: [Algorithm; 3] = [
    Algorithm::AddIntent,
    Algorithm::Godin,
    Algorithm::CloseByOne,
];

/// A context from a test of (object, attribute).
fn scale(objects: usize, attributes: usize, has: impl Fn(usize, usize) -> bool) -> Context {
    let mut incidence = BitMatrix::new(objects, attributes);
    for object in 0..objects {
        for attribute in 0..attributes {
            if has(object, attribute) {
                incidence.set(object, attribute);
            }
        }
    }
    let names = |prefix: &str, count| (0..count).map(|i| format!("{prefix}{i}")).collect();
    Context::new(names("g", objects), names("m", attributes), incidence)
}

fn letters(objects: &[(&str, &str)]) -> Context {
    Context::from_sets(objects.iter().map(|(object, attributes)| {
        (
            (*object).to_owned(),
            attributes
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }))
}

fn count(context: &Context) -> usize {
    let lattices = ALL.map(|algorithm| Lattice::by(algorithm, context, 100_000).unwrap());
    assert_eq!(lattices[0], lattices[1]);
    assert_eq!(lattices[0], lattices[2]);
    lattices[0].len()
}

#[test]
fn known_counts() {
    for (n, concepts) in [(4, 16), (8, 256), (10, 1024)] {
        assert_eq!(
            count(&scale(n, n, |i, j| i != j)),
            concepts,
            "contranominal"
        );
    }
    for n in [2, 5, 30] {
        assert_eq!(count(&scale(n, n, |i, j| i == j)), n + 2, "nominal");
        assert_eq!(count(&scale(n, n, |i, j| i <= j)), n, "ordinal");
    }
    assert_eq!(count(&scale(0, 0, |_, _| true)), 1);
    assert_eq!(count(&scale(0, 3, |_, _| true)), 1);
    assert_eq!(count(&scale(3, 0, |_, _| true)), 1);
    assert_eq!(count(&scale(3, 3, |_, _| true)), 1);
    assert_eq!(count(&scale(3, 3, |_, _| false)), 2);
}

#[test]
fn living_beings_and_water() {
    let context = letters(&[
        ("leech", "water in-water moves"),
        ("bream", "water in-water moves limbs"),
        ("frog", "water in-water on-land moves limbs"),
        ("dog", "water on-land moves limbs suckles"),
        ("spike-weed", "water in-water chlorophyll monocot"),
        ("reed", "water in-water on-land chlorophyll monocot"),
        ("bean", "water on-land chlorophyll dicot"),
        ("maize", "water on-land chlorophyll monocot"),
    ]);
    assert_eq!(
        (context.objects().len(), context.attributes().len()),
        (8, 9)
    );
    assert_eq!(count(&context), 19);
    assert_eq!(count(&context.dual()), 19);
    assert_eq!(
        Lattice::new(&context, 18),
        Err(TooManyConcepts { limit: 18 })
    );
}

#[test]
fn reduced_labels() {
    let context = letters(&[("a", "x y"), ("b", "x z"), ("c", "x y")]);
    let lattice = Lattice::new(&context, 100).unwrap();
    assert_eq!(lattice.covers(), [(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(lattice.object_concepts(&context), [1, 2, 1]);
    assert_eq!(lattice.attribute_concepts(&context), [0, 1, 2]);
    assert!(lattice.extent(1).eq([0, 2]));
    assert!(lattice.intent(1).eq([0, 1]));
}

#[test]
fn an_impossible_lattice_is_refused_soon() {
    let context = scale(200, 200, |i, j| i != j);
    for algorithm in [Algorithm::AddIntent, Algorithm::CloseByOne] {
        let error = Lattice::by(algorithm, &context, 2000).unwrap_err();
        assert_eq!(error.to_string(), "the lattice has more than 2000 concepts");
    }
}

#[test]
fn a_high_lattice_does_not_exhaust_the_stack() {
    let context = scale(3000, 3000, |i, j| i <= j);
    assert_eq!(Lattice::new(&context, 10_000).unwrap().len(), 3000);
}

fn contexts() -> impl Strategy<Value = Context> {
    (0usize..9, 0usize..9).prop_flat_map(|(objects, attributes)| {
        proptest::collection::vec(any::<bool>(), objects * attributes)
            .prop_map(move |cells| scale(objects, attributes, |i, j| cells[i * attributes + j]))
    })
}

proptest! {
    #[test]
    fn algorithms_agree(context in contexts()) {
        let lattice = Lattice::new(&context, usize::MAX).unwrap();
        prop_assert_eq!(&lattice, &Lattice::by(Algorithm::Godin, &context, usize::MAX).unwrap());
        prop_assert_eq!(&lattice, &Lattice::by(Algorithm::CloseByOne, &context, usize::MAX).unwrap());
        prop_assert_eq!(lattice.len(), Lattice::new(&context.dual(), usize::MAX).unwrap().len());
    }

    #[test]
    fn any_order_of_insertion_gives_the_same_concepts(
        (context, order) in contexts().prop_flat_map(|context| {
            let order: Vec<usize> = (0..context.objects().len()).collect();
            (Just(context), Just(order).prop_shuffle())
        })
    ) {
        let shuffled = Context::new(
            order.iter().map(|object| context.objects()[*object].clone()).collect(),
            context.attributes().to_vec(),
            context.incidence().permuted(&order),
        );
        // By names, since objects are numbered otherwise.
        let concepts = |context: &Context| {
            let lattice = Lattice::new(context, usize::MAX).unwrap();
            let names = |concept| {
                let mut extent: Vec<String> =
                    lattice.extent(concept).map(|object| context.objects()[object].clone()).collect();
                extent.sort();
                (extent, lattice.intent(concept).collect::<Vec<_>>())
            };
            let mut concepts: Vec<_> = (0..lattice.len()).map(names).collect();
            let mut covers: Vec<_> =
                lattice.covers().iter().map(|(u, l)| (concepts[*u].clone(), concepts[*l].clone())).collect();
            concepts.sort();
            covers.sort();
            (concepts, covers)
        };
        prop_assert_eq!(concepts(&context), concepts(&shuffled));
    }

    #[test]
    fn concepts_are_closed_and_neighbours_are_next_to_each_other(context in contexts()) {
        let lattice = Lattice::new(&context, usize::MAX).unwrap();
        let has = |object: usize, attribute: usize| context.incidence().get(object, attribute);
        let all: Vec<(Vec<usize>, Vec<usize>)> = (0..lattice.len())
            .map(|concept| (lattice.extent(concept).collect(), lattice.intent(concept).collect()))
            .collect();
        for (extent, intent) in &all {
            let common: Vec<usize> = (0..context.attributes().len())
                .filter(|attribute| extent.iter().all(|object| has(*object, *attribute)))
                .collect();
            let sharing: Vec<usize> = (0..context.objects().len())
                .filter(|object| intent.iter().all(|attribute| has(*object, *attribute)))
                .collect();
            prop_assert_eq!(&common, intent);
            prop_assert_eq!(&sharing, extent);
        }
        let below = |a: usize, b: usize| a != b && all[a].0.iter().all(|object| all[b].0.contains(object));
        let mut covers = Vec::new();
        for upper in 0..all.len() {
            for lower in 0..all.len() {
                if below(lower, upper) && !(0..all.len()).any(|m| below(lower, m) && below(m, upper)) {
                    covers.push((upper, lower));
                }
            }
        }
        prop_assert_eq!(lattice.covers(), covers);
    }
}
