//! The traces of all runs of a comparison as call trees in one forest, and what of them is looked at.

use super::filter::{self, Groups};
use super::names::{Names, are_two};
use super::pairing::{self, Partners};
use super::part::{Bounds, Cut};
use super::sequence::{Folding, Item, Lens, Objects};
use crate::numbered::Numbered;
use crate::{Error, ObjectName, Options, naming};
use lockstep_calltree::{
    Forest, FunctionKey, FunctionMap, NodeId, Projection, Token, Trace, left_out,
};
use lockstep_trace::{ProcessName, Run, Thread, TraceName, in_short};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The traces of all runs of a comparison, of at least one, as trees in one forest.
pub(crate) struct Trees<'a> {
    pub(crate) forest: Forest,
    /// The one that is compared with the others is the last.
    pub(crate) runs: Vec<RunTrees<'a>>,
    /// For each function of the forest the filters that keep it.
    groups: Vec<u16>,
    /// Those that are looked at in no way.
    out: FxHashSet<FunctionKey>,
    /// What functions are called in two builds.
    pub(crate) names: Names,
    split_at: Option<Regex>,
    /// Sets of attributes that somebody knows, each once.
    pub(crate) own: Vec<Vec<String>>,
    /// Of traces of which pieces are named here these only.
    pieces: Vec<ObjectName>,
}

/// A run of a comparison. Its traces have the names of their partners in the last run.
pub(crate) struct RunTrees<'a> {
    pub(crate) run: &'a Run,
    partners: Option<Partners>,
    pub(crate) functions: FunctionMap,
    /// In the order of their names.
    pub(crate) traces: Vec<Trace>,
    /// Where a part of each trace is looked at: where it lies, for each trace.
    cuts: Vec<Cut>,
    /// What somebody knows of objects, as places in [`Trees::own`].
    own: FxHashMap<ObjectName, usize>,
}

impl<'a> RunTrees<'a> {
    fn new(
        forest: &mut Forest,
        run: &'a Run,
        threads: &[&Thread],
        partners: Option<Partners>,
        (bounds, names): (&Bounds, &Names),
    ) -> Self {
        let partner = |process| pairing::partner(partners.as_ref(), process);
        let functions = forest.add_functions_of(
            run,
            |process| run.is_visible(process) && partner(process.name).is_some(),
            |function| names.known_as(function),
        );
        let rename = |trace: &mut Trace| {
            trace.name.process = partner(trace.name.process).unwrap_or(trace.name.process);
        };
        let (mut traces, cuts): (Vec<Trace>, Vec<Cut>);
        if bounds.is_none() {
            (traces, cuts) = (forest.add_traces(&functions, threads), Vec::new());
            traces.iter_mut().for_each(rename);
            traces.sort_by_key(|trace| trace.name);
        } else {
            let mut parts = bounds.add_traces(forest, run, &functions, threads);
            parts.iter_mut().for_each(|(trace, _)| rename(trace));
            parts.sort_by_key(|(trace, _)| trace.name);
            (traces, cuts) = parts.into_iter().unzip();
        }
        Self {
            run,
            partners,
            functions,
            traces,
            cuts,
            own: FxHashMap::default(),
        }
    }

    /// The name in the last run of a process of this one.
    pub(crate) fn partner(&self, process: ProcessName) -> Option<ProcessName> {
        pairing::partner(self.partners.as_ref(), process)
    }

    /// The roots of its traces.
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        self.traces.iter().map(|it| it.root).collect()
    }

    /// Which of its traces has this name.
    pub(crate) fn place(&self, name: TraceName) -> Option<usize> {
        let place = self.traces.binary_search_by_key(&name, |it| it.name);
        place.ok()
    }

    /// The root of a trace.
    pub(crate) fn root(&self, name: TraceName) -> Option<NodeId> {
        Some(self.traces[self.place(name)?].root)
    }

    /// The names of its traces that another run does not have.
    pub(crate) fn without(&self, other: &RunTrees) -> Vec<TraceName> {
        let names = self.traces.iter().map(|it| it.name);
        names.filter(|it| other.place(*it).is_none()).collect()
    }

    /// Where a part of a trace is looked at, where it lies.
    pub(crate) fn cut(&self, name: TraceName) -> Option<&Cut> {
        self.cuts.get(self.place(name)?)
    }

    /// An event of what is looked at of a trace, as one of the whole trace.
    pub(crate) fn of_trace(&self, name: TraceName, event: u64) -> u64 {
        self.cut(name).map_or(event, |cut| cut.of_trace(event))
    }

    /// Traces that have no part to be looked at.
    pub(crate) fn without_part(&self) -> Vec<TraceName> {
        let each = self.traces.iter().zip(&self.cuts);
        let without = each.filter(|(_, cut)| !cut.begins);
        without.map(|(trace, _)| trace.name).collect()
    }

    /// Takes in what somebody knows of objects, each set once. Where traces are `chosen`, others may be known, too.
    fn know(
        &mut self,
        told: &BTreeMap<String, Vec<String>>,
        sets: &mut Numbered<Vec<String>>,
        chosen: bool,
    ) -> Result<(), Error> {
        for (name, set) in told {
            let object = name.parse::<ObjectName>().ok();
            let Some(object) = object.filter(|it| self.place(it.trace).is_some()) else {
                if chosen {
                    continue;
                }
                let names: Vec<TraceName> = self.traces.iter().map(|it| it.name).collect();
                return Err(Error::Nothing(format!(
                    "--own: expected attributes of {}, found some of {name}",
                    in_short(&names)
                )));
            };
            let mut set = set.clone();
            set.sort();
            set.dedup();
            self.own.insert(object, sets.number(set));
        }
        Ok(())
    }
}

