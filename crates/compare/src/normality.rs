//! With several normal runs: how unusual each trace is, measured by how the normal runs differ among
//! themselves.
//!
//! ```text
//!  traces of all runs ─features─► sets of attributes, family by family
//!  normal runs ─roles─► who does the same work       ┐
//!  every run against all others ─surprisal─► scores  ┴─► the greatest one of each run ─tail─► p
//! ```
//!
//! The score of a trace is the greatest over families, that of a run the greatest over its traces (over its main
//! threads, and over the others: [`strata`]),
//! so that looking through hundreds of families and thousands of traces is paid for: a healthy run is as
//! likely to have the greatest score as any other.
//!
//! Families are of three sorts ([`Sort`]), each beside its own like, so that what differs in every run hides nothing of what never
//! does. Where normal runs waver in a family, no more is said than they can tell by their number.

use crate::sequence::Trees;
use crate::{Error, ObjectName, Options};
use lockstep_trace::{Run, ThreadName, TraceName};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub(crate) mod evidence;
pub(crate) mod features;
mod roles;
pub(crate) mod surprisal;
mod tail;

pub use evidence::Evidence;
use features::{Features, STEPS, WAITING_STEPS};
pub use roles::Role;
use surprisal::{Family, Object, Population, judge, oddities};

/// The roles that traces play in some runs.
///
/// # Errors
/// A pattern that does not parse.
pub fn roles(runs: &[&Run], options: &Options) -> Result<Vec<Role>, Error> {
    let mut trees = Trees::new(runs, options)?.refuse_some()?;
    let features = Features::new(&mut trees, runs, options, &[]);
    let role_of = roles::roles(&features, runs.len());
    let names: Vec<TraceName> = features.names.iter().map(|name| name.trace).collect();
    Ok(roles::named(&names, &role_of))
}

/// Resamples of the normal runs.
const RESAMPLES: usize = 20;
/// A trace is stable in a resample if it is among the first so many.
const FIRST: usize = 3;

/// What can be said by a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Normal runs are alike in it, or it is about the order of calls where nothing depends on timing, or about what is open at the end.
    Firm,
    /// The order of calls in functions that wait.
    Waiting,
    /// Normal runs differ in it, or it is about how often, where functions wait.
    Wavering,
}

const SORTS: usize = 3;

/// The greatest scores of normal runs, by sort of families and stratum.
struct Null {
    by_sort: [Vec<Vec<f64>>; SORTS],
}

/// The last run beside those before it.
pub(crate) struct Normality {
    features: Features,
    population: Population,
    /// For each name of the features its object in the population.
    object_of: Vec<usize>,
    /// What normal runs' scores are.
    normals: Null,
    /// For each object its stratum.
    strata: Vec<usize>,
    /// The scores of the last run's objects, one list a family.
    faulty: Vec<Vec<Option<f64>>>,
    /// For each object its score in each sort of families.
    scores: Vec<[f64; SORTS]>,
    /// For each object what it has of new steps.
    new: Vec<New>,
    /// For each object the share of resamples in which it is among the first; not computed (0) where no
    /// trace is unusual.
    stability: Vec<f64>,
    pub(crate) roles: Vec<Role>,
    role_of: Vec<usize>,
}

impl Normality {
    /// Of the last run of `trees` against those before it, without functions of these names; `None` with
    /// fewer than two of these.
    pub(crate) fn new(
        trees: &mut Trees,
        runs: &[&Run],
        options: &Options,
        left_out: &[String],
    ) -> Option<Self> {
        let normals = runs.len().checked_sub(1).filter(|count| *count >= 2)?;
        let features = Features::new(trees, runs, options, left_out);
        let role_of = roles::roles(&features, normals);
        let stratum_of = strata(&features);
        let (population, object_of) = population(&features, &role_of, &stratum_of, runs.len());
        let mut strata = vec![0; population.objects.len()];
        for (object, stratum) in object_of.iter().zip(&stratum_of) {
            strata[*object] = *stratum;
        }
        let everyone = vec![1; runs.len()];
        let of_run = |run: usize| judge(&population, &features.families, run, &everyone);
        let count = strata.iter().max().map_or(0, |last| last + 1);
        let sorts = sorts(&features, &population, &strata, (count, normals));
        let each: Vec<Vec<[f64; SORTS]>> = (0..normals)
            .into_par_iter()
            .map(|run| by_sort(&of_run(run), &sorts, &strata))
            .collect();
        let normals_of = |sort: Sort, stratum: usize| {
            let greatest = |scores: &Vec<[f64; SORTS]>| greatest(scores, &strata, stratum, sort);
            each.iter().map(greatest).collect::<Vec<f64>>()
        };
        let of_sort = |sort| {
            (0..count)
                .map(|stratum| normals_of(sort, stratum))
                .collect()
        };
        let null = Null {
            by_sort: [Sort::Firm, Sort::Waiting, Sort::Wavering].map(of_sort),
        };
        let faulty = of_run(normals);
        let scores = by_sort(&faulty, &sorts, &strata);
        let new = new_steps(&features, &object_of, &faulty, population.objects.len());
        let of_object = |object: usize| null.p(&scores[object], strata[object], new[object]);
        let smallest = (0..scores.len()).map(of_object).fold(1.0, f64::min);
        let stability = if smallest >= options.level {
            vec![0.0; population.objects.len()]
        } else {
            stability(&population, &features, normals)
        };
        let names: Vec<TraceName> = features.names.iter().map(|name| name.trace).collect();
        Some(Self {
            roles: roles::named(&names, &role_of),
            features,
            population,
            object_of,
            normals: null,
            strata,
            faulty,
            scores,
            new,
            stability,
            role_of,
        })
    }

