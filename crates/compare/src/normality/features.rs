//! The attributes of every trace of every run, family by family.
//!
//! Families: entries, pairs and triples of the folded sequence under each filter, with and without how
//! often; caller and callee; call paths; loop bodies and trip counts where they stand; what is open at
//! the end; what MPI calls were given; how long the trace is; which call follows which in a function, apart for functions that wait
//! ([`Timing`]). Equal trees are looked at once.

use super::order::{NewOrder, new_orders};
use super::surprisal::Family;
use super::trees::{Calls, Steps, call_paths, new_steps};
use crate::arguments::{self, Said};
use crate::attribute::Entry;
use crate::divergence::usual::Step;
use crate::sequence::{Folding, Lens, Trees};
use crate::timing::Timing;
use crate::{ObjectName, Options, Part, sweep};
use lockstep_calltree::{Forest, FunctionKey, NodeId, Projection};
use lockstep_loops::Element;
use lockstep_trace::mpi::Kind;
use lockstep_trace::{Run, TraceName};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// What an attribute is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// Entries in a row of a folded sequence, under a filter.
    Entries(Vec<Entry>, Often),
    /// A call, by its caller; none of the outermost.
    Edge(Option<FunctionKey>, FunctionKey, Often),
    /// In a function (none: outside of all), one call after another; none at its beginning and end.
    Step(Option<FunctionKey>, Step),
    /// A call path, as its number.
    Path(u32),
    /// A loop in a function, given by one such loop.
    Loop(Option<FunctionKey>, NodeId, Often),
    /// Calls open at the end.
    Open(Vec<FunctionKey>),
    /// A function, an argument of it, and what it was.
    Argument(String, &'static str, Said),
    /// The number of events.
    Length(Often),
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Often {
    /// At all.
    Any,
    /// So often.
    Times(u64),
    /// At least two to the power of this: what is an order of magnitude off differs in many attributes.
    AtLeast(u32),
}

/// What the attributes of a family are.
#[derive(Debug, Clone)]
pub(crate) struct Meaning {
    /// `single`, `callers`, `arguments`.
    pub(crate) name: &'static str,
    /// The filter, of sequences.
    pub(crate) lens: Option<usize>,
    /// Whether it is about how often alone.
    pub(crate) counts: bool,
    pub(crate) keys: Vec<Key>,
}

/// The attributes of all objects of all runs.
pub(crate) struct Features {
    pub(crate) names: Vec<ObjectName>,
    /// For each name its class in each run.
    pub(crate) classes: Vec<Vec<Option<usize>>>,
    pub(crate) families: Vec<Family>,
    /// One for each family.
    pub(crate) meanings: Vec<Meaning>,
    /// The filters and their sequences.
    pub(crate) lenses: Vec<(Lens, Folding)>,
    /// Call paths: the one above, and the function.
    pub(crate) paths: Vec<(Option<u32>, FunctionKey)>,
    /// For each trace of the last run how many steps in functions that wait it has which no trace of the others has.
    pub(crate) new_steps: FxHashMap<TraceName, u64>,
    /// Steps of the last run, of whichever function, that no trace of the others has.
    pub(super) new_orders: Vec<NewOrder>,
    /// Whether there are functions that wait.
    pub(crate) waits: bool,
}

/// Families of steps: in functions that wait, and in others.
pub(crate) const WAITING_STEPS: &str = "waiting-steps";
pub(crate) const STEPS: &str = "steps";

/// Items in the order of their first occurrence.
pub(super) struct Numbered<K> {
    numbers: FxHashMap<K, u32>,
    pub(super) items: Vec<K>,
}

impl<K: Clone + Eq + Hash> Numbered<K> {
    fn new() -> Self {
        Self {
            numbers: FxHashMap::default(),
            items: Vec::new(),
        }
    }

    pub(super) fn number(&mut self, item: K) -> u32 {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        let number = self.items.len() as u32;
        self.numbers.insert(item.clone(), number);
        self.items.push(item);
        number
    }
}

/// A family as it is read: for each object and run the number of a set.
struct Draft {
    meaning: Meaning,
    sets: Numbered<Vec<u32>>,
    of: Vec<Vec<Option<u32>>>,
}

impl Draft {
    /// From the keys of each behaviour, and the behaviour of each object in each run.
    fn new(
        (name, lens, counts): (&'static str, Option<usize>, bool),
        behaviours: Vec<Vec<Key>>,
        of: &[Vec<Option<usize>>],
    ) -> Self {
        let mut keys = Numbered::new();
        let mut sets = Numbered::new();
        let numbers: Vec<u32> = behaviours
            .into_iter()
            .map(|behaviour| {
                let mut set: Vec<u32> = behaviour.into_iter().map(|key| keys.number(key)).collect();
                set.sort_unstable();
                set.dedup();
                sets.number(set)
            })
            .collect();
        let of = of
            .iter()
            .map(|runs| runs.iter().map(|it| it.map(|it| numbers[it])).collect())
            .collect();
        Self {
            meaning: Meaning {
                name,
                lens,
                counts,
                keys: keys.items,
            },
            sets,
            of,
        }
    }
}

impl Features {
    /// Of all runs of `trees`, without functions of these names.
    pub(crate) fn new(
        trees: &mut Trees,
        runs: &[&Run],
        options: &Options,
        left_out: &[String],
    ) -> Self {
        // What a standard library does inside itself says nothing, unless somebody asks for it, or for pieces that begin there.
        if !options.sweep || options.part != Part::default() {
            return Self::of(trees, runs, options, left_out);
        }
        let roots = trees.close();
        let features = Self::of(trees, runs, options, left_out);
        trees.open(roots);
        features
    }

    fn of(trees: &mut Trees, runs: &[&Run], options: &Options, left_out: &[String]) -> Self {
        let lens = (!options.sweep).then(|| Lens::of(options));
        let mut projection = trees.projection_without(lens.as_ref(), left_out);
        let roots: Vec<Vec<NodeId>> = trees
            .runs
            .iter()
            .map(|run| {
                let forest = &mut trees.forest;
                run.iter()
                    .map(|it| forest.project(it.root, &mut projection))
                    .collect()
            })
            .collect();
        let lenses: Vec<Lens> = sweep::lenses(options)
            .into_iter()
            .filter(|lens| !(options.sweep && lens.keep_returns))
            .collect();
        let trees: &Trees = trees;
        let sequences: Vec<(Lens, Folding, Vec<Drafted>)> = lenses
            .into_par_iter()
            .map(|lens| {
                let mut folding = Folding::default();
                let objects: Drafted = (0..trees.runs.len())
                    .map(|run| {
                        let objects = trees.objects_without(run, &lens, left_out, &mut folding);
                        let sequences = objects.items.into_iter().map(|item| item.sequence);
                        objects.names.into_iter().zip(sequences).collect()
                    })
                    .collect();
                (lens, folding, vec![objects])
            })
            .collect();
        // Every lens has the same objects.
        let mut names: Vec<ObjectName> = sequences
            .iter()
            .flat_map(|(_, _, objects)| &objects[0])
            .flat_map(|run| run.iter().map(|(name, _)| *name))
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut features = Self {
            names,
            classes: Vec::new(),
            families: Vec::new(),
            meanings: Vec::new(),
            lenses: Vec::new(),
            paths: Vec::new(),
            new_steps: FxHashMap::default(),
            new_orders: Vec::new(),
            waits: false,
        };
        let mut drafts = Vec::new();
        for (lens, folding, objects) in sequences {
            if folding.sequences.iter().all(Vec::is_empty) {
                continue;
            }
            let of = features.places(&objects[0]);
            drafts.extend(of_sequences(features.lenses.len(), &folding, &of));
            features.lenses.push((lens, folding));
        }
        if options.part.split_at.is_none() {
            let mut behaviours = Numbered::new();
            let objects: Drafted = (trees.runs.iter().zip(&roots))
                .map(|(run, roots)| {
                    let number = |root: &NodeId| behaviours.number(*root) as usize;
                    let names = run.iter().map(|trace| trace.name.into());
                    names.zip(roots.iter().map(number)).collect()
                })
                .collect();
            let of = features.places(&objects);
            let timing = Timing::of(&trees.forest, &behaviours.items);
            let steps = Steps::of(&trees.forest, &behaviours.items, &timing);
            features.waits = !timing.waits.is_empty();
            features.new_steps = new_steps(trees, &objects, &steps);
            features.new_orders = new_orders(trees, &objects, &steps);
            drafts.extend(features.of_trees(
                (&trees.forest, &timing),
                &behaviours.items,
                &steps,
                &of,
            ));
        }
        if options.part == Part::default() {
            drafts.extend(features.of_arguments(trees, runs, &projection));
        }
        features.finish(drafts);
        features
    }

    /// For each name what it is in each run.
    fn places(&self, objects: &Drafted) -> Vec<Vec<Option<usize>>> {
        let mut of = vec![vec![None; objects.len()]; self.names.len()];
        for (run, objects) in objects.iter().enumerate() {
            for (name, item) in objects {
                if let Ok(place) = self.names.binary_search(name) {
                    of[place][run] = Some(*item);
                }
            }
        }
        of
    }

    fn of_trees(
        &mut self,
        (forest, timing): (&Forest, &Timing),
        roots: &[NodeId],
        steps: &[Steps],
        of: &[Vec<Option<usize>>],
    ) -> Vec<Draft> {
        let all: Vec<Calls> = roots
            .par_iter()
            .map(|root| Calls::new(forest, *root, timing))
            .collect();
        let each = |of: &dyn Fn(&Calls) -> Vec<Key>| all.iter().map(of).collect::<Vec<_>>();
        let mut paths = Numbered::new();
        let on_paths = roots
            .iter()
            .map(|root| call_paths(forest, *root, timing, &mut paths));
        let on_paths: Vec<Vec<Key>> = on_paths.collect();
        self.paths = paths.items;
        let mut bodies: FxHashMap<_, NodeId> = FxHashMap::default();
        let mut body = |id: NodeId| *bodies.entry(forest.shape(id)).or_insert(id);
        let mut loops: [Vec<Vec<Key>>; 3] = Default::default();
        for calls in &all {
            let mut keys: [Vec<Key>; 3] = Default::default();
            for (caller, id) in &calls.loops {
                let (example, trips) = (body(*id), forest.trip_count(*id));
                for (keys, often) in keys.iter_mut().zip([any, exactly, at_least]) {
                    let key = |often| Key::Loop(*caller, example, often);
                    keys.extend(often(trips).into_iter().map(key));
                }
            }
            for (loops, keys) in loops.iter_mut().zip(keys) {
                loops.push(keys);
            }
        }
        let [bodies, trips, trips_about] = loops;
        let edges = |often: fn(u64) -> Vec<Often>| {
            each(&|calls: &Calls| {
                let keys = |((caller, callee), times): (&(_, _), &u64)| {
                    let (caller, callee) = (*caller, *callee);
                    let key = move |often| Key::Edge(caller, callee, often);
                    often(*times).into_iter().map(key)
                };
                calls.edges.iter().flat_map(keys).collect()
            })
        };
        let open = roots.iter().map(|root| {
            let stack: Vec<FunctionKey> = forest.open(*root).iter().map(|it| it.function).collect();
            if stack.is_empty() {
                vec![]
            } else {
                vec![Key::Open(stack)]
            }
        });
        let length = roots.iter().map(|root| {
            let events = forest.node(*root).events;
            at_least(events).into_iter().map(Key::Length).collect()
        });
        let (open, length) = (open.collect(), length.collect());
        let keys = |of: &FxHashMap<(Option<FunctionKey>, Step), u64>| {
            let key = |(function, step): &(_, _)| Key::Step(*function, *step);
            of.keys().map(key).collect::<Vec<Key>>()
        };
        let waiting = steps.iter().map(|it| keys(&it.waiting)).collect();
        let others = steps.iter().map(|it| keys(&it.others)).collect();
        let kinds = [
            ("callers", false, edges(any)),
            ("calls-about", true, edges(at_least)),
            ("calls", true, edges(exactly)),
            ("paths", false, on_paths),
            ("loops", false, bodies),
            ("trips", true, trips),
            ("trips-about", true, trips_about),
            ("open", false, open),
            ("length", true, length),
            (WAITING_STEPS, false, waiting),
            (STEPS, false, others),
        ];
        let draft = |(name, counts, keys)| Draft::new((name, None, counts), keys, of);
        kinds.map(draft).into()
    }

    /// What MPI calls were given; nothing where nothing was recorded.
    fn of_arguments(&self, trees: &Trees, runs: &[&Run], projection: &Projection) -> Vec<Draft> {
        let read = |(place, run): (usize, &&Run)| {
            let communicators = run.communicators();
            let keep = |id| projection.keeps(trees.functions[place].key(id));
            let traces = trees.runs[place].par_iter().map(|trace| {
                let mut keys = [FxHashSet::default(), FxHashSet::default()];
                // Threads of processes that are matched by program go by another's name; MPI's do not.
                let thread = run.trace(trace.name).into_iter();
                for call in thread.flat_map(|it| arguments::calls(run, &communicators, it)) {
                    if keep(call.function) {
                        // Where in a window is another place each time.
                        for it in call.given.into_iter().filter(|it| it.kind != Kind::Long) {
                            let counts = usize::from(it.kind == Kind::Int);
                            keys[counts].insert((call.name.clone(), it.name, it.said));
                        }
                    }
                }
                (trace.name.into(), keys)
            });
            traces.collect::<Vec<(ObjectName, _)>>()
        };
        let all: Vec<_> = runs.iter().enumerate().map(read).collect();
        // A run without recorded arguments is not one whose calls had none.
        if all
            .iter()
            .any(|run| run.iter().all(|(_, keys)| keys[0].is_empty()))
        {
            return Vec::new();
        }
        let mut behaviours = [Vec::new(), Vec::new()];
        let objects: Drafted = all
            .into_iter()
            .map(|run| {
                let number = |(name, keys): (ObjectName, [FxHashSet<_>; 2])| {
                    for (behaviours, keys) in behaviours.iter_mut().zip(keys) {
                        let mut keys: Vec<_> = keys.into_iter().collect();
                        keys.sort_unstable();
                        let key = |(function, name, said)| Key::Argument(function, name, said);
                        behaviours.push(keys.into_iter().map(key).collect());
                    }
                    (name, behaviours[0].len() - 1)
                };
                run.into_iter().map(number).collect()
            })
            .collect();
        let of = self.places(&objects);
        let [arguments, counts] = behaviours;
        vec![
            Draft::new(("arguments", None, false), arguments, &of),
            Draft::new(("argument-counts", None, true), counts, &of),
        ]
    }

    /// Objects that are alike in all families are of one class.
    fn finish(&mut self, drafts: Vec<Draft>) {
        let mut classes: Numbered<Vec<u32>> = Numbered::new();
        let runs = drafts
            .first()
            .and_then(|it| it.of.first())
            .map_or(0, Vec::len);
        self.classes = (0..self.names.len())
            .map(|name| {
                let of = (0..runs).map(|run| {
                    let sets: Vec<u32> = drafts.iter().filter_map(|it| it.of[name][run]).collect();
                    (!sets.is_empty()).then(|| classes.number(sets) as usize)
                });
                of.collect()
            })
            .collect();
        for (place, draft) in drafts.into_iter().enumerate() {
            self.families.push(Family {
                sets: draft.sets.items,
                of_class: classes
                    .items
                    .iter()
                    .map(|sets| sets[place] as usize)
                    .collect(),
            });
            self.meanings.push(draft.meaning);
        }
    }
}

/// For each run its objects, and the number of what each of them is.
pub(super) type Drafted = Vec<Vec<(ObjectName, usize)>>;

fn any(_: u64) -> Vec<Often> {
    vec![Often::Any]
}

fn exactly(times: u64) -> Vec<Often> {
    vec![Often::Times(times)]
}

fn at_least(times: u64) -> Vec<Often> {
    (0..=times.max(1).ilog2()).map(Often::AtLeast).collect()
}

/// The families of one filter.
fn of_sequences(lens: usize, folding: &Folding, of: &[Vec<Option<usize>>]) -> Vec<Draft> {
    let grams = |length: usize, often: fn(u64) -> Vec<Often>| -> Vec<Vec<Key>> {
        let keys = folding.sequences.iter().map(|sequence| {
            let mut counts: FxHashMap<Vec<Entry>, u64> = FxHashMap::default();
            for window in sequence.windows(length) {
                let by = match window {
                    [Element::Loop(looped)] => looped.count(),
                    _ => 1,
                };
                let count = counts
                    .entry(window.iter().map(Entry::of).collect())
                    .or_default();
                *count = count.saturating_add(by);
            }
            let keys = |(entries, times): (Vec<Entry>, u64)| {
                let key = move |often| Key::Entries(entries.clone(), often);
                often(times).into_iter().map(key)
            };
            counts.into_iter().flat_map(keys).collect()
        });
        keys.collect()
    };
    [
        ("single", false, grams(1, any)),
        ("double", false, grams(2, any)),
        ("triple", false, grams(3, any)),
        ("single-times", true, grams(1, exactly)),
        ("single-about", true, grams(1, at_least)),
    ]
    .map(|(name, counts, keys)| Draft::new((name, Some(lens), counts), keys, of))
    .into()
}
