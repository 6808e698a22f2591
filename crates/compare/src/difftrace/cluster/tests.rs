//! The linkages against their definitions, and against SciPy where there is one.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use super::classes::ClassTree;
use super::condensed::{Condensed, Levels};
use super::nearest::Clusters;
use super::{Dendrogram, Merge, single};
use crate::difftrace::similarity::ClassMatrix;
use crate::{Distance, Linkage};
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// The linkages by definition, O(n³): at every step the nearest two clusters merge. Points are in the
/// plane, since centroids are.
fn naive(linkage: Linkage, points: &[[f64; 2]]) -> Dendrogram {
    struct Cluster {
        members: Vec<usize>,
        node: usize,
        /// Where median linkage takes it to be.
        middle: [f64; 2],
        /// Weighted linkage: the cluster as a tree of halves.
        weights: Vec<f64>,
    }
    let gap = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    let centroid = |cluster: &Cluster| {
        let sum = |axis: usize| {
            cluster
                .members
                .iter()
                .map(|member| points[*member][axis])
                .sum::<f64>()
        };
        let count = cluster.members.len() as f64;
        [sum(0) / count, sum(1) / count]
    };
    let distance = |a: &Cluster, b: &Cluster| {
        let pairs = || {
            a.members.iter().zip(&a.weights).flat_map(|(i, v)| {
                b.members
                    .iter()
                    .zip(&b.weights)
                    .map(move |(j, w)| (gap(points[*i], points[*j]), v * w))
            })
        };
        let (m, n) = (a.members.len() as f64, b.members.len() as f64);
        match linkage {
            Linkage::Single => pairs().map(|(d, _)| d).fold(f64::INFINITY, f64::min),
            Linkage::Complete => pairs().map(|(d, _)| d).fold(0.0, f64::max),
            Linkage::Average => pairs().map(|(d, _)| d).sum::<f64>() / (m * n),
            Linkage::Weighted => pairs().map(|(d, w)| d * w).sum(),
            Linkage::Centroid => gap(centroid(a), centroid(b)),
            Linkage::Median => gap(a.middle, b.middle),
            Linkage::Ward => (2.0 * m * n / (m + n)).sqrt() * gap(centroid(a), centroid(b)),
        }
    };
    let mut clusters: Vec<Cluster> = (0..points.len())
        .map(|leaf| Cluster {
            members: vec![leaf],
            node: leaf,
            middle: points[leaf],
            weights: vec![1.0],
        })
        .collect();
    let mut merges = Vec::new();
    while clusters.len() > 1 {
        let mut best = (f64::INFINITY, 0, 0);
        for b in 0..clusters.len() {
            for a in 0..b {
                let d = distance(&clusters[a], &clusters[b]);
                if d < best.0 {
                    best = (d, a, b);
                }
            }
        }
        let (height, a, b) = best;
        let right = clusters.remove(b);
        let left = clusters.remove(a);
        let mut members = [left.members, right.members].concat();
        let mut weights: Vec<f64> = [left.weights, right.weights].concat();
        weights.iter_mut().for_each(|weight| *weight /= 2.0);
        let mut both: Vec<(usize, f64)> = members.iter().copied().zip(weights).collect();
        both.sort_by_key(|(member, _)| *member);
        (members, weights) = both.into_iter().unzip();
        let size = members.len();
        merges.push(Merge {
            left: left.node,
            right: right.node,
            height,
            size,
        });
        clusters.push(Cluster {
            members,
            node: points.len() + merges.len() - 1,
            middle: [
                (left.middle[0] + right.middle[0]) / 2.0,
                (left.middle[1] + right.middle[1]) / 2.0,
            ],
            weights,
        });
        clusters.sort_by_key(|cluster| cluster.members[0]);
    }
    Dendrogram {
        leaves: points.len(),
        merges,
    }
}

/// The merges by definition, O(n³): the least (level, first, second) of all pairs, then Lance and Williams' formula.
fn one_by_one(linkage: Linkage, distances: &Condensed) -> Vec<(usize, usize, f64)> {
    let count = distances.count;
    let squares = linkage.squares();
    let mut far = distances.clone();
    if squares {
        far.values.iter_mut().for_each(|it| *it *= *it);
    }
    let levels = Levels::of(&far);
    let mut sizes = vec![1.0; count];
    let mut left: Vec<usize> = (0..count).collect();
    let mut merges = Vec::new();
    while left.len() > 1 {
        let pairs = left.iter().enumerate();
        let pairs = pairs.flat_map(|(at, a)| left[at + 1..].iter().map(|b| (*a, *b)));
        let (a, b) = pairs
            .min_by_key(|(a, b)| (levels.at(far.get(*a, *b)), *a, *b))
            .unwrap();
        let ab = far.get(a, b);
        merges.push((a, b, if squares { ab.max(0.0).sqrt() } else { ab }));
        left.retain(|it| *it != b);
        let formula = linkage.formula(sizes[a], sizes[b], ab);
        for x in left.iter().filter(|it| **it != a) {
            let place = far.place(a, *x);
            far.values[place] = formula(far.values[place], far.get(b, *x), sizes[*x]);
        }
        sizes[a] += sizes[b];
    }
    merges
}

