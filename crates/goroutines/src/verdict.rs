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
//! | partial deadlock | the garbage collector proved that nobody can reach what a goroutine waits for |
//! | leak | goroutines were left behind that wait for ever |
//! | livelock | goroutines go round and round and nothing comes of it (module `livelock`) |
//! | slow | the time limit came while things still moved on |
//! | inconclusive | the time limit came and neither can be shown; or records were lost that it hangs on |
//! | pass | none of these |

use crate::execution::{Action, End, Execution, GoroutineId, SiteId, State, WaitReason, What};
use crate::livelock;
use crate::race;
use crate::replay::Replay;
use crate::tree::Place;
use crate::waits::{Need, Wait, Waiting, is_quiescent, live, waiting};
use crate::words::{Words, count, reason, short};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The class of a verdict; the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing wrong was seen.
    Pass,
    /// It cannot be said.
    Inconclusive,
    /// Too slow for its time limit.
    Slow,
    /// Busy without progress.
    Livelock,
    /// Goroutines left behind that wait for ever.
    Leak,
    /// A failing test, or a program's own failure.
    Fail,
    /// Some goroutines wait for ever for one another.
    PartialDeadlock,
    /// All goroutines wait for ever.
    GlobalDeadlock,
    /// The race detector reported.
    Race,
    /// A panic, a fatal error, a signal.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Concerned {
    /// The runtime's number.
    pub id: u64,
    /// The `go` statement that made it, `file:line`.
    pub created_at: Option<String>,
    /// `waits for a mutex`, `runs`, `ended`.
    pub state: String,
    /// Where it stands, `file:line`.
    pub blocked_at: Option<String>,
    /// For whom it waits, and why.
    pub waits_for: Vec<WaitsFor>,
}

/// One way out of a wait, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitsFor {
    /// Goroutines that hold it or could do it, as far as they can be named.
    pub goroutines: Vec<u64>,
    /// `for the mutex first used at main.go:8`
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
}

/// Judges an execution.
pub fn judge(execution: &Execution) -> Judgement {
    let replay = Replay::whole(execution);
    let waiting = waiting(&replay);
    let judge = Judge {
        execution,
        words: Words { replay: &replay },
        replay: &replay,
        waiting: &waiting,
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
}

/// Why goroutines are stuck, as far as the class hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ground {
    /// They wait for one another, or for a lock that never comes back.
    Each,
    /// The garbage collector says so.
    Proven,
    /// Nobody can do what they wait for.
    Left,
}

