//! `lockstep similarity`: the Jaccard similarity matrix (JSM), and the difference of two (JSM_D).

use super::attribute::{Kind, Table};
use super::one_run::OneRun;
use crate::{Error, ObjectName, Options};
use lockstep_trace::Run;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// A symmetric matrix with a number for each pair of traces. A similarity goes from 0 (nothing in common) to 1 (the
/// same attributes).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Similarity {
    /// The traces, in the order of rows and columns.
    pub traces: Vec<ObjectName>,
    /// One row for each trace.
    #[serde(rename = "matrix")]
    #[schemars(with = "Vec<Vec<f64>>")]
    classes: ClassMatrix,
}

/// `[[...], ...]`: one row an object.
impl Serialize for ClassMatrix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |a: &usize| {
            let values = self.classes.iter().map(|b| self.value(*a, *b));
            values.collect::<Vec<f64>>()
        };
        serializer.collect_seq(self.classes.iter().map(row))
    }
}

/// How alike the traces of a run are.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn similarity(run: &Run, options: &Options) -> Result<Similarity, Error> {
    let of = OneRun::new(run, options)?;
    let (table, rows) = of.table(Kind::of(options))?;
    Ok(ClassMatrix::jaccard(&table, &rows).named(&of.objects.names))
}

impl Similarity {
    /// The entry of two traces, given by their places.
    #[must_use]
    pub fn value(&self, a: usize, b: usize) -> f64 {
        self.classes.get(a, b)
    }

    /// The row of a trace, given by its place.
    pub fn row(&self, a: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.traces.len()).map(move |b| self.value(a, b))
    }

    /// The greatest entry.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.classes.values.iter().copied().fold(0.0, f64::max)
    }

    /// Places of traces with equal rows together, in the order of the first of each.
    #[must_use]
    pub fn alike(&self) -> Vec<Vec<usize>> {
        let count = self.classes.count;
        let row = |class: usize| &self.classes.values[class * count..(class + 1) * count];
        let bits = |class: usize| row(class).iter().map(|value| value.to_bits());
        let rows = (0..count).map(|class| bits(class).collect::<Vec<u64>>());
        let (group_of_class, _) = number(rows);
        let of_trace = |trace: usize| group_of_class[self.classes.classes[trace]];
        let (groups, members) = number((0..self.traces.len()).map(of_trace));
        let mut alike = vec![Vec::new(); members.len()];
        for (trace, group) in groups.into_iter().enumerate() {
            alike[group].push(trace);
        }
        alike
    }

    /// As comma-separated values: a header of names, then a row a trace with its name first.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::from("trace");
        for trace in &self.traces {
            text.push_str(&format!(",{trace}"));
        }
        text.push('\n');
        for (place, trace) in self.traces.iter().enumerate() {
            text.push_str(&trace.to_string());
            for value in self.row(place) {
                text.push_str(&format!(",{value}"));
            }
            text.push('\n');
        }
        text
    }

    /// The sum of each row: in a difference, how much a trace's relations to all others changed.
    #[must_use]
    pub fn row_sums(&self) -> Vec<f64> {
        self.classes.row_sums()
    }
}

/// A symmetric matrix over objects, of which many are alike: one row a class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassMatrix {
    /// The class of each object.
    classes: Vec<usize>,
    count: usize,
    values: Vec<f64>,
}

impl ClassMatrix {
    fn new(classes: Vec<usize>, count: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        // In squares that fit into a cache, since each value is written into its row and its column.
        const SQUARE: usize = 64;
        let mut values = vec![0.0; count * count];
        let squares = (0..count).step_by(SQUARE);
        for (top, left) in
            squares.flat_map(|top| (top..count).step_by(SQUARE).map(move |it| (top, it)))
        {
            for a in top..(top + SQUARE).min(count) {
                for b in left.max(a)..(left + SQUARE).min(count) {
                    let value = value(a, b);
                    values[a * count + b] = value;
                    values[b * count + a] = value;
                }
            }
        }
        Self {
            classes,
            count,
            values,
        }
    }

    /// A matrix of objects that are all different.
    #[cfg(test)]
    pub(crate) fn from_values(count: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        Self::new((0..count).collect(), count, value)
    }

    /// The JSM of objects, given by their rows.
    pub(crate) fn jaccard(table: &Table, rows: &[usize]) -> Self {
        // Rows of the same attributes, and then objects of the same rows.
        let all = 0..table.rows.rows();
        let (same, _) = number(all.map(|row| table.rows.row(row)));
        let (classes, members) = number(rows.iter().map(|row| same[*row]));
        Self::new(classes, members.len(), |a, b| {
            table.jaccard(rows[members[a]], rows[members[b]])
        })
    }

