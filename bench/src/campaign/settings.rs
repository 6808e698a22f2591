//! Which filter, attributes and linkage of the published method serve which sort of fault: a question that the papers leave
//! open.
//!
//! Of each trial and set of options the cut with the lowest B-score counts, as the papers read their tables: whether the
//! right trace is among its candidates, and among how many. With n candidates in no order it comes in place (n + 1) / 2.
//!
//! *Guarantees*: what is said of a program was chosen on the others (leave one program out).

use super::kinds::sort;
use crate::rows::Rows;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A line for each trial and filter. `outcomes` has a sign for each of the attributes, with each of the linkages: `.`, or
/// how many candidates there are (36 and more are `z`).
pub const HEADS: [&str; 4] = ["kind", "trial", "filter", "outcomes"];

const ATTRIBUTES: [(&str, &str); 6] = [
    ("single", "actual"),
    ("single", "log10"),
    ("single", "none"),
    ("double", "actual"),
    ("double", "log10"),
    ("double", "none"),
];

const LINKAGES: [&str; 7] = [
    "single", "complete", "average", "weighted", "centroid", "median", "ward",
];

/// The lines of a trial, from the table that `compare` printed.
pub fn outcomes(kind: &str, trial: u64, truth: &str, table: &[Value]) -> Vec<Vec<String>> {
    let mut best: BTreeMap<(&str, usize), (f64, u8)> = BTreeMap::new();
    for row in table {
        let word = |name: &str| row[name].as_str().unwrap_or_default();
        let attributes = (word("attributes"), word("frequency"));
        let attributes = ATTRIBUTES.iter().position(|it| *it == attributes);
        let linkage = LINKAGES.iter().position(|it| *it == word("linkage"));
        let (Some(attributes), Some(linkage)) = (attributes, linkage) else {
            continue;
        };
        let candidates = row["threads"].as_array().map_or(&[][..], Vec::as_slice);
        let sign = match candidates.iter().any(|it| *it == truth) {
            true => char::from_digit(candidates.len().min(35) as u32, 36).unwrap_or('z') as u8,
            false => b'.',
        };
        let score = row["b_score"].as_f64().unwrap_or(f64::INFINITY);
        let setting = (word("filter"), attributes * LINKAGES.len() + linkage);
        let known = best.entry(setting).or_insert((score, sign));
        if score < known.0 {
            *known = (score, sign);
        }
    }
    let filters: BTreeSet<&str> = best.keys().map(|it| it.0).collect();
    let line = |filter: &str| {
        let signs = (0..ATTRIBUTES.len() * LINKAGES.len())
            .map(|at| best.get(&(filter, at)).map_or('.', |it| char::from(it.1)))
            .collect();
        vec![kind.to_owned(), trial.to_string(), filter.to_owned(), signs]
    };
    filters.into_iter().map(line).collect()
}

/// The reciprocal of the place at which the right trace comes.
fn reciprocal(sign: char) -> f64 {
    sign.to_digit(36)
        .map_or(0.0, |of| 2.0 / (f64::from(of) + 1.0))
}

/// A filter, attributes and a linkage.
type Setting = (String, usize);

fn name((filter, at): &Setting) -> String {
    let (attributes, frequency) = ATTRIBUTES[at / LINKAGES.len()];
    let linkage = LINKAGES[at % LINKAGES.len()];
    format!("{filter} {attributes}.{frequency} {linkage}")
}

/// What each setting found of one program's trials of a sort: sums of reciprocals, and how many trials there were.
#[derive(Debug, Default)]
struct Found {
    trials: usize,
    sums: BTreeMap<Setting, f64>,
}

/// The best setting over several programs, each of which counts the same.
fn best<'a>(of: impl Iterator<Item = &'a Found>) -> Option<(Setting, f64)> {
    let mut sums: BTreeMap<&Setting, f64> = BTreeMap::new();
    let mut programs = 0;
    for found in of {
        programs += 1;
        for (setting, sum) in &found.sums {
            *sums.entry(setting).or_default() += sum / found.trials as f64;
        }
    }
    // Of several the one that is first by name.
    let better = |a: &(&Setting, f64), b: &(&Setting, f64)| a.1.total_cmp(&b.1).then(b.0.cmp(a.0));
    let (setting, sum) = sums.into_iter().max_by(better)?;
    Some((setting.clone(), sum / f64::from(programs)))
}

