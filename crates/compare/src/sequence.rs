//! From call trees to folded sequences: what a filter leaves of a trace, with its loops recognised.

use crate::filter::{self, Filter, Groups};
use crate::pairing::{self, Partners};
use crate::{Error, ObjectName, Options, Part};
use lockstep_calltree::{Forest, FunctionMap, Projection, Token, Trace, fold_tokens};
use lockstep_loops::{Bodies, BodyId, Element, Key, Mode, expand};
use lockstep_trace::{ProcessName, Run};
use regex::Regex;
use rustc_hash::{FxBuildHasher, FxHashMap};
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
    part: PartRegex,
}

#[derive(Default)]
struct PartRegex {
    from: Option<Regex>,
    to: Option<Regex>,
    split_at: Option<Regex>,
}

impl PartRegex {
    fn new(part: &Part) -> Result<Self, Error> {
        let compile = |option, pattern: &Option<String>| {
            pattern
                .as_deref()
                .map(|pattern| filter::compile(option, pattern))
                .transpose()
        };
        Ok(Self {
            from: compile("--from", &part.from)?,
            to: compile("--to", &part.to)?,
            split_at: compile("--split-at", &part.split_at)?,
        })
    }

    fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.split_at.is_none()
    }
}

impl Trees {
    /// Reads the traces that the options choose; of several runs, those of processes that the last one
    /// has too where that is not said by names ([`pairing`]), under the last one's names. O(events).
    ///
    /// # Errors
    /// A pattern that does not parse.
    pub(crate) fn new(runs: &[&Run], options: &Options) -> Result<Self, Error> {
        let filters = Groups::new(options.filter.custom.as_deref(), &options.ignore)?;
        let part = PartRegex::new(&options.part)?;
        let mut forest = Forest::new();
        let mut maps = Vec::with_capacity(runs.len());
        let partners: Vec<Option<Partners>> = match runs.split_last() {
            Some((last, normals)) => pairing::partners(normals, last),
            None => Vec::new(),
        };
        let runs = runs
            .iter()
            .zip(partners)
            .map(|(run, partners)| {
                let partner = |process: ProcessName| match &partners {
                    Some(partners) => partners.get(&process).copied(),
                    None => Some(process),
                };
                let functions = forest.add_functions_of(run, |process| {
                    run.is_visible(process) && partner(process.name).is_some()
                });
                let mut threads: Vec<_> = match &options.traces {
                    None => run.traces().collect(),
                    Some(names) => names.iter().filter_map(|name| run.trace(*name)).collect(),
                };
                threads.sort_by_key(|thread| thread.name);
                threads.dedup_by_key(|thread| thread.name);
                threads.retain(|thread| partner(thread.name.process).is_some());
                let mut traces = forest.add_traces(&functions, &threads);
                for trace in &mut traces {
                    let process = trace.name.process;
                    trace.name.process = partner(process).unwrap_or(process);
                }
                traces.sort_by_key(|trace| trace.name);
                maps.push(functions);
                traces
            })
            .collect();
        let functions = forest.functions().iter();
        let groups = functions
            .map(|function| filters.of(&function.name, &function.image))
            .collect();
        Ok(Self {
            forest,
            runs,
            functions: maps,
            groups,
            part,
        })
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

    fn project(&self, keep: impl Fn(u16, &str) -> bool) -> Projection {
        let mut groups = self.groups.iter();
        self.forest.projection(|function| {
            groups
                .next()
                .is_some_and(|groups| keep(*groups, &function.name))
        })
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
        let mut sequences = Vec::new();
        for trace in &self.runs[run] {
            if self.part.is_whole() {
                objects.push(trace.name.into());
                sequences.push(folding.add_tree(self, trace, lens, &projection));
            } else {
                let split = self.part.split_at.is_some();
                for (tokens, piece) in self.pieces(trace, lens, &projection).into_iter().zip(0..) {
                    objects.push(ObjectName {
                        trace: trace.name,
                        piece: split.then_some(piece),
                    });
                    sequences.push(folding.add_tokens(&tokens, lens.k));
                }
            }
        }
        Objects {
            names: objects,
            sequences,
        }
    }

    /// The parts of a trace that are looked at, token by token: markers count whether they are kept or
    /// not.
    fn pieces(&self, trace: &Trace, lens: &Lens, kept: &Projection) -> Vec<Vec<u32>> {
        let is = |regex: &Option<Regex>, name: &str| {
            regex
                .as_ref()
                .is_some_and(|regex| regex.is_match(&lockstep_trace::c_name(name)))
        };
        let mut pieces = vec![Vec::new()];
        let mut inside = self.part.from.is_none();
        let mut over = false;
        let mut open = Vec::new();
        let all = self.forest.projection(|_| true);
        self.forest.tokens(trace.root, &all, true, &mut |token| {
            let Some(function) = token.function() else {
                // Its call may lie before the part; then it does not belong to it either.
                let belongs = open.pop().unwrap_or(false);
                if lens.keep_returns
                    && belongs
                    && !over
                    && let Some(piece) = pieces.last_mut()
                {
                    piece.push(token.symbol());
                }
                return;
            };
            let name = &self.forest.function(function).name;
            if inside && !over && is(&self.part.to, name) {
                over = true;
            }
            if !inside && is(&self.part.from, name) {
                inside = true;
            }
            if inside && !over && is(&self.part.split_at, name) {
                pieces.push(Vec::new());
            }
            let belongs = inside && !over && kept.keeps(function);
            if belongs && let Some(piece) = pieces.last_mut() {
                piece.push(token.symbol());
            }
            if matches!(token, Token::Call(_)) {
                open.push(belongs);
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

/// One run under one lens.
pub(crate) struct Objects {
    pub(crate) names: Vec<ObjectName>,
    /// For each object the number of its sequence in the [`Folding`].
    pub(crate) sequences: Vec<usize>,
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
            .sequences
            .iter()
            .all(|index| folding.sequences[*index].is_empty())
        {
            return Err(lens.keeps_nothing());
        }
        Ok(())
    }
}
