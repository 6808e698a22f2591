//! The attributes of every trace of every run, family by family.
//!
//! Families: entries, pairs and triples of the folded sequence under each filter, with and without how
//! often; caller and callee; call paths; loop bodies and trip counts where they stand; what is open at
//! the end; what MPI calls were given; how long the trace is; which call follows which in a function, apart for functions that wait
//! ([`Timing`]). Equal trees are looked at once.

use super::keys::{Drafted, Key, Meaning, Often, STEPS, Says, WAITING_STEPS};
use super::order::{NewOrder, new_orders};
use super::steps::{Steps, new_steps};
use super::surprisal::Family;
use crate::calls::{Calls, Paths, add};
use crate::difftrace::attribute::what::Entry;
use crate::difftrace::sequence::{Folding, Lens};
use crate::difftrace::sweep;
use crate::difftrace::trees::{RunTrees, Trees};
use crate::numbered::Numbered;
use crate::structure::arguments;
use crate::structure::steps::Step;
use crate::structure::timing::Timing;
use crate::{ObjectName, Options, Part};
use lockstep_calltree::{Forest, FunctionKey, NodeId, Projection, Shape};
use lockstep_comm::communicators::Communicators;
use lockstep_loops::Element;
use lockstep_trace::TraceName;
use lockstep_trace::mpi::Kind;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The attributes of all objects of all runs.
#[derive(Default)]
pub(crate) struct Features {
    pub(crate) names: Vec<ObjectName>,
    /// For each name its class in each run.
    pub(crate) classes: Vec<Vec<Option<usize>>>,
    pub(crate) families: Vec<Family>,
    /// One for each family.
    pub(crate) meanings: Vec<Meaning>,
    /// The filters and their sequences.
    pub(crate) lenses: Vec<(Lens, Folding)>,
    pub(crate) paths: Paths,
    /// For each trace of the last run how many steps in functions that wait it has which no trace of the others has.
    pub(crate) new_steps: FxHashMap<TraceName, u64>,
    /// Steps of the last run, of whichever function, that no trace of the others has.
    pub(super) new_orders: Vec<NewOrder>,
    /// Whether there are functions that wait.
    pub(crate) waits: bool,
}

/// A family as it is read: for each object and run the number of a set.
struct Draft {
    meaning: Meaning,
    sets: Numbered<Vec<u32>>,
    of: Vec<Vec<Option<usize>>>,
}

