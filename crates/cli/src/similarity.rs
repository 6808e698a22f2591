//! `lockstep similarity`: how alike the traces of a run are.

use crate::context;
use crate::lattice::write;
use crate::options::Analysis;
use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_compare::{Similarity as Found, similarity};
use lockstep_trace::names_in_short;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the Jaccard similarity matrix of the traces
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep similarity good --filter mpi
  lockstep similarity good --attributes double --svg similarity.svg
  lockstep similarity good --csv > similarity.csv
  lockstep similarity good --own locks.json
")]
pub struct Similarity {
    /// Directory of the run
    run: PathBuf,
    /// Attributes of your own beside those of the traces: JSON such as {"6.4": ["holds lock a"]}, or a .cxt or .csv
    #[arg(long, value_name = "FILE")]
    own: Option<PathBuf>,
    #[command(flatten)]
    analysis: Analysis,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Draw a heat map into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Similarity {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_with(&self.run, self.analysis.all_processes)?;
        let mut options = self.analysis.options(&[&run])?;
        if let Some(file) = &self.own {
            options.own = vec![context::sets(file)?];
        }
        let found = similarity(&run, &options)?;
        if let Some(file) = &self.svg {
            write(file, &lockstep_report::similarity_svg(&found))?;
        }
        if self.json {
            output::json(&found)?;
        } else if self.csv {
            output::print(|out| out.write_all(found.to_csv().as_bytes()))?;
        } else if self.svg.is_none() {
            output::print(|out| out.write_all(text(&found).as_bytes()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A value as short as two digits allow: `1`, `.67`, `0`.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.as_str() {
        "0.00" if value == 0.0 => "0".to_owned(),
        "1.00" if value == 1.0 => "1".to_owned(),
        _ => text.trim_start_matches('0').to_owned(),
    }
}

/// Traces with equal rows (they are alike, and alike to all others) share one row and column.
fn text(found: &Found) -> String {
    let name = |place: &usize| found.traces[*place].to_string();
    let classes: Vec<(usize, Vec<String>)> = found
        .alike()
        .into_iter()
        .map(|places| (places[0], places.iter().map(name).collect()))
        .collect();
    let letters: Vec<String> = (0..classes.len()).map(letter).collect();
    let mut header = vec!["", "TRACES"];
    header.extend(letters.iter().map(String::as_str));
    let rows = classes.iter().zip(&letters).map(|((row, names), letter)| {
        let values = classes
            .iter()
            .map(|(column, _)| short(found.value(*row, *column)));
        [letter.clone(), names_in_short(names)]
            .into_iter()
            .chain(values)
            .collect()
    });
    let numbers: Vec<usize> = (2..header.len()).collect();
    let table = output::table(&header, &numbers, rows);
    format!(
        "{} traces of {} kinds; 1 = the same attributes, 0 = none in common\n\n{table}\n",
        found.traces.len(),
        classes.len()
    )
}

/// a, b ... z, aa, ab ...
fn letter(mut index: usize) -> String {
    let mut text = String::new();
    loop {
        text.insert(0, char::from(b'a' + (index % 26) as u8));
        if index < 26 {
            return text;
        }
        index = index / 26 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_letters() {
        assert_eq!(
            [0.0, 1.0, 2.0 / 3.0, 0.001, 0.999].map(short),
            ["0", "1", ".67", ".00", "1.00"]
        );
        assert_eq!(
            [0, 25, 26, 51, 52, 702].map(letter),
            ["a", "z", "aa", "az", "ba", "aaa"]
        );
    }
}
