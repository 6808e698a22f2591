//! Which communicators of different processes are the same one, and who is in it.
//!
//! Calls that make a communicator are collective over its parent, so that the k-th one of every member
//! is the same operation. From the communicators that are known (first those that MPI predefines) follow
//! their children, until nothing new follows. What a process was told (`MPI_Comm_rank`, `MPI_Comm_size`)
//! confirms the members, gives them where the calls do not, and takes them back where it contradicts.

use super::communicator::{Communicator, CommunicatorId, Members, Origin};
use super::local::{Birth, Given, Group, Local, Made, Making, Told};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What one rank of a job did with communicators.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    /// Its rank in the job's world.
    pub rank: u32,
    /// The size of that world, as the launcher says it.
    pub world_size: Option<u32>,
    /// What it shares memory with.
    pub host: String,
    /// By thread, in order.
    pub made: Vec<Vec<Made>>,
    pub told: Told,
    /// Earlier calls are missing: what it makes cannot be counted.
    pub is_cut: bool,
}

/// Where a process stands: the communicator, and the side of it.
pub(super) type Place = (CommunicatorId, usize);

/// Damaged streams may say anything.
const MOST_MEMBERS: u32 = 1 << 20;

/// A process of the job, as an index.
type Index = usize;

struct Solver<'a> {
    processes: &'a [Process],
    /// By process and parent, the calls in order; `None` where several threads made some.
    sequences: Vec<FxHashMap<Local, Option<Vec<Birth>>>>,
    /// Numbers of the communicators of former jobs.
    first: u32,
    found: Vec<Communicator>,
    takers: Vec<Vec<(Index, Local)>>,
    places: Vec<FxHashMap<Local, Place>>,
    queue: VecDeque<CommunicatorId>,
    postponed: Vec<(CommunicatorId, usize)>,
    /// Halves of intercommunicators that wait for the other: by leader, remote leader, the leaders'
    /// communicator and tag.
    halves: FxHashMap<(u32, u32, CommunicatorId, i64), VecDeque<Half>>,
    by_group: FxHashSet<GroupCall>,
    /// How many there are in each dimension of those that are grids.
    grids: FxHashMap<CommunicatorId, Arc<[i64]>>,
}

/// Parent, members, tag, and how often there was the same before.
type GroupCall = (CommunicatorId, Vec<u32>, i64, u32);

struct Half {
    parent: CommunicatorId,
    members: Members,
    takers: Vec<(Index, Birth)>,
}

/// A communicator, and what it is called in those processes whose it is.
struct Child {
    origin: Origin,
    sides: Vec<Members>,
    takers: Vec<(Index, Local, usize)>,
    /// If it is a grid, how many there are in each dimension.
    grid: Option<Arc<[i64]>>,
}

/// One call of one process, for an operation.
#[derive(Clone, Copy)]
struct Taker<'a> {
    process: Index,
    rank: u32,
    birth: Birth,
    made: &'a Made,
    side: usize,
    /// Its rank in the parent, where that is known.
    position: Option<usize>,
}

/// Finds the communicators of one job behind those `found` in others; by process, what its own stand for.
pub(super) fn solve(
    processes: &[Process],
    found: &mut Vec<Communicator>,
) -> Vec<FxHashMap<Local, Place>> {
    let mut solver = Solver {
        processes,
        sequences: processes.iter().map(sequences).collect(),
        first: found.len() as u32,
        found: Vec::new(),
        takers: Vec::new(),
        places: vec![FxHashMap::default(); processes.len()],
        queue: VecDeque::new(),
        postponed: Vec::new(),
        halves: FxHashMap::default(),
        by_group: FxHashSet::default(),
        grids: FxHashMap::default(),
    };
    solver.predefined();
    loop {
        while let Some(id) = solver.queue.pop_front() {
            solver.children(id);
        }
        for (id, step) in std::mem::take(&mut solver.postponed) {
            if !solver.operation(id, step) {
                solver.postponed.push((id, step));
            }
        }
        solver.by_group_alone();
        if solver.queue.is_empty() {
            break;
        }
    }
    found.append(&mut solver.found);
    solver.places
}

