//! The forest: many traces, one set of nodes.

use crate::build::Builder;
use crate::function::{Function, FunctionKey, Functions};
use crate::node::{Item, Label, NO_SHAPE, Node, NodeId, Nodes, Shape, Shapes, own};
use lockstep_loops::{Bodies, BodyId, Key, Names};
use lockstep_trace::threads::Meaning;
use lockstep_trace::{FunctionId, Process, Run, Thread, TraceName, in_short, mpi};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

/// Call trees of many traces of one or several runs, with everything equal stored once.
#[derive(Debug, Clone, Default)]
pub struct Forest {
    pub(crate) functions: Arc<Functions>,
    pub(crate) nodes: Nodes,
    pub(crate) shapes: Shapes,
    /// Loop bodies over shapes.
    pub(crate) bodies: Bodies,
    pub(crate) bounds: Option<Bounds>,
}

/// How many trees are built before they are brought together.
const BATCH: usize = 64;
/// Nodes and items of all trees together where they are bounded: up to 150 bytes each, and half as much while they are built.
const MOST: usize = 5 << 19;

/// How many nodes and items there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// In each tree that is added.
    each: usize,
    /// In all of them, and in those that are built at the same time.
    most: usize,
    /// Whether more are taken all the same: there is no smaller tree to be had.
    last: bool,
}

/// The functions of one run in a forest.
#[derive(Debug, Clone)]
pub struct FunctionMap {
    keys: Vec<FunctionKey>,
    unknown: FunctionKey,
}

/// A trace and its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Its name.
    pub name: TraceName,
    /// Its tree.
    pub root: NodeId,
    /// Events that are not in the tree, as it would be too large ([`Forest::bounded`]): the tree has the first ones, and of the
    /// calls that began later those that never returned.
    pub left_out: u64,
}

/// What is left out of some trees, in a sentence.
#[must_use]
pub fn left_out<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Option<String> {
    let (mut names, mut events) = (Vec::new(), 0u64);
    for trace in traces.into_iter().filter(|trace| trace.left_out > 0) {
        names.push(trace.name);
        events = events.saturating_add(trace.left_out);
    }
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "{events} events of {} are left out, as the call trees would be too large: of each trace as many first events are there, and the calls that never returned; those are numbered without what lies between",
            in_short(&names)
        )
    })
}

/// Threads of which no two are equal, as far as keys tell, and for each thread which of them it is like.
pub(crate) fn distinct<'a, K: Hash + Eq + Send>(
    threads: &[&'a Thread],
    key: impl Fn(&Thread) -> Option<K> + Sync,
) -> (Vec<&'a Thread>, Vec<usize>) {
    let keys: Vec<Option<K>> = threads.par_iter().map(|thread| key(thread)).collect();
    let mut known: FxHashMap<K, usize> = FxHashMap::default();
    let mut firsts = Vec::new();
    let like = threads.iter().zip(keys).map(|(thread, key)| {
        let mut add = || {
            firsts.push(*thread);
            firsts.len() - 1
        };
        match key {
            Some(key) => *known.entry(key).or_insert_with(add),
            None => add(),
        }
    });
    let like = like.collect();
    (firsts, like)
}

impl FunctionMap {
    /// The function of the forest for one of the run.
    #[must_use]
    pub fn key(&self, id: FunctionId) -> FunctionKey {
        self.keys
            .get(id.0 as usize)
            .copied()
            .unwrap_or(self.unknown)
    }

    /// The function of the run for one of the forest, if the run has it.
    #[must_use]
    pub fn id(&self, key: FunctionKey) -> Option<FunctionId> {
        self.ids(key).next()
    }

    /// All functions of the run that are this one of the forest: several where clones go by one name.
    pub fn ids(&self, key: FunctionKey) -> impl Iterator<Item = FunctionId> {
        let each = self.keys.iter().zip(0..);
        each.filter(move |(other, _)| **other == key)
            .map(|(_, index)| FunctionId(index))
    }
}

impl Forest {
    /// A forest without trees.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the functions of a run. Where all its processes run one program, that program's own
    /// functions belong to the image "", so that a build under another name has the same.
    pub fn add_functions(&mut self, run: &Run) -> FunctionMap {
        self.add_functions_of(run, |process| run.is_visible(process), |_| None)
    }

