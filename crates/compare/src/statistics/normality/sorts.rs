//! Sorts of families, each judged beside its own like, and the p-values of scores.

use super::features::Features;
use super::keys::{STEPS, WAITING_STEPS};
use super::surprisal::{Family, Object, Population};
use super::tail;

/// What can be said by a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Normal runs are alike in it, or it is about the order of calls where nothing depends on timing, or about what is open at the end.
    Firm,
    /// The order of calls in functions that wait.
    Waiting,
    /// Normal runs differ in it, or it is about how often, where functions wait.
    Wavering,
}

pub(super) const SORTS: usize = 3;

/// The greatest scores of normal runs, by sort of families and stratum.
pub(super) struct Null {
    pub(super) by_sort: [Vec<Vec<f64>>; SORTS],
}

impl Null {
    /// How often a normal run has a trace as unusual: in one sort of families and one stratum (Bonferroni over all of these), or in any.
    /// That it may be either makes false alarms a little more frequent than p.
    ///
    /// Of steps in functions that wait no more is said than how likely all that are new would be in this one of all runs, were they as
    /// likely in each: which way such a function takes now and then, few normal runs cannot know.
    pub(super) fn p(&self, it: &Judged) -> f64 {
        let p = self.by_order(it).min(self.of_sort(Sort::Wavering, it));
        let p = p.min(self.of_any(it));
        match it.new.explain_all {
            true => p.max(self.all_here(it)),
            false => p,
        }
    }

    /// By families in which normal runs are alike, and by the order of calls.
    pub(super) fn by_order(&self, it: &Judged) -> f64 {
        let waiting = self.of_sort(Sort::Waiting, it).max(self.all_here(it));
        waiting.min(self.of_sort(Sort::Firm, it))
    }

    fn all_here(&self, it: &Judged) -> f64 {
        let runs = self.runs() as f64 + 1.0;
        runs.powi(-i32::try_from(it.new.steps).unwrap_or(i32::MAX))
    }

    pub(super) fn of_sort(&self, sort: Sort, it: &Judged) -> f64 {
        let strata = &self.by_sort[sort as usize];
        let panels = SORTS * strata.len();
        let p = tail::p_value(&strata[it.stratum], it.scores[sort as usize]);
        (p * panels as f64).min(1.0)
    }

    /// By all families and strata together.
    fn of_any(&self, it: &Judged) -> f64 {
        let whole = |run: usize| {
            let each = self.by_sort.iter().flatten();
            each.map(|scores| scores[run]).fold(0.0, f64::max)
        };
        let whole: Vec<f64> = (0..self.runs()).map(whole).collect();
        tail::p_value(&whole, it.score())
    }

    fn runs(&self) -> usize {
        self.by_sort[0].first().map_or(0, Vec::len)
    }
}

/// An object of the last run.
pub(super) struct Judged {
    /// Its score in each sort of families.
    pub(super) scores: [f64; SORTS],
    pub(super) stratum: usize,
    pub(super) new: New,
}

impl Judged {
    /// Its greatest score.
    pub(super) fn score(&self) -> f64 {
        self.scores.iter().copied().fold(0.0, f64::max)
    }
}

/// What a trace has of steps in functions that wait which no normal run has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct New {
    pub(super) steps: u64,
    /// Whether the rest of it is in order, so that all that is unusual may come from these.
    pub(super) explain_all: bool,
}

/// For each object what its trace in the last run has.
pub(super) fn new_steps(
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
pub(super) fn sorts(
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

/// For each object its greatest score in each sort of families.
pub(super) fn by_sort(
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
pub(super) fn greatest(
    scores: &[[f64; SORTS]],
    strata: &[usize],
    stratum: usize,
    sort: Sort,
) -> f64 {
    let each = scores.iter().zip(strata);
    let own = each.filter(|(_, it)| **it == stratum);
    own.map(|(scores, _)| scores[sort as usize])
        .fold(0.0, f64::max)
}
