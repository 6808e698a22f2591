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
    /// The line that was asked for last, from 1; where it begins, and where it ends.
    number: u64,
    begin: u64,
    end: u64,
}

impl<'a> Lines<'a> {
    pub fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::read(path, error))?;
        Ok(Self {
            path,
            reader: BufReader::new(file),
            number: 0,
            begin: 0,
            end: 0,
        })
    }

    /// Begins behind the first `bytes` bytes, which are no lines.
    pub fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        let moved = self.reader.seek(SeekFrom::Start(bytes));
        self.end = moved.map_err(|error| Error::read(self.path, error))?;
        Ok(())
    }

    /// The next line; bytes that are no UTF-8 are replaced.
    pub fn next(&mut self) -> Result<Option<String>, Error> {
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::read(self.path, error))?;
        self.number += 1;
        self.begin = self.end;
        self.end += read as u64;
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 == LONGEST {
            return Err(Error::wrong(
                self.path,
                self.place(),
                format!("lines shorter than {LONGEST} bytes"),
                "a longer one",
            ));
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    /// Where the line begins that was asked for last; behind the last one, where the file ends.
    pub fn place(&self) -> Place {
        Place::Line {
            number: self.number,
            byte: self.begin,
        }
    }
}
