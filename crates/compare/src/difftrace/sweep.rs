//! The ranking table: one row for each set of options (thesis 3.3.3.1).

use super::attribute::{Kind, Subjects};
use super::b_score::b_score;
use super::cluster::classes::ClassTree;
use super::filter::{Filter, FilterName};
use super::sequence::{Folding, Item, Lens};
use super::similarity::ClassMatrix;
use super::trees::Trees;
use crate::{Attributes, Error, Frequency, Linkage, ObjectName, Options};
use lockstep_trace::{ProcessName, ThreadName};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One set of options, and the candidates that it finds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The filter, as the papers write it: `11.mpi.0K10`.
    pub filter: String,
    /// What attributes are made of.
    pub attributes: Attributes,
    /// How much an attribute says about its frequency.
    pub frequency: Frequency,
    /// How clusters are merged.
    pub linkage: Linkage,
    /// Number of clusters.
    pub clusters: usize,
    /// B-score: how similar the clusterings of the two runs are, from 0 to 1 (equal). Null if it is undefined.
    #[schemars(with = "Option<f64>")]
    pub b_score: f64,
    /// Sizes of the clusters of the JSM_D, largest first.
    pub cluster_sizes: Vec<usize>,
    /// Processes whose thread 0 is a candidate, most changed first.
    pub processes: Vec<ProcessName>,
    /// Candidates: the members of the smallest clusters, most changed first.
    pub threads: Vec<ObjectName>,
}

/// The closing row of the ranking table: the candidates in most rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Top {
    /// Candidate processes, each with its number of rows, most rows first.
    pub processes: Vec<(String, usize)>,
    /// Candidate traces, each with its number of rows, most rows first.
    pub threads: Vec<(String, usize)>,
}

impl Top {
    /// Of these rows.
    pub(crate) fn of(rows: &[Row]) -> Self {
        Self {
            processes: most(rows.iter().flat_map(|row| &row.processes).copied()),
            threads: most(rows.iter().flat_map(|row| &row.threads).copied()),
        }
    }
}

/// How often each occurs, most often first, then in their order.
fn most<T: Ord + ToString>(items: impl Iterator<Item = T>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    let mut counts: Vec<(T, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
        .into_iter()
        .map(|(item, count)| (item.to_string(), count))
        .collect()
}

/// The filters of a sweep, those that keep nothing included.
const FILTERS: [FilterName; 10] = [
    FilterName::Mpi,
    FilterName::MpiCollectives,
    FilterName::MpiP2p,
    FilterName::Omp,
    FilterName::OmpCritical,
    FilterName::OmpMutex,
    FilterName::Memory,
    FilterName::String,
    FilterName::Everything,
    FilterName::Custom,
];

const CLUSTERS: [usize; 3] = [2, 3, 4];

/// Two runs under one lens: the objects that both have, and their sequences over one table of bodies.
pub(crate) struct Pair {
    pub(crate) lens: Lens,
    pub(crate) names: Vec<ObjectName>,
    pub(crate) normal: Vec<Item>,
    pub(crate) faulty: Vec<Item>,
    pub(crate) folding: Folding,
}

impl Pair {
    /// Of two runs of `trees`, given by their numbers.
    pub(crate) fn new(trees: &Trees, normal: usize, faulty: usize, lens: Lens) -> Self {
        let mut folding = Folding::default();
        let left = trees.objects(normal, &lens, &[], &mut folding);
        let right = trees.objects(faulty, &lens, &[], &mut folding);
        let mut pair = Self {
            lens,
            names: Vec::new(),
            normal: Vec::new(),
            faulty: Vec::new(),
            folding,
        };
        for (name, item) in left.names.iter().zip(left.items) {
            // Both are in the order of names.
            if let Ok(place) = right.names.binary_search(name) {
                pair.names.push(*name);
                pair.normal.push(item);
                pair.faulty.push(right.items[place]);
            }
        }
        pair
    }

    /// Whether the lens leaves nothing of either run.
    pub(crate) fn is_empty(&self) -> bool {
        let mut items = self.normal.iter().chain(&self.faulty);
        items.all(|item| self.folding.sequences[item.sequence].is_empty())
    }

    /// What attributes of these are about: first those of the normal run.
    ///
    /// # Errors
    /// A family of attributes that cannot be had of these objects.
    pub(crate) fn subjects(
        &self,
        trees: &Trees,
        attributes: Attributes,
    ) -> Result<Subjects, Error> {
        let items: Vec<Item> = self.normal.iter().chain(&self.faulty).copied().collect();
        Subjects::new(trees, &self.lens, &self.folding, attributes, &items)
    }

    /// Under one kind of attributes: the two JSM and the JSM_D.
    pub(crate) fn matrices(&self, subjects: &Subjects, frequency: Frequency) -> [ClassMatrix; 3] {
        let (table, rows) = subjects.table(frequency);
        let (normal, faulty) = rows.split_at(self.normal.len());
        let normal = ClassMatrix::jaccard(&table, normal);
        let faulty = ClassMatrix::jaccard(&table, faulty);
        let difference = faulty.difference(&normal);
        [normal, faulty, difference]
    }
}

/// The trees of the two JSM and of the JSM_D.
pub(crate) fn trees<'a>(
    matrices: &'a [ClassMatrix; 3],
    linkage: Linkage,
    options: &Options,
) -> [ClassTree<'a>; 3] {
    let distance = options.distance.unwrap_or(linkage.distance());
    let [normal, faulty, difference] = matrices;
    [
        ClassTree::new(linkage, normal.classes(), distance.of_similarity(normal)),
        ClassTree::new(linkage, faulty.classes(), distance.of_similarity(faulty)),
        ClassTree::new(
            linkage,
            difference.classes(),
            distance.of_difference(difference),
        ),
    ]
}

