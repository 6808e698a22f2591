//! Who waits for whom, and who will wait for ever.
//!
//! Every task is a node of a graph: one that runs may go on; one in `MPI_Recv`, `MPI_Waitall` or a
//! collective operation needs *all* of some tasks to go on; one in `MPI_Waitany`, or that receives
//! from anybody, needs *any*; one that ended never goes on. Releasing who can go on, and then who
//! waits for those, until nothing changes, leaves exactly those who are stuck for ever: the deadlock,
//! whatever the order of the releases. Its *cores* are the cycles (and the ended tasks) that all the
//! others wait for in the end.
//!
//! *Guarantees*: no task that could go on in any execution of MPI is called stuck, as far as the trace
//! shows what it waits for. Sends are taken as buffered where something else can be the reason.
//! *Costs*: O(tasks + waits); members of a collective operation share one node.

use crate::inside::{InsideWait, Threads};
use lockstep_api::mpi::{Does, Epoch, Making};
use lockstep_check::Mismatch;
use lockstep_comm::{
    Collective, CommunicatorId, Conversation, Doing, Matching, Membership, Mode, Operation, Part,
    PartId, PartKind, Peer, Role, Shape, State, Step, Waits, tasks_of,
};
use lockstep_waitfor::{Graph, Need, Released};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a task waits for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// For a message from it, with this tag (`None`: any).
    Message(Option<i64>),
    /// For a message from it with this tag, of which only messages with these other tags are there.
    OtherTag(i64, Vec<i64>),
    /// For it to receive a message with this tag.
    Receiver(i64),
    /// For it to come to this collective operation, in this communicator.
    Collective(std::sync::Arc<str>, CommunicatorId),
    /// For it to come to this step of an epoch on a window.
    Epoch(Epoch),
    /// For it to unlock the window of this task.
    Unlock(Option<u32>),
}

/// One task's waiting for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wait {
    /// Who waits.
    pub from: u32,
    /// For whom.
    pub to: u32,
    /// For what.
    pub why: Why,
    /// In which communicator the message is; `None` if the wait is for no message. What was said in another communicator
    /// explains nothing.
    pub communicator: Option<CommunicatorId>,
    /// Whether others would do as well.
    pub or_another: bool,
}

impl Wait {
    pub(crate) fn is_for_message(&self) -> bool {
        matches!(self.why, Why::Message(_) | Why::OtherTag(..))
    }
}

/// Who waits for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// All waits of tasks that wait, in the order of these; of a collective operation that many have not reached, the first
    /// [`MOST_SHOWN`].
    pub waits: Vec<Wait>,
    /// Tasks that can never go on (those that ended are not among them).
    pub stuck: BTreeSet<u32>,
    /// What they all wait for in the end: cycles of tasks, or tasks that ended and are waited for.
    pub cores: Vec<Vec<u32>>,
    /// Threads that wait for others of their process.
    pub inside: Vec<InsideWait>,
    /// Tasks that wait, but for a thread of theirs that does not.
    pub partly: BTreeSet<u32>,
    /// Tasks that wait in a collective operation, it is not known for whom: who is in its communicator, or which of them are
    /// neighbours.
    pub blind: BTreeSet<u32>,
}

/// Waits that are listed of a task.
pub const MOST_SHOWN: usize = 64;

/// A node that needs them all, and who they are.
type Missing = (usize, Arc<[u32]>);

struct Builder<'a> {
    tasks: &'a BTreeMap<u32, Conversation>,
    members: &'a Membership,
    matching: &'a Matching,
    mismatched: BTreeSet<(CommunicatorId, usize)>,
    /// Tasks first, in their order.
    graph: Graph,
    index: FxHashMap<u32, usize>,
    /// Those who have not come to a collective operation; of an intercommunicator, of the side of the
    /// first of them.
    missing: FxHashMap<(CommunicatorId, usize, u32), Missing>,
    /// Those who have.
    come: FxHashMap<(CommunicatorId, usize), Arc<BTreeSet<u32>>>,
    waits: Vec<Wait>,
    threads: Threads<'a>,
    partly: BTreeSet<u32>,
    blind: BTreeSet<u32>,
}

