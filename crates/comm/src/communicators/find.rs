//! Finds the communicators of a run: from the calls of each process, then from those of all.

use super::known::{Communicators, Known};
use super::local::{self, Local, Makers, Tracker};
use super::matching;
use lockstep_api::mpi;
use lockstep_trace::{FunctionId, Process, Record, Records, RecordsMark, Run, StreamId, Thread};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What is kept of the calls of a run that is opened again and again ([`lockstep_trace::Live`]).
#[derive(Debug, Default)]
pub struct Following(FxHashMap<StreamId, (RecordsMark, Tracker<'static>)>);

impl Communicators {
    /// Those of a run. O(records of MPI calls).
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self::by(run, follow)
    }

    /// The same; reads what is new since it was asked for the last time.
    #[must_use]
    pub fn live(run: &Run, following: &mut Following) -> Self {
        let kept = Mutex::new(std::mem::take(&mut following.0));
        let found = Self::by(run, |process| {
            let mut threads = process.threads.iter().filter(|it| it.has_arguments());
            match (threads.next(), threads.next()) {
                (Some(thread), None) => follow_on(process, thread, &kept),
                _ => follow(process),
            }
        });
        following.0 = kept.into_inner().unwrap_or_default();
        found
    }

    fn by(run: &Run, follow: impl Fn(&Process) -> (matching::Process, Makers) + Sync) -> Self {
        let mut jobs: BTreeMap<u32, Vec<&Process>> = BTreeMap::new();
        let ranks = run.processes.iter();
        let ranks = ranks.filter(|it| it.is_mpi && it.rank.is_some());
        for process in ranks.filter(|it| it.name.sibling == 0) {
            jobs.entry(process.name.job).or_default().push(process);
        }
        let mut found = Self::default();
        for processes in jobs.values() {
            let (followed, makers): (Vec<_>, Vec<_>) =
                processes.par_iter().map(|process| follow(process)).unzip();
            // A launcher that counts otherwise than MPI does.
            let is_other = |it: &matching::Process| {
                let told = it.told.ranks.get(&Local::World);
                told.is_some_and(|told| *told != i64::from(it.rank))
            };
            if followed.iter().any(is_other) {
                continue;
            }
            let places = matching::solve(&followed, &mut found.all);
            let known = makers.into_iter().zip(places);
            let known = known.map(|(makers, places)| Known { makers, places });
            let names = processes.iter().map(|process| process.name);
            found.processes.extend(names.zip(known));
        }
        found
    }
}

/// After so many records that tell nothing of communicators, it is asked whether more such are sure to come.
const OFTEN: u32 = 256;

/// What is kept of streams, for all processes.
type Kept = Mutex<FxHashMap<StreamId, (RecordsMark, Tracker<'static>)>>;

/// What a process did with communicators, of which one thread calls MPI.
fn follow_on(process: &Process, thread: &Thread, kept: &Kept) -> (matching::Process, Makers) {
    let Some(id) = thread.stream_id() else {
        return follow(process);
    };
    let taken = kept.lock().ok().and_then(|mut it| it.remove(&id));
    let (mark, tracker) = taken.filter(|it| it.1.is_of(thread.index)).unzip();
    let Some(mut records) = thread.records(mark) else {
        return follow(process);
    };
    let tracker = tracker.unwrap_or_else(|| Tracker::new(thread.index, None));
    let tracker = track(&mut records, thread, tracker);
    let mut told = local::Told::default();
    told.add(&tracker.told);
    let made = process.threads.iter().map(|it| match it.stream_id() {
        followed if followed == Some(id) => tracker.made.clone(),
        _ => Vec::new(),
    });
    let followed = told_of(process, made.collect(), told);
    if let (Some(mark), Ok(mut kept)) = (records.mark(), kept.lock()) {
        kept.insert(id, (mark, tracker));
    }
    (followed, Makers::default())
}

/// What a process did with communicators.
fn follow(process: &Process) -> (matching::Process, Makers) {
    let mut makers = Makers::default();
    let mut trackers = track_all(process, None);
    let talkers = process.threads.iter().filter(|it| it.has_arguments());
    if talkers.count() > 1 {
        for (handle, birth) in trackers.iter().flat_map(|it| &it.births) {
            let first = local::Maker {
                thread: Some(birth.thread),
                birth: Some(*birth),
            };
            let and = |maker: &mut local::Maker| {
                maker.birth = None;
                maker.thread = maker.thread.filter(|it| *it == birth.thread);
            };
            makers.entry(*handle).and_modify(and).or_insert(first);
        }
        trackers = track_all(process, Some(&makers));
    }
    let mut told = local::Told::default();
    for tracker in &trackers {
        told.add(&tracker.told);
    }
    let made = trackers.into_iter().map(|it| it.made).collect();
    (told_of(process, made, told), makers)
}

fn told_of(process: &Process, made: Vec<Vec<local::Made>>, told: local::Told) -> matching::Process {
    matching::Process {
        rank: process.rank.unwrap_or(0),
        world_size: process.world_size(),
        host: process.host.clone(),
        made,
        told,
        is_cut: process.threads.iter().any(|thread| thread.dropped > 0),
    }
}

fn track_all<'a>(process: &Process, makers: Option<&'a Makers>) -> Vec<Tracker<'a>> {
    let threads = process.threads.iter();
    threads
        .map(|it| {
            let tracker = Tracker::new(it.index, makers);
            match it.records(None) {
                Some(mut records) => track(&mut records, it, tracker),
                None => tracker,
            }
        })
        .collect()
}

fn track<'a>(records: &mut Records<'_>, thread: &Thread, mut tracker: Tracker<'a>) -> Tracker<'a> {
    let functions = thread.mpi_functions();
    let telling: FxHashMap<FunctionId, &mpi::Function> = functions
        .filter(|(_, function)| local::tells_of_communicators(function))
        .collect();
    let function = |record: &Record| Some((record.function?, *telling.get(&record.function?)?));
    let mut in_vain = 0u32;
    while let Some(record) = records.advance() {
        let Some((id, function)) = function(record) else {
            in_vain += 1;
            if in_vain.is_multiple_of(OFTEN) {
                records.pass(|it| function(it).is_none());
            }
            continue;
        };
        if record.is_result {
            tracker.result(id, &record.arguments);
        } else {
            tracker.call(id, function, &record.arguments);
        }
    }
    tracker
}