/// What a sweep finds.
pub(crate) struct Ranking {
    /// Lowest B-score first.
    pub(crate) rows: Vec<Row>,
    /// For each object its row sum of the JSM_D, mean over filters and attributes.
    pub(crate) row_sums: Vec<(ObjectName, f64)>,
}

/// Every set of options of the sweep, or the given one alone, of two runs of `trees`. A filter's
/// sequences are gone when its rows are done: only their attributes are compared.
pub(crate) fn sweep(
    trees: &Trees,
    (normal, faulty): (usize, usize),
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Ranking, Error> {
    let (families, frequencies): (&[Attributes], &[Frequency]) = if options.sweep {
        (&Attributes::PAPERS, Frequency::ALL)
    } else {
        (&[options.attributes], &[options.frequency])
    };
    let lenses = lenses(options);
    let kinds = families.len() * frequencies.len();
    let total = lenses.len() * kinds;
    let done = AtomicUsize::new(0);
    let results: Result<Vec<Vec<RowsOf>>, Error> = lenses
        .into_par_iter()
        .map(|lens| {
            let pair = Pair::new(trees, normal, faulty, lens);
            let kept = if pair.is_empty() { &[][..] } else { families };
            let of_family = |attributes: &Attributes| {
                let subjects = pair.subjects(trees, *attributes)?;
                let kind = |frequency: &Frequency| Kind {
                    attributes: *attributes,
                    frequency: *frequency,
                };
                let each = frequencies.par_iter();
                let each = each.map(|it| rows(&pair, &subjects, kind(it), options));
                Ok(each.collect::<Vec<RowsOf>>())
            };
            let rows: Result<Vec<Vec<RowsOf>>, Error> = kept.par_iter().map(of_family).collect();
            let done = done.fetch_add(kinds, Ordering::Relaxed) + kinds;
            progress(done, total);
            Ok(rows?.into_iter().flatten().collect())
        })
        .collect();
    let results = results?;
    let sets = results.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    let mut rows = Vec::new();
    let mut row_sums: Sums = Vec::new();
    for (some, sums) in results.into_iter().flatten() {
        rows.extend(some);
        if row_sums.is_empty() {
            row_sums = sums.iter().map(|(name, _)| (*name, 0.0)).collect();
        }
        for (mean, (_, sum)) in row_sums.iter_mut().zip(sums) {
            mean.1 += sum / sets;
        }
    }
    // Stable: rows of equal score stay in the order of the sweep. NaN comes last.
    rows.sort_by(|a: &Row, b: &Row| {
        (a.b_score.is_nan().cmp(&b.b_score.is_nan())).then(a.b_score.total_cmp(&b.b_score))
    });
    Ok(Ranking { rows, row_sums })
}

/// The rows of one kind of attributes, and what they come from.
type RowsOf = (Vec<Row>, Sums);

/// For each object its row sum of the JSM_D.
type Sums = Vec<(ObjectName, f64)>;

/// The rows of one kind of attributes.
fn rows(pair: &Pair, subjects: &Subjects, kind: Kind, options: &Options) -> RowsOf {
    let (linkages, clusters): (&[Linkage], &[usize]) = if options.sweep {
        (Linkage::ALL, &CLUSTERS)
    } else {
        (&[options.linkage], &[options.clusters])
    };
    let matrices = pair.matrices(subjects, kind.frequency);
    let sums = matrices[2].row_sums();
    let mut rows = Vec::new();
    for linkage in linkages {
        let trees = self::trees(&matrices, *linkage, options);
        for clusters in clusters {
            rows.push(row(pair, kind, *linkage, *clusters, &trees, &sums, options));
        }
    }
    (rows, pair.names.iter().copied().zip(sums).collect())
}

fn row(
    pair: &Pair,
    kind: Kind,
    linkage: Linkage,
    clusters: usize,
    [normal, faulty, difference]: &[ClassTree<'_>; 3],
    sums: &[f64],
    options: &Options,
) -> Row {
    let labels = difference.cut(clusters);
    let mut sizes = vec![0usize; labels.iter().max().map_or(0, |last| last + 1)];
    for label in &labels {
        sizes[*label] += 1;
    }
    let few = (labels.len() / options.few.max(2)).max(1);
    let mut candidates: Vec<usize> = (0..labels.len())
        .filter(|object| sizes[labels[*object]] <= few)
        // A cluster that did not change is small by chance.
        .filter(|object| sums[*object] > 0.0)
        .collect();
    candidates.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]));
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let threads: Vec<ObjectName> = candidates.iter().map(|it| pair.names[*it]).collect();
    let main = threads
        .iter()
        .filter(|it| it.trace.thread == ThreadName::Main(0));
    let mut seen = FxHashSet::default();
    Row {
        filter: pair.lens.paper(),
        attributes: kind.attributes,
        frequency: kind.frequency,
        linkage,
        clusters,
        b_score: b_score(options.b_score, clusters, normal, faulty),
        cluster_sizes: sizes,
        processes: main
            .map(|object| object.trace.process)
            .filter(|process| seen.insert(*process))
            .collect(),
        threads,
    }
}

/// The lens under which people know the loops of an MPI program.
pub(crate) fn mpi(options: &Options) -> Lens {
    lens(FilterName::Mpi, false, options)
}

fn lens(name: FilterName, keep_returns: bool, options: &Options) -> Lens {
    let mut filter = Filter::of([name]);
    filter.custom.clone_from(&options.filter.custom);
    Lens {
        filter,
        keep_returns,
        keep_plt: options.keep_plt,
        k: options.k,
    }
}

/// The lenses of a sweep, or the given one alone. Those that keep nothing are left to be dropped.
pub(crate) fn lenses(options: &Options) -> Vec<Lens> {
    if !options.sweep {
        return vec![Lens::of(options)];
    }
    FILTERS
        .iter()
        .filter(|name| **name != FilterName::Custom || options.filter.custom.is_some())
        .flat_map(|name| [false, true].map(|keep_returns| lens(*name, keep_returns, options)))
        .collect()
}
