//! How surprising each object of a run is to the other runs, family of attributes by family.
//!
//! An object (a trace) plays a role, and has a set of attributes in each family. From the objects of
//! the other runs, each attribute has a probability: `r = (seen + 1/2) / (objects + 1)` among objects of
//! the role; where it is greater, `(seen + r) / (objects + 1)` among those of the same name. The
//! surprisal of an object is `-Σ ln P` over the attributes that anybody of its role has, of having it or
//! of not having it. What is a large surprisal is told by the other runs' own objects, each judged
//! without its own run:
//!
//! ```text
//!  z = (surprisal - mean of theirs) / (their standard deviation + 1), not below 0
//! ```
//!
//! An object that is in every family what one of its name was in another run is not surprising: 0.
//!
//! Pure numbers; every run is judged in the same way from all the others, so that the scores of
//! exchangeable runs are exchangeable. O(runs² x what objects have) a family; objects of one role that
//! are alike in every run are one, with a weight.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Objects by name, over all runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Population {
    pub(crate) runs: usize,
    pub(crate) objects: Vec<Object>,
}

/// Objects of one role that are of one class in every run.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) role: usize,
    /// How many names it stands for.
    pub(crate) weight: u32,
    /// Its class in each run, where it has one: equal in every family.
    pub(crate) classes: Vec<Option<usize>>,
}

/// One family of attributes: the set of each class, ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    pub(crate) sets: Vec<Vec<u32>>,
    /// The set of each class.
    pub(crate) of_class: Vec<usize>,
}

impl Family {
    pub(crate) fn set(&self, class: usize) -> &[u32] {
        &self.sets[self.of_class[class]]
    }
}

/// Why an object is surprising: an attribute that it has or has not, and how many of the others of its
/// role have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Oddity {
    pub(crate) attribute: u32,
    pub(crate) present: bool,
    pub(crate) seen: u32,
    pub(crate) of: u32,
    pub(crate) surprisal: f64,
}

/// The z of every object of `run`, one list a family; `weights` says how often each run is taken into
/// the judging sample (the run itself never is). `None` for objects that the run does not have, or that
/// nobody can judge.
pub(crate) fn judge(
    population: &Population,
    families: &[Family],
    run: usize,
    weights: &[u32],
) -> Vec<Vec<Option<f64>>> {
    let mut weights = weights.to_vec();
    weights[run] = 0;
    families
        .par_iter()
        .map(|family| {
            let roles = population.objects.iter().map(|it| it.role + 1).max();
            let mut scores = vec![None; population.objects.len()];
            for role in 0..roles.unwrap_or(0) {
                Role::new(population, family, role).judge(run, &weights, &mut scores);
            }
            scores
        })
        .collect()
}

/// The most surprising attributes of an object of a run, in one family.
pub(crate) fn oddities(
    population: &Population,
    family: &Family,
    run: usize,
    object: usize,
) -> Vec<Oddity> {
    let mut weights = vec![1; population.runs];
    weights[run] = 0;
    let role = Role::new(population, family, population.objects[object].role);
    let mut sample = role.sample(&weights, None);
    let Some(class) = population.objects[object].classes[run] else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let owns = role.own(object, &mut sample);
    for (column, attribute) in role.attributes.iter().enumerate() {
        let present = role.columns[&class].contains(&column);
        found.push(Oddity {
            attribute: *attribute,
            present,
            seen: sample.seen[column],
            of: sample.objects,
            surprisal: -sample
                .likely(column, sample.own[column], owns, present)
                .ln(),
        });
    }
    sort(&mut found);
    found
}

/// How surprising each object of one run is among the others of its role: z. `sets`
/// are those of one family, `roles` those of the objects. O(what objects have).
pub(crate) fn among(sets: &[&[u32]], roles: &[usize]) -> Vec<f64> {
    let mut scores = vec![0.0; sets.len()];
    for role in 0..roles.iter().max().map_or(0, |last| last + 1) {
        let members: Vec<usize> = (0..sets.len()).filter(|it| roles[*it] == role).collect();
        let seen = counts(sets, &members);
        let others = members.len().saturating_sub(1) as f64;
        if others < 2.0 {
            continue;
        }
        let share = |count: f64| -((count + 0.5) / (others + 1.0)).ln();
        let surprisals: Vec<f64> = members
            .iter()
            .map(|member| {
                let each = seen.iter().map(|(attribute, count)| {
                    let count = f64::from(*count);
                    match sets[*member].binary_search(attribute).is_ok() {
                        true => share(count - 1.0),
                        false => share(others - count),
                    }
                });
                each.sum()
            })
            .collect();
        for (place, member) in members.iter().enumerate() {
            let own = surprisals[place];
            let mean = (surprisals.iter().sum::<f64>() - own) / others;
            let squares = surprisals
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let squares: f64 = squares.map(|(_, it)| (it - mean).powi(2)).sum();
            scores[*member] = ((own - mean) / ((squares / others).sqrt() + 1.0)).max(0.0);
        }
    }
    scores
}

