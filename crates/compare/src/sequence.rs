//! From call trees to folded sequences: what a filter leaves of a trace, with its loops recognised.

use crate::attribute::{Item, Kind, Subjects, Table};
use crate::builds::{self, Names};
use crate::filter::{self, Filter, Groups};
use crate::internals;
use crate::pairing::{self, Partners};
use crate::part::{Bounds, Cut};
use crate::{Error, ObjectName, Options};
use lockstep_calltree::{
    Forest, FunctionKey, FunctionMap, NodeId, Projection, Token, Trace, fold_tokens, left_out,
};
use lockstep_loops::{Bodies, BodyId, Element, Key, Mode, expand};
use lockstep_trace::{ProcessName, Run, Thread, TraceName, in_short};
use regex::Regex;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::hash::BuildHasher;

/// The traces of all runs of a comparison as trees in one forest.
pub(crate) struct Trees {
    pub(crate) forest: Forest,
    /// The traces of each run, in the order of their names.
    pub(crate) runs: Vec<Vec<Trace>>,
    /// The functions of each run.
    pub(crate) functions: Vec<FunctionMap>,
    /// For each function of the forest the filters that keep it.
    groups: Vec<u16>,
    /// Those that are looked at in no way.
    out: FxHashSet<FunctionKey>,
    /// What functions are called in two builds.
    pub(crate) names: Names,
    split_at: Option<Regex>,
    /// Sets of attributes that somebody knows, each once; and for each run whose they are.
    pub(crate) own: Vec<Vec<String>>,
    own_of: Vec<FxHashMap<ObjectName, usize>>,
    /// Of traces of which pieces are named here these only.
    pieces: Vec<ObjectName>,
    /// Where a part of each trace is looked at: where it lies, for each trace of each run.
    cuts: Vec<Vec<Cut>>,
}

/// Runs that are not looked at for a while.
pub(crate) struct Aside {
    runs: Vec<Vec<Trace>>,
    functions: Vec<FunctionMap>,
    cuts: Vec<Vec<Cut>>,
    own_of: Vec<FxHashMap<ObjectName, usize>>,
}

/// What is looked at of a run.
struct Chosen<'a> {
    run: &'a Run,
    threads: Vec<&'a Thread>,
    partners: Option<&'a Partners>,
}

/// A run's trees, in the order of the names that its traces have in the comparison.
struct Added {
    functions: FunctionMap,
    traces: Vec<Trace>,
    cuts: Vec<Cut>,
}

impl<'a> Chosen<'a> {
    fn new(run: &'a Run, partners: Option<&'a Partners>, options: &Options) -> Self {
        let mut threads: Vec<_> = match &options.traces {
            None => run.traces().collect(),
            Some(names) => names.iter().filter_map(|name| run.trace(*name)).collect(),
        };
        threads.sort_by_key(|thread| thread.name);
        threads.dedup_by_key(|thread| thread.name);
        let mut chosen = Self {
            run,
            threads: Vec::new(),
            partners,
        };
        threads.retain(|thread| chosen.partner(thread.name.process).is_some());
        chosen.threads = threads;
        chosen
    }

    fn partner(&self, process: ProcessName) -> Option<ProcessName> {
        match self.partners {
            Some(partners) => partners.get(&process).copied(),
            None => Some(process),
        }
    }

    fn rename(&self, name: TraceName) -> TraceName {
        TraceName {
            process: self.partner(name.process).unwrap_or(name.process),
            ..name
        }
    }

    fn add(&self, forest: &mut Forest, bounds: &Bounds, names: &Names) -> Added {
        let functions = forest.add_functions_of(
            self.run,
            |process| self.run.is_visible(process) && self.partner(process.name).is_some(),
            |function| names.known_as(function),
        );
        let (mut traces, cuts) = if bounds.is_none() {
            (forest.add_traces(&functions, &self.threads), Vec::new())
        } else {
            let mut parts = bounds.add_traces(forest, self.run, &functions, &self.threads);
            parts.sort_by_key(|(trace, _)| self.rename(trace.name));
            parts.into_iter().unzip()
        };
        for trace in &mut traces {
            trace.name = self.rename(trace.name);
        }
        traces.sort_by_key(|trace| trace.name);
        Added {
            functions,
            traces,
            cuts,
        }
    }
}

/// What somebody knows of objects, each set once, and for each run whose it is.
type Known = (Vec<Vec<String>>, Vec<FxHashMap<ObjectName, usize>>);

