//! `record --hang`: opens the run that is being recorded now and then, and says what a watch makes of it.

use crate::conclusion::Conclusion;
use crate::output;
use crate::said::{Said, WentOn};
use crate::spot::{self, Holder};
use crate::threads;
use lockstep_format::stat::Stat;
use lockstep_progress::{Follower, Kind, Progress, Standing, Watch};
use lockstep_record::Watcher;
use lockstep_trace::{EndKind, Live, Process, ranges};
use rayon::ThreadPool;
use rustix::param::clock_ticks_per_second;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Watches a run.
pub struct Hang {
    watch: Watch,
    /// What was read of the run: a look reads what is new.
    live: Live,
    follower: Follower,
    /// Who reads a run that goes on, from the first time on; nobody where there can be no more threads.
    beside: OnceCell<Option<ThreadPool>>,
    stop: bool,
    began: Instant,
    /// The number of events, and since when it is that.
    events: (u64, Instant),
    /// The run as it was read last.
    reading: Option<Reading>,
    /// When a run that goes on may be read again.
    next: Instant,
    /// When one that is quiet was looked at last.
    looked: Instant,
    said: BTreeSet<String>,
    /// Since the run became quiet: when that was, and the processor time that its processes had taken.
    quiet: Option<(Instant, Duration)>,
    /// Whether the command was ended for it.
    pub stopped: bool,
    /// Who was said last to be slow so far, and has not gone on.
    slow: Option<Slow>,
}

/// Tasks that hold the others up, and may go on yet.
struct Slow {
    said: Said,
    tasks: Vec<u32>,
    /// Since when they are where they are, and when it was said, both counted from the beginning.
    since: Duration,
    at: Duration,
}

/// What was found in a run.
struct Reading {
    found: Progress,
    /// The number of events before it was read.
    events: u64,
    /// How many ends of processes were known.
    ends: usize,
    /// Processes of this host that were there, and their ranks.
    there: Vec<(u32, Option<u32>)>,
    /// Those of the tasks that hold the others up and compute.
    holding: Vec<Holder>,
    /// Whether others were there before.
    is_ended: bool,
}

