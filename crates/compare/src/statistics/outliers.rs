//! `lockstep outliers`: which traces of one run are unlike the others, without a normal run.
//!
//! Threads 0 are compared with threads 0, other threads with other threads, each by the surprisal of what
//! it does among the others, family by family of attributes. What is rare need not be wrong: a master
//! among workers and the ranks at a boundary are outliers of every healthy run.

use super::normality::evidence::{self, Evidence};
use super::normality::features::Features;
use super::normality::strata;
use super::normality::surprisal::{among, oddities_among};
use crate::difftrace::sequence::Lens;
use crate::difftrace::trees::Trees;
use crate::{Error, Options};
use lockstep_trace::{ProcessName, Run, TraceName};
use schemars::JsonSchema;
use serde::Serialize;

/// The traces of a run, ranked by how unlike the others they are.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outliers {
    /// Whether there is an outlier (exit status 1).
    pub differs: bool,
    /// The answer in one sentence.
    pub verdict: String,
    /// A trace with at least this score is an outlier.
    pub threshold: f64,
    /// The outliers, most unlike first.
    pub suspects: Vec<Outlier>,
    /// All traces with their scores, most unlike first.
    pub scores: Vec<(String, f64)>,
}

/// A trace that is unlike the others.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outlier {
    /// The trace.
    pub trace: TraceName,
    /// The process that the trace belongs to.
    pub process: ProcessName,
    /// How unlike the others the trace is: the largest `z` over all families of attributes, at least 0.
    pub score: f64,
    /// score / (score + threshold): from 0.5 at the threshold towards 1.
    pub confidence: f64,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// The same reasons as values.
    pub evidence: Vec<Evidence>,
}

/// Ranks the traces of a run; outliers have at least this score.
///
/// # Errors
/// A pattern that does not parse; fewer than three traces; a filter that keeps nothing.
pub fn outliers(run: &Run, options: &Options, threshold: f64) -> Result<Outliers, Error> {
    let mut trees = Trees::new(&[run], options)?.refuse_some()?;
    let features = Features::new(&mut trees, options, &[]);
    let count = features.names.len();
    if count < 3 {
        return Err(Error::Nothing(format!(
            "expected at least three traces to compare with each other, found {count}"
        )));
    }
    if features
        .families
        .iter()
        .all(|family| family.sets.iter().all(Vec::is_empty))
    {
        return Err(Lens::of(options).keeps_nothing());
    }
    let roles = strata(&features);
    let classes: Vec<usize> = features.classes.iter().filter_map(|runs| runs[0]).collect();
    let sets = |family: usize| -> Vec<&[u32]> {
        let family = &features.families[family];
        classes.iter().map(|class| family.set(*class)).collect()
    };
    let families = 0..features.families.len();
    let scores: Vec<Vec<f64>> = families
        .map(|family| among(&sets(family), &roles))
        .collect();
    let score = |object: usize| scores.iter().map(|of| of[object]).fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
    let suspects: Vec<Outlier> = order
        .iter()
        .take_while(|object| score(**object) >= threshold)
        .map(|object| {
            let trace = features.names[*object].trace;
            let members: Vec<usize> = (0..count)
                .filter(|it| roles[*it] == roles[*object])
                .collect();
            let evidence = evidence::evidence(
                &features,
                &trees,
                trace,
                (scores.iter().enumerate())
                    .map(|(family, of)| (family, of[*object], false))
                    .collect(),
                &|family| oddities_among(&sets(family), &members, *object),
            );
            Outlier {
                trace,
                process: trace.process,
                score: score(*object),
                confidence: 1.0 - threshold / (threshold + score(*object)),
                reasons: evidence
                    .iter()
                    .map(|it| it.clause_among(" of this run"))
                    .collect(),
                evidence,
            }
        })
        .collect();
    Ok(Outliers {
        differs: !suspects.is_empty(),
        verdict: verdict(&suspects, count),
        threshold,
        suspects,
        scores: order
            .iter()
            .map(|object| (features.names[*object].to_string(), score(*object)))
            .collect(),
    })
}

fn verdict(suspects: &[Outlier], count: usize) -> String {
    let Some(first) = suspects.first() else {
        return format!("none of {count} traces stands out from the others");
    };
    let why = first.reasons.first();
    let why = why.map_or("is unlike the others", String::as_str);
    let rest = match suspects.len() - 1 {
        0 => String::new(),
        1 => "; 1 other stands out".to_owned(),
        many => format!("; {many} others stand out"),
    };
    format!("trace {} {why}{rest}", first.trace)
}
