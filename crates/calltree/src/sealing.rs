//! From runs to the trees of a sealed run, and back: [`Trees::of`] and [`Forest::add_sealed`].
//!
//! A list of children is told as it is folded, or one by one (*plain*) where folding hardly makes it shorter: what
//! follows what in a list without a rule is better known than which loops it happens to contain. Whoever
//! reads a plain list folds it again.

use crate::K;
use crate::build::Builder;
use crate::forest::{Forest, FunctionMap, distinct};
use crate::function::{Function, FunctionKey};
use crate::node::{Call, Item, Label, NodeId};
use crate::pieces::{Piece, Pieces, finish};
use lockstep_format::sealed::bits::Writer;
use lockstep_format::sealed::grammar::{self, Grammar, label};
use lockstep_format::sealed::{Header, most_elements, slots_for};
use lockstep_loops::{Mode, Stack};
use lockstep_trace::sealed::{Growing, Name, SealError, SealedTree, Store, Strays, TreeOf, Trees};
use lockstep_trace::{Event, Run, Thread};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A plain list has at most so many times the elements of a folded one.
const PLAIN: u64 = 4;
/// Most children that the nodes of all trees have, about 600 MB; threads whose trees need more are kept as they were
/// recorded. Trees that are built at the same time share as much again.
const MOST_ITEMS: usize = 1 << 23;
/// How many trees are built before they are brought together.
const BATCH: usize = 64;

/// A thread's tree, and its strays.
type Root = (NodeId, Vec<u64>);
/// Why a thread has no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotTold {
    /// Its events cannot be told by one.
    Never,
    /// It would be larger than it may be.
    TooLarge,
}
/// Of a run: by process, by thread; `None` where the thread is kept as it was recorded.
type Roots = Vec<Vec<Option<Root>>>;

/// Functions, those whose symbol is their return too apart from the others.
struct Functions {
    plain: Vec<FunctionKey>,
    leaf: Vec<FunctionKey>,
}

/// Marks the name of a leaf.
const LEAF: &str = "\0leaf";

fn function(image: &str, linkage: &str, leaf: bool) -> Function {
    let mark = if leaf { LEAF } else { "" };
    Function {
        name: String::new(),
        linkage: format!("{linkage}{mark}"),
        image: image.to_owned(),
        imported: false,
    }
}

fn name(function: &Function) -> Name {
    let linkage = function.linkage.strip_suffix(LEAF);
    Name {
        image: function.image.clone(),
        linkage: linkage.unwrap_or(&function.linkage).to_owned(),
        leaf: linkage.is_some(),
    }
}

/// The trees of runs, to be sealed: into one file, or behind what `store` has already.
///
/// # Errors
/// Where the store cannot be read.
pub fn trees(runs: &[&Run], store: Option<&Store>) -> Result<Trees, SealError> {
    let mut forest = Forest::new();
    let mut grammar: Option<Grammar<Growing>> = None;
    let mut known: FxHashMap<u32, u32> = FxHashMap::default();
    let mut names: Vec<Name> = Vec::new();
    if let Some((told, tree, so_far)) = store.map(Store::content).transpose()?.flatten() {
        let keys: Vec<FunctionKey> = told
            .iter()
            .map(|it| forest.add_function(function(&it.image, &it.linkage, it.leaf)))
            .collect();
        names.extend_from_slice(told);
        let key = |label: u32| keys.get((label >> label::NAME) as usize).copied();
        let nodes = forest.import(tree, &key, |_| true);
        for (number, node) in nodes.into_iter().enumerate() {
            known.entry(node.0).or_insert(number as u32);
        }
        grammar = Some(so_far);
    }
    let mut roots: Vec<Roots> = Vec::new();
    for run in runs {
        let functions = Functions {
            plain: keys(&mut forest, run, false),
            leaf: keys(&mut forest, run, true),
        };
        roots.push(forest.add_run_told(&functions, run));
    }
    Ok(write(&forest, grammar, &known, names, runs, roots))
}

fn keys(forest: &mut Forest, run: &Run, leaf: bool) -> Vec<FunctionKey> {
    let functions = run.functions.iter();
    functions
        .map(|it| forest.add_function(function(&it.image, &it.linkage, leaf)))
        .collect()
}