    /// The JSM_D of two matrices over the same objects.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let (classes, members) = number(self.classes.iter().zip(&other.classes));
        Self::new(classes, members.len(), |a, b| {
            (self.get(members[a], members[b]) - other.get(members[a], members[b])).abs()
        })
    }

    /// The entry of two objects.
    pub(crate) fn get(&self, a: usize, b: usize) -> f64 {
        self.value(self.classes[a], self.classes[b])
    }

    /// The entry of two classes.
    pub(crate) fn value(&self, a: usize, b: usize) -> f64 {
        self.values[a * self.count + b]
    }

    /// The class of each object; classes are numbered as they first occur.
    pub(crate) fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// Number of classes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Number of objects of each class.
    pub(crate) fn sizes(&self) -> Vec<f64> {
        let mut sizes = vec![0.0; self.count];
        for class in &self.classes {
            sizes[*class] += 1.0;
        }
        sizes
    }

    /// The sum of each object's row.
    pub(crate) fn row_sums(&self) -> Vec<f64> {
        let sizes = self.sizes();
        let sums: Vec<f64> = (0..self.count)
            .map(|a| (0..self.count).map(|b| self.value(a, b) * sizes[b]).sum())
            .collect();
        self.classes.iter().map(|class| sums[*class]).collect()
    }

    pub(crate) fn named(self, names: &[ObjectName]) -> Similarity {
        Similarity {
            traces: names.to_vec(),
            classes: self,
        }
    }
}

/// Equal items get equal numbers, in order of first occurrence; and the first place of each.
fn number<T: std::hash::Hash + Eq>(items: impl Iterator<Item = T>) -> (Vec<usize>, Vec<usize>) {
    let mut numbers: FxHashMap<T, usize> = FxHashMap::default();
    let mut first = Vec::new();
    let classes = items
        .enumerate()
        .map(|(place, item)| {
            *numbers.entry(item).or_insert_with(|| {
                first.push(place);
                first.len() - 1
            })
        })
        .collect();
    (classes, first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr)]
    use super::*;
    use crate::difftrace::cluster::tests::on_processor;
    use lockstep_concepts::BitMatrix;

    /// Rows with about `each` of `attributes`, near each other in groups.
    fn table(rows: usize, attributes: usize, each: u64, seed: u64) -> Table {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut matrix = BitMatrix::new(rows, attributes);
        for row in 0..rows {
            let group = row as u64 % 40 * 97;
            for _ in 0..each {
                let near = group + below(each * 2);
                matrix.set(row, (near % attributes as u64) as usize);
            }
            matrix.set(row, below(attributes as u64) as usize);
        }
        Table::of_rows(matrix)
    }

    #[test]
    fn classes_are_objects_with_the_same_attributes() {
        let table = table(70, 90, 6, 5);
        let rows: Vec<usize> = (0..200).map(|it| it * 31 % 70).collect();
        let matrix = ClassMatrix::jaccard(&table, &rows);
        for a in 0..200 {
            for b in 0..200 {
                let expected = table.jaccard(rows[a], rows[b]);
                assert_eq!(matrix.get(a, b), expected);
            }
        }
    }

    /// `cargo test --release -p lockstep-compare --lib -- --ignored --nocapture similarity`.
    #[test]
    #[ignore = "a measurement"]
    fn a_million_objects() {
        const OBJECTS: usize = 1_000_000;
        const CLASSES: usize = 5_000;
        for each in [50, 2_000] {
            let [before, after] = [1, 2].map(|seed| table(CLASSES, 5_000, each, seed));
            let rows: Vec<usize> = (0..OBJECTS).map(|it| it * 7919 % CLASSES).collect();
            let start = on_processor();
            let normal = ClassMatrix::jaccard(&before, &rows);
            let faulty = ClassMatrix::jaccard(&after, &rows);
            let similarity = on_processor() - start;
            let difference = faulty.difference(&normal);
            let scores = difference.row_sums();
            eprintln!(
                "{OBJECTS} objects, {} classes, about {each} of 5,000 attributes each: similarity {similarity:.2} s, with difference and scores {:.2} s, {} MB at most",
                difference.count(),
                on_processor() - start,
                peak() / 1024,
            );
            assert_eq!(scores.len(), OBJECTS);
        }
    }

    /// The most memory that this process has had, in KiB.
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or(0)
    }
}