impl Waiting {
    /// Who waits for whom at the end of the traces.
    #[must_use]
    pub fn new(
        tasks: &BTreeMap<u32, Conversation>,
        members: &Membership,
        matching: &Matching,
        mismatches: &[Mismatch],
    ) -> Self {
        let mut builder = Builder {
            tasks,
            members,
            matching,
            mismatched: mismatches
                .iter()
                .filter(|mismatch| mismatch.prevents())
                .map(|mismatch| (mismatch.communicator, mismatch.order))
                .collect(),
            graph: Graph::now(tasks.len()),
            index: tasks
                .keys()
                .enumerate()
                .map(|(index, task)| (*task, index))
                .collect(),
            missing: FxHashMap::default(),
            come: FxHashMap::default(),
            waits: Vec::new(),
            threads: Threads::new(tasks),
            partly: BTreeSet::new(),
            blind: BTreeSet::new(),
        };
        builder.threads();
        for (index, (&task, conversation)) in tasks.iter().enumerate() {
            let need = match conversation.state {
                State::Running => Need::NOW,
                State::Ended | State::Finished => Need::NEVER,
                State::Waiting => builder.task(task, conversation),
            };
            builder.graph.set(index, need);
        }
        builder.finish()
    }
}

impl Builder<'_> {
    /// What threads need: a node for each of a process that has several.
    fn threads(&mut self) {
        for _ in 0..self.threads.len() {
            self.graph.add(Need::NOW);
        }
        for (at, (task, strand)) in self.threads.list().into_iter().enumerate() {
            let conversation = &self.tasks[&task];
            let node = match strand.doing {
                _ if matches!(conversation.state, State::Ended | State::Finished) => Need::NEVER,
                Doing::Operation(index) => match conversation.operations.get(index) {
                    Some(operation) => self.operation(task, conversation, operation),
                    None => Need::NOW,
                },
                _ => self.threads.node(at),
            };
            self.graph.set(self.tasks.len() + at, node);
        }
    }

    /// What a task needs: of threads that do something, one.
    fn task(&mut self, task: u32, conversation: &Conversation) -> Need {
        if let Some(on) = self.threads.of(task) {
            if conversation
                .strands
                .iter()
                .any(|it| it.doing == Doing::Runs)
            {
                self.partly.insert(task);
            }
            return Need::Any(on);
        }
        let mut needs: Vec<Need> = conversation
            .pending
            .iter()
            .filter_map(|index| conversation.operations.get(*index))
            .map(|operation| self.operation(task, conversation, operation))
            .collect();
        match needs.len() {
            0 => Need::NOW,
            1 => needs.remove(0),
            _ => {
                let on = needs.into_iter().map(|node| self.graph.add(node)).collect();
                Need::Any(on)
            }
        }
    }

    /// What a pending operation needs.
    fn operation(&mut self, task: u32, conversation: &Conversation, operation: &Operation) -> Need {
        let before = self.waits.len();
        let node = self.any_or_all(task, conversation, operation);
        // Who waits for any of one alone waits for that.
        if let [only] = &mut self.waits[before..] {
            only.or_another = false;
        }
        node
    }

    fn any_or_all(
        &mut self,
        task: u32,
        conversation: &Conversation,
        operation: &Operation,
    ) -> Need {
        let (all, parts) = match &operation.waits {
            Waits::No | Waits::Found(_) | Waits::Unknown => return Need::NOW,
            Waits::All(parts) => (true, parts),
            Waits::Any(parts) => (false, parts),
        };
        let polled = conversation
            .polled
            .and_then(|it| conversation.operations.get(it));
        let groups: &[Vec<usize>] = match polled {
            Some(it) if !all && std::ptr::eq(it, operation) => &conversation.together,
            _ => &[],
        };
        if groups.is_empty() {
            return self.parts(task, conversation, all, parts);
        }
        // Any of these, or all of some.
        let is_apart = |part: &&usize| !groups.iter().any(|it| it.contains(part));
        let apart: Vec<usize> = parts.iter().filter(is_apart).copied().collect();
        let mut needs = Vec::new();
        if !apart.is_empty() {
            needs.push(self.parts(task, conversation, false, &apart));
        }
        for group in groups {
            needs.push(self.parts(task, conversation, true, group));
        }
        if needs.iter().any(|it| it.is_now()) {
            return Need::NOW;
        }
        let on = needs.into_iter().map(|node| self.graph.add(node)).collect();
        Need::Any(on)
    }

    /// What it needs to have all of these parts, or any of them.
    fn parts(
        &mut self,
        task: u32,
        conversation: &Conversation,
        all: bool,
        parts: &[usize],
    ) -> Need {
        let open = || {
            parts
                .iter()
                .copied()
                .filter(|part| conversation.parts.get(*part).is_some_and(|it| !it.complete))
        };
        let is_send = |part: usize| matches!(conversation.parts[part].kind, PartKind::Send { .. });
        let others: Vec<Need> = open()
            .filter(|part| !is_send(*part))
            .map(|part| self.part(task, part, all))
            .collect();
        // What is received, or not there yet, is reason enough: then the messages sent may well have
        // been buffered.
        let blocked = others.iter().any(|node| !(node.is_now()));
        let mut needs = others;
        for part in open().filter(|part| is_send(*part)) {
            let buffered = matches!(
                conversation.parts[part].kind,
                PartKind::Send {
                    mode: Mode::Standard | Mode::Buffered | Mode::Ready,
                    ..
                }
            );
            if !(blocked && buffered && all) {
                let node = self.part(task, part, all);
                needs.push(node);
            }
        }
        if needs.is_empty() {
            return Need::NOW;
        }
        if let [_] = needs.as_slice() {
            return needs.remove(0);
        }
        let on = needs.into_iter().map(|node| self.graph.add(node)).collect();
        Need::of(all, on)
    }

    fn part(&mut self, task: u32, part: usize, all: bool) -> Need {
        let id = PartId { task, part };
        let Some(kind) = self.tasks.get(&task).and_then(|it| it.parts.get(part)) else {
            return Need::NOW;
        };
        match &kind.kind {
            PartKind::Send {
                to,
                tag,
                communicator,
                ..
            } => match to {
                Peer::Task(to) => {
                    let partner = self.matching.partner(id);
                    let receiver = |it: PartId| Some((self.tasks.get(&it.task)?, it.part));
                    let taken = partner.and_then(receiver);
                    // What a probe took has to be received, too; and what is long, by a task that is in MPI now and then.
                    let comes = |(it, part): (&Conversation, usize)| {
                        !it.holds_back(part) && !it.is_away_from(part)
                    };
                    if taken.is_some_and(comes) {
                        return Need::NOW;
                    }
                    self.on(task, *to, Why::Receiver(*tag), Some(*communicator), !all)
                }
                _ => Need::NOW,
            },
            PartKind::Receive {
                from,
                tag,
                communicator,
                ..
            } => {
                if self.matching.partner(id).is_some() {
                    return Need::NOW;
                }
                self.message(task, *from, *tag, *communicator, !all)
            }
            PartKind::Probe {
                from,
                tag,
                communicator,
            } => {
                let there =
                    self.matching
                        .is_on_its_way(self.tasks, task, *from, *tag, *communicator);
                if there {
                    return Need::NOW;
                }
                self.message(task, *from, *tag, *communicator, !all)
            }
            PartKind::Collective(share) => self.collective(task, id, &share.clone()),
            PartKind::Epoch { window, step, .. } => self.epoch(task, *window, *step),
            PartKind::Own => Need::NOW,
        }
    }

    /// Needs a message.
    fn message(
        &mut self,
        task: u32,
        from: Peer,
        tag: Option<i64>,
        communicator: CommunicatorId,
        or_another: bool,
    ) -> Need {
        match from {
            Peer::Task(from) => {
                let why = match tag {
                    Some(tag) => match self.other_tags(from, task, communicator) {
                        tags if tags.is_empty() => Why::Message(Some(tag)),
                        tags => Why::OtherTag(tag, tags),
                    },
                    None => Why::Message(None),
                };
                self.on(task, from, why, Some(communicator), or_another)
            }
            Peer::Any => {
                let Some(members) = self.members.heard_by(task, communicator).cloned() else {
                    return Need::NOW;
                };
                let mut on = Vec::new();
                for &member in members.iter().filter(|member| **member != task) {
                    let Some(&index) = self.index.get(&member) else {
                        return Need::NOW;
                    };
                    on.push(index);
                    if on.len() <= MOST_SHOWN {
                        self.waits.push(Wait {
                            from: task,
                            to: member,
                            why: Why::Message(tag),
                            communicator: Some(communicator),
                            or_another: true,
                        });
                    }
                }
                Need::Any(on)
            }
            Peer::Nobody | Peer::Unknown => Need::NOW,
        }
    }

    /// Tags of messages between two tasks that nobody received.
    fn other_tags(&self, from: u32, to: u32, communicator: CommunicatorId) -> Vec<i64> {
        let parts = self.tasks.get(&from).map(|it| it.parts.as_slice());
        let mut tags: Vec<i64> = parts
            .into_iter()
            .flatten()
            .enumerate()
            .filter_map(|(part, it)| match &it.kind {
                PartKind::Send {
                    to: Peer::Task(receiver),
                    tag,
                    communicator: of,
                    ..
                } if *receiver == to
                    && *of == communicator
                    && self.matching.partner(PartId { task: from, part }).is_none() =>
                {
                    Some(*tag)
                }
                _ => None,
            })
            .collect();
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    /// Needs one task.
    fn on(
        &mut self,
        from: u32,
        to: u32,
        why: Why,
        communicator: Option<CommunicatorId>,
        or_another: bool,
    ) -> Need {
        // A task of which there is no trace may do anything.
        let Some(&index) = self.index.get(&to) else {
            return Need::NOW;
        };
        self.waits.push(Wait {
            from,
            to,
            why,
            communicator,
            or_another,
        });
        Need::All(vec![index])
    }

    /// Needs those who have not come to a collective operation, or some of them.
    fn collective(&mut self, task: u32, id: PartId, share: &Collective) -> Need {
        let Some(communicator) = share.communicator else {
            self.blind.insert(task);
            return Need::NOW;
        };
        let is_between = self.members.sides.contains_key(&communicator);
        if is_between && share.role == Role::Bystander {
            return Need::NOW;
        }
        let Some(members) = self.members.heard_by(task, communicator).cloned() else {
            self.blind.insert(task);
            return Need::NOW;
        };
        if self.matching.is_unordered(communicator) {
            return self.as_many(task, (communicator, share), &members);
        }
        let Some((order, shares)) = self.matching.operation(communicator, id) else {
            return Need::NOW;
        };
        if self.mismatched.contains(&(communicator, order)) {
            return Need::NEVER;
        }
        let come = self.come.entry((communicator, order));
        let all = || Arc::new(shares.iter().map(|share| share.task).collect());
        let come = come.or_insert_with(all).clone();
        let why = Why::Collective(share.name.clone(), communicator);
        let root = share
            .root
            .and_then(|root| members.get(usize::try_from(root).ok()?))
            .copied();
        if let (Shape::FromRoot | Shape::ToRoot, Some(root)) = (share.shape(), root)
            && root != task
            && !come.contains(&root)
        {
            return self.on(task, root, why, None, false);
        }
        // Between two groups, all wait for the root, and a root for all of the others.
        if is_between && share.shape() != Shape::All && share.role != Role::Root {
            return Need::NOW;
        }
        if share.shape() == Shape::Prefix {
            let before = members.iter().take_while(|member| **member != task);
            let missing: Vec<u32> = before.filter(|it| !come.contains(it)).copied().collect();
            let on = self.list(task, &missing, &why);
            return Need::All(on);
        }
        if share.shape() == Shape::Neighbours {
            // Which of them are neighbours is not recorded.
            let missing = members.iter().filter(|it| !come.contains(it));
            let missing: Vec<u32> = missing.copied().collect();
            let on = self.list(task, &missing, &why);
            return match on.len() == missing.len() && !on.is_empty() {
                true => Need::Any(on),
                false => {
                    self.blind.insert(task);
                    Need::NOW
                }
            };
        }
        let key = (communicator, order, members.first().copied().unwrap_or(0));
        if !self.missing.contains_key(&key) {
            let missing: Arc<[u32]> = members
                .iter()
                .filter(|it| !come.contains(it))
                .copied()
                .collect();
            let on = missing
                .iter()
                .filter_map(|it| self.index.get(it).copied())
                .collect();
            let node = self.graph.add(Need::All(on));
            self.missing.insert(key, (node, missing));
        }
        let Some((node, missing)) = self.missing.get(&key).cloned() else {
            return Need::NOW;
        };
        // Whoever introduces a group to another does so for all of it.
        let leader = root.filter(|it| missing.is_empty() && *it != task);
        if let (Some(leader), Does::Communicator(Making::Between)) = (leader, share.meaning.does) {
            let on = self.index.get(&leader).copied();
            return on.map_or(Need::NOW, |it| Need::All(vec![it]));
        }
        // The shared node has them all.
        self.list(task, &missing[..missing.len().min(MOST_SHOWN)], &why);
        Need::All(vec![node])
    }

    /// Needs those who have come to fewer collective operations, or to fewer by this function: which of them this one is, is not known.
    fn as_many(
        &mut self,
        task: u32,
        (communicator, share): (CommunicatorId, &Collective),
        members: &[u32],
    ) -> Need {
        let called = |it: u32| self.matching.called(communicator, it, &share.name);
        let own = called(task);
        let last = own[0].saturating_sub(1);
        if self.mismatched.contains(&(communicator, last)) {
            return Need::NEVER;
        }
        let root = share
            .root
            .and_then(|root| members.get(usize::try_from(root).ok()?));
        let needs = |it: &&u32| match (share.shape(), root) {
            (Shape::FromRoot, Some(root)) => *it == root,
            _ => true,
        };
        let missing = members.iter().filter(needs);
        let is_behind = |it: &&u32| called(**it).iter().zip(own).any(|(it, own)| *it < own);
        let missing = missing.filter(is_behind);
        let missing: Vec<u32> = missing.copied().collect();
        let why = Why::Collective(share.name.clone(), communicator);
        let on = self.list(task, &missing, &why);
        Need::All(on)
    }

    /// Needs a step of another on a window. Where it is not known which groups an epoch is for, one of the others is
    /// waited for if there are too few steps of them all together.
    fn epoch(&mut self, task: u32, window: CommunicatorId, step: Step) -> Need {
        let Some(members) = self.members.members(window).cloned() else {
            return Need::NOW;
        };
        if let Some((whom, why)) = self.group_epoch(task, window, step) {
            let on = self.list(task, &whom, &why);
            return match on.len() == whom.len() {
                true => Need::All(on),
                false => Need::NOW,
            };
        }
        let steps = |of: u32| {
            let parts = self.tasks.get(&of).map(|it| it.parts.as_slice());
            parts.into_iter().flatten().filter_map(|it| match it.kind {
                PartKind::Epoch {
                    window: at, step, ..
                } if at == window => Some((step, it.complete)),
                _ => None,
            })
        };
        let count = |of: u32, wanted: Step| steps(of).filter(|(it, _)| *it == wanted).count();
        let others = || members.iter().copied().filter(|it| *it != task);
        let of_others = |wanted: Step| -> usize { others().map(|it| count(it, wanted)).sum() };
        let (whom, why): (Vec<u32>, Why) = match step {
            Step::Start | Step::Complete if of_others(Step::Post) < count(task, Step::Start) => {
                (others().collect(), Why::Epoch(Epoch::Post))
            }
            Step::Wait if of_others(Step::Complete) < count(task, Step::Post) => {
                (others().collect(), Why::Epoch(Epoch::Complete))
            }
            Step::Lock(target) | Step::Unlock(target) => {
                let meets = |it: Option<u32>| it.is_none() || target.is_none() || it == target;
                let holds = |other: u32| {
                    steps(other).fold(0i64, |held, it| match it {
                        (Step::Lock(at), true) if meets(at) => held + 1,
                        (Step::Unlock(at), true) if meets(at) => held - 1,
                        _ => held,
                    }) > 0
                };
                (
                    others().filter(|it| holds(*it)).collect(),
                    Why::Unlock(target),
                )
            }
            _ => return Need::NOW,
        };
        let on: Option<Vec<usize>> = whom.iter().map(|it| self.index.get(it).copied()).collect();
        let Some(on) = on.filter(|it| !it.is_empty()) else {
            return Need::NOW;
        };
        self.waits
            .extend(whom.iter().take(MOST_SHOWN).map(|to| Wait {
                from: task,
                to: *to,
                why: why.clone(),
                communicator: None,
                or_another: whom.len() > 1,
            }));
        Need::Any(on)
    }

    /// Whom of the group of its post or start a task waits for, and for what; `None` where that is not known.
    fn group_epoch(
        &self,
        task: u32,
        window: CommunicatorId,
        step: Step,
    ) -> Option<(Vec<u32>, Why)> {
        let (own, others, why) = match step {
            Step::Start | Step::Complete => (Step::Start, Step::Post, Epoch::Post),
            Step::Wait => (Step::Post, Step::Start, Epoch::Complete),
            _ => return None,
        };
        // Who is in the group of each such step, in order; of several threads, one may have made a group of another's handle.
        let groups = |of: u32, wanted: Step| -> Vec<Option<Vec<u32>>> {
            let conversation = self.tasks.get(&of);
            let parts = conversation.map_or(&[][..], |it| it.parts.as_slice());
            let is_alone = conversation.is_some_and(|it| it.threads.len() <= 1);
            let group = |it: &Part| match &it.kind {
                PartKind::Epoch {
                    window: at,
                    step,
                    group,
                } if *at == window && *step == wanted => {
                    let group = group.as_ref().filter(|_| is_alone);
                    Some(group.and_then(|it| tasks_of(it, self.members)))
                }
                _ => None,
            };
            parts.iter().filter_map(group).collect()
        };
        let own: Option<Vec<Vec<u32>>> = groups(task, own).into_iter().collect();
        let own = own?;
        let lacks = |of: &u32| {
            let needed = own.iter().filter(|it| it.contains(of)).count();
            let mut theirs = groups(*of, others);
            if others == Step::Start {
                // The start that a task did not complete is its last.
                theirs.truncate(groups(*of, Step::Complete).len());
            }
            let may_be = |it: &&Option<Vec<u32>>| it.as_ref().is_none_or(|it| it.contains(&task));
            theirs.iter().filter(may_be).count() < needed
        };
        let whom = own.last()?.iter().copied().filter(lacks).collect();
        Some((whom, Why::Epoch(why)))
    }

    /// Waits for several, of which the first are listed.
    fn list(&mut self, from: u32, missing: &[u32], why: &Why) -> Vec<usize> {
        self.waits
            .extend(missing.iter().take(MOST_SHOWN).map(|to| Wait {
                from,
                to: *to,
                why: why.clone(),
                communicator: None,
                or_another: false,
            }));
        missing
            .iter()
            .filter_map(|it| self.index.get(it).copied())
            .collect()
    }

    /// Releases who can go on; the rest is stuck.
    fn finish(mut self) -> Waiting {
        self.waits.sort_by_key(|it| it.from);
        let released = self.graph.release();
        let names: Vec<u32> = self.tasks.keys().copied().collect();
        let waiting = |index: usize| {
            let task = names.get(index)?;
            (self.tasks[task].state == State::Waiting).then_some(*task)
        };
        let stuck = (0..names.len())
            .filter(|index| !released.goes_on(*index))
            .filter_map(waiting)
            .collect();
        // Threads stand for their tasks.
        let mut owners = names.clone();
        owners.extend(self.threads.list().iter().map(|(task, _)| *task));
        Waiting {
            cores: cores(&self.graph, &released, &owners),
            stuck,
            waits: self.waits,
            inside: self.threads.waits(),
            partly: self.partly,
            blind: self.blind,
        }
    }
}

