//! Reads the traces of a run: all of it at once, or what is new in a run that still goes on.
//!
//! What came before is known again , and turns that belong to each other are left out as they are read
//! .
//!
//! *Guarantees*: both give the same (but for a call whose arguments are about to be written: it has not been made
//! yet, to who follows; and ready sends are not looked at where something was left out). *Costs*: of [`Follower`], what is new, and once a look what is distinct in the
//! trees and what was said; all of it again where communicators came to be known otherwise than before.

use lockstep_calltree::{Forest, FunctionMap, Grown, Trace};
use lockstep_check::{RuleChecker, Usage, mismatches};
use lockstep_comm::communicators::{Communicators, EventsMark, Following, Resolver};
use lockstep_comm::rounds::{self, Speaker};
use lockstep_comm::{
    CommunicatorId, Conversation, Functions, Matching, Membership, Reader, Reading, Routines,
    Strand, Windows, settled, speaker,
};
use lockstep_trace::{Bookmark, FunctionId, Run, StreamId, Thread, TraceName};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What is needed to read what threads said.
pub(crate) struct Context<'a> {
    pub communicators: &'a Communicators,
    pub routines: Routines,
    pub functions: Functions,
    /// Ids of communicators from here on are free.
    pub first: u32,
    pub world: Option<CommunicatorId>,
}

/// What a thread said, the windows that it made, what was wrong by itself, and how it stands.
pub(crate) type Told = (Conversation, Windows, Usage, Strand);

/// Reads traces.
pub(crate) trait Source {
    /// Their trees; again, where they were too large all together.
    fn trees(
        &mut self,
        forest: &mut Forest,
        functions: &FunctionMap,
        threads: &[&Thread],
    ) -> Vec<Trace>;

    /// The communicators.
    fn communicators(&mut self, run: &Run) -> Communicators;

    /// What threads of MPI processes said; each with the number of its task.
    fn conversations(&mut self, context: &Context<'_>, threads: &[(u32, &Thread)]) -> Vec<Told>;

    /// How a thread stands.
    fn strand(&mut self, functions: &Functions, thread: &Thread) -> Strand;
}

/// Reads all of it.
pub(crate) struct Whole;

impl Source for Whole {
    fn trees(
        &mut self,
        forest: &mut Forest,
        functions: &FunctionMap,
        threads: &[&Thread],
    ) -> Vec<Trace> {
        forest.add_traces(functions, threads)
    }

    fn communicators(&mut self, run: &Run) -> Communicators {
        Communicators::of(run)
    }

    fn conversations(&mut self, context: &Context<'_>, threads: &[(u32, &Thread)]) -> Vec<Told> {
        let read = |thread: &Thread| {
            let mut reader: Reader<RuleChecker> =
                Reader::new(thread.name, context.first, context.world, false);
            let is_wanted = |id: FunctionId| context.routines.get(id).is_some();
            let mut events = context.communicators.events_of(thread, is_wanted);
            reader.read(&context.routines, &mut events);
            reader.into_told(&context.routines, events.resolver())
        };
        let like = alike(threads);
        let own = threads.par_iter().zip(&like).enumerate();
        let own = own.map(|(index, ((_, thread), first))| (*first == index).then(|| read(thread)));
        let own: Vec<Option<lockstep_comm::Told<RuleChecker>>> = own.collect();
        let others = threads.par_iter().zip(&like).enumerate();
        let others = others.map(|(index, ((_, thread), first))| {
            let (said, windows, rules) = own.get(*first).filter(|_| *first != index)?.as_ref()?;
            let said = said.said_by(thread.name);
            let of_it = || {
                let mut usage = Usage::from(rules.clone());
                usage.is_of(thread.name);
                usage
            };
            let told = said.map(|it| (it, windows.clone(), of_it()));
            Some(told.unwrap_or_else(|| unobserved(read(thread))))
        });
        let others: Vec<Option<(Conversation, Windows, Usage)>> = others.collect();
        let told = own
            .into_iter()
            .zip(others)
            .filter_map(|(own, other)| own.map(unobserved).or(other));
        let told = threads.iter().zip(told);
        told.map(|((_, thread), (said, windows, usage))| {
            (said, windows, usage, context.functions.read(thread))
        })
        .collect()
    }