    fn place(&self, object: ObjectName) -> Option<usize> {
        self.features.names.binary_search(&object).ok()
    }

    fn object(&self, object: ObjectName) -> Option<usize> {
        Some(self.object_of[self.place(object)?])
    }

    /// How unusual a trace is; 0 for one that is not compared.
    pub(crate) fn score(&self, object: ObjectName) -> f64 {
        self.object(object).map_or(0.0, |object| {
            self.scores[object].iter().copied().fold(0.0, f64::max)
        })
    }

    /// The p-value of a trace: how often a normal run has a trace as unusual. 1 for one that is not
    /// compared.
    pub(crate) fn p(&self, object: ObjectName) -> f64 {
        self.object(object).map_or(1.0, |object| {
            let (scores, stratum) = (&self.scores[object], self.strata[object]);
            self.normals.p(scores, stratum, self.new[object])
        })
    }

    /// That of the most unusual trace.
    pub(crate) fn smallest(&self) -> f64 {
        let names = self.features.names.iter();
        names.map(|name| self.p(*name)).fold(1.0, f64::min)
    }

    /// Whether the order of its calls says that a trace is unusual, at this level.
    pub(crate) fn is_out_of_order(&self, object: ObjectName, level: f64) -> bool {
        self.object(object).is_some_and(|object| {
            let steps = self.features.meanings.iter().zip(&self.faulty);
            let mut steps = steps.filter(|(it, _)| [STEPS, WAITING_STEPS].contains(&it.name));
            steps.any(|(_, scores)| scores[object].is_some_and(|it| it > 0.0))
                && self.normals.by_order(
                    &self.scores[object],
                    self.strata[object],
                    self.new[object],
                ) < level
        })
    }

    /// The share of resamples of the normal runs in which a trace is among the first.
    pub(crate) fn stability(&self, object: ObjectName) -> f64 {
        self.object(object)
            .map_or(0.0, |object| self.stability[object])
    }

    /// The role of a trace.
    pub(crate) fn role(&self, object: ObjectName) -> Option<&str> {
        Some(&self.roles[self.role_of[self.place(object)?]].name)
    }

    /// Whether a trace does the same in all normal runs, but for how often.
    pub(crate) fn is_steady(&self, object: ObjectName) -> bool {
        let Some(name) = self.place(object) else {
            return true;
        };
        let classes = &self.features.classes[name][..self.population.runs - 1];
        let mut classes = classes.iter().flatten();
        let Some(first) = classes.next() else {
            return true;
        };
        let kinds = || self.features.families.iter().zip(&self.features.meanings);
        classes.all(|other| {
            kinds().all(|(family, meaning)| {
                meaning.counts || family.of_class[*first] == family.of_class[*other]
            })
        })
    }

    /// The traces of the last run that are as unusual as this p-value says.
    pub(crate) fn beyond(&self, level: f64) -> Vec<TraceName> {
        let names = self.features.names.iter();
        let mut traces: Vec<TraceName> = names
            .filter(|name| self.p(**name) < level)
            .map(|name| name.trace)
            .collect();
        traces.dedup();
        traces
    }

