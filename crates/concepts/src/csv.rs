//! Contexts as comma-separated values: a header with the names of the attributes, then a row an object, its name first;
//! a cell is 1 or 0 (read: also `X`, `x`, `true`, and `.`, `false`, nothing). Names with commas or quotes stand in quotes.

use crate::cxt::BadContext;
use crate::{BitMatrix, Context};

/// Writes a context.
#[must_use]
pub fn write(context: &Context) -> String {
    let mut text = String::from("object");
    for attribute in context.attributes() {
        text.push(',');
        text.push_str(&quoted(attribute));
    }
    text.push('\n');
    for (row, object) in context.objects().iter().enumerate() {
        text.push_str(&quoted(object));
        for column in 0..context.attributes().len() {
            text.push_str(if context.incidence().get(row, column) {
                ",1"
            } else {
                ",0"
            });
        }
        text.push('\n');
    }
    text
}

fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

/// Reads a context.
///
/// # Errors
/// The first line that is not as it should be.
pub fn read(text: &str) -> Result<Context, BadContext> {
    let bad = |line: usize, problem: String| BadContext { line, problem };
    let mut rows = records(text)?.into_iter();
    let Some((_, mut attributes)) = rows.next() else {
        return Err(bad(
            1,
            "expected a header with the names of the attributes, found the end of the file".into(),
        ));
    };
    attributes.remove(0);
    let mut objects = Vec::new();
    let mut incidence = BitMatrix::new(0, attributes.len());
    for (line, mut cells) in rows {
        let object = cells.remove(0);
        if cells.len() != attributes.len() {
            let (expected, found) = (attributes.len(), cells.len());
            return Err(bad(
                line,
                format!("expected {expected} cells after the name, found {found}"),
            ));
        }
        let mut row = vec![0u64; BitMatrix::full_row(attributes.len()).len()];
        for (column, cell) in cells.iter().enumerate() {
            match cell.trim() {
                "1" | "X" | "x" | "true" => row[column / 64] |= 1 << (column % 64),
                "0" | "." | "false" | "" => {}
                other => {
                    let place = column + 2;
                    return Err(bad(
                        line,
                        format!("expected 1 or 0 in column {place}, found `{other}`"),
                    ));
                }
            }
        }
        objects.push(object);
        incidence.push(&row);
    }
    Ok(Context::new(objects, attributes, incidence))
}

/// The cells of each line, of which each has one at least, and the line's number.
fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, BadContext> {
    let mut records = Vec::new();
    let (mut cells, mut cell, mut quotes) = (Vec::new(), String::new(), false);
    let (mut line, mut start) = (1, 1);
    let mut all = text.chars().peekable();
    while let Some(next) = all.next() {
        match next {
            '"' if quotes && all.peek() == Some(&'"') => {
                all.next();
                cell.push('"');
            }
            '"' if quotes || cell.is_empty() => quotes = !quotes,
            ',' if !quotes => cells.push(std::mem::take(&mut cell)),
            '\r' if !quotes => {}
            '\n' if !quotes => {
                if !(cells.is_empty() && cell.is_empty()) {
                    cells.push(std::mem::take(&mut cell));
                    records.push((start, std::mem::take(&mut cells)));
                }
                line += 1;
                start = line;
            }
            other => {
                line += usize::from(other == '\n');
                cell.push(other);
            }
        }
    }
    if quotes {
        return Err(BadContext {
            line: start,
            problem: "expected a closing quote, found the end of the file".into(),
        });
    }
    if !(cells.is_empty() && cell.is_empty()) {
        cells.push(cell);
        records.push((start, cells));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let sets = [
            ("0.0", vec!["MPI_Send", "f(int, long)", "a \"b\""]),
            ("1,0", vec!["MPI_Send"]),
            ("2.0", vec![]),
        ];
        let sets = sets.map(|(name, set)| (name.to_owned(), set.into_iter().map(str::to_owned)));
        let context = Context::from_sets(sets);
        let text = write(&context);
        assert_eq!(read(&text).unwrap(), context);
        let other = "object,a,b\r\none, X ,.\n\ntwo,true,\n";
        let context = read(other).unwrap();
        assert_eq!(write(&context), "object,a,b\none,1,0\ntwo,1,0\n");
        for end in 0..text.len() {
            // Every truncation is read or refused.
            let _ = text.get(..end).map(read);
        }
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let told = |text: &str| {
            let bad = read(text).unwrap_err();
            (bad.line, bad.problem)
        };
        assert_eq!(told("").0, 1);
        assert_eq!(
            told("o,a\nx,1,1\n"),
            (2, "expected 1 cells after the name, found 2".into())
        );
        assert_eq!(
            told("o,a\n\nx,2\n"),
            (3, "expected 1 or 0 in column 2, found `2`".into())
        );
        assert_eq!(told("o,a\n\"x,1\n").0, 2);
    }
}