/// The knots that some task waits in or for. The first nodes have owners.
fn cores(graph: &Graph, released: &Released, owners: &[u32]) -> Vec<Vec<u32>> {
    let stuck = (0..graph.len()).filter(|it| !released.goes_on(*it));
    let awaited: BTreeSet<usize> = stuck.flat_map(|it| graph.need(it).on()).copied().collect();
    // A task that ended is a core if somebody waits for it.
    let matters = |knot: &Vec<usize>| match knot.as_slice() {
        [one] => !graph.need(*one).on().is_empty() || awaited.contains(one),
        _ => true,
    };
    let tasks = |knot: Vec<usize>| {
        let owners = knot.iter().filter_map(|it| owners.get(*it));
        let tasks: BTreeSet<u32> = owners.copied().collect();
        tasks.into_iter().collect::<Vec<u32>>()
    };
    let knots = graph.knots(released).into_iter().filter(matters);
    let cores: BTreeSet<Vec<u32>> = knots.map(tasks).filter(|it| !it.is_empty()).collect();
    cores.into_iter().collect()
}

/// The waits of a task; all of them are in the order of those who wait.
pub(crate) fn waits_of(waiting: &Waiting, task: u32) -> impl Iterator<Item = &Wait> {
    let first = waiting.waits.partition_point(|wait| wait.from < task);
    let rest = waiting.waits.get(first..).unwrap_or(&[]);
    rest.iter().take_while(move |wait| wait.from == task)
}
