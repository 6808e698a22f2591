//! Which schedule each run of a campaign has: a portfolio of seeded disturbances, and places to steer by.
//!
//! Every setting finds bugs that others miss: a sleep lets another goroutine run on the same processor, a spin does
//! not; few delays find what many would hide; some goroutines that are slow throughout find what comes far apart; one processor makes yields count. A run's seed follows from the
//! campaign's and the run's number, so that a run can be made again without those before it.

use crate::ring::{Mode, Policy};
use serde::{Deserialize, Serialize};

/// Nanoseconds that goroutines have at the end.
const SETTLE: u64 = 150_000_000;
/// The usual longest delay.
const SHORT: u64 = 127_000;

/// How a run is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What the program is told.
    pub policy: Policy,
    /// `GOMAXPROCS`, where it is not left to the program.
    pub processors: Option<u32>,
    /// Return addresses (offsets into the text) before which the longest delays are made.
    pub steer: Vec<u32>,
}

/// mode, chance of 256, longest, bound, processors
type Setting = (Mode, u8, u64, u64, Option<u32>);

const PORTFOLIO: [Setting; 10] = [
    (Mode::Mixed, 64, SHORT, 0, None),
    (Mode::Sleep, 64, SHORT, 0, None),
    (Mode::Yield, 128, 0, 0, Some(1)),
    (Mode::Slow, 192, 250_000, 0, None),
    (Mode::Sleep, 32, 1_000_000, 30, None),
    (Mode::Spin, 64, SHORT, 100, None),
    (Mode::Slow, 64, 4_000_000, 10, None),
    (Mode::Sleep, 128, SHORT, 0, Some(1)),
    (Mode::Mixed, 32, 2_000_000, 10, Some(4)),
    (Mode::None, 0, 0, 0, None),
];

/// The plan of run `number`, from 1. `delays` bounds the number of delays: 0 leaves the schedule as it is.
#[must_use]
pub fn plan(seed: u64, number: u32, delays: Option<u64>) -> Plan {
    let (mode, chance, longest, bound, processors) =
        PORTFOLIO[(number.max(1) as usize - 1) % PORTFOLIO.len()];
    let mut policy = Policy {
        seed: mix(seed, u64::from(number)),
        mode,
        chance,
        longest,
        bound,
        settle: SETTLE,
        steady: false,
    };
    match delays {
        Some(0) => policy.mode = Mode::None,
        Some(most) => policy.bound = if bound == 0 { most } else { bound.min(most) },
        None => {}
    }
    Plan {
        policy,
        processors,
        steer: Vec::new(),
    }
}

/// splitmix64 of both.
fn mix(seed: u64, number: u64) -> u64 {
    let mut x = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_can_be_made_again_without_those_before_it() {
        assert_eq!(plan(7, 12, None), plan(7, 12, None));
        assert_ne!(plan(7, 12, None).policy.seed, plan(8, 12, None).policy.seed);
        assert_eq!(plan(7, 1, Some(0)).policy.mode, Mode::None);
        assert_eq!(plan(7, 1, Some(5)).policy.bound, 5);
        assert_eq!(plan(7, 7, Some(50)).policy.bound, 10);
    }
}