/// The calls by their parents, without those that are not collective over them.
fn sequences(process: &Process) -> FxHashMap<Local, Option<Vec<Birth>>> {
    let mut all: FxHashMap<Local, Option<Vec<Birth>>> = FxHashMap::default();
    if process.is_cut {
        return all;
    }
    for (made, thread) in process.made.iter().zip(0..) {
        for (made, number) in made.iter().zip(0..) {
            if matches!(made.making, Making::CreateGroup(..) | Making::Apart) {
                continue;
            }
            let birth = Birth { thread, number };
            let entry = all.entry(made.parent).or_insert_with(|| Some(Vec::new()));
            let is_same = |births: &&mut Vec<Birth>| {
                births.last().is_none_or(|before| before.thread == thread)
            };
            match entry.as_mut().filter(is_same) {
                Some(births) => births.push(birth),
                // Nobody knows in which order they were.
                None => *entry = None,
            }
        }
    }
    all
}

impl<'a> Solver<'a> {
    fn predefined(&mut self) {
        let mut told = self.processes.iter().filter_map(|process| {
            let size = process.told.sizes.get(&Local::World);
            size.and_then(|size| u32::try_from(*size).ok())
                .or(process.world_size)
        });
        let told = told.next().filter(|size| *size <= MOST_MEMBERS);
        let ranks = self.processes.iter().map(|process| process.rank + 1);
        let world = Members {
            size: told,
            ranks: (0..told.or(ranks.max()).unwrap_or(0)).map(Some).collect(),
        };
        let everyone = (0..self.processes.len()).collect::<Vec<_>>();
        self.add(
            Origin::World,
            None,
            vec![world],
            everyone.iter().map(|it| (*it, Local::World, 0)).collect(),
        );
        for index in everyone {
            let own = Members::of([Some(self.processes[index].rank)]);
            self.add(Origin::Own, None, vec![own], vec![(index, Local::Own, 0)]);
        }
    }

    fn get(&self, id: CommunicatorId) -> Option<&Communicator> {
        self.found.get(id.0.checked_sub(self.first)? as usize)
    }

    /// Keeps a communicator that was found, corrected by what its members were told.
    fn add(
        &mut self,
        origin: Origin,
        parent: Option<CommunicatorId>,
        mut sides: Vec<Members>,
        takers: Vec<(Index, Local, usize)>,
    ) {
        let id = CommunicatorId(self.first + self.found.len() as u32);
        self.believe(&mut sides, &takers);
        for (process, local, side) in &takers {
            self.places[*process].insert(*local, (id, *side));
        }
        self.takers.push(
            takers
                .into_iter()
                .map(|(it, local, _)| (it, local))
                .collect(),
        );
        self.found.push(Communicator {
            id,
            origin,
            parent,
            sides,
        });
        self.queue.push_back(id);
    }

    /// What the members were told is true, whatever we think.
    fn believe(&self, sides: &mut [Members], takers: &[(Index, Local, usize)]) {
        let told = |(process, local, side): &(Index, Local, usize)| {
            let process = self.processes.get(*process)?;
            if process.told.doubtful.contains(local) {
                return None;
            }
            let size = process.told.sizes.get(local);
            let rank = process.told.ranks.get(local);
            let number = |it: Option<&i64>| it.and_then(|it| usize::try_from(*it).ok());
            Some((*side, process.rank, number(size), number(rank)))
        };
        let all: Vec<_> = takers.iter().filter_map(told).collect();
        let contradicts = |members: &Members, rank: u32, size: Option<usize>, at: Option<usize>| {
            let wrong_size = size.zip(members.size).is_some_and(|(a, b)| a != b as usize);
            let found = at.and_then(|at| members.ranks.get(at).copied().flatten());
            let elsewhere = members.position(rank);
            wrong_size
                || found.is_some_and(|found| found != rank)
                || at.is_some() && elsewhere.is_some() && elsewhere != at
                || at.is_some_and(|at| members.size.is_some_and(|size| at >= size as usize))
        };
        for (side, members) in sides.iter_mut().enumerate() {
            let own = || all.iter().filter(|it| it.0 == side);
            if own().any(|it| contradicts(members, it.1, it.2, it.3)) {
                *members = Members::default();
            }
            for (_, rank, size, at) in own().copied() {
                let most = MOST_MEMBERS as usize;
                if let Some(size) = size.filter(|size| *size <= most)
                    && members.size.is_none()
                {
                    members.size = Some(size as u32);
                    members.ranks.resize(size.max(members.ranks.len()), None);
                }
                if let Some(at) = at.filter(|at| *at < most) {
                    if members.ranks.len() <= at {
                        members.ranks.resize(at + 1, None);
                    }
                    members.ranks[at] = Some(rank);
                }
            }
        }
    }

