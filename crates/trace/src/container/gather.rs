//! The streams of a process file by themselves: whoever opens a run of many files keeps what it reads again of each of them,
//! and not a file of pages of which most are empty.

use super::{ProcessFile, Side, ThreadFile};
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