    fn strand(&mut self, functions: &Functions, thread: &Thread) -> Strand {
        functions.read(thread)
    }
}

/// What is kept of the rules once a thread is read.
fn unobserved(
    (said, windows, rules): lockstep_comm::Told<RuleChecker>,
) -> (Conversation, Windows, Usage) {
    (said, windows, rules.into())
}

/// For each thread the first one that says the same: without arguments, that is who has the same events.
fn alike(threads: &[(u32, &Thread)]) -> Vec<usize> {
    let content = |(_, thread): &(u32, &Thread)| match thread.has_arguments() {
        true => None,
        false => thread.content(),
    };
    let contents: Vec<Option<u128>> = threads.par_iter().map(content).collect();
    let mut firsts: FxHashMap<u128, usize> = FxHashMap::default();
    let like = contents
        .into_iter()
        .enumerate()
        .map(|(index, content)| content.map_or(index, |it| *firsts.entry(it).or_insert(index)));
    like.collect()
}

/// Follows a run that goes on: keeps what was read of it.
#[derive(Debug, Default)]
pub struct Follower {
    trees: BTreeMap<StreamId, Grown>,
    /// How often trees were asked for at this look.
    tries: usize,
    calls: Following,
    /// As they were known at the last look.
    communicators: Option<Communicators>,
    said: BTreeMap<StreamId, Said>,
    /// Whether something was left out of what they said.
    is_cut: bool,
    strands: BTreeMap<StreamId, (Reading, Bookmark)>,
    in_detail: bool,
}

/// What a thread said, and how far it was read.
#[derive(Debug)]
struct Said {
    trace: TraceName,
    reader: Reader<RuleChecker>,
    mark: EventsMark,
}

impl Follower {
    /// One that takes in every call by itself, whether it came before or not: slow, to compare with.
    #[must_use]
    pub fn in_detail() -> Self {
        Self {
            in_detail: true,
            ..Self::default()
        }
    }

    /// How many operations are kept, of all threads: little, however long a job goes on that does the same again and again.
    #[must_use]
    pub fn kept(&self) -> usize {
        let kept = self.said.values().map(|it| it.reader.operations());
        kept.sum()
    }

    /// How many calls were known again as they came before, of the threads that are kept.
    #[must_use]
    pub fn known_again(&self) -> u64 {
        self.said.values().map(|it| it.reader.known_again()).sum()
    }

