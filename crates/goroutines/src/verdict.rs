//! What became of an execution: one verdict, from states and never from a time limit alone.
//!
//! In this order, the first that holds:
//!
//! | verdict | holds when |
//! |---|---|
//! | crash | an uncaught panic, a fatal error of the runtime, or a signal of its own ended the program |
//! | race | the race detector reported |
//! | global deadlock | `main` had not ended, and every goroutine waits for ever |
//! | partial deadlock | goroutines wait for ever for one another, or for a lock whose holder does or is gone; also `main` for ever while others run |
//! | fail | a test failed, or the program ended with a status |
//! | leak | goroutines were left behind that wait for ever |
//! | livelock | goroutines go round and round and nothing comes of it (module `livelock`) |
//! | slow | the time limit came while things still moved on |
//! | inconclusive | the time limit came and neither can be shown; or records were lost that it hangs on; or a test failed that goes by the clock, and delays put it out of step |
//! | pass | none of these |
//!
//! Where the runtime's collector looked at the end, deadlocks and leaks say of whom it proved that nothing that runs can
//! reach what they wait for. Who serves the whole process (a goroutine of an `init` function; where the collector looked,
//! a pool in a variable of the package, too) waits for what comes next, and is not left behind: see `Judge::is_background`.
//!
//! ```text
//! verdict (the order)    ended: crash, race, fail    stuck: deadlocks, leaks    unheard: lost signals    livelock, late: here
//! ```

mod ended;
mod stuck;
mod unheard;

use crate::execution::{End, Event, Execution, GoroutineId, SiteId, State, WaitReason};
use crate::livelock;
use crate::replay::Replay;
use crate::tree::Place;
use crate::waits::{Waiting, is_quiescent, live, waiting, waiting_in_silence};
use crate::words::{Words, count, reason, short};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The class of a verdict; the last one is the worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing wrong was seen.
    Pass,
    /// The run does not show whether something is wrong.
    Inconclusive,
    /// The time limit came while the program still made progress.
    Slow,
    /// Goroutines are busy but make no progress.
    Livelock,
    /// Goroutines are left behind that wait forever.
    Leak,
    /// A test failed, or the program exited with an error.
    Fail,
    /// Some goroutines wait forever for each other, or for a lock that no goroutine will unlock.
    PartialDeadlock,
    /// All goroutines wait forever.
    GlobalDeadlock,
    /// The race detector reported a race.
    Race,
    /// A panic, a fatal error of the runtime or a signal ended the program.
    Crash,
}

impl Verdict {
    /// All, from the mildest.
    pub const ALL: [Self; 10] = [
        Self::Pass,
        Self::Inconclusive,
        Self::Slow,
        Self::Livelock,
        Self::Leak,
        Self::Fail,
        Self::PartialDeadlock,
        Self::GlobalDeadlock,
        Self::Race,
        Self::Crash,
    ];

