//! Which functions do what they do by timing, and not by what they compute.
//!
//! Who takes the next piece of work, who finds a lock taken, how often somebody asks before an answer is there: a healthy run
//! differs from the next one in these. A function that *waits* calls something of the kind itself, or through a function that does little
//! else (`take()` around a mutex, `poll()` around `MPI_Testall`).

use super::steps;
use crate::calls::{called, frames, function, tree_calls};
use crate::naming::Named;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_trace::threads::{Does, Tasks};
use rustc_hash::{FxHashMap, FxHashSet};

/// Events of a call that may be a mere question, at the most.
const QUESTION: u64 = 64;

fn begins_region(named: &Named) -> bool {
    matches!(named.meaning.does, Does::Region { .. })
}

/// For each function of a forest what its name says.
struct Kinds(Vec<Named>);

impl Kinds {
    fn of(forest: &Forest) -> Self {
        let functions = forest.functions().iter().zip(forest.meanings());
        let named = functions.map(|(it, meaning)| Named::of(&it.name, *meaning));
        Self(named.collect())
    }

    fn is(&self, function: FunctionKey, kind: impl Fn(&Named) -> bool) -> bool {
        self.0.get(function.0 as usize).is_some_and(kind)
    }

    /// The functions of a kind.
    fn all(&self, kind: impl Fn(&Named) -> bool) -> FxHashSet<FunctionKey> {
        let each = (0..self.0.len() as u32).map(FunctionKey);
        each.filter(|it| self.is(*it, &kind)).collect()
    }
}

/// What the functions of some trees do by timing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timing {
    /// Functions after whose calls it is a matter of timing what their callers do.
    timed: FxHashSet<FunctionKey>,
    /// Functions that are called or not by timing alone.
    pauses: FxHashSet<FunctionKey>,
    /// Those of them in which it is timing what they do.
    makes_room: FxHashSet<FunctionKey>,
    /// Functions that are called by nobody but those and what is asked again after them, these included: how often is timing.
    asked: FxHashSet<FunctionKey>,
    /// Functions in which tasks are run: which ones is a matter of timing, but what their callers do is not.
    runs_tasks: FxHashSet<FunctionKey>,
    /// Functions that are run as tasks.
    tasks: FxHashSet<FunctionKey>,
    /// Functions that are run as regions, by all threads of a team.
    regions: FxHashSet<FunctionKey>,
    /// Functions that give a thread its next piece of work.
    takes_work: FxHashSet<FunctionKey>,
    /// Functions that wait.
    pub(crate) waits: FxHashSet<FunctionKey>,
    /// Those of them that do so only through a small function: the order of their calls is more than a matter of timing.
    pub(crate) through: FxHashSet<FunctionKey>,
}

impl Timing {
    /// From the trees below these roots. O(nodes).
    pub(crate) fn of(forest: &Forest, roots: &[NodeId]) -> Self {
        let kinds = Kinds::of(forest);
        let is_timing = |it: FunctionKey| kinds.is(it, Named::is_timing);
        if !(0..kinds.0.len() as u32).any(|it| is_timing(FunctionKey(it))) {
            return Self::default();
        }
        let callees = callees(forest, roots);
        let calls = |function: &FunctionKey, of: &dyn Fn(FunctionKey) -> bool| {
            callees[function].iter().any(|callee| of(*callee))
        };
        let direct: FxHashSet<FunctionKey> = (callees.keys().copied())
            .filter(|function| is_timing(*function) || calls(function, &is_timing))
            .collect();
        // It does little else: what it calls calls nothing.
        let is_leaf = |function: FunctionKey| callees.get(&function).is_none_or(|it| it.is_empty());
        let is_small = |function: FunctionKey| {
            direct.contains(&function)
                && !is_timing(function)
                && callees[&function].iter().all(|callee| is_leaf(*callee))
        };
        // What begins a region calls its body, whatever that waits for: which one it is, the program says.
        let begins = kinds.all(begins_region);
        let is_through =
            |function: &FunctionKey| !begins.contains(function) && calls(function, &is_small);
        let mut waits: FxHashSet<FunctionKey> = (callees.keys().copied())
            .filter(|function| direct.contains(function) || is_through(function))
            .filter(|function| !is_leaf(*function))
            .collect();
        let through = waits.difference(&direct).copied().collect();
        let mut runs_tasks = kinds.all(|it| it.meaning.runs_tasks());
        let (tasks, regions) = outlined(forest, roots, &callees, &runs_tasks, &kinds);
        if tasks.is_empty() {
            runs_tasks.clear();
        } else {
            runs_tasks.extend(kinds.all(|it| it.meaning.ends_with_barrier()));
            waits.extend(&runs_tasks);
        }
        let makes_room = kinds.all(Named::makes_room);
        let mut pauses = kinds.all(|it| it.meaning.is_pause());
        pauses.extend(&makes_room);
        let questions = questions(forest, roots, &callees, &pauses);
        // Which way a question takes, and whether it is asked once more, is no more than what it asks about.
        waits.extend(questions.iter().filter(|it| !is_leaf(**it)));
        Self {
            waits,
            through,
            timed: direct.into_iter().filter(|it| is_timing(*it)).collect(),
            asked: only_below(&callees, &at_roots(forest, roots), questions.union(&pauses)),
            pauses,
            makes_room,
            runs_tasks,
            tasks,
            regions,
            takes_work: kinds.all(|it| it.meaning.takes_work()),
        }
    }