    /// The same where not all processes are looked at, and where functions go by another name (and linkage name).
    pub fn add_functions_of(
        &mut self,
        run: &Run,
        is_looked_at: impl Fn(&Process) -> bool,
        known_as: impl Fn(&lockstep_trace::Function) -> Option<(String, String)>,
    ) -> FunctionMap {
        let programs: BTreeSet<&OsStr> = run
            .processes
            .iter()
            .filter(|process| is_looked_at(process))
            .filter_map(|process| Path::new(&process.program).file_name())
            .collect();
        let program = match programs.into_iter().collect::<Vec<_>>().as_slice() {
            [program] => program.to_str(),
            _ => None,
        };
        let known = Arc::make_mut(&mut self.functions);
        let mut intern = |function: Function| known.intern(function);
        let keys = run
            .functions
            .iter()
            .map(|function| {
                let own = !function.imported && Some(function.image.as_str()) == program;
                let as_it_is = || (function.name.clone(), function.linkage.clone());
                let (name, linkage) = known_as(function).unwrap_or_else(as_it_is);
                intern(Function {
                    name,
                    linkage,
                    image: if own {
                        String::new()
                    } else {
                        function.image.clone()
                    },
                    imported: function.imported,
                })
            })
            .collect();
        let unknown = intern(Function {
            name: "?".to_owned(),
            linkage: "?".to_owned(),
            image: "?".to_owned(),
            imported: false,
        });
        FunctionMap { keys, unknown }
    }

    /// Adds a function, or finds the one of that identity.
    pub fn add_function(&mut self, function: Function) -> FunctionKey {
        Arc::make_mut(&mut self.functions).intern(function)
    }

    /// Adds trees so that all of them together take a bounded memory. `add` is called with an empty forest of the functions that
    /// are there; where all trees together are too large, again with less room for each of the `traces` traces. So traces that
    /// begin alike are cut at the same event, whichever of the runs they are of.
    ///
    /// *Costs*: two or three times as much as without bounds where the trees are too large, nothing elsewhere.
    pub fn bounded<T>(&mut self, traces: usize, add: impl FnMut(&mut Self) -> T) -> T {
        self.bounded_by(MOST, traces, add)
    }

    pub(crate) fn bounded_by<T>(
        &mut self,
        most: usize,
        traces: usize,
        mut add: impl FnMut(&mut Self) -> T,
    ) -> T {
        let least = most / traces.clamp(1, most);
        let mut each = most;
        loop {
            let last = each == least;
            let mut attempt = Self {
                functions: self.functions.clone(),
                bounds: Some(Bounds { each, most, last }),
                ..Self::default()
            };
            let added = add(&mut attempt);
            if !attempt.is_full() {
                *self = attempt;
                return added;
            }
            each = (each / 4).max(least);
        }
    }

    /// Whether there are more trees than there may be.
    fn is_full(&self) -> bool {
        self.bounds
            .is_some_and(|bounds| !bounds.last && self.nodes.size() > bounds.most)
    }

    /// How many nodes and items a tree may have.
    pub(crate) fn room(&self) -> usize {
        match self.bounds {
            None => usize::MAX,
            Some(_) if self.is_full() => 0,
            Some(bounds) => bounds.each,
        }
    }

    /// How many nodes and items trees may have that are there already, of a sealed run: all of each or none.
    pub(crate) fn room_for_sealed(&self) -> usize {
        match self.bounds {
            None => usize::MAX,
            Some(bounds) if bounds.each < bounds.most => 0,
            Some(bounds) => bounds.most.saturating_sub(self.nodes.size()),
        }
    }

    /// Adds the tree of one trace.
    pub fn add_trace(&mut self, functions: &FunctionMap, thread: &Thread) -> Trace {
        self.add_one(functions, thread, false)
    }

    /// The same; a tree that becomes too large may be given up.
    fn add_one(&mut self, functions: &FunctionMap, thread: &Thread, give_up: bool) -> Trace {
        let told = thread.sealed_tree();
        let root = match told.and_then(|it| self.add_sealed(functions, &[it])) {
            Some(roots) => roots.first().copied(),
            None => None,
        };
        let (root, left_out) = match root {
            Some(root) => (root, 0),
            None => {
                let mut builder = Builder::new(self);
                builder.events(&mut thread.events(), functions, give_up);
                let left_out = builder.left_out();
                (builder.finish(), left_out)
            }
        };
        Trace {
            name: thread.name,
            root,
            left_out,
        }
    }

    /// Adds the trees of the traces that commands look at ([`Run::traces`]), in their order.
    pub fn add_run(&mut self, run: &Run) -> Vec<Trace> {
        let functions = self.add_functions(run);
        self.add_traces(&functions, &run.traces().collect::<Vec<_>>())
    }