impl<'a> Judge<'_, 'a> {
    fn judgement(&self) -> Judgement {
        let execution = self.execution;
        if let Some(crash) = self.crash() {
            return crash;
        }
        if let Some(report) = execution.output.races.first() {
            return self.race(report);
        }
        let stuck: BTreeSet<GoroutineId> = self.waiting.stuck().map(|it| it.goroutine).collect();
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
            if execution.main_ended && self.ground(&stuck) == Ground::Each && certain {
                return self.deadlock(Verdict::PartialDeadlock, &stuck);
            }
        }
        if let Some(fail) = self.fail() {
            return fail;
        }
        if !stuck.is_empty() && execution.main_ended {
            let class = match self.ground(&stuck) {
                Ground::Each | Ground::Proven => Verdict::PartialDeadlock,
                Ground::Left if execution.lost > 0 => Verdict::Inconclusive,
                Ground::Left => Verdict::Leak,
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
        }
    }

    fn crash(&self) -> Option<Judgement> {
        let output = &self.execution.output;
        // What the runtime or the testing package says of waiting is not a crash.
        let said = output.fatal.as_deref().filter(|it| {
            !it.contains("all goroutines are asleep") && !it.contains("test timed out after")
        });
        let message = match (said, &self.execution.end) {
            (Some(said), _) => said.to_owned(),
            // Hangup, interrupt, kill and termination come from outside.
            (None, End::Signalled(signal)) if ![1, 2, 9, 15].contains(signal) => {
                format!("signal {signal}")
            }
            _ => return None,
        };
        let events = &self.execution.events;
        let panic = events.iter().rposition(|it| it.what == What::Panic);
        // A fatal error of `sync` stands within the usage that is wrong.
        let wrong = |index: usize| {
            let id = events[index].goroutine?;
            let open = self.replay.open(id)?;
            (open.event == index).then_some(id)
        };
        let unlocks = message.contains("unlock");
        let who = panic.and_then(|it| events[it].goroutine).or_else(|| {
            (0..events.len()).rev().take(64).find_map(|index| {
                let What::Request { action, .. } = events[index].what else {
                    return None;
                };
                let fits = matches!(action, Action::Unlock | Action::RUnlock);
                (fits && unlocks).then(|| wrong(index)).flatten()
            })
        });
        let usage = who.and_then(|it| self.replay.open(it)).filter(|open| {
            matches!(
                open.action,
                Action::Send
                    | Action::Close
                    | Action::Unlock
                    | Action::RUnlock
                    | Action::Add
                    | Action::Done
                    | Action::Select
            )
        });
        let site = usage
            .and_then(|it| it.site)
            .or_else(|| panic.and_then(|it| events[it].site))
            .or_else(|| {
                let stack = &self.execution.goroutines.get(who?.0 as usize)?.stack;
                stack.first().copied()
            });
        let mut sentence = match who {
            Some(who) => format!("{} crashed: {message}", self.words.who(who)),
            None => format!("it crashed: {message}"),
        };
        if site.is_some() {
            sentence.push_str(&format!(", at {}", self.words.at(site)));
        }
        let mut related = Vec::new();
        if let Some(object) = usage.and_then(|it| it.object)
            && let Some((by, at)) = self.replay.closed(object)
            && message.contains("closed channel")
        {
            let closed = self.closed_first(object).unwrap_or((by, at));
            let (by, at) = (self.words.who(closed.0), closed.1);
            sentence.push_str(&format!("; {by} had closed it at {}", self.words.at(at)));
            related.extend(self.place(at));
        }
        Some(Judgement {
            verdict: Verdict::Crash,
            sentence,
            cause: self.place(site),
            related,
            goroutines: who.map(|it| self.concerned(it)).into_iter().collect(),
        })
    }

    /// The first close of a channel: a second one is the crash.
    fn closed_first(
        &self,
        channel: crate::execution::ObjectId,
    ) -> Option<(GoroutineId, Option<SiteId>)> {
        let first = self.execution.events.iter().find(|it| {
            matches!(it.what, What::Request { action: Action::Close, object, .. } if object == Some(channel))
        })?;
        Some((first.goroutine?, first.site))
    }

    fn race(&self, report: &str) -> Judgement {
        let accesses = race::accesses(report);
        let places: Vec<Place> = accesses.iter().filter_map(|it| it.place.clone()).collect();
        let told: Vec<String> = accesses
            .iter()
            .filter_map(|it| {
                let who = match it.goroutine {
                    Some(1) => " by main".to_owned(),
                    Some(number) => format!(" by goroutine {number}"),
                    None => String::new(),
                };
                Some(format!("{}{who} at {}", it.kind, short(it.place.as_ref()?)))
            })
            .collect();
        let sentence = if told.is_empty() {
            "data race, in a report without lines".to_owned()
        } else {
            format!("data race: {}", told.join(" and "))
        };
        let numbers: BTreeSet<u64> = accesses.iter().filter_map(|it| it.goroutine).collect();
        let goroutines = self
            .execution
            .with_ids()
            .filter(|(_, it)| numbers.contains(&it.number))
            .map(|(id, _)| self.concerned(id))
            .collect();
        Judgement {
            verdict: Verdict::Race,
            sentence,
            cause: places.first().cloned(),
            related: places.into_iter().skip(1).collect(),
            goroutines,
        }
    }

    fn fail(&self) -> Option<Judgement> {
        let failed = &self.execution.output.failed_tests;
        let sentence = match (&failed[..], &self.execution.end) {
            ([], End::Exited(0)) => return None,
            ([], End::Exited(status)) => format!("it ended with status {status}"),
            ([], _) => return None,
            (tests, _) => format!("{} failed", tests.join(", ")),
        };
        let mut judgement = self.plain(Verdict::Fail, sentence);
        if let Some((place, message)) = self.failure() {
            let said = format!(", at {}: {message}", short(&place));
            judgement.sentence.push_str(&said);
            judgement.cause = Some(place);
        }
        // Why it failed may be what was suspicious anyway.
        if let Some(finding) = crate::prediction::predict(self.execution)
            .into_iter()
            .next()
        {
            let said = format!("; suspicious: {}", finding.sentence);
            judgement.sentence.push_str(&said);
            let cause = judgement.cause.take();
            let mut places = finding.places.into_iter();
            judgement.cause = places.next();
            judgement.related = cause.into_iter().chain(places).collect();
        }
        Some(judgement)
    }

    /// Where a test says that it fails, and what it says: `x_test.go:31: no result`.
    fn failure(&self) -> Option<(Place, &'a str)> {
        let line = self.execution.output.failures.first()?;
        let (place, message) = line.split_once(": ")?;
        let (file, line) = place.rsplit_once(':')?;
        let line = line.parse().ok()?;
        let full = |it: &&crate::execution::Site| {
            it.file == file || it.file.ends_with(&format!("/{file}"))
        };
        let known = self.execution.sites.iter().find(full);
        let file = known.map_or(file, |it| &it.file).to_owned();
        Some((Place { file, line }, message))
    }

    /// Of goroutines that are stuck while `main` has not ended.
    fn before_the_end_of_main(
        &self,
        stuck: &BTreeSet<GoroutineId>,
        certain: bool,
    ) -> Option<Judgement> {
        let main = self.execution.test.unwrap_or(GoroutineId(0));
        let all = live(self.execution).is_subset(stuck);
        let main_is_stuck = stuck.contains(&main);
        if all && (certain || is_quiescent(self.execution)) {
            return Some(self.deadlock(Verdict::GlobalDeadlock, stuck));
        }
        let each = self.ground(stuck) == Ground::Each;
        (certain && (main_is_stuck || each)).then(|| self.deadlock(Verdict::PartialDeadlock, stuck))
    }

    /// Groups of stuck goroutines that wait for nobody outside: where waits end.
    fn roots(&self, stuck: &BTreeSet<GoroutineId>) -> Vec<Vec<GoroutineId>> {
        let graph = self.graph(stuck);
        let mut roots: Vec<Vec<GoroutineId>> = tarjan_scc(&graph)
            .into_iter()
            .filter(|group| {
                group
                    .iter()
                    .all(|it| graph.neighbors(*it).all(|to| group.contains(&to)))
            })
            .collect();
        for root in &mut roots {
            root.sort();
        }
        // What main or the test hangs on stands first; then circles; then who came first.
        let main = self.execution.test.unwrap_or(GoroutineId(0));
        let mut reached = BTreeSet::from([main]);
        let mut todo = vec![main];
        while let Some(it) = todo.pop() {
            for next in graph.neighbors(it) {
                if reached.insert(next) {
                    todo.push(next);
                }
            }
        }
        roots.sort_by_key(|root| {
            let below_main = stuck.contains(&main) && root.iter().any(|it| reached.contains(it));
            (!below_main, !self.is_mutual(root), root[0])
        });
        roots
    }

    fn graph(&self, stuck: &BTreeSet<GoroutineId>) -> DiGraphMap<GoroutineId, ()> {
        let mut graph = DiGraphMap::new();
        for id in stuck {
            graph.add_node(*id);
            for on in self.waiting.of(*id).map(Wait::on).unwrap_or_default() {
                if stuck.contains(&on) {
                    graph.add_edge(*id, on, ());
                }
            }
        }
        graph
    }

    /// Whether a root is a circle, or waits for a lock.
    fn is_mutual(&self, root: &[GoroutineId]) -> bool {
        root.len() > 1
            || root.iter().any(|it| {
                let ways = self.waiting.of(*it).map_or(&[][..], |it| &it.ways);
                ways.iter()
                    .any(|it| matches!(it.need, Need::Release(_) | Need::Behind(_)))
            })
    }

    fn ground(&self, stuck: &BTreeSet<GoroutineId>) -> Ground {
        let locked = stuck.iter().any(|it| self.is_mutual(&[*it]));
        let proven = self.execution.proven_leaks.iter().flatten();
        if locked || self.roots(stuck).iter().any(|it| self.is_mutual(it)) {
            Ground::Each
        } else if proven.copied().any(|it| stuck.contains(&it)) {
            Ground::Proven
        } else {
            Ground::Left
        }
    }

    fn deadlock(&self, verdict: Verdict, stuck: &BTreeSet<GoroutineId>) -> Judgement {
        let roots = self.roots(stuck);
        let root = roots.first().map_or(&[][..], Vec::as_slice);
        let (who, cause) = self.culprit(root);
        let main = self.execution.test.unwrap_or(GoroutineId(0));
        let from = if stuck.contains(&main) {
            Some(main)
        } else {
            // Who waits for the root tells the story from its beginning.
            let graph = self.graph(stuck);
            let above = stuck.iter().find(|it| {
                !root.contains(it) && graph.neighbors(**it).any(|to| root.contains(&to))
            });
            above.copied().or(who)
        };
        let story = from.map_or_else(String::new, |it| self.words.chain(self.waiting, it));
        let head = match (verdict, stuck.len()) {
            (Verdict::GlobalDeadlock, _) => "every goroutine waits for ever".to_owned(),
            (Verdict::Leak, 1) => "a goroutine is left behind for ever".to_owned(),
            (Verdict::Leak, many) => format!("{many} goroutines are left behind for ever"),
            (_, 1) => "a goroutine waits for ever".to_owned(),
            (_, many) => format!("{many} goroutines wait for ever"),
        };
        let mut related: Vec<Place> = Vec::new();
        for id in root.iter().chain(stuck) {
            let wait = self.waiting.of(*id);
            let held = self.replay.held_by(*id);
            let sites = held.iter().map(|it| it.site).chain(wait.map(|it| it.site));
            for place in sites.filter_map(|it| self.place(it)) {
                if Some(&place) != self.place(cause).as_ref() && !related.contains(&place) {
                    related.push(place);
                }
            }
        }
        Judgement {
            verdict,
            sentence: format!(
                "{}: {story}",
                head.replace("goroutines left", "goroutines are left")
            ),
            cause: self.place(cause),
            related,
            goroutines: stuck.iter().map(|it| self.concerned(*it)).collect(),
        }
    }

    /// Of a root: who to look at, and where.
    fn culprit(&self, root: &[GoroutineId]) -> (Option<GoroutineId>, Option<SiteId>) {
        let wait = |it: &GoroutineId| self.waiting.of(*it);
        let waits_for_a_lock = |it: &Wait| {
            matches!(
                it.reason,
                WaitReason::Mutex | WaitReason::RwMutexRead | WaitReason::RwMutexWrite
            )
        };
        // Who keeps a lock while it waits for something else keeps the others from coming to it.
        let keeper = root.iter().find(|it| {
            !self.replay.held_by(**it).is_empty()
                && wait(it).is_some_and(|it| !waits_for_a_lock(it))
        });
        // Else who closed the circle: the last to begin its wait. Whoever only waits for others to end did not.
        let last = root.iter().max_by_key(|it| {
            let wait = wait(it);
            let joins = wait.is_none_or(|it| it.reason == WaitReason::WaitGroup);
            (!joins, wait.and_then(|it| it.since))
        });
        let Some(who) = keeper.or(last) else {
            return (None, None);
        };
        let wait = wait(who);
        let gone = wait.and_then(|it| match &it.ways[..] {
            [way] => match &way.need {
                Need::Release(holds) => holds.iter().find(|it| {
                    !self.waiting.is_stuck(it.goroutine)
                        && self.replay.ended(it.goroutine).is_some()
                }),
                _ => None,
            },
            _ => None,
        });
        let site = match gone {
            Some(hold) => hold.site,
            None => wait.and_then(|it| it.site),
        };
        (Some(*who), site)
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
        }
    }

    fn late(&self) -> Judgement {
        let events = &self.execution.events;
        let Some(last) = events.last() else {
            return self.plain(
                Verdict::Inconclusive,
                "the time limit came, and nothing had been seen".to_owned(),
            );
        };
        let own = |id: Option<GoroutineId>| {
            let it = id.and_then(|it| self.execution.goroutines.get(it.0 as usize));
            it.is_some_and(|it| !it.is_system)
        };
        let recent = events
            .iter()
            .rev()
            .take_while(|it| it.time >= last.time - last.time / 4)
            .filter(|it| own(it.goroutine))
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

    fn place(&self, site: Option<SiteId>) -> Option<Place> {
        site.and_then(|it| self.execution.site(it)).map(Place::of)
    }

    fn concerned(&self, id: GoroutineId) -> Concerned {
        let goroutine = &self.execution.goroutines[id.0 as usize];
        let line = |it: Option<SiteId>| self.place(it).map(|it| format!("{}:{}", it.file, it.line));
        let wait = self.waiting.of(id);
        let number = |it: &GoroutineId| self.execution.goroutines[it.0 as usize].number;
        let waits_for = wait.map_or_else(Vec::new, |wait| {
            wait.ways
                .iter()
                .map(|way| WaitsFor {
                    goroutines: way.on().iter().map(number).collect(),
                    why: match way.need {
                        Need::Subtests(_) => "for its subtests".to_owned(),
                        _ => self.words.want(way.action, way.object),
                    },
                })
                .collect()
        });
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
            blocked_at: wait
                .and_then(|it| line(it.site))
                .or_else(|| line(goroutine.stack.first().copied())),
            waits_for,
        }
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
