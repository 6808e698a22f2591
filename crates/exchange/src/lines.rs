//! Lines of a text of strangers.

use crate::error::{Error, Place};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A longer line is none.
const LONGEST: u64 = 1 << 16;

/// The lines of a file, one at a time.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    /// The line that was given last, from 1.
    pub number: u64,
}

impl<'a> Lines<'a> {
    pub fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::read(path, error))?;
        Ok(Self {
            path,
            reader: BufReader::new(file),
            number: 0,
        })
    }

    /// Begins behind the first `bytes` bytes, which are no lines.
    pub fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        let moved = self.reader.seek(SeekFrom::Start(bytes));
        moved
            .map(|_| ())
            .map_err(|error| Error::read(self.path, error))
    }

    /// The next line; bytes that are no UTF-8 are replaced.
    pub fn next(&mut self) -> Result<Option<String>, Error> {
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line);
        if read.map_err(|error| Error::read(self.path, error))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 == LONGEST {
            return Err(Error::wrong(
                self.path,
                Place::Line(self.number),
                format!("lines shorter than {LONGEST} bytes"),
                "a longer one",
            ));
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}