    /// Whether something was found: a bug or a failing test.
    pub fn is_bug(self) -> bool {
        !matches!(self, Self::Pass | Self::Inconclusive | Self::Slow)
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Slow => "slow",
            Self::Livelock => "livelock",
            Self::Leak => "leak",
            Self::Fail => "fail",
            Self::PartialDeadlock => "partial-deadlock",
            Self::GlobalDeadlock => "global-deadlock",
            Self::Race => "race",
            Self::Crash => "crash",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A goroutine that a verdict is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Concerned {
    /// Number of the goroutine, as Go's runtime counts.
    pub id: u64,
    /// The `go` statement that created the goroutine, `file:line`. Null if it is unknown.
    pub created_at: Option<String>,
    /// What the goroutine does: `waits for a mutex`, `runs`, `sleeps`, `ended`.
    pub state: String,
    /// Source line where the goroutine is, `file:line`. Null if it is unknown.
    pub blocked_at: Option<String>,
    /// What the goroutine waits for. Empty if it does not wait.
    pub waits_for: Vec<WaitsFor>,
    /// True if the garbage collector proved that no running goroutine can reach what this one waits for.
    pub proven: bool,
}

/// One thing that a goroutine waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitsFor {
    /// Numbers of the goroutines that hold it or could provide it, as far as they are known.
    pub goroutines: Vec<u64>,
    /// What the goroutine waits for, in words: `for the mutex first used at main.go:8`.
    pub why: String,
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The class.
    pub verdict: Verdict,
    /// In one sentence, with source lines and the reason.
    pub sentence: String,
    /// The line to look at first.
    pub cause: Option<Place>,
    /// Further lines that take part: the other lock, the other access.
    pub related: Vec<Place>,
    /// The goroutines it is about.
    pub goroutines: Vec<Concerned>,
    /// Whether a run without any disturbance would tell more.
    pub asks_for_calm: bool,
    /// Whether it failed for want of a network.
    pub lacks_network: bool,
}

impl Judgement {
    /// `leak server.go:12`: as lists of known verdicts have it.
    pub fn label(&self) -> String {
        let place = self.cause.as_ref().map(|it| format!(" {}", short(it)));
        format!("{}{}", self.verdict, place.unwrap_or_default())
    }

    /// Whether it is in a list of labels, with its line or without (`leak server.go`).
    pub fn is_among(&self, known: &[String]) -> bool {
        let label = self.label();
        let file = label.rsplit_once(':').map_or(&*label, |it| it.0);
        known.iter().any(|it| *it == label || it == file)
    }
}

/// Whether a run failed by its own word, which may go by how busy the machine is, and not by what is never right.
pub(crate) fn is_own_word(judgement: &Judgement, execution: &Execution) -> bool {
    let said = execution.output.fatal.as_deref();
    match judgement.verdict {
        Verdict::Fail => true,
        Verdict::Crash => said.is_some_and(ended::is_assertion),
        _ => false,
    }
}

/// Judges an execution.
pub fn judge(execution: &Execution) -> Judgement {
    judge_at(execution, true)
}

/// Judges one that goes on, as if its limit had come, but for what only silence up to there can tell.
pub(crate) fn judge_meanwhile(execution: &Execution) -> Judgement {
    judge_at(execution, false)
}

fn judge_at(execution: &Execution, is_over: bool) -> Judgement {
    let replay = Replay::whole(execution);
    let waiting = waiting(&replay);
    let judge = Judge {
        execution,
        words: Words { replay: &replay },
        replay: &replay,
        waiting: &waiting,
        is_over,
        silent: None,
    };
    let mut judgement = judge.judgement();
    if execution.lost > 0 {
        let lost = count(execution.lost as usize, "record");
        judgement.sentence.push_str(&format!(" ({lost} lost)"));
    }
    judgement
}

/// The waits at the end of an execution.
pub fn waits(execution: &Execution) -> Waiting {
    waiting(&Replay::whole(execution))
}

struct Judge<'r, 'a> {
    execution: &'a Execution,
    replay: &'r Replay<'a>,
    words: Words<'r, 'a>,
    waiting: &'r Waiting,
    is_over: bool,
    /// Where nobody but the program itself could end its silence: how long that was.
    silent: Option<u64>,
}

/// A program that did nothing for less than so many nanoseconds may just be slow.
const SILENCE: u64 = 1_000_000_000;

impl<'a> Judge<'_, 'a> {
    fn judgement(&self) -> Judgement {
        let execution = self.execution;
        if let Some(crash) = self.crash() {
            return crash;
        }
        if let Some(report) = execution.output.races.first() {
            return self.race(report);
        }
        let mut stuck: BTreeSet<GoroutineId> =
            self.waiting.stuck().map(|it| it.goroutine).collect();
        if execution.main_ended {
            stuck.retain(|it| !self.is_background(*it));
        }
        // A status ends a program wherever its goroutines stand.
        let cut_short = !execution.main_ended
            && matches!(execution.end, End::Exited(_) | End::Signalled(_))
            && !is_quiescent(execution);
        if !stuck.is_empty() && !cut_short {
            let certain = execution.lost == 0 || is_quiescent(execution);
            if !execution.main_ended
                && let Some(deadlock) = self.before_the_end_of_main(&stuck, certain)
            {
                return deadlock;
            }
            if execution.main_ended && self.hold_each_other(&stuck) && certain {
                return self.deadlock(Verdict::PartialDeadlock, &stuck);
            }
        }
        if let Some(fail) = self.fail(&stuck) {
            return fail;
        }
        if !stuck.is_empty() && execution.main_ended {
            // What was lost may have let them go on, but not those that nobody can reach.
            let proven = self.proven(&stuck);
            let (class, stuck) = match execution.lost {
                0 => (Verdict::Leak, stuck),
                _ if proven.is_empty() => (Verdict::Inconclusive, stuck),
                _ => (Verdict::Leak, proven),
            };
            return self.deadlock(class, &stuck);
        }
        if let Some(spin) = livelock::spin(self.replay, self.waiting) {
            return self.livelock(&spin);
        }
        match execution.end {
            End::TimedOut => self.late(),
            End::Quiescent if !execution.main_ended => self.plain(
                Verdict::Inconclusive,
                "nothing moved any more, and what main waits for was not seen".to_owned(),
            ),
            End::Signalled(signal) => self.plain(
                Verdict::Inconclusive,
                format!("signal {signal} from outside ended it"),
            ),
            _ => self.plain(Verdict::Pass, "nothing wrong was seen".to_owned()),
        }
    }