impl Draft {
    /// From the keys of each behaviour, and the behaviour of each object in each run.
    fn new(
        (name, lens, counts): (&'static str, Option<usize>, bool),
        behaviours: Vec<Vec<Key>>,
        of: &[Vec<Option<usize>>],
    ) -> Self {
        let mut keys = Numbered::default();
        let mut sets = Numbered::default();
        let each = behaviours.into_iter().map(|behaviour| {
            let numbers = behaviour.into_iter().map(|key| keys.number(key) as u32);
            let mut set: Vec<u32> = numbers.collect();
            set.sort_unstable();
            set.dedup();
            sets.number(set)
        });
        let numbers: Vec<usize> = each.collect();
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

/// Places on call paths that are looked at in a trace; beyond them its paths are not compared.
const PATHS: usize = 1 << 16;

impl Features {
    /// Of all runs of `trees`, without functions of these names.
    pub(crate) fn new(trees: &mut Trees, options: &Options, left_out: &[String]) -> Self {
        // What a standard library does inside itself says nothing, unless somebody asks for it, or for pieces that begin there.
        if !options.sweep || options.part != Part::default() {
            return Self::of(trees, options, left_out);
        }
        let roots = trees.close(None);
        let features = Self::of(trees, options, left_out);
        trees.open(roots);
        features
    }

    fn of(trees: &mut Trees, options: &Options, left_out: &[String]) -> Self {
        let lens = (!options.sweep).then(|| Lens::of(options));
        let mut projection = trees.projection(lens.as_ref(), left_out);
        let roots = trees.projected(&mut projection);
        let sequences = sequences(trees, options, left_out);
        // Every lens has the same objects.
        let names: BTreeSet<ObjectName> = (sequences.iter())
            .flat_map(|(.., objects)| objects.iter().flatten().map(|(name, _)| *name))
            .collect();
        let mut features = Self {
            names: names.into_iter().collect(),
            ..Self::default()
        };
        let mut drafts = Vec::new();
        for (lens, folding, objects) in sequences {
            if !folding.sequences.iter().all(Vec::is_empty) {
                let of = features.places(&objects);
                drafts.extend(of_sequences(features.lenses.len(), &folding, &of));
                features.lenses.push((lens, folding));
            }
        }
        if options.part.split_at.is_none() {
            drafts.extend(features.of_trees(trees, &roots));
        }
        if options.part == Part::default() {
            drafts.extend(features.of_arguments(trees, &projection));
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

    fn of_trees(&mut self, trees: &Trees, roots: &[Vec<NodeId>]) -> Vec<Draft> {
        let forest = &trees.forest;
        let mut behaviours = Numbered::default();
        let objects: Drafted = (trees.runs.iter().zip(roots))
            .map(|(run, roots)| {
                let names = run.traces.iter().map(|trace| trace.name.into());
                let numbers = roots.iter().map(|root| behaviours.number(*root));
                names.zip(numbers).collect()
            })
            .collect();
        let roots = behaviours.items;
        let timing = Timing::of(forest, &roots);
        let steps = Steps::of(forest, &roots, &timing);
        self.waits = !timing.waits.is_empty();
        self.new_steps = new_steps(trees, &objects, &steps);
        self.new_orders = new_orders(trees, &objects, &steps);
        let all: Vec<Calls> = roots
            .par_iter()
            .map(|root| Calls::new(forest, *root, &|it| timing.is_pause(forest, it)))
            .collect();
        let on_paths = roots.iter().map(|root| {
            let is_left_out = |it| timing.is_pause(forest, it);
            let paths = self.paths.of(forest, *root, &is_left_out, PATHS);
            paths.map_or_else(Vec::new, |it| it.into_keys().map(Key::Path).collect())
        });
        let on_paths: Vec<Vec<Key>> = on_paths.collect();
        let each = OfTrees::new(forest, &all);
        let open = roots.iter().map(|root| {
            let stack: Vec<FunctionKey> = forest.open(*root).iter().map(|it| it.function).collect();
            let is_open = !stack.is_empty();
            is_open.then_some(Key::Open(stack)).into_iter().collect()
        });
        let length = roots.iter().map(|root| {
            let says = Often::at_least(forest.node(*root).events);
            says.into_iter().map(Key::Length).collect()
        });
        let keys = |of: &FxHashMap<(Option<FunctionKey>, Step), u64>| {
            let key = |(function, step): &(_, _)| Key::Step(*function, *step);
            of.keys().map(key).collect::<Vec<Key>>()
        };
        let waiting = steps.iter().map(|it| keys(&it.waiting)).collect();
        let others = steps.iter().map(|it| keys(&it.others)).collect();
        let of = self.places(&objects);
        let draft = |(name, counts, keys)| Draft::new((name, None, counts), keys, &of);
        let kinds = [
            ("callers", false, each.edges(Often::any)),
            ("calls-about", true, each.edges(Often::at_least)),
            ("calls", true, each.edges(Often::exactly)),
            ("paths", false, on_paths),
            ("loops", false, each.loops(Often::any)),
            ("trips", true, each.loops(Often::exactly)),
            ("trips-about", true, each.loops(Often::at_least)),
            ("open", false, open.collect()),
            ("length", true, length.collect()),
            (WAITING_STEPS, false, waiting),
            (STEPS, false, others),
        ];
        kinds.map(draft).into()
    }

    /// What MPI calls were given; nothing where nothing was recorded.
    fn of_arguments(&self, trees: &Trees, projection: &Projection) -> Vec<Draft> {
        let read = |of_run: &RunTrees| {
            let run = of_run.run;
            let communicators = Communicators::of(run);
            let keep = |id| projection.keeps(of_run.functions.key(id));
            let traces = of_run.traces.par_iter().map(|trace| {
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
        let all: Vec<_> = trees.runs.iter().map(read).collect();
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
        let mut classes: Numbered<Vec<usize>> = Numbered::default();
        let runs = drafts
            .first()
            .and_then(|it| it.of.first())
            .map_or(0, Vec::len);
        self.classes = (0..self.names.len())
            .map(|name| {
                let of = (0..runs).map(|run| {
                    let sets: Vec<usize> =
                        drafts.iter().filter_map(|it| it.of[name][run]).collect();
                    (!sets.is_empty()).then(|| classes.number(sets))
                });
                of.collect()
            })
            .collect();
        for (place, draft) in drafts.into_iter().enumerate() {
            self.families.push(Family {
                sets: draft.sets.items,
                of_class: classes.items.iter().map(|sets| sets[place]).collect(),
            });
            self.meanings.push(draft.meaning);
        }
    }
}

/// Who calls whom in each of some trees, and the loops there.
struct OfTrees<'a> {
    forest: &'a Forest,
    all: &'a [Calls],
    /// One loop of each body stands for all.
    bodies: FxHashMap<Shape, NodeId>,
}

impl<'a> OfTrees<'a> {
    fn new(forest: &'a Forest, all: &'a [Calls]) -> Self {
        let mut bodies = FxHashMap::default();
        for (_, id) in all.iter().flat_map(|calls| &calls.loops) {
            bodies.entry(forest.shape(*id)).or_insert(*id);
        }
        Self {
            forest,
            all,
            bodies,
        }
    }

    fn edges(&self, says: Says) -> Vec<Vec<Key>> {
        let keys = |calls: &Calls| {
            let each = calls.edges.iter().flat_map(|((caller, callee), times)| {
                let key = |often| Key::Edge(*caller, *callee, often);
                says(*times).into_iter().map(key)
            });
            each.collect()
        };
        self.all.iter().map(keys).collect()
    }

    fn loops(&self, says: Says) -> Vec<Vec<Key>> {
        let keys = |calls: &Calls| {
            let each = calls.loops.iter().flat_map(|(caller, id)| {
                let body = self.bodies[&self.forest.shape(*id)];
                let key = move |often| Key::Loop(*caller, body, often);
                says(self.forest.trip_count(*id)).into_iter().map(key)
            });
            each.collect()
        };
        self.all.iter().map(keys).collect()
    }
}

/// The traces of all runs under each filter.
fn sequences(
    trees: &Trees,
    options: &Options,
    left_out: &[String],
) -> Vec<(Lens, Folding, Drafted)> {
    let lenses = sweep::lenses(options).into_par_iter();
    let lenses = lenses.filter(|lens| !(options.sweep && lens.keep_returns));
    lenses
        .map(|lens| {
            let mut folding = Folding::default();
            let each = (0..trees.runs.len()).map(|run| {
                let objects = trees.objects(run, &lens, left_out, &mut folding);
                let sequences = objects.items.into_iter().map(|item| item.sequence);
                objects.names.into_iter().zip(sequences).collect()
            });
            let objects = each.collect();
            (lens, folding, objects)
        })
        .collect()
}

/// The families of one filter.
fn of_sequences(lens: usize, folding: &Folding, of: &[Vec<Option<usize>>]) -> Vec<Draft> {
    let grams = |length: usize, says: Says| -> Vec<Vec<Key>> {
        let keys = folding.sequences.iter().map(|sequence| {
            let mut counts: FxHashMap<Vec<Entry>, u64> = FxHashMap::default();
            for window in sequence.windows(length) {
                let by = match window {
                    [Element::Loop(looped)] => looped.count(),
                    _ => 1,
                };
                add(&mut counts, window.iter().map(Entry::of).collect(), by);
            }
            let keys = |(entries, times): (Vec<Entry>, u64)| {
                let key = move |often| Key::Entries(entries.clone(), often);
                says(times).into_iter().map(key)
            };
            counts.into_iter().flat_map(keys).collect()
        });
        keys.collect()
    };
    [
        ("single", false, grams(1, Often::any)),
        ("double", false, grams(2, Often::any)),
        ("triple", false, grams(3, Often::any)),
        ("single-times", true, grams(1, Often::exactly)),
        ("single-about", true, grams(1, Often::at_least)),
    ]
    .map(|(name, counts, keys)| Draft::new((name, Some(lens), counts), keys, of))
    .into()
}