    /// The strongest evidence against a trace of the last run.
    pub(crate) fn evidence(&self, trees: &Trees, run: &Run, trace: TraceName) -> Vec<Evidence> {
        let Some(object) = self.object(trace.into()) else {
            return Vec::new();
        };
        let families = self.faulty.iter().enumerate();
        let stratum = self.strata[object];
        let by_order = self
            .normals
            .by_order(&self.scores[object], stratum, self.new[object]);
        let decides = by_order
            < self
                .normals
                .of_sort(Sort::Wavering, &self.scores[object], stratum);
        let families = families.filter_map(|(family, scores)| {
            let name = self.features.meanings[family].name;
            let is_order = [STEPS, WAITING_STEPS].contains(&name);
            Some((family, scores[object]?, is_order && decides))
        });
        evidence::evidence(
            &self.features,
            trees,
            run,
            trace,
            families.collect(),
            &|family| {
                let family = &self.features.families[family];
                oddities(&self.population, family, self.population.runs - 1, object)
            },
        )
    }
}

/// For each name its stratum: main threads are judged beside main threads, the others beside the others. They do other
/// work, and what differs from run to run in the ones (who comes first in a collective, say) is no excuse for the others.
fn strata(features: &Features) -> Vec<usize> {
    let is_main = |name: &ObjectName| name.trace.thread == ThreadName::Main(0);
    let first = features.names.first().is_some_and(is_main);
    let of = |name| usize::from(is_main(name) != first);
    features.names.iter().map(of).collect()
}

impl Null {
    /// How often a normal run has a trace as unusual: in one sort of families and one stratum (Bonferroni), or in any. That it may be
    /// either makes false alarms a little more frequent than p.
    ///
    /// Of steps in functions that wait no more is said than how likely all that are new would be in this one of all runs, were they as
    /// likely in each: which way such a function takes now and then, few normal runs cannot know.
    fn p(&self, scores: &[f64; SORTS], stratum: usize, new: New) -> f64 {
        let p =
            self.by_order(scores, stratum, new)
                .min(self.of_sort(Sort::Wavering, scores, stratum));
        let p = p.min(self.of_any(scores));
        match new.explain_all {
            true => p.max(self.all_here(new)),
            false => p,
        }
    }

    /// By families in which normal runs are alike, and by the order of calls.
    fn by_order(&self, scores: &[f64; SORTS], stratum: usize, new: New) -> f64 {
        let waiting = self
            .of_sort(Sort::Waiting, scores, stratum)
            .max(self.all_here(new));
        waiting.min(self.of_sort(Sort::Firm, scores, stratum))
    }

    fn all_here(&self, new: New) -> f64 {
        let runs = self.runs() as f64 + 1.0;
        runs.powi(-i32::try_from(new.steps).unwrap_or(i32::MAX))
    }

    fn of_sort(&self, sort: Sort, scores: &[f64; SORTS], stratum: usize) -> f64 {
        let strata = &self.by_sort[sort as usize];
        let panels = 2 * strata.len();
        (tail::p_value(&strata[stratum], scores[sort as usize]) * panels as f64).min(1.0)
    }

    /// By all families and strata together.
    fn of_any(&self, scores: &[f64; SORTS]) -> f64 {
        let score = scores.iter().copied().fold(0.0, f64::max);
        let whole = |run: usize| {
            let each = self.by_sort.iter().flatten();
            each.map(|scores| scores[run]).fold(0.0, f64::max)
        };
        let whole: Vec<f64> = (0..self.runs()).map(whole).collect();
        tail::p_value(&whole, score)
    }

    fn runs(&self) -> usize {
        self.by_sort[0].first().map_or(0, Vec::len)
    }
}

/// What a trace has of steps in functions that wait which no normal run has.
#[derive(Debug, Clone, Copy, Default)]
struct New {
    steps: u64,
    /// Whether the rest of it is in order, so that all that is unusual may come from these.
    explain_all: bool,
}

fn new_steps(
    features: &Features,
    object_of: &[usize],
    faulty: &[Vec<Option<f64>>],
    objects: usize,
) -> Vec<New> {
    let mut new = vec![New::default(); objects];
    let kinds = || faulty.iter().zip(&features.meanings);
    for (object, name) in object_of.iter().zip(&features.names) {
        let is_odd = |family: &str| {
            let mut own = kinds().filter(|(_, meaning)| meaning.name == family);
            own.any(|(scores, _)| scores[*object].is_some_and(|it| it > 0.0))
        };
        let steps = features.new_steps.get(&name.trace).copied().unwrap_or(0);
        new[*object] = New {
            steps,
            explain_all: steps > 0 && !is_odd(STEPS) && !is_odd("open"),
        };
    }
    new
}

