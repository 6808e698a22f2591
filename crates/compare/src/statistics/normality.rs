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
//! does. Where normal runs waver in a family, no more is said than they can tell by their number; nor is it of a trace that differs
//! only in its share of the work of a team (tasks, pieces of loops): that may be any from nothing to all of it.

use crate::difftrace::trees::Trees;
use crate::{Error, ObjectName, Options};
use lockstep_trace::{Run, ThreadName, TraceName};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub(crate) mod evidence;
pub(crate) mod features;
mod keys;
mod order;
mod places;
pub(crate) mod roles;
mod sorts;
mod steps;
pub(crate) mod surprisal;
mod tail;

use evidence::Evidence;
use features::Features;
use keys::{STEPS, WAITING_STEPS};
use roles::Role;
use sorts::{Judged, Null, SORTS, Sort, by_sort, greatest, new_steps, sorts};
use surprisal::{Object, Population, judge, oddities};

/// The roles that traces play in some runs.
///
/// # Errors
/// A pattern that does not parse.
pub fn roles(runs: &[&Run], options: &Options) -> Result<Vec<Role>, Error> {
    let mut trees = Trees::new(runs, options)?.refuse_some()?;
    let features = Features::new(&mut trees, options, &[]);
    let role_of = roles::roles(&features, runs.len());
    let names: Vec<TraceName> = features.names.iter().map(|name| name.trace).collect();
    Ok(roles::named(&names, &role_of))
}

/// Resamples of the normal runs.
const RESAMPLES: usize = 20;
/// A trace is stable in a resample if it is among the first so many.
const FIRST: usize = 3;

/// A trace beside several normal runs.
pub(crate) struct Standing {
    pub(crate) p: f64,
    /// Whether normal runs have traces as unusual, by the level.
    pub(crate) is_usual: bool,
    /// Whether normal runs do the same each time: then its first divergence is no chance.
    pub(crate) is_steady: bool,
    /// Whether it is the order of its calls that is unusual.
    pub(crate) is_out_of_order: bool,
    pub(crate) score: f64,
    pub(crate) stability: f64,
    pub(crate) role: Option<String>,
    pub(crate) evidence: Vec<Evidence>,
}

/// The last run beside those before it.
pub(crate) struct Normality {
    features: Features,
    population: Population,
    /// For each name of the features its object in the population.
    object_of: Vec<usize>,
    /// What normal runs' scores are.
    normals: Null,
    /// The scores of the last run's objects, one list a family.
    faulty: Vec<Vec<Option<f64>>>,
    /// What that says of each object.
    judged: Vec<Judged>,
    /// For each object the share of resamples in which it is among the first; not computed (0) where no
    /// trace is unusual.
    stability: Vec<f64>,
    pub(crate) roles: Vec<Role>,
    role_of: Vec<usize>,
    /// Traces that differ only in their share of the work of a team.
    shared: Vec<TraceName>,
}

impl Normality {
    /// Of the last run of `trees` against those before it, without functions of these names; `None` with
    /// fewer than two of these. `shared` are the traces that differ only in their share of the work of a team.
    pub(crate) fn new(
        trees: &mut Trees,
        options: &Options,
        left_out: &[String],
        shared: Vec<TraceName>,
    ) -> Option<Self> {
        let runs = trees.runs.len();
        let normals = Some(runs - 1).filter(|count| *count >= 2)?;
        let features = Features::new(trees, options, left_out);
        let role_of = roles::roles(&features, normals);
        let stratum_of = strata(&features);
        let (population, object_of) = population(&features, &role_of, &stratum_of, runs);
        let mut strata = vec![0; population.objects.len()];
        for (object, stratum) in object_of.iter().zip(&stratum_of) {
            strata[*object] = *stratum;
        }
        let everyone = vec![1; runs];
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
        let new = new_steps(&features, &object_of, &faulty, strata.len());
        let judged = by_sort(&faulty, &sorts, &strata).into_iter().zip(strata);
        let judged = judged.zip(new).map(|((scores, stratum), new)| Judged {
            scores,
            stratum,
            new,
        });
        let names: Vec<TraceName> = features.names.iter().map(|name| name.trace).collect();
        let mut normality = Self {
            roles: roles::named(&names, &role_of),
            features,
            population,
            object_of,
            normals: null,
            judged: judged.collect(),
            faulty,
            stability: Vec::new(),
            role_of,
            shared,
        };
        let objects = normality.population.objects.len();
        normality.stability = if normality.smallest() >= options.level {
            vec![0.0; objects]
        } else {
            stability(&normality.population, &normality.features, normals)
        };
        Some(normality)
    }

