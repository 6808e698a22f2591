//! Sets of tasks as ranges.

use serde::Serialize;

/// A set of tasks, as ranges with both ends in them, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Ranks(Vec<(u32, u32)>);

impl Ranks {
    /// One task.
    #[must_use]
    pub fn one(task: u32) -> Self {
        Self(vec![(task, task)])
    }

    /// Whether it is there.
    #[must_use]
    pub fn contains(&self, task: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= task);
        after > 0 && self.0[after - 1].1 >= task
    }

    /// Adds those of another. O(ranges of both), O(1) where they come after all of these.
    pub fn unite(&mut self, other: &Self) {
        for &(first, last) in &other.0 {
            match self.0.last_mut() {
                Some(end) if first > end.1 => match first == end.1 + 1 {
                    true => end.1 = last,
                    false => self.0.push((first, last)),
                },
                None => self.0.push((first, last)),
                Some(_) => {
                    self.0.push((first, last));
                    self.settle();
                }
            }
        }
    }

    fn settle(&mut self) {
        self.0.sort_unstable();
        let mut settled: Vec<(u32, u32)> = Vec::with_capacity(self.0.len());
        for &(first, last) in &self.0 {
            match settled.last_mut() {
                Some(end) if first <= end.1.saturating_add(1) => end.1 = end.1.max(last),
                _ => settled.push((first, last)),
            }
        }
        self.0 = settled;
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The ranges.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        let size = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
        self.0.iter().map(size).sum()
    }
}