    /// The communicators that are made of this one.
    fn children(&mut self, id: CommunicatorId) {
        for step in 0.. {
            if !self.is_step(id, step) {
                break;
            }
            if !self.operation(id, step) {
                self.postponed.push((id, step));
            }
        }
    }

    /// Whether some process made a `step`-th call on it, and all that did the same one.
    fn is_step(&self, id: CommunicatorId, step: usize) -> bool {
        let mut kinds =
            self.takers_of(id, step)
                .into_iter()
                .map(|taker| match &taker.made.making {
                    // The array of some may not have been recorded.
                    Making::Slice(_) => std::mem::discriminant(&Making::Hidden),
                    making => std::mem::discriminant(making),
                });
        let Some(first) = kinds.next() else {
            return false;
        };
        kinds.all(|kind| kind == first)
    }

    fn takers_of(&self, id: CommunicatorId, step: usize) -> Vec<Taker<'a>> {
        let processes = self.processes;
        let Some(parent) = self.get(id) else {
            return Vec::new();
        };
        let known = id.0.checked_sub(self.first);
        let takers = known.and_then(|index| self.takers.get(index as usize));
        let find = |(process, local): &(Index, Local)| {
            let births = self.sequences.get(*process)?.get(local)?.as_ref()?;
            let birth = *births.get(step)?;
            let of = processes.get(*process)?;
            let made = of.made.get(birth.thread as usize)?;
            let side = self.places.get(*process)?.get(local)?.1;
            Some(Taker {
                process: *process,
                rank: of.rank,
                birth,
                made: made.get(birth.number as usize)?,
                side,
                position: parent.sides.get(side)?.position(of.rank),
            })
        };
        takers.into_iter().flatten().filter_map(find).collect()
    }

    /// One operation; false where it must wait for something that is not known yet.
    fn operation(&mut self, id: CommunicatorId, step: usize) -> bool {
        let mut takers = self.takers_of(id, step);
        let (Some(parent), Some(first)) = (self.get(id).cloned(), takers.first().copied()) else {
            return true;
        };
        // In the order of their rank in the parent.
        takers.sort_by_key(|it| (it.side, it.position, it.rank));
        let is_intra = parent.sides.len() == 1;
        let children = match &first.made.making {
            Making::Copy => vec![Child {
                origin: Origin::Copy,
                sides: parent.sides.clone(),
                takers: takers_in(&takers),
                grid: self.grids.get(&id).cloned(),
            }],
            Making::Split { .. } | Making::SplitType { .. } => self.split(&parent, &takers),
            Making::Create(_) if is_intra => match self.create(&takers) {
                Some(children) => children,
                None => return false,
            },
            Making::First {
                count,
                reorder,
                dims,
            } if is_intra => {
                let mut children = first_members(&parent.sides[0], *count, *reorder, &takers);
                children.iter_mut().for_each(|it| it.grid = dims.clone());
                children
            }
            Making::Slice(_) | Making::Hidden if is_intra => {
                let dims = self.grids.get(&id);
                dims.map_or(Vec::new(), |it| slices(&parent.sides[0], it, &takers))
            }
            Making::Merge { .. } if !is_intra => merge(&parent, &takers),
            Making::Bridge { .. } if is_intra => return self.bridge(id, &takers),
            _ => Vec::new(),
        };
        for child in children {
            if !child.takers.is_empty() {
                let next = CommunicatorId(self.first + self.found.len() as u32);
                self.grids.extend(child.grid.map(|it| (next, it)));
                self.add(child.origin, Some(id), child.sides, child.takers);
            }
        }
        true
    }

    /// One communicator for each colour.
    fn split(&self, parent: &Communicator, takers: &[Taker<'a>]) -> Vec<Child> {
        let mut parts: BTreeMap<(i64, &str), Vec<(i64, Taker<'a>)>> = BTreeMap::new();
        let mut origin = Origin::Split;
        for taker in takers {
            let (color, key) = match taker.made.making {
                Making::Split {
                    color: Some(color),
                    key,
                } => ((color, ""), key),
                // Open MPI and MPICH number it differently.
                Making::SplitType { by: 0 | 1, key } => {
                    origin = Origin::SplitType;
                    let process = self.processes.get(taker.process);
                    ((0, process.map_or("", |it| it.host.as_str())), key)
                }
                // What else they may share is not known here.
                Making::SplitType { by: 2.., .. } => return Vec::new(),
                _ => continue,
            };
            parts.entry(color).or_default().push((key, *taker));
        }
        let is_whole = is_whole(parent, takers);
        let mut children: Vec<Child> = parts
            .into_values()
            .map(|mut part| {
                part.sort_by_key(|(key, _)| *key);
                let part: Vec<Taker<'_>> = part.into_iter().map(|(_, taker)| taker).collect();
                let sides = (0..parent.sides.len()).map(|side| {
                    if !is_whole {
                        return Members::default();
                    }
                    let own = part.iter().filter(|it| it.side == side);
                    Members::of(own.map(|it| Some(it.rank)))
                });
                Child {
                    origin,
                    sides: sides.collect(),
                    takers: takers_in(&part),
                    grid: None,
                }
            })
            .collect();
        children.sort_by_key(|child| child.takers.iter().map(|it| it.0).min());
        children
    }

    /// One communicator for each group. `None` where some group is not known: it may be one of them.
    fn create(&self, takers: &[Taker<'a>]) -> Option<Vec<Child>> {
        let mut parts: Vec<(Vec<u32>, Vec<Taker<'a>>)> = Vec::new();
        for taker in takers {
            let Making::Create(group) = &taker.made.making else {
                continue;
            };
            let members = self.members(taker.process, group)?;
            if !members.contains(&taker.rank) {
                continue;
            }
            match parts.iter_mut().find(|part| part.0 == members) {
                Some(part) => part.1.push(*taker),
                None => parts.push((members, vec![*taker])),
            }
        }
        let children = parts.into_iter().map(|(members, takers)| Child {
            origin: Origin::Create,
            sides: vec![Members::of(members.into_iter().map(Some))],
            takers: takers_in(&takers),
            grid: None,
        });
        Some(children.collect())
    }

    /// One side of an intercommunicator; with the other one it is whole.
    fn bridge(&mut self, id: CommunicatorId, takers: &[Taker<'a>]) -> bool {
        let leader = takers.iter().find_map(|taker| match taker.made.making {
            Making::Bridge {
                leader,
                peer,
                remote,
                tag,
            } if taker.position.map(|it| it as i64) == Some(leader) => {
                Some((taker.process, peer, remote, tag))
            }
            _ => None,
        });
        let Some((leader, peer, remote, tag)) = leader else {
            return true;
        };
        let Some(&(through, side)) = self.places[leader].get(&peer) else {
            return false;
        };
        let Some(members) = self.get(id).map(|it| it.sides[0].clone()) else {
            return true;
        };
        let remote = self
            .get(through)
            .and_then(|through| through.world_rank(side, remote));
        let Some(remote) = remote else {
            return true;
        };
        let half = Half {
            parent: id,
            members,
            takers: takers.iter().map(|it| (it.process, it.birth)).collect(),
        };
        let own = self.processes[leader].rank;
        let counterpart = self
            .halves
            .get_mut(&(remote, own, through, tag))
            .and_then(VecDeque::pop_front);
        let Some(other) = counterpart else {
            let waiting = self.halves.entry((own, remote, through, tag));
            waiting.or_default().push_back(half);
            return true;
        };
        let (parent, sides) = (other.parent, vec![other.members, half.members]);
        let of = |takers: Vec<(Index, Birth)>, side| {
            takers
                .into_iter()
                .map(move |(process, birth)| (process, Local::Born(birth), side))
        };
        let takers = of(other.takers, 0).chain(of(half.takers, 1)).collect();
        self.add(Origin::Intercommunicator, Some(parent), sides, takers);
        true
    }

    /// `MPI_Comm_create_group`: the k-th call of every member with the same parent, group and tag.
    fn by_group_alone(&mut self) {
        let mut calls: BTreeMap<GroupCall, Vec<(Index, Local, usize)>> = BTreeMap::new();
        'process: for (index, process) in self.processes.iter().enumerate() {
            // In which order several threads made theirs is not known.
            if process.is_cut || process.made.iter().filter(|it| !it.is_empty()).count() > 1 {
                continue;
            }
            let mut counts: FxHashMap<(CommunicatorId, Vec<u32>, i64), u32> = FxHashMap::default();
            for (thread, made) in process.made.iter().enumerate() {
                for (number, made) in made.iter().enumerate() {
                    let Making::CreateGroup(group, tag) = &made.making else {
                        continue;
                    };
                    let parent = self.places[index].get(&made.parent);
                    let members = self.members(index, group);
                    let (Some((parent, _)), Some(members)) = (parent, members) else {
                        // It may be one of those that are counted.
                        continue 'process;
                    };
                    let count = counts.entry((*parent, members.clone(), *tag)).or_default();
                    let call = (*parent, members, *tag, *count);
                    *count += 1;
                    // Who comes late stays out: children of the communicator are known already.
                    if self.by_group.contains(&call) {
                        continue;
                    }
                    let local = Local::Born(Birth {
                        thread: thread as u32,
                        number: number as u32,
                    });
                    if made.given != Given::Nothing {
                        calls.entry(call).or_default().push((index, local, 0));
                    }
                }
            }
        }
        for (call, takers) in calls {
            let (parent, members, ..) = call.clone();
            self.by_group.insert(call);
            let members = Members::of(members.into_iter().map(Some));
            self.add(Origin::Create, Some(parent), vec![members], takers);
        }
    }

    /// The world ranks of a group, in order, as far as they are known now.
    fn members(&self, process: Index, group: &Group) -> Option<Vec<u32>> {
        group.members(&|comm: &Local, is_remote| self.side(process, *comm, is_remote))
    }

    fn side(&self, process: Index, comm: Local, is_remote: bool) -> Option<Vec<u32>> {
        let (id, side) = *self.places[process].get(&comm)?;
        let sides = &self.get(id)?.sides;
        let side = if is_remote { 1 - side } else { side };
        let members = sides.get(side)?;
        members.size?;
        members.ranks.iter().copied().collect()
    }
}

/// Those that got a communicator, as far as was seen.
fn takers_in(all: &[Taker<'_>]) -> Vec<(Index, Local, usize)> {
    all.iter()
        .filter(|it| it.made.given != Given::Nothing)
        .map(|it| (it.process, Local::Born(it.birth), it.side))
        .collect()
}

/// Whether every member of the parent is among them.
fn is_whole(parent: &Communicator, takers: &[Taker<'_>]) -> bool {
    let sides = &parent.sides;
    let members: usize = sides.iter().map(|side| side.ranks.len()).sum();
    let present = takers.iter().filter(|it| it.position.is_some()).count();
    members == present && sides.iter().all(|side| side.size.is_some())
}

/// A communicator of the first members of its parent.
fn first_members(
    parent: &Members,
    count: Option<i64>,
    reorder: bool,
    takers: &[Taker<'_>],
) -> Vec<Child> {
    let count = count.or(parent.size.map(i64::from));
    let count = count.and_then(|it| usize::try_from(it).ok());
    let Some(first) = count.and_then(|count| parent.ranks.get(..count)) else {
        return Vec::new();
    };
    let mut members = Members::of(first.iter().copied());
    if reorder {
        members.ranks.fill(None);
    }
    let is_inside = |it: &&Taker<'_>| match it.position {
        Some(position) => position < first.len(),
        None => it.made.given == Given::Handle,
    };
    let inside: Vec<Taker<'_>> = takers.iter().filter(is_inside).copied().collect();
    vec![Child {
        origin: Origin::Topology,
        sides: vec![members],
        takers: takers_in(&inside),
        grid: None,
    }]
}

/// One communicator for each place in those dimensions of a grid that do not remain.
fn slices(parent: &Members, dims: &[i64], takers: &[Taker<'_>]) -> Vec<Child> {
    let mut told = takers.iter().filter_map(|it| match &it.made.making {
        Making::Slice(remain) => Some(remain),
        _ => None,
    });
    let Some(remain) = told.next() else {
        return Vec::new();
    };
    let places = dims.iter().try_fold(1i64, |all, it| all.checked_mul(*it));
    if remain.len() != dims.len()
        || places != i64::try_from(parent.ranks.len()).ok()
        || !told.all(|it| it == remain)
    {
        return Vec::new();
    }
    // The last dimension is the one in which neighbouring ranks differ.
    let place = |mut rank: i64| {
        let mut place = 0;
        for (size, remains) in dims.iter().zip(remain.iter()).rev() {
            if !remains {
                place = place * size + rank % size;
            }
            rank /= size;
        }
        place
    };
    let mut parts: BTreeMap<i64, (Vec<Option<u32>>, Vec<Taker<'_>>)> = BTreeMap::new();
    for (rank, world) in (0..).zip(&parent.ranks) {
        parts.entry(place(rank)).or_default().0.push(*world);
    }
    for taker in takers {
        let position = taker.position.and_then(|it| i64::try_from(it).ok());
        if let Some(part) = position.and_then(|it| parts.get_mut(&place(it))) {
            part.1.push(*taker);
        }
    }
    let left = dims.iter().zip(remain.iter()).filter(|it| *it.1);
    let left: Arc<[i64]> = left.map(|it| *it.0).collect();
    let mut children: Vec<Child> = parts
        .into_values()
        .map(|(ranks, takers)| Child {
            origin: Origin::Topology,
            sides: vec![Members::of(ranks)],
            takers: takers_in(&takers),
            grid: Some(Arc::clone(&left)),
        })
        .collect();
    children.sort_by_key(|child| child.takers.iter().map(|it| it.0).min());
    children
}

/// A communicator of both sides.
fn merge(parent: &Communicator, takers: &[Taker<'_>]) -> Vec<Child> {
    let [one, other] = parent.sides.as_slice() else {
        return Vec::new();
    };
    let is_high = |side: usize| {
        let mut all = takers.iter().filter(|it| it.side == side);
        let first = &all.next()?.made.making;
        all.all(|it| it.made.making == *first)
            .then_some(*first == Making::Merge { high: true })
    };
    let members = match (is_high(0), is_high(1)) {
        (Some(false), Some(true)) => one.followed_by(other),
        (Some(true), Some(false)) => other.followed_by(one),
        // The library chose the order.
        _ => {
            let mut both = one.followed_by(other);
            both.ranks.fill(None);
            both
        }
    };
    let takers = takers_in(takers).into_iter();
    vec![Child {
        origin: Origin::Merge,
        sides: vec![members],
        takers: takers
            .map(|(process, local, _)| (process, local, 0))
            .collect(),
        grid: None,
    }]
}