/// The attributes of one of `sets` that are most surprising among those of `members`, itself left out.
pub(crate) fn oddities_among(sets: &[&[u32]], members: &[usize], object: usize) -> Vec<Oddity> {
    let others = members.len().saturating_sub(1) as u32;
    let mut found: Vec<Oddity> = counts(sets, members)
        .into_iter()
        .map(|(attribute, count)| {
            let present = sets[object].binary_search(&attribute).is_ok();
            let seen = count - u32::from(present);
            let alike = if present { seen } else { others - seen };
            Oddity {
                attribute,
                present,
                seen,
                of: others,
                surprisal: -((f64::from(alike) + 0.5) / (f64::from(others) + 1.0)).ln(),
            }
        })
        .collect();
    sort(&mut found);
    found
}

/// How many of `members` have each attribute, in the order of the attributes.
fn counts(sets: &[&[u32]], members: &[usize]) -> Vec<(u32, u32)> {
    let mut seen: FxHashMap<u32, u32> = FxHashMap::default();
    for attribute in members.iter().flat_map(|member| sets[*member]) {
        *seen.entry(*attribute).or_default() += 1;
    }
    let mut seen: Vec<(u32, u32)> = seen.into_iter().collect();
    seen.sort_unstable();
    seen
}

fn sort(found: &mut [Oddity]) {
    found.sort_by(|a, b| {
        (b.surprisal.total_cmp(&a.surprisal))
            .then(b.present.cmp(&a.present))
            .then(a.attribute.cmp(&b.attribute))
    });
}

/// One role in one family; its attributes are columns.
struct Role<'a> {
    population: &'a Population,
    /// The objects that play it.
    members: Vec<usize>,
    /// The attribute of each column.
    attributes: Vec<u32>,
    /// For each class that occurs its columns.
    columns: FxHashMap<usize, Vec<usize>>,
    /// For each run, how many objects have each column, and how many there are.
    seen: Vec<Vec<u32>>,
    objects: Vec<u32>,
}

/// The objects of a role in some runs: how many have each column, and how many there are.
struct Sample<'a> {
    weights: &'a [u32],
    without: Option<usize>,
    seen: Vec<u32>,
    objects: u32,
    /// By the number of objects of one name: the surprisal of having a column no more than these have, and
    /// the sum over columns.
    absent: FxHashMap<u32, (Vec<f64>, f64)>,
    /// Of the name that is looked at, how many have each column, where any does, and which those are.
    own: Vec<u32>,
    touched: Vec<usize>,
    /// The columns of the object that is looked at.
    has: Vec<bool>,
}

impl Sample<'_> {
    /// The probability of having a column, or of not having it, for a name that has it `own` times in
    /// `owns`.
    fn likely(&self, column: usize, own: u32, owns: u32, present: bool) -> f64 {
        let (seen, own) = if present {
            (self.seen[column], own)
        } else {
            (self.objects - self.seen[column], owns - own)
        };
        let of_role = (f64::from(seen) + 0.5) / (f64::from(self.objects) + 1.0);
        of_role.max((f64::from(own) + of_role) / (f64::from(owns) + 1.0))
    }

    /// How surprising it is that a name that has it `owns` times has none of the columns, nor had any.
    fn absent(&mut self, owns: u32) -> &(Vec<f64>, f64) {
        if !self.absent.contains_key(&owns) {
            let columns = 0..self.seen.len();
            let each: Vec<f64> = columns
                .map(|column| -self.likely(column, 0, owns, false).ln())
                .collect();
            let sum = each.iter().sum();
            self.absent.insert(owns, (each, sum));
        }
        &self.absent[&owns]
    }
}

