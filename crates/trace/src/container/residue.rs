//! A process file without the events that a sealed run tells otherwise: what is kept of it, and a file made of
//! that again, which [`super::read`] reads like any other.

use super::{ProcessFile, walk};
use lockstep_format::bytes::{put, put_u32, put_u64, u32_at, u64_at};
use lockstep_format::check;
use lockstep_format::process::{PAGE, chunk, extent_end, header, kind, state, thread};
use std::collections::BTreeSet;
use std::ops::Range;

/// A chunk that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Kept {
    pub kind: u32,
    pub thread: u32,
    pub sequence: u32,
    pub used: u32,
    pub payload_check: u32,
    /// Its payload; of facts and of threads whose events are told, without the zeros at its end.
    pub payload: Vec<u8>,
}

impl Kept {
    /// Bytes of its chunk: a thread's is at least as long as its control block, any at least as what is used of it.
    pub fn length(&self) -> u64 {
        let least = match self.kind {
            kind::THREAD => thread::DATA as u64,
            _ => chunk::SIZE as u64 + u64::from(self.used),
        };
        let length = (chunk::SIZE + self.payload.len()) as u64;
        length.max(least).next_multiple_of(PAGE)
    }
}

/// What is kept of a process file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Residue {
    /// The header page, without the zeros at its end.
    pub header: Vec<u8>,
    pub chunks: Vec<Kept>,
}

/// What a process file has beside the events of the threads with these indices.
pub(crate) fn residue(bytes: &[u8], file: &ProcessFile, told: &BTreeSet<u32>) -> Residue {
    let clearing = u64_at(bytes, header::CLEARING).unwrap_or(0);
    let mut page = bytes.get(..PAGE as usize).unwrap_or(bytes).to_vec();
    put_u64(&mut page, header::CLEARING, 0);
    let earlier: BTreeSet<u32> = file
        .threads
        .iter()
        .filter(|thread| told.contains(&thread.index))
        .flat_map(|thread| thread.earlier.iter().map(|segment| segment.index))
        .collect();
    let mut chunks = Vec::new();
    for found in walk(bytes, clearing, &mut Vec::new()) {
        let is_told = told.contains(&found.thread);
        if matches!(found.kind, kind::THREAD | kind::DATA) && earlier.contains(&found.thread)
            || found.kind == kind::DATA && is_told
        {
            continue;
        }
        let mut payload = bytes.get(found.payload.clone()).unwrap_or(&[]).to_vec();
        // Cut off within its control block, it is no thread, and made whole by zeros it would be one.
        if found.kind == kind::THREAD && payload.len() < thread::DATA - chunk::SIZE {
            continue;
        }
        if found.kind == kind::THREAD && is_told {
            forget_events(&mut payload);
        }
        // Of streams every byte counts, zeros at the end too.
        if is_told && found.kind == kind::THREAD || found.kind == kind::FACTS {
            trim(&mut payload);
        }
        chunks.push(Kept {
            kind: found.kind,
            thread: found.thread,
            sequence: found.sequence,
            used: found.used,
            payload_check: found.payload_check,
            payload,
        });
    }
    trim(&mut page);
    Residue {
        header: page,
        chunks,
    }
}

fn trim(bytes: &mut Vec<u8>) {
    let length = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    bytes.truncate(length);
}

/// The control block of a thread that has recorded nothing yet, but for what stands beside its events.
fn forget_events(payload: &mut Vec<u8>) {
    payload.truncate(thread::DATA - chunk::SIZE);
    for (start, length) in [
        (thread::PHASE, 8),
        (thread::COMMITTED, state::SIZE),
        (thread::INTENT, state::SIZE),
        (thread::STAGING, 8 * thread::STAGING_WORDS),
        (thread::MIRROR, 8 * thread::MIRROR_WORDS),
    ] {
        let start = start - chunk::SIZE;
        if let Some(area) = payload.get_mut(start..start + length) {
            area.fill(0);
        }
    }
}

/// Of the check that stands behind these bytes, what it is otherwise than it should be.
fn toggle_check(bytes: &mut [u8], checked: Range<usize>) {
    let claimed = u32_at(bytes, checked.end);
    if let (Some(claimed), Some(content)) = (claimed, bytes.get(checked.clone())) {
        let sum = check::crc32c(content);
        put_u32(bytes, checked.end, claimed ^ sum);
    }
}

impl Residue {
    /// Takes checks that hold away, as zeros, or puts them back: what can be computed need not be told.
    pub fn toggle_checks(&mut self) {
        toggle_check(&mut self.header, 0..header::CHECK);
        for kept in &mut self.chunks {
            match kept.kind {
                kind::FACTS => {
                    if let Some(text) = kept.payload.get(..kept.used as usize) {
                        kept.payload_check ^= check::crc32c(text);
                    }
                }
                kind::THREAD => {
                    let (start, end) = (thread::TID - chunk::SIZE, thread::CHECK - chunk::SIZE);
                    toggle_check(&mut kept.payload, start..end);
                }
                _ => {}
            }
        }
    }

    /// A process file. `None` where it would be larger than any.
    pub fn rebuild(&self) -> Option<Vec<u8>> {
        let mut bytes = self.header.clone();
        bytes.resize(PAGE as usize, 0);
        for kept in &self.chunks {
            let length = kept.length();
            let mut at = bytes.len() as u64;
            if at + length > extent_end(at) {
                at = extent_end(at);
            }
            if length > extent_end(at) - at {
                return None;
            }
            let (at, end) = (at as usize, (at + length) as usize);
            bytes.resize(end, 0);
            put(&mut bytes, at + chunk::SIZE, &kept.payload);
            let mut head = [0; chunk::CHECK + 4];
            put_u32(&mut head, chunk::MAGIC, chunk::MAGIC_VALUE);
            put_u32(&mut head, chunk::KIND, kept.kind);
            put_u32(&mut head, chunk::LENGTH, length as u32);
            put_u32(&mut head, chunk::THREAD, kept.thread);
            put_u32(&mut head, chunk::SEQUENCE, kept.sequence);
            put_u32(&mut head, chunk::USED, kept.used);
            put_u32(&mut head, chunk::PAYLOAD_CHECK, kept.payload_check);
            let sum = check::crc32c(head.get(..chunk::CHECK)?);
            put_u32(&mut head, chunk::CHECK, sum);
            put(&mut bytes, at, &head);
        }
        Some(bytes)
    }
}
