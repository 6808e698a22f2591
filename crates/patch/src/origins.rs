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

use crate::relocate::Moved;
use crate::sheet::Sheet;
use crate::write::OriginRow;

/// A stretch of a copy that is laid out as in the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    address: u64,
    /// Offset in the moved code.
    at: u32,
    length: u64,
}

/// The runs of moved code that ends, in the image, at `end`. An instruction that became several has no offset of its own. Where
/// it is the first, it is a run of its own, and all but the first byte of its copy another one: wherever a signal comes there,
/// the instruction is to be executed again. Elsewhere it counts to what stands before it. One whose copy is shorter (prefixes that
/// mean nothing are not copied) is as long as its copy, and what follows is another run.
fn runs(moved: &Moved, end: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_shorter = false;
    for (index, (address, known)) in moved.offsets.iter().enumerate() {
        let next = moved.offsets.get(index + 1).map_or(end, |next| next.0);
        let Some(length @ 1..) = next.min(end).checked_sub(*address) else {
            continue;
        };
        let behind = match moved.offsets.get(index + 1) {
            Some((_, behind)) => *behind,
            None => Some(moved.code.bytes.len() as u32),
        };
        let copy = known
            .zip(behind)
            .and_then(|(at, behind)| behind.checked_sub(at));
        is_shorter = copy.is_some_and(|copy| u64::from(copy) < length);
        let length = copy.map_or(length, |copy| length.min(u64::from(copy)));
        let run = |at, length| Run {
            address: *address,
            at,
            length,
        };
        match (known, runs.last_mut()) {
            (None, _) if index == 0 => runs.extend([run(0, length), run(1, 0)]),
            (None, _) => {}
            (Some(at), Some(last))
                if last.address + last.length == *address
                    && u64::from(*at).checked_sub(last.length) == Some(u64::from(last.at)) =>
            {
                last.length += length;
            }
            (Some(at), _) => runs.push(run(*at, length)),
        }
    }
    if let Some(last) = runs.last().copied().filter(|_| is_shorter) {
        runs.push(Run {
            address: end,
            at: last.at + last.length as u32,
            length: 0,
        });
    }
    runs
}

impl Sheet {
    /// A piece that begins at `start`, whose copy, of instructions up to `end`, begins at `body`.
    pub(crate) fn copied(&mut self, start: u32, body: u32, moved: &Moved, end: u64, flags: u32) {
        let mut runs = runs(moved, end);
        // The way out stands behind the copy, which may be longer than what it is of.
        let behind = moved.code.bytes.len() as u32;
        let is_longer = |last: &Run| u64::from(last.at) + last.length != u64::from(behind);
        if flags & origin::EXIT != 0 && runs.last().is_some_and(is_longer) {
            runs.push(Run {
                address: end,
                at: behind,
                length: 0,
            });
        }
        let short = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
        // The slow way of an exit stands before the copy and is executed behind it. One row says so of one run only.
        let mut start = start;
        if flags & origin::EXIT != 0 && runs.len() > 1 && start < body {
            self.origins.push(OriginRow {
                at: start,
                flags: flags & !origin::EXIT,
                body: 0,
                length: 0,
                address: Some(end),
            });
            start = body;
        }
        let first = runs.first().copied().unwrap_or(Run {
            address: end,
            at: 0,
            length: 0,
        });
        // And behind the last run.
        let kept = |index| match index + 1 < runs.len() {
            true => flags & !origin::EXIT,
            false => flags,
        };
        self.origins.push(OriginRow {
            at: start,
            flags: kept(0) | origin::FIRST,
            body: short(u64::from(body + first.at - start)),
            length: short(first.length),
            address: Some(first.address),
        });
        let more = runs.iter().enumerate().skip(1);
        let more = more.map(|(index, run)| OriginRow {
            at: body + run.at,
            flags: kept(index) & !origin::THROUGH,
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
    use crate::arena::{Arena, Code};

    #[test]
    fn the_slow_way_of_an_exit_stands_for_the_way_out() {
        // A conditional jump of 2 bytes has 6 in the copy.
        let offsets = vec![(0x100, Some(0)), (0x102, Some(6))];
        for (length, end) in [(9, 0x105), (13, 0x10b)] {
            let code = Code {
                bytes: vec![0x90; length],
                links: Vec::new(),
            };
            let moved = Moved {
                code,
                offsets: offsets.clone(),
                exits: Vec::new(),
            };
            let mut plan = Sheet::new(Arena::new(0, 0));
            plan.copied(64, 96, &moved, end, origin::EXIT);
            let told = |row: &OriginRow| (row.at, row.address, row.length);
            let told: Vec<_> = plan.origins.iter().map(told).collect();
            let mut expected = vec![
                (64, Some(end), 0),
                (96, Some(0x100), 2),
                (102, Some(0x102), length as u16 - 6),
            ];
            if length == 13 {
                // The last one is longer in the image.
                expected.push((109, Some(end), 0));
            }
            assert_eq!(told, expected);
        }
    }

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
        let several = [(10, None), (12, Some(9))];
        let all = [run(10, 0, 2), run(10, 1, 0), run(12, 9, 1)];
        assert_eq!(runs(&moved(&several), 13), all);
        assert_eq!(runs(&moved(&[]), 15), []);
        let shorter = [
            (10, Some(0)),
            (14, Some(4)),
            (26, Some(13)),
            (1 << 61, Some(16)),
        ];
        let all = [run(10, 0, 13), run(26, 13, 3)];
        assert_eq!(runs(&moved(&shorter), 29), all);
        let last = [(10, Some(0)), (14, Some(4)), (1 << 61, Some(13))];
        assert_eq!(runs(&moved(&last), 26), [run(10, 0, 13), run(26, 13, 0)]);
    }
}