    /// Adds the trees of several traces, in their order. They are built on all processors and then
    /// brought together, which costs what is distinct in each.
    pub fn add_traces(&mut self, functions: &FunctionMap, threads: &[&Thread]) -> Vec<Trace> {
        let told: Option<Vec<_>> = threads.iter().map(|it| it.sealed_tree()).collect();
        if let Some(roots) = told.and_then(|told| self.add_sealed(functions, &told)) {
            let named = threads.iter().zip(roots);
            return named
                .map(|(thread, root)| Trace {
                    name: thread.name,
                    root,
                    left_out: 0,
                })
                .collect();
        }
        // What is decoded from the same has the same tree.
        let (firsts, of) = distinct(threads, Thread::content);
        let trees = self.add_distinct(functions, &firsts);
        let named = threads.iter().zip(of);
        named
            .map(|(thread, index)| Trace {
                name: thread.name,
                ..trees[index]
            })
            .collect()
    }

    /// Adds the trees of traces that are not equal, mostly.
    fn add_distinct(&mut self, functions: &FunctionMap, threads: &[&Thread]) -> Vec<Trace> {
        let mut trees = Vec::with_capacity(threads.len());
        for batch in threads.chunks(BATCH) {
            let known = self.functions.clone();
            let bounds = self.bounds;
            let alone = |thread: &Thread, each: usize, give_up: bool| {
                let mut forest = Self {
                    functions: known.clone(),
                    bounds: bounds.map(|bounds| Bounds { each, ..bounds }),
                    ..Self::default()
                };
                let trace = forest.add_one(functions, thread, give_up);
                (forest, trace)
            };
            // All of a batch are there at the same time: trees that are larger than their share are built alone.
            let most = bounds.map_or(usize::MAX, |bounds| bounds.most);
            let share = self.room().min(most / batch.len());
            let gives_up = share < self.room();
            let built: Vec<(Self, Trace)> = batch
                .par_iter()
                .map(|thread| alone(thread, share, gives_up))
                .collect();
            for ((mut forest, mut trace), thread) in built.into_iter().zip(batch) {
                if self.is_full() {
                    break;
                }
                if trace.left_out > 0 && gives_up {
                    drop(forest);
                    (forest, trace) = alone(thread, self.room(), false);
                }
                let root = self.absorb(&forest, trace.root);
                trees.push(Trace { root, ..trace });
            }
            if self.is_full() {
                break;
            }
        }
        // Where there are too many, nobody looks at any of them.
        for thread in &threads[trees.len()..] {
            trees.push(Trace {
                name: thread.name,
                root: Builder::new(self).finish(),
                left_out: thread.events,
            });
        }
        trees
    }

    /// A node of these children, which are ours.
    pub(crate) fn add_node(&mut self, label: Label, is_loop: bool, items: &[Item]) -> NodeId {
        let elements = match items.first() {
            Some(first) if is_loop => self.nodes.elements(first),
            _ => items,
        };
        let keys: Vec<Key> = elements.iter().map(|it| self.nodes.key(it.node)).collect();
        if is_loop {
            let body = self.bodies.intern(&keys);
            return self
                .nodes
                .intern(Label::Loop(body), own::LOOP, items, NO_SHAPE);
        }
        match label {
            Label::Iteration => self.nodes.intern(label, own::ITERATION, items, NO_SHAPE),
            label => self.close(label, items, &keys),
        }
    }

    /// Adds a tree of another forest with the same functions.
    pub(crate) fn absorb(&mut self, other: &Self, root: NodeId) -> NodeId {
        let mut ours: Vec<NodeId> = Vec::with_capacity(other.len());
        let mut items = Vec::new();
        let mut keys = Vec::new();
        // Children come before their parents.
        for index in 0..=root.0 {
            let node = other.node(NodeId(index));
            items.clear();
            items.extend(node.items.iter().map(|item| Item {
                node: ours[item.node.0 as usize],
                ..*item
            }));
            keys.clear();
            let elements = match (node.label, items.first()) {
                (Label::Loop(_), Some(first)) => self.nodes.elements(first),
                _ => &items,
            };
            keys.extend(elements.iter().map(|item| self.nodes.key(item.node)));
            ours.push(match node.label {
                Label::Loop(_) => {
                    let body = self.bodies.intern(&keys);
                    self.nodes
                        .intern(Label::Loop(body), own::LOOP, &items, NO_SHAPE)
                }
                Label::Iteration => {
                    let label = Label::Iteration;
                    self.nodes.intern(label, own::ITERATION, &items, NO_SHAPE)
                }
                label => self.close(label, &items, &keys),
            });
        }
        ours[root.0 as usize]
    }