/// Writes the trees; threads whose tree is larger than what was recorded are left as they are.
fn write(
    forest: &Forest,
    grammar: Option<Grammar<Growing>>,
    known: &FxHashMap<u32, u32>,
    names: Vec<Name>,
    runs: &[&Run],
    mut roots: Vec<Roots>,
) -> Trees {
    let plain = Plain::of(forest, &roots);
    let recorded: Vec<Vec<Vec<u64>>> = runs
        .iter()
        .map(|run| {
            let processes = run.processes.iter();
            processes
                .map(|process| process.threads.iter().map(|it| it.bytes).collect())
                .collect()
        })
        .collect();
    loop {
        let mut writing = Writing::new(forest, &plain, known.clone(), names.clone());
        let mut grammar = match &grammar {
            Some(grammar) => grammar.clone(),
            None => Grammar::new(slots_for(plain.elements)),
        };
        let (base_nodes, before) = (grammar.len(), grammar.elements());
        let mut bytes = Bytes(Vec::new());
        let mut told: Vec<Vec<Vec<Option<TreeOf>>>> = Vec::new();
        let mut trees = 0;
        let mut dropped = false;
        let mut writer = Writer::new(&mut bytes);
        for (run, sizes) in roots.iter_mut().zip(&recorded) {
            let mut of_run = Vec::new();
            for (process, sizes) in run.iter_mut().zip(sizes) {
                let mut of_process = Vec::new();
                for (root, size) in process.iter_mut().zip(sizes) {
                    let Some((node, strays)) = root.as_ref() else {
                        of_process.push(None);
                        continue;
                    };
                    let (start, count) = (writer.written(), grammar.len());
                    let number = grammar.write(&mut writer, &mut writing, node.0);
                    trees += u32::from(grammar.len() > count);
                    let cost = writer.written() - start;
                    match number {
                        Ok(number) if *size == 0 || cost <= size + size / 8 + 64 => {
                            of_process.push(Some(TreeOf {
                                root: number,
                                strays: strays.clone(),
                            }));
                        }
                        _ => {
                            *root = None;
                            dropped = true;
                            of_process.push(None);
                        }
                    }
                }
                of_run.push(of_process);
            }
            told.push(of_run);
        }
        writer.finish();
        let elements = grammar.elements() - before;
        let mut padded = bytes.0.len();
        while elements > most_elements(padded as u64) && elements <= most_elements(u64::MAX) {
            padded += 256;
        }
        bytes.0.resize(padded, 0);
        if elements > most_elements(padded as u64) {
            // More than a reader would believe: nothing is told.
            roots
                .iter_mut()
                .flatten()
                .flatten()
                .for_each(|it| *it = None);
            continue;
        }
        if dropped {
            continue;
        }
        return Trees {
            header: Header {
                slots: slots_for(plain.elements),
                base_nodes,
                nodes: grammar.len() - base_nodes,
                trees,
                elements,
            },
            nodes: bytes.0,
            names: writing.names,
            roots: told,
        };
    }
}

#[derive(Debug)]
struct Bytes(Vec<u8>);

impl lockstep_format::codec::Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// Lists that are told one by one, and how many elements there are.
#[derive(Debug, Default)]
struct Plain {
    lists: FxHashMap<NodeId, Vec<(u32, u64)>>,
    elements: u64,
}

impl Plain {
    fn of(forest: &Forest, roots: &[Roots]) -> Self {
        // How many elements tell a loop, and how many it stands for; and by how many lists it is shared.
        let mut seen = vec![false; forest.len()];
        let mut open: Vec<NodeId> = Vec::new();
        for (root, _) in roots.iter().flatten().flatten().flatten() {
            open.push(*root);
        }
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut seen[id.0 as usize], true) {
                open.extend(forest.node(id).items.iter().map(|item| item.node));
            }
        }
        let mut folded = vec![0u64; forest.len()];
        let mut length = vec![0u64; forest.len()];
        let mut used = vec![false; forest.len()];
        let mut plain = Self::default();
        for index in 0..forest.len() {
            let id = NodeId(index as u32);
            let node = forest.node(id);
            let is_list = matches!(node.label, Label::Call(_) | Label::Trace);
            let (mut told, mut all, mut loops) = (0u64, 0u64, false);
            for item in node.items {
                let child = item.node.0 as usize;
                match forest.node(item.node).label {
                    Label::Loop(_) | Label::Iteration => {
                        loops = true;
                        let is_new = !used[child];
                        if seen[index] {
                            used[child] = true;
                        }
                        told += 1 + if is_new { folded[child] } else { 0 };
                        all = all.saturating_add(length[child].saturating_mul(item.times));
                    }
                    _ => {
                        told += 1;
                        all = all.saturating_add(item.times);
                    }
                }
            }
            folded[index] = told + 1;
            length[index] = all;
            if !seen[index] {
                continue;
            }
            if is_list && loops && all <= PLAIN.saturating_mul(told) {
                plain.lists.insert(id, flat(forest, id));
                plain.elements += all + 1;
            } else {
                plain.elements += node.items.len() as u64 + 1;
            }
        }
        plain
    }
}

