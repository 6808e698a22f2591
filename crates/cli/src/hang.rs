//! `record --hang`: opens the run that is being recorded now and then, and says what a watch makes of it.

use crate::output;
use lockstep_progress::{Standing, Watch, analyse};
use lockstep_record::Watcher;
use lockstep_trace::{EndKind, Process, Run};
use std::path::Path;
use std::time::{Duration, Instant};

/// Watches a run.
pub struct Hang {
    watch: Watch,
    stop: bool,
    began: Instant,
    /// The number of events, and since when it is that.
    events: (u64, Instant),
    /// The number of events when the run was read last.
    read: Option<u64>,
    /// When it may be read again.
    next: Instant,
    said: Option<String>,
    /// Since the run became quiet: when that was, and the processor time that its processes had taken.
    quiet: Option<(Instant, Duration)>,
    /// Whether the command was ended for it.
    pub stopped: bool,
}

/// Quiet for that long, a job is looked at.
const QUIET: Duration = Duration::from_millis(200);
/// Processes that take more than this share of a processor compute.
const BUSY: f64 = 0.05;
/// Clock ticks a second, as `/proc` counts on every Linux of today.
const TICKS: u32 = 100;

/// The processor time that the run's processes on this host have taken.
fn processor_time(run: &Run) -> Duration {
    let ticks = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; utime is field 14, stime 15.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
        let (user, system) = (fields.next()?, fields.next()?);
        Some(user.parse::<u32>().ok()? + system.parse::<u32>().ok()?)
    };
    let there = |process: &&Process| process.end.kind == EndKind::Running;
    let processes = run.processes.iter().filter(there);
    processes
        .filter_map(|process| ticks(process.pid))
        .map(|ticks| Duration::from_secs(ticks.into()) / TICKS)
        .sum()
}

impl Hang {
    /// Says after `patience` without progress that a job hangs, and may stop it then.
    pub fn new(patience: Duration, stop: bool) -> Self {
        let now = Instant::now();
        Self {
            watch: Watch::new(patience),
            stop,
            began: now,
            events: (0, now),
            read: None,
            next: now,
            said: None,
            quiet: None,
            stopped: false,
        }
    }

    fn say(&mut self, sentence: String) {
        let seconds = self.began.elapsed().as_secs_f64();
        output::complain(&format!("after {seconds:.1} s: {sentence}"));
        self.said = Some(sentence);
    }

    /// Whether it is time to read the run: it has become quiet, or it is busy and was not read lately.
    fn is_time(&mut self, events: u64) -> bool {
        let now = Instant::now();
        if events != self.events.0 {
            self.events = (events, now);
            self.quiet = None;
            return now >= self.next;
        }
        let quiet = self.events.1.elapsed();
        // Twice at the same events, and then until something was said.
        quiet >= QUIET && (self.read != Some(events) || self.said.is_none() && now >= self.next)
    }
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
        let mut found = analyse(&run);
        let standing = self.watch.look(&found, begin.duration_since(self.began));
        self.read = Some(events);
        // Reading takes no more than a tenth of our time.
        let pause = (begin.elapsed() * 10).clamp(QUIET, Duration::from_secs(60));
        self.next = Instant::now() + pause;
        let taken = processor_time(&run);
        let (since, before) = *self.quiet.get_or_insert((begin, taken));
        if standing == Standing::No {
            return false;
        }
        let busy = taken.saturating_sub(before) > since.elapsed().mul_f64(BUSY);
        if let Standing::Silent(quiet) = standing
            && busy
            && let Some(unseen) = found.unseen()
        {
            if self.said.is_none() {
                let seconds = quiet.as_secs();
                self.say(format!(
                    "no hang is seen, and nothing was recorded for {seconds} s: {unseen}"
                ));
            }
            return false;
        }
        found.settle(standing);
        // What grows with time is said once.
        let is_known = matches!(standing, Standing::Silent(_)) && self.said.is_some();
        if is_known || self.said.as_ref() == Some(&found.verdict) {
            return false;
        }
        self.say(found.verdict);
        self.stopped = self.stop;
        self.stop
    }
}