/// For each sort of fault the setting that serves it best, and what a setting chosen on other programs finds.
pub fn table(rows: &Rows, outcomes: &Rows) -> String {
    let mut sorts: BTreeMap<&str, BTreeMap<&str, Found>> = BTreeMap::new();
    for row in rows.all().filter(|row| row.text("effect") == "yes") {
        let programs = [sort(row.text("kind")), "all sorts"];
        for sort in programs {
            let found = sorts.entry(sort).or_default();
            let found = found.entry(row.text("program")).or_default();
            let key = [row.text("kind"), row.text("trial")];
            let mut is_known = false;
            for line in outcomes.find(&key) {
                is_known = true;
                for (at, sign) in line.text("outcomes").chars().enumerate() {
                    let setting = (line.text("filter").to_owned(), at);
                    *found.sums.entry(setting).or_default() += reciprocal(sign);
                }
            }
            found.trials += usize::from(is_known);
        }
    }
    let mut text = String::new();
    for (sort, mut programs) in sorts {
        programs.retain(|_, found| found.trials > 0);
        let Some((setting, score)) = best(programs.values()) else {
            continue;
        };
        if text.is_empty() {
            text.push_str(
                "\nthe published method: which filter, attributes and linkage serve which sort of fault (mean reciprocal rank, each program counts the same)\n\
                 sort                      programs  trials  best  chosen on others  which is best\n",
            );
        }
        let trials: usize = programs.values().map(|it| it.trials).sum();
        let mut left_out = Vec::new();
        for (program, found) in &programs {
            let others = programs.iter().filter(|it| it.0 != program);
            if let Some((setting, _)) = best(others.map(|it| it.1)) {
                let sum = found.sums.get(&setting).copied().unwrap_or_default();
                left_out.push(sum / found.trials as f64);
            }
        }
        let others = match left_out.len() {
            0 => "-".to_owned(),
            count => format!("{:.2}", left_out.iter().sum::<f64>() / count as f64),
        };
        text.push_str(&format!(
            "{sort:24}  {:8}  {trials:6}  {score:4.2}  {others:>16}  {}\n",
            programs.len(),
            name(&setting)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_cut_with_the_lowest_score_counts() {
        let row = |score: f64, threads: &[&str]| {
            json!({"filter": "11.mpi.0K10", "attributes": "single", "frequency": "actual", "linkage": "complete",
                   "b_score": score, "threads": threads})
        };
        let table = [
            row(0.5, &["1.0"]),
            row(0.2, &["0.0", "1.0"]),
            row(0.9, &["2.0"]),
        ];
        let lines = outcomes("sort-hang", 3, "1.0", &table);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0][..3], ["sort-hang", "3", "11.mpi.0K10"]);
        assert_eq!(&lines[0][3][..3], ".2.");
        assert_eq!(reciprocal('.'), 0.0);
        assert_eq!(reciprocal('1'), 1.0);
        assert_eq!(reciprocal('3'), 0.5);
    }

    #[test]
    fn programs_count_the_same() {
        let found = |trials, sums: &[(&str, f64)]| Found {
            trials,
            sums: sums
                .iter()
                .map(|(name, sum)| (((*name).to_owned(), 0), *sum))
                .collect(),
        };
        let many = found(10, &[("a", 10.0), ("b", 5.0)]);
        let few = found(2, &[("b", 2.0)]);
        let (setting, score) = best([&many, &few].into_iter()).expect("one");
        assert_eq!((setting.0.as_str(), score), ("b", 0.75));
        let (setting, _) = best([&many].into_iter()).expect("one");
        assert_eq!(setting.0, "a");
    }
}
