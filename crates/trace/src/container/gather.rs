//! The streams of a process file by themselves: whoever opens a run of many files keeps what it reads again of each of them,
//! and not a file of pages of which most are empty.

use super::{ProcessFile, Side, SideStream, ThreadFile};
use std::collections::BTreeSet;
use std::ops::Range;

impl ProcessFile {
    /// Copies all streams, and makes the pieces name their places in the copy. `None`, and nothing is changed, where the
    /// streams are longer than `most`, or not all there.
    pub fn gather(&mut self, bytes: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut length = 0usize;
        for piece in self.threads.iter_mut().flat_map(pieces) {
            bytes.get(piece.clone())?;
            length = length.saturating_add(piece.len());
        }
        if length > most {
            return None;
        }
        let mut copy = Vec::with_capacity(length);
        for piece in self.threads.iter_mut().flat_map(pieces) {
            let start = copy.len();
            copy.extend_from_slice(bytes.get(piece.clone()).unwrap_or(&[]));
            *piece = start..copy.len();
        }
        Some(copy)
    }
}

impl ProcessFile {
    /// Bytes of the streams beside the events of the threads with these indices, and of all streams of the others.
    pub fn beside(&self, told: &BTreeSet<u32>) -> u64 {
        let of = |thread: &ThreadFile| {
            let side = sides(&thread.side).map(|it| length(&it.pieces));
            let own = thread.segments().map(|it| length(&it.pieces));
            let is_told = told.contains(&thread.index);
            side.sum::<u64>() + if is_told { 0 } else { own.sum() }
        };
        self.threads.iter().map(of).sum()
    }
}

fn sides(side: &Side) -> impl Iterator<Item = &SideStream> {
    [&side.arguments, &side.times, &side.inferred].into_iter()
}

fn length(pieces: &[Range<usize>]) -> u64 {
    pieces.iter().map(|it| it.len() as u64).sum()
}

/// All that is read of a thread beside its control block.
fn pieces(thread: &mut ThreadFile) -> impl Iterator<Item = &mut Range<usize>> {
    let earlier = thread.earlier.iter_mut();
    earlier
        .flat_map(|it| own(&mut it.pieces, &mut it.side))
        .chain(own(&mut thread.pieces, &mut thread.side))
}

fn own<'a>(
    pieces: &'a mut [Range<usize>],
    side: &'a mut Side,
) -> impl Iterator<Item = &'a mut Range<usize>> {
    let sides = [&mut side.arguments, &mut side.times, &mut side.inferred];
    let beside = sides.into_iter().flat_map(|it| &mut it.pieces);
    pieces.iter_mut().chain(beside)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::container;
    use crate::map::Mapped;
    use crate::writer::{Identity, Writer};
    use lockstep_format::codec::Kind;

    #[test]
    fn short_streams_are_copied_and_long_ones_stay_where_they_are() {
        let identity = Identity::default();
        let mut writer = Writer::new(Kind::Seed, identity, "host\th\n", u64::MAX);
        for tid in [7, 8] {
            let thread = writer.thread(tid, 0);
            (0..500).for_each(|event| writer.event(thread, 16 + event * event % 7));
            writer.commit(thread);
        }
        let mapped = Mapped::Memory(writer.bytes().to_vec());
        let read = || container::read(mapped.bytes(), |at| mapped.control(at)).unwrap();
        let content = |file: &ProcessFile, bytes: &[u8]| -> Vec<Vec<u8>> {
            let threads = file.threads.iter();
            let of = |it: &ThreadFile| {
                let pieces = it.pieces.iter().cloned();
                pieces.flat_map(|piece| bytes[piece].to_vec()).collect()
            };
            threads.map(of).collect()
        };
        let whole = read();
        let length = whole.beside(&BTreeSet::new()) as usize;
        assert!(length > 0);
        let mut file = read();
        let copy = file.gather(mapped.bytes(), length).unwrap();
        assert_eq!(copy.len(), length);
        assert_eq!(content(&file, &copy), content(&whole, mapped.bytes()));
        let mut file = read();
        assert_eq!(file.gather(mapped.bytes(), length - 1), None);
        assert_eq!(file.threads[1].pieces, whole.threads[1].pieces);
    }
}