/// How long a launcher may take to end a job of its own accord once one of its processes ended: asked to end while it
/// does so, Open MPI's crashes.
const LAUNCHER: Duration = Duration::from_secs(5);
/// Quiet for that long, a job is looked at.
const QUIET: Duration = Duration::from_millis(200);
/// Whoever reads a run that goes on does so on every fourth processor and yields to the job, of which they all may be busy.
const SHARE: usize = 4;
/// By so much the job goes before.
const NICE: i32 = 10;
/// Processes that take more than this share of a processor compute.
const BUSY: f64 = 0.05;
/// What the kernel says of a process of this host; `None` of those that are gone.
fn status(pid: u32) -> Option<Stat> {
    Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn is_alive(pid: u32) -> bool {
    status(pid).is_some_and(|it| !it.is_over())
}

/// `; rank 3 is stopped by a signal`, of ranks that somebody stopped: they hang for no reason of their own.
fn stopped(there: &[(u32, Option<u32>)]) -> String {
    let ranks = |wanted: u8| -> Vec<u32> {
        let is_so = |pid: u32| status(pid).is_some_and(|it| it.state == wanted);
        let stopped = there.iter().filter(|(pid, _)| is_so(*pid));
        stopped.filter_map(|(_, rank)| *rank).collect()
    };
    let say = |(state, by): (u8, &str)| match ranks(state).as_slice() {
        [] => String::new(),
        [rank] => format!("; rank {rank} is stopped by a {by}"),
        many => format!("; ranks {} are stopped by a {by}", ranges(many)),
    };
    [(b'T', "signal"), (b't', "debugger")].map(say).concat()
}

impl Slow {
    /// Writes down that they went on; in words.
    fn went_on(mut self, directory: &Path, now: Duration, found: &Progress) -> String {
        let went_on = WentOn {
            tasks: self.tasks,
            seconds: now.saturating_sub(self.since).as_secs_f64(),
        };
        let sentence = went_on.sentence(found);
        self.said.went_on = Some(went_on);
        self.said.keep(directory);
        sentence
    }
}

impl Hang {
    /// Says after `patience` without progress that a job hangs, and may stop it then.
    pub fn new(patience: Duration, stop: bool) -> Self {
        let now = Instant::now();
        Self {
            watch: Watch::new(patience),
            live: Live::default(),
            follower: Follower::default(),
            beside: OnceCell::new(),
            stop,
            began: now,
            events: (0, now),
            reading: None,
            next: now,
            looked: now,
            said: BTreeSet::new(),
            quiet: None,
            stopped: false,
            slow: None,
        }
    }

    /// Takes back that tasks are slow, where they have gone on.
    fn take_back(&mut self, directory: &Path, found: &Progress, now: Duration) {
        let went_on = |slow: &mut Slow| self.watch.went_on(&slow.tasks, slow.at);
        if let Some(slow) = self.slow.take_if(went_on) {
            let sentence = slow.went_on(directory, now, found);
            output::complain(&format!("after {:.1} s: {sentence}", now.as_secs_f64()));
        }
    }

    /// The same at the end of the command; whether there was something to take back.
    pub fn conclude(&mut self, directory: &Path, conclusion: &Conclusion) -> bool {
        let now = self.began.elapsed();
        let found = self.reading.as_ref().map(|it| it.found.clone());
        let has_finished = |slow: &mut Slow| !self.stopped && conclusion.have_finished(&slow.tasks);
        if let Some(found) = found
            && let Some(slow) = self.slow.take_if(has_finished)
        {
            let sentence = slow.went_on(directory, now, &found);
            output::complain(&format!("after {:.1} s: {sentence}", now.as_secs_f64()));
            return true;
        }
        false
    }

    /// Says a sentence, and where they are right now who compute.
    fn say(&mut self, sentence: String, spots: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        output::complain(&format!("after {seconds:.1} s: {sentence}{spots}"));
        self.said.insert(sentence);
    }

    /// Whether it is time to read the run: it has become quiet, or it is busy and was not read lately.
    fn is_time(&mut self, events: u64) -> bool {
        let now = Instant::now();
        if events != self.events.0 {
            self.events = (events, now);
            self.quiet = None;
            return now >= self.next;
        }
        let is_read = self.reading.as_ref().is_some_and(|it| it.events == events);
        // Twice at the same events, and then until something was said.
        self.events.1.elapsed() >= QUIET
            && (!is_read || self.said.is_empty() && self.looked.elapsed() >= QUIET)
    }

    /// What is found in the run. As long as nobody makes an event or ends, that is what was found before: a long
    /// run need not be read again to see that a deadlock holds.
    fn read(&mut self, directory: &Path, events: u64) -> Option<&Reading> {
        let goes_on = self.events.1.elapsed() < QUIET;
        let mut beside = std::mem::take(&mut self.beside);
        if goes_on && beside.get().is_none() {
            beside = OnceCell::from(threads::yielding(SHARE, NICE));
        }
        let mut read = || self.read_here(directory, events).is_some();
        let is_read = match beside.get().and_then(Option::as_ref).filter(|_| goes_on) {
            Some(threads) => threads.install(read),
            None => read(),
        };
        self.beside = beside;
        self.reading.as_ref().filter(|_| is_read)
    }

    /// The same, by whoever calls.
    fn read_here(&mut self, directory: &Path, events: u64) -> Option<&Reading> {
        let ends = std::fs::read_dir(directory.join("ends")).map_or(0, Iterator::count);
        let is_it = |read: &Reading| (read.events, read.ends) == (events, ends);
        if !self.reading.as_ref().is_some_and(is_it) {
            let begin = Instant::now();
            // A run that cannot be read yet is read later.
            let run = self.live.open(directory).ok()?;
            run.traces().next()?;
            let there = |process: &&Process| process.end.kind == EndKind::Running;
            // What ranks start and wait for by themselves is none of their launcher's business.
            let ranks = run.processes.iter();
            let mut ranks = ranks.filter(|it| it.rank.is_some() && it.name.sibling == 0);
            let is_ended = !ranks.all(|it| there(&it));
            // Of other hosts nothing is known but what the run says.
            let there = run.processes.iter().filter(there);
            let there = there.filter(|it| is_alive(it.pid));
            let there = there.map(|it| (it.pid, it.rank)).collect();
            let found = self.follower.analyse(&run);
            let holding = spot::holding(&run, &found);
            // Reading takes no more than a quarter of our time, unless it is about to be certain.
            let is_definite = found.hang && found.kind == Kind::Deadlock;
            let pause = match is_definite {
                true => QUIET,
                false => (3 * begin.elapsed()).clamp(QUIET, Duration::from_secs(60)),
            };
            self.next = Instant::now() + pause;
            self.reading = Some(Reading {
                found,
                events,
                ends,
                there,
                holding,
                is_ended,
            });
        }
        self.reading.as_ref()
    }
}

impl Watcher for Hang {
    fn look(&mut self, directory: &Path, events: u64) -> Option<Duration> {
        if !self.is_time(events) {
            return None;
        }
        let now = Instant::now();
        let read = self.read(directory, events)?;
        let (mut found, there) = (read.found.clone(), read.there.clone());
        let holding = read.holding.clone();
        let is_ended = read.is_ended;
        let all = there.iter().filter_map(|(pid, _)| status(*pid));
        let ticks: u64 = all.map(|it| it.ticks).sum();
        let taken = Duration::from_secs(ticks) / clock_ticks_per_second().max(1) as u32;
        self.looked = now;
        let since_begin = now.duration_since(self.began);
        let standing = self.watch.look(&found, since_begin);
        self.take_back(directory, &found, since_begin);
        let (since, before) = *self.quiet.get_or_insert((now, taken));
        if standing == Standing::No {
            return None;
        }
        let busy = taken.saturating_sub(before) > since.elapsed().mul_f64(BUSY);
        if let Standing::Silent(quiet) = standing
            && busy
            && let Some(unseen) = lockstep_wording::unseen(&found)
        {
            if self.said.is_empty() {
                let seconds = quiet.as_secs();
                let sentence =
                    format!("no hang is seen, and nothing was recorded for {seconds} s: {unseen}");
                self.say(sentence, "");
            }
            return None;
        }
        // Reading what was new took its time: where a process ended meanwhile, it is read again.
        let are_alive = there.iter().all(|(pid, _)| is_alive(*pid));
        if standing != Standing::Hangs(Kind::Deadlock) && !are_alive {
            self.reading = None;
            return None;
        }
        found.settle(standing);
        let is_certain = self.stop || standing == Standing::Hangs(Kind::Deadlock);
        if !is_certain {
            found.so_far();
        }
        let verdict = lockstep_wording::verdict(&found) + &stopped(&there);
        // What grows with time is said once, and nothing again: a loop is within what it calls at one look, and not at the next.
        let is_known = matches!(standing, Standing::Silent(_)) && !self.said.is_empty();
        if is_known || self.said.contains(&verdict) {
            return None;
        }
        let spots = match standing {
            Standing::Hangs(Kind::Deadlock) => Vec::new(),
            _ => spot::found(&holding),
        };
        let said = Said {
            verdict: verdict.clone(),
            kind: found.kind,
            stopped: self.stop,
            spots,
            went_on: None,
        };
        said.keep(directory);
        self.say(verdict, &spot::told(&holding, &said.spots, "runs"));
        let tasks = match standing {
            Standing::Silent(_) => Vec::new(),
            _ => found.holding(),
        };
        self.slow = (!is_certain).then(|| Slow {
            since: self.watch.since(&tasks).unwrap_or(since_begin),
            at: since_begin,
            said,
            tasks,
        });
        self.stopped = self.stop;
        let time = match is_ended {
            true => LAUNCHER,
            false => Duration::ZERO,
        };
        self.stop.then_some(time)
    }
}
