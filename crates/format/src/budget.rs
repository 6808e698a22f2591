//! Who may have how much of a bounded run (`--max-size`).
//!
//! The ranks of a job know how many they are: each has its share, so that those of all hosts together
//! stay below the bound and none is left with nothing. Of other processes nobody knows how many will
//! come: those that have begun leave a reserve with which later ones can begin.

use crate::process::{FIRST_EXTENT, PAGE};

/// Room for 64 files to begin.
const MOST_RESERVE: u64 = 64 * FIRST_EXTENT;

/// What one process may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Most bytes of all process files of a host.
    limit: u64,
    /// Most bytes of this one.
    share: u64,
    /// What a file that has begun leaves for others to begin.
    reserve: u64,
}

impl Bound {
    /// No bound.
    pub const NONE: Self = Self {
        limit: u64::MAX,
        share: u64::MAX,
        reserve: 0,
    };

    /// Of a run of at most `limit` bytes; `ranks` as a rank of a job knows their number.
    #[must_use]
    pub const fn new(limit: u64, ranks: Option<u64>) -> Self {
        match ranks {
            // A sixteenth is for what runs beside the ranks: a launcher, a shell.
            Some(ranks) => {
                let ranks = if ranks == 0 { 1 } else { ranks };
                let share = (limit - limit / 16) / ranks;
                Self {
                    limit,
                    share: if share < FIRST_EXTENT {
                        FIRST_EXTENT
                    } else {
                        share
                    },
                    reserve: 0,
                }
            }
            None => Self {
                limit,
                share: limit,
                reserve: if limit / 4 < MOST_RESERVE {
                    limit / 4
                } else {
                    MOST_RESERVE
                },
            },
        }
    }

    /// Most bytes of this process's file.
    #[must_use]
    pub const fn share(&self) -> u64 {
        self.share
    }

    /// How many bytes, in whole pages, a file may grow that ends at `start` and wants to end at `end`,
    /// where processes of this host have `taken` so many.
    #[must_use]
    pub fn grant(&self, taken: u64, start: u64, end: u64) -> u64 {
        let reserve = if start == 0 { 0 } else { self.reserve };
        let left = self.limit.saturating_sub(taken).saturating_sub(reserve);
        let room = left.min(self.share.saturating_sub(start)) & !(PAGE - 1);
        room.min(end.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_ranks_stay_below_the_limit() {
        for limit in [1 << 20, 10 << 20, 2 << 30, 1 << 44] {
            for ranks in [0, 1, 2, 3, 64, 1000] {
                let one = Bound::new(limit, Some(ranks)).share();
                assert!(one * ranks.max(1) <= limit || one == FIRST_EXTENT);
            }
        }
    }

    /// Files grow by turns, extent by extent, until nobody may any more.
    fn filled(limit: u64, ranks: Option<u64>, files: usize) -> Vec<u64> {
        let bound = Bound::new(limit, ranks);
        let mut sizes = vec![0; files];
        loop {
            let before = sizes.clone();
            for index in 0..files {
                let taken: u64 = sizes.iter().sum();
                let start = sizes[index];
                let granted = bound.grant(taken, start, crate::process::extent_end(start));
                assert!(granted.is_multiple_of(PAGE));
                sizes[index] += granted;
                assert!(sizes.iter().sum::<u64>() <= limit);
            }
            if sizes == before {
                return sizes;
            }
        }
    }

    #[test]
    fn nobody_takes_more_than_there_is_and_ranks_are_equal() {
        for ranks in [1, 3, 8, 20] {
            let sizes = filled(32 << 20, Some(ranks), ranks as usize);
            assert!(sizes.iter().all(|size| *size == sizes[0] && *size > 0));
        }
        // Far more ranks than there is room for: the first that come.
        let sizes = filled(1 << 20, Some(64), 64);
        assert_eq!(
            sizes.iter().filter(|size| **size == FIRST_EXTENT).count(),
            4
        );
    }

    #[test]
    fn those_that_come_late_can_begin() {
        let bound = Bound::new(8 << 20, None);
        let mut taken = 0;
        let mut size = 0;
        while let more @ 1.. = bound.grant(taken, size, crate::process::extent_end(size)) {
            size += more;
            taken += more;
        }
        assert_eq!(size, 6 << 20);
        assert_eq!(bound.grant(taken, 0, FIRST_EXTENT), FIRST_EXTENT);
        assert_eq!(Bound::new(2 << 30, None).reserve, 16 << 20);
        assert_eq!(Bound::NONE.grant(1 << 60, 5 * PAGE, 9 * PAGE), 4 * PAGE);
    }
}
