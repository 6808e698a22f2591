//! What pieces of the arena stand for: rows that lead a signal handler from a copy to the instruction that was moved, and back.
//!
//! A piece of code begins where the last one ends. Its copies are told by runs: as long as instructions are as long as in the
//! image, one row is enough.
//!
//! ```text
//!  image    push %rbp | mov %rsp,%rbp | je 0x40 (2 bytes)   | sub $16,%rsp | ...
//!  copy     push %rbp | mov %rsp,%rbp | je 0x40 (6 bytes)   | sub $16,%rsp | jmp
//!  rows     ────────── first ────────────────────────────── | ── second ──
//! ```

use lockstep_format::plan::origin;

use crate::make::Builder;
use crate::relocate::Moved;
use crate::write::OriginRow;

/// A stretch of a copy that is laid out as in the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    address: u64,
    /// Offset in the moved code.
    at: u32,
    length: u64,
}

/// The runs of moved code that ends, in the image, at `end`.
fn runs(moved: &Moved, end: u64) -> Vec<Run> {
    let known = moved.offsets.iter();
    let known: Vec<(u64, Option<u32>)> = known.filter(|it| it.0 < end).copied().collect();
    let mut runs: Vec<Run> = Vec::new();
    for (index, (address, at)) in known.iter().enumerate() {
        let next = known.get(index + 1).map_or(end, |next| next.0);
        let (Some(at), Some(length)) = (*at, next.checked_sub(*address)) else {
            continue;
        };
        match runs.last_mut() {
            Some(last)
                if last.address + last.length == *address
                    && u64::from(at).checked_sub(last.length) == Some(u64::from(last.at)) =>
            {
                last.length += length;
            }
            _ => runs.push(Run {
                address: *address,
                at,
                length,
            }),
        }
    }
    runs
}

impl Builder<'_> {
    /// A piece that begins at `start`, whose copy, of instructions up to `end`, begins at `body`.
    pub(crate) fn copied(&mut self, start: u32, body: u32, moved: &Moved, end: u64, flags: u32) {
        let runs = runs(moved, end);
        let short = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
        let first = runs.first().copied().unwrap_or(Run {
            address: end,
            at: 0,
            length: 0,
        });
        self.origins.push(OriginRow {
            at: start,
            flags: flags | origin::FIRST,
            body: short(u64::from(body + first.at - start)),
            length: short(first.length),
            address: Some(first.address),
        });
        let more = runs.iter().skip(1).map(|run| OriginRow {
            at: body + run.at,
            flags: flags & !origin::THROUGH,
            body: 0,
            length: short(run.length),
            address: Some(run.address),
        });
        self.origins.extend(more);
    }

    /// Everything from `start` on stands for one address, or for nothing in the image.
    pub(crate) fn stands_for(&mut self, start: u32, address: Option<u64>, flags: u32) {
        self.origins.push(OriginRow {
            at: start,
            flags: flags | origin::FIRST,
            body: 0,
            length: 0,
            address,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Code;

    #[test]
    fn runs_end_where_lengths_differ() {
        let moved = |offsets: &[(u64, Option<u32>)]| Moved {
            code: Code::default(),
            offsets: offsets.to_vec(),
            exits: Vec::new(),
        };
        let run = |address, at, length| Run {
            address,
            at,
            length,
        };
        let all = [
            (10, Some(0)),
            (11, Some(1)),
            (14, Some(4)),
            (16, Some(10)),
            (1 << 61, Some(14)),
        ];
        assert_eq!(runs(&moved(&all), 20), [run(10, 0, 6), run(16, 10, 4)]);
        let lost = [(10, Some(0)), (12, None), (14, Some(9))];
        assert_eq!(runs(&moved(&lost), 15), [run(10, 0, 2), run(14, 9, 1)]);
        assert_eq!(runs(&moved(&[]), 15), []);
    }
}