    /// Leaves out what nothing can change any more, where all that was said is kept: here, and of these.
    pub(crate) fn settle(
        &mut self,
        conversations: &mut BTreeMap<u32, Conversation>,
        membership: &Membership,
        communicators: &Communicators,
    ) {
        let by_name = self.said.iter().map(|(id, said)| (said.trace, *id));
        let by_name: BTreeMap<TraceName, StreamId> = by_name.collect();
        let mut threads = conversations.values().flat_map(|it| &it.threads);
        if !threads.all(|(_, trace)| by_name.contains_key(trace)) {
            return;
        }
        let matching = Matching::new(conversations);
        let wrong = mismatches(conversations, membership, &matching);
        let told = wrong.iter().map(|it| (it.communicator, it.order));
        let cut = settled(
            conversations,
            membership,
            &matching,
            told.collect(),
            communicators.all().len() as u32,
        );
        let mut is_possible = true;
        for (task, operations) in &cut {
            let conversation = conversations.get(task).filter(|_| *operations > 0);
            let speaker = conversation.and_then(speaker);
            let said = speaker.and_then(|it| self.said.get(by_name.get(&it)?));
            is_possible &= said.is_none_or(|it| it.reader.can_leave_out(*operations));
        }
        if !is_possible {
            return;
        }
        for (task, operations) in cut {
            let Some(conversation) = conversations.get_mut(&task).filter(|_| operations > 0) else {
                continue;
            };
            let speaker = speaker(conversation);
            let said = speaker.and_then(|it| self.said.get_mut(by_name.get(&it)?));
            if let Some(said) = said {
                said.reader.leave_out(operations);
                conversation.leave_out(operations);
                self.is_cut = true;
            }
        }
    }
}

impl Source for Follower {
    fn trees(
        &mut self,
        forest: &mut Forest,
        functions: &FunctionMap,
        threads: &[&Thread],
    ) -> Vec<Trace> {
        self.tries += 1;
        if self.tries > 1 {
            self.trees.clear();
            return Whole.trees(forest, functions, threads);
        }
        let mut kept = std::mem::take(&mut self.trees);
        let mut of = |thread: &&Thread| {
            let id = thread.stream_id()?;
            kept.remove(&id)
        };
        let grown: Vec<Grown> = threads
            .iter()
            .map(|it| of(it).unwrap_or_default())
            .collect();
        let known = &*forest;
        let grown: Vec<Grown> = threads
            .par_iter()
            .zip(grown)
            .map(|(thread, mut grown)| {
                grown.read(known, functions, thread);
                grown
            })
            .collect();
        let roots = grown.iter().map(|it| forest.add_grown(it));
        let traces = threads.iter().zip(roots).map(|(thread, root)| Trace {
            name: thread.name,
            root,
            left_out: 0,
        });
        let traces = traces.collect();
        let ids = threads.iter().map(|it| it.stream_id());
        let kept = ids.zip(grown).filter_map(|(id, grown)| Some((id?, grown)));
        self.trees = kept.collect();
        traces
    }

    fn communicators(&mut self, run: &Run) -> Communicators {
        // Trees that are too large now are so at the next look, too.
        self.tries = usize::from(self.tries > 1);
        let threads = run.processes.iter().flat_map(|it| &it.threads);
        let there: BTreeSet<StreamId> = threads.filter_map(Thread::stream_id).collect();
        self.strands.retain(|id, _| there.contains(id));
        Communicators::live(run, &mut self.calls)
    }

    fn conversations(&mut self, context: &Context<'_>, threads: &[(u32, &Thread)]) -> Vec<Told> {
        let mut kept = std::mem::take(&mut self.said);
        let is_same = self.communicators.as_ref() == Some(context.communicators);
        if !is_same {
            self.communicators = Some(context.communicators.clone());
        }
        // Who left something out counts on all others to have left out what belongs to it.
        let is_known = |(_, it): &(u32, &Thread)| {
            let said = it.stream_id().and_then(|id| kept.get(&id));
            said.is_some_and(|said| said.trace == it.name)
        };
        if !is_same || self.is_cut && !threads.iter().all(is_known) {
            kept.clear();
            self.is_cut = false;
        }
        let mut of = |thread: &&Thread| {
            let id = thread.stream_id();
            let said = id.and_then(|id| kept.remove(&id));
            (said, id.and_then(|id| self.strands.remove(&id)))
        };
        let kept: Vec<_> = threads.iter().map(|(_, thread)| of(thread)).collect();
        let learns = !self.in_detail;
        let mut read: Vec<_> = threads
            .par_iter()
            .zip(kept)
            .map(|((_, thread), (said, stands))| {
                let stands = stand(&context.functions, thread, stands);
                (converse(context, thread, said, learns), stands)
            })
            .collect();
        self.is_cut |= settle_turns(context, threads, read.iter_mut().map(|it| &mut it.0));
        let told: Vec<_> = read
            .par_iter()
            .map(|(it, _)| it.reader.told(&context.routines, it.resolver.clone()))
            .collect();
        let mut all = Vec::with_capacity(threads.len());
        for (((_, thread), (heard, (strand, stands))), (said, windows, rules)) in
            threads.iter().zip(read).zip(told)
        {
            let id = thread.stream_id();
            self.said.extend(id.zip(heard.kept(thread.name)));
            self.strands.extend(id.zip(stands));
            all.push((said, windows, rules.into(), strand));
        }
        all
    }

