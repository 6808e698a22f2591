//! From events to folded sequences: what a filter leaves of a trace, with its loops recognised.
//!
//! Functions are known by their names here, since the runs may be of two builds. A call that never
//! returned is a token of its own, so that no loop absorbs it: `L1^7 MPI_Send` is not `L1^7` and half
//! an iteration.

use crate::filter::{self, Filter, Groups};
use crate::{Error, ObjectName, Options, Part};
use lockstep_loops::{Bodies, Element, Mode, fold};
use lockstep_trace::{Event, FunctionId, Run, Thread};
use regex::Regex;
use rustc_hash::FxHashMap;

/// Function names as numbers, common to all runs of a comparison, each with the filters that keep it.
pub(crate) struct Alphabet {
    names: Vec<String>,
    groups: Vec<u16>,
    numbers: FxHashMap<String, u32>,
    filters: Groups,
    part: PartRegex,
}

/// The token of a kept return.
const RETURN: u32 = 0;

/// A token: the number of a name, and whether that call is open.
pub(crate) fn symbol(token: u32) -> u32 {
    token >> 1
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
}

impl Alphabet {
    /// # Errors
    /// A pattern that does not parse.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        Ok(Self {
            names: vec!["return".into()],
            groups: vec![0],
            numbers: FxHashMap::default(),
            filters: Groups::new(options.filter.custom.as_deref(), &options.ignore)?,
            part: PartRegex::new(&options.part)?,
        })
    }

    /// The number of each function of a run.
    pub(crate) fn add(&mut self, run: &Run) -> Vec<u32> {
        run.functions
            .iter()
            .map(|function| {
                let groups = self.filters.of(function);
                let number = match self.numbers.get(&function.name) {
                    Some(number) => *number,
                    None => {
                        let number = self.names.len() as u32;
                        self.numbers.insert(function.name.clone(), number);
                        self.names.push(function.name.clone());
                        self.groups.push(0);
                        number
                    }
                };
                self.groups[number as usize] |= groups;
                number
            })
            .collect()
    }

    /// The name behind a token.
    pub(crate) fn name(&self, token: u32) -> &str {
        &self.names[symbol(token) as usize]
    }
}

/// What is looked at: a filter, and what becomes of returns and `@plt` names.
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

    /// Whether each name of the alphabet is kept.
    fn kept(&self, alphabet: &Alphabet) -> Vec<bool> {
        let bits = self.filter.bits();
        alphabet
            .names
            .iter()
            .zip(&alphabet.groups)
            .map(|(name, groups)| groups & bits != 0 && (self.keep_plt || !name.ends_with("@plt")))
            .collect()
    }
}

/// The traces of one run that are looked at.
pub(crate) struct Traces<'a> {
    pub(crate) threads: Vec<&'a Thread>,
    numbers: Vec<u32>,
}

impl<'a> Traces<'a> {
    pub(crate) fn new(run: &'a Run, alphabet: &mut Alphabet, options: &Options) -> Self {
        let threads = match &options.traces {
            None => run.traces().collect(),
            Some(names) => {
                let mut threads: Vec<_> =
                    names.iter().filter_map(|name| run.trace(*name)).collect();
                threads.sort_by_key(|thread| thread.name);
                threads.dedup_by_key(|thread| thread.name);
                threads
            }
        };
        Self {
            threads,
            numbers: alphabet.add(run),
        }
    }

    fn number(&self, function: FunctionId) -> u32 {
        self.numbers
            .get(function.0 as usize)
            .copied()
            .unwrap_or(RETURN)
    }

    /// Whether each name of the alphabet is called by some trace.
    pub(crate) fn called(&self, alphabet: &Alphabet) -> Vec<bool> {
        let mut called = vec![false; alphabet.names.len()];
        for thread in &self.threads {
            for event in thread.events() {
                if let Event::Call(function) = event {
                    called[self.number(function) as usize] = true;
                }
            }
        }
        called
    }

    /// What the lens leaves of each trace, as tokens.
    pub(crate) fn filtered(&self, alphabet: &Alphabet, lens: &Lens) -> Vec<Filtered> {
        let kept = lens.kept(alphabet);
        self.threads
            .iter()
            .flat_map(|thread| self.filter(thread, alphabet, lens, &kept))
            .collect()
    }

