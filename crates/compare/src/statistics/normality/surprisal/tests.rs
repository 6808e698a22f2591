//! The scores against their definition, written down attribute by attribute over the single objects.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

type Sets = Vec<Vec<BTreeSet<u32>>>;

/// By definition: `sets[name][run]`, every name by itself.
fn slow(sets: &Sets, roles: &[usize], run: usize, weights: &[u32]) -> Vec<Option<f64>> {
    let sample = |without: usize| -> Vec<(usize, usize)> {
        let pairs = (0..sets.len()).flat_map(|name| (0..weights.len()).map(move |run| (name, run)));
        pairs
            .filter(|(_, other)| *other != run && *other != without)
            .flat_map(|(name, other)| vec![(name, other); weights[other] as usize])
            .collect()
    };
    let surprisal = |name: usize, of: usize, without: usize| -> f64 {
        let role: Vec<_> = (sample(without).into_iter())
            .filter(|(other, _)| roles[*other] == roles[name])
            .collect();
        let universe: BTreeSet<u32> = (0..sets.len())
            .filter(|other| roles[*other] == roles[name])
            .flat_map(|other| sets[other].iter().flatten().copied())
            .collect();
        let mut sum = 0.0;
        for attribute in universe {
            let has = sets[name][of].contains(&attribute);
            let share = |among: Vec<&(usize, usize)>, prior: f64| {
                let alike = (among.iter())
                    .filter(|(name, run)| sets[*name][*run].contains(&attribute) == has);
                (alike.count() as f64 + prior) / (among.len() as f64 + 1.0)
            };
            let own = role.iter().filter(|(other, _)| *other == name).collect();
            let of_role = share(role.iter().collect(), 0.5);
            sum -= of_role.max(share(own, of_role)).ln();
        }
        sum
    };
    (0..sets.len())
        .map(|name| {
            let mut null: Vec<f64> = Vec::new();
            for (other, of) in sample(run) {
                let rest = (0..weights.len())
                    .any(|third| third != of && third != run && weights[third] > 0);
                if roles[other] == roles[name] && rest {
                    null.push(surprisal(other, of, of));
                }
            }
            if null.is_empty() {
                return None;
            }
            let count = null.len() as f64;
            let mean = null.iter().sum::<f64>() / count;
            let variance = null.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / count;
            let known = (0..weights.len()).any(|other| {
                other != run && weights[other] > 0 && sets[name][other] == sets[name][run]
            });
            let own = if known {
                0.0
            } else {
                surprisal(name, run, run)
            };
            Some(((own - mean) / (variance.sqrt() + 1.0)).max(0.0))
        })
        .collect()
}

fn population(sets: &Sets, roles: &[usize]) -> (Population, Family) {
    let mut family = Family::default();
    let objects = (sets.iter().zip(roles))
        .map(|(runs, role)| Object {
            role: *role,
            weight: 1,
            classes: runs
                .iter()
                .map(|set| {
                    let set: Vec<u32> = set.iter().copied().collect();
                    let known = family.sets.iter().position(|other| *other == set);
                    Some(known.unwrap_or_else(|| {
                        family.sets.push(set);
                        family.sets.len() - 1
                    }))
                })
                .collect(),
        })
        .collect();
    family.of_class = (0..family.sets.len()).collect();
    let runs = sets[0].len();
    (Population { runs, objects }, family)
}

/// Names that are alike in every run as one.
fn merged(population: &Population) -> (Population, Vec<usize>) {
    let mut objects: Vec<Object> = Vec::new();
    let place = (population.objects.iter())
        .map(|object| {
            let same =
                |other: &Object| other.role == object.role && other.classes == object.classes;
            match objects.iter().position(same) {
                Some(place) => {
                    objects[place].weight += 1;
                    place
                }
                None => {
                    objects.push(object.clone());
                    objects.len() - 1
                }
            }
        })
        .collect();
    let runs = population.runs;
    (Population { runs, objects }, place)
}

proptest! {
    #[test]
    fn agrees_with_the_definition(
        (sets, roles, weights) in (2..5usize, 1..7usize).prop_flat_map(|(runs, names)| (
            prop::collection::vec(prop::collection::vec(prop::collection::btree_set(0..5u32, 0..4), runs), names),
            prop::collection::vec(0..2usize, names),
            prop::collection::vec(0..3u32, runs),
        ))
    ) {
        let (whole, family) = population(&sets, &roles);
        let (small, place) = merged(&whole);
        for run in 0..whole.runs {
            let expected = slow(&sets, &roles, run, &weights);
            let families = [family.clone()];
            let found = &judge(&whole, &families, run, &weights)[0];
            let joined = &judge(&small, &families, run, &weights)[0];
            for (name, expected) in expected.iter().enumerate() {
                let joined = joined[place[name]];
                prop_assert_eq!(expected.is_some(), found[name].is_some());
                prop_assert_eq!(expected.is_some(), joined.is_some());
                if let (Some(a), Some(b), Some(c)) = (expected, found[name], joined) {
                    prop_assert!((a - b).abs() < 1e-9 && (a - c).abs() < 1e-9, "{} {} {}", a, b, c);
                }
            }
        }
    }
}

#[test]
fn what_is_missing_where_all_have_it_comes_first() {
    let usual: BTreeSet<u32> = [1, 2, 3].into();
    let mut sets = vec![vec![usual; 6]; 8];
    sets[3][5] = [1, 3].into();
    let (population, family) = population(&sets, &[0; 8]);
    let scores = &judge(&population, std::slice::from_ref(&family), 5, &[1; 6])[0];
    let most = (0..8).max_by(|a, b| scores[*a].unwrap().total_cmp(&scores[*b].unwrap()));
    assert_eq!(most, Some(3));
    assert!(
        scores
            .iter()
            .enumerate()
            .all(|(name, it)| name == 3 || *it == Some(0.0))
    );
    let first = oddities(&population, &family, 5, 3)[0];
    assert_eq!(
        (first.attribute, first.present, first.seen, first.of),
        (2, false, 40, 40)
    );
}