/// For each stratum the sort of each family.
fn sorts(
    features: &Features,
    population: &Population,
    strata: &[usize],
    (count, normals): (usize, usize),
) -> Vec<Vec<Sort>> {
    let is_steady = |family: &Family, object: &Object| {
        let mut sets = object.classes[..normals].iter().flatten();
        let first = sets.next().map(|class| family.of_class[*class]);
        sets.all(|class| Some(family.of_class[*class]) == first)
    };
    let of = |stratum: usize| {
        let kinds = features.families.iter().zip(&features.meanings);
        kinds
            .map(|(family, meaning)| {
                let mut own =
                    (population.objects.iter().zip(strata)).filter(|(_, it)| **it == stratum);
                match meaning.name {
                    WAITING_STEPS => Sort::Waiting,
                    STEPS | "open" => Sort::Firm,
                    // How often is a matter of timing, too.
                    _ if meaning.counts && features.waits => Sort::Wavering,
                    _ if own.all(|(object, _)| is_steady(family, object)) => Sort::Firm,
                    _ => Sort::Wavering,
                }
            })
            .collect()
    };
    (0..count).map(of).collect()
}

/// Objects that play one role and are alike in every run, once.
fn population(
    features: &Features,
    roles: &[usize],
    strata: &[usize],
    runs: usize,
) -> (Population, Vec<usize>) {
    let mut population = Population {
        runs,
        objects: Vec::new(),
    };
    let mut known: FxHashMap<(usize, usize, &[Option<usize>]), usize> = FxHashMap::default();
    let each = features.classes.iter().zip(roles).zip(strata);
    let places = each.map(|((classes, role), stratum)| {
        let objects = &mut population.objects;
        let place = *known.entry((*role, *stratum, classes)).or_insert_with(|| {
            objects.push(Object {
                role: *role,
                weight: 0,
                classes: classes.clone(),
            });
            objects.len() - 1
        });
        objects[place].weight += 1;
        place
    });
    let places = places.collect();
    (population, places)
}

fn greatest_of_each(families: &[Vec<Option<f64>>], objects: usize) -> Vec<f64> {
    let of = |object: usize| families.iter().filter_map(move |scores| scores[object]);
    (0..objects)
        .map(|object| of(object).fold(0.0, f64::max))
        .collect()
}

/// For each object its greatest score in each sort of families.
fn by_sort(
    families: &[Vec<Option<f64>>],
    sorts: &[Vec<Sort>],
    strata: &[usize],
) -> Vec<[f64; SORTS]> {
    let of = |object: usize| {
        let mut greatest = [0.0_f64; SORTS];
        for (scores, sort) in families.iter().zip(&sorts[strata[object]]) {
            let greatest = &mut greatest[*sort as usize];
            *greatest = greatest.max(scores[object].unwrap_or(0.0));
        }
        greatest
    };
    (0..strata.len()).map(of).collect()
}

/// The greatest score in a stratum and a sort of families.
fn greatest(scores: &[[f64; SORTS]], strata: &[usize], stratum: usize, sort: Sort) -> f64 {
    let each = scores.iter().zip(strata);
    let own = each.filter(|(_, it)| **it == stratum);
    own.map(|(scores, _)| scores[sort as usize])
        .fold(0.0, f64::max)
}

/// With the normal runs drawn again, with replacement, from themselves.
fn stability(population: &Population, features: &Features, normals: usize) -> Vec<f64> {
    let count = population.objects.len();
    // A fixed sequence: the same input gives the same output.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % normals
    };
    let samples: Vec<Vec<u32>> = (0..RESAMPLES)
        .map(|_| {
            let mut weights = vec![0; normals + 1];
            for _ in 0..normals {
                weights[draw()] += 1;
            }
            weights
        })
        // A single run has nothing to be judged by.
        .filter(|weights| weights.iter().filter(|weight| **weight > 0).count() > 1)
        .collect();
    let drawn: Vec<Vec<bool>> = samples
        .par_iter()
        .map(|weights| {
            let scores = judge(population, &features.families, normals, weights);
            let scores = greatest_of_each(&scores, count);
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            let least = order.get(FIRST - 1).map_or(0.0, |object| scores[*object]);
            scores
                .iter()
                .map(|score| *score > 0.0 && *score >= least)
                .collect()
        })
        .collect();
    (0..count)
        .map(|object| {
            let among = drawn.iter().filter(|drawn| drawn[object]).count();
            among as f64 / drawn.len().max(1) as f64
        })
        .collect()
}