    /// Whether a function may make this call or not, as it happens.
    /// Without a caller it stands at the root of a trace.
    pub(crate) fn passes(&self, caller: Option<FunctionKey>, callee: FunctionKey) -> bool {
        let runs_tasks = || caller.is_none_or(|it| self.runs_tasks.contains(&it));
        self.pauses.contains(&callee) || (self.tasks.contains(&callee) && runs_tasks())
    }

    /// Whether a node is a call that is there or not by timing alone, and with it all that is below.
    pub(crate) fn is_pause(&self, forest: &Forest, node: NodeId) -> bool {
        function(forest, node).is_some_and(|it| self.pauses.contains(&it))
    }

    /// Whether a call gives a thread its next piece of work, or says that there is none: a matter of who came first, for the first
    /// piece (`GOMP_loop_dynamic_start`) as for any other (`GOMP_loop_dynamic_next`).
    pub(crate) fn takes_work(&self, call: Option<FunctionKey>) -> bool {
        call.is_some_and(|it| self.takes_work.contains(&it))
    }

    /// Whether how often this call is made is no matter of timing in itself.
    pub(crate) fn is_work(&self, caller: Option<FunctionKey>, callee: FunctionKey) -> bool {
        let is_asked = |it: FunctionKey| self.asked.contains(&it);
        !self.timed.contains(&callee) && !is_asked(callee) && !caller.is_some_and(is_asked)
    }

    /// Whether a call asks for something that may not be there yet.
    pub(crate) fn is_question(&self, call: Option<FunctionKey>) -> bool {
        call.is_some_and(|it| self.timed.contains(&it) || self.asked.contains(&it))
    }

    /// Whether it is a matter of timing what a function does, whatever that is.
    pub(crate) fn is_free(&self, function: FunctionKey) -> bool {
        self.makes_room.contains(&function)
    }

    /// Whether it is a matter of timing what who makes this call does.
    pub(crate) fn is_timed(&self, function: FunctionKey) -> bool {
        self.timed.contains(&function)
    }

    /// Whether this is the root of a thread of a team that runs tasks: it does so between regions and behind the last one, too.
    pub(crate) fn is_team(&self, forest: &Forest, root: NodeId) -> bool {
        let is_own = |it| self.tasks.contains(&it) || self.regions.contains(&it);
        !self.tasks.is_empty()
            && forest.node(root).label == Label::Trace
            && called(forest, root).into_iter().any(is_own)
    }

    /// Whether a trace has a share in the work of a team, which may be any from nothing to all of it: it runs tasks, or takes pieces of loops.
    pub(crate) fn shares_work(&self, forest: &Forest, root: NodeId) -> bool {
        if self.tasks.is_empty() && self.takes_work.is_empty() {
            return false;
        }
        let is_share = |it: FunctionKey| {
            self.tasks.contains(&it)
                || self.takes_work.contains(&it)
                || self.runs_tasks.contains(&it)
        };
        self.is_team(forest, root)
            || (forest.occurrences(&[root]).into_iter())
                .any(|(id, _)| function(forest, id).is_some_and(is_share))
    }
}

/// Functions that somebody calls between a pause and the next one, and nothing else there: short ones, that tell whether something is ready.
fn questions(
    forest: &Forest,
    roots: &[NodeId],
    callees: &FxHashMap<FunctionKey, FxHashSet<FunctionKey>>,
    pauses: &FxHashSet<FunctionKey>,
) -> FxHashSet<FunctionKey> {
    // For each function the fewest calls between two pauses.
    let mut between: FxHashMap<Option<FunctionKey>, Vec<FunctionKey>> = FxHashMap::default();
    for (id, around, _) in frames(forest, forest.occurrences(roots)) {
        let pauses_in = match around {
            Some(function) => callees[&function].iter().any(|it| pauses.contains(it)),
            None => called(forest, id).iter().any(|it| pauses.contains(it)),
        };
        if !pauses_in {
            continue;
        }
        // The calls since the last pause, as long as they are short.
        let mut since: Option<Vec<FunctionKey>> = None;
        for (function, call) in steps::calls(forest, id) {
            if pauses.contains(&function) {
                if let Some(found) = since.replace(Vec::new()).filter(|it| !it.is_empty()) {
                    let shortest = between.entry(around).or_insert_with(|| found.clone());
                    if found.len() < shortest.len() {
                        *shortest = found;
                    }
                }
            } else if forest.node(call).events > QUESTION {
                since = None;
            } else if let Some(since) = &mut since {
                since.push(function);
            }
        }
    }
    between.into_values().flatten().collect()
}