    fn plain(&self, verdict: Verdict, sentence: String) -> Judgement {
        Judgement {
            verdict,
            sentence,
            cause: None,
            related: Vec::new(),
            goroutines: Vec::new(),
            asks_for_calm: false,
            lacks_network: false,
        }
    }

    fn livelock(&self, spin: &livelock::Spin) -> Judgement {
        let who: Vec<String> = spin
            .goroutines
            .iter()
            .map(|it| self.words.who(*it))
            .collect();
        let lines: Vec<String> = spin
            .sites
            .iter()
            .take(4)
            .map(|it| self.words.at(Some(*it)))
            .collect();
        let verb = if who.len() == 1 { "goes" } else { "go" };
        let when = if self.execution.main_ended {
            " after the end of main"
        } else {
            ""
        };
        let sentence = format!(
            "{} {verb} round {}, {} times{when}, and nothing comes of it",
            who.join(" and "),
            lines.join(", "),
            spin.rounds
        );
        let places: Vec<Place> = spin
            .sites
            .iter()
            .filter_map(|it| self.place(Some(*it)))
            .collect();
        Judgement {
            verdict: Verdict::Livelock,
            sentence,
            cause: places.first().cloned(),
            related: places.into_iter().skip(1).collect(),
            goroutines: spin
                .goroutines
                .iter()
                .map(|it| self.concerned(*it))
                .collect(),
            asks_for_calm: false,
            lacks_network: false,
        }
    }

    /// How long nobody of the program had done anything when its time limit came, where that is long.
    fn silence(&self) -> Option<u64> {
        let execution = self.execution;
        let last = execution
            .events
            .iter()
            .rev()
            .find(|it| self.is_own(it))?
            .time;
        let silence = execution.told.saturating_sub(last);
        (self.is_over && execution.lost == 0 && silence >= SILENCE.max(execution.told / 4))
            .then_some(silence)
    }

    fn is_own(&self, event: &Event) -> bool {
        let who = event.goroutine.map(|it| it.0 as usize);
        let goroutine = who.and_then(|it| self.execution.goroutines.get(it));
        goroutine.is_some_and(|it| !it.is_system)
    }

    /// Who waits for ever where nothing moved any more, and nothing from outside could have come.
    fn hung(&self, silence: u64) -> Option<Judgement> {
        if self.execution.main_ended || self.execution.outside {
            return None;
        }
        let waiting = waiting_in_silence(self.replay);
        let judge = Judge {
            execution: self.execution,
            replay: self.replay,
            words: Words {
                replay: self.replay,
            },
            waiting: &waiting,
            is_over: self.is_over,
            silent: Some(silence),
        };
        let stuck = waiting.stuck().map(|it| it.goroutine).collect();
        judge.before_the_end_of_main(&stuck, true)
    }