/// Where traces are `chosen`, others may be known, too.
fn known(
    own: &[BTreeMap<String, Vec<String>>],
    runs: &[Vec<Trace>],
    chosen: bool,
) -> Result<Known, Error> {
    let mut sets: Vec<Vec<String>> = Vec::new();
    let mut numbers: FxHashMap<Vec<String>, usize> = FxHashMap::default();
    let mut of = Vec::with_capacity(own.len());
    for (told, run) in own.iter().zip(runs) {
        let mut of_run = FxHashMap::default();
        for (name, set) in told {
            let object = name.parse::<ObjectName>().ok();
            let has = |object: &ObjectName| run.iter().any(|trace| trace.name == object.trace);
            let Some(object) = object.filter(has) else {
                if chosen {
                    continue;
                }
                let names: Vec<TraceName> = run.iter().map(|trace| trace.name).collect();
                return Err(Error::Nothing(format!(
                    "--own: expected attributes of {}, found some of {name}",
                    in_short(&names)
                )));
            };
            let mut set = set.clone();
            set.sort();
            set.dedup();
            let number = *numbers.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                sets.len() - 1
            });
            of_run.insert(object, number);
        }
        of.push(of_run);
    }
    Ok((sets, of))
}

impl Trees {
    /// The roots of all traces of all runs.
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        self.runs.iter().flatten().map(|it| it.root).collect()
    }

    /// Reads the traces that the options choose; of several runs, those of processes that the last one
    /// has too where that is not said by names ([`pairing`]), under the last one's names. O(events).
    ///
    /// # Errors
    /// A pattern that does not parse.
    pub(crate) fn new(runs: &[&Run], options: &Options) -> Result<Self, Error> {
        let filters = Groups::new(options.filter.custom.as_deref(), &options.ignore)?;
        let bounds = Bounds::new(&options.part)?;
        let split_at = filter::maybe("--split-at", options.part.split_at.as_deref())?;
        let partners: Vec<Option<Partners>> = match runs.split_last() {
            Some((last, normals)) => pairing::partners(normals, last),
            None => Vec::new(),
        };
        let chosen: Vec<Chosen<'_>> = runs
            .iter()
            .zip(&partners)
            .map(|(run, partners)| Chosen::new(run, partners.as_ref(), options))
            .collect();
        let names = match builds::are_two(runs) {
            true => Names::of(runs),
            false => Names::default(),
        };
        let mut forest = Forest::new();
        let count = chosen.iter().map(|of_run| of_run.threads.len()).sum();
        let added: Vec<Added> = forest.bounded(count, |forest| {
            let each = chosen.iter();
            each.map(|of_run| of_run.add(forest, &bounds, &names))
                .collect()
        });
        let (mut cuts, mut maps, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        for of_run in added {
            runs.push(of_run.traces);
            cuts.push(of_run.cuts);
            maps.push(of_run.functions);
        }
        let (own, own_of) = known(&options.own, &runs, options.traces.is_some())?;
        bounds.refuse_strangers(split_at.as_ref(), &forest)?;
        let functions = forest.functions().iter();
        let groups = functions
            .map(|function| filters.of(&function.name, &function.image))
            .collect();
        Ok(Self {
            forest,
            runs,
            functions: maps,
            groups,
            out: FxHashSet::default(),
            names,
            split_at,
            pieces: options.pieces.clone(),
            cuts,
            own,
            own_of,
        })
    }

    /// Lets the first run become the last.
    pub(crate) fn rotate(&mut self) {
        self.runs.rotate_left(1);
        self.functions.rotate_left(1);
        self.cuts.rotate_left(1);
        // Where nobody says anything of objects there are none.
        let by = usize::from(!self.own_of.is_empty());
        self.own_of.rotate_left(by);
    }

    /// Keeps so many runs, and gives the others away.
    pub(crate) fn set_aside(&mut self, kept: usize) -> Aside {
        let own = kept.min(self.own_of.len());
        Aside {
            runs: self.runs.split_off(kept),
            functions: self.functions.split_off(kept),
            cuts: self.cuts.split_off(kept),
            own_of: self.own_of.split_off(own),
        }
    }

    /// Adds them behind the others again.
    pub(crate) fn take_back(&mut self, aside: Aside) {
        self.runs.extend(aside.runs);
        self.functions.extend(aside.functions);
        self.cuts.extend(aside.cuts);
        self.own_of.extend(aside.own_of);
    }

    /// What is not looked at, in a sentence.
    pub(crate) fn left_out(&self) -> Option<String> {
        let text = left_out(self.runs.iter().flatten())?;
        Some(format!("{text} (-t, --from and --to choose less)"))
    }

    /// # Errors
    /// Where something is not looked at.
    pub(crate) fn refuse_some(self) -> Result<Self, Error> {
        match self.left_out() {
            None => Ok(self),
            Some(text) => Err(Error::TooLarge(format!(
                "expected traces whose call trees are small enough to be compared, found more: {text}"
            ))),
        }
    }

    /// What somebody says of objects of a run, in the order of their names.
    pub(crate) fn own_of(&self, run: usize) -> impl Iterator<Item = (ObjectName, &[String])> {
        let mut of_run: Vec<(ObjectName, usize)> = (self.own_of.get(run).into_iter())
            .flat_map(|of_run| of_run.iter().map(|(name, set)| (*name, *set)))
            .collect();
        of_run.sort_unstable();
        of_run
            .into_iter()
            .map(|(name, set)| (name, self.own[set].as_slice()))
    }

    /// Whether objects are pieces of traces.
    pub(crate) fn is_split(&self) -> bool {
        self.split_at.is_some()
    }

    /// What a lens keeps.
    pub(crate) fn projection(&self, lens: &Lens) -> Projection {
        self.projection_without(Some(lens), &[])
    }

    /// What a lens keeps, or without one all that is not ignored; without functions of these names.
    pub(crate) fn projection_without(&self, lens: Option<&Lens>, names: &[String]) -> Projection {
        let bits = lens.map_or(u16::MAX, |lens| lens.filter.bits());
        let keep_plt = lens.is_none_or(|lens| lens.keep_plt);
        self.project(|groups, name| {
            groups & bits != 0
                && (keep_plt || !name.ends_with("@plt"))
                && !names.iter().any(|other| other == name)
        })
    }

    /// The same for trees alone: without a lens, what a standard library does inside itself is left out, too.
    pub(crate) fn way(&self, lens: Option<&Lens>, names: &[String]) -> Projection {
        let functions = || self.forest.functions().iter();
        let closed: Vec<bool> = functions()
            .map(|it| lockstep_trace::is_standard(&it.name))
            .collect();
        let projection = self.projection_without(lens, names);
        if lens.is_some() || !closed.contains(&true) {
            return projection;
        }
        let shown = functions()
            .map(|it| internals::is_shown(&it.name))
            .collect();
        projection.close(closed, shown)
    }

    /// Lets the roots of all traces be what they are on their way ([`Self::way`]); gives what they were.
    pub(crate) fn close(&mut self) -> Vec<Vec<NodeId>> {
        self.close_by(None)
    }

    /// The same under a lens, if there is one.
    pub(crate) fn close_by(&mut self, lens: Option<&Lens>) -> Vec<Vec<NodeId>> {
        let mut projection = self.way(lens, &[]);
        let forest = &mut self.forest;
        let mut close = |trace: &mut Trace| {
            let root = forest.project(trace.root, &mut projection);
            std::mem::replace(&mut trace.root, root)
        };
        let runs = self.runs.iter_mut();
        runs.map(|run| run.iter_mut().map(&mut close).collect())
            .collect()
    }

    /// Gives all traces these roots again.
    pub(crate) fn open(&mut self, roots: Vec<Vec<NodeId>>) {
        for (run, roots) in self.runs.iter_mut().zip(roots) {
            for (trace, root) in run.iter_mut().zip(roots) {
                trace.root = root;
            }
        }
    }

    fn project(&self, keep: impl Fn(u16, &str) -> bool) -> Projection {
        let mut groups = self.groups.iter().zip(0..);
        self.forest.projection(|function| {
            groups.next().is_some_and(|(groups, key)| {
                keep(*groups, &function.name) && !self.out.contains(&FunctionKey(key))
            })
        })
    }

    /// Functions that are looked at no more: what they call is their callers'.
    pub(crate) fn leave_out(&mut self, functions: impl IntoIterator<Item = FunctionKey>) {
        self.out.extend(functions);
    }

    /// One that is looked at again.
    /// Whether a function is looked at in no way.
    pub(crate) fn is_out(&self, function: FunctionKey) -> bool {
        self.out.contains(&function)
    }

    pub(crate) fn take_in(&mut self, function: FunctionKey) {
        self.out.remove(&function);
    }

    /// The name behind a token.
    pub(crate) fn name(&self, symbol: u32) -> &str {
        match Token::from_symbol(symbol).function() {
            Some(function) => &self.forest.function(function).name,
            None => "return",
        }
    }

    /// One run under a lens: every trace, or every piece of one, with its folded sequence.
    pub(crate) fn objects(&self, run: usize, lens: &Lens, folding: &mut Folding) -> Objects {
        self.objects_without(run, lens, &[], folding)
    }

    /// The same without functions of these names.
    pub(crate) fn objects_without(
        &self,
        run: usize,
        lens: &Lens,
        names: &[String],
        folding: &mut Folding,
    ) -> Objects {
        let projection = self.projection_without(Some(lens), names);
        let mut objects = Vec::new();
        let mut items = Vec::new();
        let own = |name: &ObjectName| {
            let of_run = self.own_of.get(run)?;
            of_run.get(name).or_else(|| of_run.get(&name.trace.into()))
        };
        for trace in &self.runs[run] {
            let Some(split_at) = &self.split_at else {
                let name = trace.name.into();
                items.push(Item {
                    sequence: folding.add_tree(self, trace, lens, &projection),
                    root: trace.root,
                    own: own(&name).copied(),
                });
                objects.push(name);
                continue;
            };
            let pieces = self.pieces(trace, split_at, lens, &projection);
            for (tokens, piece) in pieces.into_iter().zip(0..) {
                let name = ObjectName {
                    trace: trace.name,
                    piece: Some(piece),
                };
                // A trace of which no piece is named was chosen as a whole.
                let mut named = (self.pieces.iter())
                    .filter(|it| it.trace == name.trace)
                    .peekable();
                if named.peek().is_some() && !named.any(|it| *it == name) {
                    continue;
                }
                objects.push(name);
                items.push(Item {
                    sequence: folding.add_tokens(&tokens, lens.k),
                    root: trace.root,
                    own: own(&name).copied(),
                });
            }
        }
        Objects {
            names: objects,
            items,
        }
    }

    /// Where a part of a trace of this run is looked at, where it lies.
    pub(crate) fn cut(&self, run: usize, name: TraceName) -> Option<&Cut> {
        let place = self.runs[run].binary_search_by_key(&name, |trace| trace.name);
        self.cuts[run].get(place.ok()?)
    }

    /// Traces of a run that have no part to be looked at.
    pub(crate) fn without_part(&self, run: usize) -> Vec<TraceName> {
        let each = self.runs[run].iter().zip(&self.cuts[run]);
        let without = each.filter(|(_, cut)| !cut.begins);
        without.map(|(trace, _)| trace.name).collect()
    }

    /// The pieces of a trace, token by token: markers count whether they are kept or not.
    fn pieces(
        &self,
        trace: &Trace,
        split_at: &Regex,
        lens: &Lens,
        kept: &Projection,
    ) -> Vec<Vec<u32>> {
        let functions = self.forest.functions().iter();
        let splits: Vec<bool> = functions
            .map(|it| split_at.is_match(&lockstep_trace::c_name(&it.name)))
            .collect();
        let mut pieces = vec![Vec::new()];
        let mut open = Vec::new();
        let all = self.forest.projection(|_| true);
        self.forest.tokens(trace.root, &all, true, &mut |token| {
            let is_kept = match token.function() {
                // Its call may lie before the part of the trace that is looked at.
                None => lens.keep_returns && open.pop().unwrap_or(false),
                Some(function) => {
                    if splits[function.0 as usize] {
                        pieces.push(Vec::new());
                    }
                    let is_kept = kept.keeps(function);
                    if matches!(token, Token::Call(_)) {
                        open.push(is_kept);
                    }
                    is_kept
                }
            };
            if is_kept && let Some(piece) = pieces.last_mut() {
                piece.push(token.symbol());
            }
        });
        pieces
    }
}