impl Dendrogram {
    /// The cluster of each object after the last `clusters - 1` merges are undone. Clusters are numbered
    /// in the order of their smallest members.
    fn cut(&self, clusters: usize) -> Vec<usize> {
        let kept = self
            .leaves
            .saturating_sub(clusters.max(1))
            .min(self.merges.len());
        let mut top: Vec<usize> = (0..self.leaves + kept).collect();
        // Downwards, every node takes the name of the node above it.
        for index in (0..kept).rev() {
            let merge = &self.merges[index];
            let name = top[self.leaves + index];
            top[merge.left] = name;
            top[merge.right] = name;
        }
        let mut numbers = vec![None; top.len()];
        let mut next = 0;
        top[..self.leaves]
            .iter()
            .map(|top| {
                *numbers[*top].get_or_insert_with(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect()
    }

    /// For each pair of objects, as in a condensed distance matrix, the height at which they first lie
    /// in one cluster.
    fn cophenetic(&self) -> Vec<f64> {
        let mut members: Vec<Vec<usize>> = (0..self.leaves).map(|leaf| vec![leaf]).collect();
        let mut heights = Condensed::new(self.leaves, |_, _| 0.0);
        for merge in &self.merges {
            for a in &members[merge.left] {
                for b in &members[merge.right] {
                    let place = heights.place(*a, *b);
                    heights.values[place] = merge.height;
                }
            }
            let mut both = std::mem::take(&mut members[merge.left]);
            both.append(&mut members[merge.right]);
            members.push(both);
        }
        heights.values
    }
}

/// Every object a class of its own.
fn tree(linkage: Linkage, distances: Condensed) -> Dendrogram {
    let classes: Vec<usize> = (0..distances.count).collect();
    ClassTree::new(linkage, &classes, distances).dendrogram()
}

fn distances(points: &[[f64; 2]]) -> Condensed {
    Condensed::new(points.len(), |a, b| {
        (points[a][0] - points[b][0]).hypot(points[a][1] - points[b][1])
    })
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()))
}

proptest! {
    #[test]
    fn linkages_follow_their_definitions(points in proptest::collection::vec(proptest::array::uniform2(-100.0..100.0f64), 0..14)) {
        for linkage in Linkage::ALL {
            let ours = tree(*linkage, distances(&points));
            let slow = naive(*linkage, &points);
            prop_assert!(close(&ours.cophenetic(), &slow.cophenetic()), "{}: {:?} {:?}", linkage, ours, slow);
            for clusters in 1..=points.len() {
                prop_assert_eq!(ours.cut(clusters), slow.cut(clusters), "{} cut at {}", linkage, clusters);
            }
        }
    }

    #[test]
    fn classes_stand_for_their_objects(
        points in proptest::collection::vec(proptest::array::uniform2(-100.0..100.0f64), 1..8),
        picks in proptest::collection::vec(0usize..8, 0..16),
    ) {
        // Every point once, then some again.
        let classes: Vec<usize> =
            (0..points.len()).chain(picks.iter().map(|pick| pick % points.len())).collect();
        let objects: Vec<[f64; 2]> = classes.iter().map(|class| points[*class]).collect();
        for linkage in Linkage::ALL {
            let of_classes = ClassTree::new(*linkage, &classes, distances(&points));
            let by_class = of_classes.dendrogram();
            let by_object = tree(*linkage, distances(&objects));
            prop_assert!(close(&by_class.cophenetic(), &by_object.cophenetic()), "{}", linkage);
            for clusters in 1..=points.len() {
                prop_assert_eq!(by_class.cut(clusters), by_object.cut(clusters), "{} at {}", linkage, clusters);
            }
            for clusters in 0..classes.len() + 2 {
                prop_assert_eq!(of_classes.cut(clusters), by_class.cut(clusters), "{} at {}", linkage, clusters);
            }
        }
    }

    #[test]
    fn a_spanning_tree_merges_in_the_same_order(
        cells in proptest::collection::vec(0u32..1000, 780),
        leaves in 0usize..40,
        levels in 1u32..1000,
    ) {
        // Few distinct distances: ties everywhere; and distances that differ by less than a level.
        let far = |a: usize, b: usize| {
            let cell = cells[b * (b - 1) / 2 + a];
            f64::from(cell % levels) / 7.0 + f64::from(cell % 3) * 1e-14
        };
        let distances = Condensed::new(leaves, far);
        let fast = single::merges(&distances);
        let mut slow = Clusters::new(Linkage::Single, distances, vec![1.0; leaves]);
        let slow: Vec<(usize, usize, f64)> = std::iter::from_fn(|| slow.merge()).collect();
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn ties_are_broken_as_defined(
        cells in proptest::collection::vec(0u32..1000, 190),
        leaves in 0usize..20,
        levels in 1u32..6,
    ) {
        let far = |a: usize, b: usize| {
            let cell = cells[b * (b - 1) / 2 + a];
            f64::from(cell % levels) / 7.0 + f64::from(cell % 3) * 1e-14
        };
        let distances = Condensed::new(leaves, far);
        for linkage in Linkage::ALL {
            let mut fast = Clusters::new(*linkage, distances.clone(), vec![1.0; leaves]);
            let fast: Vec<(usize, usize, f64)> = std::iter::from_fn(|| fast.merge()).collect();
            prop_assert_eq!(fast, one_by_one(*linkage, &distances), "{}", linkage);
        }
    }

    #[test]
    fn a_cut_gives_that_many_clusters(cells in proptest::collection::vec(0u8..3, 190), leaves in 0usize..20) {
        // Few distinct distances: ties everywhere.
        let tied = Condensed::new(leaves, |a, b| f64::from(cells[(a * 19 + b) % cells.len()]));
        for linkage in Linkage::ALL {
            let tree = tree(*linkage, tied.clone());
            prop_assert_eq!(tree.merges.len(), leaves.saturating_sub(1));
            for clusters in 1..25 {
                let labels = tree.cut(clusters);
                let mut seen = 0;
                for label in &labels {
                    prop_assert!(*label <= seen);
                    seen = seen.max(label + 1);
                }
                prop_assert_eq!(seen, clusters.min(leaves));
            }
        }
    }
}

#[test]
fn ties_go_to_the_smallest_members() {
    let tree = tree(Linkage::Single, Condensed::new(4, |_, _| 1.0));
    assert_eq!(tree.cut(2), [0, 0, 0, 1]);
    assert_eq!(tree.cut(3), [0, 0, 1, 2]);
}

#[test]
fn distances_of_large_classes_are_told_apart() {
    let far = [300.0, 200.0, 100.0];
    let distances = Condensed::new(3, |a, b| far[a + b - 1]);
    let mut clusters = Clusters::new(Linkage::Ward, distances, vec![1e5; 3]);
    let merge = clusters.merge().unwrap();
    assert_eq!((merge.0, merge.1), (1, 2));
}

/// What SciPy is asked: one line a case, `linkage reading n` and the square similarity matrix.
const SCRIPT: &str = r"
import sys
import numpy as np
from scipy.cluster.hierarchy import linkage, cophenet
from scipy.spatial.distance import squareform
for line in sys.stdin:
    method, reading, n, *values = line.split()
    n = int(n)
    similarity = np.array([float(value) for value in values]).reshape(n, n)
    if reading == 'rows':
        tree = linkage(similarity, method)
    else:
        distance = 1 - similarity
        if reading == 'sqrt':
            distance = np.sqrt(distance)
        np.fill_diagonal(distance, 0)
        tree = linkage(squareform(distance, checks=False), method)
    print(*cophenet(tree))
    # Not cut_tree: it goes by height, and takes trees with inversions apart in the wrong order.
    labels = []
    for clusters in [2, 3, 4]:
        members = {leaf: [leaf] for leaf in range(n)}
        for step, (left, right, *_) in enumerate(tree[:n - clusters]):
            members[n + step] = members.pop(left) + members.pop(right)
        cut = [0] * n
        for label, cluster in enumerate(members.values()):
            for leaf in cluster:
                cut[leaf] = label
        labels += cut
    print(*labels)
";

/// The same clusters, whatever their numbers.
fn canonical(labels: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    labels
        .iter()
        .map(|label| {
            seen.iter()
                .position(|other| other == label)
                .unwrap_or_else(|| {
                    seen.push(*label);
                    seen.len() - 1
                })
        })
        .collect()
}

/// Debian's SciPy is its own Python's, which need not be the first on the path.
fn python_with_scipy() -> Option<String> {
    let chosen = std::env::var("LOCKSTEP_PYTHON").ok();
    let known = ["python3", "/usr/bin/python3"].map(str::to_owned);
    let has_scipy = |python: &String| {
        let there = Command::new(python).args(["-c", "import scipy"]).output();
        there.is_ok_and(|output| output.status.success())
    };
    chosen.into_iter().chain(known).find(has_scipy)
}

#[test]
fn scipy_agrees() {
    let Some(python) = python_with_scipy() else {
        eprintln!(
            "SKIPPED: no Python with SciPy; clusterings are checked against definitions only"
        );
        return;
    };
    // Random similarities without ties, from a linear congruential generator.
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut input = String::new();
    let mut cases = Vec::new();
    for case in 0..40 {
        let n = 5 + case % 20;
        let cells: Vec<f64> = (0..n * n).map(|_| random()).collect();
        let value = |a: usize, b: usize| {
            if a == b {
                1.0
            } else {
                cells[a.min(b) * n + a.max(b)]
            }
        };
        let matrix = ClassMatrix::from_values(n, value);
        for linkage in Linkage::ALL {
            for reading in Distance::ALL {
                input.push_str(&format!("{linkage} {reading} {n}"));
                for a in 0..n {
                    for b in 0..n {
                        input.push_str(&format!(" {:e}", matrix.get(a, b)));
                    }
                }
                input.push('\n');
                cases.push((*linkage, *reading, matrix.clone()));
            }
        }
    }
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    let mut lines = output.lines();
    for (linkage, reading, matrix) in cases {
        let tree = tree(linkage, reading.of_similarity(&matrix));
        let cophenetic: Vec<f64> = lines
            .next()
            .unwrap()
            .split(' ')
            .map(|value| value.parse().unwrap())
            .collect();
        let cuts: Vec<usize> = lines
            .next()
            .unwrap()
            .split(' ')
            .map(|value| value.parse().unwrap())
            .collect();
        assert!(
            close(&tree.cophenetic(), &cophenetic),
            "{linkage} {reading}"
        );
        for (cut, clusters) in cuts.chunks(matrix.count()).zip(2..) {
            assert_eq!(
                tree.cut(clusters),
                canonical(cut),
                "{linkage} {reading} {clusters}"
            );
        }
    }
}

/// Seconds that this thread has been on a processor.
pub(crate) fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    first.unwrap_or(0.0) / 1e9
}

/// What SciPy is asked: processor seconds for each method, of condensed distances in a file.
const SECONDS: &str = "
import sys, time, numpy
from scipy.cluster.hierarchy import linkage
distances = numpy.fromfile(sys.argv[1])
for method in sys.argv[2:]:
    start = time.process_time()
    linkage(distances, method)
    print(time.process_time() - start)
";

/// `cargo test --release -p lockstep-compare --lib -- --ignored --nocapture clustering`.
#[test]
#[ignore = "a measurement"]
fn clustering_many_classes() {
    const CLASSES: usize = 5_000;
    let value = |a: usize, b: usize| {
        let mixed = ((a.min(b) * CLASSES + a.max(b)) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11;
        mixed as f64 / (1u64 << 53) as f64
    };
    let matrix = ClassMatrix::from_values(CLASSES, value);
    let theirs = scipy_seconds(&Distance::OneMinus.of_similarity(&matrix));
    let classes: Vec<usize> = (0..CLASSES).collect();
    for (place, linkage) in Linkage::ALL.iter().enumerate() {
        let distances = Distance::OneMinus.of_similarity(&matrix);
        let start = on_processor();
        let tree = ClassTree::new(*linkage, &classes, distances);
        let ours = on_processor() - start;
        assert_eq!(tree.dendrogram().merges.len(), CLASSES - 1);
        let theirs = theirs
            .get(place)
            .map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
        eprintln!("{CLASSES} classes, {linkage}: {ours:.2} s, SciPy {theirs} s");
    }
}

/// Seconds that SciPy takes, linkage by linkage; nothing where it is not there.
fn scipy_seconds(distances: &Condensed) -> Vec<f64> {
    let Some(python) = python_with_scipy() else {
        return Vec::new();
    };
    let file = std::env::temp_dir().join(format!("lockstep-scipy-{}", std::process::id()));
    let bytes: Vec<u8> = distances
        .values
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    std::fs::write(&file, bytes).unwrap();
    let words = Linkage::ALL.iter().map(|it| it.word());
    let mut command = Command::new(python);
    let output = command
        .args(["-c", SECONDS])
        .arg(&file)
        .args(words)
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
