//! What `record --hang` looks for while a job runs.
//!
//! A deadlock is definite: tasks wait for what nobody can do any more, and two looks find them at the
//! same events. Any other standstill takes patience: as long as some task that the others wait for
//! makes calls at new places, or in new iterations of its outer loops, it is slow and no more.

use crate::output;
use lockstep_progress::{Kind, Progress, analyse};
use lockstep_record::Watcher;
use lockstep_trace::{EndKind, Run, TraceName};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Watches a run.
pub struct Hang {
    patience: Duration,
    stop: bool,
    began: Instant,
    /// The number of events at the last look, and since when it is that.
    events: (u64, Instant),
    /// The analysis of that many events, and how long it took.
    last: Option<Look>,
    next: Instant,
    /// Tasks that stand still: where, and since when.
    still: BTreeMap<u32, (String, Instant)>,
    said: Option<String>,
    /// Whether the command was ended for it.
    pub stopped: bool,
}

struct Look {
    events: u64,
    stuck: BTreeMap<TraceName, u64>,
}

/// Quiet for that long, a job is looked at.
const QUIET: Duration = Duration::from_millis(200);

impl Hang {
    /// Says after `patience` without progress that a job hangs, and may stop it then.
    pub fn new(patience: Duration, stop: bool) -> Self {
        let now = Instant::now();
        Self {
            patience,
            stop,
            began: now,
            events: (0, now),
            last: None,
            next: now,
            still: BTreeMap::new(),
            said: None,
            stopped: false,
        }
    }

    /// Whether it is time to read the run: it has become quiet, or it is busy and was not read lately.
    fn is_time(&mut self, events: u64) -> bool {
        let now = Instant::now();
        if events != self.events.0 {
            self.events = (events, now);
            return now >= self.next;
        }
        let quiet = self.events.1.elapsed();
        let is_news = self.last.as_ref().is_none_or(|look| look.events != events);
        // Twice at the same events, and then when patience ends.
        quiet >= QUIET && (is_news || self.said.is_none() && now >= self.next)
    }

    fn judge(&mut self, run: &Run, found: &Progress) -> Option<String> {
        let stuck: BTreeMap<TraceName, u64> = found
            .waiting
            .stuck
            .iter()
            .filter_map(|task| found.tasks.get(task))
            .filter_map(|task| Some((task.trace, run.trace(task.trace)?.events)))
            .collect();
        let was_stuck = self.last.as_ref().is_some_and(|look| look.stuck == stuck);
        self.last = Some(Look {
            events: self.events.0,
            stuck,
        });
        if found.kind == Kind::Deadlock && found.hang && was_stuck {
            return Some(found.verdict.clone());
        }
        if !self.patience_ends(found) {
            return None;
        }
        if found.hang {
            return Some(found.verdict.clone());
        }
        let quiet = self.events.1.elapsed().as_secs();
        let largest = found.groups.iter().max_by_key(|group| group.tasks.len())?;
        let place = largest.stack.last().map_or("?", |it| it.function.as_str());
        let who = found.who(&largest.tasks);
        Some(format!(
            "nobody called anything for {quiet} s: {who} in {place}"
        ))
    }

    /// Whether every task that holds the others up stands still for too long.
    fn patience_ends(&mut self, found: &Progress) -> bool {
        let now = Instant::now();
        let mut places = BTreeMap::new();
        for group in &found.groups {
            let place = outer_place(group);
            for task in &group.tasks {
                let since = match self.still.get(task) {
                    Some((before, since)) if *before == place => *since,
                    _ => now,
                };
                places.insert(*task, (place.clone(), since));
            }
        }
        self.still = places;
        let is_over = |since: &Instant| now.duration_since(*since) >= self.patience;
        if !found.hang {
            // Nobody is seen to wait; but nobody does anything either, and what is still there is not
            // a launcher that waits for the ranks to begin.
            let mut running = found
                .tasks
                .values()
                .filter(|task| task.end.kind == EndKind::Running && !is_launcher(task));
            return self.events.1.elapsed() >= self.patience && running.next().is_some();
        }
        let holds_up = found
            .least
            .iter()
            .flat_map(|group| &found.groups[*group].tasks);
        holds_up
            .filter_map(|task| self.still.get(task))
            .all(|(_, since)| is_over(since))
    }
}

/// Whether a task without MPI waits for its children: it has called what does so.
fn is_launcher(task: &lockstep_progress::Task) -> bool {
    const WAITS: [&str; 8] = [
        "wait",
        "waitpid",
        "wait4",
        "waitid",
        "poll",
        "ppoll",
        "epoll_wait",
        "event_base_loop",
    ];
    task.stack
        .iter()
        .any(|it| WAITS.contains(&it.function.as_str()))
}

/// Where a group stands, but for the iteration of its innermost loop and what it calls in that.
fn outer_place(group: &lockstep_progress::Group) -> String {
    let Some((innermost, _)) = group.loops.last() else {
        let stack: Vec<&str> = group.stack.iter().map(|it| it.function.as_str()).collect();
        return stack.join(" ");
    };
    format!("{innermost} {:?}", &group.loops[..group.loops.len() - 1])
}

impl Watcher for Hang {
    fn look(&mut self, directory: &Path, events: u64) -> bool {
        if !self.is_time(events) {
            return false;
        }
        let begin = Instant::now();
        // A run that cannot be read yet is read later.
        let Ok(run) = Run::open(directory) else {
            return false;
        };
        if run.traces().next().is_none() {
            return false;
        }
        let found = analyse(&run);
        let verdict = self.judge(&run, &found);
        // Reading takes no more than a tenth of our time.
        let pause = (begin.elapsed() * 10).clamp(QUIET, Duration::from_secs(60));
        self.next = Instant::now() + pause;
        let Some(verdict) = verdict.filter(|it| self.said.as_ref() != Some(it)) else {
            return false;
        };
        let seconds = self.began.elapsed().as_secs_f64();
        output::complain(&format!("after {seconds:.1} s: {verdict}"));
        self.said = Some(verdict);
        self.stopped = self.stop;
        self.stop
    }
}