/// What is looked at: a filter, what becomes of returns and `@plt` names, and how far loops are
/// recognised.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lens {
    pub(crate) filter: Filter,
    pub(crate) keep_returns: bool,
    pub(crate) keep_plt: bool,
    pub(crate) k: usize,
}

impl Lens {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            filter: options.filter.clone(),
            keep_returns: options.keep_returns,
            keep_plt: options.keep_plt,
            k: options.k,
        }
    }

    /// In the papers' form.
    pub(crate) fn paper(&self) -> String {
        self.filter.paper(self.keep_returns, self.keep_plt, self.k)
    }

    pub(crate) fn keeps_nothing(&self) -> Error {
        let custom = match &self.filter.custom {
            Some(pattern) => format!(" with --custom `{pattern}`"),
            None => String::new(),
        };
        Error::Nothing(format!(
            "--filter: expected a filter that keeps a function that was called, found `{}`{custom}, which keeps none",
            self.paper()
        ))
    }
}

/// Sequences with their loops folded, each distinct one once, over one table of bodies.
#[derive(Default)]
pub(crate) struct Folding {
    pub(crate) bodies: Bodies,
    pub(crate) sequences: Vec<Vec<Element>>,
    /// Those of equal hash.
    numbers: FxHashMap<u64, Vec<usize>>,
    /// Equal trees need not be looked at again.
    trees: FxHashMap<lockstep_calltree::NodeId, usize>,
}