    fn strand(&mut self, functions: &Functions, thread: &Thread) -> Strand {
        let id = thread.stream_id();
        let kept = id.and_then(|id| self.strands.remove(&id));
        let (strand, kept) = stand(functions, thread, kept);
        self.strands.extend(id.zip(kept));
        strand
    }
}

/// Reads what is new of a thread; how it stands, and what is to be kept.
fn stand(
    functions: &Functions,
    thread: &Thread,
    kept: Option<(Reading, Bookmark)>,
) -> (Strand, Option<(Reading, Bookmark)>) {
    if functions.need_not_read(thread) {
        return (functions.read(thread), None);
    }
    let (mut reading, mut events) = match kept {
        Some((reading, mark)) => (reading, thread.events_after(&mark)),
        None => (Reading::default(), thread.events()),
    };
    functions.read_on(&mut reading, &mut events);
    let strand = functions.strand(&reading, thread);
    (strand, events.bookmark().map(|mark| (reading, mark)))
}

/// What was read of a thread.
struct Heard<'a> {
    reader: Reader<RuleChecker>,
    /// Where reading can go on.
    mark: Option<EventsMark>,
    resolver: Resolver<'a>,
}

impl Heard<'_> {
    fn kept(self, trace: TraceName) -> Option<Said> {
        Some(Said {
            trace,
            reader: self.reader,
            mark: self.mark?,
        })
    }
}

/// Reads what is new of a thread.
fn converse<'a>(
    context: &Context<'a>,
    thread: &'a Thread,
    kept: Option<Said>,
    learns: bool,
) -> Heard<'a> {
    let kept = kept.filter(|it| it.trace == thread.name);
    let (mut reader, mark) = match kept {
        Some(said) => (said.reader, Some(said.mark)),
        None => {
            let reader = Reader::new(thread.name, context.first, context.world, learns);
            (reader, None)
        }
    };
    let is_wanted = |id: FunctionId| context.routines.get(id).is_some();
    let mut events = context.communicators.events_live(thread, mark, is_wanted);
    reader.read(&context.routines, &mut events);
    let resolver = events.resolver().clone();
    let mark = thread.stream_id().and_then(|_| events.mark());
    Heard {
        reader,
        mark,
        resolver,
    }
}

/// Leaves out turns that are settled, where all that was said is kept; whether there were any.
fn settle_turns<'h, 'c: 'h>(
    context: &Context<'_>,
    threads: &[(u32, &Thread)],
    heard: impl Iterator<Item = &'h mut Heard<'c>>,
) -> bool {
    let mut heard: Vec<&mut Heard<'_>> = heard.collect();
    if heard.iter().any(|it| it.mark.is_none()) {
        return false;
    }
    // A task of several threads that call MPI is not read in order.
    let mut speaking: FxHashMap<u32, usize> = FxHashMap::default();
    for ((task, _), it) in threads.iter().zip(&heard) {
        *speaking.entry(*task).or_default() += usize::from(!it.reader.is_silent());
    }
    let tails = threads.iter().zip(&heard).enumerate();
    let tails = tails.filter_map(|(index, ((task, _), it))| {
        let tail = it.reader.turns()?;
        let is_one = speaking.get(task) == Some(&1) && !it.reader.is_silent();
        is_one.then_some((index, Speaker { task: *task, tail }))
    });
    let (indices, speakers): (Vec<usize>, Vec<Speaker<'_>>) = tails.unzip();
    let sizes = context.communicators.all().iter().filter_map(|it| {
        let [side] = it.sides.as_slice() else {
            return None;
        };
        let is_known = side.ranks.iter().all(Option::is_some);
        Some((it.id, side.size.filter(|_| is_known)? as usize))
    });
    let sizes: FxHashMap<CommunicatorId, usize> = sizes.collect();
    let settled = rounds::settled(&speakers, &|id| sizes.get(&id).copied());
    let is_cut = settled.iter().any(|it| *it > 0);
    for (index, turns) in indices.into_iter().zip(settled) {
        if let Some(it) = heard.get_mut(index) {
            it.reader.leave_out_turns(turns);
        }
    }
    is_cut
}
