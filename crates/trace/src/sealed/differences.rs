//! Records in a row, each told by what it has otherwise than the one before: ranks of one program differ in a few numbers.
//!
//! ```text
//!  before  ├── same ──┼─ passed ─┼──── same ────┤
//!  record  ├── same ──┼── own ──┼──── same ────┤      told: lengths, and the own bytes
//! ```
//! *Guarantees*: what was put is taken, byte by byte; no panic on any bytes, and a reader's memory is that of one record of at most
//! [`MOST`] bytes. *Costs*: time that follows the lengths of the records, in either direction; of a writer memory of two records, and
//! about 3 bytes for each of the one before where the two drift apart.

use super::record::{Bytes, Take};
use lockstep_format::sealed::bits::Broken;
use rustc_hash::FxHashMap;

/// Bytes of a record.
const MOST: u64 = 1 << 28;
/// So many equal bytes are worth saying where they are.
const ENOUGH: usize = 8;
/// So far they are looked for by going on in both records alike.
const NEAR: usize = 16;
/// Farther on, rows of bytes are known that begin at such places of the record before.
const STRIDE: usize = 8;

/// Tells records.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    before: Vec<u8>,
}

impl Teller {
    /// Tells the next record.
    ///
    /// # Errors
    /// Where it is longer than a record may be.
    pub fn put(&mut self, record: Vec<u8>, text: &mut Bytes) -> Result<(), Broken> {
        if record.len() as u64 > MOST {
            return Err(Broken::Above("256 MiB in the record of a process"));
        }
        let mut rest = &record[..];
        let mut before = &self.before[..];
        let mut rows: Option<Rows<'_>> = None;
        text.number(rest.len() as u64);
        while !rest.is_empty() {
            let same = alike(rest, before);
            (rest, before) = (&rest[same..], &before[same..]);
            let mut far = || {
                let passed = self.before.len() - before.len();
                let rows = rows.get_or_insert_with(|| Rows::new(&self.before));
                rows.find(rest, passed)
            };
            let step = near(rest, before).or_else(&mut far);
            let (own, passed) = step.unwrap_or((rest.len(), 0));
            text.number(same as u64);
            text.bytes(&rest[..own]);
            text.number(passed as u64);
            (rest, before) = (&rest[own..], &before[passed..]);
        }
        self.before = record;
        Ok(())
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

/// Where rows of [`ENOUGH`] bytes stand in the record before.
struct Rows<'a> {
    before: &'a [u8],
    /// The first place of a row that is not passed; and by place, the next of the same row.
    first: FxHashMap<&'a [u8], u32>,
    next: Vec<u32>,
}

impl<'a> Rows<'a> {
    fn new(before: &'a [u8]) -> Self {
        let rows = before.windows(ENOUGH).step_by(STRIDE);
        let mut first = FxHashMap::default();
        let mut next = vec![u32::MAX; rows.len()];
        for (place, row) in rows.enumerate().rev() {
            if let Some(later) = first.insert(row, place as u32) {
                next[place] = later;
            }
        }
        Self {
            before,
            first,
            next,
        }
    }

    /// After how many bytes both go on alike, where they do so after different numbers of them; `passed` is never less
    /// than the time before, so that no place is looked at twice.
    fn find(&mut self, record: &[u8], passed: usize) -> Option<(usize, usize)> {
        let (own, place) = (record.windows(ENOUGH).enumerate())
            .find_map(|(own, row)| Some((own, self.from(row, passed)?)))?;
        let before = self.before[passed..place].iter().rev();
        let back = (record[..own].iter().rev().zip(before))
            .take_while(|(a, b)| a == b)
            .count();
        Some((own - back, place - passed - back))
    }

    /// The first place of a row that is not before `passed`.
    fn from(&mut self, row: &[u8], passed: usize) -> Option<usize> {
        let first = self.first.get_mut(row)?;
        loop {
            let place = *first as usize * STRIDE;
            if place >= passed {
                return Some(place);
            }
            match self.next.get(*first as usize) {
                Some(&later) if later != u32::MAX => *first = later,
                _ => return None,
            }
        }
    }
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
            teller.put(record.clone(), &mut text).unwrap();
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

    /// Two records whose pieces are the same, with other lengths of something else between them: thousands of places from
    /// which they go on alike.
    #[test]
    fn records_that_drift_apart_again_and_again_are_told_in_one_pass() {
        let mut random = 1u64;
        let mut number = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            random >> 33
        };
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for _ in 0..30_000 {
            let piece: Vec<u8> = (0..64).map(|_| number() as u8).collect();
            for record in [&mut one, &mut other] {
                record.extend((0..20 + number() % 20).map(|_| number() as u8));
                record.extend(&piece);
            }
        }
        let alone = one.len() + other.len();
        let told = there_and_back(&[one, other]);
        // Of 94 bytes in the mean 64 are the piece, and four tell where it is.
        assert!(told < alone - 30_000 * 56, "{told} of {alone}");
    }
}