    fn late(&self) -> Judgement {
        let events = &self.execution.events;
        let Some(last) = events.last() else {
            return self.plain(
                Verdict::Inconclusive,
                "the time limit came, and nothing had been seen".to_owned(),
            );
        };
        if let Some(silence) = self.silence() {
            return self.hung(silence).unwrap_or_else(|| self.silent(silence));
        }
        let end = last.time.max(self.execution.told);
        let recent = events
            .iter()
            .rev()
            .take_while(|it| it.time >= end - end / 4)
            .filter(|it| self.is_own(it))
            .count();
        // One event in a quarter of the time is a clock, not progress.
        if recent > 10 {
            let at = self.words.at(last.site);
            return self.plain(
                Verdict::Slow,
                format!("the time limit came while things still moved on, last at {at}"),
            );
        }
        let runs =
            |it: &GoroutineId| self.execution.goroutines[it.0 as usize].state == State::Runnable;
        let live = live(self.execution);
        let running: Vec<String> = live
            .iter()
            .filter(|it| runs(it))
            .map(|it| self.words.who(*it))
            .collect();
        let sentence = if running.is_empty() {
            "the time limit came while goroutines waited for the clock or the outside".to_owned()
        } else {
            format!(
                "the time limit came while {} ran without any synchronisation",
                running.join(", ")
            )
        };
        self.plain(Verdict::Inconclusive, sentence)
    }

    /// Of a program that had come to a stand, and that a clock or something outside may yet have let go on.
    fn silent(&self, silence: u64) -> Judgement {
        let main = self.execution.main();
        let goroutine = &self.execution.goroutines[main.0 as usize];
        let at = goroutine.stands_at();
        let does = match goroutine.state {
            State::Waiting(it) => format!("waited {}", reason(it)),
            _ => "ran without any synchronisation".to_owned(),
        };
        let mut judgement = self.plain(
            Verdict::Inconclusive,
            format!(
                "the time limit came while {} {does} at {}, and nothing had moved for {}",
                self.words.who(main),
                self.words.at(at),
                seconds(silence)
            ),
        );
        judgement.cause = self.place(at);
        judgement
    }

    fn place(&self, site: Option<SiteId>) -> Option<Place> {
        site.and_then(|it| self.execution.site(it)).map(Place::of)
    }

    fn concerned(&self, id: GoroutineId) -> Concerned {
        let goroutine = &self.execution.goroutines[id.0 as usize];
        let line = |it: Option<SiteId>| self.place(it).map(|it| format!("{}:{}", it.file, it.line));
        let wait = self.waiting.of(id);
        let number = |it: &GoroutineId| self.execution.goroutines[it.0 as usize].number;
        let wants = wait.map_or_else(Vec::new, |it| self.words.wants(it));
        let waits_for = wants
            .into_iter()
            .map(|(why, on)| WaitsFor {
                goroutines: on.iter().map(number).collect(),
                why,
            })
            .collect();
        let state = match goroutine.state {
            State::Ended => "ended".to_owned(),
            State::Runnable => "runs".to_owned(),
            State::Waiting(WaitReason::Sleep) => "sleeps".to_owned(),
            State::Waiting(it) => format!("waits {}", reason(it)),
        };
        Concerned {
            id: goroutine.number,
            created_at: line(goroutine.created_at),
            state,
            blocked_at: match wait {
                Some(wait) => line(wait.site),
                None => line(goroutine.stands_at()),
            },
            waits_for,
            proven: self
                .execution
                .proven_leaks
                .iter()
                .flatten()
                .any(|it| *it == id),
        }
    }
}

/// `7.4 s`
fn seconds(nanoseconds: u64) -> String {
    format!("{:.1} s", nanoseconds as f64 / 1e9)
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
