//! The campaign's rows as a table: kind by kind, and all methods side by side.

use super::kinds::{Fault, Kind};
use crate::rows::{Row, Rows};

/// A method: its name, and the column with the place at which it has the right trace (0: nowhere).
const METHODS: [(&str, &str); 3] = [
    ("lockstep compare", "rank"),
    ("published (first row)", "published"),
    ("text diff, most lines", "naive"),
];

/// 1 over the place; of ours nobody is named where the runs are not called different.
fn reciprocal(row: &Row<'_>, head: &str) -> f64 {
    match row.number(head) {
        rank if rank > 0.0 && (head != "rank" || row.text("status") == "1") => 1.0 / rank,
        _ => 0.0,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The 95 % interval of a mean.
fn around(values: &[f64]) -> f64 {
    let (count, mean) = (values.len() as f64, mean(values));
    let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
    1.96 * (variance / (count - 1.0).max(1.0) / count).sqrt()
}

/// Wilson's 95 % interval of a share.
fn wilson(hits: usize, of: usize) -> (f64, f64) {
    let (z, n) = (1.96_f64, of.max(1) as f64);
    let share = hits as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The mean reciprocal rank of `compare` over all faults with an effect.
pub fn mean_reciprocal_rank(rows: &Rows) -> f64 {
    let faults = rows.all().filter(|row| row.text("effect") == "yes");
    let all: Vec<f64> = faults.map(|row| reciprocal(&row, "rank")).collect();
    mean(&all)
}

/// How many healthy runs were called different, of how many.
pub fn false_alarms(rows: &Rows) -> (usize, usize) {
    let healthy = || rows.all().filter(|row| row.text("effect") == "healthy");
    let alarms = healthy().filter(|row| row.text("status") == "1").count();
    (alarms, healthy().count())
}

/// Kind by kind: how often the runs are called different, and where the right trace stands.
pub fn table(rows: &Rows, kinds: &[Kind]) -> String {
    let mut text = String::from(
        "kind                     trials  no effect  differs  top-1  top-3   MRR  published  text diff\n",
    );
    for kind in kinds {
        let key = [kind.name];
        let of: Vec<_> = rows.find(&key).collect();
        if of.is_empty() {
            continue;
        }
        let differs = of.iter().filter(|row| row.text("status") == "1").count();
        let latent = of.iter().filter(|row| row.text("effect") == "no").count();
        text.push_str(&format!(
            "{:24} {:6}  {latent:9}  {differs:7}",
            kind.name,
            of.len()
        ));
        let with: Vec<_> = of
            .iter()
            .filter(|row| row.text("effect") == "yes")
            .collect();
        if kind.fault != Fault::Healthy && !with.is_empty() {
            let [ours, published, naive] = METHODS.map(|(_, head)| {
                with.iter()
                    .map(|row| reciprocal(row, head))
                    .collect::<Vec<f64>>()
            });
            let share = |least: f64| {
                ours.iter().filter(|it| **it >= least).count() as f64 / ours.len() as f64
            };
            text.push_str(&format!(
                "  {:5.2}  {:5.2}  {:4.2}  {:9.2}  {:9.2}",
                share(0.99),
                share(0.33),
                mean(&ours),
                mean(&published),
                mean(&naive)
            ));
        }
        text.push('\n');
    }
    let faults = || rows.all().filter(|row| row.text("effect") == "yes");
    if faults().next().is_some() {
        text.push_str(&format!(
            "\n{} faults with an effect (95 % intervals)\nmethod                   MRR          top-1             top-3\n",
            faults().count()
        ));
        for (name, head) in METHODS {
            let all: Vec<f64> = faults().map(|row| reciprocal(&row, head)).collect();
            let top = |least: f64| {
                let hits = all.iter().filter(|it| **it >= least).count();
                let (low, high) = wilson(hits, all.len());
                format!("{:.2} ({low:.2}-{high:.2})", hits as f64 / all.len() as f64)
            };
            text.push_str(&format!(
                "{name:23}  {:.2} ± {:.2}  {}  {}\n",
                mean(&all),
                around(&all),
                top(0.99),
                top(0.33)
            ));
        }
    }
    let (alarms, healthy) = false_alarms(rows);
    if healthy > 0 {
        let (low, high) = wilson(alarms, healthy);
        text.push_str(&format!(
            "false alarms: {alarms} of {healthy} healthy runs ({:.0}-{:.0} %)\n",
            100.0 * low,
            100.0 * high
        ));
    }
    text
}