/// These functions, and those that nobody else calls.
fn only_below<'a>(
    callees: &FxHashMap<FunctionKey, FxHashSet<FunctionKey>>,
    at_roots: &FxHashSet<FunctionKey>,
    these: impl Iterator<Item = &'a FunctionKey>,
) -> FxHashSet<FunctionKey> {
    let mut callers: FxHashMap<FunctionKey, u32> = at_roots.iter().map(|it| (*it, 1)).collect();
    for callee in callees.values().flatten() {
        *callers.entry(*callee).or_default() += 1;
    }
    let mut found: FxHashSet<FunctionKey> = these.copied().collect();
    let mut open: Vec<FunctionKey> = found.iter().copied().collect();
    while let Some(caller) = open.pop() {
        for callee in callees.get(&caller).into_iter().flatten() {
            let left = callers.entry(*callee).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 && found.insert(*callee) {
                open.push(*callee);
            }
        }
    }
    found
}

/// The functions that are run as tasks, and as regions. What a team runs behind the body of its region is a task; so is, where tasks are
/// made, what stands at the root of a thread and is the body of no region.
fn outlined(
    forest: &Forest,
    roots: &[NodeId],
    callees: &FxHashMap<FunctionKey, FxHashSet<FunctionKey>>,
    runs_tasks: &FxHashSet<FunctionKey>,
    kinds: &Kinds,
) -> (FxHashSet<FunctionKey>, FxHashSet<FunctionKey>) {
    let of = |function| callees.get(function).into_iter().flatten().copied();
    let mut tasks: FxHashSet<FunctionKey> = runs_tasks.iter().flat_map(of).collect();
    let begins = kinds.all(begins_region);
    let mut regions: FxHashSet<FunctionKey> = FxHashSet::default();
    for (id, _) in forest.occurrences(roots) {
        if function(forest, id).is_some_and(|it| begins.contains(&it)) {
            regions.extend(called(forest, id).first());
        }
    }
    let makes = kinds.all(|it| it.meaning.does == Does::Task(Tasks::Make));
    if makes.iter().any(|it| callees.contains_key(it)) {
        let outlined = kinds.all(|it| it.is_outlined);
        let behind = begins.iter().flat_map(of);
        let is_task = |it: &FunctionKey| outlined.contains(it) && !regions.contains(it);
        tasks.extend(behind.chain(at_roots(forest, roots)).filter(is_task));
    }
    (tasks, regions)
}

/// The functions that are called at the roots of traces.
fn at_roots(forest: &Forest, roots: &[NodeId]) -> FxHashSet<FunctionKey> {
    let roots: FxHashSet<NodeId> = roots.iter().copied().collect();
    roots
        .into_iter()
        .flat_map(|root| called(forest, root))
        .collect()
}

/// What each function calls itself.
fn callees(forest: &Forest, roots: &[NodeId]) -> FxHashMap<FunctionKey, FxHashSet<FunctionKey>> {
    let mut found: FxHashMap<FunctionKey, FxHashSet<FunctionKey>> = FxHashMap::default();
    for (caller, callee) in tree_calls(forest, roots) {
        found.entry(callee).or_default();
        if let Some(caller) = caller {
            found.entry(caller).or_default().insert(callee);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::naming::is_timing;

    #[test]
    fn what_waits_or_asks_is_known_by_its_name() {
        let is_timing = |name: &&str| is_timing(name);
        let timing = [
            "__pthread_mutex_lock",
            "pthread_mutex_trylock",
            "pthread_cond_timedwait",
            "pthread_rwlock_tryrdlock",
            "sem_timedwait",
            "clock_nanosleep",
            "epoll_pwait2",
            "std::this_thread::yield()",
            "std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(std::chrono::duration<long> const&)",
            "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            "GOMP_critical_name_start",
            "GOMP_loop_nonmonotonic_dynamic_next",
            "GOMP_loop_ull_guided_start",
            "GOMP_taskwait",
            "__kmpc_dispatch_next_4",
            "MPI_Probe",
            "MPI_Mprobe",
            "MPI_Iprobe",
            "MPI_Improbe",
            "mpi_probe_",
            "mpi_testall_",
            "MPI_Waitany",
            "std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release_last_use_cold()",
            "std::__shared_ptr<State, (__gnu_cxx::_Lock_policy)2>::unique() const",
            "std::__shared_count<(__gnu_cxx::_Lock_policy)2>::_M_get_use_count() const",
            "std::__future_base::_State_baseV2::_M_break_promise(std::unique_ptr<Result>)",
            "std::_Sp_counted_ptr_inplace<Work, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>::_M_dispose()",
        ];
        let missed: Vec<&str> = timing.into_iter().filter(|it| !is_timing(it)).collect();
        assert!(missed.is_empty(), "{missed:?}");
        let others = [
            "pthread_create",
            "GOMP_loop_static_next",
            "GOMP_parallel",
            "MPI_Wait",
            "MPI_Waitall",
            "MPI_Recv",
            "probe",
            "my_sleep",
        ];
        let taken: Vec<&str> = others.into_iter().filter(is_timing).collect();
        assert!(taken.is_empty(), "{taken:?}");
    }
}