    fn filter(
        &self,
        thread: &Thread,
        alphabet: &Alphabet,
        lens: &Lens,
        kept: &[bool],
    ) -> Vec<Filtered> {
        let part = &alphabet.part;
        let is = |regex: &Option<Regex>, number: u32| {
            regex.as_ref().is_some_and(|regex| {
                regex.is_match(&filter::c_name(&alphabet.names[number as usize]))
            })
        };
        let mut pieces = vec![Vec::new()];
        let mut inside = part.from.is_none();
        let mut done = false;
        // Where the token of each open call stands (piece, place); `None` where it is not kept.
        let mut open: Vec<(Option<(usize, usize)>, bool)> = Vec::new();
        let mut handed_over = false;
        for event in thread.events() {
            match event {
                Event::Call(function) => {
                    let number = self.number(function);
                    if !done && inside && is(&part.to, number) {
                        done = true;
                    } else if !inside && is(&part.from, number) {
                        inside = true;
                    }
                    if inside && !done && is(&part.split_at, number) {
                        pieces.push(Vec::new());
                    }
                    let last = pieces.len() - 1;
                    let mut place = None;
                    if inside && !done && kept[number as usize] {
                        place = Some((last, pieces[last].len()));
                        pieces[last].push(number << 1);
                    }
                    open.push((place, std::mem::take(&mut handed_over)));
                }
                Event::Tail => handed_over = true,
                Event::Return => {
                    // A frame that handed over returns right after the one it handed over to.
                    handed_over = false;
                    while let Some((place, more)) = open.pop() {
                        if place.is_some() && lens.keep_returns && inside && !done {
                            let last = pieces.len() - 1;
                            pieces[last].push(RETURN << 1);
                        }
                        if !more {
                            break;
                        }
                    }
                }
            }
        }
        for (place, _) in &open {
            if let Some((piece, place)) = place {
                pieces[*piece][*place] |= 1;
            }
        }
        let split = part.split_at.is_some();
        pieces
            .into_iter()
            .enumerate()
            .map(|(piece, tokens)| Filtered {
                object: ObjectName {
                    trace: thread.name,
                    piece: split.then_some(piece as u32),
                },
                tokens,
            })
            .collect()
    }
}

/// What a lens leaves of a trace.
pub(crate) struct Filtered {
    pub(crate) object: ObjectName,
    pub(crate) tokens: Vec<u32>,
}

impl Filtered {
    /// The open calls, outermost first.
    pub(crate) fn open(&self) -> impl Iterator<Item = u32> + '_ {
        self.tokens.iter().copied().filter(|token| token & 1 == 1)
    }
}

/// Sequences with their loops folded, each distinct one once, over one table of bodies.
#[derive(Default)]
pub(crate) struct Folding {
    pub(crate) bodies: Bodies,
    pub(crate) sequences: Vec<Vec<Element>>,
    numbers: FxHashMap<Vec<u32>, usize>,
}

impl Folding {
    /// The number of the folded sequence of these tokens.
    pub(crate) fn add(&mut self, tokens: Vec<u32>, k: usize) -> usize {
        let (bodies, sequences) = (&mut self.bodies, &mut self.sequences);
        *self.numbers.entry(tokens).or_insert_with_key(|tokens| {
            sequences.push(fold(tokens.iter().copied(), k, Mode::Shape, bodies));
            sequences.len() - 1
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
    pub(crate) fn new(
        traces: &Traces<'_>,
        alphabet: &Alphabet,
        lens: &Lens,
        folding: &mut Folding,
    ) -> Self {
        let (names, sequences) = traces
            .filtered(alphabet, lens)
            .into_iter()
            .map(|filtered| (filtered.object, folding.add(filtered.tokens, lens.k)))
            .unzip();
        Self { names, sequences }
    }

    /// # Errors
    /// No object, or nothing in any of them.
    pub(crate) fn refuse_nothing(&self, folding: &Folding, lens: &Lens) -> Result<(), Error> {
        if self.names.is_empty() {
            return Err(Error::Nothing("no trace to look at".into()));
        }
        if self
            .sequences
            .iter()
            .all(|index| folding.sequences[*index].is_empty())
        {
            return Err(Error::Nothing(format!(
                "--filter: expected a filter that keeps a function that was called, found `{}`, which keeps none",
                lens.paper()
            )));
        }
        Ok(())
    }
}