/// The children of a call or trace one by one, equal ones in a row together.
fn flat(forest: &Forest, id: NodeId) -> Vec<(u32, u64)> {
    let mut list: Vec<(u32, u64)> = Vec::new();
    // What is still to be gone through, last first.
    let mut open: Vec<(NodeId, u64)> = Vec::new();
    let reversed = |id: NodeId, open: &mut Vec<(NodeId, u64)>| {
        let items = forest.node(id).items.iter().rev();
        open.extend(items.map(|item| (item.node, item.times)));
    };
    reversed(id, &mut open);
    while let Some((node, times)) = open.pop() {
        match forest.node(node).label {
            Label::Loop(_) | Label::Iteration => {
                if times > 1 {
                    open.push((node, times - 1));
                }
                reversed(node, &mut open);
            }
            _ => match list.last_mut() {
                Some((last, count)) if *last == node.0 => *count += times,
                _ => list.push((node.0, times)),
            },
        }
    }
    list
}

/// A forest as a grammar asks for it.
struct Writing<'a> {
    forest: &'a Forest,
    plain: &'a Plain,
    known: FxHashMap<u32, u32>,
    names: Vec<Name>,
    numbers: FxHashMap<FunctionKey, u32>,
}

impl<'a> Writing<'a> {
    fn new(
        forest: &'a Forest,
        plain: &'a Plain,
        known: FxHashMap<u32, u32>,
        names: Vec<Name>,
    ) -> Self {
        // The names of a store were added to the forest first, in their order.
        let numbers = (0..names.len() as u32)
            .map(|it| (FunctionKey(it), it))
            .collect();
        Self {
            forest,
            plain,
            known,
            names,
            numbers,
        }
    }
}

impl grammar::Tree for Writing<'_> {
    fn label(&mut self, node: u32) -> u32 {
        let id = NodeId(node);
        let plain = if self.plain.lists.contains_key(&id) {
            label::PLAIN
        } else {
            0
        };
        match self.forest.node(id).label {
            Label::Trace => label::TRACE | plain,
            Label::Return => label::RETURN,
            Label::Loop(_) => label::LOOP,
            Label::Iteration => label::ITERATION,
            Label::Call(call) => {
                let names = &mut self.names;
                let forest = self.forest;
                let name = *self.numbers.entry(call.function).or_insert_with(|| {
                    names.push(name(forest.function(call.function)));
                    names.len() as u32 - 1
                });
                let open = if call.open { label::OPEN } else { 0 };
                let tail = if call.tail { label::TAIL } else { 0 };
                label::CALL | plain | open | tail | name << label::NAME
            }
        }
    }

    fn item(&self, node: u32, index: usize) -> Option<(u32, u64)> {
        match self.plain.lists.get(&NodeId(node)) {
            Some(list) => list.get(index).copied(),
            None => {
                let item = self.forest.node(NodeId(node)).items.get(index)?;
                Some((item.node.0, item.times))
            }
        }
    }

    fn known(&self, node: u32) -> Option<u32> {
        self.known.get(&node).copied()
    }

    fn define(&mut self, node: u32, number: u32) {
        self.known.insert(node, number);
    }
}

impl Forest {
    /// The trees of a run's threads, of those that are equal once.
    fn add_run_told(&mut self, functions: &Functions, run: &Run) -> Roots {
        let threads = run.processes.iter().flat_map(|it| &it.threads);
        let threads: Vec<&Thread> = threads.collect();
        let (firsts, places) = distinct(&threads, |it| Some((it.content()?, it.can_be_told())));
        let roots = self.add_told(functions, &firsts);
        let mut places = places.into_iter();
        let of_process = |process: &lockstep_trace::Process| {
            let places = places.by_ref().take(process.threads.len());
            places
                .map(|place| roots.get(place).cloned().flatten())
                .collect()
        };
        run.processes.iter().map(of_process).collect()
    }

    /// The trees of threads with leaves told apart, `None` of those that are too large.
    fn add_told(&mut self, functions: &Functions, threads: &[&Thread]) -> Vec<Option<Root>> {
        let mut roots = Vec::with_capacity(threads.len());
        for batch in threads.chunks(BATCH) {
            let known = self.functions.clone();
            let build = |thread: &Thread, most: usize| {
                let mut forest = Self {
                    functions: known.clone(),
                    ..Self::default()
                };
                let built = forest.told(functions, thread, most);
                (forest, built)
            };
            let share = MOST_ITEMS.saturating_sub(self.nodes.size()) / batch.len();
            let built: Vec<(Self, Result<Root, NotTold>)> = batch
                .par_iter()
                .map(|thread| build(thread, share))
                .collect();
            for ((mut forest, mut built), thread) in built.into_iter().zip(batch) {
                if built == Err(NotTold::TooLarge) {
                    drop(forest);
                    let left = MOST_ITEMS.saturating_sub(self.nodes.size());
                    (forest, built) = build(thread, left);
                }
                let is_full = self.nodes.size() + forest.nodes.size() > MOST_ITEMS;
                let built = built.ok().filter(|_| !is_full);
                roots.push(built.map(|(root, strays)| (self.absorb(&forest, root), strays)));
            }
        }
        roots
    }