    /// Every function of every run that was added.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.functions.list()
    }

    /// A function.
    ///
    /// # Panics
    /// If `key` is of another forest.
    #[must_use]
    pub fn function(&self, key: FunctionKey) -> &Function {
        &self.functions.list()[key.0 as usize]
    }

    /// What each function does to other threads and processes, by its name: looked up once.
    #[must_use]
    pub fn meanings(&self) -> &[Meaning] {
        self.functions.meanings()
    }

    /// That of a function.
    ///
    /// # Panics
    /// If `key` is of another forest.
    #[must_use]
    pub fn meaning(&self, key: FunctionKey) -> Meaning {
        self.meanings()[key.0 as usize]
    }

    /// What a function does in MPI, by its name: looked up once.
    ///
    /// # Panics
    /// If `key` is of another forest.
    #[must_use]
    pub fn of_mpi(&self, key: FunctionKey) -> mpi::Meaning {
        self.functions.of_mpi()[key.0 as usize]
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A node.
    ///
    /// # Panics
    /// If `id` is of another forest.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Node<'_> {
        self.nodes.get(id)
    }

    /// The content address of a node: equal for equal behaviour, in whatever forest.
    #[must_use]
    pub fn hash(&self, id: NodeId) -> u128 {
        self.nodes.hash(id)
    }

    /// The loop bodies. Their symbols are shapes, without meaning outside.
    #[must_use]
    pub fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// Whether two calls, loops or traces are equal but for trip counts.
    #[must_use]
    pub fn same_shape(&self, a: NodeId, b: NodeId) -> bool {
        if a == b {
            return true;
        }
        match (self.nodes.label(a), self.nodes.label(b)) {
            (Label::Loop(a), Label::Loop(b)) => a == b,
            (Label::Call(_) | Label::Trace, Label::Call(_) | Label::Trace) => {
                self.nodes.shape(a) == self.nodes.shape(b)
            }
            (Label::Iteration, Label::Iteration) => {
                let (a, b) = (self.nodes.items(a), self.nodes.items(b));
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| self.same_shape(a.node, b.node))
            }
            _ => false,
        }
    }

    /// The content address of a loop body of a finished tree: equal for equal bodies, in whatever
    /// forest.
    #[must_use]
    pub fn body_hash(&self, body: BodyId) -> u128 {
        self.shapes.body_hash(body).unwrap_or_default()
    }

    /// What a node looks like without its trip counts.
    #[must_use]
    pub fn shape(&self, id: NodeId) -> Shape {
        const LOOP: u64 = 1 << 32;
        Shape(match self.nodes.label(id) {
            Label::Loop(body) => LOOP | u64::from(body.0),
            _ => self.nodes.shape(id).0.into(),
        })
    }

    /// Names the loops of a tree that have no name yet, in the order in which they begin, those within
    /// a loop before it. Name the trees of all traces in order (normal runs first, rank, thread).
    pub fn name_loops(&self, root: NodeId, names: &mut Names) {
        enum Step {
            Enter(NodeId),
            Name(NodeId),
        }
        let mut seen = HashSet::new();
        let mut steps = vec![Step::Enter(root)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(id) => {
                    if !seen.insert(id) {
                        continue;
                    }
                    let node = self.node(id);
                    if let Label::Loop(_) = node.label {
                        steps.push(Step::Name(id));
                    }
                    steps.extend(node.items.iter().rev().map(|item| Step::Enter(item.node)));
                }
                Step::Name(id) => {
                    if let Label::Loop(body) = self.nodes.label(id) {
                        names.add(body, &self.bodies);
                    }
                }
            }
        }
    }

    /// The node of a finished call or trace.
    pub(crate) fn close(&mut self, label: Label, items: &[Item], keys: &[Key]) -> NodeId {
        let (node, shape) = match label {
            Label::Call(call) => (
                own::call(&self.functions, call),
                own::call(
                    &self.functions,
                    crate::node::Call {
                        tail: false,
                        ..call
                    },
                ),
            ),
            Label::Return => (own::RETURN, own::RETURN),
            _ => (own::TRACE, own::TRACE),
        };
        let shape = self.shapes.intern(shape, keys, &self.bodies);
        self.nodes.intern(label, node, items, shape)
    }
}
