//! B-score: how alike two clusterings of the same objects are (Fowlkes and Mallows 1983; thesis 3.3.3).

use super::cluster::classes::ClassTree;
use crate::BScore;

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
pub(crate) fn b_score(kind: BScore, clusters: usize, a: &ClassTree<'_>, b: &ClassTree<'_>) -> f64 {
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
            let scores = (2..a.leaves()).map(|clusters| at(clusters).0);
            let known: Vec<f64> = scores.filter(|score| !score.is_nan()).collect();
            // Without any it is 0 / 0: NaN.
            known.iter().sum::<f64>() / known.len() as f64
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

    /// Two lines of labels in, one number out.
    const SCRIPT: &str = "
import sys
from sklearn.metrics import fowlkes_mallows_score
lines = [line.split() for line in sys.stdin]
for a, b in zip(lines[::2], lines[1::2]):
    print(repr(float(fowlkes_mallows_score(a, b))))
";

    #[test]
    #[allow(clippy::unwrap_used, clippy::print_stderr)]
    fn scikit_learn_agrees() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        // Debian's modules are its own Python's, which need not be the first on the path.
        let has = |python: &&str| {
            let import = ["-c", "import sklearn"];
            let there = Command::new(python)
                .args(import)
                .stderr(Stdio::null())
                .status();
            there.is_ok_and(|status| status.success())
        };
        let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has) else {
            assert!(std::env::var_os("LOCKSTEP_TEST_SKIPS").is_none_or(|it| it != "never"));
            eprintln!("SKIPPED scikit_learn_agrees: no Python with scikit-learn");
            return;
        };
        let mut state = 3u64;
        let mut random = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % limit
        };
        let (mut input, mut expected) = (String::new(), Vec::new());
        while expected.len() < 200 {
            let (objects, clusters) = (2 + random(30), 1 + random(6));
            let mut labels = || {
                (0..objects)
                    .map(|_| random(clusters))
                    .collect::<Vec<usize>>()
            };
            let (a, b) = (labels(), labels());
            let (score, _) = fowlkes_mallows(&a, &b);
            // Where it is undefined, theirs is 0.
            if score.is_nan() {
                continue;
            }
            for labels in [&a, &b] {
                let words: Vec<String> = labels.iter().map(ToString::to_string).collect();
                input.push_str(&words.join(" "));
                input.push('\n');
            }
            expected.push(score);
        }
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn equal_is_one_and_singletons_are_undefined() {
        assert_eq!(fowlkes_mallows(&[0, 1, 0, 2], &[1, 0, 1, 2]).0, 1.0);
        assert!(fowlkes_mallows(&[0, 1, 2], &[0, 0, 0]).0.is_nan());
        assert!(fowlkes_mallows(&[], &[]).0.is_nan());
    }
}
