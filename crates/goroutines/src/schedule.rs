//! Which schedule each run of a campaign has: a portfolio of seeded disturbances, and places to steer by.
//!
//! Most runs let usages take turns, by ranks: with locks held for long (circles of locks), with goroutines that are
//! behind throughout (what comes far apart), and the other way round than the run before (what hangs on one choice).
//! The rest delay: code between usages runs side by side then, and few delays find what many would hide. A run's seed
//! follows from the campaign's and the run's number, so that a run can be made again without those before it.

use crate::execution::Execution;
use crate::ring::{Mode, Policy, Turns};
use crate::script::{self, Further, Recorded};
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
    /// The order of turns that is asked for: see `foresight`.
    #[serde(default)]
    pub script: Vec<u64>,
    /// Where the script is that of a recorded run, and the clock is to be its clock.
    #[serde(default)]
    pub recorded: Option<Recorded>,
}

impl Plan {
    /// As planned, but with turns in this order.
    #[must_use]
    pub fn with_script(self, script: Vec<u64>) -> Self {
        let mut plan = Self {
            script,
            processors: Some(1),
            steer: Vec::new(),
            recorded: None,
            ..self
        };
        plan.policy.mode = Mode::Turns;
        plan.policy.steady = true;
        plan
    }

    /// What makes the run that was made by this plan once more what it was: its order of turns, and its clock.
    #[must_use]
    pub fn as_recorded(self, execution: &Execution) -> Self {
        let turns = match (self.policy.mode, self.script.is_empty()) {
            (Mode::Turns, true) => Further::Around,
            (Mode::Turns, false) => Further::Behind,
            (Mode::None, _) => Further::None,
            _ => Further::Delays,
        };
        let (script, times) = script::of(execution, turns);
        let mut plan = self.with_script(script);
        plan.recorded = Some(Recorded {
            times,
            turns,
            stretched: execution.stretched,
        });
        plan
    }
}

/// How a run differs from the others of its ten.
#[derive(Clone, Copy)]
enum Setting {
    /// Usages take turns, on one processor.
    Turns(Turns),
    /// mode, chance of 256, longest, bound, processors
    Delays(Mode, u8, u64, u64, Option<u32>),
}

const fn turns(hold: u8, behind: u8, level: u8) -> Turns {
    Turns {
        hold,
        behind,
        after: 128,
        maker: 0,
        reader: 64,
        level,
        opposite: false,
    }
}

const fn opposite(of: Turns) -> Turns {
    Turns {
        opposite: true,
        ..of
    }
}

/// The first is what shows most by itself; of an opposite, the setting before it is what it is opposite to.
const PORTFOLIO: [Setting; 10] = [
    Setting::Turns(turns(248, 176, 0)),
    Setting::Turns(opposite(turns(248, 176, 0))),
    Setting::Turns(turns(240, 96, 255)),
    Setting::Turns(turns(248, 160, 128)),
    Setting::Turns(opposite(turns(248, 160, 128))),
    Setting::Delays(Mode::Sleep, 128, SHORT, 0, None),
    Setting::Turns(turns(128, 64, 255)),
    Setting::Delays(Mode::Slow, 64, 4_000_000, 10, None),
    Setting::Turns(turns(248, 255, 0)),
    Setting::Delays(Mode::Mixed, 64, SHORT, 0, Some(4)),
];

/// The plan of run `number`, from 1. `delays` bounds the number of delays: 0 leaves the schedule as it is.
#[must_use]
pub fn plan(seed: u64, number: u32, delays: Option<u64>) -> Plan {
    let setting = PORTFOLIO[(number.max(1) as usize - 1) % PORTFOLIO.len()];
    let mut policy = Policy {
        seed: mix(seed, u64::from(number)),
        mode: Mode::Turns,
        chance: 64,
        longest: SHORT,
        bound: 0,
        settle: SETTLE,
        steady: false,
        turns: Turns::default(),
    };
    let mut processors = Some(1);
    match setting {
        Setting::Turns(turns) => {
            policy.turns = turns;
            policy.steady = true;
            if turns.opposite {
                policy.seed = mix(seed, u64::from(number) - 1);
            }
        }
        Setting::Delays(mode, chance, longest, bound, of) => {
            (policy.mode, policy.chance) = (mode, chance);
            (policy.longest, policy.bound) = (longest, bound);
            processors = of;
        }
    }
    match delays {
        Some(0) => (policy.mode, processors) = (Mode::None, None),
        Some(most) if policy.bound == 0 => policy.bound = most,
        Some(most) => policy.bound = policy.bound.min(most),
        None => {}
    }
    Plan {
        policy,
        processors,
        steer: Vec::new(),
        script: Vec::new(),
        recorded: None,
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
        assert_eq!(plan(7, 8, Some(50)).policy.bound, 10);
    }
}