    fn told(
        &mut self,
        functions: &Functions,
        thread: &Thread,
        most: usize,
    ) -> Result<Root, NotTold> {
        if !thread.can_be_told() {
            return Err(NotTold::Never);
        }
        let mut strays = Strays::default();
        let mut builder = Builder::new(self);
        let mut events = thread.events();
        let mut count = 0u32;
        while let Some(event) = events.next() {
            strays.event(event);
            match event {
                Event::Call(id) => {
                    let keys = match events.was_leaf() {
                        true => &functions.leaf,
                        false => &functions.plain,
                    };
                    builder.call(*keys.get(id.0 as usize).ok_or(NotTold::Never)?);
                }
                Event::Return => builder.ret(),
                Event::Tail => builder.tail(),
            }
            count = count.wrapping_add(1);
            if count.is_multiple_of(1 << 14) && builder.size() > most {
                return Err(NotTold::TooLarge);
            }
        }
        Ok((builder.finish(), strays.finish()))
    }

    /// Adds the trees of a store for which `is_wanted` holds, and what they consist of; `key` gives the function that a
    /// label names. Nodes that are not wanted stand for nothing.
    fn import(
        &mut self,
        tree: &lockstep_trace::sealed::Tree,
        key: &dyn Fn(u32) -> Option<FunctionKey>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Vec<NodeId> {
        const NOTHING: NodeId = NodeId(u32::MAX);
        let mut ours = vec![NOTHING; tree.len() as usize];
        let mut items: Vec<Item> = Vec::new();
        let mut scratch: Vec<Item> = Vec::new();
        for number in (0..tree.len()).filter(|number| is_wanted(*number)) {
            let told = tree.label(number);
            items.clear();
            items.extend(tree.items(number).iter().map(|(node, times)| Item {
                node: ours[*node as usize],
                times: *times,
            }));
            let label = match label::kind(told) {
                label::RETURN => Label::Return,
                label::ITERATION => Label::Iteration,
                label::CALL => Label::Call(Call {
                    function: key(told).unwrap_or(FunctionKey(0)),
                    open: told & label::OPEN != 0,
                    tail: told & label::TAIL != 0,
                }),
                // A loop's body follows.
                label::LOOP => Label::Iteration,
                _ => Label::Trace,
            };
            ours[number as usize] = if told & label::PLAIN != 0 {
                self.fold_again(label, &items, &mut scratch)
            } else {
                self.add_node(label, label::kind(told) == label::LOOP, &items)
            };
        }
        ours
    }

    /// A node whose children are told one by one.
    fn fold_again(&mut self, label: Label, told: &[Item], scratch: &mut Vec<Item>) -> NodeId {
        let mut stack: Stack<Piece> = Stack::new(K, Mode::Shape);
        for item in told {
            let shape = self.nodes.shape(item.node);
            for _ in 0..item.times {
                let mut pieces = Pieces {
                    nodes: &mut self.nodes,
                    items: scratch,
                };
                stack.push(
                    shape.0,
                    Piece::Node(item.node),
                    &mut self.bodies,
                    &mut pieces,
                );
            }
        }
        let mut items = Vec::new();
        finish(stack.items(), &mut self.nodes, &mut items);
        self.close(label, &items, stack.keys())
    }

    /// Adds the trees of threads of a sealed run. `None` where their folding is not that of their functions
    /// (two names may be one function), or where they are too large: then they are to be built from their events.
    pub fn add_sealed(
        &mut self,
        functions: &FunctionMap,
        threads: &[SealedTree<'_>],
    ) -> Option<Vec<NodeId>> {
        let first = threads.first()?;
        let is_one = threads.iter().all(|thread| thread.same_store(first));
        if !is_one || first.is_ambiguous() {
            return None;
        }
        let mut wanted = vec![false; first.tree.len() as usize];
        let mut open: Vec<u32> = threads.iter().map(|thread| thread.root).collect();
        let mut size = 0;
        while let Some(node) = open.pop() {
            if !std::mem::replace(wanted.get_mut(node as usize)?, true) {
                let items = first.tree.items(node);
                size += 1 + items.len();
                open.extend(items.iter().map(|(child, _)| *child));
            }
        }
        if size > self.room_for_sealed() {
            return None;
        }
        let key = |label: u32| Some(functions.key(first.function(label)));
        let ours = self.import(first.tree, &key, |node| wanted[node as usize]);
        threads
            .iter()
            .map(|thread| ours.get(thread.root as usize).copied())
            .collect()
    }
}