impl Folding {
    fn add(&mut self, sequence: Vec<Element>) -> usize {
        let same = self
            .numbers
            .entry(FxBuildHasher.hash_one(&sequence))
            .or_default();
        if let Some(number) = same
            .iter()
            .find(|number| self.sequences[**number] == sequence)
        {
            return *number;
        }
        same.push(self.sequences.len());
        self.sequences.push(sequence);
        self.sequences.len() - 1
    }

    fn add_tree(&mut self, trees: &Trees, trace: &Trace, lens: &Lens, kept: &Projection) -> usize {
        if let Some(number) = self.trees.get(&trace.root) {
            return *number;
        }
        let sequence = trees.forest.flat(
            trace.root,
            kept,
            lens.keep_returns,
            lens.k,
            Mode::Shape,
            &mut self.bodies,
        );
        let number = self.add(sequence);
        self.trees.insert(trace.root, number);
        number
    }

    fn add_tokens(&mut self, tokens: &[u32], k: usize) -> usize {
        let tokens = tokens.iter().copied().map(Token::from_symbol);
        let sequence = fold_tokens(tokens, k, Mode::Shape, &mut self.bodies);
        self.add(sequence)
    }

    /// The open calls of a sequence, outermost first.
    pub(crate) fn open(&self, sequence: usize) -> Vec<u32> {
        let mut open = Vec::new();
        let is_open = |symbol: u32| matches!(Token::from_symbol(symbol), Token::Open(_));
        for element in &self.sequences[sequence] {
            match element {
                Element::Symbol(symbol) if is_open(*symbol) => open.push(*symbol),
                Element::Loop(looped) if self.has(looped.body(), &is_open) => {
                    expand(std::slice::from_ref(element), &self.bodies, &mut |symbol| {
                        if is_open(symbol) {
                            open.push(symbol);
                        }
                    });
                }
                _ => {}
            }
        }
        open
    }

