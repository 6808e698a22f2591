//! B-score: how alike two clusterings of the same objects are (Fowlkes and Mallows 1983; thesis 3.3.3).

use crate::{BScore, Dendrogram};

/// Fowlkes-Mallows B of two clusterings, 0..1, and its mean if their labels were independent. NaN where
/// it is undefined: no cluster of one of them has two members.
///
/// With m the contingency table: T = Σ m² - n, P and Q the same of its margins; B = T / √(P·Q).
pub(crate) fn fowlkes_mallows(a: &[usize], b: &[usize]) -> (f64, f64) {
    let clusters = |labels: &[usize]| labels.iter().max().map_or(0, |last| last + 1);
    let (rows, columns) = (clusters(a), clusters(b));
    let mut table = vec![0u64; rows * columns];
    let (mut by_row, mut by_column) = (vec![0u64; rows], vec![0u64; columns]);
    for (a, b) in a.iter().zip(b) {
        table[a * columns + b] += 1;
        by_row[*a] += 1;
        by_column[*b] += 1;
    }
    let n = a.len() as f64;
    let squares = |counts: &[u64]| {
        counts
            .iter()
            .map(|count| (count * count) as f64)
            .sum::<f64>()
            - n
    };
    let (t, p, q) = (squares(&table), squares(&by_row), squares(&by_column));
    let root = (p * q).sqrt();
    if root > 0.0 {
        (t / root, root / (n * (n - 1.0)))
    } else {
        (f64::NAN, f64::NAN)
    }
}

/// The likeness of two trees over the same objects. NaN where it is undefined.
pub(crate) fn b_score(kind: BScore, clusters: usize, a: &Dendrogram, b: &Dendrogram) -> f64 {
    let at = |clusters| fowlkes_mallows(&a.cut(clusters), &b.cut(clusters));
    match kind {
        BScore::Cut => at(clusters).0,
        BScore::Adjusted => {
            let (b, mean) = at(clusters);
            if mean < 1.0 {
                (b - mean) / (1.0 - mean)
            } else {
                f64::NAN
            }
        }
        BScore::Mean => {
            let scores: Vec<f64> = (2..a.leaves)
                .map(|clusters| at(clusters).0)
                .filter(|score| !score.is_nan())
                .collect();
            if scores.is_empty() {
                f64::NAN
            } else {
                scores.iter().sum::<f64>() / scores.len() as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_by_hand() {
        let (b, mean) = fowlkes_mallows(&[0, 0, 0, 1, 1, 2], &[0, 0, 1, 1, 2, 2]);
        assert!((b - 0.288_675).abs() < 1e-6, "{b}");
        assert!((mean - 0.230_940).abs() < 1e-6, "{mean}");
    }

    #[test]
    fn equal_is_one_and_singletons_are_undefined() {
        assert_eq!(fowlkes_mallows(&[0, 1, 0, 2], &[1, 0, 1, 2]).0, 1.0);
        assert!(fowlkes_mallows(&[0, 1, 2], &[0, 0, 0]).0.is_nan());
        assert!(fowlkes_mallows(&[], &[]).0.is_nan());
    }
}
