//! Raw rows: a CSV file that grows by a line a run, so that a bench that was broken off goes on where
//! it stopped, and every figure can be computed again.

use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file of rows.
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Opens `path` with what is in it, or begins it; with `fresh` what is in it is forgotten.
    pub fn open(path: &Path, heads: &[&str], fresh: bool) -> Result<Self> {
        let head = heads.join(",");
        let text = match std::fs::read_to_string(path) {
            Ok(text) if !fresh => text,
            _ => String::new(),
        };
        let mut lines = text.lines();
        let mut rows = Vec::new();
        match lines.next() {
            None => std::fs::write(path, format!("{head}\n"))
                .with_context(|| path.display().to_string())?,
            Some(found) => {
                ensure!(
                    found == head,
                    "{}: expected the columns {head}, found {found}; --fresh begins again",
                    path.display()
                );
                // A line that was broken off is measured again.
                rows.extend(
                    lines
                        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>())
                        .filter(|row| row.len() == heads.len()),
                );
                if !text.ends_with('\n') {
                    std::fs::OpenOptions::new()
                        .append(true)
                        .open(path)?
                        .write_all(b"\n")?;
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            heads: heads.iter().map(|head| (*head).to_owned()).collect(),
            rows,
        })
    }

    /// Whether there is a row that begins with these cells.
    pub fn has(&self, key: &[&str]) -> bool {
        self.find(key).next().is_some()
    }

    /// The rows that begin with these cells.
    pub fn find<'a>(&'a self, key: &'a [&str]) -> impl Iterator<Item = Row<'a>> {
        self.all().filter(move |row| {
            row.cells
                .iter()
                .zip(key)
                .all(|(cell, wanted)| cell == wanted)
        })
    }

    /// All rows.
    pub fn all(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row {
            heads: &self.heads,
            cells,
        })
    }

    /// Adds a row and writes it.
    pub fn add(&mut self, cells: &[String]) -> Result<()> {
        let clean = |cell: &String| cell.replace(',', ";").replace(['\n', '\r'], " ");
        let cells: Vec<String> = cells.iter().map(clean).collect();
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.path)?;
        writeln!(file, "{}", cells.join(","))?;
        self.rows.push(cells);
        Ok(())
    }
}

/// One row, cells by name.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    heads: &'a [String],
    cells: &'a [String],
}

impl<'a> Row<'a> {
    /// A cell; empty where there is no such column.
    pub fn text(&self, head: &str) -> &'a str {
        let at = self.heads.iter().position(|it| it == head);
        at.and_then(|at| self.cells.get(at))
            .map_or("", String::as_str)
    }

    /// A cell that is a number.
    pub fn number(&self, head: &str) -> f64 {
        self.text(head).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;
    use lockstep_testkit::Scratch;

    #[test]
    fn a_file_that_was_broken_off_goes_on() -> anyhow::Result<()> {
        let scratch = Scratch::new("rows");
        let path = scratch.join("rows.csv");
        let mut rows = Rows::open(&path, &["name", "value"], false)?;
        rows.add(&["a".to_owned(), "1,5".to_owned()])?;
        let text = std::fs::read_to_string(&path)?;
        assert_eq!(text, "name,value\na,1;5\n");
        std::fs::write(&path, format!("{text}b"))?;
        let mut rows = Rows::open(&path, &["name", "value"], false)?;
        assert!(rows.has(&["a"]) && !rows.has(&["b"]));
        rows.add(&["b".to_owned(), "2".to_owned()])?;
        let rows = Rows::open(&path, &["name", "value"], false)?;
        let values: Vec<f64> = rows.find(&["b"]).map(|row| row.number("value")).collect();
        assert_eq!(values, [2.0]);
        assert!(Rows::open(&path, &["other"], false).is_err());
        assert_eq!(Rows::open(&path, &["other"], true)?.all().count(), 0);
        Ok(())
    }
}