    /// Whether a loop body contains such a token.
    fn has(&self, body: BodyId, wanted: &impl Fn(u32) -> bool) -> bool {
        self.bodies.keys(body).iter().any(|key| match key {
            Key::Symbol(symbol) => wanted(*symbol),
            Key::Loop(inner) | Key::Times(inner, _) => self.has(*inner, wanted),
        })
    }
}

/// What is looked at of one run by itself.
pub(crate) struct OneRun {
    pub(crate) trees: Trees,
    lens: Lens,
    pub(crate) folding: Folding,
    pub(crate) objects: Objects,
}

impl OneRun {
    /// # Errors
    /// A pattern that does not parse; call trees that are too large; a filter that keeps nothing.
    pub(crate) fn new(run: &Run, options: &Options) -> Result<Self, Error> {
        let trees = Trees::new(&[run], options)?.refuse_some()?;
        let lens = Lens::of(options);
        let mut folding = Folding::default();
        let objects = trees.objects(0, &lens, &mut folding);
        objects.refuse_nothing(&folding, &lens)?;
        Ok(Self {
            trees,
            lens,
            folding,
            objects,
        })
    }

    /// The attributes of all that is looked at, and for each object its row.
    ///
    /// # Errors
    /// A family that cannot be had of these objects.
    pub(crate) fn table(&self, kind: Kind) -> Result<(Table, Vec<usize>), Error> {
        let items = &self.objects.items;
        let attributes = kind.attributes;
        let subjects = Subjects::new(&self.trees, &self.lens, &self.folding, attributes, items)?;
        Ok(subjects.table(kind.frequency))
    }
}

/// One run under one lens.
pub(crate) struct Objects {
    pub(crate) names: Vec<ObjectName>,
    /// What each is.
    pub(crate) items: Vec<Item>,
}

impl Objects {
    /// # Errors
    /// No object, or nothing in any of them.
    pub(crate) fn refuse_nothing(&self, folding: &Folding, lens: &Lens) -> Result<(), Error> {
        if self.names.is_empty() {
            return Err(Error::Nothing(
                "expected a trace to look at, found none".into(),
            ));
        }
        if self
            .items
            .iter()
            .all(|item| folding.sequences[item.sequence].is_empty())
        {
            return Err(lens.keeps_nothing());
        }
        Ok(())
    }
}