/// The threads that the options choose, of processes that have a partner.
fn chosen<'a>(run: &'a Run, partners: Option<&Partners>, options: &Options) -> Vec<&'a Thread> {
    let mut threads: Vec<_> = match &options.traces {
        None => run.traces().collect(),
        Some(names) => names.iter().filter_map(|name| run.trace(*name)).collect(),
    };
    threads.sort_by_key(|thread| thread.name);
    threads.dedup_by_key(|thread| thread.name);
    threads.retain(|thread| pairing::partner(partners, thread.name.process).is_some());
    threads
}

impl<'a> Trees<'a> {
    /// The roots of all traces of all runs.
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        self.runs.iter().flat_map(RunTrees::roots).collect()
    }

    /// The same, run by run.
    pub(crate) fn roots_of_runs(&self) -> Vec<Vec<NodeId>> {
        self.runs.iter().map(RunTrees::roots).collect()
    }

    /// The run that is compared with the others.
    pub(crate) fn last(&self) -> &RunTrees<'a> {
        &self.runs[self.runs.len() - 1]
    }

    /// The others, as they were opened.
    pub(crate) fn normal_runs(&self) -> Vec<&'a Run> {
        self.normals().iter().map(|it| it.run).collect()
    }

    /// The others.
    pub(crate) fn normals(&self) -> &[RunTrees<'a>] {
        &self.runs[..self.runs.len() - 1]
    }

    /// Reads the traces that the options choose; of several runs, those of processes that the last one
    /// has too where that is not said by names ([`pairing`]), under the last one's names. O(events).
    ///
    /// # Errors
    /// A pattern that does not parse.
    pub(crate) fn new(runs: &[&'a Run], options: &Options) -> Result<Self, Error> {
        let filters = Groups::new(options.filter.custom.as_deref(), &options.ignore)?;
        let bounds = Bounds::new(&options.part)?;
        let split_at = filter::maybe("--split-at", options.part.split_at.as_deref())?;
        let partners: Vec<Option<Partners>> = match runs.split_last() {
            Some((last, normals)) => pairing::partners(normals, last),
            None => Vec::new(),
        };
        let threads = runs.iter().zip(&partners);
        let threads: Vec<Vec<&Thread>> = threads
            .map(|(run, partners)| chosen(run, partners.as_ref(), options))
            .collect();
        let names = match are_two(runs) {
            true => Names::of(runs),
            false => Names::default(),
        };
        let mut forest = Forest::new();
        let count = threads.iter().map(Vec::len).sum();
        let mut runs: Vec<RunTrees<'a>> = forest.bounded(count, |forest| {
            let each = runs.iter().zip(&threads).zip(&partners);
            each.map(|((run, threads), partners)| {
                RunTrees::new(forest, run, threads, partners.clone(), (&bounds, &names))
            })
            .collect()
        });
        let mut own = Numbered::default();
        for (run, told) in runs.iter_mut().zip(&options.own) {
            run.know(told, &mut own, options.traces.is_some())?;
        }
        bounds.refuse_strangers(split_at.as_ref(), &forest)?;
        let functions = forest.functions().iter();
        let groups = functions
            .map(|function| filters.of(&function.name, &function.image))
            .collect();
        Ok(Self {
            forest,
            runs,
            groups,
            out: FxHashSet::default(),
            names,
            split_at,
            own: own.items,
            pieces: options.pieces.clone(),
        })
    }

    /// What is not looked at, in a sentence.
    pub(crate) fn left_out(&self) -> Option<String> {
        let text = left_out(self.runs.iter().flat_map(|it| &it.traces))?;
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
    pub(crate) fn own_of(&self, run: &RunTrees) -> BTreeMap<ObjectName, &[String]> {
        let each = run.own.iter();
        each.map(|(name, set)| (*name, self.own[*set].as_slice()))
            .collect()
    }

    /// Whether objects are pieces of traces.
    pub(crate) fn is_split(&self) -> bool {
        self.split_at.is_some()
    }

    /// What a lens keeps, or without one all that is not ignored; without functions of these names.
    pub(crate) fn projection(&self, lens: Option<&Lens>, names: &[String]) -> Projection {
        let bits = lens.map_or(u16::MAX, |lens| lens.filter.bits());
        let keep_plt = lens.is_none_or(|lens| lens.keep_plt);
        let mut groups = self.groups.iter().zip(0..);
        self.forest.projection(|function| {
            groups.next().is_some_and(|(groups, key)| {
                groups & bits != 0
                    && (keep_plt || !function.name.ends_with("@plt"))
                    && !names.contains(&function.name)
                    && !self.out.contains(&FunctionKey(key))
            })
        })
    }

    /// The same for trees alone: without a lens, what a standard library does inside itself is left out, too.
    pub(crate) fn way(&self, lens: Option<&Lens>, names: &[String]) -> Projection {
        let functions = || self.forest.functions().iter();
        let closed: Vec<bool> = functions()
            .map(|it| lockstep_trace::is_standard(&it.name))
            .collect();
        let projection = self.projection(lens, names);
        if lens.is_some() || !closed.contains(&true) {
            return projection;
        }
        let shown = functions().map(|it| naming::is_shown(&it.name)).collect();
        projection.close(closed, shown)
    }

    /// Lets the roots of all traces be what they are on their way ([`Self::way`]), under a lens if there is one; gives what they were.
    pub(crate) fn close(&mut self, lens: Option<&Lens>) -> Vec<Vec<NodeId>> {
        let roots = self.roots_of_runs();
        let mut projection = self.way(lens, &[]);
        for trace in self.runs.iter_mut().flat_map(|it| &mut it.traces) {
            trace.root = self.forest.project(trace.root, &mut projection);
        }
        roots
    }

    /// Gives all traces these roots again.
    pub(crate) fn open(&mut self, roots: Vec<Vec<NodeId>>) {
        let traces = self.runs.iter_mut().flat_map(|it| &mut it.traces);
        for (trace, root) in traces.zip(roots.into_iter().flatten()) {
            trace.root = root;
        }
    }

    /// The roots of all traces of each run, under a projection.
    pub(crate) fn projected(&mut self, projection: &mut Projection) -> Vec<Vec<NodeId>> {
        let mut roots = self.roots_of_runs();
        for root in roots.iter_mut().flatten() {
            *root = self.forest.project(*root, projection);
        }
        roots
    }

    /// Functions that are looked at no more: what they call is their callers'.
    pub(crate) fn leave_out(&mut self, functions: impl IntoIterator<Item = FunctionKey>) {
        self.out.extend(functions);
    }

    /// Whether a function is looked at in no way.
    pub(crate) fn is_out(&self, function: FunctionKey) -> bool {
        self.out.contains(&function)
    }

    /// One that is looked at again.
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

    /// One run under a lens: every trace, or every piece of one, with its folded sequence; without functions of these names.
    pub(crate) fn objects(
        &self,
        run: usize,
        lens: &Lens,
        names: &[String],
        folding: &mut Folding,
    ) -> Objects {
        let projection = self.projection(Some(lens), names);
        let mut objects = Objects::default();
        let of_run = &self.runs[run];
        let mut add = |name: ObjectName, sequence: usize, root: NodeId| {
            let own = of_run.own.get(&name);
            let own = own.or_else(|| of_run.own.get(&name.trace.into())).copied();
            objects.names.push(name);
            objects.items.push(Item {
                sequence,
                root,
                own,
            });
        };
        for trace in &of_run.traces {
            let Some(split_at) = &self.split_at else {
                let sequence = folding.add_tree(&self.forest, trace.root, lens, &projection);
                add(trace.name.into(), sequence, trace.root);
                continue;
            };
            // A trace of which no piece is named was chosen as a whole.
            let is_named = self.pieces.iter().any(|it| it.trace == trace.name);
            let pieces = self.pieces(trace, split_at, lens, &projection);
            for (tokens, piece) in pieces.into_iter().zip(0..) {
                let name = ObjectName {
                    trace: trace.name,
                    piece: Some(piece),
                };
                if !is_named || self.pieces.contains(&name) {
                    add(name, folding.add_tokens(&tokens, lens.k), trace.root);
                }
            }
        }
        objects
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
