//! With several normal runs: how unusual a trace is, measured by how normal runs differ among
//! themselves.

use crate::attribute::{Kind, Table};
use crate::sequence::{Folding, Lens, Trees};
use crate::{Attributes, Frequency, ObjectName, Options};
use rustc_hash::FxHashMap;

/// The novelty of a trace is its distance (1 - Jaccard, the larger of single and double attributes) to
/// the nearest of the normal runs' traces of that name. The null distribution is that of the normal
/// runs' own traces, each against the other normal runs.
pub(crate) struct Novelty {
    null: Vec<f64>,
    faulty: FxHashMap<ObjectName, f64>,
}

impl Novelty {
    /// Of the last run of `trees` against those before it; `None` with fewer than two of these.
    pub(crate) fn new(trees: &Trees, options: &Options) -> Option<Self> {
        let normals = trees
            .runs
            .len()
            .checked_sub(1)
            .filter(|count| *count >= 2)?;
        let lens = Lens {
            keep_returns: false,
            ..Lens::of(options)
        };
        let mut folding = Folding::default();
        let runs: Vec<FxHashMap<ObjectName, usize>> = (0..=normals)
            .map(|run| {
                let objects = trees.objects(run, &lens, &mut folding);
                objects.names.into_iter().zip(objects.sequences).collect()
            })
            .collect();
        let frequency = if options.counts {
            Frequency::Actual
        } else {
            Frequency::None
        };
        let tables = [Attributes::Single, Attributes::Double].map(|attributes| {
            Table::new(
                &folding,
                Kind {
                    attributes,
                    frequency,
                },
            )
        });
        let distance = |a: usize, b: usize| {
            tables
                .iter()
                .map(|table| 1.0 - table.jaccard(a, b))
                .fold(0.0, f64::max)
        };
        // To the nearest of the runs that have such a trace, itself left out.
        let nearest = |run: usize, name: &ObjectName, sequence: usize| {
            (0..normals)
                .filter(|other| *other != run)
                .filter_map(|other| runs[other].get(name))
                .map(|other| distance(sequence, *other))
                .min_by(f64::total_cmp)
        };
        let of = |run: usize| {
            let nearest = &nearest;
            runs[run]
                .iter()
                .filter_map(move |(name, sequence)| Some((*name, nearest(run, name, *sequence)?)))
        };
        Some(Self {
            null: (0..normals)
                .flat_map(of)
                .map(|(_, distance)| distance)
                .collect(),
            faulty: of(normals).collect(),
        })
    }

    /// Empirical p-value of a trace: the share of null distances as large as its own, both counts plus
    /// one. 1 for a trace that is not compared.
    pub(crate) fn p(&self, object: ObjectName) -> f64 {
        let Some(own) = self.faulty.get(&object) else {
            return 1.0;
        };
        let as_large = self.null.iter().filter(|null| *null >= own).count();
        (1 + as_large) as f64 / (1 + self.null.len()) as f64
    }

    /// The smallest p-value of any trace.
    pub(crate) fn smallest(&self) -> f64 {
        self.faulty
            .keys()
            .map(|object| self.p(*object))
            .fold(1.0, f64::min)
    }

    /// The smallest p-value that so many normal traces could give.
    pub(crate) fn resolution(&self) -> f64 {
        1.0 / (1 + self.null.len()) as f64
    }
}
