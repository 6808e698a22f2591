//! Records of OTF2, and files of them.

use super::{CHUNK_HEADER, DEFINITION_CHUNK, LITTLE_ENDIAN, LONG, UNDEFINED, buffer, definition};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A record's fields, or a record without a length.
pub(super) struct Record(pub Vec<u8>);

impl Record {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn number(&mut self, value: u64) -> &mut Self {
        let bytes = value.to_le_bytes();
        let length = 8 - value.leading_zeros() as usize / 8;
        self.0.push(length as u8);
        self.0.extend_from_slice(&bytes[..length]);
        self
    }

    pub fn optional(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.byte(UNDEFINED),
        }
    }

    pub fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.0
            .extend(text.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
        self.byte(0)
    }

    /// With its type: what has one number has no length.
    pub fn short(mut self, kind: u8) -> Vec<u8> {
        self.0.insert(0, kind);
        self.0
    }

    /// With its type and length.
    pub fn framed(&self, kind: u8) -> Vec<u8> {
        let mut framed = vec![kind];
        match u8::try_from(self.0.len()) {
            Ok(length) if length < LONG => framed.push(length),
            _ => {
                framed.push(LONG);
                framed.extend((self.0.len() as u64).to_le_bytes());
            }
        }
        framed.extend_from_slice(&self.0);
        framed
    }
}

/// A file of chunks.
pub(super) struct Chunks {
    out: BufWriter<File>,
    size: usize,
    /// The chunk that is being filled.
    chunk: Vec<u8>,
    /// Events before it, and so far; of definitions nothing is counted.
    before: u64,
    events: u64,
    counts: bool,
}

impl Chunks {
    pub fn new(path: &Path, size: u64, counts: bool) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create_new(path)?),
            size: size as usize,
            chunk: vec![0; CHUNK_HEADER],
            before: 0,
            events: 0,
            counts,
        })
    }

    pub fn event(&mut self, time: u64, is_new: bool, record: &[u8]) -> io::Result<()> {
        let room = self.has_room(9 + record.len());
        if !room {
            self.flush(true)?;
        }
        // Each chunk tells the time by itself.
        if is_new || !room {
            self.chunk.push(buffer::TIME);
            self.chunk.extend(time.to_le_bytes());
        }
        self.chunk.extend_from_slice(record);
        self.events += 1;
        Ok(())
    }

    pub fn define(&mut self, record: &[u8]) -> io::Result<()> {
        if !self.has_room(record.len()) {
            self.flush(true)?;
        }
        if !self.has_room(record.len()) {
            let text = "expected a name that has room in a chunk, found a longer one";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.chunk.extend_from_slice(record);
        self.events += 1;
        Ok(())
    }

    /// Whether so many bytes fit, and the end of the file behind them.
    fn has_room(&self, bytes: usize) -> bool {
        self.chunk.len() + bytes + 2 <= self.size
    }

    fn flush(&mut self, is_full: bool) -> io::Result<()> {
        let (first, last) = if self.counts {
            (self.before + 1, self.events)
        } else {
            (1, 0)
        };
        self.chunk[0] = buffer::CHUNK;
        self.chunk[1] = LITTLE_ENDIAN;
        self.chunk[2..10].copy_from_slice(&first.to_le_bytes());
        self.chunk[10..18].copy_from_slice(&last.to_le_bytes());
        if is_full {
            self.chunk.resize(self.size, buffer::PADDING);
        }
        self.out.write_all(&self.chunk)?;
        self.chunk.clear();
        self.chunk.resize(CHUNK_HEADER, 0);
        self.before = self.events;
        Ok(())
    }

    /// Ends the file; how many events or definitions it has.
    pub fn finish(mut self) -> io::Result<u64> {
        self.chunk
            .extend([buffer::END_OF_CHUNK, buffer::END_OF_FILE]);
        self.flush(false)?;
        self.out.flush()?;
        Ok(self.events)
    }
}

/// Strings get numbers as they come up; each is defined before it is used.
pub(super) struct Definitions {
    file: Chunks,
    strings: FxHashMap<String, u64>,
}

impl Definitions {
    pub fn new(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: Chunks::new(path, DEFINITION_CHUNK, false)?,
            strings: FxHashMap::default(),
        })
    }

    pub fn string(&mut self, text: &str) -> io::Result<u64> {
        let next = self.strings.len() as u64;
        if let Some(known) = self.strings.get(text) {
            return Ok(*known);
        }
        self.strings.insert(text.to_owned(), next);
        let mut record = Record::new();
        record.number(next).text(text);
        self.file.define(&record.framed(definition::STRING))?;
        Ok(next)
    }

    pub fn add(&mut self, kind: u8, record: &Record) -> io::Result<()> {
        self.file.define(&record.framed(kind))
    }

    /// Ends the file; how many definitions it has.
    pub fn finish(self) -> io::Result<u64> {
        self.file.finish()
    }
}
