//! Records in a row, each told by what it has otherwise than the one before: ranks of one program differ in a few numbers.
//!
//! ```text
//!  before  ├── same ──┼─ passed ─┼──── same ────┤
//!  record  ├── same ──┼── own ──┼──── same ────┤      told: lengths, and the own bytes
//! ```
//! *Guarantees*: what was put is taken, byte by byte; no panic on any bytes, and memory of one record of at most
//! [`MOST`] bytes. *Costs*: time that follows the lengths of the records, in either direction.

use super::record::{Bytes, Take};
use lockstep_format::sealed::bits::Broken;
use rustc_hash::FxHashMap;

/// Bytes of a record.
const MOST: u64 = 1 << 28;
/// So many equal bytes are worth saying where they are.
const ENOUGH: usize = 8;
/// So far they are looked for by going on in both records alike.
const NEAR: usize = 16;

/// Tells records.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    before: Vec<u8>,
}

impl Teller {
    /// Tells the next record.
    pub fn put(&mut self, record: Vec<u8>, text: &mut Bytes) {
        let mut rest = &record[..];
        let mut before = &self.before[..];
        text.number(rest.len() as u64);
        while !rest.is_empty() {
            let same = alike(rest, before);
            (rest, before) = (&rest[same..], &before[same..]);
            let step = near(rest, before).or_else(|| far(rest, before));
            let (own, passed) = step.unwrap_or((rest.len(), 0));
            text.number(same as u64);
            text.bytes(&rest[..own]);
            text.number(passed as u64);
            (rest, before) = (&rest[own..], &before[passed..]);
        }
        self.before = record;
    }
}

/// How many bytes both begin with.
fn alike(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// After how many bytes both go on alike: those of the one are its own, those of the other passed.
fn near(record: &[u8], before: &[u8]) -> Option<(usize, usize)> {
    let rows = record.windows(ENOUGH).zip(before.windows(ENOUGH));
    let step = rows.take(NEAR).position(|(a, b)| a == b)?;
    Some((step, step))
}

/// The same where they do so after different numbers of bytes.
fn far(record: &[u8], before: &[u8]) -> Option<(usize, usize)> {
    if record.len() < ENOUGH {
        return None;
    }
    let rows = before.windows(ENOUGH).enumerate().rev();
    // The first place of each row.
    let places: FxHashMap<&[u8], usize> = rows.map(|(place, row)| (row, place)).collect();
    let mut rows = record.windows(ENOUGH).zip(0..);
    rows.find_map(|(row, own)| Some((own, *places.get(row)?)))
}

/// The other direction.
#[derive(Debug, Default)]
pub(crate) struct Told {
    before: Vec<u8>,
}

impl Told {
    /// The next record.
    pub fn take(&mut self, text: &mut Take<'_>) -> Result<&[u8], Broken> {
        let length = text.number()?;
        if length > MOST {
            return Err(Broken::TooMuch);
        }
        let mut record = Vec::new();
        let mut there = 0usize;
        while (record.len() as u64) < length {
            let same = usize::try_from(text.number()?).map_err(|_| Broken::TooMuch)?;
            let end = there.checked_add(same).ok_or(Broken::TooMuch)?;
            let copied = self.before.get(there..end);
            record.extend_from_slice(copied.ok_or(Broken::Nothing("place in the record before"))?);
            let own = text.bytes()?;
            record.extend_from_slice(own);
            let passed = usize::try_from(text.number()?).map_err(|_| Broken::TooMuch)?;
            there = end.checked_add(passed).ok_or(Broken::TooMuch)?;
            if record.len() as u64 > length || same == 0 && own.is_empty() && passed == 0 {
                return Err(Broken::TooMuch);
            }
        }
        self.before = record;
        Ok(&self.before)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(records: &[Vec<u8>]) -> usize {
        let mut text = Bytes::default();
        let mut teller = Teller::default();
        for record in records {
            teller.put(record.clone(), &mut text);
        }
        let mut take = Take(&text.0);
        let mut told = Told::default();
        for record in records {
            assert_eq!(told.take(&mut take).unwrap(), record);
        }
        assert!(take.0.is_empty());
        text.0.len()
    }

    /// A record, and others that have pieces of it taken out, put in or replaced.
    fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let edit = (
            0..300usize,
            0..20usize,
            prop::collection::vec(0..4u8, 0..20),
        );
        let edits = prop::collection::vec(prop::collection::vec(edit, 0..4), 0..6);
        (prop::collection::vec(0..4u8, 0..300), edits).prop_map(|(first, edits)| {
            let mut records = vec![first.clone()];
            for edits in edits {
                let mut record = first.clone();
                for (at, gone, new) in edits {
                    let at = at.min(record.len());
                    let end = (at + gone).min(record.len());
                    record.splice(at..end, new);
                }
                records.push(record);
            }
            records
        })
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(records in records()) {
            there_and_back(&records);
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(0..40u8, 0..60)) {
            let mut take = Take(&bytes);
            let mut told = Told::default();
            while let Ok(record) = told.take(&mut take) {
                prop_assert!(record.len() <= 40 * 60 * 60);
                if take.0.is_empty() {
                    break;
                }
            }
        }
    }

    #[test]
    fn what_is_as_before_takes_four_bytes() {
        let record: Vec<u8> = (0..100).collect();
        let one = there_and_back(std::slice::from_ref(&record));
        assert_eq!(there_and_back(&[record.clone(), record]), one + 4);
    }

    #[test]
    fn a_longer_number_moves_what_is_behind_it() {
        let record =
            |pid: u32| format!("a process with number {pid} of a host of some name").into_bytes();
        let one = there_and_back(&[record(999)]);
        assert!(there_and_back(&[record(999), record(1000)]) < one + 16);
    }
}
