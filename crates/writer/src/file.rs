//! A process file: chunks, streams in chunks, pages.

use crate::Error;
use lockstep_format::bytes::put_u32;
use lockstep_format::check;
use lockstep_format::codec::Sink;
use lockstep_format::process::{DATA_CHUNK, PAGE, chunk, extent_end};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

pub(crate) struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// A stream in a first chunk and as many data chunks as it needs.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub kind: u32,
    pub thread: u32,
    /// Where the stream goes on, and up to where there is room.
    next: u64,
    end: u64,
    sequence: u32,
    bytes: u64,
    /// What is not written yet.
    waiting: Vec<u8>,
}

impl Chunks {
    pub fn new(kind: u32, thread: u32, next: u64, end: u64) -> Self {
        Self {
            kind,
            thread,
            next,
            end,
            sequence: 0,
            bytes: 0,
            waiting: Vec::new(),
        }
    }

    pub fn put(&mut self, bytes: &[u8], pages: &mut Pages) -> Result<(), Error> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < DATA_CHUNK as usize {
            return Ok(());
        }
        self.write(pages)
    }

    fn write(&mut self, pages: &mut Pages) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes += waiting.len() as u64;
        let mut rest = &waiting[..];
        while !rest.is_empty() {
            if self.next == self.end {
                self.sequence += 1;
                let at = pages.take(DATA_CHUNK)?;
                let mut head = [0; chunk::SIZE];
                chunk_header(
                    &mut head,
                    self.kind,
                    DATA_CHUNK,
                    self.thread,
                    self.sequence,
                    &[],
                );
                pages.write(at, &head)?;
                (self.next, self.end) = (at + chunk::SIZE as u64, at + DATA_CHUNK);
            }
            let room = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room));
            pages.write(self.next, now)?;
            self.next += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Writes what waits; how many bytes the stream has.
    pub fn finish(&mut self, pages: &mut Pages) -> Result<u64, Error> {
        self.write(pages)?;
        Ok(self.bytes)
    }
}

pub(crate) fn chunk_header(
    head: &mut [u8],
    kind: u32,
    length: u64,
    index: u32,
    sequence: u32,
    used: &[u8],
) {
    put_u32(head, chunk::MAGIC, chunk::MAGIC_VALUE);
    put_u32(head, chunk::KIND, kind);
    put_u32(head, chunk::LENGTH, length as u32);
    put_u32(head, chunk::THREAD, index);
    put_u32(head, chunk::SEQUENCE, sequence);
    put_u32(head, chunk::USED, used.len() as u32);
    put_u32(head, chunk::PAYLOAD_CHECK, check::crc32c(used));
    let sum = check::crc32c(&head[..chunk::CHECK]);
    put_u32(head, chunk::CHECK, sum);
}

/// A process file, grown as chunks are taken.
#[derive(Debug)]
pub(crate) struct Pages {
    path: PathBuf,
    /// Open while a thread is written: there may be more processes than a process may have files.
    file: Option<File>,
    /// First byte that no chunk has.
    free: u64,
}

impl Pages {
    pub fn new(path: PathBuf) -> Self {
        let (file, free) = (None, PAGE);
        Self { path, file, free }
    }

    fn with<T>(&mut self, change: impl FnOnce(&File) -> io::Result<T>) -> Result<T, Error> {
        let path = &self.path;
        let failed = |error| Error::write(path, error);
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut options = File::options();
                let options = options.write(true).create(true).truncate(false);
                options.open(path).map_err(failed)?
            }
        };
        let done = change(&file).map_err(failed);
        self.file = Some(file);
        done
    }

    /// Room for a chunk, which crosses no extent's end.
    pub fn take(&mut self, length: u64) -> Result<u64, Error> {
        let mut at = self.free;
        if at + length > extent_end(at) {
            at = extent_end(at);
        }
        let (start, end) = (self.free, at + length);
        self.free = end;
        // Whoever maps a hole of a file in memory needs room for it, and gets a signal where there is none.
        self.with(|file| allocate(file, start, end))?;
        Ok(at)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.with(|file| file.write_all_at(bytes, at))
    }

    /// Closes the file until something is written again.
    pub fn close(&mut self) {
        self.file = None;
    }
}

/// Room from `start` to `end`, which is where the file ends then.
fn allocate(file: &File, start: u64, end: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), start, end - start) {
        // File systems that cannot are not in memory.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(end),
        done => Ok(done?),
    }
}