impl<'a> Role<'a> {
    fn new(population: &'a Population, family: &Family, role: usize) -> Self {
        let members: Vec<usize> = (0..population.objects.len())
            .filter(|object| population.objects[*object].role == role)
            .collect();
        let classes = || {
            members
                .iter()
                .flat_map(|it| &population.objects[*it].classes)
        };
        let mut attributes: Vec<u32> = Vec::new();
        let mut columns: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for class in classes().flatten() {
            if columns.insert(*class, Vec::new()).is_none() {
                attributes.extend(family.set(*class));
            }
        }
        attributes.sort_unstable();
        attributes.dedup();
        for (class, columns) in &mut columns {
            let set = family.set(*class).iter();
            columns.extend(set.filter_map(|it| attributes.binary_search(it).ok()));
        }
        let mut seen = vec![vec![0; attributes.len()]; population.runs];
        let mut objects = vec![0; population.runs];
        for member in &members {
            let member = &population.objects[*member];
            for (run, class) in member.classes.iter().enumerate() {
                if let Some(class) = class {
                    objects[run] += member.weight;
                    for column in &columns[class] {
                        seen[run][*column] += member.weight;
                    }
                }
            }
        }
        Self {
            population,
            members,
            attributes,
            columns,
            seen,
            objects,
        }
    }

    /// The sample of these runs, without one of them.
    fn sample<'w>(&self, weights: &'w [u32], without: Option<usize>) -> Sample<'w> {
        let mut sample = Sample {
            weights,
            without,
            seen: vec![0; self.attributes.len()],
            objects: 0,
            absent: FxHashMap::default(),
            own: vec![0; self.attributes.len()],
            touched: Vec::new(),
            has: vec![false; self.attributes.len()],
        };
        for (run, weight) in weights.iter().enumerate() {
            if *weight == 0 || Some(run) == without {
                continue;
            }
            sample.objects += weight * self.objects[run];
            for (sum, seen) in sample.seen.iter_mut().zip(&self.seen[run]) {
                *sum += weight * seen;
            }
        }
        sample
    }

    /// Counts those of one name; gives how many there are.
    fn own(&self, member: usize, sample: &mut Sample) -> u32 {
        for column in sample.touched.drain(..) {
            sample.own[column] = 0;
        }
        let mut owns = 0;
        let classes = self.population.objects[member].classes.iter();
        for (run, (class, weight)) in classes.zip(sample.weights).enumerate() {
            if let Some(class) = class.filter(|_| *weight > 0 && Some(run) != sample.without) {
                owns += weight;
                for column in &self.columns[&class] {
                    if sample.own[*column] == 0 {
                        sample.touched.push(*column);
                    }
                    sample.own[*column] += weight;
                }
            }
        }
        owns
    }

    fn judge(&self, run: usize, weights: &[u32], scores: &mut [Option<f64>]) {
        let mut theirs: Vec<(f64, f64)> = Vec::new();
        for (other, weight) in weights.iter().enumerate() {
            let rest = (0..weights.len()).any(|third| third != other && weights[third] > 0);
            if *weight == 0 || !rest {
                continue;
            }
            let mut sample = self.sample(weights, Some(other));
            for member in &self.members {
                let object = &self.population.objects[*member];
                if let Some(class) = object.classes[other] {
                    let times = f64::from(*weight) * f64::from(object.weight);
                    let surprisal = self.surprisal(*member, class, &mut sample);
                    theirs.push((surprisal, times));
                }
            }
        }
        if theirs.is_empty() {
            return;
        }
        let total: f64 = theirs.iter().map(|(_, times)| times).sum();
        let mean = theirs.iter().map(|(it, times)| it * times).sum::<f64>() / total;
        let squares = theirs.iter().map(|(it, times)| times * (it - mean).powi(2));
        let deviation = (squares.sum::<f64>() / total).sqrt();
        let mut sample = self.sample(weights, None);
        for member in &self.members {
            let object = &self.population.objects[*member];
            if let Some(class) = object.classes[run] {
                let known = (object.classes.iter().zip(weights))
                    .any(|(other, weight)| *weight > 0 && *other == Some(class));
                let surprisal = if known {
                    0.0
                } else {
                    self.surprisal(*member, class, &mut sample)
                };
                scores[*member] = Some(((surprisal - mean) / (deviation + 1.0)).max(0.0));
            }
        }
    }

    fn surprisal(&self, member: usize, class: usize, sample: &mut Sample) -> f64 {
        let owns = self.own(member, sample);
        let has = &self.columns[&class];
        let (_, mut sum) = *sample.absent(owns);
        for column in has {
            sample.has[*column] = true;
        }
        let only = has.iter().filter(|column| sample.own[**column] == 0);
        let columns: Vec<usize> = sample.touched.iter().chain(only).copied().collect();
        for column in columns {
            let likely = sample.likely(column, sample.own[column], owns, sample.has[column]);
            sum -= likely.ln() + sample.absent(owns).0[column];
        }
        for column in has {
            sample.has[*column] = false;
        }
        sum
    }
}

#[cfg(test)]
mod tests;
