//! The forest: many traces, one set of nodes.

use crate::build::Builder;
use crate::function::{Function, FunctionKey, Functions};
use crate::node::{Item, Label, NO_SHAPE, Node, NodeId, Nodes, Shape, Shapes, own};
use lockstep_loops::{Bodies, BodyId, Key, Names};
use lockstep_trace::{FunctionId, Process, Run, Thread, TraceName};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
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
}

/// How many trees are built before they are brought together.
const BATCH: usize = 64;

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
        let index = self.keys.iter().position(|other| *other == key)?;
        Some(FunctionId(index as u32))
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
        self.add_functions_of(run, |process| run.is_visible(process))
    }

    /// The same where not all processes are looked at.
    pub fn add_functions_of(
        &mut self,
        run: &Run,
        is_looked_at: impl Fn(&Process) -> bool,
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
                intern(Function {
                    name: function.name.clone(),
                    linkage: function.linkage.clone(),
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

    /// Adds the tree of one trace.
    pub fn add_trace(&mut self, functions: &FunctionMap, thread: &Thread) -> Trace {
        let told = thread.sealed_tree();
        if let Some(&[root]) = told
            .and_then(|it| self.add_sealed(functions, &[it]))
            .as_deref()
        {
            let name = thread.name;
            return Trace { name, root };
        }
        let mut builder = Builder::new(self);
        for event in thread.events() {
            builder.event(event, functions);
        }
        Trace {
            name: thread.name,
            root: builder.finish(),
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
                })
                .collect();
        }
        // What is decoded from the same has the same tree.
        let contents: Vec<Option<u128>> = threads.par_iter().map(|it| it.content()).collect();
        let mut known: FxHashMap<u128, usize> = FxHashMap::default();
        let mut distinct = Vec::new();
        let of: Vec<usize> = threads
            .iter()
            .zip(contents)
            .map(|(thread, content)| {
                let mut add = || {
                    distinct.push(*thread);
                    distinct.len() - 1
                };
                match content {
                    Some(content) => *known.entry(content).or_insert_with(add),
                    None => add(),
                }
            })
            .collect();
        let roots = self.add_distinct(functions, &distinct);
        let named = threads.iter().zip(of);
        named
            .map(|(thread, index)| Trace {
                name: thread.name,
                root: roots[index],
            })
            .collect()
    }

    /// Adds the trees of traces that are not equal, mostly.
    fn add_distinct(&mut self, functions: &FunctionMap, threads: &[&Thread]) -> Vec<NodeId> {
        let mut roots = Vec::with_capacity(threads.len());
        for batch in threads.chunks(BATCH) {
            let known = self.functions.clone();
            let built: Vec<(Self, Trace)> = batch
                .par_iter()
                .map(|thread| {
                    let mut forest = Self {
                        functions: known.clone(),
                        ..Self::default()
                    };
                    let trace = forest.add_trace(functions, thread);
                    (forest, trace)
                })
                .collect();
            let built = built.into_iter();
            roots.extend(built.map(|(forest, trace)| self.absorb(&forest, trace.root)));
        }
        roots
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
