//! Burmeister's file format of formal contexts (`.cxt`).
//!
//! ```text
//! B
//!                 name of the context, or blank
//! 2               number of objects
//! 3               number of attributes
//!                 blank
//! first object    names of objects, one a line
//! second object
//! ...             names of attributes, one a line
//! X.X             one row an object
//! .XX
//! ```

use crate::{BitMatrix, Context, bits};
use std::fmt;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadContext {
    /// Line, from 1.
    pub line: usize,
    /// What was expected there, and what was found.
    pub problem: String,
}

impl fmt::Display for BadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for BadContext {}

/// A context as a file. Line breaks in names become blanks, since the format has no way to write them.
#[must_use]
pub fn write(context: &Context) -> String {
    let mut text = format!(
        "B\n\n{}\n{}\n\n",
        context.objects().len(),
        context.attributes().len()
    );
    for name in context.objects().iter().chain(context.attributes()) {
        text.push_str(&name.replace(['\n', '\r'], " "));
        text.push('\n');
    }
    for object in 0..context.objects().len() {
        let mut row = vec!['.'; context.attributes().len()];
        for attribute in bits::ones(context.incidence().row(object)) {
            row[attribute] = 'X';
        }
        text.extend(row);
        text.push('\n');
    }
    text
}

/// Reads a context. What is allocated never exceeds a small multiple of the file's size.
///
/// # Errors
/// The first line that is not as the format wants it.
pub fn read(text: &str) -> Result<Context, BadContext> {
    let mut lines = Lines {
        rest: text.lines(),
        number: 0,
    };
    let magic = lines.next("the line `B`")?;
    if magic.trim_end() != "B" {
        return Err(lines.bad(format!("expected the line `B`, found {}", quote(magic))));
    }
    lines.next("the name of the context")?;
    let objects = lines.count("objects")?;
    let attributes = lines.count("attributes")?;
    // Every name takes a line and every cell a byte: a file that promises more than it holds is
    // refused before anything is reserved for it.
    let cells = objects.checked_mul(attributes.max(1));
    if objects
        .checked_add(attributes)
        .is_none_or(|names| names > text.len())
        || cells.is_none_or(|cells| cells > text.len())
    {
        return Err(lines.bad(format!(
            "expected {objects} objects with {attributes} attributes, found a file of {} bytes",
            text.len()
        )));
    }
    let mut first = lines.next("a blank line")?;
    let blank = first.trim().is_empty();
    let mut names = Vec::with_capacity(objects + attributes);
    for index in 0..objects + attributes {
        if index > 0 || blank {
            first = lines.next("a name")?;
        }
        names.push(first.to_owned());
    }
    let mut incidence = BitMatrix::new(objects, attributes);
    for object in 0..objects {
        let row = lines.next("a row of X and .")?.trim_end();
        if row.len() != attributes {
            return Err(lines.bad(format!(
                "expected a row of {attributes} cells, found {}",
                row.len()
            )));
        }
        for (attribute, cell) in row.bytes().enumerate() {
            match cell {
                b'X' | b'x' => incidence.set(object, attribute),
                b'.' => {}
                _ => {
                    return Err(lines.bad(format!(
                        "expected X or . in column {}, found {}",
                        attribute + 1,
                        quote(row)
                    )));
                }
            }
        }
    }
    let attribute_names = names.split_off(objects);
    Ok(Context::new(names, attribute_names, incidence))
}

struct Lines<'a> {
    rest: std::str::Lines<'a>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self, what: &str) -> Result<&'a str, BadContext> {
        self.number += 1;
        self.rest
            .next()
            .ok_or_else(|| self.bad(format!("expected {what}, found the end of the file")))
    }

    fn count(&mut self, of: &str) -> Result<usize, BadContext> {
        let line = self.next(&format!("the number of {of}"))?;
        line.trim().parse().map_err(|_| {
            self.bad(format!(
                "expected the number of {of}, found {}",
                quote(line)
            ))
        })
    }

    fn bad(&self, problem: String) -> BadContext {
        BadContext {
            line: self.number,
            problem,
        }
    }
}

/// The beginning of a line, safe to print.
fn quote(line: &str) -> String {
    let short: String = line.chars().take(40).collect();
    format!("`{}`", short.escape_debug())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str = "B\n\n2\n3\n\nfirst\nsecond\na\nb\nc\nX.X\n.XX\n";

    #[test]
    fn small() {
        let context = read(SMALL).unwrap();
        assert_eq!(context.objects(), ["first", "second"]);
        assert_eq!(context.attributes(), ["a", "b", "c"]);
        assert!(context.incidence().get(1, 2) && !context.incidence().get(1, 0));
        assert_eq!(write(&context), SMALL);
        assert_eq!(read(&SMALL.replace('\n', "\r\n")).unwrap(), context);
        assert_eq!(read(&SMALL.replace("3\n\n", "3\n")).unwrap(), context);
    }

    #[test]
    fn every_truncation_is_told() {
        for end in 0..SMALL.len() - 1 {
            assert!(read(&SMALL[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, message) in [
            ("C\n", "line 1: expected the line `B`, found `C`"),
            (
                "B\n\nmany\n",
                "line 3: expected the number of objects, found `many`",
            ),
            (
                "B\n\n999999999999\n999999999999\n",
                "line 4: expected 999999999999 objects with 999999999999 attributes, found a file of 29 bytes",
            ),
            (
                "B\n\n1\n1\n\no\na\nXX\n",
                "line 8: expected a row of 1 cells, found 2",
            ),
            (
                "B\n\n1\n1\n\no\na\n?\n",
                "line 8: expected X or . in column 1, found `?`",
            ),
            (
                "B\n\n1\n1\n\no\n",
                "line 7: expected a name, found the end of the file",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn round_trip(names in proptest::collection::vec("[ -~äß]{1,12}", 0..12), objects in 0usize..12, seed in any::<u64>()) {
            let objects = objects.min(names.len());
            let attributes = names.len() - objects;
            let mut incidence = BitMatrix::new(objects, attributes);
            for object in 0..objects {
                for attribute in 0..attributes {
                    if seed.rotate_left((object * 7 + attribute * 3) as u32) & 1 == 1 {
                        incidence.set(object, attribute);
                    }
                }
            }
            let context = Context::new(names[..objects].to_vec(), names[objects..].to_vec(), incidence);
            prop_assert_eq!(read(&write(&context)), Ok(context));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(B\n)?[0-9X.\n a]{0,60}") {
            let _ = read(&text);
        }
    }
}