    fn place(&self, object: ObjectName) -> Option<usize> {
        self.features.names.binary_search(&object).ok()
    }

    fn object(&self, object: ObjectName) -> Option<usize> {
        Some(self.object_of[self.place(object)?])
    }

    /// How unusual a trace is; 0 for one that is not compared.
    pub(crate) fn score(&self, object: ObjectName) -> f64 {
        self.object(object)
            .map_or(0.0, |it| self.judged[it].score())
    }

    /// The p-value of a trace: how often a normal run has a trace as unusual. 1 for one that is not
    /// compared.
    pub(crate) fn p(&self, name: ObjectName) -> f64 {
        self.object(name).map_or(1.0, |object| {
            let p = self.normals.p(&self.judged[object]);
            p.max(self.least(name.trace))
        })
    }

    /// What may be said of a trace at the least: by the number of normal runs, where it differs in its share of work alone.
    fn least(&self, trace: TraceName) -> f64 {
        match self.shared.contains(&trace) {
            true => 1.0 / self.population.runs as f64,
            false => 0.0,
        }
    }

    /// That of the most unusual trace.
    pub(crate) fn smallest(&self) -> f64 {
        let names = self.features.names.iter();
        names.map(|name| self.p(*name)).fold(1.0, f64::min)
    }

    /// How unusual a trace is, at this level; without evidence.
    pub(crate) fn standing(&self, trace: TraceName, level: f64) -> Standing {
        let place = self.place(trace.into());
        let object = place.map(|it| self.object_of[it]);
        let is_out_of_order =
            |object| self.least(trace) < level && self.is_out_of_order(object, level);
        let p = self.p(trace.into());
        Standing {
            p,
            is_usual: p >= level,
            is_steady: place.is_none_or(|it| self.is_steady(it)),
            is_out_of_order: object.is_some_and(is_out_of_order),
            score: self.score(trace.into()),
            stability: object.map_or(0.0, |it| self.stability[it]),
            role: place.map(|it| self.roles[self.role_of[it]].name.clone()),
            evidence: Vec::new(),
        }
    }

    /// Whether the order of its calls says that an object is unusual, at this level.
    fn is_out_of_order(&self, object: usize, level: f64) -> bool {
        let steps = self.features.meanings.iter().zip(&self.faulty);
        let mut steps = steps.filter(|(it, _)| [STEPS, WAITING_STEPS].contains(&it.name));
        steps.any(|(_, scores)| scores[object].is_some_and(|it| it > 0.0))
            && self.normals.by_order(&self.judged[object]) < level
    }

    /// Whether a trace, given by its place, does the same in all normal runs, but for how often.
    fn is_steady(&self, place: usize) -> bool {
        let classes = &self.features.classes[place][..self.population.runs - 1];
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

    /// Orders of calls that no normal run has, in sentences: to be told where they are no difference.
    pub(crate) fn new_orders(&self, trees: &Trees) -> Vec<String> {
        order::told(&self.features.new_orders, trees)
    }

    /// The strongest evidence against a trace of the last run.
    pub(crate) fn evidence(&self, trees: &Trees, trace: TraceName) -> Vec<Evidence> {
        let Some(object) = self.object(trace.into()) else {
            return Vec::new();
        };
        let families = self.faulty.iter().enumerate();
        let (normals, judged) = (&self.normals, &self.judged[object]);
        let decides = normals.by_order(judged) < normals.of_sort(Sort::Wavering, judged);
        let families = families.filter_map(|(family, scores)| {
            let name = self.features.meanings[family].name;
            let is_order = [STEPS, WAITING_STEPS].contains(&name);
            Some((family, scores[object]?, is_order && decides))
        });
        evidence::evidence(
            &self.features,
            trees,
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
pub(super) fn strata(features: &Features) -> Vec<usize> {
    let is_main = |name: &ObjectName| name.trace.thread == ThreadName::Main(0);
    let first = features.names.first().is_some_and(is_main);
    let of = |name| usize::from(is_main(name) != first);
    features.names.iter().map(of).collect()
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
